"""A turn on a machine that others measure on too: the options --lock and --realtime of the benchmarks, and what they do."""
import contextlib
import fcntl
import os


def add_options(parser):
    parser.add_argument("--lock")
    parser.add_argument("--realtime", action="store_true")


@contextlib.contextmanager
def turn(given, pid):
    """Holds the lock and gives all threads of a process, and what they start, real-time priority, as far as these are
    asked for."""
    with open(given.lock or os.devnull, "a") as lock:
        if given.lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        _schedule(given, pid, os.SCHED_FIFO, 50)
        try:
            yield
        finally:
            _schedule(given, pid, os.SCHED_OTHER, 0)


def _schedule(given, pid, policy, priority):
    for task in os.listdir(f"/proc/{pid}/task") if given.realtime else []:
        try:
            os.sched_setscheduler(int(task), policy, os.sched_param(priority))
        except ProcessLookupError:  # it has ended
            pass
        except PermissionError:
            raise SystemExit("--realtime: this user may not set real-time priorities") from None
