"""Action encoding, transition, rollout, features and scores against numpy, on random bundles.

    python test_transition.py [--full]

The reference follows weights/FORMAT.md in float64: latent states agree within 1e-5 relative, aggregates to the bit,
scores with xgboost's margins of the library's own features, and with the score network's output added to them where the
bundle has one, to the bit.
"""

import pathlib
import sys
import tempfile

import numpy as np
import xgboost

import foreloop_ctypes as fl
import random_bundle


def phi(kind, arguments):
    """The vector of one action: float64 numbers, rounded where the format says so."""
    values = []
    for slot in kind["slots"]:
        value = arguments.get(slot["name"])
        if slot["encoding"] in ("linear", "signed_log"):
            sentinels = slot.get("sentinels", [])
            number = 0.0
            if value is not None and value not in sentinels:
                if slot["encoding"] == "signed_log":
                    value = np.copysign(np.log2(1 + abs(value)), value)
                number = np.float32(value) * np.float32(slot.get("scale", 1))
            values += [number] + [float(value is not None and arguments[slot["name"]] == s) for s in sentinels]
        else:
            values += [float(value == v) for v in slot["values"]]
            values.append(float(value is not None and value not in slot["values"]))
    return np.array(values, np.float32)


class Reference:
    def __init__(self, manifest, tensors, hardware):
        self.manifest, self.tensors, self.hardware = manifest, tensors, hardware
        self.kinds = {kind["kind"]: (i, kind) for i, kind in enumerate(manifest["actions"])}

    def embedding(self, index, kind, vector):
        t, name = self.tensors, f"mlp.{kind['kind']}"
        result = t["kind_embedding"][index].astype(np.float64)
        if name + ".0.weight" in t:
            hidden = np.maximum(t[name + ".0.weight"].astype(np.float64) @ vector + t[name + ".0.bias"], 0)
            result = result + t[name + ".1.weight"].astype(np.float64) @ hidden + t[name + ".1.bias"]
        return result

    def roll_out(self, z0, actions):
        """(end state, {feature: value}) of a sequence."""
        z, vectors, length = np.asarray(z0, np.float64), {}, 0
        for name, arguments in actions:
            if name not in self.kinds:
                continue
            index, kind = self.kinds[name]
            vector = phi(kind, arguments)
            normal = self.tensors["normal"][index].astype(np.float64)
            z = z - self.tensors["beta"][index] * (normal @ z) * normal + self.embedding(index, kind, vector)
            vectors.setdefault(name, []).append(vector)
            length += 1
        features = {"length": length}
        features.update({f"z.{i}": value for i, value in enumerate(z)})
        features.update({f"hw.{name}": np.float32(value) for name, value in self.hardware.items()})
        for name, (_, kind) in self.kinds.items():
            rows = vectors.get(name, [])
            features[f"count.{name}"] = len(rows)
            for i, element in enumerate(random_bundle.elements(kind)):
                column = [row[i] for row in rows]
                total = np.float32(0)
                for value in column:
                    total = np.float32(total + value)
                features[f"sum.{element}"] = total
                for how, value in (("max", max), ("min", min), ("first", lambda c: c[0]), ("last", lambda c: c[-1])):
                    features[f"{how}.{element}"] = value(column) if column else 0
        return z, features


def fma(a, b, c):
    """a * b + c of float32 arrays, rounded once. The product is exact in float64, the sum is rounded to odd there: what
    was cut off shows in its last bit, so that rounding it to float32 is right."""
    product, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + c
    moved = total - product
    rest = (product - (total - moved)) + (c - moved)
    bits = total.view(np.int64)
    odd = (rest != 0) & (bits % 2 == 0)
    away = (rest > 0) == (total > 0)  # from zero: the next larger bits, or the next smaller ones
    return np.where(odd, bits + np.where(away, 1, -1), bits).view(np.float64).astype(np.float32)


