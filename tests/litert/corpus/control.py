"""Control flow, variables, several graphs and signatures."""

import numpy as np
from flatbuffers import flexbuffers

from . import graph, judge
from .single import draw, random

SHAPE = (2, 3)


def model(name, build):
    """A case from a function that fills a File and gives the runs."""
    def make():
        file = graph.File()
        runs = build(file)
        return judge.Made(file.finish(), runs, "schema", keeps_state="variable" in name)
    return name, make


def unary_graph(file, name, op, constant, shape=SHAPE):
    """A graph `op(x, constant)`."""
    branch = file.graph(name)
    x = branch.input("x", shape)
    y = branch.tensor("y", shape)
    branch.outputs(*branch.op(op, [x, branch.const("c", np.float32(constant))], [y]))
    return branch


def if_plain(file):
    main = file.graph()
    condition, x = main.input("condition", (), "bool"), main.input("x", SHAPE)
    y = main.tensor("y", SHAPE)
    then, other = (unary_graph(file, name, op, 3) for name, op in (("then", "ADD"), ("else", "MUL")))
    main.outputs(*main.op("IF", [condition, x], [y], thenSubgraphIndex=then.number,
                          elseSubgraphIndex=other.number))
    value = draw(random("if"), SHAPE)
    return [judge.Run([np.array(choice), value]) for choice in (True, False)]


def if_computed(file):
    """The condition is computed, both branches see two values and give two."""
    main = file.graph()
    x, y = main.input("x", SHAPE), main.input("y", SHAPE)
    total = main.tensor("total", ())
    main.op("SUM", [x, main.const("axes", np.array([0, 1], np.int32))], [total])
    condition = main.tensor("condition", (), "bool")
    main.op("GREATER", [total, main.const("zero", np.float32(0))], [condition])
    numbers = []
    for name, ops in (("then", ("ADD", "MUL")), ("else", ("SUB", "MAXIMUM"))):
        branch = file.graph(name)
        a, b = branch.input("a", SHAPE), branch.input("b", SHAPE)
        results = [branch.op(op, [a, b], [branch.tensor(op, SHAPE)])[0] for op in ops]
        branch.outputs(*results)
        numbers.append(branch.number)
    outputs = [main.tensor(f"output{i}", SHAPE) for i in range(2)]
    main.op("IF", [condition, x, y], outputs, thenSubgraphIndex=numbers[0],
            elseSubgraphIndex=numbers[1])
    last = main.tensor("last", SHAPE)
    main.outputs(outputs[0], *main.op("NEG", [outputs[1]], [last]))
    rng = random("if computed")
    value = np.abs(draw(rng, SHAPE))
    return [judge.Run([sign * value, draw(rng, SHAPE)]) for sign in (1, -1)]


def if_nested(file):
    main = file.graph()
    inputs = [main.input("first", (), "bool"), main.input("second", (), "bool"), main.input("x", SHAPE)]
    y = main.tensor("y", SHAPE)
    outer = file.graph("outer_then")
    leaf = [unary_graph(file, f"leaf{i}", "MUL", i + 2) for i in range(2)]
    other = file.graph("outer_else")
    for branch, body in ((outer, "IF"), (other, "NEG")):
        condition, x = branch.input("condition", (), "bool"), branch.input("x", SHAPE)
        out = branch.tensor("y", SHAPE)
        if body == "IF":
            branch.op("IF", [condition, x], [out], thenSubgraphIndex=leaf[0].number,
                      elseSubgraphIndex=leaf[1].number)
        else:
            branch.op("NEG", [x], [out])
        branch.outputs(out)
    main.outputs(*main.op("IF", inputs, [y], thenSubgraphIndex=outer.number,
                          elseSubgraphIndex=other.number))
    value = draw(random("if nested"), SHAPE)
    return [judge.Run([np.array(a), np.array(b), value])
            for a, b in ((True, True), (True, False), (False, True))]


