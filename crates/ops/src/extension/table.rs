//! [`ExtensionOperation`]: the extension's operations with numbers, names and meanings.

use super::PREFIX;
use nnhal_hal::{ExtensionType, OperationType};

/// Enters the operations. A row: number, name here, name, the operation of the interface whose rules it
/// follows, if there is one, and its meaning.
macro_rules! table {
    ($( $number:literal $Row:ident $name:literal $(as $Like:ident)?, $meaning:literal; )*) => {
        /// An operation of the extension.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ExtensionOperation {
            $( #[doc = concat!("`", $name, "`, number ", stringify!($number), ": ", $meaning)] $Row, )*
        }

        impl ExtensionOperation {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$Row),*];

            /// The number within the extension.
            pub const fn number(self) -> u16 {
                match self { $( Self::$Row => $number, )* }
            }

            const fn with_number(number: u16) -> Option<Self> {
                match number { $( $number => Some(Self::$Row), )* _ => None }
            }

            /// The name that documentation and messages use.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$Row => $name, )* }
            }

            /// What it computes.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$Row => $meaning, )* }
            }

            /// The operation of the interface whose rules it follows, for more types and axes.
            pub const fn like(self) -> Option<OperationType> {
                match self { $( Self::$Row => table!(@like $($Like)?), )* }
            }
        }
    };
    (@like $Like:ident) => { Some(OperationType::$Like) };
    (@like) => { None };
}

