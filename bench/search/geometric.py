"""Geometric means of ratios of latencies, and their intervals over subgraphs."""
import math
import random


def mean(values):
    """None when there are none; what failed, None or infinite, is left out."""
    values = [value for value in values if value and math.isfinite(value)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def interval(ratios, draws=2000):
    """The ends of the 95 % interval of the mean, by bootstrap over subgraphs; `ratios`: a list for each."""
    ratios = [own for own in ([ratio for ratio in own if ratio and math.isfinite(ratio)] for own in ratios) if own]
    source = random.Random(1)
    means = sorted(mean([ratio for own in source.choices(ratios, k=len(ratios)) for ratio in own]) for _ in range(draws))
    return [means[draws // 40], means[draws - 1 - draws // 40]]
