#!/usr/bin/env bash
# The package's tests with the library of the build folder, in a virtual environment of its own with TVM in it.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tools/prepare.sh
need python3 python3-venv

configure build
ninja -C build >build.log || { cat build.log; exit 1; }

environment=build/venv-tvm
requirements=train/requirements-tvm.txt
if ! cmp -s "$requirements" "$environment/installed.txt"; then
    python3 -m venv --clear "$environment"
    # What MetaSchedule's own cost model needs stays away.
    grep -vE '^(xgboost|scipy)=' "$requirements" >build/requirements.txt
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r build/requirements.txt
    cp "$requirements" "$environment/installed.txt"
fi
FORELOOP_LIBRARY=$PWD/build/src/libforeloop.so "$environment/bin/python" integrations/tvm/tests/test_foreloop_tvm.py
