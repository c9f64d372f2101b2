#!/usr/bin/env python3
"""The peers and the bundle on the same data and split: who ranks the operators that nobody has learnt from best?

    tvm/bin/python train/replay.py --out states DATA            once; with TVM
    tvm/bin/python train/peers/per_store.py --out stores DATA   likewise
    torch/bin/python train/peers/compare.py --states states --stores stores --work work --bundle bundle DATA

Every peer learns from the training part (with --test from the validation part too) and ranks the validation part (with
--test the test part and the family never seen). A model's scores are cached in WORK by a hash of what it learns from, so
a run can be stopped, and a peer is trained again only when data was added. The bundle's scores come from the C library.

    metaschedule    per-store features, objective of TVM's XGBModel; pays a replay for each candidate
    store-rank      the same features, trees and objective of foreloop's ranker
    sequence        attention over the schedule's primitives, as TLP
    actions         foreloop's trees on action features alone
    final-text      the bundle's encoder on each final program, its properties, and action features: an oracle of the
                    state, which pays for replay, text and encoding of each candidate (some 30 ms of processor time)
    bundle          foreloop: z_0 once, actions

NAME/N learns from N schedules of each operator, spread over its records, and NAME:S is the mean of S seeds instead of
--seeds: final-text/10 has an eighth of the programs to encode, and actions/10 is what to hold it against.
"""
import argparse
import dataclasses
import hashlib
import json
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import actions  # noqa: E402
import dataset  # noqa: E402
import evaluate  # noqa: E402
import features  # noqa: E402
import metaschedule  # noqa: E402
import metrics  # noqa: E402
import properties  # noqa: E402
import ranker  # noqa: E402
import split  # noqa: E402

NAMES = ("metaschedule", "store-rank", "sequence", "actions", "final-text")
PEERS = "metaschedule,store-rank,sequence,actions,actions/10,final-text/10"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A model by name, of how many schedules of each operator it learns (0: all), and how many seeds (0: --seeds)."""
    name: str
    schedules: int = 0
    seeds: int = 0

    def __str__(self):
        return self.name + (f"/{self.schedules}" if self.schedules else "")


def parse_peer(text):
    found = re.fullmatch(r"([a-z-]+)(?:/([1-9]\d*))?(?::([1-9]\d*))?", text)
    if not found or found[1] not in NAMES:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME[/SCHEDULES][:SEEDS] with a NAME of {', '.join(NAMES)}")
    return Peer(found[1], int(found[2] or 0), int(found[3] or 0))


def thinned(operator, schedules):
    """The operator with so many of its candidates, spread over the records (searches record the random ones first)."""
    every = operator.candidates
    if not schedules or len(every) <= schedules:
        return operator
    return dataclasses.replace(operator, candidates=[
        every[i] for i in np.linspace(0, len(every) - 1, schedules).round().astype(int)])


def groups_on_actions(training, tested, extra=None):
    """(training groups, test groups, names): action features by the training operators' vocabulary, and extra columns
    {operator name: (array, names)}."""
    vocabulary = actions.Vocabulary(actions.derive([c for o in training for c in o.candidates]))
    names = features.action_names(vocabulary)
    reader = features.Reader(vocabulary, names)

    def group(operator):
        rows = np.stack([reader.of(vocabulary.intern(c.actions)) for c in operator.candidates])
        return (np.concatenate([rows, extra[operator.name]], 1) if extra else rows), operator.times

    groups = [group(operator) for operator in training]
    names = names + [f"state.{i}" for i in range(groups[0][0].shape[1] - len(names))]
    kept = ranker.informative(groups, names)
    columns = [names.index(name) for name in kept]
    return (dataset.joined(training, [(rows[:, columns], times) for rows, times in groups]),
            [group(operator)[0][:, columns] for operator in tested], kept)


def final_states(library, bundle, operators, states, work):
    """{operator name: [candidates][latent + properties]} of the real final programs; kept in WORK by operator and by what
    the encoder says of it, since encoding them takes minutes."""
    result = {}
    with library.model(bundle) as model:
        size = model.info["latent_size"]
        for operator in operators:
            with model.workload(operator.text) as workload:
                stamp = hashlib.blake2b(workload.latent(size).tobytes(), digest_size=6).hexdigest()
            path = work / f"final.{operator.name}.{len(operator.candidates)}.{stamp}.npy"
            if not path.exists():
                cache, known, rows = dataset.States(states, operator.name), {}, []
                for candidate in operator.candidates:
                    name = cache.trajectories[candidate.line][-1][1]
                    if name not in known:
                        with model.workload(cache.texts[name]) as workload:
                            known[name] = np.concatenate([workload.latent(size),
                                                          properties.of_program(cache.texts[name])])
                    rows.append(known[name])
                partial = path.with_suffix(".partial.npy")
                np.save(partial, np.stack(rows))
                partial.rename(path)
            result[operator.name] = np.load(path)
    return result


def run_peer(name, training, tested, arguments, library, seed):
    """Scores of the tested operators' candidates, a list of arrays."""
    settings = ranker.Settings(seed=seed)
    if name == "metaschedule":
        return metaschedule.xgb_model(training, tested, arguments.stores, seed=43 + seed)
    if name == "store-rank":
        return metaschedule.lambda_rank(training, tested, arguments.stores, settings)
    if name == "sequence":
        import sequence

        return sequence.scores(training, tested, seed=seed)
    extra = None
    if name == "final-text":
        extra = final_states(library, arguments.bundle, training + tested, arguments.states, arguments.work)
    groups, rows, names = groups_on_actions(training, tested, extra)
    booster = ranker.train(groups, names, settings)
    return [ranker.score(booster, row, names) for row in rows]


