#!/usr/bin/env python3
"""Trains the handwritten-digit network and writes everything in this folder.

    pip install -r requirements.txt
    python train_digits.py [--out DIR] [--epochs N]

Data: scikit-learn's digits, 1797 real scans of 8x8 pixels with values 0..16.
A pixel becomes a byte by (value * 255 + 8) / 16 rounded down, and the network
sees byte / 255, in [0, 1]; PNG files, arrays and training use the same bytes.

Written to DIR: both models, the labels, one picture for each class, the
held-out part of the data and what LiteRT answers for it (see README.md).
"""

import argparse
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same sums on every CPU
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image
from sklearn.datasets import load_digits

SEED = 20260101
HELD_OUT = 0.25     # of each class
BATCH = 32


def load_data():
    """Pixels as bytes [n, 8, 8, 1] and labels [n]: training, then held-out."""
    digits = load_digits()
    values = digits.images.astype(np.int32)
    pixels = ((values * 255 + 8) // 16).astype(np.uint8)[..., None]
    labels = digits.target.astype(np.uint8)
    rng = np.random.Generator(np.random.PCG64(SEED))
    held_out = np.zeros(len(labels), bool)
    for label in range(10):
        members = rng.permutation(np.flatnonzero(labels == label))
        held_out[members[:round(len(members) * HELD_OUT)]] = True
    return pixels[~held_out], labels[~held_out], pixels[held_out], labels[held_out]


def normalize(pixels):
    """Bytes to what the network takes."""
    return pixels.astype(np.float32) / np.float32(255)


def build():
    """Keras model from [n, 8, 8, 1] to ten probabilities.

    Batch normalization disappears at conversion: it is folded into the
    convolution before it."""
    layers = tf.keras.layers

    def conv(x, filters, kernel, relu=True):
        x = layers.Conv2D(filters, kernel, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        return layers.ReLU()(x) if relu else x

    def depthwise(x):
        x = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
        return layers.ReLU()(layers.BatchNormalization()(x))

    image = layers.Input((8, 8, 1))
    x = conv(conv(image, 16, 3), 32, 3)
    x = layers.ReLU()(layers.Add()([x, conv(depthwise(x), 32, 1, relu=False)]))
    x = layers.MaxPooling2D(2)(x)
    x = conv(depthwise(x), 64, 1)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    return tf.keras.Model(image, layers.Dense(10, activation="softmax")(x))


def shifted(pixels, rng):
    """Each picture moved by at most one pixel along each axis, 0 moving in."""
    padded = np.pad(pixels, ((0, 0), (1, 1), (1, 1), (0, 0)))
    tops, lefts = rng.integers(0, 3, (2, len(pixels)))
    return np.stack([picture[top:top + 8, left:left + 8]
                     for picture, top, left in zip(padded, tops, lefts)])


def train(model, pixels, labels, epochs):
    """Adam with a cosine schedule; half of the pictures are moved."""
    rng = np.random.Generator(np.random.PCG64([SEED, 1]))
    steps = epochs * -(-len(labels) // BATCH)
    model.compile(optimizer=tf.keras.optimizers.Adam(
        tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)),
        loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    for epoch in range(epochs):
        order = rng.permutation(len(labels))
        moved = rng.random(len(labels)) < 0.5
        batch = np.where(moved[:, None, None, None], shifted(pixels, rng), pixels)
        history = model.fit(normalize(batch[order]), labels[order], BATCH,
                            epochs=1, shuffle=False, verbose=0).history
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {history['loss'][0]:.4f}, training accuracy "
                  f"{history['accuracy'][0]:.4f}", file=sys.stderr, flush=True)


def convert(model, calibration=None):
    """The .tflite bytes for batch 1; int8 throughout when calibrated."""
    image = tf.keras.Input(batch_shape=(1, 8, 8, 1), name="image")
    single = tf.keras.Model(image, {"probabilities": model(image)})
    converter = tf.lite.TFLiteConverter.from_keras_model(single)
    if calibration is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([picture[None]] for picture in calibration)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
        # One scale for the whole weight matrix of the fully connected layer:
        # NN HAL 1.3 has no other form of it.
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


def classify(model, pixels):
    """LiteRT's raw outputs [n, 10], with its reference kernels and no delegate."""
    interpreter = Interpreter(model_content=model,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    answers = []
    for picture in normalize(pixels):
        if inputs["dtype"] == np.int8:
            scale, zero_point = inputs["quantization"]
            picture = np.clip(np.round(picture / np.float32(scale)) + zero_point, -128, 127)
        interpreter.set_tensor(inputs["index"], picture[None].astype(inputs["dtype"]))
        interpreter.invoke()
        answers.append(interpreter.get_tensor(outputs["index"])[0])
    return np.stack(answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent,
                        help="folder to write to (default: the script's)")
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(SEED)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()

    train_pixels, train_labels, held_pixels, held_labels = load_data()
    print(f"{len(train_labels)} pictures to train on, {len(held_labels)} held out")
    model = build()
    train(model, train_pixels, train_labels, args.epochs)

    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "labels.txt").write_text("".join(f"{label}\n" for label in range(10)))
    np.save(args.out / "held_out_images.npy", held_pixels)
    np.save(args.out / "held_out_labels.npy", held_labels)
    for label in range(10):
        first = held_pixels[np.flatnonzero(held_labels == label)[0], ..., 0]
        Image.fromarray(first).save(args.out / f"digit_{label}.png", optimize=True)

    for name, calibration in (("float32", None), ("int8", normalize(train_pixels))):
        data = convert(model, calibration)
        (args.out / f"digits_{name}.tflite").write_bytes(data)
        answers = classify(data, held_pixels)
        np.save(args.out / f"expected_{name}.npy", answers)
        guesses = answers.argmax(axis=1)
        right = int((guesses == held_labels).sum())
        firsts = [int(guesses[np.flatnonzero(held_labels == label)[0]]) for label in range(10)]
        print(f"digits_{name}.tflite: {len(data)} bytes, {right} of {len(held_labels)} right "
              f"({right / len(held_labels):.2%}); the ten pictures are taken for {firsts}")


if __name__ == "__main__":
    main()
