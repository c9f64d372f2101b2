#!/usr/bin/env python3
"""foreloop's tokenizer beside its peers, in one run on one core: MB/s with GPT-2's vocabulary, and whether ids are right.

    pip install tokenizers==0.23.3 tiktoken==0.14.0 iree-tokenizer==0.3.0 numpy
    FORELOOP_LIBRARY=build/src/libforeloop.so python bench/peers/tokenizer.py [--megabytes N] [--runs N] [--json]
        [--english FILE ...] [--chinese FILE ...] [--scaling] [--only TEXT]

Texts: the programs of train/data (TensorIR), this project's documents (English), its sources (C), and a page of Chinese
that stands here, sentence by sentence in random order; or files given. Every peer is given the whole text in one call
and gives its ids in the cheapest form that it has; foreloop and tokenizers find offsets on the way. Seconds are of
processor time, the best of --runs, all peers by turns. Ids are compared with those of Hugging Face tokenizers.

--scaling measures foreloop alone on texts from 1 KB to 100 MB, and on one word and on white space of 10 KB and 10 MB,
with the memory that it took at the peak. --only measures one of the texts, for runs of a few seconds: then the memory is
its own, where in one run of all the peak of an earlier text hides a lower one.
"""

import argparse
import base64
import ctypes
import json
import os
import pathlib
import random
import resource
import sys
import tarfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "integrations" / "python"), str(ROOT / "tests" / "differential")]

CHINESE = """编译器把程序改写成许多等价的形式，再从中挑选最快的一种。每一种改写都由一串步骤组成：切分循环，交换次序，合并、展开、并行和向量化。
步骤的顺序和参数不同，运行时间可以相差几十倍。在真实机器上逐个测量需要编译和运行，每个候选要花几百毫秒，而搜索往往要看几千个候选。
因此人们用模型来预测：先把程序的文本编码成一个向量，再让每个步骤移动这个向量，最后由决策树给出分数。分数高的候选才值得编译。
内存的访问方式常常比计算本身更重要。数据先从主存读入缓存，再进入寄存器；如果相邻的循环能够重复使用同一块数据，就能省下大量的时间。
矩阵乘法、卷积和归一化是最常见的算子。前者受限于计算能力，后者多半受限于带宽。好的调度会在两者之间找到平衡。
实验在两台服务器上进行，共收集了一百二十七个算子的测量结果。我们按照算子划分训练集和测试集，避免相同的程序同时出现在两边。
请注意：预测并不总是正确。遇到训练时没有见过的硬件或者动作，模型会给出提示，使用者可以选择继续测量。
"""


def gpt2():
    """(tokenizer.json as text, ranks by bytes), from the source archive of openai-whisper."""
    import test_tokenizer
    archive = test_tokenizer.package(test_tokenizer.WHISPER, "openai_whisper-*.tar.gz", "--no-binary", "openai-whisper")
    if not archive:
        sys.exit(f"pip could not fetch {test_tokenizer.WHISPER}, which has GPT-2's vocabulary")
    with tarfile.open(archive) as tar:
        member = next(m for m in tar.getmembers() if m.name.endswith("assets/gpt2.tiktoken"))
        lines = tar.extractfile(member).read().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    return json.dumps(test_tokenizer.gpt2_json(archive)), ranks


def repeated(text, size):
    """As many bytes of UTF-8 as asked for, about, of the text over and over."""
    return (text * (1 + size // len(text.encode())))[:size * len(text) // len(text.encode())]


def texts(arguments):
    size, generator = int(arguments.megabytes * 1e6), random.Random(1)
    read = lambda paths: "\n".join(pathlib.Path(path).read_text(errors="replace") for path in sorted(paths))
    sentences = [part + "。" for part in CHINESE.replace("\n", "").split("。") if part]
    chinese = "".join(generator.choice(sentences) + ("\n" if i % 4 == 3 else "") for i in range(4000))
    return {"TensorIR": repeated(read([*ROOT.glob("train/data/*/*/workload.txt"), *ROOT.glob("examples/data/*/*.txt")]), size),
            "English": repeated(read(arguments.english or ROOT.glob("**/*.md")), size),
            "C": repeated(read(ROOT.glob("src/**/*.c")), size),
            "Chinese": repeated(read(arguments.chinese) if arguments.chinese else chinese, size)}


def peers(document, ranks, scratch):
    """{name: (prepare the text, call, ids of the call's result as a list)}"""
    import foreloop_ctypes as fl
    import iree.tokenizer
    import tiktoken
    import tokenizers
    library = fl.load()
    scratch.write_text(document)
    own = library.tokenizer(scratch)
    own.tokenize("")
    dll, encoding = library.dll, own._encoding.pointer
    reference = tokenizers.Tokenizer.from_str(document)
    byte_pairs = tiktoken.Encoding("gpt2", pat_str=r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
                                   mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks)})
    other = iree.tokenizer.Tokenizer.from_str(document)
    call = lambda data: library.call("foreloop_tokenize", encoding, data, ctypes.c_size_t(len(data)), 0)
    ids = lambda _: list(dll.foreloop_encoding_ids(encoding)[:dll.foreloop_encoding_count(encoding)])
    return {"foreloop": (str.encode, call, ids),
            "iree-tokenizer": (str, other.encode_to_array, lambda array: list(map(int, array))),
            "tiktoken": (str, byte_pairs.encode_to_numpy, lambda array: list(map(int, array))),
            "tokenizers": (str, lambda text: reference.encode(text, add_special_tokens=False), lambda result: result.ids)}


