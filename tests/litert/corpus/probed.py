"""Cases that LiteRT itself is asked for: every version that it has of an operator, and every element type with which
it runs one, of which there is no other case.  They are made of the operator's smallest description."""

import collections
import ctypes
import json
import os

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from . import graph, judge, single
from .graph import schema

# Versions that are asked about; the greatest that LiteRT 2.3 has is 14.
VERSIONS = range(1, 25)
TYPES = {code: name.lower() for name, code in vars(schema.TensorType).items() if name.isupper()}
# What NumPy has too, so that values can be given to LiteRT's interpreter.
KINDS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64", "complex64")
SOURCES = ("weights", "elementwise", "shape", "reduce", "image", "wide")
# LiteRT does not look at the type of these, and takes what is there for something else, or writes nothing.
UNTYPED = {"FAKE_QUANT": KINDS, "LSH_PROJECTION": KINDS, "HASHTABLE_LOOKUP": KINDS,
           **dict.fromkeys(("MATRIX_DIAG", "MATRIX_SET_DIAG"), ("bool", "float16", "float64", "uint16", "uint32",
                                                               "uint64", "complex64")),
           "REDUCE_WINDOW": ("bool",)}
# glibc fills what it allocates with a byte that is asked for: what a kernel leaves unwritten shows.
C, M_PERTURB = ctypes.CDLL(None), -6
BUILTIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def each(ask, items):
    """By item the answer of a question, which may take its process down: then None."""
    found, left = {}, list(items)
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            with os.fdopen(writing, "w") as out:
                for item in left:
                    out.write(json.dumps(ask(item)) + "\n")
                    out.flush()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            answers = [json.loads(line) for line in lines]
        os.waitpid(child, 0)
        found.update(zip(left, answers))
        if len(answers) < len(left):
            found[left[len(answers)]] = None
        left = left[len(answers) + 1:]
    return found


def has_version(of):
    """Whether LiteRT has a version of an operator, by its number in the schema."""
    code, version = of
    model = schema.ModelT()
    model.version, model.description = 3, ""
    entry = schema.OperatorCodeT()
    entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), version
    model.operatorCodes, model.buffers = [entry], [schema.BufferT()]
    subgraph, operator, tensor = schema.SubGraphT(), schema.OperatorT(), schema.TensorT()
    tensor.shape, tensor.type, tensor.name, tensor.buffer = [1], schema.TensorType.FLOAT32, "x", 0
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0], [0]
    subgraph.tensors, subgraph.inputs, subgraph.outputs = [tensor], [0], [0]
    subgraph.operators = [operator]
    model.subgraphs = [subgraph]
    try:
        Interpreter(model_content=graph.pack(model), experimental_op_resolver_type=BUILTIN)
    except (ValueError, RuntimeError) as error:
        return "Didn't find op" not in str(error) and "unresolved" not in str(error).lower()
    return True


def versions():
    """By operator the versions that LiteRT has."""
    codes = {code: name for code, name in graph.OP_NAMES.items() if name != "CUSTOM"}
    answers = each(has_version, [(code, version) for code in codes for version in VERSIONS])
    return {name: {version for version in VERSIONS if answers[code, version]} for code, name in codes.items()}


def draw(name, shape, kind):
    """Numbers that every type has, but for the halves of floats."""
    rng = single.random(name)
    if kind == "bool":
        return rng.random(shape) < 0.5
    values = rng.integers(1, 6, shape)
    if kind == "complex64":
        values = values + 1j * rng.integers(-5, 6, shape)
    if kind.startswith("float"):
        values = values / 2
    return values.astype(kind)


