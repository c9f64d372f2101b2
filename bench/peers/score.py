#!/usr/bin/env python3
"""foreloop's scoring beside its peers, in one run on one core: microseconds of processor time for a candidate.

    python bench/peers/score.py [--candidates N] [--actions N] [--distinct N] [--tvm-python PYTHON] [--json]

The same candidates of one random model (d 256, 32 kinds, 300 trees of depth 6, 320 features) go through

    foreloop             interned ids to scores, one call
    torch + xgboost      the batched transition in PyTorch, aggregates in PyTorch, xgboost's inplace_predict

and their scores are compared. With --tvm-python (a Python that has apache-tvm) the candidates of examples/data go
through TVM MetaSchedule's own cost model as well: feature extraction and prediction of XGBModel, and the replay of the
traces that it needs first. Needs numpy, torch and xgboost, and FORELOOP_LIBRARY or build/src/libforeloop.so.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = ROOT / "examples" / "data" / "conv3x3_96"
LATENT, KINDS, TREES, DEPTH, RUNS = 256, 32, 300, 6, 7


def best(function, runs=RUNS):
    """Seconds of processor time of the fastest of some calls."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def make_bundle(directory, seed):
    """A random bundle whose features are z, the kinds' counts, and a sum for each kind."""
    import numpy as np
    import random_bundle
    import xgboost
    manifest = random_bundle.make(directory, seed, kinds=KINDS, hidden=32, latent=LATENT, layers=1, trees=1)
    kinds = manifest["actions"]
    kinds[0]["slots"] = []
    features = [f"z.{i}" for i in range(LATENT)] + [f"count.{kind['kind']}" for kind in kinds]
    features += [f"sum.{random_bundle.elements(kind)[0]}" for kind in kinds[1:]] + ["length"]
    manifest["features"] = features
    (directory / "model.json").write_text(json.dumps(manifest))
    random = np.random.default_rng(seed)
    rows, labels = random.normal(0, 2, (1024, len(features))).astype(np.float32), random.random(1024)
    matrix = xgboost.DMatrix(rows, labels, feature_names=features)
    settings = {"max_depth": DEPTH, "min_child_weight": 0, "nthread": 1, "base_score": 0.0, "max_bin": 64}
    booster = xgboost.train(settings, matrix, TREES)
    (directory / "ranker.json").write_bytes(bytes(booster.save_raw("json")))
    booster.set_param({"nthread": 1})
    return manifest, booster


def distinct_actions(manifest, count, seed):
    """As many actions as asked for, no two the same, by turns of every kind that has arguments."""
    import numpy as np
    import random_bundle
    random, seen, result = np.random.default_rng(seed), set(), []
    while len(result) < count:
        kind, arguments = random_bundle.random_action(random, manifest["actions"])
        known = {entry["kind"]: entry for entry in manifest["actions"]}
        key = (kind, tuple(sorted(arguments.items(), key=str)))
        if kind in known and key not in seen:
            seen.add(key)
            result.append((kind, arguments))
    return result


class TorchPeer:
    """The transition as one writes it in PyTorch: a batch of equally long sequences, step by step."""

    def __init__(self, manifest, tensors, actions):
        import numpy as np
        import random_bundle
        import torch
        import test_transition
        self.torch = torch
        torch.set_num_threads(1)
        reference = test_transition.Reference(manifest, tensors, {})
        kinds = manifest["actions"]
        names = [kind["kind"] for kind in kinds]
        embeddings = np.zeros((len(actions), LATENT), np.float32)
        aggregates = np.zeros((len(actions), 2 * len(kinds)), np.float32)
        for i, (name, arguments) in enumerate(actions):
            index, kind = reference.kinds[name]
            vector = test_transition.phi(kind, arguments)
            embeddings[i] = reference.embedding(index, kind, vector)
            aggregates[i, index] = 1
            if index > 0:
                aggregates[i, len(kinds) + index - 1] = vector[0]
            aggregates[i, -1] = 1
        self.kinds = torch.tensor([names.index(name) for name, _ in actions])
        self.embeddings, self.aggregates = torch.from_numpy(embeddings), torch.from_numpy(aggregates)
        self.normal = torch.from_numpy(tensors["normal"].copy())
        self.beta = torch.from_numpy(tensors["beta"].copy())[:, None]

    def features(self, z0, ids):
        """[candidates][features] of ids [candidates][steps]."""
        torch = self.torch
        with torch.inference_mode():
            z = torch.from_numpy(z0).expand(len(ids), LATENT)
            for step in range(ids.shape[1]):
                kinds = self.kinds[ids[:, step]]
                normal = self.normal[kinds]
                z = z - self.beta[kinds] * (z * normal).sum(1, keepdim=True) * normal + self.embeddings[ids[:, step]]
            return torch.cat([z, self.aggregates[ids].sum(1)], 1)


