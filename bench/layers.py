#!/usr/bin/env python3
"""Times single layers beside LiteRT, in the sizes in which segmentation and other small networks have them.

    ENVIRONMENT/bin/python bench/layers.py --nnhal target/release/nnhal
    ENVIRONMENT/bin/python bench/layers.py --nnhal target/release/nnhal --only 'resize_*' --only 'softmax_*'

needs TensorFlow, which converts each layer with random weights, as floats and with 8 bits. Prints for each layer LiteRT's time (XNNPACK,
one thread, `Invoke`), ours (the steps of `nnhal inspect --profile`, and 0.7 us for a run), and the ratio; and the geometric mean
of both kinds. The engines take turns, and the least times count. Inputs are random. `--folder` keeps the models.
"""

import argparse
import fnmatch
import json
import math
import os
import pathlib
import subprocess
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

random = np.random.default_rng(1)
# What a run takes beside its steps, in microseconds.
RUN = 0.7


def weights(*shape):
    scale = 1 / math.sqrt(math.prod(shape[:-1]))
    return tf.constant(random.normal(0, scale, shape).astype(np.float32))


def conv(kernel, outputs, dilation=1, stride=1):
    height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    dilations = [dilation, dilation if width > 1 else 1]
    return lambda x: tf.nn.conv2d(x, weights(height, width, x.shape[-1], outputs), stride, "SAME",
                                  dilations=dilations) + weights(outputs)


def depthwise(kernel, dilation=1):
    return lambda x: tf.nn.depthwise_conv2d(x, weights(kernel, kernel, x.shape[-1], 1), [1, 1, 1, 1], "SAME",
                                            dilations=[dilation, dilation])


def transposed(kernel, outputs):
    return lambda x: tf.nn.conv2d_transpose(x, weights(kernel, kernel, outputs, x.shape[-1]),
                                            [1, 2 * x.shape[1], 2 * x.shape[2], outputs], 2, "SAME")


def resize(size, **options):
    return lambda x: tf.image.resize(x, (size, size), **options)


def argmax(kind=tf.int32):
    return lambda x: tf.argmax(x, -1, output_type=kind)


def mean(x):
    return tf.reduce_mean(x, [1, 2], keepdims=True)


def instance_normalization(x):
    return (x - mean(x)) * tf.math.rsqrt(mean(tf.math.squared_difference(x, mean(x))) + 1e-5)


# By name: the input's shape without the batch, and the layer.
LAYERS = {
    "resize_33_257x21": ((33, 33, 21), resize(257)),
    "resize_64_256x21": ((64, 64, 21), resize(256)),
    "resize_corners_33_257x21": (
        (33, 33, 21), lambda x: tf.compat.v1.image.resize_bilinear(x, (257, 257), align_corners=True)),
    "resize_32_64x64": ((32, 32, 64), resize(64)),
    "resize_128_256x1": ((128, 128, 1), resize(256)),
    "resize_256_224x3": ((256, 256, 3), resize(224)),
    "resize_nearest_32_64x64": ((32, 32, 64), resize(64, method="nearest")),
    "resize_nearest_13_26x128": ((13, 13, 128), resize(26, method="nearest")),
    "argmax_128x21": ((128, 128, 21), argmax()),
    "argmax_128x21_int64": ((128, 128, 21), argmax(tf.int64)),
    "argmax_128x19": ((128, 128, 19), argmax()),
    "argmax_128x2": ((128, 128, 2), argmax()),
    "argmax_1000": ((1000,), argmax()),
    "argmax_channels_first_21x128": ((21, 128, 128), lambda x: tf.argmax(x, 1, output_type=tf.int32)),
    "softmax_128x21": ((128, 128, 21), tf.nn.softmax),
    "softmax_256x2": ((256, 256, 2), tf.nn.softmax),
    "softmax_1000": ((1000,), tf.nn.softmax),
    "sigmoid_256x1": ((256, 256, 1), tf.sigmoid),
    "conv_3x3_dilated_2_33x64": ((33, 33, 64), conv(3, 64, 2)),
    "conv_3x3_dilated_6_33x256": ((33, 33, 256), conv(3, 64, 6)),
    "conv_3x3_33x64": ((33, 33, 64), conv(3, 64)),
    "conv_3x3_dilated_2_28x32": ((28, 28, 32), conv(3, 32, 2)),
    "conv_1x1_128x16_1": ((128, 128, 16), conv(1, 1)),
    "conv_1x1_128x32_21": ((128, 128, 32), conv(1, 21)),
    "conv_3x3_stride_2_256x3_16": ((256, 256, 3), conv(3, 16, 1, 2)),
    "conv_3x3_128x16": ((128, 128, 16), conv(3, 16)),
    "conv_3x3_128x8": ((128, 128, 8), conv(3, 8)),
    "conv_3x3_64x32": ((64, 64, 32), conv(3, 32)),
    "conv_5x1_100x40_64": ((100, 1, 40), conv((5, 1), 64)),
    "conv_3x1_dilated_4_100x64": ((100, 1, 64), conv((3, 1), 64, 4)),
    "depthwise_3x3_dilated_2_33x192": ((33, 33, 192), depthwise(3, 2)),
    "depthwise_3x3_dilated_4_33x192": ((33, 33, 192), depthwise(3, 4)),
    "depthwise_5x5_33x192": ((33, 33, 192), depthwise(5)),
    "transposed_2x2_64x32_16": ((64, 64, 32), transposed(2, 16)),
    "transposed_4x4_32x64_32": ((32, 32, 64), transposed(4, 32)),
    "transposed_3x3_64x16_1": ((64, 64, 16), transposed(3, 1)),
    "transposed_2x2_128x16_1": ((128, 128, 16), transposed(2, 1)),
    "mean_33x256": ((33, 33, 256), mean),
    "mean_of_channels_64x32": ((64, 64, 32), lambda x: tf.reduce_mean(x, -1, keepdims=True)),
    "max_pool_2x2_128x16": ((128, 128, 16), lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME")),
    "average_pool_2x2_64x64": ((64, 64, 64), lambda x: tf.nn.avg_pool2d(x, 2, 2, "SAME")),
    "relu_128x16": ((128, 128, 16), tf.nn.relu),
    "prelu_64x32": ((64, 64, 32), lambda x: tf.nn.relu(x) - tf.abs(weights(32)) * tf.nn.relu(-x)),
    "hard_swish_64x32": ((64, 64, 32), lambda x: x * tf.nn.relu6(x + 3) * (1 / 6)),
    "leaky_relu_64x32": ((64, 64, 32), lambda x: tf.nn.leaky_relu(x, 0.1)),
    "squeeze_excite_28x120": ((28, 28, 120), lambda x: x * tf.sigmoid(mean(x))),
    "add_64x32": ((64, 64, 32), lambda x: x + tf.nn.relu(x * 0.5)),
    "pad_64x32": ((64, 64, 32), lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])),
    "concat_64x32": ((64, 64, 32), lambda x: tf.concat([x, tf.nn.relu(x)], -1)),
    "depth_to_space_64x32": ((64, 64, 32), lambda x: tf.nn.depth_to_space(x, 2)),
    "space_to_depth_64x32": ((64, 64, 32), lambda x: tf.nn.space_to_depth(x, 2)),
    "transpose_64x32": ((64, 64, 32), lambda x: tf.transpose(x, [0, 3, 1, 2])),
    "split_64x32": ((64, 64, 32), lambda x: tf.concat(tf.split(x, 2, -1)[::-1], -1)),
    "slice_64x32": ((64, 64, 32), lambda x: x[:, 1:-1, 1:-1, :]),
    "instance_normalization_64x32": ((64, 64, 32), instance_normalization),
    "l2_normalization_128": ((128,), lambda x: tf.math.l2_normalize(x, -1)),
    "dense_1024_1000": ((1024,), lambda x: tf.matmul(x, weights(1024, 1000))),
    "dense_128_64": ((128,), lambda x: tf.matmul(x, weights(128, 64))),
    "dense_50x64_128": (
        (50, 64), lambda x: tf.reshape(tf.matmul(tf.reshape(x, (50, 64)), weights(64, 128)), (1, 50, 128))),
}