def retyped(op, made, kind):
    """A case of an operator with another type in place of its data's, with numbers of its own; None if it has that type."""
    model = graph.unpack(made.model)
    main = model.subgraphs[0]
    first = data_type(main)
    code = graph.DTYPES[kind]
    if first == code:
        return None
    changed = [tensor.type == first for tensor in main.tensors]
    for index, tensor in enumerate(main.tensors):
        if not changed[index]:
            continue
        stored = model.buffers[tensor.buffer].data
        if stored is not None and len(stored):
            buffer = schema.BufferT()
            value = draw(f"constant {index}", tuple(tensor.shape), kind)
            buffer.data = np.frombuffer(value.tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
        tensor.type, tensor.quantization = code, None
        if kind in ("int8", "uint8", "int16") and not op.startswith("STABLEHLO"):
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [1 / 16], [0]
    values = [draw(f"input {at}", value.shape, kind) if changed[index] else value
              for at, (index, value) in enumerate(zip(main.inputs, made.runs[0].inputs))]
    return judge.Made(graph.pack(model), [judge.Run(values)], "schema", kind)


def data_type(main):
    """The element type of the data of the only operator: the first result's if an input has it, else the first
    input's."""
    operator = main.operators[-1]
    types = [main.tensors[index].type for index in operator.inputs if index >= 0]
    result = main.tensors[operator.outputs[0]].type
    return result if result in types else types[0]


def runs(made):
    """Whether LiteRT runs a case, and answers the same from whatever its memory held before."""
    def answer(held):
        C.mallopt(M_PERTURB, held)
        return judge.execute(made.model, made.runs, BUILTIN)[0]
    try:
        first, again = answer(0x15), answer(0xea)
        return all(judge.distance(a, b) == 0 for (_, a), (_, b) in zip(first, again))
    except (ValueError, RuntimeError, TypeError, KeyError):
        return False


def smallest():
    """By operator its description with the fewest elements, a type of it, and the types of all."""
    from . import registry
    found, kinds = {}, collections.defaultdict(set)
    for family in SOURCES:
        for entry in registry.entries(family):
            if not isinstance(entry, single.Single):
                continue
            inputs = [it for it in entry.inputs if isinstance(it, single.In)]
            kinds[entry.op] |= {single.activation_type(kind) for kind in entry.types}
            kinds[entry.op] |= {it.dtype for it in inputs if it.dtype and it is inputs[0]}
            if entry.more or entry.name.endswith("_special") or any(it.shape in ((), (0,)) for it in inputs):
                continue
            size = sum(int(np.prod(it.shape)) for it in inputs)
            kind = "float32" if "float32" in entry.types else entry.types[0]
            if size < found.get(entry.op, (1 << 60,))[0]:
                found[entry.op] = size, entry, kind
    return {op: (entry, kind, kinds[op]) for op, (_, entry, kind) in found.items()}


def simplest():
    """By operator what makes a case of it alone, of any kind."""
    from . import registry
    makers = {}
    for family in (*SOURCES, "recurrent"):
        for entry in registry.entries(family):
            if isinstance(entry, single.Single):
                makers.setdefault(entry.op, lambda entry=entry: single.make(entry, entry.types[0]))
                continue
            names = graph.operators(graph.unpack(entry[1]().model))
            if len(names) == 1:
                makers.setdefault(names[0], entry[1])
    makers.update({op: lambda entry=entry, kind=kind: single.make(entry, kind)
                   for op, (entry, kind, _) in smallest().items()})
    return makers


def at_version(op, maker, version):
    """A case as a version of its operator."""
    made = maker()
    model = graph.unpack(made.model)
    for code in model.operatorCodes:
        if graph.OP_NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)] == op:
            code.version = version
    made.model = graph.pack(model)
    return made


def all_cases():
    has = versions()
    for op, maker in simplest().items():
        for version in sorted(has.get(op, ())):
            yield (f"version_{op.lower()}_{version}",
                   lambda op=op, maker=maker, version=version: at_version(op, maker, version))
    candidates = {}
    for op, (entry, kind, kinds) in smallest().items():
        made = single.make(entry, kind)
        for other in KINDS:
            if other not in kinds and other not in UNTYPED.get(op, ()):
                case = retyped(op, made, other)
                if case is not None:
                    candidates[op, other] = case
    answers = each(lambda key: runs(candidates[key]), candidates)
    for (op, kind), case in candidates.items():
        if answers[op, kind]:
            yield f"type_{op.lower()}.{kind}", lambda case=case: case
