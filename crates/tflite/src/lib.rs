//! Reads a `.tflite` file (FlatBuffers schema 3) into a [`nnhal_hal::Model`].
//!
//! ```no_run
//! let import = nnhal_tflite::import_file("digits.tflite".as_ref())?;
//! for input in &import.inputs {
//!     println!("{}: {} {:?}", input.name, input.type_name, input.shape);
//! }
//! # Ok::<(), nnhal_tflite::ImportError>(())
//! ```
//!
//! Large constants stay in the file: the model refers to it as a pool. For parsing, a private copy
//! of the rest is taken and dropped, because a file can change while it is read.
//!
//! # What becomes of the operators
//!
//! Each becomes the HAL operation of the same meaning, or several; what has no counterpart is named,
//! all of it at once ([`ImportError::Unsupported`]). Worth knowing:
//!
//! - a tensor of rank 0 becomes one of shape `[1]`, since the HAL's empty shape means unknown rank;
//! - 64-bit integers become 32-bit ones; constants that do not fit are refused;
//! - beside weights of 8 bits float activations of convolutions and matrix products are rounded to 8 bits while they
//!   run, as in TensorFlow Lite, unless [`ImportOptions::dequantizes_weights`] says otherwise; the weights of recurrent
//!   operators are dequantized first;
//! - of equal values, TOPK_V2 gives the one with the greater index first, as the HAL defines it; in
//!   TensorFlow Lite it is the other way round;
//! - the operators of a subgraph that always runs once go where the operator that runs it is: that of a
//!   STABLEHLO_COMPOSITE, and of IF and STABLEHLO_CASE where the choice is known at import. What is never chosen is not
//!   imported;
//! - state that the file keeps in variable tensors or resource variables becomes inputs and outputs ([`State`]).
//!   A recurrent operator that the HAL has for one step only is unrolled;
//! - lengths that the file leaves open stay open (0 in the HAL) where that does. Where an operator
//!   has a counterpart for known lengths only, the inputs get those of the file's example, see
//!   [`Import::has_example_shapes`]; [`ImportOptions::shapes`] chooses others;
//! - shapes follow from those of the inputs, not from what the file says of computed tensors: that
//!   holds for its example only. Integers and truth values that follow from known shapes are computed
//!   at import, as 64-bit integers, up to 65536 of a tensor;
//! - tensors of more than four axes are kept in fewer where they are only reshaped and repeated;
//! - sparse and 4-bit constants become dense bytes;
//! - TOPK_V2 of equal values, comparisons of tensors of different scales, and NaN in clamps are as
//!   the HAL defines them, not as TensorFlow Lite's kernels do them.
//!
//! What is refused is grouped by cause ([`ImportError::causes`]), and [`describe_memory`] says what is in
//! any file.
//!
//! A hostile file is an error. What is made out of a file is bounded by its size, and nothing in it
//! is followed without a check.

mod description;
mod error;
mod excerpt;
mod external;
mod file;
mod flexbuffer;
mod foreign;
pub mod graph;
mod import;
mod node_def;
mod reading;
#[allow(missing_docs)]
mod schema;
#[cfg(test)]
mod tests;

pub use description::{
    BlockQuantization, FileDescription, OperatorDescription, SparseDimension, Sparsity,
    SubgraphDescription, TensorDescription, TensorQuantization,
};
pub use error::{Cause, ImportError, UnsupportedOperator};

