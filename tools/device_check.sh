#!/usr/bin/env bash
# Everything that needs a GPU, in under four minutes: builds the library for it, runs its tests there (the bits of the
# CPU), compute-sanitizer's memcheck and racecheck where it is installed, and benchmarks, beside PyTorch where that is.
# Writes one JSON object. Without a GPU it says so, writes that, and succeeds.
# Usage: tools/device_check.sh [OUT.json]      by default device_check.json; BUILD names another build folder
set -uo pipefail
. "$(dirname "$0")/prepare.sh"
set +e
out=${1:-device_check.json}
build=${BUILD:-build-device}
begun=$SECONDS

finish() { # finish STATUS FIELDS : the object, from "name":value pairs
    printf '{"check":"device","date":"%s","seconds":%d,%s}\n' "$(date -u +%F)" $((SECONDS - begun)) "$2" >"$out"
    cat "$out"
    exit "$1"
}

need g++
nvcc=$(tools/cuda_toolkit.sh) || finish 1 '"error":"no nvcc"'
PATH=$(dirname "$nvcc"):$PATH
configure "$build" -Dcuda=enabled -Dbundle=false -Dexamples=false || finish 1 '"error":"meson"'
targets=$(ninja -C "$build" -t targets all | sed -n 's/^\(tests\/cuda\/test_cuda_[a-z_]*\): .*/\1/p' | grep -v emul)
ninja -C "$build" $targets bench/bench_cuda bench/bench_cuda_encoder >"$build.log" 2>&1 || { tail -n 20 "$build.log"; finish 1 '"error":"build"'; }

# cuBLAS for the encoder, where the loader knows none: the toolkit's, or PyTorch's.
site=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
for folder in "$(dirname "$nvcc")"/../lib64 "$(dirname "$nvcc")"/../lib "$site"/nvidia/*/lib; do
    if ls "$folder"/libcublas.so.1* >/dev/null 2>&1; then
        export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
        break
    fi
done

bench=$("$build/bench/bench_cuda" 1024)
case $bench in
*'"skipped"'*)
    echo "SKIPPED: $bench"
    finish 0 "\"skipped\":$(printf '%s' "$bench" | sed 's/.*"skipped":\(".*"\)}$/\1/')"
    ;;
esac

# limit SECONDS : that many, or what is left of the four minutes
limit() {
    local left=$((235 - SECONDS + begun))
    echo $((left < 1 ? 1 : left < $1 ? left : $1))
}

fields="" failed=0
# note NAME JSON
note() { fields="$fields${fields:+,}\"$1\":$2"; }
names=$(meson test -C "$build" --suite cuda --list 2>/dev/null | sed -n 's/.* \/ \(cuda_[a-z_]*\)$/\1/p' | grep -v -e emulat -e symbols)
# tests NAME [WRAPPER] : the test programs, under a command
tests() {
    local log ok bad
    log=$(mktemp)
    timeout "$(limit 70)" meson test -C "$build" --no-rebuild --print-errorlogs ${2:+--wrap "$2"} $names >"$log" 2>&1
    ok=$(sed -n 's/^Ok: *\([0-9]*\) *$/\1/p' "$log" | tail -n 1)
    bad=$(sed -n 's/^\(Fail\|Timeout\): *\([0-9]*\) *$/\2/p' "$log" | awk '{n += $1} END {print NR ? n : 1}')
    [ "$bad" -eq 0 ] || { failed=1; tail -n 40 "$log"; }
    rm -f "$log"
    note "$1" "{\"passed\":${ok:-0},\"failed\":$bad}"
    echo "$1: ${ok:-0} programs passed, $bad failed"
}

tests parity
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")"/../compute-sanitizer/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
        tests "$tool" "$sanitizer --tool $tool --error-exitcode 1 --log-file $build/$tool-%p.log"
    done
else
    echo "SKIPPED: compute-sanitizer is not installed"
    note memcheck '"skipped: no compute-sanitizer"'
    note racecheck '"skipped: no compute-sanitizer"'
fi
torch=$(timeout "$(limit 40)" python3 bench/peers/cuda_score.py 2>/dev/null)
note torch "${torch:-null}"
# lines NAME COMMAND... : what the command prints, one object a line, as an array
lines() {
    local name=$1 output
    shift
    output=$(timeout "$(limit 45)" "$@" 2>/dev/null) || [ "$name" = encoder_torch ] || failed=1
    note "$name" "[$(printf '%s' "$output" | paste -sd, -)]"
}
lines bench "$build/bench/bench_cuda"
lines encoder "$build/bench/bench_cuda_encoder" .
lines encoder_torch python3 bench/peers/cuda_encoder.py
note passed "$([ $failed -eq 0 ] && echo true || echo false)"
finish $failed "$fields"
