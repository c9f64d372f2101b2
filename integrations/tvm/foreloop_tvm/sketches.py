"""The search spaces of one program, a foreloop space for each of TVM's sketches, and an evolution over all of them."""
import itertools
import warnings

import numpy as np

from .binding import fl
from .traces import sample, trace_json

REFUSALS = ("error_unsupported", "error_format", "error_limit")  # of traces that are beyond what a space is made of
MOST_OTHERS = 4096


def first_of_each(points):
    """Where each distinct row of an array stands for the first time, in their order."""
    if points.shape[1] == 0:
        return np.arange(min(1, len(points)))
    rows = np.ascontiguousarray(points).view(np.dtype((np.void, points.itemsize * points.shape[1]))).ravel()
    return np.sort(np.unique(rows, return_index=True)[1])


class Sketch:
    """One space, with the points that the search holds, best first."""

    def __init__(self, space):
        self.space = space
        self.points = np.empty((0, space.decision_count), np.uint32)
        self.scores = np.empty(0, np.float32)

    def show(self, trace):
        """Adds what a trace's text shows; its point, or None when the trace is of another sketch."""
        try:
            return self.space.add(trace)
        except fl.Error as error:
            if error.code not in ("error_mismatch", *REFUSALS):
                raise
            return None

    def draw(self, count):
        return self.space.sample(count)

    def breed(self, count, generator):
        """Children of the points that are held: mutated once or twice, or of two parents. Better ones have more."""
        places = (len(self.points) * generator.random((2, count)) ** 2).astype(int)
        first, second = self.points[places[0]], self.points[places[1]]
        crossed = generator.random(count) < 0.2
        children = np.where(crossed[:, None], self.space.cross(first, second), first)
        children = self.space.mutate(children)
        again = generator.random(count) < 0.3
        children[again] = self.space.mutate(children[again])
        return children

    def keep(self, program, points, count):
        """Scores points and holds the best of them and of those before."""
        points = points[first_of_each(points)]
        scores = self.space.score(program.scorer, program.workload, points)
        points, scores = np.concatenate([self.points, points]), np.concatenate([self.scores, scores])
        order = np.argsort(-scores, kind="stable")
        order = order[first_of_each(points[order])[:count]]
        self.points, self.scores = points[order], scores[order]

    def forget_scores(self):
        """Before the ranker's next scores: the points that are held are points to be scored."""
        points, self.points, self.scores = self.points, self.points[:0], self.scores[:0]
        return points


class Sketches:
    """All spaces of a program.

    design_spaces   TVM's schedules, one for each sketch
    samples         candidates of a sketch that TVM draws at the most, to see what only they tell: where blocks can be
                    computed, and partitioned tiles
    """

    def __init__(self, program, module, design_spaces, seed, samples=32):
        self.program = program
        self.generator = np.random.default_rng(seed)
        self.sketches, refused = [], []
        for schedule in design_spaces:
            try:
                space = self.program.predictor.library.space(trace_json(schedule.trace), self.program.actions)
            except fl.Error as error:
                if error.code not in REFUSALS:
                    raise
                refused.append(error.message)
                continue
            self._open(space, module, schedule.trace, seed, samples)
        if refused:
            warnings.warn(f"foreloop does not search {len(refused)} of the {len(refused) + len(self.sketches)} sketches of "
                          f"a program, {'so it measures nothing of it' if not self.sketches else 'only the others'}: "
                          f"{refused[0]}", stacklevel=2)

    def _open(self, space, module, trace, seed, samples):
        space.seed(seed + len(self.sketches))
        sketch = Sketch(space)
        self.sketches.append(sketch)
        shown = [i for i, decision in enumerate(space.decisions()) if decision["kind"] == "locations" or
                 trace.insts[decision["instruction"]].kind.name == "SamplePartitionedTile"]
        missed, known = 0, self._values(space, shown)
        for i in range(samples if shown else 0):
            text = sample(module, trace, (seed + i) % (1 << 30) + 1)
            if text is not None:
                sketch.show(text)
            values = self._values(space, shown)
            missed, known = 0 if values > known else missed + 1, values
            if missed >= 8:  # it has shown most of them
                break

    @staticmethod
    def _values(space, chosen):
        decisions = space.decisions()
        return sum(decisions[i]["values"] for i in chosen)

    def find(self, trace):
        """(sketch number, point) of a trace's text, or None."""
        for i, sketch in enumerate(self.sketches):
            point = sketch.show(trace)
            if point is not None:
                return i, point
        return None

    def evolve(self, evaluations, generations=6, held=1024):
        """Looks at about so many candidates; afterwards each sketch holds the best that it has seen."""
        if not self.sketches:
            return
        each = max(64, evaluations // (4 * len(self.sketches)))
        for sketch in self.sketches:
            sketch.keep(self.program, np.concatenate([sketch.forget_scores(), sketch.space.trace_points(),
                                                      sketch.draw(each)]), held)
        left = max(0, evaluations - each * len(self.sketches))
        for _ in range(generations):
            shares = self._shares()
            for sketch, share in zip(self.sketches, shares):
                count = int(left / generations * share)
                if count and sketch.space.decision_count:
                    sketch.keep(self.program, sketch.breed(count, self.generator), held)

    def _shares(self):
        """Each sketch's part in the next generation: half evenly, half by how many of the best are its."""
        best = np.concatenate([np.full(min(256, len(s.scores)), i) for i, s in enumerate(self.sketches)])
        scores = np.concatenate([s.scores[:256] for s in self.sketches])
        top = best[np.argsort(-scores, kind="stable")[:256]]
        counts = np.bincount(top, minlength=len(self.sketches))
        return 0.5 / len(self.sketches) + 0.5 * counts / max(1, counts.sum())

    def ranked(self):
        """(score, sketch number, point) of all points that are held, best first."""
        scores = np.concatenate([s.scores for s in self.sketches])
        owners = np.concatenate([np.full(len(s.scores), i) for i, s in enumerate(self.sketches)])
        places = np.concatenate([np.arange(len(s.scores)) for s in self.sketches])
        for i in np.argsort(-scores, kind="stable"):
            yield float(scores[i]), int(owners[i]), self.sketches[owners[i]].points[places[i]]

    def others(self):
        """(sketch number, point): all points of small spaces, of others as many at random."""
        for owner, sketch in enumerate(self.sketches):
            every = sketch.space.info["points"] <= MOST_OTHERS
            for point in itertools.islice(sketch.space.enumerate(), MOST_OTHERS) if every else sketch.draw(MOST_OTHERS):
                yield owner, point

    def close(self):
        for sketch in self.sketches:
            sketch.space.close()
        self.sketches = []
