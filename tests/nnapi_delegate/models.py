#!/usr/bin/env python3
"""Runs the corpus of tests/litert through LiteRT's NNAPI delegate and libneuralnetworks.so, and compares with LiteRT.

    NNHAL_DELEGATE=OUT_OF_BUILD LD_LIBRARY_PATH=FOLDER python models.py DATA [--only PATTERN] [KEY=VALUE ...]

KEY=VALUE are options of external.cpp. known.txt has what is not the library's: any other difference, error or crash
fails, and so does a line of it that nothing matches where all of the corpus ran.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "../litert_delegate"))

import corpus  # noqa: E402
from corpus_cases import alone, answers  # noqa: E402

corpus.OPTIONS = json.loads(os.environ.get("NNAPI_OPTIONS", "{}"))


def try_case(folder):
    """(case, kind, text) as in corpus.py; a compilation is cached under the name of its model."""
    if "cache_dir" in corpus.OPTIONS:
        corpus.OPTIONS["model_token"] = pathlib.Path(folder).name
    return corpus.try_case(folder)


def known():
    """(line, kind, pattern of names, part of the text) of each line; a kind with `?` is not found in every run."""
    for line in (HERE / "known.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            kind, name, *text = line.split(None, 2)
            yield line, kind, name, text[0] if text else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("options", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["NNAPI_OPTIONS"] = json.dumps(dict(it.split("=", 1) for it in arguments.options))
    folders = sorted(str(it.parent) for it in arguments.data.glob("*/meta.json"))
    folders = [it for it in folders if fnmatch.fnmatch(pathlib.Path(it).name, arguments.only)]
    if not folders:
        sys.exit(f"{arguments.data} has no cases")
    counts, bad, used = collections.Counter(), 0, set()
    for folder, answer in sorted(answers(try_case, folders, arguments.jobs).items()):
        name, kind, text = answer or alone(try_case, folder) or (pathlib.Path(folder).name, "crash", "")
        if kind in ("differs", "error", "crash"):
            lines = [line for line, of, pattern, part in known()
                     if of.rstrip("?") == kind and fnmatch.fnmatch(name, pattern) and part in text]
            used.update(lines)
            if lines:
                kind = "known"
            else:
                bad += 1
                print(f"{kind:8} {name}: {text}")
        counts[kind] += 1
    print(f"{len(folders)} models, " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    if arguments.only == "*" and not arguments.options:
        for line, kind, *_ in known():
            if line not in used and not kind.endswith("?"):
                bad += 1
                print(f"nothing matches: {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
