"""Tuning records, program states and the parts of the split.

A data directory holds one directory for each operator: `workload.txt` (TVMScript) and the records: MetaSchedule's own file,
or those of a host that says canonical actions itself. train/replay.py makes the cache of program states beside it, or the
host does.

The split is by operator (split.py), so that no program, schedule or time of a tested operator is seen by any stage of
training.
"""
import argparse
import collections
import dataclasses
import functools
import gzip
import json
import pathlib
import sys

import numpy as np

import split as parts
from replay import operator_folders

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402

# MetaSchedule's own file, or the records of another host (docs/ACTIONS.md)
RECORDS = ("database_tuning_record.json", "database_tuning_record.json.gz", "records.jsonl", "records.jsonl.gz")
MIN_POOL = 56  # usable candidates that a tested operator has at least
MIN_DISTINCT = 8  # different schedules: of an elementwise operator MetaSchedule knows but one


@dataclasses.dataclass
class Candidate:
    """One measured schedule: canonical actions [(kind, {argument: value})], and after how many trace instructions each
    has happened. `seconds` is the median of the `repeats`."""
    line: int
    actions: list
    instructions: list
    repeats: list
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

    @functools.cached_property
    def distinct(self):
        """How many different schedules there are among the candidates."""
        return len({json.dumps(candidate.actions) for candidate in self.candidates})

    @functools.cached_property
    def signature(self):
        return parts.signature(self.text)

    @property
    def family(self):
        return self.signature[0]

    @functools.cached_property
    def machine(self):
        """LLVM's name of the processor that the schedules were measured on, "" if no meta.json says it."""
        path = self.folder / "meta.json"
        return json.loads(path.read_text()).get("mcpu", "") if path.exists() else ""


def records_path(folder):
    for name in RECORDS:
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{folder} has none of {', '.join(RECORDS)}")


def read_operator(library, folder):
    """Reads one operator's records with the C library; failed measurements and malformed lines are counted."""
    candidates, skipped = [], 0
    for record in library.records(records_path(folder)):
        if isinstance(record, Exception) or not record["seconds"]:
            skipped += 1
            continue
        candidates.append(Candidate(record["line"], record["actions"], record["instructions"],
                                    record["seconds"], float(np.median(record["seconds"]))))
    return Operator(folder.name, folder, (folder / "workload.txt").read_text(), candidates, skipped)


def read_operators(library, directories):
    """All operators under the given data directories, by name; a directory may also be an operator's own."""
    folders = operator_folders(map(pathlib.Path, directories))
    if not folders:
        raise SystemExit(f"no workload.txt under {', '.join(map(str, directories))}")
    twice = [name for name, count in collections.Counter(folder.name for folder in folders).items() if count > 1]
    if twice:
        raise SystemExit(f"{twice[0]} is given twice: an operator's folder needs a name of its own")
    return [read_operator(library, folder) for folder in folders]


def assign(operators, table=parts.TABLE):
    """{part: operators}. Operators that the table does not hold get a part by the same rule; those with nothing to rank
    are dropped."""
    known = parts.read(table)
    part_of = parts.extend(known, [operator.signature for operator in operators])
    result = {part: [] for part in parts.PARTS}
    for operator in operators:
        enough = operator.distinct >= MIN_DISTINCT
        result[part_of[operator.signature] if enough else "dropped"].append(operator)
    return result


def _field(default, allowed, right):
    """A dataclass field that `fields_of` accepts where right(value): what is allowed, in words."""
    return dataclasses.field(default=default, metadata={"allowed": allowed, "right": right})


def whole(default, low, high):
    """A field of whole numbers."""
    return _field(default, f"a whole number from {low} to {high}", lambda x: type(x) is int and low <= x <= high)


def number(default, low, high, but=None):
    """A field of numbers, which NaN and the infinities are not."""
    return _field(default, f"a number from {low:g} to {high:g}" + ("" if but is None else f", but not {but:g}"),
                  lambda x: type(x) in (int, float) and low <= x <= high and x != but)


