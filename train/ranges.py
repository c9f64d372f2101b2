#!/usr/bin/env python3
"""Writes the ranges of the training data into the manifest of a bundle that was exported without them.

    python train/ranges.py --bundle BUNDLE DATA...

DATA are the folders that the bundle was trained on; of their operators those count that its manifest names. Scores stay
as they are, the bundle's fingerprint does not. weights/default: `python train/ranges.py --bundle weights/default
train/data/zen5`. Needs numpy, and the library as the other scripts do.
"""
import argparse
import json
import pathlib
import sys

import actions
import dataset
import foreloop_ctypes as fl


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    parser.add_argument("data", nargs="+")
    arguments = parser.parse_args()
    path = arguments.bundle / "model.json"
    manifest = json.loads(path.read_text())
    wanted = set(manifest["training"]["operators"])
    operators = [operator for operator in dataset.read_operators(fl.load(), arguments.data) if operator.name in wanted]
    missing = wanted.difference(operator.name for operator in operators)
    if missing:
        raise SystemExit(f"the data lacks operators of the bundle: {', '.join(sorted(missing))}")
    actions.add_ranges(manifest["actions"], [c for operator in operators for c in operator.candidates])
    path.write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(dataset.run(main))
