"""Cases of one operator, made in many element types from one description.

A description gives real-valued inputs and constants.  The float32 model is made
and run first; its output's range then sets the scales of the quantized ones.

Types of a case:
  float32 int32 int64 bool ...  plain: every `In` and "data" constant has the type
  uint8 int8 int16              quantized: activations of the type; weights int8 with a scale
                                for each channel (uint8: one scale), bias int32 (int16: int64)
  float16w                      float16 constants behind DEQUANTIZE
  hybrid, hybrid_channel        int8 weights, one scale or one for each channel, float activations
  hybrid_asym                   hybrid with asymmetric_quantize_inputs
  hybrid_int4, hybrid_int2      int4 or int2 weights with a scale for each channel, float activations
  hybrid_int4_one, hybrid_int2_one  the same with one scale
  int4w                         int8 activations, int4 weights
"""

import dataclasses
import zlib

import numpy as np

from . import graph, judge

FLOAT = ("float32",)
QUANT = ("float32", "uint8", "int8", "int16")
BYTES = ("float32", "uint8", "int8")
INTS = ("int32", "int64")
MOVED = ("float32", "uint8", "int8", "int16", "int32", "int64", "bool")
NUMBERS = ("float32", "uint8", "int8", "int16", "int32", "int64")
WEIGHTS = ("float32", "uint8", "int8", "int16", "float16w", "hybrid", "hybrid_channel")
QUANTIZED = ("uint8", "int8", "int16", "int4w")
PACKED = {"hybrid_int4": "int4", "hybrid_int4_one": "int4", "hybrid_int2": "int2", "hybrid_int2_one": "int2"}
HYBRID = ("hybrid", "hybrid_channel", "hybrid_asym", *PACKED)

