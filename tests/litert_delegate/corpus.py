#!/usr/bin/env python3
"""Runs the LiteRT corpus (tests/litert/make_models.py) through the delegate and compares with LiteRT's answers.

    NNHAL_DELEGATE=libnnhal_delegate.so python corpus.py DATA [--every N] [--only PATTERN]
"""

import json
import pathlib

import numpy as np

from corpus_cases import is_close, main, read

OPTIONS = {"threads": "1"}


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
                interpreter = hosts.delegated(model, **OPTIONS)
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


if __name__ == "__main__":
    import hosts
    main(try_case, plain_fails, hosts.HOST)
