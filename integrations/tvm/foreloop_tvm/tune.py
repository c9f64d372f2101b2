"""tune_tir and tune_tasks of MetaSchedule, driven by foreloop. They take all that MetaSchedule's own take."""
from tvm.s_tir import meta_schedule as ms

from .cost_model import CostModel
from .predictor import Predictor
from .search_strategy import SearchStrategy


def tune_tir(mod, target, work_dir, max_trials_global, *, predictor=None, num_trials_per_iter=8, strategy=None,
             cost_model=None, **options):
    """MetaSchedule's tune_tir. predictor: a Predictor that may know something already."""
    predictor = predictor or Predictor()
    return ms.tune_tir(mod, target, work_dir, max_trials_global, num_trials_per_iter=num_trials_per_iter,
                       strategy=strategy or SearchStrategy(predictor), cost_model=cost_model or CostModel(predictor),
                       **options)


def tune_tasks(*, tasks, task_weights, work_dir, max_trials_global, predictor=None, num_trials_per_iter=8,
               cost_model=None, **options):
    """MetaSchedule's tune_tasks. The tasks' own search strategies are replaced."""
    predictor = predictor or Predictor()
    tasks = [ms.TuneContext(mod=task.mod, target=task.target, space_generator=task.space_generator,
                            search_strategy=SearchStrategy(predictor), task_name=task.task_name,
                            rand_state=task.rand_state, num_threads=task.num_threads).clone() for task in tasks]
    return ms.tune_tasks(tasks=tasks, task_weights=task_weights, work_dir=work_dir,
                         max_trials_global=max_trials_global, num_trials_per_iter=num_trials_per_iter,
                         cost_model=cost_model or CostModel(predictor), **options)
