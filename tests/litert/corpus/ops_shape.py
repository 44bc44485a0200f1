"""Operators that move, cut, join and index."""

import numpy as np

from .single import BYTES, FLOAT, MOVED, NUMBERS, QUANT, Const, In, Single, draw, random

SHAPE = (2, 3, 4, 5)


def ints(*values):
    """An int32 constant vector."""
    return Const(np.array(values, np.int32))


def int_input(*values):
    """An int32 input vector with these values."""
    return In((len(values),), dtype="int32", values=np.array(values))


def embedding_lookup_sparse(combiner):
    """Rows of a table for a sparse matrix of 4 rows, the third of which is empty."""
    places = [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2]]
    return Single(f"embedding_lookup_sparse_{combiner.lower()}", "EMBEDDING_LOOKUP_SPARSE",
                  [int_input(2, 1, 6, 0, 6, 3), In((6, 2), dtype="int32", values=np.array(places)), int_input(4, 3),
                   In((6,), values=np.array([1, 0.5, 2, 0.25, 1, 3], np.float32)), Const(draw(random("sparse rows"), (7, 2, 3)))],
                  {"combiner": ("SUM", "MEAN", "SQRTN").index(combiner)})


def reshaping():
    yield Single("reshape_constant", "RESHAPE", [In(SHAPE), ints(6, 20)],
                 dict(newShape=[6, 20]), MOVED)
    yield Single("reshape_minus_one", "RESHAPE", [In(SHAPE), ints(-1, 10)], dict(newShape=[-1, 10]),
                 QUANT)
    yield Single("reshape_attribute_only", "RESHAPE", [In(SHAPE)], dict(newShape=[2, 60]), QUANT)
    yield Single("reshape_attribute_minus_one", "RESHAPE", [In(SHAPE)], dict(newShape=[4, -1]))
    yield Single("reshape_tensor_without_attribute", "RESHAPE", [In(SHAPE), ints(5, 24)])
    yield Single("reshape_to_rank1", "RESHAPE", [In(SHAPE), ints(-1)], types=QUANT)
    yield Single("reshape_to_rank0", "RESHAPE", [In((1, 1)), Const(np.zeros(0, np.int32))])
    yield Single("reshape_shape_given_at_run_time", "RESHAPE", [In(SHAPE), int_input(3, -1, 8)],
                 dynamic=True, more=[[draw(random("reshape more"), SHAPE), np.array([2, 15, 4], np.int32)]])
    for name, shape, dims in (("all", (1, 3, 1, 4, 1), []), ("some", (1, 3, 1, 4), [0]),
                              ("negative", (2, 3, 1), [-1]), ("two", (1, 1, 5, 1), [0, 3])):
        yield Single(f"squeeze_{name}", "SQUEEZE", [In(shape)], dict(squeezeDims=dims),
                     MOVED if name == "all" else QUANT)
    for axis in (0, 1, 2, -1):
        yield Single(f"expand_dims_{axis}", "EXPAND_DIMS", [In((3, 4)), Const(np.int32(axis))],
                     types=MOVED if axis == 0 else QUANT)
    yield Single("expand_dims_axis_vector", "EXPAND_DIMS", [In((3, 4)), ints(1)])
    for name, permutation in (("nchw_to_nhwc", (0, 2, 3, 1)), ("nhwc_to_nchw", (0, 3, 1, 2)),
                              ("reverse", (3, 2, 1, 0)), ("same", (0, 1, 2, 3)),
                              ("swap_middle", (0, 2, 1, 3))):
        yield Single(f"transpose_{name}", "TRANSPOSE", [In(SHAPE), ints(*permutation)],
                     types=MOVED if name == "reverse" else QUANT)
    yield Single("transpose_2d", "TRANSPOSE", [In((5, 7)), ints(1, 0)], types=QUANT)
    yield Single("transpose_3d", "TRANSPOSE", [In((5, 7, 2)), ints(2, 0, 1)], types=QUANT)
    yield Single("transpose_5d", "TRANSPOSE", [In((2, 3, 2, 3, 2)), ints(4, 2, 0, 3, 1)])
    yield Single("transpose_permutation_given_at_run_time", "TRANSPOSE",
                 [In((2, 3, 4)), int_input(2, 0, 1)], dynamic=True)
    for axes in ((0,), (1,), (3,), (1, 2)):
        yield Single("reverse_v2_" + "_".join(map(str, axes)), "REVERSE_V2", [In(SHAPE), ints(*axes)],
                     types=MOVED if axes == (1,) else FLOAT)
    yield Single("reverse_sequence", "REVERSE_SEQUENCE",
                 [In((3, 5, 2)), ints(2, 5, 1)], dict(seqDim=1, batchDim=0))
    yield Single("bitcast", "BITCAST", [In((3, 4))], out_dtypes=("int32",))


