#!/usr/bin/env bash
# Compares the library with the packages that it must agree with. Installs them in a virtual environment of its own.
#
#     tests/differential/run.sh          the bounded part: tokenizers, xgboost, numpy; minutes, no torch
#     tests/differential/run.sh --full   everything, with torch and transformers; writes tests/differential/RESULT.md
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
. tools/prepare.sh
need python3 python3-venv
full=0
[ "${1:-}" = --full ] && full=1

configure build
ninja -C build >build.log || { cat build.log; exit 1; }

environment=build/venv-differential
[ $full = 1 ] && environment=build/venv-differential-full
requirements=tests/differential/requirements.txt
if ! cmp -s "$requirements" "$environment/installed.txt"; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    # xgboost's wheel asks for a GPU library that CPU prediction does not need.
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps "$(sed -n 's/^# no-deps: //p' "$requirements")"
    [ $full = 0 ] || "$environment/bin/pip" install --quiet --disable-pip-version-check \
        -r tests/differential/requirements-full.txt
    cp "$requirements" "$environment/installed.txt"
fi

passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for test in tests/differential/test_*.py; do
    echo "== $test"
    PYTHONPATH=integrations/python "$environment/bin/python" "$test" $([ $full = 1 ] && echo --full) 2>&1 | tee "$log" || true
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 || true)
    if [ -z "$counts" ]; then
        failed=$((failed + 1))
    else
        passed=$((passed + $(echo "$counts" | cut -d' ' -f1)))
        failed=$((failed + $(echo "$counts" | cut -d' ' -f3)))
    fi
    [ $full = 0 ] || { echo "## $test"; echo '```'; cat "$log"; echo '```'; } >>"$environment/result.md"
done
if [ $full = 1 ]; then
    {
        echo "# Result of the full differential suite"
        echo
        echo "$(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), commit $(git rev-parse --short HEAD):" \
            "$passed passed, $failed failed."
        echo
        cat "$environment/result.md"
    } >tests/differential/RESULT.md
    rm "$environment/result.md"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
