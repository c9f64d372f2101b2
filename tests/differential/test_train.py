"""What training measures with: metrics against a plain reference, the split's promise, how peers are named, the score
network, refit.py and train.py (what needs torch and safetensors where they are), and that all of it can go wrong."""
import argparse
import contextlib
import dataclasses
import hashlib
import importlib.util
import io
import itertools
import json
import math
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "train"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "train" / "peers"))
import compare  # noqa: E402
import cross_validate  # noqa: E402
import dataset  # noqa: E402
import evaluate  # noqa: E402
import metrics  # noqa: E402
import random_bundle  # noqa: E402
import ranker  # noqa: E402
import replay  # noqa: E402
import score_network  # noqa: E402
import split  # noqa: E402

passed = failed = 0


def check(name, right):
    global passed, failed
    passed, failed = passed + bool(right), failed + (not right)
    print(("ok     " if right else "FAILED ") + name)


def plain_row(times, order):
    """The definitions of metrics.py, one at a time, for a strict order (the first is predicted fastest)."""
    best, rank = min(times), {item: place for place, item in enumerate(order)}
    pairs = [(i, j) for i in range(len(times)) for j in range(len(times)) if times[i] < times[j]]
    row = {f"top{k}": best / min(times[i] for i in order[:k]) for k in metrics.TOP}
    row["pairwise"] = sum(rank[i] < rank[j] for i, j in pairs) / len(pairs)
    gain = sum(best / times[item] / math.log2(2 + place) for place, item in enumerate(order[:10]))
    ideal = sum(best / t / math.log2(2 + place) for place, t in enumerate(sorted(times)[:10]))
    row["ndcg10"] = gain / ideal
    for k in metrics.REGRET:
        row[f"regret{k}"] = min(times[i] for i in order[:k]) / best - 1 if len(times) > k else math.nan
    return row


def same(a, b, names=metrics.NAMES):
    return all(math.isnan(a[n]) and math.isnan(b[n]) or abs(a[n] - b[n]) < 1e-12 for n in names)


def test_metrics():
    random = np.random.default_rng(1)
    for n in (2, 7, 20, 70):
        times, scores = random.exponential(size=n) + 0.1, random.permutation(n).astype(float)
        check(f"metrics of {n} candidates",
              same(metrics.of_workload(times, scores), plain_row(list(times), list(np.argsort(-scores)))))
    times = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    rows = [metrics.of_workload(times, -np.array(order)) for order in itertools.permutations(range(5))]
    expected = metrics.random_order(times)
    check("random order is the mean over all orders",
          all(abs(np.mean([row[name] for row in rows]) - expected[name]) < 1e-9
              for name in ("top1", "top5", "pairwise", "ndcg10", "first1")))
    rows = [plain_row(list(np.arange(1.0, 10.0)), list(random.permutation(9))) for _ in range(20000)]
    expected = metrics.random_order(np.arange(1.0, 10.0))
    check("random order's regret", abs(np.mean([row["regret8"] for row in rows]) - expected["regret8"]) < 0.01)
    perfect = metrics.of_workload(times, -times)
    check("a perfect ranking", perfect["top1"] == perfect["ndcg10"] == perfect["pairwise"] == 1)
    check("equal scores count half, and stand in the order of the records",
          metrics.pairwise(times, np.zeros(5)) == 0.5 and metrics.of_workload(times, np.zeros(5))["top1"] == 1 / 3)
    check("the ceiling of a noiseless measurement is 1",
          metrics.ceiling(np.repeat(times[:, None], 3, 1))["top1"] == 1)
    near, scores = np.array([1.0, 1.04, 1.3, 1.3, 4.0]), np.array([1, 2, 3, 3, 0.0])
    check("pairs by the ratio of their times", metrics.pairs_by_ratio(near, scores).tolist() ==
          [[1, 0], [0, 0], [0, 0], [4, 0], [4, 4]])
    times, scores = random.exponential(size=40) + 0.1, random.integers(0, 9, 40)
    classes = metrics.pairs_by_ratio(times, scores).sum(0)
    check("their classes hold every pair once",
          classes[0] == 40 * 39 / 2 and abs(classes[1] / classes[0] - metrics.pairwise(times, scores)) < 1e-12)
    times = np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    noisy = times[:, None] * np.exp(0.5 * random.normal(size=(5, 3)))
    check("the ceiling of a noisy one is below", metrics.ceiling(noisy)["pairwise"] < 1)
    rows = [metrics.of_workload(random.exponential(size=30) + 0.1, random.normal(size=30)) for _ in range(40)]
    means, intervals = metrics.mean(rows), metrics.intervals(rows)
    check("intervals hold the means", all(math.isnan(means[name]) or low <= means[name] <= high
                                          for name, (low, high) in intervals.items()))
    width = intervals["top1"][1] - intervals["top1"][0]
    check("their width is that of the normal approximation",
          abs(width / (2 * 1.96 * np.std([row["top1"] for row in rows]) / math.sqrt(40)) - 1) < 0.15)
    check("unknown regret stays unknown", math.isnan(means["regret32"]) and math.isnan(intervals["regret32"][0]))
    means = metrics.mean([metrics.of_workload([1.0, 2.0], [0, 1]), metrics.of_workload([10.0, 10.5], [1, 0])])
    check("sums weight slow workloads", abs(means["sum1"] - 11 / 12) < 1e-4 and abs(means["top1"] - 0.75) < 1e-4)


