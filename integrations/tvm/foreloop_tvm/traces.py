"""TVM's traces and schedules to JSON and back."""
import json

from tvm.s_tir import Schedule, Trace


def _plain(value):
    """TVM's constants and containers for json."""
    if hasattr(value, "value"):
        return value.value
    return {str(key): item for key, item in value.items()} if hasattr(value, "items") else list(value)


def trace_json(trace):
    """[[instructions], [decisions]] as text."""
    return json.dumps(trace.as_json(), separators=(",", ":"), default=_plain)


def empty_schedule(module, seed=1):
    """A schedule of the module as it is. Errors are not rendered: they are how TVM says that it rejects a candidate."""
    return Schedule(module, seed=seed, debug_mask="none", error_render_level="none")


def replay(module, trace, postprocessors):
    """The schedule of a trace's text after post-processing; None when TVM rejects it."""
    schedule = empty_schedule(module)
    try:
        Trace.apply_json_to_schedule(json.loads(trace), schedule)
        schedule.enter_postproc()
        if all(postprocessor.apply(schedule) for postprocessor in postprocessors):
            return schedule
    except Exception:  # whatever a primitive raises: the candidate cannot be built
        pass
    return None


def sample(module, trace, seed):
    """A trace like this one with decisions that TVM draws anew, as text; None when TVM rejects what it drew."""
    schedule = empty_schedule(module, seed)
    try:
        Trace(trace.insts, {}).apply_to_schedule(schedule, remove_postproc=True)
    except Exception:
        return None
    return trace_json(schedule.trace)
