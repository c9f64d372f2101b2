#!/usr/bin/env bash
# Ranks a committed database under valgrind: no leak, no invalid access. Usage: tests/valgrind.sh BUILD-FOLDER [DATA-FOLDER...]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
[ $# -gt 0 ] || set -- examples/data/*/
for data in "$@"; do
    valgrind --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9 \
        "$build/tools/foreloop" rank -w "$data/workload.txt" -r "$data"/database_tuning_record.json* --json >/dev/null
    echo "$data: no leak, no error"
done
