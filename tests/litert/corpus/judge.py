"""Runs LiteRT and writes a case: model, inputs, LiteRT's outputs, meta.json.

The outputs come from LiteRT's built-in kernels without delegate.  Its other ways,
the reference kernels and XNNPACK, are run too: how far they lie apart widens the
suggested tolerance, and where a case knows the real answer of a quantized
operator, the way that is nearest to it is taken.
"""

import collections
import dataclasses
import json
import math

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from . import graph

REFERENCE = OpResolverType.BUILTIN_REF
OPTIMIZED = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
XNNPACK = OpResolverType.AUTO
WAYS = {"optimized": OPTIMIZED, "reference": REFERENCE, "xnnpack": XNNPACK}

# Steps of the output's scale beyond which a quantized answer is taken for wrong.
MISLED = 10

# Kernels of LiteRT that are wrong in float too: the reference one of this leaves
# out the last channel of each window.
WRONG = (("LOCAL_RESPONSE_NORMALIZATION", "reference"),)

# Operators that move values without computing: exact in every type.
MOVES = frozenset("""
BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO DEPTH_TO_SPACE DILATE DYNAMIC_UPDATE_SLICE
EMBEDDING_LOOKUP EXPAND_DIMS FILL GATHER GATHER_ND MAX_POOL_2D MIRROR_PAD PACK PAD PADV2
REDUCE_MAX REDUCE_MIN RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 SCATTER_ND
SELECT SELECT_V2 SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE
TILE TOPK_V2 TRANSPOSE UNPACK WHERE ZEROS_LIKE MATRIX_DIAG MATRIX_SET_DIAG IF WHILE
""".split())


@dataclasses.dataclass
class Run:
    """One execution: arrays in the order of the graph's (or signature's) inputs."""
    inputs: list
    signature: str = None


@dataclasses.dataclass
class Made:
    """What a case makes."""
    model: bytes
    runs: list
    source: str             # schema, converter or wheel
    variant: str = "float32"
    exact: bool = False     # data movement: outputs must be the same to the bit
    keeps_state: bool = False   # the runs follow each other in one interpreter
    notes: str = ""
    wrong: tuple = ()       # ways of LiteRT that are not right for this model
    real: list = None       # what the outputs of the first run are without quantization
    answers: list = None    # what TensorFlow computes in the first and only run, where LiteRT has no kernels


def execute(model, runs, way=OPTIMIZED, keep_state=False):
    """For each run, (details, value) of every output.  With `keep_state` one
    interpreter does all of them, without it each begins afresh."""
    results, interpreter = [], None
    for run in runs:
        fresh = not (interpreter and keep_state)
        if fresh:
            interpreter = Interpreter(model_content=model, experimental_op_resolver_type=way,
                                      num_threads=1)
        results.append(_execute_signature(interpreter, run) if run.signature
                       else _execute(interpreter, run, fresh))
    return results


def _execute(interpreter, run, fresh):
    inputs = interpreter.get_input_details()
    if len(inputs) != len(run.inputs):
        raise ValueError(f"{len(inputs)} inputs, {len(run.inputs)} values")
    resized = [(details["index"], value.shape) for details, value in zip(inputs, run.inputs)
               if tuple(details["shape"]) != value.shape]
    for index, shape in resized:
        interpreter.resize_tensor_input(index, shape)
    if fresh or resized:
        interpreter.allocate_tensors()
    for details, value in zip(inputs, run.inputs):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [(details, _value(interpreter, details)) for details in interpreter.get_output_details()]


def _execute_signature(interpreter, run):
    runner = interpreter.get_signature_runner(run.signature)
    names = sorted(runner.get_input_details())
    values = runner(**dict(zip(names, run.inputs)))
    details = runner.get_output_details()
    return [({**details[name], "signature_name": name}, np.array(values[name]))
            for name in sorted(details)]


def _value(interpreter, details):
    """An output; the interpreter does not hand out one without elements."""
    if 0 in details["shape"]:
        return np.zeros(details["shape"], details["dtype"])
    return interpreter.get_tensor(details["index"])


def stored(value, details):
    """Real values as a tensor with these details stores them; integers that stand for themselves stay what they are."""
    scale, zero = details["quantization"]
    if scale:
        limits = np.iinfo(details["dtype"])
        value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
    return value.astype(details["dtype"])


def answers(model, run):
    """Output values, of the first of LiteRT's ways that has the operators."""
    try:
        return [value for _, value in execute(model, [run], OPTIMIZED)[0]]
    except (RuntimeError, ValueError):
        return [value for _, value in execute(model, [run], REFERENCE)[0]]


