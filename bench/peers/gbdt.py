#!/usr/bin/env python3
"""foreloop's trees beside their peers, in one run on one core: microseconds of processor time for a row.

    python bench/peers/gbdt.py --build BUILD [--trees 300] [--shape depth6] [--batch 512] [--json]

Repeat --trees, --shape (depth4, depth6, depth8, leaves255) and --batch for more; without them, all of the table. Peers:
xgboost inplace_predict from Python, xgboost's C interface called from C, treelite's gtil, tl2cgen's compiled C (gcc -O2,
called from C), ONNX Runtime. Packages: bench/peers/requirements.txt. Models have random splits on 320 features.
tl2cgen's code of large models takes minutes to compile: --skip tl2cgen.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import xgboost

FEATURES = 320
HERE = pathlib.Path(__file__).resolve().parent
PEERS = ["xgboost", "xgboost C", "gtil", "tl2cgen", "onnxruntime"]


def make_shape(shape, random):
    """Children of a full tree, or of one that grows by splitting any of its leaves."""
    full = shape.startswith("depth")
    wanted = 2 ** int(shape[5:]) if full else int(shape[6:])
    left, right, leaves = [-1], [-1], [0]
    while len(leaves) < wanted:
        at = 0 if full else int(random.integers(len(leaves)))
        parent, child = leaves.pop(at), len(left)
        left[parent], right[parent] = child, child + 1
        left += [-1, -1]
        right += [-1, -1]
        leaves += [child, child + 1]
    return np.array(left), np.array(right)


def make_tree(index, shape, random):
    left, right = make_shape(shape, random)
    count, split = len(left), left >= 0
    parents = np.full(count, 2147483647)
    parents[left[split]] = parents[right[split]] = np.nonzero(split)[0]
    floats = random.random(count, dtype=np.float32)
    return {
        "base_weights": [0.0] * count, "categories": [], "categories_nodes": [], "categories_segments": [],
        "categories_sizes": [], "default_left": random.integers(0, 2, count).tolist(), "id": index,
        "left_children": left.tolist(), "loss_changes": [0.0] * count, "parents": parents.tolist(),
        "right_children": right.tolist(), "split_conditions": [float(x) for x in floats],
        "split_indices": np.where(split, random.integers(0, FEATURES, count), 0).tolist(),
        "split_type": [0] * count, "sum_hessian": [1.0] * count,
        "tree_param": {"num_deleted": "0", "num_feature": str(FEATURES), "num_nodes": str(count),
                       "size_leaf_vector": "1"}}


def make_model(path, trees, shape):
    random = np.random.default_rng(1)
    made = [make_tree(t, shape, random) for t in range(trees)]
    model = {"learner": {
        "attributes": {}, "feature_names": [], "feature_types": [],
        "gradient_booster": {"model": {
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(trees)},
            "iteration_indptr": list(range(trees + 1)), "tree_info": [0] * trees, "trees": made}, "name": "gbtree"},
        "learner_model_param": {"base_score": "[5E-1]", "boost_from_average": "1", "num_class": "0",
                                "num_feature": str(FEATURES), "num_target": "1"},
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}},
        "version": [3, 2, 0]}
    path.write_text(json.dumps(model))
    return made


def make_onnx(trees):
    from onnx import TensorProto, helper
    a = {name: [] for name in ["nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
                               "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
                               "target_treeids", "target_nodeids", "target_ids", "target_weights"]}
    for t, tree in enumerate(trees):
        for i, left in enumerate(tree["left_children"]):
            a["nodes_treeids"].append(t)
            a["nodes_nodeids"].append(i)
            a["nodes_featureids"].append(tree["split_indices"][i])
            a["nodes_values"].append(tree["split_conditions"][i] if left >= 0 else 0.0)
            a["nodes_modes"].append("BRANCH_LT" if left >= 0 else "LEAF")
            a["nodes_truenodeids"].append(max(left, 0))
            a["nodes_falsenodeids"].append(max(tree["right_children"][i], 0))
            a["nodes_missing_value_tracks_true"].append(tree["default_left"][i])
            if left < 0:
                a["target_treeids"].append(t)
                a["target_nodeids"].append(i)
                a["target_ids"].append(0)
                a["target_weights"].append(tree["split_conditions"][i])
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, base_values=[0.5],
                            **a)
    graph = helper.make_graph([node], "trees", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, FEATURES])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3),
                                                    helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def time_python(run, rows, batch):
    """Median microseconds of processor time for a row."""
    count = 512 // batch * batch if batch < 512 else batch
    times, begin = [], time.process_time()
    while len(times) < 5 or (len(times) < 51 and time.process_time() - begin < 0.25):
        start = time.process_time()
        for r in range(0, count, batch):
            run(rows[r:r + batch])
        times.append(1e6 * (time.process_time() - start) / count)
    return float(np.median(times))


def call(*command):
    result = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]}: {result.stderr}")
    return result.stdout


@contextlib.contextmanager
def stdout_to_stderr():
    """For libraries that print from C."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def time_peers(peers, folder, model, trees, rows, batches):
    """{peer: ([us of each batch], prediction of the first row)}"""
    results = {}
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(model)
    call("cc", "-O2", "-o", folder / "call_peer", HERE / "call_peer.c", "-ldl")
    rows.tofile(folder / "rows.bin")
    sizes = [FEATURES, *batches]
    runs = {"xgboost": lambda x: booster.inplace_predict(x, predict_type="margin")}
    if "xgboost C" in peers:
        library = pathlib.Path(xgboost.__file__).parent / "lib" / "libxgboost.so"
        lines = call(folder / "call_peer", "xgboost", library, model, folder / "rows.bin", *sizes).split()
        results["xgboost C"] = [float(x) for x in lines[:-1]], float(lines[-1])
    if "gtil" in peers or "tl2cgen" in peers:
        import treelite
        ensemble = treelite.frontend.load_xgboost_model(str(model))
        runs["gtil"] = lambda x: treelite.gtil.predict(ensemble, x, nthread=1, pred_margin=True)
    if "tl2cgen" in peers:
        import tl2cgen
        with stdout_to_stderr():
            tl2cgen.export_lib(ensemble, toolchain="gcc", libpath=str(folder / "compiled.so"),
                               params={"parallel_comp": 32}, nthread=1, options=["-O2"])
        lines = call(folder / "call_peer", "tl2cgen", folder / "compiled.so", "-", folder / "rows.bin", *sizes).split()
        results["tl2cgen"] = [float(x) for x in lines[:-1]], float(lines[-1])
    if "onnxruntime" in peers:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(make_onnx(trees), options, providers=["CPUExecutionProvider"])
        runs["onnxruntime"] = lambda x: session.run(None, {"x": x})[0]
    for name in [name for name in PEERS if name in runs and name in peers]:
        results[name] = ([time_python(runs[name], rows, batch) for batch in batches],
                         float(np.asarray(runs[name](rows[:1])).ravel()[0]))
    return results


