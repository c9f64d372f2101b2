#!/usr/bin/env python3
"""MetaSchedule's own per-store features of every recorded schedule (needs TVM: train/requirements-tvm.txt).

    python train/peers/per_store.py --out features train/data/*

writes OUT/NAME.npz for each operator: `rows` float32[stores of all schedules][164], `first` int[schedules + 1] where
each schedule's stores begin, `lines` int[schedules], the record lines. An operator that is there is skipped. Schedules
are replayed (milliseconds each), which is what a host pays for these features before it can rank.
"""
import argparse
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import replay  # noqa: E402


def extract(folder, extractor):
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.schedule import Schedule, Trace
    from tvm.target import Target

    module = replay.parse_workload((folder / "workload.txt").read_text())
    candidates, lines, context = [], [], None
    for number, line in enumerate(replay.read_text(folder / "database_tuning_record.json").splitlines()):
        record = json.loads(line)
        schedule = Schedule(module, seed=1, debug_mask="none", error_render_level="none")
        try:
            Trace.apply_json_to_schedule(record[1][0], schedule)
        except Exception as error:  # a record that TVM cannot replay is left out, and said so
            print(f"{folder.name}: record {number}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
            continue
        context = context or ms.TuneContext(mod=module, target=Target(record[1][2]))
        candidates.append(ms.MeasureCandidate(schedule, []))
        lines.append(number)
    if not lines:
        return None
    stores = [item.numpy() for item in extractor.extract_from(context, candidates)]
    return {"rows": np.concatenate(stores).astype(np.float32), "lines": np.array(lines),
            "first": np.concatenate([[0], np.cumsum([len(item) for item in stores])])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=pathlib.Path, help="as train/replay.py")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the features")
    arguments = parser.parse_args()
    from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature

    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in replay.operator_folders(arguments.data):
        path = arguments.out / f"{folder.name}.npz"
        if not path.exists():
            found = extract(folder, PerStoreFeature())
            if found is None:
                continue
            partial = path.with_suffix(".partial.npz")
            np.savez_compressed(partial, **found)
            partial.rename(path)
            print(f"{folder.name}: {len(found['lines'])} schedules, {len(found['rows'])} stores", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
