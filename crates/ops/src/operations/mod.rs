//! The operations, a file each or a file per tight family.
//!
//! The list below is the only place where an operation is entered.

use crate::call::{ArgumentSource, Call, Output, Since};
use crate::error::Fault;
use crate::extension::ExtensionOperation;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::OperationType;

pub mod extension;
#[cfg(test)]
pub(crate) mod testing;

/// Enters the operations: a row a Rust type, with the operations that it stands for, and those of the
/// extension that it stands for as well. Those that only the extension has are in another section.
macro_rules! operations {
    (
        implemented { $( $module:ident :: $Type:ident => $($Row:ident)+ $(, extension $($Same:ident)+)?; )* }
        not implemented { $($Missing:ident)* }
        extension { $( $place:ident :: $Own:ident => $($Number:ident)+; )* }
    ) => {
        $( pub mod $module; )*
        $( pub use $module::$Type; )*
        $( pub use extension::$place::$Own; )*

        /// The decoded arguments of any operation.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)] // Each variant is named after the type it holds.
        pub enum AnyOperation {
            $( $Type($Type), )*
            $( $Own($Own), )*
        }

        /// Calls a function of the type that stands for an operation.
        macro_rules! dispatch {
            ($operation:expr, $known:ident => $then:expr, $none:expr) => {
                match $operation {
                    $( $(OperationType::$Row)|+ => { type $known = $Type; $then } )*
                    $(OperationType::$Missing |)*
                    OperationType::OemOperation => $none,
                    OperationType::Extension(_) => match ExtensionOperation::of($operation) {
                        $( $( $(Some(ExtensionOperation::$Same))|+ => { type $known = $Type; $then } )? )*
                        $( $(Some(ExtensionOperation::$Number))|+ => { type $known = $Own; $then } )*
                        None => $none,
                    },
                }
            };
        }

        /// The argument types of an operation; `None` if this build does not define it.
        pub fn signature(operation: OperationType) -> Option<&'static Signature> {
            match ExtensionOperation::of(operation) {
                Some(extended) => Some(extended.signature()),
                None => dispatch!(operation, Known => Known::SIGNATURES, &[])
                    .iter()
                    .copied()
                    .find(|signature| signature.operation == operation),
            }
        }

        /// See [`Operation::since`].
        pub fn since(call: &Call<'_>) -> Since {
            dispatch!(call.operation(), Known => Known::since(call), Since::ALWAYS)
        }

        /// See [`Operation::validate`].
        ///
        /// # Errors
        /// [`Fault::Invalid`], or [`Fault::NotImplemented`] without a definition.
        pub fn validate(call: &Call<'_>) -> Result<(), Fault> {
            let operation = call.operation();
            dispatch!(operation, Known => Known::validate(call), Err(Fault::NotImplemented { operation }))
        }

        impl AnyOperation {
            /// See [`Operation::decode`].
            ///
            /// # Errors
            /// As [`Operation::decode`]; [`Fault::NotImplemented`] without a definition.
            pub fn decode(call: &Call<'_>) -> Result<Self, Fault> {
                let operation = call.operation();
                dispatch!(
                    operation,
                    Known => Known::decode(call).map(Self::from),
                    Err(Fault::NotImplemented { operation })
                )
            }

            /// See [`Operation::output_shapes`].
            ///
            /// # Errors
            /// As [`Operation::output_shapes`].
            pub fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
                match self {
                    $( Self::$Type(operation) => operation.output_shapes(call), )*
                    $( Self::$Own(operation) => operation.output_shapes(call), )*
                }
            }

            /// See [`Operation::reference`].
            ///
            /// # Errors
            /// As [`Operation::reference`].
            pub fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
                match self {
                    $( Self::$Type(operation) => operation.reference(call), )*
                    $( Self::$Own(operation) => operation.reference(call), )*
                }
            }
        }

        $( impl From<$Type> for AnyOperation {
            fn from(operation: $Type) -> Self {
                Self::$Type(operation)
            }
        } )*
        $( impl From<$Own> for AnyOperation {
            fn from(operation: $Own) -> Self {
                Self::$Own(operation)
            }
        } )*
    };
}

