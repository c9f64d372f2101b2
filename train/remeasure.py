#!/usr/bin/env python3
"""Times a sample of recorded schedules again on this machine, to know how far one measurement can be trusted.

    python train/remeasure.py train/data/emeraldrapids /tmp/measured

In each operator's folder that was measured on this kind of processor, remeasured.json gets {"record's line": [times in
seconds]} for schedules spread evenly over the operator's ranking; evaluate.py reports how well one measurement ranks
the other. Operators are taken in an order that does not depend on their family, those with remeasured.json are skipped, and
measuring takes turns with collect.py, so this can be stopped and started at any time.
"""
import argparse
import json
import os
import statistics
import sys
from pathlib import Path

import measuring
import replay


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=Path, help="as train/replay.py")
    parser.add_argument("--operators", type=int, default=12, help="how many, done ones included (default %(default)s)")
    parser.add_argument("--schedules", type=int, default=10, help="of each operator (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a schedule (default: all)")
    return parser.parse_args()


def sample(times, count):
    """Lines evenly spread over the ranking of {line: seconds}, the fastest one and the slowest one included."""
    ranked = sorted(times, key=times.get)
    count = min(count, len(ranked))
    return sorted({ranked[round(i * (len(ranked) - 1) / max(1, count - 1))] for i in range(count)})


def times_of(records):
    """{line: median seconds} of the records that were measured."""
    times = {line: statistics.median(record[1][1]) for line, record in enumerate(records) if record[1][1]}
    return {line: seconds for line, seconds in times.items() if seconds < 1e9}


def remeasure(folder, count, target, builder, runner):
    """{line: times} of a sample of the folder's schedules; those that fail now are left out."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.schedule import Schedule, Trace

    module = replay.parse_workload((folder / "workload.txt").read_text())
    records = [json.loads(line) for line in replay.read_text(folder / "database_tuning_record.json").splitlines()]
    lines, inputs, arguments = sample(times_of(records), count), [], []
    for line in lines:
        schedule = Schedule(module, seed=1, debug_mask="none", error_render_level="none")
        Trace.apply_json_to_schedule(records[line][1][0], schedule)
        inputs.append(ms.builder.BuilderInput(schedule.mod, target))
        arguments.append(ms.arg_info.ArgInfo.from_entry_func(schedule.mod, remove_preproc=True))
    built = builder.build(inputs)
    good = [i for i, result in enumerate(built) if result.artifact_path]
    futures = runner.run([ms.runner.RunnerInput(built[i].artifact_path, "cpu", arguments[i]) for i in good])
    results = [future.result() for future in futures]
    return {lines[i]: [float(seconds) for seconds in result.run_secs] for i, result in zip(good, results)
            if result.run_secs}


def main():
    arguments = parse_arguments()
    measuring.prepare(arguments.threads)
    target = measuring.this_target(arguments.threads)
    mcpu, builder, runner = str(target.attrs["mcpu"]), *measuring.builder_and_runner(arguments.threads)
    folders = [folder for folder in replay.operator_folders(arguments.data) if (folder / "meta.json").exists()
               and json.loads((folder / "meta.json").read_text()).get("mcpu") == mcpu]
    order = measuring.in_mixed_order(folder.name for folder in folders)
    folders.sort(key=lambda folder: order.index(folder.name))
    if not folders:
        print(f"remeasure.py: no operator here was measured on this kind of processor, {mcpu}", file=sys.stderr)
        return 1
    for number, folder in enumerate(folders[:arguments.operators], 1):
        path = folder / "remeasured.json"
        if path.exists():
            continue
        found = remeasure(folder, arguments.schedules, target, builder, runner)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(found) + "\n")
        partial.rename(path)
        print(f"[{number}/{min(len(folders), arguments.operators)}] {folder.name}: {len(found)} schedules", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
