//! From nodes to steps: which kernel does what a node asks for.

mod conversion;
mod convolution;
mod detection;
mod dynamic;
mod elementwise;
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

use super::layout::parts;
use super::{Builder, Draft};
use crate::graph::{Node, Value, ValueId, Work};
use nnhal_driver::EngineError;
use nnhal_hal::{FusedActivation, OperationType};
use nnhal_kernels::Preparation;
use nnhal_ops::rules::activation_range;
use nnhal_ops::{AnyOperation, ArgumentSource, Call};

/// The steps of a node. The reference kernel of its operation, where there is no faster one.
pub(crate) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Vec<Draft>, EngineError> {
    let is_float = builder.graph.values[node.outputs[0]].is_float();
    let fast = match &node.work {
        Work::View => return Ok(Vec::new()),
        Work::Operation(AnyOperation::Concatenation(_)) if is_joined(builder, node) => {
            return Ok(Vec::new());
        }
        Work::Convolution(convolution) if is_float => {
            convolution::lower(builder, node, convolution, preparation)
        }
        Work::Convolution(convolution) => quantized::lower(builder, node, convolution, preparation),
        Work::TransposedConvolution(convolution) if is_float => {
            convolution::transposed(builder, node, convolution, preparation)
        }
        Work::TransposedConvolution(convolution) => {
            quantized::transposed(builder, node, convolution, preparation)
        }
        Work::Chain(steps) => elementwise::chain(builder, node, steps),
        Work::Normalization(it) => normalization::lower(builder, node, *it),
        Work::Matmul(matmul) => matmul::lower(builder, node, matmul),
        Work::Softmax(softmax) => softmax::masked(builder, node, *softmax),
        Work::Table(table) => elementwise::table(builder, node, table),
        Work::RequantizedMean(axes) => reduction::requantized_mean(builder, node, axes),
        Work::Operation(AnyOperation::Arithmetic(arithmetic)) => {
            let integers = integers::arithmetic(builder, node, arithmetic);
            integers.or_else(|| elementwise::arithmetic(builder, node, arithmetic))
        }
        Work::Operation(AnyOperation::Split(split)) => {
            if let Some(drafts) = movement::split(builder, node, split) {
                return Ok(drafts);
            }
            None
        }
        Work::Operation(AnyOperation::Concatenation(joint)) => {
            movement::concatenation(builder, node, joint.axis, parts(builder.graph, node))
        }
        Work::Operation(AnyOperation::Transpose(transpose)) => {
            movement::transpose(builder, node, transpose)
        }
        Work::Operation(AnyOperation::Pad(pad)) => movement::pad(builder, node, pad),
        Work::Operation(AnyOperation::Softmax(it)) => {
            softmax::lower(builder, node, it.beta, it.axis, false)
        }
        Work::Operation(AnyOperation::LogSoftmax(it)) => {
            softmax::lower(builder, node, it.beta, it.axis, true)
        }
        Work::Operation(AnyOperation::Quantize(_)) => conversion::quantizing(builder, node),
        Work::Operation(AnyOperation::Dequantize(_)) => {
            conversion::dequantizing(builder, node, preparation)
        }
        Work::Operation(AnyOperation::Pooling(pooling)) => pooling::pooling(builder, node, pooling),
        Work::Operation(AnyOperation::Reduce(reduce)) => {
            let pooled = pooling::mean(builder, node, reduce);
            pooled.or_else(|| reduction::lower(builder, node, reduce))
        }
        Work::Operation(AnyOperation::Resize(it)) => resize::lower(builder, node, it, preparation),
        Work::Operation(AnyOperation::Slice(it)) => movement::slice(builder, node, it),
        Work::Operation(operation) => recurrent::lower(builder, node, operation, preparation)
            .or_else(|| other(builder, node, operation, preparation)),
    };
    match fast {
        Some(draft) => Ok(vec![draft]),
        None => Ok(vec![reference::lower(builder, node)?]),
    }
}

/// What is most often a small part of a model.
fn other(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    preparation: &mut Preparation,
) -> Option<Draft> {
    match operation {
        AnyOperation::DynamicFullyConnected(it) => {
            dynamic::fully_connected(builder, node, it, preparation)
        }
        AnyOperation::BatchMatmul(it) => matmul::quantized(builder, node, it, preparation),
        AnyOperation::StridedSlice(it) => rearrange::strided_slice(builder, node, it),
        AnyOperation::Tile(it) => rearrange::tile(builder, node, it),
        AnyOperation::Reverse(it) => rearrange::reverse(builder, node, it),
        AnyOperation::ChannelShuffle(it) => rearrange::channel_shuffle(builder, node, it),
        AnyOperation::Pack(it) => rearrange::pack(builder, node, it),
        AnyOperation::DepthSpace(it) => rearrange::depth_space(builder, node, it),
        AnyOperation::BatchSpace(it) => rearrange::batch_space(builder, node, it),
        AnyOperation::Gather(it) => rows::gathering(builder, node, it),
        AnyOperation::EmbeddingLookup(_) => rows::embedding_lookup(builder, node),
        AnyOperation::ArgMinMax(it) => rows::extremes(builder, node, it),
        AnyOperation::TopKV2(it) => rows::greatest(builder, node, it),
        AnyOperation::MaximumMinimum(it) => {
            let integers = integers::extreme(builder, node, *it);
            integers.or_else(|| elementwise::extreme(builder, node, *it))
        }
        AnyOperation::Prelu(_) => elementwise::prelu(builder, node),
        AnyOperation::Elementwise(it) => integers::elementwise(builder, node, *it),
        AnyOperation::MirrorPad(it) => movement::mirror_pad(builder, node, it),
        AnyOperation::Fill(it) => movement::fill(builder, node, it),
        AnyOperation::Rank(_) => movement::rank(builder, node),
        AnyOperation::HashtableLookup(_) => rows::hashtable_lookup(builder, node),
        AnyOperation::DetectionPostprocessing(it) => detection::postprocessing(builder, node, it),
        AnyOperation::RoiAlign(it) => detection::roi_align(builder, node, it),
        AnyOperation::Comparison(it) => logic::comparison(builder, node, *it),
        AnyOperation::Logical(it) => logic::logical(builder, node, *it),
        AnyOperation::Select(_) => logic::select(builder, node),
        AnyOperation::Cast(_) => logic::cast(builder, node),
        AnyOperation::L2Normalization(it) => normalization::l2(builder, node, it),
        AnyOperation::InstanceNormalization(it) => normalization::instance(builder, node, it),
        AnyOperation::LocalResponseNormalization(it) => {
            normalization::local_response(builder, node, it)
        }
        _ => None,
    }
}
/// Whether all parts of a CONCATENATION are where it would put them.
fn is_joined(builder: &Builder<'_, '_>, node: &Node) -> bool {
    let is_there = |part: &ValueId| builder.layout.is_placed_in(*part, node.outputs[0]);
    parts(builder.graph, node).iter().all(is_there)
}

/// The stored numbers that an activation clamps a quantized output to.
fn stored_range(output: &Value<'_>, activation: FusedActivation) -> Option<(i32, i32)> {
    let source = ArgumentSource {
        operand: &output.operand,
        shape: nnhal_ops::Shape::UNKNOWN,
        value: nnhal_ops::Value::NotKnown,
    };
    // The type of operation does not matter.
    let call = Call::new(OperationType::Conv2d, [], [source]);
    output.operand_type().quantized_range()?;
    Some(activation_range::stored(activation, call.output(0)))
}
