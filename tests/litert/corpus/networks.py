"""Small networks made by TensorFlow's converter, in each of its quantizations.

Variants:
  float32
  float16w   float16 weights behind DEQUANTIZE
  dynamic    int8 weights, float activations (dynamic range); four times as wide, as the
             converter leaves constants of fewer than 1024 elements alone
  int8       int8 throughout, int8 input and output
  int8_io    int8 inside, float32 input and output (QUANTIZE and DEQUANTIZE at the edges)
  uint8_io   int8 inside, uint8 input and output
  int16      int16 activations, int8 weights
  uint8      the uint8 scheme of 2018, from fake quantization and the TensorFlow 1 converter
"""

import tempfile

import numpy as np
import tensorflow as tf

from . import judge
from .single import draw, random

ALL = ("float32", "float16w", "dynamic", "int8", "int8_io", "uint8_io", "int16", "uint8")
MODERN = ALL[:-1]
NO_INT16 = ("float32", "float16w", "dynamic", "int8", "int8_io", "uint8_io")
SMALL = ("float32", "float16w", "int8", "int8_io", "uint8_io")     # too small for dynamic
SAMPLES = 8


class Net:
    """Layers with constant weights, seeded by the network's name."""

    def __init__(self, name, variant="float32"):
        self.rng, self.fake = random(name), variant == "uint8"
        self.width = 4 if variant == "dynamic" else 1

    def weights(self, shape, fan_in):
        value = (self.rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        if self.fake:
            return tf.quantization.fake_quant_with_min_max_args(
                value, float(value.min()), float(value.max()), narrow_range=True)
        return tf.constant(value)

    def vector(self, size, low=-0.2, high=0.2):
        return tf.constant(draw(self.rng, (size,), low, high))

    def pin(self, x, low, high):
        """Fixes a range for the uint8 scheme."""
        return tf.quantization.fake_quant_with_min_max_args(x, low, high) if self.fake else x

    def act(self, x, act):
        low, high = (0.0, 6.0) if act in (tf.nn.relu, tf.nn.relu6) else (-6.0, 6.0)
        return self.pin(act(x) if act else x, low, high)

    def conv(self, x, filters, kernel=3, stride=1, act=tf.nn.relu6, padding="SAME", dilation=1):
        size, filters = x.shape[-1], filters * self.width
        w = self.weights((kernel, kernel, size, filters), kernel * kernel * size)
        x = tf.nn.conv2d(x, w, stride, padding, dilations=dilation)
        return self.act(tf.nn.bias_add(x, self.vector(filters)), act)

    def depthwise(self, x, kernel=3, stride=1, act=tf.nn.relu6, padding="SAME"):
        w = self.weights((kernel, kernel, x.shape[-1], 1), kernel * kernel)
        x = tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], padding)
        return self.act(tf.nn.bias_add(x, self.vector(x.shape[-1])), act)

    def dense(self, x, units, act=None):
        x = tf.matmul(x, self.weights((x.shape[-1], units), x.shape[-1]))
        return self.act(tf.nn.bias_add(x, self.vector(units)), act)

    def norm(self, x):
        """Batch normalization at inference, which the converter folds."""
        size = x.shape[-1]
        return tf.nn.batch_normalization(x, self.vector(size), self.vector(size, 0.5, 1.5),
                                         self.vector(size), self.vector(size, 0.5, 1.5), 1e-3)


def conv_norm_relu(net, x):
    w = net.weights((3, 3, 3, 8), 27)
    x = tf.nn.relu(net.norm(tf.nn.conv2d(x, w, 2, "SAME")))
    return tf.nn.relu6(net.norm(tf.nn.depthwise_conv2d(x, net.weights((3, 3, 8, 1), 9), [1] * 4, "SAME")))


def separable(net, x):
    return net.conv(net.depthwise(net.conv(x, 8, stride=2)), 16, 1)


def residual(net, x):
    x = net.conv(x, 8)
    return net.act(x + net.conv(net.conv(x, 8), 8, act=None), tf.nn.relu)


def inverted_residual(net, x):
    x = net.conv(x, 6, 1, act=None)
    y = net.conv(net.depthwise(net.conv(x, 18, 1)), 6, 1, act=None)
    return net.pin(x + y, -8.0, 8.0)


def branches(net, x):
    pooled = net.conv(tf.nn.avg_pool2d(x, 3, 1, "SAME"), 4, 1)
    x = tf.concat([net.conv(x, 6, 1), net.conv(net.conv(x, 4, 1), 6, 3), pooled], 3)
    return tf.nn.max_pool2d(x, 2, 2, "VALID")


