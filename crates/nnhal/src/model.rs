//! [`Model`]: what a `.tflite` file holds, or what was built by hand.

use crate::associated::{self, AssociatedFile};
use crate::error::{Error, Result};
use crate::info::{Signature, TensorInfo};
use crate::label_files::{METADATA, label_files};
use crate::packed::Packing;
use crate::shape::byte_size;
use crate::tensor::Tensor;
use nnhal_driver::known_files::{self, Hash};
use nnhal_driver::side_by_side::side_by_side;
use nnhal_hal::Memory;
use nnhal_hal::memory::MemoryError;
use nnhal_tflite::graph::{Graph, Stored};
use nnhal_tflite::{
    FileDescription, Import, ImportError, ImportOptions, OperatorDescription, OperatorOrigin, State,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Most bytes of a file of labels.
const LABELS_LIMIT: u64 = 64 << 20;

/// Where a model comes from: a path, the bytes of a file, or memory that has them.
#[derive(Debug)]
pub enum Source<'a> {
    /// A file. Large constants stay in it, or in files beside it that it names, and are read when the model is prepared.
    Path(PathBuf),
    /// What a file holds; it is copied.
    Bytes(&'a [u8]),
    /// A file in memory, which is read where it is for as long as there are models of it.
    Memory(Memory),
}

impl Source<'_> {
    /// The file as memory, with the files beside it that hold constants of it, and its path if it has one.
    pub(crate) fn open(self) -> Result<(Stored, Option<PathBuf>)> {
        let (stored, path) = match self {
            Self::Path(path) => (nnhal_tflite::open_file(&path), Some(path)),
            Self::Bytes(bytes) => {
                (Memory::from_bytes(bytes).map(Into::into).map_err(Into::into), None)
            }
            Self::Memory(memory) => (Ok(memory.into()), None),
        };
        match stored {
            Err(ImportError::Memory(MemoryError::Empty { .. })) => {
                Err(Error::Import { path, source: ImportError::Format("it is empty".into()) })
            }
            Ok(stored) => Ok((stored, path)),
            Err(source) => Err(Error::Import { path, source }),
        }
    }
}

/// Shapes as the importer takes them.
pub(crate) fn narrow_shapes(shapes: &[Option<Vec<usize>>]) -> Result<Vec<Option<Vec<u32>>>> {
    let narrow = |shape: &Vec<usize>| -> Result<Vec<u32>> {
        let lengths = shape.iter().map(|length| u32::try_from(*length));
        let expected = Vec::new();
        lengths
            .collect::<Result<_, _>>()
            .map_err(|_| Error::Shape { found: shape.clone(), expected })
    };
    shapes.iter().map(|shape| shape.as_ref().map(narrow).transpose()).collect()
}

/// The value of a constant of a file.
pub(crate) fn read_constant(file: &Stored, info: &TensorInfo) -> Result<Tensor> {
    let stored = info.stored.as_ref().filter(|_| info.sparsity.is_none());
    let stored = stored.ok_or_else(|| Error::no_constant(info.index))?;
    // Looked at first, so that nothing is allocated for a file that claims too much.
    if info.data_type.byte_length(&info.example_shape) != Some(stored.len()) {
        let (data_type, shape) = (info.data_type, info.example_shape.clone());
        return Err(Error::Elements { data_type, shape, found: stored.len() });
    }
    let bytes = file.read(stored)?;
    let tensor = Tensor::from_bytes(info.data_type, info.example_shape.clone(), &bytes)?;
    Ok(tensor.with_quantization(info.quantization()))
}

/// The subgraph that a signature is of.
fn subgraph_of(name: &str, all: &[nnhal_tflite::Signature]) -> Result<usize> {
    let found = all.iter().find(|signature| signature.name == name);
    found.map(|signature| signature.subgraph).ok_or_else(|| Error::NotFound {
        what: "signature",
        name: name.to_owned(),
        available: all.iter().map(|signature| signature.name.clone()).collect(),
    })
}

macro_rules! sources {
    ($($Type:ty: $variant:ident $from:expr),*) => {$(
        impl<'a> From<$Type> for Source<'a> {
            fn from(source: $Type) -> Self {
                Self::$variant($from(source))
            }
        }
    )*};
}

