"""Search spaces against the reader of tuning records, over all of train/data: every record's point has the ids of the
record's actions (so its score, to the bit), and is legal; points that are drawn, mutated and crossed have the ids of
their own traces, read back as records.

    python test_space.py [--full] [--seed N]

Needs numpy. FORELOOP_LIBRARY names the library if it is not in build/src.
"""
import argparse
import gzip
import json
import pathlib
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations" / "python"))
import foreloop_ctypes as fl  # noqa: E402


def spaces_of(lib, lines, actions):
    """A space for each sketch, and (space, point) of each line."""
    spaces, points = [], []
    for line in lines:
        for space in spaces:
            try:
                points.append((space, space.add(line)))
                break
            except fl.Error as error:
                if error.code != "error_mismatch":
                    raise
        else:
            spaces.append(lib.space(line, actions))
            points.append((spaces[-1], spaces[-1].trace_points()[0]))
    return spaces, points


def read_back(lib, actions, lines):
    """The ids of each record's actions."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write("".join(line.rstrip("\n") + "\n" for line in lines))
        file.flush()
        return [actions.intern(record["actions"]) for record in lib.records(file.name)]


def check_operator(lib, model, folder, draws, seed):
    """(records that differ, illegal ones, drawn points that differ, illegal ones, drawn)."""
    with gzip.open(folder / "database_tuning_record.json.gz", "rt") as file:
        lines = file.read().splitlines()
    with model.actions(1 << 20) as actions:
        spaces, points = spaces_of(lib, lines, actions)
        wrong = sum(not np.array_equal(space.intern(point)[0], ids)
                    for (space, point), ids in zip(points, read_back(lib, actions, lines)))
        illegal = sum(not space.is_legal(point) for space, point in points)
        drawn, expected = [], []
        for number, space in enumerate(spaces):
            space.seed(seed + number)
            sample = space.sample(draws)
            mutated = space.mutate(sample)
            crossed = space.cross(sample, mutated[::-1])
            drawn += [(space, point) for point in np.concatenate([sample, mutated, crossed])]
        expected = read_back(lib, actions, [f"[0,[{space.trace(point)},[1.0]]]" for space, point in drawn])
        different = sum(not np.array_equal(space.intern(point)[0], ids)
                        for (space, point), ids in zip(drawn, expected)) + abs(len(drawn) - len(expected))
        drawn_illegal = sum(not space.is_legal(point) for space, point in drawn)
        for space in spaces:
            space.close()
    return wrong, illegal, different, drawn_illegal, len(drawn)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="more draws")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    lib = fl.load()
    passed = failed = total = 0
    with lib.model(ROOT / "weights" / "default") as model:
        for folder in sorted(path.parent for path in (ROOT / "train" / "data").glob("*/*/workload.txt")):
            result = check_operator(lib, model, folder, 40 if arguments.full else 4, arguments.seed)
            total += result[-1]
            good = not any(result[:-1])
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"{folder.parent.name}/{folder.name}: {json.dumps(result)}")
    print(f"{total} points drawn")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
