"""Element types of fewer bits: constants that are unpacked, what LiteRT computes with bfloat16, and scales by channel that
the HAL has no type for."""

import numpy as np

from . import graph, judge
from .single import draw, random

CODES = vars(graph.schema.TensorType)
SHAPE = (3, 7)


def constant(operator, dtype):
    """A constant of a narrow type as floats: dequantized, or cast as it is stored."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"narrow {dtype}")
        quant = None
        if dtype == "bfloat16":
            value = draw(rng, SHAPE, -3, 3)
        else:
            low, high = {"int2": (-2, 2), "int4": (-8, 8), "uint4": (0, 16)}[dtype]
            value = rng.integers(low, high, SHAPE).astype(np.int8)
            quant = graph.Quant.per_tensor(0.375, 3 if dtype == "uint4" else 0)
        x = main.input("x", SHAPE)
        narrow = main.const("narrow", value, dtype, quant if operator == "DEQUANTIZE" else None)
        options = dict(inDataType=CODES[dtype.upper()], outDataType=CODES["FLOAT32"])
        floats = main.tensor("floats", SHAPE)
        main.op(operator, [narrow], [floats], **(options if operator == "CAST" else {}))
        main.outputs(*main.op("ADD", [x, floats], [main.tensor("y", SHAPE)], potScaleInt16=False))
        return judge.Made(file.finish(), [judge.Run([draw(rng, SHAPE)])], "schema", dtype)
    return f"narrow_{operator.lower()}.{dtype}", make


def moved(operator, dtype, shape, more, times=1, **options):
    """A constant of a narrow type that is moved before it is dequantized."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"moved {operator} {dtype}")
        low, high = {"int2": (-2, 2), "int4": (-8, 8), "uint4": (0, 16)}[dtype]
        quant = graph.Quant.per_tensor(0.25, 3 if dtype == "uint4" else 0)
        narrow = main.const("narrow", rng.integers(low, high, (4, 7)).astype(np.int8), dtype, quant)
        inputs = [narrow] * times + [main.const(f"c{at}", np.array(it, np.int32)) for at, it in enumerate(more)]
        there = main.tensor("moved", shape, dtype, quant)
        main.op(operator, inputs, [there], **options)
        floats = main.tensor("floats", shape)
        main.op("DEQUANTIZE", [there], [floats])
        x = main.input("x", shape)
        main.outputs(*main.op("ADD", [x, floats], [main.tensor("y", shape)], potScaleInt16=False))
        return judge.Made(file.finish(), [judge.Run([draw(rng, shape)])], "schema", dtype)
    return f"narrow_moved_by_{operator.lower()}.{dtype}", make


def computed(operator, shape=SHAPE, more=lambda main, x: [], result="bfloat16", **options):
    """An operator on floats that were cast to bfloat16."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"bfloat16 {operator}")
        first = draw(rng, SHAPE, -4, 4)
        # Halfway between two numbers, where the even one is nearest, and what is none.
        first.ravel()[:6] = [1.00390625, 1.01171875, -0.0, np.inf, 3.4e38, np.float32(1e-40)]
        feeds = [first, draw(rng, SHAPE, -4, 4)]
        halves = []
        for at, name in enumerate(("a", "b")):
            if at and more(main, None) is not None:
                feeds.pop()
                break
            halves.append(main.tensor(f"{name}_half", SHAPE, "bfloat16"))
            main.op("CAST", [main.input(name, SHAPE)], [halves[-1]], inDataType=CODES["FLOAT32"],
                    outDataType=CODES["BFLOAT16"])
        inputs = halves + (more(main, None) or [])
        y = main.tensor("half_y", shape, result)
        main.op(operator, inputs, [y], **options)
        if result == "bfloat16":
            floats = main.tensor("y", shape)
            main.op("CAST", [y], [floats], inDataType=CODES["BFLOAT16"], outDataType=CODES["FLOAT32"])
            y = floats
        main.outputs(y)
        return judge.Made(file.finish(), [judge.Run(feeds)], "schema", "bfloat16")
    return f"narrow_{operator.lower()}.bfloat16", make


def by_channel(dtype, axis, shape=(3, 4, 5)):
    """A constant with a scale and a zero point for each channel along an axis."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"channels {dtype} {axis}")
        count = shape[axis]
        scales = tuple(float(scale) for scale in draw(rng, (count,), 0.1, 0.5))
        quant = graph.Quant(scales, tuple(int(it) for it in rng.integers(1, 9, count)), axis)
        x = main.input("x", shape)
        stored = main.const("stored", rng.integers(0, 100, shape).astype(dtype), dtype, quant)
        floats = main.tensor("floats", shape)
        main.op("DEQUANTIZE", [stored], [floats])
        main.outputs(*main.op("ADD", [x, floats], [main.tensor("y", shape)], potScaleInt16=False))
        return judge.Made(file.finish(), [judge.Run([draw(rng, shape)])], "schema", dtype)
    return f"dequantize_by_channel_{axis}.{dtype}", make


def channels(rng, dtype, count, axis, has_zero_points):
    scales = tuple(float(scale) for scale in draw(rng, (count,), 0.02, 0.2))
    zero_points = rng.integers(-9, 9, count) if has_zero_points else np.zeros(count, int)
    if dtype == "uint8":
        zero_points += 100
    return graph.Quant(scales, tuple(int(it) for it in zero_points), axis)