def convert(shape, layer, is_quantized):
    function = tf.function(layer, input_signature=[tf.TensorSpec((1, *shape), tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    if is_quantized:
        sample = random.normal(0, 1, (1, *shape)).astype(np.float32)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for _ in range(2))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.int8
        if function.get_concrete_function().structured_outputs.dtype == tf.float32:
            converter.inference_output_type = tf.int8
    return converter.convert()


def litert(model):
    """A function that gives LiteRT's least time of a twentieth of a second, in microseconds."""
    interpreter = Interpreter(str(model), num_threads=1)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        values = random.random(detail["shape"]) if detail["dtype"] is np.float32 else \
            random.integers(-128, 128, detail["shape"])
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
    invoke = interpreter._interpreter.Invoke

    def least():
        times, end = [], time.perf_counter() + 0.05
        while time.perf_counter() < end:
            start = time.perf_counter()
            invoke()
            times.append(time.perf_counter() - start)
        return min(times) * 1e6

    return least


def ours(program, model):
    """Our time and the steps with theirs."""
    command = [program, "inspect", model, "--profile", "--fill", "random", "--threads", "1", "--json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    steps = [(step["kernel"], step["microseconds"] or 0) for step in json.loads(answer.stdout)["steps"]]
    return sum(time for _, time in steps) + RUN, ", ".join(f"{kernel} {time:.1f}" for kernel, time in steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnhal", default="target/release/nnhal", help="the program")
    parser.add_argument("--only", action="append", help="names of layers, with * and ?")
    parser.add_argument("--turns", type=int, default=10, help="of each engine")
    parser.add_argument("--folder", type=pathlib.Path, help="where the models are kept")
    args = parser.parse_args()
    ratios = {"float32": [], "int8": []}
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, (shape, layer) in LAYERS.items():
            if args.only and not any(fnmatch.fnmatch(name, only) for only in args.only):
                continue
            for kind, of_kind in ratios.items():
                model = folder / f"{name}.{kind}.tflite"
                model.write_bytes(convert(shape, layer, kind == "int8"))
                peer = litert(model)
                turns = [(peer(), ours(args.nnhal, model)) for _ in range(args.turns)]
                theirs, (time, steps) = min(it[0] for it in turns), min(it[1] for it in turns)
                of_kind.append(time / theirs)
                rows.append((time / theirs, f"{name} {kind}", theirs, time, steps))
    if not rows:
        raise SystemExit("no layer has such a name")
    print("ratio   LiteRT us  nnhal us")
    for ratio, name, theirs, time, steps in sorted(rows, reverse=True):
        print(f"{ratio:5.2f} {theirs:11.1f} {time:9.1f}  {name}: {steps}")
    for kind, of_kind in ratios.items():
        print(f"{kind}: {math.exp(sum(map(math.log, of_kind)) / len(of_kind)):.2f} of LiteRT's time over {len(of_kind)} layers")


if __name__ == "__main__":
    main()
