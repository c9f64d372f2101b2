"""Figures and plots of what tvm_search.py has run: OUT/summary.json, OUT/summary.md, and OUT/curves-TRIALS.svg where
matplotlib is there. Latencies are compared within a unit only (one subgraph, seed and machine); intervals are over
subgraphs, the seeds of one together: what other subgraphs of the kind would give."""
import collections
import json
import math
import sys
from pathlib import Path

import geometric


POINTS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1000)  # numbers of trials that are looked at


def best_so_far(seconds, trials):
    """The least time after each trial, infinite before the first that ran; a search that ended early stays."""
    best, curve = math.inf, []
    for i in range(trials):
        if i < len(seconds) and seconds[i] is not None:
            best = min(best, seconds[i])
        curve.append(best)
    return curve


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def by_subgraph(units, ratios):
    groups = collections.defaultdict(list)
    for unit, ratio in zip(units, ratios):
        groups[unit["subgraph"]].append(ratio)
    return groups


def latencies(units, curves, points):
    """{subgraph: {trials: [seconds of the best so far, a seed each]}}"""
    at = {n: by_subgraph(units, [curve[n - 1] for curve in curves]) for n in points}
    return {subgraph: {n: at[n][subgraph] for n in points} for subgraph in sorted({u["subgraph"] for u in units})}


def measured_again(units, name, points):
    """{subgraph: {trials: seconds}} of the best candidate after as many trials, measured at the end, where all units have it."""
    at = {}
    for n in points:
        seconds = [median(u["methods"][name].get("again", {}).get(str(n), [])) for u in units]
        if all(seconds):
            for subgraph, own in by_subgraph(units, seconds).items():
                at.setdefault(subgraph, {})[str(n)] = geometric.mean(own)
    return at


def compare(units, trials):
    """Of units with the same trials: each method's speed beside foreloop's and its cost outside of measuring."""
    methods = [name for name in units[0]["methods"]]
    points = [n for n in POINTS if n <= trials]
    curves = {name: [best_so_far(u["methods"][name]["seconds"], trials) for u in units if name in u["methods"]]
              for name in methods}
    least = [min(min(curves[name][i]) for name in methods) for i in range(len(units))]
    result = {"units": len(units), "subgraphs": sorted({u["subgraph"] for u in units}), "methods": {}}
    for name in methods:
        own = [u["methods"][name] for u in units]
        over_foreloop = {n: by_subgraph(units, [curve[n - 1] / other[n - 1] for curve, other in zip(
            curves[name], curves.get("foreloop", curves[name]))]) for n in points}
        result["methods"][name] = {
            # geometric mean of latency over the best that any method has found on this subgraph with this seed
            "latency_over_best": {str(n): geometric.mean([curve[n - 1] / low for curve, low in zip(curves[name], least)])
                                  for n in points},
            "latency_over_foreloop": {str(n): geometric.mean(sum(own.values(), [])) for n, own in over_foreloop.items()},
            "latency_over_foreloop_interval": {str(n): geometric.interval(own.values()) if len(own) >= 3 else None
                                               for n, own in over_foreloop.items()},
            "latency_over_foreloop_by_subgraph": {subgraph: geometric.mean(own)
                                                  for subgraph, own in over_foreloop[points[-1]].items()},
            "again": measured_again(units, name, points),
            "latency": {subgraph: {str(n): geometric.mean(seconds) for n, seconds in at.items()}
                        for subgraph, at in latencies(units, curves[name], points).items()},
            "failed": sum(m["seconds"].count(None) for m in own),
            "trials": sum(len(m["seconds"]) for m in own),
            "outside_cpu_per_trial": sum(m["outside"]["cpu"] for m in own) / sum(len(m["seconds"]) for m in own),
            "outside_wall_per_trial": sum(m["outside"]["wall"] for m in own) / sum(len(m["seconds"]) for m in own),
            "statistics": [m["statistics"] for m in own if m["statistics"]]}
    return result, curves, least