def test_split():
    table = split.read()
    check("no near-duplicates straddle in split.json", table and not split.straddling(table))
    a = next(a for a in table for b in table if a != b and split.near(a, b) and table[a] == "training")
    check("the check sees a straddling pair", split.straddling({**table, a: "test"}))
    check("adding what is known changes nothing", split.extend(table, table) == table)
    random = np.random.default_rng(2)
    keys = [("dense", tuple((2 ** random.uniform(0, 8, 3)).astype(int).tolist())) for _ in range(60)]
    whole = split.extend({}, keys)
    check("random signatures: no near-duplicates straddle", not split.straddling(whole))
    check("every part occurs", {"training", "validation", "test"} <= set(split.extend(
        {}, [("op", (4 ** i, 4 ** (9 - i))) for i in range(10)] + [("po", (4 ** i,)) for i in range(10)]).values()))
    grown = {}
    for key in keys:
        grown = split.extend(grown, [key])
    check("one by one: nothing straddles", not split.straddling(grown))
    check("one by one: parts are kept", all(split.extend(grown, [("dense", (7, 7, 7))])[key] == grown[key]
                                            for key in grown))
    program = "\n".join(['for i, j in T.grid(8, 16):', '    with T.sblock("copy"):',
                         '        v_i, v_j = T.axis.remap("SS", [i, j])',
                         'for i, j, k in T.grid(8, 16, 32):', '    with T.sblock("matmul_1"):',
                         '        v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])'])
    check("signature of a program", split.signature(program) == ("matmul", (8, 16, 32)))
    check("signature of no program", split.signature("") == ("other", ()))
    check("signatures survive writing", all(split.key_of(split.text_of(key)) == key for key in [*table, ("other", ())]))
    root = pathlib.Path(__file__).resolve().parents[2]
    found = {split.signature(path.read_text()) for path in root.glob("train/data/*/*/workload.txt")}
    check("every operator of train/data stands in split.json", found and found <= set(table))


def test_peers():
    every = [compare.parse_peer(text) for text in compare.PEERS.split(",")]
    check("the peers by default", {peer.name for peer in every} <= set(compare.NAMES) and
          [str(peer) for peer in every] == compare.PEERS.split(","))
    peer = compare.parse_peer("final-text/10:2")
    check("a peer of few schedules and seeds", (peer.name, peer.schedules, peer.seeds) == ("final-text", 10, 2))
    for text in ("", "nothing", "actions/0", "actions/x", "actions:", "actions/3/4", "final-text:0"):
        try:
            compare.parse_peer(text)
            check(f"{text!r} is no peer", False)
        except argparse.ArgumentTypeError:
            check(f"{text!r} is no peer", True)

    @dataclasses.dataclass
    class Pool:
        candidates: list

    check("few schedules are spread over all", compare.thinned(Pool(list(range(11))), 3).candidates == [0, 5, 10])
    check("all are kept where there are no more",
          all(compare.thinned(Pool([1, 2]), count).candidates == [1, 2] for count in (0, 2, 5)))


