#!/usr/bin/env python3
"""Trains a bundle's ranker anew on more records and keeps its encoder and transition: two minutes, no TVM, no replay.

    python train/refit.py --bundle weights/default --out bundle DATA...

The states that the trees read come from the C library as it will compute them. Kinds of actions whose arguments do not
move the latent state get the slots that the records show, and kinds that the bundle does not know are added; the trees
read both, while the state, which only train.py can teach, stays as it is. The score network, which reads what the trees
do, is learnt anew too, or for the first time, where there are operators enough; --no-network leaves it out. Learns from
the training part of the split and says how the result does on the validation part; --with-validation learns from both.
"""
import argparse
import datetime
import json
import pathlib
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save

import actions
import dataset
import evaluate
import export
import features
import metrics
import ranker
import score_network
import split

COPIED = ("config.json", "tokenizer.json", "encoder.safetensors")


def merged_kinds(known, derived, moving):
    """The bundle's kinds in their order, then the kinds that are new. Those in `moving`, whose arguments move the
    state, keep their slots; the others get the derived ones."""
    slots = {kind["kind"]: kind for kind in derived}
    kept = [kind if kind["kind"] in moving else slots.get(kind["kind"], kind) for kind in known]
    names = {kind["kind"] for kind in known}
    return kept + [kind for kind in derived if kind["kind"] not in names]


def grown_transition(tensors, count):
    """Tensors with rows for new kinds, whose step is the identity."""
    old, latent = tensors["kind_embedding"].shape
    new = np.zeros((count - old, latent), tensors["kind_embedding"].dtype)
    normal = new.copy()
    normal[:, 0] = 1
    return {**tensors, "kind_embedding": np.concatenate([tensors["kind_embedding"], new]),
            "normal": np.concatenate([tensors["normal"], normal]),
            "beta": np.concatenate([tensors["beta"], np.zeros(count - old, tensors["beta"].dtype)])}


def predicted_ends(library, bundle, operators):
    """[candidates][latent] for each operator: z_T as the C library rolls it out."""
    ends = []
    with library.model(bundle) as model, model.actions() as table, model.scorer(table, {}) as scorer:
        for operator in operators:
            with model.workload(operator.text) as workload:
                ends.append(np.stack([scorer.rollout(workload, table.intern(candidate.actions))
                                      for candidate in operator.candidates]))
    return ends


def build_groups(operators, ends, vocabulary, names):
    reader = features.Reader(vocabulary, names)
    return [(np.stack([reader.of(vocabulary.intern(candidate.actions), z) for candidate, z in
                       zip(operator.candidates, latent)]), operator.times) for operator, latent in zip(operators, ends)]


