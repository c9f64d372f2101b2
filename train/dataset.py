"""Tuning records, program states and the split of operators.

A data directory holds one directory for each operator: `workload.txt` (TVMScript) and `database_tuning_record.json`
or `.json.gz` (MetaSchedule's own file). train/replay.py makes the cache of program states beside it.

The split is by operator, so that no program, schedule or time of a tested operator is seen by any stage of training.
`TEST` is fixed and spreads over the families (dense, batched and plain matrix products, direct, pointwise, depthwise
and channels-last convolutions, pooling, normalisation). Operators of other machines can be left out by directory.
"""
import dataclasses
import gzip
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402

TEST = frozenset(["bmm_16_256_qk", "eff_dw5", "ln_64_1024", "mm_512", "opt_ffn_32", "pool_64", "rn_ds_1x1s2",
                  "rn_l2_3x3s2", "rn_l3_nhwc"])


@dataclasses.dataclass
class Candidate:
    """One measured schedule: canonical actions [(kind, {argument: value})], and after how many trace instructions each
    has happened."""
    line: int
    actions: list
    instructions: list
    seconds: float


@dataclasses.dataclass
class Operator:
    name: str
    folder: pathlib.Path
    text: str
    candidates: list
    skipped: int

    @property
    def times(self):
        return np.array([candidate.seconds for candidate in self.candidates])


def records_path(folder):
    plain = folder / "database_tuning_record.json"
    return plain if plain.exists() else plain.with_suffix(".json.gz")


def read_operator(library, folder):
    """Reads one operator's records with the C library; failed measurements and malformed lines are counted."""
    candidates, skipped = [], 0
    for record in library.records(records_path(folder)):
        if isinstance(record, Exception) or not record["seconds"]:
            skipped += 1
            continue
        candidates.append(Candidate(record["line"], record["actions"], record["instructions"],
                                    float(np.median(record["seconds"]))))
    return Operator(folder.name, folder, (folder / "workload.txt").read_text(), candidates, skipped)


def read_operators(library, directories):
    """All operators under the given data directories, by name; a directory may also be an operator's own."""
    folders = [folder for directory in map(pathlib.Path, directories) for folder in
               ([directory] if (directory / "workload.txt").exists() else
                sorted(path.parent for path in directory.glob("*/workload.txt")))]
    if not folders:
        raise SystemExit(f"no workload.txt under {', '.join(map(str, directories))}")
    return [read_operator(library, folder) for folder in folders]


def split(operators, test=TEST):
    """(training operators, test operators)."""
    return ([operator for operator in operators if operator.name not in test],
            [operator for operator in operators if operator.name in test])


def folds(operators, count):
    """Cross-validation folds of operators: every count-th by name, so that a family spreads over the folds."""
    ordered = sorted(operators, key=lambda operator: operator.name)
    return [[operator for i, operator in enumerate(ordered) if i % count == k] for k in range(count)]


class States:
    """The replayed programs of one operator: texts by hash, and for each record line its trajectory of (k, hash)."""

    def __init__(self, cache, name):
        cache = pathlib.Path(cache)
        with gzip.open(cache / f"{name}.texts.jsonl.gz", "rt") as file:
            self.texts = {item["hash"]: item["text"] for item in map(json.loads, file)}
        with gzip.open(cache / f"{name}.jsonl.gz", "rt") as file:
            self.trajectories = {item["line"]: item["states"] for item in map(json.loads, file)}

    def after(self, line, instructions):
        """The state's hash after each of the given instruction counts, "" for the program before any change; None if
        the record was not replayed."""
        if line not in self.trajectories:
            return None
        trajectory, hashes = self.trajectories[line], []
        for count in instructions:
            hashes.append(max((k, name) for k, name in [(0, ""), *trajectory] if k <= count)[1])
        return hashes
