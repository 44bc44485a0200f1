//! [`Graph`]: a graph that is described instead of read from a file, as a delegate meets it in a running
//! interpreter. It becomes what a file is ([`Stored`]), so that there is one importer.
//!
//! Tensors, operators and their options are the tables of the format's schema as plain structures. Constants may
//! stay in memory that somebody else holds: only the tables are written.
//!
//! ```
//! use nnhal_tflite::graph::{BuiltinOperator, Constant, Graph, Operator, Tensor, TensorType};
//!
//! let mut graph = Graph::new();
//! let tensor = || Tensor {
//!     shape: Some(vec![2]),
//!     type_: TensorType::Float32 as i8,
//!     has_rank: true,
//!     ..Tensor::default()
//! };
//! let (x, y) = (graph.tensor(tensor()), graph.tensor(tensor()));
//! let weights = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
//! let constant = graph.constant(tensor(), Constant::Bytes(weights));
//! let add = Operator { inputs: Some(vec![x, constant]), outputs: Some(vec![y]), ..Operator::default() };
//! graph.operator(BuiltinOperator::Add as i32, None, 1, add);
//! graph.ends(vec![x], vec![y]);
//! let import = nnhal_tflite::import_stored(&graph.store()?, &Default::default())?;
//! assert_eq!(import.outputs[0].shape, [Some(2)]);
//! # Ok::<(), nnhal_tflite::ImportError>(())
//! ```

use crate::error::ImportError;
use crate::schema::{Buffer, Model, OperatorCode, SubGraph};
use nnhal_hal::Memory;
use nnhal_hal::memory::MemoryError;
use planus::Builder;
use std::ops::Range;

/// The schema's tables, as [`Graph`] takes them.
pub use crate::schema::{
    ActivationFunctionType, AddOptions, BatchMatMulOptions, BidirectionalSequenceLstmOptions,
    BidirectionalSequenceRnnOptions, BucketizeOptions, BuiltinOperator, BuiltinOptions,
    BuiltinOptions2, CombinerType, ConcatenationOptions, Conv2DOptions, Conv3DOptions,
    CumsumOptions, DepthToSpaceOptions, DepthwiseConv2DOptions, DimensionMetadata, DimensionType,
    DivOptions, EmbeddingLookupSparseOptions, FakeQuantOptions, FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat, GatherOptions, GeluOptions, Int32Vector, L2NormOptions,
    LeakyReluOptions, LocalResponseNormalizationOptions, LshProjectionOptions, LshProjectionType,
    LstmKernelType, LstmOptions, MirrorPadMode, MirrorPadOptions, MulOptions, OneHotOptions,
    Operator, PackOptions, Padding, Pool2DOptions, QuantizationParameters, ReduceWindowFunction,
    ReduceWindowOptions, ReducerOptions, ReshapeOptions, ResizeBilinearOptions,
    ResizeNearestNeighborOptions, ReverseSequenceOptions, RnnOptions, SequenceRnnOptions,
    SoftmaxOptions, SpaceToDepthOptions, SparseIndexVector, SparsityParameters, SqueezeOptions,
    StableHloCompositeOptions, StablehloGatherOptions, StablehloPadOptions,
    StablehloReduceWindowOptions, StablehloScatterOptions, StridedSliceOptions, SubOptions,
    SvdfOptions, Tensor, TensorType, TransposeConvOptions, UnidirectionalSequenceLstmOptions,
    UnpackOptions,
};

/// Where constants outside of the tables begin: the first one here, the next twice as far, and so on. No file
/// reaches so far, and every offset in the format has 64 bits.
pub(crate) const OUTSIDE: u64 = 1 << 40;

/// A graph that is described tensor by tensor and operator by operator.
#[derive(Debug)]
pub struct Graph {
    /// The main one first.
    subgraphs: Vec<SubGraph>,
    /// Those that are being described, the innermost last.
    open: Vec<usize>,
    codes: Vec<OperatorCode>,
    buffers: Vec<Buffer>,
    outside: Vec<Memory>,
}

/// The value of a constant tensor.
#[derive(Debug)]
pub enum Constant {
    /// It becomes part of what is stored.
    Bytes(Vec<u8>),
    /// It stays where it is: all bytes of this memory, which is read when the model is prepared.
    Outside(Memory),
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// Without tensors and operators.
    pub fn new() -> Self {
        Self {
            subgraphs: vec![empty()],
            open: vec![0],
            codes: Vec::new(),
            // Buffer 0 stands for no value.
            buffers: vec![Buffer::default()],
            outside: Vec::new(),
        }
    }

    /// Adds a tensor that is given, computed, or a variable. Its index is what operators name it by.
    pub fn tensor(&mut self, tensor: Tensor) -> i32 {
        self.add(Tensor { buffer: 0, ..tensor })
    }

    fn add(&mut self, tensor: Tensor) -> i32 {
        let tensors = self.current().tensors.get_or_insert_default();
        tensors.push(tensor);
        index(tensors.len() - 1)
    }