def fingerprint(name, training, tested, arguments, library, seed):
    settings = [vars(ranker.Settings())] if name not in ("metaschedule", "sequence") else []
    if name == "final-text":
        with library.model(arguments.bundle) as model:
            settings.append(model.info["fingerprint"])
    parts = [name, seed] + settings + [(o.name, o.machine, len(o.candidates)) for group in (training, tested) for o in group]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()


def cached(peer, training, tested, arguments, library, seed):
    training = [thinned(operator, peer.schedules) for operator in training]
    path = arguments.work / f"{peer.name}.{seed}.{fingerprint(peer.name, training, tested, arguments, library, seed)}.npz"
    if not path.exists():
        print(f"{peer}, seed {seed} ...", file=sys.stderr, flush=True)
        found = run_peer(peer.name, training, tested, arguments, library, seed)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, **{str(i): scores for i, scores in enumerate(found)})
        partial.rename(path)
    saved = np.load(path)
    return [saved[str(i)] for i in range(len(tested))]


def choose(library, arguments):
    """(training operators, {part: tested operators}). What the bundle has learnt of the family never seen, the peers
    learn too."""
    part = dataset.assign(dataset.read_operators(library, arguments.data), arguments.split)
    enough = lambda operators: [o for o in operators if len(o.candidates) >= dataset.MIN_POOL]  # noqa: E731
    if not arguments.test:
        return part["training"], {"validation": enough(part["validation"])}
    names, _ = evaluate.seen_by(library, arguments.bundle)
    seen = [o for o in part["family"] if o.name in names]
    return part["training"] + part["validation"] + seen, {
        "test": enough(part["test"]), "family": enough([o for o in part["family"] if o.name not in names])}


def gather(library, arguments, training, tested):
    """{model: [scores of each tested operator's candidates, for each seed]}"""
    found = {str(peer): [cached(peer, training, tested, arguments, library, seed)
                         for seed in range(peer.seeds or arguments.seeds)] for peer in arguments.peers}
    names, signatures = evaluate.seen_by(library, arguments.bundle)
    seen = [o.name for o in tested if o.name in names or o.signature in signatures]
    if seen:
        print(f"the bundle was trained on {', '.join(seen)}: it is not compared", file=sys.stderr)
    else:
        found["bundle"] = [evaluate.score(library, arguments.bundle, tested)]
    return found


def rows_of(operators, scores_by_seed):
    """A row of metrics for each operator, the mean over the seeds."""
    return [metrics.of_seeds(operator.times, [scores[i] for scores in scores_by_seed])
            for i, operator in enumerate(operators)]


def table_of(operators, found):
    """{model: rows}, random order and ceiling among them."""
    table = {name: rows_of(operators, scores) for name, scores in found.items()}
    table["random order"] = [metrics.random_order(operator.times) for operator in operators]
    table["noise ceiling"] = [metrics.ceiling([c.repeats[:3] for c in operator.candidates]) for operator in operators]
    return table


def parse_arguments(parser=None):
    parser = parser or argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--bundle", default="weights/default", help="(default %(default)s)")
    parser.add_argument("--states", type=pathlib.Path, required=True, help="cache that train/replay.py made")
    parser.add_argument("--stores", type=pathlib.Path, required=True, help="cache that train/peers/per_store.py made")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of cached scores")
    parser.add_argument("--peers", type=lambda text: [parse_peer(peer) for peer in text.split(",") if peer], default=PEERS,
                        metavar="NAME[/SCHEDULES][:SEEDS],...", help="(default %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="of each peer, averaged (default %(default)s)")
    parser.add_argument("--split", default=split.TABLE, help="table of the parts (default %(default)s)")
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    parser.add_argument("--test", action="store_true", help="the test part and the family never seen")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    library = dataset.fl.load(arguments.library)
    training, parts = choose(library, arguments)
    for label, tested in parts.items():
        if not tested:
            continue
        table = table_of(tested, gather(library, arguments, training, tested))
        print(f"\n{label}: {len(tested)} operators; learnt from {len(training)} operators, "
              f"{sum(len(o.candidates) for o in training)} schedules")
        print(f"{'model':<14}" + "".join(f"{head:>8}" for _, head in evaluate.COLUMNS) + "   top-1 from .. to")
        for name, rows in table.items():
            means, interval = metrics.mean(rows), metrics.intervals(rows)["top1"]
            print(f"{name:<14}" + "".join(f"{means[column]:8.3f}" for column, _ in evaluate.COLUMNS)
                  + f"   {interval[0]:.3f} .. {interval[1]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
