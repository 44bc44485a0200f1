#!/usr/bin/env python3
"""Counts the corpus against the schema and LiteRT: operators, versions, element types.

    python count_models.py data [--page ../../docs/tflite-corpus.md]

What there is to count is asked of LiteRT's wheel: which versions of an operator it
has (a model of each is given to it), and with which element types it runs one (the
smallest case of the operator, with other types in it).  What LiteRT has and no case
is of is printed, with the reason from not_generated.txt; without a reason there the
program fails, as it does for a reason that is no longer needed.
"""

import argparse
import collections
import fnmatch
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from corpus import graph, probed, single  # noqa: E402

TYPES = {code: name for name, code in vars(graph.schema.TensorType).items() if name.isupper()}


def corpus(folder):
    """By operator: versions, element types, number of cases."""
    versions, types, counts = collections.defaultdict(set), collections.defaultdict(set), collections.Counter()
    for path in folder.glob("*/model.tflite"):
        model, names = graph.unpack(path.read_bytes()), set()
        for subgraph in model.subgraphs:
            for operator in subgraph.operators or ():
                code = model.operatorCodes[operator.opcodeIndex]
                name = graph.OP_NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
                names.add(name)
                versions[name].add(code.version)
                tensors = [*operator.inputs, *operator.outputs]
                types[name] |= {TYPES[subgraph.tensors[index].type] for index in tensors if index >= 0}
        counts.update(names)
    return versions, types, counts


def more_types(types):
    """Operators with types that LiteRT runs them with and that no case has."""
    candidates = {}
    for op, (entry, kind, _) in probed.smallest().items():
        made = single.make(entry, kind)
        for other in probed.KINDS:
            case = None if other.upper() in types[op] else probed.retyped(op, made, other)
            if case is not None:
                candidates[op, other.upper()] = case
    answers = probed.each(lambda key: probed.runs(candidates[key]), candidates)
    return [key for key, answer in answers.items() if answer]


def reasons():
    """Pattern and reason of each line of not_generated.txt."""
    lines = (HERE / "not_generated.txt").read_text().splitlines()
    return [tuple(part.strip() for part in line.split(":", 1)) for line in lines
            if line.strip() and not line.startswith("#")]


def spans(numbers):
    """1 to 3, 5"""
    found, numbers = [], sorted(numbers)
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in found) or "-"


def listed(kinds):
    return ", ".join(sorted(kind.lower() for kind in kinds)) or "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path, help="what make_models.py wrote")
    parser.add_argument("--page", type=pathlib.Path, help="write the table to this file")
    args = parser.parse_args()
    versions, types, counts = corpus(args.folder)
    registered = {**dict.fromkeys(graph.OP_NAMES.values(), set()), **probed.versions()}
    more = collections.defaultdict(list)
    for name, kind in more_types(types):
        more[name].append(kind)
    missing, rows = [], []
    for name, has in sorted(registered.items()):
        gaps = [f"{name} version {version}" for version in sorted(has - versions[name])] if counts[name] else []
        if has and not counts[name]:
            gaps = [name]
        missing += gaps + [f"{name} type {kind}" for kind in more[name]]
        rows.append((name, counts[name], spans(has), spans(versions[name]), listed(types[name]), listed(more[name])))
    known, used, unexplained, why = reasons(), set(), [], collections.defaultdict(list)
    for gap in missing:
        pattern = next((pair for pair in known if fnmatch.fnmatchcase(gap, pair[0])), None)
        if pattern is None:
            unexplained.append(gap)
        else:
            used.add(pattern)
            why[pattern[1]].append(gap)
    of_litert = [row for row in rows if row[2] != "-"]
    page = PAGE.format(
        cases=len(list(args.folder.glob("*/model.tflite"))), all=len(rows), litert=len(of_litert),
        tried=sum(row[1] > 0 for row in rows), gaps=len(missing),
        table="\n".join(f"| {' | '.join(map(str, row))} |" for row in of_litert),
        without=", ".join(row[0] for row in rows if row[2] == "-" and not row[1]),
        why="\n".join(f"- {reason}: {', '.join(gaps)}." for reason, gaps in why.items()))
    if args.page:
        args.page.write_text(page)
    for reason, gaps in why.items():
        print(f"not generated, {reason}: {', '.join(gaps)}")
    stale = [pair[0] for pair in known if pair not in used]
    print(f"{len(of_litert)} operators of LiteRT, {sum(row[1] > 0 for row in of_litert)} with cases; "
          f"{len(missing)} versions and types without a case, {len(unexplained)} of them without a reason")
    for gap in unexplained:
        print(f"no case and no reason: {gap}")
    for pattern in stale:
        print(f"no longer needed: {pattern}")
    sys.exit(bool(unexplained or stale))


PAGE = """\
# The corpus, counted

How far the models of [`tests/litert`](../tests/litert/README.md) go through the schema and through what LiteRT 2.3.0 has.
[Its program](../tests/litert/count_models.py) writes this page:

    python tests/litert/count_models.py tests/litert/data --page docs/tflite-corpus.md

*Versions of LiteRT* are those that the interpreter of its wheel finds a kernel for, *of the cases* those of the corpus. *Types* are
the element types of the operator's inputs and outputs in the corpus, *also run* those that no case has and with which LiteRT runs the
operator's smallest case. NumPy, by which values get to LiteRT, has none of 4 or 2 bits and no bfloat16: those occur as constants only.

{cases} cases; the schema has {all} operators, LiteRT kernels of {litert}, the corpus cases of {tried}.

| operator | cases | versions of LiteRT | of the cases | types | also run |
|---|--:|---|---|---|---|
{table}

## Without a kernel in LiteRT

{without}.

## Not generated, and why

{gaps} versions and types.

{why}

## Broken on purpose

[`mutate_models.py`](../tests/litert/mutate_models.py) made 100,000 mutants of the corpus' files of at most 300,000 bytes, and
`litert-judge`'s `mutants` took them through description, import, preparation and a run on both devices (2026-11-25, two processors
with other work). None was a fault: a panic, a step of over two seconds twice, or the end of the process.

| | by structure and by bytes in turn (seed 1) |
|---|--:|
| mutants | 100,000 |
| described | 51,311 |
| imported | 40,681 |
| prepared on `nnhal-cpu`, on `nnhal-reference` | 40,312, 40,312 |
| run on `nnhal-cpu`, on `nnhal-reference` | 39,766, 39,743 |
| faults | 0 |
| most memory of the process, MB | 713 |
"""

if __name__ == "__main__":
    main()