def one_of(default, *values):
    """A field of these values."""
    return _field(default, " or ".join(map(json.dumps, values)), lambda x: type(x) is type(default) and x in values)


def fields_of(settings):
    """An argparse type: a JSON object with some fields of a dataclass, which are made by `whole` and its like."""
    known = {field.name: field.metadata for field in dataclasses.fields(settings)}

    def read(text):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise argparse.ArgumentTypeError(f"{text!r} is no JSON: {error}")
        if not isinstance(values, dict) or not known.keys() >= values.keys():
            raise argparse.ArgumentTypeError(f"{text!r} is no JSON object with fields of {', '.join(sorted(known))}")
        for name, value in values.items():
            if not known[name]["right"](value):
                raise argparse.ArgumentTypeError(f"{name} must be {known[name]['allowed']}, not {json.dumps(value)}")
        return values

    return read


def run(main):
    """The exit status of a script: 1, and one line, where the C library or the system refuses something."""
    try:
        return main()
    except (fl.Error, OSError) as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return 1


def add_choices(parser):
    """The options of `choose`."""
    parser.add_argument("--split", default=parts.TABLE, help="table of the parts (default %(default)s)")
    parser.add_argument("--with-validation", action="store_true", help="learn from the validation part too")
    parser.add_argument("--family-but", metavar="SIGNATURE", help="learn from the family part too, but not from "
                        "near-duplicates of this signature (such as 'depthwise 1x96x28x28x3x3')")
    parser.add_argument("--leave-out", metavar="OP1,OP2", help="learn from all but these, whatever their part")


def choose(arguments, operators):
    """(those to learn from, those to measure the bundle on) by the options of `add_choices`."""
    if arguments.leave_out is not None:
        names = frozenset(arguments.leave_out.split(","))
        return [o for o in operators if o.name not in names], [o for o in operators if o.name in names]
    part = assign(operators, arguments.split)
    tested = arguments.family_but
    family = [o for o in part["family"] if tested and not parts.near(o.signature, parts.key_of(tested))]
    if arguments.with_validation:
        return part["training"] + part["validation"] + family, []
    return part["training"] + family, part["validation"]


def joined(operators, groups):
    """The groups [(rows, times)] of the operators, and one more for each program that was measured in several sets on
    one machine (a second folder of the same program): all its candidates together. What a search has chosen is then
    learnt to be better or worse than what was drawn, and not only than its like."""
    sets = collections.defaultdict(list)
    for operator, group in zip(operators, groups):
        sets[operator.text, operator.machine].append(group)
    return groups + [tuple(map(np.concatenate, zip(*found))) for found in sets.values() if len(found) > 1]


def folds(operators, count):
    """Cross-validation folds of operators: near-duplicates together, clusters dealt out by size and family."""
    operators_of = {}
    for operator in operators:
        operators_of.setdefault(operator.signature, []).append(operator)
    groups = [[operator for key in cluster for operator in operators_of[key]]
              for cluster in parts.clusters(operators_of)]
    if min(count, len(groups)) < 2:
        raise SystemExit(f"no cross-validation with {count} folds of {len(groups)} clusters of near-duplicates: it "
                         "takes two of both")
    result = [[] for _ in range(count)]
    for group in sorted(groups, key=lambda group: -len(group)):  # the sort is stable: families stay side by side
        min(result, key=len).extend(group)
    return result


def fold_of(operators, count):
    """[the number of the fold that each operator is in]."""
    number = {id(operator): k for k, fold in enumerate(folds(operators, count)) for operator in fold}
    return [number[id(operator)] for operator in operators]


class States:
    """The replayed programs of one operator: texts by hash, and for each record line its trajectory of (k, hash)."""

    def __init__(self, cache, name):
        cache = pathlib.Path(cache)
        if not (cache / f"{name}.jsonl.gz").exists():
            raise SystemExit(f"{cache}/{name}.jsonl.gz is missing: run train/replay.py on the data first")
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
