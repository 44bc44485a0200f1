//! The argument types of the extension's operations.

use crate::extension::ExtensionOperation as E;
use crate::extension::{
    TENSOR_COMPLEX64 as COMPLEX64, TENSOR_FLOAT64 as FLOAT64, TENSOR_INT64 as INT64,
    TENSOR_UINT16 as UINT16, TENSOR_UINT32 as UINT32, TENSOR_UINT64 as UINT64,
};
use crate::operations as standard;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8 as BOOL8, TensorFloat16 as FLOAT16, TensorFloat32 as FLOAT32, TensorInt32 as INT32,
    TensorQuant8Asymm as QUANT8, TensorQuant8AsymmSigned as QUANT8_SIGNED,
    TensorQuant8SymmPerChannel as QUANT8_SYMM_PER_CHANNEL, TensorQuant16Symm as QUANT16,
};
use nnhal_hal::{HalVersion, OperandType};

/// The version that brought extensions.
const SINCE: HalVersion = HalVersion::V1_2;

const fn row(types: &'static [OperandType]) -> Row {
    Row::new(SINCE, types)
}

const fn signature(operation: E, rows: &'static [Row], forms: &'static [Form]) -> Signature {
    Signature { operation: operation.operation_type(), rows, forms }
}

/// The argument list of an operation of the interface.
macro_rules! like {
    ($operation:ident, $forms:expr, $rows:expr) => {
        Signature { operation: E::$operation.operation_type(), rows: $rows, forms: $forms }
    };
}

/// Elements of any type, which are moved as they are stored.
const ANY: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[BOOL8]),
    row(&[COMPLEX64]),
    row(&[UINT64]),
    row(&[UINT16]),
    row(&[FLOAT64]),
];

/// Integers, and quantized values as they are stored.
const INTEGERS: &[Row] = &[
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[UINT16]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
];

const FLOATS: &[Row] = &[row(&[FLOAT32]), row(&[FLOAT16])];

const FLOATS_OF_ANY_SIZE: &[Row] = &[row(&[FLOAT32]), row(&[FLOAT16]), row(&[FLOAT64])];

/// Numbers that are summed.
const NUMBERS: &[Row] =
    &[row(&[FLOAT32]), row(&[FLOAT16]), row(&[INT32]), row(&[INT64]), row(&[UINT32])];

/// What has a sign, or could have one.
const SIGNED: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[FLOAT64]),
];

/// Numbers and truth values; quantized ones as they are stored.
const REDUCED: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[BOOL8]),
];

/// The same, and floats of 64 bits.
const WINDOWED: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[BOOL8]),
    row(&[FLOAT64]),
];

/// Numbers and values that have an order.
const ORDERED: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
];

const UNARY: &[Form] =
    &[Form::new(SINCE, &[Parameter::column("input", 0)], &[Parameter::column("output", 0)])];

const BINARY: &[Form] = &[Form::new(
    SINCE,
    &[Parameter::column("input0", 0), Parameter::column("input1", 0)],
    &[Parameter::column("output", 0)],
)];

/// What images are of.
const RESIZED: &[Row] =
    &[row(&[FLOAT32]), row(&[FLOAT16]), row(&[QUANT8]), row(&[QUANT8_SIGNED]), row(&[QUANT16])];

/// What sums, differences and products are of.
const SUMMED: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[UINT16]),
    row(&[UINT64]),
    row(&[FLOAT64]),
];

/// What the greater and the lesser element is of.
const EXTREMA: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[UINT16]),
    row(&[FLOAT64]),
];

/// What is compared bit by bit.
const BITS: &[Row] = &[
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[UINT16]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[UINT64]),
];