def joining():
    for axis in (0, 1, 2, 3, -1):
        shapes = [list(SHAPE) for _ in range(3)]
        for size, shape in zip((1, 2, 4), shapes):
            shape[axis] = size
        for name, share in (("", 0), ("_rescaled", None)):
            inputs = [In(tuple(shape), -1 - i, 1 + 2 * i, share=share if i else None)
                      for i, shape in enumerate(shapes)]
            types = MOVED if axis in (1, -1) and share == 0 else QUANT
            if share is None:       # LiteRT rescales uint8 only
                types = ("uint8",)
            yield Single(f"concatenation_axis{axis}{name}", "CONCATENATION", inputs, dict(axis=axis),
                         types, out="same" if share == 0 else "range", exact=share == 0)
    yield Single("concatenation_with_constant", "CONCATENATION",
                 [In((2, 3)), Const(draw(random("concat constant"), (2, 2)), "data", share=0)],
                 dict(axis=1), QUANT, exact=True)
    yield Single("concatenation_one", "CONCATENATION", [In((2, 3))], dict(axis=0))
    for axis in (0, 1, -1):
        for count in (1, 3):
            yield Single(f"pack_axis{axis}_{count}", "PACK",
                         [In((3, 4), share=0 if i else None) for i in range(count)],
                         dict(valuesCount=count, axis=axis), NUMBERS if axis == 1 else QUANT)
    for axis in (0, 1, -1):
        yield Single(f"unpack_axis{axis}", "UNPACK", [In((2, 3, 4))],
                     dict(num=(2, 3, 4)[axis], axis=axis),
                     ("float32", "uint8", "int8", "int16", "int32", "bool") if axis == 1 else QUANT,
                     outputs=(2, 3, 4)[axis])
    for axis, parts in ((0, 2), (1, 3), (3, 5), (-1, 5), (-2, 2)):
        yield Single(f"split_axis{axis}_{parts}", "SPLIT", [Const(np.int32(axis)), In(SHAPE)],
                     dict(numSplits=parts), ("float32", "uint8", "int8", "int16", "int32"), outputs=parts)
    for name, axis, sizes in (("rows", 1, (1, 2)), ("last", -1, (2, 1, 2)), ("rest", 2, (1, -1)),
                              ("one", 0, (2,))):
        yield Single(f"split_v_{name}", "SPLIT_V", [In(SHAPE), ints(*sizes), Const(np.int32(axis))],
                     dict(numSplits=len(sizes)), ("float32", "uint8", "int8", "int16", "int32"),
                     outputs=len(sizes))


def padding():
    edges = np.array([[0, 0], [1, 2], [3, 0], [0, 1]], np.int32)
    types = ("float32", "uint8", "int8", "int16", "int32", "int64", "bool")
    yield Single("pad_4d", "PAD", [In(SHAPE), Const(edges)], types=types)
    yield Single("pad_1d", "PAD", [In((5,)), Const(edges[1:2])], types=QUANT)
    yield Single("pad_2d", "PAD", [In((3, 5)), Const(edges[1:3])], types=QUANT)
    yield Single("pad_3d_int64", "PAD", [In((3, 2, 5)), Const(edges[1:].astype(np.int64))])
    yield Single("pad_5d", "PAD", [In((2, 2, 2, 2, 2)), Const(np.array([[1, 0]] * 5, np.int32))])
    yield Single("pad_nothing", "PAD", [In(SHAPE), Const(edges * 0)], types=QUANT)
    yield Single("pad_given_at_run_time", "PAD", [In((3, 5)), In((2, 2), dtype="int32", values=edges[1:3])],
                 dynamic=True)
    for value in (0.5, -1.0):
        yield Single(f"padv2_{value:g}", "PADV2",
                     [In(SHAPE), Const(edges), Const(np.array([value], np.float32), "data", share=0)],
                     types=types if value == -1 else BYTES)
    for mode, name in ((0, "reflect"), (1, "symmetric")):
        for rank, shape in ((4, SHAPE), (2, (4, 6)), (1, (7,))):
            around = np.array([[0, 0], [1, 2], [2, 1], [3, 0]][-rank:], np.int32)
            yield Single(f"mirror_pad_{name}_{rank}d", "MIRROR_PAD", [In(shape), Const(around)],
                         dict(mode=mode), ("float32", "int8", "int16", "uint8", "int32"))


