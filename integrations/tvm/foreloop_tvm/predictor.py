"""What the cost model and the search strategy share: the library, a bundle, the programs' states, what was measured,
and rankers that are refitted on it in C."""
import numpy as np

from .binding import bundle, library

# Distinct actions of a search at the most: three or so for each measured candidate, and those of single decisions.
TABLE = 1 << 20
# How trees are added for what was measured (bench/search/replay_pools.py --adapt compares).
REFIT = {"objective": "pairwise", "pairs": "mean", "pair_count": 16, "depth": 3, "eta": 0.1, "columns_by_node": 0.2}
MOST_TREES = 256


class Program:
    """One program: its state, an action table, a scorer, and the measured candidates."""

    def __init__(self, predictor, text):
        model = predictor.model
        self.predictor = predictor
        self.workload = model.workload(text)
        self.actions = model.actions(TABLE)
        self.scorer = model.scorer(self.actions, predictor.hardware)
        self.rows = np.empty((0, model.info["feature_count"]), np.float32)
        self.seconds = np.empty(0)
        self.known = set()
        self.ranker = None

    def score(self, sequences):
        """Scores of sequences of action ids: higher is faster."""
        return self.scorer.score(self.workload, sequences)

    def learn(self, sequences, seconds):
        """Takes measured candidates, those that it does not know yet: ids of their actions, and times in seconds,
        infinite for one that failed."""
        fresh = []
        for sequence, time in zip(sequences, seconds):
            key = np.asarray(sequence, np.uint32).tobytes()
            if key not in self.known:
                self.known.add(key)
                fresh.append((sequence, time))
        if fresh:
            rows = self.scorer.features_batch(self.workload, [sequence for sequence, _ in fresh])
            self.take(rows, [time for _, time in fresh])

    def take(self, rows, seconds):
        """The same of features that are known already. Refits the ranker: further trees on top of the model's, the
        more, the more has been measured."""
        self.rows = np.concatenate([self.rows, rows])
        self.seconds = np.concatenate([self.seconds, np.asarray(seconds, float)])
        if not self.predictor.refit or np.isfinite(self.seconds).sum() < 2:
            return
        rounds = int(np.clip(len(self.seconds) * self.predictor.trees_per_candidate, 4, MOST_TREES))
        ranker = self.predictor.library.train_ranker(self.rows, [len(self.rows)], self.seconds, rounds=rounds,
                                                     start=self.predictor.model.gbdt(), **getattr(self.predictor, "refit_options", REFIT))
        self.scorer.set_ranker(ranker)
        if self.ranker is not None:
            self.ranker.close()
        self.ranker = ranker

    def close(self):
        for part in (self.scorer, self.ranker, self.actions, self.workload):
            if part is not None:
                part.close()


class Predictor:
    """Scores candidates of any number of programs with one bundle.

    model                 a bundle, folder or packed file; None: the default one
    hardware              dict of foreloop_hardware fields; None: this machine
    refit                 False: measured candidates teach nothing
    trees_per_candidate   new trees for each measured candidate
    """

    def __init__(self, model=None, *, hardware=None, refit=True, trees_per_candidate=4):
        self.library = library()
        self.model = self.library.model(model or bundle())
        self.hardware, self.refit, self.trees_per_candidate = hardware, refit, trees_per_candidate
        self.programs = {}  # by text

    def program(self, module):
        """The Program of an IRModule."""
        return self.program_of(module.script())

    def program_of(self, text):
        if text not in self.programs:
            self.programs[text] = Program(self, text)
        return self.programs[text]

    def save(self, path):
        """Writes what was measured, as the features that this bundle makes of it."""
        arrays = {"fingerprint": np.uint64(self.model.info["fingerprint"])}
        for i, (text, program) in enumerate(self.programs.items()):
            arrays.update({f"text_{i}": text, f"rows_{i}": program.rows, f"seconds_{i}": program.seconds})
        with open(path, "wb") as file:
            np.savez(file, **arrays)

    def load(self, path):
        """Adds what another search with the same bundle has measured."""
        with np.load(path, allow_pickle=False) as arrays:
            if int(arrays["fingerprint"]) != self.model.info["fingerprint"]:
                raise ValueError(f"{path} is of another model bundle; measure again, or give that bundle to Predictor")
            for i in range((len(arrays.files) - 1) // 3):
                self.program_of(str(arrays[f"text_{i}"])).take(arrays[f"rows_{i}"], arrays[f"seconds_{i}"])

    def close(self):
        for program in self.programs.values():
            program.close()
        self.programs.clear()
        self.model.close()