table! {
    0 Add "ADD" as Add,
        "the sum; of integers, modulo the size of the type";
    1 Sub "SUB" as Sub,
        "the difference; of integers, modulo the size of the type";
    2 Mul "MUL" as Mul,
        "the product; of integers, modulo the size of the type";
    3 Div "DIV",
        "the quotient; of integers rounded towards zero, and 0 for a divisor of 0";
    4 FloorDiv "FLOOR_DIV",
        "the quotient rounded towards minus infinity; of integers 0 for a divisor of 0";
    5 FloorMod "FLOOR_MOD",
        "`a - FLOOR_DIV(a, b) * b`, which has the sign of the divisor; of integers 0 for a divisor of 0";
    6 Maximum "MAXIMUM" as Maximum,
        "the greater element";
    7 Minimum "MINIMUM" as Minimum,
        "the lesser element";
    8 Pow "POW",
        "the power modulo the size of the type; with a negative exponent the reciprocal rounded towards 0, which of 0 is 0";
    9 Abs "ABS" as Abs,
        "the magnitude; that of the least integer is itself";
    10 Neg "NEG" as Neg,
        "the negative, modulo the size of the type";
    11 Equal "EQUAL" as Equal,
        "whether the elements are equal";
    12 NotEqual "NOT_EQUAL" as NotEqual,
        "whether the elements differ";
    13 Less "LESS" as Less,
        "whether the first is less";
    14 LessEqual "LESS_EQUAL" as LessEqual,
        "whether the first is less or equal";
    15 Greater "GREATER" as Greater,
        "whether the first is greater";
    16 GreaterEqual "GREATER_EQUAL" as GreaterEqual,
        "whether the first is greater or equal";
    17 Select "SELECT" as Select,
        "`condition ? input1 : input2`, with broadcasting of all three; elements are chosen as they are stored";
    18 Cast "CAST" as Cast,
        "the same numbers as another type: integers modulo its size, or, if they saturate, the nearest that it holds; floats without their fraction, the nearest that it holds, 0 for NaN; of complex numbers the real part; true for everything but 0. Quantized: the stored integers";
    19 Mean "MEAN" as Mean,
        "the mean along axes; of integers rounded towards 0";
    20 ReduceAll "REDUCE_ALL" as ReduceAll,
        "whether all along axes are true";
    21 ReduceAny "REDUCE_ANY" as ReduceAny,
        "whether any along axes is true";
    22 ReduceMax "REDUCE_MAX" as ReduceMax,
        "the greatest along axes; of no integers the least of the type";
    23 ReduceMin "REDUCE_MIN" as ReduceMin,
        "the least along axes; of no integers the greatest of the type";
    24 ReduceProd "REDUCE_PROD" as ReduceProd,
        "the product along axes; of integers modulo the size of the type";
    25 ReduceSum "REDUCE_SUM" as ReduceSum,
        "the sum along axes; of integers modulo the size of the type";
    26 Argmax "ARGMAX" as Argmax,
        "where the greatest along an axis is, the first of them";
    27 Argmin "ARGMIN" as Argmin,
        "where the least along an axis is, the first of them";
    28 TopkV2 "TOPK_V2" as TopkV2,
        "the greatest of each row in falling order and where they are, of equal ones the first first";
    29 Reshape "RESHAPE" as Reshape,
        "the same elements in another shape";
    30 Transpose "TRANSPOSE" as Transpose,
        "the axes in another order";
    31 Concatenation "CONCATENATION" as Concatenation,
        "tensors one behind the other along an axis";
    32 Slice "SLICE" as Slice,
        "a block of a tensor";
    33 StridedSlice "STRIDED_SLICE" as StridedSlice,
        "a block of a tensor, with steps";
    34 Split "SPLIT" as Split,
        "a tensor cut into equal parts along an axis";
    35 Pad "PAD" as Pad,
        "a border of zeros around a tensor; quantized: of the zero point";
    36 PadV2 "PAD_V2" as PadV2,
        "a border of one value around a tensor, which has one element";
    37 MirrorPad "MIRROR_PAD" as MirrorPad,
        "a border that mirrors a tensor; 0 is REFLECT, 1 is SYMMETRIC";
    38 Tile "TILE" as Tile,
        "a tensor repeated along each axis";
    39 Pack "PACK" as Pack,
        "tensors one behind the other along a new axis";
    40 Gather "GATHER" as Gather,
        "parts of length 1 along an axis, in the order that indexes give, for each index of the first axes by itself; the indexes have the first `batch dims` axes in common with the input";
    41 Reverse "REVERSE" as Reverse,
        "an axis from its end to its beginning";
    42 ExpandDims "EXPAND_DIMS" as ExpandDims,
        "a new axis of length 1";
    43 Squeeze "SQUEEZE" as Squeeze,
        "without axes of length 1";
    44 Fill "FILL" as Fill,
        "a tensor of one value, which has one element";
    45 DepthToSpace "DEPTH_TO_SPACE" as DepthToSpace,
        "channels as blocks of pixels";
    46 SpaceToDepth "SPACE_TO_DEPTH" as SpaceToDepth,
        "blocks of pixels as channels";
    47 BatchToSpaceNd "BATCH_TO_SPACE_ND" as BatchToSpaceNd,
        "batches as blocks of pixels";
    48 SpaceToBatchNd "SPACE_TO_BATCH_ND" as SpaceToBatchNd,
        "blocks of pixels as batches";
    49 Quantize "QUANTIZE" as Quantize,
        "the stored value nearest to a real one";
    50 Dequantize "DEQUANTIZE" as Dequantize,
        "the real value of a stored one";
    51 Ceil "CEIL",
        "the least integer that is not below";
    52 Cos "COS",
        "the cosine of radians";
    53 Gelu "GELU",
        "`x / 2 * (1 + erf(x / sqrt(2)))`";
    54 Round "ROUND",
        "the nearest integer, of halves the even one";
    55 Sign "SIGN",
        "-1, 0 or 1; NaN stays NaN";
    56 Atan2 "ATAN2",
        "the angle of the point that is `input0` up and `input1` to the right, in radians";
    57 BitwiseXor "BITWISE_XOR",
        "the bits in which the elements differ";
    58 RightShift "RIGHT_SHIFT",
        "the first element shifted right by the second, which counts as 0 or the number of bits less 1 where it is beyond; the sign stays";
    59 Cumsum "CUMSUM",
        "the sums of all elements up to each one along an axis, without the element itself if exclusive, from the end if reversed; of integers modulo the size of the type";
    60 GatherNd "GATHER_ND",
        "parts by the indexes of their first axes. Indexes are `[..., depth]`; the output is `[...]` with the input's axes behind the first `depth`, or `[1]`";
    61 ScatterNd "SCATTER_ND",
        "zeros, to which parts are added at the indexes of their first axes; of integers modulo the size of the type. Indexes are `[..., depth]`; updates are `[...]` with the output's axes behind the first `depth`; the output has the lengths `shape`. Quantized zeros are stored as 0";
    62 Where "WHERE",
        "the indexes of the elements that are not 0, a row each: `[number of them, rank]`";
    63 OneHot "ONE_HOT",
        "for each index a vector with the on value there and the off value elsewhere, along a new axis. Depth and values have one element; the axis -1 is the last of the output. An index outside of `0..depth` has off values only";
    64 ReverseSequence "REVERSE_SEQUENCE",
        "the first elements along one axis in reverse, as many as a length for each index of another axis says. Lengths are `[length of the batch axis]`";
    65 MatrixDiag "MATRIX_DIAG",
        "matrices of zeros with a given diagonal: `[..., n]` becomes `[..., n, n]`. Quantized zeros are stored as 0";
    66 MatrixSetDiag "MATRIX_SET_DIAG",
        "matrices with the diagonal replaced: of `[..., rows, columns]` by `[..., min(rows, columns)]`";
    67 Unique "UNIQUE",
        "the different elements of a vector as they first appear, and which of them each element is";
    68 SegmentSum "SEGMENT_SUM",
        "the sum of all parts with the same number; numbers begin at 0 and go up by 0 or 1. Segments are `[n]` beside an input `[n, ...]`; the output is `[last number + 1, ...]`";
    69 UnsortedSegmentMax "UNSORTED_SEGMENT_MAX",
        "the greatest elements of all parts with the same number, without those of a negative one; of no part the least of the type. Segments have the input's first axes; the output is `[number of segments]` with the input's other axes";
    70 UnsortedSegmentMin "UNSORTED_SEGMENT_MIN",
        "the least elements of all parts with the same number, without those of a negative one; of no part the greatest of the type. Segments have the input's first axes; the output is `[number of segments]` with the input's other axes";
    71 UnsortedSegmentProd "UNSORTED_SEGMENT_PROD",
        "the products of all parts with the same number, without those of a negative one; of no part 1. Segments have the input's first axes; the output is `[number of segments]` with the input's other axes";
    72 UnsortedSegmentSum "UNSORTED_SEGMENT_SUM",
        "the sums of all parts with the same number, without those of a negative one; of no part 0. Segments have the input's first axes; the output is `[number of segments]` with the input's other axes";
    73 Bucketize "BUCKETIZE",
        "how many of the rising boundaries an element has reached; a NaN has reached all";
    74 Bitcast "BITCAST",
        "the same bytes as elements of another type; the last axis comes or goes where elements have another size";
    75 Rfft2d "RFFT2D",
        "the discrete Fourier transform along the last two axes, cut or filled with zeros to lengths that are powers of 2; the half from which the other follows: `[..., height, width]` becomes `[..., lengths[0], lengths[1] / 2 + 1]`";
    76 ComplexAbs "COMPLEX_ABS",
        "the magnitude of a complex number";
    77 Real "REAL",
        "the real part of a complex number";
    78 Imag "IMAG",
        "the imaginary part of a complex number";
    79 Conv3d "CONV_3D",
        "the convolution over depth, height and width. The input is `[batch, depth, height, width, in]`, the filter `[depth, height, width, in, out]`, the bias `[out]`; padding 1 is SAME, 2 is VALID; the activation is as CONV_2D's";
    80 Conv3dTranspose "CONV_3D_TRANSPOSE",
        "the transposed convolution over depth, height and width, from what CONV_3D with the same padding makes of the output shape. The filter is `[depth, height, width, out, in]`; all else is as CONV_3D's";
    81 DynamicUpdateSlice "DYNAMIC_UPDATE_SLICE",
        "a tensor with a block replaced, whose begin is moved so that it is inside. The update has the input's rank and is nowhere longer";
    82 NonMaxSuppressionV4 "NON_MAX_SUPPRESSION_V4",
        "of boxes that overlap those with the highest scores, from an intersection over union on that reaches the threshold, among scores above theirs. Boxes are `[n, 4]` with two opposite corners `y1, x1, y2, x2`, scores `[n]`, all else one element. Indexes are `[limit]`, 0 behind the chosen ones; of equal scores the first box is chosen first";
    83 NonMaxSuppressionV5 "NON_MAX_SUPPRESSION_V5",
        "of boxes that overlap those with the highest scores, which overlaps lower by `exp(-overlap^2 / (2 sigma))` where sigma is above 0. All else is as NON_MAX_SUPPRESSION_V4's; the output scores are `[limit]`, 0 behind the chosen ones";
    84 Range "RANGE",
        "numbers from a start, at the distance of a step, before a limit. All have one element; integers wrap, floats are added one by one";
    85 Shape "SHAPE",
        "the lengths of a tensor";
    86 ReduceWindow "REDUCE_WINDOW",
        "what a window sees at each of its positions, reduced to one element, beginning with the initial value; of integers modulo the size of the type. Window, strides and dilations have a number for each axis, 1 or more; the function is 0 for the sum, 1 the product, 2 the least, 3 the greatest, 4 whether all are true, 5 whether any is. Along an axis there are `(length - (window - 1) * dilation - 1) / stride + 1` positions, or none";
    87 SparseToDense "SPARSE_TO_DENSE",
        "the default value, with other values at indexes; of several for the same place the last. Indexes are `[count, rank]`, values `[count]` or one element; the output has the lengths `shape`";
    88 BroadcastArgs "BROADCAST_ARGS",
        "the shape that two shapes have when they are broadcast together";
    89 BitwiseAnd "BITWISE_AND",
        "the bits that both elements have";
    90 LeftShift "LEFT_SHIFT",
        "the first element shifted left by the second, modulo the size of the type: 0 for a second one that is negative, or the number of bits or more";
    91 GatherSlices "GATHER_SLICES",
        "blocks of the input, one for each row of indexes: where it begins along the listed axes, at 0 along the others. A block that would leave the input begins as near to its index as it fits. Indexes are `[..., number of axes]`; the output is `[...]` with the block's lengths `sizes`, one for each axis of the input";
    92 ScatterSlices "SCATTER_SLICES",
        "the input, into which blocks are combined in their order, one for each row of indexes: where it begins along the listed axes, at 0 along the others. What of a block is outside of the input is left out. Indexes are `[..., number of axes]`; updates are `[...]` with a block's lengths along each axis of the input; the function is 0 for the update in place of the element, 1 the sum, modulo the size of the type as the product, 2 the product, 3 the least, 4 the greatest, 5 whether both are true, 6 whether any is";
    93 RandomUniform "RANDOM_UNIFORM",
        "random numbers in `0..1`, and the generator's state after them: 6 words, a counter, the lowest first, and a key of two, of which Philox 4x32 makes four words a time. The output has the lengths `shape`";
    94 RandomStandardNormal "RANDOM_STANDARD_NORMAL",
        "random numbers with a normal distribution around 0 of variance 1, and the generator's state after them, as of RANDOM_UNIFORM";
    95 Multinomial "MULTINOMIAL",
        "random classes, each with a probability in proportion to the exponential of its logit, and the generator's state after them, as of RANDOM_UNIFORM. Logits are `[batch, classes]`; the output is `[batch, count]`";
    96 RngBitGenerator "RNG_BIT_GENERATOR",
        "the generator's state after random bits, and the bits. A state is a key and a counter, in 2 or, of Philox, 3 words; the algorithm is 0 for Philox 4x32, 1 for Threefry 2x32. The second output has the lengths `shape`";
    97 DynamicFullyConnected "DYNAMIC_FULLY_CONNECTED",
        "FULLY_CONNECTED of floats with signed weights of 8 bits and zero point 0. Each row of the input is rounded to 8 bits by its own range, of its elements `x` and 0: with `factor = 255 / (greatest - least)`, or 1 where that is infinite, `z = -128 - least * factor` if `(-128 + least * factor) + (127 + greatest * factor) > 0`, else `127 - greatest * factor`, and `zero = round(clamp(z, -128, 127))`, it is `q = round(clamp(x * factor, -128 - zero, 127 - zero))`, all in float32, halves to even. The output is `activation(sum(q * weight) / factor * scale of the weights + bias)`, where the sum has 32 bits and wraps. A row with an infinite range or a NaN gives NaN";
    98 DynamicConv2d "DYNAMIC_CONV_2D",
        "CONV_2D of floats with a signed filter `[out, height, width, in / groups]` of 8 bits and zero point 0; images are NHWC, the padding is 1 for SAME, 2 for VALID. There are groups of channels, as of GROUPED_CONV_2D, where the filter has fewer channels than the input. Each image is rounded to 8 bits by its own range as a row is by DYNAMIC_FULLY_CONNECTED, and the padding is 0. An image with an infinite range or a NaN gives NaN";
    99 DynamicRound "DYNAMIC_ROUND",
        "each part of the first axis rounded to 8 bits by its own range, `q / factor`, with `q` and `factor` as a row has them in DYNAMIC_FULLY_CONNECTED; or if it is symmetric with `factor = 127 / greatest magnitude`, or 1 where that is infinite, and `q = round(clamp(x * factor, -127, 127))`, halves away from 0. A part with an infinite range or a NaN becomes NaN";
    100 ResizeTo "RESIZE_TO",
        "images `[batch, height, width, depth]` of another size, which is `[height, width]`. The method is 0 for RESIZE_BILINEAR's, 1 for RESIZE_NEAREST_NEIGHBOR's; corners and centers are as theirs";
    101 TopK "TOP_K",
        "the `k` greatest elements of every slice along the last axis, and their indexes, where `k` is a tensor of one element: none where it is 0 or less. All else is as TOPK_V2's";
    102 Erf "ERF",
        "the error function, `2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to the element";
}

