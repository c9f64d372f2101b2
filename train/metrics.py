"""How good a ranking of measured schedules is.

For one workload with measured times t[n] (seconds) and predicted scores s[n] (higher is predicted faster):

    top-k      min(t) / min(t of the k first by s)       1 is perfect; equal scores stand in the order of the records
    pairwise   share of the pairs with t[i] < t[j] for which s[i] > s[j]; equal scores count one half
    NDCG@10    gain min(t) / t, discount 1 / log2(1 + rank), divided by that of the perfect order
    regret-k   min(t of the k first by s) / min(t) - 1: what is lost when only those k are measured; unknown (nan) where
               the pool has no more than k

A figure for several workloads is the plain mean over the workloads; `sum-k` is TLP's form of top-k, the sum over the
workloads of min(t) divided by the sum of min(t of the k first), in which slow workloads count more. Intervals are 95 %
percentile bootstrap intervals over workloads: what other workloads of the kind would give, not other seeds.

`pairs_by_ratio` takes the pairs apart by how far their times lie from each other.

Two references have the same form: `random_order`, the exact expectation under a uniformly random order, and `ceiling`,
what a second measurement reaches as a model, scored by the first: no ranking can be told from a perfect one beyond it.
"""
import math

import numpy as np

TOP = (1, 5, 10)
REGRET = (8, 16, 32, 64)
NAMES = tuple([f"top{k}" for k in TOP] + ["pairwise", "ndcg10"] + [f"regret{k}" for k in REGRET])
SUMS = tuple(f"sum{k}" for k in TOP)
SHORT = ("top1", "top5", "pairwise")
RATIOS = (1, 1.05, 1.1, 1.2, 2)  # where the classes of pairs_by_ratio begin
COMPARED = ("top1", "top5", "pairwise", "ndcg10")  # between models


def best_of_first(times, scores, k):
    """min(times of the k first by score)."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")[:k]
    return float(np.min(np.asarray(times)[order]))


def curve(times, scores, longest):
    """top-k for k = 1 .. longest; 1 beyond the pool."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    reached = np.min(times) / np.minimum.accumulate(np.asarray(times)[order])[:longest]
    return np.concatenate([reached, np.ones(longest - len(reached))])


def pairwise(times, scores):
    """Share of the pairs of unequal times that the scores order rightly."""
    times, scores = np.asarray(times), np.asarray(scores, np.float64)
    faster = times[:, None] < times[None, :]
    right = np.sign(scores[:, None] - scores[None, :]) * 0.5 + 0.5
    return float(right[faster].mean()) if faster.any() else 1.0


def pairs_by_ratio(times, scores):
    """[classes][2]: the pairs whose times have a ratio in (RATIOS[i], RATIOS[i + 1]], the last class without end, and how
    many of them the scores order rightly; equal scores count one half."""
    times, scores = np.asarray(times), np.asarray(scores, np.float64)
    ratio = times[None, :] / times[:, None]
    right = np.sign(scores[:, None] - scores[None, :]) * 0.5 + 0.5
    inside = [(ratio > low) & (ratio <= high) for low, high in zip(RATIOS, (*RATIOS[1:], math.inf))]
    return np.array([[mask.sum(), right[mask].sum()] for mask in inside])


def _discounts(count):
    return 1 / np.log2(2 + np.arange(count))


def ndcg(times, scores, k=10):
    times = np.asarray(times)
    gain = np.min(times) / times
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")[:k]
    discounts = _discounts(len(order))
    return float(gain[order] @ discounts / (np.sort(gain)[::-1][:k] @ discounts))


def _row(times, first, right, gained):
    """`first`: k -> (expected) best time of the k first."""
    best, n = float(np.min(times)), len(times)
    row = {f"top{k}": first(k, lambda t: best / t) for k in TOP}
    row.update(pairwise=right, ndcg10=gained)
    row.update((f"regret{k}", first(k, lambda t: t / best - 1) if n > k else math.nan) for k in REGRET)
    row.update(best=best, **{f"first{k}": first(k, lambda t: t) for k in TOP})
    return row


