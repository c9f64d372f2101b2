#!/usr/bin/env bash
# Runs the examples as a newcomer does, on the default bundle and the committed records; TAP.
# Usage: tests/examples/run.sh SOURCE-ROOT PROGRAM...
set -u
model=$1/weights/default
data=$1/examples/data/conv3x3_96
shift
count=0

check() { # check STATUS WHAT
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

# refuses PROGRAM ARGUMENT...: a line on standard error that says what is wrong, exit status 1.
refuses() {
    local message status
    message=$("$@" 2>&1 >/dev/null)
    status=$?
    [ $status -eq 1 ] && [ -n "$message" ] && [ "$(printf '%s\n' "$message" | wc -l)" -eq 1 ]
    check $? "$(basename "$1") says what is wrong: $message"
}

for program in "$@"; do
    name=$(basename "$program")
    case $name in
    explain_trees) good=("$model/ranker.json" $(yes nan | head -n 2000)) ;;
    adapt_ranker | search_traces) good=("$model" "$data/workload.txt" "$data/database_tuning_record.json") ;;
    *) good=("$model" "$data/workload.txt") ;;
    esac
    first=$("$program" "${good[@]}")
    check $? "$name runs"
    [ -n "$first" ] && [ "$first" = "$("$program" "${good[@]}")" ]
    check $? "$name says the same twice"
    refuses "$program" "$model/none" "${good[@]:1}"
    [ "$name" = explain_trees ] || refuses "$program" "$model" "$data/none.txt" "${good[@]:2}"
    "$program" >/dev/null 2>&1
    [ $? -eq 2 ]
    check $? "$name without arguments exits with 2"
    [ "$name" = search_traces ] || continue
    for generations in -1 many 3x ''; do
        "$program" "${good[@]}" "$generations" >/dev/null 2>&1
        [ $? -eq 2 ]
        check $? "$name with '$generations' generations exits with 2"
    done
done
echo "1..$count"