def slicing():
    for name, begin, size in (("inside", (0, 1, 1, 2), (2, 2, 3, 1)),
                              ("to_the_end", (1, 0, 2, 0), (-1, 3, -1, 5)),
                              ("all", (0, 0, 0, 0), (-1, -1, -1, -1))):
        yield Single(f"slice_{name}", "SLICE", [In(SHAPE), ints(*begin), ints(*size)],
                     types=MOVED if name == "inside" else QUANT)
    yield Single("slice_1d", "SLICE", [In((9,)), ints(3), ints(4)], types=QUANT)
    yield Single("slice_5d", "SLICE", [In((2, 3, 2, 3, 2)), ints(0, 1, 0, 1, 1), ints(2, 2, 1, 2, 1)])
    yield Single("slice_int64", "SLICE", [In((4, 6)), Const(np.array([1, 2])), Const(np.array([2, 3]))])
    yield Single("slice_given_at_run_time", "SLICE", [In((4, 6)), int_input(1, 2), int_input(2, 3)],
                 dynamic=True)

    def strided(name, shape, begin, end, strides, types=QUANT, **masks):
        return Single(f"strided_slice_{name}", "STRIDED_SLICE",
                      [In(shape), ints(*begin), ints(*end), ints(*strides)], masks, types)

    yield strided("plain", SHAPE, (0, 1, 0, 1), (2, 3, 4, 4), (1, 1, 2, 1), MOVED)
    yield strided("negative_indices", SHAPE, (0, -2, 0, -4), (2, -1, 4, -1), (1, 1, 1, 2))
    yield strided("negative_strides", SHAPE, (1, 2, 3, 4), (-3, 0, 0, 0), (-1, -1, -2, -1))
    yield strided("begin_end_mask", SHAPE, (1, 1, 1, 1), (1, 2, 3, 4), (1, 1, 1, 1),
                  beginMask=0b0101, endMask=0b1001)
    yield strided("masked_negative_stride", (5, 6), (0, 0), (0, 0), (-1, -2), beginMask=3, endMask=3)
    yield strided("shrink", SHAPE, (0, 1, 0, 3), (2, 2, 4, 4), (1, 1, 1, 1), shrinkAxisMask=0b1010)
    yield strided("shrink_negative", (4, 3), (-1, 0), (0, 3), (1, 1), shrinkAxisMask=1)
    yield strided("shrink_all", (4, 3), (2, 1), (3, 2), (1, 1), shrinkAxisMask=3)
    yield strided("new_axis", (3, 4), (0, 0, 1), (0, 3, 3), (1, 1, 1), newAxisMask=1, endMask=2)
    yield strided("new_axis_in_the_middle", (3, 4), (0, 0, 1), (3, 0, 4), (1, 1, 2), newAxisMask=2)
    yield strided("ellipsis", SHAPE, (0, 1), (0, 4), (1, 2), ellipsisMask=1)
    yield strided("ellipsis_in_the_middle", SHAPE, (1, 0, 0), (2, 0, 3), (1, 1, 1), ellipsisMask=2)
    yield strided("ellipsis_new_axis_shrink", SHAPE, (1, 0, 0, 2), (2, 0, 0, 3), (1, 1, 1, 1),
                  ellipsisMask=2, newAxisMask=4, shrinkAxisMask=9)
    yield strided("fewer_indices_than_rank", SHAPE, (1, 0), (2, 2), (1, 1))
    yield strided("beyond_the_end", (4, 5), (1, -9), (99, 99), (1, 2))
    yield strided("empty", (4, 5), (3, 0), (1, 5), (1, 1))
    yield strided("vector_element", (6,), (4,), (5,), (1,), MOVED, shrinkAxisMask=1)
    yield Single("strided_slice_given_at_run_time", "STRIDED_SLICE",
                 [In((4, 6)), int_input(0, 1), int_input(3, 5), int_input(1, 2)], dynamic=True)
    # What a model says of x[i] and x[i, j], where it computes them.
    for name, shape, begin, end, types in (("row", (4, 6), (2,), (3,), ("float32", "int8", "int32")),
                                           ("element", (4, 6), (2, 1), (3, 2), ("float32", "int32")),
                                           ("vector_element", (9,), (7,), (8,), ("float32", "int32"))):
        yield Single(f"strided_slice_{name}_at_run_time", "STRIDED_SLICE",
                     [In(shape), int_input(*begin), int_input(*end), ints(*[1] * len(begin))],
                     dict(shrinkAxisMask=2 ** len(begin) - 1), types)
    yield Single("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE",
                 [In((4, 6)), In((2, 3), share=0), int_input(1, 2)], types=("float32", "int8", "int32"))