def squeeze_excite(net, x):
    x = net.conv(x, 8)
    gate = tf.reduce_mean(x, [1, 2], keepdims=True)
    gate = net.conv(net.conv(gate, 4, 1, act=tf.nn.relu), 8, 1, act=None)
    return x * (tf.nn.relu6(gate + 3.0) * (1 / 6))


def hard_swish(net, x):
    return net.conv(x, 8, act=lambda t: t * tf.nn.relu6(t + 3.0) * (1 / 6))


def upsampling(net, x):
    x = tf.image.resize(net.conv(x, 6), (16, 16))
    x = net.conv(x, 4)
    return tf.compat.v1.image.resize_nearest_neighbor(x, (20, 24), half_pixel_centers=True)


def transpose_conv(net, x):
    x = net.conv(x, 8, stride=2)
    x = tf.nn.conv2d_transpose(x, net.weights((3, 3, 4, x.shape[-1]), 72), [1, 8, 8, 4], 2)
    return tf.nn.relu(tf.nn.bias_add(x, net.vector(4)))


def super_resolution(net, x):
    return tf.nn.depth_to_space(net.conv(net.conv(x, 8), 12, act=None), 2)


def dilated(net, x):
    return net.conv(net.conv(x, 8, dilation=2), 4, dilation=2, padding="VALID")


def padded(net, x):
    x = tf.pad(x, [[0, 0], [1, 1], [2, 1], [0, 0]])
    return net.conv(x, 8, stride=2, padding="VALID")


def perceptron(net, x):
    return tf.nn.softmax(net.dense(net.dense(x, 80, tf.nn.relu), 20))


def classifier(net, x):
    x = net.conv(net.conv(x, 8, stride=2), 16, stride=2)
    x = tf.nn.avg_pool2d(x, x.shape[1:3], 1, "VALID")
    return net.pin(tf.nn.softmax(tf.squeeze(net.conv(x, 10, 1, act=None), [1, 2])), 0.0, 255 / 256)


def mean_classifier(net, x):
    x = tf.reduce_mean(net.conv(x, 16, stride=2), [1, 2])
    return tf.sigmoid(net.dense(x, 5))


def activations(net, x):
    x = net.conv(x, 8, act=None)
    parts = tf.split(x, 8, 3)
    functions = (tf.nn.relu, tf.tanh, tf.sigmoid, tf.nn.elu, tf.nn.gelu, tf.nn.leaky_relu,
                 lambda t: tf.clip_by_value(t, -1.0, 1.0), tf.nn.softplus)
    return tf.concat([f(part) for f, part in zip(functions, parts)], 3)


def attention(net, x):
    heads, width, length, size = 2, 20, x.shape[1], x.shape[2]

    def project(t):
        t = tf.reshape(net.dense(tf.reshape(t, [-1, size]), heads * width), [1, length, heads, width])
        return tf.transpose(t, [0, 2, 1, 3])

    q, k, v = project(x), project(x), project(x)
    scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (width ** -0.5))
    mixed = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [length, heads * width])
    return tf.reshape(net.dense(mixed, size), [1, length, size])


