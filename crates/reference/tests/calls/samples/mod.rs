//! A call of every operation, drawn by chance. Laws read this list; an operation that is not here
//! does not compile.

mod elementwise;
mod extension;
mod movement;
pub mod recurrent;
mod reductions;
mod regions;
mod windows;

use crate::calls::random::Random;
use crate::calls::sample::Sample;
use nnhal_hal::OperationType as Op;
use nnhal_ops::extension::ExtensionOperation;

/// The operations that have samples.
pub fn operations() -> impl Iterator<Item = Op> {
    let has_sample = |operation: &Op| draw(*operation, &mut Random::new(0)).is_some();
    crate::calls::all_operations().filter(has_sample)
}

/// A call that the operation's definition allows, with every type that the signature allows.
///
/// `None` for control flow, which has laws of its own, and for what only vendors define.
pub fn draw(operation: Op, random: &mut Random) -> Option<Sample> {
    let sample = match operation {
        Op::Add | Op::Sub | Op::Mul | Op::Div => elementwise::arithmetic(operation, random),
        Op::Maximum | Op::Minimum => elementwise::maximum_minimum(operation, random),
        Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => {
            elementwise::comparison(operation, random)
        }
        Op::LogicalAnd | Op::LogicalOr => elementwise::logical(operation, random),
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
        | Op::Tanh => elementwise::unary(operation, random),
        Op::Elu => elementwise::elu(random),
        Op::Pow => elementwise::pow(random),
        Op::Prelu => elementwise::prelu(random),
        Op::Select => elementwise::select(random),
        Op::Softmax | Op::LogSoftmax => elementwise::softmax(operation, random),
        Op::RandomMultinomial => elementwise::random_multinomial(random),

        Op::BatchToSpaceNd => movement::batch_to_space(random),
        Op::ChannelShuffle => movement::channel_shuffle(random),
        Op::Concatenation => movement::concatenation(random),
        Op::DepthToSpace => movement::depth_to_space(random),
        Op::EmbeddingLookup => movement::embedding_lookup(random),
        Op::ExpandDims => movement::expand_dims(random),
        Op::Fill => movement::fill(random),
        Op::Gather => movement::gather(random),
        Op::HashtableLookup => movement::hashtable_lookup(random),
        Op::MirrorPad => movement::mirror_pad(random),
        Op::Pack => movement::pack(random),
        Op::Pad | Op::PadV2 => movement::pad(operation, random),
        Op::Rank => movement::rank(random),
        Op::Reshape => movement::reshape(random),
        Op::Reverse => movement::reverse(random),
        Op::Slice => movement::slice(random),
        Op::SpaceToBatchNd => movement::space_to_batch(random),
        Op::SpaceToDepth => movement::space_to_depth(random),
        Op::Split => movement::split(random),
        Op::Squeeze => movement::squeeze(random),
        Op::StridedSlice => movement::strided_slice(random),
        Op::Tile => movement::tile(random),
        Op::Transpose => movement::transpose(random),

        Op::Argmax | Op::Argmin => reductions::arg_min_max(operation, random),
        Op::BatchMatmul => reductions::batch_matmul(random),
        Op::FullyConnected => reductions::fully_connected(random),
        Op::InstanceNormalization => reductions::instance_normalization(random),
        Op::L2Normalization => reductions::l2_normalization(random),
        Op::LocalResponseNormalization => reductions::local_response_normalization(random),
        Op::LshProjection => reductions::lsh_projection(random),
        Op::Mean => reductions::mean(random),
        Op::ReduceAll
        | Op::ReduceAny
        | Op::ReduceMax
        | Op::ReduceMin
        | Op::ReduceProd
        | Op::ReduceSum => reductions::reduce(operation, random),
        Op::TopkV2 => reductions::top_k(random),

        Op::AveragePool2d | Op::MaxPool2d | Op::L2Pool2d => windows::pooling(operation, random),
        Op::Conv2d => windows::conv_2d(random),
        Op::DepthwiseConv2d => windows::depthwise_conv_2d(random),
        Op::GroupedConv2d => windows::grouped_conv_2d(random),
        Op::ResizeBilinear | Op::ResizeNearestNeighbor => windows::resize(operation, random),
        Op::TransposeConv2d => windows::transpose_conv_2d(random),

        Op::AxisAlignedBboxTransform => regions::axis_aligned_bbox_transform(random),
        Op::BoxWithNmsLimit => regions::box_with_nms_limit(random),
        Op::DetectionPostprocessing => regions::detection_postprocessing(random),
        Op::GenerateProposals => regions::generate_proposals(random),
        Op::HeatmapMaxKeypoint => regions::heatmap_max_keypoint(random),
        Op::RoiAlign => regions::roi_align(random),
        Op::RoiPooling => regions::roi_pooling(random),

        Op::BidirectionalSequenceLstm
        | Op::BidirectionalSequenceRnn
        | Op::Lstm
        | Op::Quantized16bitLstm
        | Op::QuantizedLstm
        | Op::Rnn
        | Op::Svdf
        | Op::UnidirectionalSequenceLstm
        | Op::UnidirectionalSequenceRnn => return recurrent::draw(operation, random, 3),

        Op::Extension(_) => return extension::draw(ExtensionOperation::of(operation)?, random),

        Op::If | Op::While | Op::OemOperation => return None,
    };
    Some(sample)
}

/// Mostly 1, so that results just fit; sometimes so small that some saturate.
fn fit(random: &mut Random) -> crate::calls::sample::Quant {
    crate::calls::sample::Quant::Fit(random.pick(&[1.0, 1.0, 1.1, 1.7, 0.5]))
}
