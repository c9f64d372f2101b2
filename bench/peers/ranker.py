#!/usr/bin/env python3
"""Training a ranker beside xgboost's hist, in one run: seconds of wall time, runs in turn, medians; and NDCG of both on
rows that neither has seen.

    python bench/peers/ranker.py --build BUILD [--rows 10000] [--features 320] [--rounds 300] [--depth 6] [--threads 1]
                                 [--columns 1] [--runs 3] [--lock FILE] [--realtime] [--json]

The rows are the same for both. xgboost's time is xgboost.train's on a DMatrix that stands already; foreloop's holds
everything from the float rows on. --lock: each run holds this file's lock (flock), as other measurements on the machine
may; --realtime: it has real-time priority. Packages: bench/peers/requirements.txt.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import xgboost

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402
import turns  # noqa: E402

GROUP = 50


def make_data(rows, features, seed):
    """Normal rows; grades 0 to 15 of a sum over a tenth of the features, a bend, and noise."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, features), dtype=np.float32)
    total = values[:, ::10].sum(1) / np.sqrt(len(range(0, features, 10))) + 0.5 * np.abs(values[:, 0])
    grades = np.clip(np.round(6 + 2 * total + random.standard_normal(rows)), 0, 15)
    return values, grades.astype(np.float32)


def groups_of(rows):
    return [GROUP] * (rows // GROUP) + ([rows % GROUP] if rows % GROUP else [])


def time_foreloop(settings, folder):
    command = [str(pathlib.Path(settings.build) / "bench" / "bench_ranker"), "--json", "--runs", "1",
               "--rows-file", f"{folder}/rows.f32", "--labels-file", f"{folder}/labels.f32", "--group", str(GROUP)]
    for name in ("rows", "features", "rounds", "depth", "threads", "columns"):
        command += [f"--{name}", str(getattr(settings, name))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["seconds"]


def train_xgboost(settings, data):
    parameters = {"objective": "rank:ndcg", "tree_method": "hist", "max_depth": settings.depth, "eta": 0.1,
                  "min_child_weight": 0, "colsample_bynode": settings.columns, "nthread": settings.threads}
    start = time.perf_counter()
    booster = xgboost.train(parameters, data, settings.rounds)
    return booster, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--features", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--columns", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    turns.add_options(parser)
    parser.add_argument("--json", action="store_true")
    settings = parser.parse_args()
    values, grades = make_data(settings.rows, settings.features, 1)
    other, other_grades = make_data(settings.rows, settings.features, 2)
    groups = groups_of(settings.rows)
    data = xgboost.DMatrix(values, label=grades, nthread=settings.threads)
    data.set_group(groups)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        values.tofile(f"{folder}/rows.f32")
        grades.tofile(f"{folder}/labels.f32")
        for _ in range(settings.runs):
            with turns.turn(settings, os.getpid()):
                ours.append(time_foreloop(settings, folder))
            with turns.turn(settings, os.getpid()):
                booster, seconds = train_xgboost(settings, data)
            theirs.append(seconds)
    library = os.environ.get("FORELOOP_LIBRARY") or pathlib.Path(settings.build) / "src" / "libforeloop.so"
    lib = fl.load(library)
    with lib.train_ranker(values, groups, relevances=grades, rounds=settings.rounds, depth=settings.depth,
                          columns_by_node=settings.columns) as ranker:
        scores = [ranker.predict(other, margin=True)[:, 0], booster.predict(xgboost.DMatrix(other))]
    ndcg = [lib.ranker_ndcg(other, groups, s, relevances=other_grades) for s in scores]
    a, b = np.median(ours), np.median(theirs)
    result = {"rows": settings.rows, "features": settings.features, "rounds": settings.rounds, "depth": settings.depth,
              "threads": settings.threads, "columns": settings.columns, "foreloop": a, "xgboost": b, "ratio": b / a,
              "ndcg": {"foreloop": ndcg[0], "xgboost": ndcg[1]}}
    if settings.json:
        print(json.dumps(result))
        return
    print(f"{settings.rows} rows x {settings.features} features, {settings.rounds} rounds of depth {settings.depth}, "
          f"{settings.threads} thread(s), medians of {settings.runs}")
    print(f"  foreloop {a:8.3f} s   NDCG on unseen groups {ndcg[0]:.4f}")
    print(f"  xgboost  {b:8.3f} s   NDCG on unseen groups {ndcg[1]:.4f}   {b / a:.1f} times as long")


if __name__ == "__main__":
    main()
