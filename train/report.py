#!/usr/bin/env python3
"""Writes docs/quality.md and its plots: how well a bundle ranks, beside its peers, its own parts, and what it lacks.

    torch/bin/python train/report.py --bundle bundle --states states --stores stores --work work DATA...

Takes the same caches as peers/compare.py and keeps its own in WORK, so that a second run costs seconds. On the
validation part; with --test it writes docs/quality-test.md on the test part and the family never seen, once for a bundle
that is released.
"""
import argparse
import collections
import dataclasses
import hashlib
import json
import pathlib
import sys

import matplotlib
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "foreloop", "font.size": 9, "axes.spines.top": False,
                            "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3})

import actions  # noqa: E402
import compare  # noqa: E402
import dataset  # noqa: E402
import evaluate  # noqa: E402
import features  # noqa: E402
import metrics  # noqa: E402
import properties  # noqa: E402
import ranker  # noqa: E402
import refit  # noqa: E402
import score_network  # noqa: E402
from matplotlib import pyplot  # noqa: E402

LONGEST = 48
GOALS = {"top1": 0.92, "top5": 0.98, "pairwise": 0.85}  # on families that were learnt from
TITLES = {"metaschedule": "MetaSchedule features, XGBModel", "store-rank": "MetaSchedule features, LambdaRank",
          "sequence": "attention over actions (TLP)", "actions": "trees on actions alone",
          "final-text": "oracle: z and properties of the final program", "bundle": "foreloop",
          "trees": "without the score network", "network": "the score network alone"}


def title(name):
    """What a model is called; NAME/N learnt from N schedules of each operator."""
    name, _, schedules = name.partition("/")
    return TITLES.get(name, name) + (f", of {schedules} schedules each" if schedules else "")


def remembered(work, name, key, make):
    """The JSON value of make(), kept in the work folder under its name and what it depends on."""
    digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=8).hexdigest()
    path = work / f"report-{name}.{digest}.json"
    if not path.exists():
        print(f"{name} ...", file=sys.stderr, flush=True)
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def key_of(operators):
    return [(operator.name, operator.machine, len(operator.candidates)) for operator in operators]


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


# ---- Tables ---------------------------------------------------------------------------------------------------------

