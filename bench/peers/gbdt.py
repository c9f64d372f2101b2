"""foreloop's trees beside their peers, on one core: microseconds of processor time for a row.

    python bench/peers/gbdt.py prepare FOLDER       models, rows and compiled code; minutes to hours, for tl2cgen
    python bench/peers/gbdt.py measure FOLDER       all contenders, case by case, and the table; goes on where it stopped
    python bench/peers/gbdt.py table FOLDER         the table of what was measured

Without --trees and --shape (depth4, depth6, depth8, leaves255; repeat them for more): 300 and 1,000 trees of all four.
Peers: xgboost inplace_predict from Python, xgboost's C interface called from C, treelite's gtil, tl2cgen's compiled C
(gcc -O2, called from C), ONNX Runtime. Packages: bench/peers/requirements.txt. Models have random splits on 320
features.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import xgboost

FEATURES = 320
BATCHES = [1, 16, 64, 512, 4096]
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
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr}")
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


def prepare(arguments):
    """The models, the rows, and what is to be compiled."""
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rows.bin").exists():
        np.random.default_rng(2).random((max(BATCHES), FEATURES), dtype=np.float32).tofile(folder / "rows.bin")
    call("cc", "-O2", "-o", folder / "call_peer", HERE / "call_peer.c", "-ldl")
    for trees, shape in cases(arguments):
        model, compiled = folder / f"{shape}_{trees}.json", folder / f"{shape}_{trees}.so"
        if not model.exists():
            make_model(model, trees, shape)
        if "tl2cgen" in arguments.skip or compiled.exists():
            continue
        import tl2cgen
        import treelite
        with stdout_to_stderr():
            tl2cgen.export_lib(treelite.frontend.load_xgboost_model(str(model)), toolchain="gcc", libpath=str(compiled),
                               params={"parallel_comp": 32}, nthread=1, options=["-O2"])


def measure_python(folder, name, peer):
    """Times of the peers that are called from Python, in a process of their own."""
    model = folder / f"{name}.json"
    rows = np.fromfile(folder / "rows.bin", dtype=np.float32).reshape(-1, FEATURES)
    if peer == "xgboost":
        booster = xgboost.Booster({"nthread": 1})
        booster.load_model(model)
        run = lambda x: booster.inplace_predict(x, predict_type="margin")
    elif peer == "gtil":
        import treelite
        ensemble = treelite.frontend.load_xgboost_model(str(model))
        run = lambda x: treelite.gtil.predict(ensemble, x, nthread=1, pred_margin=True)
    else:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        trees = json.loads(model.read_text())["learner"]["gradient_booster"]["model"]["trees"]
        session = onnxruntime.InferenceSession(make_onnx(trees), options, providers=["CPUExecutionProvider"])
        run = lambda x: session.run(None, {"x": x})[0]
    times = [time_python(run, rows, batch) for batch in BATCHES]
    print(*times, float(np.asarray(run(rows[:1])).ravel()[0]))


def measure(arguments, name, contender):
    """({batch: us}, prediction of the first row; None for foreloop, whose rows are its own)"""
    folder, prefix = arguments.folder, arguments.prefix.split()
    sizes = [FEATURES, *BATCHES]
    if contender == "foreloop":
        lines = call(*prefix, arguments.foreloop, "bench", "gbdt", "--json", "--model",
                     folder / f"{name}.json").splitlines()
        return {json.loads(line)["batch"]: json.loads(line)["us_per_row"] for line in lines}, None
    if contender == "xgboost C":
        library = pathlib.Path(xgboost.__file__).parent / "lib" / "libxgboost.so"
        numbers = call(*prefix, folder / "call_peer", "xgboost", library, folder / f"{name}.json",
                       folder / "rows.bin", *sizes)
    elif contender == "tl2cgen":
        numbers = call(*prefix, folder / "call_peer", "tl2cgen", folder / f"{name}.so", "-", folder / "rows.bin", *sizes)
    else:
        numbers = call(*prefix, sys.executable, __file__, "python-peer", folder, name, contender)
    numbers = [float(x) for x in numbers.split()]
    return dict(zip(BATCHES, numbers)), numbers[-1]


def cases(arguments):
    return [(trees, shape) for trees in arguments.trees or [300, 1000]
            for shape in arguments.shape or ["depth4", "depth6", "depth8", "leaves255"]]


def read_results(folder):
    path = folder / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {(record["trees"], record["shape"], record["contender"]): record for record in map(json.loads, lines)}


def measure_all(arguments):
    """Measures what is not in the results yet; contenders of a case come one after the other."""
    done = read_results(arguments.folder)
    for trees, shape in cases(arguments):
        for contender in ["foreloop", *[peer for peer in PEERS if peer not in arguments.skip]]:
            if (trees, shape, contender) in done:
                continue
            times, first = measure(arguments, f"{shape}_{trees}", contender)
            record = {"trees": trees, "shape": shape, "contender": contender, "us_per_row": times, "first": first}
            with open(arguments.folder / "results.jsonl", "a") as file:
                print(json.dumps(record), file=file)


def print_table(arguments):
    """As Markdown; checks that all peers predict the same."""
    results = read_results(arguments.folder)
    print("| trees | shape | batch | foreloop | " + " | ".join(PEERS) + " | best peer / foreloop |")
    print("| ---: | --- " + "| ---: " * (len(PEERS) + 3) + "|")
    for trees, shape in cases(arguments):
        found = {name: results[trees, shape, name] for name in ["foreloop", *PEERS] if (trees, shape, name) in results}
        firsts = [record["first"] for record in found.values() if record["first"] is not None]
        if firsts and max(firsts) - min(firsts) > 1e-3 * abs(firsts[0]):
            sys.exit(f"{shape}, {trees} trees: the peers predict {firsts}, which is not the same model")
        for batch in map(str, BATCHES):
            times = {name: record["us_per_row"][batch] for name, record in found.items()}
            best = min((time for name, time in times.items() if name != "foreloop"), default=float("nan"))
            cells = [f"{times[name]:.3f}" if name in times else "" for name in ["foreloop", *PEERS]]
            print(f"| {trees} | {shape} | {batch} | " + " | ".join(cells)
                  + f" | {best / times.get('foreloop', float('nan')):.1f} |")


def main():
    if sys.argv[1:2] == ["python-peer"]:
        measure_python(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prepare", "measure", "table"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--foreloop", type=pathlib.Path, default="build/tools/foreloop")
    parser.add_argument("--prefix", default="", help="a command to run each measurement under")
    parser.add_argument("--trees", type=int, action="append")
    parser.add_argument("--shape", action="append")
    parser.add_argument("--skip", action="append", default=[], choices=PEERS)
    arguments = parser.parse_args()
    if arguments.step == "prepare":
        prepare(arguments)
        return
    if arguments.step == "measure":
        measure_all(arguments)
    print_table(arguments)


if __name__ == "__main__":
    main()
