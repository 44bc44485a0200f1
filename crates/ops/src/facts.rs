//! What is true of an operation whatever it computes, for programs that rewrite models.

use crate::operations::{AnyOperation, Logical};

impl AnyOperation {
    /// Of an operation that computes each element of its outputs of the elements at the same place, how
    /// many of its first inputs it takes them of, with broadcasting; `None` of others. Inputs behind those
    /// are the same for all elements.
    ///
    /// To move the elements of those inputs and outputs in the same way changes nothing else. So it is
    /// with axes in another order, but for scales by channel, whose axis moves too.
    ///
    /// ```
    /// use nnhal_ops::AnyOperation;
    /// use nnhal_ops::operations::{Select, Transpose};
    ///
    /// assert_eq!(AnyOperation::from(Select).by_element(), Some(3));
    /// assert_eq!(AnyOperation::from(Transpose { permutation: vec![1, 0] }).by_element(), None);
    /// ```
    pub fn by_element(&self) -> Option<usize> {
        // Without a wildcard, so that a new operation has to answer.
        match self {
            Self::Activation(_)
            | Self::Bucketize(_)
            | Self::Cast(_)
            | Self::Convert(_)
            | Self::Dequantize(_)
            | Self::Elementwise(_)
            | Self::Elu(_)
            | Self::HardSwish(_)
            | Self::Logical(Logical::Not)
            | Self::OfComplex(_)
            | Self::Quantize(_)
            | Self::Unary(_) => Some(1),
            Self::Arithmetic(_)
            | Self::Binary(_)
            | Self::Comparison(_)
            | Self::Division(_)
            | Self::Logical(Logical::And | Logical::Or)
            | Self::MaximumMinimum(_)
            | Self::Pow(_)
            | Self::Prelu(_) => Some(2),
            Self::Choice(_) | Self::Select(_) => Some(3),
            Self::ArgMinMax(_)
            | Self::AxisAlignedBboxTransform(_)
            | Self::BatchGather(_)
            | Self::BatchMatmul(_)
            | Self::BatchSpace(_)
            | Self::BidirectionalSequenceLstm(_)
            | Self::BidirectionalSequenceRnn(_)
            | Self::Bitcast(_)
            | Self::BoxWithNmsLimit(_)
            | Self::BroadcastArgs(_)
            | Self::ChannelShuffle(_)
            | Self::Concatenation(_)
            | Self::ControlFlow(_)
            | Self::Conv2d(_)
            | Self::Conv3d(_)
            | Self::CumulativeSum(_)
            | Self::DepthSpace(_)
            | Self::DepthwiseConv2d(_)
            | Self::DetectionPostprocessing(_)
            | Self::DynamicFullyConnected(_)
            | Self::DynamicUpdateSlice(_)
            | Self::EmbeddingLookup(_)
            | Self::ExpandDims(_)
            | Self::Fill(_)
            | Self::FullyConnected(_)
            | Self::Gather(_)
            | Self::GatherNd(_)
            | Self::GatherSlices(_)
            | Self::GenerateProposals(_)
            | Self::GroupedConv2d(_)
            | Self::HashtableLookup(_)
            | Self::HeatmapMaxKeypoint(_)
            | Self::InstanceNormalization(_)
            | Self::L2Normalization(_)
            | Self::LocalResponseNormalization(_)
            | Self::LogSoftmax(_)
            | Self::LshProjection(_)
            | Self::Lstm(_)
            | Self::MatrixDiagonal(_)
            | Self::MirrorPad(_)
            | Self::NonMaxSuppression(_)
            | Self::Nonzero(_)
            | Self::OneHot(_)
            | Self::Pack(_)
            | Self::Pad(_)
            | Self::Pooling(_)
            | Self::Quantized16bitLstm(_)
            | Self::QuantizedLstm(_)
            | Self::Random(_)
            | Self::RandomMultinomial(_)
            | Self::Range(_)
            | Self::Rank(_)
            | Self::RealFourier(_)
            | Self::Reduce(_)
            | Self::ReduceWindow(_)
            | Self::Reshape(_)
            | Self::Resize(_)
            | Self::Reverse(_)
            | Self::ReverseSequence(_)
            | Self::Rnn(_)
            | Self::RngBitGenerator(_)
            | Self::RoiAlign(_)
            | Self::RoiPooling(_)
            | Self::ScatterNd(_)
            | Self::ScatterSlices(_)
            | Self::Segments(_)
            | Self::ShapeOf(_)
            | Self::Slice(_)
            | Self::Softmax(_)
            | Self::SparseToDense(_)
            | Self::Split(_)
            | Self::Squeeze(_)
            | Self::StridedSlice(_)
            | Self::Svdf(_)
            | Self::Tile(_)
            | Self::TopKV2(_)
            | Self::Transpose(_)
            | Self::TransposeConv2d(_)
            | Self::UnidirectionalSequenceLstm(_)
            | Self::UnidirectionalSequenceRnn(_)
            | Self::Unique(_) => None,
        }
    }
}
