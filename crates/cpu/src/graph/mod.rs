//! [`Graph`]: a subgraph with all shapes known and constants at hand, to be rewritten.

mod argument;
mod build;
mod constant;
mod dump;
mod image_shape;
mod row_update;
mod source;
mod weights;
mod work;

pub(crate) use argument::Argument;
pub(crate) use build::{NoGraph, StaticSubgraph, last_reads};
pub(crate) use constant::{Constant, ConstantOrigin};
pub(crate) use image_shape::elements_before;
pub(crate) use source::{SavedConstant, Source, Sources};
pub(crate) use weights::{Scratch, Weights};
pub(crate) use work::{
    Attention, Bytes, Convolution, Copy, Elements, Epilogue, MaskedSoftmax, Matmul, Normalization,
    SeparableConvolution, TransposedConvolution, Work,
};

use nnhal_driver::{Charge, OperationPlace};
use nnhal_hal::{FusedActivation, Operand, OperandType, Operation, OperationType, Subgraph};
use nnhal_kernels::quantization::{Activations, Quantization, Signedness};
use nnhal_kernels::{ElementType, Preparation, TooLarge};
use nnhal_ops::extension::{
    ExtensionOperation, TENSOR_FLOAT64, TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32, TENSOR_UINT64,
    element_size,
};
use nnhal_ops::rules::activation_range;
use nnhal_ops::{ArgumentSource, Call};
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
    /// What [`Work::ControlFlow`] refers to.
    pub(crate) control_flow: Vec<ControlFlow<'source>>,
    /// Counts constants that are neither the model's nor a plan's.
    pub(crate) held: Charge,
}

/// The subgraphs that an IF or a WHILE refers to.
#[derive(Debug)]
pub(crate) struct ControlFlow<'source> {
    pub(crate) kind: ControlFlowKind,
    pub(crate) graphs: Vec<Graph<'source>>,
    /// Of a WHILE whose rounds are known. Its condition is empty.
    pub(crate) counted: Option<Counted>,
}

/// How a WHILE counts its rounds.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) rounds: u64,
    /// The variables that follow from how many rounds there were. The body gives out what it is given of them.
    pub(crate) counters: Vec<Counter>,
}

/// A variable of a WHILE to which each round adds a constant: a tensor of one INT32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) variable: usize,
    /// The body's value of it.
    pub(crate) id: ValueId,
    pub(crate) first: i64,
    pub(crate) step: i64,
}

