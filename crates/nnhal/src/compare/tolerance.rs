//! [`Allowed`]: how far results of two devices that compute the same may be from each other.

use super::difference::Tolerance;
use crate::data_type::DataType;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Model, Operation, OperationType, Subgraph};
use nnhal_ops::extension::ExtensionOperation;
use std::fmt;

/// What a user says of tolerances. What is not said follows from types and depth, see [`Allowed`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Of floats, in the unit of the values.
    pub absolute: Option<f64>,
    /// Of floats, as a share of the expected value.
    pub relative: Option<f64>,
    /// The largest difference of stored integers.
    pub steps: Option<u32>,
}

/// How far a tensor may be off, and why.
///
/// Devices add in different orders and round each result, so that they differ although none is wrong.
/// How much depends on the type, and on how many operations round on the way from the inputs:
///
/// - floats: each operation adds [`ROUNDINGS`] roundings of the tensor's largest magnitude, of 2^-24 in
///   float32, of 2^-11 in float16 and of 2^-8 in bfloat16, or twice the square root of how many products it adds, if that is
///   more. Where this is not enough, because products cancel or a model
///   amplifies small differences, it is measured how much the model's weights change the tensor, if
///   each is moved by one unit in its last place: [`CHANGES`] times that is allowed, or the square root
///   of those products times, if it is more;
/// - quantized: a result may be a step off, and steps of operations on the way add up like a random
///   walk: the square root of their number;
/// - other integers and truth values: not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowed {
    /// By element.
    pub tolerance: Tolerance,
    /// What it follows from.
    pub reason: Reason,
}

/// What a tolerance follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// The user said so.
    Given,
    /// Floats, which this number of operations rounds.
    Floats {
        /// On the longest way from the inputs.
        depth: usize,
        /// How often they round, where each may do so several times.
        roundings: f64,
        /// The most products that one of them adds.
        products: usize,
        /// The coarsest of the types that they have, or may be computed as.
        precision: Precision,
        /// How much weights that are rounded otherwise change the tensor; `None` where that was not
        /// measured, or is less.
        noise: Option<f64>,
    },
    /// Quantized values, which this number of operations rounds.
    Quantized {
        /// On the longest way from the inputs.
        depth: usize,
    },
    /// Integers or truth values.
    Exact,
}

/// A type of floats, as what rounds to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 24 bits.
    Float32,
    /// 11 bits.
    Float16,
    /// 8 bits.
    Bfloat16,
}

impl Precision {
    /// The binary logarithm of half a unit in the last place of 1: the largest error of a rounding.
    fn exponent(self) -> i32 {
        match self {
            Self::Float32 => -24,
            Self::Float16 => -11,
            Self::Bfloat16 => -8,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
        }
    }
}

/// How many of those changes other orders and algorithms amount to, Winograd's transforms included.
pub const CHANGES: f64 = 8.0;

/// Roundings of the largest magnitude that each operation adds at least: sums of up to 64 products in
/// another order, and Winograd's transforms.
pub const ROUNDINGS: f64 = 16.0;

impl Allowed {
    /// For a tensor of this type and largest magnitude.
    pub(crate) fn of(limits: &Limits, kind: Kind, depth: Depth, magnitude: f64) -> Self {
        let Depth { operations, roundings, products } = depth;
        let (depth, roundings) = (operations, roundings.max(ROUNDINGS));
        let given = |absolute, relative| {
            let tolerance = Tolerance { absolute, relative };
            Self { tolerance, reason: Reason::Given }
        };
        match kind {
            Kind::Float { precision } => {
                if limits.absolute.is_some() || limits.relative.is_some() {
                    let or_none = |limit: Option<f64>| limit.unwrap_or(0.0);
                    return given(or_none(limits.absolute), or_none(limits.relative));
                }
                let absolute = 2_f64.powi(precision.exponent()) * roundings * magnitude;
                let tolerance = Tolerance { absolute, relative: 0.0 };
                let reason = Reason::Floats { depth, roundings, products, precision, noise: None };
                Self { tolerance, reason }
            }
            Kind::Integer => given(limits.steps.map_or(0.0, f64::from), 0.0).unless(limits),
            Kind::Quantized => {
                if let Some(steps) = limits.steps {
                    return given(f64::from(steps), 0.0);
                }
                let absolute = as_real(depth.max(1)).sqrt().floor();
                let tolerance = Tolerance { absolute, relative: 0.0 };
                Self { tolerance, reason: Reason::Quantized { depth } }
            }
        }
    }

