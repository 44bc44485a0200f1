//! From the structures of `builtin_op_data.h`, which a running interpreter has, to the tables of the file's
//! schema: the one thing about operators that a delegate needs beside the importer.
//!
//! A structure here has fields that every host since `tflite-runtime` 2.14 has, from the first on. What came later
//! (`quantized_bias_type` of convolutions) is behind them and not read: the bias says it itself. A field
//! of an operator's later version, such as the activation of TRANSPOSE_CONV, is read for every version, as
//! hosts do: they fill it in from the file whatever the version is. Padding, activations and types have
//! numbers of their own in C.

#![allow(unsafe_code)]

use crate::host::{HostStructure, Params};
use nnhal::graph::{
    ActivationFunctionType, AddOptions, BatchMatMulOptions, BidirectionalSequenceLstmOptions,
    BidirectionalSequenceRnnOptions, BucketizeOptions, BuiltinOperator as B, BuiltinOptions as O,
    BuiltinOptions2 as O2, CombinerType, ConcatenationOptions, Conv2DOptions, Conv3DOptions,
    CumsumOptions, DepthToSpaceOptions, DepthwiseConv2DOptions, DivOptions,
    EmbeddingLookupSparseOptions, FakeQuantOptions, FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat, GatherOptions, GeluOptions, L2NormOptions,
    LeakyReluOptions, LocalResponseNormalizationOptions, LshProjectionOptions, LshProjectionType,
    LstmKernelType, LstmOptions, MirrorPadMode, MirrorPadOptions, MulOptions, OneHotOptions,
    PackOptions, Padding, Pool2DOptions, ReduceWindowFunction, ReduceWindowOptions, ReducerOptions,
    ReshapeOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions, ReverseSequenceOptions,
    RnnOptions, SequenceRnnOptions, SoftmaxOptions, SpaceToDepthOptions, SqueezeOptions,
    StableHloCompositeOptions, StablehloGatherOptions, StablehloPadOptions,
    StablehloReduceWindowOptions, StablehloScatterOptions, StridedSliceOptions, SubOptions,
    SvdfOptions, TensorType, TransposeConvOptions, UnidirectionalSequenceLstmOptions,
    UnpackOptions,
};

