#!/usr/bin/env python3
"""Checks an engine's outputs against LiteRT's.

    python check.py --run 'nnhal run {model} --device nnhal-cpu --threads {threads}
        --output-dir {outputs} --json' MODEL.tflite...

The command gets `--input NAME=FILE.npy` for each input besides, the same random
values that peers.py feeds, and prints one JSON object with the files of its
outputs, in the model's order: {"outputs": [{"file": ...}, ...]}.

LiteRT computes each model twice: with XNNPACK, which is its default, and with
its built-in kernels alone.  The distance of these two is shown beside the
distance of the command's outputs from the nearer one of them.  Floats: the largest
difference, relative to the largest output.  Quantized: steps.

The exit status is 1 if a model fails, or is further away than --relative, or by
more than --steps further than LiteRT's two ways are from each other: every
layer rounds, and a deep network makes steps of differences.
"""

import argparse
import glob
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

from peers import make_engine


def litert_outputs(model, engine):
    """Inputs by name, and outputs in the model's order."""
    engine = make_engine(engine)
    engine.load(model, 1)
    engine.set_inputs()
    engine.run()
    return engine.inputs(), [np.array(value) for value in engine.outputs().values()]


def command_outputs(command, model, threads, inputs, count):
    """What the command makes of the inputs: `count` outputs."""
    with tempfile.TemporaryDirectory() as folder:
        words = [word.format(model=model, threads=threads, outputs=folder)
                 for word in shlex.split(command)]
        for number, (name, value) in enumerate(inputs.items()):
            path = os.path.join(folder, f"input_{number}.npy")
            np.save(path, value)
            words += ["--input", f"{name}={path}"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-200:]}")
        outputs = json.loads(done.stdout)["outputs"]
        # States may follow the outputs that the model has.
        return [np.load(output["file"]) for output in outputs[:count]]


def distance(expected, found):
    """Largest differences of floats and of integers; None where there are none."""
    if [x.shape for x in expected] != [y.shape for y in found]:
        raise RuntimeError(f"shapes {[y.shape for y in found]} instead of "
                           f"{[x.shape for x in expected]}")
    relative, steps = None, None
    for x, y in zip(expected, found):
        gap = np.max(np.abs(x.astype(np.float64) - y.astype(np.float64)), initial=0.0)
        if x.dtype.kind == "f":
            gap /= max(np.max(np.abs(x), initial=0.0), 1e-30)
            # Not a number is further than any.
            relative = max(relative or 0.0, np.inf if np.isnan(gap) else float(gap))
        else:
            steps = max(steps or 0, int(gap))
    return relative, steps


def key(gap):
    """To be compared: by floats first, then by steps."""
    return tuple(part or 0 for part in gap)


def as_text(gap):
    relative, steps = gap
    return ", ".join(([f"{relative:.1e}"] if relative is not None else [])
                     + ([f"{steps} steps"] if steps is not None else []))


def models_at(path):
    """The models of a folder, or the one at this path."""
    if not os.path.isdir(path):
        return [path]
    return sorted(glob.glob(os.path.join(glob.escape(path), "*.tflite")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="+", help=".tflite files, or folders with such")
    parser.add_argument("--run", required=True, metavar="COMMAND",
                        help="a command with {model} {threads} {outputs}")
    parser.add_argument("--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("--relative", type=float, default=1e-3, help="most, of floats")
    parser.add_argument("--steps", type=int, default=3,
                        help="most, of quantized outputs, beyond LiteRT's own")
    args = parser.parse_args()
    models = [model for path in args.models for model in models_at(path)]
    if not models:
        parser.error(f"no .tflite files in {', '.join(args.models)}")
    failed = 0
    print("| model | threads | from LiteRT | LiteRT's two ways | |\n|---|--:|--:|--:|---|")
    for model in models:
        name = os.path.splitext(os.path.basename(model))[0]
        inputs, fast = litert_outputs(model, "litert")
        _, plain = litert_outputs(model, "litert_builtin")
        spread = distance(fast, plain)
        for threads in args.threads.split(","):
            try:
                found = command_outputs(args.run, model, threads, inputs, len(fast))
                gap = min(distance(fast, found), distance(plain, found), key=key)
                relative, steps = key(gap)
                is_near = (relative <= args.relative
                           and steps <= args.steps + (spread[1] or 0))
                verdict, shown = ("" if is_near else "**too far**"), as_text(gap)
            except (RuntimeError, ValueError, KeyError) as error:
                verdict, shown = f"**failed**: {error}", "-"
            failed += verdict != ""
            print(f"| {name} | {threads} | {shown} | {as_text(spread)} | {verdict} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
