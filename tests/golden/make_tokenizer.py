"""Makes tests/golden/tokenizer: two small tokenizers, and what Hugging Face's package makes of some texts with them.

    pip install tokenizers==0.23.3
    python tests/golden/make_tokenizer.py
"""

import collections
import json
import pathlib
import sys

import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))

from tokenizer_texts import random_texts  # noqa: E402

TOKENIZERS_VERSION = "0.23.3"
OUTPUT = ROOT / "tests" / "golden" / "tokenizer"
SEED = 11

PROGRAMS = ['''
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((%(n)d, %(k)d), "float32"), B: T.Buffer((%(k)d, %(n)d), "float32"), C: T.Buffer((%(n)d, %(n)d), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j, k in T.grid(%(n)d, %(n)d, %(k)d):
            with T.sblock("matmul"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(A[v_i, v_k], B[v_k, v_j])
                T.writes(C[v_i, v_j])
                with T.init():
                    C[v_i, v_j] = T.float32(0.0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
''', '''
    def conv(data: T.Buffer((1, %(n)d, 56, 56), "float16"), weight: T.Buffer((%(k)d, %(n)d, 3, 3), "int8")):
        for nn, ff, yy, xx, rc, ry, rx in T.grid(1, %(k)d, 54, 54, %(n)d, 3, 3):
            with T.sblock("conv2d_nchw"):
                T.writes(conv2d_nchw[v_nn, v_ff, v_yy, v_xx])
                pad_temp[v0, v1, v2, v3] = T.if_then_else(1 <= v2 and v2 < 57, data[v0, v1, v2 - 1, v3], T.float32(0.0))
''']


def corpus():
    return [program % {"n": n, "k": n * 2} for program in PROGRAMS for n in (16, 128, 768)]


def byte_level_bpe():
    """As RoBERTa's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def wordpiece():
    """As BERT's; with the commonest words for a vocabulary, because the trainer's differs from run to run."""
    normalizer, pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    text = "\n".join([*corpus(), "héllo wörld 中文 각 ß ﬁ the in two words"])
    words = [word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]
    letters = sorted(set("".join(words)) | set("0123456789"))
    common = [word for word, count in sorted(collections.Counter(words).items()) if count >= 4 or "l" in word]
    parts = [f"##{word[1:]}" for word in common if len(word) > 4]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters), *common,
              *parts]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def byte_offsets(text, offsets):
    return [len(text[:place].encode()) for pair in offsets for place in pair]


def cases(tokenizer):
    for text in random_texts(160, SEED, longest=9):
        encoding = tokenizer.encode(text)
        yield {"text": text, "ids": encoding.ids, "offsets": byte_offsets(text, encoding.offsets)}


def main():
    if tokenizers.__version__ != TOKENIZERS_VERSION:
        sys.exit(f"tokenizers {TOKENIZERS_VERSION} is needed, this is {tokenizers.__version__}")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in (("bpe", byte_level_bpe()), ("wordpiece", wordpiece())):
        tokenizer.save(str(OUTPUT / f"{name}.tokenizer.json"), pretty=False)
        lines = [json.dumps(case, separators=(",", ":")) for case in cases(tokenizer)]
        (OUTPUT / f"{name}.cases.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
