#!/usr/bin/env bash
# Builds and runs the tests. Arguments go to meson test, for example: tools/test.sh --suite unit
. "$(dirname "$0")/prepare.sh"

configure build
ninja -C build >build.log || { cat build.log; exit 1; }
meson test -C build --print-errorlogs "$@"
