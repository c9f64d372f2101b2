#!/usr/bin/env python3
"""Measure schedules of a list of operators on this machine with TVM MetaSchedule.

Every operator is tuned twice into one database: first with random draws of its search space, then with evolutionary
search that learns from them, so that a database holds bad, middling and good schedules. The result is

    OUT/NAME/workload.txt                   the program, as TVMScript
    OUT/NAME/database_tuning_record.json    one record a line: trace, times in seconds, target, arguments
    OUT/NAME/database_workload.json         the same program as TVM's own JSON
    OUT/NAME/meta.json                      name, processor, LLVM's name for it, threads, records, seconds, date

An operator that has its meta.json is done and skipped, so an interrupted run continues where it was. Keep the
machine quiet: the times are wall-clock times of multi-threaded code.

    python train/collect.py --out /tmp/measured                  everything in OPERATORS
    python train/collect.py --out /tmp/measured dense_384 pool_192
    python train/collect.py --list
"""
import argparse
import datetime
import json
import os
import shutil
import sys
import time
from pathlib import Path


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators to measure (default: all)")
    parser.add_argument("--out", type=Path, help="directory that gets one folder per operator")
    parser.add_argument("--list", action="store_true", help="print the operators and stop")
    parser.add_argument("--random", type=int, default=28, help="records from random draws (default %(default)s)")
    parser.add_argument("--evolved", type=int, default=28, help="records from evolutionary search (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a schedule (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the search (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=0, metavar="SECONDS",
                        help="start no further operator after so long (default: no limit)")
    return parser.parse_args()


ARGUMENTS = parse_arguments()
os.environ["TVM_NUM_THREADS"] = str(ARGUMENTS.threads)  # read by TVM's runtime, in the measuring processes too
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads of the cost model must not spin while schedules are timed

import tvm  # noqa: E402  (after the environment is set)
from tvm import te, tirx, topi  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.target import Target  # noqa: E402
from tvm.target.codegen import llvm_get_system_cpu  # noqa: E402


# The operators. Each function returns the tensors of a primitive function, inputs first and the output last.

def tensor(name, *shape):
    return te.placeholder(shape, name=name, dtype="float32")


def dense(m, n, k, epilogue="", transposed=False):
    """A[m,k] x B[k,n] (B[n,k] if transposed), then an optional bias and activation: "bias", "bias relu", "bias gelu"."""
    a, b = tensor("A", m, k), tensor("B", *((n, k) if transposed else (k, n)))
    axis = te.reduce_axis((0, k), "k")
    out = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * (b[j, axis] if transposed else b[axis, j]), axis=axis),
                     name="matmul")
    tensors = [a, b]
    if "bias" in epilogue:
        bias, product = tensor("bias", n), out
        out = te.compute((m, n), lambda i, j: product[i, j] + bias[j], name="bias_add")
        tensors.append(bias)
    biased = out
    if "relu" in epilogue:
        out = te.compute((m, n), lambda i, j: te.max(biased[i, j], tirx.const(0, "float32")), name="relu")
    if "gelu" in epilogue:
        half, root = tirx.const(0.5, "float32"), tirx.const(0.70710678, "float32")
        out = te.compute((m, n), lambda i, j: biased[i, j] * (te.erf(biased[i, j] * root) * half + half), name="gelu")
    return tensors + [out]


def batch_matmul(batch, m, n, k, transposed=True):
    """A[batch,m,k] x B[batch,n,k], or B[batch,k,n] if not transposed."""
    a, b = tensor("A", batch, m, k), tensor("B", batch, *((n, k) if transposed else (k, n)))
    axis = te.reduce_axis((0, k), "k")
    return [a, b, te.compute(
        (batch, m, n),
        lambda x, i, j: te.sum(a[x, i, axis] * (b[x, j, axis] if transposed else b[x, axis, j]), axis=axis),
        name="batch_matmul")]


