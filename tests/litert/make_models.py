#!/usr/bin/env python3
"""Makes the LiteRT corpus: small .tflite models, inputs, and LiteRT's outputs.

    pip install -r requirements.txt
    python make_models.py [--out DIR] [--family NAME]... [--only PATTERN]... [--list]

See README.md for what is written.  Cases run in a process of their own, so one
that LiteRT refuses, or that takes the interpreter down, only becomes a line of
the report.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).parent
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def selected(family, patterns):
    """Cases of a family whose names match."""
    from corpus import registry
    return {name: maker for name, maker in registry.cases(family).items()
            if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}


def work(family, out, patterns, log, skip):
    """Makes the cases of a family that are not in `skip`, a line of JSON each."""
    from corpus import judge
    for name, maker in selected(family, patterns).items():
        if name in skip:
            continue
        log.write(json.dumps({"start": name}) + "\n")
        log.flush()
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        try:
            meta = judge.save(folder, name, maker())
            line = {"made": name, "family": family, **{key: meta[key] for key in (
                "source", "variant", "judge", "bytes", "operators")}}
        except Exception as error:      # a case that fails must not stop the others
            shutil.rmtree(folder, ignore_errors=True)
            reason = str(error).strip().splitlines() or [""]
            line = {"failed": name, "family": family,
                    "reason": f"{type(error).__name__}: {' '.join(reason)[:300]}",
                    "trace": traceback.format_exc().splitlines()[-6:]}
        log.write(json.dumps(line) + "\n")
        log.flush()


def run_family(family, args):
    """Lines of the reports of one family, restarting the worker after a crash."""
    lines, skip, path = [], [], args.out / f".{family}.log"
    while True:
        path.unlink(missing_ok=True)
        command = [sys.executable, __file__, "--out", str(args.out), "--family", family,
                   "--worker", str(path), *(part for name in skip for part in ("--skip", name)),
                   *(part for pattern in args.only for part in ("--only", pattern))]
        code = subprocess.run(command, stdout=subprocess.DEVNULL,
                              stderr=None if args.verbose else subprocess.DEVNULL).returncode
        entries = [json.loads(line) for line in path.read_text().splitlines()] \
            if path.exists() else []
        path.unlink(missing_ok=True)
        lines += [entry for entry in entries if "start" not in entry]
        if code == 0:
            return lines
        started = [entry["start"] for entry in entries if "start" in entry]
        if not started:
            return lines + [{"failed": family, "family": family,
                             "reason": f"the worker ended with {code} before its first case"}]
        shutil.rmtree(args.out / started[-1], ignore_errors=True)
        lines.append({"failed": started[-1], "family": family,
                      "reason": f"LiteRT ended the process ({code})"})
        skip += started


def summary(lines):
    """Text of the report."""
    made = [line for line in lines if "made" in line]
    failed = [line for line in lines if "failed" in line]
    by_operator = collections.defaultdict(collections.Counter)
    for line in made:
        for operator in line["operators"]:
            by_operator[operator][line["variant"]] += 1
    text = ["models of each operator, by variant:"]
    for operator, variants in sorted(by_operator.items()):
        parts = ", ".join(f"{variant} {count}" for variant, count in sorted(variants.items()))
        text.append(f"  {operator:32} {sum(variants.values()):4}  ({parts})")
    text.append("models by family: " + ", ".join(f"{family} {count}" for family, count in
                collections.Counter(line["family"] for line in made).items()))
    if failed:
        text.append(f"{len(failed)} not made:")
        text += [f"  {line['failed']}: {line['reason']}" for line in failed]
    text.append(f"{len(made)} models, {len(by_operator)} operators, "
                f"{sum(line['bytes'] for line in made):,} bytes of models")
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "data",
                        help="folder to write to (default: data beside this script)")
    parser.add_argument("--family", action="append", default=[], help="only this family")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="only cases whose name matches (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--verbose", action="store_true", help="show what the workers print")
    parser.add_argument("--worker", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--skip", action="append", default=[], help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if args.worker:
        with open(args.worker, "w") as log:
            work(args.family[0], args.out, args.only, log, set(args.skip))
        return
    from corpus import registry
    families = args.family or list(registry.FAMILIES)
    if args.list:
        for family in families:
            print("\n".join(selected(family, args.only)))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for family in families:
        print(f"{family}...", file=sys.stderr, flush=True)
        lines += run_family(family, args)
    text = summary(lines)
    print(text)
    if not args.only and families == list(registry.FAMILIES):
        made = {line["made"] for line in lines if "made" in line}
        for meta in args.out.glob("*/meta.json"):
            if meta.parent.name not in made:        # of an earlier list of cases
                shutil.rmtree(meta.parent)
        (args.out / "index.json").write_text(json.dumps(lines, indent=1) + "\n")
        (args.out / "summary.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
