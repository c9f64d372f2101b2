"""The ranker's feature vector: the numpy twin of foreloop_features (weights/FORMAT.md, "Features").

    z.I                        element I of the predicted end state
    length, count.KIND         how many actions of known kind, how many of each
    sum. max. min. first. last.ELEMENT    over the occurrences of the element's kind; 0 where it does not occur
    hw.FIELD                   the machine
"""
import numpy as np

AGGREGATES = ("sum", "max", "min", "first", "last")


def action_names(vocabulary):
    """All names of action features of a vocabulary. Of 0/1 elements the sum says it all."""
    names = ["length"] + [f"count.{kind['kind']}" for kind in vocabulary.kinds]
    for elements in vocabulary.elements:
        for element, numeric in elements:
            names += [f"{aggregate}.{element}" for aggregate in (AGGREGATES if numeric else AGGREGATES[:1])]
    return names


class Reader:
    """Computes the named features of action sequences."""

    def __init__(self, vocabulary, names, hardware=None):
        self.vocabulary, self.names, self.hardware = vocabulary, list(names), hardware or {}
        place = {element: (kind, i) for kind, elements in enumerate(vocabulary.elements)
                 for i, (element, _) in enumerate(elements)}
        self.plan = []
        for name in self.names:
            head, _, rest = name.partition(".")
            if head == "z":
                self.plan.append(("z", int(rest), 0))
            elif head == "count":
                self.plan.append(("count", vocabulary.index[rest], 0))
            elif head in AGGREGATES:
                self.plan.append((head, *place[rest]))
            elif head in ("hw", "length"):
                self.plan.append((head, rest, 0))
            else:
                raise ValueError(f"unknown feature {name}")

    def of(self, ids, latent=None):
        """float32[len(names)] of one sequence of interned ids (numpy), in the order of the names."""
        known = [i for i in ids if i >= 0]
        by_kind = {}
        for i in known:
            by_kind.setdefault(self.vocabulary.kind_of[i], []).append(self.vocabulary.phi_of[i])
        stats = {}
        for kind, rows in by_kind.items():
            rows = np.stack(rows)
            total = np.zeros(rows.shape[1], np.float32)
            for row in rows:  # float32, in the order of the actions
                total = total + row
            stats[kind] = {"sum": total, "max": rows.max(0), "min": rows.min(0), "first": rows[0], "last": rows[-1]}
        result = np.zeros(len(self.plan), np.float32)
        for column, (what, a, b) in enumerate(self.plan):
            if what == "z":
                result[column] = latent[a]
            elif what == "count":
                result[column] = len(by_kind.get(a, ()))
            elif what == "length":
                result[column] = len(known)
            elif what == "hw":
                result[column] = self.hardware.get(a, 0)
            elif a in stats:
                result[column] = stats[a][what][b]
        return result
