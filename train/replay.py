#!/usr/bin/env python3
"""Replay recorded schedules with TVM and keep the program text after each step.

A tuning record's trace is a list of instructions and their decisions. Applied to a fresh schedule of the workload,
its first k instructions give the program "after k instructions". Those programs are the states that the world model
is trained to predict. Replaying is deterministic, so everything here is a cache that can be made again.

    python train/replay.py --out /tmp/states train/data/zen5 train/data/emeraldrapids

writes for each operator (a directory with workload.txt and database_tuning_record.json or .json.gz)

    OUT/NAME.jsonl.gz         one line per record: {"line": record's line from 0, "states": [[k, hash], ...]}
    OUT/NAME.texts.jsonl.gz   one line per distinct program: {"hash": hash, "text": TVMScript}

where k runs over the instructions that change the program up to EnterPostproc (see `wanted_counts`), and then is the
length of the trace: the final program. A finished operator is skipped. As a module: `replay_states`.
"""
import argparse
import collections
import gzip
import hashlib
import json
import multiprocessing
import sys
import time
from pathlib import Path


def read_text(path):
    """The text of PATH, or of PATH.gz if only that exists."""
    path = Path(path)
    if path.exists():
        return path.read_text()
    with gzip.open(str(path) + ".gz", "rt") as file:
        return file.read()


def write_gzip(path, text):
    """Writes gzip with no time stamp, so that equal content gives equal bytes; the file appears only when complete."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(gzip.compress(text.encode(), 6, mtime=0))
    partial.rename(path)


def changes_program(kind):
    """Whether an instruction of this kind changes the program: look-ups and samples do not."""
    return not kind.startswith(("Get", "Sample")) and kind != "EnterPostproc"


def trace_of(record):
    """(instructions, decisions by instruction index) of a parsed record: [workload, [[insts, decisions], times, ...]]."""
    instructions, decisions = record[1][0]
    return instructions, dict((index, decision) for index, decision in decisions)


def wanted_counts(instructions):
    """The instruction counts after which the program is a state: after each change up to EnterPostproc, and the end."""
    counts = []
    for index, instruction in enumerate(instructions):
        if instruction[0] == "EnterPostproc":
            break
        if changes_program(instruction[0]):
            counts.append(index + 1)
    if not counts or counts[-1] != len(instructions):
        counts.append(len(instructions))
    return counts


def parse_workload(text):
    """The IRModule of a workload.txt."""
    import tvm

    return tvm.script.from_source(text)


def replay_module(module, record, counts):
    """The program texts of `module` after each of `counts` instructions of the parsed `record`'s trace.

    One pass: TVM asks a callback for the decision before it applies each instruction, and at that moment the
    schedule's module is the program after all the instructions before it.
    """
    from tvm.s_tir.schedule import Schedule, Trace

    instructions, _ = record[1][0]
    recorded = Schedule(module, seed=1, debug_mask="none", error_render_level="none")
    Trace.apply_json_to_schedule(record[1][0], recorded)
    trace = recorded.trace
    if len(trace.insts) != len(instructions):
        raise ValueError(f"TVM read {len(trace.insts)} of {len(instructions)} instructions")
    wanted, texts, position = set(counts), {}, 0
    if len(instructions) in wanted:
        texts[len(instructions)] = recorded.mod.script()
    if wanted - texts.keys():
        schedule = Schedule(module, seed=1, debug_mask="none", error_render_level="none")

        def before(_instruction, _inputs, _attributes, decision):
            nonlocal position
            if position in wanted:
                texts[position] = schedule.mod.script()
            position += 1
            return decision

        last = max(wanted - texts.keys())
        part = Trace(trace.insts[:last + 1], dict(trace.decisions.items()))
        part.apply_to_schedule(schedule, remove_postproc=False, decision_provider=before)
    return [texts[count] for count in counts]


def replay_states(workload_text, record_line, instruction_counts):
    """The program texts after the given numbers of instructions, for one line of a database_tuning_record.json."""
    return replay_module(parse_workload(workload_text), json.loads(record_line), instruction_counts)


def replay_operator(job):
    """Replays all records of the operator in directory `job[0]` into `job[1]`; returns figures for the report."""
    folder, out = job
    start = time.time()
    module = parse_workload((folder / "workload.txt").read_text())
    known, texts, lines = {}, {}, []  # known: digest of a prefix -> hash of its program
    states = failures = 0
    for number, line in enumerate(read_text(folder / "database_tuning_record.json").splitlines()):
        record = json.loads(line)
        instructions, decisions = trace_of(record)
        digest, prefixes = hashlib.blake2b(digest_size=16), [b""]
        for index, instruction in enumerate(instructions):
            digest.update(json.dumps([instruction, decisions.get(index)]).encode())
            prefixes.append(digest.digest())
        counts = wanted_counts(instructions)
        missing = [count for count in counts if prefixes[count] not in known]
        try:
            for count, text in zip(missing, replay_module(module, record, missing) if missing else []):
                name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
                texts[name] = text
                known[prefixes[count]] = name
        except Exception as error:  # a record that TVM cannot replay is left out, and said so
            print(f"{folder.name}: record {number}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
            failures += 1
            continue
        states += len(counts)
        lines.append(json.dumps({"line": number, "states": [[k, known[prefixes[k]]] for k in counts]}))
    write_gzip(out / (folder.name + ".texts.jsonl.gz"),
               "".join(json.dumps({"hash": name, "text": text}) + "\n" for name, text in texts.items()))
    write_gzip(out / (folder.name + ".jsonl.gz"), "".join(line + "\n" for line in lines))
    return {"name": folder.name, "records": len(lines), "states": states, "texts": len(texts),
            "bytes": sum(map(len, texts.values())), "failures": failures, "seconds": time.time() - start}


def operator_folders(directories):
    """The operators' folders: the given ones that are such, and those directly in the others but for what collect.py
    has not finished."""
    return [folder for data in directories for folder in ([data] if (data / "workload.txt").exists() else sorted(
        path.parent for path in data.glob("*/workload.txt") if path.parent.suffix != ".partial"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=Path, help="an operator's directory, or one that holds such directories")
    parser.add_argument("--out", type=Path, required=True, help="directory of the cache")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default %(default)s)")
    arguments = parser.parse_args()
    folders = operator_folders(arguments.data)
    if not folders:
        print("replay.py: no workload.txt in", *arguments.data, file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [(folder, arguments.out) for folder in folders if not (arguments.out / (folder.name + ".jsonl.gz")).exists()]
    total, start = collections.Counter(), time.time()
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for done, figures in enumerate(pool.imap_unordered(replay_operator, jobs), 1):
            total.update({key: value for key, value in figures.items() if key != "name"})
            print("[{}/{}] {name}: {records} records, {states} states, {texts} texts, {seconds:.1f} s".format(
                done, len(jobs), **figures), flush=True)
    print("{} operators: {} records, {} failed, {} states, {} distinct texts of {:.1f} MB, {:.0f} s".format(
        len(jobs), total["records"], total["failures"], total["states"], total["texts"], total["bytes"] / 1e6,
        time.time() - start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
