"""The package inside of TVM, without measuring: a builder and a runner that only pretend.

- what the search strategy gives to TVM is rejected in at most 5 of 100, and nothing else is replayed;
- a candidate's score as a point is, to the bit, that of the trace that TVM replayed and post-processed;
- the cost model scores as the reader of records does, learns, and gives back what it saved;
- tune_tir and tune_tasks run to the end, are repeatable, and go on from a database;
- a unit of bench/search/tvm_search.py that was interrupted measures only what is missing, and ends as if it had not been.

    python test_foreloop_tvm.py [OPERATOR ...]     default: a few; --all: every operator of train/operators.py

Needs the packages of train/requirements-tvm.txt. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import contextlib
import hashlib
import io
import json
import logging
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "integrations" / "tvm"), str(ROOT / "train"), str(ROOT / "bench" / "search")]
os.environ.setdefault("TVM_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import tvm  # noqa: E402
from tvm import te  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.ir.utils import derived_object  # noqa: E402
from tvm.target import Target  # noqa: E402

import foreloop_tvm  # noqa: E402
import tvm_report  # noqa: E402
import tvm_search  # noqa: E402
from foreloop_tvm.sketches import Sketches  # noqa: E402
from foreloop_tvm.traces import replay, trace_json  # noqa: E402
from operators import OPERATORS  # noqa: E402

TARGET = Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 4})
FEW = ["dense_384", "conv3x3_96", "depthwise_144", "softmax_2048_384", "pool_192", "gap_1280"]
passed = failed = 0


def check(condition, what):
    global passed, failed
    passed, failed = passed + bool(condition), failed + (not condition)
    print("ok   " if condition else "FAILED", what, flush=True)


def module_of(name):
    family, *shape = OPERATORS[name]
    return tvm.IRModule({"main": te.create_prim_func(family(*shape))})


@derived_object
class NoBuilder(ms.builder.PyBuilder):
    """Every candidate is built; the artifact's name stands for its program."""

    def build(self, build_inputs):
        return [ms.builder.BuilderResult(os.path.join(tempfile.mkdtemp(), hashlib.sha256(
            item.mod.script().encode()).hexdigest()), None) for item in build_inputs]


@derived_object
class Done(ms.runner.PyRunnerFuture):
    def __init__(self, result):
        super().__init__()
        self.value = result

    def done(self):
        return True

    def result(self):
        return self.value


@derived_object
class NoRunner(ms.runner.PyRunner):
    """A time that is a function of the program; one in 16 fails."""

    def run(self, runner_inputs):
        results = []
        for item in runner_inputs:
            number = int(os.path.basename(str(item.artifact_path))[:8], 16)
            results.append(Done(ms.runner.RunnerResult(None, "failed") if number % 16 == 0 else
                                ms.runner.RunnerResult([1e-3 * (1 + number % 1000 / 1000)], None)))
        return results


def context_of(module, strategy="replay-trace", seed=3):
    return ms.TuneContext(mod=module, target=TARGET, space_generator="post-order-apply", search_strategy=strategy,
                          num_threads=1, rand_state=seed, logger=logging.getLogger("quiet"))