def compare_torch(arguments):
    import ctypes
    import numpy as np
    import torch
    sys.path[:0] = [str(ROOT / "integrations" / "python"), str(ROOT / "tests" / "differential")]
    import foreloop_ctypes as fl
    import test_transition
    library = fl.load()
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        manifest, booster = make_bundle(directory, 3)
        tensors = test_transition.read_safetensors(directory / "transition.safetensors")
        actions = distinct_actions(manifest, arguments.distinct, 5)
        random = np.random.default_rng(7)
        z0 = random.normal(0, 1, LATENT).astype(np.float32)
        drawn = random.integers(0, len(actions), (arguments.candidates, arguments.actions))
        with library.model(directory) as model, model.workload(latent=z0) as workload, model.actions() as table, \
                model.scorer(table, {}) as scorer:
            ids = table.intern(actions)
            flat = np.ascontiguousarray(ids[drawn].ravel(), np.uint32)
            offsets = np.arange(0, flat.size + 1, arguments.actions).astype(np.uintp)
            scores = np.empty(arguments.candidates, np.float32)
            call = (scorer.pointer, workload.pointer, flat.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)),
                    offsets.ctypes.data_as(ctypes.POINTER(ctypes.c_size_t)), ctypes.c_size_t(arguments.candidates),
                    scores.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
            own = best(lambda: library.call("foreloop_score", *call))
    peer, sequences, rows, margins = TorchPeer(manifest, tensors, actions), torch.from_numpy(drawn), None, None

    def roll_out():
        nonlocal rows
        rows = peer.features(z0, sequences).numpy()

    def predict():
        nonlocal margins
        margins = booster.inplace_predict(rows, predict_type="margin")

    transition, trees = best(roll_out), best(predict)
    # A z in its last bits beside a threshold goes another way down a tree.
    equal = np.isclose(scores, margins, rtol=1e-4, atol=1e-4).mean()
    scale = 1e6 / arguments.candidates
    return [{"peer": "foreloop", "us": own * scale, "agree": 1.0},
            {"peer": "torch + xgboost", "us": (transition + trees) * scale, "transition_us": transition * scale,
             "trees_us": trees * scale, "agree": float(equal)}]


def measure_tvm():
    """Runs under a Python with TVM: prints the microseconds of MetaSchedule's cost model."""
    import inspect
    import numpy as np
    import tvm
    # For each of its many intrinsics TVM asks for the whole stack with source lines, for half a minute in all.
    stack = inspect.stack
    inspect.stack = lambda context=0: stack(0)
    import tvm.s_tir.tensor_intrin
    inspect.stack = stack
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.schedule import Schedule, Trace
    from tvm.target import Target

    module = tvm.script.from_source((RECORDS / "workload.txt").read_text())
    lines = [json.loads(line) for line in (RECORDS / "database_tuning_record.json").read_text().splitlines()]
    target = Target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4})
    context = ms.TuneContext(mod=module, target=target, space_generator="post-order-apply", num_threads=1)
    schedules = []

    def replay():
        schedules.clear()
        for line in lines:
            schedule = Schedule(module, seed=1, debug_mask="none", error_render_level="none")
            Trace.apply_json_to_schedule(line[1][0], schedule)
            schedules.append(schedule)

    replay_seconds = best(replay, 3)
    candidates = [ms.MeasureCandidate(schedule, ms.arg_info.ArgInfo.from_entry_func(schedule.mod, remove_preproc=False))
                  for schedule in schedules]
    extractor = ms.feature_extractor.PerStoreFeature(extract_workload=True)
    extract_seconds = best(lambda: extractor.extract_from(context, candidates), 3)
    model = ms.cost_model.XGBModel(num_warmup_samples=0, num_tuning_cores=1)
    results = [ms.runner.RunnerResult([tvm.tirx.FloatImm("float32", float(np.mean(line[1][1])))
                                       if hasattr(tvm, "tirx") else float(np.mean(line[1][1]))], None)
               for line in lines]
    model.update(context, candidates, results)
    predict_seconds = best(lambda: model.predict(context, candidates), 3)
    scale = 1e6 / len(candidates)
    print(json.dumps([{"peer": "MetaSchedule XGBModel", "us": predict_seconds * scale,
                       "features_us": extract_seconds * scale},
                      {"peer": "MetaSchedule XGBModel + replay", "us": (predict_seconds + replay_seconds) * scale,
                       "replay_us": replay_seconds * scale}]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candidates", type=int, default=2048)
    parser.add_argument("--actions", type=int, default=20)
    parser.add_argument("--distinct", type=int, default=4096)
    parser.add_argument("--tvm-python", help="a Python that has apache-tvm; without it that peer is left out")
    parser.add_argument("--json", action="store_true", help="print an object a peer")
    parser.add_argument("--measure-tvm", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_tvm:
        measure_tvm()
        return 0
    results = compare_torch(arguments)
    if arguments.tvm_python:
        output = subprocess.run([arguments.tvm_python, __file__, "--measure-tvm"], check=True, capture_output=True,
                                text=True).stdout
        results += json.loads(output.splitlines()[-1])
    for result in results:
        result["ratio"] = result["us"] / results[0]["us"]
        if arguments.json:
            print(json.dumps(result))
        else:
            parts = ", ".join(f"{name.removesuffix('_us')} {value:.1f}" for name, value in result.items()
                              if name.endswith("_us"))
            agree = f", {result['agree']:.1%} of the scores agree" if "agree" in result else ""
            print(f"{result['peer']:<32} {result['us']:10.2f} us {result['ratio']:8.0f} x  {parts}{agree}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
