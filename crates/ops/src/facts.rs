//! What is true of an operation whatever it computes, for programs that rewrite models.

use crate::operations::{AnyOperation, Logical};
use crate::rules::border::Border;

/// How an operation moves elements that it does not change: all those of its outputs are of its first input,
/// whatever the values of the other inputs are when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    /// All stay in their order; lengths may be others.
    InOrder,
    /// Some or all, perhaps several times, to other places.
    ToPlaces,
}

/// The axes that an operation names, counted from the front.
#[derive(Debug, PartialEq)]
pub enum NamedAxes<'a> {
    /// One, of inputs and outputs, which have the same axes. What is computed does not depend on the order of
    /// the others.
    Along(&'a mut usize),
    /// All, by what is added before and behind. Outputs have the input's axes.
    Borders(&'a mut Vec<Border>),
    /// Those that outputs have with a length of 1, or no more.
    Reduced {
        /// In rising order, each once.
        axes: &'a mut Vec<usize>,
        /// Whether outputs have them.
        keep_dims: bool,
    },
    /// None, or in another way.
    Others,
}

/// What an operation does with elements, as far as one word says it.
enum Kind {
    ByElement(usize),
    Moves(Movement),
    Other,
}

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
        match self.kind() {
            Kind::ByElement(inputs) => Some(inputs),
            Kind::Moves(_) | Kind::Other => None,
        }
    }

    /// How it moves elements, if it does nothing else; `None` of others.
    ///
    /// ```
    /// use nnhal_ops::AnyOperation;
    /// use nnhal_ops::facts::Movement;
    /// use nnhal_ops::operations::{Select, Transpose};
    ///
    /// let transpose = AnyOperation::from(Transpose { permutation: vec![1, 0] });
    /// assert_eq!(transpose.movement(), Some(Movement::ToPlaces));
    /// assert_eq!(AnyOperation::from(Select).movement(), None);
    /// ```
    pub fn movement(&self) -> Option<Movement> {
        match self.kind() {
            Kind::Moves(movement) => Some(movement),
            Kind::ByElement(_) | Kind::Other => None,
        }
    }

    fn kind(&self) -> Kind {
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
            | Self::Unary(_) => Kind::ByElement(1),
            Self::Arithmetic(_)
            | Self::Binary(_)
            | Self::Comparison(_)
            | Self::Division(_)
            | Self::Logical(Logical::And | Logical::Or)
            | Self::MaximumMinimum(_)
            | Self::Pow(_)
            | Self::Prelu(_) => Kind::ByElement(2),
            Self::Choice(_) | Self::Select(_) => Kind::ByElement(3),
            Self::ExpandDims(_) | Self::Reshape(_) | Self::Squeeze(_) => {
                Kind::Moves(Movement::InOrder)
            }
            Self::ChannelShuffle(_)
            | Self::Reverse(_)
            | Self::Slice(_)
            | Self::Split(_)
            | Self::StridedSlice(_)
            | Self::Tile(_)
            | Self::Transpose(_) => Kind::Moves(Movement::ToPlaces),
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
            | Self::Concatenation(_)
            | Self::ControlFlow(_)
            | Self::Conv2d(_)
            | Self::Conv3d(_)
            | Self::CumulativeSum(_)
            | Self::DepthSpace(_)
            | Self::DepthwiseConv2d(_)
            | Self::DetectionPostprocessing(_)
            | Self::DynamicConv2d(_)
            | Self::DynamicFullyConnected(_)
            | Self::DynamicRound(_)
            | Self::DynamicUpdateSlice(_)
            | Self::EmbeddingLookup(_)
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
            | Self::Resize(_)
            | Self::ResizeTo(_)
            | Self::ReverseSequence(_)
            | Self::RngBitGenerator(_)
            | Self::Rnn(_)
            | Self::RoiAlign(_)
            | Self::RoiPooling(_)
            | Self::ScatterNd(_)
            | Self::ScatterSlices(_)
            | Self::Segments(_)
            | Self::ShapeOf(_)
            | Self::Softmax(_)
            | Self::SparseToDense(_)
            | Self::Svdf(_)
            | Self::TopKV2(_)
            | Self::TransposeConv2d(_)
            | Self::UnidirectionalSequenceLstm(_)
            | Self::UnidirectionalSequenceRnn(_)
            | Self::Unique(_) => Kind::Other,
        }
    }

    /// The axes that it names, to be changed with the order of its inputs' axes.
    pub fn named_axes(&mut self) -> NamedAxes<'_> {
        // Without a wildcard here too.
        match self {
            Self::ChannelShuffle(it) => NamedAxes::Along(&mut it.axis),
            Self::Concatenation(it) => NamedAxes::Along(&mut it.axis),
            Self::CumulativeSum(it) => NamedAxes::Along(&mut it.axis),
            Self::L2Normalization(it) => NamedAxes::Along(&mut it.axis),
            Self::LocalResponseNormalization(it) => NamedAxes::Along(&mut it.axis),
            Self::LogSoftmax(it) => NamedAxes::Along(&mut it.axis),
            Self::Reverse(it) => NamedAxes::Along(&mut it.axis),
            Self::Softmax(it) => NamedAxes::Along(&mut it.axis),
            Self::Split(it) => NamedAxes::Along(&mut it.axis),
            Self::MirrorPad(it) => NamedAxes::Borders(&mut it.borders),
            Self::Pad(it) => NamedAxes::Borders(&mut it.borders),
            Self::Reduce(it) => NamedAxes::Reduced { axes: &mut it.axes, keep_dims: it.keep_dims },
            Self::Activation(_)
            | Self::ArgMinMax(_)
            | Self::Arithmetic(_)
            | Self::AxisAlignedBboxTransform(_)
            | Self::BatchGather(_)
            | Self::BatchMatmul(_)
            | Self::BatchSpace(_)
            | Self::BidirectionalSequenceLstm(_)
            | Self::BidirectionalSequenceRnn(_)
            | Self::Binary(_)
            | Self::Bitcast(_)
            | Self::BoxWithNmsLimit(_)
            | Self::BroadcastArgs(_)
            | Self::Bucketize(_)
            | Self::Cast(_)
            | Self::Choice(_)
            | Self::Comparison(_)
            | Self::ControlFlow(_)
            | Self::Conv2d(_)
            | Self::Conv3d(_)
            | Self::Convert(_)
            | Self::DepthSpace(_)
            | Self::DepthwiseConv2d(_)
            | Self::Dequantize(_)
            | Self::DetectionPostprocessing(_)
            | Self::Division(_)
            | Self::DynamicConv2d(_)
            | Self::DynamicFullyConnected(_)
            | Self::DynamicRound(_)
            | Self::DynamicUpdateSlice(_)
            | Self::Elementwise(_)
            | Self::Elu(_)
            | Self::EmbeddingLookup(_)
            | Self::ExpandDims(_)
            | Self::Fill(_)
            | Self::FullyConnected(_)
            | Self::Gather(_)
            | Self::GatherNd(_)
            | Self::GatherSlices(_)
            | Self::GenerateProposals(_)
            | Self::GroupedConv2d(_)
            | Self::HardSwish(_)
            | Self::HashtableLookup(_)
            | Self::HeatmapMaxKeypoint(_)
            | Self::InstanceNormalization(_)
            | Self::Logical(_)
            | Self::LshProjection(_)
            | Self::Lstm(_)
            | Self::MatrixDiagonal(_)
            | Self::MaximumMinimum(_)
            | Self::NonMaxSuppression(_)
            | Self::Nonzero(_)
            | Self::OfComplex(_)
            | Self::OneHot(_)
            | Self::Pack(_)
            | Self::Pooling(_)
            | Self::Pow(_)
            | Self::Prelu(_)
            | Self::Quantize(_)
            | Self::Quantized16bitLstm(_)
            | Self::QuantizedLstm(_)
            | Self::Random(_)
            | Self::RandomMultinomial(_)
            | Self::Range(_)
            | Self::Rank(_)
            | Self::RealFourier(_)
            | Self::ReduceWindow(_)
            | Self::Reshape(_)
            | Self::Resize(_)
            | Self::ResizeTo(_)
            | Self::ReverseSequence(_)
            | Self::RngBitGenerator(_)
            | Self::Rnn(_)
            | Self::RoiAlign(_)
            | Self::RoiPooling(_)
            | Self::ScatterNd(_)
            | Self::ScatterSlices(_)
            | Self::Segments(_)
            | Self::Select(_)
            | Self::ShapeOf(_)
            | Self::Slice(_)
            | Self::SparseToDense(_)
            | Self::Squeeze(_)
            | Self::StridedSlice(_)
            | Self::Svdf(_)
            | Self::Tile(_)
            | Self::TopKV2(_)
            | Self::Transpose(_)
            | Self::TransposeConv2d(_)
            | Self::Unary(_)
            | Self::UnidirectionalSequenceLstm(_)
            | Self::UnidirectionalSequenceRnn(_)
            | Self::Unique(_) => NamedAxes::Others,
        }
    }
}