def markdown(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def figure_text(value):
    return "-" if not np.isfinite(value) else f"{value:.3f}"


def metric_table(table):
    """Means of all metrics; intervals of three."""
    heads = ["", *(head for _, head in evaluate.COLUMNS), "sums 1 / 5 / 10"]
    rows = []
    for name, entries in table.items():
        means, ranges = metrics.mean(entries), metrics.intervals(entries)
        cells = [figure_text(means[column]) + (f" ({ranges[column][0]:.2f} .. {ranges[column][1]:.2f})"
                                               if column in metrics.SHORT else "") for column, _ in evaluate.COLUMNS]
        rows.append([title(name), *cells, " / ".join(figure_text(means[s]) for s in metrics.SUMS)])
    return markdown(heads, rows)


def difference_table(table, model):
    rows = []
    for name in table:
        if name not in (model, "noise ceiling"):
            cells = []
            for metric in metrics.COMPARED:
                mean, low, high = metrics.difference(table[model], table[name], metric)
                cells.append(f"{mean:+.3f} ({low:+.3f} .. {high:+.3f})" + (" *" if low > 0 or high < 0 else ""))
            rows.append([title(name), *cells])
    return markdown([f"{title(model)} minus", "top-1", "top-5", "pairs", "NDCG@10"], rows)


def ratio_table(operators, found):
    """Shares of pairs in the right order by the ratio of their times, means over operators; what each class counts for."""
    starts = metrics.RATIOS
    heads = [f"up to {starts[1]:g}", *(f"{low:g} to {high:g}" for low, high in zip(starts[1:], starts[2:])),
             f"over {starts[-1]:g}"]
    beyond = starts[2:-1]

    def shares(counts, part):  # of [operators][classes][2]: each class, what lies beyond, all
        sums = np.concatenate([counts] + [counts[:, starts.index(start):].sum(1, keepdims=True)
                                          for start in (*beyond, starts[0])], 1)
        with np.errstate(invalid="ignore"):
            return np.nanmean(sums[:, :, 1] / sums[:, :, 0] if part else sums[:, :, 0] / sums[:, -1:, 0], 0)

    def counts_of(scores_by_seed):
        return np.mean([[metrics.pairs_by_ratio(o.times, scores[i]) for i, o in enumerate(operators)]
                        for scores in scores_by_seed], 0)

    tables = {title(name): counts_of(scores) for name, scores in found.items()}
    tables["noise ceiling"] = np.array([np.sum([metrics.pairs_by_ratio(*pair) for pair in metrics.each_repeat(
        [c.repeats[:3] for c in o.candidates])], 0) for o in operators])
    first = next(iter(tables.values()))
    rows = [["share of the pairs", *map(figure_text, shares(first, 0))]]
    rows += [[name, *map(figure_text, shares(counts, 1))] for name, counts in tables.items()]
    return markdown(["ratio of the times", *heads, *(f"all beyond {start:g}" for start in beyond), "all"], rows)


def operator_table(operators, rows):
    entries = sorted(zip(operators, rows), key=lambda entry: (entry[0].family, entry[0].name))
    return markdown(["operator", "family", "machine", "n", *(head for _, head in evaluate.COLUMNS[:8]), "random top-1"],
                    [[o.name, o.family, o.machine, len(o.candidates),
                      *(figure_text(row[column]) for column, _ in evaluate.COLUMNS[:8]),
                      figure_text(metrics.random_order(o.times)["top1"])] for o, row in entries])


def shapes(operators):
    """How many families with their extents they are: what was measured again, or searched, is a set of its own."""
    return len({operator.signature for operator in operators})


def data_table(parts):
    machines = sorted({o.machine for operators in parts.values() for o in operators})
    rows = []
    for part, operators in parts.items():
        for machine in machines:
            mine = [o for o in operators if o.machine == machine]
            if mine:
                families = collections.Counter(o.family for o in mine)
                rows.append([part, machine, len(mine), shapes(mine), sum(len(o.candidates) for o in mine),
                             ", ".join(f"{family} {count}" for family, count in sorted(families.items()))])
    return markdown(["part", "machine", "sets", "shapes", "schedules", "families of the sets"], rows)


# ---- Measurements ---------------------------------------------------------------------------------------------------

def ablations(library, bundle, training, tested, states, settings):
    """{label: rows}: the ranker, with a score network if the bundle has one, trained anew on parts of what it reads, on
    the training part; and the parts of the first one."""
    vocabulary = actions.Vocabulary(actions.derive([c for o in training for c in o.candidates]))
    names = features.action_names(vocabulary)
    everyone = training + tested
    with library.model(bundle) as model:
        size, manifest = model.info["latent_size"], model.info["manifest"]
        first = []
        for operator in everyone:
            with model.workload(operator.text) as workload:
                first.append(np.tile(workload.latent(size), (len(operator.candidates), 1)))
    last = refit.predicted_ends(library, bundle, everyone)
    chosen = [int(name[2:]) for name in manifest["features"] if name.startswith("z.")]
    counted = list(range(len(properties.NAMES)))
    real = []
    for operator in everyone:
        cache = dataset.States(states, operator.name)
        real.append(np.stack([properties.of_program(cache.texts[cache.trajectories[c.line][-1][1]])
                              for c in operator.candidates]))
    acting = refit.build_groups(everyone, [[None] * len(o.candidates) for o in everyone], vocabulary, names)
    network = score_network.Settings(seed=settings.seed) if manifest.get("score_network") else None
    arms = {"actions and z_T, the bundle's coordinates": (True, [z[:, chosen] for z in last])} if chosen else {}
    arms.update({"actions alone (no z)": (True, None),
                 "actions and z_T, all properties": (True, [z[:, counted] for z in last]),
                 "actions and z_T, all coordinates": (True, last), "actions and z_0 (no transition)": (True, first),
                 "z_T alone (no action features)": (False, last),
                 "actions and the real final program's properties": (True, real)})
    result = {}
    for label, (act, extra) in arms.items():
        groups = [(np.concatenate(([rows] if act else []) + ([extra[i]] if extra else []), 1), times)
                  for i, (rows, times) in enumerate(acting)]
        columns = (names if act else []) + ([f"x.{i}" for i in range(extra[0].shape[1])] if extra else [])
        inside, outside = groups[:len(training)], groups[len(training):]
        wanted = ranker.informative(inside, columns)
        inside, outside = (ranker.select(part, columns, wanted) for part in (inside, outside))
        parts = ranker.learn(dataset.joined(training, inside), wanted, settings, network)
        found = {part: compare.rows_of(tested, [[scores(rows) for rows, _ in outside]])
                 for part, scores in parts.items()}
        whole = found.pop("trees and network" if network else "trees")
        result.update({label: whole} if result else {label: whole, **{TITLES[part]: found[part] for part in found}})
    return result


def mean_rows(tables):
    """The mean over {label: rows} of several seeds."""
    return {label: [{key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
                    for rows in zip(*(table[label] for table in tables))] for label in tables[0]}


def learning_curve(training, tested, settings, draws=2):
    """[(operators learnt from, {metric: its value for each tested operator})] of trees on actions alone"""
    points, count = [], 8
    sizes = []
    while count < len(training):
        sizes.append(count)
        count = round(count * 1.6)
    for size in [*sizes, len(training)]:
        for draw in range(draws):
            random = np.random.default_rng((size, draw))
            some = [training[i] for i in random.permutation(len(training))[:size]]
            inside, outside, names = compare.groups_on_actions(some, tested)
            booster = ranker.train(inside, names, dataclasses.replace(settings, seed=draw))
            scores = [ranker.score(booster, rows, names) for rows in outside]
            rows = compare.rows_of(tested, [scores])
            points.append((size, {name: [row[name] for row in rows] for name in GOALS}))
    return points


def slopes(points, draws=2000, seed=0):
    """{metric: (gain with a doubling of the operators, low, high, operators that reach the goal on that line)}: least
    squares on log2 of the operators from 20 on, bootstrapped over tested operators."""
    points = [point for point in points if point[0] >= 20]
    sizes = np.log2([size for size, _ in points])
    weight = (sizes - sizes.mean()) / ((sizes - sizes.mean()) ** 2).sum()
    result = {}
    for name, goal in GOALS.items():
        table = np.array([values[name] for _, values in points])
        pick = np.random.default_rng(seed).integers(0, table.shape[1], (draws, table.shape[1]))
        drawn = weight @ table[:, pick].mean(2)
        slope, mean = float(weight @ table.mean(1)), float(table.mean())
        needed = 2 ** min(60.0, sizes.mean() + (goal - mean) / slope) if slope > 0 else np.inf
        result[name] = (slope, *np.percentile(drawn, [2.5, 97.5]), needed)
    return result


def trajectory_errors(library, bundle, operators, states, schedules=2):
    """[(operator, step, squared error of the predicted state, squared distance from z_0)] on the coordinates that the
    encoder reads from the program."""
    points, own = [], len(properties.NAMES)
    with library.model(bundle) as model, model.actions() as table, model.scorer(table, {}) as scorer:
        size = model.info["latent_size"]
        for operator in operators:
            cache = dataset.States(states, operator.name)
            with model.workload(operator.text) as workload:
                first = workload.latent(size)
                for candidate in operator.candidates[:schedules]:
                    ids, after = table.intern(candidate.actions), cache.after(candidate.line, candidate.instructions)
                    for step in sorted({*range(0, len(ids), 3), len(ids) - 1}):
                        if not after or not after[step]:
                            continue
                        with model.workload(cache.texts[after[step]]) as truth:
                            real = truth.latent(size)[own:]
                        predicted = scorer.rollout(workload, ids[:step + 1])[own:]
                        points.append((operator.name, step + 1, float(((predicted - real) ** 2).sum()),
                                       float(((first[own:] - real) ** 2).sum())))
    return points


# ---- Plots ----------------------------------------------------------------------------------------------------------

def plot_curves(operators, found, path):
    """The best speed among the first k, against k."""
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    ranks = np.arange(1, LONGEST + 1)
    for name, scores in found.items():
        mean = np.mean([[metrics.curve(o.times, seed[i], LONGEST) for i, o in enumerate(operators)]
                        for seed in scores], (0, 1))
        axes.plot(ranks, mean, label=title(name), linewidth=2.2 if name == "bundle" else 1.2)
    random = np.random.default_rng(0)
    mean = np.mean([metrics.curve(o.times, random.permutation(len(o.times)), LONGEST) for o in operators
                    for _ in range(40)], 0)
    axes.plot(ranks, mean, "k:", label="random order")
    axes.set(xscale="log", xlabel="candidates measured, in the order predicted", ylabel="best time / best of those",
             xticks=[1, 2, 5, 10, 20, 40], xticklabels=["1", "2", "5", "10", "20", "40"])
    axes.legend(fontsize=7)
    save(figure, path)


def plot_learning(points, path):
    figure, panels = pyplot.subplots(1, 3, figsize=(7.2, 2.6))
    sizes = sorted({size for size, _ in points})
    for axes, (name, goal) in zip(panels, GOALS.items()):
        axes.plot(sizes, [np.mean([m[name] for size, m in points if size == s]) for s in sizes])
        axes.plot([size for size, _ in points], [np.mean(m[name]) for _, m in points], ".", alpha=0.5)
        axes.axhline(goal, color="k", linestyle=":", linewidth=1)
        axes.set(xlabel="sets learnt from", title=name, xscale="log", xticks=sizes, xticklabels=sizes)
        axes.minorticks_off()
    save(figure, path)


def plot_trajectories(points, seen, path):
    """Share of the way from z_0 that the prediction leaves open, by step."""
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2))
    for label, mine in (("operators that the transition has learnt", True), ("others", False)):
        rows = [row for row in points if (row[0] in seen) == mine]
        edges = [1, 4, 7, 10, 13, 16, 20, 30]
        middle, share = [], []
        for low, high in zip(edges, edges[1:]):
            some = [row for row in rows if low <= row[1] < high]
            if len(some) > 2:
                middle.append((low + high - 1) / 2)
                share.append(sum(row[2] for row in some) / sum(row[3] for row in some))
        if middle:
            axes.plot(middle, share, "o-", label=label)
    axes.axhline(1, color="k", linestyle=":", linewidth=1)
    axes.set(xlabel="actions since z_0", ylabel="squared error / squared distance from z_0", ylim=(0, None))
    axes.legend(fontsize=8)
    save(figure, path)


