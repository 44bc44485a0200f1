//! [`Model`]: a graph of operations as a client hands it over, unchecked.

use crate::codes::OperandLifeTime;
use crate::extension::{ExtensionNameAndPrefix, ExtensionType};
use crate::memory::Memory;
use crate::operand_type::OperandType;
use crate::operation_type::OperationType;
use std::sync::Arc;

/// Where bytes are in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataLocation {
    /// Index among the pools of the model or request.
    pub pool_index: u32,
    /// Bytes from the pool's beginning. For a `SUBGRAPH` operand: index of the subgraph.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl DataLocation {
    /// The first byte behind, computed without overflow.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.length)
    }
}

/// A scale for each index of one axis (`SymmPerChannelQuantParams`).
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelQuant {
    /// As many as the axis is long, each above 0.
    pub scales: Arc<[f32]>,
    /// The axis.
    pub channel_dim: u32,
}

/// What some operand types carry beyond scale and zero point (1.2 on).
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ExtraParams {
    /// Nothing.
    #[default]
    None,
    /// For `TENSOR_QUANT8_SYMM_PER_CHANNEL`, and for it only.
    ChannelQuant(ChannelQuant),
    /// For an extension's type: bytes that only the extension understands.
    Extension(Arc<[u8]>),
}

/// A value of a subgraph: its type, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// The element type.
    pub operand_type: OperandType,
    /// Of a tensor: the length of each axis, 0 where unknown; empty (from 1.2) if not even the
    /// rank is known. Of a scalar: empty.
    pub dimensions: Vec<u32>,
    /// How often the operand appears among the inputs of operations (contract: MODEL-24). AIDL
    /// dropped this number; the canonical model keeps it because HIDL checks it.
    pub number_of_consumers: u32,
    /// The step of a quantized type; 0 where the type has none.
    pub scale: f32,
    /// The stored value that stands for 0; 0 where the type has none.
    pub zero_point: i32,
    /// Where the value comes from.
    pub lifetime: OperandLifeTime,
    /// Of a constant or subgraph: its place. Otherwise all zero.
    pub location: DataLocation,
    /// See [`ExtraParams`].
    pub extra_params: ExtraParams,
}

impl Operand {
    /// Whether every dimension is known; a scalar's always are.
    pub fn has_known_dimensions(&self) -> bool {
        self.operand_type.is_scalar()
            || (!self.dimensions.is_empty() && self.dimensions.iter().all(|extent| *extent != 0))
    }

    /// What the stored numbers stand for, as one value that can be compared.
    pub fn quantized_as(&self) -> QuantizedAs<'_> {
        QuantizedAs {
            operand_type: self.operand_type,
            scale: self.scale,
            zero_point: self.zero_point,
            extra_params: &self.extra_params,
        }
    }
}

/// Type and quantization of an operand: equal for operands that can stand for each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantizedAs<'a> {
    /// The element type.
    pub operand_type: OperandType,
    /// See [`Operand::scale`].
    pub scale: f32,
    /// See [`Operand::zero_point`].
    pub zero_point: i32,
    /// See [`ExtraParams`].
    pub extra_params: &'a ExtraParams,
}

/// A step of a subgraph. Inputs and outputs are indexes into its operands, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub operation_type: OperationType,
    /// Its arguments.
    pub inputs: Vec<u32>,
    /// Its results.
    pub outputs: Vec<u32>,
}

/// A graph: operands, and operations in an order in which they can run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subgraph {
    /// All values.
    pub operands: Vec<Operand>,
    /// All steps, in execution order.
    pub operations: Vec<Operation>,
    /// Indexes of the operands that the caller gives, in argument order.
    pub inputs: Vec<u32>,
    /// Indexes of the operands that the caller gets, in argument order.
    pub outputs: Vec<u32>,
}

/// A model as a client hands it over. Nothing in it has been checked.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The graph that a request runs.
    pub main: Subgraph,
    /// The graphs that `SUBGRAPH` operands refer to.
    pub referenced: Vec<Subgraph>,
    /// The values of `CONSTANT_COPY` operands.
    pub operand_values: Arc<[u8]>,
    /// The memory of `CONSTANT_REFERENCE` operands.
    pub pools: Vec<Memory>,
    /// Whether float32 may be computed with the range and precision of float16 (PREP-13).
    pub relax_computation_float32_to_float16: bool,
    /// What the prefixes of extension types mean in this model.
    pub extension_name_to_prefix: Vec<ExtensionNameAndPrefix>,
}

impl Model {
    /// Number of subgraphs, the main one included.
    pub fn subgraph_count(&self) -> usize {
        1 + self.referenced.len()
    }

    /// The name of the extension that a type or operation belongs to.
    pub fn extension_name(&self, extension: ExtensionType) -> Option<&str> {
        let mut table = self.extension_name_to_prefix.iter();
        table.find(|row| row.prefix == extension.prefix()).map(|row| row.name.as_str())
    }

    /// The prefix that stands for an extension's types and operations, as its type 0.
    pub fn extension_named(&self, name: &str) -> Option<ExtensionType> {
        let mut table = self.extension_name_to_prefix.iter();
        table.find(|row| row.name == name).and_then(|row| ExtensionType::new(row.prefix, 0))
    }

    /// The main subgraph and then the referenced ones, each with a name for messages.
    pub fn subgraphs(&self) -> impl Iterator<Item = (SubgraphName, &Subgraph)> {
        std::iter::once((SubgraphName::Main, &self.main)).chain(
            self.referenced
                .iter()
                .enumerate()
                .map(|(index, subgraph)| (SubgraphName::Referenced(index), subgraph)),
        )
    }
}

/// Which subgraph of a model, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubgraphName {
    /// The main one.
    Main,
    /// The referenced one with this index.
    Referenced(usize),
}

impl SubgraphName {
    /// Its place in [`Model::subgraphs`].
    pub fn position(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Referenced(index) => index + 1,
        }
    }
}

impl std::fmt::Display for SubgraphName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Main => formatter.write_str("main subgraph"),
            Self::Referenced(index) => write!(formatter, "referenced subgraph {index}"),
        }
    }
}
