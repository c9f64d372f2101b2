"""Writes src/tokenizer/unicode_tables.c from what Hugging Face tokenizers does with every code point.

    pip install tokenizers==0.23.3
    python tests/golden/make_unicode_tables.py

tokenizers mixes several Unicode versions: its regular expressions, Rust's standard library, its punctuation rules and
its normal forms each bring their own. So no table of one version gives its ids, and each class here is probed through
the component that uses it. Takes about a minute.
"""

import pathlib
import sys

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TOKENIZERS_VERSION = "0.23.3"
ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "src" / "tokenizer" / "unicode_tables.c"

# In the order of the bits in unicode.h.
CLASSES = ["LETTER", "NUMBER", "SPACE", "WORD", "NUMERIC", "PUNCTUATION", "BERT_REMOVED", "CJK", "MARK",
           "NONSPACING_MARK", "NORMALIZES"]
PAGES = 512  # FORELOOP_CLASS_PAGES
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def removed_by(pre_tokenizer):
    """The code points that a pre-tokenizer drops from the text of all code points."""
    text = "".join(map(chr, CODE_POINTS))
    kept = set()
    for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text):
        kept.update(CODE_POINTS[begin:end])
    return set(CODE_POINTS) - kept


def regex_class(pattern):
    return removed_by(pre_tokenizers.Split(Regex(pattern), "removed"))


def word_characters():
    """Those that the pattern of Whitespace, a run of word characters or of others, joins to a letter."""
    text = "".join("a" + chr(c) + " " for c in CODE_POINTS)
    words = set()
    for word, (begin, _) in pre_tokenizers.Whitespace().pre_tokenize_str(text):
        if len(word) == 2:
            assert begin % 3 == 0
            words.add(CODE_POINTS[begin // 3])
    return words


def changed_by(normalizer, test):
    return {c for c in CODE_POINTS if test(normalizer.normalize_str(chr(c)), chr(c))}


def bert(**options):
    defaults = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**defaults, **options})


def non_starters():
    """Combining characters let an acute (class 230) and a dot below (220) around them change places."""
    nfd = normalizers.NFD()
    return {c for c in CODE_POINTS if nfd.normalize_str("\u0301" + chr(c) + "\u0323")[0] != "\u0301"}


def probe():
    differs = lambda after, before: after != before
    gone = lambda after, before: after == ""
    space = regex_class(r"\s")
    # One table serves the three notions of white space as long as they agree.
    assert space == removed_by(pre_tokenizers.WhitespaceSplit())
    assert space == changed_by(normalizers.Strip(), gone)
    removed = changed_by(bert(clean_text=True), gone)
    assert changed_by(bert(clean_text=True), lambda after, before: after == " ") == space - removed
    normalizes = non_starters()
    for form in (normalizers.NFKD(), normalizers.NFC()):
        normalizes |= changed_by(form, differs)
    return {
        "LETTER": regex_class(r"\p{L}"),
        "NUMBER": regex_class(r"\p{N}"),
        "SPACE": space,
        "WORD": word_characters(),
        "NUMERIC": {c for c in CODE_POINTS if len(pre_tokenizers.Digits(True).pre_tokenize_str("a" + chr(c))) == 2},
        "PUNCTUATION": removed_by(pre_tokenizers.Punctuation("removed")),
        "BERT_REMOVED": removed,
        "CJK": changed_by(bert(handle_chinese_chars=True), differs),
        "MARK": changed_by(normalizers.StripAccents(), gone),
        "NONSPACING_MARK": changed_by(bert(strip_accents=True), gone),
        "NORMALIZES": normalizes,
    }


def class_ranges(classes):
    """[(first code point, flags)]: each row holds up to the next row's first."""
    flags = [0] * 0x110000
    for bit, name in enumerate(CLASSES):
        for c in classes[name]:
            flags[c] |= 1 << bit
    rows = []
    for c, value in enumerate(flags):
        if not rows or rows[-1][1] != value:
            rows.append((c, value))
    return rows


def lowercase_ranges():
    """[(first, last, step, difference)]: every step-th code point from first to last maps to itself + difference."""
    rows = []
    lowercase = normalizers.Lowercase()
    for c in CODE_POINTS:
        lower = lowercase.normalize_str(chr(c))
        if lower == chr(c):
            continue
        if len(lower) != 1:
            assert (c, lower) == (0x130, "i\u0307"), "unicode.c knows one letter that becomes two"
            continue
        difference = ord(lower) - c
        if rows and rows[-1][3] == difference:
            first, last, step, _ = rows[-1]
            if c - last == step or (first == last and c - last <= 2):
                rows[-1] = (first, c, c - last, difference)
                continue
        rows.append((c, c, 1, difference))
    return rows


def table(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + 1 + len(item) + 1 > 120:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    lines.append(line.rstrip(","))
    return "\n".join(lines)


def main():
    if tokenizers.__version__ != TOKENIZERS_VERSION:
        sys.exit(f"tokenizers {TOKENIZERS_VERSION} is needed, this is {tokenizers.__version__}")
    classes = class_ranges(probe())
    ascii_classes = [max(row for row in classes if row[0] <= c)[1] for c in range(128)]
    pages = [max(i for i, row in enumerate(classes) if row[0] <= 256 * page) for page in range(PAGES + 1)]
    lower = lowercase_ranges()
    OUTPUT.write_text(f"""\
/* Made by tests/golden/make_unicode_tables.py from Hugging Face tokenizers {TOKENIZERS_VERSION}; do not edit. */
/* clang-format off */
#include "tokenizer/unicode_tables.h"

const uint16_t foreloop_ascii_classes[128] = {{
{table(f"{flags:#x}" for flags in ascii_classes)}}};

const foreloop_class_range foreloop_class_ranges[] = {{
{table(f"{{{first:#x}, {flags:#x}}}" for first, flags in classes)}}};
const size_t foreloop_class_range_count = {len(classes)};
const uint16_t foreloop_class_pages[FORELOOP_CLASS_PAGES + 1] = {{
{table(str(index) for index in pages)}}};

const foreloop_case_range foreloop_case_ranges[] = {{
{table(f"{{{first:#x}, {last:#x}, {step}, {difference}}}" for first, last, step, difference in lower)}}};
const size_t foreloop_case_range_count = {len(lower)};
""")
    print(f"{OUTPUT}: {len(classes)} class ranges, {len(lower)} case ranges")


if __name__ == "__main__":
    main()
