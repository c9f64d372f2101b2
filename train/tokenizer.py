"""Trains the byte-level BPE tokenizer on canonical TensorIR text.

Ids 0..4 are RoBERTa's special tokens; the post-processor adds <s> and </s>. Numbers split into digits only as far as
the merges learned say. The vocabulary is as small as the compression allows: the merges of TensorIR are few.
"""
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from windows import BEGIN, END, SPECIAL


def train(texts, vocabulary_size=2048, min_frequency=8):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocabulary_size, min_frequency=min_frequency, special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", END), ("<s>", BEGIN), trim_offsets=True,
                                                            add_prefix_space=False)
    return tokenizer
