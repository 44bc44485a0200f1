//! Operations of TensorFlow that the format has an operator for.

use super::{expect_channels_last, is_padded, window};
use crate::error::Reason;
use crate::file::{Operator, OperatorCode, OperatorKind};
use crate::import::{GraphImporter, Imported};
use crate::node_def::Node;
use crate::schema::{
    ActivationFunctionType, BatchMatMulOptions, BucketizeOptions, BuiltinOperator as B,
    BuiltinOptions, ConcatenationOptions, Conv3DOptions, CumsumOptions, DepthToSpaceOptions,
    FakeQuantOptions, GatherOptions, LeakyReluOptions, LocalResponseNormalizationOptions,
    MirrorPadMode, MirrorPadOptions, OneHotOptions, OperatorRef, PackOptions, Padding,
    Pool2DOptions, ReducerOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions,
    ReverseSequenceOptions, SoftmaxOptions, SpaceToDepthOptions, SqueezeOptions,
    StridedSliceOptions, UnpackOptions,
};
use planus::ReadAsRoot;
use std::ops::Range;

/// The same as an operator of the format.
pub(super) struct Same {
    builtin: B,
    options: Option<BuiltinOptions>,
    /// Which inputs it takes; the others are in the options.
    inputs: Range<usize>,
}

impl Same {
    /// Imports it in the place of the Flex operator.
    pub(super) fn import(
        self,
        importer: &mut GraphImporter<'_, '_>,
        operator: &Operator<'_>,
    ) -> Imported {
        let written = crate::schema::Operator {
            builtin_options: self.options,
            ..crate::schema::Operator::default()
        };
        let mut builder = planus::Builder::new();
        let table = OperatorRef::read_as_root(builder.finish(&written, None))?;
        let inputs = operator.inputs.get(self.inputs).unwrap_or_default().to_vec();
        let code = OperatorCode { kind: OperatorKind::Builtin(self.builtin), version: 1 };
        let outputs = operator.outputs.clone();
        let translated = Operator { code, inputs, outputs, table };
        importer.builtin(self.builtin, &translated)
    }
}