def if_different_shapes(file):
    """The branches give outputs of different sizes."""
    main = file.graph()
    condition, x = main.input("condition", (), "bool"), main.input("x", SHAPE)
    y = main.tensor("y", (None, None))
    numbers = []
    for name, multiples in (("then", (2, 1)), ("else", (1, 3))):
        branch = file.graph(name)
        a = branch.input("x", SHAPE)
        out = branch.tensor("y", (SHAPE[0] * multiples[0], SHAPE[1] * multiples[1]))
        branch.op("TILE", [a, branch.const("multiples", np.array(multiples, np.int32))], [out])
        branch.outputs(out)
        numbers.append(branch.number)
    main.outputs(*main.op("IF", [condition, x], [y], thenSubgraphIndex=numbers[0],
                          elseSubgraphIndex=numbers[1]))
    value = draw(random("if shapes"), SHAPE)
    return [judge.Run([np.array(choice), value]) for choice in (True, False)]


def while_graphs(file, limit_from_input, step_op, factor):
    """Condition `i < limit` and body `i + 1, x op factor`."""
    names = ("i", "x") + (("limit",) if limit_from_input else ())

    def inputs(branch):
        return [branch.input(name, SHAPE if name == "x" else (), "float32" if name == "x" else "int32")
                for name in names]

    condition = file.graph("condition")
    state = inputs(condition)
    limit = state[2] if limit_from_input else condition.const("limit", np.int32(5))
    less = condition.tensor("less", (), "bool")
    condition.outputs(*condition.op("LESS", [state[0], limit], [less]))
    body = file.graph("body")
    state = inputs(body)
    following = body.tensor("next", (), "int32")
    body.op("ADD", [state[0], body.const("one", np.int32(1))], [following])
    result = body.tensor("result", SHAPE)
    body.op(step_op, [state[1], body.const("factor", np.float32(factor))], [result])
    body.outputs(following, result, *state[2:])
    return dict(condSubgraphIndex=condition.number, bodySubgraphIndex=body.number)


def while_loop(limit_from_input):
    def build(file):
        main = file.graph()
        inputs = [main.input("i", (), "int32"), main.input("x", SHAPE)]
        if limit_from_input:
            inputs.append(main.input("limit", (), "int32"))
        outputs = [main.tensor("i_out", (), "int32"), main.tensor("x_out", SHAPE)]
        if limit_from_input:
            outputs.append(main.tensor("limit_out", (), "int32"))
        main.op("WHILE", inputs, outputs, **while_graphs(file, limit_from_input, "MUL", 1.25))
        main.outputs(*outputs[:2])
        value = draw(random("while"), SHAPE)
        if limit_from_input:
            return [judge.Run([np.array(start, np.int32), value, np.array(limit, np.int32)])
                    for start, limit in ((0, 4), (2, 9), (7, 3))]
        return [judge.Run([np.array(start, np.int32), value]) for start in (0, 4, 9)]
    return build


def while_growing(file):
    """A value grows by one row with each turn."""
    main = file.graph()
    i, x = main.input("i", (), "int32"), main.input("x", (1, 3))
    outputs = [main.tensor("i_out", (), "int32"), main.tensor("x_out", (None, 3))]
    condition = file.graph("condition")
    state = [condition.input("i", (), "int32"), condition.input("x", (None, 3))]
    less = condition.tensor("less", (), "bool")
    condition.outputs(*condition.op("LESS", [state[0], condition.const("limit", np.int32(4))], [less]))
    body = file.graph("body")
    state = [body.input("i", (), "int32"), body.input("x", (None, 3))]
    following, row, grown = (body.tensor("next", (), "int32"), body.tensor("row", (1, 3)),
                             body.tensor("grown", (None, 3)))
    body.op("ADD", [state[0], body.const("one", np.int32(1))], [following])
    body.op("REDUCE_MAX", [state[1], body.const("axis", np.array([0], np.int32))], [row], keepDims=True)
    body.op("CONCATENATION", [state[1], row], [grown], axis=0)
    body.outputs(following, grown)
    main.op("WHILE", [i, x], outputs, condSubgraphIndex=condition.number, bodySubgraphIndex=body.number)
    main.outputs(*outputs)
    return [judge.Run([np.array(0, np.int32), draw(random("growing"), (1, 3))])]


