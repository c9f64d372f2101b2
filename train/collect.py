#!/usr/bin/env python3
"""Measure schedules of a list of operators on this machine with TVM MetaSchedule.

Every operator is tuned twice into one database: first with random draws of its search space, then with evolutionary
search that learns from them, so that a database holds bad, middling and good schedules. With --searched, candidates follow
that a bundle takes for the best (foreloop_tvm's search, its ranker as it is): a ranker that has not seen them
cannot know where it errs, and a search finds just those places. The result is

    OUT/NAME/workload.txt                   the program, as TVMScript
    OUT/NAME/database_tuning_record.json    one record a line: trace, times in seconds, target, arguments
    OUT/NAME/database_workload.json         the same program as TVM's own JSON
    OUT/NAME/meta.json                      name, processor, LLVM's name for it, threads, records, seconds, date

An operator that has its meta.json is done and skipped, so an interrupted run continues where it was. Several collectors
may fill one OUT: each takes operators that no other holds; they search and compile side by side and measure in turn, each
measurement with the cores for itself (as root; otherwise keep the machine quiet).

    python train/collect.py --out /tmp/measured                  everything in OPERATORS
    python train/collect.py --out /tmp/measured dense_384 pool_192
    python train/collect.py --programs /tmp/programs     only workload.txt of each: what split.py needs
    python train/collect.py --list
"""
import argparse
import contextlib
import datetime
import fcntl
import json
import os
import shutil
import sys
import time
from pathlib import Path

import measuring

sys.path.insert(0, str(measuring.ROOT / "integrations" / "tvm"))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators, or folders with workload.txt (default: all)")
    parser.add_argument("--out", type=Path, help="directory that gets one folder per operator")
    parser.add_argument("--programs", type=Path, metavar="DIR", help="write the programs there, measure nothing")
    parser.add_argument("--list", action="store_true", help="print the operators and stop")
    parser.add_argument("--random", type=int, default=30, help="records from random draws (default %(default)s)")
    parser.add_argument("--evolved", type=int, default=30, help="records from evolutionary search (default %(default)s)")
    parser.add_argument("--searched", type=int, default=0, help="records that a bundle's search chooses (default: none)")
    parser.add_argument("--bundle", default=str(measuring.ROOT / "weights" / "default"), help="(default %(default)s)")
    parser.add_argument("--suffix", default="", help="of the folders' names, for a second set of the same operators")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of a record (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a schedule (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the search (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=0, metavar="SECONDS",
                        help="start no further operator after so long (default: no limit)")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
measuring.prepare(ARGUMENTS.threads)

import tvm  # noqa: E402  (after the environment is set)
from tvm import te  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402

from operators import OPERATORS  # noqa: E402

SEARCHED_EVALUATIONS = 8192  # more than a search does in a round, so that it finds where the ranker errs


def program_of(name):
    """The module of an operator of OPERATORS, or of a folder with workload.txt."""
    if name in OPERATORS:
        family, *shape = OPERATORS[name]
        return tvm.IRModule({"main": te.create_prim_func(family(*shape))})
    return tvm.script.from_source((Path(name) / "workload.txt").read_text())


def write_program(name, folder):
    """The module of operator NAME, written to FOLDER as workload.txt."""
    module = program_of(name)
    folder.mkdir(parents=True)
    (folder / "workload.txt").write_text(module.script().rstrip("\n") + "\n")
    return module


def measure(name, folder, target, arguments):
    """Tunes operator NAME into FOLDER: random draws, then evolution that starts with what was learnt from them, then
    what a bundle's search chooses."""
    module = write_program(name, folder)
    database = ms.database.JSONDatabase(work_dir=str(folder))
    builder, runner = measuring.builder_and_runner(arguments.threads, arguments.repeats)

    def tune(strategy, trials, model):
        ms.tune_tir(
            mod=module, target=target, work_dir=str(folder), database=database, cost_model=model,
            strategy=strategy, max_trials_global=trials, num_trials_per_iter=trials,
            num_tuning_cores=arguments.threads, seed=arguments.seed,
            builder=builder, runner=runner)

    model = "random"
    if arguments.evolved:
        model = ms.cost_model.XGBModel(num_warmup_samples=arguments.random // 2, num_tuning_cores=arguments.threads)
    if arguments.random:
        tune("replay-trace", arguments.random, model)
    if arguments.evolved:  # half of TVM's default population
        tune(ms.search_strategy.EvolutionarySearch(population_size=256, genetic_num_iters=3), arguments.evolved, model)
    if arguments.searched:
        import foreloop_tvm

        # Of an operator its own, closed behind it: it holds the bundle and all actions of the search.
        with contextlib.closing(foreloop_tvm.Predictor(arguments.bundle, hardware=None, refit=False)) as predictor:
            tune(foreloop_tvm.SearchStrategy(predictor, evaluations=SEARCHED_EVALUATIONS, neighbours=0, chance=0.25),
                 arguments.searched, "random")
    shutil.rmtree(folder / "logs", ignore_errors=True)


def main():
    arguments = ARGUMENTS
    if arguments.list:
        print("\n".join(OPERATORS))
        return 0
    unknown = [name for name in arguments.names if name not in OPERATORS and not (Path(name) / "workload.txt").exists()]
    if arguments.programs and not unknown:
        for name in arguments.names or OPERATORS:
            write_program(name, arguments.programs / Path(name).name)
        return 0
    if unknown or not arguments.out:
        print("collect.py: " + (f"unknown operator {unknown[0]}; --list names them" if unknown else "--out is missing"),
              file=sys.stderr)
        return 2
    target = measuring.this_target(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    names, begin = arguments.names or measuring.in_mixed_order(OPERATORS), time.time()
    for position, name in enumerate(names):
        folder = arguments.out / (Path(name).name + arguments.suffix)
        partial = arguments.out / (folder.name + ".partial")
        if arguments.time_limit and time.time() - begin > arguments.time_limit:
            print("time limit: stopped before", name)
            break
        claim = open(partial.with_suffix(".lock"), "w")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another collector is at it
            continue
        if (folder / "meta.json").exists():
            partial.with_suffix(".lock").unlink()
            continue
        shutil.rmtree(partial, ignore_errors=True)
        print(f"[{position + 1}/{len(names)}] {name} ...", flush=True)
        start = time.time()
        measure(name, partial, target, arguments)
        seconds = time.time() - start
        records = sum(1 for _ in open(partial / "database_tuning_record.json"))
        meta = {"name": folder.name, "cpu": measuring.processor(), "mcpu": str(target.attrs["mcpu"]),
                "threads": arguments.threads, "records": records, "seconds": round(seconds),
                "date": datetime.date.today().isoformat()}
        (partial / "meta.json").write_text(json.dumps(meta) + "\n")
        partial.rename(folder)
        partial.with_suffix(".lock").unlink()
        print(f"[{position + 1}/{len(names)}] {name}: {records} records in {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
