"""Resizing, normalizing and changing quantization."""

import numpy as np

from . import graph, judge
from .single import BYTES, QUANT, Const, In, Single, draw, random

QUANTIZATIONS = {"uint8": (0.02, 120), "int8": (0.02, -5), "int16": (0.0001, 0)}


def resizing():
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for mode, align, half in (("", False, False), ("_align_corners", True, False),
                                  ("_half_pixel", False, True)):
            for name, image, size in (("up", (1, 4, 5, 3), (8, 10)), ("down", (2, 9, 8, 3), (4, 3)),
                                      ("odd", (1, 5, 7, 2), (11, 4)), ("to_one", (1, 4, 4, 2), (1, 1)),
                                      ("from_one", (1, 1, 1, 4), (3, 5)), ("same", (1, 4, 5, 3), (4, 5))):
                if mode and name in ("to_one", "from_one", "same"):
                    types = ("float32", "int8")
                else:
                    types = QUANT
                yield Single(f"{op.lower()}{mode}_{name}", op,
                             [In(image), Const(np.array(size, np.int32))],
                             dict(alignCorners=align, halfPixelCenters=half), types,
                             exact=op == "RESIZE_NEAREST_NEIGHBOR")
        yield Single(f"{op.lower()}_size_given_at_run_time", op,
                     [In((1, 4, 4, 2)), In((2,), dtype="int32", values=[6, 3])], dynamic=True)


def normalizing():
    for name, shape in (("4d", (2, 3, 4, 8)), ("2d", (3, 6)), ("1d", (7,))):
        yield Single(f"l2_normalization_{name}", "L2_NORMALIZATION", [In(shape, -2, 2)], types=BYTES)
    for radius, bias, alpha, beta in ((2, 1.0, 1.0, 0.5), (5, 1.0, 0.0001, 0.75), (0, 2.0, 0.5, 1.0),
                                      (20, 1.0, 0.1, 0.5)):
        yield Single(f"local_response_normalization_{radius}", "LOCAL_RESPONSE_NORMALIZATION",
                     [In((1, 3, 4, 10), -3, 3)], dict(radius=radius, bias=bias, alpha=alpha, beta=beta))


def convert(name, op, source, source_quant, target, target_quant):
    """Case of one QUANTIZE or DEQUANTIZE."""
    def make():
        file = graph.File()
        main = file.graph()
        x = main.input("x", (2, 3, 5), source, source_quant)
        y = main.tensor("y", (2, 3, 5), target, target_quant)
        main.outputs(*main.op(op, [x], [y]))
        value = draw(random(name), (2, 3, 5), -4, 4)
        if source_quant:
            value = source_quant.quantize(value, source)
        return judge.Made(file.finish(), [judge.Run([value])], "schema",
                          source if source_quant else target)
    return name, make


def requantizing():
    """QUANTIZE from float and between types, DEQUANTIZE of each type."""
    for source, (scale, zero_point) in QUANTIZATIONS.items():
        quant = graph.Quant.per_tensor(scale, zero_point)
        yield convert(f"quantize_float32_to_{source}", "QUANTIZE", "float32", None, source, quant)
        yield convert(f"dequantize_{source}", "DEQUANTIZE", source, quant, "float32", None)
        for target, (other, other_zero) in QUANTIZATIONS.items():
            if (source, target) == ("int16", "uint8"):      # LiteRT refuses it
                continue
            for factor in (1.0, 1.7):
                yield convert(f"quantize_{source}_to_{target}_scale{factor:g}", "QUANTIZE", source, quant,
                              target, graph.Quant.per_tensor(other * factor, other_zero))


def float16():
    """DEQUANTIZE of float16, given at run time."""
    yield Single("dequantize_float16", "DEQUANTIZE", [In((3, 5), -9, 9, "float16")])


def all_cases():
    for group in (resizing, normalizing, requantizing, float16):
        yield from group()