pub(super) static ADD: Signature = like!(Add, standard::arithmetic::FORMS, SUMMED);
pub(super) static SUB: Signature = like!(Sub, standard::arithmetic::FORMS, SUMMED);
pub(super) static MUL: Signature = like!(Mul, standard::arithmetic::FORMS, SUMMED);
pub(super) static DIV: Signature = signature(E::Div, ORDERED, BINARY);
pub(super) static FLOOR_DIV: Signature = signature(E::FloorDiv, ORDERED, BINARY);
pub(super) static FLOOR_MOD: Signature = signature(E::FloorMod, ORDERED, BINARY);
pub(super) static MAXIMUM: Signature = like!(Maximum, standard::maximum_minimum::FORMS, EXTREMA);
pub(super) static MINIMUM: Signature = like!(Minimum, standard::maximum_minimum::FORMS, EXTREMA);
pub(super) static POW: Signature = signature(E::Pow, INTEGERS, BINARY);
pub(super) static ABS: Signature = like!(Abs, standard::elementwise::FORMS, NUMBERS);
pub(super) static NEG: Signature = like!(Neg, standard::elementwise::FORMS, NUMBERS);
pub(super) static EQUAL: Signature = like!(Equal, standard::comparison::FORMS, ORDERED);
pub(super) static NOT_EQUAL: Signature = like!(NotEqual, standard::comparison::FORMS, ORDERED);
pub(super) static LESS: Signature = like!(Less, standard::comparison::FORMS, ORDERED);
pub(super) static LESS_EQUAL: Signature = like!(LessEqual, standard::comparison::FORMS, ORDERED);
pub(super) static GREATER: Signature = like!(Greater, standard::comparison::FORMS, ORDERED);
pub(super) static GREATER_EQUAL: Signature =
    like!(GreaterEqual, standard::comparison::FORMS, ORDERED);
pub(super) static SELECT: Signature = signature(
    E::Select,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("condition", BOOL8),
            Parameter::column("input1", 0),
            Parameter::column("input2", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
);

/// Every pair of types.
macro_rules! pairs {
    ($($from:ident)+) => { pairs!(@each [$($from)+] [$($from)+]) };
    (@each [$($from:ident)+] $all:tt) => { [ $( pairs!(@row $from $all), )+ ] };
    (@row $from:ident [$($to:ident)+]) => { [ $( row(&[$from, $to]), )+ ] };
}

const PAIRS: &[[Row; 13]; 13] = &pairs!(
    FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 COMPLEX64 UINT64 UINT16 FLOAT64
);

pub(super) static CAST: Signature = signature(
    E::Cast,
    PAIRS.as_flattened(),
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::bool("saturate").trailing(SINCE)],
        &[Parameter::column("output", 1)],
    )],
);
pub(super) static BITCAST: Signature = signature(
    E::Bitcast,
    PAIRS.as_flattened(),
    &[Form::new(SINCE, &[Parameter::column("input", 0)], &[Parameter::column("output", 1)])],
);

pub(super) static MEAN: Signature = like!(Mean, standard::reduce::MEAN_FORM, ORDERED);
pub(super) static REDUCE_ALL: Signature =
    like!(ReduceAll, standard::reduce::FORM, &[row(&[BOOL8])]);
pub(super) static REDUCE_ANY: Signature =
    like!(ReduceAny, standard::reduce::FORM, &[row(&[BOOL8])]);
pub(super) static REDUCE_MAX: Signature = like!(ReduceMax, standard::reduce::FORM, ORDERED);
pub(super) static REDUCE_MIN: Signature = like!(ReduceMin, standard::reduce::FORM, ORDERED);
pub(super) static REDUCE_PROD: Signature = like!(ReduceProd, standard::reduce::FORM, NUMBERS);
pub(super) static REDUCE_SUM: Signature = like!(ReduceSum, standard::reduce::FORM, NUMBERS);
pub(super) static ARGMAX: Signature = like!(Argmax, standard::arg_min_max::FORMS, ARGUMENTS);
pub(super) static ARGMIN: Signature = like!(Argmin, standard::arg_min_max::FORMS, ARGUMENTS);
const ARGUMENTS: &[Row] = &[
    row(&[FLOAT32]),
    row(&[FLOAT16]),
    row(&[INT32]),
    row(&[INT64]),
    row(&[UINT32]),
    row(&[QUANT8]),
    row(&[QUANT8_SIGNED]),
    row(&[QUANT16]),
    row(&[BOOL8]),
];
pub(super) static TOPK_V2: Signature = like!(TopkV2, standard::top_k_v2::SIGNATURE.forms, ORDERED);