def test_sets():
    root = pathlib.Path(__file__).resolve().parents[2]
    texts = {path.parent.name: path.read_text() for path in sorted(root.glob("train/data/*/*/workload.txt"))}
    sets = lambda names: [dataset.Operator(name, root / "none", texts[name], [], 0) for name in names]  # noqa: E731
    first, second = "softmax_4096_64", "dense_256_256_1024"
    groups = [(np.full((n, 2), n, np.float32), np.arange(n, dtype=float)) for n in (3, 4, 5)]
    found = dataset.joined(sets([first, second, first + "_searched"]), groups)
    check("sets stay, and those of one program are one more", len(found) == 4 and all(a is b for a, b in zip(found, groups)))
    check("it holds the candidates of both", found[-1][0].shape == (8, 2) and found[-1][0][2:4, 0].tolist() == [3, 5] and
          found[-1][1].tolist() == [0, 1, 2, 0, 1, 2, 3, 4])
    check("different programs are not joined", len(dataset.joined(sets([first, second]), groups[:2])) == 2)

    pool = [dataclasses.replace(operator, candidates=[dataset.Candidate(i, [(str(i), {})], [], [1.0], 1.0) for i in range(9)])
            for operator in sets(texts)]
    options = argparse.Namespace(leave_out=None, split=split.TABLE, with_validation=False, family_but=None)
    plain, validation = dataset.choose(options, pool)
    tested = split.key_of("depthwise 1x96x28x28x3x3")
    more, _ = dataset.choose(argparse.Namespace(**{**vars(options), "family_but": split.text_of(tested)}), pool)
    added = [operator.signature for operator in more[len(plain):]]
    check("training without the family, validation apart", len(plain) > 100 and validation and not any(
        o.family == "depthwise" for o in plain) and not {o.signature for o in plain} & {o.signature for o in validation})
    check("the family but for near-duplicates of one", added and {key[0] for key in added} == {"depthwise"} and
          not any(split.near(key, tested) for key in added))


def test_cross_validation():
    root = pathlib.Path(__file__).resolve().parents[2]
    texts = {path.parent.name: path.read_text() for path in sorted(root.glob("train/data/zen5/*/workload.txt"))}
    pool = [dataset.Operator(name, root / "none", text, [dataset.Candidate(i, [], [], [1.0 + i], 1.0 + i) for i in range(9)], 0)
            for name, text in texts.items()]
    seen = []

    def fastest_first(training, tested, seed):
        seen.append((training, tested, seed))
        return [-operator.times for operator in tested]

    run, cross_validate.run_foreloop = cross_validate.run_foreloop, fastest_first
    rows = cross_validate.cross_validate(None, argparse.Namespace(folds=3, peers=[], seeds=2), pool)["foreloop"]
    cross_validate.run_foreloop = run
    check("every operator is ranked, by the scores", len(rows) == len(pool) and all(row["top1"] == 1 for row in rows))
    check("by every seed", sorted(seed for _, _, seed in seen) == [0, 0, 0, 1, 1, 1])
    check("in one fold", sorted(o.name for _, tested, seed in seen if seed == 0 for o in tested) == sorted(texts))
    check("from none of its near-duplicates", not any(split.near(a.signature, b.signature)
                                                      for training, tested, _ in seen for a in training for b in tested))
    check("from all others", all(len(training) + len(tested) == len(pool) for training, tested, _ in seen))


def plain_score(network, row):
    """The definition in weights/FORMAT.md, one number at a time."""
    limit = float(network.limit[0])
    values = [min(max((float(x) - float(shift)) * float(scale), -limit), limit)
              for x, shift, scale in zip(row, network.shift, network.scale)]
    for number, (weight, bias) in enumerate(network.layers):
        values = [max(x, 0.0) for x in values] if number else values
        values = [float(b) + sum(float(w) * x for w, x in zip(line, values)) for line, b in zip(weight, bias)]
    return values[0]