def check_replays(predictor, name, count=24):
    """What TVM makes of points that the evolution likes and of some at random. (replayed, rejected, moved, wrong)"""
    module = module_of(name)
    context = context_of(module)
    program = predictor.program(context.mod)
    sketches = Sketches(program, context.mod, context.generate_design_space(), 5)
    sketches.evolve(4096, generations=2)
    ranked = [(owner, point) for _, owner, point in sketches.ranked()]
    generator = np.random.default_rng(1)
    chosen = ranked[:count // 3] + [ranked[i] for i in generator.permutation(len(ranked))[:count // 3]]
    chosen += [(owner, sketches.sketches[owner].draw(1)[0])
               for owner in generator.integers(len(sketches.sketches), size=count // 3)]
    result = [len(chosen), 0, 0, 0]
    for owner, point in chosen:
        space = sketches.sketches[owner].space
        schedule = replay(context.mod, space.trace(point), context.space_generator.postprocs)
        if schedule is None:
            result[1] += 1
            continue
        text = trace_json(schedule.trace)
        wanted, got = dict(json.loads(space.trace(point))[1]), dict(json.loads(text)[1])
        if any(got[index] != decision for index, decision in wanted.items()):
            result[2] += 1
            continue
        score = space.score(program.scorer, program.workload, point)
        result[3] += score.tobytes() != program.score(program.actions.intern_records(f"[0,[{text}]]")).tobytes()
    sketches.close()
    return result


def check_operators(predictor, names):
    total = np.zeros(4, int)
    for name in names:
        result = check_replays(predictor, name)
        total += result
        print("     {}: {} replayed, {} rejected, {} moved by TVM, {} scores differ".format(name, *result), flush=True)
    check(total[1] <= 0.05 * total[0], f"TVM rejects {total[1]} of {total[0]} points over {len(names)} operators")
    check(total[2] <= 0.05 * total[0], f"and changes a decision of {total[2]}")
    check(total[3] == 0, "the others score, to the bit, as what TVM made of them")


def check_cost_model(predictor):
    context = context_of(module_of("dense_384"))
    program = predictor.program(context.mod)
    model = foreloop_tvm.CostModel(predictor)
    candidates = []
    for schedule in context.generate_design_space():
        text = trace_json(schedule.trace)
        candidates.append(ms.MeasureCandidate(replay(context.mod, text, context.space_generator.postprocs), []))
        space = predictor.library.space(text, program.actions)
        for point in space.sample(8):
            done = replay(context.mod, space.trace(point), context.space_generator.postprocs)
            if done is not None:
                candidates.append(ms.MeasureCandidate(done, []))
        space.close()
    before = model.predict(context, candidates)
    check(before.dtype == np.float64 and np.isfinite(before).all() and before.std() > 0, "the cost model scores")
    results = [ms.runner.RunnerResult([1e-3 * (i + 1)], None) for i in range(len(candidates) - 1)]
    model.update(context, candidates, results + [ms.runner.RunnerResult(None, "failed")])
    after = model.predict(context, candidates)
    order = lambda scores: np.corrcoef(np.argsort(np.argsort(-scores)), np.arange(len(scores)))[0, 1]  # noqa: E731
    check(order(after) > max(0.5, order(before)), f"it learns ({order(before):.2f} -> {order(after):.2f})")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "measured.npz")
        model.save(path)
        other = foreloop_tvm.CostModel()
        other.load(path)
        check(np.array_equal(other.predict(context, candidates), after), "what was saved gives the same scores")


def tune(folder, names, trials, predictor=None, seed=7, evaluations=4096):
    """The records of a search that only pretends to measure."""
    strategy = foreloop_tvm.SearchStrategy(predictor or foreloop_tvm.Predictor(), evaluations=evaluations, samples=16)
    database = ms.database.JSONDatabase(work_dir=folder)
    for name in names:
        foreloop_tvm.tune_tir(module_of(name), TARGET, folder, trials, predictor=strategy.predictor,
                              strategy=strategy, database=database, builder=NoBuilder(), runner=NoRunner(),
                              num_tuning_cores=1, seed=seed)
    return Path(folder, "database_tuning_record.json").read_text().splitlines()


def check_tuning():
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        one, two = tune(first, ["dense_384"], 48), tune(second, ["dense_384"], 48)
        traces = {json.dumps(json.loads(line)[1][0]) for line in one}
        check(len(one) == 48 and len(traces) == 48, f"48 trials measure 48 distinct candidates ({len(traces)})")
        check(one == two, "the same seed finds the same")
        more = tune(first, ["dense_384"], 16)
        again = {json.dumps(json.loads(line)[1][0]) for line in more}
        check(len(more) == 64 and len(again) == 64, "a second search goes on from the database")
    with tempfile.TemporaryDirectory() as folder:
        lines = tune(folder, ["softmax_2048_384"], 16, evaluations=16)
        check(len(lines) == 16, f"a search may look at few candidates ({len(lines)})")
    with tempfile.TemporaryDirectory() as folder:
        lines = tune(folder, ["add_relu_512_14"], 16)
        check(len(lines) == 1, f"a program with one schedule ends after it ({len(lines)})")
    with tempfile.TemporaryDirectory() as folder:
        tasks = [context_of(module_of(name), seed=11) for name in ("gap_1280", "softmax_2048_384")]
        foreloop_tvm.tune_tasks(tasks=tasks, task_weights=[1.0, 2.0], work_dir=folder, max_trials_global=64,
                                builder=NoBuilder(), runner=NoRunner())
        lines = Path(folder, "database_tuning_record.json").read_text().splitlines()
        check(len(lines) == 64 and len({json.loads(line)[0] for line in lines}) == 2, "tune_tasks tunes two programs")


def check_builder():
    built = foreloop_tvm.local_builder().build([ms.builder.BuilderInput(module_of("dense_384"), TARGET)])
    check(built[0].error_msg is None and os.path.exists(built[0].artifact_path), "local_builder builds a program")
    ms.utils.remove_build_dir(built[0].artifact_path)


class Interrupted(Exception):
    pass


class StoppingBuilder:
    """Raises an exception instead of building more than `most`."""

    def __init__(self, most):
        self.most, self.built = most, 0

    def build(self, build_inputs):
        if self.built + len(build_inputs) > self.most:
            raise Interrupted
        self.built += len(build_inputs)
        return NoBuilder().build(build_inputs)


def search_unit(path, most):
    """(times by method, how many candidates were built) of a unit; times are None when it was interrupted."""
    arguments = argparse.Namespace(methods="foreloop,random", threads=1, out=path.parent, records=path.parent / "records")
    journal, builder = tvm_search.Journal(path), StoppingBuilder(most)
    try:
        unit = tvm_search.run_unit("row_max_512_1024", 0, 32, arguments, builder, NoRunner(), TARGET, journal)
        times = {name: method["seconds"] for name, method in unit["methods"].items()}
        (path.parent / "units").mkdir(exist_ok=True)
        (path.parent / "units" / "row_max.json").write_text(json.dumps(unit))
    except Interrupted:
        times = None
    journal.close(times is not None)
    return times, builder.built


def check_interrupted_unit():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "unit.measured")
        whole, built = search_unit(path, 1000)
        nothing, before = search_unit(path, 40)
        with open(path, "a") as file:
            file.write('["a line that was cut')
        _, between = search_unit(path, 20)
        resumed, after = search_unit(path, 1000)
        check(nothing is None and before and between and before + between + after == built,
              f"an interrupted unit measures what is missing ({before} + {between} + {after} of {built})")
        check(resumed == whole and not path.exists(), "and ends as if it had not been interrupted")
        kept = Path(folder, "records").glob("row_max_512_1024-0-32/*/database_tuning_record.json")
        check({file.parent.name: len(file.read_text().splitlines()) for file in kept} ==
              {name: len(times) for name, times in whole.items()}, "the databases of both methods are kept")
        with contextlib.redirect_stdout(io.StringIO()) as text:
            tvm_report.write(folder)
        best = [f"{1e6 * min(filter(None, times)):.4g} |" for times in whole.values()]
        rows = [line for line in text.getvalue().splitlines() if line.startswith("| row_max_512_1024 | ")]
        check(len(rows) == 3 and all(row.endswith(end) for row, end in zip(rows[1:], best)), "the report has their best times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="OPERATOR")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--replays", action="store_true", help="only what TVM makes of points")
    arguments = parser.parse_args()
    names = arguments.names or (list(OPERATORS) if arguments.all else FEW)
    predictor = foreloop_tvm.Predictor()
    check_operators(predictor, names)
    if not arguments.replays:
        check_cost_model(predictor)
        check_tuning()
        check_builder()
        check_interrupted_unit()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