def handle(graph_, name="v"):
    return graph_.op("VAR_HANDLE", [], [graph_.tensor(f"handle of {name}", (), "resource")],
                     container="", sharedName=name)[0]


def initialized(file, names=("v",), dtype="float32", quant=None):
    """A graph that gives variables their first values."""
    setup = file.graph("setup")
    for name in names:
        value = draw(random(f"variable {name}"), SHAPE)
        if dtype != "float32":
            value = (value * 20).astype(dtype)
        start = setup.const(f"start of {name}", value, quant=quant)
        setup.op("ASSIGN_VARIABLE", [handle(setup, name), start], [])
    setup.outputs()
    return setup


def add_to_variable(graph_, variable, x):
    """Reads a variable, adds to it, assigns the sum, and reads that."""
    old, new, read = (graph_.tensor(name, SHAPE) for name in ("old", "new", "read"))
    graph_.op("READ_VARIABLE", [variable], [old])
    graph_.op("ADD", [old, x], [new])
    graph_.op("ASSIGN_VARIABLE", [variable, new], [])
    return graph_.op("READ_VARIABLE", [variable], [read])[0]


def variables(file):
    """CALL_ONCE sets a variable, the main graph adds to it and reads it."""
    main, setup = file.graph(), initialized(file)
    x = main.input("x", SHAPE)
    main.op("CALL_ONCE", [], [], initSubgraphIndex=setup.number)
    main.outputs(add_to_variable(main, handle(main), x))
    rng = random("variables")
    return [judge.Run([draw(rng, SHAPE)]) for _ in range(3)]


def variables_bytes(file):
    """A variable of bytes whose first value has another scale than the tensor that reads it."""
    main = file.graph()
    setup = initialized(file, dtype="int8", quant=graph.Quant.per_tensor(0.25, 1))
    x = main.input("x", SHAPE, "int8", quant=graph.Quant.per_tensor(0.5, 3))
    main.op("CALL_ONCE", [], [], initSubgraphIndex=setup.number)
    read = main.tensor("read", SHAPE, "int8", quant=graph.Quant.per_tensor(0.5, 3))
    variable = handle(main)
    main.op("READ_VARIABLE", [variable], [read])
    main.op("ASSIGN_VARIABLE", [variable, x], [])
    main.outputs(read)
    rng = random("variables of bytes")
    return [judge.Run([rng.integers(-128, 128, SHAPE).astype(np.int8)]) for _ in range(3)]


def variables_in_if(file):
    """One branch changes a variable, the other reads it."""
    main, setup = file.graph(), initialized(file)
    condition, x = main.input("condition", (), "bool"), main.input("x", SHAPE)
    main.op("CALL_ONCE", [], [], initSubgraphIndex=setup.number)
    numbers = []
    for name in ("then", "else"):
        branch = file.graph(name)
        given = branch.input("given", SHAPE)
        if name == "then":
            branch.outputs(add_to_variable(branch, handle(branch), given))
        else:
            branch.outputs(*branch.op("READ_VARIABLE", [handle(branch)], [branch.tensor("read", SHAPE)]))
        numbers.append(branch.number)
    y, after = main.tensor("y", SHAPE), main.tensor("after", SHAPE)
    main.op("IF", [condition, x], [y], thenSubgraphIndex=numbers[0], elseSubgraphIndex=numbers[1])
    main.op("READ_VARIABLE", [handle(main)], [after])
    main.outputs(y, after)
    rng = random("variables in if")
    return [judge.Run([np.array(choice), draw(rng, SHAPE)]) for choice in (True, False, True, False)]


