"""Random small model bundles (weights/FORMAT.md) with every slot encoding and every kind of feature.

    python random_bundle.py DIR [--seed N]

Needs numpy and xgboost. tests/golden/make_bundle.py and the differential tests use it as a module.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

HARDWARE = ["cores", "simd_bits", "l1d_bytes", "l2_bytes", "l3_bytes", "clock_hz"]


def write_safetensors(path, tensors):
    """Writes {name: float32 array} in the safetensors layout."""
    header, offset, blobs = {}, 0, []
    for name, array in tensors.items():
        data = np.ascontiguousarray(array, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        blobs.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def byte_level_alphabet():
    """The characters by which byte-level BPE writes the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def tokenizer_json():
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {token: i for i, token in enumerate(special + sorted(byte_level_alphabet()))}
    merges = []
    for pair in [("T", "."), ("i", "n"), ("o", "r"), ("f", "or"), ("Ġ", "Ġ")]:
        vocabulary["".join(pair)] = len(vocabulary)
        merges.append(list(pair))
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, token in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                           "add_prefix_space": False},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": merges},
    }


def encoder_tensors(random, vocabulary, hidden, layers, intermediate, positions):
    def normal(*shape):
        return random.normal(0, 0.2, shape)

    tensors = {"embeddings.word_embeddings.weight": normal(vocabulary, hidden),
               "embeddings.position_embeddings.weight": normal(positions, hidden),
               "embeddings.token_type_embeddings.weight": normal(1, hidden)}

    def layer_norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = 1 + normal(hidden), normal(hidden)

    layer_norm("embeddings.LayerNorm")
    for i in range(layers):
        prefix = f"encoder.layer.{i}."
        for name, rows, columns in [("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                    ("attention.self.value", hidden, hidden),
                                    ("attention.output.dense", hidden, hidden),
                                    ("intermediate.dense", intermediate, hidden),
                                    ("output.dense", hidden, intermediate)]:
            tensors[prefix + name + ".weight"], tensors[prefix + name + ".bias"] = normal(rows, columns), normal(rows)
        layer_norm(prefix + "attention.output.LayerNorm")
        layer_norm(prefix + "output.LayerNorm")
    return tensors


def random_slots(random, count):
    """Slots of every encoding in turn, so that few kinds cover all."""
    slots = []
    for i in range(count):
        encoding = ["signed_log", "linear", "one_hot", "vocabulary"][(i + int(random.integers(4))) % 4]
        slot = {"name": f"slot_{i}", "encoding": encoding}
        if encoding in ("signed_log", "linear"):
            if random.random() < 0.5:
                slot["sentinels"] = [-1, -2]
            if random.random() < 0.5:
                slot["scale"] = float(np.float32(random.uniform(0.05, 0.5)))
        elif encoding == "one_hot":
            slot["values"] = sorted(int(v) for v in random.choice(12, int(random.integers(1, 6)), replace=False))
        else:
            slot["values"] = [f"name.{j}" for j in range(int(random.integers(1, 5)))]
        slots.append(slot)
    return slots


def elements(kind):
    """The names of a kind's elements of phi, in order."""
    names = []
    for slot in kind["slots"]:
        name = f"{kind['kind']}.{slot['name']}"
        if slot["encoding"] in ("signed_log", "linear"):
            names.append(name)
            names += [f"{name}={v}" for v in slot.get("sentinels", [])]
        else:
            names += [f"{name}={v}" for v in slot["values"]] + [name + "=?"]
    return names


def random_features(random, actions, latent, count):
    candidates = [f"z.{i}" for i in range(latent)] + ["length"] + [f"hw.{name}" for name in HARDWARE]
    for kind in actions:
        candidates.append(f"count.{kind['kind']}")
        candidates += [f"{how}.{name}" for name in elements(kind) for how in ("sum", "max", "min", "first", "last")]
    chosen = random.permutation(len(candidates))[:count]
    return [candidates[i] for i in chosen]


def random_ranker(random, features, trees):
    import xgboost
    rows = random.normal(0, 2, (400, len(features))).astype(np.float32)
    labels = random.integers(0, 4, 400)
    matrix = xgboost.DMatrix(rows, labels, feature_names=features)
    matrix.set_group([40] * 10)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "seed": int(random.integers(1 << 30)),
                             "nthread": 1}, matrix, trees)
    return booster.save_raw("json").decode()


