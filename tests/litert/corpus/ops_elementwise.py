"""Operators that work element by element."""

import numpy as np

from .graph import DTYPES
from .single import BYTES, FLOAT, INTS, NUMBERS, QUANT, Const, In, Single, draw, random

FUSED = ("RELU", "RELU_N1_TO_1", "RELU6")
SHAPE = (2, 3, 4, 5)
SPECIAL = np.array([-np.inf, -1e30, -2.5, -1.5, -1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.5, 1.0, 1.5,
                    2.5, 1e30, np.inf, np.nan], np.float32)

# (first shape, second shape)
BROADCASTS = {"same": (SHAPE, SHAPE), "scalar": (SHAPE, (1,)), "rank0": (SHAPE, ()),
              "channels": (SHAPE, (5,)), "first_smaller": ((5,), SHAPE), "rows": (SHAPE, (3, 1, 5)),
              "both": ((2, 1, 4, 1), (1, 3, 1, 5)), "rank5": ((2, 1, 2, 3, 2), (2, 1, 3, 1)),
              "rank1": ((7,), (7,))}


def arithmetic():
    for op in ("ADD", "SUB", "MUL"):
        for name, (a, b) in BROADCASTS.items():
            types = QUANT + INTS if name in ("same", "both", "channels") else QUANT
            yield Single(f"{op.lower()}_{name}", op, [In(a, -2, 1), In(b, -1, 3)], types=types)
        for act in FUSED:
            yield Single(f"{op.lower()}_{act.lower()}", op, [In(SHAPE, -3, 3), In(SHAPE, -3, 5)],
                         dict(fusedActivationFunction=act), QUANT)
        constant = draw(random(f"{op} constant"), (5,), -1, 2)
        yield Single(f"{op.lower()}_constant", op, [In(SHAPE), Const(constant, "data")], types=QUANT)
        yield Single(f"{op.lower()}_constant_first", op, [Const(constant, "data"), In(SHAPE)],
                     types=QUANT)
        yield Single(f"{op.lower()}_different_scales", op, [In(SHAPE, -0.1, 0.1), In(SHAPE, -30, 50)],
                     types=QUANT)
    for name, (a, b) in BROADCASTS.items():
        yield Single(f"div_{name}", "DIV", [In(a, -2, 2), In(b, 0.5, 4)],
                     types=("float32", "uint8", "int8"))
    for act in FUSED:
        yield Single(f"div_{act.lower()}", "DIV", [In(SHAPE, -9, 9), In(SHAPE, 0.5, 2)],
                     dict(fusedActivationFunction=act))
    for act in ("RELU", "RELU_N1_TO_1", "RELU6"):
        for op in ("ADD", "SUB", "MUL"):
            yield Single(f"{op.lower()}_integers_act_{act.lower()}", op, [In(SHAPE, -9, 9), In(SHAPE, -9, 9)],
                         dict(fusedActivationFunction=act), types=INTS)
        yield Single(f"div_int32_act_{act.lower()}", "DIV", [In(SHAPE, -90, 90, "int32"), In(SHAPE, 1, 7, "int32")],
                     dict(fusedActivationFunction=act), out_dtypes=("int32",))
    yield Single("div_int32", "DIV", [In(SHAPE, -90, 90, "int32"), In(SHAPE, 1, 7, "int32")],
                 out_dtypes=("int32",))
    for op in ("MAXIMUM", "MINIMUM"):
        for name, (a, b) in BROADCASTS.items():
            yield Single(f"{op.lower()}_{name}", op, [In(a), In(b, share=0)],
                         types=NUMBERS if name in ("same", "both") else QUANT, exact=True)
    yield Single("maximum_special", "MAXIMUM", special_pairs())
    for name, (a, b) in BROADCASTS.items():
        yield Single(f"squared_difference_{name}", "SQUARED_DIFFERENCE", [In(a), In(b, share=0)],
                     types=("float32", "int8", "int32") if name in ("same", "both") else FLOAT)
        yield Single(f"pow_{name}", "POW", [In(a, 0.1, 3), In(b, -2, 2)])
    yield Single("pow_int32", "POW", [In((3, 4), -4, 4, "int32"), In((3, 4), 0, 5, "int32")],
                 out_dtypes=("int32",))
    yield Single("pow_square_of_negative", "POW", [In((3, 4)), Const(np.float32(2))])
    for op in ("FLOOR_DIV", "FLOOR_MOD"):
        for name in ("same", "channels", "both"):
            a, b = BROADCASTS[name]
            yield Single(f"{op.lower()}_{name}", op, [In(a, -9, 9), In(b, 0.5, 4)])
            for dtype in ("int32", "int16", "int8"):
                values = random(op + name + dtype).integers(1, 8, b)
                signs = random(op + name).choice([-1, 1], b)
                yield Single(f"{op.lower()}_{name}_{dtype}", op,
                             [In(a, -50, 50, dtype), In(b, dtype=dtype, values=values * signs)],
                             out_dtypes=(dtype,))
    yield Single("atan2", "ATAN2", [In(SHAPE), In(SHAPE)])
    for count in (2, 3, 5):
        yield Single(f"add_n_{count}", "ADD_N", [In(SHAPE, -9, 9) for _ in range(count)],
                     types=("float32", "int32"))
    for name in ("same", "channels"):
        a, b = BROADCASTS[name]
        yield Single(f"bitwise_xor_{name}", "BITWISE_XOR", [In(a), In(b)],
                     types=("int32",))
        yield Single(f"right_shift_{name}", "RIGHT_SHIFT",
                     [In(a, -100, 100, "int32"), In(b, 0, 5, "int32")], out_dtypes=("int32",))
    shape = (3, 4)
    for op in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
        yield Single(f"stablehlo_{op.lower()}", f"STABLEHLO_{op}", [In(shape), In(shape)],
                     types=("float32", "int32"))
    yield Single("stablehlo_and", "STABLEHLO_AND", [In(shape), In(shape)], types=("bool", "int32"))
    yield Single("stablehlo_shift_left", "STABLEHLO_SHIFT_LEFT",
                 [In(shape, -100, 100, "int32"), In(shape, 0, 31, "int32")], out_dtypes=("int32",))