def quantized_by_channel(dtype, axis, has_zero_points, back, shape=(3, 4, 5)):
    """QUANTIZE to a scale for each channel; with `back` also a reshaping and DEQUANTIZE."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"quantized by channel {dtype} {axis} {has_zero_points} {back}")
        quant = channels(rng, dtype, shape[axis], axis, has_zero_points)
        x = main.input("x", shape)
        stored = main.tensor("stored", shape, dtype, quant)
        main.op("QUANTIZE", [x], [stored])
        value = draw(rng, shape, -9, 9)
        # Halves between two steps, of both signs.
        scale = np.float32(quant.scale[0])
        value.ravel()[:4] = [scale * 2.5, -scale * 2.5, scale * 0.5, -scale * 0.5]
        if back:
            longer = main.tensor("longer", (*shape, 1), dtype, quant)
            main.op("EXPAND_DIMS", [stored, main.const("axis", np.array(3, np.int32))], [longer])
            stored, = main.op("DEQUANTIZE", [longer], [main.tensor("y", (*shape, 1))])
        main.outputs(stored)
        return judge.Made(file.finish(), [judge.Run([value])], "schema", dtype)
    kind = ("and_back_" if back else "") + ("with_zero_points_" if has_zero_points else "")
    return f"quantize_by_channel_{kind}{axis}.{dtype}", make


def filter_quantized_at_run_time(op):
    """Weights that are quantized by channel while the model runs."""
    def make():
        file = graph.File()
        main = file.graph()
        rng = random(f"filter at run time {op}")
        of_filter, axis = {"CONV_2D": ((4, 3, 3, 2), 0), "DEPTHWISE_CONV_2D": ((1, 3, 3, 2), 3),
                           "FULLY_CONNECTED": ((4, 6), 0)}[op]
        is_layer = op == "FULLY_CONNECTED"
        image = (3, 6) if is_layer else (1, 5, 5, 2)
        of_x = graph.Quant.per_tensor(0.02, 3)
        x = main.input("x", image, "int8", of_x)
        floats = main.input("filter", of_filter)
        count = of_filter[axis]
        quant = graph.Quant(tuple(float(it) for it in draw(rng, (count,), 0.005, 0.02)), (0,) * count, axis)
        weights = main.tensor("weights", of_filter, "int8", quant)
        main.op("QUANTIZE", [floats], [weights])
        of_bias = graph.Quant(tuple(float(np.float32(0.02) * np.float32(it)) for it in quant.scale), (0,) * count)
        bias = main.const("bias", rng.integers(-99, 99, count).astype(np.int32), "int32", of_bias)
        result = graph.Quant.per_tensor(0.03, -5)
        y = main.tensor("y", (3, 4) if is_layer else (1, 5, 5, count), "int8", result)
        options = dict(padding="SAME", strideH=1, strideW=1)
        if op == "DEPTHWISE_CONV_2D":
            options["depthMultiplier"] = 1
        main.outputs(*main.op(op, [x, weights, bias], [y], **({} if is_layer else options)))
        runs = [judge.Run([rng.integers(-128, 128, image).astype(np.int8), draw(rng, of_filter, -0.6, 0.6)])]
        return judge.Made(file.finish(), runs, "schema", "int8")
    return f"{op.lower()}_filter_quantized_at_run_time.int8", make


def two(main, x):
    """Both inputs are computed."""
    return None


def given(*arrays):
    """Constants behind the first input."""
    return lambda main, x: [main.const(f"c{at}", np.array(it, np.int32)) for at, it in enumerate(arrays)]


def all_cases():
    for axis in range(3):
        for dtype in ("int8", "uint8"):
            yield by_channel(dtype, axis)
    for axis in range(3):
        for dtype in ("int8", "uint8", "int16"):
            yield quantized_by_channel(dtype, axis, False, False)
            yield quantized_by_channel(dtype, axis, True, False)
            if dtype != "int16":
                yield quantized_by_channel(dtype, axis, True, True)
    for op in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
        yield filter_quantized_at_run_time(op)
    for dtype in ("int2", "uint4", "int4"):
        yield constant("DEQUANTIZE", dtype)
    for dtype in ("bfloat16", "int2", "uint4", "int4"):
        yield constant("CAST", dtype)
    for dtype in ("int2", "uint4", "int4"):
        yield moved("RESHAPE", dtype, (7, 4), ([7, 4],))
        yield moved("EXPAND_DIMS", dtype, (4, 1, 7), (1,))
        yield moved("SQUEEZE", dtype, (4, 7), ())
    yield moved("TRANSPOSE", "uint4", (7, 4), ([1, 0],))
    yield moved("TRANSPOSE", "int4", (7, 4), ([1, 0],))
    yield moved("GATHER", "int4", (3, 7), ([3, 1, 1],))
    yield moved("SLICE", "int4", (2, 5), ([1, 2], [2, 5]))
    yield moved("CONCATENATION", "int4", (8, 7), (), 2, axis=0)
    for operator in ("NEG", "FLOOR", "ROUND", "TANH", "LOGISTIC"):
        yield computed(operator)
    for operator in ("MAXIMUM", "MINIMUM", "ATAN2"):
        yield computed(operator, more=two)
    yield computed("LESS", more=two, result="bool")
    yield computed("CONCATENATION", (6, 7), two, axis=0)
    yield computed("RESHAPE", (7, 3), given([7, 3]))
    yield computed("TRANSPOSE", (7, 3), given([1, 0]))
    yield computed("REVERSE_V2", SHAPE, given([1]))
    yield computed("PAD", (3, 9), given([[0, 0], [1, 1]]))
    yield computed("GATHER", (2, 7), given([2, 0]))
    yield computed("SLICE", (2, 3), given([1, 2], [2, 3]))
    yield computed("TILE", (6, 7), given([2, 1]))
