//! [`ModelCache`]: compilations that outlive the process, in files that belong to the client
//! (contract: section 6).
//!
//! A client may give a driver empty files when a model is prepared, and the same files when the
//! model is wanted again. In between they are the client's: anybody may have written anything into
//! them. So there is one file, the model cache file, and all of it is under a keyed code
//! ([BLAKE3](https://docs.rs/blake3) in keyed mode) whose [`CacheKey`] only the device has; data
//! cache files, which the interface would let go unchecked, are not asked for.
//!
//! | byte | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `nnhal`, `c`, 13, 10 |
//! | 8 | 4 | [`FORMAT`] |
//! | 12 | 4 | length of the description, `d` |
//! | 16 | 8 | length of the content, `c` |
//! | 24 | 8 | length of the file, `160 + c + d + n` |
//! | 32 | 32 | the client's token |
//! | 64 | 32 | zeros |
//! | 96 | 32 | the keyed code of the 96 bytes before, so that a long file of a stranger is not read |
//! | 128 | `c` | the content: the engine's own bytes, or the model's constants |
//! | `128 + c` | `d` | the description: who saved it, and how the content is to be read |
//! | `128 + c + d` | `n` | the keyed codes of the content's chunks |
//! | `128 + c + d + n` | 32 | the keyed code of the header, the codes of the chunks, and the description |
//!
//! Each MiB of the content is a chunk with a keyed code of 32 bytes, under a key of its own. Threads
//! read and check chunks side by side. Numbers are little endian. The description is in the format of
//! [postcard](https://docs.rs/postcard); only what a holder of the key wrote gets that far.
//!
//! What is loaded must have been saved under the same token, by the same version of the same driver
//! on a processor that can do the same ([`Identity`]). Anything else is a miss: a [`CacheError`]
//! that says what was found, and a `GENERAL_FAILURE` for the client.
//!
//! A file is read once, into memory that no one else can write; that copy is what is checked and
//! used, so rewriting the file at the same time is harmless (contract: CACHE-13). A caller of this process may know
//! that no one has changed the file, or that no one will ([`CacheTrust`]): then the content's codes are not computed again, or its
//! pages are used where they are.
//!
//! ```
//! use nnhal_driver::cache::{CacheFiles, CacheKey, Content, Identity, ModelCache};
//! use nnhal_driver::CompileOptions;
//! use nnhal_hal::{ExecutionPreference, HalVersion, Hints, OperandSpec, OperationType, Priority, SubgraphBuilder};
//!
//! let mut graph = SubgraphBuilder::new();
//! let x = graph.input("x", OperandSpec::tensor_float32([2]));
//! let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
//! graph.output(y);
//! let model = nnhal_ops::validate(&graph.into_model()?, HalVersion::V1_3)?;
//!
//! let cache = ModelCache::new(&CacheKey::new([7; 32]), Identity::here("example-device", "1"));
//! let model_files = [tempfile::tempfile()?.into()];
//! let files = CacheFiles { model: &model_files, data: &[], token: &[1; 32] };
//! let options = CompileOptions {
//!     preference: ExecutionPreference::FastSingleAnswer,
//!     priority: Priority::High,
//!     hints: Hints::NONE,
//! };
//! cache.save(files, &model, &options, None)?;
//!
//! let stored = cache.load(files, &[])?;
//! assert_eq!(stored.options, options);
//! assert!(matches!(stored.content, Content::Model(loaded) if loaded.main() == model.main()));
//! // Under another token there is nothing (contract: CACHE-10).
//! assert!(cache.load(CacheFiles { token: &[2; 32], ..files }, &[]).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod described;
mod description;
mod error;
mod files;
mod identity;
mod key;
mod sealed;

pub use code::{CHUNK_CONTEXT, CODE_CONTEXT};
pub use described::DescribedSubgraph;
pub use error::{CacheError, FileKind};
pub use files::CacheFiles;
pub use identity::Identity;
pub use key::{CacheKey, KEY_LENGTH, KeyError, state_directory};
pub use sealed::{FORMAT, LENGTH_LIMIT};

use crate::engine::CompileOptions;
use crate::extension_types::ExtensionTypes;
use crate::interface::Interface;
use bytes::Bytes;
use code::CodeKeys;
use description::{Description, Parts};
use nnhal_hal::{CacheFilesNeeded, CacheTrust, Extension, Model};
use nnhal_ops::ValidModel;
use std::fmt;

/// What a device needs to save and load compilations. Cloning is cheap enough to do it per call.
#[derive(Clone)]
pub struct ModelCache {
    keys: CodeKeys,
    identity: Identity,
}

/// What was loaded.
#[derive(Debug)]
pub struct Stored {
    /// What requests must fit: as of the model that was saved, but a prepared model of its own.
    pub interface: Interface,
    /// How the model was compiled (contract: CACHE-18).
    pub options: CompileOptions,
    /// What to run.
    pub content: Content,
}

