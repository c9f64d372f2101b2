#!/usr/bin/env python3
"""An offline replay of searches over measured pools: no TVM, no measuring, deterministic, seconds.

For each operator of train/data that the bundle has not learnt from, its measured schedules are the pool. A search picks
a round of them by the scores, is told their times, refits, and goes on. What counts is the speed of the best one picked so far,
relative to the pool's best. So a change of the model or of the refitting can be judged before it is tried for real.

    python bench/search/replay_pools.py [--model BUNDLE] [--round 8] [--trees 4] [--depth 3] [--all] [--json]

Needs numpy. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "integrations" / "python"), str(ROOT / "train")]
import foreloop_ctypes as fl  # noqa: E402
import replay  # noqa: E402

POINTS = (1, 2, 4, 8, 16, 24, 32, 48)


def natural(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def read_lines(folder):
    """The records of a folder, without empty lines."""
    try:
        text = replay.read_text(folder / "database_tuning_record.json")
    except OSError as error:
        raise SystemExit(f"replay_pools.py: {folder} has a workload.txt and no records to go with it: {error}") from None
    return [line for line in text.splitlines() if line.strip()]


def read_pools(model, folders):
    """(name, workload, actions, sequences, seconds) of each operator: distinct candidates, median times."""
    for folder in folders:
        lines = read_lines(folder)
        actions = model.actions(1 << 20)
        known, sequences, seconds = set(), [], []
        try:
            interned = actions.intern_records("\n".join(lines))
        except fl.Error as error:
            raise SystemExit(f"replay_pools.py: {folder}: {error}") from None
        for line, sequence in zip(lines, interned):
            times = json.loads(line)[1][1]
            if sequence.tobytes() not in known and times:
                known.add(sequence.tobytes())
                sequences.append(sequence)
                time = float(np.median(times))
                seconds.append(time if 0 < time < 1e9 else math.inf)
        if len(sequences) >= 16 and np.isfinite(seconds).any():
            yield folder.name, model.workload((folder / "workload.txt").read_text()), actions, sequences, np.array(seconds)
        else:
            actions.close()


def search(library, model, scorer, workload, sequences, seconds, arguments, refit):
    """The order in which the pool's candidates are picked."""
    picked, left, ranker = [], list(range(len(sequences))), None
    scorer.set_ranker(None)
    rows = scorer.features_batch(workload, sequences)
    while left:
        scores = scorer.score(workload, [sequences[i] for i in left])
        best = [left[i] for i in np.argsort(-scores, kind="stable")[:arguments.round]]
        picked += best
        left = [i for i in left if i not in best]
        if refit and np.isfinite(seconds[picked]).sum() >= 2:
            rounds = int(np.clip(len(picked) * arguments.trees, 4, 256))
            fresh = library.train_ranker(rows[picked], [len(picked)], seconds[picked], objective="pairwise",
                                         pairs=arguments.pairs, pair_count=16, depth=arguments.depth,
                                         eta=arguments.eta, columns_by_node=arguments.columns, rounds=rounds,
                                         start=model.gbdt())
            scorer.set_ranker(fresh)
            if ranker:
                ranker.close()
            ranker = fresh
    scorer.set_ranker(None)
    if ranker:
        ranker.close()
    return picked


def curve(order, seconds):
    """Speed of the best so far over the pool's best, after each of POINTS picks."""
    best = np.minimum.accumulate(seconds[order])
    return [float(seconds.min() / best[min(n, len(best)) - 1]) for n in POINTS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=ROOT / "weights" / "default")
    parser.add_argument("--round", type=natural, default=8, help="candidates that are measured together")
    # As integrations/tvm refits.
    parser.add_argument("--trees", type=float, default=4, help="new trees for each measured candidate (default %(default)s)")
    parser.add_argument("--depth", type=int, default=3, help="of them (default %(default)s)")
    parser.add_argument("--eta", type=float, default=0.1, help="their shrinkage (default %(default)s)")
    parser.add_argument("--columns", type=float, default=0.2, help="share that a split may read (default %(default)s)")
    parser.add_argument("--pairs", choices=["top", "mean"], default="mean", help="they learn from (default %(default)s)")
    parser.add_argument("--all", action="store_true", help="also operators that the bundle has learnt from")
    parser.add_argument("--json", action="store_true", help="one JSON object, with each operator's curves")
    arguments = parser.parse_args()
    library = fl.load()
    with library.model(arguments.model) as model:
        training = model.info["manifest"].get("training", {})
        learnt = set() if arguments.all else set(training.get("operators", ()))
        pools = sorted(p.parent for p in (ROOT / "train" / "data").glob("*/*/workload.txt"))
        if not pools:
            raise SystemExit(f"replay_pools.py: no measured schedules in {ROOT / 'train' / 'data'}")
        folders = [folder for folder in pools if folder.name not in learnt]
        curves = {}
        for name, workload, actions, sequences, seconds in read_pools(model, folders):
            with workload, actions, model.scorer(actions) as scorer:
                chance = np.mean([curve(np.random.default_rng(seed).permutation(len(seconds)), seconds)
                                  for seed in range(20)], axis=0)
                curves[name] = {
                    "refitted": curve(search(library, model, scorer, workload, sequences, seconds, arguments, True), seconds),
                    "model": curve(search(library, model, scorer, workload, sequences, seconds, arguments, False), seconds),
                    "random": chance.tolist()}
        if not curves:
            raise SystemExit(f"replay_pools.py: of {len(pools)} operators the bundle has not learnt from {len(folders)}, and "
                             "none of them has 16 distinct candidates and a time; --all takes the others too")
        means = {method: [float(np.mean([c[method][i] for c in curves.values()])) for i in range(len(POINTS))]
                 for method in ("refitted", "model", "random")}
    if arguments.json:
        print(json.dumps({"points": POINTS, "means": means, "operators": curves}))
        return 0
    print(f"{len(curves)} operators: speed of the best one picked so far, relative to the pool's best")
    print("picked   " + "".join(f"{n:7d}" for n in POINTS))
    for method, values in means.items():
        print(f"{method:9s}" + "".join(f"{value:7.3f}" for value in values))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except fl.Error as error:
        raise SystemExit(f"replay_pools.py: {error}") from None