# Output quantization that the operator fixes: scale and zero point by type.
FIXED = {
    "LOGISTIC": {"uint8": (1 / 256, 0), "int8": (1 / 256, -128), "int16": (1 / 32768, 0)},
    "SOFTMAX": {"uint8": (1 / 256, 0), "int8": (1 / 256, -128), "int16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"uint8": (16 / 256, 255), "int8": (16 / 256, 127)},
    "TANH": {"uint8": (1 / 128, 128), "int8": (1 / 128, 0), "int16": (1 / 32768, 0)},
    "L2_NORMALIZATION": {"uint8": (1 / 128, 128), "int8": (1 / 128, 0)},
}
# The output has the first input's quantization.
SAME = judge.MOVES | {"AVERAGE_POOL_2D", "RESIZE_BILINEAR", "CONCATENATION", "MAXIMUM",
                      "MINIMUM", "CUMSUM"}


@dataclasses.dataclass
class In:
    """An input of the model, uniform in [low, high] unless `values` is given."""
    shape: tuple
    low: float = -1.0
    high: float = 1.0
    dtype: str = None       # None: the type of the case
    values: object = None
    share: int = None       # quantization of that input
    signature: tuple = None  # shape in the file, None for unknown sizes


@dataclasses.dataclass
class Const:
    """A constant.  `role`: weights, bias, data (typed as the activations) or exact."""
    value: object
    role: str = "exact"
    axis: int = 0           # of the channels, for weights
    share: int = None


@dataclasses.dataclass
class Single:
    """One operator in one setting."""
    name: str
    op: str
    inputs: list
    options: dict = dataclasses.field(default_factory=dict)
    types: tuple = FLOAT
    outputs: int = 1
    out_dtypes: tuple = None    # None: the type of the case
    out: str = None             # quantization: same, fixed, range; None: as the operator has it
    dynamic: bool = False       # the output's size depends on values
    data_input: int = 0         # which input the bias' scale comes from
    more: list = dataclasses.field(default_factory=list)    # further runs' input lists
    exact: bool = False


def random(seed):
    return np.random.Generator(np.random.PCG64([20260101, zlib.crc32(seed.encode())]))


def draw(rng, shape, low=-1.0, high=1.0):
    """Uniform float32 values."""
    return rng.uniform(low, high, shape).astype(np.float32)


def weights(seed, shape, gain=1.0):
    """Weights whose channels differ in size, as trained ones do."""
    rng = random(seed)
    return draw(rng, shape, -gain, gain) * draw(rng, shape[:1] + (1,) * (len(shape) - 1), 0.3, 1)


def cases(single):
    """(name, maker) for each type of a description."""
    for kind in single.types:
        name = single.name if len(single.types) == 1 else f"{single.name}.{kind}"
        yield name, lambda kind=kind: make(single, kind)


def activation_type(kind):
    """Element type of the activations."""
    if kind == "int4w":
        return "int8"
    return "float32" if kind == "float16w" or kind in HYBRID else kind


def make(single, kind):
    """judge.Made of one type."""
    rng = random(single.name)
    values = [_value(entry, kind, rng) for entry in single.inputs]
    answers = None
    if kind in QUANTIZED:
        answers = judge.answers(_assemble(single, "float32", values),
                                judge.Run(_given(single, values)))
        quants = _quants(single, kind, values, answers)
        data = _assemble(single, kind, values, [a.shape for a in answers], quants)
        inputs = [quant.quantize(value, activation_type(kind)) if quant else value
                  for entry, value, quant in zip(single.inputs, values, quants[0])
                  if isinstance(entry, In)]
        rounded = [quant.dequantize(quant.quantize(value, _stored_type(entry, kind))) if quant else value
                   for entry, value, quant in zip(single.inputs, values, quants[0])]
        answers = judge.answers(_assemble(single, "float32", rounded),
                                judge.Run(_given(single, rounded)))
    else:
        inputs = _given(single, values)
        draft = judge.answers(_assemble(single, kind, values), judge.Run(inputs))
        data = _assemble(single, kind, values, [value.shape for value in draft])
    runs = [judge.Run(inputs)] + [judge.Run(list(more)) for more in single.more]
    return judge.Made(data, runs, "schema", kind, single.exact, real=answers)


def _given(single, values):
    """The values of the inputs, without the constants."""
    return [value for entry, value in zip(single.inputs, values) if isinstance(entry, In)]


def _value(entry, kind, rng):
    """Real or plain value of an input or constant."""
    if entry is None:
        return None
    if isinstance(entry, Const):
        value = np.asarray(entry.value)
        if entry.role == "data" and kind not in QUANTIZED:
            value = value.astype(activation_type(kind))
        return value
    dtype = entry.dtype or activation_type(kind)
    if entry.dtype is None and kind in QUANTIZED:
        dtype = "float32"
    if entry.values is not None:
        return np.asarray(entry.values).astype(dtype)
    if dtype == "bool":
        return rng.random(entry.shape) < 0.5
    if dtype == "complex64":
        return (draw(rng, entry.shape, entry.low, entry.high)
                + 1j * draw(rng, entry.shape, entry.low, entry.high)).astype(np.complex64)
    if np.issubdtype(dtype, np.integer):
        low, high = entry.low, entry.high
        if entry.dtype is None:     # a range meant for reals
            low, high = (0 if low >= 0 else -20), 20
        return rng.integers(int(low), int(high) + 1, entry.shape).astype(dtype)
    return draw(rng, entry.shape, entry.low, entry.high).astype(dtype)


def _range_quant(value, dtype):
    """Per-tensor quantization that covers the value and zero."""
    low = min(0.0, float(value.min(initial=0)))
    high = max(0.0, float(value.max(initial=0)))
    if low == high:
        high = 1.0
    if dtype == "int16":
        return graph.Quant.per_tensor(max(-low, high) / 32767)
    scale = np.float32((high - low) / 255)
    least = np.iinfo(dtype).min
    return graph.Quant.per_tensor(scale, np.clip(round(least - low / scale), least, least + 255))


def _group(single, values, index):
    """All values that share the quantization of an input."""
    return np.concatenate([value.ravel() for i, (entry, value) in enumerate(zip(single.inputs, values))
                           if i == index or entry is not None and entry.share == index])


def _weight_quant(value, kind, axis):
    """Symmetric quantization of weights: per channel, per tensor, or per-tensor uint8."""
    if kind == "uint8":
        return _range_quant(value, "uint8")
    top = {"int4": 7, "int2": 1}.get("int4" if kind == "int4w" else PACKED.get(kind), 127)
    if kind in ("hybrid", "hybrid_asym") or kind.endswith("_one"):
        return graph.Quant.per_tensor(float(np.abs(value).max()) / top)
    others = tuple(i for i in range(value.ndim) if i != axis)
    scale = np.maximum(np.abs(value).max(axis=others), 1e-6) / top
    scale = tuple(float(s) for s in scale.astype(np.float32))
    return graph.Quant(scale, (0,) * len(scale), axis)


def _quants(single, kind, values, answers):
    """Quantization of the inputs and of the outputs of a quantized model; None where
    the type is not quantized."""
    dtype = activation_type(kind)
    quants = []
    for entry, value in zip(single.inputs, values):
        quant = None
        if isinstance(entry, In) and entry.dtype is None or (
                isinstance(entry, Const) and entry.role == "data"):
            quant = quants[entry.share] if entry.share is not None else _range_quant(
                _group(single, values, len(quants)), dtype)
        elif isinstance(entry, Const) and entry.role == "weights":
            quant = _weight_quant(value, kind, entry.axis)
        quants.append(quant)
    for i, entry in enumerate(single.inputs):
        if isinstance(entry, Const) and entry.role == "bias":
            weight = next(q for e, q in zip(single.inputs, quants)
                          if isinstance(e, Const) and e.role == "weights")
            scale = tuple(float(np.float32(quants[single.data_input].scale[0] * s))
                          for s in weight.scale)
            quants[i] = graph.Quant(scale, (0,) * len(scale))
    rule = single.out or ("fixed" if single.op in FIXED else
                          "same" if single.op in SAME else "range")
    outs = []
    for answer in answers:
        if answer.dtype != np.float32:
            outs.append(None)
        elif rule == "same":
            outs.append(next(q for q in quants if q))
        elif rule == "fixed":
            outs.append(graph.Quant.per_tensor(*FIXED[single.op][kind]))
        else:
            outs.append(_range_quant(answer, dtype))
    return quants, outs


def _stored_type(entry, kind):
    """Element type of a quantized input or constant."""
    role = getattr(entry, "role", "data")
    if role == "bias":
        return "int64" if kind == "int16" else "int32"
    if role == "weights":
        return {"uint8": "uint8", "int4w": "int4"}.get(kind, "int8")
    return activation_type(kind)


def _assemble(single, kind, values, shapes=None, quants=None):
    """The model's bytes.  Without `shapes` a draft whose outputs have none."""
    file = graph.File()
    main = file.graph()
    dtype = activation_type(kind)
    tensors, moved = [], {}
    for i, (entry, value) in enumerate(zip(single.inputs, values)):
        quant = quants[0][i] if quants else None
        name = f"input{i}" if isinstance(entry, In) else f"constant{i}"
        if entry is None:
            tensors.append(None)
        elif isinstance(entry, In):
            kept = entry.dtype or dtype
            tensors.append(main.input(name, entry.signature or entry.shape, kept, quant))
        elif quants and quant:
            stored = _stored_type(entry, kind)
            tensors.append(main.const(name, quant.quantize(value, stored), stored, quant))
        elif kind in HYBRID and entry.role == "weights":
            quant = _weight_quant(value, kind, entry.axis)
            stored = PACKED.get(kind, "int8")
            tensors.append(main.const(name, quant.quantize(value, stored), stored, quant))
        elif kind == "float16w" and value.dtype == np.float32:
            half = main.const(name + "_half", value.astype(np.float16))
            tensors.append(main.tensor(name, value.shape))
            moved[i] = half
        else:
            tensors.append(main.const(name, value))
    for i, half in moved.items():
        main.op("DEQUANTIZE", [half], [tensors[i]])
    outputs = []
    for i in range(single.outputs):
        out_dtype = (single.out_dtypes or (None,) * single.outputs)[i] or dtype
        quant = quants[1][i] if quants and out_dtype == dtype else None
        shape = shapes[i] if shapes else ()
        if single.dynamic:
            shape = (None,) * len(shape)
        outputs.append(main.tensor(f"output{i}", shape, out_dtype, quant))
    options = dict(single.options)
    if kind == "hybrid_asym":
        options["asymmetricQuantizeInputs"] = True
    if single.op in ("ADD", "SUB"):
        options["potScaleInt16"] = False
    main.op(single.op, tensors, outputs, **options)
    main.outputs(*outputs)
    return file.finish()