def layer_norm(net, x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * net.vector(x.shape[-1], 0.5, 1.5) + \
        net.vector(x.shape[-1])


def transformer(net, ids):
    x = tf.gather(net.weights((50, 40), 40), ids) + net.weights((8, 40), 40)
    x = layer_norm(net, x + attention(net, x))
    y = net.dense(tf.reshape(x, [-1, 40]), 64, tf.nn.gelu)
    x = layer_norm(net, x + tf.reshape(net.dense(y, 40), [1, 8, 40]))
    return tf.nn.softmax(net.dense(x[:, 0], 4))


def text_average(net, ids):
    x = tf.reduce_mean(tf.gather(net.weights((50, 30), 30), ids), 1)
    return tf.nn.log_softmax(net.dense(x, 3))


def einsum(net, x):
    return tf.einsum("bij,jk->bik", x, net.weights((x.shape[-1], 5), 9))


def convolution_1d(net, x):
    return tf.nn.relu(tf.nn.conv1d(x, net.weights((3, x.shape[-1], 6), 20), 2, "SAME") + net.vector(6))


def two_inputs(net, x, y):
    return tf.concat([net.conv(x, 4), net.conv(y, 4)], 3), tf.nn.relu(x - y)


def detector(net, x):
    x = net.conv(net.conv(x, 8, stride=2), 12, stride=2)
    boxes = tf.reshape(net.conv(x, 8, act=None), [1, -1, 4])
    scores = tf.sigmoid(tf.reshape(net.conv(x, 6, act=None), [1, -1, 3]))
    return boxes, scores


def _fused_lstm(net, x, units, backwards=False):
    """The converter turns a function that says it is Keras' LSTM into one
    UNIDIRECTIONAL_SEQUENCE_LSTM and does not look at its body."""
    features, steps = x.shape[-1], x.shape[1]
    zero = tf.zeros([x.shape[0], units])

    @tf.function(autograph=False, experimental_attributes={
        "api_implements": f"lstm_{net.rng.integers(1 << 30)}", "api_preferred_device": "CPU",
        "time_major": False, "go_backwards": backwards})
    def standard_lstm(inputs, init_h, init_c, kernel, recurrent_kernel, bias):
        gates = tf.matmul(inputs[:, -1], kernel) + tf.matmul(init_h, recurrent_kernel) + bias
        last = tf.tanh(gates[:, :units]) + init_c
        return last, tf.tile(last[:, None], [1, steps, 1]), last, last, tf.constant(1.0)

    return standard_lstm(x, zero, zero, net.weights((features, 4 * units), 2 * features),
                         net.weights((units, 4 * units), 2 * units), net.vector(4 * units))[1]


def lstm(net, x):
    return net.dense(tf.reshape(_fused_lstm(net, _fused_lstm(net, x, 40), 30), [-1, 30]), 4)


def gru_unrolled(net, x):
    units = 6
    w, u = net.weights((x.shape[-1], 3 * units), 10), net.weights((units, 3 * units), 12)
    bias, h = net.vector(3 * units), tf.zeros([1, units])
    for t in range(x.shape[1]):
        xs, hs = tf.split(x[:, t] @ w + bias, 3, 1), tf.split(h @ u, 3, 1)
        z, r = tf.sigmoid(xs[0] + hs[0]), tf.sigmoid(xs[1] + hs[1])
        h = z * h + (1 - z) * tf.tanh(xs[2] + r * hs[2])
    return h


def rnn_while(net, x):
    w, u = net.weights((x.shape[-1], 5), 10), net.weights((5, 5), 10)
    return tf.while_loop(lambda i, h: i < x.shape[1],
                         lambda i, h: (i + 1, tf.tanh(tf.gather(x, i, axis=1) @ w + h @ u)),
                         [tf.constant(0), tf.zeros([1, 5])])[1]


def rnn_sequence(net, x):
    """All results of a loop: of each round a vector, put into a list of tensors, and its sum, into one of numbers."""
    w, u = net.weights((x.shape[-1], 5), 10), net.weights((5, 5), 10)
    steps = x.shape[1]
    vectors, sums = (tf.TensorArray(tf.float32, steps, element_shape=shape) for shape in ((1, 5), ()))

    def step(i, h, vectors, sums):
        h = tf.tanh(tf.gather(x, i, axis=1) @ w + h @ u) + x[0, i, 3]
        return i + 1, h, vectors.write(i, h), sums.write(i, tf.reduce_sum(h))

    _, _, vectors, sums = tf.while_loop(lambda i, *_: i < steps, step, [tf.constant(0), tf.zeros([1, 5]), vectors, sums])
    return tf.transpose(vectors.stack(), [1, 0, 2]) + tf.reshape(sums.stack(), [1, steps, 1])


def condition(net, x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: net.dense(x, 4), lambda: tf.tile(x[:, :2], [1, 2]))


def mini_mobilenet_v1(net, x):
    x = net.conv(x, 8, stride=2)
    for filters, stride in ((16, 1), (24, 2), (24, 1), (32, 2)):
        x = net.conv(net.depthwise(x, stride=stride), filters, 1)
    x = tf.nn.avg_pool2d(x, x.shape[1:3], 1, "VALID")
    return net.pin(tf.nn.softmax(tf.squeeze(net.conv(x, 20, 1, act=None), [1, 2])), 0.0, 255 / 256)


def mini_mobilenet_v2(net, x):
    x = net.conv(x, 8, stride=2)
    for filters, stride in ((8, 1), (12, 2), (12, 1), (16, 2), (16, 1)):
        y = net.depthwise(net.conv(x, 4 * x.shape[-1], 1), stride=stride)
        y = net.conv(y, filters, 1, act=None)
        x = net.pin(x + y, -8.0, 8.0) if stride == 1 and filters == x.shape[-1] else y
    x = tf.reduce_mean(net.conv(x, 32, 1), [1, 2])
    return tf.nn.softmax(net.dense(x, 20))


def mini_resnet(net, x):
    x = tf.nn.max_pool2d(net.conv(x, 8, 7, 2, tf.nn.relu), 3, 2, "SAME")
    for filters, stride in ((8, 1), (16, 2)):
        shortcut = x if stride == 1 else net.conv(x, filters, 1, stride, None)
        y = net.conv(net.conv(x, filters, 3, stride, tf.nn.relu), filters, 3, act=None)
        x = net.act(shortcut + y, tf.nn.relu)
    return tf.nn.softmax(net.dense(tf.reshape(x, [1, -1]), 10))


def mini_unet(net, x):
    a = net.conv(x, 6)
    b = net.conv(tf.nn.max_pool2d(a, 2, 2, "SAME"), 8)
    c = net.conv(tf.nn.max_pool2d(b, 2, 2, "SAME"), 12)
    b = net.conv(tf.concat([b, tf.image.resize(c, b.shape[1:3])], 3), 8)
    a = net.conv(tf.concat([a, tf.image.resize(b, a.shape[1:3])], 3), 6)
    return tf.sigmoid(net.conv(a, 1, 1, act=None))


IMAGE, TOKENS, SEQUENCE = [(1, 8, 8, 3)], [((1, 8), 50)], [(1, 6, 10)]
# function, inputs (shape, or (shape, number of ids)), variants
NETWORKS = (
    (conv_norm_relu, IMAGE, SMALL + ("int16",)), (separable, IMAGE, ALL), (residual, IMAGE, ALL),
    (inverted_residual, IMAGE, ALL), (branches, IMAGE, ALL), (squeeze_excite, IMAGE, SMALL + ("int16",)),
    (hard_swish, IMAGE, SMALL), (upsampling, IMAGE, MODERN), (transpose_conv, IMAGE, SMALL + ("int16",)),
    (super_resolution, IMAGE, NO_INT16 + ("uint8",)), (dilated, [(1, 12, 12, 3)], ALL),
    (padded, IMAGE, SMALL + ("int16", "uint8")),
    (perceptron, [(1, 16)], MODERN), (classifier, [(1, 16, 16, 3)], ALL),
    (mean_classifier, [(1, 16, 16, 3)], MODERN), (activations, IMAGE, ("float32", "int8")),
    (attention, [(1, 6, 40)], MODERN), (layer_norm, SEQUENCE, ("float32", "int8")),
    (transformer, TOKENS, ("float32", "float16w", "dynamic", "int8")),
    (text_average, TOKENS, ("float32", "float16w", "int8")), (einsum, SEQUENCE, ("float32", "float16w")),
    (convolution_1d, SEQUENCE, ("float32", "float16w", "int8", "int16")),
    (two_inputs, IMAGE * 2, SMALL + ("int16",)),
    (detector, [(1, 16, 16, 3)], MODERN), (lstm, [(1, 6, 40)], NO_INT16),
    (gru_unrolled, SEQUENCE, ("float32", "float16w", "int8", "int16")),
    (rnn_while, SEQUENCE, ("float32", "float16w")), (rnn_sequence, SEQUENCE, ("float32", "float16w")),
    (condition, [(1, 6)], ("float32", "float16w")),
    (mini_mobilenet_v1, [(1, 48, 48, 3)], ALL), (mini_mobilenet_v2, [(1, 48, 48, 3)], MODERN),
    (mini_resnet, [(1, 32, 32, 3)], MODERN), (mini_unet, [(1, 16, 16, 3)], MODERN))


def sample(rng, inputs):
    """One random value for each input."""
    return [rng.integers(0, entry[1], entry[0]).astype(np.int32) if isinstance(entry[0], tuple)
            else draw(rng, entry) for entry in inputs]


def converted(name, function, inputs, variant):
    """Bytes of a network's variant."""
    if variant == "uint8":
        return converted_uint8(name, function, inputs)
    net = Net(name, variant)
    specs = [tf.TensorSpec(entry[0], tf.int32, f"x{i}") if isinstance(entry[0], tuple)
             else tf.TensorSpec(entry, tf.float32, f"x{i}") for i, entry in enumerate(inputs)]
    concrete = tf.function(lambda *x: function(net, *x), autograph=False).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
    rng = random(name + " calibration")
    calibration = [sample(rng, inputs) for _ in range(SAMPLES)]
    quantize(converter, variant, calibration)
    return converter.convert()


def quantize(converter, variant, calibration):
    """Sets a converter up for a variant."""
    if variant == "float32":
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if variant == "float16w":
        converter.target_spec.supported_types = [tf.float16]
    if variant in ("float16w", "dynamic"):
        return
    converter.representative_dataset = lambda: iter(calibration)
    ops = tf.lite.OpsSet
    converter.target_spec.supported_ops = [
        ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 if variant == "int16"
        else ops.TFLITE_BUILTINS_INT8]
    dtype = {"int8": tf.int8, "uint8_io": tf.uint8, "int16": tf.int16}.get(variant)
    if dtype and not any(value.dtype == np.int32 for value in calibration[0]):
        converter.inference_input_type = converter.inference_output_type = dtype


def converted_uint8(name, function, inputs):
    """The old uint8 scheme."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        net = Net(name, "uint8")
        places = [v1.placeholder(tf.float32, shape, f"x{i}") for i, shape in enumerate(inputs)]
        pinned = [net.pin(place, -1.0, 1.0) for place in places]
        outputs = tf.nest.flatten(function(net, *pinned))
        converter = v1.lite.TFLiteConverter.from_session(session, places, outputs)
        converter.inference_type = tf.uint8
        converter.quantized_input_stats = {place.op.name: (127.5, 127.5) for place in places}
        return converter.convert()


def values_for(data, values):
    """The real values as the model's inputs take them (ids stay ids), in its order."""
    interpreter = judge.Interpreter(model_content=data)
    result = []
    for details in interpreter.get_input_details():
        # Tensors are called x0, x1, ... after the inputs, with a prefix or suffix.
        value = next(v for i, v in enumerate(values) if f"x{i}" in details["name"])
        result.append(judge.stored(value, details))
    return result


def network(name, function, inputs, variant):
    def make():
        data = converted(name, function, inputs, variant)
        values = values_for(data, sample(random(name + " values"), inputs))
        return judge.Made(data, [judge.Run(values)], "converter", variant)
    return f"net_{name}.{variant}", make


def dynamic(name, function, shapes, runs, variant="float32"):
    """A network with unknown sizes, run with several."""
    def make():
        net = Net(name, variant)
        specs = [tf.TensorSpec(shape, tf.float32, f"x{i}") for i, shape in enumerate(shapes)]
        concrete = tf.function(lambda *x: function(net, *x),
                               autograph=False).get_concrete_function(*specs)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
        quantize(converter, variant, [[draw(random(name), shape) for shape in runs[0]]] * 2)
        data = converter.convert()
        values = [values_for(data, [draw(random(f"{name} {i}"), shape) for shape in run])
                  for i, run in enumerate(runs)]
        return judge.Made(data, [judge.Run(value) for value in values], "converter", variant)
    return f"dynamic_{name}.{variant}", make


def dynamic_cases():
    batches = [[(size, 16)] for size in (1, 3, 8)]
    images = [[(size, 8, 8, 3)] for size in (1, 4)]
    sizes = [[(1, height, width, 3)] for height, width in ((8, 8), (12, 10), (7, 15))]
    for variant in ("float32", "dynamic", "int8"):
        yield dynamic("batch_perceptron", perceptron, [(None, 16)], batches, variant)
        yield dynamic("batch_convolution", separable, [(None, 8, 8, 3)], images, variant)
        yield dynamic("size_convolution", residual, [(1, None, None, 3)], sizes, variant)
    yield dynamic("batch_reshape", lambda net, x: tf.reshape(net.conv(x, 4), [tf.shape(x)[0], -1]),
                  [(None, 8, 8, 3)], images)
    yield dynamic("size_global_mean", mean_classifier, [(1, None, None, 3)], sizes)
    yield dynamic("size_upsampling", lambda net, x: tf.image.resize(x, tf.shape(x)[1:3] * 2),
                  [(1, None, None, 3)], sizes)
    yield dynamic("broadcast", lambda net, x, y: x * y + y, [(None, 4), (None, 4)],
                  [[(3, 4), (3, 4)], [(1, 4), (5, 4)]])


def two_signatures():
    """One model with the signatures encode and decode."""
    module, net = tf.Module(), Net("two signatures")
    kernel, back = net.weights((6, 3), 6), net.weights((3, 6), 3)
    encode = tf.function(lambda values: {"code": tf.tanh(values @ kernel)}, autograph=False,
                         input_signature=[tf.TensorSpec([1, 6], tf.float32, "values")])
    decode = tf.function(lambda code: {"values": code @ back}, autograph=False,
                         input_signature=[tf.TensorSpec([1, 3], tf.float32, "code")])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={"encode": encode, "decode": decode})
        data = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["encode", "decode"]).convert()
    rng = random("two signatures")
    return judge.Made(data, [judge.Run([draw(rng, (1, 6))], "encode"),
                             judge.Run([draw(rng, (1, 3))], "decode")], "converter")


def all_cases():
    for function, inputs, variants in NETWORKS:
        for variant in variants:
            yield network(function.__name__, function, inputs, variant)
    yield from dynamic_cases()
    yield "signatures_encode_decode", two_signatures
