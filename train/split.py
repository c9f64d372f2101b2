#!/usr/bin/env python3
"""Which operators a model may learn from, which it is chosen on, and which it is tested on: split.json.

    python train/split.py train/data/*               prints the parts of those operators
    python train/split.py --add train/data/*         gives those a part that have none yet, for good

An operator is known by its *signature*, read off its program: its family, and the loop extents of its main block (the
one with the most iterations). Machine, name and fused epilogue do not count: all variants stand on one side.

Two signatures are *near-duplicates* when the family is the same and every extent is within a factor of two. What is
linked by near-duplicates is a cluster (union-find), and a cluster has one part:

    family       the families of LEFT_OUT, whole: what the model does on a family that it has never seen
    training     clusters of more than CROWD signatures, else there would be nothing to learn dense and conv2d from
    otherwise    by the hash of the family and the rounded log2 of the extents of the cluster's first signature:
                 four tenths training, three tenths validation, three tenths test

A part once given never changes. A new signature takes the part of its near-duplicates in the table; if these have
several parts, it is left out ("dropped"), and so no near-duplicates ever straddle. Neither times nor models are looked
at, and the table holds the operators of operators.py before they were measured.
"""
import argparse
import hashlib
import json
import math
import pathlib
import re
import sys

import properties

TABLE = pathlib.Path(__file__).with_name("split.json")
PARTS = ("training", "validation", "test", "family", "dropped")
LEFT_OUT = ("depthwise",)
CROWD = 4
FAMILIES = {"matmul": "dense", "DepthwiseConv2d": "depthwise", "pool_max": "pool", "pool_sum": "pool",
            "adaptive_pool_sum": "global_pool", "T_softmax_maxelem": "softmax", "A_sum": "norm",
            "T_multiply_red": "norm", "A_red": "reduction", "rowsum": "reduction"}


def signature(program):
    """(family, loop extents of the main block) of a workload's TVMScript. Of equally long blocks the first one with a
    reduction is the main one; a family without a common name is called as the block is, without a trailing number."""
    blocks = [block for block in properties.parse(program) if block["loops"]]
    if not blocks:
        return "other", ()
    main = max(blocks, key=lambda block: (math.prod(size for _, _, size in block["loops"]),
                                          any(reduces for reduces, _ in block["axes"].values())))
    if any(reduces for reduces, _ in main["axes"].values()):
        family = FAMILIES.get(main["name"]) or re.sub(r"_\d+$", "", main["name"])
    else:
        family = "elementwise"
    return family, tuple(size for _, _, size in main["loops"])


def text_of(key):
    """A signature as split.json writes it: "dense 128x3072x768"."""
    return f"{key[0]} {'x'.join(map(str, key[1]))}"


def key_of(text):
    family, _, extents = text.rpartition(" ")
    return family, tuple(int(extent) for extent in extents.split("x") if extent)


def near(a, b):
    """Whether two signatures are near-duplicates."""
    return a[0] == b[0] and len(a[1]) == len(b[1]) and all(max(x, y) <= 2 * min(x, y) for x, y in zip(a[1], b[1]))


def clusters(keys):
    """Lists of signatures that near-duplicates link, each sorted, by their first."""
    keys = sorted(set(keys))
    parent = {key: key for key in keys}

    def root(key):
        while parent[key] != key:
            key = parent[key]
        return key

    for i, a in enumerate(keys):
        for b in keys[i + 1:]:
            if near(a, b):
                first, second = sorted((root(a), root(b)))
                parent[second] = first
    members = {}
    for key in keys:
        members.setdefault(root(key), []).append(key)
    return [members[first] for first in sorted(members)]


def hashed_part(key):
    digest = hashlib.sha256(f"{key[0]} {[round(math.log2(extent)) for extent in key[1]]}".encode()).digest()
    return (4 * ("training",) + 3 * ("validation",) + 3 * ("test",))[int.from_bytes(digest[:8]) % 10]


def read(path=TABLE):
    """{signature: part}"""
    return {key_of(text): part for part, texts in json.loads(pathlib.Path(path).read_text()).items()
            for text in texts}


def extend(table, keys):
    """The table with the parts of new signatures; those that it holds keep theirs."""
    table = dict(table)
    for cluster in clusters([*table, *keys]):
        fresh = [key for key in cluster if key not in table]
        known = {table[key] for key in cluster if key in table and table[key] != "dropped"}
        if not known:
            part = ("family" if cluster[0][0] in LEFT_OUT else
                    "training" if len(cluster) > CROWD else hashed_part(cluster[0]))
            table.update((key, part) for key in fresh)
            continue
        while fresh:  # those next to the known first, so that they hand the part on
            key = max(fresh, key=lambda new: any(near(new, old) for old in table))
            around = {table[old] for old in table if near(key, old) and table[old] != "dropped"}
            table[key] = around.pop() if len(around) == 1 else "dropped" if around else \
                extend({}, [key])[key]
            fresh.remove(key)
    return table


def write(table, path=TABLE):
    lines = []
    for part in PARTS:
        texts = [json.dumps(text_of(key)) for key in sorted(table) if table[key] == part]
        lines.append(f' "{part}": [\n  ' + ",\n  ".join(texts) + "\n ]" if texts else f' "{part}": []')
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def straddling(table):
    """Pairs of near-duplicates on two sides: none, or the table is broken."""
    kept = sorted(key for key in table if table[key] != "dropped")
    return [(a, b) for i, a in enumerate(kept) for b in kept[i + 1:] if near(a, b) and table[a] != table[b]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=pathlib.Path, help="directories that hold workload.txt, at any depth")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE, help="(default %(default)s)")
    parser.add_argument("--add", action="store_true", help="write the parts of new operators into the table")
    arguments = parser.parse_args()
    found = {path.parent: signature(path.read_text()) for directory in arguments.data
             for path in sorted(directory.rglob("workload.txt"))}
    if not found:
        print("split.py: no workload.txt under", *arguments.data, file=sys.stderr)
        return 2
    old = read(arguments.table) if arguments.table.exists() else {}
    table = extend(old, found.values())
    print(f"{'operator':<42} {'part':<11} signature")
    for folder, key in sorted(found.items(), key=lambda item: (item[1], item[0].name)):
        print(f"{folder.name:<42} {table[key]:<11} {text_of(key)}" + ("" if key in old else "   (new)"))
    for part in PARTS:
        mine = [key for key in found.values() if table[key] == part]
        print(f"{part}: {len(mine)} operators, {len(set(mine))} signatures")
    if arguments.add:
        write(table, arguments.table)
    return 1 if straddling(table) else 0


if __name__ == "__main__":
    sys.exit(main())
