"""tune_tir and tune_tasks of MetaSchedule, driven by foreloop. They take all that MetaSchedule's own take."""
from tvm.s_tir import meta_schedule as ms

from .cost_model import CostModel
from .predictor import Predictor
from .search_strategy import SearchStrategy

BUILD_SECONDS = 60  # of a candidate, at the most


def local_builder(max_workers=None):
    """MetaSchedule's builder, without parsing all of TVM's tensor intrinsics, which takes each new process of it twenty
    seconds (of the thirty that TVM allows, at each round) and which no scheduled program needs any more. max_workers:
    its processes at the most; None: as many as there are logical cores."""

    def build(module, target, _parameters):  # a local function goes to the builder's processes by value
        from tvm.driver import build as tvm_build
        from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

        return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)

    return ms.builder.LocalBuilder(max_workers=max_workers, timeout_sec=BUILD_SECONDS, f_build=build)


def tune_tir(mod, target, work_dir, max_trials_global, *, predictor=None, num_trials_per_iter=8, strategy=None,
             cost_model=None, **options):
    """MetaSchedule's tune_tir. predictor: a Predictor that may know something already. builder: local_builder(), of as
    many processes as MetaSchedule's would have."""
    predictor = predictor or Predictor()
    if "builder" not in options:
        cores = options.get("num_tuning_cores", "physical")
        options["builder"] = local_builder(cores if isinstance(cores, int) else
                                           ms.utils.cpu_count(logical=cores == "logical"))
    return ms.tune_tir(mod, target, work_dir, max_trials_global, num_trials_per_iter=num_trials_per_iter,
                       strategy=strategy or SearchStrategy(predictor), cost_model=cost_model or CostModel(predictor),
                       **options)


def tune_tasks(*, tasks, task_weights, work_dir, max_trials_global, predictor=None, num_trials_per_iter=8,
               cost_model=None, **options):
    """MetaSchedule's tune_tasks. The tasks' own search strategies are replaced. builder: local_builder(), of as many
    processes as the first task has threads, as MetaSchedule's would be."""
    predictor = predictor or Predictor()
    if "builder" not in options:
        options["builder"] = local_builder(tasks[0].num_threads if tasks else None)
    tasks = [ms.TuneContext(mod=task.mod, target=task.target, space_generator=task.space_generator,
                            search_strategy=SearchStrategy(predictor), task_name=task.task_name,
                            rand_state=task.rand_state, num_threads=task.num_threads).clone() for task in tasks]
    return ms.tune_tasks(tasks=tasks, task_weights=task_weights, work_dir=work_dir,
                         max_trials_global=max_trials_global, num_trials_per_iter=num_trials_per_iter,
                         cost_model=cost_model or CostModel(predictor), **options)
