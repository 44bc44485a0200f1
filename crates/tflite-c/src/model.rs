//! `TfLiteModel...`: model files.
//!
//! The file's bytes are copied where they come from memory, so that a program that changes or frees them
//! too early changes nothing here; of a file on disk large constants stay there until they are prepared.

use crate::abi::TfLiteStatus;
use crate::border::{Failure, Outcome, export};
use crate::handle::{give, take};
use crate::memory;
use crate::report::{Callback, Reporter};
use nnhal::tflite::ImportError;
use nnhal::{Error, Model, ModelFile, Source};
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

nnhal_c_boundary::opaque! {
    /// A model file.
    TfLiteModel: LoadedModel, 1;
}

/// A model file.
#[derive(Debug)]
pub struct LoadedModel {
    pub(crate) file: Arc<ModelFile>,
    /// Its primary subgraph, if the shapes of the file's example are right.
    pub(crate) model: Option<Model>,
    /// Why no interpreter can be made of it, though it is a model.
    refusal: Option<String>,
}

impl LoadedModel {
    fn new(source: Source<'_>) -> Outcome<Self> {
        let file = Arc::new(ModelFile::open(source)?);
        let (model, refusal) = match file.model(0, &[], true) {
            Ok(model) => (Some(model), None),
            // The file is a model. That operators are missing is said when an interpreter is made; and
            // where only shapes are wrong, the program may still choose others.
            Err(Error::Import { source: reason @ ImportError::Unsupported { .. }, .. }) => {
                (None, is_final(&reason).then(|| reason.to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { file, model, refusal })
    }

    /// Whether interpreters can be made.
    pub(crate) fn check(&self) -> Outcome {
        match &self.refusal {
            Some(sentence) => Err(Failure::of(TfLiteStatus::UnresolvedOps, sentence)),
            None => Ok(()),
        }
    }
}

/// Whether there are operators that no shapes make right.
fn is_final(error: &ImportError) -> bool {
    match error {
        ImportError::Unsupported { operators, .. } => operators.iter().any(|it| it.is_unknown()),
        _ => true,
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
