"""Checkpoints without tokenizer.json: vocab.json with merges.txt, and vocab.txt, give the ids of Hugging Face; and so do
the same files opened on their own, by the options that say what stands in the checkpoint's settings.

    python test_checkpoint.py [--full]

The references are put together from the tokenizers package as transformers' RobertaTokenizer and BertTokenizer do.
"""

import json
import pathlib
import random
import sys
import tempfile

import numpy as np
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

import foreloop_ctypes as fl
import random_bundle
from test_tokenizer import byte_offsets

ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["for", "in", "T.grid", "(", "512,", "64)", "A[i, j]", "\n    ", "  ", "Été", "ÅNGSTRÖM", "数", "naïve", "don't", "\"q\\\"",
         "<mask>", "[MASK]", "x", "==", "\t", "é"]


def corpus(seed, count):
    generator = random.Random(seed)
    return ["".join(generator.choice(WORDS) + generator.choice(["", " "]) for _ in range(generator.randrange(30)))
            for _ in range(count)]


def write_checkpoint(directory, model_type, vocabulary, settings):
    tensors = random_bundle.encoder_tensors(np.random.default_rng(1), vocabulary, 8, 1, 16, 600)
    random_bundle.write_safetensors(directory / "model.safetensors", tensors)
    (directory / "config.json").write_text(json.dumps({
        "model_type": model_type, "vocab_size": vocabulary, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 600, "type_vocab_size": 1,
        "pad_token_id": 1 if model_type == "roberta" else 0}))
    if settings is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def roberta(directory, prefix):
    """Trains a BPE, writes its two files; returns the reference."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(corpus(1, 300), trainers.BpeTrainer(
        vocab_size=420, special_tokens=ROBERTA, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    trained.model.save(str(directory))
    write_checkpoint(directory, "roberta", trained.get_vocab_size(), {"add_prefix_space": prefix, "model_max_length": 512})
    reference = tokenizers.Tokenizer(models.BPE.from_file(str(directory / "vocab.json"), str(directory / "merges.txt")))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    reference.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, prefix)
    reference.add_special_tokens([tokenizers.AddedToken(t, lstrip=t == "<mask>", normalized=False) for t in ROBERTA])
    return reference


def bert(directory, lowercase, strip_accents):
    trained = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer()
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.train_from_iterator(corpus(2, 300), trainers.WordPieceTrainer(
        vocab_size=150, special_tokens=BERT, show_progress=False))
    trained.model.save(str(directory))
    settings = {"do_lower_case": lowercase, "strip_accents": strip_accents, "tokenize_chinese_chars": True}
    write_checkpoint(directory, "bert", trained.get_vocab_size(), None if lowercase and strip_accents is None else settings)
    reference = tokenizers.Tokenizer(models.WordPiece.from_file(str(directory / "vocab.txt"), unk_token="[UNK]"))
    reference.normalizer = normalizers.BertNormalizer(strip_accents=strip_accents, lowercase=lowercase)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    reference.add_special_tokens([tokenizers.AddedToken(t, normalized=False) for t in BERT])
    return reference


def gpt2(directory):
    """The files of a tokenizer without special tokens."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.post_processor = processors.ByteLevel(trim_offsets=False)
    trained.train_from_iterator(corpus(1, 300), trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    trained.model.save(str(directory))
    return trained


def join_chinese(directory):
    reference = bert(directory, True, None)
    reference.normalizer = normalizers.BertNormalizer(handle_chinese_chars=False)
    return reference


def files_cases(library):
    """(name, what makes the files and gives the reference, what opens them)"""
    bpe = lambda d, **options: library.tokenizer_bpe(d / "vocab.json", d / "merges.txt", **options)
    wordpiece = lambda d, **options: library.tokenizer_wordpiece(d / "vocab.txt", **options)
    yield "RoBERTa", lambda d: roberta(d, False), bpe
    yield "RoBERTa, add_prefix_space", lambda d: roberta(d, True), lambda d: bpe(d, add_prefix_space=1)
    yield "GPT-2", gpt2, bpe
    yield "BERT", lambda d: bert(d, True, None), wordpiece
    yield "BERT, accents kept", lambda d: bert(d, True, False), lambda d: wordpiece(d, accents="keep")
    yield "BERT, case kept", lambda d: bert(d, False, None), lambda d: wordpiece(d, keep_case=1)
    yield ("BERT, case kept, accents stripped", lambda d: bert(d, False, True),
           lambda d: wordpiece(d, keep_case=1, accents="strip"))
    yield "BERT, Chinese joined", join_chinese, lambda d: wordpiece(d, join_chinese=1)


def check_files(library, make, open_files, texts):
    """The number of texts whose ids or offsets differ."""
    with tempfile.TemporaryDirectory() as name:
        reference = make(pathlib.Path(name))
        with open_files(pathlib.Path(name)) as tokenizer:
            unequal = 0
            for text in texts:
                wanted = reference.encode(text)
                unequal += tokenizer.tokenize(text) != (wanted.ids, byte_offsets(text, wanted.offsets))
            return unequal


def main():
    library, passed, failed = fl.load(), 0, 0
    makers = [(f"vocab.json + merges.txt, add_prefix_space {p}", lambda d, p=p: roberta(d, p)) for p in (False, True)]
    makers += [(f"vocab.txt, do_lower_case {l}, strip_accents {s}", lambda d, l=l, s=s: bert(d, l, s))
               for l in (True, False) for s in (None, True, False)]
    for label, make in makers:
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            reference, unequal, texts = make(directory), 0, corpus(3, 5000 if "--full" in sys.argv else 500)
            with library.transformer(directory) as transformer, transformer.tokenizer() as tokenizer:
                for text in texts:
                    unequal += tokenizer.tokenize(text)[0] != reference.encode(text).ids
        passed, failed = passed + (unequal == 0), failed + (unequal != 0)
        print(f"{'FAILED' if unequal else 'ok'} {label}: {unequal} of {len(texts)} texts differ")
    for label, make, open_files in files_cases(library):
        texts = corpus(4, 5000 if "--full" in sys.argv else 500)
        unequal = check_files(library, make, open_files, texts)
        passed, failed = passed + (unequal == 0), failed + (unequal != 0)
        print(f"{'FAILED' if unequal else 'ok'} files of {label}: {unequal} of {len(texts)} texts differ")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
