//! Options of operators, as LiteRT tells them, as the tables of the file's schema.
//!
//! LiteRT tells those of most operators, each by a function of its own. Of some it tells none: they are judged with those that
//! the schema has where nothing is said, and again when LiteRT has written the partition.

use crate::context::{Answer, Context, Object, place};
use nnhal::graph::{
    AddOptions, BatchMatMulOptions, BuiltinOperator as B, BuiltinOptions as O,
    ConcatenationOptions, Conv2DOptions, Conv3DOptions, CumsumOptions, DepthToSpaceOptions,
    DepthwiseConv2DOptions, DivOptions, FullyConnectedOptions, GatherOptions, GeluOptions,
    LeakyReluOptions, MirrorPadOptions, MulOptions, OneHotOptions, PackOptions, Pool2DOptions,
    ReducerOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions, SoftmaxOptions,
    SpaceToDepthOptions, SqueezeOptions, StridedSliceOptions, SubOptions, TensorType,
    TransposeConvOptions, UnpackOptions,
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

/// Why a table is not there.
#[derive(Debug)]
enum Unread {
    /// LiteRT has no functions for the options of this operator.
    NoFunctions,
    /// The operator has no options in the file, or a value is none of the schema's.
    NotShown,
}

type Read<T> = Result<T, Unread>;

impl Asked<'_> {
    fn get<T: Answer>(&self, place: usize) -> Read<T> {
        self.context.get(place, self.operator).map_err(|_| Unread::NotShown)
    }

    fn integer(&self, place: usize) -> Read<i32> {
        self.get(place)
    }

    /// A `bool` of C.
    fn flag(&self, place: usize) -> Read<bool> {
        Ok(self.get::<u8>(place)? != 0)
    }

    /// One of the values that an enumeration of the schema has.
    fn one_of<T: TryFrom<i8>>(&self, place: usize) -> Read<T> {
        let code = i8::try_from(self.get::<u32>(place)?).ok();
        code.and_then(|code| code.try_into().ok()).ok_or(Unread::NotShown)
    }

    /// A list, which is there even without elements.
    fn integers(&self, place: usize) -> Read<Option<Vec<i32>>> {
        self.context.integers(place, self.operator).map(Some).map_err(|_| Unread::NotShown)
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
        _ => match table(known, &asked) {
            Ok(table) => Options::Table(table),
            Err(Unread::NotShown) => Options::NotShown,
            // Stable HLO's have options in other tables.
            Err(Unread::NoFunctions) if format!("{known:?}").starts_with("Stablehlo") => {
                Options::NotShown
            }
            Err(Unread::NoFunctions) => Options::None,
        },
    })
}

fn reducer(keep_dims: bool) -> O {
    O::ReducerOptions(Box::new(ReducerOptions { keep_dims }))
}

/// A table of the schema whose fields are where LiteRT's functions for them are, each read as a type; without one of them
/// there is none. Behind `;` is a field that LiteRT has no function for.
macro_rules! filled {
    ($asked:ident, $Table:ident { $($field:ident: $read:ident $place:expr),* $(,)? $(; $rest:ident: $value:expr)? }) => {
        O::$Table(Box::new($Table {
            $($field: $asked.$read($place)?,)*
            $($rest: $value,)?
        }))
    };
}