def variables_in_while(file):
    """The body gets the handle as an argument and adds to the variable in each round."""
    main, setup = file.graph(), initialized(file, ("v", "other"))
    i, x = main.input("i", (), "int32"), main.input("x", SHAPE)
    main.op("CALL_ONCE", [], [], initSubgraphIndex=setup.number)
    condition, body = file.graph("condition"), file.graph("body")
    states = []
    for graph_ in (condition, body):
        states.append([graph_.input("i", (), "int32"), graph_.input("x", SHAPE),
                       graph_.input("handle", (), "resource")])
    limit = condition.const("limit", np.array(3, np.int32))
    condition.outputs(*condition.op("LESS", [states[0][0], limit], [condition.tensor("c", (), "bool")]))
    next_i = body.tensor("next", (), "int32")
    body.op("ADD", [states[1][0], body.const("one", np.array(1, np.int32))], [next_i])
    total = add_to_variable(body, states[1][2], states[1][1])
    body.outputs(next_i, total, states[1][2])
    variable = handle(main)
    last_i, last = main.tensor("last i", (), "int32"), main.tensor("last", SHAPE)
    passed = main.tensor("passed", (), "resource")
    main.op("WHILE", [i, x, variable], [last_i, last, passed], condSubgraphIndex=condition.number,
            bodySubgraphIndex=body.number)
    after, other = main.tensor("after", SHAPE), main.tensor("other", SHAPE)
    main.op("READ_VARIABLE", [passed], [after])
    main.op("READ_VARIABLE", [handle(main, "other")], [other])
    main.outputs(last_i, last, after, other)
    rng = random("variables in while")
    return [judge.Run([np.array(first, np.int32), draw(rng, SHAPE)]) for first in (0, 1, 3, 2)]


def variables_of_signatures(file):
    """Two signatures have a variable in common, and each calls what initializes it."""
    add, get = file.graph("add"), file.graph("get")
    setup = initialized(file)
    x = add.input("x", SHAPE)
    for graph_ in (add, get):
        graph_.op("CALL_ONCE", [], [], initSubgraphIndex=setup.number)
    total = add_to_variable(add, handle(add), x)
    add.outputs(total)
    y, read, doubled = get.input("y", SHAPE), get.tensor("read", SHAPE), get.tensor("sum", SHAPE)
    get.op("READ_VARIABLE", [handle(get)], [read])
    get.outputs(*get.op("ADD", [read, y], [doubled]))
    file.signature("add", add, {"x": x}, {"total": total})
    file.signature("get", get, {"y": y}, {"sum": doubled})
    rng = random("variables of signatures")
    return [judge.Run([draw(rng, SHAPE)], key) for key in ("get", "add", "get", "add", "add", "get")]


def signatures(file):
    """Two signatures on two graphs; names differ from the tensors'."""
    runs = []
    for key, op in (("add", "ADD"), ("multiply", "MUL")):
        graph_ = file.graph(key)
        a, b = graph_.input("tensor_a", SHAPE), graph_.input("tensor_b", SHAPE)
        out = graph_.tensor("tensor_out", SHAPE)
        graph_.outputs(*graph_.op(op, [a, b], [out]))
        file.signature(key, graph_, {"left": a, "right": b}, {"result": out})
        rng = random(key)
        runs.append(judge.Run([draw(rng, SHAPE), draw(rng, SHAPE)], key))
    return runs


def run_composite(graph, body, inputs, output):
    graph.outputs(*graph.op("STABLEHLO_COMPOSITE", inputs, [output], name=f"test.{body.raw.name}",
                            decompositionSubgraphIndex=body.number, version=1,
                            compositeAttributes=np.frombuffer(flexbuffers.Dumps({}), np.uint8)))


def square_plus(file):
    """A graph `a * a + a`."""
    body = file.graph("decomposition")
    a = body.input("a", SHAPE)
    square, out = body.tensor("square", SHAPE), body.tensor("out", SHAPE)
    body.op("MUL", [a, a], [square])
    body.outputs(*body.op("ADD", [square, a], [out]))
    return body


def composite(file):
    """STABLEHLO_COMPOSITE with its decomposition in a graph of its own."""
    main, body = file.graph(), square_plus(file)
    x, y = main.input("x", SHAPE), main.tensor("y", SHAPE)
    run_composite(main, body, [x], y)
    return [judge.Run([draw(random("composite"), SHAPE)])]


def composite_scaled(file):
    """Its constant is passed to it, and has the first number inside."""
    main, body = file.graph(), file.graph("scaled")
    scale, a = body.input("scale", (3,)), body.input("a", SHAPE)
    body.raw.inputs.reverse()
    out = body.tensor("out", SHAPE)
    body.outputs(*body.op("SUB", [a, scale], [out]))
    x, y = main.input("x", SHAPE), main.tensor("y", SHAPE)
    run_composite(main, body, [x, main.const("constant", np.float32([1, -2, 3]))], y)
    return [judge.Run([draw(random("composite_scaled"), SHAPE)])]