def distance(a, b):
    """Largest difference of two arrays, NaN and infinity being equal to themselves;
    None where a finite value meets one that is not, or the shapes differ."""
    if a.shape != b.shape:
        return None
    if a.size == 0:
        return 0.0
    wide = complex if np.iscomplexobj(a) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b)).max()
    return float(apart) if np.isfinite(apart) else None


def magnitude(value):
    """Largest finite absolute value."""
    finite = value[np.isfinite(value)] if value.size else value
    return float(np.abs(finite).max()) if finite.size else 0.0


def steps_apart(answer, real):
    """Largest distance of a run's quantized outputs from the real ones, in steps of the
    output's scale; what is beyond the type's ends counts as being there."""
    worst = 0.0
    for (details, value), truth in zip(answer, real):
        scale, zero = details["quantization"]
        if scale and value.size:
            limits = np.iinfo(value.dtype)
            aim = np.clip(truth.astype(np.float64) / scale + zero, limits.min, limits.max)
            worst = max(worst, float(np.abs(value - aim).max()))
    return worst


def nearest(results, real):
    """The way to take and its error: the first one, or if that lies too far from the
    real answer the nearest."""
    first = next(iter(results))
    if real is None:
        return first, None
    errors = {way: steps_apart(result[0], real) for way, result in results.items()}
    best = first if errors[first] < MISLED else min(errors, key=errors.get)
    return best, errors[best]


def with_float_weights(data):
    """The model with its 8-bit and 4-bit constant weights turned to float32 wherever
    they meet float activations, or None if there are none."""
    model, found = graph.unpack(data), False
    float32 = graph.DTYPES["float32"]
    for subgraph in model.subgraphs:
        for op in subgraph.operators or ():
            if not len(op.inputs) or op.inputs[0] < 0 or subgraph.tensors[op.inputs[0]].type != float32:
                continue
            for index in op.inputs[1:]:
                tensor = subgraph.tensors[index]
                if index < 0 or tensor.type not in (graph.DTYPES["int8"], graph.DTYPES["uint8"]):
                    continue
                stored = graph.constant(model, tensor)
                if stored is None or tensor.quantization is None:
                    continue
                quant = graph.Quant(tuple(tensor.quantization.scale),
                                    tuple(tensor.quantization.zeroPoint),
                                    tensor.quantization.quantizedDimension)
                buffer = graph.schema.BufferT()
                buffer.data = np.frombuffer(quant.dequantize(stored).tobytes(), np.uint8)
                model.buffers.append(buffer)
                tensor.buffer, tensor.type = len(model.buffers) - 1, float32
                tensor.quantization, found = None, True
    return graph.pack(model) if found else None


def tolerance(details, value, spread, step, off, made, names):
    """Suggested tolerance of one output, as a dict for meta.json.

    `step` is the scale of the quantized tensor that a float output comes from, `off`
    how far a quantized one lies from the real answer, in steps."""
    few = sum(name not in MOVES for name in names) <= 1
    if made.exact or all(name in MOVES for name in names):
        return {"exact": True}
    if value.dtype.kind in "fc":
        steps = 0 if step is None else step * (1.01 if few else 2.02)
        return {"atol": max(1e-6, 2e-6 * magnitude(value), 3 * spread, steps), "rtol": 1e-5}
    if details["quantization"][0]:
        least = 4 if value.dtype == np.int16 else 1 if few else 2
        return {"steps": math.ceil(max(least, spread if few else 2 * spread, off or 0))}
    return {"exact": True}


def quantized_step(model, index):
    """Scale of what the main graph's output number `index` is dequantized from, or None."""
    main = model.subgraphs[0]
    for op in main.operators or ():
        code = model.operatorCodes[op.opcodeIndex].builtinCode
        if code == graph.schema.BuiltinOperator.DEQUANTIZE and main.outputs[index] in op.outputs:
            quant = main.tensors[op.inputs[0]].quantization
            return float(quant.scale[0]) if quant and quant.scale is not None else None
    return None


