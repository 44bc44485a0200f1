"""Writes .tflite files operator by operator, straight from the schema.

    file = File()
    graph = file.graph()
    x = graph.input("x", (1, 4, 4, 3))
    y = graph.op("RELU", [x], [graph.tensor("y", (1, 4, 4, 3))])
    graph.outputs(*y)
    data = file.finish()
"""

import dataclasses

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

DTYPES = {"float32": schema.TensorType.FLOAT32, "float16": schema.TensorType.FLOAT16,
          "float64": schema.TensorType.FLOAT64, "int4": schema.TensorType.INT4,
          "int2": schema.TensorType.INT2, "uint4": schema.TensorType.UINT4,
          "bfloat16": schema.TensorType.BFLOAT16,
          "int8": schema.TensorType.INT8, "uint8": schema.TensorType.UINT8,
          "int16": schema.TensorType.INT16, "uint16": schema.TensorType.UINT16,
          "int32": schema.TensorType.INT32, "uint32": schema.TensorType.UINT32,
          "int64": schema.TensorType.INT64, "uint64": schema.TensorType.UINT64,
          "bool": schema.TensorType.BOOL, "complex64": schema.TensorType.COMPLEX64,
          "resource": schema.TensorType.RESOURCE}
DTYPE_NAMES = {code: name for name, code in DTYPES.items()}
OP_NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if name.isupper()}

# Operators whose table of options is called after something else.
SHARED_OPTIONS = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY",
                     "REDUCE_ALL"), "ReducerOptions"),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimumOptions"),
    **dict.fromkeys(("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"), "RandomOptions"),
    "L2_NORMALIZATION": "L2NormOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
}
_OPTIONS = {name[:-1].upper(): name[:-1] for name in vars(schema) if name.endswith("OptionsT")}

# The first version of these is not 1.
VERSIONS = {"BROADCAST_TO": 2}

PADDING = {"SAME": schema.Padding.SAME, "VALID": schema.Padding.VALID}
ACTIVATIONS = {name: code for name, code in vars(schema.ActivationFunctionType).items()
               if name.isupper()}


@dataclasses.dataclass(frozen=True)
class Quant:
    """`real = scale * (stored - zero_point)`; many scales are along `axis`."""
    scale: tuple
    zero_point: tuple
    axis: int = 0

    @staticmethod
    def per_tensor(scale, zero_point=0):
        return Quant((float(np.float32(scale)),), (int(zero_point),))

    def quantize(self, real, dtype):
        """Array of `dtype`; "int4" comes as int8 in -8..7, "int2" in -2..1."""
        limits = np.iinfo("int8" if dtype in ("int4", "int2") else dtype)
        low, high = {"int4": (-8, 7), "int2": (-2, 1)}.get(dtype, (limits.min, limits.max))
        scale, zero = self._broadcast(np.ndim(real))
        stored = np.round(np.asarray(real, np.float64) / scale) + zero
        return np.clip(stored, low, high).astype(limits.dtype)

    def dequantize(self, stored):
        scale, zero = self._broadcast(np.ndim(stored))
        return ((np.asarray(stored, np.float64) - zero) * scale).astype(np.float32)

    def _broadcast(self, rank):
        shape = [1] * rank
        if len(self.scale) > 1:
            shape[self.axis] = -1
        return (np.array(self.scale).reshape(shape) if rank else self.scale[0],
                np.array(self.zero_point).reshape(shape) if rank else self.zero_point[0])


@dataclasses.dataclass
class Tensor:
    """A tensor of one graph."""
    index: int
    name: str
    raw: schema.TensorT


class File:
    """A model: graphs, shared buffers and operator codes, signatures."""

    def __init__(self, description="nnhal test corpus"):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = description
        self.model.operatorCodes = []
        self.model.buffers = [schema.BufferT()]     # number 0 means "no data"
        self.model.subgraphs = []
        self.model.signatureDefs = []

    def graph(self, name="main"):
        """A further graph; the first one is the model's."""
        graph = Graph(self, len(self.model.subgraphs), name)
        self.model.subgraphs.append(graph.raw)
        return graph

    def signature(self, key, graph, inputs, outputs):
        """Names a graph's inputs and outputs: dicts of name to Tensor."""
        def maps(tensors):
            entries = []
            for name, tensor in tensors.items():
                entry = schema.TensorMapT()
                entry.name, entry.tensorIndex = name, tensor.index
                entries.append(entry)
            return entries

        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = key, graph.number
        signature.inputs, signature.outputs = maps(inputs), maps(outputs)
        self.model.signatureDefs.append(signature)

    def finish(self):
        return pack(self.model)

    def _buffer(self, data):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def _code(self, name):
        name, _, custom = name.partition(":")
        code = getattr(schema.BuiltinOperator, name)
        for index, known in enumerate(self.model.operatorCodes):
            if known.builtinCode == code and (known.customCode or "") == custom:
                return index
        entry = schema.OperatorCodeT()
        entry.customCode = custom or None
        entry.builtinCode, entry.deprecatedBuiltinCode = code, min(code, 127)
        entry.version = VERSIONS.get(name, 1)
        self.model.operatorCodes.append(entry)
        return len(self.model.operatorCodes) - 1


