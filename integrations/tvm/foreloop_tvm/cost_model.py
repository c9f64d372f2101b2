"""A cost model for MetaSchedule's own search: candidates are scored by their traces alone, and what is measured refits
the ranker in C."""
import math

import numpy as np
from tvm.s_tir.meta_schedule.cost_model import PyCostModel
from tvm.ir.utils import derived_object

from .predictor import Predictor, one_at_a_time
from .traces import trace_json


def median_seconds(run_secs):
    """The median of TVM's run times, infinite when there are none or, as in records of a failure, 1e10."""
    seconds = float(np.median([float(second) for second in run_secs])) if run_secs else math.inf
    return seconds if 0 < seconds < 1e9 else math.inf


def measured_seconds(result):
    """The median time of a RunnerResult, infinite for a candidate that failed."""
    return math.inf if result.error_msg is not None else median_seconds(result.run_secs)


def records(candidates):
    """MeasureCandidates as the text of a tuning log."""
    return "\n".join(f"[0,[{trace_json(candidate.sch.trace)}]]" for candidate in candidates)


@derived_object
class CostModel(PyCostModel):
    """predictor: a Predictor to share with a SearchStrategy; None makes one."""

    def __init__(self, predictor=None):
        super().__init__()
        self.predictor = predictor or Predictor()

    @one_at_a_time
    def predict(self, context, candidates):
        program = self.predictor.program(context.mod)
        return program.score_records(records(candidates)).astype("float64")

    @one_at_a_time
    def update(self, context, candidates, results):
        program = self.predictor.program(context.mod)
        program.learn(program.actions.intern_records(records(candidates)), [measured_seconds(result) for result in results])

    def save(self, path):
        self.predictor.save(path)

    def load(self, path):
        self.predictor.load(path)
