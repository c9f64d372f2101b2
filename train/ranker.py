"""The ranker: XGBoost trees that order the schedules of one workload on one machine, and the score network beside them
(score_network.py): a score is the trees' margin, or with a network their sum.

Groups are (machine, operator). The relevance of a schedule is its speed relative to the best of its group:

    pairs             all pairs of a group, those with a fast schedule more than others (`pair_gradients`); groups count
                      by their size
    rank:ndcg         round(grades x (best time / time) ^ power), the gain being exponential or, with exponential false,
                      the relevance itself
    rank:pairwise     log(best time / time): only its order counts, all pairs alike
    regression        log(best time / time)

Folds are by operator, and metrics are those of metrics.py.
"""
import collections
import dataclasses
import re

import numpy as np
import xgboost

import dataset
import metrics
import score_network


@dataclasses.dataclass(frozen=True)
class Settings:
    objective: str = dataset.one_of("pairs", "pairs", "rank:ndcg", "rank:pairwise", "reg:squarederror")
    top: float = dataset.number(0.5, 0, 1)  # of "pairs": how much more a pair counts whose better schedule is the best
    rounds: int = dataset.whole(300, 1, 10**6)
    depth: int = dataset.whole(5, 1, 30)
    eta: float = dataset.number(0.04, 1e-6, 1)
    subsample: float = dataset.number(0.7, 1e-6, 1)
    columns: float = dataset.number(0.2, 1e-6, 1)
    min_child_weight: float = dataset.number(0.0, 0, 1e30)
    regularisation: float = dataset.number(2.0, 0, 1e30)
    exponential: bool = dataset.one_of(True, True, False)
    grades: int = dataset.whole(15, 1, 10**6)
    power: float = dataset.number(0.5, 1e-6, 1e6)
    pair_method: str = dataset.one_of("topk", "topk", "mean")
    pairs: int = dataset.whole(64, 1, 10**6)
    parallel_trees: int = dataset.whole(1, 1, 10**6)
    bins: int = dataset.whole(32, 2, 10**6)
    seed: int = dataset.whole(0, 0, 2**31 - 1)


def relevance(times, settings):
    speed = np.min(times) / times
    if settings.objective == "rank:ndcg":
        return np.round(settings.grades * speed ** settings.power)
    return np.log(speed)


def pair_gradients(groups, top):
    """xgboost's custom objective: logistic loss of each pair (a, b) with t_a < t_b, weighted by 1 - top + top v^2,
    where v is the speed of a relative to the best of the group."""
    sizes = [len(times) for _, times in groups]
    used = np.arange(max(sizes))[None, :] < np.array(sizes)[:, None]
    times = np.full(used.shape, np.inf)
    times[used] = np.concatenate([times for _, times in groups])
    speed = times.min(1, keepdims=True) / times
    weight = (speed[:, :, None] > speed[:, None, :]) & used[:, None, :]
    weight = (weight * (1 - top + top * speed[:, :, None] ** 2)).astype(np.float32)
    weight *= (np.array(sizes) / np.maximum(weight.sum((1, 2)), 1e-9))[:, None, None].astype(np.float32)

    def gradients(margins, _data):
        scores = np.zeros(used.shape, np.float32)
        scores[used] = margins
        wrong = 1 / (1 + np.exp(scores[:, :, None] - scores[:, None, :]))
        slope = weight * wrong
        bend = slope * (1 - wrong)
        return (slope.sum(1) - slope.sum(2))[used], (bend.sum(1) + bend.sum(2))[used] + 1e-3

    return gradients


def matrix(groups, names, settings=None):
    """DMatrix of groups [(features [n][f], times [n])]; labels and groups with settings."""
    rows = np.concatenate([features for features, _ in groups])
    result = xgboost.DMatrix(rows, feature_names=list(names))
    if settings:
        result.set_label(np.concatenate([relevance(times, settings) for _, times in groups]))
        if settings.objective.startswith(("rank", "pairs")):
            result.set_group([len(times) for _, times in groups])
    return result


