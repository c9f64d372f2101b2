"""A search strategy: decisions are mutated and scored in C, TVM replays only what is to be measured."""
import itertools

import numpy as np
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate, PySearchStrategy
from tvm.ir.utils import derived_object

from .cost_model import measured_seconds, median_seconds
from .predictor import Predictor, one_at_a_time
from .sketches import Sketches, first_of_each
from .traces import replay, trace_json

ELITE = 4  # candidates whose neighbours are looked at
MUTANTS = 64  # of each


@derived_object
class SearchStrategy(PySearchStrategy):
    """predictor: to share with a CostModel; None makes one.

    evaluations   candidates that are scored before each round of measuring. The more, the better the best score, but not
                  the best candidate: a search that looks at too many finds those where the ranker errs
    explore       part of a round that goes to the best of each sketch, wherever it ranks
    neighbours    part of a round that goes to mutants of the fastest candidates measured so far: where the ranker
                  errs, it errs there least
    chance        part of a round that is drawn at random
    samples       candidates of a sketch that TVM draws at the start
    """

    def __init__(self, predictor=None, *, evaluations=2048, explore=0.125, neighbours=0.25, chance=0.125, samples=32):
        super().__init__()
        self.predictor = predictor or Predictor()
        self.options = {"evaluations": evaluations, "explore": explore, "neighbours": neighbours, "chance": chance,
                        "samples": samples}
        self.statistics = {"scored": 0, "replayed": 0, "rejected": 0, "moved": 0}
        self.sketches = None

    def _initialize_with_tune_context(self, context):
        self.context = context

    @one_at_a_time
    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
        context = self.context
        self.module = context.mod
        self.max_trials, self.round = int(max_trials), int(num_trials_per_iter)
        self.done = 0
        self.program = self.predictor.program(self.module)
        self.seed = int(context.rand_state) % (1 << 30)
        self.sketches = Sketches(self.program, self.module, design_spaces, self.seed,
                                  self.options["samples"])
        self.measured, self.pending = set(), []  # (sketch, point) each, and those of this round with their actions
        self.fastest = []  # (seconds, sketch, point), ELITE of them
        self._remember(database)

    def _remember(self, database):
        """What the database holds of this program and target already."""
        if database is None or not database.has_workload(self.module):
            return
        workload, seconds = database.commit_workload(self.module), []
        records = list(database.get_top_k(workload, 1 << 16))
        # Which are those that ran, fastest first. Those that failed are not to be built again either.
        records += [record for record in database.get_all_tuning_records() if record.workload.same_as(workload) and
                    record.run_secs and np.isinf(median_seconds(record.run_secs))]
        for record in records:
            if record.target is not None and str(record.target) != str(self.context.target):
                continue
            found = self.sketches.find(trace_json(record.trace))
            if found and record.run_secs:
                self.measured.add((found[0], found[1].tobytes()))
                self.pending.append((*found, self.sketches.sketches[found[0]].space.intern(found[1])[0]))
                seconds.append(median_seconds(record.run_secs))
        self._learn(seconds)

    def _learn(self, seconds):
        """Takes the times of the pending candidates."""
        if self.pending:
            self.program.learn([sequence for _, _, sequence in self.pending], seconds)
        self.fastest += [(second, owner, point) for second, (owner, point, _) in zip(seconds, self.pending)
                         if np.isfinite(second) and point is not None]
        self.fastest = sorted(self.fastest, key=lambda entry: entry[0])[:ELITE]
        self.pending = []

    @one_at_a_time
    def post_tuning(self):
        if self.sketches:
            self.sketches.close()
        self.sketches = None

    @one_at_a_time
    def generate_measure_candidates(self):
        count = min(self.round, self.max_trials - self.done)
        if count <= 0 or not self.sketches.sketches:
            return None
        self.sketches.evolve(self.options["evaluations"])
        self.statistics["scored"] += self.options["evaluations"]
        candidates, self.pending = [], []
        for owner, point in self._order(count):
            if len(candidates) == count:
                break
            candidate = self._replay(owner, point)
            if candidate is not None:
                candidates.append(candidate)
        return candidates or None

    def _replay(self, owner, point):
        """The candidate of a point, None when TVM rejects it; either way it does not come again."""
        sketch = self.sketches.sketches[owner]
        space = sketch.space
        self.measured.add((owner, point.tobytes()))
        schedule = replay(self.module, space.trace(point), self.context.space_generator.postprocs or ())
        self.statistics["replayed"] += 1
        if schedule is None:
            self.statistics["rejected"] += 1
            return None
        text = trace_json(schedule.trace)
        made = sketch.show(text)  # None: TVM has tiled another extent, where a tile is of a tile's part; it is no point
        if not np.array_equal(made, point):  # TVM has moved a block: it is another candidate, known or not
            self.statistics["moved"] += 1
            key = (owner, text if made is None else made.tobytes())
            if key in self.measured:
                return None
            self.measured.add(key)
        self.pending.append((owner, made, self.program.actions.intern_records(f"[0,[{text}]]")[0] if made is None else
                             space.intern(made)[0]))
        return MeasureCandidate(schedule, ArgInfo.from_entry_func(schedule.mod, remove_preproc=True))

    def _order(self, count):
        """Points to be measured, most wanted first: the best, neighbours of the fastest, some of each sketch, some at
        random; then the rest, and at last what has never been looked at."""
        ranked = [(owner, point) for _, owner, point in self.sketches.ranked()
                  if (owner, point.tobytes()) not in self.measured]
        generator = self.sketches.generator
        shares = {part: int(count * self.options[part] + generator.random())
                  for part in ("explore", "neighbours", "chance")}
        neighbours = self._neighbours() if shares["neighbours"] else []
        shares["neighbours"] = min(shares["neighbours"], len(neighbours))
        shares["explore"] = min(shares["explore"], 2 * len(self.sketches.sketches))
        chosen = self._spread(ranked, count - sum(shares.values()))
        chosen += self._spread(neighbours, shares["neighbours"])
        seen = {(owner, point.tobytes()) for owner, point in chosen}
        by_sketch = [[c for c in ranked if c[0] == i and (i, c[1].tobytes()) not in seen]
                     for i in range(len(self.sketches.sketches))]
        # Sketches that have the fewest among the best come first.
        order = sorted(range(len(by_sketch)), key=lambda i: sum(owner == i for owner, _ in chosen))
        for turn in range(shares["explore"]):
            own = by_sketch[order[turn % len(order)]]
            if own:
                chosen.append(own.pop(0))
        for _ in range(shares["chance"]):
            owner = int(generator.integers(len(self.sketches.sketches)))
            chosen.append((owner, self.sketches.sketches[owner].draw(1)[0]))
        given = set()
        for owner, point in itertools.chain(chosen, ranked, self.sketches.others()):
            key = (owner, point.tobytes())
            if key not in self.measured and key not in given:
                given.add(key)
                yield owner, point

    def _neighbours(self):
        """Mutants of the fastest candidates that have not been measured, best score first."""
        found = []
        for owner in {owner for _, owner, _ in self.fastest}:
            space = self.sketches.sketches[owner].space
            if space.decision_count:
                parents = np.array([point for _, o, point in self.fastest if o == owner], np.uint32)
                mutants = space.mutate(np.repeat(parents, MUTANTS, axis=0))
                mutants = mutants[first_of_each(mutants)]
                scores = space.score(self.program.scorer, self.program.workload, mutants)
                found += [(score, owner, mutant) for score, mutant in zip(scores, mutants)
                          if (owner, mutant.tobytes()) not in self.measured]
        return [(owner, point) for _, owner, point in sorted(found, key=lambda entry: -entry[0])]

    @staticmethod
    def _spread(ranked, count):
        """The first ones of which no two differ in a single decision only, unless there are too few."""
        chosen = []
        for owner, point in ranked:
            if len(chosen) >= count:
                return chosen
            if all(other != owner or (point != taken).sum() > 1 for other, taken in chosen):
                chosen.append((owner, point))
        return chosen

    @one_at_a_time
    def notify_runner_results(self, measure_candidates, results):
        self.done += len(results)
        self._learn([measured_seconds(result) for result in results])

    def clone(self):
        """TVM tunes with a clone, which counts into the same statistics."""
        clone = SearchStrategy(self.predictor, **self.options)
        clone.statistics = self.statistics
        return clone