def composite_of_two(file):
    """Two of a type, in another order than their numbers."""
    main, body = file.graph(), file.graph("difference")
    b, a = body.input("b", SHAPE), body.input("a", SHAPE)
    body.raw.inputs.reverse()
    body.outputs(*body.op("SUB", [a, b], [body.tensor("out", SHAPE)]))
    x, z, y = main.input("x", SHAPE), main.input("z", SHAPE), main.tensor("y", SHAPE)
    run_composite(main, body, [x, z], y)
    rng = random("composite_of_two")
    return [judge.Run([draw(rng, SHAPE), draw(rng, SHAPE)])]


def composite_of_composites(file):
    main, body = file.graph(), file.graph("outer")
    a = body.input("a", SHAPE)
    twice = body.tensor("twice", SHAPE)
    body.op("ADD", [a, a], [twice])
    run_composite(body, square_plus(file), [twice], body.tensor("out", SHAPE))
    x, y = main.input("x", SHAPE), main.tensor("y", SHAPE)
    run_composite(main, body, [x], y)
    return [judge.Run([draw(random("composite_of_composites"), SHAPE)])]


def composite_unknown(file):
    """One with an operator of a form that the library does not have (a range without 0), beside one without."""
    main, body = file.graph(), file.graph("unknown")
    a, near, out = body.input("a", SHAPE), body.tensor("near", SHAPE), body.tensor("out", SHAPE)
    body.op("FAKE_QUANT", [a], [near], min=1.0, max=4.0, numBits=8)
    body.outputs(*body.op("ADD", [near, near], [out]))
    x, middle, y = main.input("x", SHAPE), main.tensor("middle", SHAPE), main.tensor("y", SHAPE)
    run_composite(main, square_plus(file), [x], middle)
    run_composite(main, body, [middle], y)
    return [judge.Run([draw(random("composite_unknown"), SHAPE)])]


def stablehlo_reduce_window(file):
    """STABLEHLO_REDUCE_WINDOW, which has its function in a graph of its own."""
    main, body = file.graph(), file.graph("body")
    x, y = main.input("x", (4, 5)), main.tensor("y", (5, 4))
    initial = main.const("initial", np.float32(-0.5))
    a, b, out = body.input("a", ()), body.input("b", ()), body.tensor("out", ())
    body.outputs(*body.op("MAXIMUM", [a, b], [out]))
    main.outputs(*main.op("STABLEHLO_REDUCE_WINDOW", [x, initial], [y], windowDimensions=[2, 3],
                          windowStrides=[1, 2], baseDilations=[1, 2], windowDilations=[2, 1],
                          padding=[2, 1, 1, 0], bodySubgraphIndex=body.number))
    return [judge.Run([draw(random("stablehlo_reduce_window"), (4, 5))])]


def stablehlo_scatter(op, shapes, options, indices, dtype="float32", shape=(4, 5, 3)):
    """STABLEHLO_SCATTER, which has its function in a graph of its own: none if updates replace."""
    def build(file):
        main, body = file.graph(), file.graph("body")
        rng = random(f"stablehlo_scatter {op} {dtype}")
        x, u = main.input("x", shape, dtype), main.input("updates", shapes, dtype)
        i, y = main.const("indices", indices), main.tensor("y", shape, dtype)
        a, b, out = (body.input("a", (), dtype), body.input("b", (), dtype), body.tensor("out", (), dtype))
        if op is None:
            body.outputs(b)
        else:
            body.outputs(*body.op(op, [a, b], [out]))
        main.outputs(*main.op("STABLEHLO_SCATTER", [x, i, u], [y], updateComputationSubgraphIndex=body.number,
                              **options))
        values = [draw(rng, shape), draw(rng, shapes)]
        if dtype != "float32":
            values = [np.floor(it * 9).astype(dtype) for it in values]
        return [judge.Run(values)]
    return build


