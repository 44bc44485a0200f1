"""Operators that become operations of our extension: types and ranks beyond those of the other
files, and integers that 32 bits do not hold."""

import numpy as np

from .graph import DTYPES
from .single import BYTES, INTS, Const, In, Single, random

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


def batches():
    for batch, axis in ((1, 1), (1, 2)):
        indices = random(f"gather {axis}").integers(0, 3, (2, 4)).astype(np.int32)
        yield Single(f"gather_batch{batch}_axis{axis}", "GATHER", [In((2, 3, 3, 2)), Const(indices)],
                     dict(axis=axis, batchDims=batch), types=BYTES + INTS)


def all_cases():
    for group in (far_integers, ranks, batches):
        yield from group()
