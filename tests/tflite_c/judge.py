#!/usr/bin/env python3
"""Runs the LiteRT corpus through the C library, and compares with what LiteRT computed.

    tests/litert/make_models.py --out DATA
    tests/tflite_c/judge.py --library libtensorflowlite_c.so --corpus DATA [--beside THEIRS] [--every N]

`--every N` takes each Nth model. `--beside` asks another library (that of a wheel) the same, and compares what both
say of tensors: type, shape, bytes, name, scale, zero point. Only NumPy is needed.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import sys

import numpy as np

import capi


def is_close(found, expected, tolerance):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if tolerance.get("exact"):
        return np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
    if "steps" in tolerance:
        return np.abs(found.astype(np.int64) - expected.astype(np.int64)).max(initial=0) <= tolerance["steps"]
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= tolerance["atol"] + tolerance["rtol"] * np.abs(expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return bool((near | same).all())


class Main:
    """An interpreter's own functions."""

    def __init__(self, library, interpreter):
        self.library, self.interpreter = library, interpreter

    def inputs(self):
        count = self.library.InterpreterGetInputTensorCount(self.interpreter)
        return [self.library.InterpreterGetInputTensor(self.interpreter, index) for index in range(count)]

    def outputs(self):
        count = self.library.InterpreterGetOutputTensorCount(self.interpreter)
        return [self.library.InterpreterGetOutputTensor(self.interpreter, index) for index in range(count)]

    def resize(self, index, value):
        return self.library.InterpreterResizeInputTensor(self.interpreter, index, *capi.lengths(value))

    def allocate(self):
        return self.library.InterpreterAllocateTensors(self.interpreter)

    def invoke(self):
        return self.library.InterpreterInvoke(self.interpreter)


class Signature:
    """A signature's functions."""

    def __init__(self, library, interpreter, key):
        self.library = library
        self.runner = library.InterpreterGetSignatureRunner(interpreter, key.encode())
        if not self.runner:
            raise capi.Refused("GetSignatureRunner")
        names = lambda count, name: [name(self.runner, index) for index in range(count(self.runner))]
        self.taken = names(library.SignatureRunnerGetInputCount, library.SignatureRunnerGetInputName)
        self.given = names(library.SignatureRunnerGetOutputCount, library.SignatureRunnerGetOutputName)

    def inputs(self):
        return [self.library.SignatureRunnerGetInputTensor(self.runner, name) for name in self.taken]

    def outputs(self):
        return [self.library.SignatureRunnerGetOutputTensor(self.runner, name) for name in self.given]

    def resize(self, index, value):
        name = self.taken[index]
        return self.library.SignatureRunnerResizeInputTensor(self.runner, name, *capi.lengths(value))

    def allocate(self):
        return self.library.SignatureRunnerAllocateTensors(self.runner)

    def invoke(self):
        return self.library.SignatureRunnerInvoke(self.runner)


def execute(library, folder, meta):
    """The outputs of each run, and what was said of tensors before and after it."""
    model = library.ModelCreateFromFile(str(folder / "model.tflite").encode())
    if not model:
        raise capi.Refused("ModelCreateFromFile")
    results, interpreter, doors = [], None, {}
    try:
        for run in meta["runs"]:
            if interpreter is None or not meta["keeps_state"]:
                if interpreter:
                    library.InterpreterDelete(interpreter)
                interpreter, doors = library.InterpreterCreate(model, None), {}
                if not interpreter:
                    raise capi.Refused("InterpreterCreate")
            key = run.get("signature")
            if key not in doors:
                doors[key] = Signature(library, interpreter, key) if key else Main(library, interpreter)
            door = doors[key]
            values = [np.load(folder / value["file"]) for value in run["inputs"]]
            for index, (tensor, value) in enumerate(zip(door.inputs(), values, strict=True)):
                if capi.shape(library, tensor) != value.shape:
                    capi.check("ResizeInputTensor", door.resize(index, value))
            capi.check("AllocateTensors", door.allocate())
            before = [capi.facts(library, tensor) for tensor in door.inputs() + door.outputs()]
            for tensor, value in zip(door.inputs(), values):
                capi.give(library, tensor, value)
            capi.check("Invoke", door.invoke())
            after = [capi.facts(library, tensor) for tensor in door.inputs() + door.outputs()]
            results.append(([capi.take(library, tensor) for tensor in door.outputs()], before, after))
        return results
    finally:
        if interpreter:
            library.InterpreterDelete(interpreter)
        library.ModelDelete(model)


