"""The score network: a small multilayer perceptron over the columns that the trees read, added to their margin.

It learns by itself, not what the trees leave open: models that err differently add up to more than either
(EXPERIMENTS.md, "A network beside the trees"). Groups are the ranker's: [(features [n][f], times [n])]. The loss is
listwise: the cross entropy between the softmax of a group's scores and that of its log speeds / temperature, all groups
alike. So a score is about a log speed / temperature, but for the group's mean, on one scale for all groups.

The hardware has no columns here, as in all of this training: with fewer than three kinds of machine a network would
tell the groups apart by them, and nothing else.
"""
import dataclasses

import numpy as np

import dataset

LEAST = 20  # different operators: what a network learns from fewer is no help to the trees
BOUND, LIMIT = 1e30, 1e6  # the most of any layer's output, and of `limit` (weights/FORMAT.md)


@dataclasses.dataclass(frozen=True)
class Settings:
    width: int = dataset.whole(64, 1, 4096)
    layers: int = dataset.whole(2, 0, 7)  # hidden ones
    epochs: int = dataset.whole(20, 1, 10**6)
    batch: int = dataset.whole(4, 1, 10**6)  # groups, of like sizes
    rate: float = dataset.number(2e-3, 1e-30, 1e30)  # the highest of AdamW's one cycle
    decay: float = dataset.number(0.01, 0, 1e30)
    temperature: float = dataset.number(0.5, 1e-30, 1e30)
    limit: float = dataset.number(4.0, 1e-30, LIMIT)  # standard deviations from the mean at which a column is cut off
    weight: float = dataset.number(1.0, -1e30, 1e30, but=0)  # of the network in the sum, folded into its last layer
    seed: int = dataset.whole(0, 0, 2**31 - 1)


def add_options(parser):
    """The options of `chosen`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--network", type=dataset.fields_of(Settings), metavar="JSON",
                       help="learn a score network however few operators there are; fields of score_network.Settings, "
                       'such as {} or {"temperature": 1}')
    which.add_argument("--no-network", action="store_true", help="trees alone, without a score network")


def chosen(arguments, operators, seed=0):
    """The Settings that the options ask for, None for no network; by default there is one from LEAST operators on.
    Those of one signature (split.py) are one: more schedules of it, or another machine's, are not another operator."""
    if arguments.no_network:
        return None
    different = len({operator.signature for operator in operators})
    if arguments.network is None and different < LEAST:
        print(f"operators of {different} signatures (split.py): trees alone, a score network needs those of {LEAST}; "
              "--network '{}' learns one all the same")
        return None
    return Settings(**{"seed": seed, **(arguments.network or {})})


@dataclasses.dataclass
class Network:
    """What score_network.safetensors holds (weights/FORMAT.md), all of it float32: x' = (x - shift) * scale, cut off at
    limit on both sides, then layers (weight [out][in], bias [out]) with relu between them."""
    shift: np.ndarray
    scale: np.ndarray
    limit: np.ndarray
    layers: list

    def standardised(self, rows):
        return np.clip((rows - self.shift) * self.scale, -self.limit, self.limit)

    def score(self, rows):
        """float32[n] of float32[n][f]."""
        values = self.standardised(rows)
        for number, (weight, bias) in enumerate(self.layers):
            values = (np.maximum(values, 0) if number else values) @ weight.T + bias
        return values[:, 0]

    def tensors(self):
        result = {"shift": self.shift, "scale": self.scale, "limit": self.limit}
        for number, (weight, bias) in enumerate(self.layers):
            result.update({f"{number}.weight": weight, f"{number}.bias": bias})
        return {name: np.ascontiguousarray(values) for name, values in result.items()}

    def fault(self):
        """Why the library would refuse the network, None if it takes it: the same bounds of the outputs."""
        if not all(np.isfinite(values).all() for values in self.tensors().values()):
            return "has numbers that are not finite"
        if not 0 < self.limit[0] <= LIMIT:
            return f"has a limit that is not within 0 to {LIMIT:g}"
        if not self.scale.any():
            return "reads no column: none of them varies"
        bounds = np.where(self.scale != 0, float(self.limit[0]), 0.0)
        for number, (weight, bias) in enumerate(self.layers):
            bounds = np.abs(bias.astype(np.float64)) + np.abs(weight.astype(np.float64)) @ bounds
            if bounds.max() > BOUND:
                return f"can exceed {BOUND:g} in an output of layer {number}"
        return None


def standardisation(rows):
    """(shift, scale) float32[f] of columns; one that does not vary has the scale 0: it is not read."""
    rows = rows.astype(np.float64)
    deviation = rows.std(0)
    scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 1e-6)
    return rows.mean(0).astype(np.float32), scale.astype(np.float32)


def train(groups, settings):
    """The Network that orders the groups, the same one for the same groups and settings; ends the script where the
    library would refuse it."""
    import torch  # here, because all but the training does without it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums have one order; a network of this size is no faster with more
    try:
        shift, scale = standardisation(np.concatenate([rows for rows, _ in groups]))
        network = Network(shift, scale, np.float32([settings.limit]), [])
        network.layers = _layers(torch, [(network.standardised(rows), np.log(times.min() / times).astype(np.float32))
                                         for rows, times in groups], settings)
    finally:
        torch.set_num_threads(threads)
    fault = network.fault()
    if fault:
        raise SystemExit(f"the score network {fault}: learn it with a rate, temperature, limit and weight nearer to "
                         "those of score_network.Settings, or leave it out by --no-network")
    return network


def _layers(torch, data, settings):
    """[(weight, bias)] learnt from [(columns [n][f], log speeds [n])]."""
    random, generator = np.random.default_rng(settings.seed), torch.Generator().manual_seed(settings.seed)
    sizes = [data[0][0].shape[1], *[settings.width] * settings.layers, 1]
    parameters = [((torch.rand(shape, generator=generator) * 2 - 1) / inputs ** 0.5).requires_grad_()
                  for inputs, outputs in zip(sizes, sizes[1:]) for shape in ((outputs, inputs), (outputs,))]
    layers = list(zip(parameters[::2], parameters[1::2]))
    steps = settings.epochs * -(-len(data) // settings.batch)
    optimiser = torch.optim.AdamW(parameters, lr=settings.rate, weight_decay=settings.decay, foreach=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps)
    data = [(torch.from_numpy(columns), torch.from_numpy(logs)) for columns, logs in data]
    for _ in range(settings.epochs):
        # Batches of groups with like sizes, others in each epoch: padding costs time, and nothing else.
        order = np.argsort([len(logs) * (1 + 0.3 * random.random()) for _, logs in data], kind="stable")
        batches = [[data[i] for i in order[at:at + settings.batch]] for at in range(0, len(order), settings.batch)]
        for number in random.permutation(len(batches)):
            values, logs = (torch.nn.utils.rnn.pad_sequence(part, batch_first=True, padding_value=padding)
                            for part, padding in zip(zip(*batches[number]), (0.0, -np.inf)))
            for place, (weight, bias) in enumerate(layers):
                values = torch.nn.functional.linear(torch.relu(values) if place else values, weight, bias)
            scores = torch.log_softmax(values[:, :, 0].masked_fill(logs == -np.inf, -1e9), 1)
            loss = -(torch.softmax(logs / settings.temperature, 1) * scores).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        for part in layers[-1]:
            part *= settings.weight
    return [tuple(part.detach().numpy() for part in layer) for layer in layers]