pub(super) static RESHAPE: Signature = like!(Reshape, standard::reshape::SIGNATURE.forms, ANY);
pub(super) static TRANSPOSE: Signature =
    like!(Transpose, standard::transpose::SIGNATURE.forms, ANY);
pub(super) static CONCATENATION: Signature =
    like!(Concatenation, standard::concatenation::SIGNATURE.forms, ANY);
pub(super) static SLICE: Signature = like!(Slice, standard::slice::SIGNATURE.forms, ANY);
pub(super) static STRIDED_SLICE: Signature =
    like!(StridedSlice, standard::strided_slice::SIGNATURE.forms, ANY);
pub(super) static SPLIT: Signature = like!(Split, standard::split::SIGNATURE.forms, ANY);
pub(super) static PAD: Signature = like!(Pad, PADDED, ANY);
const PADDED: &[Form] = &[Form::new(
    SINCE,
    &[Parameter::column("input", 0), Parameter::tensor_int32("paddings")],
    &[Parameter::column("output", 0)],
)];
pub(super) static PAD_V2: Signature = signature(
    E::PadV2,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("paddings"),
            Parameter::column("value", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static MIRROR_PAD: Signature = signature(
    E::MirrorPad,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("paddings"),
            Parameter::int32("mode"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static TILE: Signature = like!(Tile, standard::tile::SIGNATURE.forms, ANY);
pub(super) static PACK: Signature = signature(
    E::Pack,
    ANY,
    &[Form::new(
        SINCE,
        &[Parameter::int32("axis"), Parameter::column("input", 0).repeated(1)],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static GATHER: Signature = signature(
    E::Gather,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::int32("axis"),
            Parameter::tensor_int32("indexes"),
            Parameter::int32("batch dims").trailing(SINCE).defaults_to(0),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static REVERSE: Signature = signature(
    E::Reverse,
    ANY,
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::tensor_int32("axis")],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static EXPAND_DIMS: Signature =
    like!(ExpandDims, standard::expand_dims::SIGNATURE.forms, ANY);
pub(super) static SQUEEZE: Signature = like!(Squeeze, standard::squeeze::SIGNATURE.forms, ANY);
pub(super) static FILL: Signature = signature(
    E::Fill,
    ANY,
    &[Form::new(
        SINCE,
        &[Parameter::tensor_int32("dimensions"), Parameter::column("value", 0)],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static DEPTH_TO_SPACE: Signature =
    like!(DepthToSpace, standard::depth_space::FORMS, ANY);
pub(super) static SPACE_TO_DEPTH: Signature =
    like!(SpaceToDepth, standard::depth_space::FORMS, ANY);
pub(super) static BATCH_TO_SPACE_ND: Signature =
    like!(BatchToSpaceNd, standard::batch_space::BATCH_TO_SPACE.forms, ANY);
pub(super) static SPACE_TO_BATCH_ND: Signature =
    like!(SpaceToBatchNd, standard::batch_space::SPACE_TO_BATCH.forms, ANY);

const OTHER_TYPE: &[Form] =
    &[Form::new(SINCE, &[Parameter::column("input", 0)], &[Parameter::column("output", 1)])];
pub(super) static QUANTIZE: Signature = signature(
    E::Quantize,
    &[
        row(&[FLOAT32, QUANT8]),
        row(&[FLOAT32, QUANT8_SIGNED]),
        row(&[FLOAT32, QUANT16]),
        row(&[FLOAT16, QUANT8]),
        row(&[FLOAT16, QUANT8_SIGNED]),
        row(&[FLOAT16, QUANT16]),
    ],
    OTHER_TYPE,
);
pub(super) static DEQUANTIZE: Signature = signature(
    E::Dequantize,
    &[
        row(&[QUANT8, FLOAT32]),
        row(&[QUANT8_SIGNED, FLOAT32]),
        row(&[QUANT16, FLOAT32]),
        row(&[QUANT8, FLOAT16]),
        row(&[QUANT8_SIGNED, FLOAT16]),
        row(&[QUANT16, FLOAT16]),
    ],
    OTHER_TYPE,
);

pub(super) static CEIL: Signature = signature(E::Ceil, FLOATS, UNARY);
pub(super) static COS: Signature = signature(E::Cos, FLOATS, UNARY);
pub(super) static ERF: Signature = signature(E::Erf, FLOATS, UNARY);
pub(super) static GELU: Signature = signature(E::Gelu, FLOATS, UNARY);
pub(super) static ROUND: Signature = signature(E::Round, FLOATS, UNARY);
pub(super) static SIGN: Signature = signature(E::Sign, SIGNED, UNARY);
pub(super) static ATAN2: Signature = signature(E::Atan2, FLOATS_OF_ANY_SIZE, BINARY);
pub(super) static BITWISE_XOR: Signature = signature(E::BitwiseXor, BITS, BINARY);
pub(super) static RIGHT_SHIFT: Signature = signature(E::RightShift, INTEGERS, BINARY);
pub(super) static BITWISE_AND: Signature = signature(E::BitwiseAnd, BITS, BINARY);
pub(super) static LEFT_SHIFT: Signature = signature(E::LeftShift, INTEGERS, BINARY);

pub(super) static CUMSUM: Signature = signature(
    E::Cumsum,
    NUMBERS,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::int32("axis"),
            Parameter::bool("exclusive"),
            Parameter::bool("reverse"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static GATHER_ND: Signature = signature(
    E::GatherNd,
    ANY,
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::tensor_int32("indexes")],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static GATHER_SLICES: Signature = signature(
    E::GatherSlices,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("indexes"),
            Parameter::tensor_int32("axes"),
            Parameter::tensor_int32("sizes"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static SCATTER_SLICES: Signature = signature(
    E::ScatterSlices,
    REDUCED,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("indexes"),
            Parameter::column("updates", 0),
            Parameter::tensor_int32("axes"),
            Parameter::int32("function"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static SCATTER_ND: Signature = signature(
    E::ScatterNd,
    REDUCED,
    &[Form::new(
        SINCE,
        &[
            Parameter::tensor_int32("indexes"),
            Parameter::column("updates", 0),
            Parameter::tensor_int32("shape"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static WHERE: Signature = signature(
    E::Where,
    ARGUMENTS,
    &[Form::new(SINCE, &[Parameter::column("condition", 0)], &[Parameter::fixed("output", INT64)])],
);

/// A type that is moved, beside an integer of either size.
macro_rules! beside_integers {
    ($($moved:ident)+) => { &[ $( row(&[$moved, INT32]), row(&[$moved, INT64]), )+ ] };
}

pub(super) static ONE_HOT: Signature = signature(
    E::OneHot,
    beside_integers!(FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8),
    &[Form::new(
        SINCE,
        &[
            Parameter::column("indexes", 1),
            Parameter::tensor_int32("depth"),
            Parameter::column("on value", 0),
            Parameter::column("off value", 0),
            Parameter::int32("axis"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static REVERSE_SEQUENCE: Signature = signature(
    E::ReverseSequence,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("lengths"),
            Parameter::int32("sequence axis"),
            Parameter::int32("batch axis"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static MATRIX_DIAG: Signature = signature(
    E::MatrixDiag,
    ANY,
    &[Form::new(SINCE, &[Parameter::column("diagonal", 0)], &[Parameter::column("output", 0)])],
);
pub(super) static MATRIX_SET_DIAG: Signature = signature(
    E::MatrixSetDiag,
    ANY,
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::column("diagonal", 0)],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static UNIQUE: Signature = signature(
    E::Unique,
    beside_integers!(FLOAT32 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16),
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0)],
        &[Parameter::column("values", 0), Parameter::column("indexes", 1)],
    )],
);

pub(super) static SEGMENT_SUM: Signature = signature(
    E::SegmentSum,
    NUMBERS,
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::tensor_int32("segments")],
        &[Parameter::column("output", 0)],
    )],
);
const UNSORTED: &[Form] = &[Form::new(
    SINCE,
    &[
        Parameter::column("input", 0),
        Parameter::tensor_int32("segments"),
        Parameter::tensor_int32("number of segments"),
    ],
    &[Parameter::column("output", 0)],
)];
pub(super) static UNSORTED_SEGMENT_MAX: Signature =
    signature(E::UnsortedSegmentMax, NUMBERS, UNSORTED);
pub(super) static UNSORTED_SEGMENT_MIN: Signature =
    signature(E::UnsortedSegmentMin, NUMBERS, UNSORTED);
pub(super) static UNSORTED_SEGMENT_PROD: Signature =
    signature(E::UnsortedSegmentProd, NUMBERS, UNSORTED);
pub(super) static UNSORTED_SEGMENT_SUM: Signature =
    signature(E::UnsortedSegmentSum, NUMBERS, UNSORTED);
pub(super) static BUCKETIZE: Signature = signature(
    E::Bucketize,
    &[row(&[FLOAT32]), row(&[FLOAT64]), row(&[INT32]), row(&[INT64])],
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::fixed("boundaries", FLOAT32)],
        &[Parameter::tensor_int32("output")],
    )],
);

pub(super) static RFFT2D: Signature = signature(
    E::Rfft2d,
    &[row(&[])],
    &[Form::new(
        SINCE,
        &[Parameter::fixed("input", FLOAT32), Parameter::tensor_int32("lengths")],
        &[Parameter::fixed("output", COMPLEX64)],
    )],
);
const OF_COMPLEX: &[Form] = &[Form::new(
    SINCE,
    &[Parameter::fixed("input", COMPLEX64)],
    &[Parameter::fixed("output", FLOAT32)],
)];
pub(super) static COMPLEX_ABS: Signature = signature(E::ComplexAbs, &[row(&[])], OF_COMPLEX);
pub(super) static REAL: Signature = signature(E::Real, &[row(&[])], OF_COMPLEX);
pub(super) static IMAG: Signature = signature(E::Imag, &[row(&[])], OF_COMPLEX);

macro_rules! convolved {
    ($($last:expr)?) => {
        &[Form::new(
            SINCE,
            &[
                Parameter::column("input", 0),
                Parameter::column("filter", 0),
                Parameter::column("bias", 0),
                Parameter::int32("padding"),
                Parameter::int32("stride along depth"),
                Parameter::int32("stride along height"),
                Parameter::int32("stride along width"),
                Parameter::int32("dilation along depth"),
                Parameter::int32("dilation along height"),
                Parameter::int32("dilation along width"),
                Parameter::int32("activation"),
                $($last)?
            ],
            &[Parameter::column("output", 0)],
        )]
    };
}
pub(super) static CONV_3D: Signature = signature(E::Conv3d, FLOATS, convolved!());
pub(super) static CONV_3D_TRANSPOSE: Signature =
    signature(E::Conv3dTranspose, FLOATS, convolved!(Parameter::tensor_int32("output shape")));
pub(super) static DYNAMIC_UPDATE_SLICE: Signature = signature(
    E::DynamicUpdateSlice,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::column("update", 0),
            Parameter::tensor_int32("begins"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static NON_MAX_SUPPRESSION_V4: Signature = signature(
    E::NonMaxSuppressionV4,
    &[row(&[])],
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("boxes", FLOAT32),
            Parameter::fixed("scores", FLOAT32),
            Parameter::tensor_int32("limit"),
            Parameter::fixed("overlap threshold", FLOAT32),
            Parameter::fixed("score threshold", FLOAT32),
        ],
        &[Parameter::tensor_int32("indexes"), Parameter::tensor_int32("count")],
    )],
);
pub(super) static NON_MAX_SUPPRESSION_V5: Signature = signature(
    E::NonMaxSuppressionV5,
    &[row(&[])],
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("boxes", FLOAT32),
            Parameter::fixed("scores", FLOAT32),
            Parameter::tensor_int32("limit"),
            Parameter::fixed("overlap threshold", FLOAT32),
            Parameter::fixed("score threshold", FLOAT32),
            Parameter::fixed("sigma", FLOAT32),
        ],
        &[
            Parameter::tensor_int32("indexes"),
            Parameter::fixed("scores", FLOAT32),
            Parameter::tensor_int32("count"),
        ],
    )],
);
pub(super) static RANGE: Signature = signature(
    E::Range,
    &[row(&[FLOAT32]), row(&[INT32]), row(&[INT64])],
    &[Form::new(
        SINCE,
        &[
            Parameter::column("start", 0),
            Parameter::column("limit", 0),
            Parameter::column("step", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static SHAPE: Signature = signature(
    E::Shape,
    beside_integers!(
        FLOAT32 FLOAT16 INT32 INT64 UINT32 QUANT8 QUANT8_SIGNED QUANT16 BOOL8 COMPLEX64 UINT64 UINT16 FLOAT64
    ),
    &[Form::new(SINCE, &[Parameter::column("input", 0)], &[Parameter::column("output", 1)])],
);
pub(super) static REDUCE_WINDOW: Signature = signature(
    E::ReduceWindow,
    WINDOWED,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::column("initial value", 0),
            Parameter::tensor_int32("window"),
            Parameter::tensor_int32("strides"),
            Parameter::tensor_int32("dilations"),
            Parameter::int32("function"),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static SPARSE_TO_DENSE: Signature = signature(
    E::SparseToDense,
    ANY,
    &[Form::new(
        SINCE,
        &[
            Parameter::tensor_int32("indexes"),
            Parameter::tensor_int32("shape"),
            Parameter::column("values", 0),
            Parameter::column("default value", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
);
pub(super) static BROADCAST_ARGS: Signature = signature(
    E::BroadcastArgs,
    &[row(&[INT32]), row(&[INT64])],
    &[Form::new(
        SINCE,
        &[Parameter::column("shape 1", 0), Parameter::column("shape 2", 0)],
        &[Parameter::column("output", 0)],
    )],
);

const STATE: Parameter = Parameter::tensor_int32("state");
const RANDOM: &[Form] = &[Form::new(
    SINCE,
    &[Parameter::tensor_int32("shape"), STATE],
    &[Parameter::column("output", 0), STATE],
)];
pub(super) static RANDOM_UNIFORM: Signature =
    signature(E::RandomUniform, &[row(&[FLOAT32])], RANDOM);
pub(super) static RANDOM_STANDARD_NORMAL: Signature =
    signature(E::RandomStandardNormal, &[row(&[FLOAT32])], RANDOM);
pub(super) static MULTINOMIAL: Signature = signature(
    E::Multinomial,
    &[row(&[INT32]), row(&[INT64])],
    &[Form::new(
        SINCE,
        &[Parameter::fixed("logits", FLOAT32), Parameter::tensor_int32("count"), STATE],
        &[Parameter::column("output", 0), STATE],
    )],
);
pub(super) static RNG_BIT_GENERATOR: Signature = signature(
    E::RngBitGenerator,
    &[row(&[INT32]), row(&[INT64]), row(&[UINT32]), row(&[UINT64])],
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("state", UINT64),
            Parameter::tensor_int32("shape"),
            Parameter::int32("algorithm"),
        ],
        &[Parameter::fixed("state", UINT64), Parameter::column("output", 0)],
    )],
);
pub(super) static DYNAMIC_FULLY_CONNECTED: Signature = signature(
    E::DynamicFullyConnected,
    &[row(&[QUANT8_SIGNED]), row(&[QUANT8_SYMM_PER_CHANNEL])],
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("input", FLOAT32),
            Parameter::column("weights", 0),
            Parameter::fixed("bias", FLOAT32),
            Parameter::int32("activation"),
        ],
        &[Parameter::fixed("output", FLOAT32)],
    )],
);
pub(super) static DYNAMIC_CONV_2D: Signature = signature(
    E::DynamicConv2d,
    &[row(&[QUANT8_SIGNED]), row(&[QUANT8_SYMM_PER_CHANNEL])],
    &[Form::new(
        SINCE,
        &[
            Parameter::fixed("input", FLOAT32),
            Parameter::column("filter", 0),
            Parameter::fixed("bias", FLOAT32),
            Parameter::int32("padding"),
            Parameter::int32("stride along height"),
            Parameter::int32("stride along width"),
            Parameter::int32("dilation along height"),
            Parameter::int32("dilation along width"),
            Parameter::int32("activation"),
        ],
        &[Parameter::fixed("output", FLOAT32)],
    )],
);
pub(super) static DYNAMIC_ROUND: Signature = signature(
    E::DynamicRound,
    &[row(&[FLOAT32])],
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::bool("symmetric").trailing(SINCE)],
        &[Parameter::column("output", 0)],
    )],
);

pub(super) static RESIZE_TO: Signature = signature(
    E::ResizeTo,
    RESIZED,
    &[Form::new(
        SINCE,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("size"),
            Parameter::int32("method"),
            Parameter::bool("align corners"),
            Parameter::bool("half pixel centers"),
        ],
        &[Parameter::column("output", 0)],
    )],
);

pub(super) static TOP_K: Signature = signature(
    E::TopK,
    ORDERED,
    &[Form::new(
        SINCE,
        &[Parameter::column("input", 0), Parameter::tensor_int32("k")],
        &[Parameter::column("values", 0), Parameter::tensor_int32("indexes")],
    )],
);

impl E {
    /// Its argument types.
    pub fn signature(self) -> &'static Signature {
        match self {
            Self::Add => &ADD,
            Self::Sub => &SUB,
            Self::Mul => &MUL,
            Self::Div => &DIV,
            Self::FloorDiv => &FLOOR_DIV,
            Self::FloorMod => &FLOOR_MOD,
            Self::Maximum => &MAXIMUM,
            Self::Minimum => &MINIMUM,
            Self::Pow => &POW,
            Self::Abs => &ABS,
            Self::Neg => &NEG,
            Self::Equal => &EQUAL,
            Self::NotEqual => &NOT_EQUAL,
            Self::Less => &LESS,
            Self::LessEqual => &LESS_EQUAL,
            Self::Greater => &GREATER,
            Self::GreaterEqual => &GREATER_EQUAL,
            Self::Select => &SELECT,
            Self::Cast => &CAST,
            Self::Mean => &MEAN,
            Self::ReduceAll => &REDUCE_ALL,
            Self::ReduceAny => &REDUCE_ANY,
            Self::ReduceMax => &REDUCE_MAX,
            Self::ReduceMin => &REDUCE_MIN,
            Self::ReduceProd => &REDUCE_PROD,
            Self::ReduceSum => &REDUCE_SUM,
            Self::Argmax => &ARGMAX,
            Self::Argmin => &ARGMIN,
            Self::TopkV2 => &TOPK_V2,
            Self::Reshape => &RESHAPE,
            Self::Transpose => &TRANSPOSE,
            Self::Concatenation => &CONCATENATION,
            Self::Slice => &SLICE,
            Self::StridedSlice => &STRIDED_SLICE,
            Self::Split => &SPLIT,
            Self::Pad => &PAD,
            Self::PadV2 => &PAD_V2,
            Self::MirrorPad => &MIRROR_PAD,
            Self::Tile => &TILE,
            Self::Pack => &PACK,
            Self::Gather => &GATHER,
            Self::Reverse => &REVERSE,
            Self::ExpandDims => &EXPAND_DIMS,
            Self::Squeeze => &SQUEEZE,
            Self::Fill => &FILL,
            Self::DepthToSpace => &DEPTH_TO_SPACE,
            Self::SpaceToDepth => &SPACE_TO_DEPTH,
            Self::BatchToSpaceNd => &BATCH_TO_SPACE_ND,
            Self::SpaceToBatchNd => &SPACE_TO_BATCH_ND,
            Self::Quantize => &QUANTIZE,
            Self::Dequantize => &DEQUANTIZE,
            Self::Ceil => &CEIL,
            Self::Cos => &COS,
            Self::Erf => &ERF,
            Self::Gelu => &GELU,
            Self::Round => &ROUND,
            Self::Sign => &SIGN,
            Self::Atan2 => &ATAN2,
            Self::BitwiseXor => &BITWISE_XOR,
            Self::RightShift => &RIGHT_SHIFT,
            Self::Cumsum => &CUMSUM,
            Self::GatherNd => &GATHER_ND,
            Self::ScatterNd => &SCATTER_ND,
            Self::Where => &WHERE,
            Self::OneHot => &ONE_HOT,
            Self::ReverseSequence => &REVERSE_SEQUENCE,
            Self::MatrixDiag => &MATRIX_DIAG,
            Self::MatrixSetDiag => &MATRIX_SET_DIAG,
            Self::Unique => &UNIQUE,
            Self::SegmentSum => &SEGMENT_SUM,
            Self::UnsortedSegmentMax => &UNSORTED_SEGMENT_MAX,
            Self::UnsortedSegmentMin => &UNSORTED_SEGMENT_MIN,
            Self::UnsortedSegmentProd => &UNSORTED_SEGMENT_PROD,
            Self::UnsortedSegmentSum => &UNSORTED_SEGMENT_SUM,
            Self::Bucketize => &BUCKETIZE,
            Self::Bitcast => &BITCAST,
            Self::Rfft2d => &RFFT2D,
            Self::ComplexAbs => &COMPLEX_ABS,
            Self::Real => &REAL,
            Self::Imag => &IMAG,
            Self::Conv3d => &CONV_3D,
            Self::Conv3dTranspose => &CONV_3D_TRANSPOSE,
            Self::DynamicUpdateSlice => &DYNAMIC_UPDATE_SLICE,
            Self::NonMaxSuppressionV4 => &NON_MAX_SUPPRESSION_V4,
            Self::NonMaxSuppressionV5 => &NON_MAX_SUPPRESSION_V5,
            Self::Range => &RANGE,
            Self::Shape => &SHAPE,
            Self::ReduceWindow => &REDUCE_WINDOW,
            Self::SparseToDense => &SPARSE_TO_DENSE,
            Self::BroadcastArgs => &BROADCAST_ARGS,
            Self::BitwiseAnd => &BITWISE_AND,
            Self::LeftShift => &LEFT_SHIFT,
            Self::GatherSlices => &GATHER_SLICES,
            Self::ScatterSlices => &SCATTER_SLICES,
            Self::RandomUniform => &RANDOM_UNIFORM,
            Self::RandomStandardNormal => &RANDOM_STANDARD_NORMAL,
            Self::Multinomial => &MULTINOMIAL,
            Self::RngBitGenerator => &RNG_BIT_GENERATOR,
            Self::DynamicFullyConnected => &DYNAMIC_FULLY_CONNECTED,
            Self::DynamicConv2d => &DYNAMIC_CONV_2D,
            Self::DynamicRound => &DYNAMIC_ROUND,
            Self::ResizeTo => &RESIZE_TO,
            Self::TopK => &TOP_K,
        }
    }
}

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