def stablehlo_scatters():
    """Rows that are added, windows that leave the tensor, indexes along the first axis, and functions."""
    rows = dict(updateWindowDims=[1, 2], insertedWindowDims=[0], scatterDimsToOperandDims=[0], indexVectorDim=1)
    where = np.array([[1], [3], [1], [9], [-1]], np.int32)
    for name, op in (("update", None), ("add", "STABLEHLO_ADD"), ("multiply", "STABLEHLO_MULTIPLY"),
                     ("maximum", "STABLEHLO_MAXIMUM"), ("minimum", "STABLEHLO_MINIMUM")):
        yield f"stablehlo_scatter_{name}", stablehlo_scatter(op, (5, 5, 3), rows, where)
    yield "stablehlo_scatter_int32", stablehlo_scatter("STABLEHLO_ADD", (5, 5, 3), rows, where, "int32")
    yield "stablehlo_scatter_int64_indexes", stablehlo_scatter(
        "STABLEHLO_ADD", (5, 5, 3), rows, where.astype(np.int64))
    blocks = dict(updateWindowDims=[0, 2, 3], insertedWindowDims=[], scatterDimsToOperandDims=[1, 0],
                  indexVectorDim=0)
    yield "stablehlo_scatter_blocks", stablehlo_scatter(
        "STABLEHLO_ADD", (2, 3, 2, 3), blocks, np.array([[0, 3, 4], [1, 3, -1]], np.int32))


def scatter_options(function):
    return dict(updateWindowDims=[1], insertedWindowDims=[0], scatterDimsToOperandDims=[0], indexVectorDim=1,
                updateComputationSubgraphIndex=function.number)


def addition(file):
    """The function of a STABLEHLO_SCATTER that adds."""
    function = file.graph("function")
    a, b, out = function.input("a", ()), function.input("b", ()), function.tensor("out", ())
    function.outputs(*function.op("STABLEHLO_ADD", [a, b], [out]))
    return function


def stablehlo_scatter_in_while(file):
    """The graph of its function comes before the one that has the operator."""
    main, function, condition, body = file.graph(), addition(file), file.graph("condition"), file.graph("body")
    ends = []
    for part in (main, condition, body):
        ends.append([part.input("i", (), "int32"), part.input("x", (3, 2))])
    more = condition.tensor("more", (), "bool")
    condition.outputs(*condition.op("LESS", [ends[1][0], condition.const("limit", np.int32(3))], [more]))
    i, x = ends[2]
    next_i, next_x = body.tensor("next_i", (), "int32"), body.tensor("next_x", (3, 2))
    body.op("ADD", [i, body.const("one", np.int32(1))], [next_i])
    where = body.const("where", np.array([[2], [0]], np.int32))
    updates = body.const("updates", draw(random("scatter in while, updates"), (2, 2)))
    body.op("STABLEHLO_SCATTER", [x, where, updates], [next_x], **scatter_options(function))
    body.outputs(next_i, next_x)
    results = [main.tensor("last_i", (), "int32"), main.tensor("y", (3, 2))]
    main.outputs(*main.op("WHILE", ends[0], results, condSubgraphIndex=condition.number,
                          bodySubgraphIndex=body.number))
    return [judge.Run([np.array(0, np.int32), draw(random("scatter in while"), (3, 2))])]


def stablehlo_scatter_of_open_shape(file):
    """The shape of its input is known only when it is computed."""
    main, function = file.graph(), addition(file)
    x, shape, updates = main.input("x", (6,)), main.input("shape", (2,), "int32"), main.input("updates", (2, 2))
    reshaped, y = main.tensor("reshaped", (None, None)), main.tensor("y", (None, None))
    main.op("RESHAPE", [x, shape], [reshaped])
    where = main.const("where", np.array([[2], [0]], np.int32))
    main.outputs(*main.op("STABLEHLO_SCATTER", [reshaped, where, updates], [y], **scatter_options(function)))
    rng = random("scatter of open shape")
    return [judge.Run([draw(rng, (6,)), np.array([3, 2], np.int32), draw(rng, (2, 2))])]