impl GraphImporter<'_, '_> {
    pub(super) fn same(&self, node: &Node<'_>, operator: &Operator<'_>) -> Imported<Option<Same>> {
        let all = 0..operator.inputs.len();
        if let Some(builtin) = without_options(node.operation) {
            return Ok(Some(Same { builtin, options: None, inputs: all }));
        }
        let of_all =
            |builtin, options| Some(Same { builtin, options: Some(options), inputs: all.clone() });
        let small = |name: &str| -> Imported<i32> {
            let number = node.integer(name).unwrap_or(0);
            i32::try_from(number).map_err(|_| {
                Reason::new(format!("its attribute {name} is {number}, beyond 32 bits"))
            })
        };
        let truth = |name: &str| node.truth(name);
        let float = |name: &str, otherwise: f32| node.float(name).unwrap_or(otherwise);
        let reduced = |builtin| {
            let options = ReducerOptions { keep_dims: truth("keep_dims") };
            of_all(builtin, BuiltinOptions::ReducerOptions(Box::new(options)))
        };
        Ok(match node.operation {
            "Sum" => reduced(B::Sum),
            "Mean" => reduced(B::Mean),
            "Max" => reduced(B::ReduceMax),
            "Min" => reduced(B::ReduceMin),
            "Prod" => reduced(B::ReduceProd),
            "Any" => reduced(B::ReduceAny),
            "All" => reduced(B::ReduceAll),
            "BatchMatMul" | "BatchMatMulV2" | "BatchMatMulV3" | "MatMul" => {
                let [x, y] = match node.operation {
                    "MatMul" => ["transpose_a", "transpose_b"],
                    _ => ["adj_x", "adj_y"],
                };
                let options = BatchMatMulOptions {
                    adj_x: truth(x),
                    adj_y: truth(y),
                    ..BatchMatMulOptions::default()
                };
                of_all(B::BatchMatmul, BuiltinOptions::BatchMatMulOptions(Box::new(options)))
            }
            "Softmax" => {
                let options =
                    BuiltinOptions::SoftmaxOptions(Box::new(SoftmaxOptions { beta: 1.0 }));
                of_all(B::Softmax, options)
            }
            "LeakyRelu" => {
                let options = LeakyReluOptions { alpha: float("alpha", 0.2) };
                of_all(B::LeakyRelu, BuiltinOptions::LeakyReluOptions(Box::new(options)))
            }
            "GatherV2" => {
                let options = GatherOptions {
                    axis: self.constant_integer(operator, 2)?,
                    batch_dims: small("batch_dims")?,
                };
                let options = Some(BuiltinOptions::GatherOptions(Box::new(options)));
                Some(Same { builtin: B::Gather, options, inputs: 0..2 })
            }
            "ConcatV2" => {
                let last = operator.inputs.len().saturating_sub(1);
                let options = ConcatenationOptions {
                    axis: self.constant_integer(operator, last)?,
                    ..ConcatenationOptions::default()
                };
                let options = Some(BuiltinOptions::ConcatenationOptions(Box::new(options)));
                Some(Same { builtin: B::Concatenation, options, inputs: 0..last })
            }
            "Pack" => {
                let options = PackOptions { values_count: small("N")?, axis: small("axis")? };
                of_all(B::Pack, BuiltinOptions::PackOptions(Box::new(options)))
            }
            "Unpack" => {
                let options = UnpackOptions { num: small("num")?, axis: small("axis")? };
                of_all(B::Unpack, BuiltinOptions::UnpackOptions(Box::new(options)))
            }
            "Squeeze" => {
                let axes = node.integers("squeeze_dims").unwrap_or_default();
                let axes = axes.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
                let axes = axes.map_err(|_| Reason::new("its squeeze_dims exceed 32 bits"))?;
                let options = SqueezeOptions { squeeze_dims: Some(axes) };
                of_all(B::Squeeze, BuiltinOptions::SqueezeOptions(Box::new(options)))
            }
            "StridedSlice" => {
                let options = StridedSliceOptions {
                    begin_mask: small("begin_mask")?,
                    end_mask: small("end_mask")?,
                    ellipsis_mask: small("ellipsis_mask")?,
                    new_axis_mask: small("new_axis_mask")?,
                    shrink_axis_mask: small("shrink_axis_mask")?,
                    offset: false,
                };
                of_all(B::StridedSlice, BuiltinOptions::StridedSliceOptions(Box::new(options)))
            }
            "OneHot" => {
                let axis = node.integer("axis").and_then(|it| i32::try_from(it).ok()).unwrap_or(-1);
                let options = BuiltinOptions::OneHotOptions(Box::new(OneHotOptions { axis }));
                of_all(B::OneHot, options)
            }
            "Cumsum" => {
                let options =
                    CumsumOptions { exclusive: truth("exclusive"), reverse: truth("reverse") };
                of_all(B::Cumsum, BuiltinOptions::CumsumOptions(Box::new(options)))
            }
            "ReverseSequence" => {
                let options = ReverseSequenceOptions {
                    seq_dim: small("seq_dim")?,
                    batch_dim: small("batch_dim")?,
                };
                let options = BuiltinOptions::ReverseSequenceOptions(Box::new(options));
                of_all(B::ReverseSequence, options)
            }
            "ResizeBilinear" => {
                let options = ResizeBilinearOptions {
                    align_corners: truth("align_corners"),
                    half_pixel_centers: truth("half_pixel_centers"),
                };
                of_all(B::ResizeBilinear, BuiltinOptions::ResizeBilinearOptions(Box::new(options)))
            }
            "ResizeNearestNeighbor" => {
                let options = ResizeNearestNeighborOptions {
                    align_corners: truth("align_corners"),
                    half_pixel_centers: truth("half_pixel_centers"),
                };
                let options = BuiltinOptions::ResizeNearestNeighborOptions(Box::new(options));
                of_all(B::ResizeNearestNeighbor, options)
            }
            "DepthToSpace" => {
                expect_channels_last(node)?;
                let options = DepthToSpaceOptions { block_size: small("block_size")? };
                of_all(B::DepthToSpace, BuiltinOptions::DepthToSpaceOptions(Box::new(options)))
            }
            "SpaceToDepth" => {
                expect_channels_last(node)?;
                let options = SpaceToDepthOptions { block_size: small("block_size")? };
                of_all(B::SpaceToDepth, BuiltinOptions::SpaceToDepthOptions(Box::new(options)))
            }
            "MirrorPad" => {
                let mode = match node.text("mode") {
                    Some("REFLECT") => MirrorPadMode::Reflect,
                    Some("SYMMETRIC") => MirrorPadMode::Symmetric,
                    _ => return Err(Reason::new("its mode is neither REFLECT nor SYMMETRIC")),
                };
                let options = BuiltinOptions::MirrorPadOptions(Box::new(MirrorPadOptions { mode }));
                of_all(B::MirrorPad, options)
            }
            "LRN" => {
                let options = LocalResponseNormalizationOptions {
                    radius: small("depth_radius")?,
                    bias: float("bias", 1.0),
                    alpha: float("alpha", 1.0),
                    beta: float("beta", 0.5),
                };
                let options = BuiltinOptions::LocalResponseNormalizationOptions(Box::new(options));
                of_all(B::LocalResponseNormalization, options)
            }
            "Bucketize" => {
                let options = BucketizeOptions { boundaries: node.floats("boundaries") };
                of_all(B::Bucketize, BuiltinOptions::BucketizeOptions(Box::new(options)))
            }
            "FakeQuantWithMinMaxArgs" => {
                let options = FakeQuantOptions {
                    min: float("min", -6.0),
                    max: float("max", 6.0),
                    num_bits: small("num_bits")?,
                    narrow_range: truth("narrow_range"),
                };
                of_all(B::FakeQuant, BuiltinOptions::FakeQuantOptions(Box::new(options)))
            }
            "MaxPool" | "AvgPool" => {
                expect_channels_last(node)?;
                let ([height, width], [down, across]) =
                    (window(node, "ksize")?, window(node, "strides")?);
                let options = Pool2DOptions {
                    padding: padding(node)?,
                    stride_w: across,
                    stride_h: down,
                    filter_width: width,
                    filter_height: height,
                    fused_activation_function: ActivationFunctionType::None,
                };
                let builtin = match node.operation {
                    "MaxPool" => B::MaxPool2d,
                    _ => B::AveragePool2d,
                };
                of_all(builtin, BuiltinOptions::Pool2DOptions(Box::new(options)))
            }
            "Conv3D" | "Conv3DBackpropInputV2" => {
                expect_channels_last(node)?;
                let [stride_d, stride_h, stride_w] = window(node, "strides")?;
                let [dilation_d_factor, dilation_h_factor, dilation_w_factor] =
                    window(node, "dilations")?;
                let options = Conv3DOptions {
                    padding: padding(node)?,
                    stride_d,
                    stride_w,
                    stride_h,
                    fused_activation_function: ActivationFunctionType::None,
                    dilation_d_factor,
                    dilation_w_factor,
                    dilation_h_factor,
                };
                let builtin =
                    if node.operation == "Conv3D" { B::Conv3d } else { B::Conv3dTranspose };
                of_all(builtin, BuiltinOptions::Conv3DOptions(Box::new(options)))
            }
            "BiasAdd" => {
                expect_channels_last(node)?;
                Some(Same { builtin: B::Add, options: None, inputs: all })
            }
            "MatrixDiagV2" | "MatrixDiagV3" => {
                for (at, wanted, what) in
                    [(1, 0, "diagonal"), (2, -1, "number of rows"), (3, -1, "number of columns")]
                {
                    let found = self.constant_integer(operator, at)?;
                    if found != wanted {
                        let what = format!("its {what} is {found}, expected {wanted}");
                        return Err(Reason::new(what));
                    }
                }
                self.expect_zero(operator, 4)?;
                Some(Same { builtin: B::MatrixDiag, options: None, inputs: 0..1 })
            }
            "MatrixSetDiagV2" | "MatrixSetDiagV3" => {
                let found = self.constant_integer(operator, 2)?;
                if found != 0 {
                    return Err(Reason::new(format!("its diagonal is {found}, expected 0")));
                }
                Some(Same { builtin: B::MatrixSetDiag, options: None, inputs: 0..2 })
            }
            _ => None,
        })
    }

