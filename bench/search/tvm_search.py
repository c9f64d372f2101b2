#!/usr/bin/env python3
"""Searches in TVM by several methods, side by side on this machine: best measured latency against trials.

    python bench/search/tvm_search.py --out /tmp/tvm-search              all subgraphs, seeds and methods, to 64 trials
    python bench/search/tvm_search.py --out /tmp/tvm-search --long       the first two of them to 1,000
    python bench/search/tvm_search.py --out /tmp/tvm-search --again      the best of units that are done once more (--records)
    python bench/search/tvm_search.py --out /tmp/tvm-search --report     only figures and plots of what is there

Methods:

    foreloop      foreloop_tvm's search strategy, 8 candidates a round
    metaschedule  MetaSchedule as tune_tir comes: evolutionary search, XGBModel, 64 a round
    pretrained    the same, its model trained before on the schedules that the bundle has learnt from
    random        random draws of MetaSchedule's space

One subgraph and seed is a unit: its methods take turns, 8 candidates each, so that what happens to the machine happens
to all. A candidate that TVM cannot build or run is a trial. At the end what was each method's best candidate after 1, 2, 4 ...
trials is measured again, all in turn: only so can what was found early be compared with what was found an hour later. A
unit that is done has its file OUT/units/SUBGRAPH-SEED-TRIALS.json and is not run again. What an interrupted one has measured
stands in a .measured file beside it: the next run searches again from the beginning, which takes the methods' own time, and
measures only what is not there. Several processes may share an OUT. Needs train/requirements-tvm.txt; measuring is
train/measuring.py.
"""
import argparse
import datetime
import fcntl
import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "train"), str(ROOT / "integrations" / "tvm")]

import measuring  # noqa: E402
import tvm_report  # noqa: E402

