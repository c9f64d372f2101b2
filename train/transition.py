"""The transition: an action moves the program's latent state by a TransH step.

    d_a = D[r] + MLP_r(phi(a))                                   embedding of action a of kind r, [d]
    z_t = z_{t-1} - beta_r (w_r . z_{t-1}) w_r + d_a             w_r a unit normal, beta_r in [0, 2]

Trained on trajectories of encoded states: from the state after s actions, roll out to t and match

    state     mean over t of |zhat_t - g_t|^2                    (several horizons at once)
    rank      relu(margin + |zhat_T - g_T| - |zhat_T - g'|)      g' final states of other schedules of the same workload

The goal g_t is the encoder's z_t, but for the coordinates that stand for properties of the program (properties.py):
there it is the property itself, and |.|^2 weights them up by what varies within workloads.
"""
import copy

import numpy as np
import torch
from torch import nn


class Transition(nn.Module):
    def __init__(self, element_counts, latent, hidden=32):
        super().__init__()
        kinds = len(element_counts)
        self.latent, self.element_counts = latent, list(element_counts)
        self.kind_embedding = nn.Parameter(torch.zeros(kinds, latent))
        self.normal = nn.Parameter(torch.randn(kinds, latent))
        self.beta_logit = nn.Parameter(torch.full((kinds,), -2.0))
        self.first = nn.ModuleList([nn.Linear(n, hidden) if n else None for n in element_counts])
        self.second = nn.ModuleList([nn.Linear(hidden, latent) if n else None for n in element_counts])
        for layer in self.second:
            if layer is not None:
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)

    def beta(self):
        return 2 * torch.sigmoid(self.beta_logit)

    def unit_normal(self):
        return nn.functional.normalize(self.normal, dim=1)

    def embed(self, kind_of, phi_of):
        """d_a [actions + 1][d] of a table of actions, grouped by kind; the last row is 0 (padding, unknown)."""
        result = torch.zeros(len(kind_of) + 1, self.latent)
        kind_of = np.asarray(kind_of)
        for kind in np.unique(kind_of):
            rows = torch.as_tensor(np.flatnonzero(kind_of == kind))
            value = self.kind_embedding[kind].expand(len(rows), -1)
            if self.first[kind] is not None:
                phi = torch.as_tensor(np.stack([phi_of[i] for i in rows.tolist()]))
                value = value + self.second[kind](torch.relu(self.first[kind](phi)))
            result = result.index_put((rows,), value)
        return result

    def embed_ids(self, kind_of, phi_of, ids):
        """d_a of an array of action ids (-1: none, 0), each distinct action once."""
        known = ids >= 0
        distinct, place = np.unique(ids[known], return_inverse=True)
        rows = np.full(ids.shape, len(distinct))
        rows[known] = place
        return self.embed(np.asarray(kind_of)[distinct], [phi_of[i] for i in distinct])[torch.as_tensor(rows)]

    def rollout(self, z, kinds, steps):
        """All states [batch][T + 1][d] from z [batch][d]; kinds [batch][T] (-1: no step), steps [batch][T][d]."""
        normal = torch.cat([self.unit_normal(), torch.zeros(1, self.latent)])
        beta = torch.cat([self.beta(), torch.zeros(1)])
        states = [z]
        for t in range(kinds.shape[1]):
            w, b = normal[kinds[:, t]], beta[kinds[:, t]]
            z = z - (b * (w * z).sum(1))[:, None] * w + steps[:, t]
            states.append(z)
        return torch.stack(states, 1)


def pad(sequences, value):
    """Ragged integer sequences as one array, filled up with `value`."""
    result = np.full((len(sequences), max(map(len, sequences))), value, np.int64)
    for row, sequence in enumerate(sequences):
        result[row, :len(sequence)] = sequence
    return result


class Trajectories:
    """Interned sequences with what is known of their states.

    ids       [n][T]      action ids, -1 for none
    target    [n][T + 1]  row of `states` that is the program after t actions, -1 where it was not encoded
    workload  [n]
    states    [states][d] the encoder's z; goals, the same but for the property coordinates; weight [d]
    """

    def __init__(self, vocabulary, ids, targets, workloads, states, goals=None, weight=None):
        self.ids = pad(ids, -1)
        self.target = pad(targets, -1)
        self.length = np.array([len(sequence) for sequence in ids])
        self.workload, self.states = np.asarray(workloads), torch.as_tensor(states, dtype=torch.float32)
        self.goals = self.states if goals is None else torch.as_tensor(goals)
        self.weight = torch.ones(self.states.shape[1]) if weight is None else torch.as_tensor(weight)
        self.kind_of, self.phi_of = np.array(vocabulary.kind_of), vocabulary.phi_of
        self.kinds = np.where(self.ids >= 0, self.kind_of[self.ids], -1)
        self.final = self.target[np.arange(len(self.ids)), self.length]

    def subset(self, mask):
        """The trajectories where `mask` is true; the tables are shared."""
        part = copy.copy(self)
        for name in ("ids", "target", "length", "workload", "kinds", "final"):
            setattr(part, name, getattr(self, name)[mask])
        return part


