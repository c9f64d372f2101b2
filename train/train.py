#!/usr/bin/env python3
"""Trains a model bundle from tuning records and their replayed states: tokenizer, encoder, transition, ranker, export.

    python train/replay.py --out states DATA...          (with TVM; see train/README.md)
    python train/train.py --states states --work work --bundle bundle DATA...
    python train/evaluate.py --bundle bundle DATA...

Every stage leaves its result in WORK and is skipped when that is there; the encoder goes on from its checkpoint.
Learns from the training part of the split (split.py) alone, or with --with-validation from that and the validation
part. What is left out, and --held-out, is only looked at by the last stage, which measures the finished bundle through
the C library and writes the metrics into its manifest; the test parts are not looked at here but by evaluate.py --test.
"""
import argparse
import datetime
import importlib.metadata
import json
import pathlib
import shutil
import sys
import time

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tqdm import tqdm

import actions
import dataset
import encoder
import evaluate
import export
import features
import metrics
import properties
import ranker
import score_network
import split
import tokenizer
import transition

# What the ranker reads of the end state. More coordinates did no better in cross-validation: those that tell workloads
# apart invite the trees to learn the workloads.
RANKED = ("main_parallel", "main_vector", "parallel", "vector")
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "xgboost")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--states", required=True, help="cache that train/replay.py made")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of checkpoints and caches")
    parser.add_argument("--bundle", required=True, help="folder of the bundle")
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    parser.add_argument("--held-out", action="append", default=[], metavar="DIR[,DIR]",
                        help="data that is only tested on, measured as one set; may be given again")
    parser.add_argument("--note", default="", help="goes into the manifest beside the metrics")
    dataset.add_choices(parser)
    parser.add_argument("--begin-with", type=pathlib.Path, metavar="BUNDLE",
                        help="the encoder goes on from this bundle's, with its tokenizer and sizes; of --steps 0 it is kept")
    parser.add_argument("--vocabulary", type=int, default=2048, help="tokens (default %(default)s)")
    parser.add_argument("--layers", type=int, default=3, help="of the encoder (default %(default)s)")
    parser.add_argument("--hidden", type=int, default=192, help="size of the encoder (default %(default)s)")
    parser.add_argument("--window", type=int, default=256, help="tokens in a window (default %(default)s)")
    parser.add_argument("--stride", type=int, default=224, help="content tokens between windows (default %(default)s)")
    parser.add_argument("--steps", type=int, default=800, help="of the encoder (default %(default)s)")
    parser.add_argument("--schedules", type=int, default=24,
                        help="of each operator that the encoder learns from (default %(default)s)")
    parser.add_argument("--intermediate", type=int, default=3,
                        help="states encoded for each schedule between the first and the last (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=40, help="of the transition (default %(default)s)")
    score_network.add_options(parser)
    parser.add_argument("--ranker", type=dataset.fields_of(ranker.Settings), default={}, metavar="JSON",
                        help='fields of ranker.Settings, such as {"objective": "rank:pairwise"}')
    parser.add_argument("--folds", type=int, default=5, help="of the ranker's cross-validation (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")
    return parser.parse_args()


def get_tokenizer(arguments, texts):
    path = arguments.work / "tokenizer.json"
    if not path.exists() and arguments.begin_with:
        shutil.copyfile(arguments.begin_with / "tokenizer.json", path)
    if not path.exists():
        tokenizer.train(texts(), arguments.vocabulary).save(str(path))
    return Tokenizer.from_file(str(path))


def build_corpus(arguments, library, words, operators, caches):
    corpus = encoder.Corpus()
    for operator in tqdm(operators, desc="corpus", mininterval=5):
        corpus.add(words, library.canonical_text, operator.text, caches[operator.name], arguments.schedules)
    return corpus


def get_encoder(arguments, library, words, operators, caches):
    """(the encoder, its losses' history); of no steps it is that of --begin-with."""
    layers, hidden, window, initial = arguments.layers, arguments.hidden, arguments.window, None
    if arguments.begin_with:
        sizes = json.loads((arguments.begin_with / "config.json").read_text())
        layers, hidden = sizes["num_hidden_layers"], sizes["hidden_size"]
        initial = {name: torch.as_tensor(values.astype(np.float32)) for name, values in
                   load_file(arguments.begin_with / "encoder.safetensors").items() if not name.startswith("pooling.")}
    settings = encoder.config(words.get_vocab_size(), layers, hidden, window)
    if not arguments.steps:
        return encoder.create(settings, initial), []
    corpus = build_corpus(arguments, library, words, operators, caches)
    return encoder.train(corpus, settings, window, arguments.steps, arguments.work / "encoder.pt", seed=arguments.seed,
                         log=lambda line: print(line, flush=True), initial=initial)


def choose_states(operator, states, count, random):
    """The hashes to encode: the initial program (""), every final one, and `count` between for each schedule."""
    chosen = {"": operator.text}
    for candidate in operator.candidates:
        path = states.trajectories.get(candidate.line, [])
        between = random.permutation(len(path) - 1)[:count] if path else []
        for _, name in [path[i] for i in between] + path[-1:]:
            chosen[name] = states.texts[name]
    return chosen


def get_states(arguments, model, words, library, operators, caches):
    """(z float32[states][d], {(operator, hash): row}) by the C library, the first program of each operator before its
    others."""
    path, folder = arguments.work / "states.npz", arguments.work / "encoder"
    if not path.exists():
        export.write_encoder(folder, words, model, (arguments.window, arguments.stride))
        random, keys, z = np.random.default_rng(arguments.seed), [], []
        with library.model(folder) as reader:
            for operator in tqdm(operators, desc="encode states", mininterval=5):
                for name, text in choose_states(operator, caches[operator.name], arguments.intermediate,
                                                random).items():
                    keys.append(f"{operator.name}/{name}")
                    with reader.workload(text) as workload:
                        z.append(workload.latent(model.config.hidden_size))
        np.savez(path, z=np.stack(z), keys=np.array(keys))
    saved = np.load(path)
    return saved["z"], {tuple(key.rsplit("/", 1)): row for row, key in enumerate(saved["keys"])}


def projection(latent):
    """The bundle's projection [latent][latent]: a program enters the transition with its property coordinates at 0."""
    keep = np.ones(latent, np.float32)
    keep[:len(properties.NAMES)] = 0
    return np.diag(keep)


def goals_of(z, row_of, operators, caches, property_weight=0.3):
    """(states, goals, weight) of transition.Trajectories. Goals have the properties in the property coordinates; so do
    states, where a rollout may begin, but for the initial programs."""
    states, count, text = z @ projection(z.shape[1]), len(properties.NAMES), {o.name: o.text for o in operators}
    states /= np.linalg.norm(states, axis=1, keepdims=True)
    goals = states.copy()
    values = np.stack([properties.of_program(caches[operator].texts[name] if name else text[operator])
                       for operator, name in row_of])
    first = np.array([row for (_, name), row in row_of.items() if not name])
    scale = properties.fit_scale(values, first)
    goals[:, :count] = encoder.SCALE * scale(values)
    later = np.setdiff1d(np.arange(len(states)), first)
    states[later] = goals[later]
    weight = np.ones(z.shape[1], np.float32)
    weight[:count] = property_weight / (count * encoder.SCALE ** 2 * (scale.within + 0.05))
    return states, goals, weight


def build_trajectories(vocabulary, operators, caches, row_of, states, goals, weight):
    """transition.Trajectories of all candidates, in the order of operators and candidates."""
    ids, targets, workloads = [], [], []
    for number, operator in enumerate(operators):
        for candidate in operator.candidates:
            ids.append(vocabulary.intern(candidate.actions))
            after = caches[operator.name].after(candidate.line, candidate.instructions)
            names = ["", *(after if after is not None else [None] * len(candidate.actions))]
            targets.append([row_of.get((operator.name, name), -1) for name in names])
            workloads.append(number)
    return transition.Trajectories(vocabulary, ids, targets, workloads, states, goals, weight)


def get_transition(arguments, vocabulary, trajectories, fold_of):
    """(the transition, end states [candidates][d] for the ranker to learn from).

    Those end states are cross-fitted: an operator's come from a transition that was not trained on it, so that the
    ranker learns how far predicted states are to be trusted on new operators.
    """
    path = arguments.work / "transition.pt"
    counts = [len(elements) for elements in vocabulary.elements]
    if path.exists():
        saved = torch.load(path, weights_only=False)
        model = transition.Transition(counts, trajectories.states.shape[1])
        model.load_state_dict(saved["model"])
        return model, saved["ends"]
    start = trajectories.states[trajectories.target[:, 0]].numpy()
    ends = np.zeros(start.shape, np.float32)
    fold = np.array(fold_of)[trajectories.workload]
    for k in tqdm(sorted(set(fold_of)), desc="transition, cross-fitting", mininterval=5):
        model, _ = transition.train(trajectories.subset(fold != k), counts, epochs=arguments.epochs,
                                    seed=arguments.seed)
        outside = fold == k
        ends[outside] = transition.end_states(model, start[outside], vocabulary, list(trajectories.ids[outside]))
    model, history = transition.train(trajectories, counts, epochs=arguments.epochs, seed=arguments.seed,
                                      progress=lambda x: tqdm(x, desc="transition", mininterval=5))
    print("transition: squared end-state error, rank loss", history[-1])
    print("transition: share explained of what varies within an operator, trained on", transition.explained(
        trajectories, transition.end_states(model, start, vocabulary, list(trajectories.ids))),
        "not trained on", transition.explained(trajectories, ends), flush=True)
    torch.save({"model": model.state_dict(), "ends": ends}, path)
    return model, ends


def build_groups(operators, vocabulary, names, ends=None):
    """[(features, times)] of operators; `ends` are the predicted end states of all candidates in order."""
    reader, groups, at = features.Reader(vocabulary, names), [], 0
    for operator in operators:
        rows = []
        for candidate in operator.candidates:
            rows.append(reader.of(vocabulary.intern(candidate.actions), None if ends is None else ends[at]))
            at += 1
        groups.append((np.stack(rows), operator.times))
    return groups


def check(library, bundle, operators, trajectories, mover, vocabulary, names, scored):
    """Compares the bundle as the C library reads it with Python's states, features and scores (`scored`: of rows), on
    every eighth candidate."""
    start = trajectories.states[trajectories.target[:, 0]].numpy()
    ends = transition.end_states(mover, start, vocabulary, list(trajectories.ids))
    worst = {"z_0": 0.0, "features": 0.0, "scores": 0.0}

    def differ(what, found, expected):
        worst[what] = float(np.maximum(worst[what], np.abs(found - expected).max()))  # NaN, where there is one

    with library.model(bundle) as model, model.actions() as table, model.scorer(table, {}) as scorer:
        for at, (rows, _) in enumerate(build_groups(operators, vocabulary, names, ends)):
            with model.workload(operators[at].text) as workload:
                differ("z_0", workload.latent(start.shape[1]), start[np.flatnonzero(trajectories.workload == at)[0]])
                some = [table.intern(candidate.actions) for candidate in operators[at].candidates[::8]]
                found = scorer.features_batch(workload, some)
                differ("features", found, rows[::8])
                differ("scores", scorer.score(workload, some), scored(found))
    print("the C library against Python: "
          + ", ".join(f"{what} within {error:.1e}" for what, error in worst.items()), flush=True)
    if not (worst["z_0"] <= 1e-4 and worst["features"] <= 1e-3 and worst["scores"] <= 1e-3):
        raise SystemExit("the C library computes other states, features or scores than training did")


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    arguments.work.mkdir(parents=True, exist_ok=True)
    library, clock, timing = dataset.fl.load(arguments.library), time.time(), arguments.work / "seconds.json"
    seconds = json.loads(timing.read_text()) if timing.exists() else {}  # of all runs, resumed ones together

    def lap(stage):
        nonlocal clock
        print(f"== {stage}: {time.time() - clock:.0f} s", flush=True)
        seconds[stage], clock = round(seconds.get(stage, 0) + time.time() - clock), time.time()
        timing.write_text(json.dumps(seconds))

    operators = dataset.read_operators(library, arguments.data)
    operators, left_out = dataset.choose(arguments, operators)
    caches = {operator.name: dataset.States(arguments.states, operator.name) for operator in operators}
    print(f"{len(operators)} operators, {sum(len(o.candidates) for o in operators)} schedules; left out: "
          + ", ".join(o.name for o in left_out))
    network = score_network.chosen(arguments, operators, arguments.seed)
    fold_of = dataset.fold_of(operators, arguments.folds)
    words = get_tokenizer(arguments, lambda: (library.canonical_text(text) for operator in operators for text in
                                              [operator.text, *caches[operator.name].texts.values()]))
    lap("tokenizer")
    model, history = get_encoder(arguments, library, words, operators, caches)
    for tensor in model.state_dict().values():  # what the bundle stores, so that all that follows sees it
        if tensor.is_floating_point():
            tensor.copy_(tensor.half().float())
    lap("encoder")
    z, row_of = get_states(arguments, model, words, library, operators, caches)
    lap("states")
    vocabulary = actions.Vocabulary(actions.derive([c for operator in operators for c in operator.candidates]))
    trajectories = build_trajectories(vocabulary, operators, caches, row_of, *goals_of(z, row_of, operators, caches))
    mover, ends = get_transition(arguments, vocabulary, trajectories, fold_of)
    lap("transition")
    plain = features.action_names(vocabulary)
    names = [f"z.{properties.NAMES.index(name)}" for name in RANKED] + plain
    groups = build_groups(operators, vocabulary, names, ends)
    names, groups = (wanted := ranker.informative(groups, names)), ranker.select(groups, names, wanted)
    settings = ranker.Settings(**{"seed": arguments.seed, **arguments.ranker})
    alone = [name for name in names if name in plain]
    validation = ranker.cross_validation(operators, groups, fold_of, names, {
        "actions and state": names, "actions alone": alone,
        "state alone": [name for name in names if name not in plain]}, settings, network)
    booster, beside, wanted = ranker.fit(operators, groups, names, settings, network)
    lap("ranker")
    training = {"date": datetime.date.today().isoformat(), "note": arguments.note,
                "machines": sorted({operator.machine for operator in operators}),
                "operators": [operator.name for operator in operators],
                "signatures": sorted({split.text_of(operator.signature) for operator in operators}),
                "left_out": [operator.name for operator in left_out], "schedules": len(trajectories.ids),
                "seed": arguments.seed, "encoder_steps": arguments.steps,
                "encoder_losses": dict(zip(("contrast", "order", "property"), np.round(history[-1][1:], 4).tolist())
                                       if history else ()),
                "ranker": vars(settings), "score_network": vars(network) if network else None, "seconds": seconds,
                "cross_validation": validation,
                "packages": {name: importlib.metadata.version(name) for name in PACKAGES}}
    if arguments.begin_with:  # whose programs the encoder has seen before; of no steps, all that it has seen
        earlier = json.loads((arguments.begin_with / "model.json").read_text()).get("training", {})
        seen = earlier.get("encoder_of", earlier.get("states_of", earlier.get("operators", [])))
        training["encoder_of"] = sorted({*seen, *(training["operators"] if arguments.steps else ())})
    parts = (words, model, (arguments.window, arguments.stride), vocabulary.kinds,
             projection(z.shape[1]),
             transition.tensors(mover, vocabulary), wanted, booster, beside)
    baseline = ranker.train(dataset.joined(operators, ranker.select(groups, names, alone)), alone, settings)
    with export.replacing(arguments.bundle) as staged:
        export.write(staged, *parts, training)
        check(library, staged, operators, trajectories, mover, vocabulary, wanted,
              lambda rows: ranker.score(booster, rows, wanted, beside))
        training["test"] = {}
        for label, tested in [("validation" if arguments.leave_out is None else "left_out", left_out)] + [
                    (pathlib.Path(paths.split(",")[0]).name, dataset.read_operators(library, paths.split(",")))
                    for paths in arguments.held_out]:
            if tested:
                rows = evaluate.evaluate(library, staged, tested)
                training["test"][label] = {
                    "operators": len(tested), "schedules": sum(len(operator.candidates) for operator in tested),
                    "model": metrics.known(metrics.mean(rows.values())),
                    "actions_alone": metrics.known(metrics.mean(
                        ranker.evaluate(baseline, build_groups(tested, vocabulary, alone), alone))),
                    "random_order": metrics.known(metrics.mean([row["random"] for row in rows.values()]))}
                print(label, json.dumps(training["test"][label], indent=1))
        export.write(staged, *parts, training)
    print("wrote", arguments.bundle)
    return 0


if __name__ == "__main__":
    sys.exit(dataset.run(main))