METHODS = ["foreloop", "metaschedule", "pretrained", "random"]
CHUNK = 8


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("subgraphs", nargs="*", metavar="SUBGRAPH", help="default: those of tvm_subgraphs.txt")
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default=",".join(METHODS), help="default %(default)s")
    parser.add_argument("--long", action="store_true", help="the first two subgraphs, 1,000 trials, one seed")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a schedule (default: all)")
    parser.add_argument("--time-limit", type=float, default=0, metavar="SECONDS", help="start no unit after so long")
    parser.add_argument("--features", type=Path, help="cache of MetaSchedule's features (default: OUT/per_store)")
    parser.add_argument("--records", type=Path, help="keep the methods' databases of measured schedules in this folder")
    parser.add_argument("--again", action="store_true", help="only measure the best candidates of the kept databases again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser.parse_args()


def listed_subgraphs():
    lines = (ROOT / "bench" / "search" / "tvm_subgraphs.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


# ---- Methods


class Method:
    """A search, one chunk of measured candidates at a time."""

    def __init__(self, name, strategy, cost_model, a_round, module, target, trials, threads, seed):
        from tvm.s_tir import meta_schedule as ms

        self.name, self.strategy, self.cost_model, self.round = name, strategy, cost_model, a_round
        self.trials = trials
        self.context = ms.TuneContext(mod=module, target=target, space_generator="post-order-apply",
                                      search_strategy=strategy, num_threads=threads, rand_state=seed)
        self.folder = tempfile.TemporaryDirectory()
        self.database = ms.database.JSONDatabase(work_dir=self.folder.name)
        self.workload = self.database.commit_workload(self.context.mod)
        self.seconds, self.waiting, self.batch, self.results = [], [], [], []
        self.best, self.ended = math.inf, False
        self.outside = {"wall": 0.0, "cpu": 0.0}
        self._outside(lambda: self.context.pre_tuning(trials, a_round, None, self.database, cost_model))

    def _outside(self, work):
        """Does something that is neither building nor running."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.outside["wall"] += time.perf_counter() - wall
        self.outside["cpu"] += time.process_time() - cpu
        return result

    def chunk(self):
        """The next candidates to be measured; empty when there are none."""
        if not self.waiting and not self.ended:
            self.batch = list(self._outside(self.context.generate_measure_candidates) or [])
            self.waiting, self.results = list(self.batch), []
            self.ended = not self.batch
        chunk, self.waiting = self.waiting[:CHUNK], self.waiting[CHUNK:]
        return chunk

    def take(self, chunk, results, target):
        """Their results."""
        for candidate, result in zip(chunk, results):
            self._take(candidate, result, target)
        if chunk and not self.waiting:
            self._outside(self._learn)

    def _take(self, candidate, result, target):
        from tvm.s_tir import meta_schedule as ms

        seconds = median_seconds(result)
        self.results.append(result)
        self.seconds.append(seconds if math.isfinite(seconds) else None)
        self.best = min(self.best, seconds)
        self.database.commit_tuning_record(ms.database.TuningRecord(
            candidate.sch.trace, self.workload, result.run_secs if math.isfinite(seconds) else [1e10], target,
            candidate.args_info))

    def _learn(self):
        self.context.notify_runner_results(self.batch, self.results)
        if self.cost_model is not None:
            self.cost_model.update(self.context, self.batch, self.results)

    def close(self, keep=None):
        """keep: a folder to which MetaSchedule's database of what was measured goes."""
        self.context.post_tuning()
        if keep:
            shutil.copytree(self.folder.name, keep, dirs_exist_ok=True)
        self.folder.cleanup()
        if hasattr(self.strategy, "predictor"):
            self.strategy.predictor.close()


def median_seconds(result):
    if result.error_msg is not None or not result.run_secs:
        return math.inf
    seconds = sorted(float(second) for second in result.run_secs)
    return seconds[len(seconds) // 2] if 0 < seconds[0] < 1e9 else math.inf


def measure(candidates, builder, runner, target):
    """RunnerResults of candidates."""
    from tvm.s_tir import meta_schedule as ms

    built = builder.build([ms.builder.BuilderInput(candidate.sch.mod, target) for candidate in candidates])
    results = [ms.runner.RunnerResult(None, "not built") if item.error_msg is not None else None for item in built]
    places = [i for i, result in enumerate(results) if result is None]
    futures = runner.run([ms.runner.RunnerInput(built[i].artifact_path, target.kind.name, candidates[i].args_info)
                          for i in places])
    for i, future in zip(places, futures):
        results[i] = future.result()
    for item in built:
        if item.artifact_path is not None:
            ms.utils.remove_build_dir(item.artifact_path)
    return results


class Journal:
    """Measurements of a unit, kept as they come, so that a unit that was interrupted need not measure them again."""

    def __init__(self, path):
        self.path, self.known, self.machine = path, {}, measuring.processor()
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            try:
                key, seconds = json.loads(line)
            except ValueError:  # cut short
                continue
            self.known.setdefault(key, []).append(seconds)
        self.file = open(path, "a")
        if text and not text.endswith("\n"):
            self.file.write("\n")

    def key(self, method, candidate):
        """What another machine has measured is another measurement."""
        return hashlib.sha256(f"{self.machine} {method.name} {candidate.sch.trace}".encode()).hexdigest()[:32]

    def measure(self, chunks, builder, runner, target):
        """RunnerResults of chunks, pairs of a method and its candidates, one list for all."""
        from tvm.s_tir import meta_schedule as ms

        wanted = [(self.key(method, candidate), candidate) for method, chunk in chunks for candidate in chunk]
        results = [None] * len(wanted)
        for i, (key, _) in enumerate(wanted):
            if self.known.get(key):
                seconds = self.known[key].pop(0)
                results[i] = ms.runner.RunnerResult(seconds, None if seconds else "failed before")
        places = [i for i, result in enumerate(results) if result is None]
        # Together, because the builder starts new processes each time, and they take long to load TVM.
        new = measure([wanted[i][1] for i in places], builder, runner, target) if places else []
        for i, result in zip(places, new):
            results[i] = result
            ran = math.isfinite(median_seconds(result))
            self.file.write(json.dumps([wanted[i][0], [float(s) for s in result.run_secs] if ran else None]) + "\n")
        self.file.flush()
        return results

    def close(self, unit_is_kept):
        self.file.close()
        if unit_is_kept:
            self.path.unlink()


def best_after(folder, trials):
    """{number of trials: line of the fastest record so far} of a method's database, for tvm_report.POINTS."""
    best, line, found = math.inf, None, {}
    lines = (folder / "database_tuning_record.json").read_text().splitlines()
    for number in range(1, trials + 1):
        if number <= len(lines):  # else it has ended early
            seconds = tvm_report.median(json.loads(lines[number - 1])[1][1])
            if seconds < best:
                best, line = seconds, lines[number - 1]
        if number in tvm_report.POINTS and line and best < 1e9:
            found[number] = line
    return found


def measure_again(folders, module, trials, builder, runner, target):
    """{method: {number of trials: [seconds]}} of the candidates that were the best; `folders`: the methods' databases."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.schedule import Schedule, Trace

    best = {name: best_after(folder, trials) for name, folder in folders.items()}
    lines, candidates = list(dict.fromkeys(line for own in best.values() for line in own.values())), []
    for line in lines:
        schedule = Schedule(module, seed=1, debug_mask="none", error_render_level="none")
        Trace.apply_json_to_schedule(json.loads(line)[1][0], schedule)
        candidates.append(ms.MeasureCandidate(schedule, ms.arg_info.ArgInfo.from_entry_func(schedule.mod, True)))
    times = {line: [] for line in lines}
    for line, result in zip(3 * lines, measure(3 * candidates, builder, runner, target)):
        times[line].append(median_seconds(result))
    return {name: {str(n): [s for s in times[line] if math.isfinite(s)] for n, line in own.items()}
            for name, own in best.items()}


def make_method(name, module, target, arguments, trials, seed):
    """One of METHODS, ready to be measured."""
    from tvm.s_tir import meta_schedule as ms

    threads = arguments.threads
    if name == "foreloop":
        import foreloop_tvm

        predictor = foreloop_tvm.Predictor(hardware=None)
        strategy, model, a_round = foreloop_tvm.SearchStrategy(predictor), None, 8
    elif name == "random":
        strategy, model, a_round = ms.search_strategy.ReplayTrace(), None, CHUNK
    else:
        strategy, a_round = ms.search_strategy.EvolutionarySearch(), 64
        model = ms.cost_model.XGBModel(num_tuning_cores=threads)
        if name == "pretrained":
            model.load(str(arguments.out / "pretrained.tar"))
    return Method(name, strategy, model, a_round, module, target, trials, threads, seed)


# ---- What MetaSchedule's model learns before


def learnt_operators():
    """The operators that the default bundle has learnt from."""
    return set(json.loads((ROOT / "weights" / "default" / "model.json").read_text())["training"]["operators"])


def pretrain(arguments):
    """OUT/pretrained.tar: MetaSchedule's model, trained on the schedules that the bundle has learnt from."""
    import numpy as np
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.cost_model.xgb_model import FeatureGroup

    import replay

    path, cache = arguments.out / "pretrained.tar", arguments.features or arguments.out / "per_store"
    if path.exists():
        return
    learnt = learnt_operators()
    folders = [folder for folder in replay.operator_folders([*(ROOT / "train" / "data").glob("*/"),
                                                             ROOT / "examples" / "data"]) if folder.name in learnt]
    sys.path.insert(0, str(ROOT / "train" / "peers"))
    import per_store

    cache.mkdir(parents=True, exist_ok=True)
    model = ms.cost_model.XGBModel(num_tuning_cores=arguments.threads)
    for number, folder in enumerate(folders):
        file = cache / f"{folder.name}.npz"
        if not file.exists():
            print(f"features of {folder.name} ({number + 1}/{len(folders)}) ...", flush=True)
            np.savez_compressed(file, **per_store.extract(folder, model.extractor))
        stored = np.load(file)
        records = replay.read_text(folder / "database_tuning_record.json").splitlines()
        costs = np.array([np.median(json.loads(records[line])[1][1]) for line in stored["lines"]], np.float32)
        features = [stored["rows"][a:b] for a, b in zip(stored["first"], stored["first"][1:])]
        usable = [i for i, rows in enumerate(features) if len(rows)]
        model.data[folder.name] = FeatureGroup(folder.name, [features[i] for i in usable], costs[usable])
        model.data_size += len(usable)
    print(f"training MetaSchedule's model on {model.data_size} schedules of {len(model.data)} operators ...", flush=True)
    groups = list(model.data.values())
    model._train(xs=[rows for group in groups for rows in group.features],
                 ys=np.concatenate([group.min_cost / group.costs for group in groups]))
    model.save(str(path.with_suffix(".partial.tar")))
    path.with_suffix(".partial.tar").rename(path)


# ---- Units


def module_of(name):
    import tvm
    from tvm import te
    from operators import OPERATORS

    family, *shape = OPERATORS[name]
    return tvm.IRModule({"main": te.create_prim_func(family(*shape))})


def write_unit(path, unit):
    path.with_suffix(".partial").write_text(json.dumps(unit) + "\n")
    path.with_suffix(".partial").rename(path)


def run_unit(name, seed, trials, arguments, builder, runner, target, journal):
    """All methods on one subgraph with one seed."""
    import tvm

    import split

    module = module_of(name)
    signature = split.text_of(split.signature(module.script()))
    if name in learnt_operators() or signature in json.loads(
            (ROOT / "weights" / "default" / "model.json").read_text())["training"].get("signatures", []):
        raise SystemExit(f"tvm_search.py: the default bundle has learnt from {name}: choose another subgraph")
    methods = [make_method(method, module, target, arguments, trials, 1000 * seed + 17)
               for method in arguments.methods.split(",")]
    # The order changes with the seed, so that none always comes first.
    methods = methods[seed % len(methods):] + methods[:seed % len(methods)]
    begin = time.time()
    while True:
        chunks = [method.chunk() for method in methods]
        if not any(chunks):
            break
        results = journal.measure(list(zip(methods, chunks)), builder, runner, target)
        for method, chunk in zip(methods, chunks):
            method.take(chunk, results[:len(chunk)], target)
            results = results[len(chunk):]
        done = "  ".join(f"{m.name} {len(m.seconds)}: {m.best * 1e3:.3f} ms" for m in methods)
        print(f"{name}, seed {seed}, {time.time() - begin:.0f} s:  {done}", flush=True)
    again = measure_again({m.name: Path(m.folder.name) for m in methods}, module, trials, builder, runner, target)
    unit = {"subgraph": name, "signature": signature, "seed": seed, "trials": trials, "cpu": measuring.processor(),
            "mcpu": str(target.attrs["mcpu"]), "threads": arguments.threads,
            "date": datetime.date.today().isoformat(), "tvm": tvm.__version__, "methods": {}}
    for method in methods:
        if hasattr(method.strategy, "predictor"):
            unit["bundle"] = f"{method.strategy.predictor.model.info['fingerprint']:016x}"
        unit["methods"][method.name] = {
            "seconds": method.seconds, "again": again[method.name], "outside": method.outside,
            "statistics": getattr(method.strategy, "statistics", None)}
        method.close(arguments.records and arguments.records / f"{name}-{seed}-{trials}" / method.name)
    return unit


def run_units(arguments):
    measuring.prepare(arguments.threads)
    names = arguments.subgraphs or (listed_subgraphs()[:2] if arguments.long else listed_subgraphs())
    trials, seeds = (1000, 1) if arguments.long else (arguments.trials, arguments.seeds)
    folder, begin = arguments.out / "units", time.time()
    folder.mkdir(parents=True, exist_ok=True)
    import tvm.s_tir.tensor_intrin  # noqa: F401  (a second for each context otherwise)

    if "pretrained" in arguments.methods.split(","):
        pretrain(arguments)
    target = measuring.this_target(arguments.threads)
    builder, runner = measuring.builder_and_runner(arguments.threads, repeats=3)
    for seed in range(seeds):
        for name in names:
            path = folder / f"{name}-{seed}-{trials}.json"
            if arguments.time_limit and time.time() - begin > arguments.time_limit:
                print("time limit: stopped before", path.stem)
                return
            with open(path.with_suffix(".lock"), "w") as claim:
                try:
                    fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:  # another process is at it
                    continue
                if not path.exists():
                    journal = Journal(path.with_suffix(".measured"))
                    try:
                        unit = run_unit(name, seed, trials, arguments, builder, runner, target, journal)
                        write_unit(path, unit)
                    finally:
                        journal.close(path.exists())
                path.with_suffix(".lock").unlink(missing_ok=True)


def run_again(arguments):
    """The best candidates of each unit whose databases were kept, into its file."""
    measuring.prepare(arguments.threads)
    target = measuring.this_target(arguments.threads)
    builder, runner = measuring.builder_and_runner(arguments.threads, repeats=3)
    for path in sorted((arguments.out / "units").glob("*.json")):
        unit, kept = json.loads(path.read_text()), arguments.records / path.stem
        if not kept.exists():
            continue
        if unit["cpu"] != measuring.processor():
            raise SystemExit(f"tvm_search.py: {path.stem} was measured on {unit['cpu']}: another machine's times say nothing of it")
        again = measure_again({name: kept / name for name in unit["methods"]}, module_of(unit["subgraph"]), unit["trials"],
                              builder, runner, target)
        for name, own in again.items():
            unit["methods"][name]["again"] = own
        write_unit(path, unit)
        print("measured again:", path.stem, flush=True)


def main():
    arguments = parse_arguments()
    if arguments.again and not arguments.records:
        raise SystemExit("tvm_search.py: --again takes the candidates from --records FOLDER")
    if arguments.again:
        run_again(arguments)
    elif not arguments.report:
        run_units(arguments)
    return tvm_report.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
