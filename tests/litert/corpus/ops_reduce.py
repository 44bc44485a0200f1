"""Reductions, searches and sums along an axis."""

import numpy as np

from .single import BYTES, FLOAT, INTS, NUMBERS, QUANT, Const, In, Single, draw, random

SHAPE = (2, 3, 4, 5)
AXES = {"spatial": (1, 2), "last": (3,), "first": (0,), "negative": (-1, -3), "all": (0, 1, 2, 3),
        "channels_and_batch": (0, 3), "repeated": (1, 1)}


def reductions():
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        for name, axes in AXES.items():
            for keep in (False, True):
                types = QUANT
                if op == "REDUCE_PROD":
                    types = ("float32", "int8", "int32")
                elif name == "spatial":
                    types = NUMBERS if op != "MEAN" else QUANT + INTS
                low, high = (0.5, 1.5) if op == "REDUCE_PROD" else (-2, 3)
                yield Single(f"{op.lower()}_{name}{'_keep' if keep else ''}", op,
                             [In(SHAPE, low, high), Const(np.array(axes, np.int32))],
                             dict(keepDims=keep), types)
        yield Single(f"{op.lower()}_scalar_axis", op, [In((3, 4)), Const(np.int32(1))])
        yield Single(f"{op.lower()}_axis_given_at_run_time", op,
                     [In((3, 4)), In((1,), dtype="int32", values=[0])], dynamic=True)
    yield Single("mean_same_scale", "MEAN", [In(SHAPE, -1, 1), Const(np.array([1, 2], np.int32))],
                 dict(keepDims=True), ("uint8", "int8"), out="same")
    yield Single("mean_global_pool", "MEAN", [In((2, 7, 7, 40)), Const(np.array([1, 2], np.int32))],
                 dict(keepDims=True), QUANT)
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        for name in ("spatial", "last", "all"):
            yield Single(f"{op.lower()}_{name}", op,
                         [In(SHAPE, dtype="bool"), Const(np.array(AXES[name], np.int32))],
                         dict(keepDims=name == "last"), types=("bool",))


def searches():
    for op in ("ARG_MAX", "ARG_MIN"):
        for axis in (0, 2, 3, -1):
            types = ("float32", "uint8", "int8", "int32") if axis in (2, -1) else BYTES
            yield Single(f"{op.lower()}_axis{axis}", op, [In(SHAPE), Const(np.int32(axis))],
                         dict(outputType=2), types, out_dtypes=("int32",))
        yield Single(f"{op.lower()}_int64", op, [In(SHAPE), Const(np.int32(1))], dict(outputType=4),
                     BYTES, out_dtypes=("int64",))
        yield Single(f"{op.lower()}_axis_int64", op, [In((6,)), Const(np.int64(0))], dict(outputType=4),
                     out_dtypes=("int64",))
        ties = random(op).integers(0, 3, (4, 6))
        yield Single(f"{op.lower()}_ties", op, [In((4, 6), values=ties), Const(np.array([1], np.int32))],
                     dict(outputType=2), ("float32", "int32"), out_dtypes=("int32",))
    for name, shape, count in (("1d", (9,), 4), ("2d", (3, 8), 3), ("4d", (2, 2, 3, 7), 5),
                               ("all", (2, 5), 5)):
        yield Single(f"topk_v2_{name}", "TOPK_V2", [In(shape), Const(np.int32(count))],
                     types=("float32", "uint8", "int8", "int32", "int64"), outputs=2,
                     out_dtypes=(None, "int32"))
    rows = draw(random("topk computed"), (2, 3, 7), -9, 9)
    counts = [[rows, np.array(count, np.int32)] for count in (7, 1, 0)]
    yield Single("topk_v2_computed", "TOPK_V2", [In((2, 3, 7), -9, 9), In((), dtype="int32", values=4)],
                 outputs=2, out_dtypes=(None, "int32"), dynamic=True, more=counts)
    yield Single("topk_v2_computed_ties", "TOPK_V2",
                 [In((3, 8), values=random("topk").integers(0, 3, (3, 8))), In((1,), dtype="int32", values=[5])],
                 types=("float32", "int32", "int64", "uint8", "int8"), outputs=2, out_dtypes=(None, "int32"), dynamic=True)
    yield Single("topk_v2_of_none", "TOPK_V2", [In((2, 3)), Const(np.int32(0))],
                 outputs=2, out_dtypes=(None, "int32"))
    yield Single("topk_v2_ties", "TOPK_V2",
                 [In((3, 8), values=random("topk").integers(0, 3, (3, 8))), Const(np.int32(5))],
                 types=("float32", "int32"), outputs=2, out_dtypes=(None, "int32"))
    yield Single("where_2d", "WHERE", [In((3, 4), dtype="bool")], types=("bool",),
                 out_dtypes=("int64",), dynamic=True, more=[[np.zeros((3, 4), bool)]])
    yield Single("where_1d", "WHERE", [In((9,), dtype="bool")], types=("bool",),
                 out_dtypes=("int64",), dynamic=True)
    yield Single("where_float", "WHERE", [In((6,), values=[0, 1, 0, -2, 0, 3])],
                 types=("float32", "int32"), out_dtypes=("int64",), dynamic=True)
    values = random("unique").integers(0, 5, 12)
    yield Single("unique", "UNIQUE", [In((12,), values=values)], dict(idxOutType=2),
                 types=("float32", "int32", "int64"), outputs=2, out_dtypes=(None, "int32"), dynamic=True)
    yield Single("bucketize", "BUCKETIZE", [In((3, 5), -10, 10)], dict(boundaries=[-5.0, 0.0, 2.5]),
                 out_dtypes=("int32",))