def network_tensors(random, features, widths):
    """A score network with hidden layers of these widths. A third of the features is not read."""
    scale = random.uniform(0.05, 2, features) * (random.random(features) > 1 / 3)
    scale[int(random.integers(features))] = 0.5  # one at least
    tensors = {"shift": random.normal(0, 1, features), "scale": scale, "limit": random.uniform(1, 5, 1)}
    sizes = [features, *widths, 1]
    for i, (width, rows) in enumerate(zip(sizes, sizes[1:])):
        tensors[f"{i}.weight"] = random.normal(0, 1.5 / np.sqrt(width), (rows, width))
        tensors[f"{i}.bias"] = random.normal(0, 0.2, rows)
    return tensors


def make(directory, seed, kinds=6, hidden=32, latent=None, layers=2, features=60, trees=12, window=(64, 40),
         normalize=True, network=None):
    """Writes a bundle; `latent` other than `hidden` brings a projection, `network` (the widths of its hidden layers) a
    score network. Returns the manifest."""
    random = np.random.default_rng(seed)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    latent = latent or hidden
    tokenizer = tokenizer_json()
    vocabulary = len(tokenizer["model"]["vocab"])
    actions = [{"kind": f"kind_{i}", "slots": random_slots(random, int(random.integers(1, 7)) if i else 0)}
               for i in range(kinds)]
    manifest = {"format": "foreloop-model", "format_version": 1, "text_rule": 1, "latent_size": latent,
                "window": {"length": window[0], "stride": window[1]},
                "pooling": {"projection": latent != hidden, "normalize": normalize}, "activation": "relu",
                "actions": actions, "features": random_features(random, actions, latent, features),
                "training": {"data": "random"}}
    if network is not None:
        manifest.update(format_version=2, score_network=True)
    encoder = encoder_tensors(random, vocabulary, hidden, layers, 2 * hidden, window[0] + 2)
    if latent != hidden:
        encoder["pooling.weight"] = random.normal(0, 0.3, (latent, hidden))
        encoder["pooling.bias"] = random.normal(0, 0.3, latent)
    normal = random.normal(0, 1, (kinds, latent))
    transition = {"kind_embedding": random.normal(0, 0.1, (kinds, latent)),
                  "normal": normal / np.linalg.norm(normal, axis=1, keepdims=True),
                  "beta": random.uniform(0, 2, kinds)}
    for kind in actions[1:]:
        width, middle, name = len(elements(kind)), int(random.integers(1, 24)), f"mlp.{kind['kind']}"
        transition[name + ".0.weight"] = random.normal(0, 0.4, (middle, width))
        transition[name + ".0.bias"] = random.normal(0, 0.1, middle)
        transition[name + ".1.weight"] = random.normal(0, 0.2, (latent, middle))
        transition[name + ".1.bias"] = random.normal(0, 0.1, latent)
    config = {"model_type": "roberta", "vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": layers,
              "num_attention_heads": 4, "intermediate_size": 2 * hidden, "max_position_embeddings": window[0] + 2,
              "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
              "layer_norm_eps": 1e-5, "position_embedding_type": "absolute"}
    (directory / "model.json").write_text(json.dumps(manifest, indent=1))
    (directory / "config.json").write_text(json.dumps(config, indent=1))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer, indent=1, ensure_ascii=False))
    write_safetensors(directory / "encoder.safetensors", encoder)
    write_safetensors(directory / "transition.safetensors", transition)
    (directory / "ranker.json").write_text(random_ranker(random, manifest["features"], trees))
    if network is not None:
        write_safetensors(directory / "score_network.safetensors",
                          network_tensors(random, len(manifest["features"]), network))
    return manifest


def random_action(random, actions, unknown=0.05):
    """(kind, {argument: value}), now and then of a kind, argument or value that the model does not know."""
    if random.random() < unknown:
        return "no_such_kind", {"x": 1.0}
    kind = actions[int(random.integers(len(actions)))]
    arguments = {}
    for slot in kind["slots"]:
        if random.random() < 0.2:
            continue
        if slot["encoding"] == "vocabulary":
            value = str(random.choice(slot["values"] + ["other"]))
        elif slot["encoding"] == "one_hot":
            value = float(random.choice(slot["values"] + [99]))
        else:
            value = float(random.choice([-2, -1, 0, 0.5, *2.0 ** random.integers(0, 10, 4)]))
        arguments[slot["name"]] = value
    if random.random() < unknown:
        arguments["no_such_slot"] = 7.0
    return kind["kind"], arguments


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)


if __name__ == "__main__":
    main()
