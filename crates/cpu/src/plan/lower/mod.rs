//! From nodes to steps: which kernel does what a node asks for.

mod control_flow;
mod conversion;
mod convolution;
mod detection;
mod dynamic;
mod elementwise;
mod fourier;
mod integers;
mod logic;
mod matmul;
mod movement;
mod normalization;
mod pooling;
mod quantized;
mod rearrange;
mod recurrent;
mod reduction;
mod reference;
mod resize;
mod rows;
mod softmax;

use super::{Builder, Draft};
use crate::graph::{Elements, Node, ValueId, Work, parts};
use crate::passes;
use crate::why::Why;
use nnhal_driver::{EngineError, MemoryUse};
use nnhal_kernels::elementwise::IntegerUnary;
use nnhal_kernels::{Preparation, TooLarge};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::extension::unary::Unary;

/// The value of `$work`, in which `$T` is the type of 8-bit integers, which are signed or are not.
macro_rules! of_byte {
    ($is_signed:expr, $T:ident => $work:expr) => {
        if $is_signed {
            type $T = i8;
            $work
        } else {
            type $T = u8;
            $work
        }
    };
}
use of_byte;

/// The steps of a node. The reference kernel of its operation, where there is no faster one. What passes
/// have made has one: they ask for no more than kernels do.
pub(crate) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Vec<Draft>, EngineError> {
    let one = |draft: Draft| vec![draft];
    let drafts = match &node.work {
        Work::Operation(operation) => match fast(builder, node, operation, preparation) {
            Ok(drafts) => Ok(drafts),
            // If memory is the reason, whoever denied it remembers, and the model is refused.
            Err(why) => Ok(one(reference::lower(builder, node, operation, why))),
        },
        Work::View | Work::Part(_) => Ok(Vec::new()),
        Work::Copy(copy) => Ok(one(movement::strided(builder, node, copy))),
        Work::RowUpdate => Ok(one(movement::update_row(builder, node))),
        Work::ControlFlow(index) => Ok(one(control_flow::lower(builder, node, *index))),
        Work::Convolution(it) => match it.elements {
            Elements::Floats { epilogue, .. } => {
                convolution::lower(builder, node, it, epilogue, preparation).map(one)
            }
            Elements::Bytes(bytes) => {
                quantized::lower(builder, node, it, bytes, preparation).map(one)
            }
        },
        Work::SeparableConvolution(it) => {
            convolution::separable(builder, node, it, preparation).map(one)
        }
        Work::TransposedConvolution(it) => match it.elements {
            Elements::Floats { epilogue, .. } => {
                convolution::transposed(builder, node, it, epilogue, preparation).map(one)
            }
            Elements::Bytes(bytes) => {
                quantized::transposed(builder, node, it, bytes, preparation).map(one)
            }
        },
        Work::Chain(steps) => Ok(one(elementwise::chain(builder, node, steps))),
        Work::Normalization(it) => Ok(one(normalization::lower(builder, node, *it))),
        Work::Matmul(it) => Ok(one(matmul::lower(builder, node, it))),
        Work::Softmax(it) => Ok(one(softmax::masked(builder, node, *it))),
        Work::Attention(it) => Ok(one(matmul::attention(builder, node, it))),
        Work::Table(table) => Ok(one(elementwise::table(builder, node, table))),
        Work::RequantizedMean { axes } => Ok(one(reduction::requantized_mean(builder, node, axes))),
    };
    drafts.map_err(|TooLarge { wanted, .. }| EngineError::Allocation {
        user: MemoryUse::Operation(node.place),
        wanted: wanted.map_or(u64::MAX, |wanted| wanted as u64),
    })
}

/// The steps of an operation as the model has it, or why it has no fast kernel.
fn fast(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    preparation: &mut Preparation,
) -> Result<Vec<Draft>, Why> {
    // Whatever is computed of their lengths may wrap; the reference finds that there is nothing to do.
    let mut all = node.inputs.iter().chain(&node.outputs);
    if all.any(|id| builder.graph.values[*id].is_empty_of_any_lengths()) {
        return Err(builder.graph.output(node, 0).empty());
    }
    match operation {
        AnyOperation::Concatenation(_) if is_joined(builder, node) => Ok(Vec::new()),
        AnyOperation::Split(split) => Ok(movement::split(builder, node, split)),
        _ => match recurrent::lower(builder, node, operation, preparation) {
            Some(draft) => Ok(vec![draft?]),
            None => Ok(vec![one(builder, node, operation, preparation)?]),
        },
    }
}