operations! {
    implemented {
        activation::Activation => Relu Relu1 Relu6 Tanh Logistic;
        arg_min_max::ArgMinMax => Argmax Argmin, extension Argmax Argmin;
        arithmetic::Arithmetic => Add Sub Mul Div, extension Add Sub Mul;
        axis_aligned_bbox_transform::AxisAlignedBboxTransform => AxisAlignedBboxTransform;
        batch_matmul::BatchMatmul => BatchMatmul;
        batch_space::BatchSpace => BatchToSpaceNd SpaceToBatchNd, extension BatchToSpaceNd SpaceToBatchNd;
        bidirectional_sequence_lstm::BidirectionalSequenceLstm => BidirectionalSequenceLstm;
        bidirectional_sequence_rnn::BidirectionalSequenceRnn => BidirectionalSequenceRnn;
        box_with_nms_limit::BoxWithNmsLimit => BoxWithNmsLimit;
        cast::Cast => Cast;
        channel_shuffle::ChannelShuffle => ChannelShuffle;
        comparison::Comparison => Equal NotEqual Less LessEqual Greater GreaterEqual, extension Equal NotEqual Less LessEqual Greater GreaterEqual;
        concatenation::Concatenation => Concatenation, extension Concatenation;
        control_flow::ControlFlow => If While;
        conv_2d::Conv2d => Conv2d;
        depth_space::DepthSpace => DepthToSpace SpaceToDepth, extension DepthToSpace SpaceToDepth;
        depthwise_conv_2d::DepthwiseConv2d => DepthwiseConv2d;
        dequantize::Dequantize => Dequantize, extension Dequantize;
        detection_postprocessing::DetectionPostprocessing => DetectionPostprocessing;
        elementwise::Elementwise => Abs Exp Floor Log Neg Rsqrt Sin Sqrt, extension Abs Neg;
        elu::Elu => Elu;
        embedding_lookup::EmbeddingLookup => EmbeddingLookup;
        expand_dims::ExpandDims => ExpandDims, extension ExpandDims;
        fill::Fill => Fill, extension Fill;
        fully_connected::FullyConnected => FullyConnected;
        gather::Gather => Gather;
        generate_proposals::GenerateProposals => GenerateProposals;
        grouped_conv_2d::GroupedConv2d => GroupedConv2d;
        hard_swish::HardSwish => HardSwish;
        hashtable_lookup::HashtableLookup => HashtableLookup;
        heatmap_max_keypoint::HeatmapMaxKeypoint => HeatmapMaxKeypoint;
        instance_normalization::InstanceNormalization => InstanceNormalization;
        l2_normalization::L2Normalization => L2Normalization;
        local_response_normalization::LocalResponseNormalization => LocalResponseNormalization;
        log_softmax::LogSoftmax => LogSoftmax;
        logical::Logical => LogicalAnd LogicalOr LogicalNot;
        lsh_projection::LshProjection => LshProjection;
        lstm::Lstm => Lstm;
        maximum_minimum::MaximumMinimum => Maximum Minimum, extension Maximum Minimum;
        mirror_pad::MirrorPad => MirrorPad, extension MirrorPad;
        pack::Pack => Pack, extension Pack;
        pad::Pad => Pad PadV2, extension Pad PadV2;
        pooling::Pooling => AveragePool2d MaxPool2d L2Pool2d;
        pow::Pow => Pow;
        prelu::Prelu => Prelu;
        quantize::Quantize => Quantize, extension Quantize;
        quantized_16bit_lstm::Quantized16bitLstm => Quantized16bitLstm;
        quantized_lstm::QuantizedLstm => QuantizedLstm;
        random_multinomial::RandomMultinomial => RandomMultinomial;
        rank::Rank => Rank;
        reduce::Reduce => Mean ReduceAll ReduceAny ReduceMax ReduceMin ReduceProd ReduceSum, extension Mean ReduceAll ReduceAny ReduceMax ReduceMin ReduceProd ReduceSum;
        reshape::Reshape => Reshape, extension Reshape;
        resize::Resize => ResizeBilinear ResizeNearestNeighbor;
        reverse::Reverse => Reverse, extension Reverse;
        rnn::Rnn => Rnn;
        roi_align::RoiAlign => RoiAlign;
        roi_pooling::RoiPooling => RoiPooling;
        select::Select => Select;
        slice::Slice => Slice, extension Slice;
        softmax::Softmax => Softmax;
        split::Split => Split, extension Split;
        squeeze::Squeeze => Squeeze, extension Squeeze;
        strided_slice::StridedSlice => StridedSlice, extension StridedSlice;
        svdf::Svdf => Svdf;
        tile::Tile => Tile, extension Tile;
        top_k_v2::TopKV2 => TopkV2, extension TopkV2;
        transpose::Transpose => Transpose, extension Transpose;
        transpose_conv_2d::TransposeConv2d => TransposeConv2d;
        unidirectional_sequence_lstm::UnidirectionalSequenceLstm => UnidirectionalSequenceLstm;
        unidirectional_sequence_rnn::UnidirectionalSequenceRnn => UnidirectionalSequenceRnn;
    }
    not implemented {
    }
    extension {
        batch_gather::BatchGather => Gather;
        binary::Binary => Atan2 BitwiseAnd BitwiseXor LeftShift Pow RightShift;
        bitcast::Bitcast => Bitcast;
        broadcast_args::BroadcastArgs => BroadcastArgs;
        bucketize::Bucketize => Bucketize;
        cast::Convert => Cast;
        choice::Choice => Select;
        complex::OfComplex => ComplexAbs Imag Real;
        conv_3d::Conv3d => Conv3d Conv3dTranspose;
        cumulative_sum::CumulativeSum => Cumsum;
        division::Division => Div FloorDiv FloorMod;
        dynamic_conv_2d::DynamicConv2d => DynamicConv2d;
        dynamic_fully_connected::DynamicFullyConnected => DynamicFullyConnected;
        dynamic_round::DynamicRound => DynamicRound;
        dynamic_update_slice::DynamicUpdateSlice => DynamicUpdateSlice;
        fourier::RealFourier => Rfft2d;
        gather_nd::GatherNd => GatherNd;
        gather_slices::GatherSlices => GatherSlices;
        matrix_diagonal::MatrixDiagonal => MatrixDiag MatrixSetDiag;
        non_max_suppression::NonMaxSuppression => NonMaxSuppressionV4 NonMaxSuppressionV5;
        nonzero::Nonzero => Where;
        one_hot::OneHot => OneHot;
        random::Random => Multinomial RandomStandardNormal RandomUniform;
        range::Range => Range;
        reduce_window::ReduceWindow => ReduceWindow;
        resize_to::ResizeTo => ResizeTo;
        top_k::TopK => TopK;
        reverse_sequence::ReverseSequence => ReverseSequence;
        rng_bit_generator::RngBitGenerator => RngBitGenerator;
        scatter_nd::ScatterNd => ScatterNd;
        scatter_slices::ScatterSlices => ScatterSlices;
        segments::Segments => SegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum;
        shape_of::ShapeOf => Shape;
        sparse_to_dense::SparseToDense => SparseToDense;
        unary::Unary => Ceil Cos Erf Gelu Round Sign;
        unique::Unique => Unique;
    }
}

// Here and not where the types are: what belongs to an operation is found by this file's list alone.

impl Signature {
    /// The signature of an operation, if this build defines it.
    pub fn of(operation: OperationType) -> Option<&'static Self> {
        signature(operation)
    }
}

impl<'a> Call<'a> {
    /// An operation with these arguments. Names of arguments, for messages, are taken from its
    /// signature.
    pub fn new(
        operation: OperationType,
        inputs: impl IntoIterator<Item = ArgumentSource<'a>>,
        outputs: impl IntoIterator<Item = ArgumentSource<'a>>,
    ) -> Self {
        let mut call = Self::without_names(operation, inputs, outputs);
        if let Some(signature) = Signature::of(operation) {
            signature.name_arguments(&mut call);
        }
        call
    }
}
