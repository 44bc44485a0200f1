#!/usr/bin/env python3
"""Times models of the LiteRT corpus beside LiteRT, to find what is slow that no benchmark has.

    python tests/litert/make_models.py --out DATA       # its requirements are enough here too
    python bench/corpus.py DATA                         # networks, as they are
    python bench/corpus.py DATA --elements 200000       # single operators, on inputs of about that many elements
    python bench/corpus.py DATA --elements 200000 --only 'cast_*'

prints the geometric mean of nnhal's times in shares of LiteRT's (with XNNPACK, the interpreter's default), and the models
that take longest in that measure. A ratio here is rough: models are timed for moments, some take microseconds, and of an
operator alone nnhal also copies inputs and outputs (0.1 ms for 800 KB each). `peers.py` is the way to measure one.

Both are timed in turns, the least median of the turns counts. Inputs are the corpus's own, repeated where they are made
larger: by one factor along all axes but the last that are longer than 1, or along all of these, or along the first alone,
whatever LiteRT takes first. Models that LiteRT or nnhal refuse, on which LiteRT crashes, and those with signatures are counted
and left out. Ends with 1 if nothing could be timed.
"""

import argparse
import fnmatch
import json
import math
import multiprocessing
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from ai_edge_litert.interpreter import Interpreter


class LeftOut(Exception):
    """Why a case is not timed."""


def litert(model, inputs, threads):
    """A function that invokes the interpreter, which it has done once."""
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


def enlarged(inputs, elements):
    """Ways to make inputs larger, so that the largest has about that many elements."""
    largest = max(inputs, key=lambda values: values.size)
    long = [axis for axis, length in enumerate(largest.shape) if length > 1]
    for axes in (long[:-1], long, long[:1]):
        factor = round((elements / max(largest.size, 1)) ** (1 / len(axes))) if axes else 1
        if factor < 2:
            continue

        def shape(values):
            if values.ndim != largest.ndim:
                return values.shape
            return [length * factor if axis in axes and length > 1 else length
                    for axis, length in enumerate(values.shape)]

        yield [numpy.resize(values, shape(values)) for values in inputs]


def median_us(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def nnhal_us(arguments, model, inputs):
    command = [arguments.nnhal, "bench", str(model), "--device", "nnhal-cpu", "--threads", str(arguments.threads)]
    command += ["--time", str(arguments.seconds), "--runs", "1", "--json"]
    for name, path, values in inputs:
        command += ["--input", f"{name}={path}"]
        if values.ndim:
            command += ["--shape", f"{name}={','.join(map(str, values.shape))}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise LeftOut(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)["median_us"]


def timed(arguments, folder):
    """Medians of LiteRT and nnhal, in microseconds, and the shapes of the inputs."""
    meta = json.loads((folder / "meta.json").read_text())
    run, model = meta["runs"][0], folder / "model.tflite"
    if run["signature"] is not None:
        raise LeftOut("has signatures")
    inputs = [numpy.load(folder / it["file"]) for it in run["inputs"]]
    ways = enlarged(inputs, arguments.elements) if arguments.elements and inputs else [inputs]
    for inputs in ways:
        try:
            invoke = litert(model, inputs, arguments.threads)
            break
        except (RuntimeError, ValueError):
            continue
    else:
        raise LeftOut("LiteRT takes no other shapes")
    with tempfile.TemporaryDirectory() as written:
        files = []
        for index, (tensor, values) in enumerate(zip(meta["tensors"]["inputs"], inputs)):
            path = pathlib.Path(written) / f"{index}.npy"
            numpy.save(path, values)
            files.append((tensor["name"], path, values))
        theirs, ours = [], []
        for _ in range(arguments.turns):
            theirs.append(median_us(invoke, arguments.seconds))
            ours.append(nnhal_us(arguments, model, files))
    return min(theirs), min(ours), [list(values.shape) for values in inputs]


def alone(arguments, folder, answer):
    """In a process of its own, which may crash."""
    try:
        answer.send(timed(arguments, folder))
    except Exception as error:  # noqa: BLE001: a reason like any other
        answer.send(f"{type(error).__name__}: {error}".splitlines()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--nnhal", default="target/release/nnhal", help="the program")
    parser.add_argument("--elements", type=int, help="time single operators on larger inputs")
    parser.add_argument("--only", default="*", help="cases whose names match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.05, help="for each engine and turn")
    parser.add_argument("--worst", type=int, default=30, help="how many models to print")
    parser.add_argument("--json", type=pathlib.Path, help="write all times here")
    arguments = parser.parse_args()
    cases = [it for it in json.loads((arguments.data / "index.json").read_text()) if "made" in it]
    if arguments.elements:
        cases = [it for it in cases if it["source"] == "schema" and sum(it["operators"].values()) == 1]
    else:
        cases = [it for it in cases if it["family"] in ("networks", "wheels")]
    rows, left_out = [], []
    for name in (it["made"] for it in cases):
        if not fnmatch.fnmatch(name, arguments.only):
            continue
        if sys.stderr.isatty():
            print(f"\r\033[K{name}", end="", file=sys.stderr)
        here, there = multiprocessing.Pipe(False)
        process = multiprocessing.get_context("fork").Process(target=alone, args=(arguments, arguments.data / name, there))
        process.start()
        there.close()
        try:
            answer = here.recv()
        except EOFError:
            answer = "LiteRT crashed"
        process.join()
        if isinstance(answer, str):
            left_out.append(f"{name}: {answer}")
            continue
        theirs, ours, shapes = answer
        rows.append({"model": name, "litert_us": theirs, "nnhal_us": ours, "ratio": ours / theirs, "shapes": shapes})
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
    above = ", ".join(f"{sum(row['ratio'] > most for row in rows)} above {most}" for most in (1.05, 2, 10))
    print(f"\n{len(rows)} models, geometric mean {mean:.2f}, {above}; {len(left_out)} left out.")
    for line in left_out[:arguments.worst]:
        print(f"- {line}")


if __name__ == "__main__":
    main()
