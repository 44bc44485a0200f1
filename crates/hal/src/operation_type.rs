//! [`OperationType`]: the operations that a model is made of.

use crate::codes::extensible;

extensible! {
    /// What an operation of a model does: one of the interface's own operations, or an
    /// extension's. What each one means is in the `ops` crate.
    OperationType, "OperationType" {
        Add = 0, "ADD", V1_0;
        AveragePool2d = 1, "AVERAGE_POOL_2D", V1_0;
        Concatenation = 2, "CONCATENATION", V1_0;
        Conv2d = 3, "CONV_2D", V1_0;
        DepthwiseConv2d = 4, "DEPTHWISE_CONV_2D", V1_0;
        DepthToSpace = 5, "DEPTH_TO_SPACE", V1_0;
        Dequantize = 6, "DEQUANTIZE", V1_0;
        EmbeddingLookup = 7, "EMBEDDING_LOOKUP", V1_0;
        Floor = 8, "FLOOR", V1_0;
        FullyConnected = 9, "FULLY_CONNECTED", V1_0;
        HashtableLookup = 10, "HASHTABLE_LOOKUP", V1_0;
        L2Normalization = 11, "L2_NORMALIZATION", V1_0;
        L2Pool2d = 12, "L2_POOL_2D", V1_0;
        LocalResponseNormalization = 13, "LOCAL_RESPONSE_NORMALIZATION", V1_0;
        Logistic = 14, "LOGISTIC", V1_0;
        LshProjection = 15, "LSH_PROJECTION", V1_0;
        Lstm = 16, "LSTM", V1_0;
        MaxPool2d = 17, "MAX_POOL_2D", V1_0;
        Mul = 18, "MUL", V1_0;
        Relu = 19, "RELU", V1_0;
        Relu1 = 20, "RELU1", V1_0;
        Relu6 = 21, "RELU6", V1_0;
        Reshape = 22, "RESHAPE", V1_0;
        ResizeBilinear = 23, "RESIZE_BILINEAR", V1_0;
        Rnn = 24, "RNN", V1_0;
        Softmax = 25, "SOFTMAX", V1_0;
        SpaceToDepth = 26, "SPACE_TO_DEPTH", V1_0;
        Svdf = 27, "SVDF", V1_0;
        Tanh = 28, "TANH", V1_0;
        BatchToSpaceNd = 29, "BATCH_TO_SPACE_ND", V1_1;
        Div = 30, "DIV", V1_1;
        Mean = 31, "MEAN", V1_1;
        Pad = 32, "PAD", V1_1;
        SpaceToBatchNd = 33, "SPACE_TO_BATCH_ND", V1_1;
        Squeeze = 34, "SQUEEZE", V1_1;
        StridedSlice = 35, "STRIDED_SLICE", V1_1;
        Sub = 36, "SUB", V1_1;
        Transpose = 37, "TRANSPOSE", V1_1;
        Abs = 38, "ABS", V1_2;
        Argmax = 39, "ARGMAX", V1_2;
        Argmin = 40, "ARGMIN", V1_2;
        AxisAlignedBboxTransform = 41, "AXIS_ALIGNED_BBOX_TRANSFORM", V1_2;
        BidirectionalSequenceLstm = 42, "BIDIRECTIONAL_SEQUENCE_LSTM", V1_2;
        BidirectionalSequenceRnn = 43, "BIDIRECTIONAL_SEQUENCE_RNN", V1_2;
        BoxWithNmsLimit = 44, "BOX_WITH_NMS_LIMIT", V1_2;
        Cast = 45, "CAST", V1_2;
        ChannelShuffle = 46, "CHANNEL_SHUFFLE", V1_2;
        DetectionPostprocessing = 47, "DETECTION_POSTPROCESSING", V1_2;
        Equal = 48, "EQUAL", V1_2;
        Exp = 49, "EXP", V1_2;
        ExpandDims = 50, "EXPAND_DIMS", V1_2;
        Gather = 51, "GATHER", V1_2;
        GenerateProposals = 52, "GENERATE_PROPOSALS", V1_2;
        Greater = 53, "GREATER", V1_2;
        GreaterEqual = 54, "GREATER_EQUAL", V1_2;
        GroupedConv2d = 55, "GROUPED_CONV_2D", V1_2;
        HeatmapMaxKeypoint = 56, "HEATMAP_MAX_KEYPOINT", V1_2;
        InstanceNormalization = 57, "INSTANCE_NORMALIZATION", V1_2;
        Less = 58, "LESS", V1_2;
        LessEqual = 59, "LESS_EQUAL", V1_2;
        Log = 60, "LOG", V1_2;
        LogicalAnd = 61, "LOGICAL_AND", V1_2;
        LogicalNot = 62, "LOGICAL_NOT", V1_2;
        LogicalOr = 63, "LOGICAL_OR", V1_2;
        LogSoftmax = 64, "LOG_SOFTMAX", V1_2;
        Maximum = 65, "MAXIMUM", V1_2;
        Minimum = 66, "MINIMUM", V1_2;
        Neg = 67, "NEG", V1_2;
        NotEqual = 68, "NOT_EQUAL", V1_2;
        PadV2 = 69, "PAD_V2", V1_2;
        Pow = 70, "POW", V1_2;
        Prelu = 71, "PRELU", V1_2;
        Quantize = 72, "QUANTIZE", V1_2;
        Quantized16bitLstm = 73, "QUANTIZED_16BIT_LSTM", V1_2;
        RandomMultinomial = 74, "RANDOM_MULTINOMIAL", V1_2;
        ReduceAll = 75, "REDUCE_ALL", V1_2;
        ReduceAny = 76, "REDUCE_ANY", V1_2;
        ReduceMax = 77, "REDUCE_MAX", V1_2;
        ReduceMin = 78, "REDUCE_MIN", V1_2;
        ReduceProd = 79, "REDUCE_PROD", V1_2;
        ReduceSum = 80, "REDUCE_SUM", V1_2;
        RoiAlign = 81, "ROI_ALIGN", V1_2;
        RoiPooling = 82, "ROI_POOLING", V1_2;
        Rsqrt = 83, "RSQRT", V1_2;
        Select = 84, "SELECT", V1_2;
        Sin = 85, "SIN", V1_2;
        Slice = 86, "SLICE", V1_2;
        Split = 87, "SPLIT", V1_2;
        Sqrt = 88, "SQRT", V1_2;
        Tile = 89, "TILE", V1_2;
        TopkV2 = 90, "TOPK_V2", V1_2;
        TransposeConv2d = 91, "TRANSPOSE_CONV_2D", V1_2;
        UnidirectionalSequenceLstm = 92, "UNIDIRECTIONAL_SEQUENCE_LSTM", V1_2;
        UnidirectionalSequenceRnn = 93, "UNIDIRECTIONAL_SEQUENCE_RNN", V1_2;
        ResizeNearestNeighbor = 94, "RESIZE_NEAREST_NEIGHBOR", V1_2;
        QuantizedLstm = 95, "QUANTIZED_LSTM", V1_3;
        If = 96, "IF", V1_3;
        While = 97, "WHILE", V1_3;
        Elu = 98, "ELU", V1_3;
        HardSwish = 99, "HARD_SWISH", V1_3;
        Fill = 100, "FILL", V1_3;
        Rank = 101, "RANK", V1_3;
        BatchMatmul = 102, "BATCH_MATMUL", FeatureLevel6;
        Pack = 103, "PACK", FeatureLevel6;
        MirrorPad = 104, "MIRROR_PAD", FeatureLevel7;
        Reverse = 105, "REVERSE", FeatureLevel7;
        /// Its meaning only the vendor knows.
        OemOperation = 10000, "OEM_OPERATION", V1_0;
    }
}