def compared_with_foreloop(methods, points):
    """Two tables: the other methods' latency over foreloop's at as many trials, and of each subgraph at the end."""
    others = [name for name in methods if name != "foreloop"]
    if len(others) == len(methods):
        return []
    lines = ["", "Over foreloop's after as many trials (geometric mean, 95 % interval over subgraphs):", "",
             "| trials | " + " | ".join(others) + " |", "| --- |" + " --- |" * len(others)]
    for n in points:
        cells = []
        for name in others:
            mean, ends = (methods[name][key][n] for key in ("latency_over_foreloop", "latency_over_foreloop_interval"))
            cells.append((f"{mean:.2f}" if mean else "-") + (f" ({ends[0]:.2f}-{ends[1]:.2f})" if ends else ""))
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    lines += ["", f"Over foreloop's after {points[-1]} trials, by subgraph:", "", "| subgraph | " + " | ".join(others) + " |",
              "| --- |" + " --- |" * len(others)]
    for subgraph in sorted(methods["foreloop"]["latency_over_foreloop_by_subgraph"]):
        values = [methods[name]["latency_over_foreloop_by_subgraph"].get(subgraph) for name in others]
        lines.append(f"| {subgraph} | " + " | ".join(f"{v:.2f}" if v else "-" for v in values) + " |")
    return lines


def latency_table(title, result, key, points):
    points = [n for n in points if all(n in at for method in result["methods"].values() for at in method[key].values())]
    lines = ["", title, "", "| subgraph | method | " + " | ".join(points) + " |", "| --- | --- |" + " --- |" * len(points)]
    for subgraph in result["subgraphs"]:
        for name, method in result["methods"].items():
            values = [method[key][subgraph][n] for n in points] if subgraph in method[key] else []
            lines.append(f"| {subgraph} | {name} | " + " | ".join(f"{1e6 * v:.4g}" if v else "-" for v in values) + " |")
    others = [name for name in result["methods"] if name != "foreloop" and "foreloop" in result["methods"]]
    for name in others:
        ratios = [geometric.mean([at[n] / result["methods"]["foreloop"][key][subgraph][n]
                                  for subgraph, at in result["methods"][name][key].items()
                                  if at[n] and result["methods"]["foreloop"][key][subgraph][n]]) for n in points]
        lines.append(f"| over foreloop's | {name} | " + " | ".join(f"{v:.2f}" if v else "-" for v in ratios) + " |")
    return lines


def table(summary):
    lines = []
    for trials, result in summary.items():
        points = list(next(iter(result["methods"].values()))["latency_over_best"])
        lines += [f"## To {trials} trials: {result['units']} units, {', '.join(result['subgraphs'])}", "",
                  "Latency of the best candidate so far, over the best that any method found (geometric mean):", "",
                  "| method | " + " | ".join(points) + " | failed | CPU ms outside of measuring, a trial |",
                  "| --- |" + " --- |" * (len(points) + 2)]
        for name, method in result["methods"].items():
            values = [method["latency_over_best"][n] for n in points]
            lines.append(f"| {name} | " + " | ".join(f"{v:.2f}" if v else "-" for v in values) +
                         f" | {method['failed']} of {method['trials']} | {1e3 * method['outside_cpu_per_trial']:.0f} |")
        lines += compared_with_foreloop(result["methods"], points)
        lines += latency_table("Microseconds, as measured in the search (geometric mean of the seeds):", result, "latency", points)
        lines += latency_table("The best candidate after as many trials, all measured again in turn at the end, microseconds:",
                               result, "again", points) + [""]
    return "\n".join(lines)


def plot(path, curves, least, trials):
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed")
        return
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.5, 3.4))
    for name, own in curves.items():
        mean = [geometric.mean([low / curve[i] for curve, low in zip(own, least)]) or 0 for i in range(trials)]
        axes.plot(range(1, trials + 1), mean, label=name)
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("measured candidates")
    axes.set_ylabel("speed of the best so far, of the best found")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def write(out):
    units = [json.loads(path.read_text()) for path in sorted((Path(out) / "units").glob("*.json"))]
    if not units:
        print("tvm_report.py: no finished unit in", out, file=sys.stderr)
        return 1
    summary = {}
    for trials in sorted({unit["trials"] for unit in units}):
        own = [unit for unit in units if unit["trials"] == trials]
        summary[str(trials)], curves, least = compare(own, trials)
        plot(Path(out) / f"curves-{trials}.svg", curves, least, trials)
    machines = sorted({f"{u['cpu']} ({u['mcpu']}, {u['threads']} threads)" for u in units})
    (Path(out) / "summary.json").write_text(json.dumps({"machines": machines, "trials": summary}, indent=1) + "\n")
    text = f"# Searches in TVM\n\nOn {'; '.join(machines)}.\n\n{table(summary)}"
    (Path(out) / "summary.md").write_text(text)
    print(text)
    return 0
