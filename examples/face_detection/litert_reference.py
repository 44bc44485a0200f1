#!/usr/bin/env python3
"""Runs the face detector with LiteRT, as the answer to compare with.

    pip install ai-edge-litert==2.3.0 numpy pillow
    python fetch.py && python litert_reference.py [--data DIR] [--photo FILE]

Writes beside the model: `input.npy` [1, 128, 128, 3], `regressors.npy`
[1, 896, 16], `classificators.npy` [1, 896, 1], all float32, and `faces.json`,
the decoded faces.  The steps are described in README.md.

LiteRT runs with its built-in kernels and no delegate (XNNPACK is off).
"""

import argparse
import json
import pathlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

SIZE = 128
SCORE_CLIP = 100.0
MIN_SCORE = 0.5
MIN_OVERLAP = 0.3
POINTS = ("right eye", "left eye", "nose tip", "mouth", "right ear", "left ear")


def preprocess(photo):
    """Letterboxed, bilinearly resized, normalized: uint8 [h, w, 3] to [1, 128, 128, 3]."""
    height, width, _ = photo.shape
    side = max(height, width)
    square = np.zeros((side, side, 3), np.float32)
    top, left = (side - height) // 2, (side - width) // 2
    square[top:top + height, left:left + width] = photo

    def neighbours():
        position = (np.arange(SIZE, dtype=np.float32) + 0.5) * np.float32(side / SIZE) - 0.5
        position = np.clip(position, 0, side - 1)
        low = np.floor(position).astype(int)
        return low, np.minimum(low + 1, side - 1), (position - low).astype(np.float32)

    low, high, part = neighbours()
    rows = square[low] + (square[high] - square[low]) * part[:, None, None]
    small = rows[:, low] + (rows[:, high] - rows[:, low]) * part[None, :, None]
    return (small / np.float32(127.5) - np.float32(1))[None].astype(np.float32)


def run(model, image):
    """The two outputs by name."""
    interpreter = Interpreter(
        str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    return {output["name"]: interpreter.get_tensor(output["index"])
            for output in interpreter.get_output_details()}


def anchors():
    """Centres (x, y) of the 896 anchors, in [0, 1]."""
    centres = []
    for cells, per_cell in ((16, 2), (8, 6)):
        for y in range(cells):
            for x in range(cells):
                centres += [((x + 0.5) / cells, (y + 0.5) / cells)] * per_cell
    return np.array(centres)


def decode(regressors, classificators):
    """Scores [n], and [n, 8, 2]: two corners and six points in [0, 1] of the
    square; of the anchors that score enough, best first."""
    clipped = np.clip(classificators[0, :, 0].astype(np.float64), -SCORE_CLIP, SCORE_CLIP)
    scores = 1 / (1 + np.exp(-clipped))
    keep = np.argsort(-scores, kind="stable")[:np.count_nonzero(scores >= MIN_SCORE)]
    values = regressors[0, keep].astype(np.float64).reshape(-1, 8, 2) / SIZE
    centre = values[:, 0] + anchors()[keep]
    half = values[:, 1] / 2
    points = values[:, 2:] + anchors()[keep][:, None]
    return scores[keep], np.concatenate([(centre - half)[:, None], (centre + half)[:, None],
                                         points], axis=1)


def overlap(box, boxes):
    """Intersection over union of one [8, 2] with many."""
    def area(low, high):
        return np.prod(np.maximum(high - low, 0), axis=-1)

    low, high = np.maximum(box[0], boxes[:, 0]), np.minimum(box[1], boxes[:, 1])
    shared = area(low, high)
    return shared / (area(box[0], box[1]) + area(boxes[:, 0], boxes[:, 1]) - shared)


def suppress(scores, boxes):
    """Weighted non-maximum suppression: (score, [8, 2]) of each face."""
    faces = []
    while len(scores):
        same = overlap(boxes[0], boxes) > MIN_OVERLAP
        faces.append((scores[0], np.average(boxes[same], axis=0, weights=scores[same])))
        scores, boxes = scores[~same], boxes[~same]
    return faces


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "data",
                        help="folder that fetch.py wrote (default: data beside this script)")
    parser.add_argument("--photo", type=pathlib.Path,
                        help="picture to look at (default: astronaut.png of that folder)")
    args = parser.parse_args()
    photo = np.asarray(Image.open(args.photo or args.data / "astronaut.png").convert("RGB"))
    image = preprocess(photo)
    outputs = run(args.data / "face_detection_short_range.tflite", image)
    np.save(args.data / "input.npy", image)
    for name, value in outputs.items():
        np.save(args.data / f"{name}.npy", value)

    height, width, _ = photo.shape
    side = max(height, width)
    margin = np.array([(side - width) // 2, (side - height) // 2])
    faces = []
    for score, box in suppress(*decode(**outputs)):
        pixels = (box * side - margin).round(2).tolist()
        faces.append({"score": round(float(score), 6), "box": pixels[0] + pixels[1],
                      "points": dict(zip(POINTS, pixels[2:]))})
        print(f"face {faces[-1]['score']:.4f} at {faces[-1]['box']}")
    (args.data / "faces.json").write_text(json.dumps(faces, indent=1) + "\n")


if __name__ == "__main__":
    main()
