//! The argument types of the extension's operations.

use crate::extension::ExtensionOperation as E;
use crate::extension::{
    TENSOR_COMPLEX64 as COMPLEX64, TENSOR_FLOAT64 as FLOAT64, TENSOR_INT64 as INT64,
    TENSOR_UINT16 as UINT16, TENSOR_UINT32 as UINT32, TENSOR_UINT64 as UINT64,
};
use crate::operations::{
    arg_min_max, arithmetic, batch_space, comparison, concatenation, depth_space, elementwise,
    expand_dims, maximum_minimum, reduce, reshape, slice, split, squeeze, strided_slice, tile,
    top_k_v2, transpose,
};
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8 as BOOL8, TensorFloat16 as FLOAT16, TensorFloat32 as FLOAT32, TensorInt32 as INT32,
    TensorQuant8Asymm as QUANT8, TensorQuant8AsymmSigned as QUANT8_SIGNED,
    TensorQuant8SymmPerChannel as QUANT8_SYMM_PER_CHANNEL, TensorQuant16Symm as QUANT16,
};
use nnhal_hal::{HalVersion, OperandType};

/// The version that brought extensions.
const SINCE: HalVersion = HalVersion::V1_2;

/// Rows with these types.
macro_rules! rows {
    ($($types:expr),* $(,)?) => { const { &[ $( Row::new(SINCE, &$types) ),* ] } };
}

/// Rows of one type each.
macro_rules! each {
    ($($one:ident)+) => { rows!($( [$one] ),+) };
}

/// Every pair of types.
macro_rules! pairs {
    ($($from:ident)+) => { pairs!(@each [$($from)+] [$($from)+]) };
    (@each [$($from:ident)+] $all:tt) => { &[ $( pairs!(@row $from $all), )+ ] };
    (@row $from:ident [$($to:ident)+]) => { *rows!($( [$from, $to] ),+) };
}

/// A type that is moved, beside an integer of either size.
macro_rules! beside_integers {
    ($($moved:ident)+) => { rows!($( [$moved, INT32], [$moved, INT64] ),+) };
}

/// Elements of any type, which are moved as they are stored.
const ANY: &[Row] = each!(
    FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 COMPLEX64 UINT64 UINT16 FLOAT64
);

/// The same, beside an integer of either size.
const ANY_BESIDE_INTEGERS: &[Row] = beside_integers!(
    FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 COMPLEX64 UINT64 UINT16 FLOAT64
);

const PAIRS: &[[Row; 13]; 13] = pairs!(
    FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 COMPLEX64 UINT64 UINT16 FLOAT64
);

/// Integers, and quantized values as they are stored.
const INTEGERS: &[Row] = each!(INT32 INT64 UINT32 UINT16 QUANT8 QUANT8_SIGNED QUANT16);

/// What is compared bit by bit.
const BITS: &[Row] = each!(INT32 INT64 UINT32 UINT16 QUANT8 QUANT8_SIGNED QUANT16 UINT64);

/// Numbers that are summed.
const NUMBERS: &[Row] = each!(FLOAT32 FLOAT16 INT32 INT64 UINT32);

/// What has a sign, or could have one.
const SIGNED: &[Row] = each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 FLOAT64);

/// Numbers and values that have an order.
const ORDERED: &[Row] = each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16);

/// Numbers and truth values; quantized ones as they are stored.
const REDUCED: &[Row] =
    each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8);

/// The same, and floats of 64 bits.
const WINDOWED: &[Row] =
    each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 FLOAT64);

/// What images are of.
const RESIZED: &[Row] = each!(FLOAT32 FLOAT16 QUANT8 QUANT8_SIGNED QUANT16);

/// What sums, differences and products are of.
const SUMMED: &[Row] =
    each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED UINT16 UINT64 FLOAT64);

/// What the greater and the lesser element is of.
const EXTREMA: &[Row] =
    each!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 UINT16 FLOAT64);

/// What quantized weights are of, beside values of float32.
const WEIGHTS: &[Row] = each!(QUANT8_SIGNED QUANT8_SYMM_PER_CHANNEL);

const QUANTIZED: &[Row] = rows!(
    [FLOAT32, QUANT8],
    [FLOAT32, QUANT8_SIGNED],
    [FLOAT32, QUANT16],
    [FLOAT16, QUANT8],
    [FLOAT16, QUANT8_SIGNED],
    [FLOAT16, QUANT16],
);

