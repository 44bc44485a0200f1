#!/usr/bin/env python3
"""Runs the LiteRT corpus (tests/litert/make_models.py) through CompiledModel with nnhal's libraries, and compares with
LiteRT's answers.

    NNHAL_LITERT_LIBRARIES=FOLDER python corpus.py DATA [--every N] [--only PATTERN]
"""

import json
import os
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "litert_delegate")]
os.environ.setdefault("NNHAL_LITERT_OPTIONS", "threads:1;log:debug")

import corpus_cases as base  # noqa: E402


def first_run(folder, model, compiled):
    """Outputs of the first run that a compiled model can do, which has the file's shapes."""
    meta = json.loads((folder / "meta.json").read_text())
    run = meta["runs"][0]
    inputs = [base.read(folder, it["file"]) for it in run["inputs"]]
    expected = [base.read(folder, it["file"]) for it in run["outputs"]]
    model = model()
    keys = list(model.get_signature_list())
    at = keys.index(run["signature"]) if run["signature"] else 0
    if run["signature"]:
        # The corpus has them by name.
        names = model.get_signature_list()[keys[at]]
        inputs = [x for _, x in sorted(zip(_order(names["inputs"]), inputs), key=lambda it: it[0])]
        order = _order(names["outputs"])
        shapes = [None] * len(expected)
        for place, x in zip(order, expected):
            shapes[place] = (x.shape, x.dtype)
        found = compiled.run(model, inputs, shapes, at)
        found = [found[place] for place in order]
    else:
        found = compiled.run(model, inputs, [(x.shape, x.dtype) for x in expected], at)
    for number, (x, y, it) in enumerate(zip(found, expected, run["outputs"])):
        wrong = base.is_close(x, y, it["tolerance"])
        hybrid = folder / "float_weights" / f"{number}.npy"
        if wrong and hybrid.exists():
            near = {"atol": 1e-3 * max(1.0, float(np.abs(x).max())), "rtol": 1e-3}
            wrong = wrong if base.is_close(x, np.load(hybrid), near) else None
        if wrong:
            return f"output {number}: {wrong}"
    return None


def _order(names):
    """By name in the order of names: its place in the list."""
    return [names.index(name) for name in sorted(names)]


def try_case(folder):
    """(case, kind, text): kind is `same`, `left` (no operator taken), `differs`, `error`."""
    import compiled
    folder = pathlib.Path(folder)
    model = (folder / "model.tflite").read_bytes()
    wrong = None
    with compiled.Log() as log:
        try:
            wrong = first_run(folder, lambda: compiled.compiled(model), compiled)
            kind = "differs" if wrong else "same"
        except Exception as error:
            kind, wrong = "error", " ".join(str(error).split())[:200]
            # A model that was compiled has the shapes of its file.
            if "New shape is not compatible" in wrong:
                return folder.name, "other shape", ""
    if kind == "same":
        kind = "same" if log.runs() else "left"
        if log.errors():
            kind, wrong = "fell back", "; ".join(log.errors())[:300]
    elif kind == "differs" and not log.operators()[0]:
        # LiteRT alone has run it, and what it gives for such a model is not always the same.
        kind = "left"
    elif log.errors():
        wrong = f"{wrong}; {'; '.join(log.errors())[:300]}"
    return folder.name, kind, wrong or ""


def plain_fails(folder):
    """What is wrong with LiteRT's own CompiledModel, which XNNPACK runs."""
    import compiled
    folder = pathlib.Path(folder)
    model = (folder / "model.tflite").read_bytes()
    with compiled.Log():
        try:
            return first_run(folder, lambda: compiled.plain(model), compiled)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    base.main(try_case, plain_fails, "ai-edge-litert, CompiledModel")