def test_network():
    random = np.random.default_rng(5)
    rows = (random.normal(3, 2, (40, 7)) * [1, 10, 0, 1, 1, 1e-3, 1]).astype(np.float32)
    rows[:, 3] = 7
    shift, scale = score_network.standardisation(rows)
    check("what does not vary is not read", (scale == 0).tolist() == [False, False, True, True, False, False, False])
    normal = (rows - shift) * scale
    check("the other columns are standardised", np.allclose(normal[:, scale > 0].mean(0), 0, atol=1e-5) and
          np.allclose(normal[:, scale > 0].std(0), 1, atol=1e-5))
    layers = [(random.normal(size=(out, into)).astype(np.float32), random.normal(size=out).astype(np.float32))
              for into, out in ((7, 5), (5, 3), (3, 1))]
    network = score_network.Network(shift, scale, np.float32([1.5]), layers)
    far = np.concatenate([rows, rows * 100])
    plain = [plain_score(network, row) for row in far]
    check("the network's scores", np.allclose(network.score(far), plain, rtol=1e-5, atol=1e-5))

    parser = argparse.ArgumentParser()
    score_network.add_options(parser)
    program = "for i in T.grid({}):\n    with T.sblock(\"f\"):\n        v_i = T.axis.remap(\"S\", [i])\n"
    many = [dataset.Operator(str(i), pathlib.Path("none"), program.format(i + 2), [], 0)
            for i in range(score_network.LEAST)]
    chosen = [score_network.chosen(parser.parse_args(words), operators, 7) for words, operators in (
        ([], many), ([], many[1:]), ([], 3 * many[1:]), (["--network", '{"width": 8, "seed": 1}'], many[:2]),
        (["--no-network"], many))]
    check("a network by default, but not from few operators, in however many sets; with options at any rate, or never",
          chosen == [score_network.Settings(seed=7), None, None, score_network.Settings(width=8, seed=1), None])

    # The library's scores of a bundle whose network this is, the features being whatever they are.
    library = dataset.fl.load()
    with tempfile.TemporaryDirectory() as folder:
        manifest = random_bundle.make(folder, 3, kinds=4, layers=1, features=7, network=[5, 3])
        random_bundle.write_safetensors(pathlib.Path(folder) / "score_network.safetensors", network.tensors())
        booster = ranker.xgboost.Booster(model_file=folder + "/ranker.json")
        with library.model(folder) as model, model.actions() as table, model.scorer(table, {}) as scorer, \
                model.workload(latent=random.normal(size=model.info["latent_size"]).astype(np.float32)) as workload:
            sequences = [table.intern([random_bundle.random_action(random, manifest["actions"]) for _ in range(6)])
                         for _ in range(200)]
            read = scorer.features_batch(workload, sequences)
            expected = ranker.score(booster, read, manifest["features"], network)
            found = scorer.score(workload, sequences)
            check("the library's scores are those of Python's trees and network",
                  np.ptp(network.score(read)) > 0.1 and np.allclose(found, expected, atol=1e-5))

        # Whether training refuses what the library does. The bound of the first layer is taken of what is read alone.
        def refused(change):
            other = score_network.Network(*(np.copy(values) for values in (shift, scale, network.limit)),
                                          [(np.copy(weight), np.copy(bias)) for weight, bias in layers])
            change(other)
            random_bundle.write_safetensors(pathlib.Path(folder) / "score_network.safetensors", other.tensors())
            try:
                library.model(folder).close()
                return other.fault() is not None, False
            except dataset.fl.Error:
                return other.fault() is not None, True

        def put(name, index, value):
            return lambda other: getattr(other, name).__setitem__(index, value)

        def lay(number, part, index, value):
            return lambda other: other.layers[number][part].__setitem__(index, value)

        for label, change, wrong in (
                ("as it is", lambda other: None, False), ("a weight of NaN", lay(1, 0, (0, 0), np.nan), True),
                ("an infinite bias", lay(2, 1, 0, np.inf), True), ("a shift of NaN", put("shift", 3, np.nan), True),
                ("no column", put("scale", slice(None), 0), True), ("a limit of 0", put("limit", 0, 0), True),
                ("a bias close to the bound", lay(2, 1, 0, 0.999e30), False),
                ("a bias beyond the bound", lay(2, 1, 0, -1.001e30), True),
                ("weights beyond it", lay(0, 0, (0, 0), 0.7e30), True),
                ("such of what is not read", lay(0, 0, (0, 2), 1e36), False),
                ("a far limit", put("limit", 0, 0.999e6), False), ("one too far", put("limit", 0, 1.001e6), True)):
            check(f"training and the library agree on a network: {label}", refused(change) == (wrong, wrong))

    if importlib.util.find_spec("torch"):
        test_network_training(random)
        try:
            score_network.train([(rows, np.arange(1.0, 41.0))], score_network.Settings(epochs=1, weight=1e30))
            check("a network that the library would refuse is no result", False)
        except SystemExit as error:
            check("a network that the library would refuse is no result", "1e+30" in str(error))
    else:
        print("without torch: the network's training is not tested")