class Graph:
    """One subgraph under construction."""

    def __init__(self, file, number, name):
        self.file, self.number = file, number
        self.raw = schema.SubGraphT()
        self.raw.name = name
        self.raw.tensors, self.raw.operators = [], []
        self.raw.inputs, self.raw.outputs = [], []

    def tensor(self, name, shape, dtype="float32", quant=None, variable=False):
        """A tensor without data; a dimension of None is unknown (-1)."""
        raw = schema.TensorT()
        raw.name, raw.type, raw.buffer, raw.isVariable = name, DTYPES[dtype], 0, variable
        raw.hasRank = True
        raw.shape = [1 if size is None else int(size) for size in shape]
        if None in shape:
            raw.shapeSignature = [-1 if size is None else int(size) for size in shape]
        if quant:
            raw.quantization = schema.QuantizationParametersT()
            raw.quantization.scale = np.array(quant.scale, np.float32)
            raw.quantization.zeroPoint = np.array(quant.zero_point, np.int64)
            raw.quantization.quantizedDimension = quant.axis
        self.raw.tensors.append(raw)
        return Tensor(len(self.raw.tensors) - 1, name, raw)

    def input(self, name, shape, dtype="float32", quant=None):
        tensor = self.tensor(name, shape, dtype, quant)
        self.raw.inputs.append(tensor.index)
        return tensor

    def const(self, name, value, dtype=None, quant=None):
        """A constant; the value is stored as it is, but narrow types are packed: "int4", "int2" and "uint4"
        take values of 8 bits, "bfloat16" floats, whose upper halves are kept."""
        value = np.asarray(value)
        tensor = self.tensor(name, value.shape, dtype or value.dtype.name, quant)
        if dtype in ("int4", "uint4", "int2"):
            bits = int(dtype[-1])
            flat = np.append(value.ravel(), [0] * (-value.size % (8 // bits))).astype(np.uint8) & (1 << bits) - 1
            value = np.bitwise_or.reduce([flat[at::8 // bits] << bits * at for at in range(8 // bits)])
        elif dtype == "bfloat16":
            value = (value.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        tensor.raw.buffer = self.file._buffer(np.ascontiguousarray(value).tobytes())
        return tensor

    def op(self, name, inputs, outputs, /, custom_options=None, **options):
        """An operator; an input of None is left out.  Gives the outputs.

        Options have the schema's names; `padding` and `fusedActivationFunction`
        may be words.  A custom operator is called "CUSTOM:name"."""
        raw = schema.OperatorT()
        raw.opcodeIndex = self.file._code(name)
        raw.inputs = [-1 if tensor is None else tensor.index for tensor in inputs]
        raw.outputs = [tensor.index for tensor in outputs]
        if custom_options:
            raw.customOptions = np.frombuffer(custom_options, np.uint8)
        table = SHARED_OPTIONS.get(name) or _OPTIONS.get(name.replace("_", "") + "OPTIONS")
        if table:
            filled = getattr(schema, table + "T")()
            for key, value in options.items():
                if not hasattr(filled, key):
                    raise AttributeError(f"{table} has no {key}")
                if isinstance(value, str) and key in ("padding", "fusedActivationFunction"):
                    value = (PADDING if key == "padding" else ACTIVATIONS)[value]
                setattr(filled, key, value)
            if hasattr(schema.BuiltinOptions, table):
                raw.builtinOptionsType = getattr(schema.BuiltinOptions, table)
                raw.builtinOptions = filled
            else:
                raw.builtinOptions2Type = getattr(schema.BuiltinOptions2, table)
                raw.builtinOptions2 = filled
        elif options:
            raise AttributeError(f"{name} takes no options")
        self.raw.operators.append(raw)
        return outputs

    def outputs(self, *tensors):
        self.raw.outputs = [tensor.index for tensor in tensors]


def pack(model):
    """Bytes of a schema.ModelT."""
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def unpack(data):
    """schema.ModelT of bytes."""
    return schema.ModelT.InitFromPackedBuf(bytearray(data), 0)


def operators(model):
    """Names of the operators of all graphs of a schema.ModelT, in order."""
    names = []
    for graph in model.subgraphs:
        for op in graph.operators or ():
            code = model.operatorCodes[op.opcodeIndex]
            name = OP_NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
            if name == "CUSTOM":
                name += ":" + (code.customCode or b"?").decode()
            names.append(name)
    return names


def constant(model, tensor):
    """The data of a tensor as an array, or None if it has none.  Needs a byte or
    wider type."""
    buffer = model.buffers[tensor.buffer]
    if tensor.type not in DTYPE_NAMES or buffer.data is None or not len(buffer.data):
        return None
    data = np.asarray(buffer.data, np.uint8).tobytes()
    return np.frombuffer(data, DTYPE_NAMES[tensor.type]).reshape(tensor.shape)
