"""Writes tests/golden/schedule/gpu_records.json: traces that TVM 0.25 makes for a CUDA target, without a GPU.

The design spaces of a few operators of our own are generated for an RTX 4090 (with and without tensor cores) and
serialised as a tuning database would hold them, with a made-up run time. Sampled decisions are TVM's, by the seed.

    python tests/golden/make_gpu_records.py        # needs apache-tvm 0.25
"""
import pathlib
import shutil
import tempfile

import tvm
from tvm import te
from tvm.s_tir import meta_schedule as ms

OUT = pathlib.Path(__file__).parent / "schedule" / "gpu_records.json"
TARGET = tvm.target.Target("nvidia/geforce-rtx-4090")


def dense(rows, columns, inner, dtype):
    """A dense layer with a bias."""
    x = te.placeholder((rows, inner), name="X", dtype=dtype)
    w = te.placeholder((inner, columns), name="W", dtype=dtype)
    b = te.placeholder((columns,), name="B", dtype=dtype)
    k = te.reduce_axis((0, inner), name="k")
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="Y")
    return te.create_prim_func([x, w, b, te.compute((rows, columns), lambda i, j: y[i, j] + b[j], name="Z")])


def convolution(size, channels, filters):
    """A 3 x 3 convolution with padding, channels last."""
    x = te.placeholder((1, size, size, channels), name="X")
    w = te.placeholder((3, 3, channels, filters), name="W")
    p = te.compute((1, size + 2, size + 2, channels),
                   lambda n, h, v, c: te.if_then_else(te.all(h > 0, h <= size, v > 0, v <= size),
                                                      x[n, h - 1, v - 1, c], 0.0), name="P")
    r, s, c = (te.reduce_axis((0, n), name=m) for n, m in ((3, "r"), (3, "s"), (channels, "c")))
    return te.create_prim_func([x, w, te.compute(
        (1, size, size, filters), lambda n, h, v, f: te.sum(p[n, h + r, v + s, c] * w[r, s, c, f], axis=[r, s, c]),
        name="Y")])


def row_sums(rows, columns):
    x = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((0, columns), name="k")
    return te.create_prim_func([x, te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")])


CASES = ((dense(512, 1024, 768, "float32"), "cuda"), (convolution(28, 64, 96), "cuda"), (row_sums(64, 4096), "cuda"),
         (dense(256, 512, 256, "float16"), "cuda-tensorcore"))

with tempfile.TemporaryDirectory() as folder:
    database = ms.database.JSONDatabase(work_dir=folder)
    for index, (function, rules) in enumerate(CASES):
        module = tvm.IRModule({"main": function})
        workload = database.commit_workload(module)
        context = ms.TuneContext(mod=module, target=TARGET, search_strategy="replay-trace", num_threads=1, rand_state=7,
                                 space_generator=ms.space_generator.PostOrderApply(
                                     sch_rules=ms.schedule_rule.schedule_rule.create(rules)))
        for schedule in context.generate_design_space():
            database.commit_tuning_record(ms.database.TuningRecord(
                schedule.trace, workload, [1e-3 * (index + 1)], TARGET, ms.arg_info.ArgInfo.from_prim_func(function)))
    shutil.copy(pathlib.Path(folder) / "database_tuning_record.json", OUT)
