"""Makes tests/golden/gbdt: small XGBoost models, rows, and the margins and predictions that XGBoost gives for them.

    python make_gbdt.py           all models of the pinned version, and the expected numbers of every model
    python make_gbdt.py --old     models only, for an older XGBoost (1.0.2, 1.3.3, 1.4.2, 1.7.6, 2.1.4, 3.0.5 and
                                  3.1.3 were used)

The second form runs first, once under each older version: it leaves files that the first form gives expected numbers,
since it is the pinned version that defines them. Vector leaves of before 3.2 are an exception, for the pinned version
cannot read them: their numbers come from the version that wrote them, for rows.npy as it stands.

rows.npy holds the rows of all cases. cases.txt has a line for each: model, expected numbers (margins, then
predictions, side by side), and for dumps what the options must give: objective, bits of the base margin, classes,
parallel trees. explained.txt has a line for each model that is explained: model, leaf indices, contributions ("-" where
XGBoost has none) and importance (a row for each of weight, gain, cover, total_gain, total_cover).
"""
import pathlib
import sys

import numpy as np
import xgboost as xgb

PINNED = {"xgboost": "3.2", "numpy": "2"}
HERE = pathlib.Path(__file__).resolve().parent / "gbdt"
COLUMNS, CATEGORICAL = 5, 4


def training_rows(rng, count=160):
    x = rng.normal(size=(count, COLUMNS)).astype(np.float32)
    x[:, 2] = np.round(x[:, 2] * 3)
    x[:, CATEGORICAL] = rng.integers(0, 12, count)
    x[rng.random(x.shape) < 0.15] = np.nan
    return x


def test_rows(rng):
    """Ordinary rows, and every column at the edges of float32 and of the categories."""
    x = training_rows(rng, 20)
    edges = np.array([0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 3.4e38, -3.4e38, np.nan], np.float32)
    extra = np.tile(x[0], (len(edges) + 5, 1))
    extra[: len(edges), :CATEGORICAL] = edges[:, None]
    extra[len(edges):, CATEGORICAL] = [11.5, 12, 63, 16777215, 3e38]
    return np.concatenate([x, extra, np.full((1, COLUMNS), np.nan, np.float32)])


def labels(objective, x, rng, classes=3):
    score = np.nan_to_num(x[:, 0]) - np.nan_to_num(x[:, 1]) * (np.nan_to_num(x[:, CATEGORICAL]) % 3)
    noisy = score + rng.normal(size=len(x)) * 0.3
    kind = objective.split(":")[0]
    if kind == "multi":
        return np.digitize(noisy, np.quantile(noisy, np.arange(1, classes) / classes)).astype(np.float32)
    if kind == "binary" or objective == "reg:logistic":
        return (noisy > 0).astype(np.float32)
    if kind == "rank":
        return np.digitize(noisy, [-1, 0, 1]).astype(np.float32)
    if objective in ("count:poisson",):
        return np.floor(np.exp(noisy * 0.3) * 2).astype(np.float32)
    if objective in ("reg:gamma", "reg:tweedie", "survival:aft", "reg:squaredlogerror"):
        return np.exp(noisy * 0.3).astype(np.float32)
    if objective == "survival:cox":
        return (np.exp(noisy * 0.3) * np.where(rng.random(len(x)) < 0.3, -1, 1)).astype(np.float32)
    return noisy.astype(np.float32)