def save(folder, name, made):
    """Writes the case; gives its meta data.  Raises what LiteRT raises."""
    model = graph.unpack(made.model)
    names = graph.operators(model)
    if made.answers is not None:
        return _save_answered(folder, name, made, model, names)
    float_weights = with_float_weights(made.model)
    results, errors = {}, {}
    for way, resolver in WAYS.items():
        try:
            results[way] = execute(made.model, made.runs, resolver, made.keeps_state)
        except (RuntimeError, ValueError) as error:
            errors[way] = error
    if not results:
        raise errors["optimized"]
    for operator, way in WRONG:
        if operator in names:
            results.pop(way, None)
    for way in made.wrong:
        results.pop(way, None)
    judge, off = nearest(results, made.real)
    expected = results.pop(judge)
    again = execute(made.model, made.runs, WAYS[judge], made.keeps_state)
    if any(distance(value, other[1]) != 0 for run, counterpart in zip(expected, again)
           for (_, value), other in zip(run, counterpart)):
        raise ValueError("LiteRT does not give the same answer twice")
    if off is not None and off < MISLED:
        results = {way: result for way, result in results.items()
                   if steps_apart(result[0], made.real) < MISLED}
    if float_weights:
        results["float_weights"] = execute(float_weights, made.runs, OPTIMIZED, made.keeps_state)
    runs = []
    for number, (run, answer) in enumerate(zip(made.runs, expected)):
        spreads = {way: [distance(value, other[number][i][1]) for i, (_, value) in enumerate(answer)]
                   for way, other in results.items()}
        runs.append(_write_run(folder, number, run, answer))
        for i, (details, value) in enumerate(answer):
            spread = max([way[i] or 0.0 for way in spreads.values()], default=0.0)
            step = None if run.signature else quantized_step(model, i)
            runs[-1]["outputs"][i]["tolerance"] = tolerance(details, value, spread, step, off, made,
                                                            names)
        runs[-1]["spread"] = spreads
        if float_weights:
            _write_float_weights(folder, runs[-1], results["float_weights"][number])
    return _write_meta(folder, name, made, model, names, judge, off, runs)


def _save_answered(folder, name, made, model, names):
    """The same with answers that the case brings."""
    if not any(it.startswith("CUSTOM:Flex") for it in names):
        raise ValueError("none of its operators is TensorFlow's")
    details = {"quantization": (0.0, 0)}
    run = _write_run(folder, 0, made.runs[0], [(details, value) for value in made.answers])
    for output, value in zip(run["outputs"], made.answers):
        output["tolerance"] = tolerance(details, value, 0.0, None, None, made, names)
    run["spread"] = {}
    return _write_meta(folder, name, made, model, names, "tensorflow", None, [run])


def _write_meta(folder, name, made, model, names, judge, off, runs):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.tflite").write_bytes(made.model)
    meta = {"name": name, "source": made.source, "variant": made.variant, "judge": judge,
            "notes": made.notes, "steps_from_real": off,
            "keeps_state": made.keeps_state, "bytes": len(made.model),
            "operators": dict(collections.Counter(names)), "subgraphs": len(model.subgraphs),
            "signatures": [text(entry.signatureKey) for entry in model.signatureDefs or ()],
            "tensors": _interface(model), "runs": runs}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    return meta


def _interface(model):
    """Inputs and outputs of the first graph as the file states them."""
    main = model.subgraphs[0]

    def state(index):
        raw = main.tensors[index]
        entry = {"name": text(raw.name), "dtype": graph.DTYPE_NAMES.get(raw.type, raw.type),
                 "shape": [int(size) for size in (raw.shape if raw.shape is not None else ())]}
        if raw.shapeSignature is not None and len(raw.shapeSignature):
            entry["shape_signature"] = [int(size) for size in raw.shapeSignature]
        quant = raw.quantization
        if quant is not None and quant.scale is not None and len(quant.scale):
            entry["scale"] = float(quant.scale[0])
            entry["zero_point"] = int(quant.zeroPoint[0])
        return entry

    return {"inputs": [state(i) for i in main.inputs], "outputs": [state(i) for i in main.outputs]}


def _write_run(folder, number, run, answer):
    """Writes the arrays of one run: the first in inputs/ and outputs/, the others in
    run<number>/inputs/ and run<number>/outputs/."""
    base = folder / f"run{number}" if number else folder
    entry = {"signature": run.signature, "inputs": [], "outputs": []}
    for kind, values in (("inputs", run.inputs), ("outputs", [value for _, value in answer])):
        (base / kind).mkdir(parents=True, exist_ok=True)
        for i, value in enumerate(values):
            path = base / kind / f"{i}.npy"
            np.save(path, value)
            entry[kind].append({"file": path.relative_to(folder).as_posix(),
                                "dtype": value.dtype.name, "shape": list(value.shape)})
    for i, (details, _) in enumerate(answer):
        if "signature_name" in details:
            entry["outputs"][i]["name"] = details["signature_name"]
    return entry


def _write_float_weights(folder, entry, answer):
    """Writes what the model gives with its weights dequantized first, beside each output."""
    for output, (_, value) in zip(entry["outputs"], answer):
        output["float_weights"] = output["file"].replace("outputs/", "float_weights/")
        path = folder / output["float_weights"]
        path.parent.mkdir(exist_ok=True)
        np.save(path, value)


def text(name):
    return name.decode() if isinstance(name, bytes) else name