def known_differences():
    """Cases whose results differ for reasons that the importer's documentation gives."""
    page = (pathlib.Path(__file__).parent / "../../docs/tflite.md").read_text()
    section = page.split("## Different\n")[1].split("\n## ")[0]
    return {line.split("|")[2].strip() for line in section.splitlines() if line.startswith("|")}


def judge(folder, library, beside, say):
    """A word, and what is wrong."""
    meta = json.loads((folder / "meta.json").read_text())
    try:
        ours = execute(library, folder, meta)
    except capi.Refused as refused:
        return "refused", str(refused)
    for number, (run, (outputs, _, _)) in enumerate(zip(meta["runs"], ours)):
        for index, (found, described) in enumerate(zip(outputs, run["outputs"], strict=True)):
            expected = np.load(folder / described["file"])
            if not is_close(found, expected, described["tolerance"]):
                return "known" if folder.name in KNOWN else "differs", f"run {number}, output {index}: {found.shape} {expected.shape}"
    if beside is not None:
        say("right so far")
        try:
            theirs = execute(beside, folder, meta)
        except capi.Refused:
            return "right", None
        for number, (one, other) in enumerate(zip(ours, theirs)):
            for moment, found, expected in (("AllocateTensors", one[1], other[1]), ("Invoke", one[2], other[2])):
                # A shape that only a run gives there may be known earlier here.
                pairs = [pair for pair, later in zip(zip(found, expected), other[2])
                         if pair[0] not in (pair[1], later)]
                if pairs:
                    return "facts", f"run {number} after {moment}: {pairs[0]}"
    return "right", None


KNOWN = known_differences()


def work(arguments):
    folders, library, beside, queue = arguments
    library = capi.load(library)
    beside = capi.load(beside) if beside else None
    for folder in folders:
        queue.put((folder.name, "begun", None))
        try:
            say = lambda word: queue.put((folder.name, word, None))
            queue.put((folder.name, *judge(folder, library, beside, say)))
        except Exception as error:
            queue.put((folder.name, "failed", repr(error)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--corpus", required=True, type=pathlib.Path)
    parser.add_argument("--beside")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()
    folders = sorted(path.parent for path in args.corpus.glob("*/meta.json") if args.filter in path.parent.name)
    folders = folders[::args.every]
    if not folders:
        sys.exit("there are no models")
    # A process of its own: a library that takes it down is found out.
    queue, known, waiting = multiprocessing.SimpleQueue(), {}, folders
    while waiting:
        worker = multiprocessing.Process(target=work, args=((waiting, args.library, args.beside, queue),))
        worker.start()
        while worker.is_alive() or not queue.empty():
            if queue.empty():
                worker.join(0.05)
                continue
            name, word, what = queue.get()
            known[name] = (word, what)
        left = [folder for folder in waiting if folder.name not in known]
        for folder in waiting:
            word = known.get(folder.name, ("", None))[0]
            if word == "begun":
                known[folder.name] = ("crashed", f"exit code {worker.exitcode}")
            elif word == "right so far":
                known[folder.name] = ("right, but the other library crashed", f"exit code {worker.exitcode}")
        if left and len(left) == len(waiting):
            sys.exit(f"the worker does not start: exit code {worker.exitcode}")
        waiting = left
    count = collections.Counter(word for word, _ in known.values())
    shown = collections.Counter()
    for name, (word, what) in known.items():
        if word != "right" and shown[word] < args.show:
            shown[word] += 1
            print(f"{word}: {name}: {what}")
    print(", ".join(f"{number} {word}" for word, number in count.most_common()))
    bad = sum(count[word] for word in ("differs", "facts", "failed", "crashed"))
    sys.exit(bad > 0 or count["right"] == 0)


if __name__ == "__main__":
    main()