def sums():
    for exclusive in (False, True):
        for reverse in (False, True):
            name = "_exclusive" * exclusive + "_reverse" * reverse
            yield Single(f"cumsum{name}", "CUMSUM", [In((3, 4, 2)), Const(np.int32(1))],
                         dict(exclusive=exclusive, reverse=reverse), ("float32",) + INTS)
    yield Single("cumsum_last", "CUMSUM", [In((3, 7)), Const(np.int32(-1))])
    segments = np.array([0, 0, 1, 2], np.int32)
    yield Single("segment_sum", "SEGMENT_SUM", [In((4, 3)), Const(segments)], types=("float32", "int32"))
    for op in ("SUM", "MAX", "MIN", "PROD"):
        yield Single(f"unsorted_segment_{op.lower()}", f"UNSORTED_SEGMENT_{op}",
                     [In((4, 3)), Const(np.array([2, 0, 2, 1], np.int32)), Const(np.int32(3))],
                     types=("float32", "int32"))
    for name, function, types in (("sum", 1, NUMBERS), ("product", 2, FLOAT + INTS), ("least", 3, NUMBERS),
                                  ("greatest", 4, NUMBERS), ("all", 5, ("bool",)), ("any", 6, ("bool",))):
        yield Single(f"reduce_window_{name}", "REDUCE_WINDOW",
                     [In((5, 6)), Const(np.float32(function == 5), "data"), Const(np.array([2, 3])),
                      Const(np.array([1, 2])), Const(np.array([1, 1]))],
                     dict(reduceFunction=function), types=types)
    yield Single("reduce_window_dilated", "REDUCE_WINDOW",
                 [In((2, 7, 8)), Const(np.float32(0.5), "data"), Const(np.array([1, 3, 2])),
                  Const(np.array([1, 2, 1])), Const(np.array([1, 2, 3]))], dict(reduceFunction=1))


def others():
    """Operators outside NN HAL 1.3 that an importer has to name."""
    yield Single("complex_abs", "COMPLEX_ABS", [In((3, 4), dtype="complex64")])
    yield Single("real", "REAL", [In((3, 4), dtype="complex64")])
    yield Single("imag", "IMAG", [In((3, 4), dtype="complex64")])
    yield Single("rfft2d", "RFFT2D", [In((2, 4, 8)), Const(np.array([4, 8], np.int32))],
                 out_dtypes=("complex64",))
    yield Single("fake_quant", "FAKE_QUANT", [In((3, 7), -2, 2)], dict(min=-1.0, max=1.5, numBits=8))
    for kind in (1, 2):
        yield Single(f"lsh_projection_{('', 'sparse', 'dense')[kind]}", "LSH_PROJECTION",
                     [Const(draw(random("lsh"), (3, 4))), In((5, 2), 0, 99, "int32"), In((5,), 0.1, 1)],
                     dict(type=(0, 1, 2)[kind]), out_dtypes=("int32",))
    boxes = np.sort(draw(random("nms"), (12, 2, 2), 0, 1), axis=1).reshape(12, 4)
    settings = [Const(np.int32(5)), Const(np.float32(0.5)), Const(np.float32(0.2))]
    inputs = [In((12, 4), values=boxes), In((12,), 0, 1), *settings]
    yield Single("non_max_suppression_v4", "NON_MAX_SUPPRESSION_V4", inputs, outputs=2,
                 out_dtypes=("int32", "int32"))
    yield Single("non_max_suppression_v5", "NON_MAX_SUPPRESSION_V5",
                 inputs + [Const(np.float32(0.5))], outputs=3, out_dtypes=("int32", None, "int32"))


def all_cases():
    for group in (reductions, searches, sums, others):
        yield from group()
