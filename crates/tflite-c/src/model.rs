//! `TfLiteModel...`: model files.
//!
//! The file's bytes are copied where they come from memory, so that a program that changes or frees them
//! too early changes nothing here; of a file on disk large constants stay there until they are prepared.

use crate::abi::{TfLiteModel, TfLiteStatus, give, take};
use crate::border::{Failure, Outcome, export};
use crate::memory;
use crate::report::{Callback, Reporter};
use nnhal::tflite::ImportError;
use nnhal::{Error, Model, Source};
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A model file.
#[derive(Debug)]
pub struct LoadedModel {
    /// The model, or why no interpreter can be made of it, though it is a model.
    imported: Result<Model, Failure>,
}

impl LoadedModel {
    fn new(source: Source<'_>) -> Outcome<Self> {
        let imported = match Model::load(source) {
            Ok(model) => Ok(model),
            // The file is a model. That operators are missing is said when an interpreter is made.
            Err(Error::Import { source: reason @ ImportError::Unsupported { .. }, .. }) => {
                Err(Failure::of(TfLiteStatus::UnresolvedOps, reason.to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { imported })
    }

    /// What interpreters run.
    pub(crate) fn model(&self) -> Outcome<Model> {
        match &self.imported {
            Ok(model) => Ok(model.clone()),
            Err(Failure { status, sentence, .. }) => Err(Failure::of(*status, sentence)),
        }
    }
}

fn from_bytes(data: *const c_void, size: usize) -> Outcome<*mut TfLiteModel> {
    let bytes = memory::bytes(data, size, "model_data")?;
    give(Arc::new(LoadedModel::new(Source::Bytes(&bytes))?))
}

fn from_file(path: *const c_char) -> Outcome<*mut TfLiteModel> {
    let path = memory::text(path, "model_path")?;
    let path = PathBuf::from(OsStr::from_bytes(path.as_bytes()));
    give(Arc::new(LoadedModel::new(Source::Path(path))?))
}

export! {
    /// A model of the bytes of a file; null if they are none.
    fn TfLiteModelCreate(data: *const c_void, size: usize) -> *mut TfLiteModel, std::ptr::null_mut(); {
        from_bytes(data, size)
    }

    /// The same; why the bytes are no model goes to the function.
    fn TfLiteModelCreateWithErrorReporter(
        data: *const c_void,
        size: usize,
        callback: Option<Callback>,
        user_data: *mut c_void,
    ) -> *mut TfLiteModel, std::ptr::null_mut(); {
        from_bytes(data, size).map_err(|failure| failure.to(Reporter::new(callback, user_data)))
    }

    /// A model of a file; null if it is none.
    fn TfLiteModelCreateFromFile(path: *const c_char) -> *mut TfLiteModel, std::ptr::null_mut(); {
        from_file(path)
    }

    /// The same; why the file is no model goes to the function.
    fn TfLiteModelCreateFromFileWithErrorReporter(
        path: *const c_char,
        callback: Option<Callback>,
        user_data: *mut c_void,
    ) -> *mut TfLiteModel, std::ptr::null_mut(); {
        from_file(path).map_err(|failure| failure.to(Reporter::new(callback, user_data)))
    }

    /// Deletes the model. Interpreters that were made of it stay.
    fn TfLiteModelDelete(model: *mut TfLiteModel) -> (), (); {
        take(model).map(drop)
    }
}
