"""Rankers trained by foreloop_ranker_train against xgboost 3.2, on the same rows, groups and parameters:

- the same trees (margins within 1e-5) where every value has a bin of its own, for every objective, pairs of the top,
  normalisation, gain and regularisation, with missing values;
- XGBoost loads what foreloop saves and predicts the same bits, and each goes on from the other's trees;
- NDCG on unseen groups within 0.005, or what chance makes of it (2.5 standard errors) where that is more: on synthetic
  rows with quantile bins, and on the measured schedules of train/data (features formed by the default bundle) over five
  folds.

    python test_ranker.py [--full] [--seed N]

Needs numpy, scipy and xgboost 3.2. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import pathlib
import sys
import warnings

import numpy as np
import xgboost as xgb

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402

OBJECTIVES = {"ndcg": "rank:ndcg", "pairwise": "rank:pairwise", "squared_error": "reg:squarederror"}
NAMES = {"rounds": None, "depth": "max_depth", "bins": "max_bin", "eta": "eta", "lambda_": "lambda",
         "min_child_weight": "min_child_weight", "min_split_gain": "gamma", "subsample": "subsample",
         "columns_by_node": "colsample_bynode", "base_score": "base_score"}


def xgb_train(rows, groups, relevances, options, start=None):
    """xgboost's trees with the options of foreloop_ranker_options."""
    data = xgb.DMatrix(rows, label=relevances)
    objective = OBJECTIVES[options.get("objective", "ndcg")]
    parameters = {"objective": objective, "tree_method": "hist", "nthread": 1, "base_score": 0, "eta": 0.1,
                  "max_depth": 6, "max_bin": 256, "min_child_weight": 0}
    parameters.update({NAMES[k]: v for k, v in options.items() if NAMES.get(k)})
    if objective.startswith("rank"):
        data.set_group(groups)
        parameters.update(
            lambdarank_pair_method={"top": "topk", "mean": "mean"}[options.get("pairs", "top")],
            lambdarank_normalization=not options.get("keep_gradient_scale", 0),
            lambdarank_score_normalization=not options.get("keep_pair_scale", 0))
        if options.get("pair_count"):
            parameters["lambdarank_num_pair_per_sample"] = options["pair_count"]
        if objective == "rank:ndcg":
            parameters["ndcg_exp_gain"] = not options.get("linear_gain", 0)
    return xgb.train(parameters, data, options.get("rounds", 300), xgb_model=start)


def margins(booster, rows):
    return booster.predict(xgb.DMatrix(rows), output_margin=True)


def booster_of(ranker):
    booster = xgb.Booster()
    booster.load_model(bytearray(ranker.to_json()))
    return booster


def synthetic(rng, groups, columns, steps=0, missing=0.0):
    """Rows whose relevance follows some of the columns; `steps`: values are multiples of 1 / steps."""
    rows = rng.standard_normal((sum(groups), columns)).astype(np.float32)
    if steps:
        rows = (np.round(rows * steps) / steps).astype(np.float32)
    value = rows[:, 0] + rows[:, 1] * rows[:, 2] + np.abs(rows[:, 3]) + 0.5 * rng.standard_normal(len(rows))
    if missing:
        rows[rng.random(rows.shape) < missing] = np.nan
    return rows, np.clip(np.round(4 + 2 * value), 0, 15).astype(np.float32)


