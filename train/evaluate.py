#!/usr/bin/env python3
"""Scores measured schedules with a bundle through the C library alone, and prints how good the ranking is.

    python train/evaluate.py --bundle weights/default train/data/*            the validation part of the split
    python train/evaluate.py --bundle weights/default --test train/data/*     the test part and the family never seen
    python train/evaluate.py --bundle bundle --all DATA                       whatever is given

Everything is chosen on the validation part; the test part is looked at once for each bundle that is released. Operators
that the bundle's manifest lists as its training operators are left out, and so are test pools with fewer than
dataset.MIN_POOL usable candidates. metrics.py says what the columns mean.
"""
import argparse
import json
import math
import sys

import numpy as np

import dataset
import metrics
import split

COLUMNS = (("top1", "top-1"), ("top5", "top-5"), ("top10", "top-10"), ("pairwise", "pairs"), ("ndcg10", "ndcg10"),
           ("regret8", "regr-8"), ("regret16", "regr-16"), ("regret32", "regr-32"), ("regret64", "regr-64"))


def score(library, bundle, operators, hardware=None):
    """The scores of each operator's candidates, a list of arrays."""
    result = []
    with library.model(bundle) as model, model.actions() as actions:
        with model.scorer(actions, hardware) as scorer:
            for operator in operators:
                with model.workload(operator.text) as workload:
                    sequences = [actions.intern(candidate.actions) for candidate in operator.candidates]
                    result.append(scorer.score(workload, sequences))
    return result


def evaluate(library, bundle, operators, hardware=None):
    """{operator: metrics}, random order and noise ceiling beside them."""
    return {operator.name: row_of(operator, scores)
            for operator, scores in zip(operators, score(library, bundle, operators, hardware))}


def row_of(operator, scores):
    """The table's row of one operator for any model's scores."""
    repeats = [candidate.repeats for candidate in operator.candidates]
    steady = min(map(len, repeats)) > 1
    return {**metrics.of_workload(operator.times, scores), "schedules": len(scores), "family": operator.family,
            "machine": operator.machine, "random": metrics.random_order(operator.times),
            "ceiling": metrics.ceiling([row[:min(map(len, repeats))] for row in repeats]) if steady else None}


def summary(rows):
    """{label: (means, intervals)} of the model, random order and ceiling."""
    tables = {"model": rows, "random order": [row["random"] for row in rows],
              "noise ceiling": [row["ceiling"] for row in rows if row["ceiling"]]}
    return {label: (metrics.mean(table), metrics.intervals(table)) for label, table in tables.items() if table}


def seen_by(library, bundle):
    """(names, signatures) of the operators that the bundle was trained on, by its manifest."""
    with library.model(bundle) as model:
        training = model.info["manifest"].get("training", {})
    return frozenset(training.get("operators", ())), frozenset(map(split.key_of, training.get("signatures", ())))


def cells(row):
    return " ".join("     -" if math.isnan(row[name]) else f"{row[name]:6.3f}" for name, _ in COLUMNS)


def print_table(title, rows):
    width = max([len(name) for name in rows] + [24])
    print(f"\n{title}: {len(rows)} operators, {sum(row['schedules'] for row in rows.values())} schedules")
    print(f"{'operator':<{width}} {'n':>4} " + " ".join(f"{head:>6}" for _, head in COLUMNS)
          + "   random top-1/5, pairs")
    for name, row in sorted(rows.items(), key=lambda item: (item[1]["family"], item[0])):
        print(f"{name:<{width}} {row['schedules']:>4} {cells(row)}   "
              + metrics.show(row["random"]))
    for label, (means, intervals) in summary(list(rows.values())).items():
        print(f"{label:<{width}}      {cells(means)}   sums {metrics.show(means, metrics.SUMS)}")
        for bound, word in ((0, "from"), (1, "to")):
            low = {name: pair[bound] for name, pair in intervals.items()}
            print(f"{'    ' + word:<{width}}      {cells(low)}        {metrics.show(low, metrics.SUMS)}")


def remeasured(operators):
    """Ceiling by a second measurement (remeasure.py), of operators that have one."""
    rows = []
    for operator in operators:
        path = operator.folder / "remeasured.json"
        if path.exists():
            again = {int(line): times for line, times in json.loads(path.read_text()).items()}
            pairs = [(c.seconds, np.median(again[c.line])) for c in operator.candidates if c.line in again]
            if len(pairs) > 2:
                rows.append(metrics.ceiling(pairs))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--bundle", default="weights/default", help="directory or packed file (default %(default)s)")
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    parser.add_argument("--split", default=split.TABLE, help="table of the parts (default %(default)s)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--test", action="store_true", help="the test part and the family never seen")
    which.add_argument("--all", action="store_true", help="all operators given, whatever their part")
    parser.add_argument("--json", action="store_true", help="one JSON object for each operator, and for each mean")
    arguments = parser.parse_args()
    library = dataset.fl.load(arguments.library)
    operators = dataset.read_operators(library, arguments.data)
    names, signatures = seen_by(library, arguments.bundle)
    seen = [operator for operator in operators if operator.name in names or operator.signature in signatures]
    fresh = [operator for operator in operators if not (operator.name in names or operator.signature in signatures)]
    parts = {"all": fresh} if arguments.all else dataset.assign(fresh, arguments.split)
    wanted = ("all",) if arguments.all else ("test", "family") if arguments.test else ("validation",)
    if seen:
        print("left out, in the bundle's training set: " + ", ".join(operator.name for operator in seen),
              file=sys.stderr)
    looked = 0
    for part in wanted:
        least = dataset.MIN_POOL if part in ("test", "family") else 2
        short = [operator for operator in parts[part] if len(operator.candidates) < least]
        tested = [operator for operator in parts[part] if len(operator.candidates) >= least]
        if short:
            print(f"left out, fewer than {least} usable candidates: " + ", ".join(o.name for o in short), file=sys.stderr)
        if not tested:
            print(f"{part}: no operators", file=sys.stderr)
            continue
        rows = evaluate(library, arguments.bundle, tested)
        looked += len(rows)
        if arguments.json:
            for name, row in rows.items():
                print(json.dumps(metrics.json_ready({"part": part, "operator": name, **row})))
            for label, (means, intervals) in summary(list(rows.values())).items():
                print(json.dumps(metrics.json_ready({"part": part, "mean": label, **means, "intervals": intervals})))
        else:
            print_table(part, rows)
    again = remeasured(operators)
    if again and not arguments.json:
        print(f"\na second measurement of some schedules of {len(again)} operators ranks them "
              + metrics.show(metrics.mean(again)) + " (top-1/top-5/pairs)")
    return 0 if looked else 1


if __name__ == "__main__":
    sys.exit(dataset.run(main))
