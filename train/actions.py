"""The model's action vocabulary, derived from training data, and phi: the numpy twin of the C library's encoding.

A manifest's `actions` is a list of kinds, each with its slots (weights/FORMAT.md). An argument that is a string
becomes a vocabulary; a number that only names something (CATEGORIES) becomes one-hot; every other number becomes
signed_log, scaled to about 1, `location` with its sentinels, and the range that the training data has.
"""
import collections

import numpy as np

CATEGORIES = frozenset(["axis", "block", "buffer", "class", "explicit", "level", "part", "write"])
SENTINELS = {"location": [-1, -2]}
SCALE = 0.125


def add_ranges(kinds, candidates):
    """Gives each numeric slot its `range`: the smallest and the largest number in `candidates`, sentinels aside, so
    that the library tells a host which values lie outside of what was learned from. A slot without numbers has none."""
    seen = collections.defaultdict(set)
    for candidate in candidates:
        for kind, arguments in candidate.actions:
            for name, value in arguments.items():
                seen[kind, name].add(value)
    for kind in kinds:
        for slot in kind["slots"]:
            if slot["encoding"] in ("linear", "signed_log"):
                numbers = seen[kind["kind"], slot["name"]].difference(slot.get("sentinels", []))
                slot.pop("range", None)
                if numbers:
                    slot["range"] = [int(x) if float(x).is_integer() else float(x) for x in (min(numbers), max(numbers))]


def derive(candidates, min_count=20):
    """The kinds and slots seen in `candidates`. Kinds and strings seen fewer than `min_count` times, and arguments that
    never vary within their kind, are left out: nothing can be learned about them."""
    counts, values = collections.Counter(), collections.defaultdict(collections.Counter)
    for candidate in candidates:
        for kind, arguments in candidate.actions:
            counts[kind] += 1
            for name, value in arguments.items():
                values[kind, name][value] += 1
    kinds = []
    for kind in sorted(kind for kind, count in counts.items() if count >= min_count):
        slots = []
        for name in sorted(name for owner, name in values if owner == kind):
            seen = values[kind, name]
            frequent = sorted(value for value, count in seen.items() if count >= min_count)
            if len(seen) < 2 and sum(seen.values()) == counts[kind] or not frequent:
                continue
            if any(isinstance(value, str) for value in seen):
                slots.append({"name": name, "encoding": "vocabulary", "values": frequent})
            elif name in CATEGORIES:
                slots.append({"name": name, "encoding": "one_hot", "values": [int(value) for value in frequent]})
            elif name in SENTINELS:
                slots.append({"name": name, "encoding": "signed_log", "scale": SCALE,
                              "sentinels": SENTINELS[name]})
            else:
                slots.append({"name": name, "encoding": "signed_log", "scale": SCALE})
        kinds.append({"kind": kind, "slots": slots})
    add_ranges(kinds, candidates)
    return kinds


def number_text(value):
    """A number as the manifest writes it."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def slot_elements(kind, slot):
    """Names of a slot's elements, and for each whether it is numeric (else 0/1)."""
    stem = f"{kind}.{slot['name']}"
    if slot["encoding"] in ("linear", "signed_log"):
        return [(stem, True)] + [(f"{stem}={number_text(value)}", False) for value in slot.get("sentinels", [])]
    values = [value if isinstance(value, str) else number_text(value) for value in slot["values"]]
    return [(f"{stem}={value}", False) for value in [*values, "?"]]


def encode_slot(slot, value):
    """The elements of one given argument as floats."""
    if slot["encoding"] in ("linear", "signed_log"):
        sentinels = slot.get("sentinels", [])
        flags = [float(value == sentinel) for sentinel in sentinels]
        if any(flags):
            return [0.0, *flags]
        number = float(value)
        if slot["encoding"] == "signed_log":
            number = np.sign(number) * np.log2(1 + abs(number))
        return [np.float32(np.float32(number) * np.float32(slot.get("scale", 1))), *flags]
    flags = [float(value == known) for known in slot["values"]]
    return [*flags, float(not any(flags))]


class Vocabulary:
    """Kinds by name, and a table of distinct actions with their phi."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.index = {kind["kind"]: i for i, kind in enumerate(kinds)}
        self.elements = [[element for slot in kind["slots"] for element in slot_elements(kind["kind"], slot)]
                         for kind in kinds]
        self.table, self.kind_of, self.phi_of = {}, [], []

    def phi(self, kind, arguments):
        """phi(a) as float32[elements of the kind]; an absent argument leaves its elements 0."""
        parts = [encode_slot(slot, arguments[slot["name"]]) if slot["name"] in arguments else
                 [0.0] * len(slot_elements(kind["kind"], slot)) for slot in kind["slots"]]
        return np.array([x for part in parts for x in part], np.float32)

    def intern(self, actions):
        """Ids of a sequence; an action of unknown kind gets -1."""
        ids = np.full(len(actions), -1, np.int64)
        for i, (name, arguments) in enumerate(actions):
            if name not in self.index:
                continue
            kind = self.index[name]
            known = tuple((slot["name"], arguments[slot["name"]]) for slot in self.kinds[kind]["slots"]
                          if slot["name"] in arguments)
            key = (kind, known)
            if key not in self.table:
                self.table[key] = len(self.kind_of)
                self.kind_of.append(kind)
                self.phi_of.append(self.phi(self.kinds[kind], dict(known)))
            ids[i] = self.table[key]
        return ids