def test_network_training(random):
    # Only a product of two columns decides, which nothing linear tells.
    groups = []
    for n in random.integers(10, 40, 24):
        rows = random.normal(size=(n, 4)).astype(np.float32)
        rows[:, 3] = 1
        groups.append((rows, np.exp(-rows[:, 0] * rows[:, 1] + 0.01 * random.normal(size=n))))
    settings = score_network.Settings(width=32, epochs=60, batch=3, seed=4)
    found = score_network.train(groups[:16], settings)
    pairs = np.mean([metrics.pairwise(times, found.score(rows)) for rows, times in groups[16:]])
    check(f"the network learns what acts together: {pairs:.3f} of the pairs", pairs > 0.85)
    check("what does not vary changes nothing", np.array_equal(
        found.score(groups[0][0]), found.score(groups[0][0] + np.float32([0, 0, 0, 9]))))
    short = dataclasses.replace(settings, epochs=3)
    first, again, other, halved = (score_network.train(groups, dataclasses.replace(short, **change)).tensors()
                                   for change in ({}, {}, {"seed": 5}, {"weight": 0.5}))
    check("the same settings give the same network, another seed another one",
          all(np.array_equal(first[name], again[name]) for name in first) and
          not np.array_equal(first["0.weight"], other["0.weight"]))
    check("the weight in the sum is in the last layer", all(
        np.array_equal(halved[name], values * (0.5 if name.startswith("2") else 1)) for name, values in first.items()))
    check("the shapes of the bundle", [values.shape for values in first.values()] ==
          [(4,), (4,), (1,), (32, 4), (32,), (32, 32), (32,), (1, 32), (1,)] and
          {str(values.dtype) for values in first.values()} == {"float32"})

    pool = [dataset.Operator(str(i), pathlib.Path("none"), str(i), [], 0) for i in range(len(groups))]
    rows = ranker.cross_validate(pool, groups, [i % 3 for i in range(len(groups))], list("abcd"),
                                 ranker.Settings(rounds=20, columns=1.0), settings, seeds=1)
    figures = {part: metrics.mean(table)["pairwise"] for part, table in rows.items()}
    check(f"cross-validated: {figures}", list(figures) == ["trees", "network", "trees and network"] and
          all(len(table) == len(groups) for table in rows.values()) and min(figures.values()) > 0.8 and
          figures["trees and network"] > min(figures.values()))


def test_fields():
    def message(settings, text):
        try:
            dataset.fields_of(settings)(text)
        except argparse.ArgumentTypeError as error:
            return str(error)

    network, trees = score_network.Settings, ranker.Settings
    for settings in (network, trees):
        every = dataclasses.asdict(settings())
        check(f"{settings.__module__}: the settings by default are allowed, each with a range",
              dataset.fields_of(settings)(json.dumps(every)) == every)
        for name in every:
            for text in ("null", '"1"', "[1]", "NaN", "-1e400", "1e400", *(["true"] if name != "exponential" else [])):
                found = message(settings, f'{{"{name}": {text}}}')
                check(f"{settings.__module__}: {name} is not {text}", found and found.startswith(f"{name} must be ") and
                      "\n" not in found)
    for settings, text in ((network, '{"temperature": 0}'), (network, '{"temperature": -1}'), (network, '{"rate": 0}'),
                           (network, '{"weight": 0}'), (network, '{"weight": -0.0}'), (network, '{"limit": 0}'),
                           (network, '{"limit": 1.1e6}'),
                           (network, '{"width": 0}'), (network, '{"width": 4097}'), (network, '{"width": 8.0}'),
                           (network, '{"layers": -1}'), (network, '{"layers": 8}'), (network, '{"epochs": 0}'),
                           (network, '{"epochs": 1.5}'), (network, '{"batch": 0}'), (network, '{"decay": -0.1}'),
                           (network, '{"seed": -1}'), (network, '{"seed": 1e3}'), (network, '{"wide": 8}'),
                           (network, "[]"), (network, "null"), (network, "{"), (network, "[" * 100000),
                           (network, '{"limit": ' + "9" * 400 + "}"), (trees, '{"rounds": 0}'), (trees, '{"depth": 0}'),
                           (trees, '{"eta": 0}'), (trees, '{"subsample": 2}'), (trees, '{"objective": "pears"}'),
                           (trees, '{"exponential": 1}')):
        check(f"{settings.__module__}: {text[:30]} is refused", message(settings, text))
    check("what is allowed at the edge",
          dataset.fields_of(network)('{"weight": -1, "decay": 0, "layers": 0, "limit": 1e6}'))
    try:
        dataset.folds([dataset.Operator("a", pathlib.Path("none"), "", [], 0)], 5)
        check("no cross-validation of one cluster", False)
    except SystemExit:
        check("no cross-validation of one cluster", True)


