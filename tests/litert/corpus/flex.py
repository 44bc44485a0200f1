"""TensorFlow's own operations, as its converter writes them where the format has no operator (`SELECT_TF_OPS`).

LiteRT has no kernels for them: the answers are those of TensorFlow, which ran the same function."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf

from . import judge
from .single import draw, random

SHAPE = (2, 4, 5)
VOLUME = (1, 5, 6, 7, 3)


def converted(name, function, inputs, lowered=True):
    """A function of TensorFlow; lists of tensors stay such if they are not lowered."""
    def make():
        traced = function if hasattr(function, "get_concrete_function") else tf.function(
            function, input_signature=[tf.TensorSpec(it.shape, it.dtype) for it in inputs])
        concrete = traced.get_concrete_function()
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], traced)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        converter._experimental_lower_tensor_list_ops = lowered
        answers = tf.nest.flatten(traced(*[tf.constant(it) for it in inputs]))
        return judge.Made(converter.convert(), [judge.Run(list(inputs))], "converter",
                          answers=[np.array(it) for it in answers])
    return f"flex_{name}", make


def functions():
    values = draw(random("flex"), SHAPE, -2, 2)
    values[0, 0, :3] = [0, 1e-3, -1e-3]
    rows = draw(random("flex rows"), (2, 5))
    of_one = {
        "erf": tf.math.erf,
        "tan": tf.tan,
        "atan": tf.atan,
        "sinh": tf.sinh,
        "cosh": tf.cosh,
        "clip_by_value": lambda x: tf.raw_ops.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.5),
        "diagonal": tf.linalg.diag_part,
        "scatter_sub": lambda x: tf.tensor_scatter_nd_sub(x, [[1]], x[:1] * 0.5),
        "scatter_max": lambda x: tf.tensor_scatter_nd_max(x, [[0, 1], [1, 2]], rows),
        "scatter_min": lambda x: tf.tensor_scatter_nd_min(x, [[0, 1], [0, 1]], rows),
        "bitwise_and": lambda x: tf.bitwise.bitwise_and(tf.cast(x * 100, tf.int32), 12),
        "bitwise_or": lambda x: tf.bitwise.bitwise_or(tf.cast(x * 100, tf.int32), 12),
        "invert": lambda x: tf.bitwise.invert(tf.cast(x * 100, tf.int32)),
        "left_shift": lambda x: tf.bitwise.left_shift(tf.cast(x * 100, tf.int32), 2),
    }
    for name, function in of_one.items():
        yield converted(name, function, [values])


def windows():
    volume = draw(random("flex volume"), VOLUME)
    image = draw(random("flex image"), (2, 7, 8, 3))
    for padding in ("SAME", "VALID"):
        for name, pool in (("avg_pool_3d", tf.nn.avg_pool3d), ("max_pool_3d", tf.nn.max_pool3d)):
            yield converted(f"{name}_{padding.lower()}", lambda x, pool=pool, padding=padding: pool(
                x, [1, 2, 3, 2, 1], [1, 2, 1, 2, 1], padding), [volume])
        yield converted(f"patches_{padding.lower()}", lambda x, padding=padding: tf.image.extract_patches(
            x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 2, 1, 1], padding), [image])


def recurrent():
    """Layers of Keras, with a batch of fixed and of open size."""
    layers = keras.layers
    kinds = {
        "lstm": lambda: layers.LSTM(4, return_sequences=True),
        "lstm_states": lambda: layers.LSTM(4, return_state=True),
        "gru": lambda: layers.GRU(4),
        "simple_rnn": lambda: layers.SimpleRNN(4, return_sequences=True),
        "bidirectional_gru": lambda: layers.Bidirectional(layers.GRU(3, return_sequences=True)),
        "masked_gru": lambda: keras.Sequential([layers.Masking(), layers.GRU(4)]),
        "conv_lstm": lambda: layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True),
    }
    for name, layer in kinds.items():
        shape = (6, 5, 5, 2) if name == "conv_lstm" else (6, 3)
        for batch in (1, None):
            def make(name=name, layer=layer, shape=shape, batch=batch):
                keras.utils.set_random_seed(7)
                first = keras.Input(shape, batch_size=batch)
                model = keras.Model(first, layer()(first))
                traced = tf.function(lambda x: model(x, training=False),
                                     input_signature=[tf.TensorSpec((batch, *shape), tf.float32)])
                value = draw(random(f"flex {name}"), (batch or 3, *shape))
                if name == "masked_gru":
                    value[:, 4:] = 0
                return converted(name, traced, [value], lowered=False)[1]()
            yield f"flex_lists_{name}_{'fixed' if batch else 'open'}", make


def all_cases():
    yield from functions()
    yield from windows()
    yield from recurrent()