/// What a compilation was saved as.
#[derive(Debug)]
pub enum Content {
    /// What the engine made of the model, in the engine's own form: what
    /// [`Program::save`](crate::Program::save) returned, for
    /// [`Engine::restore`](crate::Engine::restore).
    Program(Bytes),
    /// The model itself, to be compiled anew. Its constants are all part of it, as
    /// `CONSTANT_COPY`, also those that lay in pools.
    Model(ValidModel),
}

impl ModelCache {
    /// The cache files that a device with a cache asks for.
    pub const FILES_NEEDED: CacheFilesNeeded = CacheFilesNeeded { model: 1, data: 0 };

    /// Files are authenticated with a key that is made from this one.
    pub fn new(key: &CacheKey, identity: Identity) -> Self {
        Self { keys: CodeKeys::new(key), identity }
    }

    /// The cache of a device on this machine, with the key of its state directory
    /// ([`CacheKey::of_device`]). Without a key there is no cache, and the log says why.
    pub fn of_device(name: &str, version: &str) -> Option<Self> {
        match CacheKey::of_device(name) {
            Ok(key) => Some(Self::new(&key, Identity::here(name, version))),
            Err(error) => {
                let reason: &dyn std::error::Error = &error;
                tracing::warn!(device = name, reason, "compilations are not cached");
                None
            }
        }
    }

    /// Who saves and loads.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Saves a compilation: `program` as the engine gave it, or else the model.
    ///
    /// No file is written before all have been found fit for it (contract: CACHE-14). A file is
    /// first made empty, and the code comes last: what was written half does not load.
    ///
    /// # Errors
    /// Any of the kinds of [`CacheError`] that are about files and sizes. Preparing succeeds all
    /// the same (contract: PREP-7, PREP-8).
    pub fn save(
        &self,
        files: CacheFiles<'_>,
        model: &ValidModel,
        options: &CompileOptions,
        program: Option<&[u8]>,
    ) -> Result<(), CacheError> {
        let file = files.only_model_file()?;
        let constants;
        let (description, content) = match program {
            Some(program) => (Description::of_program(model, options)?, program),
            None => {
                let (description, bytes) = Description::of_model(model, options)?;
                constants = bytes;
                (description, &*constants)
            }
        };
        let description = description.to_bytes(&self.identity)?;
        sealed::write(&file, &self.keys, files.token, content, &description)
    }

    /// Checks all of what [`ModelCache::load`] would load but the model inside, if it is one: that the
    /// files are as they must be, and whole, and saved by this driver under this token.
    ///
    /// # Errors
    /// As [`ModelCache::load`].
    pub fn check(&self, files: CacheFiles<'_>) -> Result<(), CacheError> {
        self.open(files, CacheTrust::None).map(drop)
    }

    fn open(
        &self,
        files: CacheFiles<'_>,
        trust: CacheTrust,
    ) -> Result<(Bytes, CompileOptions, Parts), CacheError> {
        let file = files.only_model_file()?;
        let (content, description) = sealed::read(&file, &self.keys, files.token, trust)?;
        let (options, parts) =
            Description::from_bytes(&description, &self.identity)?.into_parts()?;
        Ok((content, options, parts))
    }

    /// Loads what [`ModelCache::save`] saved under the same token. `offered` are the extensions of
    /// the device.
    ///
    /// # Errors
    /// [`CacheError`]; whichever, for the client it is a `GENERAL_FAILURE` (contract: CACHE-5 to
    /// CACHE-11).
    pub fn load(&self, files: CacheFiles<'_>, offered: &[Extension]) -> Result<Stored, CacheError> {
        self.load_trusted(files, CacheTrust::None, offered)
    }

    /// As [`ModelCache::load`], by a caller who may know more of the files.
    ///
    /// # Errors
    /// As [`ModelCache::load`].
    pub fn load_trusted(
        &self,
        files: CacheFiles<'_>,
        trust: CacheTrust,
        offered: &[Extension],
    ) -> Result<Stored, CacheError> {
        let (content, options, parts) = self.open(files, trust)?;
        match parts {
            Parts::Program { version, inputs, outputs, extension_name_to_prefix } => {
                let table = Model { extension_name_to_prefix, ..Model::default() };
                let interface = Interface::new(version, inputs, outputs)
                    .with_extension_types(ExtensionTypes::of(&table, offered));
                Ok(Stored { interface, options, content: Content::Program(content) })
            }
            Parts::Model { version, mut model } => {
                model.operand_values = content[..].into();
                let model = nnhal_ops::validate(&model, version)?;
                let interface = Interface::of(&model)
                    .with_extension_types(ExtensionTypes::of(model.model(), offered));
                Ok(Stored { interface, options, content: Content::Model(model) })
            }
        }
    }
}

impl fmt::Debug for ModelCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelCache")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