def of_workload(times, scores):
    """The metrics of one workload, by name, and what `sum-k` needs: `best`, `first1`, ..."""
    return _row(times, lambda k, f: f(best_of_first(times, scores, k)), pairwise(times, scores), ndcg(times, scores))


def of_seeds(times, scores_by_seed):
    """The same for a model that was trained with several seeds: the mean over them."""
    rows = [of_workload(times, scores) for scores in scores_by_seed]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def random_order(times):
    """Expectation of `of_workload` over all orders. P(the i-th fastest is the best of k) = C(n-1-i, k-1) / C(n, k)."""
    times = np.sort(times)
    n = len(times)

    def expected(k, f):
        k = min(k, n)
        return float(sum(math.comb(n - 1 - i, k - 1) * f(float(times[i])) for i in range(n)) / math.comb(n, k))

    gain, discounts = times[0] / times, _discounts(min(10, n))
    return _row(times, expected, 0.5, float(gain.mean() * discounts.sum() / (gain[:10] @ discounts)))


def ceiling(repeats):
    """Metrics of one measurement as the model and the median of the others as the truth, averaged over which one it is.
    `repeats` [n][r] are repeated measurements, r >= 2."""
    rows = [of_workload(times, scores) for times, scores in each_repeat(repeats)]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def each_repeat(repeats):
    """(median of the others as times, scores) for each repeated measurement as the model; `repeats` [n][r]."""
    repeats = np.asarray(repeats)
    return [(np.median(np.delete(repeats, j, 1), 1), -repeats[:, j]) for j in range(repeats.shape[1])]


def _mean(rows, pick):
    """{name: figure} of the rows `pick`."""
    result = {name: float(np.nanmean(values)) if np.isfinite(values := np.array([rows[i][name] for i in pick])).any()
              else math.nan for name in NAMES}
    for k in TOP:
        result[f"sum{k}"] = sum(rows[i]["best"] for i in pick) / sum(rows[i][f"first{k}"] for i in pick)
    return result


def mean(rows):
    """The figures of a list of workloads: NAMES and SUMS."""
    rows = list(rows)
    return {name: round(value, 4) for name, value in _mean(rows, range(len(rows))).items()}


def intervals(rows, draws=1000, seed=0):
    """{name: (low, high)}: 95 % bootstrap intervals of `mean` over workloads."""
    rows, random = list(rows), np.random.default_rng(seed)
    table = np.array([[row[name] for name in NAMES] for row in rows])
    sums = np.array([[row["best"], *(row[f"first{k}"] for k in TOP)] for row in rows])
    pick = random.integers(0, len(rows), (draws, len(rows)))
    known = np.isfinite(table)
    counts = known[pick].sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, table, 0)[pick].sum(1) / np.where(counts, counts, np.nan)
        ratios = sums[pick][:, :, :1].sum(1) / sums[pick][:, :, 1:].sum(1)
    values = np.concatenate([means, ratios], 1)
    result = {}
    for name, column in zip(NAMES + SUMS, values.T):
        column = column[np.isfinite(column)]
        bounds = np.percentile(column, [2.5, 97.5]) if len(column) else np.full(2, math.nan)
        result[name] = tuple(np.round(bounds, 4).tolist())
    return result


def difference(rows, others, name, draws=2000, seed=0):
    """(mean, low, high) of the metric's difference between two models on the same workloads, by paired bootstrap."""
    gaps = np.array([row[name] - other[name] for row, other in zip(rows, others)])
    gaps = gaps[np.isfinite(gaps)]
    picked = gaps[np.random.default_rng(seed).integers(0, len(gaps), (draws, len(gaps)))].mean(1)
    return tuple(round(float(x), 4) for x in (gaps.mean(), *np.percentile(picked, [2.5, 97.5])))


def gains(rows, others):
    """By how much `rows` are ahead of `others`, with intervals, in words."""
    return ", ".join("{} {:+.3f} ({:+.3f} .. {:+.3f})".format(name, *difference(rows, others, name)) for name in COMPARED)


def known(figures):
    """Without those that are unknown: JSON has no nan."""
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def json_ready(value):
    """The same with None for what is unknown."""
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def show(metrics, names=SHORT):
    return "/".join(f"{metrics[name]:.3f}" for name in names)