def check(library, bundle, operators, groups, scored):
    """The C library's features against those of training, and its scores against scored(features), on every sixteenth
    candidate."""
    worst_feature, worst_score = 0.0, 0.0
    with library.model(bundle) as model, model.actions() as table, model.scorer(table, {}) as scorer:
        for operator, (rows, _) in zip(operators, groups):
            with model.workload(operator.text) as workload:
                some = [table.intern(candidate.actions) for candidate in operator.candidates[::16]]
                found = scorer.features_batch(workload, some)
                worst_feature = max(worst_feature, float(np.abs(found - rows[::16]).max()))
                worst_score = max(worst_score, float(np.abs(scorer.score(workload, some) - scored(found)).max()))
    print(f"the C library against training: features within {worst_feature:.1e}, scores within {worst_score:.1e}",
          flush=True)
    if worst_feature > 1e-3 or worst_score > 1e-3:
        raise SystemExit("the C library computes other features or scores than training did")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--bundle", default="weights/default", help="directory (default %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory of the new bundle")
    parser.add_argument("--latent", default=None, metavar="I,I", help="coordinates of z_T that the trees may read, or "
                        "none (default: those that the bundle's trees read)")
    score_network.add_options(parser)
    parser.add_argument("--ranker", type=dataset.fields_of(ranker.Settings), default={}, metavar="JSON",
                        help="fields of ranker.Settings")
    dataset.add_choices(parser)
    parser.add_argument("--folds", type=int, default=0, help="cross-validate by clusters first (default: do not)")
    parser.add_argument("--library", help="libforeloop.so (default: FORELOOP_LIBRARY, or the build folder's)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    library = dataset.fl.load(arguments.library)
    source = pathlib.Path(arguments.bundle)
    if not source.is_dir():
        raise SystemExit(f"{source} is no directory: refit.py takes a bundle as a directory, not packed")
    manifest = json.loads((source / "model.json").read_text())
    operators, left_out = dataset.choose(arguments, dataset.read_operators(library, arguments.data))
    if not operators:
        raise SystemExit("no operator to learn from in the data")
    derived = actions.derive([candidate for operator in operators for candidate in operator.candidates])
    moving = {name.split(".")[1] for name in load_file(source / "transition.safetensors") if name.startswith("mlp.")}
    kinds = merged_kinds(manifest["actions"], derived, moving)
    vocabulary = actions.Vocabulary(kinds)
    latent = ([name for name in manifest["features"] if name.startswith("z.")] if arguments.latent is None else
              [f"z.{int(i)}" for i in arguments.latent.split(",") if i not in ("", "none")])
    names = latent + features.action_names(vocabulary)
    groups = build_groups(operators, predicted_ends(library, source, operators), vocabulary, names)
    names, groups = (wanted := ranker.informative(groups, names)), ranker.select(groups, names, wanted)
    settings, network = ranker.Settings(**arguments.ranker), score_network.chosen(arguments, len(operators))
    print(f"{len(operators)} operators, {sum(len(times) for _, times in groups)} schedules, {len(names)} features")
    crossed = {}
    if arguments.folds:
        fold_of = {id(o): k for k, fold in enumerate(dataset.folds(operators, arguments.folds)) for o in fold}
        fold_of = [fold_of[id(operator)] for operator in operators]
        arms = {**({"actions and state": names} if latent else {}),
                "actions alone": [name for name in names if name not in latent]}
        crossed = ranker.cross_validation(operators, groups, fold_of, names, arms, settings, network)
    booster, beside, wanted = ranker.fit(operators, groups, names, settings, network)
    names, groups = wanted, ranker.select(groups, names, wanted)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.out.resolve() != source.resolve():
        for name in COPIED:
            shutil.copyfile(source / name, arguments.out / name)
    moved = grown_transition(load_file(source / "transition.safetensors"), len(kinds))
    (arguments.out / "transition.safetensors").write_bytes(save(moved))
    booster.save_model(str(arguments.out / "ranker.json"))
    refitted = {"date": datetime.date.today().isoformat(), "ranker": vars(settings),
                "score_network": vars(network) if network else None, "cross_validation": crossed,
                "machines": sorted({operator.machine for operator in operators}),
                "operators": [operator.name for operator in operators],
                "signatures": sorted({split.text_of(operator.signature) for operator in operators}),
                "schedules": sum(len(times) for _, times in groups),
                "left_out": [], "test": {}}  # the earlier ranker's
    earlier = manifest.get("training", {})
    # The encoder and the transition have seen programs of these, no times.
    refitted["states_of"] = earlier.get("states_of", earlier.get("operators", []))
    manifest.update(actions=kinds, features=names, training={**earlier, **refitted})
    export.put_score_network(arguments.out, manifest, beside)
    (arguments.out / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
    check(library, arguments.out, operators, groups, lambda rows: ranker.score(booster, rows, names, beside))
    if left_out:
        rows = evaluate.evaluate(library, arguments.out, left_out)
        for label, (means, intervals) in evaluate.summary(list(rows.values())).items():
            print(f"left out, {len(rows)} operators, {label}: {metrics.show(means)}, top-1 from "
                  f"{intervals['top1'][0]:.3f} to {intervals['top1'][1]:.3f}")
        manifest["training"]["left_out"] = [operator.name for operator in left_out]
        manifest["training"]["test"] = {"validation" if arguments.leave_out is None else "left_out": {
            "operators": len(rows), "model": metrics.known(metrics.mean(rows.values()))}}
        (arguments.out / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print("wrote", arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