def script(main, *words):
    """(the status or the message that a script ended with, what it wrote to stderr)"""
    given, sys.argv = sys.argv, [main.__module__ + ".py", *map(str, words), "--ranker", '{"rounds": 4, "depth": 2}']
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            return dataset.run(main), errors.getvalue()
        except SystemExit as error:
            return error.code, errors.getvalue()
        finally:
            sys.argv = given


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else None


def write_operator(library, source, records, data, states):
    """An operator's folder in `data` with its first records, and such a cache of its states as replay.py makes, but of
    programs that are made up: each action adds a line of attributes, which properties.py reads."""
    folder = data / source.name
    folder.mkdir(parents=True)
    text = (source / "workload.txt").read_text()
    (folder / "workload.txt").write_text(text)
    lines = replay.read_text(source / "database_tuning_record.json").splitlines(keepends=True)[:records]
    (folder / "database_tuning_record.json").write_text("".join(lines))
    texts, trajectories = {}, []
    for candidate in dataset.read_operator(library, folder).candidates:
        path, changed = {}, text
        for action, instructions in zip(candidate.actions, candidate.instructions):
            number = sum(json.dumps(action).encode())
            attribute = ("parallel", "vectorize", "unroll_explicit")[number % 3]
            changed += f'        T.sblock_attr({{"meta_schedule.{attribute}": {number}}})\n'
            name = hashlib.sha256(changed.encode()).hexdigest()
            texts[name], path[instructions] = changed, name
        trajectories.append({"line": candidate.line, "states": sorted(path.items())})
    states.mkdir(exist_ok=True)
    for ending, items in ((".texts.jsonl.gz", [{"hash": name, "text": found} for name, found in texts.items()]),
                          (".jsonl.gz", trajectories)):
        replay.write_gzip(states / (source.name + ending), "".join(json.dumps(item) + "\n" for item in items))


def test_training():
    """train.py's whole course on a few records: a bundle that the library ranks with, the same one again."""
    import train

    root = pathlib.Path(__file__).resolve().parents[2]
    library = dataset.fl.load()

    def without_times(bundle):
        files = content(bundle)
        manifest = json.loads(files["model.json"])
        del manifest["training"]["date"], manifest["training"]["seconds"]
        return {**files, "model.json": manifest}

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data, states = folder / "data", folder / "states"
        for name in ("train/data/zen5/pool_64", "train/data/zen5/rsum_1024", "train/data/zen5/sm_1536_128",
                     "examples/data/conv3x3_96"):
            write_operator(library, root / name, 24, data, states)

        def course(work, bundle, seed=3):
            return script(
                train.main, "--states", states, "--work", folder / work, "--bundle", folder / bundle, "--seed", seed,
                "--leave-out", "conv3x3_96", "--folds", "2", "--threads", "1", "--vocabulary", "300", "--layers", "1",
                "--hidden", "32", "--window", "64", "--stride", "56", "--steps", "3", "--schedules", "4",
                "--intermediate", "1", "--epochs", "3", "--network", '{"epochs": 1, "width": 4, "layers": 1}', data)

        bundle = folder / "bundle"
        status, errors = course("work", "bundle")
        check("train.py ends well" + (f": {status}: {errors[-300:]}" if status else ""), status == 0)
        if status:
            return
        check("the bundle's files", sorted(content(bundle)) == [
            "config.json", "encoder.safetensors", "model.json", "ranker.json", "score_network.safetensors",
            "tokenizer.json", "transition.safetensors"])
        training = json.loads((bundle / "model.json").read_text())["training"]
        check("what it has learnt from, and what not",
              training["operators"] == ["pool_64", "rsum_1024", "sm_1536_128"] and
              training["left_out"] == ["conv3x3_96"] and training["test"]["left_out"]["schedules"] > 0)
        operator = dataset.read_operator(library, data / "conv3x3_96")
        scores = evaluate.score(library, bundle, [operator])[0]
        check("the library ranks with it", len(scores) == len(operator.candidates) and np.isfinite(scores).all() and
              np.ptp(scores) > 0)
        check("the same seed: the same bytes", course("other", "again")[0] == 0 and
              without_times(folder / "again") == without_times(bundle))
        check("the stages that are done: the same bytes", course("work", "resumed")[0] == 0 and
              without_times(folder / "resumed") == without_times(bundle))
        check("another seed: other weights", course("third", "another", 4)[0] == 0 and
              content(folder / "another")["encoder.safetensors"] != content(bundle)["encoder.safetensors"])