const DEQUANTIZED: &[Row] = rows!(
    [QUANT8, FLOAT32],
    [QUANT8_SIGNED, FLOAT32],
    [QUANT16, FLOAT32],
    [QUANT8, FLOAT16],
    [QUANT8_SIGNED, FLOAT16],
    [QUANT16, FLOAT16],
);

/// For operations whose types are always the same.
const ONE_CHOICE: &[Row] = rows!([]);

const fn column(name: &'static str) -> Parameter {
    Parameter::column(name, 0)
}

const fn float32(name: &'static str) -> Parameter {
    Parameter::fixed(name, FLOAT32)
}

const fn tensor_int32(name: &'static str) -> Parameter {
    Parameter::tensor_int32(name)
}

const fn int32(name: &'static str) -> Parameter {
    Parameter::int32(name)
}

const INPUT: Parameter = column("input");
const INDEXES: Parameter = tensor_int32("indexes");
const PADDINGS: Parameter = tensor_int32("paddings");
const ACTIVATION: Parameter = int32("activation");
const STATE: Parameter = tensor_int32("state");

/// These inputs, and outputs or one of the first column.
macro_rules! form {
    ($inputs:expr) => { form!($inputs => [column("output")]) };
    ($inputs:expr => $outputs:expr) => {
        const { &[Form { since: SINCE, inputs: &$inputs, outputs: &$outputs }] }
    };
}

/// A convolution over three axes, with what comes behind its other inputs.
macro_rules! convolved {
    ($($last:expr)?) => {
        form!([
            INPUT,
            column("filter"),
            column("bias"),
            int32("padding"),
            int32("stride along depth"),
            int32("stride along height"),
            int32("stride along width"),
            int32("dilation along depth"),
            int32("dilation along height"),
            int32("dilation along width"),
            ACTIVATION,
            $($last)?
        ])
    };
}

const UNARY: &[Form] = form!([INPUT]);
const BINARY: &[Form] = form!([column("input0"), column("input1")]);
const TO_ANOTHER_TYPE: &[Form] = form!([INPUT] => [Parameter::column("output", 1)]);

