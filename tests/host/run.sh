#!/usr/bin/env bash
# Builds a host in every way that the README shows and runs it on the default bundle: pkg-config with the shared and
# the static library, CMake, meson subproject. Usage: tests/host/run.sh BUILD-FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

DESTDIR="$work/stage" meson install -C "$build" --no-rebuild --quiet
pc=$(find "$work/stage" -name foreloop.pc)
prefix=$(sed -n 's/^prefix=//p' "$pc")
libdir=$(dirname "$(dirname "$pc")")
bundle="$work/stage$prefix/share/foreloop/default"
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

# The staged files lie elsewhere than their prefix says.
staged() {
    pkg-config --define-variable=prefix="$work/stage$prefix" "$@"
}

echo "pkg-config, shared"
cc -o "$work/shared" "$root/tests/host/host.c" $(staged --cflags --libs foreloop)
"$work/shared" "$bundle"

echo "pkg-config, static archive"
cc -o "$work/static" "$root/tests/host/host.c" $(staged --cflags foreloop) "$libdir/libforeloop.a" \
    -lcjson -lutf8proc -lz -lm -pthread
env -u LD_LIBRARY_PATH "$work/static" "$bundle"

if [ -f "$libdir/libforeloop_cuda.so" ]; then
    echo "pkg-config, the library for GPUs"
    cc -o "$work/cuda" "$root/examples/score_on_gpu.c" $(staged --cflags --libs foreloop_cuda)
    "$work/cuda" "$bundle" "$root"/examples/data/conv3x3_96/workload.txt 1000
fi

echo "CMake"
sed -i "s|^prefix=.*|prefix=$work/stage$prefix|" "$pc"
cmake -S "$root/tests/host/cmake" -B "$work/cmake" >/dev/null
cmake --build "$work/cmake" >/dev/null
"$work/cmake/host" "$bundle"

echo "meson subproject"
mkdir -p "$work/meson/subprojects"
cp "$root/tests/host/meson/meson.build" "$root/tests/host/host.c" "$work/meson"
ln -s "$root" "$work/meson/subprojects/foreloop"
env -u PKG_CONFIG_PATH meson setup "$work/meson/build" "$work/meson" >/dev/null
ninja -C "$work/meson/build" host >/dev/null
"$work/meson/build/host" "$bundle"

echo "the installed command finds the installed bundle"
cd "$work"
"$work/stage$prefix/bin/foreloop" rank -w "$root"/examples/data/*/workload.txt \
    -r "$root"/examples/data/*/database_tuning_record.json --json >/dev/null