def conv2d(channels, size, filters, kernel, stride=1, relu=False):
    data, weight = tensor("data", 1, channels, size, size), tensor("weight", filters, channels, kernel, kernel)
    out = topi.nn.conv2d_nchw(data, weight, stride, kernel // 2, 1)
    return [data, weight, topi.nn.relu(out) if relu else out]


def conv2d_nhwc(channels, size, filters, kernel, stride=1, relu=False):
    data, weight = tensor("data", 1, size, size, channels), tensor("weight", kernel, kernel, channels, filters)
    out = topi.nn.conv2d_nhwc(data, weight, stride, kernel // 2, 1)
    return [data, weight, topi.nn.relu(out) if relu else out]


def depthwise(channels, size, kernel, stride=1):
    data, weight = tensor("data", 1, channels, size, size), tensor("weight", channels, 1, kernel, kernel)
    return [data, weight, topi.nn.depthwise_conv2d_nchw(data, weight, stride, kernel // 2, 1)]


def softmax(rows, columns):
    a = tensor("A", rows, columns)
    return [a, topi.nn.softmax(a, axis=1)]


def layer_norm(rows, columns):
    a, gamma, beta = tensor("A", rows, columns), tensor("gamma", columns), tensor("beta", columns)
    return [a, gamma, beta, topi.nn.layer_norm(a, gamma, beta, [1], 1e-5)]


def max_pool(channels, size, kernel, stride):
    data, pad = tensor("data", 1, channels, size, size), kernel // 2
    return [data, topi.nn.pool2d(data, [kernel] * 2, [stride] * 2, [1, 1], [pad] * 4, "max")]


def global_average_pool(channels, size):
    data = tensor("data", 1, channels, size, size)
    return [data, topi.nn.adaptive_pool(data, (1, 1), "avg")]


OPERATORS = {
    "conv3x3_96": lambda: conv2d(96, 40, 96, 3, relu=True),
    "dense_384": lambda: dense(384, 768, 768, "bias"),
    "conv1x1_192": lambda: conv2d(192, 28, 384, 1),
    "nhwc_3x3_80": lambda: conv2d_nhwc(80, 36, 160, 3, relu=True),
    "bmm_20_96_qk": lambda: batch_matmul(20, 96, 96, 80),
    "dense_196_gelu": lambda: dense(196, 1536, 384, "bias gelu"),
    "depthwise_144": lambda: depthwise(144, 56, 3),
    "softmax_2048_384": lambda: softmax(2048, 384),
    "conv3x3s2_48": lambda: conv2d(48, 80, 128, 3, stride=2),
    "layer_norm_256_512": lambda: layer_norm(256, 512),
    "pool_192": lambda: max_pool(192, 70, 3, 2),
    "matvec_8_1536": lambda: dense(8, 1536, 1024, transposed=True),
    "bmm_6_196_av": lambda: batch_matmul(6, 196, 64, 196, transposed=False),
    "gap_1280": lambda: global_average_pool(1280, 10),
}


def build(module, target, _parameters):
    """Builds a candidate as TVM's own builder does, but without parsing its tensor intrinsics, which takes 20 s in
    every new process and which no plain f32 schedule uses."""
    from tvm.driver import build as tvm_build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


def raise_priority():
    """Runs in the measuring process: the highest priority that we may take, so that other work disturbs it less."""
    try:
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -20)
        os.setsid()  # a scheduling group of its own where Linux groups by session, or our rank would count within ours only
        Path("/proc/self/autogroup").write_text("-20")
    except OSError:  # not root, or no such groups: measure as we are
        pass


def processor():
    """The processor's name as Linux gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def measure(name, folder, target, arguments):
    """Tunes operator NAME into FOLDER: random draws, then evolution that starts with what was learnt from them."""
    module = tvm.IRModule({"main": te.create_prim_func(OPERATORS[name]())})
    folder.mkdir(parents=True)
    (folder / "workload.txt").write_text(module.script().rstrip("\n") + "\n")
    database = ms.database.JSONDatabase(work_dir=str(folder))
    model = ms.cost_model.XGBModel(num_warmup_samples=arguments.random // 2, num_tuning_cores=arguments.threads)
    for strategy, trials in (("replay-trace", arguments.random), ("evolutionary", arguments.evolved)):
        if trials:
            ms.tune_tir(
                mod=module, target=target, work_dir=str(folder), database=database, cost_model=model,
                strategy=strategy, max_trials_global=trials, num_trials_per_iter=trials,
                num_tuning_cores=arguments.threads, seed=arguments.seed,
                builder=ms.builder.LocalBuilder(max_workers=arguments.threads, timeout_sec=60, f_build=build),
                runner=ms.runner.LocalRunner(
                    timeout_sec=60, initializer=raise_priority,
                    evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=100)))
    shutil.rmtree(folder / "logs", ignore_errors=True)


def main():
    arguments = ARGUMENTS
    if arguments.list:
        print("\n".join(OPERATORS))
        return 0
    unknown = [name for name in arguments.names if name not in OPERATORS]
    if unknown or not arguments.out:
        print("collect.py: " + (f"unknown operator {unknown[0]}; --list names them" if unknown else "--out is missing"),
              file=sys.stderr)
        return 2
    mcpu = llvm_get_system_cpu()
    target = Target({"kind": "llvm", "mcpu": mcpu, "num-cores": arguments.threads})
    names, begin = arguments.names or list(OPERATORS), time.time()
    for position, name in enumerate(names):
        folder, partial = arguments.out / name, arguments.out / (name + ".partial")
        if (folder / "meta.json").exists():
            continue
        if arguments.time_limit and time.time() - begin > arguments.time_limit:
            print("time limit: stopped before", name)
            break
        shutil.rmtree(partial, ignore_errors=True)
        print(f"[{position + 1}/{len(names)}] {name} ...", flush=True)
        start = time.time()
        measure(name, partial, target, arguments)
        seconds = time.time() - start
        records = sum(1 for _ in open(partial / "database_tuning_record.json"))
        meta = {"name": name, "cpu": processor(), "mcpu": mcpu, "threads": arguments.threads, "records": records,
                "seconds": round(seconds), "date": datetime.date.today().isoformat()}
        (partial / "meta.json").write_text(json.dumps(meta) + "\n")
        partial.rename(folder)
        print(f"[{position + 1}/{len(names)}] {name}: {records} records in {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