def stablehlo_gather(shape, indices, result, dtype, **options):
    """STABLEHLO_GATHER, which takes the number of the result's axes from the file."""
    def build(file):
        main = file.graph()
        x, i = main.input("x", shape, dtype), main.const("indices", indices)
        y = main.tensor("y", result, dtype)
        main.outputs(*main.op("STABLEHLO_GATHER", [x, i], [y], **options))
        value = draw(random(f"stablehlo_gather {shape}"), shape)
        return [judge.Run([value if dtype == "float32" else np.floor(value * 99).astype(dtype)])]
    return build


def stablehlo_gathers():
    """Rows with indexes beyond the ends, single elements, blocks between other axes."""
    yield "stablehlo_gather_rows", stablehlo_gather(
        (4, 5), np.array([[2], [9], [-3]], np.int32), (3, 5), "float32", offsetDims=[1], collapsedSliceDims=[0],
        startIndexMap=[0], indexVectorDim=1, sliceSizes=[1, 5])
    yield "stablehlo_gather_elements", stablehlo_gather(
        (4, 5), np.array([[3, 0], [4, 1], [0, 2]], np.int64), (3,), "float32", offsetDims=[],
        collapsedSliceDims=[0, 1], startIndexMap=[1, 0], indexVectorDim=1, sliceSizes=[1, 1])
    for dtype in ("float32", "int8", "int16", "int32", "int64"):
        yield f"stablehlo_gather_blocks.{dtype}", stablehlo_gather(
            (4, 5, 3), np.array([[0, 3, 2], [4, 1, 9]], np.int32), (2, 3, 3, 3), dtype, offsetDims=[0, 2, 3],
            collapsedSliceDims=[], startIndexMap=[0, 1], indexVectorDim=0, sliceSizes=[2, 3, 3])


def stablehlo_case(count):
    def build(file):
        main = file.graph()
        index, x = main.input("index", (1,), "int32"), main.input("x", SHAPE)
        y = main.tensor("y", SHAPE)
        branches = []
        for op in ("NEG", "TANH", "ABS", "EXP", "RELU", "SIN", "COS")[:count]:
            branch = file.graph(op)
            a, out = branch.input("a", SHAPE), branch.tensor("out", SHAPE)
            branch.outputs(*branch.op(op, [a], [out]))
            branches.append(branch.number)
        main.outputs(*main.op("STABLEHLO_CASE", [index, x], [y], branchSubgraphIndices=branches))
        rng = random(f"stablehlo_case {count}")
        indexes = range(-1, max(count, 2) + 1)
        return [judge.Run([np.array([at], np.int32), draw(rng, SHAPE)]) for at in indexes]
    return build


def random_numbers(op, shape, seeds):
    """An operator with seeds, whose generator goes on from one run to the next."""
    def build(file):
        main = file.graph()
        x, y = main.input("x", shape), main.tensor("y", shape)
        drawn = main.tensor("drawn", shape)
        main.op(op, [main.const("shape", np.array(shape, np.int32))], [drawn], seed=seeds[0], seed2=seeds[1])
        main.outputs(*main.op("ADD", [x, drawn], [y]))
        return [judge.Run([draw(random(f"{op} {at}"), shape)]) for at in range(3)]
    return build


def multinomial(file):
    """Classes of two rows; the count is a scalar, and seeds fill 64 bits."""
    main = file.graph()
    logits = main.input("logits", (2, 5))
    y = main.tensor("y", (2, 7), "int64")
    main.outputs(*main.op("MULTINOMIAL", [logits, main.const("count", np.int32(7))], [y],
                          seed=-(2**62) - 12345, seed2=2**40 + 3))
    return [judge.Run([3 * draw(random(f"multinomial {at}"), (2, 5))]) for at in range(4)]


def bit_generator(algorithm, words, dtype):
    def build(file):
        main = file.graph()
        x = main.input("x", (2, 5), dtype)
        state = main.const("state", np.array([2**63 + 5, 2**32 - 2, 77][:words], np.uint64))
        after, bits = main.tensor("after", (words,), "uint64"), main.tensor("bits", (2, 5), dtype)
        main.op("STABLEHLO_RNG_BIT_GENERATOR", [state], [after, bits], algorithm=algorithm)
        main.outputs(x, after, bits)
        return [judge.Run([np.zeros((2, 5), dtype)])]
    return build


