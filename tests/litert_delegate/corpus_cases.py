"""Runs the LiteRT corpus (tests/litert/make_models.py) through a host of nnhal and compares with LiteRT's answers.

Cases run in worker processes, so that one which takes the host down is a line of the report.
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


def alone(call, folder):
    """The answer of a call in a process of its own; None if that died."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(call, folder).result(timeout=120)
        except (concurrent.futures.process.BrokenProcessPool, TimeoutError):
            return None


def answers(call, folders, jobs):
    """By folder the answer of a call; None where it took its process down."""
    found, waiting = {}, list(folders)
    while waiting:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
            jobs_of = {pool.submit(call, it): it for it in waiting}
            for job in concurrent.futures.as_completed(jobs_of):
                try:
                    found[jobs_of[job]] = job.result()
                except concurrent.futures.process.BrokenProcessPool:
                    pass
        waiting = [it for it in waiting if it not in found]
        # One of the first took its process down: each of those is tried alone.
        for suspect in waiting[:2 * jobs]:
            found[suspect] = alone(call, suspect)
        waiting = waiting[2 * jobs:]
    return found


def chosen(folders, every):
    """Each `every`th folder, and the first with an operator that those do not have: options are read by operator."""
    taken, seen = set(folders[::every]), set()
    operators = {it: json.loads((it / "meta.json").read_text())["operators"] for it in folders}
    for folder in sorted(folders, key=lambda it: (it not in taken, it)):
        if not seen.issuperset(operators[folder]):
            taken.add(folder)
        if folder in taken:
            seen.update(operators[folder])
    return sorted(taken)


def main(try_case, plain_fails, host):
    """`try_case(folder)` gives (case, kind, text), `plain_fails(folder)` what is wrong with the host itself, if anything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="only each N-th case, and one of each operator")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    folders = sorted(it.parent for it in arguments.data.glob("*/meta.json"))
    folders = chosen([it for it in folders if fnmatch.fnmatch(it.name, arguments.only)], arguments.every)
    if not folders:
        sys.exit(f"{arguments.data} has no cases")
    # Where the library differs from LiteRT, whoever runs it, is written down already.
    table = (HERE / "../../docs/tflite.md").read_text().split("## Different")[1].split("##")[0]
    expected = set(re.findall(r"^\| [A-Z_0-9]+ \| (\S+) \|$", table, re.MULTILINE))
    found = answers(try_case, [str(it) for it in folders], arguments.jobs)
    results = [answer or (pathlib.Path(folder).name, "crash", "") for folder, answer in found.items()]
    doubted = [str(arguments.data / name) for name, kind, _ in results
               if kind == "error" or kind == "differs" and name not in expected]
    own = answers(plain_fails, doubted, arguments.jobs)
    counts, bad = collections.Counter(), []
    for name, kind, text in sorted(results):
        if kind in ("differs", "error", "crash"):
            if name in expected and kind == "differs":
                kind = "expected"
            elif wrong := own.get(str(arguments.data / name)):
                # The host answers something else than the LiteRT of the corpus, or nothing.
                kind, text = "host's own", wrong
            else:
                bad.append((name, kind, text))
        if kind == "fell back":
            print(f"{kind:8} {name}: {text}")
        counts[kind] += 1
    for name, kind, text in bad:
        print(f"{kind:8} {name}: {text}")
    print(f"{host}: {len(results)} models, " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    sys.exit(1 if bad else 0)