def bench_model(arguments, trees_count, shape, folder):
    model = folder / "model.json"
    trees = make_model(model, trees_count, shape)
    rows = np.random.default_rng(2).random((max(4096, *arguments.batch), FEATURES), dtype=np.float32)
    ours = []
    for batch in arguments.batch:
        tier = ["--tier", arguments.tier] if arguments.tier else []
        line = call(arguments.build / "bench" / "bench_gbdt", "--json", "--model", model, "--batch", batch, *tier)
        ours.append(json.loads(line)["us_per_row"])
    peers = [name for name in PEERS if name not in arguments.skip]
    results = time_peers(peers, folder, model, trees, rows, arguments.batch)
    expected = None
    for name, (_, value) in results.items():
        expected = value if expected is None else expected
        if abs(value - expected) > 1e-3 * abs(expected):
            sys.exit(f"{name} predicts {value}, another {expected}: not the same model")
    for i, batch in enumerate(arguments.batch):
        times = {name: results[name][0][i] for name in peers}
        best = min(times, key=times.get)
        if arguments.json:
            print(json.dumps({"trees": trees_count, "shape": shape, "batch": batch, "foreloop": round(ours[i], 4),
                              **{k: round(v, 4) for k, v in times.items()}, "best_peer": best,
                              "times_as_fast": round(times[best] / ours[i], 2)}))
        else:
            columns = "".join(f"{times.get(name, float('nan')):>12.3f}" for name in PEERS)
            print(f"{trees_count:>5} {shape:>10} {batch:>6}{ours[i]:>12.3f}{columns}{times[best] / ours[i]:>9.1f} x")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--trees", type=int, action="append")
    parser.add_argument("--shape", action="append")
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--skip", action="append", default=[], choices=PEERS)
    parser.add_argument("--tier", choices=["ref", "avx2", "avx512"])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.batch = arguments.batch or [1, 16, 64, 512, 4096]
    if not arguments.json:
        print(f"{'trees':>5} {'shape':>10} {'batch':>6}" + "".join(f"{name:>12}" for name in ["foreloop", *PEERS])
              + "  best peer /")
    for trees in arguments.trees or [300, 1000]:
        for shape in arguments.shape or ["depth4", "depth6", "depth8", "leaves255"]:
            with tempfile.TemporaryDirectory() as folder:
                bench_model(arguments, trees, shape, pathlib.Path(folder))


if __name__ == "__main__":
    main()
