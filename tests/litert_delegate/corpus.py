#!/usr/bin/env python3
"""Runs the LiteRT corpus (tests/litert/make_models.py) through the delegate and compares with LiteRT's answers.

    NNHAL_DELEGATE=libnnhal_delegate.so python corpus.py DATA [--every N] [--only PATTERN]

Cases run in worker processes, so that one which takes the interpreter down is a line of the report.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import multiprocessing
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent


def read(folder, place):
    return np.load(folder / place, allow_pickle=False)


def is_close(found, expected, tolerance):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
    if found.size == 0:
        return None
    if tolerance.get("exact"):
        same = np.array_equal(found, expected, equal_nan=found.dtype.kind in "fc")
        return None if same else "not the same to the bit"
    wide = complex if found.dtype.kind == "c" else np.float64
    found, expected = found.astype(wide), expected.astype(wide)
    if "steps" in tolerance:
        worst = np.abs(found - expected).max()
        return None if worst <= tolerance["steps"] else f"{worst} steps off, expected {tolerance['steps']}"
    with np.errstate(invalid="ignore"):
        off = np.abs(found - expected) - tolerance["rtol"] * np.abs(expected)
        equal = (found == expected) | (np.isnan(found) & np.isnan(expected))
        worst = np.where(equal, 0, off).max()
    return None if worst <= tolerance["atol"] else f"{worst} beyond, expected {tolerance['atol']}"


def value(interpreter, details):
    """An output; the interpreter does not hand out one without elements."""
    if 0 in details["shape"]:
        return np.zeros(details["shape"], details["dtype"])
    return interpreter.get_tensor(details["index"])


def execute(interpreter, signature, inputs, fresh):
    if signature:
        runner = interpreter.get_signature_runner(signature)
        names = sorted(runner.get_input_details())
        values = runner(**dict(zip(names, inputs)))
        return [np.array(values[name]) for name in sorted(values)]
    details = interpreter.get_input_details()
    resized = [(it["index"], x.shape) for it, x in zip(details, inputs)
               if tuple(it["shape"]) != x.shape]
    for index, shape in resized:
        interpreter.resize_tensor_input(index, shape)
    if fresh or resized:
        interpreter.allocate_tensors()
    for it, x in zip(details, inputs):
        interpreter.set_tensor(it["index"], x)
    interpreter.invoke()
    return [value(interpreter, it) for it in interpreter.get_output_details()]


def try_case(folder):
    """(case, kind, text): kind is `same`, `left` (no partition), `differs`, `error`."""
    import hosts
    folder = pathlib.Path(folder)
    meta = json.loads((folder / "meta.json").read_text())
    model = (folder / "model.tflite").read_bytes()
    interpreter, taken = None, 0
    try:
        for number, run in enumerate(meta["runs"]):
            base = folder
            inputs = [read(base, it["file"]) for it in run["inputs"]]
            fresh = not (interpreter and meta["keeps_state"])
            if fresh:
                interpreter = hosts.delegated(model, threads="1")
                taken = max(taken, hosts.partitions(interpreter)[0])
            found = execute(interpreter, run["signature"], inputs, fresh)
            for at, (x, it) in enumerate(zip(found, run["outputs"])):
                wrong = is_close(x, read(base, it["file"]), it["tolerance"])
                hybrid = base / "float_weights" / f"{at}.npy"
                if wrong and number == 0 and hybrid.exists():
                    near = {"atol": 1e-3 * max(1.0, float(np.abs(x).max())), "rtol": 1e-3}
                    wrong = wrong if is_close(x, np.load(hybrid), near) else None
                if wrong:
                    return folder.name, "differs", f"run {number}, output {at}: {wrong}"
    except Exception as error:
        return folder.name, "error", f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    return folder.name, "same" if taken else "left", ""


def plain_fails(folder):
    """Whether the host itself, without the delegate, fails on the first run too."""
    import hosts
    folder = pathlib.Path(folder)
    meta = json.loads((folder / "meta.json").read_text())
    run = meta["runs"][0]
    try:
        interpreter = hosts.plain((folder / "model.tflite").read_bytes())
        inputs = [read(folder, it["file"]) for it in run["inputs"]]
        found = execute(interpreter, run["signature"], inputs, True)
        wrong = [is_close(x, read(folder, it["file"]), it["tolerance"])
                 for x, it in zip(found, run["outputs"])]
        return next((it for it in wrong if it), None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def alone(call, folder):
    """The answer of a call in a process of its own; None if that died."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(call, folder).result(timeout=120)
        except (concurrent.futures.process.BrokenProcessPool, TimeoutError):
            return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="only each N-th case")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    folders = sorted(it.parent for it in arguments.data.glob("*/meta.json"))
    folders = [it for it in folders if fnmatch.fnmatch(it.name, arguments.only)][::arguments.every]
    if not folders:
        sys.exit(f"{arguments.data} has no cases")
    import hosts
    # Where the library differs from LiteRT, whoever runs it, is written down already.
    table = (HERE / "../../docs/tflite.md").read_text().split("## Different")[1].split("##")[0]
    expected = set(re.findall(r"^\| [A-Z_0-9]+ \| (\S+) \|$", table, re.MULTILINE))
    results, crashed = [], []
    waiting = [str(it) for it in folders]
    while waiting:
        context = multiprocessing.get_context("spawn")
        done = set()
        with concurrent.futures.ProcessPoolExecutor(arguments.jobs, context) as pool:
            jobs = {pool.submit(try_case, it): it for it in waiting}
            for job in concurrent.futures.as_completed(jobs):
                try:
                    results.append(job.result())
                    done.add(jobs[job])
                except concurrent.futures.process.BrokenProcessPool:
                    pass
        waiting = [it for it in waiting if it not in done]
        # One of the first took its process down: each of those is tried alone.
        for suspect in waiting[:2 * arguments.jobs]:
            answer = alone(try_case, suspect)
            results.append(answer or (pathlib.Path(suspect).name, "crash", ""))
            waiting.remove(suspect)
    counts, bad = collections.Counter(), []
    for name, kind, text in sorted(results):
        if kind in ("differs", "error", "crash"):
            if name in expected and kind == "differs":
                kind = "expected"
            elif kind != "crash" and (own := alone(plain_fails, str(arguments.data / name))):
                # The host answers something else than the LiteRT of the corpus, or nothing.
                kind, text = "host's own", own
            else:
                bad.append((name, kind, text))
        counts[kind] += 1
    for name, kind, text in bad:
        print(f"{kind:8} {name}: {text}")
    print(f"{hosts.HOST}: {len(results)} models, " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
