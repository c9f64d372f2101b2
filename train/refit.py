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
import contextlib
import datetime
import json
import pathlib
import shutil
import sys
import tempfile

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


@contextlib.contextmanager
def openable(library, source, manifest):
    """The source bundle, or if the library refuses it for its score network, which rollouts do not need, a copy that
    has none."""
    try:
        library.model(source).close()
    except dataset.fl.Error as error:
        if manifest.get("score_network") is not True or manifest.get("format_version") != 2:
            raise
        refused = error
    else:
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in (*COPIED, "transition.safetensors", "ranker.json"):
            (folder / name).symlink_to((source / name).resolve())
        plain = {key: value for key, value in manifest.items() if key != "score_network"}
        (folder / "model.json").write_text(json.dumps({**plain, "format_version": 1}))
        try:
            library.model(folder).close()
        except dataset.fl.Error as error:  # it is not the network, or not alone
            raise dataset.fl.Error(error.code, error.message.replace(str(folder), str(source))) from None
        print(f"{source}: its score network is not read ({refused.message})", file=sys.stderr)
        yield folder


def read_manifest(path):
    try:
        manifest = json.loads(path.read_text())
    except ValueError as error:
        raise SystemExit(f"{path} is no JSON: {error}")
    if not isinstance(manifest, dict):
        raise SystemExit(f"{path} is no JSON object")
    return manifest


def coordinates(text):
    """An argparse type: "15,16" or "none"."""
    try:
        return [int(i) for i in text.split(",") if i not in ("", "none")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither none nor numbers with commas between them")


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
                # NaN, where there is one
                worst_feature = np.maximum(worst_feature, np.abs(found - rows[::16]).max())
                worst_score = np.maximum(worst_score, np.abs(scorer.score(workload, some) - scored(found)).max())
    print(f"the C library against training: features within {worst_feature:.1e}, scores within {worst_score:.1e}",
          flush=True)
    if not (worst_feature <= 1e-3 and worst_score <= 1e-3):
        raise SystemExit("the C library computes other features or scores than training did")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", help="data directories, or directories of single operators")
    parser.add_argument("--bundle", default="weights/default", help="directory (default %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory of the new bundle")
    parser.add_argument("--latent", type=coordinates, metavar="I,I", help="coordinates of z_T that the trees may "
                        "read, or none (default: those that the bundle's trees read)")
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
    if arguments.out.exists() and not arguments.out.is_dir():
        raise SystemExit(f"{arguments.out} is no directory")
    manifest = read_manifest(source / "model.json")
    with openable(library, source, manifest) as usable:
        return refit(arguments, library, source, usable, manifest)


def refit(arguments, library, source, usable, manifest):
    """`usable` is what the library opens of the source."""
    with library.model(usable) as model:
        size = model.info["latent_size"]
    outside = [i for i in arguments.latent or () if not 0 <= i < size]
    if outside:
        raise SystemExit(f"--latent {outside[0]}: the coordinates of z_T are 0 to {size - 1}")
    operators, left_out = dataset.choose(arguments, dataset.read_operators(library, arguments.data))
    if not operators:
        raise SystemExit("no operator to learn from in the data")
    if arguments.folds:
        fold_of = dataset.fold_of(operators, arguments.folds)
    derived = actions.derive([candidate for operator in operators for candidate in operator.candidates])
    moving = {name.split(".")[1] for name in load_file(source / "transition.safetensors") if name.startswith("mlp.")}
    kinds = merged_kinds(manifest["actions"], derived, moving)
    vocabulary = actions.Vocabulary(kinds)
    latent = ([name for name in manifest["features"] if name.startswith("z.")] if arguments.latent is None else
              [f"z.{i}" for i in dict.fromkeys(arguments.latent)])
    names = latent + features.action_names(vocabulary)
    groups = build_groups(operators, predicted_ends(library, usable, operators), vocabulary, names)
    names, groups = (wanted := ranker.informative(groups, names)), ranker.select(groups, names, wanted)
    settings, network = ranker.Settings(**arguments.ranker), score_network.chosen(arguments, operators)
    print(f"{len(operators)} operators, {sum(len(times) for _, times in groups)} schedules, {len(names)} features")
    crossed = {}
    if arguments.folds:
        arms = {**({"actions and state": names} if latent else {}),
                "actions alone": [name for name in names if name not in latent]}
        crossed = ranker.cross_validation(operators, groups, fold_of, names, arms, settings, network)
    booster, beside, wanted = ranker.fit(operators, groups, names, settings, network)
    names, groups = wanted, ranker.select(groups, names, wanted)
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
    with export.replacing(arguments.out) as staged:
        for name in COPIED:
            shutil.copyfile(source / name, staged / name)
        moved = grown_transition(load_file(source / "transition.safetensors"), len(kinds))
        (staged / "transition.safetensors").write_bytes(save(moved))
        booster.save_model(str(staged / "ranker.json"))
        export.put_score_network(staged, manifest, beside)
        (staged / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
        check(library, staged, operators, groups, lambda rows: ranker.score(booster, rows, names, beside))
        if left_out:
            rows = evaluate.evaluate(library, staged, left_out)
            for label, (means, intervals) in evaluate.summary(list(rows.values())).items():
                print(f"left out, {len(rows)} operators, {label}: {metrics.show(means)}, top-1 from "
                      f"{intervals['top1'][0]:.3f} to {intervals['top1'][1]:.3f}")
            manifest["training"]["left_out"] = [operator.name for operator in left_out]
            manifest["training"]["test"] = {"validation" if arguments.leave_out is None else "left_out": {
                "operators": len(rows), "model": metrics.known(metrics.mean(rows.values()))}}
            (staged / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print("wrote", arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(dataset.run(main))
