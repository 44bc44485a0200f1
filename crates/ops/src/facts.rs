//! What is true of an operation whatever it computes, for programs that rewrite models.

use crate::operations::elementwise::Elementwise;
use crate::operations::{AnyOperation, Logical, Unary};
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

/// What an operation does with elements, as far as a word or two say it.
enum Kind {
    /// Of how many inputs; whether it is a function of one that never falls.
    ByElement(usize, Falls),
    Moves(Movement),
    /// Multiplies by weights, which are these inputs: the first of a range, and the one behind its last.
    Weighs(&'static [[usize; 2]]),
    Other,
}

/// Whether a function of one element may have a lesser result where its argument is greater.
#[derive(PartialEq, Eq)]
enum Falls {
    Never,
    Perhaps,
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
            Kind::ByElement(inputs, _) => Some(inputs),
            Kind::Moves(_) | Kind::Weighs(_) | Kind::Other => None,
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
            Kind::ByElement(..) | Kind::Weighs(_) | Kind::Other => None,
        }
    }

    /// Whether it is a function of each element of its first input that never has a lesser result where the element is greater:
    /// the greatest of its results is the result of the greatest element. Elements are compared by what they stand for, and the
    /// input has one scale for all. Of functions that are not defined for all numbers (LOG, SQRT), of those whose
    /// types decide (CAST) and of all others: false.
    ///
    /// ```
    /// use nnhal_ops::AnyOperation;
    /// use nnhal_ops::operations::{Activation, HardSwish};
    ///
    /// assert!(AnyOperation::from(Activation::Tanh).never_falls());
    /// assert!(!AnyOperation::from(HardSwish).never_falls());
    /// ```
    pub fn never_falls(&self) -> bool {
        matches!(self.kind(), Kind::ByElement(1, Falls::Never))
    }

    /// The positions of its weights: of the matrices and filters that multiply its other inputs and states, which training
    /// leaves. Biases, factors of normalization and tables to look things up in are none. Some may be omitted; none of
    /// operations that have no weights.
    ///
    /// ```
    /// use nnhal_ops::AnyOperation;
    /// use nnhal_ops::operations::{Rnn, Select};
    /// use nnhal_ops::rules::cell_activation::Activation;
    ///
    /// let rnn = AnyOperation::from(Rnn { activation: Activation::Relu });
    /// assert_eq!(rnn.weights().collect::<Vec<_>>(), [1, 2]);
    /// assert_eq!(AnyOperation::from(Select).weights().count(), 0);
    /// ```
    pub fn weights(&self) -> impl Iterator<Item = usize> + use<> {
        let ranges = match self.kind() {
            Kind::Weighs(ranges) => ranges,
            Kind::ByElement(..) | Kind::Moves(_) | Kind::Other => &[],
        };
        ranges.iter().flat_map(|[first, behind]| *first..*behind)
    }

    fn kind(&self) -> Kind {
        // Without a wildcard, so that a new operation has to answer.
        match self {
            Self::Activation(_) | Self::Bucketize(_) | Self::Dequantize(_) | Self::Quantize(_) => {
                Kind::ByElement(1, Falls::Never)
            }
            Self::Elementwise(function) => Kind::ByElement(
                1,
                match function {
                    Elementwise::Exp | Elementwise::Floor => Falls::Never,
                    Elementwise::Abs
                    | Elementwise::Log
                    | Elementwise::Neg
                    | Elementwise::Rsqrt
                    | Elementwise::Sin
                    | Elementwise::Sqrt => Falls::Perhaps,
                },
            ),
            Self::Unary(function) => Kind::ByElement(
                1,
                match function {
                    Unary::Ceil | Unary::Erf | Unary::Round | Unary::Sign => Falls::Never,
                    Unary::Cos | Unary::Gelu => Falls::Perhaps,
                },
            ),
            Self::Elu(elu) if elu.alpha >= 0.0 => Kind::ByElement(1, Falls::Never),
            Self::Cast(_)
            | Self::Convert(_)
            | Self::Elu(_)
            | Self::HardSwish(_)
            | Self::Logical(Logical::Not)
            | Self::OfComplex(_) => Kind::ByElement(1, Falls::Perhaps),
            Self::Arithmetic(_)
            | Self::Binary(_)
            | Self::Comparison(_)
            | Self::Division(_)
            | Self::Logical(Logical::And | Logical::Or)
            | Self::MaximumMinimum(_)
            | Self::Pow(_)
            | Self::Prelu(_) => Kind::ByElement(2, Falls::Perhaps),
            Self::Choice(_) | Self::Select(_) => Kind::ByElement(3, Falls::Perhaps),
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
            Self::Conv2d(_)
            | Self::Conv3d(_)
            | Self::DepthwiseConv2d(_)
            | Self::DynamicConv2d(_)
            | Self::DynamicFullyConnected(_)
            | Self::FullyConnected(_)
            | Self::GroupedConv2d(_)
            | Self::TransposeConv2d(_) => Kind::Weighs(&[[1, 2]]),
            // From the input, recurrent, and those of the cell; the projection.
            Self::Lstm(_) | Self::QuantizedLstm(_) | Self::UnidirectionalSequenceLstm(_) => {
                Kind::Weighs(&[[1, 12], [16, 17]])
            }
            Self::Quantized16bitLstm(_) => Kind::Weighs(&[[1, 9]]),
            // Of both directions, and of the auxiliary input.
            Self::BidirectionalSequenceLstm(_) => {
                Kind::Weighs(&[[1, 12], [16, 17], [18, 29], [33, 34], [40, 48]])
            }
            Self::Rnn(_) | Self::Svdf(_) | Self::UnidirectionalSequenceRnn(_) => {
                Kind::Weighs(&[[1, 3]])
            }
            Self::BidirectionalSequenceRnn(_) => Kind::Weighs(&[[1, 3], [5, 7], [10, 12]]),
            Self::ArgMinMax(_)
            | Self::AxisAlignedBboxTransform(_)
            | Self::BatchGather(_)
            | Self::BatchMatmul(_)
            | Self::BatchSpace(_)
            | Self::Bitcast(_)
            | Self::BoxWithNmsLimit(_)
            | Self::BroadcastArgs(_)
            | Self::Concatenation(_)
            | Self::ControlFlow(_)
            | Self::CumulativeSum(_)
            | Self::DepthSpace(_)
            | Self::DetectionPostprocessing(_)
            | Self::DynamicRound(_)
            | Self::DynamicUpdateSlice(_)
            | Self::EmbeddingLookup(_)
            | Self::Fill(_)
            | Self::Gather(_)
            | Self::GatherNd(_)
            | Self::GatherSlices(_)
            | Self::GenerateProposals(_)
            | Self::HashtableLookup(_)
            | Self::HeatmapMaxKeypoint(_)
            | Self::InstanceNormalization(_)
            | Self::L2Normalization(_)
            | Self::LocalResponseNormalization(_)
            | Self::LogSoftmax(_)
            | Self::LshProjection(_)
            | Self::MatrixDiagonal(_)
            | Self::MirrorPad(_)
            | Self::NonMaxSuppression(_)
            | Self::Nonzero(_)
            | Self::OneHot(_)
            | Self::Pack(_)
            | Self::Pad(_)
            | Self::Pooling(_)
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
            | Self::RoiAlign(_)
            | Self::RoiPooling(_)
            | Self::ScatterNd(_)
            | Self::ScatterSlices(_)
            | Self::Segments(_)
            | Self::ShapeOf(_)
            | Self::Softmax(_)
            | Self::SparseToDense(_)
            | Self::TopK(_)
            | Self::TopKV2(_)
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
            | Self::TopK(_)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{Activation, Elu, HardSwish};
    use nnhal_hal::FusedActivation;

    #[test]
    fn what_never_falls_does_not_and_what_may_fall_does_somewhere() {
        let numbers = || (-4000..=4000_i16).map(|x| f32::from(x) / 500.0);
        let check = |operation: AnyOperation, function: &dyn Fn(f32) -> f32| {
            let mut greatest = f32::NEG_INFINITY;
            let falls = numbers().map(function).any(|result| {
                greatest = greatest.max(result);
                result < greatest
            });
            assert_eq!(operation.never_falls(), !falls, "{operation:?}");
        };
        use FusedActivation::{None, Relu, Relu1, Relu6};
        let clamps = [None, Relu, Relu1, Relu6].map(Activation::Clamp);
        for it in clamps.into_iter().chain([Activation::Tanh, Activation::Logistic]) {
            check(it.into(), &|x| it.real(x));
        }
        use Elementwise::{Abs, Exp, Floor, Neg, Sin};
        for it in [Abs, Exp, Floor, Neg, Sin] {
            check(it.into(), &|x| it.real(x));
        }
        for it in [Unary::Ceil, Unary::Cos, Unary::Erf, Unary::Gelu, Unary::Round, Unary::Sign] {
            check(it.into(), &|x| it.real(x));
        }
        for it in [-0.5, 0.0, 0.5, 2.0].map(|alpha| Elu { alpha }) {
            check(it.into(), &|x| it.real(x));
        }
        check(HardSwish.into(), &|x| HardSwish.real(x));
        for it in [Elementwise::Log, Elementwise::Rsqrt, Elementwise::Sqrt] {
            assert!(!AnyOperation::from(it).never_falls(), "{it:?} is not defined for all numbers");
        }
    }
}