use excerpt::Excerpt;
use file::File;
use graph::Stored;
use nnhal_hal::memory::Protection;
use nnhal_hal::{Memory, OperationType};
use nnhal_ops::extension::ExtensionOperation;
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// A model, and what its file says about it.
#[derive(Debug)]
pub struct Import {
    /// The model.
    pub model: nnhal_hal::Model,
    /// By input of the model; those of [`Import::states`] come last.
    pub inputs: Vec<TensorDescription>,
    /// By output of the model; those of [`Import::states`] come last.
    pub outputs: Vec<TensorDescription>,
    /// How many of the outputs the file's subgraph has. Between them and those of [`Import::states`] are tensors that only
    /// signatures call outputs: results of operators before the last, inputs.
    pub own_outputs: usize,
    /// All tensors of the main subgraph, in the file's order.
    pub tensors: Vec<TensorDescription>,
    /// Blocks of bytes that the file carries beside the model, by name.
    pub metadata: Vec<Metadata>,
    /// The file's signatures.
    pub signatures: Vec<Signature>,
    /// Values that go from one execution to the next.
    pub states: Vec<State>,
    /// The operators of the main subgraph, in the file's order.
    pub operators: Vec<OperatorDescription>,
    /// By tensor of the main subgraph: the operand of the model's main subgraph that holds it, if
    /// one does.
    pub operands: Vec<Option<u32>>,
    /// How many subgraphs the file has.
    pub subgraph_count: usize,
    /// By operation of the main subgraph: where it comes from.
    pub operator_origin: Vec<OperatorOrigin>,
    /// Whether lengths that the file leaves open were fixed to those of its example, since an
    /// operator has a counterpart for known lengths only (SHAPE, for one). Where its operators do not take the example, whose
    /// open lengths are 1 mostly, it has another: the first of 8, 32, 128 and 512 for all of them that does. For other lengths
    /// the file is imported anew, with [`ImportOptions::shapes`].
    pub has_example_shapes: bool,
    /// The file's own description.
    pub description: String,
}

/// A block of bytes that the file carries beside the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// What it is called.
    pub name: String,
    /// Where it is in the file.
    pub stored: Range<usize>,
}

/// A value that goes from one execution to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The input of the model that takes it.
    pub input: usize,
    /// The output of the model that gives it.
    pub output: usize,
    /// Its bytes at first, as the model's input has them; `None` is 0, the zero point of a quantized tensor.
    pub initial: Option<Vec<u8>>,
    /// The name of a resource variable, which all signatures of a file share; `None` for a variable tensor,
    /// which belongs to an operator.
    pub name: Option<String>,
}

impl State {
    /// A value that is 0 at first.
    pub const fn new(input: usize, output: usize) -> Self {
        Self { input, output, initial: None, name: None }
    }
}

/// A named set of inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its name: `serving_default`.
    pub name: String,
    /// The subgraph it belongs to; 0 is the one that is imported as main.
    pub subgraph: usize,
    /// Names and tensor indexes.
    pub inputs: Vec<(String, usize)>,
    /// Names and tensor indexes.
    pub outputs: Vec<(String, usize)>,
}

/// The operator of the file that an operation comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorOrigin {
    /// Its index in the main subgraph; `None` for what the import itself adds.
    pub index: Option<usize>,
    /// Its name.
    pub operator: String,
}

impl fmt::Display for OperatorOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(formatter, "{} {index}", self.operator),
            None => formatter.write_str(&self.operator),
        }
    }
}

/// Imports a file. Its large constants stay in it.
///
/// # Errors
/// See [`ImportError`].
pub fn import_file(path: &Path) -> Result<Import, ImportError> {
    import_stored(&open_file(path)?, &ImportOptions::default())
}

/// Imports a file with these shapes of its inputs: what [`TensorDescription::shape`] leaves open can
/// be chosen, as long as the rank stays. `None` leaves an input as it is.
///
/// # Errors
/// See [`ImportError`].
pub fn import_file_with_shapes(
    path: &Path,
    shapes: &[Option<Vec<u32>>],
) -> Result<Import, ImportError> {
    import_stored(&open_file(path)?, &ImportOptions { shapes, ..ImportOptions::default() })
}

/// Imports a file that is in memory.
///
/// # Errors
/// See [`ImportError`].
pub fn import_bytes(bytes: &[u8]) -> Result<Import, ImportError> {
    import_memory(Memory::from_bytes(bytes)?, &ImportOptions::default())
}

