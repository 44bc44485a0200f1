#!/usr/bin/env python3
"""Times the networks of the LiteRT corpus beside LiteRT, to find what is slow that no benchmark has.

    python tests/litert/make_models.py --out DATA       # its own requirements are enough here too
    python bench/corpus.py DATA --nnhal target/release/nnhal

prints the geometric mean of nnhal's times in shares of LiteRT's (with XNNPACK, the interpreter's default), and the models
that take longest in that measure. The models of `bench/` say how fast we are; these, some of which run for microseconds, say
which layers are slow that no one has timed. So a ratio here is rough: `peers.py` is the way to measure one.

Both are timed in turns (--turns), one thread, the least median of the turns counts. Inputs are the corpus's own; models that
LiteRT or nnhal refuse, and those with several signatures, are counted and left out. Ends with 1 if nothing could be timed.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
from ai_edge_litert.interpreter import Interpreter


def litert(model, inputs, threads):
    """A function that invokes the interpreter, ready to run."""
    interpreter = Interpreter(str(model), num_threads=threads)
    details = interpreter.get_input_details()
    for detail, values in zip(details, inputs):
        if tuple(detail["shape"]) != values.shape:
            interpreter.resize_tensor_input(detail["index"], values.shape)
    interpreter.allocate_tensors()
    for detail, values in zip(details, inputs):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return interpreter.invoke


def median_us(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def nnhal_us(program, model, inputs, threads, seconds):
    command = [program, "bench", str(model), "--device", "nnhal-cpu", "--threads", str(threads), "--time", str(seconds), "--json"]
    for name, path in inputs:
        command += ["--input", f"{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)["median_us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--nnhal", default="target/release/nnhal", help="the program")
    parser.add_argument("--family", action="append", help="families of the corpus (default: networks and wheels)")
    parser.add_argument("--only", default="*", help="cases whose names match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each engine and turn")
    parser.add_argument("--worst", type=int, default=30, help="how many models to print")
    parser.add_argument("--json", type=pathlib.Path, help="write all times here")
    arguments = parser.parse_args()
    families = arguments.family or ["networks", "wheels"]
    cases = [it["made"] for it in json.loads((arguments.data / "index.json").read_text()) if it.get("family") in families]
    rows, left_out = [], []
    for name in cases:
        folder = arguments.data / name
        if not pathlib.PurePath(name).match(arguments.only):
            continue
        if sys.stderr.isatty():
            print(f"\r\033[K{name}", end="", file=sys.stderr)
        meta = json.loads((folder / "meta.json").read_text())
        run = meta["runs"][0]
        paths = [folder / it["file"] for it in run["inputs"]]
        named = [(tensor["name"], path) for tensor, path in zip(meta["tensors"]["inputs"], paths)]
        try:
            if run["signature"] is not None:
                raise RuntimeError("has signatures")
            invoke = litert(folder / "model.tflite", [numpy.load(path) for path in paths], arguments.threads)
            theirs, ours = [], []
            for _ in range(arguments.turns):
                theirs.append(median_us(invoke, arguments.seconds))
                ours.append(nnhal_us(arguments.nnhal, folder / "model.tflite", named, arguments.threads, arguments.seconds))
            rows.append({"model": name, "litert_us": min(theirs), "nnhal_us": min(ours), "ratio": min(ours) / min(theirs)})
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            left_out.append(f"{name}: {str(error).splitlines()[0]}")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    rows.sort(key=lambda row: -row["ratio"])
    if arguments.json:
        arguments.json.write_text(json.dumps({"models": rows, "left_out": left_out}, indent=1))
    if not rows:
        sys.exit("nothing could be timed:\n" + "\n".join(left_out[:10]))
    print("| model | LiteRT us | nnhal us | ratio |\n|---|--:|--:|--:|")
    for row in rows[:arguments.worst]:
        print(f"| {row['model']} | {row['litert_us']:.1f} | {row['nnhal_us']:.1f} | {row['ratio']:.2f} |")
    mean = math.exp(statistics.mean(math.log(row["ratio"]) for row in rows))
    slower = sum(row["ratio"] > 1.05 for row in rows)
    print(f"\n{len(rows)} models, geometric mean {mean:.2f}, {slower} above 1.05; {len(left_out)} left out.")
    for line in left_out[:arguments.worst]:
        print(f"- {line}")


if __name__ == "__main__":
    main()