    /// Adds a tensor with a value.
    pub fn constant(&mut self, tensor: Tensor, value: Constant) -> i32 {
        self.buffers.push(match value {
            Constant::Bytes(bytes) => Buffer { data: Some(bytes), ..Buffer::default() },
            Constant::Outside(memory) => {
                let size = memory.size();
                self.outside.push(memory);
                let offset = OUTSIDE.saturating_mul(self.outside.len() as u64);
                Buffer { offset, size, ..Buffer::default() }
            }
        });
        let buffer = u32::try_from(self.buffers.len() - 1).unwrap_or(u32::MAX);
        self.add(Tensor { buffer, ..tensor })
    }

    /// Adds an operator of this code and version, with the name of a custom one. Operators are in the order in
    /// which they run; [`Operator::opcode_index`] is filled in here.
    pub fn operator(
        &mut self,
        code: i32,
        custom: Option<String>,
        version: i32,
        operator: Operator,
    ) {
        let code = OperatorCode {
            deprecated_builtin_code: i8::try_from(code).unwrap_or(i8::MAX),
            builtin_code: code,
            custom_code: custom,
            version,
        };
        let known = self.codes.iter().position(|it| *it == code);
        let opcode_index = known.unwrap_or_else(|| {
            self.codes.push(code);
            self.codes.len() - 1
        });
        let opcode_index = u32::try_from(opcode_index).unwrap_or(u32::MAX);
        let operators = self.current().operators.get_or_insert_default();
        operators.push(Operator { opcode_index, ..operator });
    }

    /// Says which tensors are given, and which are wanted.
    pub fn ends(&mut self, inputs: Vec<i32>, outputs: Vec<i32>) {
        let subgraph = self.current();
        (subgraph.inputs, subgraph.outputs) = (Some(inputs), Some(outputs));
    }

    /// Begins a subgraph, by whose index the options of operators name it: what is added until
    /// [`Graph::end_subgraph`] is added to it.
    pub fn begin_subgraph(&mut self) -> i32 {
        self.subgraphs.push(empty());
        let added = self.subgraphs.len() - 1;
        self.open.push(added);
        index(added)
    }

    /// Ends the subgraph that was begun last. The main one is never ended.
    pub fn end_subgraph(&mut self) {
        if self.open.len() > 1 {
            self.open.pop();
        }
    }

    fn current(&mut self) -> &mut SubGraph {
        let current = self.open.last().copied().unwrap_or(0);
        &mut self.subgraphs[current]
    }

    /// Writes the tables.
    ///
    /// # Errors
    /// [`ImportError::Memory`]: there is not as much memory.
    pub fn store(self) -> Result<Stored, ImportError> {
        let model = Model {
            version: 3,
            operator_codes: Some(self.codes),
            subgraphs: Some(self.subgraphs),
            buffers: Some(self.buffers),
            ..Model::default()
        };
        let bytes = identified(Builder::new().finish(&model, None));
        Ok(Stored { tables: Memory::from_bytes(&bytes)?, outside: self.outside })
    }
}

/// What a file is: its bytes, and constants that are elsewhere.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The file, or the tables of a [`Graph`].
    pub tables: Memory,
    /// Constants of a [`Graph`] that stayed where they are, or the files beside a file that hold some of its own.
    pub outside: Vec<Memory>,
}

impl Stored {
    /// The bytes of a constant ([`TensorDescription::stored`](crate::TensorDescription::stored)), wherever they are.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&self, range: &Range<usize>) -> Result<Vec<u8>, MemoryError> {
        let (start, length) = (range.start as u64, range.len() as u64);
        if start.saturating_add(length) > self.tables.size()
            && let Some(number) = (start / OUTSIDE).checked_sub(1)
            && let Some(memory) = self.outside.get(usize::try_from(number).unwrap_or(usize::MAX))
        {
            return memory.view()?.read_to_vec(start % OUTSIDE, length);
        }
        self.tables.view()?.read_to_vec(start, length)
    }
}

impl From<Memory> for Stored {
    /// A file.
    fn from(tables: Memory) -> Self {
        Self { tables, outside: Vec::new() }
    }
}

/// A subgraph without anything.
fn empty() -> SubGraph {
    SubGraph {
        tensors: Some(Vec::new()),
        inputs: Some(Vec::new()),
        outputs: Some(Vec::new()),
        operators: Some(Vec::new()),
        name: None,
    }
}

/// Tensors beyond what an index can name are refused when the tables are read.
fn index(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The file with its identifier in front. The runtime would pad between the root's offset and the
/// identifier where something in the file is aligned to 16.
pub(crate) fn identified(bytes: &[u8]) -> Vec<u8> {
    let Some((offset, _)) = bytes.split_first_chunk() else { return Vec::new() };
    let offset = u32::from_le_bytes(*offset) + 16;
    [&offset.to_le_bytes()[..], b"TFL3", &[0; 8], bytes].concat()
}
