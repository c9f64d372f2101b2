"""How good a ranking of measured schedules is.

For one workload with measured times t[n] (seconds) and predicted scores s[n] (higher is predicted faster):

    top-k      min(t) / min(t of the k first by s)       1 is perfect; equal scores stand in the order of the records
    pairwise   share of the pairs with t[i] < t[j] for which s[i] > s[j]; equal scores count one half

A figure for several workloads is the plain mean over the workloads. `random_order` gives the exact expectation of the
same numbers under a uniformly random order.
"""
import math

import numpy as np

NAMES = ("top1", "top5", "pairwise")


def top_k(times, scores, k):
    """min(times) / min(times of the k first by score)."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")[:k]
    return float(np.min(times) / np.min(np.asarray(times)[order]))


def pairwise(times, scores):
    """Share of the pairs of unequal times that the scores order rightly."""
    times, scores = np.asarray(times), np.asarray(scores, np.float64)
    faster = times[:, None] < times[None, :]
    right = np.sign(scores[:, None] - scores[None, :]) * 0.5 + 0.5
    return float(right[faster].mean()) if faster.any() else 1.0


def of_workload(times, scores):
    """The three metrics of one workload, by name."""
    return {"top1": top_k(times, scores, 1), "top5": top_k(times, scores, 5), "pairwise": pairwise(times, scores)}


def random_order(times):
    """Expectation of `of_workload` over all orders. P(the i-th fastest is the best of k) = C(n-1-i, k-1) / C(n, k)."""
    times = np.sort(times)
    n = len(times)

    def expected(k):
        k = min(k, n)
        return sum(math.comb(n - 1 - i, k - 1) * times[0] / times[i] for i in range(n)) / math.comb(n, k)

    return {"top1": float(expected(1)), "top5": float(expected(5)), "pairwise": 0.5}


def mean(rows):
    """Mean of metric dictionaries over workloads."""
    return {name: round(float(np.mean([row[name] for row in rows])), 4) for name in NAMES}


def show(metrics):
    return "/".join(f"{metrics[name]:.3f}" for name in NAMES)