impl Counter {
    /// Its value after a number of rounds, far fewer than 2^31; it has 32 bits while it is used.
    pub(crate) fn value(&self, rounds: u64) -> i64 {
        self.first + self.step * rounds.cast_signed()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlFlowKind {
    /// An IF whose results have the same lengths whatever its condition is: the branch for true and the one for false, or one
    /// that runs in either case. The arguments are the inputs of each.
    If,
    /// A WHILE whose variables keep their lengths: condition and body. Each variable is an input of both; the outputs of the body
    /// are the first variables of the next round, the others never change.
    While,
}

impl ControlFlowKind {
    /// What an operation is, if it refers to subgraphs.
    pub(crate) fn of(operation_type: OperationType) -> Option<Self> {
        match operation_type {
            OperationType::If => Some(Self::If),
            OperationType::While => Some(Self::While),
            _ => None,
        }
    }

    /// The first of the two inputs of an operation that refer to subgraphs. What is behind them are arguments.
    pub(crate) fn first_reference(self) -> usize {
        match self {
            Self::If => 1,
            Self::While => 0,
        }
    }
}

/// What flows between nodes.
#[derive(Debug)]
pub(crate) struct Value<'source> {
    /// Type and quantization. Its dimensions are not to be used: they cannot say 0.
    pub(crate) operand: Cow<'source, Operand>,
    /// The exact lengths.
    pub(crate) dimensions: Vec<u32>,
    pub(crate) origin: Origin<'source>,
    /// Whether it was made of floats of 16 bits, which hold it as well.
    pub(crate) is_widened: bool,
    /// Which operand of the subgraph it is.
    pub(crate) index: Option<u32>,
}

/// Where a value comes from.
#[derive(Debug)]
pub(crate) enum Origin<'source> {
    /// From nowhere: an optional argument that is left out.
    Omitted,
    /// From the model, or computed of what is.
    Constant(Constant<'source>),
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

    /// Whether floats of 16 bits hold it, all bits of it.
    pub(crate) fn fits_float16(&self) -> bool {
        self.is_float16() || self.is_widened
    }

    /// What elements are, quantized ones as they are stored; `None` of complex numbers.
    pub(crate) fn element_type(&self) -> Option<ElementType> {
        match self.operand_type() {
            _ if self.is_float() => Some(ElementType::F32),
            TENSOR_FLOAT64 => Some(ElementType::F64),
            OperandType::TensorQuant8AsymmSigned | OperandType::TensorQuant8Symm => {
                Some(ElementType::I8)
            }
            OperandType::TensorQuant16Symm => Some(ElementType::I16),
            OperandType::TensorInt32 => Some(ElementType::I32),
            TENSOR_INT64 => Some(ElementType::I64),
            OperandType::TensorQuant8Asymm => Some(ElementType::U8),
            OperandType::TensorQuant16Asymm | TENSOR_UINT16 => Some(ElementType::U16),
            TENSOR_UINT32 => Some(ElementType::U32),
            TENSOR_UINT64 => Some(ElementType::U64),
            OperandType::TensorBool8 => Some(ElementType::Bool),
            _ => None,
        }
    }

    /// The type of integers that stand for themselves; `None` of others.
    pub(crate) fn integer_type(&self) -> Option<ElementType> {
        let elements = self.element_type().filter(|it| it.is_integer());
        elements.filter(|_| !self.is_quantized())
    }

    /// Whether integers stand for real numbers.
    pub(crate) fn is_quantized(&self) -> bool {
        self.operand_type().quantized_range().is_some()
    }

    /// Whether numbers of 8 bits with a zero point are signed; `None` of other types.
    pub(crate) fn is_signed(&self) -> Option<bool> {
        match self.operand_type() {
            OperandType::TensorQuant8Asymm => Some(false),
            OperandType::TensorQuant8AsymmSigned => Some(true),
            _ => None,
        }
    }

    /// How numbers of 8 bits are read by products; `None` if they have not 8 bits.
    pub(crate) fn activations(&self) -> Option<Activations> {
        let signedness = match self.operand_type() {
            OperandType::TensorQuant8Asymm => Signedness::Unsigned,
            OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant8Symm
            | OperandType::TensorQuant8SymmPerChannel => Signedness::Signed,
            _ => return None,
        };
        Some(Activations { signedness, zero_point: self.operand.zero_point })
    }

    /// Whether it is a truth value that IF and WHILE take (contract: CF-1, CF-2).
    fn is_decision(&self) -> bool {
        let is_there = !matches!(self.origin, Origin::Omitted);
        is_there && self.elements() == 1 && self.operand_type() == OperandType::TensorBool8
    }

    /// How a value is stored.
    pub(crate) fn quantization(&self) -> Quantization {
        Quantization { scale: self.operand.scale, zero_point: self.operand.zero_point }
    }

    /// The stored numbers that an activation clamps a quantized output to; `None` of other types.
    pub(crate) fn stored_range(&self, activation: FusedActivation) -> Option<(i32, i32)> {
        let source = ArgumentSource {
            operand: &self.operand,
            shape: nnhal_ops::Shape::UNKNOWN,
            value: nnhal_ops::Value::NotKnown,
        };
        // The type of operation does not matter.
        let call = Call::new(OperationType::Conv2d, [], [source]);
        self.operand_type().quantized_range()?;
        Some(activation_range::stored(activation, call.output(0)))
    }

    /// The lengths.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.dimensions.iter().map(|length| *length as usize).collect()
    }

    /// Elements before an axis, along it, and behind it. An axis that there is not has a length of 1.
    pub(crate) fn around(&self, axis: usize) -> [usize; 3] {
        let lengths = self.lengths();
        let (before, rest) = lengths.split_at(axis.min(lengths.len()));
        let (along, behind) = rest.split_first().unwrap_or((&1, &[]));
        [before.iter().product(), *along, behind.iter().product()]
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.checked_elements().unwrap_or(usize::MAX)
    }

    /// The same; `None` if no address space has room for that many.
    fn checked_elements(&self) -> Option<usize> {
        if self.dimensions.contains(&0) {
            return Some(0);
        }
        let mut lengths = self.dimensions.iter().map(|length| *length as usize);
        lengths.try_fold(1, usize::checked_mul)
    }

    /// Whether it has no elements because a length is 0, and the others have a product that no tensor's elements have.
    pub(crate) fn is_empty_of_any_lengths(&self) -> bool {
        let mut others = self.dimensions.iter().copied().filter(|length| *length != 0);
        self.dimensions.contains(&0) && others.try_fold(1, u32::checked_mul).is_none()
    }

    /// Bytes of an element while a plan runs: 1, 2, 4 or 8.
    pub(crate) fn element_size(&self) -> usize {
        if self.is_float() {
            return size_of::<f32>();
        }
        element_size(self.operand_type()).unwrap_or(1) as usize
    }

    /// Bytes of all elements while a plan runs. Of values that have places in an arena.
    pub(crate) fn bytes(&self) -> usize {
        self.elements() * self.element_size()
    }

