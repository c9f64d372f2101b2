"""Texts that tokenizers trip over, by hand and at random; used by test_tokenizer.py and by make_tokenizer.py."""

import random

NASTY = [
    "", " ", "  ", "\n", "\r\n", "\t\t", "a", " a", "a ", "  a  ", "  'there", "\n =", "I'LL I'll we've 've ' 's''s",
    "x²½Ⅷ", "e\u0301", "\u2029 \ua3e4", "a <mask> b", "x<mask>", "<s>test", "<s> test</s>", "<mask><mask>  <mask>",
    "[CLS] Hello [SEP]", "[cls] hello[MASK]", "HéLLo ÀÉÎÕÜ Straße İstanbul ΣΑΣ", "a" * 101, "unwantedX unwanted",
    "中文字符 kanji かな 한국어 각", "각 \u1112\u1161\u11ab", "\u0344\u0301\u0323a\u0323\u0301\u0f73\u0f71",
    "a\u0301\u0323\u0301\u0327 \u1e69 s\u0323\u0307", "\ufb01\ufb03 ﷺ Å Ω ㎏ ½",
    "\u0000\u0001\ufffd\ufeff\u00ad\u200b\u200d", "👩\u200d👩\u200d👧 🇩🇪 \U0010ffff \U000e0001",
    "\u3000 \u00a0\u0085\u2028x\u2029", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "$€¥^`+<=>|~«»¡¿",
    "12345 ٣٤ ১২ Ⅻ ㉛ ½",
    "for i, j in T.grid(128, 128):\n    with T.block(\"B\"):\n        vi, vj = T.axis.remap(\"SS\", [i, j])\n\n\n",
    "   lots   of    spaces     ", "don't can't they're I'm he'd", "'s 't 're 've 'm 'll 'd 'S", "𝒳𝓎 ℌ ℵ ª º ʰ",
    "\u0915\u093f \u0928\u093f \u0bcd", "\u09c7\u09be \u0b47\u0b3e", "\U00011935\U00011930 \U00016121\U0001611f",
    "aab" * 50,
]
PIECES = [
    "'s", "'t", "'re", "'ll", "'LL", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "<s>", "</s>", "<pad>", "<mask>",
    "<unk>", "[CLS]", "[MASK]", "[mask]", "added", "Added", "ADDED", "two words", " lead", "trail ", "12", "3.5", "_",
    "##", "-", "---", "é", "e\u0301", "\u0301", "\u0323", "\u0f71", "각", "\u1100", "\u1161", "\u11a8", "中", "ﬁ", "İ",
    "ß", "Σ", "Ⅷ", "²", "T.grid", "matmul", "float32", "(", ")", "[", "]", ",", ".", ":", "=", "\"", "a", "b", "A", "Z",
    "the", "in",
]
RANGES = [
    (0x20, 0x7f), (0, 0x20), (0x80, 0x250), (0x250, 0x370), (0x300, 0x370), (0x370, 0x600), (0x600, 0x1100),
    (0x1100, 0x1200), (0x1e00, 0x2000), (0x2000, 0x2100), (0x2100, 0x2c00), (0x3000, 0x3100), (0x4e00, 0x9fff),
    (0xac00, 0xd7a4), (0xf900, 0x10000), (0x10000, 0x20000), (0x1f300, 0x1fb00), (0x20000, 0x110000),
]


def is_scalar(code_point):
    return not 0xd800 <= code_point <= 0xdfff


def random_text(generator, longest=25):
    """Up to `longest` - 1 parts, half of them pieces with a meaning, half characters from one range."""
    parts = []
    for _ in range(generator.randrange(1, longest)):
        if generator.random() < 0.5:
            parts.append(generator.choice(PIECES))
        else:
            low, high = generator.choice(RANGES)
            parts.append("".join(chr(generator.randrange(low, high)) for _ in range(generator.randrange(1, 5))))
    return "".join(c for c in "".join(parts) if is_scalar(ord(c)))


def random_texts(count, seed, longest=25):
    generator = random.Random(seed)
    return NASTY + [random_text(generator, longest) for _ in range(count)]


def all_code_points():
    """Every code point among its neighbours, and alone behind letters and spaces."""
    points = [chr(c) for c in range(0x110000) if is_scalar(c)]
    for begin in range(0, len(points), 512):
        yield "".join(points[begin:begin + 512])
        yield "".join("a" + c + " " + c for c in points[begin:begin + 512])
