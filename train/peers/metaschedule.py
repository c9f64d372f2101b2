"""TVM's own way: a model over MetaSchedule's per-store features (per_store.py), for which every candidate is replayed.

    xgb_model      the objective and settings of MetaSchedule's XGBModel: a schedule's prediction is the sum over its
                   stores, fitted to its relative speed by squared error weighted by that speed; training stops when its
                   own error has not fallen for 50 rounds
    lambda_rank    one row a schedule, the sum, the largest and the mean of each feature over the stores, ranked by the
                   same trees and objective as foreloop's ranker
"""
import numpy as np
import xgboost

import dataset
import ranker


def stores_of(operator, folder):
    """float32 arrays [stores][features], one for each candidate of the operator; None if one was not replayed."""
    path = folder / f"{operator.name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: run train/peers/per_store.py on the data first")
    saved = np.load(path)
    row_of = {int(line): i for i, line in enumerate(saved["lines"])}
    rows, first = saved["rows"], saved["first"]
    if any(candidate.line not in row_of for candidate in operator.candidates):
        raise SystemExit(f"{operator.name}: run per_store.py again, it lacks records")
    return [rows[first[row_of[c.line]]:first[row_of[c.line] + 1]] for c in operator.candidates]


def _packed(schedules):
    return np.concatenate(schedules), np.repeat(np.arange(len(schedules)), [len(rows) for rows in schedules])


def xgb_model(training, tested, folder, seed=43, rounds=1000, patience=50):
    """Scores of the tested operators' candidates, a list of arrays."""
    rows, owner = _packed([rows for operator in training for rows in stores_of(operator, folder)])
    speed = np.concatenate([operator.times.min() / operator.times for operator in training])[owner]
    data = xgboost.DMatrix(rows, label=speed, weight=speed)
    booster = xgboost.Booster({"max_depth": 10, "gamma": 0.001, "min_child_weight": 0, "eta": 0.2, "seed": seed,
                               "nthread": 1}, [data])
    best, best_round = np.inf, 0
    for i in range(rounds):
        error = np.bincount(owner, booster.predict(data, output_margin=True))[owner] - speed
        rmse = np.sqrt((error ** 2).mean())
        if rmse < best - 1e-4:  # smaller gains take hundreds of rounds that change no ranking
            best, best_round = rmse, i
        if i - best_round >= patience:
            break
        booster.boost(data, iteration=i, grad=error * speed, hess=speed)
    result = []
    for operator in tested:
        rows, owner = _packed(stores_of(operator, folder))
        result.append(np.bincount(owner, booster.predict(xgboost.DMatrix(rows), output_margin=True)))
    return result


def rows_of(operator, folder):
    """float32[candidates][3 features]"""
    return np.stack([np.concatenate([rows.sum(0), rows.max(0), rows.mean(0)]) for rows in stores_of(operator, folder)])


def lambda_rank(training, tested, folder, settings):
    groups = [(rows_of(operator, folder), operator.times) for operator in training]
    names = [f"{what}.{i}" for what in ("sum", "max", "mean") for i in range(groups[0][0].shape[1] // 3)]
    booster = ranker.train(dataset.joined(training, groups), names, settings)
    return [ranker.score(booster, rows_of(operator, folder), names) for operator in tested]