/// A file, and the files beside it that hold constants of it, if it names some.
///
/// # Errors
/// One of them cannot be opened, or is empty; a constant is elsewhere than in a file beside the model's.
pub fn open_file(path: &Path) -> Result<Stored, ImportError> {
    let tables = file_memory(path)?;
    let outside = external::open(&tables, path)?;
    Ok(Stored { tables, outside })
}

/// A file as memory that [`import_memory`] takes. Where the system cannot map it safely it is read
/// by position.
///
/// # Errors
/// It cannot be opened, or is empty.
pub fn file_memory(path: &Path) -> Result<Memory, ImportError> {
    // Nothing that is no file is waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(std::io::Error::from)?;
    let file = std::fs::File::from(file);
    let description = file.metadata()?;
    if !description.is_file() {
        let what = "it is a folder, device or pipe, expected a file";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what).into());
    }
    Ok(Memory::from_file(file.into(), Protection::READ, 0, description.len())?)
}

/// What a file says, whether it can be imported or not.
///
/// # Errors
/// As [`import_memory`], but for operators that have no counterpart.
pub fn describe_memory(pool: &Memory) -> Result<FileDescription, ImportError> {
    describe_stored(&pool.clone().into())
}

/// What a file says, whether it can be imported or not.
///
/// # Errors
/// As [`describe_memory`].
pub fn describe_stored(stored: &Stored) -> Result<FileDescription, ImportError> {
    let excerpt = Excerpt::of(stored)?;
    let mut file = File::read(&excerpt)?;
    description::describe_file(&mut file)
}

/// The operators of the format that this version knows, in the schema's order.
///
/// ```
/// let conv = nnhal_tflite::builtin_operators().find(|name| *name == "CONV_2D");
/// assert!(conv.is_some());
/// ```
pub fn builtin_operators() -> impl Iterator<Item = &'static str> {
    schema::operator_names().map(|(_, name)| name)
}

/// Whether an operation is a layer of dynamic-range quantization: its inputs are rounded to 8 bits while it runs. An
/// import has none of them with [`ImportOptions::dequantizes_weights`].
pub fn is_dynamic_range(operation: OperationType) -> bool {
    matches!(
        ExtensionOperation::of(operation),
        Some(
            ExtensionOperation::DynamicConv2d
                | ExtensionOperation::DynamicFullyConnected
                | ExtensionOperation::DynamicRound
        )
    )
}

/// Which part of a file is imported, and for what inputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions<'a> {
    /// By input; `None`, or none at all, leaves an input as it is. One for which a length of 0 is chosen stays an input, of one
    /// element that nothing reads: the HAL has no inputs without elements, but operations that compute such tensors.
    pub shapes: &'a [Option<Vec<u32>>],
    /// Whether lengths that the file fixes may be others, and the rank too. What is computed has
    /// whatever shape follows; where none does, the import or the model's validation fails.
    pub may_contradict: bool,
    /// The subgraph that becomes the model: 0, unless a [`Signature`] of another one is meant.
    pub subgraph: usize,
    /// Whether layers of floats with 8-bit weights are computed in floats, with weights that are dequantized
    /// first, and not by the extension's operations DYNAMIC_FULLY_CONNECTED, DYNAMIC_CONV_2D and DYNAMIC_ROUND, which a
    /// device may not have.
    pub dequantizes_weights: bool,
}

/// Imports a file that memory holds. Its large constants stay there.
///
/// # Errors
/// See [`ImportError`].
pub fn import_memory(pool: Memory, options: &ImportOptions<'_>) -> Result<Import, ImportError> {
    import_stored(&pool.into(), options)
}

/// Imports a file that memory holds, or a graph that was described. Large constants stay where they are.
///
/// # Errors
/// See [`ImportError`].
pub fn import_stored(stored: &Stored, options: &ImportOptions<'_>) -> Result<Import, ImportError> {
    let _span = tracing::debug_span!("import", bytes = stored.tables.size()).entered();
    let excerpt = Excerpt::of(stored)?;
    let mut file = File::read(&excerpt)?;
    file.choose(options)?;
    import::import(&mut file, stored)
}