def gathering():
    for axis in (0, 1, 3, -1):
        yield Single(f"gather_axis{axis}", "GATHER", [In(SHAPE), ints(1, 0, 1)], dict(axis=axis),
                     MOVED if axis == 1 else QUANT)
    yield Single("gather_2d_indices", "GATHER", [In((5, 3)), Const(np.array([[0, 4], [2, 2]], np.int32))],
                 types=QUANT)
    yield Single("gather_scalar_index", "GATHER", [In((5, 3)), Const(np.int32(3))], types=QUANT)
    yield Single("gather_batch_dims", "GATHER",
                 [In((2, 4, 3)), Const(np.array([[0, 3], [2, 1]], np.int32))], dict(axis=1, batchDims=1))
    yield Single("gather_int64_indices", "GATHER", [In((5, 3)), Const(np.array([4, 0]))])
    yield Single("gather_given_at_run_time", "GATHER", [In((5, 3)), int_input(4, 0, 0)],
                 types=("float32", "int8"))
    yield Single("gather_from_constant", "GATHER",
                 [Const(draw(random("gather table"), (9, 4)), "data"), int_input(3, 8, 0)],
                 types=("float32", "int8"))
    for name, indices in (("rows", [[0], [2]]), ("elements", [[0, 1], [2, 3]]),
                          ("nested", [[[1, 0]], [[2, 2]]])):
        yield Single(f"gather_nd_{name}", "GATHER_ND", [In((3, 4, 2)), Const(np.array(indices, np.int32))],
                     types=("float32", "int8", "uint8", "int16", "int32", "int64"))
    yield Single("embedding_lookup", "EMBEDDING_LOOKUP",
                 [ints(3, 0, 0, 6), Const(draw(random("embedding"), (7, 5)))])
    yield Single("embedding_lookup_3d", "EMBEDDING_LOOKUP",
                 [int_input(2, 1), Const(draw(random("embedding3"), (4, 3, 2)))])
    for combiner in ("SUM", "MEAN", "SQRTN"):
        yield embedding_lookup_sparse(combiner)
    yield Single("embedding_lookup_weights", "EMBEDDING_LOOKUP",
                 [int_input(2, 1, 6), Const(draw(random("embedding8"), (7, 5)), "weights")],
                 types=("hybrid", "hybrid_channel"))
    yield Single("hashtable_lookup", "HASHTABLE_LOOKUP",
                 [int_input(1, 20, 3, 40), ints(1, 3, 5, 20), In((4, 2))], outputs=2,
                 out_dtypes=(None, "uint8"))
    yield Single("scatter_nd", "SCATTER_ND",
                 [Const(np.array([[1], [3], [1]], np.int32)), In((3, 4)), ints(5, 4)],
                 types=("float32", "int32", "int8"))
    yield Single("scatter_nd_given_at_run_time", "SCATTER_ND",
                 [In((2, 1), dtype="int32", values=np.array([[1], [3]])), In((2, 4)), int_input(5, 4)],
                 dynamic=True)
    yield Single("sparse_to_dense", "SPARSE_TO_DENSE",
                 [Const(np.array([[0, 1], [2, 3]], np.int32)), ints(3, 4),
                  In((2,)), Const(np.float32(-1), "data")],
                 types=("float32", "uint8", "int8", "int32", "int64"), out="same")
    yield Single("sparse_to_dense_one_value", "SPARSE_TO_DENSE",
                 [Const(np.array([[0, 1, 1], [2, 3, 0]])), Const(np.array([3, 4, 2])),
                  In(()), Const(np.float32(-1), "data")])
    yield Single("sparse_to_dense_vector", "SPARSE_TO_DENSE",
                 [In((3,), dtype="int32", values=np.array([4, 0, 2])), ints(6),
                  In((3,)), Const(np.float32(0.25), "data")])
    yield Single("sparse_to_dense_given_at_run_time", "SPARSE_TO_DENSE",
                 [In((2, 2), dtype="int32", values=np.array([[0, 1], [2, 0]])), int_input(3, 2),
                  In((2,)), Const(np.float32(-1), "data")], dynamic=True)


