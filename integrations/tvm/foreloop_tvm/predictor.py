"""What the cost model and the search strategy share: the library, a bundle, the programs' states, what was measured,
and rankers that are refitted on it in C."""
import functools
import os
import threading

import numpy as np

from .binding import bundle, library

# Distinct actions of a search at the most: three or so for each measured candidate, and those of single decisions.
TABLE = 1 << 20
# Those of candidates that were only scored, before their table is made anew: some ten thousand candidates.
PASSING = 1 << 16
# How trees are added for what was measured (bench/search/replay_pools.py compares).
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
        self.known, self.loaded = set(), set()
        self.ranker = None
        self.passing = None  # an action table and a scorer

    def score(self, sequences):
        """Scores of sequences of action ids: higher is faster."""
        return self.scorer.score(self.workload, sequences)

    def score_records(self, text):
        """The same of all records of a tuning log's text. Their actions do not stay, however many are scored."""
        if self.passing is None:
            actions = self.predictor.model.actions(TABLE)
            self.passing = actions, self.predictor.model.scorer(actions, self.predictor.hardware)
        actions, scorer = self.passing
        scorer.set_ranker(self.ranker)
        sequences = actions.intern_records(text)
        scores = scorer.score(self.workload, sequences)
        if max((int(ids.max(initial=0)) for ids in sequences), default=0) > PASSING:
            self._pass()
        return scores

    def _pass(self):
        if self.passing is not None:
            actions, scorer = self.passing
            scorer.close()
            actions.close()
        self.passing = None

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
            self._take_others(rows, np.array([time for _, time in fresh], float), self.loaded)

    def load(self, rows, seconds):
        """The same of features, as Predictor.save writes them."""
        held = set(_pairs(self.rows, self.seconds))
        self.loaded.update(_pairs(rows, seconds))
        self._take_others(rows, seconds, held)

    def _take_others(self, rows, seconds, held):
        new = np.array([pair not in held for pair in _pairs(rows, seconds)], bool)
        if new.any():
            self._take(rows[new], seconds[new])

    def _take(self, rows, seconds):
        """Refits the ranker: further trees on top of the model's, the more, the more has been measured."""
        self.rows = np.concatenate([self.rows, rows])
        self.seconds = np.concatenate([self.seconds, seconds])
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
        self._pass()
        for part in (self.scorer, self.ranker, self.actions, self.workload):
            if part is not None:
                part.close()


def one_at_a_time(method):
    """Of all threads that share a Predictor: what it holds of the library belongs to one thread at a time."""

    @functools.wraps(method)
    def locked(self, *arguments, **options):
        with self.predictor.lock:
            return method(self, *arguments, **options)

    return locked


def _pairs(rows, seconds):
    """What tells one measured candidate from another when only its features are there."""
    return [(row.tobytes(), second) for row, second in zip(np.asarray(rows, np.float32), seconds.tolist())]


def read_measured(path, model):
    """[(text, rows, seconds)] of a file of Predictor.save. ValueError when it is none, or of another model."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        fingerprint = int(arrays.pop("fingerprint"))
        if len(arrays) % 3:
            raise ValueError("a program has not its text, features and times")
        programs = [(arrays[f"text_{i}"], arrays[f"rows_{i}"], arrays[f"seconds_{i}"]) for i in range(len(arrays) // 3)]
    except OSError:
        raise
    except Exception as error:  # whatever numpy and zipfile make of other files
        raise ValueError(f"{path} is no file of Predictor.save, or is damaged: {error}") from error
    if fingerprint != model.info["fingerprint"]:
        raise ValueError(f"{path} is of another model bundle; measure again, or give that bundle to Predictor")
    for text, rows, seconds in programs:
        if text.shape != () or text.dtype.kind != "U":
            raise ValueError(f"{path} is damaged: a program is no text")
        if seconds.ndim != 1 or rows.dtype != np.float32 or rows.shape != (*seconds.shape, model.info["feature_count"]):
            raise ValueError(f"{path} is damaged: features of {rows.dtype} and shape {rows.shape} beside times of shape "
                             f"{seconds.shape}")
        if seconds.dtype != np.float64 or not (seconds > 0).all() or np.isinf(rows).any():
            raise ValueError(f"{path} is damaged: a time is not above 0, or a feature is infinite")
    return [(str(text), rows, seconds) for text, rows, seconds in programs]


class Predictor:
    """Scores candidates of any number of programs with one bundle.

    model                 a bundle, folder or packed file; None: the default one
    hardware              dict of foreloop_hardware fields; None: this machine
    refit                 False: measured candidates teach nothing
    trees_per_candidate   new trees for each measured candidate
    """

    def __init__(self, model=None, *, hardware=None, refit=True, trees_per_candidate=4):
        self.lock = threading.RLock()
        self.library = library()
        self.model = self.library.model(model or bundle())
        self.hardware, self.refit, self.trees_per_candidate = hardware, refit, trees_per_candidate
        self.programs = {}  # by text

    def program(self, module):
        """The Program of an IRModule."""
        return self.program_of(module.script())

    def program_of(self, text):
        with self.lock:
            if text not in self.programs:
                self.programs[text] = Program(self, text)
            return self.programs[text]

    def save(self, path):
        """Writes what was measured, as the features that this bundle makes of it."""
        with self.lock:
            arrays = {"fingerprint": np.uint64(self.model.info["fingerprint"])}
            for i, (text, program) in enumerate(self.programs.items()):
                arrays.update({f"text_{i}": text, f"rows_{i}": program.rows, f"seconds_{i}": program.seconds})
        whole = f"{os.fspath(path)}.{os.getpid()}"  # the file is replaced whole or not at all
        with open(whole, "wb") as file:
            np.savez(file, **arrays)
        os.replace(whole, path)

    def load(self, path):
        """Adds what another search with the same bundle has measured, all or, when the file is damaged, nothing. What
        is there already, or comes again from a database, counts once."""
        measured = read_measured(path, self.model)
        with self.lock:
            for text, rows, seconds in measured:
                self.program_of(text).load(rows, seconds)

    def close(self):
        with self.lock:
            for program in self.programs.values():
                program.close()
            self.programs.clear()
            self.model.close()
