#!/usr/bin/env python3
"""The delegate beside `nnhal bench` and LiteRT's default, from what peers.py has measured.

    NNHAL_DELEGATE=target/release/libnnhal_delegate.so python peers.py MODELS/*.tflite \\
        --engines litert,litert_nnhal --threads 1 --json delegate.json \\
        --engine nnhal='target/release/nnhal bench {model} --device nnhal-cpu --threads {threads} --runs {runs} --json'
    python delegate.py delegate.json

Prints a table in Markdown, and ends with 1 if a network took more than 1.05 of the time that
`nnhal bench` reports, or was not taken in one partition.
"""

import json
import math
import statistics
import sys

MOST = 1.05


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as handle:
        report = json.load(handle)
    bad, ratios, faster = [], [], []
    print("| model | threads | partitions | delegate | `nnhal bench` | ratio | XNNPACK | times as fast |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for entry in report["models"]:
        for threads, results in entry["results"].items():
            name = f"{entry['name']}, {threads} threads"
            three = [results.get(engine, {}) for engine in ("litert_nnhal", "nnhal", "litert")]
            if missing := [it.get("error", "not run") for it in three if "median_us" not in it]:
                bad.append(f"{name}: {missing[0]}")
                continue
            ours, alone, theirs = (it["median_us"] for it in three)
            partitions = three[0]["loads"][0]["partitions"]
            ratios.append(ours / alone)
            faster.append(theirs / ours)
            mark = "~" if any(it["disturbed"] for it in three) else ""
            print(f"| {entry['name']} | {threads} | {partitions} | {ours / 1e3:.3f}{mark} | {alone / 1e3:.3f} "
                  f"| {ours / alone:.2f} | {theirs / 1e3:.3f} | {theirs / ours:.2f} |")
            if partitions != 1:
                bad.append(f"{name}: {partitions} partitions")
            if ours / alone > MOST:
                bad.append(f"{name}: {ours / alone:.3f} of the time of `nnhal bench`")
    if ratios:
        print(f"\nGeometric means: {mean(ratios):.2f} of the time of `nnhal bench`, {mean(faster):.2f} times as fast as "
              "XNNPACK. `~`: with other load on the machine.")
    for line in bad:
        print(f"- {line}")
    sys.exit(1 if bad or not ratios else 0)


if __name__ == "__main__":
    main()