/// The step of an operation that is one.
fn one(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let output = &builder.graph.values[node.outputs[0]];
    let is_integer = output.integer_type().is_some();
    let is_float = node.inputs.first().is_some_and(|id| builder.graph.values[*id].is_float());
    let is_of_integers = is_integer
        || !is_float && matches!(operation, AnyOperation::Binary(_) | AnyOperation::Division(_));
    if is_of_integers && let Some(function) = integers::function(operation) {
        return integers::paired(builder, node, function);
    }
    match operation {
        AnyOperation::ArgMinMax(it) => rows::extremes(builder, node, it),
        AnyOperation::Arithmetic(it) if !is_float => elementwise::arithmetic(builder, node, it),
        AnyOperation::BatchMatmul(it) if !is_float => {
            matmul::quantized(builder, node, it, preparation)
        }
        AnyOperation::BatchSpace(it) => rearrange::batch_space(builder, node, it),
        // Integers that a type does not hold become the nearest that it does.
        AnyOperation::Cast(_) => conversion::cast(builder, node, true),
        AnyOperation::ChannelShuffle(it) => Ok(rearrange::channel_shuffle(builder, node, it)),
        AnyOperation::Choice(_) => Ok(logic::select(builder, node, false)),
        AnyOperation::Comparison(it) => logic::comparison(builder, node, *it),
        AnyOperation::Concatenation(it) => {
            movement::concatenation(builder, node, it.axis, parts(builder.graph, node))
        }
        AnyOperation::Conv3d(it) if it.transposed_to.is_none() => {
            convolution::volumes(builder, node, it, preparation)
        }
        AnyOperation::Convert(_) if fourier::is_of_complex(builder, node) => {
            Ok(fourier::part(builder, node, 0))
        }
        AnyOperation::Convert(it) => conversion::cast(builder, node, it.saturates),
        AnyOperation::CumulativeSum(it) => reduction::cumulative_sum(builder, node, it),
        AnyOperation::DepthSpace(it) => rearrange::depth_space(builder, node, it),
        AnyOperation::Dequantize(_) => conversion::dequantizing(builder, node, preparation),
        AnyOperation::DetectionPostprocessing(it) => detection::postprocessing(builder, node, it),
        AnyOperation::DynamicConv2d(it) => dynamic::convolution(builder, node, it, preparation),
        AnyOperation::DynamicFullyConnected(it) => {
            dynamic::fully_connected(builder, node, it, preparation)
        }
        AnyOperation::DynamicRound(_) => dynamic::round(builder, node, preparation),
        AnyOperation::DynamicUpdateSlice(_) => Ok(movement::update_slice(builder, node)),
        AnyOperation::Elementwise(it) if is_integer => integers::elementwise(builder, node, *it),
        AnyOperation::EmbeddingLookup(_) => Ok(rows::embedding_lookup(builder, node)),
        AnyOperation::Fill(it) => Ok(movement::fill(builder, node, it)),
        AnyOperation::Gather(it) => Ok(rows::gathering(builder, node, it)),
        AnyOperation::GatherNd(_) => rows::gathering_parts(builder, node),
        AnyOperation::HashtableLookup(_) => Ok(rows::hashtable_lookup(builder, node)),
        AnyOperation::InstanceNormalization(it) => normalization::instance(builder, node, it),
        AnyOperation::L2Normalization(it) => normalization::l2(builder, node, it),
        AnyOperation::LocalResponseNormalization(it) => {
            Ok(normalization::local_response(builder, node, it))
        }
        AnyOperation::LogSoftmax(it) => softmax::lower(builder, node, it.beta, it.axis, true),
        AnyOperation::Logical(it) => Ok(logic::logical(builder, node, *it)),
        AnyOperation::MaximumMinimum(it) if !is_float => elementwise::extreme(builder, node, *it),
        AnyOperation::MirrorPad(it) => movement::mirror_pad(builder, node, it),
        AnyOperation::OfComplex(it) => Ok(fourier::of_complex(builder, node, *it)),
        AnyOperation::Pack(it) => Ok(rearrange::pack(builder, node, it)),
        AnyOperation::Pad(it) => movement::pad(builder, node, it),
        AnyOperation::Pooling(it) => pooling::pooling(builder, node, it),
        AnyOperation::Prelu(_) if !is_float => elementwise::prelu(builder, node),
        AnyOperation::Quantize(_) => conversion::quantizing(builder, node),
        AnyOperation::Rank(_) => Ok(movement::rank(builder, node)),
        AnyOperation::Reduce(it) => match pooling::mean(builder, node, it) {
            Some(pooled) => Ok(pooled),
            None => reduction::lower(builder, node, it),
        },
        AnyOperation::RealFourier(it) => fourier::transform(builder, node, it),
        AnyOperation::Resize(it) => resize::lower(builder, node, it, preparation),
        AnyOperation::Reverse(it) => Ok(rearrange::reverse(builder, node, it)),
        AnyOperation::RoiAlign(it) => detection::roi_align(builder, node, it),
        AnyOperation::Select(_) => Ok(logic::select(builder, node, true)),
        AnyOperation::Slice(it) => Ok(movement::slice(builder, node, it)),
        AnyOperation::Softmax(it) => softmax::lower(builder, node, it.beta, it.axis, false),
        AnyOperation::StridedSlice(it) => Ok(rearrange::strided_slice(builder, node, it)),
        AnyOperation::Tile(it) => Ok(rearrange::tile(builder, node, it)),
        AnyOperation::TopKV2(it) => rows::greatest(builder, node, it),
        AnyOperation::Transpose(it) => Ok(movement::transpose(builder, node, it)),
        AnyOperation::Unary(Unary::Sign) if is_integer => {
            integers::unary(builder, node, IntegerUnary::Sign)
        }
        // What passes make of it has a kernel.
        _ => Err(passes::why_left(builder.graph, node, operation)),
    }
}

/// Whether all parts of a CONCATENATION are where it would put them.
fn is_joined(builder: &Builder<'_, '_>, node: &Node) -> bool {
    let is_there = |part: &ValueId| builder.layout.is_placed_in(*part, node.outputs[0]);
    parts(builder.graph, node).iter().all(is_there)
}
