"""How schedules are built and timed on this machine: with TVM's own builder and runner, in turn with everybody else who
measures here, and with the cores for themselves. `prepare` comes before TVM is imported.
"""
import fcntl
import hashlib
import os
import resource
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURING = os.path.join(tempfile.gettempdir(), "foreloop-measuring.lock")


def prepare(threads):
    """Sets what TVM reads from the environment, in the measuring processes too, which have to find this module."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads of the cost model must not spin while schedules are timed
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parent),
                                                             os.environ.get("PYTHONPATH")]))


def build(module, target, _parameters):
    """Builds a candidate as TVM's own builder does, but without parsing its tensor intrinsics, which takes 20 s in
    every new process and which no plain f32 schedule uses."""
    from tvm.driver import build as tvm_build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


def schedule_threads(policy, priority):
    for thread in os.listdir("/proc/self/task"):
        os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def run_alone(module, device, evaluator_config, repeated_arguments):
    """TVM's own evaluator, in turn with the measuring processes of other collectors on this machine, and scheduled in
    real time, so that meanwhile nothing else runs on the cores that it uses and other work costs accuracy only by what
    it leaves in the caches. Linux suspends real-time work for 50 ms of every second by default, which would fall into one
    of the repeats: turned off. A schedule that computes for half a minute without a pause is killed instead."""
    from tvm.s_tir.meta_schedule.runner.local_runner import default_run_evaluator

    with open(MEASURING, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            Path("/proc/sys/kernel/sched_rt_runtime_us").write_text("-1")
            resource.setrlimit(resource.RLIMIT_RTTIME, (30_000_000, 30_000_000))  # microseconds
            schedule_threads(os.SCHED_FIFO, 50)  # threads that TVM's pool starts now inherit it
        except OSError:  # not root: measure as we are
            pass
        try:
            return default_run_evaluator(module, device, evaluator_config, repeated_arguments)
        finally:
            schedule_threads(os.SCHED_OTHER, 0)


def builder_and_runner(threads, repeats=5):
    from tvm.s_tir import meta_schedule as ms

    return (ms.builder.LocalBuilder(max_workers=threads, timeout_sec=60, f_build=build),
            ms.runner.LocalRunner(timeout_sec=60, f_run_evaluator=run_alone,
                                  evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=repeats, min_repeat_ms=40)))


def this_target(threads):
    """TVM's target for this machine."""
    from tvm.target import Target
    from tvm.target.codegen import llvm_get_system_cpu

    return Target({"kind": "llvm", "mcpu": llvm_get_system_cpu(), "num-cores": threads})


def processor():
    """The processor's name as Linux gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def in_mixed_order(names):
    """A fixed order without regard to family, so that an interrupted collection has something of each."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
