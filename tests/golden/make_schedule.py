"""Renders the records of tests/golden/schedule as canonical actions with this checkout's own reader.

The reader is its own reference here: the files guard the vocabulary that models were trained on. After a deliberate
change of docs/ACTIONS.md run this with the built test program, read the difference, and train again:

    python tests/golden/make_schedule.py BUILD/tests/unit/schedule/test_schedule_golden
"""
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent / "schedule"

for records, name, full_trace in (("records.json", "actions.txt", "0"), ("records.json", "actions_full.txt", "1"),
                                  ("gpu_records.json", "gpu_actions.txt", "0")):
    printed = subprocess.run([sys.argv[1], "--print", str(FOLDER / records), full_trace], check=True,
                             capture_output=True).stdout
    (FOLDER / name).write_bytes(printed)
