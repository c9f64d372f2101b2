"""A cost model in the way of TLP (Zhai et al., ASPLOS 2023): attention over the schedule's primitives, no program.

Each action is a vector of its kind and its encoded arguments; two layers of self-attention, the sum over the sequence,
a score. The loss is LambdaRank's: log(1 + exp(-difference)) of pairs of one operator, weighted by what swapping them
would change in NDCG. One operator is a batch.
"""
import numpy as np
import torch
from torch import nn

import actions


class Model(nn.Module):
    def __init__(self, inputs, width=64, heads=4, layers=2):
        super().__init__()
        self.into = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, vectors, padding):
        hidden = self.layers(self.into(vectors), src_key_padding_mask=padding)
        return self.out(hidden.masked_fill(padding[:, :, None], 0).sum(1) / 16)[:, 0]


def lambda_loss(scores, speed):
    """`speed` is relative to the operator's best."""
    order = torch.argsort(scores.detach(), descending=True)
    discount = torch.zeros_like(scores)
    discount[order] = 1 / torch.log2(2 + torch.arange(len(scores), dtype=scores.dtype))
    gain = 2 ** (4 * speed) - 1
    weight = (gain[:, None] - gain[None, :]).abs() * (discount[:, None] - discount[None, :]).abs()
    pairs = speed[:, None] > speed[None, :]
    difference = scores[:, None] - scores[None, :]
    return (nn.functional.softplus(-difference) * (weight + 0.1))[pairs].sum() / weight[pairs].sum().clamp(min=1)


class Encoder:
    """Sequences as padded arrays; the vocabulary is that of the training operators."""

    def __init__(self, operators):
        self.vocabulary = actions.Vocabulary(actions.derive([c for o in operators for c in o.candidates]))
        sizes = [1 + len(elements) for elements in self.vocabulary.elements]
        self.first = np.concatenate([[0], np.cumsum(sizes)])

    def __call__(self, operator):
        ids = [[i for i in self.vocabulary.intern(c.actions) if i >= 0] for c in operator.candidates]
        vectors = np.zeros((len(ids), max(map(len, ids)), self.first[-1] + 1), np.float32)
        padding = np.ones(vectors.shape[:2], bool)
        for row, sequence in enumerate(ids):
            padding[row, :len(sequence)] = False
            for place, i in enumerate(sequence):
                at, phi = self.first[self.vocabulary.kind_of[i]], self.vocabulary.phi_of[i]
                vectors[row, place, at] = 1
                vectors[row, place, at + 1:at + 1 + len(phi)] = phi
                vectors[row, place, -1] = place / 32
        return torch.as_tensor(vectors), torch.as_tensor(padding)


def scores(training, tested, seed=0, epochs=40, learning_rate=1e-3):
    """Scores of the tested operators' candidates, a list of arrays."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    encode = Encoder(training)
    batches = [(*encode(operator), torch.as_tensor((operator.times.min() / operator.times).astype(np.float32)))
               for operator in training]
    model = Model(batches[0][0].shape[2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=epochs * len(batches))
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        for i in random.permutation(len(batches)):
            vectors, padding, speed = batches[i]
            loss = lambda_loss(model(vectors, padding), speed)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        return [model(*encode(operator)).numpy() for operator in tested]
