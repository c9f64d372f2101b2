#!/usr/bin/env python3
"""The ranker and its peers cross-validated over everything that a bundle learns from: intervals a quarter as wide as those
of the test part.

    torch/bin/python train/peers/cross_validate.py --stores stores --work work DATA

Folds are of clusters of near-duplicates (`dataset.folds`), so that nobody ranks what it has learnt from. All learn from
the same sets; operators of the test part are in none. The ranker is trained as `refit.py` trains it, and scores in Python,
where refit.py finds the C library's scores to be the same. Peers are those of `compare.py`, and cached as there.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import dataset  # noqa: E402
import metrics  # noqa: E402
import ranker  # noqa: E402
import score_network  # noqa: E402


def run_foreloop(training, tested, seed):
    """Scores of the tested operators' candidates by trees and network that learn from the training operators."""
    groups, rows, names = compare.groups_on_actions(training, tested)
    booster, network, wanted = ranker.fit(training, groups, names, ranker.Settings(seed=seed),
                                          score_network.Settings(seed=seed))
    columns = [names.index(name) for name in wanted]
    return [ranker.score(booster, row[:, columns], wanted, network) for row in rows]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--stores", type=pathlib.Path, required=True, help="cache that train/peers/per_store.py made")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of cached scores")
    parser.add_argument("--peers", type=lambda text: [compare.parse_peer(peer) for peer in text.split(",") if peer],
                        default="metaschedule,store-rank", metavar="NAME,...", help="(default %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="of each, averaged (default %(default)s)")
    parser.add_argument("--folds", type=int, default=5, help="(default %(default)s)")
    dataset.add_choices(parser)
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    return parser.parse_args()


def cross_validate(library, arguments, operators):
    """{model: [row of metrics for each operator]}, in the operators' order."""
    found = {}
    for fold in dataset.folds(operators, arguments.folds):
        inside = {id(operator) for operator in fold}
        training = [operator for operator in operators if id(operator) not in inside]
        scores = {str(peer): [compare.cached(peer, training, fold, arguments, library, seed)
                              for seed in range(arguments.seeds)] for peer in arguments.peers}
        scores["foreloop"] = [run_foreloop(training, fold, seed) for seed in range(arguments.seeds)]
        for model, by_seed in scores.items():
            found.setdefault(model, {}).update(
                (id(operator), row) for operator, row in zip(fold, compare.rows_of(fold, by_seed)))
    return {model: [rows[id(operator)] for operator in operators] for model, rows in found.items()}


def show(label, table, chosen):
    """Means of the chosen operators, and by how much foreloop is ahead."""
    print(f"\n{label}: {len(chosen)} sets\n{'model':<14}" + "".join(f"{name:>10}" for name in metrics.COMPARED))
    picked = {model: [rows[i] for i in chosen] for model, rows in table.items()}
    for model, rows in picked.items():
        means = metrics.mean(rows)
        print(f"{model:<14}" + "".join(f"{means[name]:10.3f}" for name in metrics.COMPARED))
    for model, rows in picked.items():
        if model != "foreloop":
            print(f"foreloop minus {model}: {metrics.gains(picked['foreloop'], rows)}")


def main():
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    library = dataset.fl.load(arguments.library)
    operators, _ = dataset.choose(arguments, dataset.read_operators(library, arguments.data))
    table = cross_validate(library, arguments, operators)
    times = [operator.times for operator in operators]
    programs = {}
    for i, operator in enumerate(operators):
        programs.setdefault((operator.text, operator.machine), []).append(i)
    first = {indices[0] for indices in programs.values()}
    show("all", table, range(len(operators)))
    show("drawn and evolved, of 30 schedules or more", table,
         [i for i in range(len(operators)) if i in first and len(times[i]) >= 30])
    show("further sets of the same programs, which searches chose", table,
         [i for i in range(len(operators)) if i not in first])
    return 0


if __name__ == "__main__":
    sys.exit(main())