class Tests:
    def __init__(self, lib, seed, full):
        self.lib, self.seed, self.full, self.passed, self.failed = lib, seed, full, 0, 0

    def check(self, good, text):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f"{'ok' if good else 'not ok'} - {text}", flush=True)

    def same_trees(self):
        variants = [{}, {"pair_count": 5}, {"pair_count": 1000}, {"linear_gain": 1}, {"keep_gradient_scale": 1},
                    {"keep_pair_scale": 1}, {"lambda_": 0.0}, {"lambda_": 20.0}, {"min_child_weight": 1.0},
                    {"min_split_gain": 0.5}, {"depth": 2, "eta": 0.5}, {"depth": 9, "eta": 1.0}]
        for objective in OBJECTIVES:
            for missing in (0.0, 0.3):
                worst, unequal, models = 0.0, [], 0
                for number, variant in enumerate(variants):
                    rng = np.random.default_rng([self.seed, number, int(missing * 10), len(objective)])
                    groups = [int(n) for n in rng.integers(2, 90, 15)]
                    rows, relevances = synthetic(rng, groups, 9, steps=3, missing=missing)
                    options = {"objective": objective, "rounds": 5, "depth": 4, **variant}
                    with self.lib.train_ranker(rows, groups, relevances=relevances, **options) as ranker:
                        expected = margins(xgb_train(rows, groups, relevances, options), rows)
                        actual = ranker.predict(rows, margin=True)[:, 0]
                    error = float(np.max(np.abs(actual - expected)) / np.max(np.abs(expected)))
                    models += 1
                    worst = max(worst, error if error < 1e-5 else 0.0)
                    if error >= 1e-5:
                        unequal.append(f"{variant} {error:.1e}")
                # Splits of equal gain, to rounding, may be decided otherwise: in few models.
                self.check(len(unequal) <= 3, f"{objective}, {missing:.0%} missing: the same trees in "
                           f"{models - len(unequal)} of {models} models, margins within {worst:.1e}"
                           + "".join(f"; {text}" for text in unequal))

    def loads(self):
        wrong, models = [], 0
        for number in range(40 if self.full else 12):
            rng = np.random.default_rng([self.seed, 1000 + number])
            groups = [int(n) for n in rng.integers(1, 60, 8)] + [20]
            rows, relevances = synthetic(rng, groups, int(rng.integers(4, 40)), missing=0.2 * (number % 2))
            options = {"objective": list(OBJECTIVES)[number % 3], "rounds": int(rng.integers(1, 60)),
                       "depth": int(rng.integers(1, 9)), "base_score": float(np.float32(rng.normal())),
                       "subsample": 0.7, "columns_by_node": 0.5, "columns_by_tree": 0.8, "seed": number,
                       "pairs": ["top", "mean"][number // 3 % 2]}
            if number % 4 == 0:
                options["feature_names"] = [f"n\u00e4me {i}" for i in range(rows.shape[1])]
            other, _ = synthetic(rng, [500], rows.shape[1], missing=0.1)
            other[::7] = rows[rng.integers(0, len(rows), len(other[::7]))]
            with self.lib.train_ranker(rows, groups, relevances=relevances, **options) as ranker:
                booster = booster_of(ranker)
                data = xgb.DMatrix(other, feature_names=options.get("feature_names"))
                actual = ranker.predict(other, margin=True)[:, 0]
                if not np.array_equal(booster.predict(data, output_margin=True), actual):
                    wrong.append(f"model {number}: margins")
                if not np.array_equal(booster.predict(data, pred_leaf=True),
                                      ranker.predict_rows(other, "leaf_index").astype(int)):
                    wrong.append(f"model {number}: leaves")
                with self.lib.gbdt(ranker.to_json()) as reopened:
                    if not np.array_equal(reopened.predict(other, margin=True)[:, 0], actual):
                        wrong.append(f"model {number}: reopened")
                # What XGBoost makes of it when it saves it again.
                with self.lib.gbdt(bytes(booster.save_raw("json"))) as again:
                    if not np.array_equal(again.predict(other, margin=True)[:, 0], actual):
                        wrong.append(f"model {number}: saved by xgboost")
            models += 1
        self.check(not wrong, f"xgboost loads {models} models: the same margins to the bit, the same leaves"
                   + "".join(f"; {text}" for text in wrong[:3]))

    def saves(self):
        """XGBoost's own models, read and saved again."""
        rng, wrong, models = np.random.default_rng([self.seed, 9]), [], 0
        rows, relevances = synthetic(rng, [100] * 3, 6, missing=0.1)
        for objective in ("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror",
                          "binary:logitraw", "rank:ndcg", "rank:pairwise", "rank:map"):
            for booster in ("gbtree", "dart"):
                binary = objective.startswith("binary") or objective == "rank:map"
                data = xgb.DMatrix(rows, label=relevances > 4 if binary else relevances)
                if objective.startswith("rank"):
                    data.set_group([100] * 3)
                parameters = {"objective": objective, "booster": booster, "max_depth": 4, "nthread": 1}
                if booster == "dart":
                    parameters["rate_drop"] = 0.3
                model, models = xgb.train(parameters, data, 7), models + 1
                with self.lib.gbdt(bytes(model.save_raw("json"))) as read:
                    again = booster_of(read)
                if not np.array_equal(margins(again, rows), margins(model, rows)):
                    wrong.append(f"{objective} {booster}")
        self.check(not wrong, f"{models} models of xgboost, saved by foreloop, give xgboost the same bits"
                   + "".join(f"; {text}" for text in wrong))

    def goes_on(self):
        rng = np.random.default_rng([self.seed, 5])
        groups = [40] * 12
        rows, relevances = synthetic(rng, groups, 8, steps=3)
        half, whole = {"rounds": 6, "depth": 4}, {"rounds": 12, "depth": 4}
        expected = margins(xgb_train(rows, groups, relevances, whole), rows)
        with self.lib.train_ranker(rows, groups, relevances=relevances, **half) as ranker:
            theirs = xgb_train(rows, groups, relevances, half, start=booster_of(ranker))
            error = np.abs(margins(theirs, rows) - expected).max()
            self.check(error < 1e-4, f"xgboost goes on from foreloop's trees: within {error:.1e} of 12 rounds")
        begun = xgb_train(rows, groups, relevances, half)
        with self.lib.gbdt(bytes(begun.save_raw("json"))) as start, \
                self.lib.train_ranker(rows, groups, relevances=relevances, start=start, **half) as ranker:
            error = np.abs(ranker.predict(rows, margin=True)[:, 0] - expected).max()
            self.check(error < 1e-4, f"foreloop goes on from xgboost's trees: within {error:.1e} of 12 rounds")

    def ndcg(self, rows, groups, relevances, train, options):
        """NDCG and NDCG@10 of foreloop's and of xgboost's trees on the groups that are not in `train`."""
        start = np.concatenate([[0], np.cumsum(groups)])
        pick = lambda inside: [g for g in range(len(groups)) if (g in train) == inside]  # noqa: E731
        part = lambda list_: np.concatenate([np.arange(start[g], start[g + 1]) for g in list_])  # noqa: E731
        inside, outside = pick(True), pick(False)
        a, b = part(inside), part(outside)
        sizes, other = [groups[g] for g in inside], [groups[g] for g in outside]
        with self.lib.train_ranker(rows[a], sizes, relevances=relevances[a], **options) as ranker:
            ours = ranker.predict(rows[b], margin=True)[:, 0]
        theirs = margins(xgb_train(rows[a], sizes, relevances[a], options), rows[b])
        return np.array([[self.lib.ranker_ndcg(rows[b], other, scores, relevances=relevances[b], k=k)
                          for k in (0, 10)] for scores in (ours, theirs)])

    def compare(self, text, results):
        """results [runs][foreloop, xgboost][NDCG, NDCG@10]."""
        results = np.array(results)
        ours, theirs = results.mean(0)
        differences = results[:, 0] - results[:, 1]
        noise = differences.std(0, ddof=1) / np.sqrt(len(results))
        self.check(np.all(np.abs(ours - theirs) < np.maximum(0.005, 2.5 * noise)),
                   f"{text}: NDCG {ours[0]:.4f}, @10 {ours[1]:.4f} on unseen groups; xgboost {theirs[0]:.4f}, "
                   f"{theirs[1]:.4f}; standard errors {noise[0]:.4f}, {noise[1]:.4f}")

    def quality(self):
        for name, options in {"ndcg": {}, "ndcg, drawn rows and columns": {"subsample": 0.7, "columns_by_node": 0.5},
                              "pairwise": {"objective": "pairwise"},
                              "pairwise, mean": {"objective": "pairwise", "pairs": "mean", "pair_count": 8}}.items():
            results = []
            for seed in range(12 if self.full else 4):
                rng = np.random.default_rng([self.seed, 77, seed])
                groups = [50] * 240
                rows, relevances = synthetic(rng, groups, 30)
                results.append(self.ndcg(rows, groups, relevances, set(range(80)),
                                         {"rounds": 60, "depth": 5, "seed": seed, **options}))
            self.compare(f"synthetic, {name}", results)

    def measured(self):
        """Features and relevances of the schedules in train/data."""
        rows, groups, relevances = [], [], []
        with self.lib.model(ROOT / "weights" / "default") as model, model.actions(1 << 20) as actions, \
                model.scorer(actions) as scorer:
            for folder in sorted((ROOT / "train" / "data").glob("*/*")):
                records = list(folder.glob("database_tuning_record.json*"))
                if not records or not (folder / "workload.txt").exists():
                    continue
                with model.workload(latent=np.zeros(model.info["latent_size"], np.float32)) as workload:
                    seconds, sequences = [], []
                    for record in self.lib.records(records[0]):
                        if not isinstance(record, fl.Error) and record["seconds"]:
                            sequences.append(actions.intern(record["actions"]))
                            seconds.append(np.mean(record["seconds"]))
                    rows.append(scorer.features_batch(workload, sequences))
                groups.append(len(seconds))
                relevances.append(np.floor(15 * np.sqrt(np.min(seconds) / np.array(seconds)) + 0.5))
        return np.concatenate(rows), groups, np.concatenate(relevances).astype(np.float32)

    def real_quality(self):
        rows, groups, relevances = self.measured()
        for name, options in {"ndcg": {"pair_count": 64}, "pairwise": {"objective": "pairwise", "pair_count": 64},
                              "drawn rows and columns": {"objective": "pairwise", "pair_count": 64, "subsample": 0.7,
                                                         "columns_by_node": 0.3}}.items():
            results = []
            for seed in range(8 if self.full else 2):
                order = np.random.default_rng([self.seed, seed]).permutation(len(groups))
                for fold in range(5):
                    train = {int(g) for i, g in enumerate(order) if i % 5 != fold}
                    results.append(self.ndcg(rows, groups, relevances, train,
                                             {"rounds": 60, "depth": 5, "seed": 5 * seed + fold, **options}))
            self.compare(f"measured schedules ({len(groups)} groups, {len(rows)} rows), {name}", results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    assert xgb.__version__.startswith("3.2."), f"xgboost 3.2 is the reference, this is {xgb.__version__}"
    warnings.simplefilter("ignore")
    xgb.set_config(verbosity=0)
    tests = Tests(fl.load(), arguments.seed, arguments.full)
    tests.same_trees()
    tests.loads()
    tests.saves()
    tests.goes_on()
    tests.quality()
    tests.real_quality()
    print(f"{tests.passed} passed, {tests.failed} failed")
    return 1 if tests.failed else 0


if __name__ == "__main__":
    sys.exit(main())
