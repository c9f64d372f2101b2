"""The program encoder: a small RoBERTa whose pooled, L2-normalised state z tells where a program stands.

    h = RoBERTa(window)  [tokens][d]     z = normalise(mean of h over the content tokens of all windows)     [d]

Trained on replayed trajectories without looking at any measured time. A batch holds, for some workloads, the initial
program and states of two schedules each; the loss is the sum of

    contrast   InfoNCE: a state's positive is its neighbour on its own trajectory; negatives are the states of other
               schedules of the workload and of other workloads
    order      relu(margin + |z_s - z_0| - |z_t - z_0|) for s before t on a trajectory
    property   the first coordinates of z are the standardised properties of the program (properties.py), times SCALE;
               squared errors count once as they are and once after the mean of the workload is taken off, in units of
               the deviation within workloads, since it is one workload's schedules that have to be told apart
"""
import pathlib
import time

import numpy as np
import torch
from torch import nn
from transformers import RobertaConfig, RobertaModel

import properties
import windows

SCALE = 0.08


def config(vocabulary_size, layers, hidden, length):
    return RobertaConfig(vocab_size=vocabulary_size, hidden_size=hidden, num_hidden_layers=layers,
                         num_attention_heads=max(1, hidden // 64), intermediate_size=4 * hidden,
                         max_position_embeddings=length + 2, type_vocab_size=1, hidden_dropout_prob=0.0,
                         attention_probs_dropout_prob=0.0, layer_norm_eps=1e-5, pad_token_id=windows.PAD,
                         bos_token_id=windows.BEGIN, eos_token_id=windows.END)


def create(settings, initial=None):
    """The model with random weights, or with those of the state_dict `initial`."""
    model = RobertaModel(settings, add_pooling_layer=False)
    if initial:
        model.load_state_dict(initial)
    return model.eval()


def pooled(model, pieces, owner, count):
    """z [count][d] from content pieces; piece i belongs to text owner[i]."""
    ids, attention, content = (torch.as_tensor(x) for x in windows.batch(pieces))
    hidden = model(ids, attention_mask=attention).last_hidden_state.float()
    owner = torch.as_tensor(owner)
    sums = torch.zeros(count, hidden.shape[2]).index_add(0, owner, (hidden * content[:, :, None]).sum(1))
    return nn.functional.normalize(sums, dim=1)


class Corpus:
    """Distinct programs of the training operators: tokens, properties, and the trajectories that run through them.

    trajectories  per workload a list of arrays of program numbers, from the initial program to the final one
    """

    def __init__(self):
        self.tokens, self.properties, self.trajectories = [], [], []

    def add(self, tokenizer, canonical_text, initial, states, schedules=None):
        """One workload: the initial program's text and its dataset.States; of the schedules at most so many, spread over
        the records (searches record the random ones first)."""
        lines = sorted(states.trajectories)
        if schedules is not None and len(lines) > schedules:
            lines = [lines[i] for i in np.linspace(0, len(lines) - 1, schedules).round().astype(int)]
        names = sorted({name for line in lines for _, name in states.trajectories[line]})
        number = {"": len(self.tokens)}
        texts = [initial, *(states.texts[name] for name in names)]
        number.update((name, len(self.tokens) + 1 + i) for i, name in enumerate(names))
        self.properties += [properties.of_program(text) for text in texts]
        encoded = tokenizer.encode_batch([canonical_text(text) for text in texts], add_special_tokens=False)
        self.tokens += [np.array(item.ids, np.uint16) for item in encoded]
        self.trajectories.append([np.array([number[""], *(number[name] for _, name in states.trajectories[line])])
                                  for line in lines])

    def scale(self):
        return properties.fit_scale(np.stack(self.properties), [paths[0][0] for paths in self.trajectories])


def draw(corpus, random, workloads, schedules, states):
    """Program numbers of a batch and their places: arrays (program, workload, trajectory, position on it)."""
    chosen = random.choice(len(corpus.trajectories), min(workloads, len(corpus.trajectories)), replace=False)
    rows, trajectory = [], 0
    for workload in chosen:
        options = corpus.trajectories[workload]
        rows.append((options[0][0], workload, -1, 0))
        for pick in random.choice(len(options), min(schedules, len(options)), replace=False):
            path = options[pick]
            middle = random.choice(np.arange(1, max(2, len(path) - 1)), min(states - 1, max(1, len(path) - 2)),
                                   replace=False)
            for position in [*sorted(middle), len(path) - 1]:
                rows.append((path[position], workload, trajectory, position))
            trajectory += 1
    return np.array(rows).T


def property_loss(z, workload, target, within):
    """Mean over the properties of the squared error, overall and inside of the batch's workloads."""
    error = z[:, :target.shape[1]] / SCALE - target
    same = torch.as_tensor(workload[:, None] == workload[None, :]).float()
    inside = (error - same @ error / same.sum(1, keepdim=True)).pow(2) / (within + 0.05)
    return 0.5 * error.pow(2).mean() + inside.mean()


def losses(z, program, workload, trajectory, target, within, temperature=0.1, margin=0.01):
    """(contrast, order, property) of a batch as drawn by `draw`."""
    prop = property_loss(z, workload, target, within)
    similarity = z @ z.T / temperature
    program, workload, trajectory = map(torch.as_tensor, (program, workload, trajectory))
    same = (trajectory[:, None] == trajectory[None, :]) | (program[:, None] == program[None, :])
    row = torch.arange(len(program))
    left = row[:-1][trajectory[:-1] == trajectory[1:]]
    left = left[(trajectory[left] >= 0) & (program[left] != program[left + 1])]
    terms = []
    for anchor, positive in ((left, left + 1), (left + 1, left)):
        logits = similarity.masked_fill(same, -1e9)[anchor]
        gold = similarity[anchor, positive]
        terms.append(torch.logsumexp(torch.cat([logits, gold[:, None]], 1), 1) - gold)
    contrast = torch.cat(terms).mean()
    first = {int(w): i for i, (w, t) in enumerate(zip(workload, trajectory)) if t < 0}
    origin = z[[first[int(w)] for w in workload[left]]]
    distance = lambda rows: ((z[rows] - origin).pow(2).sum(1) + 1e-9).sqrt()  # noqa: E731
    order = torch.relu(margin + distance(left) - distance(left + 1)).mean()
    return contrast, order, prop


def train(corpus, settings, length, steps, checkpoint=None, batch=(4, 3, 4), pieces=1, learning_rate=8e-4,
          weights=(0.3, 1.0, 1.0), seed=0, log_every=20, save_every=20, log=print, initial=None):
    """Trains the encoder for a number of steps and returns it; goes on from `checkpoint` if that file is there, and
    begins with the weights `initial` (a state_dict) where they are given."""
    torch.manual_seed(seed)
    model = create(settings, initial)
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
                                  lr=learning_rate, betas=(0.9, 0.98))
    warm = max(1, min(100, steps // 10))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warm, 0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * min(1, s / steps)))))
    scale = corpus.scale()
    target, within = torch.as_tensor(scale(np.stack(corpus.properties))), torch.as_tensor(scale.within)
    begin, history = 0, []
    if checkpoint and pathlib.Path(checkpoint).exists():
        saved = torch.load(checkpoint, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        begin, history = saved["step"], saved["history"]
    model.train()
    content, clock, running = length - 2, time.time(), []
    for step in range(begin, steps):
        random = np.random.default_rng((seed, step))
        program, workload, trajectory, _ = draw(corpus, random, *batch)
        parts, owner = [], []
        for i, number in enumerate(program):
            tokens = corpus.tokens[number]
            for _ in range(pieces if len(tokens) > content else 1):
                # Beginnings are uniform over what makes every token equally likely, then clipped to whole windows.
                at = int(np.clip(random.integers(-content // 2, max(1, len(tokens) - content // 2)), 0,
                                 max(0, len(tokens) - content)))
                parts.append(tokens[at:at + content])
                owner.append(i)
        z = pooled(model, parts, owner, len(program))
        values = losses(z, program, workload, trajectory, target[program], within)
        loss = sum(weight * value for weight, value in zip(weights, values))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        running.append([value.item() for value in values])
        if (step + 1) % log_every == 0 or step + 1 == steps:
            history.append([step + 1, *np.mean(running, 0).tolist()])
            log("encoder step {}/{}: contrast {:.3f} order {:.4f} property {:.3f}, {:.1f} windows/s".format(
                step + 1, steps, *np.mean(running, 0), len(parts) * len(running) / (time.time() - clock)))
            clock, running = time.time(), []
        if checkpoint and ((step + 1) % save_every == 0 or step + 1 == steps):
            partial = pathlib.Path(f"{checkpoint}.partial")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(), "step": step + 1, "history": history}, partial)
            partial.rename(checkpoint)
    model.eval()
    return model, history