def special_pairs():
    """Every special value against every other."""
    return [In(SPECIAL.shape + (1,), values=SPECIAL[:, None]), In(SPECIAL.shape, values=SPECIAL)]


def unary():
    for op, low, high, types in (
            ("ABS", -3, 3, ("float32", "int8", "int16", "int32")), ("NEG", -3, 3, ("float32",) + INTS),
            ("EXP", -4, 2, ("float32", "int8", "int16")), ("LOG", 0.05, 5, ("float32", "int8")),
            ("SQRT", 0, 9, ("float32", "int8")), ("RSQRT", 0.1, 9, ("float32", "int8", "int16")),
            ("SIN", -7, 7, FLOAT), ("COS", -7, 7, FLOAT), ("FLOOR", -9, 9, FLOAT), ("CEIL", -9, 9, FLOAT),
            ("ROUND", -9, 9, FLOAT), ("SQUARE", -3, 3, FLOAT), ("SIGN", -1, 1, ("float32", "int32")),
            ("LOGISTIC", -8, 8, QUANT), ("TANH", -4, 4, QUANT), ("ELU", -4, 3, ("float32", "int8")),
            ("HARD_SWISH", -5, 5, BYTES), ("RELU", -4, 4, QUANT), ("RELU6", -4, 9, QUANT),
            ("RELU_N1_TO_1", -3, 3, BYTES), ("RELU_0_TO_1", -3, 3, BYTES),
            ("ZEROS_LIKE", -1, 1, ("float32",) + INTS)):
        yield Single(op.lower(), op, [In(SHAPE, low, high)], types=types)
        if op not in ("EXP", "LOG", "SQRT", "RSQRT"):
            yield Single(f"{op.lower()}_vector", op, [In((37,), low, high)])
    for op in ("RELU", "RELU6", "RELU_N1_TO_1"):
        yield Single(f"{op.lower()}_same_scale", op, [In(SHAPE, -8, 9)], types=("uint8", "int8"),
                     out="same")
    for op in ("ABS", "NEG", "FLOOR", "CEIL", "ROUND", "RELU", "RELU6", "EXP", "SQRT", "LOG", "RSQRT",
               "TANH", "LOGISTIC", "SQUARE", "SIGN", "ELU", "HARD_SWISH"):
        yield Single(f"{op.lower()}_special", op, [In(SPECIAL.shape, values=SPECIAL)])
    yield Single("round_halves", "ROUND", [In((9,), values=np.arange(-4, 5) + 0.5)])
    for approximate in (False, True):
        yield Single(f"gelu_{'approximate' if approximate else 'exact'}", "GELU", [In(SHAPE, -4, 4)],
                     dict(approximate=approximate), BYTES)
    for alpha in (0.1, 0.25, 1.5):
        yield Single(f"leaky_relu_{alpha}", "LEAKY_RELU", [In(SHAPE, -4, 4)], dict(alpha=alpha), QUANT)
    for name, shape in (("channels", (5,)), ("channels_rank3", (1, 1, 5)), ("all", SHAPE[1:]),
                        ("scalar", (1, 1, 1))):
        alpha = draw(random(f"prelu {name}"), shape, -0.2, 0.6)
        yield Single(f"prelu_{name}", "PRELU", [In(SHAPE, -3, 3), Const(alpha, "data")], types=BYTES)
    yield Single("prelu_alpha_given_at_run_time", "PRELU", [In(SHAPE, -3, 3), In((5,), 0, 1)])
    for bound in (-1.0, 6.0):
        yield Single(f"relu_one_sided_{bound:g}", "RELU6", [In((2, 6), -1 + bound, 1 + bound)])


