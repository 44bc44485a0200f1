"""Operators that become operations of our extension: types and ranks beyond those of the other
files, and integers that 32 bits do not hold."""

import numpy as np

from .graph import DTYPES
from .single import BYTES, INTS, QUANT, Const, In, Single, random, weights

FAR = np.array([[2**40, -2**40, 5], [2**52 + 1, -7, 2**33 + 1]], np.int64)
NEAR = np.array([[3, 2**35, -2], [2**20, 2**40, 2**32 + 3]], np.int64)


def far_integers():
    a, b = In((2, 3), values=FAR, dtype="int64"), In((2, 3), values=NEAR, dtype="int64")
    for op in ("ADD", "SUB", "MAXIMUM", "MINIMUM", "FLOOR_MOD"):
        yield Single(f"{op.lower()}_wide", op, [a, b], types=("int64",), out_dtypes=("int64",))
    small = In((2, 3), values=np.array([[3, -5, 7], [1, 2**20, -9]], np.int64), dtype="int64")
    yield Single("mul_wide", "MUL", [a, small], types=("int64",), out_dtypes=("int64",))
    for op in ("EQUAL", "LESS", "GREATER_EQUAL"):
        yield Single(f"{op.lower()}_wide", op, [a, b], types=("int64",), out_dtypes=("bool",))
    for target in ("float32", "int32", "bool", "uint8"):
        yield Single(f"cast_wide_to_{target}", "CAST", [a],
                     dict(inDataType=DTYPES["int64"], outDataType=DTYPES[target]),
                     types=("int64",), out_dtypes=(target,))
    for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN"):
        yield Single(f"{op.lower()}_wide", op, [a, Const(np.array([1], np.int32))], types=("int64",),
                     out_dtypes=("int64",))
    for op, extra in (("NEG", []), ("CUMSUM", [Const(np.int32(1))])):
        yield Single(f"{op.lower()}_wide", op, [a, *extra], types=("int64",), out_dtypes=("int64",))
    yield Single("select_v2_wide", "SELECT_V2", [In((2, 3), dtype="bool"), a, b], types=("int64",),
                 out_dtypes=("int64",))


def ranks():
    for rank, shape in ((5, (2, 1, 3, 2, 2)), (6, (1, 2, 1, 3, 2, 2))):
        order = np.array(random(f"order {rank}").permutation(rank), np.int32)
        yield Single(f"transpose_rank{rank}", "TRANSPOSE", [In(shape), Const(order)], types=BYTES + INTS)
        for op in ("MEAN", "SUM", "REDUCE_MAX"):
            yield Single(f"{op.lower()}_rank{rank}", op, [In(shape), Const(np.array([1, 3], np.int32))])
        yield Single(f"reshape_rank{rank}", "RESHAPE", [In((24,)), Const(np.array(shape, np.int32))],
                     types=BYTES + INTS)
        yield Single(f"tile_rank{rank}", "TILE",
                     [In(shape), Const(np.array([1, 2] + [1] * (rank - 2), np.int32))])
    yield Single("batch_matmul_rank5", "BATCH_MATMUL", [In((2, 1, 2, 3, 4)), In((2, 3, 1, 4, 2))])
    yield Single("strided_slice_rank5", "STRIDED_SLICE",
                 [In((2, 3, 2, 3, 2)), Const(np.array([0, 1, 0, 2, 0], np.int32)),
                  Const(np.array([2, 3, 1, 0, 2], np.int32)),
                  Const(np.array([1, 1, 1, -1, 1], np.int32))], dict())


def more_axes():
    """What the HAL has for at most four axes."""
    vector = Const(weights("of columns", (5,)), "data")
    for rank, shape in ((5, (2, 1, 3, 2, 5)), (6, (1, 2, 1, 3, 2, 5))):
        x, positive, flags = In(shape, -4, 4), In(shape, 0.1, 3), In(shape, dtype="bool")
        for op in ("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LOGISTIC", "LOG_SOFTMAX", "NEG",
                   "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "SIN", "SQUARE", "TANH"):
            yield Single(f"{op.lower()}_rank{rank}", op, [x])
        for op in ("LOG", "RSQRT", "SQRT"):
            yield Single(f"{op.lower()}_rank{rank}", op, [positive])
        yield Single(f"softmax_rank{rank}", "SOFTMAX", [x], dict(beta=1.0), QUANT)
        yield Single(f"leaky_relu_rank{rank}", "LEAKY_RELU", [x], dict(alpha=0.1))
        for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW"):
            yield Single(f"{op.lower()}_beside_rank{rank}", op, [positive, In(shape[1:], 0.2, 2)])
        for op in ("EQUAL", "LESS"):
            yield Single(f"{op.lower()}_rank{rank}", op, [x, In(shape[-2:], -4, 4)], out_dtypes=("bool",))
        yield Single(f"prelu_rank{rank}", "PRELU", [x, vector])
        yield Single(f"select_v2_rank{rank}", "SELECT_V2", [flags, x, x])
        yield Single(f"concatenation_rank{rank}", "CONCATENATION", [x, x], dict(axis=2))
        yield Single(f"gather_rank{rank}", "GATHER", [x, Const(np.array([1, 0, 1], np.int32))], dict(axis=-2))
        yield Single(f"split_rank{rank}", "SPLIT", [Const(np.int32(rank - 2)), x], dict(numSplits=2), outputs=2)
        yield Single(f"pack_rank{rank}", "PACK", [x, x], dict(axis=1, valuesCount=2))
        yield Single(f"unpack_rank{rank}", "UNPACK", [x], dict(axis=rank - 2, num=2), outputs=2)
        yield Single(f"arg_max_rank{rank}", "ARG_MAX", [x, Const(np.int32(-1))],
                     dict(outputType=DTYPES["int32"]), out_dtypes=("int32",))
        yield Single(f"cumsum_rank{rank}", "CUMSUM", [x, Const(np.int32(2))])
        yield Single(f"reverse_rank{rank}", "REVERSE_V2", [x, Const(np.array([rank - 2], np.int32))])
        yield Single(f"slice_rank{rank}", "SLICE", [x, Const(np.array([0] * (rank - 1) + [2], np.int32)),
                                                   Const(np.array([-1] * (rank - 1) + [2], np.int32))])
        yield Single(f"topk_rank{rank}", "TOPK_V2", [x, Const(np.int32(2))], outputs=2, out_dtypes=("float32", "int32"))
        yield Single(f"broadcast_to_rank{rank}", "BROADCAST_TO", [In((3, 1, 5)), Const(np.array(shape, np.int32))])
    bias = Const(weights("bias", (4,)), "bias")
    for name, shape in (("rank1", (5,)), ("rank5", (2, 1, 3, 2, 5)), ("rank6", (1, 2, 1, 3, 2, 5))):
        yield Single(f"fully_connected_{name}", "FULLY_CONNECTED",
                     [In(shape), Const(weights("matrix", (4, 5)), "weights"), bias],
                     dict(keepNumDims=len(shape) > 1), BYTES)


def batches():
    for batch, axis in ((1, 1), (1, 2)):
        indices = random(f"gather {axis}").integers(0, 3, (2, 4)).astype(np.int32)
        yield Single(f"gather_batch{batch}_axis{axis}", "GATHER", [In((2, 3, 3, 2)), Const(indices)],
                     dict(axis=axis, batchDims=batch), types=BYTES + INTS)


def all_cases():
    for group in (far_integers, ranks, more_axes, batches):
        yield from group()
