#!/usr/bin/env python3
"""Scores measured schedules with a bundle through the C library alone, and prints how good the ranking is.

    python train/evaluate.py --bundle weights/default train/data/emeraldrapids

With --test-only only the operators that the default split keeps out of training (dataset.TEST).
"""
import argparse
import json
import sys

import dataset
import metrics


def evaluate(library, bundle, operators, hardware=None):
    """{operator: metrics} and the interning report of the bundle on the given operators."""
    rows = {}
    with library.model(bundle) as model, model.actions() as actions:
        with model.scorer(actions, hardware) as scorer:
            for operator in operators:
                with model.workload(operator.text) as workload:
                    sequences = [actions.intern(candidate.actions) for candidate in operator.candidates]
                    scores = scorer.score(workload, sequences)
                rows[operator.name] = {**metrics.of_workload(operator.times, scores), "schedules": len(scores),
                                       "random": metrics.random_order(operator.times)}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--bundle", default="weights/default", help="directory or packed file (default %(default)s)")
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    parser.add_argument("--test-only", action="store_true", help="only operators that training leaves out")
    parser.add_argument("--json", action="store_true", help="one JSON object for each operator, and the mean")
    arguments = parser.parse_args()
    library = dataset.fl.load(arguments.library)
    operators = dataset.read_operators(library, arguments.data)
    if arguments.test_only:
        operators = dataset.split(operators)[1]
    rows = evaluate(library, arguments.bundle, operators)
    rows["mean"] = {**metrics.mean(rows.values()), "schedules": sum(row["schedules"] for row in rows.values()),
                    "random": metrics.mean([row["random"] for row in rows.values()])}
    if not arguments.json:
        print(f"{'operator':<20} {'n':>5}  {'top-1':>6} {'top-5':>6} {'pairs':>6}   random order")
    for name, row in rows.items():
        if arguments.json:
            print(json.dumps({"operator": name, **row}))
        else:
            print(f"{name:<20} {row['schedules']:>5}  {row['top1']:6.3f} {row['top5']:6.3f} {row['pairwise']:6.3f}   "
                  + metrics.show(row["random"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
