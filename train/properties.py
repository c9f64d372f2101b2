"""Numbers that describe a scheduled program, read off its TVMScript: what an encoder's state should tell.

They are targets of an auxiliary loss of the encoder, never inputs: at run time no program is parsed.

`of_program` walks the indented text. Loops (T.grid, range, T.serial, T.parallel, T.vectorized, T.unroll) nest around
blocks (T.sblock); the *main* block is the one with the largest trip count.
"""
import dataclasses
import re

import numpy as np

NAMES = ("parallel", "vector", "parallel_share", "vector_share", "trips", "all_trips", "blocks", "depth", "innermost",
         "innermost_two", "inside_parallel", "reduce_inside", "spatial_inside", "inner_tile", "middle_tile",
         "main_parallel", "main_vector", "unroll", "pending_parallel", "pending_vector", "buffers", "buffer_size",
         "write_contiguous", "read_contiguous", "reduce_innermost", "initialised")

_GRID = re.compile(r"for (.+?) in T\.grid\(([^()]*)\)")
_LOOP = re.compile(r"for (\w+) in (?:T\.)?(range|serial|parallel|vectorized|unroll|thread_binding)\((\d+)")
_BLOCK = re.compile(r'with T\.s?block\("([^"]*)"\)')
_REMAP = re.compile(r'(.+?) = T\.axis\.remap\("([SR]+)", \[(.*)\]\)')
_AXIS = re.compile(r"(\w+) = T\.axis\.(spatial|reduce)\((?:\d+|\([^)]*\)), (.*)\)")
_ALLOCATE = re.compile(r"= T\.(?:sblock_)?alloc_buffer\(\(([\d, ]+)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def _log2(x):
    return float(np.log2(max(1.0, x)))


def parse(text):
    """Blocks as dicts: name, loops [(variable, kind, extent)], axes {variable: (is reduction, loop variables)}, text of
    reads and writes, and whether it holds T.init."""
    loops, blocks, open_blocks = [], [], []
    for line in text.split("\n"):
        stripped = line.lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        indent = len(line) - len(stripped)
        while loops and loops[-1][0] >= indent:
            loops.pop()
        while open_blocks and open_blocks[-1][0] >= indent:
            open_blocks.pop()
        grid, loop = _GRID.match(stripped), _LOOP.match(stripped)
        if grid:
            for variable, extent in zip(grid[1].split(", "), grid[2].split(", ")):
                loops.append((indent, variable, "serial", int(extent) if extent.isdigit() else 1))
        elif loop:
            loops.append((indent, loop[1], loop[2], int(loop[3])))
        elif _BLOCK.match(stripped):
            blocks.append({"name": _BLOCK.match(stripped)[1], "loops": [entry[1:] for entry in loops], "axes": {},
                           "reads": "", "writes": "", "init": False})
            open_blocks.append((indent, blocks[-1]))
        elif open_blocks:
            block, remap, axis = open_blocks[-1][1], _REMAP.match(stripped), _AXIS.match(stripped)
            if remap:
                for variable, kind, loop_variable in zip(remap[1].split(", "), remap[2], remap[3].split(", ")):
                    block["axes"][variable] = (kind == "R", {loop_variable})
            elif axis:
                block["axes"][axis[1]] = (axis[2] == "reduce", set(_WORD.findall(axis[3])))
            elif stripped.startswith("T.reads("):
                block["reads"] = stripped[8:-1]
            elif stripped.startswith("T.writes("):
                block["writes"] = stripped[9:-1]
            elif stripped.startswith("with T.init("):
                block["init"] = True
    return blocks


def _last_index_loops(region, axes):
    """For each buffer of a T.reads or T.writes text: the loop variables that move its last index."""
    for index in re.findall(r"\[([^\[\]]*)\]", region):
        used = set(_WORD.findall(index.split(",")[-1]))
        yield set().union(*(axes[name][1] for name in used if name in axes)) if used else set()


def of_program(text):
    """float32[len(NAMES)]: extents and counts as log2, shares in 0..1."""
    blocks = [block for block in parse(text) if block["axes"] or block["loops"]]
    trips = [float(np.prod([extent for _, _, extent in block["loops"]] or [1.0])) for block in blocks]
    if not blocks:
        return np.zeros(len(NAMES), np.float32)
    main, total = blocks[int(np.argmax(trips))], sum(trips)

    def extent(block, kind):
        return float(np.prod([size for _, what, size in block["loops"] if what == kind] or [1.0]))

    def share(kind):
        return sum(n for n, block in zip(trips, blocks) if extent(block, kind) > 1) / total

    reduce_loops = set().union(*(loops for is_reduce, loops in main["axes"].values() if is_reduce), set())
    real = [loop for loop in main["loops"] if loop[2] > 1]
    inner = [size for _, _, size in real][::-1] + [1, 1]
    last_parallel = max([i for i, loop in enumerate(main["loops"]) if loop[1] == "parallel"], default=-1)
    inside = main["loops"][last_parallel + 1:]
    # The tile of the innermost spatial loops, up to the first reduction loop from inside, and of those outside of it.
    tiles, level, seen = [1.0, 1.0, 1.0], 0, False
    for variable, _, size in reversed(main["loops"]):
        if variable in reduce_loops:
            seen = True
        else:
            level, seen = min(2, level + seen), False
            tiles[level] *= size
    innermost = real[-1][0] if real else ""
    unroll = re.findall(r'(?:pragma_auto_unroll_max_step|meta_schedule\.unroll_explicit)": (\d+)', text)
    pending = [re.findall(rf'meta_schedule\.{key}": (\d+)', text) for key in ("parallel", "vectorize")]
    buffers = [np.prod([float(n) for n in shape.split(",") if n.strip()]) for shape in _ALLOCATE.findall(text)]
    reads = list(_last_index_loops(main["reads"], main["axes"]))
    return np.array([
        max(_log2(extent(block, "parallel")) for block in blocks),
        max(_log2(extent(block, "vectorized")) for block in blocks),
        share("parallel"), share("vectorized"), _log2(max(trips)), _log2(total), len(blocks), len(main["loops"]),
        _log2(inner[0]), _log2(inner[0] * inner[1]),
        _log2(np.prod([size for _, _, size in inside] or [1.0])),
        _log2(np.prod([size for name, _, size in inside if name in reduce_loops] or [1.0])),
        _log2(np.prod([size for name, _, size in inside if name not in reduce_loops] or [1.0])),
        _log2(tiles[0]), _log2(tiles[1]),
        _log2(extent(main, "parallel")), _log2(extent(main, "vectorized")),
        max([_log2(float(n)) for n in unroll], default=0.0),
        max([_log2(float(n)) for n in pending[0]], default=0.0),
        max([_log2(float(n)) for n in pending[1]], default=0.0),
        len(buffers), _log2(sum(buffers)),
        float(any(innermost in loops for loops in _last_index_loops(main["writes"], main["axes"]))),
        sum(innermost in loops for loops in reads) / max(1, len(reads)),
        float(innermost in reduce_loops), float(not main["init"] and bool(reduce_loops))], np.float32)


@dataclasses.dataclass
class Scale:
    """How properties become standardised targets, and the variance of those within workloads."""
    mean: np.ndarray
    deviation: np.ndarray
    within: np.ndarray

    def __call__(self, values):
        return np.clip((values - self.mean) / self.deviation, -3, 3).astype(np.float32)


def fit_scale(values, first):
    """The Scale of properties [programs][names] of all workloads; workload i begins at row first[i]."""
    scale = Scale(values.mean(0), values.std(0) + 1e-3, None)
    parts = np.split(scale(values), first[1:])
    scale.within = np.mean([part.var(0) for part in parts], 0)
    return scale