def random_cases():
    yield "random_uniform", random_numbers("RANDOM_UNIFORM", (3, 5), (1234, 5678))
    yield "random_uniform_one_seed", random_numbers("RANDOM_UNIFORM", (2, 4), (0, -9))
    yield "random_standard_normal", random_numbers("RANDOM_STANDARD_NORMAL", (4, 6), (2**35 + 1, 2))
    yield "multinomial", multinomial
    for algorithm, words, dtype in ((0, 3, "int32"), (1, 2, "int32"), (1, 3, "int64"), (2, 2, "int32"),
                                    (2, 2, "uint32"), (2, 2, "uint64")):
        yield (f"stablehlo_rng_bit_generator_{algorithm}_{words}.{dtype}",
               bit_generator(algorithm, words, dtype))


def passing_through(file):
    """An output that is an input, one that is a constant, one that is given twice."""
    main = file.graph()
    x = main.input("x", SHAPE)
    constant = main.const("constant", draw(random("through"), SHAPE))
    y = main.tensor("y", SHAPE)
    main.op("ADD", [x, constant], [y])
    main.outputs(x, constant, y, y)
    return [judge.Run([draw(random("through x"), SHAPE)])]


def unused(file):
    """An input that no one reads, a constant that no one reads, a dead operator."""
    main = file.graph()
    x, _ = main.input("x", SHAPE), main.input("unused", (4,))
    main.const("unused_constant", np.zeros(7, np.float32))
    dead, y = main.tensor("dead", SHAPE), main.tensor("y", SHAPE)
    main.op("NEG", [x], [dead])
    main.outputs(*main.op("RELU", [x], [y]))
    rng = random("unused")
    return [judge.Run([draw(rng, SHAPE), draw(rng, (4,))])]


def diamond(file):
    """One tensor read by several operators, one of them twice."""
    main = file.graph()
    x = main.input("x", SHAPE)
    a, b, c, d = (main.tensor(name, SHAPE) for name in "abcd")
    main.op("TANH", [x], [a])
    main.op("MUL", [a, a], [b])
    main.op("SUB", [a, x], [c])
    main.outputs(*main.op("ADD", [b, c], [d]), a)
    return [judge.Run([draw(random("diamond"), SHAPE)])]


def all_cases():
    yield model("if_plain", if_plain)
    yield model("if_computed", if_computed)
    yield model("if_nested", if_nested)
    yield model("if_different_shapes", if_different_shapes)
    yield model("while_constant_limit", while_loop(False))
    yield model("while_limit_given_at_run_time", while_loop(True))
    yield model("while_growing", while_growing)
    yield model("variables", variables)
    yield model("variables_bytes", variables_bytes)
    yield model("variables_in_if", variables_in_if)
    yield model("variables_in_while", variables_in_while)
    yield model("variables_of_signatures", variables_of_signatures)
    yield model("signatures_two", signatures)
    yield model("composite", composite)
    yield model("composite_scaled", composite_scaled)
    yield model("composite_of_two", composite_of_two)
    yield model("composite_of_composites", composite_of_composites)
    yield model("composite_unknown", composite_unknown)
    yield model("stablehlo_reduce_window", stablehlo_reduce_window)
    for name, build in (*stablehlo_gathers(), *stablehlo_scatters()):
        yield model(name, build)
    yield model("stablehlo_scatter_in_while", stablehlo_scatter_in_while)
    yield model("stablehlo_scatter_of_open_shape", stablehlo_scatter_of_open_shape)
    for name, build in random_cases():
        yield model(name, build)
    yield model("stablehlo_case_one", stablehlo_case(1))
    yield model("stablehlo_case_two", stablehlo_case(2))
    yield model("stablehlo_case_three", stablehlo_case(3))
    yield model("stablehlo_case_seven", stablehlo_case(7))
    yield model("graph_passing_through", passing_through)
    yield model("graph_unused", unused)
    yield model("graph_diamond", diamond)
