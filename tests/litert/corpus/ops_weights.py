"""Operators with weights, matrix products and pooling."""

import numpy as np

from . import graph, judge
from .graph import schema
from .single import BYTES, FLOAT, QUANT, WEIGHTS, Const, In, Single, draw, random, weights

FUSED = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")
ALL_WEIGHTS = WEIGHTS + ("int4w",)
INT4 = ("hybrid_int4", "hybrid_int4_one")
PACKED = ("hybrid_asym", *INT4, "hybrid_int2", "hybrid_int2_one")


def filters(name, shape, axis=0):
    return Const(weights(name, shape), "weights", axis)


def bias(name, size):
    return Const(draw(random(name + " bias"), (size,), -0.5, 0.5), "bias")


def conv(name, image, kernel, out, types=QUANT, stride=(1, 1), dilation=(1, 1), padding="SAME",
         act="NONE", groups=1, signature=None):
    shape = (out, *kernel, image[-1] // groups)
    return Single(f"conv2d_{name}", "CONV_2D",
                  [In(image, signature=signature), filters(name, shape), bias(name, out)],
                  dict(padding=padding, strideH=stride[0], strideW=stride[1],
                       dilationHFactor=dilation[0], dilationWFactor=dilation[1],
                       fusedActivationFunction=act), types)


def convolutions():
    small = (1, 7, 6, 3)
    yield conv("same_3x3", small, (3, 3), 5, ALL_WEIGHTS + INT4)
    yield conv("valid_3x3", small, (3, 3), 5, ALL_WEIGHTS, padding="VALID")
    yield conv("pointwise", (2, 5, 5, 8), (1, 1), 16, ALL_WEIGHTS + INT4)
    yield conv("batch2_dilated", (2, 9, 8, 4), (3, 3), 5, INT4, dilation=(2, 2), act="RELU6")
    yield conv("same_stride2_odd", (1, 9, 9, 4), (3, 3), 8, stride=(2, 2))
    yield conv("same_stride2_even", (1, 8, 10, 4), (3, 3), 8, stride=(2, 2))
    yield conv("valid_stride2", (1, 9, 8, 4), (3, 3), 8, stride=(2, 2), padding="VALID")
    yield conv("pointwise_stride2", (1, 7, 7, 8), (1, 1), 8, stride=(2, 2))
    yield conv("stride_1_3", (1, 8, 11, 3), (3, 5), 4, stride=(1, 3))
    yield conv("kernel_1x5", small, (1, 5), 4)
    yield conv("kernel_5x1_valid", small, (5, 1), 4, padding="VALID")
    yield conv("kernel_even_2x4", small, (2, 4), 4)
    yield conv("kernel_as_large_as_image", (2, 4, 4, 3), (4, 4), 6, padding="VALID")
    yield conv("dilation2_same", (1, 10, 10, 3), (3, 3), 4, dilation=(2, 2))
    yield conv("dilation2_valid", (1, 10, 10, 3), (3, 3), 4, dilation=(2, 2), padding="VALID")
    yield conv("dilation_3_1", (1, 12, 8, 3), (3, 3), 4, dilation=(3, 1))
    yield conv("stride2_dilation2", (1, 11, 11, 3), (3, 3), 4, stride=(2, 2), dilation=(2, 2))
    yield conv("groups2", (1, 6, 6, 8), (3, 3), 6, groups=2)
    yield conv("groups4_stride2", (1, 6, 6, 8), (3, 3), 8, groups=4, stride=(2, 2))
    dilated = QUANT + ("hybrid_channel", "float16w")
    yield conv("groups2_dilation2", (1, 9, 8, 8), (3, 3), 6, dilated, groups=2, dilation=(2, 2))
    yield conv("groups4_dilation_1_3", (2, 7, 12, 8), (2, 3), 8, groups=4, dilation=(1, 3), stride=(2, 1),
               padding="VALID", act="RELU6")
    yield conv("groups_of_one_dilation2", (1, 8, 8, 5), (3, 3), 10, groups=5, dilation=(2, 2))
    yield conv("batch3", (3, 5, 5, 3), (3, 3), 4)
    yield conv("one_channel", (1, 8, 8, 1), (3, 3), 1)
    yield conv("many_channels", (1, 4, 4, 40), (3, 3), 33)
    yield conv("stem", (1, 32, 32, 3), (3, 3), 16, stride=(2, 2), act="RELU6")
    yield conv("dynamic_batch", small, (3, 3), 4, FLOAT, signature=(None, 7, 6, 3))
    for act in FUSED[1:]:
        yield conv(f"act_{act.lower()}", small, (3, 3), 5, act=act)
    yield Single("conv2d_weights_given_at_run_time", "CONV_2D",
                 [In(small), In((4, 3, 3, 3)), In((4,))],
                 dict(padding="SAME", strideH=1, strideW=1))


def depthwise(name, image, kernel, multiplier=1, types=QUANT, stride=(1, 1), dilation=(1, 1),
              padding="SAME", act="NONE"):
    out = image[-1] * multiplier
    value = weights(name + " depthwise", (out, *kernel)).transpose(1, 2, 0)[None]
    return Single(f"depthwise_{name}", "DEPTHWISE_CONV_2D",
                  [In(image), Const(value, "weights", 3), bias(name, out)],
                  dict(padding=padding, strideH=stride[0], strideW=stride[1],
                       dilationHFactor=dilation[0], dilationWFactor=dilation[1],
                       depthMultiplier=multiplier, fusedActivationFunction=act), types)


def depthwise_convolutions():
    small = (1, 7, 6, 4)
    yield depthwise("same_3x3", small, (3, 3), types=ALL_WEIGHTS)
    yield depthwise("valid_3x3", small, (3, 3), padding="VALID")
    yield depthwise("same_5x5", (1, 8, 8, 16), (5, 5), act="RELU6")
    yield depthwise("same_stride2_odd", (1, 9, 9, 8), (3, 3), stride=(2, 2))
    yield depthwise("same_stride2_even", (1, 10, 8, 8), (3, 3), stride=(2, 2), act="RELU6")
    yield depthwise("valid_stride2", (1, 10, 8, 8), (3, 3), stride=(2, 2), padding="VALID")
    yield depthwise("multiplier2", small, (3, 3), 2)
    yield depthwise("multiplier3_stride2", small, (3, 3), 3, stride=(2, 2))
    yield depthwise("one_channel_multiplier8", (1, 6, 6, 1), (3, 3), 8)
    yield depthwise("dilation2_same", (1, 9, 9, 4), (3, 3), dilation=(2, 2))
    yield depthwise("dilation2_valid", (1, 9, 9, 4), (3, 3), dilation=(2, 2), padding="VALID")
    yield depthwise("kernel_1x3", small, (1, 3))
    yield depthwise("batch2", (2, 5, 5, 19), (3, 3))
    for act in FUSED[1:]:
        yield depthwise(f"act_{act.lower()}", small, (3, 3), act=act)


def dense(name, shape, units, types=QUANT, act="NONE", with_bias=True, **more):
    size = more.pop("size", shape[-1])
    options = dict(fusedActivationFunction=act, **more)
    return Single(f"fully_connected_{name}", "FULLY_CONNECTED",
                  [In(shape), filters(name, (units, size)),
                   bias(name, units) if with_bias else None], options, types)


def fully_connected():
    yield dense("plain", (1, 16), 8, ALL_WEIGHTS + PACKED)
    yield dense("batch5", (5, 24), 7, ALL_WEIGHTS + PACKED)
    yield dense("no_bias", (3, 16), 8, WEIGHTS, with_bias=False)
    yield dense("flattens_4d", (2, 3, 3, 4), 6, size=36)
    yield dense("folds_3d", (2, 3, 8), 6)
    yield dense("keep_num_dims", (2, 3, 8), 6, keepNumDims=True)
    yield dense("keep_num_dims_4d", (1, 2, 3, 8), 5, WEIGHTS, keepNumDims=True)
    yield dense("one_unit", (4, 9), 1)
    yield dense("odd_sizes", (3, 33), 17, ALL_WEIGHTS + PACKED)
    yield dense("odd_rows_of_3d", (2, 3, 7), 4, INT4, keepNumDims=True)
    yield dense("odd_rows_asymmetric", (3, 7), 4, INT4, asymmetricQuantizeInputs=True)
    for act in FUSED[1:]:
        yield dense(f"act_{act.lower()}", (2, 12), 6, act=act)
    yield by_block("32", (2, 64), 5, 32)
    yield by_block("64_of_rows", (3, 128), 16, 64)
    yield Single("fully_connected_weights_given_at_run_time", "FULLY_CONNECTED",
                 [In((3, 8)), In((5, 8)), None], types=BYTES)
    # One scale for the whole matrix, the only form that NN HAL 1.3 has.
    yield Single("fully_connected_one_scale", "FULLY_CONNECTED",
                 [In((3, 20)), Const(weights("fc one scale", (6, 20)), "data"), None],
                 types=("int8", "uint8"))


def by_block(name, shape, units, size, act="NONE"):
    """int4 weights with a scale for each block of inputs, as ai-edge-quantizer writes them."""
    def make():
        file = graph.File()
        main = file.graph()
        width = shape[-1]
        rng = random(f"fully_connected_blockwise_{name}")
        scales = draw(rng, (units, width // size), 0.01, 0.1).astype(np.float16)
        x = main.input("x", shape)
        of_weights = main.const("scales", scales)
        weights = main.const("weights", rng.integers(-8, 8, (units, width)).astype(np.int8), "int4")
        quant = schema.QuantizationParametersT()
        quant.detailsType, quant.details = schema.QuantizationDetails.BlockwiseQuantization, schema.BlockwiseQuantizationT()
        quant.details.scales, quant.details.blockSize = of_weights.index, size
        weights.raw.quantization = quant
        y = main.tensor("y", (int(np.prod(shape)) // width, units))
        main.op("FULLY_CONNECTED", [x, weights, main.const("bias", draw(rng, (units,)))], [y],
                fusedActivationFunction=act, asymmetricQuantizeInputs=True)
        main.outputs(y)
        # LiteRT's reference kernel is far from its two others, which are near each other.
        return judge.Made(file.finish(), [judge.Run([draw(rng, shape, -1, 2)])], "schema", "hybrid_block",
                          wrong=("reference",))
    return f"fully_connected_blockwise_{name}", make


def rows_by_block(name, table, size, rows, dtype):
    """A table of int4 or int2 rows with a scale for each block of one."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"embedding_lookup_blockwise_{name}")
        least = {"int4": -8, "int2": -2}[dtype]
        scales = draw(rng, (table[0], table[1] // size), 0.01, 0.1).astype(np.float16)
        x = main.input("x", (len(rows),), "int32")
        of_table = main.const("scales", scales)
        values = main.const("values", rng.integers(least, -least, table).astype(np.int8), dtype)
        quant = schema.QuantizationParametersT()
        quant.detailsType, quant.details = schema.QuantizationDetails.BlockwiseQuantization, schema.BlockwiseQuantizationT()
        quant.details.scales, quant.details.blockSize = of_table.index, size
        values.raw.quantization = quant
        y = main.tensor("y", (len(rows), table[1]))
        main.outputs(*main.op("EMBEDDING_LOOKUP", [x, values], [y]))
        return judge.Made(file.finish(), [judge.Run([np.array(rows, np.int32)])], "schema", "hybrid_block")
    return f"embedding_lookup_blockwise_{name}", make


def transpose_conv(name, image, kernel, out, result, types=QUANT, stride=(2, 2), padding="SAME",
                   with_bias=True, act="NONE"):
    inputs = [Const(np.array(result, np.int32)), filters(name, (out, *kernel, image[-1])), In(image)]
    if with_bias:
        inputs.append(bias(name, out))
    return Single(f"transpose_conv_{name}", "TRANSPOSE_CONV", inputs,
                  dict(padding=padding, strideH=stride[0], strideW=stride[1],
                       fusedActivationFunction=act), types, data_input=2)


def lookups_by_block():
    yield rows_by_block("int4", (7, 64), 32, (0, 6, 3, 3), "int4")
    yield rows_by_block("int2", (5, 64), 32, (4, 1), "int2")
    yield rows_by_block("of_one_block", (9, 32), 32, (8,), "int4")


def transposed():
    yield transpose_conv("same_3x3", (1, 4, 4, 3), (3, 3), 5, (1, 8, 8, 5), WEIGHTS)
    yield transpose_conv("valid_3x3", (1, 4, 4, 3), (3, 3), 5, (1, 9, 9, 5), padding="VALID")
    yield transpose_conv("no_bias", (1, 4, 4, 3), (3, 3), 5, (1, 8, 8, 5), with_bias=False)
    yield transpose_conv("stride1", (1, 5, 5, 4), (3, 3), 2, (1, 5, 5, 2), stride=(1, 1))
    yield transpose_conv("kernel2_stride2", (2, 3, 5, 8), (2, 2), 4, (2, 6, 10, 4))
    yield transpose_conv("same_odd_result", (1, 4, 4, 3), (3, 3), 2, (1, 7, 7, 2))
    yield transpose_conv("stride3_kernel5", (1, 3, 3, 2), (5, 5), 3, (1, 9, 9, 3), stride=(3, 3))
    yield transpose_conv("relu", (1, 4, 4, 3), (3, 3), 5, (1, 8, 8, 5), act="RELU")


def three_dimensional():
    for name, padding, stride, dilation in (("same", "SAME", 1, 1), ("valid_stride2", "VALID", 2, 1),
                                            ("dilation2", "SAME", 1, 2)):
        yield Single(f"conv3d_{name}", "CONV_3D",
                     [In((1, 5, 6, 5, 2)), Const(weights(f"conv3d {name}", (3, 3, 3, 2, 4)), "weights"),
                      bias(f"conv3d {name}", 4)],
                     dict(padding=padding, strideD=stride, strideH=stride, strideW=stride,
                          dilationDFactor=dilation, dilationHFactor=dilation,
                          dilationWFactor=dilation))
    yield Single("conv3d_transpose", "CONV_3D_TRANSPOSE",
                 [Const(np.array([1, 4, 6, 6, 3], np.int32)),
                  Const(weights("conv3d transpose", (2, 3, 3, 3, 2)), "weights"), In((1, 2, 3, 3, 2))],
                 dict(padding="SAME", strideD=2, strideH=2, strideW=2))


def matrix_products():
    types = ("float32", "int8", "int16")
    for name, a, b, adj_x, adj_y in (
            ("2d", (4, 6), (6, 5), False, False), ("3d", (2, 4, 6), (2, 6, 5), False, False),
            ("adj_x", (2, 6, 4), (2, 6, 5), True, False), ("adj_y", (2, 4, 6), (2, 5, 6), False, True),
            ("adj_both", (2, 6, 4), (2, 5, 6), True, True),
            ("broadcast", (2, 1, 4, 6), (3, 6, 5), False, False),
            ("broadcast_rank", (2, 3, 4, 6), (6, 5), False, False),
            ("vector_row", (2, 1, 7), (2, 7, 3), False, False)):
        yield Single(f"batch_matmul_{name}", "BATCH_MATMUL", [In(a), In(b)],
                     dict(adjX=adj_x, adjY=adj_y), types)
    constant = draw(random("batch matmul constant"), (6, 5))
    yield Single("batch_matmul_constant", "BATCH_MATMUL",
                 [In((2, 4, 6)), Const(constant, "data")], types=types)
    yield Single("batch_matmul_weights", "BATCH_MATMUL",
                 [In((2, 4, 6)), Const(constant[None].repeat(2, 0), "weights")],
                 types=("hybrid", "hybrid_asym"))


def rotations():
    """AI Edge Quantizer's, one of the custom operators that LiteRT's interpreter has."""
    from flatbuffers import flexbuffers

    def case(name, shape, size):
        def make():
            file = graph.File()
            main = file.graph()
            x, y = main.input("x", shape), main.tensor("y", shape)
            options = flexbuffers.Dumps({"hadamard_size": size, "random_binary_vector": [1] * 4})
            main.outputs(*main.op("CUSTOM:aeq.hadamard_rotation", [x], [y], custom_options=bytes(options)))
            return judge.Made(file.finish(), [judge.Run([draw(random(name), shape)])], "schema", "float32")
        return f"hadamard_rotation_{name}", make
    yield case("of_rows", (3, 8), 8)
    yield case("of_pieces", (2, 3, 64), 16)
    yield case("of_two_factors", (2, 128), 128)
    yield case("long", (2, 2, 2048), 2048)


def pooling():
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        low = op.lower().removesuffix("_2d")
        types = FLOAT if op == "L2_POOL_2D" else QUANT
        for name, image, size, stride, padding, act in (
                ("2x2", (1, 8, 8, 3), (2, 2), (2, 2), "VALID", "NONE"),
                ("3x3_same", (1, 7, 7, 3), (3, 3), (1, 1), "SAME", "NONE"),
                ("3x3_same_stride2", (2, 8, 7, 5), (3, 3), (2, 2), "SAME", "NONE"),
                ("3x2_valid_stride1_2", (1, 7, 9, 3), (3, 2), (1, 2), "VALID", "NONE"),
                ("global", (2, 7, 5, 17), (7, 5), (1, 1), "VALID", "NONE"),
                ("window_larger_than_image", (1, 2, 3, 4), (4, 4), (2, 2), "SAME", "NONE"),
                ("relu", (1, 6, 6, 4), (2, 2), (2, 2), "VALID", "RELU"),
                ("relu6", (1, 6, 6, 4), (3, 3), (2, 2), "SAME", "RELU6"),
                ("relu_n1_to_1", (1, 6, 6, 4), (2, 2), (1, 1), "SAME", "RELU_N1_TO_1")):
            yield Single(f"{low}_{name}", op, [In(image, -3, 8)],
                         dict(padding=padding, filterHeight=size[0], filterWidth=size[1],
                              strideH=stride[0], strideW=stride[1], fusedActivationFunction=act),
                         types, exact=op == "MAX_POOL_2D")


def all_cases():
    for group in (convolutions, depthwise_convolutions, fully_connected, lookups_by_block, transposed,
                  three_dimensional, matrix_products, rotations, pooling):
        yield from group()