# ---- The page -------------------------------------------------------------------------------------------------------

def introduction(library, bundle, parts):
    with library.model(bundle) as model:
        training, fingerprint = model.info["manifest"].get("training", {}), model.info["fingerprint"]
    return f"""# How well foreloop ranks

Made by `train/report.py`; `train/metrics.py` defines the columns, `train/split.py` the parts. Scores of the bundle come
from the C library. Intervals are 95 % bootstrap intervals over operators. Columns: top-k is the best time of all over the
best time among the k candidates predicted fastest, pairs the share of pairs in the right order, regr-k what is lost when
only k are measured. A `*` marks a difference whose interval excludes 0.

Bundle: fingerprint {fingerprint:016x}, learnt from {len(training.get("operators", []))} sets,
{training.get("schedules", 0)} schedules, measured on {", ".join(training.get("machines", []))}.

## Data

A set is what was measured of one operator at once; a shape is a family of operators with its extents (`train/split.py`).

{data_table(parts)}"""


def noise_section(operators):
    rows = {}
    for operator in operators:
        rows.setdefault(operator.machine, []).append(metrics.ceiling([c.repeats[:3] for c in operator.candidates]))
    again = evaluate.remeasured(operators)
    return ("Noise ceiling: one repeat of a measurement as the model, scored by the other two. `measured again`, where "
            "there is such a row, ranks a sample by a second measurement (`train/remeasure.py`).\n\n"
            + metric_table({**rows, **({"measured again": again} if again else {})}))


