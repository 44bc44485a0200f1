//! [`ModelFile`]: a `.tflite` file that is described first, and imported for shapes that are chosen then.

use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::model::{Imported, Model, Source, narrow_shapes, read_constant};
use crate::tensor::Tensor;
use nnhal_tflite::graph::Stored;
use nnhal_tflite::{FileDescription, SubgraphDescription};
use std::path::PathBuf;

/// A `.tflite` file. Unlike a [`Model`], it may have operators that only inputs of other shapes make
/// right, and all of its subgraphs can be seen.
///
/// ```
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
/// let file = nnhal::ModelFile::open(path)?;
/// let input = file.subgraph(0)?.inputs[0];
/// assert_eq!(file.tensors(0)?[input].example_shape, [1, 8, 8, 1]);
/// let model = file.model(0, &[Some(vec![1, 8, 8, 1])], true)?;
/// assert_eq!(model.inputs().len(), 1);
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModelFile {
    stored: Stored,
    path: Option<PathBuf>,
    description: FileDescription,
}

impl Model {
    /// The file that it was loaded from, with all of its subgraphs.
    ///
    /// # Errors
    /// [`Error::NotAFile`]; [`Error::Import`]: it can no longer be read.
    pub fn file(&self) -> Result<ModelFile> {
        let (stored, path) = self.read_from().ok_or(Error::NotAFile)?;
        ModelFile::of(stored, path)
    }
}

impl ModelFile {
    /// Reads a file: from a path, or out of memory.
    ///
    /// # Errors
    /// [`Error::Import`]: it cannot be read, or is no model.
    pub fn open<'a>(source: impl Into<Source<'a>>) -> Result<Self> {
        let (stored, path) = source.into().open()?;
        Self::of(stored, path)
    }

    pub(crate) fn of(stored: Stored, path: Option<PathBuf>) -> Result<Self> {
        match nnhal_tflite::describe_stored(&stored) {
            Ok(description) => Ok(Self { stored, path, description }),
            Err(source) => Err(Error::Import { path, source }),
        }
    }

    /// What the file says.
    pub fn description(&self) -> &FileDescription {
        &self.description
    }

    /// What the file says of a subgraph.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn subgraph(&self, index: usize) -> Result<&SubgraphDescription> {
        let count = self.description.subgraphs.len();
        self.description.subgraphs.get(index).ok_or_else(|| Error::NotFound {
            what: "subgraph",
            name: index.to_string(),
            available: (0..count).map(|index| index.to_string()).collect(),
        })
    }

    /// All tensors of a subgraph, by index.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub fn tensors(&self, subgraph: usize) -> Result<Vec<TensorInfo>> {
        Ok(self.subgraph(subgraph)?.tensors.iter().map(TensorInfo::of_file).collect())
    }

    /// The value of a constant, as it is stored.
    ///
    /// # Errors
    /// As [`Model::constant`], and [`Error::Elements`] where elements share bytes.
    pub fn constant(&self, info: &TensorInfo) -> Result<Tensor> {
        read_constant(&self.stored, info)
    }

    /// The model that a subgraph is, with these shapes of its inputs, see
    /// [`Model::with_input_shapes`]. Without any it is as [`Model::load`] has it.
    ///
    /// # Errors
    /// [`Error::Import`]: operators have no counterpart, or the shapes do not fit.
    pub fn model(
        &self,
        subgraph: usize,
        shapes: &[Option<Vec<usize>>],
        is_strict: bool,
    ) -> Result<Model> {
        let file = (self.stored.clone(), self.path.clone());
        let (shapes, may_contradict) = (narrow_shapes(shapes)?, !is_strict);
        Model::import(file, Imported { shapes, may_contradict, subgraph, ..Imported::default() })
    }
}
