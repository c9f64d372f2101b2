"""Random models of every objective, booster and option of XGBoost against live xgboost (3.2): margins equal to the bit,
predictions within 1e-6, from save_model JSON and UBJSON and from dump_model JSON, over ranges of iterations, from rows
of every layout, with infinities (inplace_predict) and with a sentinel; leaf indices, importance, and contributions
within 1e-4.

    python test_gbdt.py [--full] [--seed N]

Needs numpy, scipy and xgboost 3.2. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time
import warnings

import numpy as np
import xgboost as xgb

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402

OBJECTIVES = ["reg:squarederror", "reg:squaredlogerror", "reg:logistic", "reg:pseudohubererror", "reg:absoluteerror",
              "reg:quantileerror", "reg:gamma", "reg:tweedie", "count:poisson", "survival:cox", "survival:aft",
              "binary:logistic", "binary:logitraw", "binary:hinge", "multi:softmax", "multi:softprob", "rank:ndcg",
              "rank:pairwise", "rank:map"]
MULTI_TARGET = {"reg:squarederror", "reg:logistic", "binary:logistic", "reg:absoluteerror", "reg:pseudohubererror",
                "reg:squaredlogerror", "reg:gamma", "binary:hinge"}
VECTOR_LEAVES = MULTI_TARGET | {"multi:softmax", "multi:softprob", "reg:quantileerror"}
GROUP = 40


class Draw:
    """One random model: data, parameters, booster."""

    def __init__(self, rng, objective, folder):
        self.rng, self.objective = rng, objective
        self.columns = int(rng.integers(1, 12))
        self.types = None
        if rng.random() < 0.4:
            self.types = [str(rng.choice(["c", "q"])) for _ in range(self.columns)]
        self.names = [f"n\u00e4me {i}!" for i in rng.permutation(self.columns)] if rng.random() < 0.3 else None
        self.cardinality = int(rng.choice([3, 20, 90]))
        self.booster = self.train()
        self.path = folder / "model.json"
        self.booster.save_model(str(self.path))

    def rows(self, count, edges=False):
        rng = self.rng
        x = rng.normal(size=(count, self.columns)).astype(np.float32)
        x[:, :: 3] = np.round(x[:, :: 3] * 4)
        if edges:
            values = np.array([0, -0.0, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 16777217, -2147483648], np.float32)
            where = rng.random(x.shape) < 0.1
            x[where] = rng.choice(values, where.sum())
            # Values that training saw, so that they meet thresholds exactly.
            where = rng.random(x.shape) < 0.3
            x[where] = rng.choice(self.seen, where.sum())
        for i, kind in enumerate(self.types or []):
            if kind == "c":
                x[:, i] = rng.integers(0, self.cardinality + (5 if edges else 0), count)
                if edges and rng.random() < 0.5:
                    x[: count // 8, i] = rng.choice([0.5, 2.75, 1e6, 16777215, 16777216, 3e38], count // 8)
        x[rng.random(x.shape) < rng.choice([0, 0.1, 0.5])] = np.nan
        if not edges:
            self.seen = x[~np.isnan(x)]
        return x

    def matrix(self, x, **keywords):
        return xgb.DMatrix(x, feature_types=self.types, feature_names=self.names, nthread=1,
                           enable_categorical=self.types is not None, **keywords)

    def parameters(self):
        rng, objective = self.rng, self.objective
        p = {"objective": objective, "seed": int(rng.integers(1 << 30)), "nthread": 1,
             "eta": float(rng.uniform(0.05, 1)), "max_depth": int(rng.integers(1, 9)),
             "subsample": float(rng.uniform(0.5, 1)),
             "min_child_weight": float(rng.choice([0, 1, 5])), "max_cat_to_onehot": int(rng.choice([1, 4, 100])),
             "lambda": float(rng.choice([0.1, 1]))}
        if rng.random() < 0.3:
            p.update(booster="dart", rate_drop=float(rng.uniform(0, 0.8)), skip_drop=float(rng.choice([0, 0.5])),
                     normalize_type=str(rng.choice(["tree", "forest"])))
        if rng.random() < 0.25:
            p["num_parallel_tree"] = int(rng.integers(2, 5))
        if rng.random() < 0.3:
            p.update(grow_policy="lossguide", max_depth=0, max_leaves=int(rng.integers(2, 40)))
        elif rng.random() < 0.3:
            p["tree_method"] = "approx" if self.types else str(rng.choice(["exact", "approx"]))
        if rng.random() < 0.3:
            p["gamma"] = float(rng.uniform(0, 3))
        if rng.random() < 0.4:
            positive = objective.split(":")[0] in ("count", "survival") or objective in ("reg:gamma", "reg:tweedie")
            p["base_score"] = float(rng.uniform(0.01, 0.99) if "logistic" in objective else
                                    rng.uniform(0.01, 9) if positive else rng.uniform(-5, 5))
        if objective.startswith("multi:"):
            p["num_class"] = int(rng.integers(2, 7))
        if objective in VECTOR_LEAVES and "c" not in (self.types or []) and rng.random() < 0.4:
            p.update(multi_strategy="multi_output_tree", tree_method="hist", min_child_weight=1)
            for name in ("booster", "rate_drop", "skip_drop", "normalize_type", "gamma"):
                p.pop(name, None)
        if objective == "reg:quantileerror":
            p["quantile_alpha"] = sorted(rng.uniform(0.05, 0.95, int(rng.integers(1, 4))).tolist())
        return p

    def labels(self, x, p):
        rng, objective = self.rng, self.objective
        score = np.nan_to_num(x[:, 0]) + rng.normal(size=len(x)) * 0.3
        if objective in MULTI_TARGET and ("multi_strategy" in p or rng.random() < 0.3):
            score = score[:, None] + rng.normal(size=(len(x), int(rng.integers(2, 4))))
        if objective.startswith("multi:"):
            return np.mod(np.floor(score), p["num_class"])
        if objective.startswith("binary:") or objective in ("reg:logistic", "rank:map"):
            return (score > 0).astype(np.float32)
        if objective.startswith("rank:") or objective == "count:poisson":
            return np.clip(np.floor(score + 2), 0, 4)
        if objective == "survival:cox":
            return np.exp(np.clip(score, -5, 5)) * np.where(rng.random(len(x)) < 0.3, -1, 1)
        if objective in ("reg:gamma", "reg:tweedie", "survival:aft", "reg:squaredlogerror"):
            return np.exp(np.clip(score, -5, 5))
        return score

    def train(self):
        x = self.rows(5 * GROUP)
        p = self.parameters()
        y = self.labels(x, p).astype(np.float32)
        data = self.matrix(x, label=None if self.objective == "survival:aft" else y)
        if self.objective.startswith("rank:"):
            data.set_group([GROUP] * 5)
        if self.objective == "survival:aft":
            data.set_float_info("label_lower_bound", y)
            upper = np.where(self.rng.random(len(y)) < 0.3, np.inf, y).astype(np.float32)
            data.set_float_info("label_upper_bound", upper)
        self.p, self.rounds = p, int(self.rng.integers(1, 12))
        booster = xgb.train(p, data, self.rounds)
        if p.get("tree_method") == "exact" and self.rng.random() < 0.5 and p.get("booster") != "dart":
            # Pruning afterwards leaves deleted nodes in the file.
            pruning = {**p, "process_type": "update", "updater": "prune", "gamma": 5.0, "max_depth": 3}
            pruning.pop("base_score", None)
            booster = xgb.train(pruning, data, self.rounds, xgb_model=booster)
        return booster


def same_bits(a, b):
    a, b = (np.ascontiguousarray(v, np.float32).reshape(-1) for v in (a, b))
    return a.shape == b.shape and (a.view(np.uint32) == b.view(np.uint32)).all()


def close(a, b):
    a, b = (np.asarray(v, np.float64).reshape(-1) for v in (a, b))
    with np.errstate(invalid="ignore"):  # infinities
        return a.shape == b.shape and ((a == b) | (np.abs(a - b) <= 1e-6 * np.maximum(1, np.abs(b)))).all()


def check_save(lib, draw, data, x, rng, failures):
    booster = draw.booster
    model = lib.gbdt(str(draw.path))
    if not same_bits(model.predict(x, margin=True), booster.predict(data, output_margin=True)):
        failures.append("margins")
    if not close(model.predict(x), booster.predict(data)):
        failures.append("predictions")
    begin = int(rng.integers(0, draw.rounds))
    span = (begin, int(rng.integers(begin + 1, draw.rounds + 1)))
    part = lib.gbdt(str(draw.path), iteration_range=span)
    if not same_bits(part.predict(x, margin=True), booster.predict(data, output_margin=True, iteration_range=span)):
        failures.append(f"iterations {span}")
    names = [lib.dll.foreloop_gbdt_feature_name(model.pointer, i) for i in range(draw.columns)]
    if names != [name.encode() for name in draw.names or []] + [None] * (0 if draw.names else draw.columns):
        failures.append("names")


def has_no_ratios(draw):
    """Whether some split has a cover below 0, as single hessians of vector leaves may give, or NaN."""
    booster = json.loads(draw.path.read_text())["learner"]["gradient_booster"]
    trees = booster.get("gbtree", booster)["model"]["trees"]
    return any(not 0 <= cover < np.inf for tree in trees if len(tree["sum_hessian"]) > 1
               for cover in tree["sum_hessian"])


def check_ubjson(lib, draw, x, failures):
    path = draw.path.with_suffix(".ubj")
    draw.booster.save_model(str(path))
    model, other = lib.gbdt(str(draw.path)), lib.gbdt(str(path))
    if not same_bits(model.predict(x, margin=True), other.predict(x, margin=True)) or model.info != other.info:
        failures.append("UBJSON")
    if not has_no_ratios(draw) and not same_bits(model.explain(x[:5]), other.explain(x[:5])):
        failures.append("contributions from UBJSON")


def check_layouts(lib, draw, data, x, rng, failures):
    """Rows as they lie in other arrays, with a sentinel for missing values, and with infinities."""
    booster, model = draw.booster, lib.gbdt(str(draw.path))
    expected = booster.predict(data, output_margin=True)
    wide = np.full((len(x), x.shape[1] * 2 + 3), 7, np.float32)
    wide[:, 1: 1 + 2 * x.shape[1]: 2] = x
    marked = np.where(np.isnan(x), np.float32(-77.5), x)
    for name, rows, missing in (("row-major", x, None), ("column-major", np.asfortranarray(x), None),
                                ("strides", wide[:, 1: 1 + 2 * x.shape[1]: 2], None), ("sentinel", marked, -77.5)):
        if not same_bits(model.predict_rows(rows, "margin", missing), expected):
            failures.append(f"margins of {name} rows")
    if not close(model.predict_rows(np.asfortranarray(x)), booster.predict(data)):
        failures.append("predictions of column-major rows")
    used = [i for i in range(x.shape[1]) if model.importance("weight")[i] > 0]
    fewer = x[:, : max(used, default=-1) + 1]
    if not same_bits(model.predict_rows(fewer, "margin"), expected):
        failures.append("columns that the trees do not read")
    if draw.p.get("booster") != "dart" and draw.types is None:
        infinite = x.copy()
        where = rng.random(x.shape) < 0.2
        infinite[where] = rng.choice(np.array([np.inf, -np.inf], np.float32), where.sum())
        if not same_bits(model.predict(infinite, margin=True),
                         booster.inplace_predict(infinite, predict_type="margin", validate_features=False)):
            failures.append("infinities")


def check_explaining(lib, draw, data, x, failures):
    booster, model = draw.booster, lib.gbdt(str(draw.path))
    leaves = booster.predict(data, pred_leaf=True).reshape(len(x), -1)
    if not same_bits(model.predict_rows(x, "leaf_index"), leaves):
        failures.append("leaf indices")
    sums = model.predict_rows(x, "leaf_sum")
    plain = lib.gbdt(str(draw.path), base_score=0.0).predict(x, margin=True)
    if not same_bits(sums + np.float32(0), plain + np.float32(0)):
        failures.append("leaf sums")
    names = booster.feature_names or [f"f{i}" for i in range(draw.columns)]
    for kind in fl.IMPORTANCE_KINDS:
        scores = booster.get_score(importance_type=kind)
        expected = np.array([scores.get(name, 0) for name in names])
        if not np.allclose(model.importance(kind), expected, rtol=1e-4, atol=1e-6):
            failures.append(f"importance {kind}")
    if has_no_ratios(draw):
        return  # there is no explanation then, for XGBoost neither
    contributions, margins = model.explain(x), model.predict(x, margin=True)
    scale = np.maximum(1, np.abs(contributions).max())
    if not np.allclose(contributions.sum(axis=2) / scale, margins / scale, atol=1e-5):
        failures.append("contributions do not add up to the margins")
    if "multi_strategy" not in draw.p:
        expected = booster.predict(data, pred_contribs=True, strict_shape=True)
        if not np.allclose(contributions / scale, expected / scale, atol=1e-4):
            failures.append("contributions")


def check_dump(lib, draw, data, x, rng, failures):
    """A dump holds the same trees; base margin, weights and outputs go in by options."""
    base = lib.gbdt(str(draw.path), iteration_range=(draw.rounds, draw.rounds)).predict(x[:1], margin=True)[0]
    if len(set(base.tolist())) != 1:
        return  # a base score for each output has no place in the options
    if len(base) > 3 and "multi_strategy" in draw.p:
        return  # XGBoost writes "..." for some of their numbers
    path = draw.path.with_suffix(".dump")
    # XGBoost has no statistics in dumps of vector leaves.
    stats = bool(rng.random() < 0.5) and "multi_strategy" not in draw.p
    draw.booster.dump_model(str(path), dump_format="json", with_stats=stats)
    weights = None
    if draw.p.get("booster") == "dart":
        weights = json.loads(draw.path.read_text())["learner"]["gradient_booster"]["weight_drop"]
    model = lib.gbdt(str(path), base_score=float(base[0]), tree_weights=weights, num_class=len(base),
                     num_parallel_tree=draw.p.get("num_parallel_tree", 1), objective=draw.objective,
                     feature_names=draw.names)
    if model.info["feature_count"] > x.shape[1]:
        failures.append("columns of the dump")
        return
    if not same_bits(model.predict(x, margin=True), draw.booster.predict(data, output_margin=True)):
        failures.append("margins of the dump")
    if not close(model.predict(x), draw.booster.predict(data)):
        failures.append("predictions of the dump")
    columns = [*range(model.info["feature_count"]), -1]  # a dump knows only the columns that trees read
    if stats and not np.allclose(model.explain(x[:9, :]), lib.gbdt(str(draw.path)).explain(x[:9, :])[:, :, columns],
                                 rtol=1e-4, atol=1e-4):
        failures.append("contributions of the dump")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="about ten times as many models")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    assert xgb.__version__.startswith("3.2."), f"xgboost 3.2 is the reference, this is {xgb.__version__}"
    warnings.simplefilter("ignore")
    xgb.set_config(verbosity=0)
    lib = fl.load()
    passed = failed = 0
    end = time.monotonic() + (900 if arguments.full else 75)
    with tempfile.TemporaryDirectory() as folder:
        for objective in OBJECTIVES:
            models, wrong = 0, []
            share = (end - time.monotonic()) / (len(OBJECTIVES) - OBJECTIVES.index(objective))
            stop = time.monotonic() + share
            while models < (400 if arguments.full else 40) and (models < 3 or time.monotonic() < stop):
                rng = np.random.default_rng([arguments.seed, OBJECTIVES.index(objective), models])
                draw = Draw(rng, objective, pathlib.Path(folder))
                x = draw.rows(150, edges=True)
                data = draw.matrix(x)
                failures = []
                try:
                    check_save(lib, draw, data, x, rng, failures)
                    check_dump(lib, draw, data, x, rng, failures)
                    check_ubjson(lib, draw, x, failures)
                    check_layouts(lib, draw, data, x, rng, failures)
                    check_explaining(lib, draw, data, x, failures)
                except fl.Error as error:
                    # Training that diverged leaves NaN in the trees, which the library refuses.
                    if error.code != "error_value" or np.isfinite(draw.booster.predict(data)).all():
                        failures.append(str(error))
                if failures:
                    wrong.append(f"model {models}: {', '.join(failures)} {draw.p}")
                models += 1
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} - {objective}: {models} models", *wrong[:3], sep="\n    ", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