def softmax():
    for name, shape in (("2d", (3, 10)), ("4d", (2, 3, 2, 6)), ("1d", (9,)), ("wide", (1, 1001)),
                        ("one", (4, 1)), ("3d", (2, 3, 7))):
        yield Single(f"softmax_{name}", "SOFTMAX", [In(shape, -6, 6)], dict(beta=1.0), QUANT)
        yield Single(f"log_softmax_{name}", "LOG_SOFTMAX", [In(shape, -6, 6)], types=BYTES)
    for beta in (0.5, 2.0, 0.1):
        yield Single(f"softmax_beta_{beta}", "SOFTMAX", [In((3, 10), -4, 4)], dict(beta=beta), QUANT)
    yield Single("softmax_large_values", "SOFTMAX", [In((3, 10), -500, 500)], dict(beta=1.0))


def comparisons():
    for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        for name in ("same", "channels", "both", "rank0"):
            a, b = BROADCASTS[name]
            yield Single(f"{op.lower()}_{name}", op, [In(a, -1, 1), In(b, -1, 1, share=0)],
                         types=("float32", "uint8", "int8", "int32", "int64"), out_dtypes=("bool",))
        yield Single(f"{op.lower()}_special", op, special_pairs(), out_dtypes=("bool",))
        yield Single(f"{op.lower()}_different_scales", op, [In(SHAPE, -1, 1), In(SHAPE, -2, 0.5)],
                     types=("uint8", "int8"), out_dtypes=("bool",))
        few = random(op).integers(0, 3, (2, 4, 5))
        yield Single(f"{op.lower()}_few_values", op,
                     [In((4, 5), values=few[0]), In((4, 5), values=few[1])],
                     types=("float32", "int32", "int64"), out_dtypes=("bool",))
    for op in ("EQUAL", "NOT_EQUAL"):
        yield Single(f"{op.lower()}_bool", op, [In(SHAPE), In(SHAPE)], types=("bool",))
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        for name in ("same", "channels", "both"):
            a, b = BROADCASTS[name]
            yield Single(f"{op.lower()}_{name}", op, [In(a), In(b)], types=("bool",))
    yield Single("logical_not", "LOGICAL_NOT", [In(SHAPE)], types=("bool",))


def selections():
    for op in ("SELECT", "SELECT_V2"):
        yield Single(f"{op.lower()}_same", op, [In(SHAPE, dtype="bool"), In(SHAPE), In(SHAPE, share=1)],
                     types=NUMBERS + ("bool",))
    yield Single("select_rank1_condition", "SELECT",
                 [In((4,), dtype="bool"), In((4, 3)), In((4, 3), share=1)], types=("float32", "int8"))
    for name, shapes in (("condition_row", ((5,), SHAPE, SHAPE)), ("scalar_branch", (SHAPE, SHAPE, ())),
                         ("all", ((2, 1, 1, 5), (3, 1, 1), (4, 1))),
                         ("scalar_condition", ((), (3, 4), (3, 4)))):
        yield Single(f"select_v2_{name}", "SELECT_V2",
                     [In(shapes[0], dtype="bool"), In(shapes[1]), In(shapes[2], share=1)],
                     types=("float32", "int8", "int32"))


def conversions():
    for source, low, high in (("float32", -50, 50), ("int32", -50, 50), ("int64", -50, 50),
                              ("uint8", 0, 255), ("int8", -128, 127), ("int16", -300, 300),
                              ("bool", 0, 1), ("float16", -50, 50), ("uint32", 0, 99), ("float64", -9, 9)):
        for target in ("float32", "int32", "int64", "uint8", "int8", "int16", "bool", "float16"):
            if source == target:
                continue
            positive = target in ("uint8",) and source != "bool"
            yield Single(f"cast_{source}_to_{target}", "CAST",
                         [In((3, 5), 0 if positive else max(low, -100), min(high, 100), source)],
                         dict(inDataType=code(source), outDataType=code(target)), out_dtypes=(target,))


def code(dtype):
    return DTYPES[dtype]


def all_cases():
    for group in (arithmetic, unary, softmax, comparisons, selections, conversions):
        yield from group()
