//! The operations, a file each or a file per tight family.
//!
//! The list below is the only place where an operation is entered.

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::OperationType;

#[cfg(test)]
pub(crate) mod testing;

/// Enters the operations: a row a Rust type, with the operations that it stands for.
macro_rules! operations {
    (
        implemented { $( $module:ident :: $Type:ident => $($Row:ident)+; )* }
        not implemented { $($Missing:ident)* }
    ) => {
        $( pub mod $module; )*
        $( pub use $module::$Type; )*

        /// The decoded arguments of any operation.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)] // Each variant is named after the type it holds.
        pub enum AnyOperation {
            $( $Type($Type), )*
        }

        /// The argument types of an operation; `None` if this build does not define it.
        pub fn signature(operation: OperationType) -> Option<&'static Signature> {
            match operation {
                $( $(OperationType::$Row)|+ => Some($Type::signature(operation)), )*
                $(OperationType::$Missing |)*
                OperationType::OemOperation | OperationType::Extension(_) => None,
            }
        }

        /// See [`Operation::since`].
        pub fn since(call: &Call<'_>) -> Since {
            match call.operation() {
                $( $(OperationType::$Row)|+ => $Type::since(call), )*
                $(OperationType::$Missing |)*
                OperationType::OemOperation | OperationType::Extension(_) => Since::ALWAYS,
            }
        }

        /// See [`Operation::validate`].
        ///
        /// # Errors
        /// [`Fault::Invalid`], or [`Fault::NotImplemented`] without a definition.
        pub fn validate(call: &Call<'_>) -> Result<(), Fault> {
            match call.operation() {
                $( $(OperationType::$Row)|+ => $Type::validate(call), )*
                $(OperationType::$Missing |)*
                OperationType::OemOperation | OperationType::Extension(_) => {
                    Err(Fault::NotImplemented { operation: call.operation() })
                }
            }
        }

        impl AnyOperation {
            /// See [`Operation::decode`].
            ///
            /// # Errors
            /// As [`Operation::decode`]; [`Fault::NotImplemented`] without a definition.
            pub fn decode(call: &Call<'_>) -> Result<Self, Fault> {
                match call.operation() {
                    $( $(OperationType::$Row)|+ => $Type::decode(call).map(Self::$Type), )*
                    $(OperationType::$Missing |)*
                    OperationType::OemOperation | OperationType::Extension(_) => {
                        Err(Fault::NotImplemented { operation: call.operation() })
                    }
                }
            }

            /// See [`Operation::output_shapes`].
            ///
            /// # Errors
            /// As [`Operation::output_shapes`].
            pub fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
                match self {
                    $( Self::$Type(operation) => operation.output_shapes(call), )*
                }
            }

            /// See [`Operation::reference`].
            ///
            /// # Errors
            /// As [`Operation::reference`].
            pub fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
                match self {
                    $( Self::$Type(operation) => operation.reference(call), )*
                }
            }
        }
    };
}

operations! {
    implemented {
        activation::Activation => Relu Relu1 Relu6 Tanh Logistic;
        arg_min_max::ArgMinMax => Argmax Argmin;
        arithmetic::Arithmetic => Add Sub Mul Div;
        axis_aligned_bbox_transform::AxisAlignedBboxTransform => AxisAlignedBboxTransform;
        batch_matmul::BatchMatmul => BatchMatmul;
        batch_space::BatchSpace => BatchToSpaceNd SpaceToBatchNd;
        bidirectional_sequence_lstm::BidirectionalSequenceLstm => BidirectionalSequenceLstm;
        bidirectional_sequence_rnn::BidirectionalSequenceRnn => BidirectionalSequenceRnn;
        box_with_nms_limit::BoxWithNmsLimit => BoxWithNmsLimit;
        cast::Cast => Cast;
        channel_shuffle::ChannelShuffle => ChannelShuffle;
        comparison::Comparison => Equal NotEqual Less LessEqual Greater GreaterEqual;
        concatenation::Concatenation => Concatenation;
        control_flow::ControlFlow => If While;
        conv_2d::Conv2d => Conv2d;
        depth_space::DepthSpace => DepthToSpace SpaceToDepth;
        depthwise_conv_2d::DepthwiseConv2d => DepthwiseConv2d;
        dequantize::Dequantize => Dequantize;
        detection_postprocessing::DetectionPostprocessing => DetectionPostprocessing;
        elementwise::Elementwise => Abs Exp Floor Log Neg Rsqrt Sin Sqrt;
        elu::Elu => Elu;
        embedding_lookup::EmbeddingLookup => EmbeddingLookup;
        expand_dims::ExpandDims => ExpandDims;
        fill::Fill => Fill;
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
        maximum_minimum::MaximumMinimum => Maximum Minimum;
        mirror_pad::MirrorPad => MirrorPad;
        pack::Pack => Pack;
        pad::Pad => Pad PadV2;
        pooling::Pooling => AveragePool2d MaxPool2d L2Pool2d;
        pow::Pow => Pow;
        prelu::Prelu => Prelu;
        quantize::Quantize => Quantize;
        quantized_16bit_lstm::Quantized16bitLstm => Quantized16bitLstm;
        quantized_lstm::QuantizedLstm => QuantizedLstm;
        random_multinomial::RandomMultinomial => RandomMultinomial;
        rank::Rank => Rank;
        reduce::Reduce => Mean ReduceAll ReduceAny ReduceMax ReduceMin ReduceProd ReduceSum;
        reshape::Reshape => Reshape;
        resize::Resize => ResizeBilinear ResizeNearestNeighbor;
        reverse::Reverse => Reverse;
        rnn::Rnn => Rnn;
        roi_align::RoiAlign => RoiAlign;
        roi_pooling::RoiPooling => RoiPooling;
        select::Select => Select;
        slice::Slice => Slice;
        softmax::Softmax => Softmax;
        split::Split => Split;
        squeeze::Squeeze => Squeeze;
        strided_slice::StridedSlice => StridedSlice;
        svdf::Svdf => Svdf;
        tile::Tile => Tile;
        top_k_v2::TopKV2 => TopkV2;
        transpose::Transpose => Transpose;
        transpose_conv_2d::TransposeConv2d => TransposeConv2d;
        unidirectional_sequence_lstm::UnidirectionalSequenceLstm => UnidirectionalSequenceLstm;
        unidirectional_sequence_rnn::UnidirectionalSequenceRnn => UnidirectionalSequenceRnn;
    }
    not implemented {
    }
}