def seconds(function):
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def compare(arguments, document, ranks, scratch):
    rows, entrants = [], peers(document, ranks, scratch)
    for kind, text in texts(arguments).items():
        if arguments.only not in kind:
            continue
        size, best, ids = len(text.encode()), {}, {}
        for run in range(arguments.runs):
            for name, (prepare, call, as_list) in entrants.items():
                if name == "tokenizers" and run > 1:
                    continue
                data = prepare(text)
                time_taken, result = seconds(lambda: call(data))
                best[name] = min(best.get(name, time_taken), time_taken)
                if run == 0:
                    ids[name] = as_list(result)
        for name in entrants:
            rows.append({"text": kind, "peer": name, "mb_per_s": size / best[name] / 1e6, "tokens": len(ids[name]),
                         "right": ids[name] == ids["tokenizers"]})
    return rows


def scale(arguments, document, scratch):
    import foreloop_ctypes as fl
    library = fl.load()
    scratch.write_text(document)
    generator, rows = random.Random(3), []
    ordinary, words = [10**power for power in range(3, 9)], [10**power for power in range(4, 8)]
    kinds = {"TensorIR": (texts(arguments)["TensorIR"].encode(), ordinary),
             "one word of letters": (bytes(generator.choices(b"abcdefghijklmnopqrstuvwxyz", k=10**6)), words),
             "one word of a": (b"a", words), "white space": (b" ", words)}
    cases = [(kind, (piece * (1 + size // len(piece)))[:size]) for kind, (piece, sizes) in kinds.items()
             if arguments.only in kind for size in sizes]
    for kind, text in cases:
        with library.tokenizer(scratch) as own:
            own.tokenize(text[:1000])
            encoding, before = own._encoding.pointer, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            call = lambda: library.call("foreloop_tokenize", encoding, text, ctypes.c_size_t(len(text)), 0)
            repeats, best = max(1, 300_000 // len(text)), None
            for _ in range(5 if len(text) < 10**8 else 3):
                taken = seconds(lambda: [call() for _ in range(repeats)])[0] / repeats
                best = taken if best is None else min(best, taken)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            rows.append({"text": kind, "bytes": len(text), "ns_per_byte": best / len(text) * 1e9,
                         "tokens": library.dll.foreloop_encoding_count(encoding),
                         "peak_bytes_per_byte": max(0, peak) * 1024 / len(text)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=1, help="size of each text")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--english", nargs="+", metavar="FILE", help="English text instead of the documents")
    parser.add_argument("--chinese", nargs="+", metavar="FILE", help="Chinese text instead of the page in this file")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT", help="texts whose name holds this")
    parser.add_argument("--json", action="store_true", help="an object a line")
    arguments = parser.parse_args()
    document, ranks = gpt2()
    scratch = ROOT / "build-packages" / "bench-tokenizer.json"
    rows = scale(arguments, document, scratch) if arguments.scaling else compare(arguments, document, ranks, scratch)
    scratch.unlink()
    if arguments.json:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False))
        return
    for row in rows:
        if arguments.scaling:
            print(f"{row['text']:20} {row['bytes']:>10} bytes {row['ns_per_byte']:8.2f} ns/byte {row['tokens']:>9} tokens "
                  f"{row['peak_bytes_per_byte']:7.1f} bytes of memory a byte")
        else:
            print(f"{row['text']:10} {row['peer']:16} {row['mb_per_s']:8.1f} MB/s   ids {'right' if row['right'] else 'wrong'}")


if __name__ == "__main__":
    main()
