#!/usr/bin/env python3
"""Searches of examples/autoscheduler on subgraphs that its model has not seen, beside other methods; resumable.

    python bench/search/host.py --out results                          all of subgraphs.txt to 256 trials: many hours
    python bench/search/host.py --out results --only softmax --trials 64
    python bench/search/host.py --out results --report                 the table, the JSON and the plot of what is there

All subgraphs are searched to a quarter of the trials first, then to all of them, so that a run that is ended early says
something of each. For each subgraph the methods take turns of one batch on one machine: `foreloop`, and `random` draws of the same space. What
the compiler makes of the plain loops (`O3`, and with the outermost loops in parallel `O3_parallel`) and OpenBLAS are measured
beside them. A candidate that fails is a trial. Every trial stands in OUT/NAME.METHOD.jsonl, and a run that was
interrupted goes on from there; OUT/results.json has all curves, and OUT/curves.svg shows them where matplotlib is installed.
"""
import argparse
import importlib.util
import json
import math
import pathlib
import subprocess
import sys

import geometric

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
METHODS = ("foreloop", "random")
PARTS = ("proposing", "learning", "generating", "compiling", "waiting", "running")
MARKS = (16, 32, 64, 128, 256)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of logs and results")
    parser.add_argument("--binary", default=ROOT / "build/examples/autoscheduler/autoscheduler", help="(default %(default)s)")
    parser.add_argument("--subgraphs", type=pathlib.Path, default=HERE / "subgraphs.txt", help="(default %(default)s)")
    parser.add_argument("--only", default="", help="those whose text contains this")
    parser.add_argument("--trials", type=int, default=256, help="(default %(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="trials of a turn (default %(default)s)")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("options", nargs="*", help="after --: options for the autoscheduler, such as --lock FILE --realtime")
    return parser.parse_args()


def extents_of(text):
    """(operator, extents of its main loops) of an operator's text."""
    name, *x = text.split()
    x = list(map(int, x))
    if name in ("conv2d", "depthwise"):
        *image, kernel, stride, pad = x
        sizes = [(size + 2 * pad - kernel) // stride + 1 for size in image[2:4]]
        x = [*image[:2], *sizes, *image[4:], kernel]
    return name, x


def near(a, b):
    """Whether two operators are near-duplicates: every extent within a factor of two, as train/split.py has it."""
    (name, x), (other, y) = extents_of(a), extents_of(b)
    return name == other and all(max(i, j) <= 2 * min(i, j) for i, j in zip(x, y))


def check_unseen(subgraphs):
    trained = (ROOT / "examples/autoscheduler/training.txt").read_text().splitlines()
    for subgraph in subgraphs:
        for line in trained:
            if near(subgraph, line):
                raise SystemExit(f"{subgraph} is a near-duplicate of {line}, which the model was trained on")


def name_of(subgraph):
    return subgraph.replace(" ", "_")


def turn(arguments, subgraph, method, trials):
    """One turn of a method, up to `trials` trials; the time it took, by part, is kept beside the log."""
    stem = arguments.out / f"{name_of(subgraph)}.{method}"
    command = [arguments.binary, "search", subgraph, "--method", method, "--trials", str(trials), "--batch", str(arguments.batch),
               "--log", f"{stem}.jsonl", "--output", f"{stem}.c", "--json", *arguments.options]
    before = len(times_of(f"{stem}.jsonl"))
    if before >= trials:
        return
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"{subgraph}, {method}: the autoscheduler ended with {done.returncode}")
    result = json.loads(done.stdout)
    with open(f"{stem}.seconds.jsonl", "a") as file:
        file.write(json.dumps({"trials": result["trials"] - before, "scored": result["scored"], **result["seconds"]}) + "\n")


def measure_baseline(arguments, subgraph):
    path = arguments.out / f"{name_of(subgraph)}.baseline.json"
    if not path.exists():
        done = subprocess.run(list(map(str, [arguments.binary, "baseline", subgraph, "--json", *arguments.options])),
                              stdout=subprocess.PIPE, text=True, check=True)
        path.write_text(done.stdout)


def times_of(path):
    """The median time of each trial of a log; infinity for a failed one."""
    path, times = pathlib.Path(path), []
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("{") and line.endswith("}"):
            seconds = sorted(json.loads(line)["seconds"])
            times.append(seconds[len(seconds) // 2] if seconds else math.inf)
    return times


def curve(times):
    best, result = math.inf, []
    for time in times:
        best = min(best, time)
        result.append(best)
    return result


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def gather(arguments, subgraphs):
    """{subgraph: {"curves": {method: [best seconds]}, "failed": ..., "outside": ..., "baseline": ...}}"""
    results = {}
    for subgraph in subgraphs:
        entry = {"curves": {}, "failed": {}, "seconds_a_trial": {}, "baseline": {}}
        for method in METHODS:
            stem = arguments.out / f"{name_of(subgraph)}.{method}"
            times = times_of(f"{stem}.jsonl")
            if not times:
                continue
            entry["curves"][method] = [value if math.isfinite(value) else None for value in curve(times)]
            entry["failed"][method] = sum(map(math.isinf, times))
            path = pathlib.Path(f"{stem}.seconds.jsonl")
            turns = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            count = max(1, sum(item["trials"] for item in turns))
            entry["seconds_a_trial"][method] = {part: sum(item[part] for item in turns) / count for part in PARTS}
        baseline = arguments.out / f"{name_of(subgraph)}.baseline.json"
        if baseline.exists():
            entry["baseline"] = json.loads(baseline.read_text())
        if entry["curves"]:
            results[subgraph] = entry
    return results


def interval(values):
    """[geometric mean, and the ends of its 95 % interval over subgraphs]."""
    return [round(x, 4) for x in (geometric.mean(values), *geometric.interval([[value] for value in values]))]


def report(results):
    """Prints the table; returns the summary: geometric means of other times over foreloop's and their intervals, at
    numbers of trials."""
    print(f"{'best ms':<34}" + "".join(f"{'foreloop ' + str(mark):>14}{'random':>10}" for mark in (16, 64))
          + f"{'O3':>10}{'parallel':>10}{'OpenBLAS':>10}")
    for subgraph, entry in results.items():
        cells = ""
        for mark in (16, 64):
            for method, width in (("foreloop", 14), ("random", 10)):
                values = entry["curves"].get(method, [])
                value = values[mark - 1] if len(values) >= mark else None
                cells += f"{value * 1e3:>{width}.4g}" if value else f"{'-':>{width}}"
        for name in ("O3", "O3_parallel", "OpenBLAS"):
            value = entry["baseline"].get(name)
            cells += f"{value * 1e3:>10.4g}" if value else f"{'-':>10}"
        print(f"{subgraph:<34}{cells}")
    summary = {}
    for mark in MARKS:
        both = [entry for entry in results.values()
                if all(len(entry["curves"].get(m, [])) >= mark and entry["curves"][m][mark - 1] for m in METHODS)]
        if not both:
            continue
        at = {"subgraphs": len(both), "random": interval(
            [entry["curves"]["random"][mark - 1] / entry["curves"]["foreloop"][mark - 1] for entry in both])}
        for name in ("O3", "O3_parallel", "OpenBLAS"):
            ratios = [entry["baseline"][name] / entry["curves"]["foreloop"][mark - 1] for entry in both
                      if entry["baseline"].get(name)]
            if ratios:
                at[name] = interval(ratios)
        summary[str(mark)] = at
        print(f"at {mark} trials, {at['subgraphs']} subgraphs, time over foreloop's: "
              + ", ".join("{} {:.2f} ({:.2f}-{:.2f})".format(name, *value) for name, value in at.items()
                          if name != "subgraphs"))
    for method in METHODS:
        spent = [entry["seconds_a_trial"][method] for entry in results.values() if method in entry["seconds_a_trial"]]
        if spent:
            print(f"{method}, seconds a trial: " + ", ".join(
                f"{part} {sum(item[part] for item in spent) / len(spent):.4f}" for part in PARTS))
    return summary


def plot(results, path):
    if importlib.util.find_spec("matplotlib") is None:
        print("no matplotlib: no plot", file=sys.stderr)
        return
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    columns = min(4, len(results))
    rows = math.ceil(len(results) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3 * rows), squeeze=False)
    for axis in axes.flat[len(results):]:
        axis.axis("off")
    for axis, (subgraph, entry) in zip(axes.flat, results.items()):
        for method, values in entry["curves"].items():
            points = [(i + 1, value * 1e3) for i, value in enumerate(values) if value]
            axis.step(*zip(*points), where="post", label=method)
        for name, style in (("O3", ":"), ("O3_parallel", "-."), ("OpenBLAS", "--")):
            if entry["baseline"].get(name):
                axis.axhline(entry["baseline"][name] * 1e3, linestyle=style, color="gray", label=name)
        axis.set(title=subgraph, xlabel="trials", ylabel="best, ms", yscale="log")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def main():
    arguments = parse_arguments()
    subgraphs = [line for line in arguments.subgraphs.read_text().splitlines() if line and arguments.only in line]
    check_unseen(subgraphs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for most in [] if arguments.report else sorted({arguments.trials // 4, arguments.trials}):
        for subgraph in subgraphs:
            for trials in range(arguments.batch, most + arguments.batch, arguments.batch):
                for method in METHODS:
                    turn(arguments, subgraph, method, min(trials, most))
            measure_baseline(arguments, subgraph)
    results = gather(arguments, subgraphs)
    if not results:
        raise SystemExit("nothing has been measured yet")
    summary = report(results)
    (arguments.out / "results.json").write_text(json.dumps(
        {"processor": processor(), "summary": summary, "subgraphs": results}, indent=1) + "\n")
    plot(results, arguments.out / "curves.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
