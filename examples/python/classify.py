"""Reads scanned digits with a quantized network: real numbers go in, and real numbers come out."""

import pathlib
import sys

import numpy as np

import nnhal

path = pathlib.Path(sys.argv[1])
model = nnhal.load(path)
images = np.load(path.parent / "held_out_images.npy")
labels = np.load(path.parent / "held_out_labels.npy")

right = 0
scores = np.empty((1, 10), model.outputs[0].dtype)
for pixels, label in zip(images, labels):
    model(pixels[None] / 255, out=scores)
    right += scores.argmax() == label
print(f"{right} of {len(labels)} digits are read right")