def train(groups, names, settings):
    own = settings.objective == "pairs"
    parameters = {"objective": "rank:pairwise" if own else settings.objective,
                  "max_depth": settings.depth, "eta": settings.eta, "subsample": settings.subsample,
                  "colsample_bynode": settings.columns, "tree_method": "hist",
                  "min_child_weight": settings.min_child_weight, "lambda": settings.regularisation,
                  "num_parallel_tree": settings.parallel_trees, "max_bin": settings.bins,
                  "seed": settings.seed, "nthread": 1}
    if not own and settings.objective.startswith("rank"):
        parameters.update(lambdarank_pair_method=settings.pair_method, lambdarank_num_pair_per_sample=settings.pairs)
    if settings.objective == "rank:ndcg":
        parameters["ndcg_exp_gain"] = settings.exponential
    try:
        return xgboost.train(parameters, matrix(groups, names, settings), settings.rounds,
                             obj=pair_gradients(groups, settings.top) if own else None)
    except xgboost.core.XGBoostError as error:  # what it refuses of the settings, with a trace of its own calls
        raise SystemExit("xgboost: " + re.sub(r"^\[[\d:]+\] \S+: ", "", str(error)).partition("Stack trace")[0].strip())


def score(booster, features, names, network=None):
    margin = booster.predict(xgboost.DMatrix(features, feature_names=list(names)), output_margin=True)
    return margin + network.score(features) if network else margin


def evaluate(booster, groups, names):
    return [metrics.of_workload(times, score(booster, features, names)) for features, times in groups]


def select(groups, names, wanted):
    columns = [names.index(name) for name in wanted]
    return [(rows[:, columns], times) for rows, times in groups]


def fit(operators, groups, names, settings, network=None):
    """(trees, score network or None, what they read): a bundle lists what its trees read, so they are trained again on
    just that, and the network (of score_network.Settings) on the same."""
    learnt = dataset.joined(operators, groups)
    wanted = used(train(learnt, names, settings))
    if not wanted:
        raise SystemExit("no tree splits anywhere: it takes schedules that differ, and settings that let trees grow")
    learnt = select(learnt, names, wanted)
    return train(learnt, wanted, settings), network and score_network.train(learnt, network), wanted


def learn(groups, names, settings, network=None):
    """{part: its scores of rows}: the "trees", and with score_network.Settings also the "network", which learns from
    the same groups and reads what those trees do, and "trees and network", their sum."""
    booster = train(groups, names, settings)
    parts = {"trees": lambda rows: score(booster, rows, names)}
    if network:
        read = [names.index(name) for name in used(booster)]
        beside = score_network.train([(rows[:, read], times) for rows, times in groups], network)
        parts["network"] = lambda rows: beside.score(rows[:, read])
        parts["trees and network"] = lambda rows: parts["trees"](rows) + parts["network"](rows)
    return parts


def cross_validate(operators, groups, fold_of, names, settings, network=None, seeds=4):
    """{part of `learn`: rows}: the metrics of each operator by models that never saw its fold, the mean over seeds: with
    a few dozen operators one seed's top-1 moves by 0.03."""
    found = collections.defaultdict(lambda: [[] for _ in groups])
    for fold in sorted(set(fold_of)):
        inside = [i for i, f in enumerate(fold_of) if f != fold]
        outside = [i for i, f in enumerate(fold_of) if f == fold]
        learnt = dataset.joined([operators[i] for i in inside], [groups[i] for i in inside])
        for seed in range(seeds):
            models = [one and dataclasses.replace(one, seed=one.seed + seed) for one in (settings, network)]
            for part, scores in learn(learnt, names, *models).items():
                for i in outside:
                    found[part][i].append(scores(groups[i][0]))
    return {part: [metrics.of_seeds(times, scores) for (_, times), scores in zip(groups, by_group)]
            for part, by_group in found.items()}


def cross_validation(operators, groups, fold_of, names, arms, settings, network=None):
    """{label: figures} for the manifest, printed on the way. `arms` are {label: names that the trees may read}; the
    first is what is to be released, so that one is tried with the network too."""
    result = {}
    for label, wanted in arms.items():
        found = cross_validate(operators, select(groups, names, wanted), fold_of, wanted, settings,
                               None if result else network)
        for part, rows in found.items():
            name = label if part == "trees" else f"{label}, {part}"
            result[name] = metrics.known(metrics.mean(rows))
            print("cross-validation,", name, result[name], flush=True)
        if "network" in found:
            print("the network adds", metrics.gains(found["trees and network"], found["trees"]), flush=True)
    return result


def informative(groups, names):
    """Names of the columns that vary, each distinct column once."""
    rows, seen, kept = np.concatenate([features for features, _ in groups]), set(), []
    for i, name in enumerate(names):
        column = rows[:, i].tobytes()
        if np.ptp(rows[:, i]) > 0 and column not in seen:
            seen.add(column)
            kept.append(name)
    return kept


def used(booster):
    """Names of the features that some split reads, in the booster's order."""
    read = booster.get_score(importance_type="weight")
    return [name for name in booster.feature_names if name in read]