def matrix(objective, x, y, **keywords):
    data = xgb.DMatrix(x, label=None if objective == "survival:aft" else y, **keywords)
    if objective.startswith("rank:"):
        data.set_group([40] * (len(x) // 40))
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", y)
        data.set_float_info("label_upper_bound", np.where(y > 2, np.inf, y).astype(np.float32))
    return data


IMPORTANCE_KINDS = ("weight", "gain", "cover", "total_gain", "total_cover")


def version():
    return tuple(int(part) for part in xgb.__version__.split(".")[:2])


def write(booster, name):
    booster.save_model(str(HERE / (name + ".json")))


def expected_numbers(booster, rows, **keywords):
    data = xgb.DMatrix(rows, **keywords)
    tables = booster.predict(data, output_margin=True), booster.predict(data)
    return np.concatenate([table.reshape(len(rows), -1) for table in tables], axis=1).astype(np.float32)


def vector_leaves(name, rng):
    x = training_rows(rng)
    y = np.stack([labels("reg:squarederror", x, rng) for _ in range(3)], axis=1)
    booster = xgb.train({"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 3, "seed": 1,
                         "nthread": 1, "num_parallel_tree": 2, "subsample": 0.6}, xgb.DMatrix(x, y), 3)
    write(booster, name)
    return booster


def old_models():
    prefix = "v{}_{}".format(*version())
    rng = np.random.default_rng(5)
    gamma = 0.0 if version() == (1, 0) else 0.5  # later versions refuse 1.0's files with deleted nodes
    for name, objective, parameters in (
            ("logistic", "binary:logistic", {}),
            ("softprob_dart", "multi:softprob",
             {"num_class": 3, "booster": "dart", "rate_drop": 0.4, "num_parallel_tree": 2, "subsample": 0.7,
              "max_depth": 2}),
            ("poisson", "count:poisson", {"gamma": gamma, "base_score": 2.0, "tree_method": "exact"}),
            ("logitraw", "binary:logitraw", {})):
        x = training_rows(rng)
        parameters = {"objective": objective, "max_depth": 3, "seed": 1, "nthread": 1, "eta": 0.4, **parameters}
        write(xgb.train(parameters, matrix(objective, x, labels(objective, x, rng)), 4), f"{prefix}_{name}")
    if version() >= (1, 6):
        x = training_rows(rng)
        data = matrix("reg:squarederror", x, labels("reg:squarederror", x, rng), enable_categorical=True,
                      feature_types=["q"] * 4 + ["c"], feature_names=list("abcde"))
        write(xgb.train({"tree_method": "hist", "max_depth": 4, "max_cat_to_onehot": 2, "seed": 1}, data, 3,
                        evals=[(data, "t")], early_stopping_rounds=2, verbose_eval=False), f"{prefix}_categories")
        for path in sorted(HERE.glob(f"{prefix}_*.json")):
            xgb.Booster(model_file=str(path)).save_model(str(path.with_suffix(".ubj")))
    if version() >= (2, 0):
        name = f"{prefix}_vectors"
        booster = vector_leaves(name, rng)
        booster.save_model(str(HERE / (name + ".ubj")))
        np.save(HERE / (name + ".npy"), expected_numbers(booster, np.load(HERE / "rows.npy")))


class Maker:
    def __init__(self):
        self.rng = np.random.default_rng(20260101)
        self.rows = test_rows(self.rng)
        np.save(HERE / "rows.npy", self.rows)
        self.cases, self.explained = [], []

    def expect(self, booster, name, types=None):
        """Writes the expected numbers and the case's line."""
        names = booster.feature_names
        keywords = {"feature_names": names} if names else {}
        if types:
            keywords.update(enable_categorical=True, feature_types=types)
        np.save(HERE / (name + ".npy"), expected_numbers(booster, self.rows, **keywords))
        self.add_cases(name)
        return xgb.DMatrix(self.rows, **keywords)

    def add_cases(self, name):
        self.cases.append(f"{name}.json {name}.npy - - 0 0")
        if (HERE / (name + ".ubj")).exists():
            self.cases.append(f"{name}.ubj {name}.npy - - 0 0")

    def explain(self, booster, name, data, contributions=True):
        leaves = booster.predict(data, pred_leaf=True).reshape(len(self.rows), -1)
        np.save(HERE / (name + ".leaves.npy"), leaves.astype(np.float32))
        if contributions:
            table = booster.predict(data, pred_contribs=True).reshape(len(self.rows), -1)
            np.save(HERE / (name + ".contributions.npy"), table.astype(np.float32))
        names = booster.feature_names or [f"f{i}" for i in range(COLUMNS)]
        scores = [booster.get_score(importance_type=kind) for kind in IMPORTANCE_KINDS]
        np.save(HERE / (name + ".importance.npy"),
                np.array([[score.get(feature, 0) for feature in names] for score in scores], np.float32))
        self.explained.append(f"{name}.json {name}.leaves.npy "
                              f"{name + '.contributions.npy' if contributions else '-'} {name}.importance.npy")

    def train(self, name, objective="reg:squarederror", rounds=4, categories=False, named=False, dump=False, y=None,
              explain=False, **parameters):
        x = training_rows(self.rng)
        types = ["q"] * 4 + ["c"] if categories else None
        keywords = {"feature_types": types, "enable_categorical": True} if categories else {}
        if named:
            keywords["feature_names"] = ["height", "w\u00efdth", "depth", "f4", "kind"]
        if y is None:
            y = labels(objective, x, self.rng, parameters.get("num_class", 3))
        data = matrix(objective, x, y, **keywords)
        parameters = {"objective": objective, "max_depth": 3, "seed": 1, "nthread": 1, "eta": 0.4, **parameters}
        booster = xgb.train(parameters, data, rounds)
        write(booster, name)
        if explain:
            booster.save_model(str(HERE / (name + ".ubj")))
        data = self.expect(booster, name, types)
        if explain:
            self.explain(booster, name, data)
        if dump:
            booster.dump_model(str(HERE / (name + ".dump.json")), dump_format="json", with_stats=True)
            bits = np.array(parameters["base_score"], np.float32).view(np.uint32)  # of objectives without a link
            self.cases.append(f"{name}.dump.json {name}.npy {objective} {bits:08x} {parameters.get('num_class', 0)} "
                              f"{parameters.get('num_parallel_tree', 0)}")
        return booster

    def all(self):
        for objective in ("reg:squarederror", "reg:squaredlogerror", "reg:logistic", "reg:pseudohubererror",
                          "reg:absoluteerror", "reg:gamma", "reg:tweedie", "binary:logistic", "binary:logitraw",
                          "binary:hinge", "count:poisson", "survival:cox", "survival:aft", "rank:ndcg",
                          "rank:pairwise", "rank:map"):
            extra = {"lambdarank_num_pair_per_sample": 4} if objective.startswith("rank") else {}
            if objective == "rank:map":
                self.train("rank_map", objective, y=self.rng.integers(0, 2, 160), **extra)
            else:
                self.train(objective.replace(":", "_"), objective, **extra)
        self.train("quantile", "reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9])
        self.train("softmax", "multi:softmax", num_class=4)
        self.train("softprob", "multi:softprob", num_class=4, explain=True)
        self.train("targets", y=self.rng.normal(size=(160, 3)))
        self.train("targets_binary", "binary:logistic", y=self.rng.integers(0, 2, (160, 2)))
        self.train("base_score", "reg:gamma", base_score=3.5)
        self.train("base_score_edge", "binary:logistic", base_score=1e-9)
        self.train("dart", booster="dart", rate_drop=0.5, rounds=10, max_depth=2)
        self.train("dart_forest", "multi:softprob", num_class=3, booster="dart", rate_drop=0.5, num_parallel_tree=2,
                   subsample=0.6, normalize_type="forest", max_depth=2, explain=True)
        self.train("forest", num_parallel_tree=3, subsample=0.5, dump=True, base_score=0.25)
        self.train("softmax_forest", "multi:softmax", num_class=3, num_parallel_tree=2, subsample=0.5, dump=True,
                   base_score=0.5)
        self.train("categories", categories=True, max_cat_to_onehot=2, max_depth=4, dump=True, base_score=-1.0,
                   explain=True)
        self.train("onehot", categories=True, max_cat_to_onehot=99, max_depth=5, dump=True, base_score=0.0)
        self.train("named", categories=True, named=True, max_cat_to_onehot=4, explain=True)
        self.train("lossguide", grow_policy="lossguide", max_leaves=12, max_depth=0, dump=True, base_score=0.125,
                   explain=True)
        self.train("pruned", tree_method="exact", gamma=2.0, max_depth=6, dump=True, base_score=0.5)
        self.train("stump", max_depth=1, rounds=1, dump=True, base_score=0.5, explain=True)
        self.train("root_only", min_child_weight=1e9, rounds=2, dump=True, base_score=0.5)
        booster = vector_leaves("vectors", self.rng)
        booster.save_model(str(HERE / "vectors.ubj"))
        self.explain(booster, "vectors", self.expect(booster, "vectors"), contributions=False)
        for path in sorted(HERE.glob("v[0-9]_*.json")):
            if path.stem.endswith("_vectors"):
                self.add_cases(path.stem)
                continue
            booster = xgb.Booster(model_file=str(path))
            self.expect(booster, path.stem, booster.feature_types)
        (HERE / "explained.txt").write_text("\n".join(self.explained) + "\n")
        (HERE / "cases.txt").write_text("\n".join(self.cases) + "\n")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    if "--old" in sys.argv[1:]:
        old_models()
    else:
        assert xgb.__version__.startswith(PINNED["xgboost"] + "."), xgb.__version__
        assert np.__version__.startswith(PINNED["numpy"] + "."), np.__version__
        Maker().all()
