#!/usr/bin/env python3
"""Measure schedules of a list of operators on this machine with TVM MetaSchedule.

Every operator is tuned twice into one database: first with random draws of its search space, then with evolutionary
search that learns from them, so that a database holds bad, middling and good schedules. The result is

    OUT/NAME/workload.txt                   the program, as TVMScript
    OUT/NAME/database_tuning_record.json    one record a line: trace, times in seconds, target, arguments
    OUT/NAME/database_workload.json         the same program as TVM's own JSON
    OUT/NAME/meta.json                      name, processor, LLVM's name for it, threads, records, seconds, date

An operator that has its meta.json is done and skipped, so an interrupted run continues where it was. Several collectors
may fill one OUT: each takes operators that no other holds; they search and compile side by side and measure in turn, each
measurement with the cores for itself (as root; otherwise keep the machine quiet).

    python train/collect.py --out /tmp/measured                  everything in OPERATORS
    python train/collect.py --out /tmp/measured dense_384 pool_192
    python train/collect.py --list
"""
import argparse
import datetime
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators to measure (default: all)")
    parser.add_argument("--out", type=Path, help="directory that gets one folder per operator")
    parser.add_argument("--list", action="store_true", help="print the operators and stop")
    parser.add_argument("--random", type=int, default=30, help="records from random draws (default %(default)s)")
    parser.add_argument("--evolved", type=int, default=30, help="records from evolutionary search (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a schedule (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the search (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=0, metavar="SECONDS",
                        help="start no further operator after so long (default: no limit)")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
MEASURING = os.path.join(tempfile.gettempdir(), "foreloop-measuring.lock")
os.environ["TVM_NUM_THREADS"] = str(ARGUMENTS.threads)  # read by TVM's runtime, in the measuring processes too
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads of the cost model must not spin while schedules are timed

import tvm  # noqa: E402  (after the environment is set)
from tvm import te  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.s_tir.meta_schedule.runner.local_runner import default_run_evaluator  # noqa: E402
from tvm.target import Target  # noqa: E402
from tvm.target.codegen import llvm_get_system_cpu  # noqa: E402

from operators import OPERATORS  # noqa: E402


def build(module, target, _parameters):
    """Builds a candidate as TVM's own builder does, but without parsing its tensor intrinsics, which takes 20 s in
    every new process and which no plain f32 schedule uses."""
    from tvm.driver import build as tvm_build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


def take_the_machine():
    """Runs once in a measuring process: real-time scheduling, so that while it measures nothing else runs on the cores
    that it uses, and other work on this machine costs accuracy only by what it leaves in the caches."""
    try:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(50))  # TVM's workers inherit it
    except OSError:  # not root: measure as we are
        pass


def run_alone(module, device, evaluator_config, repeated_arguments):
    """TVM's own evaluator, in turn with the measuring processes of other collectors on this machine."""
    with open(MEASURING, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return default_run_evaluator(module, device, evaluator_config, repeated_arguments)


def processor():
    """The processor's name as Linux gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def measure(name, folder, target, arguments):
    """Tunes operator NAME into FOLDER: random draws, then evolution that starts with what was learnt from them."""
    family, *shape = OPERATORS[name]
    module = tvm.IRModule({"main": te.create_prim_func(family(*shape))})
    folder.mkdir(parents=True)
    (folder / "workload.txt").write_text(module.script().rstrip("\n") + "\n")
    database = ms.database.JSONDatabase(work_dir=str(folder))
    model = ms.cost_model.XGBModel(num_warmup_samples=arguments.random // 2, num_tuning_cores=arguments.threads)
    evolution = ms.search_strategy.EvolutionarySearch(population_size=256, genetic_num_iters=3)  # half of TVM's default
    for strategy, trials in (("replay-trace", arguments.random), (evolution, arguments.evolved)):
        if trials:
            ms.tune_tir(
                mod=module, target=target, work_dir=str(folder), database=database, cost_model=model,
                strategy=strategy, max_trials_global=trials, num_trials_per_iter=trials,
                num_tuning_cores=arguments.threads, seed=arguments.seed,
                builder=ms.builder.LocalBuilder(max_workers=arguments.threads, timeout_sec=60, f_build=build),
                runner=ms.runner.LocalRunner(
                    timeout_sec=60, initializer=take_the_machine, f_run_evaluator=run_alone,
                    evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=60)))
    shutil.rmtree(folder / "logs", ignore_errors=True)


def in_mixed_order(names):
    """A fixed order without regard to family, so that an interrupted collection has something of each."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def main():
    arguments = ARGUMENTS
    if arguments.list:
        print("\n".join(OPERATORS))
        return 0
    unknown = [name for name in arguments.names if name not in OPERATORS]
    if unknown or not arguments.out:
        print("collect.py: " + (f"unknown operator {unknown[0]}; --list names them" if unknown else "--out is missing"),
              file=sys.stderr)
        return 2
    mcpu = llvm_get_system_cpu()
    target = Target({"kind": "llvm", "mcpu": mcpu, "num-cores": arguments.threads})
    arguments.out.mkdir(parents=True, exist_ok=True)
    names, begin = arguments.names or in_mixed_order(OPERATORS), time.time()
    for position, name in enumerate(names):
        folder, partial = arguments.out / name, arguments.out / (name + ".partial")
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
        meta = {"name": name, "cpu": processor(), "mcpu": mcpu, "threads": arguments.threads, "records": records,
                "seconds": round(seconds), "date": datetime.date.today().isoformat()}
        (partial / "meta.json").write_text(json.dumps(meta) + "\n")
        partial.rename(folder)
        partial.with_suffix(".lock").unlink()
        print(f"[{position + 1}/{len(names)}] {name}: {records} records in {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