fn table(operator: B, p: &Asked<'_>) -> Read<O> {
    let pool = |at: usize| {
        Ok(filled!(p, Pool2DOptions {
            padding: one_of at, stride_w: integer at + 8, stride_h: integer at + 16,
            filter_width: integer at + 24, filter_height: integer at + 32,
            fused_activation_function: one_of at + 40,
        }))
    };
    Ok(match operator {
        B::StridedSlice => filled!(p, StridedSliceOptions {
            begin_mask: integer 304, end_mask: integer 312, shrink_axis_mask: integer 320,
            ellipsis_mask: integer 328, new_axis_mask: integer 336, offset: flag 344,
        }),
        B::Sub => filled!(p, SubOptions {
            fused_activation_function: one_of 352; pot_scale_int16: true
        }),
        B::Conv2d => filled!(p, Conv2DOptions {
            padding: one_of 368, stride_w: integer 376, stride_h: integer 384,
            fused_activation_function: one_of 392,
            dilation_w_factor: integer 400, dilation_h_factor: integer 408; quantized_bias_type: TensorType::Float32
        }),
        B::DepthwiseConv2d => filled!(p, DepthwiseConv2DOptions {
            padding: one_of 416, stride_w: integer 424, stride_h: integer 432,
            depth_multiplier: integer 440, fused_activation_function: one_of 448,
            dilation_w_factor: integer 456, dilation_h_factor: integer 464,
        }),
        B::TransposeConv => filled!(p, TransposeConvOptions {
            padding: one_of 472, stride_w: integer 480, stride_h: integer 488,
            fused_activation_function: one_of 496; quantized_bias_type: TensorType::Float32
        }),
        B::Add => filled!(p, AddOptions {
            fused_activation_function: one_of 504; pot_scale_int16: true
        }),
        B::Mul => filled!(p, MulOptions { fused_activation_function: one_of 512 }),
        B::Div => filled!(p, DivOptions { fused_activation_function: one_of 520 }),
        B::FullyConnected => filled!(p, FullyConnectedOptions {
            fused_activation_function: one_of 528, weights_format: one_of 536,
            keep_num_dims: flag 544, asymmetric_quantize_inputs: flag 560; quantized_bias_type: TensorType::Float32
        }),
        B::Softmax => filled!(p, SoftmaxOptions { beta: get 568 }),
        B::Concatenation => filled!(p, ConcatenationOptions {
            axis: integer 576, fused_activation_function: one_of 584,
        }),
        B::Sum => reducer(p.flag(360)?),
        B::Mean => reducer(p.flag(600)?),
        B::ReduceMax => reducer(p.flag(608)?),
        B::ReduceMin => reducer(p.flag(784)?),
        B::ReduceAny => reducer(p.flag(792)?),
        B::ReduceAll => reducer(p.flag(800)?),
        B::ResizeBilinear => filled!(p, ResizeBilinearOptions {
            align_corners: flag 616, half_pixel_centers: flag 624,
        }),
        B::ResizeNearestNeighbor => filled!(p, ResizeNearestNeighborOptions {
            align_corners: flag 632, half_pixel_centers: flag 640,
        }),
        B::BatchMatmul => filled!(p, BatchMatMulOptions {
            adj_x: flag 648, adj_y: flag 656, asymmetric_quantize_inputs: flag 664,
        }),
        B::AveragePool2d => pool(672)?,
        B::MaxPool2d => pool(720)?,
        B::L2Pool2d => pool(928)?,
        B::LeakyRelu => filled!(p, LeakyReluOptions { alpha: get 768 }),
        B::Pack => filled!(p, PackOptions { axis: integer 808, values_count: integer 816 }),
        B::OneHot => filled!(p, OneHotOptions { axis: integer 824 }),
        B::Unpack => filled!(p, UnpackOptions { axis: integer 832, num: integer 840 }),
        B::Gather => filled!(p, GatherOptions { axis: integer 848, batch_dims: integer 856 }),
        B::Conv3d => filled!(p, Conv3DOptions {
            padding: one_of 864, stride_d: integer 872, stride_w: integer 880,
            stride_h: integer 888, fused_activation_function: one_of 896,
            dilation_d_factor: integer 904, dilation_w_factor: integer 912,
            dilation_h_factor: integer 920,
        }),
        B::DepthToSpace => filled!(p, DepthToSpaceOptions { block_size: integer 976 }),
        B::SpaceToDepth => filled!(p, SpaceToDepthOptions { block_size: integer 984 }),
        B::Cumsum => filled!(p, CumsumOptions { exclusive: flag 992, reverse: flag 1000 }),
        B::Gelu => filled!(p, GeluOptions { approximate: flag 1008 }),
        B::MirrorPad => filled!(p, MirrorPadOptions { mode: one_of 1016 }),
        B::Squeeze => filled!(p, SqueezeOptions { squeeze_dims: integers 1024 }),
        _ => return Err(Unread::NoFunctions),
    })
}
