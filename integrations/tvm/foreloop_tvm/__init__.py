"""foreloop inside of TVM MetaSchedule: a cost model, a search strategy, and tune_tir and tune_tasks with both.

    import foreloop_tvm
    database = foreloop_tvm.tune_tir(mod, target, work_dir="log", max_trials_global=64)
    schedule = tvm.s_tir.meta_schedule.tir_integration.compile_tir(database, mod, target)
"""
from .cost_model import CostModel
from .predictor import Predictor
from .search_strategy import SearchStrategy
from .tune import local_builder, tune_tasks, tune_tir

__all__ = ["CostModel", "Predictor", "SearchStrategy", "local_builder", "tune_tasks", "tune_tir"]