    /// The same; `None` if no address space has room for that many.
    pub(crate) fn checked_bytes(&self) -> Option<usize> {
        self.checked_elements()?.checked_mul(self.element_size())
    }

    /// The constant that it is.
    pub(crate) fn as_constant(&self) -> Option<&Constant<'_>> {
        match &self.origin {
            Origin::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    pub(crate) fn is_constant(&self) -> bool {
        self.as_constant().is_some()
    }

    /// What is wrong where the bytes of a constant are not there.
    pub(crate) fn unreadable(&self) -> TooLarge {
        let wanted = self.as_constant().map(Constant::length);
        TooLarge { what: "a constant", wanted, left: None }
    }

    /// The bytes of a constant, as the model has them.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        self.as_constant().and_then(Constant::bytes)
    }

    /// The elements of a constant that holds floats.
    pub(crate) fn constant_floats(&self) -> Option<Cow<'_, [f32]>> {
        let bytes = self.constant()?;
        if self.is_float16() {
            return Some(Cow::Owned(constant::widened(bytes)));
        }
        self.is_float().then(|| constant::floats(Cow::Borrowed(bytes)))
    }

    /// A constant that is one float.
    pub(crate) fn constant_float(&self) -> Option<f32> {
        // Others are not to be read for that.
        if self.elements() != 1 {
            return None;
        }
        self.constant_floats()?.first().copied()
    }

    /// The bytes of a constant, to be packed; none of one that has been packed before.
    pub(crate) fn weights<'a>(
        &'a self,
        preparation: &Preparation,
        scratch: &'a Scratch,
    ) -> Result<Weights<'a, u8>, TooLarge> {
        let weights = match self.as_constant() {
            Some(_) if preparation.is_restoring() => Some(Weights::NONE),
            constant => constant.and_then(|it| Weights::bytes(it, scratch)),
        };
        weights.ok_or_else(|| self.unreadable())
    }

    /// The floats of a constant, to be packed; none of one that has been packed before.
    pub(crate) fn weight_floats<'a>(
        &'a self,
        preparation: &Preparation,
        scratch: &'a Scratch,
    ) -> Result<Weights<'a, f32>, TooLarge> {
        let weights = match self.as_constant().filter(|_| self.is_float()) {
            Some(_) if preparation.is_restoring() => Some(Weights::NONE),
            constant => constant.and_then(|it| Weights::floats(it, self.is_float16(), scratch)),
        };
        weights.ok_or_else(|| self.unreadable())
    }
}

/// Whether an operation is of this type, or the extension's form of it.
fn is(operation: &Operation, operation_type: OperationType) -> bool {
    let extending = || ExtensionOperation::of(operation.operation_type)?.like();
    operation.operation_type == operation_type || extending() == Some(operation_type)
}

/// Whether an operation of a subgraph is a CAST of a value to its own type: what has to be the result of an operation is one, if it
/// is nothing else.
fn is_copy(subgraph: &Subgraph, operation: &Operation) -> bool {
    let operand_type = |operand: &u32| subgraph.operands[*operand as usize].operand_type;
    let types =
        [operation.inputs.first(), operation.outputs.first()].map(|it| it.map(operand_type));
    is(operation, OperationType::Cast) && types[0] == types[1]
}

/// The values that a CONCATENATION joins; its last input is the axis.
pub(crate) fn parts<'node>(graph: &Graph<'_>, node: &'node Node) -> &'node [ValueId] {
    let is_axis = |id: &ValueId| graph.values[*id].operand_type().is_scalar();
    let count = node.inputs.iter().position(is_axis).unwrap_or(node.inputs.len());
    &node.inputs[..count]
}

/// By value, the node that computes it.
pub(crate) fn producers(graph: &Graph<'_>) -> Vec<Option<usize>> {
    let mut producers = vec![None; graph.values.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for output in &node.outputs {
            producers[*output] = Some(index);
        }
    }
    producers
}

impl Graph<'_> {
    /// Bytes of the largest constant that has to be read before it is there.
    pub(crate) fn largest_unread_constant(&self) -> usize {
        let constants = self.values.iter().filter_map(Value::as_constant);
        let unread = constants.filter(|constant| constant.at_hand().is_none());
        unread.map(Constant::length).max().unwrap_or_default()
    }

    /// Bytes of its constants, and with `all` of those of the graphs that its control flow refers to.
    pub(crate) fn constant_bytes(&self, all: bool) -> usize {
        let constants = self.values.iter().filter_map(Value::as_constant);
        let own: usize = constants.map(Constant::length).sum();
        let inner = self.control_flow.iter().filter(|_| all).flat_map(|it| &it.graphs);
        inner.fold(own, |sum, graph| sum.saturating_add(graph.constant_bytes(true)))
    }

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