def peer_section(label, training, tested, found, plots):
    table = compare.table_of(tested, found)
    model = "bundle" if "bundle" in table else "actions"
    plot_curves(tested, found, plots / f"curves-{label}.svg")
    return f"""## Peers on the same data: {label}

Learnt from {len(training)} sets of {shapes(training)} shapes; {len(tested)} operators are ranked.

{metric_table(table)}
{difference_table(table, model)}
![Best speed among the candidates measured so far](quality/curves-{label}.svg)

Which pairs are lost: share in the right order by the ratio of their two times.

{ratio_table(tested, found)}
{TITLES[model]}, operator by operator:

{operator_table(tested, table[model])}"""


def parts_section(arms, machines, seeds):
    return f"""## What each part contributes

The ranker trained anew on part of what it reads, or as a part of itself, on the training part, mean of {seeds} seeds;
validation.

{metric_table(arms)}
{difference_table(arms, next(iter(arms)))}
Hardware features: not testable. They need at least three kinds of machine; the data has {machines}.
"""


def learning_section(points):
    rows = []
    for name, (slope, low, high, needed) in slopes(points).items():
        rows.append([name, f"{GOALS[name]:.2f}", f"{slope:+.3f} ({low:+.3f} .. {high:+.3f})",
                     f"{needed:,.0f}" if needed < 1e6 else "more than a million"])
    return f"""## More operators

Trees on actions alone, learnt from a random part of the training sets; dotted: the goal.

![Metrics against the number of training sets](quality/learning.svg)

{markdown(["metric", "goal", "gain with twice the sets", "sets that would reach it"], rows)}
The last column goes on along a straight line in the logarithm, from 20 sets on: an orientation, not a forecast.
"""


