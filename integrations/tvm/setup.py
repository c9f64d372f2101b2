"""Puts the library, its ctypes binding and the default bundle into the package.

The library is the one that FORELOOP_LIBRARY names, or is built by meson from this checkout (a C compiler, meson, ninja,
cJSON, utf8proc and zlib: `tools/prepare.sh` installs them on Debian).
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
ONLY_LIBRARY = [f"-D{part}=false" for part in ("tools", "tests", "bench", "examples", "bundle")]


def build_library(folder):
    """Builds libforeloop.so in a folder; returns its path."""
    for command in (["meson", "setup", str(folder), str(CHECKOUT), "--buildtype=release", *ONLY_LIBRARY],
                    ["ninja", "-C", str(folder)]):
        try:
            subprocess.run(command, check=True, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"foreloop-tvm: {' '.join(command)} failed ({error}). Install what README.md lists, or "
                             "set FORELOOP_LIBRARY to a libforeloop.so") from None
    return folder / "src" / "libforeloop.so"


class BuildWithLibrary(build_py):
    def run(self):
        given = os.environ.get("FORELOOP_LIBRARY")
        if not (CHECKOUT / "weights" / "default").exists():
            raise SystemExit(f"foreloop-tvm: {CHECKOUT} is no checkout of foreloop, which holds the library's source and the "
                             "bundle; pip install its integrations/tvm folder, or build a wheel there")
        if given and not Path(given).is_file():
            raise SystemExit(f"foreloop-tvm: FORELOOP_LIBRARY={given} is no file in {Path.cwd()}; give the whole path")
        super().run()
        to = Path(self.build_lib) / "foreloop_tvm"
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / "integrations" / "python" / "foreloop_ctypes.py", to / "foreloop_ctypes.py")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(given or build_library(Path(folder)), to / "libforeloop.so")
        sys.path.insert(0, str(to))
        import foreloop_ctypes

        foreloop_ctypes.load(to / "libforeloop.so").pack(CHECKOUT / "weights" / "default", to / "default.foreloop")


class WheelOfPlatform(bdist_wheel):
    """For any Python, but only this platform."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfPlatform}, distclass=WithLibrary)
