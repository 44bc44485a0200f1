"""Inputs with a length of 0, beside outputs that have elements. ONNX' converters leave such inputs where only a type or a shape
counts, and programs pass them for an optional part, such as a cache that is empty yet."""

import numpy as np

from . import graph, judge
from .single import draw, random


def empty(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


def int32(*values):
    return np.array(values, np.int32)


def unused(dtype):
    """The file itself says that an input has no elements, and nothing reads it."""
    def build(file):
        main = file.graph()
        x, _ = main.input("x", (2, 3)), main.input("like", (0,), dtype)
        main.outputs(*main.op("RELU", [x], [main.tensor("y", (2, 3))]))
        return [judge.Run([draw(random("unused"), (2, 3)), empty(0, dtype=dtype)])]
    return build


def shape_of(fixed):
    """Lengths of an input, and how many elements it has."""
    def build(file):
        main = file.graph()
        x = main.input("x", (0 if fixed else None, 3))
        lengths = main.tensor("lengths", (2,), "int32")
        main.op("SHAPE", [x], [lengths], outType=graph.schema.TensorType.INT32)
        count = main.tensor("count", (), "int32")
        main.op("REDUCE_PROD", [lengths, main.const("axis", int32(0))], [count])
        main.outputs(lengths, count)
        runs = [judge.Run([empty(0, 3)])]
        return runs if fixed else [*runs, judge.Run([draw(random("shape"), (2, 3))]), *runs]
    return build


def joined(fixed, dtype, axis):
    """A part without elements before others that have some, as of a cache in the first step."""
    def build(file):
        quant = graph.Quant.per_tensor(0.02, 3) if dtype == "int8" else None

        def lengths(length):
            return (length, 3) if axis == 0 else (2, length)

        def some(length):
            real = draw(values, lengths(length), -9, 9)
            return quant.quantize(real / 9, dtype) if quant else real.astype(dtype)

        values = random("joined")
        main = file.graph()
        past = main.input("past", lengths(0 if fixed else None), dtype, quant)
        x = main.input("x", lengths(3), dtype, quant)
        y = main.tensor("y", lengths(6 if fixed else None), dtype, quant)
        main.outputs(*main.op("CONCATENATION", [past, x, x], [y], axis=axis, fusedActivationFunction="NONE"))
        runs = [judge.Run([np.zeros(lengths(0), dtype), some(3)])]
        return runs if fixed else [*runs, judge.Run([some(2), some(3)])]
    return build


def filled(file):
    """As many rows as another input has, and one more."""
    main = file.graph()
    x = main.input("x", (None, 3))
    lengths, more = (main.tensor(name, (2,), "int32") for name in ("lengths", "more"))
    main.op("SHAPE", [x], [lengths], outType=graph.schema.TensorType.INT32)
    main.op("ADD", [lengths, main.const("one", int32(1, 0))], [more], fusedActivationFunction="NONE")
    main.outputs(*main.op("FILL", [more, main.const("value", np.float32(2.5))],
                          [main.tensor("y", (None, 3))]))
    return [judge.Run([empty(0, 3)]), judge.Run([draw(random("filled"), (4, 3))])]


def padded(op):
    def build(file):
        main = file.graph()
        around = main.const("around", np.array([[1, 2], [0, 1]], np.int32))
        value = [main.const("value", np.float32(-3))] if op == "PADV2" else []
        x = main.input("x", (None, 2))
        main.outputs(*main.op(op, [x, around, *value], [main.tensor("y", (None, 3))]))
        return [judge.Run([empty(0, 2)]), judge.Run([draw(random("padded"), (3, 2))])]
    return build


def reduced(op, dtype="float32"):
    """Of no elements: what is neutral."""
    def build(file):
        main = file.graph()
        x = main.input("x", (None, 3), dtype)
        main.outputs(*main.op(op, [x, main.const("axis", int32(0))], [main.tensor("y", (3,), dtype)],
                              keepDims=False))
        values = draw(random("reduced"), (4, 3), -9, 9)
        values = values > 0 if dtype == "bool" else values.astype(dtype)
        return [judge.Run([empty(0, 3, dtype=dtype)]), judge.Run([values])]
    return build


def added(file):
    """A sum over no rows, and another input."""
    main = file.graph()
    x, y = main.input("x", (None, 3)), main.input("y", (2, 3))
    total = main.tensor("total", (1, 3))
    main.op("SUM", [x, main.const("axis", int32(0))], [total], keepDims=True)
    main.outputs(*main.op("ADD", [total, y], [main.tensor("z", (2, 3))], fusedActivationFunction="NONE"))
    values = random("added")
    return [judge.Run([empty(0, 3), draw(values, (2, 3))]),
            judge.Run([draw(values, (5, 3)), draw(values, (2, 3))])]


def product(file):
    """Of matrices whose common axis has no length."""
    main = file.graph()
    x, y = main.input("x", (2, None)), main.input("y", (None, 3))
    main.outputs(*main.op("BATCH_MATMUL", [x, y], [main.tensor("z", (2, 3))]))
    values = random("product")
    return [judge.Run([empty(2, 0), empty(0, 3)]),
            judge.Run([draw(values, (2, 4)), draw(values, (4, 3))])]


def appended(file):
    """Computed on its way: the part without elements passes operators first."""
    main = file.graph()
    past, x = main.input("past", (None, 4)), main.input("x", (1, 4))
    scaled, squashed = (main.tensor(name, (None, 4)) for name in ("scaled", "squashed"))
    main.op("MUL", [past, main.const("factor", draw(random("factor"), (4,)))], [scaled],
            fusedActivationFunction="RELU")
    main.op("LOGISTIC", [scaled], [squashed])
    joined_rows = main.tensor("joined", (None, 4))
    main.op("CONCATENATION", [squashed, x], [joined_rows], axis=0, fusedActivationFunction="NONE")
    main.outputs(joined_rows, squashed)
    values = random("appended")
    return [judge.Run([empty(0, 4), draw(values, (1, 4))]),
            judge.Run([draw(values, (3, 4)), draw(values, (1, 4))])]


def flattened(file):
    """Reshaped, transposed and gathered, then counted."""
    main = file.graph()
    x, y = main.input("x", (None, 2, 3)), main.input("y", (2,))
    turned = main.tensor("turned", (3, 2, None))
    main.op("TRANSPOSE", [x, main.const("order", int32(2, 1, 0))], [turned])
    flat = main.tensor("flat", (None,))
    main.op("RESHAPE", [turned, main.const("shape", int32(-1))], [flat], newShape=[-1])
    main.outputs(*main.op("CONCATENATION", [flat, y], [main.tensor("z", (None,))], axis=0,
                          fusedActivationFunction="NONE"))
    values = random("flattened")
    return [judge.Run([empty(0, 2, 3), draw(values, (2,))]),
            judge.Run([draw(values, (1, 2, 3)), draw(values, (2,))])]


def scattered(file):
    """No updates of a tensor, and a sum of it with another."""
    main = file.graph()
    x = main.input("x", (4, 2))
    indices, updates = main.input("indices", (None, 1), "int32"), main.input("updates", (None, 2))
    sparse, y = main.tensor("sparse", (4, 2)), main.tensor("y", (4, 2))
    main.op("SCATTER_ND", [indices, updates, main.const("shape", int32(4, 2))], [sparse])
    main.outputs(*main.op("ADD", [x, sparse], [y], fusedActivationFunction="NONE"))
    values = random("scattered")
    return [judge.Run([draw(values, (4, 2)), empty(0, 1, dtype="int32"), empty(0, 2)]),
            judge.Run([draw(values, (4, 2)), np.array([[1], [3]], np.int32), draw(values, (2, 2))])]


def all_cases():
    types = ("float32", "float16", "int16", "int32", "int64", "bool")
    builds = {f"unused.{dtype}": unused(dtype) for dtype in types}
    builds |= {"shape": shape_of(False), "shape_fixed": shape_of(True), "fill": filled, "added": added,
               "product": product, "appended": appended, "flattened": flattened, "scattered": scattered}
    for axis in (0, 1):
        for dtype in ("float32", "int8", "int32"):
            builds[f"joined_{axis}.{dtype}"] = joined(False, dtype, axis)
        builds[f"joined_fixed_{axis}"] = joined(True, "float32", axis)
    builds |= {op.lower(): padded(op) for op in ("PAD", "PADV2")}
    builds |= {op.lower(): reduced(op) for op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")}
    integers = ("SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
    builds |= {f"{op.lower()}.int32": reduced(op, "int32") for op in integers}
    builds |= {op.lower(): reduced(op, "bool") for op in ("REDUCE_ANY", "REDUCE_ALL")}
    for name, build in builds.items():
        yield f"empty_{name}", lambda build=build, name=name: made(build, name)


def made(build, name):
    file = graph.File()
    runs = build(file)
    # Of no elements LiteRT's own kernels give the greatest and least number, XNNPACK the infinite ones, which are neutral.
    wrong = ("optimized", "reference") if name in ("reduce_max", "reduce_min") else ()
    return judge.Made(file.finish(), runs, "schema", wrong=wrong)
