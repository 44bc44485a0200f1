//! A call of every operation, drawn by chance. Laws read this list; an operation that is not here
//! does not compile.

mod elementwise;
mod movement;
pub mod recurrent;
mod reductions;
mod regions;
mod windows;

use crate::calls::dice::Dice;
use crate::calls::specimen::Specimen;
use nnhal_hal::OperationType as Op;

/// The operations that have specimens.
pub fn operations() -> impl Iterator<Item = Op> {
    let has_specimen = |operation: &Op| draw(*operation, &mut Dice::new(0)).is_some();
    Op::FUNDAMENTAL.iter().copied().filter(has_specimen)
}

/// A call that the operation's definition allows, with every type that the signature allows.
///
/// `None` for control flow, which has laws of its own, and for what only vendors define.
pub fn draw(operation: Op, dice: &mut Dice) -> Option<Specimen> {
    let specimen = match operation {
        Op::Add | Op::Sub | Op::Mul | Op::Div => elementwise::arithmetic(operation, dice),
        Op::Maximum | Op::Minimum => elementwise::maximum_minimum(operation, dice),
        Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => {
            elementwise::comparison(operation, dice)
        }
        Op::LogicalAnd | Op::LogicalOr => elementwise::logical(operation, dice),
        Op::Abs
        | Op::Cast
        | Op::Exp
        | Op::Floor
        | Op::HardSwish
        | Op::Log
        | Op::LogicalNot
        | Op::Logistic
        | Op::Neg
        | Op::Dequantize
        | Op::Quantize
        | Op::Relu
        | Op::Relu1
        | Op::Relu6
        | Op::Rsqrt
        | Op::Sin
        | Op::Sqrt
        | Op::Tanh => elementwise::unary(operation, dice),
        Op::Elu => elementwise::elu(dice),
        Op::Pow => elementwise::pow(dice),
        Op::Prelu => elementwise::prelu(dice),
        Op::Select => elementwise::select(dice),
        Op::Softmax | Op::LogSoftmax => elementwise::softmax(operation, dice),
        Op::RandomMultinomial => elementwise::random_multinomial(dice),

        Op::BatchToSpaceNd => movement::batch_to_space(dice),
        Op::ChannelShuffle => movement::channel_shuffle(dice),
        Op::Concatenation => movement::concatenation(dice),
        Op::DepthToSpace => movement::depth_to_space(dice),
        Op::EmbeddingLookup => movement::embedding_lookup(dice),
        Op::ExpandDims => movement::expand_dims(dice),
        Op::Fill => movement::fill(dice),
        Op::Gather => movement::gather(dice),
        Op::HashtableLookup => movement::hashtable_lookup(dice),
        Op::MirrorPad => movement::mirror_pad(dice),
        Op::Pack => movement::pack(dice),
        Op::Pad | Op::PadV2 => movement::pad(operation, dice),
        Op::Rank => movement::rank(dice),
        Op::Reshape => movement::reshape(dice),
        Op::Reverse => movement::reverse(dice),
        Op::Slice => movement::slice(dice),
        Op::SpaceToBatchNd => movement::space_to_batch(dice),
        Op::SpaceToDepth => movement::space_to_depth(dice),
        Op::Split => movement::split(dice),
        Op::Squeeze => movement::squeeze(dice),
        Op::StridedSlice => movement::strided_slice(dice),
        Op::Tile => movement::tile(dice),
        Op::Transpose => movement::transpose(dice),

        Op::Argmax | Op::Argmin => reductions::arg_min_max(operation, dice),
        Op::BatchMatmul => reductions::batch_matmul(dice),
        Op::FullyConnected => reductions::fully_connected(dice),
        Op::InstanceNormalization => reductions::instance_normalization(dice),
        Op::L2Normalization => reductions::l2_normalization(dice),
        Op::LocalResponseNormalization => reductions::local_response_normalization(dice),
        Op::LshProjection => reductions::lsh_projection(dice),
        Op::Mean => reductions::mean(dice),
        Op::ReduceAll
        | Op::ReduceAny
        | Op::ReduceMax
        | Op::ReduceMin
        | Op::ReduceProd
        | Op::ReduceSum => reductions::reduce(operation, dice),
        Op::TopkV2 => reductions::top_k(dice),

        Op::AveragePool2d | Op::MaxPool2d | Op::L2Pool2d => windows::pooling(operation, dice),
        Op::Conv2d => windows::conv_2d(dice),
        Op::DepthwiseConv2d => windows::depthwise_conv_2d(dice),
        Op::GroupedConv2d => windows::grouped_conv_2d(dice),
        Op::ResizeBilinear | Op::ResizeNearestNeighbor => windows::resize(operation, dice),
        Op::TransposeConv2d => windows::transpose_conv_2d(dice),

        Op::AxisAlignedBboxTransform => regions::axis_aligned_bbox_transform(dice),
        Op::BoxWithNmsLimit => regions::box_with_nms_limit(dice),
        Op::DetectionPostprocessing => regions::detection_postprocessing(dice),
        Op::GenerateProposals => regions::generate_proposals(dice),
        Op::HeatmapMaxKeypoint => regions::heatmap_max_keypoint(dice),
        Op::RoiAlign => regions::roi_align(dice),
        Op::RoiPooling => regions::roi_pooling(dice),

        Op::BidirectionalSequenceLstm
        | Op::BidirectionalSequenceRnn
        | Op::Lstm
        | Op::Quantized16bitLstm
        | Op::QuantizedLstm
        | Op::Rnn
        | Op::Svdf
        | Op::UnidirectionalSequenceLstm
        | Op::UnidirectionalSequenceRnn => return recurrent::draw(operation, dice, 3),

        Op::If | Op::While | Op::OemOperation | Op::Extension(_) => return None,
    };
    Some(specimen)
}

/// Mostly 1, so that results just fit; sometimes so small that some saturate.
fn fit(dice: &mut Dice) -> crate::calls::specimen::Quant {
    crate::calls::specimen::Quant::Fit(dice.pick(&[1.0, 1.0, 1.1, 1.7, 0.5]))
}