impl OperationType {
    /// Whether only a vendor can judge this operation.
    pub const fn is_oem(self) -> bool {
        matches!(self, Self::OemOperation)
    }

    /// Whether it runs other subgraphs of the model.
    pub const fn is_control_flow(self) -> bool {
        matches!(self, Self::If | Self::While)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HalVersion;

    #[test]
    fn model_4_codes_just_outside_the_ranges_are_no_operations() {
        for code in [106, 9999, 10001, 0xFFFF] {
            assert!(OperationType::from_code(code).is_err(), "{code}");
        }
    }

    #[test]
    fn the_ranges_of_the_versions_are_those_of_section_1() {
        for (version, last) in [
            (HalVersion::V1_0, 28),
            (HalVersion::V1_1, 37),
            (HalVersion::V1_2, 94),
            (HalVersion::V1_3, 101),
            (HalVersion::FeatureLevel6, 103),
            (HalVersion::FeatureLevel7, 105),
        ] {
            let greatest = OperationType::FUNDAMENTAL
                .iter()
                .filter(|operation| operation.since() <= version && !operation.is_oem())
                .map(|operation| operation.code())
                .max();
            assert_eq!(greatest, Some(last), "{version}");
        }
    }

    #[test]
    fn every_operation_goes_there_and_back() {
        for operation in OperationType::FUNDAMENTAL {
            assert_eq!(OperationType::from_code(operation.code()), Ok(*operation));
            assert_eq!(OperationType::from_name(&operation.to_string()), Some(*operation));
        }
        assert_eq!(OperationType::FUNDAMENTAL.len(), 107);
    }
}