def filling():
    for name, multiples in (("rows", (1, 2, 1, 1)), ("all", (2, 1, 2, 3)), ("once", (1, 1, 1, 1))):
        yield Single(f"tile_{name}", "TILE", [In(SHAPE), ints(*multiples)],
                     types=MOVED if name == "all" else QUANT)
    yield Single("tile_1d", "TILE", [In((3,)), ints(4)])
    yield Single("tile_given_at_run_time", "TILE", [In((2, 3)), int_input(2, 2)], dynamic=True)
    for name, shape, target in (("rows", (1, 5), (4, 5)), ("rank", (5,), (2, 3, 5)),
                                ("both", (2, 1, 3), (2, 4, 3)), ("scalar", (), (3, 2))):
        yield Single(f"broadcast_to_{name}", "BROADCAST_TO", [In(shape), ints(*target)],
                     types=("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
                     if name == "rows" else FLOAT)
    yield Single("broadcast_args_longer", "BROADCAST_ARGS",
                 [In((2,), dtype="int64", values=np.array([1, 4])),
                  In((4,), dtype="int64", values=np.array([2, 7, 5, 1]))], out_dtypes=("int64",))
    yield Single("broadcast_args", "BROADCAST_ARGS", [int_input(2, 1, 3), int_input(4, 1)],
                 out_dtypes=("int32",))
    yield Single("fill_constant_shape", "FILL", [ints(2, 3), In(())], types=MOVED)
    yield Single("fill_given_at_run_time", "FILL", [int_input(2, 3), In(())], dynamic=True,
                 types=("float32", "int32"))
    for name, dtype, start, limit, delta in (("int32", "int32", 2, 20, 3), ("down", "int32", 7, -3, -2),
                                             ("float32", "float32", 0.5, 4.0, 0.75)):
        yield Single(f"range_{name}", "RANGE",
                     [In((), dtype=dtype, values=value) for value in (start, limit, delta)],
                     out_dtypes=(dtype,), dynamic=True)
    yield Single("range_constant", "RANGE",
                 [Const(np.int32(0)), In((), dtype="int32", values=5), Const(np.int32(1))],
                 out_dtypes=("int32",), dynamic=True, more=[[np.int32(3)], [np.int32(0)]])
    for shape in (SHAPE, (7,), ()):
        yield Single(f"shape_rank{len(shape)}", "SHAPE", [In(shape)], dict(outType=2),
                     types=("float32", "int8"), out_dtypes=("int32",))
        yield Single(f"rank_rank{len(shape)}", "RANK", [In(shape)], types=("float32", "int8"),
                     out_dtypes=("int32",))
    yield Single("shape_int64", "SHAPE", [In(SHAPE)], dict(outType=4), out_dtypes=("int64",))
    yield Single("shape_of_unknown_batch", "SHAPE", [In((1, 4), signature=(None, 4))], dict(outType=2),
                 out_dtypes=("int32",), more=[[np.zeros((3, 4), np.float32)]])
    for axis in (-1, 0, 1):
        yield Single(f"one_hot_axis{axis}", "ONE_HOT",
                     [In((2, 3), 0, 3, "int32"), Const(np.int32(4)), Const(np.float32(2)),
                      Const(np.float32(-1))],
                     dict(axis=axis))
    for dtype in ("int32", "int64", "bool", "int8", "uint8"):
        yield Single(f"one_hot_{dtype}", "ONE_HOT",
                     [In((4,), -1, 4, "int32"), Const(np.int32(4)),
                      Const(np.array(1, dtype)), Const(np.array(0, dtype))],
                     dict(axis=-1), out_dtypes=(dtype,))
    yield Single("matrix_diag", "MATRIX_DIAG", [In((2, 3))], types=("float32", "int32", "int8"))
    yield Single("matrix_set_diag", "MATRIX_SET_DIAG", [In((2, 3, 4)), In((2, 3), share=0)],
                 types=("float32", "int32"))


def blocks():
    for op in ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"):
        for block in (2, 3):
            shape = (2, 6, 12, 2) if op == "SPACE_TO_DEPTH" else (2, 2, 3, 36)
            yield Single(f"{op.lower()}_{block}", op, [In(shape)], dict(blockSize=block),
                         ("float32", "uint8", "int8", "int32", "int64"))
    around = np.array([[0, 1], [1, 2]], np.int32)
    yield Single("space_to_batch_nd_4d", "SPACE_TO_BATCH_ND", [In((2, 5, 6, 3)), ints(2, 3), Const(around)],
                 types=("float32", "uint8", "int8", "int16", "int32", "int64"))
    yield Single("space_to_batch_nd_no_padding", "SPACE_TO_BATCH_ND",
                 [In((1, 4, 6, 3)), ints(2, 2), Const(around * 0)], types=BYTES)
    yield Single("space_to_batch_nd_3d", "SPACE_TO_BATCH_ND", [In((2, 5, 3)), ints(2), Const(around[:1])])
    yield Single("batch_to_space_nd_4d", "BATCH_TO_SPACE_ND", [In((12, 3, 3, 2)), ints(2, 3), Const(around)],
                 types=("float32", "uint8", "int8", "int16", "int32", "int64"))
    yield Single("batch_to_space_nd_no_crops", "BATCH_TO_SPACE_ND",
                 [In((4, 3, 2, 2)), ints(2, 2), Const(around * 0)], types=BYTES)
    yield Single("batch_to_space_nd_3d", "BATCH_TO_SPACE_ND", [In((4, 3, 3)), ints(2), Const(around[:1])])
    yield Single("dilate_3d", "DILATE", [In((2, 3, 4)), ints(1, 3, 2), Const(np.float32(0.5), "data")])
    yield Single("stablehlo_pad", "STABLEHLO_PAD", [In((3, 4, 2)), Const(np.float32(-1), "data")],
                 dict(edgePaddingLow=[1, -1, 0], edgePaddingHigh=[0, 2, 1], interiorPadding=[2, 0, 1]),
                 types=("float32", "int32", "int64"))
    # Edges that take away: from both sides, more than there is beside what is added, with elements between.
    for name, low, high, between in (("negative", (-1, -2), (-1, 0), (0, 0)), ("negative_between", (-2, 3), (0, -4), (1, 2)),
                                     ("all_cut", (-5, 0), (4, 0), (0, 0)), ("all_cut_from_behind", (3, -1), (-4, 2), (0, 1))):
        yield Single(f"stablehlo_pad_{name}", "STABLEHLO_PAD", [In((3, 4)), Const(np.float32(-1), "data")],
                     dict(edgePaddingLow=low, edgePaddingHigh=high, interiorPadding=between), types=("float32", "int32"))
    yield Single("dilate", "DILATE", [In((3, 4)), ints(2, 3), Const(np.float32(-1), "data")],
                 types=("float32", "int32"))


def all_cases():
    for group in (reshaping, joining, padding, slicing, gathering, filling, blocks):
        yield from group()