sources!(
    &'a str: Path PathBuf::from,
    &'a String: Path PathBuf::from,
    String: Path PathBuf::from,
    &'a Path: Path PathBuf::from,
    &'a PathBuf: Path PathBuf::from,
    PathBuf: Path std::convert::identity,
    &'a [u8]: Bytes std::convert::identity,
    &'a Vec<u8>: Bytes Vec::as_slice,
    Memory: Memory std::convert::identity
);

impl<'a, const N: usize> From<&'a [u8; N]> for Source<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

/// What a `.tflite` file says, see [`Model::describe`].
#[derive(Debug, Clone, PartialEq)]
pub struct FileInfo {
    /// Its subgraphs, signatures and metadata.
    pub description: FileDescription,
    /// The files in the archive behind the model.
    pub associated_files: Vec<AssociatedFile>,
    /// Bytes that it has.
    pub size: u64,
}

/// A model. Clones are the same model.
///
/// ```
/// let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
/// let model = nnhal::Model::load(file)?;
/// let image = &model.inputs()[0];
/// assert_eq!(image.known_shape(), Some(vec![1, 8, 8, 1]));
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    /// The file; `None` for a model that was built.
    file: Option<(Stored, Option<PathBuf>)>,
    /// Whether floats may be computed with 16 bits.
    relaxed: bool,
    imported: Imported,
    hal: nnhal_hal::Model,
    inputs: Vec<TensorInfo>,
    outputs: Vec<TensorInfo>,
    own_outputs: usize,
    tensors: Vec<TensorInfo>,
    metadata: Vec<nnhal_tflite::Metadata>,
    signatures: Vec<Signature>,
    states: Vec<State>,
    /// By state: the tensor of the file that holds it, if it is a variable tensor.
    state_tensors: Vec<Option<usize>>,
    origins: Vec<OperatorOrigin>,
    operators: Vec<OperatorDescription>,
    operands: Vec<Option<u32>>,
    subgraph_count: usize,
    description: String,
    has_example_shapes: bool,
    /// All signatures of the file.
    file_signatures: Vec<nnhal_tflite::Signature>,
    /// Of the file, and how it was imported.
    hash: OnceLock<[u8; 32]>,
}

/// What of a file is imported, and how: see [`ImportOptions`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Imported {
    /// What the caller says names the file's contents, so that they need not be read for it.
    pub(crate) token: Option<String>,
    pub(crate) shapes: Vec<Option<Vec<u32>>>,
    pub(crate) may_contradict: bool,
    pub(crate) subgraph: usize,
    pub(crate) dequantizes_weights: bool,
}

