//! Options of operators, as LiteRT tells them, as the tables of the file's schema.
//!
//! LiteRT tells those of most operators, each by a function of its own. Of some it tells none: they are judged with those that
//! the schema has where nothing is said, and again when LiteRT has written the partition.

use crate::context::{Answer, Context, Object, place};
use nnhal::graph::{
    ActivationFunctionType, AddOptions, BatchMatMulOptions, BuiltinOperator as B,
    BuiltinOptions as O, ConcatenationOptions, Conv2DOptions, Conv3DOptions, CumsumOptions,
    DepthToSpaceOptions, DepthwiseConv2DOptions, DivOptions, FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat, GatherOptions, GeluOptions, LeakyReluOptions,
    MirrorPadMode, MirrorPadOptions, MulOptions, OneHotOptions, PackOptions, Padding,
    Pool2DOptions, ReducerOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions,
    SoftmaxOptions, SpaceToDepthOptions, SqueezeOptions, StridedSliceOptions, SubOptions,
    TensorType, TransposeConvOptions, UnpackOptions,
};
use nnhal_litert_common::compiled::Outcome;

/// Options of an operator.
#[derive(Debug, Clone)]
pub(crate) enum Options {
    /// It has none, or those of the schema.
    None,
    /// A table of the schema.
    Table(O),
    /// A custom operator's name, and its options.
    Custom(String, Vec<u8>),
    /// They matter, and LiteRT does not tell them.
    NotShown,
}

/// An operator's answers.
struct Asked<'c> {
    context: &'c Context,
    operator: Object,
}

impl Asked<'_> {
    /// `None`: the operator has no options in the file, or LiteRT's function fails.
    fn get<T: Answer>(&self, place: usize) -> Option<T> {
        self.context.get(place, self.operator).ok()
    }

    fn integer(&self, place: usize) -> Option<i32> {
        self.get(place)
    }

    /// A `bool` of C.
    fn flag(&self, place: usize) -> Option<bool> {
        Some(self.get::<u8>(place)? != 0)
    }

    fn padding(&self, place: usize) -> Option<Padding> {
        i8::try_from(self.get::<u32>(place)?).ok()?.try_into().ok()
    }

    fn activation(&self, place: usize) -> Option<ActivationFunctionType> {
        i8::try_from(self.get::<u32>(place)?).ok()?.try_into().ok()
    }
}

/// The options of an operator with this number of inputs; `keeps_rank`: its first output has the rank of its first
/// input.
pub(crate) fn options(
    context: &Context,
    operator: Object,
    code: i32,
    inputs: usize,
    keeps_rank: bool,
) -> Outcome<Options> {
    let Ok(known) = B::try_from(code) else { return Ok(Options::NotShown) };
    if known == B::Custom {
        let name = context.text(place::CUSTOM_CODE, operator)?;
        return Ok(Options::Custom(name, context.custom_options(operator)?));
    }
    let asked = Asked { context, operator };
    Ok(match known {
        // Their lengths are among the options, or the second input.
        B::Reshape if inputs < 2 => Options::NotShown,
        // Which dimensions are reversed; how far; and what is looked up.
        B::ReverseSequence
        | B::Bucketize
        | B::EmbeddingLookupSparse
        | B::SkipGram
        | B::FakeQuant
        | B::ReduceWindow
        | B::Conv3dTranspose => Options::NotShown,
        B::ReduceProd => Options::Table(reducer(keeps_rank)),
        B::L2Normalization => Options::None,
        _ if has_getters(known) => match table(known, &asked) {
            Some(table) => Options::Table(table),
            None => Options::NotShown,
        },
        // Stable HLO's have options in other tables.
        _ if format!("{known:?}").starts_with("Stablehlo") => Options::NotShown,
        _ => Options::None,
    })
}

fn reducer(keep_dims: bool) -> O {
    O::ReducerOptions(Box::new(ReducerOptions { keep_dims }))
}