    /// The same, where it was measured how much weights that are rounded otherwise change the tensor.
    pub(crate) fn with_noise(mut self, measured: f64) -> Self {
        let Reason::Floats { noise, products, .. } = &mut self.reason else { return self };
        let allowed = measured * changes(*products);
        if measured.is_finite() && allowed > self.tolerance.absolute {
            *noise = Some(measured);
            self.tolerance.absolute = allowed;
        }
        self
    }

    /// Exact, unless the user allowed steps.
    fn unless(self, limits: &Limits) -> Self {
        if limits.steps.is_some() { self } else { Self { reason: Reason::Exact, ..self } }
    }
}

/// How many times what weights change that are rounded otherwise, given the most products of an operation.
fn changes(products: usize) -> f64 {
    CHANGES.max(as_real(products).sqrt())
}

#[allow(clippy::cast_precision_loss)] // Models have fewer than 2^53 operations, and tensors elements.
fn as_real(count: usize) -> f64 {
    count as f64
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tolerance { absolute, relative } = self.tolerance;
        match self.reason {
            Reason::Given if relative == 0.0 => write!(formatter, "{absolute}, as was said"),
            Reason::Given => write!(formatter, "{absolute} + {relative} x expected, as was said"),
            Reason::Exact => formatter.write_str("nothing: integers and truth values are exact"),
            Reason::Quantized { depth } => {
                write!(formatter, "{absolute} steps: quantized, {depth} operations deep")
            }
            Reason::Floats { noise: Some(noise), depth, products, .. } => write!(
                formatter,
                "{absolute:.1e}: {:.0} times what it changes ({noise:.1e}) to move each weight by \
                 one unit in its last place, {depth} operations deep, of which one adds up to {products} \
                 products",
                changes(products)
            ),
            Reason::Floats { depth, roundings, precision, noise: None, .. } => write!(
                formatter,
                "{absolute:.1e}: {}, {depth} operations deep, {roundings:.0} roundings of 2^{} of the \
                 largest magnitude",
                precision.name(),
                precision.exponent(),
            ),
        }
    }
}

/// What of a type decides how it may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float { precision: Precision },
    Quantized,
    Integer,
}

impl Kind {
    /// Of a tensor; `has_half`: float16 is, or may be, among what it is computed of.
    pub(crate) fn of(data_type: DataType, has_half: bool, is_quantized: bool) -> Self {
        if data_type.is_float() {
            let precision = match data_type {
                DataType::Bfloat16 => Precision::Bfloat16,
                DataType::Float16 => Precision::Float16,
                _ if has_half => Precision::Float16,
                _ => Precision::Float32,
            };
            Self::Float { precision }
        } else if is_quantized {
            Self::Quantized
        } else {
            Self::Integer
        }
    }
}

/// What rounds on the longest way from the inputs to a value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Depth {
    /// How many operations.
    pub(crate) operations: usize,
    /// How often they round, for each at least [`ROUNDINGS`] times.
    pub(crate) roundings: f64,
    /// The most products that one of them adds.
    pub(crate) products: usize,
}

impl Depth {
    /// The deepest in each respect.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            operations: self.operations.max(other.operations),
            roundings: self.roundings.max(other.roundings),
            products: self.products.max(other.products),
        }
    }

    /// Behind as many operations as there are, of which each adds at most this number of products.
    pub(crate) fn of_all(operations: usize, products: usize) -> Self {
        let roundings = as_real(operations) * roundings_of(products);
        Self { operations, roundings, products }
    }
}

/// How often an operation rounds that adds this number of products.
fn roundings_of(products: usize) -> f64 {
    ROUNDINGS.max(2.0 * as_real(products).sqrt())
}