impl Model {
    /// Reads a `.tflite` file: from a path, or out of memory.
    ///
    /// # Errors
    /// [`Error::Import`]: it cannot be read, is no model, or has operators that there is nothing for.
    pub fn load<'a>(source: impl Into<Source<'a>>) -> Result<Self> {
        Self::import(source.into().open()?, Imported::default())
    }

    /// Reads the part of a `.tflite` file that one of its signatures names: it may be another subgraph
    /// than the first.
    ///
    /// # Errors
    /// As [`Model::load`]; [`Error::NotFound`]: the file has no such signature.
    pub fn load_signature<'a>(source: impl Into<Source<'a>>, name: &str) -> Result<Self> {
        let file = source.into().open()?;
        let described = match nnhal_tflite::describe_memory(&file.0.tables) {
            Ok(described) => described,
            Err(source) => return Err(Error::Import { path: file.1, source }),
        };
        let subgraph = subgraph_of(name, &described.signatures)?;
        Self::import(file, Imported { subgraph, ..Imported::default() })
    }

    /// What a `.tflite` file says, whether there is a counterpart for its operators or not.
    ///
    /// # Errors
    /// [`Error::Import`]: it cannot be read, or is no model; [`Error::Memory`].
    pub fn describe<'a>(source: impl Into<Source<'a>>) -> Result<FileInfo> {
        let (Stored { tables, .. }, path) = source.into().open()?;
        let description = nnhal_tflite::describe_memory(&tables);
        Ok(FileInfo {
            description: description.map_err(|source| Error::Import { path, source })?,
            associated_files: associated::files(&tables)?,
            size: tables.size(),
        })
    }

    /// The same file with the subgraph of one of its signatures.
    ///
    /// # Errors
    /// As [`Model::load_signature`]; [`Error::NotAFile`].
    pub fn with_signature(&self, name: &str) -> Result<Self> {
        let subgraph = subgraph_of(name, &self.0.file_signatures)?;
        let Imported { token, dequantizes_weights, .. } = self.0.imported.clone();
        if subgraph == self.subgraph() {
            return Ok(self.clone());
        }
        let file = self.0.file.clone().ok_or(Error::NotAFile)?;
        let imported = Imported { token, subgraph, dequantizes_weights, ..Imported::default() };
        Self::import(file, imported)
    }

    pub(crate) fn import(
        (stored, path): (Stored, Option<PathBuf>),
        imported: Imported,
    ) -> Result<Self> {
        let options = ImportOptions {
            shapes: &imported.shapes,
            may_contradict: imported.may_contradict,
            subgraph: imported.subgraph,
            dequantizes_weights: imported.dequantizes_weights,
        };
        let import = match nnhal_tflite::import_stored(&stored, &options) {
            Ok(import) => import,
            Err(source) => return Err(Error::Import { path, source }),
        };
        Ok(Self::of_import(import, (stored, path), imported))
    }

    fn of_import(import: Import, file: (Stored, Option<PathBuf>), imported: Imported) -> Self {
        let of_caller = |all: &[nnhal_tflite::TensorDescription]| -> Vec<TensorInfo> {
            let own = all.len() - import.states.len();
            all[..own].iter().map(TensorInfo::of_file).collect()
        };
        let inputs = of_caller(&import.inputs);
        let tensor_of = |state: &State| {
            let description = import.inputs.get(state.input)?;
            state.name.is_none().then_some(description.index)
        };
        let state_tensors = import.states.iter().map(tensor_of).collect();
        let outputs = of_caller(&import.outputs);
        let positions = |names: &[(String, usize)], of: &[TensorInfo]| {
            let position = |(name, tensor): &(String, usize)| {
                Some((name.clone(), of.iter().position(|it| it.index == *tensor)?))
            };
            names.iter().filter_map(position).collect()
        };
        let main = import.signatures.iter().filter(|it| it.subgraph == imported.subgraph);
        let signatures = main.map(|signature| Signature {
            name: signature.name.clone(),
            inputs: positions(&signature.inputs, &inputs),
            outputs: positions(&signature.outputs, &outputs),
        });
        Self(Arc::new(Inner {
            signatures: signatures.collect(),
            file: Some(file),
            imported,
            relaxed: false,
            tensors: import.tensors.iter().map(TensorInfo::of_file).collect(),
            inputs,
            outputs,
            own_outputs: import.own_outputs,
            hal: import.model,
            metadata: import.metadata,
            state_tensors,
            states: import.states,
            origins: import.operator_origin,
            operators: import.operators,
            operands: import.operands,
            subgraph_count: import.subgraph_count,
            description: import.description,
            has_example_shapes: import.has_example_shapes,
            file_signatures: import.signatures,
            hash: OnceLock::new(),
        }))
    }

    /// The model of a graph that was described, see [`nnhal_tflite::graph`]. With a `token`, prepared models
    /// are kept under that name ([`SessionOptions::cache_dir`](crate::SessionOptions::cache_dir)), and constants
    /// outside of the graph are not read to make one: whoever gives it sees to it that other constants have
    /// another.
    ///
    /// # Errors
    /// [`Error::Import`]: it has operators that there is nothing for, or makes no sense.
    pub fn from_graph(graph: Graph, token: Option<String>) -> Result<Self> {
        let stored = graph.store().map_err(|source| Error::Import { path: None, source })?;
        Self::import((stored, None), Imported { token, ..Imported::default() })
    }

    /// A model that was built with [`nnhal_hal::SubgraphBuilder`] and [`nnhal_hal::ModelBuilder`]. Its inputs are
    /// called `input 0` and so on, its outputs `output 0`.
    ///
    /// # Errors
    /// [`Error::NotFound`]: an input or output is of an extension's type.
    pub fn from_hal(model: nnhal_hal::Model) -> Result<Self> {
        let main = &model.main;
        let describe = |what: &'static str, indexes: &[u32]| -> Result<Vec<TensorInfo>> {
            let describe = |(position, index): (usize, &u32)| {
                let operand = main.operands.get(*index as usize);
                let name = format!("{what} {position}");
                operand
                    .and_then(|operand| TensorInfo::of_operand(name, *index, operand))
                    .ok_or_else(|| Error::NotFound {
                        what: "type of this library for",
                        name: format!("{what} {position}"),
                        available: Vec::new(),
                    })
            };
            indexes.iter().enumerate().map(describe).collect()
        };
        Ok(Self(Arc::new(Inner {
            file: None,
            imported: Imported::default(),
            relaxed: false,
            inputs: describe("input", &main.inputs)?,
            outputs: describe("output", &main.outputs)?,
            own_outputs: main.outputs.len(),
            tensors: Vec::new(),
            metadata: Vec::new(),
            signatures: Vec::new(),
            states: Vec::new(),
            state_tensors: Vec::new(),
            origins: Vec::new(),
            operators: Vec::new(),
            operands: Vec::new(),
            subgraph_count: 1 + model.referenced.len(),
            description: String::new(),
            has_example_shapes: false,
            file_signatures: Vec::new(),
            hash: OnceLock::new(),
            hal: model,
        })))
    }

    /// The same model, of which a device may compute 32-bit floats with 16 bits. Models made of this one say so
    /// only after a call of their own.
    #[must_use]
    pub fn relaxed(mut self) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.hal.relax_computation_float32_to_float16 = true;
        inner.relaxed = true;
        inner.hash = OnceLock::new();
        self
    }

    /// The same model with these names of its inputs and outputs, in their order; those behind keep
    /// theirs.
    #[must_use]
    pub fn with_names(mut self, inputs: &[&str], outputs: &[&str]) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        for (all, names) in [(&mut inner.inputs, inputs), (&mut inner.outputs, outputs)] {
            for (info, name) in all.iter_mut().zip(names) {
                (*name).clone_into(&mut info.name);
            }
        }
        self
    }

    /// The same model with variables: inputs that take, in each run, what outputs gave in the run
    /// before, and in the first one what [`State::initial`] says: 0 mostly, of a quantized type its zero point. They are the last inputs
    /// and outputs, and no longer among [`Model::inputs`] and [`Model::outputs`].
    ///
    /// # Errors
    /// [`Error::State`]: an input or output is not among the last ones, or there twice, or the two
    /// differ in type or shape, or their shape is not known, or the first value has another size.
    pub fn with_states(mut self, states: Vec<State>) -> Result<Self> {
        let inner = Arc::make_mut(&mut self.0);
        let main = &inner.hal.main;
        let (inputs, outputs) = (main.inputs.len(), main.outputs.len());
        let first = |count: usize, what: &str| {
            let too_many = || Error::State(format!("there are only {count} {what}"));
            count.checked_sub(states.len()).ok_or_else(too_many)
        };
        let (first_input, first_output) = (first(inputs, "inputs")?, first(outputs, "outputs")?);
        let mut seen = (vec![false; inputs], vec![false; outputs]);
        for State { input, output, initial, .. } in &states {
            let is_last = (first_input..inputs).contains(input)
                && (first_output..outputs).contains(output)
                && !std::mem::replace(&mut seen.0[*input], true)
                && !std::mem::replace(&mut seen.1[*output], true);
            if !is_last {
                let what = format!("input {input} and output {output} are not among the last ones");
                return Err(Error::State(what));
            }
            let [taken, given] = [main.inputs[*input], main.outputs[*output]]
                .map(|operand| &main.operands[operand as usize]);
            let fits = taken.quantized_as() == given.quantized_as()
                && taken.dimensions == given.dimensions
                && taken.has_known_dimensions();
            if !fits {
                let what = format!(
                    "input {input} ({} {:?}) cannot take output {output} ({} {:?})",
                    taken.operand_type, taken.dimensions, given.operand_type, given.dimensions
                );
                return Err(Error::State(what));
            }
            let size = byte_size(taken, &taken.dimensions).unwrap_or(0);
            if let Some(found) = initial.as_ref().map(Vec::len).filter(|it| *it != size) {
                let what =
                    format!("input {input} takes {size} bytes, and is {found} bytes at first");
                return Err(Error::State(what));
            }
        }
        inner.inputs.truncate(first_input);
        inner.outputs.truncate(first_output);
        inner.own_outputs = inner.own_outputs.min(first_output);
        inner.states = states;
        Ok(self)
    }

    /// The same file with other shapes of its inputs, in their order; `None` leaves one as it is.
    /// Strictly, only lengths that the file leaves open may change; otherwise all may, and whether a
    /// model comes of it is seen here or when it is prepared. For an input with a length of 0 devices get one of one element
    /// that nothing reads.
    ///
    /// # Errors
    /// [`Error::Import`]: the shapes do not fit the file, or an operator. [`Error::NotAFile`]
    pub fn with_input_shapes(
        &self,
        shapes: &[Option<Vec<usize>>],
        is_strict: bool,
    ) -> Result<Self> {
        let file = self.0.file.clone().ok_or(Error::NotAFile)?;
        let (shapes, may_contradict) = (narrow_shapes(shapes)?, !is_strict);
        Self::import(file, Imported { shapes, may_contradict, ..self.0.imported.clone() })
    }

    /// The same file, of which layers of floats with 8-bit weights (dynamic-range quantization) are computed in
    /// floats, with weights that are dequantized first: nearer to the model before it was quantized, and slower.
    /// As it is loaded, their inputs are rounded to 8 bits while they run, as LiteRT does it. A session makes this
    /// of a model by itself if its device does not have the operations DYNAMIC_FULLY_CONNECTED, DYNAMIC_CONV_2D and
    /// DYNAMIC_ROUND.
    ///
    /// # Errors
    /// [`Error::NotAFile`]; [`Error::Import`]: it can no longer be read.
    pub fn with_dequantized_weights(&self) -> Result<Self> {
        let file = self.0.file.clone().ok_or(Error::NotAFile)?;
        let imported = Imported { dequantizes_weights: true, ..self.0.imported.clone() };
        let mut other = Self::import(file, imported)?;
        let (mine, inner) = (&self.0, Arc::make_mut(&mut other.0));
        inner.inputs.clone_from(&mine.inputs);
        inner.outputs.clone_from(&mine.outputs);
        inner.states.clone_from(&mine.states);
        Ok(if mine.relaxed { other.relaxed() } else { other })
    }

    /// Whether there are layers that [`Model::with_dequantized_weights`] has otherwise.
    pub(crate) fn has_dynamic_range(&self) -> bool {
        let hal = self.hal();
        let subgraphs = std::iter::once(&hal.main).chain(&hal.referenced);
        let mut operations = subgraphs.flat_map(|it| &it.operations);
        self.0.file.is_some()
            && operations.any(|it| nnhal_tflite::is_dynamic_range(it.operation_type))
    }

    /// What a run takes, in order.
    pub fn inputs(&self) -> &[TensorInfo] {
        &self.0.inputs
    }

    /// What a run gives, in order.
    pub fn outputs(&self) -> &[TensorInfo] {
        &self.0.outputs
    }

    /// How many of [`Model::outputs`] the file's subgraph has. Those behind are tensors that only signatures call outputs.
    pub fn own_outputs(&self) -> usize {
        self.0.own_outputs
    }

    /// All tensors of the file's main subgraph, by index.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.0.tensors
    }

    /// The file's signatures, as far as they are of the subgraph that this model is. The others are
    /// models of their own: [`Model::with_signature`].
    pub fn signatures(&self) -> &[Signature] {
        &self.0.signatures
    }

    /// All signatures of the file, also those of other subgraphs, with indexes of tensors.
    pub fn file_signatures(&self) -> &[nnhal_tflite::Signature] {
        &self.0.file_signatures
    }

    /// The file's subgraph that this model is.
    pub fn subgraph(&self) -> usize {
        self.0.imported.subgraph
    }

    /// The file's own description.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Names of the blocks of bytes that the file carries beside the model.
    pub fn metadata_names(&self) -> impl Iterator<Item = &str> {
        self.0.metadata.iter().map(|metadata| metadata.name.as_str())
    }

    /// A block of bytes that the file carries beside the model.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Memory`]: the file cannot be read.
    pub fn metadata(&self, name: &str) -> Result<Vec<u8>> {
        let found = self.0.metadata.iter().find(|metadata| metadata.name == name);
        let metadata = found.ok_or_else(|| Error::NotFound {
            what: "metadata",
            name: name.to_owned(),
            available: self.metadata_names().map(str::to_owned).collect(),
        })?;
        self.read_file(&metadata.stored)
    }

    /// The value of a constant tensor of the file, as it is stored; what has 2 or 4 bits is given 8.
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such tensor, or it has no stored value that is dense;
    /// [`Error::Elements`], [`Error::Memory`]: the file has not what it should.
    pub fn constant(&self, index: usize) -> Result<Tensor> {
        let info = self.0.tensors.get(index).ok_or_else(|| Error::no_constant(index))?;
        self.constant_of(info)
    }

    /// As [`Model::constant`], of a tensor of any subgraph of the file ([`ModelFile::tensors`](crate::ModelFile::tensors)).
    ///
    /// # Errors
    /// As [`Model::constant`].
    pub fn constant_of(&self, info: &TensorInfo) -> Result<Tensor> {
        let (stored, _) = self.0.file.as_ref().ok_or_else(|| Error::no_constant(info.index))?;
        match Packing::of(info.data_type).filter(|_| info.sparsity.is_none()) {
            Some(packing) => packing.constant(stored, info),
            None => read_constant(stored, info),
        }
    }

    /// The file that it was loaded from, and where it is, if it has a path.
    pub(crate) fn read_from(&self) -> Option<(Stored, Option<PathBuf>)> {
        self.0.file.clone()
    }

    /// The files that the `.tflite` file carries, in an archive behind the model.
    ///
    /// # Errors
    /// [`Error::NotAFile`]; [`Error::Memory`]: the file cannot be read.
    pub fn associated_files(&self) -> Result<Vec<AssociatedFile>> {
        let (stored, _) = self.0.file.as_ref().ok_or(Error::NotAFile)?;
        associated::files(&stored.tables)
    }

    /// The names of an output's classes that the file carries, for this number of classes: the lines of a text file
    /// among [`Model::associated_files`]. Where TensorFlow Lite's metadata says which files are of the output, it is one of these. `None`
    /// if there is none with that number of lines.
    ///
    /// # Errors
    /// As [`Model::associated_files`].
    pub fn labels(&self, output: usize, count: usize) -> Result<Option<Vec<String>>> {
        let (stored, _) = self.0.file.as_ref().ok_or(Error::NotAFile)?;
        let files = associated::files(&stored.tables)?;
        if files.is_empty() {
            return Ok(None);
        }
        let metadata = self.metadata(METADATA).unwrap_or_default();
        let of_output = label_files(&metadata, self.subgraph(), output);
        let view = stored.tables.view()?;
        for file in files {
            let Some(stored) = file.stored.filter(|it| it.end - it.start <= LABELS_LIMIT) else {
                continue;
            };
            let is_of_output = of_output.as_ref().is_none_or(|names| names.contains(&file.name));
            if !file.name.ends_with(".txt") || !is_of_output {
                continue;
            }
            let bytes = view.read_to_vec(stored.start, stored.end - stored.start)?;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
            if lines.len() == count {
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    fn read_file(&self, range: &std::ops::Range<usize>) -> Result<Vec<u8>> {
        let (stored, _) = self.0.file.as_ref().ok_or(Error::NotAFile)?;
        Ok(stored.tables.view()?.read_to_vec(range.start as u64, range.len() as u64)?)
    }

    /// Whether runs depend on those before: the model has variables, which a session keeps.
    pub fn is_stateful(&self) -> bool {
        !self.0.states.is_empty()
    }

    /// Whether lengths that the file leaves open are those of its example here, because an operator
    /// has a counterpart for known lengths only. A session prepares the model anew for other lengths. If not even the file's own
    /// operators take its example, open lengths are 8, 32, 128 or 512, the first that they take.
    pub fn has_example_shapes(&self) -> bool {
        self.0.has_example_shapes
    }

    /// The model as devices take it. Variables are inputs and outputs behind [`Model::inputs`] and
    /// [`Model::outputs`].
    pub fn hal(&self) -> &nnhal_hal::Model {
        &self.0.hal
    }

    /// Variables of the model: inputs and outputs of [`Model::hal`].
    pub fn states(&self) -> &[State] {
        &self.0.states
    }

    /// The variable tensor of the file that one of [`Model::states`] is the value of; `None` for a resource
    /// variable.
    pub fn state_tensor(&self, state: usize) -> Option<usize> {
        self.0.state_tensors.get(state).copied().flatten()
    }

    /// By operation of the main subgraph of [`Model::hal`]: the operator of the file it comes from.
    pub fn operator_origins(&self) -> &[OperatorOrigin] {
        &self.0.origins
    }

    /// The operators of the file's main subgraph.
    pub fn operators(&self) -> &[OperatorDescription] {
        &self.0.operators
    }

    /// Which operand of the main subgraph of [`Model::hal`] holds a tensor of the file; `None`: none
    /// does, as with what was computed at import.
    pub fn operand(&self, tensor: usize) -> Option<u32> {
        self.0.operands.get(tensor).copied().flatten()
    }

    /// How many subgraphs the file has.
    pub fn subgraph_count(&self) -> usize {
        self.0.subgraph_count
    }

    /// The file that it was loaded from, if it was.
    pub fn path(&self) -> Option<&Path> {
        self.0.file.as_ref().and_then(|(_, path)| path.as_deref())
    }

    /// Names the file's bytes and the shapes of its inputs among all.
    ///
    /// # Errors
    /// [`Error::NotAFile`]; [`Error::Memory`]: the file cannot be read.
    pub(crate) fn hash(&self) -> Result<[u8; 32]> {
        if let Some(hash) = self.0.hash.get() {
            return Ok(*hash);
        }
        let (stored, _) = self.0.file.as_ref().ok_or(Error::NotAFile)?;
        let mut hasher = blake3::Hasher::new();
        let mut add = |memory: &Memory| -> Result<()> {
            hasher.update(&memory.size().to_le_bytes()).update(&hash_of(memory)?);
            Ok(())
        };
        add(&stored.tables)?;
        let Imported { token, shapes, subgraph, dequantizes_weights, .. } = &self.0.imported;
        if token.is_none() {
            stored.outside.iter().try_for_each(add)?;
        }
        let how = (token, self.0.relaxed, shapes, subgraph, dequantizes_weights);
        hasher.update(format!("{how:?}").as_bytes());
        Ok(*self.0.hash.get_or_init(|| hasher.finalize().into()))
    }
}

/// The hash of the bytes of memory. Those of a long file are not read if they were before, by a program of this user.
fn hash_of(memory: &Memory) -> Result<Hash> {
    let read = || {
        let mut hasher = blake3::Hasher::new();
        for hash in hashes(memory)? {
            hasher.update(hash.as_bytes());
        }
        Ok(hasher.finalize().into())
    };
    match memory.file_part() {
        Some((file, offset)) => known_files::hash_of("portions", file, offset, memory.size(), read),
        None => read(),
    }
}

/// The hashes of the bytes of memory, of portion after portion. Threads help with long ones.
fn hashes(memory: &Memory) -> Result<Vec<blake3::Hash>> {
    /// Of memory, with a hash of its own.
    const PORTION: u64 = 1 << 20;
    /// Read at a time: allocators keep so few bytes for the next portion.
    const PIECE: usize = 1 << 16;
    let view = memory.view()?;
    let portions = usize::try_from(memory.size().div_ceil(PORTION)).unwrap_or(usize::MAX);
    side_by_side(0..portions, |_, portion| {
        let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
        let mut offset = portion as u64 * PORTION;
        let end = memory.size().min(offset + PORTION);
        while offset < end {
            let length = usize::try_from(end - offset).map_or(PIECE, |left| left.min(PIECE));
            view.read(offset, &mut piece[..length])?;
            hasher.update(&piece[..length]);
            offset += length as u64;
        }
        Ok(hasher.finalize())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_portion_of_a_file_has_its_hash() {
        const MEGABYTE: usize = 1 << 20;
        let mut bytes: Vec<u8> = (0..=250).cycle().take(5 * MEGABYTE + 77).collect();
        let of = |bytes: &[u8]| hashes(&Memory::from_bytes(bytes).unwrap()).unwrap();
        let expected: Vec<_> = bytes.chunks(MEGABYTE).map(blake3::hash).collect();
        assert_eq!(of(&bytes), expected);
        for place in [0, (1 << 16) - 1, 1 << 16, MEGABYTE - 1, MEGABYTE, 5 * MEGABYTE + 76] {
            bytes[place] ^= 1;
            let changed = of(&bytes);
            let differ: Vec<_> = (0..6).filter(|at| changed[*at] != expected[*at]).collect();
            assert_eq!(differ, [place / MEGABYTE]);
            bytes[place] ^= 1;
        }
        assert_eq!(of(b"short"), [blake3::hash(b"short")]);
    }
}
