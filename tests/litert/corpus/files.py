"""The same small network in files of unusual form, and a custom operator."""

import numpy as np
from flatbuffers import flexbuffers

from . import graph, judge
from .single import draw, random, weights

SHAPE = (1, 6, 6, 3)


def network():
    """A convolution, a maximum pooling and a softmax, as a schema.ModelT."""
    file = graph.File()
    main = file.graph()
    x = main.input("x", SHAPE)
    y, z, p = (main.tensor(name, shape) for name, shape in (
        ("y", (1, 6, 6, 4)), ("z", (1, 3, 3, 4)), ("p", (1, 3, 3, 4))))
    kernel = main.const("kernel", weights("files kernel", (4, 3, 3, 3)))
    bias = main.const("bias", draw(random("files bias"), (4,)))
    main.op("CONV_2D", [x, kernel, bias], [y], padding="SAME", strideH=1, strideW=1,
            fusedActivationFunction="RELU")
    main.op("MAX_POOL_2D", [y], [z], padding="VALID", strideH=2, strideW=2, filterHeight=2, filterWidth=2)
    main.outputs(*main.op("SOFTMAX", [z], [p], beta=1.0))
    file.signature("serving_default", main, {"image": x}, {"probabilities": p})
    return file.model


def variant(name, change, notes):
    """A case: the network with its ModelT changed."""
    def make():
        model = network()
        data = change(model) or graph.pack(model)
        return judge.Made(data, [judge.Run([draw(random("files x"), SHAPE)])], "schema", notes=notes)
    return f"file_{name}", make


def old_codes(model):
    for code in model.operatorCodes:
        code.builtinCode = 0


def new_codes(model):
    for code in model.operatorCodes:
        code.deprecatedBuiltinCode = 127 if code.builtinCode > 127 else code.deprecatedBuiltinCode
        code.version = 7 if code.builtinCode == graph.schema.BuiltinOperator.CONV_2D else 2


def without_names(model):
    model.description = None
    model.signatureDefs = None
    model.subgraphs[0].name = None
    for tensor in model.subgraphs[0].tensors:
        tensor.name = None


def without_inner_shapes(model):
    main = model.subgraphs[0]
    kept = set(main.inputs) | set(main.outputs)
    for index, tensor in enumerate(main.tensors):
        if index not in kept and not tensor.buffer:
            tensor.shape = None


def with_metadata(model):
    buffer = graph.schema.BufferT()
    buffer.data = np.frombuffer(b"1.5.0".ljust(16, b"\0"), np.uint8)
    model.buffers.append(buffer)
    entry = graph.schema.MetadataT()
    entry.name, entry.buffer = "min_runtime_version", len(model.buffers) - 1
    model.metadata = [entry]


def buffer_for_each_tensor(model):
    """Tensors without data have an empty buffer of their own, as old converters wrote."""
    for tensor in model.subgraphs[0].tensors:
        if not tensor.buffer:
            model.buffers.append(graph.schema.BufferT())
            tensor.buffer = len(model.buffers) - 1


def data_behind(model):
    """Constants are behind the flatbuffer, as in files beyond 2 GB: Buffer.offset and
    Buffer.size instead of Buffer.data."""
    parts = [(buffer, np.asarray(buffer.data).tobytes()) for buffer in model.buffers
             if buffer.data is not None]
    for buffer, data in parts:
        buffer.data, buffer.offset, buffer.size = None, 1 << 40, len(data)
    position = -(-len(graph.pack(model)) // 64) * 64
    tail = b""
    for buffer, data in parts:
        buffer.offset = position + len(tail)
        tail += data.ljust(-(-len(data) // 16) * 16, b"\0")
    return graph.pack(model).ljust(position, b"\0") + tail


def shared_buffer(model):
    """Two tensors with one buffer."""
    main = model.subgraphs[0]
    zeros = graph.schema.BufferT()
    zeros.data = np.zeros(16, np.uint8)
    model.buffers.append(zeros)
    for name, op in (("a", "ADD"), ("b", "SUB")):
        tensor = graph.schema.TensorT()
        tensor.name, tensor.shape, tensor.hasRank = name, [4], True
        tensor.buffer = len(model.buffers) - 1
        main.tensors.append(tensor)
        out = graph.schema.TensorT()
        out.name, out.shape, out.hasRank, out.buffer = name + "_out", [1, 3, 3, 4], True, 0
        main.tensors.append(out)
        code = graph.schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(graph.schema.BuiltinOperator, op)
        code.version = 1
        model.operatorCodes.append(code)
        raw = graph.schema.OperatorT()
        raw.opcodeIndex = len(model.operatorCodes) - 1
        raw.inputs, raw.outputs = [main.outputs[0], len(main.tensors) - 2], [len(main.tensors) - 1]
        main.operators.append(raw)      # without options, as some writers do
        main.outputs = [len(main.tensors) - 1]
    model.signatureDefs = None


def detection_postprocess(regular):
    """The custom operator at the end of SSD detectors."""
    file = graph.File()
    main = file.graph()
    rng = random("detection")
    count, classes, most = 40, 4, 6
    centres = draw(rng, (count, 2), 0.2, 0.8)
    anchors = np.concatenate([centres, np.full((count, 2), 0.25, np.float32)], axis=1)
    boxes, scores = main.input("boxes", (1, count, 4)), main.input("scores", (1, count, classes + 1))
    outputs = [main.tensor(name, shape) for name, shape in (
        ("detection_boxes", (1, most, 4)), ("detection_classes", (1, most)),
        ("detection_scores", (1, most)), ("num_detections", (1,)))]
    options = flexbuffers.Dumps({
        "max_detections": most, "max_classes_per_detection": 1, "detections_per_class": 10,
        "use_regular_nms": regular, "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5,
        "num_classes": classes, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0})
    main.op("CUSTOM:TFLite_Detection_PostProcess", [boxes, scores, main.const("anchors", anchors)],
            outputs, custom_options=bytes(options))
    main.outputs(*outputs)
    return judge.Made(file.finish(), [judge.Run([
        draw(rng, (1, count, 4)), draw(rng, (1, count, classes + 1), 0, 1)])], "schema")


def all_cases():
    yield variant("plain", lambda model: None, "what the other file_* cases are variants of")
    yield variant("old_codes", old_codes, "only deprecated_builtin_code is set")
    yield variant("high_versions", new_codes, "operator versions above 1")
    yield variant("without_names", without_names, "no tensor, graph or signature names")
    yield variant("without_inner_shapes", without_inner_shapes, "inner tensors have no shape")
    yield variant("with_metadata", with_metadata, "a metadata entry")
    yield variant("buffer_for_each_tensor", buffer_for_each_tensor, "empty buffers, not number 0")
    yield variant("shared_buffer", shared_buffer, "two tensors share data; operators without options")
    yield variant("data_behind", data_behind, "constants behind the flatbuffer (offset and size)")
    for regular in (False, True):
        yield (f"detection_postprocess_{'regular' if regular else 'fast'}",
               lambda regular=regular: detection_postprocess(regular))