macro_rules! structures {
    ($($(#[$meta:meta])* $Name:ident { $($field:ident: $Type:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct $Name { $($field: $Type),* }

        // SAFETY: it is `repr(C)` and of numbers only (a `bool` of C is a byte here), and the operators that it is
        // read for below have these fields first, as said at the top.
        unsafe impl HostStructure for $Name {}
    )*};
}

structures! {
    Conv2D {
        padding: i32, stride_w: i32, stride_h: i32, activation: i32, dilation_w: i32, dilation_h: i32,
    }
    Conv3D {
        padding: i32, stride_w: i32, stride_h: i32, stride_d: i32,
        dilation_w: i32, dilation_h: i32, dilation_d: i32, activation: i32,
    }
    DepthwiseConv2D {
        padding: i32, stride_w: i32, stride_h: i32, depth_multiplier: i32, activation: i32,
        dilation_w: i32, dilation_h: i32,
    }
    Pool2D {
        padding: i32, stride_w: i32, stride_h: i32, filter_w: i32, filter_h: i32, activation: i32,
    }
    TransposeConv { padding: i32, stride_w: i32, stride_h: i32, activation: i32 }
    Svdf { rank: i32, activation: i32, asymmetric: u8 }
    Rnn { activation: i32, asymmetric: u8 }
    SequenceRnn { time_major: u8, activation: i32, asymmetric: u8 }
    BidirectionalSequenceRnn { time_major: u8, activation: i32, merge_outputs: u8, asymmetric: u8 }
    FullyConnected { activation: i32, weights_format: i32, keep_num_dims: u8, asymmetric: u8 }
    Lstm { activation: i32, cell_clip: f32, proj_clip: f32, kernel_type: i32, asymmetric: u8 }
    SequenceLstm {
        activation: i32, cell_clip: f32, proj_clip: f32, time_major: u8, asymmetric: u8, diagonal: u8,
    }
    BidirectionalSequenceLstm {
        activation: i32, cell_clip: f32, proj_clip: f32, merge_outputs: u8, time_major: u8,
        asymmetric: u8,
    }
    Integer { value: i32 }
    TwoIntegers { first: i32, second: i32 }
    Float { value: f32 }
    Flag { value: u8 }
    TwoFlags { first: u8, second: u8 }
    LocalResponseNorm { radius: i32, bias: f32, alpha: f32, beta: f32 }
    UpToEight { values: [i32; 8], count: i32 }
    StridedSlice {
        begin: i32, end: i32, ellipsis: i32, new_axis: i32, shrink_axis: i32, offset: u8,
    }
    Bucketize { count: i32, boundaries: *const f32 }
    FakeQuant { min: f32, max: f32, num_bits: i32, narrow_range: u8 }
    StablehloPad { low: [i64; 8], high: [i64; 8], interior: [i64; 8] }
    StablehloReduceWindow {
        window: [i64; 8], strides: [i64; 8], base_dilations: [i64; 8], dilations: [i64; 8],
        padding: [i64; 16], body: i32,
    }
    UpToEightAxes { values: [i64; 8], count: i32 }
    StablehloGather {
        offset: UpToEightAxes, collapsed: UpToEightAxes, map: UpToEightAxes, row_axis: i64,
        sizes: UpToEightAxes, sorted: u8,
    }
    StablehloScatter {
        sorted: u8, window: UpToEightAxes, inserted: UpToEightAxes, map: UpToEightAxes, row_axis: i64,
        unique: u8, body: i32,
    }
    StablehloCase { branches: [i32; 20], count: u32 }
    StablehloComposite { _name: *const u8, decomposition: i32 }
}

impl UpToEight {
    fn values(&self) -> Option<Vec<i32>> {
        Some(self.values.get(..usize::try_from(self.count).ok()?)?.to_vec())
    }
}

impl UpToEightAxes {
    fn values(&self) -> Option<Vec<i64>> {
        Some(self.values.get(..usize::try_from(self.count).ok()?)?.to_vec())
    }
}

// Where C has each list of axes with its count behind it, which is padded to 8 bytes, as a structure of both is.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<UpToEightAxes>() == 72);
    assert!(std::mem::offset_of!(StablehloGather, row_axis) == 216);
    assert!(std::mem::offset_of!(StablehloGather, sizes) == 224);
    assert!(std::mem::offset_of!(StablehloScatter, window) == 8);
    assert!(std::mem::offset_of!(StablehloScatter, row_axis) == 224);
    assert!(std::mem::offset_of!(StablehloScatter, body) == 236);
};

/// Why a node's options do not become a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The node has no structure where its operator needs one.
    Structure,
    /// A number that the C API does not have, or the schema has not.
    Value,
}

/// The options of an operator, in one of the two places that a file has for them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tables {
    pub(crate) first: Option<O>,
    pub(crate) second: Option<O2>,
}

/// The options of an operator, whose first input has this rank, as the file's tables; none for one whose tables the importer
/// does not read.
pub(crate) fn options(operator: B, params: &Params<'_>, rank: usize) -> Result<Tables, Missing> {
    if params.is_null() {
        return if needs_options(operator) {
            Err(Missing::Structure)
        } else {
            Ok(Tables::default())
        };
    }
    let second = match operator {
        B::StablehloPad
        | B::StablehloGather
        | B::StablehloScatter
        | B::ReduceWindow
        | B::StablehloReduceWindow
        | B::StablehloComposite => {
            Some(second_table(operator, params, rank).ok_or(Missing::Value)?)
        }
        _ => None,
    };
    match table(operator, params) {
        Some(first) => Ok(Tables { first, second }),
        None => Err(Missing::Value),
    }
}