impl E {
    /// Its argument types.
    pub fn signature(self) -> &'static Signature {
        &SIGNATURES[self as usize]
    }

    /// The rows and forms of its signature.
    const fn arguments(self) -> (&'static [Row], &'static [Form]) {
        match self {
            Self::Add | Self::Sub | Self::Mul => (SUMMED, arithmetic::FORMS),
            Self::Div | Self::FloorDiv | Self::FloorMod => (ORDERED, BINARY),
            Self::Maximum | Self::Minimum => (EXTREMA, maximum_minimum::FORMS),
            Self::Pow | Self::LeftShift | Self::RightShift => (INTEGERS, BINARY),
            Self::BitwiseAnd | Self::BitwiseXor => (BITS, BINARY),
            Self::Atan2 => (each!(FLOAT32 FLOAT16 FLOAT64), BINARY),
            Self::Abs | Self::Neg => (NUMBERS, elementwise::FORMS),
            Self::Ceil | Self::Cos | Self::Erf | Self::Gelu | Self::Round => {
                (each!(FLOAT32 FLOAT16), UNARY)
            }
            Self::Sign => (SIGNED, UNARY),
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual => (ORDERED, comparison::FORMS),
            Self::Select => (
                ANY,
                form!([Parameter::fixed("condition", BOOL8), column("input1"), column("input2")]),
            ),

            Self::Cast => (
                PAIRS.as_flattened(),
                form!(
                    [INPUT, Parameter::bool("saturate").trailing(SINCE)]
                        => [Parameter::column("output", 1)]
                ),
            ),
            Self::Bitcast => (PAIRS.as_flattened(), TO_ANOTHER_TYPE),
            Self::Quantize => (QUANTIZED, TO_ANOTHER_TYPE),
            Self::Dequantize => (DEQUANTIZED, TO_ANOTHER_TYPE),

            Self::Mean => (ORDERED, reduce::MEAN_FORM),
            Self::ReduceAll | Self::ReduceAny => (each!(BOOL8), reduce::FORM),
            Self::ReduceMax | Self::ReduceMin => (ORDERED, reduce::FORM),
            Self::ReduceProd | Self::ReduceSum => (NUMBERS, reduce::FORM),
            Self::Argmax | Self::Argmin => (REDUCED, arg_min_max::FORMS),
            Self::TopkV2 => (ORDERED, top_k_v2::SIGNATURE.forms),
            Self::TopK => {
                (ORDERED, form!([INPUT, tensor_int32("k")] => [column("values"), INDEXES]))
            }
            Self::Cumsum => (
                NUMBERS,
                form!([
                    INPUT,
                    int32("axis"),
                    Parameter::bool("exclusive"),
                    Parameter::bool("reverse"),
                ]),
            ),
            Self::SegmentSum => (NUMBERS, form!([INPUT, tensor_int32("segments")])),
            Self::UnsortedSegmentMax
            | Self::UnsortedSegmentMin
            | Self::UnsortedSegmentProd
            | Self::UnsortedSegmentSum => (
                NUMBERS,
                form!([INPUT, tensor_int32("segments"), tensor_int32("number of segments")]),
            ),
            Self::ReduceWindow => (
                WINDOWED,
                form!([
                    INPUT,
                    column("initial value"),
                    tensor_int32("window"),
                    tensor_int32("strides"),
                    tensor_int32("dilations"),
                    int32("function"),
                ]),
            ),

            Self::Reshape => (ANY, reshape::SIGNATURE.forms),
            Self::Transpose => (ANY, transpose::SIGNATURE.forms),
            Self::Concatenation => (ANY, concatenation::SIGNATURE.forms),
            Self::Slice => (ANY, slice::SIGNATURE.forms),
            Self::StridedSlice => (ANY, strided_slice::SIGNATURE.forms),
            Self::Split => (ANY, split::SIGNATURE.forms),
            Self::Tile => (ANY, tile::SIGNATURE.forms),
            Self::ExpandDims => (ANY, expand_dims::SIGNATURE.forms),
            Self::Squeeze => (ANY, squeeze::SIGNATURE.forms),
            Self::DepthToSpace | Self::SpaceToDepth => (ANY, depth_space::FORMS),
            Self::BatchToSpaceNd => (ANY, batch_space::BATCH_TO_SPACE.forms),
            Self::SpaceToBatchNd => (ANY, batch_space::SPACE_TO_BATCH.forms),
            Self::Pad => (ANY, form!([INPUT, PADDINGS])),
            Self::PadV2 => (ANY, form!([INPUT, PADDINGS, column("value")])),
            Self::MirrorPad => (ANY, form!([INPUT, PADDINGS, int32("mode")])),
            Self::Pack => (ANY, form!([int32("axis"), INPUT.repeated(1)])),
            Self::Reverse => (ANY, form!([INPUT, tensor_int32("axis")])),
            Self::ReverseSequence => (
                ANY,
                form!([
                    INPUT,
                    tensor_int32("lengths"),
                    int32("sequence axis"),
                    int32("batch axis"),
                ]),
            ),
            Self::Fill => (ANY, form!([tensor_int32("dimensions"), column("value")])),
            Self::MatrixDiag => (ANY, form!([column("diagonal")])),
            Self::MatrixSetDiag => (ANY, form!([INPUT, column("diagonal")])),
            Self::DynamicUpdateSlice => {
                (ANY, form!([INPUT, column("update"), tensor_int32("begins")]))
            }

            Self::Gather => (
                ANY,
                form!([
                    INPUT,
                    int32("axis"),
                    INDEXES,
                    int32("batch dims").trailing(SINCE).defaults_to(0),
                ]),
            ),
            Self::GatherNd => (ANY, form!([INPUT, INDEXES])),
            Self::GatherSlices => {
                (ANY, form!([INPUT, INDEXES, tensor_int32("axes"), tensor_int32("sizes")]))
            }
            Self::ScatterNd => {
                (REDUCED, form!([INDEXES, column("updates"), tensor_int32("shape")]))
            }
            Self::ScatterSlices => (
                REDUCED,
                form!([INPUT, INDEXES, column("updates"), tensor_int32("axes"), int32("function")]),
            ),
            Self::SparseToDense => (
                ANY,
                form!([INDEXES, tensor_int32("shape"), column("values"), column("default value")]),
            ),
            Self::OneHot => (
                beside_integers!(
                    FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8
                ),
                form!([
                    Parameter::column("indexes", 1),
                    tensor_int32("depth"),
                    column("on value"),
                    column("off value"),
                    int32("axis"),
                ]),
            ),
            Self::Where => {
                (REDUCED, form!([column("condition")] => [Parameter::fixed("output", INT64)]))
            }
            Self::Unique => (
                beside_integers!(FLOAT32 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16),
                form!([INPUT] => [column("values"), Parameter::column("indexes", 1)]),
            ),
            Self::Bucketize => (
                each!(FLOAT32 FLOAT64 INT32 INT64),
                form!([INPUT, float32("boundaries")] => [tensor_int32("output")]),
            ),
            Self::Range => (
                each!(FLOAT32 INT32 INT64),
                form!([column("start"), column("limit"), column("step")]),
            ),
            Self::Shape => (ANY_BESIDE_INTEGERS, TO_ANOTHER_TYPE),
            Self::BroadcastArgs => {
                (each!(INT32 INT64), form!([column("shape 1"), column("shape 2")]))
            }

            Self::Rfft2d => (
                ONE_CHOICE,
                form!(
                    [float32("input"), tensor_int32("lengths")]
                        => [Parameter::fixed("output", COMPLEX64)]
                ),
            ),
            Self::ComplexAbs | Self::Real | Self::Imag => {
                (ONE_CHOICE, form!([Parameter::fixed("input", COMPLEX64)] => [float32("output")]))
            }

            Self::Conv3d => (each!(FLOAT32 FLOAT16), convolved!()),
            Self::Conv3dTranspose => {
                (each!(FLOAT32 FLOAT16), convolved!(tensor_int32("output shape")))
            }
            Self::DynamicConv2d => (
                WEIGHTS,
                form!([
                    float32("input"),
                    column("filter"),
                    float32("bias"),
                    int32("padding"),
                    int32("stride along height"),
                    int32("stride along width"),
                    int32("dilation along height"),
                    int32("dilation along width"),
                    ACTIVATION,
                ] => [float32("output")]),
            ),
            Self::DynamicFullyConnected => (
                WEIGHTS,
                form!(
                    [float32("input"), column("weights"), float32("bias"), ACTIVATION]
                        => [float32("output")]
                ),
            ),
            Self::DynamicRound => {
                (each!(FLOAT32), form!([INPUT, Parameter::bool("symmetric").trailing(SINCE)]))
            }
            Self::ResizeTo => (
                RESIZED,
                form!([
                    INPUT,
                    tensor_int32("size"),
                    int32("method"),
                    Parameter::bool("align corners"),
                    Parameter::bool("half pixel centers"),
                ]),
            ),
            Self::NonMaxSuppressionV4 => (
                ONE_CHOICE,
                form!([
                    float32("boxes"),
                    float32("scores"),
                    tensor_int32("limit"),
                    float32("overlap threshold"),
                    float32("score threshold"),
                ] => [INDEXES, tensor_int32("count")]),
            ),
            Self::NonMaxSuppressionV5 => (
                ONE_CHOICE,
                form!([
                    float32("boxes"),
                    float32("scores"),
                    tensor_int32("limit"),
                    float32("overlap threshold"),
                    float32("score threshold"),
                    float32("sigma"),
                ] => [INDEXES, float32("scores"), tensor_int32("count")]),
            ),

            Self::RandomUniform | Self::RandomStandardNormal => {
                (each!(FLOAT32), form!([tensor_int32("shape"), STATE] => [column("output"), STATE]))
            }
            Self::Multinomial => (
                each!(INT32 INT64),
                form!(
                    [float32("logits"), tensor_int32("count"), STATE] => [column("output"), STATE]
                ),
            ),
            Self::RngBitGenerator => (
                each!(INT32 INT64 UINT32 UINT64),
                form!([
                    Parameter::fixed("state", UINT64),
                    tensor_int32("shape"),
                    int32("algorithm"),
                ] => [Parameter::fixed("state", UINT64), column("output")]),
            ),
        }
    }
}

/// In the order of the operations.
static SIGNATURES: [Signature; E::ALL.len()] = {
    let first = Signature { operation: E::ALL[0].operation_type(), rows: &[], forms: &[] };
    let mut all = [first; E::ALL.len()];
    let mut index = 0;
    while index < all.len() {
        let operation = E::ALL[index];
        let (rows, forms) = operation.arguments();
        all[index] = Signature { operation: operation.operation_type(), rows, forms };
        index += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_its_operation() {
        for operation in E::ALL {
            assert_eq!(operation.signature().operation, operation.operation_type());
        }
    }
}
