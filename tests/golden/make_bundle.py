"""Makes tests/golden/bundle: a random small model bundle, candidates, and what numpy and xgboost say of them; and
tests/golden/bundle_network, another one with a score network.

    python make_bundle.py        (numpy 2.4.6, xgboost 3.2.0)

candidates.json: z0, hardware, and for each candidate its actions, end state, features and score (float32 as numbers).
"""

import json
import pathlib
import sys

import numpy as np
import xgboost

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "differential"), str(ROOT / "integrations" / "python")]
import random_bundle  # noqa: E402
import test_transition  # noqa: E402


def make(name, network):
    directory = pathlib.Path(__file__).parent / name
    manifest = random_bundle.make(directory, 20, kinds=7, hidden=16, latent=20, layers=1, features=80, trees=10,
                                  window=(24, 14), network=network)
    random = np.random.default_rng(21)
    hardware = {name: float(random.integers(1, 1 << 20)) for name in random_bundle.HARDWARE}
    tensors = test_transition.read_safetensors(directory / "transition.safetensors")
    reference = test_transition.Reference(manifest, tensors, hardware)
    booster = xgboost.Booster(model_file=str(directory / "ranker.json"))
    z0 = random.normal(0, 1, manifest["latent_size"]).astype(np.float32)
    candidates = []
    for length in [0, 1, 2, 5, 20, 20, 40, *random.integers(1, 30, 25)]:
        actions = [random_bundle.random_action(random, manifest["actions"]) for _ in range(length)]
        latent, features = reference.roll_out(z0, actions)
        row = np.array([[features[name] for name in manifest["features"]]], np.float32)
        score = booster.predict(xgboost.DMatrix(row, feature_names=manifest["features"]), output_margin=True)[0]
        if network is not None:
            score += test_transition.score_network(
                test_transition.read_safetensors(directory / "score_network.safetensors"), row)[0]
        candidates.append({"actions": [{"kind": kind, "arguments": arguments} for kind, arguments in actions],
                           "latent": [float(np.float32(v)) for v in latent], "features": row[0].tolist(),
                           "score": float(score)})
    content = {"z0": z0.tolist(), "hardware": hardware, "candidates": candidates}
    (directory / "candidates.json").write_text(json.dumps(content) + "\n")


def main():
    make("bundle", None)
    make("bundle_network", [18, 5])


if __name__ == "__main__":
    main()