/// Options that came to the format later. Those that name a subgraph name the interpreter's.
fn second_table(operator: B, p: &Params<'_>, rank: usize) -> Option<O2> {
    // The host has room for 8 axes, and fills those that the tensor has.
    let axes = |all: &[i64], each: usize| Some(all.get(..each.checked_mul(rank)?)?.to_vec());
    Some(match operator {
        B::StablehloPad => {
            let it: StablehloPad = p.read()?;
            O2::StablehloPadOptions(Box::new(StablehloPadOptions {
                edge_padding_low: Some(axes(&it.low, 1)?),
                edge_padding_high: Some(axes(&it.high, 1)?),
                interior_padding: Some(axes(&it.interior, 1)?),
            }))
        }
        B::StablehloGather => {
            let it: StablehloGather = p.read()?;
            O2::StablehloGatherOptions(Box::new(StablehloGatherOptions {
                offset_dims: Some(it.offset.values()?),
                collapsed_slice_dims: Some(it.collapsed.values()?),
                start_index_map: Some(it.map.values()?),
                index_vector_dim: it.row_axis,
                slice_sizes: Some(it.sizes.values()?),
                indices_are_sorted: it.sorted != 0,
            }))
        }
        B::StablehloScatter => {
            let it: StablehloScatter = p.read()?;
            O2::StablehloScatterOptions(Box::new(StablehloScatterOptions {
                indices_are_sorted: it.sorted != 0,
                update_window_dims: Some(it.window.values()?),
                inserted_window_dims: Some(it.inserted.values()?),
                scatter_dims_to_operand_dims: Some(it.map.values()?),
                index_vector_dim: it.row_axis,
                unique_indices: it.unique != 0,
                update_computation_subgraph_index: it.body,
            }))
        }
        B::StablehloReduceWindow => {
            let it: StablehloReduceWindow = p.read()?;
            O2::StablehloReduceWindowOptions(Box::new(StablehloReduceWindowOptions {
                window_dimensions: Some(axes(&it.window, 1)?),
                window_strides: Some(axes(&it.strides, 1)?),
                base_dilations: Some(axes(&it.base_dilations, 1)?),
                window_dilations: Some(axes(&it.dilations, 1)?),
                padding: Some(axes(&it.padding, 2)?),
                body_subgraph_index: it.body,
            }))
        }
        B::StablehloComposite => {
            O2::StableHloCompositeOptions(Box::new(StableHloCompositeOptions {
                name: None,
                decomposition_subgraph_index: p.read::<StablehloComposite>()?.decomposition,
            }))
        }
        _ => {
            let reduce_function = match p.read::<Integer>()?.value {
                1 => ReduceWindowFunction::Add,
                2 => ReduceWindowFunction::Mul,
                3 => ReduceWindowFunction::Minimum,
                4 => ReduceWindowFunction::Maximum,
                5 => ReduceWindowFunction::All,
                6 => ReduceWindowFunction::Any,
                _ => return None,
            };
            O2::ReduceWindowOptions(Box::new(ReduceWindowOptions { reduce_function }))
        }
    })
}

/// Whether the options of an operator, as far as they become tables, name a subgraph.
pub(crate) fn has_subgraph(operator: B) -> bool {
    matches!(operator, B::StablehloReduceWindow | B::StablehloScatter | B::StablehloComposite)
}

/// The interpreter's subgraphs that an operator of the interpreter names.
pub(crate) fn named_subgraphs(operator: B, params: &Params<'_>) -> Named {
    let two = || params.read::<TwoIntegers>().map(|it| vec![it.first, it.second]);
    match operator {
        B::If | B::While => Named::Run(two().unwrap_or_default()),
        B::CallOnce => {
            Named::Run(params.read::<Integer>().map(|it| it.value).into_iter().collect())
        }
        B::StablehloCase => {
            let branches = params
                .read::<StablehloCase>()
                .and_then(|it| Some(it.branches.get(..usize::try_from(it.count).ok()?)?.to_vec()));
            Named::Run(branches.unwrap_or_default())
        }
        B::StablehloComposite => {
            let body = params.read::<StablehloComposite>().map(|it| it.decomposition);
            Named::Run(body.into_iter().collect())
        }
        B::StablehloReduceWindow => {
            Named::Read(params.read::<StablehloReduceWindow>().map(|it| it.body))
        }
        B::StablehloScatter => Named::Read(params.read::<StablehloScatter>().map(|it| it.body)),
        _ => Named::Run(Vec::new()),
    }
}

/// What an interpreter does with the subgraphs that an operator names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// It runs them.
    Run(Vec<i32>),
    /// It does not run it, but looks which operator it has.
    Read(Option<i32>),
}

fn needs_options(operator: B) -> bool {
    matches!(
        operator,
        B::Conv2d
            | B::Conv3d
            | B::Conv3dTranspose
            | B::DepthwiseConv2d
            | B::TransposeConv
            | B::AveragePool2d
            | B::MaxPool2d
            | B::L2Pool2d
            | B::FakeQuant
            | B::EmbeddingLookupSparse
            | B::StablehloPad
            | B::StablehloGather
            | B::StablehloScatter
            | B::ReduceWindow
            | B::StablehloReduceWindow
            | B::StablehloComposite
    )
}

