"""Makes tests/golden/transformer: tiny random RoBERTa and BERT checkpoints and what PyTorch computes with them.

    python3 tests/golden/make_transformer.py

Made with torch 2.13.0 (CPU), transformers 5.24.0, tokenizers 0.23.3, safetensors 0.8.0, numpy 2.4.6.

Each of bert/ and roberta/ is a checkpoint directory as it lies, with expected.safetensors beside it:
    ids.N, types.N, hidden.N    token ids (I64), token types (I64, BERT only) and last hidden states of sequence N
    text.N, embedding.N         a text (U8) and its vector under the directory's own pooling rule
    windowed.N                  its vector under the windowed rule of window_pool.h with WINDOW, projection and norm
    projection, projection_bias
bert/ has sentence-transformers files; its variants/ are the same weights under other names and in other types, with
hidden.f16 and hidden.bf16 for sequence 0.
"""

import json
import math
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ROOT = pathlib.Path(__file__).parent / "transformer"
WINDOW = {"length": 10, "stride": 3}
PROJECTION_SIZE = 7


def random_weights(model, seed):
    """Weights of a scale at which every part of the encoder matters."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            values = rng.standard_normal(tuple(parameter.shape)).astype(np.float32)
            if "LayerNorm.weight" in name:
                values = 1 + 0.2 * values
            elif values.ndim == 2 and "embeddings" not in name:
                values *= 1.5 / math.sqrt(values.shape[1])
            else:
                values *= 0.5
            parameter.copy_(torch.from_numpy(values))
    return model.eval()


def hidden_states(model, ids, types=None):
    with torch.no_grad():
        token_types = None if types is None else torch.tensor([types])
        return model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                     token_type_ids=token_types).last_hidden_state[0].contiguous()


def windows(count, content, stride):
    """The rule of src/transformer/window_pool.h."""
    number = 1 if count <= content else 1 + -(-(count - content) // stride)
    return [(k * stride, min(k * stride + content, count)) for k in range(number)]


def windowed_embedding(model, prefix, content, suffix, length, stride, projection, bias):
    total, number = torch.zeros(model.config.hidden_size, dtype=torch.float64), 0
    for first, end in windows(len(content), length - len(prefix) - len(suffix), stride):
        states = hidden_states(model, prefix + content[first:end] + suffix)
        pooled = states[len(prefix):len(prefix) + end - first]
        total += pooled.double().sum(0)
        number += len(pooled)
    if not number:
        return torch.zeros(len(bias))
    vector = (total / number).float() @ projection.T + bias
    return vector / max(float(vector.norm()), 1e-12)


def truncated_mean(model, prefix, content, suffix, length, normalize):
    ids = prefix + content[:length - len(prefix) - len(suffix)] + suffix
    vector = hidden_states(model, ids).double().mean(0).float()
    return vector / max(float(vector.norm()), 1e-12) if normalize else vector


def save(path, tensors):
    save_file({name: tensor.contiguous() for name, tensor in sorted(tensors.items())}, path)
    path.chmod(0o644)


def write_checkpoint(folder, model, tokenizer, prefix):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(model.config.to_dict(), indent=1, sort_keys=True) + "\n")
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True) + "\n")
    save(folder / "model.safetensors", {prefix + name: value for name, value in model.state_dict().items()})


def expectations(model, tokenizer, sequences, texts, length, normalize, with_types):
    rng = np.random.default_rng(3)
    expected = {"projection": torch.from_numpy(
        rng.standard_normal((PROJECTION_SIZE, model.config.hidden_size)).astype(np.float32)),
        "projection_bias": torch.from_numpy(rng.standard_normal(PROJECTION_SIZE).astype(np.float32))}
    for index, ids in enumerate(sequences):
        types = [int(i % 3 == 2) for i in range(len(ids))] if with_types else None
        expected[f"ids.{index}"] = torch.tensor(ids)
        if with_types:
            expected[f"types.{index}"] = torch.tensor(types)
        expected[f"hidden.{index}"] = hidden_states(model, ids, types)
    special = tokenizer.encode("").ids
    prefix, suffix = special[:1], special[1:]
    for index, text in enumerate(texts):
        content = tokenizer.encode(text, add_special_tokens=False).ids
        expected[f"text.{index}"] = torch.tensor(list(text.encode()), dtype=torch.uint8)
        expected[f"embedding.{index}"] = truncated_mean(model, prefix, content, suffix, length, normalize)
        expected[f"windowed.{index}"] = windowed_embedding(model, prefix, content, suffix, **WINDOW,
                                                           projection=expected["projection"],
                                                           bias=expected["projection_bias"])
    return expected


def make_roberta():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("i", "n"), ("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("e", "r")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + alphabet + ["".join(pair) for pair in merges] + ["<mask>"]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    config = transformers.RobertaConfig(vocab_size=len(tokens), hidden_size=12, num_hidden_layers=2,
                                        num_attention_heads=2, intermediate_size=28, max_position_embeddings=26,
                                        type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
    model = random_weights(transformers.RobertaModel(config, add_pooling_layer=False), 1)
    write_checkpoint(ROOT / "roberta", model, tokenizer, "roberta.")
    rng = np.random.default_rng(4)
    sequences = [rng.integers(2, len(tokens), n).tolist() for n in (1, 2, 7, 24)] + [[0, 5, 6, 2, 1, 1]]
    texts = ["", "a", "the inner loop", "for i in range(1024): the body\n\tü", "<mask> x " * 9]
    save(ROOT / "roberta" / "expected.safetensors",
         expectations(model, tokenizer, sequences, texts, 24, False, False))


def make_bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "loop", "##er", "inner", "body", "(", ")", ":"]
    tokenizer = Tokenizer(models.WordPiece(vocab={w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(words[:5])
    config = transformers.BertConfig(vocab_size=29, hidden_size=20, num_hidden_layers=3, num_attention_heads=4,
                                     intermediate_size=35, max_position_embeddings=21, hidden_act="gelu_new")
    model = random_weights(transformers.BertModel(config, add_pooling_layer=False), 2)
    folder = ROOT / "bert"
    write_checkpoint(folder, model, tokenizer, "")
    (folder / "modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
        for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])
    ], indent=1) + "\n")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 20, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
         "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}, indent=1) + "\n")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 9, "do_lower_case": false}\n')
    rng = np.random.default_rng(5)
    sequences = [rng.integers(0, 29, n).tolist() for n in (3, 1, 21)]
    texts = ["", "The inner looper", "loop (body): " * 5]
    expected = expectations(model, tokenizer, sequences, texts, 9, True, True)

    variants = folder / "variants"
    variants.mkdir()
    weights = load_file(folder / "model.safetensors")
    old = {"bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
           for name, t in weights.items()}
    save(variants / "old_names.safetensors", old | {"cls.predictions.bias": torch.zeros(29)})
    for label, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        narrow = {name: t.to(dtype) for name, t in weights.items()}
        save(variants / f"{label}.safetensors", narrow)
        model.load_state_dict({name: t.float() for name, t in narrow.items()})
        expected[f"hidden.{label}"] = hidden_states(model, sequences[0], expected["types.0"].tolist())
    save(folder / "expected.safetensors", expected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    shutil.rmtree(ROOT, ignore_errors=True)
    make_roberta()
    make_bert()