impl ExtensionOperation {
    /// The operation as models write it with [`PREFIX`].
    pub const fn operation_type(self) -> OperationType {
        match ExtensionType::new(PREFIX, self.number()) {
            Some(extension) => OperationType::Extension(extension),
            None => unreachable!(),
        }
    }

    /// The extension's operation that an operation of a valid model is, if it is one.
    pub const fn of(operation: OperationType) -> Option<Self> {
        match operation {
            OperationType::Extension(it) if it.prefix() == PREFIX => Self::with_number(it.number()),
            _ => None,
        }
    }

    /// The extension's operation that follows the rules of one of the interface.
    pub fn extending(operation: OperationType) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.like() == Some(operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_and_names_belong_to_one_operation_each() {
        let all = ExtensionOperation::ALL;
        let names: HashSet<_> = all.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), all.len());
        for (number, operation) in all.iter().enumerate() {
            assert_eq!(usize::from(operation.number()), number, "{}", operation.name());
            assert_eq!(ExtensionOperation::of(operation.operation_type()), Some(*operation));
        }
    }

    #[test]
    fn an_operation_has_the_name_of_the_one_that_it_follows() {
        for operation in ExtensionOperation::ALL {
            if let Some(like) = operation.like() {
                assert_eq!(operation.name(), like.to_string());
                assert_eq!(ExtensionOperation::extending(like), Some(*operation));
            }
        }
    }
}