/// How many products an operation adds for each element of its result, as far as its operands say so.
fn products(graph: &Subgraph, operation: &Operation) -> usize {
    use ExtensionOperation as E;
    use OperationType as T;
    let lengths = |position: usize| -> &[u32] {
        let operand =
            operation.inputs.get(position).and_then(|it| graph.operands.get(*it as usize));
        operand.map_or(&[], |it| &it.dimensions)
    };
    let count = |lengths: &[u32]| {
        lengths.iter().fold(1_usize, |all, length| all.saturating_mul(*length as usize))
    };
    match operation.operation_type {
        T::Conv2d | T::GroupedConv2d | T::TransposeConv2d | T::FullyConnected => {
            count(lengths(1).get(1..).unwrap_or_default())
        }
        T::DepthwiseConv2d => count(lengths(1).get(1..3).unwrap_or_default()),
        // One axis of each factor; which one is an argument.
        T::BatchMatmul => {
            let axes = lengths(0).last_chunk::<2>();
            axes.map_or(1, |[a, b]| if lengths(1).contains(b) { *b } else { *a }) as usize
        }
        T::ReduceSum | T::Mean => {
            let result = operation.outputs.first().and_then(|it| graph.operands.get(*it as usize));
            let result = result.map_or(1, |it| count(&it.dimensions));
            count(lengths(0)) / result.max(1)
        }
        other
            if other == E::DynamicFullyConnected.operation_type()
                || other == E::DynamicConv2d.operation_type() =>
        {
            count(lengths(1).get(1..).unwrap_or_default())
        }
        _ => 1,
    }
}

/// By operand of the main subgraph.
pub(crate) fn depths(model: &Model) -> Vec<Depth> {
    let mut depths = vec![Depth::default(); model.main.operands.len()];
    for operation in &model.main.operations {
        let before = operation.inputs.iter().map(|input| depths[*input as usize]);
        let before = before.fold(Depth::default(), Depth::max);
        let times = roundings(model, &model.main, operation, 0);
        let products = products(&model.main, operation);
        let depth = Depth {
            operations: before.operations.saturating_add(times),
            roundings: before.roundings + as_real(times) * roundings_of(products),
            products: before.products.max(products),
        };
        for output in &operation.outputs {
            depths[*output as usize] = depth;
        }
    }
    depths
}

/// Most levels of control flow that are looked into.
const MOST_NESTED: usize = 16;

/// How often an operation rounds, one after the other.
fn roundings(model: &Model, graph: &Subgraph, operation: &Operation, level: usize) -> usize {
    use OperationType as T;
    let steps = || {
        let dimensions =
            operation.inputs.first().map(|input| &graph.operands[*input as usize].dimensions);
        // Time is the first or the second axis.
        dimensions.and_then(|it| it.iter().take(2).max().copied()).unwrap_or(1).max(1) as usize
    };
    match operation.operation_type {
        T::Reshape | T::Transpose | T::Concatenation | T::Split | T::Slice | T::StridedSlice => 0,
        T::Pad | T::PadV2 | T::MirrorPad | T::Squeeze | T::ExpandDims | T::Gather | T::Pack => 0,
        T::DepthToSpace | T::SpaceToDepth | T::BatchToSpaceNd | T::SpaceToBatchNd => 0,
        T::MaxPool2d | T::Relu | T::Relu1 | T::Relu6 | T::Maximum | T::Minimum | T::Select => 0,
        T::Tile | T::Reverse | T::ChannelShuffle | T::Abs | T::Neg | T::Fill | T::Rank => 0,
        T::ReduceMax | T::ReduceMin | T::ResizeNearestNeighbor | T::Dequantize | T::Cast => 0,
        T::UnidirectionalSequenceLstm | T::BidirectionalSequenceLstm => steps(),
        T::UnidirectionalSequenceRnn | T::BidirectionalSequenceRnn => steps(),
        // As if each operation within followed the other, in one round.
        T::If | T::While if level < MOST_NESTED => {
            let within = operation.inputs.iter().filter_map(|input| {
                let operand = &graph.operands[*input as usize];
                let is_subgraph = operand.lifetime == nnhal_hal::OperandLifeTime::Subgraph;
                is_subgraph.then(|| model.referenced.get(operand.location.offset as usize))?
            });
            within
                .flat_map(|graph| graph.operations.iter().map(move |it| (graph, it)))
                .map(|(graph, operation)| roundings(model, graph, operation, level + 1))
                .fold(0, usize::saturating_add)
        }
        _ => 1,
    }
}

/// Whether float16 is, or may be, among what a model computes with.
pub(crate) fn has_half(model: &Model) -> bool {
    let is_half = |it: &nnhal_hal::Operand| {
        it.operand_type == nnhal_hal::OperandType::TensorFloat16 && !it.lifetime.is_constant()
    };
    model.relax_computation_float32_to_float16
        || model.subgraphs().any(|(_, graph): (SubgraphName, _)| graph.operands.iter().any(is_half))
}