def test_refit():
    """refit.py on a small bundle, in place: a new one, or what was there."""
    import refit
    from safetensors.numpy import load_file

    root = pathlib.Path(__file__).resolve().parents[2]

    def call(*words):
        return script(refit.main, *words, "--leave-out", "", root / "examples" / "data")

    with tempfile.TemporaryDirectory() as folder:
        bundle, fresh = pathlib.Path(folder) / "bundle", pathlib.Path(folder) / "fresh"
        random_bundle.make(bundle, 3, kinds=4, layers=1, features=30, network=[5])
        network = ["--network", '{"epochs": 1, "width": 4, "layers": 1}']
        before = content(bundle)
        check("settings that make no network end it", "1e+30" in str(call(
            "--bundle", bundle, "--out", bundle, "--network", '{"epochs": 1, "weight": 1e30}')[0]))
        check("the bundle is as it was", content(bundle) == before)

        genuine = refit.check
        refit.check = lambda library, staged, *_: (_ for _ in ()).throw(dataset.fl.Error("error_value", str(staged)))
        for out in (bundle, fresh):
            status, errors = call("--bundle", bundle, "--out", out, "--no-network")
            check("a bundle that the library refuses: one line", status == 1 and errors.count("\n") == 1 and
                  errors.startswith("refit.py: error_value"))
            check("no bundle is half written", content(bundle) == before and not fresh.exists())
        refit.check = genuine

        (bundle / "score_network.safetensors").write_bytes(b"broken")
        status, errors = call("--bundle", bundle, "--out", fresh, *network)
        check("a broken network is learnt anew", status == 0 and "network is not read" in errors)
        manifest = json.loads((fresh / "model.json").read_text())
        check("the bundle's files, and no others", content(fresh).keys() == before.keys() and manifest["score_network"])
        check("the network's file names the features",
              load_file(fresh / "score_network.safetensors")["features"].tobytes().decode() ==
              "".join(name + "\n" for name in manifest["features"]))
        (bundle / "score_network.safetensors").unlink()
        check("a missing one too, in place", call("--bundle", bundle, "--out", bundle, *network)[0] == 0 and
              content(bundle) == content(fresh))
        check("or it is left out", call("--bundle", bundle, "--out", bundle, "--no-network")[0] == 0 and
              not (bundle / "score_network.safetensors").exists() and
              json.loads((bundle / "model.json").read_text())["format_version"] == 1)

        held = content(bundle)
        (fresh / "score_network.safetensors").unlink()
        (fresh / "encoder.safetensors").write_bytes(b"broken")
        status, errors = call("--bundle", fresh, "--out", bundle)
        check("another broken file: one line", status == 1 and errors.count("\n") == 1 and
              "encoder.safetensors" in errors)
        check("and nothing is written", content(bundle) == held)
        (fresh / "model.json").write_text("[]")
        check("no manifest: one line", "model.json" in str(call("--bundle", fresh, "--out", bundle)[0]))
        check("no such coordinate: one line", "--latent 999" in str(call(
            "--bundle", bundle, "--out", fresh, "--latent", "0,999")[0]))


test_metrics()
test_split()
test_sets()
test_peers()
test_cross_validation()
test_fields()
test_network()
if importlib.util.find_spec("torch") and importlib.util.find_spec("safetensors"):
    test_refit()
    test_training()
else:
    print("without torch and safetensors: refit.py and train.py are not tested")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
