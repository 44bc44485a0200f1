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
    for dtype in ("int2", "uint4", "int4"):
        yield constant("DEQUANTIZE", dtype)
    for dtype in ("bfloat16", "int2", "uint4", "int4"):
        yield constant("CAST", dtype)
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