    /// Refuses a constant that is not 0.
    fn expect_zero(&self, operator: &Operator<'_>, at: usize) -> Imported {
        let bytes = self.constant_bytes(self.input_tensor(operator, at)?)?;
        match bytes.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => {
                Err(Reason::new(format!("its input {at} is not 0, as the elements around it are")))
            }
        }
    }
}

fn padding(node: &Node<'_>) -> Imported<Padding> {
    Ok(if is_padded(node)? { Padding::Same } else { Padding::Valid })
}

/// The operator that takes the same inputs, and means the same without options.
fn without_options(operation: &str) -> Option<B> {
    Some(match operation {
        "Abs" => B::Abs,
        "Add" | "AddV2" => B::Add,
        "AddN" => B::AddN,
        "ArgMax" => B::ArgMax,
        "ArgMin" => B::ArgMin,
        "Atan2" => B::Atan2,
        "BatchToSpaceND" => B::BatchToSpaceNd,
        "Bitcast" => B::Bitcast,
        "BitwiseXor" => B::BitwiseXor,
        "BroadcastArgs" => B::BroadcastArgs,
        "BroadcastTo" => B::BroadcastTo,
        "Cast" => B::Cast,
        "Ceil" => B::Ceil,
        "ComplexAbs" => B::ComplexAbs,
        "Cos" => B::Cos,
        "Div" | "RealDiv" | "TruncateDiv" => B::Div,
        "Elu" => B::Elu,
        "Equal" => B::Equal,
        "Exp" => B::Exp,
        "ExpandDims" => B::ExpandDims,
        "Fill" => B::Fill,
        "Floor" => B::Floor,
        "FloorDiv" => B::FloorDiv,
        "FloorMod" => B::FloorMod,
        "Gather" => B::Gather,
        "GatherNd" => B::GatherNd,
        "Greater" => B::Greater,
        "GreaterEqual" => B::GreaterEqual,
        "Imag" => B::Imag,
        "LeftShift" => B::StablehloShiftLeft,
        "Less" => B::Less,
        "LessEqual" => B::LessEqual,
        "Log" => B::Log,
        "LogSoftmax" => B::LogSoftmax,
        "LogicalAnd" => B::LogicalAnd,
        "LogicalNot" => B::LogicalNot,
        "LogicalOr" => B::LogicalOr,
        "MatrixDiag" => B::MatrixDiag,
        "MatrixSetDiag" => B::MatrixSetDiag,
        "Maximum" => B::Maximum,
        "Minimum" => B::Minimum,
        "Mul" => B::Mul,
        "Neg" => B::Neg,
        "NotEqual" | "LogicalXor" => B::NotEqual,
        "Pad" => B::Pad,
        "PadV2" => B::Padv2,
        "Pow" => B::Pow,
        "RFFT2D" => B::Rfft2d,
        "Range" => B::Range,
        "Rank" => B::Rank,
        "Real" => B::Real,
        "Relu" => B::Relu,
        "Relu6" => B::Relu6,
        "Reshape" => B::Reshape,
        "ReverseV2" => B::ReverseV2,
        "RightShift" => B::RightShift,
        "Rint" | "Round" => B::Round,
        "Rsqrt" => B::Rsqrt,
        "ScatterNd" => B::ScatterNd,
        "SegmentSum" => B::SegmentSum,
        "Select" => B::Select,
        "SelectV2" => B::SelectV2,
        "Shape" => B::Shape,
        "Sigmoid" => B::Logistic,
        "Sign" => B::Sign,
        "Sin" => B::Sin,
        "Slice" => B::Slice,
        "SpaceToBatchND" => B::SpaceToBatchNd,
        "SparseToDense" => B::SparseToDense,
        "Split" => B::Split,
        "SplitV" => B::SplitV,
        "Sqrt" => B::Sqrt,
        "Square" => B::Square,
        "SquaredDifference" => B::SquaredDifference,
        "Sub" => B::Sub,
        "Tanh" => B::Tanh,
        "Tile" => B::Tile,
        "TopKV2" => B::TopkV2,
        "Transpose" => B::Transpose,
        "Unique" => B::Unique,
        "UnsortedSegmentMax" => B::UnsortedSegmentMax,
        "UnsortedSegmentMin" => B::UnsortedSegmentMin,
        "UnsortedSegmentProd" => B::UnsortedSegmentProd,
        "UnsortedSegmentSum" => B::UnsortedSegmentSum,
        "Where" => B::Where,
        "ZerosLike" => B::ZerosLike,
        _ => return None,
    })
}