fn has_getters(operator: B) -> bool {
    matches!(
        operator,
        B::StridedSlice
            | B::Sub
            | B::Sum
            | B::Conv2d
            | B::DepthwiseConv2d
            | B::TransposeConv
            | B::Add
            | B::Mul
            | B::Div
            | B::FullyConnected
            | B::Softmax
            | B::Concatenation
            | B::Mean
            | B::ReduceMax
            | B::ReduceMin
            | B::ReduceAny
            | B::ReduceAll
            | B::ResizeBilinear
            | B::ResizeNearestNeighbor
            | B::BatchMatmul
            | B::AveragePool2d
            | B::MaxPool2d
            | B::L2Pool2d
            | B::LeakyRelu
            | B::Pack
            | B::OneHot
            | B::Unpack
            | B::Gather
            | B::Conv3d
            | B::DepthToSpace
            | B::SpaceToDepth
            | B::Cumsum
            | B::Gelu
            | B::MirrorPad
            | B::Squeeze
    )
}

#[allow(clippy::too_many_lines)] // A table: an operator some lines.
fn table(operator: B, p: &Asked<'_>) -> Option<O> {
    let pool = |at: usize| {
        Some(O::Pool2DOptions(Box::new(Pool2DOptions {
            padding: p.padding(at)?,
            stride_w: p.integer(at + 8)?,
            stride_h: p.integer(at + 16)?,
            filter_width: p.integer(at + 24)?,
            filter_height: p.integer(at + 32)?,
            fused_activation_function: p.activation(at + 40)?,
        })))
    };
    Some(match operator {
        B::StridedSlice => O::StridedSliceOptions(Box::new(StridedSliceOptions {
            begin_mask: p.integer(304)?,
            end_mask: p.integer(312)?,
            shrink_axis_mask: p.integer(320)?,
            ellipsis_mask: p.integer(328)?,
            new_axis_mask: p.integer(336)?,
            offset: p.flag(344)?,
        })),
        B::Sub => O::SubOptions(Box::new(SubOptions {
            fused_activation_function: p.activation(352)?,
            pot_scale_int16: true,
        })),
        B::Sum => reducer(p.flag(360)?),
        B::Conv2d => O::Conv2DOptions(Box::new(Conv2DOptions {
            padding: p.padding(368)?,
            stride_w: p.integer(376)?,
            stride_h: p.integer(384)?,
            fused_activation_function: p.activation(392)?,
            dilation_w_factor: p.integer(400)?,
            dilation_h_factor: p.integer(408)?,
            quantized_bias_type: TensorType::Float32,
        })),
        B::DepthwiseConv2d => O::DepthwiseConv2DOptions(Box::new(DepthwiseConv2DOptions {
            padding: p.padding(416)?,
            stride_w: p.integer(424)?,
            stride_h: p.integer(432)?,
            depth_multiplier: p.integer(440)?,
            fused_activation_function: p.activation(448)?,
            dilation_w_factor: p.integer(456)?,
            dilation_h_factor: p.integer(464)?,
        })),
        B::TransposeConv => O::TransposeConvOptions(Box::new(TransposeConvOptions {
            padding: p.padding(472)?,
            stride_w: p.integer(480)?,
            stride_h: p.integer(488)?,
            fused_activation_function: p.activation(496)?,
            quantized_bias_type: TensorType::Float32,
        })),
        B::Add => O::AddOptions(Box::new(AddOptions {
            fused_activation_function: p.activation(504)?,
            pot_scale_int16: true,
        })),
        B::Mul => {
            O::MulOptions(Box::new(MulOptions { fused_activation_function: p.activation(512)? }))
        }
        B::Div => {
            O::DivOptions(Box::new(DivOptions { fused_activation_function: p.activation(520)? }))
        }
        B::FullyConnected => O::FullyConnectedOptions(Box::new(FullyConnectedOptions {
            fused_activation_function: p.activation(528)?,
            weights_format: match p.get::<u32>(536)? {
                0 => FullyConnectedOptionsWeightsFormat::Default,
                1 => FullyConnectedOptionsWeightsFormat::Shuffled4x16Int8,
                _ => return None,
            },
            keep_num_dims: p.flag(544)?,
            asymmetric_quantize_inputs: p.flag(560)?,
            quantized_bias_type: TensorType::Float32,
        })),
        B::Softmax => O::SoftmaxOptions(Box::new(SoftmaxOptions { beta: p.get(568)? })),
        B::Concatenation => O::ConcatenationOptions(Box::new(ConcatenationOptions {
            axis: p.integer(576)?,
            fused_activation_function: p.activation(584)?,
        })),
        B::Mean => reducer(p.flag(600)?),
        B::ReduceMax => reducer(p.flag(608)?),
        B::ReduceMin => reducer(p.flag(784)?),
        B::ReduceAny => reducer(p.flag(792)?),
        B::ReduceAll => reducer(p.flag(800)?),
        B::ResizeBilinear => O::ResizeBilinearOptions(Box::new(ResizeBilinearOptions {
            align_corners: p.flag(616)?,
            half_pixel_centers: p.flag(624)?,
        })),
        B::ResizeNearestNeighbor => {
            O::ResizeNearestNeighborOptions(Box::new(ResizeNearestNeighborOptions {
                align_corners: p.flag(632)?,
                half_pixel_centers: p.flag(640)?,
            }))
        }
        B::BatchMatmul => O::BatchMatMulOptions(Box::new(BatchMatMulOptions {
            adj_x: p.flag(648)?,
            adj_y: p.flag(656)?,
            asymmetric_quantize_inputs: p.flag(664)?,
        })),
        B::AveragePool2d => pool(672)?,
        B::MaxPool2d => pool(720)?,
        B::L2Pool2d => pool(928)?,
        B::LeakyRelu => O::LeakyReluOptions(Box::new(LeakyReluOptions { alpha: p.get(768)? })),
        B::Pack => O::PackOptions(Box::new(PackOptions {
            axis: p.integer(808)?,
            values_count: p.integer(816)?,
        })),
        B::OneHot => O::OneHotOptions(Box::new(OneHotOptions { axis: p.integer(824)? })),
        B::Unpack => O::UnpackOptions(Box::new(UnpackOptions {
            axis: p.integer(832)?,
            num: p.integer(840)?,
        })),
        B::Gather => O::GatherOptions(Box::new(GatherOptions {
            axis: p.integer(848)?,
            batch_dims: p.integer(856)?,
        })),
        B::Conv3d => O::Conv3DOptions(Box::new(Conv3DOptions {
            padding: p.padding(864)?,
            stride_d: p.integer(872)?,
            stride_w: p.integer(880)?,
            stride_h: p.integer(888)?,
            fused_activation_function: p.activation(896)?,
            dilation_d_factor: p.integer(904)?,
            dilation_w_factor: p.integer(912)?,
            dilation_h_factor: p.integer(920)?,
        })),
        B::DepthToSpace => {
            O::DepthToSpaceOptions(Box::new(DepthToSpaceOptions { block_size: p.integer(976)? }))
        }
        B::SpaceToDepth => {
            O::SpaceToDepthOptions(Box::new(SpaceToDepthOptions { block_size: p.integer(984)? }))
        }
        B::Cumsum => O::CumsumOptions(Box::new(CumsumOptions {
            exclusive: p.flag(992)?,
            reverse: p.flag(1000)?,
        })),
        B::Gelu => O::GeluOptions(Box::new(GeluOptions { approximate: p.flag(1008)? })),
        B::MirrorPad => O::MirrorPadOptions(Box::new(MirrorPadOptions {
            mode: match p.get::<u32>(1016)? {
                0 => MirrorPadMode::Reflect,
                1 => MirrorPadMode::Symmetric,
                _ => return None,
            },
        })),
        B::Squeeze => {
            let squeeze_dims = Some(p.context.integers(1024, p.operator).ok()?);
            O::SqueezeOptions(Box::new(SqueezeOptions { squeeze_dims }))
        }
        _ => return None,
    })
}