def explained(trajectories, ends):
    """Share of the (weighted) variance of final states within workloads that predicted end states explain."""
    t, known = trajectories, trajectories.final >= 0
    truth, error = t.goals.numpy()[t.final], ends - t.goals.numpy()[t.final]
    total = left = 0.0
    for workload in np.unique(t.workload):
        rows = known & (t.workload == workload)
        total += (t.weight.numpy() * truth[rows].var(0)).sum() * rows.sum()
        left += (t.weight.numpy() * error[rows].var(0)).sum() * rows.sum()
    return round(float(1 - left / total), 3)


def train(trajectories, element_counts, hidden=32, epochs=60, batch=128, learning_rate=3e-3, margin=0.05,
          rank_weight=0.5, weight_decay=1e-4, seed=0, progress=lambda x: x):
    """Fits a Transition. Every batch starts half of its rows at z_0 and the others at a random known state."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    t = trajectories
    model = Transition(element_counts, t.states.shape[1], hidden)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    usable = np.flatnonzero((t.final >= 0) & (t.target[:, 0] >= 0))
    total = epochs * ((len(usable) + batch - 1) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=total, pct_start=0.1)
    by_workload = {w: usable[t.workload[usable] == w] for w in np.unique(t.workload[usable])}
    history = []
    for _ in progress(range(epochs)):
        sums = np.zeros(2)
        for rows in np.array_split(random.permutation(usable), total // epochs):
            start = np.zeros(len(rows), np.int64)
            for i, row in enumerate(rows):
                if random.random() < 0.5:
                    start[i] = random.choice(np.flatnonzero(t.target[row, :t.length[row]] >= 0))
            steps = np.arange(t.ids.shape[1])
            active = steps[None, :] >= start[:, None]
            ids, kinds = np.where(active, t.ids[rows], -1), np.where(active, t.kinds[rows], -1)
            z = t.states[t.target[rows, start]]
            states = model.rollout(z, torch.as_tensor(kinds), model.embed_ids(t.kind_of, t.phi_of, ids))
            known = (t.target[rows] >= 0) & (np.arange(t.target.shape[1])[None, :] > start[:, None])
            known = torch.as_tensor(known)
            error = (t.weight * (states - t.goals[torch.as_tensor(t.target[rows])]).pow(2)).sum(2)
            matching = (error * known).sum() / known.sum()
            last = states[torch.arange(len(rows)), torch.as_tensor(t.length[rows])]
            truth = t.goals[t.final[rows]]
            other = t.goals[[t.final[random.choice(by_workload[t.workload[row]])] for row in rows]]
            distance, wide, off = ((t.weight * (a - b).pow(2)).sum(1) for a, b in
                                   ((last, truth), (truth, other), (last, other)))
            gap = (wide + 1e-9).sqrt().clamp(max=margin)
            wrong = torch.relu(gap + (distance + 1e-9).sqrt() - (off + 1e-9).sqrt())
            loss = matching + distance.mean() + rank_weight * wrong.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            sums += [distance.mean().item(), wrong.mean().item()]
        history.append((sums / (total // epochs)).tolist())
    return model, history


@torch.no_grad()
def end_states(model, z0, vocabulary, ids):
    """Predicted end states [n][d] of sequences from z0 [n][d]."""
    ids = pad(ids, -1)
    kinds = np.where(ids >= 0, np.array(vocabulary.kind_of)[ids], -1)
    steps = model.embed_ids(vocabulary.kind_of, vocabulary.phi_of, ids)
    states = model.rollout(torch.as_tensor(z0), torch.as_tensor(kinds), steps)
    return states[:, -1].numpy()


def tensors(model, vocabulary):
    """The tensors of transition.safetensors (float32 numpy), by name."""
    result = {"kind_embedding": model.kind_embedding, "normal": model.unit_normal(), "beta": model.beta()}
    for kind, first, second in zip(vocabulary.kinds, model.first, model.second):
        if first is not None:
            for i, layer in enumerate((first, second)):
                result[f"mlp.{kind['kind']}.{i}.weight"] = layer.weight
                result[f"mlp.{kind['kind']}.{i}.bias"] = layer.bias
    return {name: np.ascontiguousarray(tensor.detach().numpy()) for name, tensor in result.items()}