#[allow(clippy::too_many_lines)] // A table: an operator a line or two.
fn table(operator: B, params: &Params<'_>) -> Option<Option<O>> {
    let p = params;
    Some(Some(match operator {
        B::Conv2d => {
            let it: Conv2D = p.read()?;
            O::Conv2DOptions(Box::new(Conv2DOptions {
                padding: padding(it.padding)?,
                stride_w: it.stride_w,
                stride_h: it.stride_h,
                fused_activation_function: activation(it.activation)?,
                dilation_w_factor: it.dilation_w,
                dilation_h_factor: it.dilation_h,
                quantized_bias_type: TensorType::Float32,
            }))
        }
        B::Conv3d | B::Conv3dTranspose => {
            let it: Conv3D = p.read()?;
            O::Conv3DOptions(Box::new(Conv3DOptions {
                padding: padding(it.padding)?,
                stride_d: it.stride_d,
                stride_w: it.stride_w,
                stride_h: it.stride_h,
                fused_activation_function: activation(it.activation)?,
                dilation_d_factor: it.dilation_d,
                dilation_w_factor: it.dilation_w,
                dilation_h_factor: it.dilation_h,
            }))
        }
        B::DepthwiseConv2d => {
            let it: DepthwiseConv2D = p.read()?;
            O::DepthwiseConv2DOptions(Box::new(DepthwiseConv2DOptions {
                padding: padding(it.padding)?,
                stride_w: it.stride_w,
                stride_h: it.stride_h,
                depth_multiplier: it.depth_multiplier,
                fused_activation_function: activation(it.activation)?,
                dilation_w_factor: it.dilation_w,
                dilation_h_factor: it.dilation_h,
            }))
        }
        B::TransposeConv => {
            let it: TransposeConv = p.read()?;
            O::TransposeConvOptions(Box::new(TransposeConvOptions {
                padding: padding(it.padding)?,
                stride_w: it.stride_w,
                stride_h: it.stride_h,
                fused_activation_function: activation(it.activation)?,
                quantized_bias_type: TensorType::Float32,
            }))
        }
        B::AveragePool2d | B::MaxPool2d | B::L2Pool2d => {
            let it: Pool2D = p.read()?;
            O::Pool2DOptions(Box::new(Pool2DOptions {
                padding: padding(it.padding)?,
                stride_w: it.stride_w,
                stride_h: it.stride_h,
                filter_width: it.filter_w,
                filter_height: it.filter_h,
                fused_activation_function: activation(it.activation)?,
            }))
        }
        B::Svdf => {
            let it: Svdf = p.read()?;
            O::SvdfOptions(Box::new(SvdfOptions {
                rank: it.rank,
                fused_activation_function: activation(it.activation)?,
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::Rnn => {
            let it: Rnn = p.read()?;
            O::RnnOptions(Box::new(RnnOptions {
                fused_activation_function: activation(it.activation)?,
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::UnidirectionalSequenceRnn => {
            let it: SequenceRnn = p.read()?;
            O::SequenceRnnOptions(Box::new(SequenceRnnOptions {
                time_major: it.time_major != 0,
                fused_activation_function: activation(it.activation)?,
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::BidirectionalSequenceRnn => {
            let it: BidirectionalSequenceRnn = p.read()?;
            O::BidirectionalSequenceRnnOptions(Box::new(BidirectionalSequenceRnnOptions {
                time_major: it.time_major != 0,
                fused_activation_function: activation(it.activation)?,
                merge_outputs: it.merge_outputs != 0,
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::FullyConnected => {
            let it: FullyConnected = p.read()?;
            O::FullyConnectedOptions(Box::new(FullyConnectedOptions {
                fused_activation_function: activation(it.activation)?,
                weights_format: match it.weights_format {
                    0 => FullyConnectedOptionsWeightsFormat::Default,
                    1 => FullyConnectedOptionsWeightsFormat::Shuffled4x16Int8,
                    _ => return None,
                },
                keep_num_dims: it.keep_num_dims != 0,
                asymmetric_quantize_inputs: it.asymmetric != 0,
                quantized_bias_type: TensorType::Float32,
            }))
        }
        B::Lstm => {
            let it: Lstm = p.read()?;
            O::LstmOptions(Box::new(LstmOptions {
                fused_activation_function: activation(it.activation)?,
                cell_clip: it.cell_clip,
                proj_clip: it.proj_clip,
                kernel_type: match it.kernel_type {
                    0 => LstmKernelType::Full,
                    1 => LstmKernelType::Basic,
                    _ => return None,
                },
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::UnidirectionalSequenceLstm => {
            let it: SequenceLstm = p.read()?;
            O::UnidirectionalSequenceLstmOptions(Box::new(UnidirectionalSequenceLstmOptions {
                fused_activation_function: activation(it.activation)?,
                cell_clip: it.cell_clip,
                proj_clip: it.proj_clip,
                time_major: it.time_major != 0,
                asymmetric_quantize_inputs: it.asymmetric != 0,
                diagonal_recurrent_tensors: it.diagonal != 0,
            }))
        }
        B::BidirectionalSequenceLstm => {
            let it: BidirectionalSequenceLstm = p.read()?;
            O::BidirectionalSequenceLstmOptions(Box::new(BidirectionalSequenceLstmOptions {
                fused_activation_function: activation(it.activation)?,
                cell_clip: it.cell_clip,
                proj_clip: it.proj_clip,
                merge_outputs: it.merge_outputs != 0,
                time_major: it.time_major != 0,
                asymmetric_quantize_inputs: it.asymmetric != 0,
            }))
        }
        B::LshProjection => {
            let it: Integer = p.read()?;
            O::LshProjectionOptions(Box::new(LshProjectionOptions {
                type_: match it.value {
                    0 => LshProjectionType::Unknown,
                    1 => LshProjectionType::Sparse,
                    2 => LshProjectionType::Dense,
                    _ => return None,
                },
            }))
        }
        B::EmbeddingLookupSparse => {
            let combiner = match p.read::<Integer>()?.value {
                0 => CombinerType::Sum,
                1 => CombinerType::Mean,
                2 => CombinerType::Sqrtn,
                _ => return None,
            };
            O::EmbeddingLookupSparseOptions(Box::new(EmbeddingLookupSparseOptions { combiner }))
        }
        B::Softmax => {
            O::SoftmaxOptions(Box::new(SoftmaxOptions { beta: p.read::<Float>()?.value }))
        }
        B::Concatenation => {
            let it: TwoIntegers = p.read()?;
            let fused_activation_function = activation(it.second)?;
            let table = ConcatenationOptions { axis: it.first, fused_activation_function };
            O::ConcatenationOptions(Box::new(table))
        }
        B::Add => {
            let fused_activation_function = activation(p.read::<Integer>()?.value)?;
            let table = AddOptions { fused_activation_function, pot_scale_int16: true };
            O::AddOptions(Box::new(table))
        }
        B::Sub => {
            let fused_activation_function = activation(p.read::<Integer>()?.value)?;
            let table = SubOptions { fused_activation_function, pot_scale_int16: true };
            O::SubOptions(Box::new(table))
        }
        B::Mul => {
            let fused_activation_function = activation(p.read::<Integer>()?.value)?;
            O::MulOptions(Box::new(MulOptions { fused_activation_function }))
        }
        B::Div => {
            let fused_activation_function = activation(p.read::<Integer>()?.value)?;
            O::DivOptions(Box::new(DivOptions { fused_activation_function }))
        }
        B::L2Normalization => {
            let fused_activation_function = activation(p.read::<Integer>()?.value)?;
            O::L2NormOptions(Box::new(L2NormOptions { fused_activation_function }))
        }
        B::LocalResponseNormalization => {
            let LocalResponseNorm { radius, bias, alpha, beta } = p.read()?;
            let table = LocalResponseNormalizationOptions { radius, bias, alpha, beta };
            O::LocalResponseNormalizationOptions(Box::new(table))
        }
        B::ResizeBilinear => {
            let it: TwoFlags = p.read()?;
            let (align_corners, half_pixel_centers) = (it.first != 0, it.second != 0);
            let table = ResizeBilinearOptions { align_corners, half_pixel_centers };
            O::ResizeBilinearOptions(Box::new(table))
        }
        B::ResizeNearestNeighbor => {
            let it: TwoFlags = p.read()?;
            let (align_corners, half_pixel_centers) = (it.first != 0, it.second != 0);
            let table = ResizeNearestNeighborOptions { align_corners, half_pixel_centers };
            O::ResizeNearestNeighborOptions(Box::new(table))
        }
        B::Reshape => {
            // Without lengths the shape is the second input.
            let lengths = p.read::<UpToEight>()?.values()?;
            if lengths.is_empty() {
                return Some(None);
            }
            O::ReshapeOptions(Box::new(ReshapeOptions { new_shape: Some(lengths) }))
        }
        B::Squeeze => {
            let squeeze_dims = Some(p.read::<UpToEight>()?.values()?);
            O::SqueezeOptions(Box::new(SqueezeOptions { squeeze_dims }))
        }
        B::SpaceToDepth => {
            let block_size = p.read::<Integer>()?.value;
            O::SpaceToDepthOptions(Box::new(SpaceToDepthOptions { block_size }))
        }
        B::DepthToSpace => {
            let block_size = p.read::<Integer>()?.value;
            O::DepthToSpaceOptions(Box::new(DepthToSpaceOptions { block_size }))
        }
        B::Gather => {
            let TwoIntegers { first: axis, second: batch_dims } = p.read()?;
            O::GatherOptions(Box::new(GatherOptions { axis, batch_dims }))
        }
        B::Sum
        | B::Mean
        | B::ReduceProd
        | B::ReduceMax
        | B::ReduceMin
        | B::ReduceAny
        | B::ReduceAll => {
            let keep_dims = p.read::<Flag>()?.value != 0;
            O::ReducerOptions(Box::new(ReducerOptions { keep_dims }))
        }
        B::StridedSlice => {
            let it: StridedSlice = p.read()?;
            O::StridedSliceOptions(Box::new(StridedSliceOptions {
                begin_mask: it.begin,
                end_mask: it.end,
                ellipsis_mask: it.ellipsis,
                new_axis_mask: it.new_axis,
                shrink_axis_mask: it.shrink_axis,
                offset: it.offset != 0,
            }))
        }
        B::Pack => {
            let TwoIntegers { first: values_count, second: axis } = p.read()?;
            O::PackOptions(Box::new(PackOptions { values_count, axis }))
        }
        B::Unpack => {
            let TwoIntegers { first: num, second: axis } = p.read()?;
            O::UnpackOptions(Box::new(UnpackOptions { num, axis }))
        }
        B::OneHot => O::OneHotOptions(Box::new(OneHotOptions { axis: p.read::<Integer>()?.value })),
        B::LeakyRelu => {
            let alpha = p.read::<Float>()?.value;
            O::LeakyReluOptions(Box::new(LeakyReluOptions { alpha }))
        }
        B::ReverseSequence => {
            let TwoIntegers { first: seq_dim, second: batch_dim } = p.read()?;
            O::ReverseSequenceOptions(Box::new(ReverseSequenceOptions { seq_dim, batch_dim }))
        }
        B::Cumsum => {
            let it: TwoFlags = p.read()?;
            let (exclusive, reverse) = (it.first != 0, it.second != 0);
            O::CumsumOptions(Box::new(CumsumOptions { exclusive, reverse }))
        }
        B::Bucketize => {
            let it: Bucketize = p.read()?;
            let boundaries = Some(p.floats(it.boundaries, it.count)?);
            O::BucketizeOptions(Box::new(BucketizeOptions { boundaries }))
        }
        B::Gelu => {
            let approximate = p.read::<Flag>()?.value != 0;
            O::GeluOptions(Box::new(GeluOptions { approximate }))
        }
        B::BatchMatmul => {
            let it: TwoFlags = p.read()?;
            O::BatchMatMulOptions(Box::new(BatchMatMulOptions {
                adj_x: it.first != 0,
                adj_y: it.second != 0,
                asymmetric_quantize_inputs: false,
            }))
        }
        B::MirrorPad => {
            let mode = match p.read::<Integer>()?.value {
                1 => MirrorPadMode::Reflect,
                2 => MirrorPadMode::Symmetric,
                _ => return None,
            };
            O::MirrorPadOptions(Box::new(MirrorPadOptions { mode }))
        }
        B::FakeQuant => {
            let FakeQuant { min, max, num_bits, narrow_range } = p.read()?;
            let narrow_range = narrow_range != 0;
            let options = FakeQuantOptions { min, max, num_bits, narrow_range };
            O::FakeQuantOptions(Box::new(options))
        }
        _ => return Some(None),
    }))
}

fn padding(code: i32) -> Option<Padding> {
    match code {
        1 => Some(Padding::Same),
        2 => Some(Padding::Valid),
        _ => None,
    }
}

fn activation(code: i32) -> Option<ActivationFunctionType> {
    Some(match code {
        0 => ActivationFunctionType::None,
        1 => ActivationFunctionType::Relu,
        2 => ActivationFunctionType::ReluN1To1,
        3 => ActivationFunctionType::Relu6,
        4 => ActivationFunctionType::Tanh,
        5 => ActivationFunctionType::SignBit,
        _ => return None,
    })
}