def score_network(tensors, rows):
    """The network's float32 outputs for rows of features."""
    limit, read = tensors["limit"][0], np.flatnonzero(tensors["scale"])
    x = (rows[:, read] - tensors["shift"][read]) * tensors["scale"][read]
    x = np.minimum(np.maximum(x, -limit), limit)
    count = sum(name.endswith(".weight") for name in tensors)
    for i in range(count):
        weight = tensors[f"{i}.weight"][:, read] if i == 0 else tensors[f"{i}.weight"]
        total = np.tile(tensors[f"{i}.bias"], (len(x), 1))
        for k in range(x.shape[1]):
            total = fma(x[:, k : k + 1], weight[None, :, k], total)
        x = np.where(total > 0, total, np.float32(0)) if i + 1 < count else total
    return x[:, 0]


def read_safetensors(path):
    import json
    import struct
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return {name: np.frombuffer(data[8 + size:], "<f4", int(np.prod(entry["shape"])), entry["data_offsets"][0])
            .reshape(entry["shape"]) for name, entry in json.loads(data[8:8 + size]).items()}


def check_bundle(library, directory, seed, candidates):
    """Largest relative error of z, and the numbers of unequal aggregates and scores."""
    random = np.random.default_rng(seed)
    shape = {"kinds": int(random.integers(2, 9)), "hidden": 4 * int(random.integers(2, 17)),
             "features": int(random.integers(10, 120)), "layers": 1}
    if seed % 2:
        shape["latent"] = int(random.integers(8, 70))  # in fewer dimensions the dot products can cancel (NUMERICS.md)
    if seed % 3:
        shape["network"] = [int(random.integers(1, 70)) for _ in range(int(random.integers(0, 4)))]
    manifest = random_bundle.make(directory, seed, **shape)
    booster = xgboost.Booster(model_file=str(directory / "ranker.json"))
    hardware = {name: float(random.integers(1, 1 << 20)) for name in random_bundle.HARDWARE}
    reference = Reference(manifest, read_safetensors(directory / "transition.safetensors"), hardware)
    worst, unequal_features, unequal_scores = 0.0, 0, 0
    with library.model(directory) as model:
        names = model.feature_names()
        latent = model.info["latent_size"]
        z0 = random.normal(0, 1, latent).astype(np.float32)
        with model.workload(latent=z0) as workload, model.actions() as table, \
                model.scorer(table, hardware) as scorer:
            sequences, rows = [], []
            for _ in range(candidates):
                actions = [random_bundle.random_action(random, manifest["actions"])
                           for _ in range(int(random.integers(0, 40)))]
                ids = table.intern(actions)
                z, features = reference.roll_out(z0, actions)
                error = np.abs(scorer.rollout(workload, ids) - z).max() / max(np.abs(z).max(), 1e-30)
                worst = max(worst, float(error))
                row = scorer.features(workload, ids)
                unequal_features += sum(not name.startswith("z.") and row[i] != np.float32(features[name])
                                        for i, name in enumerate(names))
                sequences.append(ids)
                rows.append(row)
            scores = scorer.score(workload, sequences)
            margins = booster.predict(xgboost.DMatrix(np.array(rows), feature_names=names), output_margin=True)
            if "network" in shape:
                network = read_safetensors(directory / "score_network.safetensors")
                margins = margins + score_network(network, np.array(rows))
            unequal_scores += int((scores.view(np.uint32) != margins.view(np.uint32)).sum())
    return worst, unequal_features, unequal_scores


def main():
    full = "--full" in sys.argv
    library, passed, failed = fl.load(), 0, 0
    for seed in range(200 if full else 12):
        with tempfile.TemporaryDirectory() as directory:
            worst, features, scores = check_bundle(library, pathlib.Path(directory), seed, 200 if full else 60)
        good = worst < 1e-5 and features == 0 and scores == 0
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok' if good else 'FAILED'} bundle {seed}: z within {worst:.1e}, {features} unequal aggregates, "
              f"{scores} unequal scores")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
