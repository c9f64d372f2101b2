"""Where the binding, the library and the default bundle are: inside of an installed package, or in this checkout."""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[2]

if not (HERE / "foreloop_ctypes.py").exists():  # not installed: the checkout's one
    sys.path.insert(0, str(CHECKOUT / "integrations" / "python"))
    import foreloop_ctypes as fl
else:
    from . import foreloop_ctypes as fl

__all__ = ["fl", "bundle", "library"]


def library():
    """The library that FORELOOP_LIBRARY names, else the package's own, else the checkout's build."""
    own = HERE / "libforeloop.so"
    return fl.load(os.environ.get("FORELOOP_LIBRARY") or (own if own.exists() else None))


def bundle():
    """The default model bundle."""
    own = HERE / "default.foreloop"
    return own if own.exists() else CHECKOUT / "weights" / "default"
