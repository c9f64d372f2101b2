"""The package inside of TVM, without measuring: a builder and a runner that only pretend.

- what the search strategy gives to TVM is rejected in at most 5 of 100, and nothing else is replayed;
- a candidate's score as a point is, to the bit, that of the trace that TVM replayed and post-processed;
- the cost model scores as the reader of records does, learns, and gives back what it saved;
- a file of what was measured is taken whole or not at all, and once; what was closed is not used any more;
- tune_tir and tune_tasks run to the end, are repeatable, and go on from a database of the same target;
- a small space is measured to its end, so are spaces written by hand; a sketch that is not searched is told of;
- bench/search/replay_pools.py tells its folders' faults;
- a unit of bench/search/tvm_search.py that was interrupted measures only what is missing, and ends as if it had not been.

    python test_foreloop_tvm.py [OPERATOR ...]     default: a few; --all: every operator of train/operators.py

Needs the packages of train/requirements-tvm.txt. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import contextlib
import hashlib
import io
import itertools
import json
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "integrations" / "tvm"), str(ROOT / "train"), str(ROOT / "bench" / "search")]
os.environ.setdefault("TVM_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import tvm  # noqa: E402
from tvm import te, topi  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.ir.utils import derived_object  # noqa: E402
from tvm.target import Target  # noqa: E402

import foreloop_tvm  # noqa: E402
import foreloop_tvm.predictor  # noqa: E402
import replay_pools  # noqa: E402
import tvm_report  # noqa: E402
import tvm_search  # noqa: E402
from foreloop_tvm.binding import fl  # noqa: E402
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


@derived_object
class FailingRunner(ms.runner.PyRunner):
    def run(self, runner_inputs):
        return [Done(ms.runner.RunnerResult(None, "failed")) for _ in runner_inputs]


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


def raises(kind, function, *arguments, **options):
    """Whether a call raises just this."""
    try:
        function(*arguments, **options)
    except Exception as error:
        return type(error) is kind
    return False


def measured_conv():
    """(text, records' lines, times) of a committed database."""
    folder = ROOT / "examples" / "data" / "conv3x3_96"
    lines = (folder / "database_tuning_record.json").read_text().splitlines()[:24]
    return (folder / "workload.txt").read_text(), lines, [float(np.median(json.loads(line)[1][1])) for line in lines]


def check_measured_file(predictor):
    text, lines, seconds = measured_conv()
    program = predictor.program_of(text)
    sequences = program.actions.intern_records("\n".join(lines))
    program.learn(sequences, seconds)
    with tempfile.TemporaryDirectory() as folder:
        path, other = os.path.join(folder, "measured.npz"), os.path.join(folder, "other.npz")
        predictor.save(path)
        with np.load(path) as file:
            arrays = dict(file)
        at = next(i for i in range(len(arrays) // 3) if str(arrays[f"text_{i}"]) == text)
        rows, times = f"rows_{at}", f"seconds_{at}"
        faults = {"fewer times": {times: arrays[times][:-1]}, "fewer features": {rows: arrays[rows][:, 1:]},
                  "a time of 0": {times: 0 * arrays[times]}, "numbers as text": {rows: arrays[rows].astype("U9")},
                  "an infinite feature": {rows: np.full_like(arrays[rows], np.inf)},
                  "objects": {rows: np.array([{}], object)}, "another bundle": {"fingerprint": np.uint64(1)},
                  "a text missing": {f"text_{at}": None}}
        fresh, taken = foreloop_tvm.Predictor(), []
        for fault, changed in faults.items():
            np.savez(other, **{name: array for name, array in {**arrays, **changed}.items() if array is not None})
            if not raises(ValueError, fresh.load, other):
                taken.append(fault)
        for content in (b"", b"junk", Path(path).read_bytes()[:-99]):
            Path(other).write_bytes(content)
            if not raises(ValueError, fresh.load, other):
                taken.append(f"{len(content)} bytes")
        check(not taken and not fresh.programs, f"damaged files teach nothing {taken}")
        fresh.load(path)
        fresh.load(path)
        own = fresh.program_of(text)
        again = own.actions.intern_records("\n".join(lines))
        own.learn(again, seconds)
        check(len(own.rows) == len(program.rows) and np.array_equal(own.score(again), program.score(sequences)),
              f"what is loaded twice and measured again counts once ({len(own.rows)} of {len(program.rows)})")
    before, foreloop_tvm.predictor.PASSING = foreloop_tvm.predictor.PASSING, 8
    scores = [own.score_records("\n".join(lines)) for _ in range(2)]
    foreloop_tvm.predictor.PASSING = before
    check(own.passing is None and all(np.array_equal(s, own.score(again)) for s in scores),
          "scores are the same when the actions of those before have gone")
    fresh.close()


def check_binding(predictor):
    """What would be read or written beyond its end, or after its end, raises an exception."""
    text, lines, seconds = measured_conv()
    library, model = predictor.library, predictor.model
    rows = np.zeros((4, model.info["feature_count"]), np.float32)
    actions = model.actions()
    scorer, workload, space = model.scorer(actions), model.workload(text), library.space(lines[0], actions)
    point, ranker = space.sample(1), library.train_ranker(rows, [4], [1.0, 2.0, 3.0, 4.0], rounds=1)
    wrong = [what for what, kind, call in (
        ("fewer times", ValueError, lambda: library.train_ranker(rows, [4], [1.0], rounds=1)),
        ("fewer scores", ValueError, lambda: library.ranker_ndcg(rows, [4], [1.0], seconds=[1.0, 2.0, 3.0, 4.0])),
        ("no point", ValueError, lambda: space.trace(point[:0])),
        ("half a point", ValueError, lambda: space.is_legal(point[0, :-1])),
        ("a smaller value", ValueError, lambda: space.value(0, 0, 0)),
        ("a field of no machine", ValueError, lambda: model.scorer(actions, {"corez": 4})),
        ("a closed ranker", fl.Error, lambda: (scorer.set_ranker(ranker), ranker.close(), scorer.score(workload, [[]]))),
        ("closed actions", fl.Error, lambda: (scorer.set_ranker(None), actions.close(), scorer.score(workload, [[]]))),
        ("a space of them", fl.Error, lambda: space.score(scorer, workload, point)),
        ("a closed space", fl.Error, lambda: (space.close(), space.sample(1))))
        if not raises(kind, call)]
    check(not wrong, f"lengths are checked, what was closed is not used {wrong}")
    scorer.close()
    workload.close()


def check_threads(predictor):
    """Threads that share a Predictor, by the methods that TVM calls."""
    context = context_of(module_of("dense_384"))
    candidates = [ms.MeasureCandidate(schedule, []) for schedule in context.generate_design_space()] * 8
    model = foreloop_tvm.CostModel(predictor)
    wanted, wrong = model.predict(context, candidates), []

    def work():
        for _ in range(20):
            try:
                if not np.array_equal(model.predict(context, candidates), wanted):
                    wrong.append("other scores")
            except Exception as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, f"threads may share a Predictor ({len(wrong)} of 80 calls went wrong)")


def tune(folder, names, trials, predictor=None, seed=7, evaluations=4096, target=TARGET, runner=None):
    """The records of a search that only pretends to measure."""
    strategy = foreloop_tvm.SearchStrategy(predictor or foreloop_tvm.Predictor(), evaluations=evaluations, samples=16)
    database = ms.database.JSONDatabase(work_dir=folder)
    for name in names:
        foreloop_tvm.tune_tir(module_of(name), target, folder, trials, predictor=strategy.predictor,
                              strategy=strategy, database=database, builder=NoBuilder(), runner=runner or NoRunner(),
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


def check_targets():
    other = Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2})
    with tempfile.TemporaryDirectory() as folder:
        same = tune(folder, ["add_relu_512_14"], 8, evaluations=16)
        lines = tune(folder, ["add_relu_512_14"], 8, evaluations=16)
        check(lines == same, "what the database holds is not measured again")
        lines = tune(folder, ["add_relu_512_14"], 8, evaluations=16, target=other)
        check(len(lines) == 2 * len(same), "unless it is of another target")
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            lines = tune(folder, ["add_relu_512_14"], 8, evaluations=16, runner=FailingRunner())
        check(len(lines) == len(same), f"what failed is not built again ({len(lines)} of {len(same)})")


def check_small_space(predictor):
    """Every point is offered, also when those that are held have all been measured."""
    a, b = te.placeholder((2, 2), name="a"), te.placeholder((2, 2), name="b")
    context = context_of(tvm.IRModule({"main": te.create_prim_func([a, b, topi.nn.dense(a, b)])}))
    strategy = foreloop_tvm.SearchStrategy._cls(predictor, samples=0)
    strategy.context = context
    strategy.pre_tuning(1000, 8, context.generate_design_space())
    every = sum(len(list(sketch.space.enumerate())) for sketch in strategy.sketches.sketches)
    offered, fresh = set(), True
    while fresh:
        strategy.sketches.evolve(64, generations=1, held=8)
        fresh = {(owner, point.tobytes()) for owner, point in itertools.islice(strategy._order(8), 8)}
        strategy.measured |= fresh
        offered |= fresh
    check(len(offered) == every > 100, f"all of a small space is offered ({len(offered)} of {every})")
    strategy.post_tuning()


def check_refused_sketches(predictor):
    n = te.var("n")
    a, b = te.placeholder((n, 64), name="a"), te.placeholder((64, 64), name="b")
    context = context_of(tvm.IRModule({"main": te.create_prim_func([a, b, topi.nn.dense(a, b)])}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sketches = Sketches(predictor.program(context.mod), context.mod, context.generate_design_space(), 5, samples=0)
    check(not sketches.sketches and any("measures nothing" in str(warning.message) for warning in caught),
          "a program of which nothing is searched is told of")


def matmul_loop(schedule):
    return schedule.get_loops(schedule.get_sblock("T_matmul_NT"))[0]


def split_by_category(schedule):
    loop = matmul_loop(schedule)
    schedule.split(loop, [None, schedule.sample_categorical([2, 4, 8], [0.2, 0.3, 0.5])])


def tile_of_a_tile(schedule):
    loop = matmul_loop(schedule)
    inner = schedule.split(loop, schedule.sample_perfect_tile(loop, n=2))[1]
    schedule.split(inner, schedule.sample_perfect_tile(inner, n=2))


def partitioned_tile(schedule):
    loop = matmul_loop(schedule)
    schedule.split(loop, schedule.sample_partitioned_tile(loop, n=3, partition_pos=1, innerpart_factor=2))


def check_custom_spaces(predictor):
    """Schedules written by hand, and rules for a CPU with dot products of int8: what TVM makes of them is measured."""
    def dense(first, second, out):
        a, b = te.placeholder((64, 64), name="a", dtype=first), te.placeholder((64, 64), name="b", dtype=second)
        return tvm.IRModule({"main": te.create_prim_func([a, b, topi.nn.dense(a, b, out_dtype=out)])})

    vnni = Target({"kind": "llvm", "mcpu": "cascadelake", "num-cores": 4})
    plain, bytes_ = dense("float32", "float32", "float32"), dense("uint8", "int8", "int32")
    for name, module, target, space, least in (
            ("None beside a category", plain, TARGET, split_by_category, 3), ("a tile of a tile", plain, TARGET, tile_of_a_tile, 8),
            ("a partitioned tile", plain, TARGET, partitioned_tile, 2), ("VNNI", bytes_, vnni, "post-order-apply", 8)):
        strategy = foreloop_tvm.SearchStrategy(predictor, evaluations=64, samples=16)
        with tempfile.TemporaryDirectory() as folder:
            foreloop_tvm.tune_tir(module, target, folder, 8, predictor=predictor, strategy=strategy, space=space,
                                  builder=NoBuilder(), runner=NoRunner(), num_tuning_cores=1, seed=3)
            count = len(Path(folder, "database_tuning_record.json").read_text().splitlines())
        check(least <= count <= 8 and strategy.statistics["rejected"] == 0, f"{name}: {count} candidates, {strategy.statistics}")


def check_cores():
    original, seen = ms.tune_tir, []
    ms.tune_tir = lambda *_, **options: seen.append(options["builder"].max_workers)
    try:
        foreloop_tvm.tune_tir(None, TARGET, "", 1, num_tuning_cores=1, predictor=foreloop_tvm.Predictor())
    finally:
        ms.tune_tir = original
    check(seen == [1], f"num_tuning_cores=1 builds in one process ({seen})")


def check_replay_pools():
    text, lines, _ = measured_conv()
    said, arguments = [], sys.argv
    with tempfile.TemporaryDirectory() as folder:
        original, replay_pools.ROOT = replay_pools.ROOT, Path(folder)
        sys.argv = ["replay_pools.py", "--model", str(ROOT / "weights" / "default")]
        try:
            for content in (None, "", "junk\n"):
                pool = Path(folder, "train", "data", "machine", "operator")
                shutil.rmtree(pool, ignore_errors=True)
                if content is not None:
                    pool.mkdir(parents=True)
                    (pool / "workload.txt").write_text(text)
                    (pool / "database_tuning_record.json").write_text(content)
                try:
                    replay_pools.main()
                except SystemExit as error:
                    said.append(str(error))
            pool = Path(folder, "train", "data", "machine", "operator")
            (pool / "database_tuning_record.json").write_text("\n\n".join(lines))
            with fl.load().model(ROOT / "weights" / "default") as model:
                times = [(len(sequences), np.isfinite(seconds).all())
                         for *_, sequences, seconds in replay_pools.read_pools(model, [pool])]
        finally:
            replay_pools.ROOT, sys.argv = original, arguments
    check([bool(part in words) for part, words in zip(("no measured", "16 distinct", "operator"), said)] == [True] * 3,
          f"replay_pools.py tells what is amiss with its folders {said}")
    check(len(times) == 1 and times[0][1], "and skips empty lines")


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
        check(len(rows) == 5 and all(row.endswith(end) for row, end in zip(rows[1:], 2 * best)),
              "the report has their best times, and the same again of the candidates that it takes from the databases")


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
        check_measured_file(predictor)
        check_binding(predictor)
        check_threads(predictor)
        check_tuning()
        check_targets()
        check_small_space(predictor)
        check_refused_sketches(predictor)
        check_custom_spaces(predictor)
        check_cores()
        check_replay_pools()
        check_builder()
        check_interrupted_unit()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