TRAJECTORY = """## Along a trajectory

How far the state that is rolled out from z_0 is from the encoder's state of the real program after so many actions, in
units of how far that program is from z_0. At 1, the rollout says no more than z_0.

![Error against the number of actions](quality/trajectories.svg)
"""


def own_sections(library, arguments, training, tested, plots):
    """Ablations, learning curve and error growth: of the validation part alone."""
    with library.model(arguments.bundle) as model:
        learnt, fingerprint = model.info["manifest"].get("training", {}), model.info["fingerprint"]
    settings = ranker.Settings()
    key = [key_of(training), key_of(tested)]
    seeds = [dataclasses.replace(settings, seed=seed) for seed in range(arguments.seeds)]
    arms = mean_rows([
        remembered(arguments.work, "ablations", [fingerprint, *key, dataclasses.asdict(one)],
                   lambda: ablations(library, arguments.bundle, training, tested, arguments.states, one)) for one in seeds])
    curve = remembered(arguments.work, "learning-curve", [*key, dataclasses.asdict(settings)],
                       lambda: learning_curve(training, tested, settings))
    plot_learning(curve, plots / "learning.svg")
    some = training[::6] + tested[::2]
    points = remembered(arguments.work, "trajectories", [fingerprint, key_of(some)], lambda: trajectory_errors(
        library, arguments.bundle, some, arguments.states))
    seen = frozenset(learnt.get("states_of", learnt.get("operators", [])))
    plot_trajectories(points, seen, plots / "trajectories.svg")
    return [parts_section(arms, len({operator.machine for operator in training}), len(seeds)), learning_section(curve),
            TRAJECTORY]


def main():
    arguments = compare.parse_arguments(argparse.ArgumentParser(description=__doc__.split("\n")[0]))
    library, out = dataset.fl.load(arguments.library), pathlib.Path(__file__).resolve().parents[1] / "docs"
    plots = out / "quality"
    plots.mkdir(exist_ok=True)
    arguments.work.mkdir(parents=True, exist_ok=True)
    parts = dataset.assign(dataset.read_operators(library, arguments.data), arguments.split)
    page = [introduction(library, arguments.bundle, parts),
            noise_section([operator for part, group in parts.items() if part != "dropped" for operator in group])]
    training, chosen = compare.choose(library, arguments)
    for label, tested in chosen.items():
        if tested:
            found = compare.gather(library, arguments, training, tested)
            page.append(peer_section(label, training, tested, found, plots))
    if not arguments.test:
        page += own_sections(library, arguments, training, chosen["validation"], plots)
    path = out / ("quality-test.md" if arguments.test else "quality.md")
    path.write_text("\n".join(page))
    print("wrote", path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
