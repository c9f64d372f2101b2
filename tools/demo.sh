#!/usr/bin/env bash
# The main job in one command: install what is missing, build, and rank a measured tuning database.
. "$(dirname "$0")/prepare.sh"

configure build
ninja -C build tools/foreloop >build.log || { cat build.log; exit 1; }

data=examples/data/conv3x3_96
echo "Ranking $data/database_tuning_record.json, measured on $(sed 's/.*"cpu": *"\([^"]*\)".*/\1/' $data/meta.json)"
echo "(none of it was seen in training):"
echo
build/tools/foreloop rank -w $data/workload.txt -r $data/database_tuning_record.json --top "${1:-15}"
