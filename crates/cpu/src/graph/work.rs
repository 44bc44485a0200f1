//! What nodes do, beyond the operations that models have.

use nnhal_hal::FusedActivation;
use nnhal_kernels::batch_matmul::float::Layout;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::elementwise::Step;
use nnhal_kernels::quantization::Activations;
use nnhal_kernels::separable_convolution::float::Shapes;
use nnhal_kernels::transposed_convolution;
use nnhal_ops::AnyOperation;

/// What a node does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// An operation as the model has it.
    Operation(AnyOperation),
    /// Nothing: the output's bytes are the input's, under other lengths.
    View,
    /// Nothing: the output's elements are those of the input from this one on.
    Part(usize),
    /// Elements of the input, at places that strides say. The input's bytes have no gaps.
    Copy(Copy),
    /// A tensor of which one row along the first axis is replaced. Inputs: the tensor, the new row, and which it is.
    RowUpdate,
    /// IF or WHILE, with the subgraphs that have this index in [`Graph::control_flow`](super::Graph::control_flow). Inputs
    /// of IF: the condition and the arguments; of WHILE: its variables. Outputs of WHILE: the first of them, when it is over.
    ControlFlow(usize),
    /// CONV_2D, GROUPED_CONV_2D or DEPTHWISE_CONV_2D of NHWC images, or FULLY_CONNECTED, and what
    /// could be merged into it. Inputs: image, filter, bias, and the residual, if it has one. To
    /// FULLY_CONNECTED every row of the input is a pixel.
    Convolution(Convolution),
    /// A depthwise convolution of floats with 1x1 convolutions around it. Inputs: image, filter and bias of each
    /// convolution, and the residual of the last one, if it has one.
    SeparableConvolution(Box<SeparableConvolution>),
    /// TRANSPOSE_CONV_2D of NHWC images with a constant filter and bias. Inputs: image, filter, bias.
    TransposedConvolution(TransposedConvolution),
    /// Functions of floats, element by element, one after the other. The first input is the value
    /// that they begin with, the others are operands of steps.
    Chain(Vec<Step>),
    /// Rows along the last axis, brought to mean 0 and variance 1. Inputs: the rows, and a factor and
    /// an offset for each column, as far as there are any.
    Normalization(Normalization),
    /// Products of matrices of floats that are not constant. Inputs: what holds the left ones, and
    /// what holds the right ones.
    Matmul(Box<Matmul>),
    /// SOFTMAX along the last axis, of floats that are adjusted first. Inputs: the scores, and a mask,
    /// if there is one.
    Softmax(MaskedSoftmax),
    /// Products of matrices whose softmax, adjusted first, is the left factor of other products. Inputs: what holds queries,
    /// keys and values, and the mask, if there is one.
    Attention(Box<Attention>),
    /// The mean over axes of 8-bit numbers, stored with another scale or zero point: what they stand for
    /// is summed up. The axes have elements, but no more than [`MOST_ADDED`](nnhal_kernels::reduction::MOST_ADDED).
    RequantizedMean { axes: Vec<usize> },
    /// A function of 8 bits, element by element: by the stored input's bits the stored output's.
    Table(Box<[u8; 256]>),
}

/// See [`Work::Copy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The element of the input that comes first.
    pub(crate) offset: usize,
    /// The axes of the output, from the first to the last: how many elements, and how far from one to the next in the input.
    pub(crate) axes: Vec<(usize, usize)>,
}

/// See [`Work::Convolution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Convolution {
    pub(crate) shape: Shape,
    /// The layout of the filter: `[1, height, width, depth_out]`, or `[depth_out, height, width, depth]`.
    pub(crate) is_depthwise: bool,
    pub(crate) elements: Elements,
}

/// See [`Work::SeparableConvolution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SeparableConvolution {
    pub(crate) shapes: Shapes,
    /// Of those convolutions that there are.
    pub(crate) epilogues: [Option<Epilogue>; 3],
}

/// What is multiplied and added in a convolution, and what becomes of the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Elements {
    Floats {
        epilogue: Epilogue,
        /// Whether a tensor of the output's shape is added to the result, before the epilogue.
        has_residual: bool,
    },
    Bytes(Bytes),
}

/// Numbers of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bytes {
    pub(crate) input: Activations,
    pub(crate) weights: Activations,
    /// What stored results are clamped to.
    pub(crate) range: (i32, i32),
}

/// See [`Work::TransposedConvolution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TransposedConvolution {
    pub(crate) shape: transposed_convolution::Shape,
    /// Never with a residual.
    pub(crate) elements: Elements,
}

/// See [`Work::Normalization`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Normalization {
    /// What is added to the variance.
    pub(crate) epsilon: f32,
    pub(crate) has_scale: bool,
    pub(crate) has_offset: bool,
}

/// See [`Work::Matmul`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matmul {
    /// Rows and columns of a product, and how many numbers a sum has.
    pub(crate) sizes: [usize; 3],
    pub(crate) left: Layout,
    pub(crate) right: Layout,
    /// `None` if products follow each other, row by row.
    pub(crate) output: Option<Layout>,
    pub(crate) epilogue: Epilogue,
}

/// See [`Work::Attention`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attention {
    /// Of queries and keys.
    pub(crate) scores: Matmul,
    pub(crate) softmax: MaskedSoftmax,
    /// The axes before the last one that scores have.
    pub(crate) outer: Vec<u32>,
    /// Of what becomes of the scores, and values.
    pub(crate) results: Matmul,
}

/// See [`Work::Softmax`]: of `scores * factor + mask`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MaskedSoftmax {
    pub(crate) beta: f32,
    pub(crate) factor: f32,
}

/// What is done to each result before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Epilogue {
    /// It is clamped.
    Clamp(FusedActivation),
    /// `x * clamp(x + 3, 0, 6) / 6`, of floats only.
    HardSwish,
}

impl Epilogue {
    pub(crate) const NONE: Self = Self::Clamp(FusedActivation::None);
}
