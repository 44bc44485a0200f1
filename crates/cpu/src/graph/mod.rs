//! [`Graph`]: a subgraph with all shapes known and constants at hand, to be rewritten.

mod build;
mod source;
mod work;

pub(crate) use build::NoGraph;
pub(crate) use source::Source;
pub(crate) use work::{Convolution, Finish, Work};

use driver::OperationPlace;
use hal::{Operand, OperandType};
use half::f16;
use std::borrow::Cow;

/// Index of a value in its graph.
pub(crate) type ValueId = usize;

/// A subgraph of which everything but the values of inputs is known.
#[derive(Debug)]
pub(crate) struct Graph<'source> {
    pub(crate) values: Vec<Value<'source>>,
    /// In an order in which they can run.
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<ValueId>,
}

/// What flows between nodes.
#[derive(Debug, Clone)]
pub(crate) struct Value<'source> {
    /// Type and quantisation. Its dimensions are not to be used: they cannot say 0.
    pub(crate) operand: Cow<'source, Operand>,
    /// The exact lengths.
    pub(crate) dimensions: Vec<u32>,
    pub(crate) origin: Origin<'source>,
    /// Which operand of the subgraph it is.
    pub(crate) index: Option<u32>,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin<'source> {
    /// From nowhere: an optional argument that is left out.
    Omitted,
    /// Known bytes, little endian and packed.
    Constant(Cow<'source, [u8]>),
    /// From the request.
    Input(usize),
    /// From a node.
    Computed,
}

/// What computes values.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The operation, or the last one of those that were fused.
    pub(crate) place: OperationPlace,
    pub(crate) work: Work,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<ValueId>,
}

impl Value<'_> {
    pub(crate) fn operand_type(&self) -> OperandType {
        self.operand.operand_type
    }

    /// Whether its numbers are floats. Those of 16 bits are kept as 32 bits while a plan runs.
    pub(crate) fn is_float(&self) -> bool {
        matches!(
            self.operand_type(),
            OperandType::TensorFloat32
                | OperandType::TensorFloat16
                | OperandType::Float32
                | OperandType::Float16
        )
    }

    pub(crate) fn is_float16(&self) -> bool {
        matches!(self.operand_type(), OperandType::TensorFloat16 | OperandType::Float16)
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.dimensions.iter().map(|length| *length as usize).product()
    }

    /// Bytes of an element while a plan runs.
    pub(crate) fn element_size(&self) -> usize {
        if self.is_float() {
            return size_of::<f32>();
        }
        self.operand_type().element_size().unwrap_or(1) as usize
    }

    /// Bytes of all elements while a plan runs.
    pub(crate) fn bytes(&self) -> usize {
        self.elements() * self.element_size()
    }

    /// The bytes of a constant, as the model has them.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        match &self.origin {
            Origin::Constant(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a constant that holds floats.
    pub(crate) fn constant_floats(&self) -> Option<Cow<'_, [f32]>> {
        let bytes = self.constant()?;
        match self.operand_type() {
            OperandType::TensorFloat16 | OperandType::Float16 => {
                let (elements, _) = bytes.as_chunks();
                Some(elements.iter().map(|element| f16::from_le_bytes(*element).to_f32()).collect())
            }
            OperandType::TensorFloat32 | OperandType::Float32 => {
                // Where they lie as floats do, there is no need for a copy.
                if cfg!(target_endian = "little")
                    && let Ok(elements) = bytemuck::try_cast_slice(bytes)
                {
                    return Some(Cow::Borrowed(elements));
                }
                let (elements, _) = bytes.as_chunks();
                Some(elements.iter().map(|element| f32::from_le_bytes(*element)).collect())
            }
            _ => None,
        }
    }
}

impl Graph<'_> {
    /// For each value how often nodes read it; what the graph gives out counts as well.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let mut reads = vec![0; self.values.len()];
        let by_nodes = self.nodes.iter().flat_map(|node| &node.inputs);
        for value in by_nodes.chain(&self.outputs) {
            reads[*value] += 1;
        }
        reads
    }
}
