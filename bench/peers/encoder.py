#!/usr/bin/env python3
"""foreloop's encoder beside its peers: milliseconds of a forward pass over one sequence.

    python bench/peers/encoder.py [--models 12x768,4x256] [--tokens 16,128,512] [--threads 1,2] [--peers NAME,...]
                                  [--rounds 3] [--results FILE] [--lock FILE] [--realtime] [--document PREFIX]

A random RoBERTa of CodeBERT's size (12 layers of 768) and one of 4 layers of 256 go through

    foreloop            foreloop_encode_ids, f32; foreloop-bf16, foreloop-int8 and foreloop-int8_row likewise
    torch               transformers' RobertaModel on PyTorch, f32, with its fused attention; torch-bf16
    onnxruntime         ONNX Runtime, f32, after its own optimiser for transformers; onnxruntime-int8 after its dynamic
                        quantisation, a scale for each channel
    openvino            OpenVINO, f32; openvino-bf16; openvino-int8: weights compressed by NNCF, inputs on the fly
    ctranslate2         CTranslate2, f32; ctranslate2-int8

Each peer is a process of its own, which opens the model once. They are measured by turns of a second or so, all peers
for one number of tokens and threads before the next, so that those that are compared see the same minutes; a figure is
the best pass of all rounds. --lock: a turn holds this file's lock (flock), as other measurements on the machine may;
--realtime: it runs at real-time priority. Turns are appended to FILE as JSON lines, with the machine's peak of
multiply-adds (bench_gemm's) between them; what is there already is not measured again, so a run that was stopped goes
on where it was. Ends with tables: milliseconds, and for each precision the best peer's time over foreloop's.
--document writes them to PREFIX.md, with a plot, PREFIX.svg.

Needs bench/peers/requirements-encoder.txt and FORELOOP_LIBRARY or build/src/libforeloop.so; for the peak, BENCH_GEMM or
build/bench/bench_gemm.
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types

import turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {"12x768": (12, 768, 12, 3072), "4x256": (4, 256, 4, 1024)}
PRECISIONS = {  # foreloop's, and the peers that multiply in the same
    "f32": ["foreloop", "torch", "onnxruntime", "openvino", "ctranslate2"],
    "bf16": ["foreloop-bf16", "torch-bf16", "openvino-bf16"],
    "int8": ["foreloop-int8", "onnxruntime-int8", "openvino-int8", "ctranslate2-int8"],
    "int8_row": ["foreloop-int8_row", "onnxruntime-int8", "openvino-int8", "ctranslate2-int8"],
}
PEERS = list(dict.fromkeys(peer for peers in PRECISIONS.values() for peer in peers))
SECONDS, LEAST_PASSES, MOST_PASSES = 0.7, 2, 400  # of a turn


def ids_of(tokens):
    """Neither padding nor other special tokens."""
    return [5 + i * 7 % 200 for i in range(tokens)]


# -- making the models, once


def make_model(directory, shape):
    sys.path[:0] = [str(ROOT / "tests" / "differential")]
    import random_bundle
    import torch
    import transformers
    layers, hidden, heads, inner = SHAPES[shape]
    tokenizer = random_bundle.tokenizer_json()
    torch.manual_seed(1)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer["model"]["vocab"]), hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=inner, max_position_embeddings=514, type_vocab_size=1,
        layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
    model = transformers.RobertaModel(config, add_pooling_layer=False).eval()
    directory.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    export_onnx(model, directory)
    optimise_onnx(directory, heads, hidden)
    quantise_onnx(directory)
    compress_openvino(directory)
    convert_ctranslate2(model, tokenizer, directory)


def export_onnx(model, directory):
    import torch

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.tensor([ids_of(20)])
    axes = {0: "batch", 1: "tokens"}
    model.set_attn_implementation("eager")
    torch.onnx.export(States(), (ids, torch.ones_like(ids)), str(directory / "model.onnx"), dynamo=False,
                      input_names=["input_ids", "attention_mask"], output_names=["states"], opset_version=17,
                      dynamic_axes={"input_ids": axes, "attention_mask": axes, "states": axes})
    model.set_attn_implementation("sdpa")


def optimise_onnx(directory, heads, hidden):
    from onnxruntime.transformers import optimizer
    optimised = optimizer.optimize_model(str(directory / "model.onnx"), model_type="bert", num_heads=heads,
                                         hidden_size=hidden, opt_level=1)
    optimised.save_model_to_file(str(directory / "optimised.onnx"))
    (directory / "fusions.json").write_text(json.dumps(optimised.get_fused_operator_statistics()))


def quantise_onnx(directory):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(directory / "optimised.onnx"), str(directory / "int8.onnx"), per_channel=True,
                     weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def compress_openvino(directory):
    import nncf
    import openvino
    model = openvino.Core().read_model(str(directory / "model.onnx"))
    compressed = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
    openvino.save_model(compressed, str(directory / "int8.xml"), compress_to_fp16=False)


def convert_ctranslate2(model, tokenizer, directory):
    """By CTranslate2's own converter, which wants a model around the encoder."""
    from ctranslate2.converters import transformers as converter
    model.config.position_embedding_type = "absolute"
    loader = converter.XLMRobertaLoader()
    spec = loader.get_model_spec(types.SimpleNamespace(config=model.config, roberta=model))
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    spec.register_vocabulary(vocabulary)
    spec.config.unk_token, spec.config.layer_norm_epsilon = vocabulary[3], model.config.layer_norm_eps
    spec.validate()
    (directory / "ctranslate2").mkdir()
    spec.save(str(directory / "ctranslate2"))


# -- a peer, in a process of its own. Each function returns open(threads), which returns run(ids).


def serve_foreloop(directory, precision):
    sys.path[:0] = [str(ROOT / "integrations" / "python")]
    import foreloop_ctypes
    library = foreloop_ctypes.load()
    transformer = library.transformer(directory, precision=precision)
    pools = {}

    def open_threads(threads):
        if threads > 1 and threads not in pools:
            pools[threads] = library.thread_pool(threads)
        transformer.use_threads(pools.get(threads))
        return transformer.hidden

    return open_threads


def serve_torch(directory, precision):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    model = transformers.RobertaModel.from_pretrained(directory, add_pooling_layer=False,
                                                      attn_implementation="sdpa").eval()
    if precision == "bf16":
        model = model.to(torch.bfloat16)

    def run(ids):
        with torch.inference_mode():
            return model(input_ids=torch.tensor([ids])).last_hidden_state[0].float().numpy()

    def open_threads(threads):
        torch.set_num_threads(threads)
        return run

    return open_threads


def serve_onnxruntime(directory, precision):
    import numpy as np
    import onnxruntime

    def open_threads(threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path = directory / ("int8.onnx" if precision == "int8" else "optimised.onnx")
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        kinds = {entry.name: np.int32 if "int32" in entry.type else np.int64 for entry in session.get_inputs()}

        def run(ids):
            inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)))}
            return session.run(None, {name: inputs[name].astype(kind) for name, kind in kinds.items()})[0][0]

        return run

    return open_threads


def serve_openvino(directory, precision):
    import numpy as np
    import openvino
    core = openvino.Core()
    model = core.read_model(str(directory / ("int8.xml" if precision == "int8" else "model.onnx")))

    def open_threads(threads):
        options = {"INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
                   "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        if precision == "int8":
            options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 64
        request = core.compile_model(model, "CPU", options).create_infer_request()
        return lambda ids: request.infer([np.array([ids]), np.ones((1, len(ids)), np.int64)])[0][0]

    return open_threads


def serve_ctranslate2(directory, precision):
    import ctranslate2
    import numpy as np

    def open_threads(threads):
        encoder = ctranslate2.Encoder(str(directory / "ctranslate2"), device="cpu", inter_threads=1,
                                      compute_type="int8" if precision == "int8" else "float32", intra_threads=threads)
        return lambda ids: np.array(
            encoder.forward_batch([ids], token_type_ids=[[0] * len(ids)]).last_hidden_state)[0]

    return open_threads


def serve(peer, directory):
    """Answers a line with a case by a line with what a turn of it took."""
    name, _, precision = peer.partition("-")
    answers = os.fdopen(os.dup(1), "w")  # libraries print what they like
    os.dup2(2, 1)
    open_threads, runs = globals()[f"serve_{name}"](directory, precision or "f32"), {}
    for line in sys.stdin:
        case = json.loads(line)
        threads, ids = case["threads"], ids_of(case["tokens"])
        if name in ("foreloop", "torch") or threads not in runs:
            runs[threads] = open_threads(threads)
        run, times, begin = runs[threads], [], time.perf_counter()
        answer = {"mean_state": [float(value) for value in run(ids).mean(0)]} if case["warm"] else {}
        while not case["warm"] and (len(times) < LEAST_PASSES or
                                    (time.perf_counter() - begin < SECONDS and len(times) < MOST_PASSES)):
            start = time.perf_counter()
            run(ids)
            times.append((time.perf_counter() - start) * 1e3)
        if times:
            answer = {"ms": min(times), "median_ms": sorted(times)[len(times) // 2]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# -- all of them


class Peer:
    """A process that serves; a case that it fails at, or does not survive, is an error of the case."""

    def __init__(self, name, directory):
        self.log = tempfile.TemporaryFile("w+")
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        command = [sys.executable, __file__, "--serve", name, "--models-at", str(directory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, env=environment)

    def ask(self, case):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.log.seek(0)
        return {"error": (self.log.read().strip().splitlines() or ["no answer"])[-1][:200]}

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def measure_peak(given):
    program = os.environ.get("BENCH_GEMM", str(ROOT / "build" / "bench" / "bench_gemm"))
    with turns.turn(given, os.getpid()):
        result = subprocess.run([program, "--rows", "16", "--rounds", "1", "--json"], capture_output=True, text=True)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return max((line["gops"] for line in lines if line["subject"] == "peak f32"), default=None)


def measure_model(given, shape, keep, done):
    tasks = [{"model": shape, "tokens": tokens, "threads": threads, "round": number}
             for number in range(given.rounds) for tokens in given.tokens for threads in given.threads]
    missing = [(task, [peer for peer in given.peers if (peer, *task.values()) not in done]) for task in tasks]
    peers = {}
    for task, names in missing:
        for name in names:
            if name not in peers:
                print(f"{shape}: {name} opens", file=sys.stderr)
                peers[name] = Peer(name, given.models_at / shape)
            warm = peers[name].ask({**task, "warm": True})
            if "error" in warm:
                keep({"peer": name, **task, **warm})
                continue
            with turns.turn(given, peers[name].process.pid):
                timed = peers[name].ask({**task, "warm": False})
            keep({"peer": name, **task, **warm, **timed})
        if names:
            keep({"peer": "peak", **task, "gops": measure_peak(given)})
    for peer in peers.values():
        peer.close()


def read_results(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- tables


def best_times(results):
    """{(model, tokens, threads): {peer: ms}}"""
    cases = {}
    for entry in results:
        if "ms" in entry:
            case = cases.setdefault((entry["model"], entry["tokens"], entry["threads"]), {})
            case[entry["peer"]] = min(entry["ms"], case.get(entry["peer"], entry["ms"]))
    return dict(sorted(cases.items()))


def ratio(case, precision):
    """The best peer's time over foreloop's, and that peer; None where one of them is missing."""
    own, *others = PRECISIONS[precision]
    others = [(case[peer], peer) for peer in others if peer in case]
    return (min(others)[0] / case[own], min(others)[1]) if others and own in case else None


def work(shape, tokens):
    layers, hidden, _, inner = SHAPES[shape]
    return 2 * layers * tokens * (4 * hidden * hidden + 2 * hidden * inner + 2 * tokens * hidden)


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def tables(results):
    import numpy as np
    cases = best_times(results)
    peaks = [entry["gops"] for entry in results if entry.get("gops")]
    peers = [peer for peer in PEERS if any(peer in case for case in cases.values())]
    head = ["model", "tokens", "threads"]
    times, ratios = [head + peers], [head + [*PRECISIONS, "f32 of the peak"]]
    for key, case in cases.items():
        name = [str(part) for part in key]
        times.append(name + [f"{case[peer]:.3g}" if peer in case else "-" for peer in peers])
        found = [ratio(case, precision) for precision in PRECISIONS]
        share = "-"
        if peaks and "foreloop" in case:
            share = f"{work(*key[:2]) / case['foreloop'] / 1e6 / max(peaks) / key[2] * 100:.0f} %"
        ratios.append(name + [f"{r[0]:.2f} ({r[1].partition('-')[0]})" if r else "-" for r in found] + [share])
    states = {(e["model"], e["tokens"], e["peer"]): np.array(e["mean_state"]) for e in results if "mean_state" in e}
    off = {}
    for (model, tokens, peer), state in states.items():
        own = states.get((model, tokens, "foreloop"))
        if own is not None:
            off[peer] = min(off.get(peer, 1.0), float(state @ own / np.linalg.norm(state) / np.linalg.norm(own)))
    notes = [f"Peak of one core's multiply-adds: {max(peaks):.0f} x 10^9 operations a second." if peaks else "",
             "Least cosine of the mean state to foreloop's in f32: " +
             ", ".join(f"{peer} {value:.6f}" for peer, value in sorted(off.items()) if peer != "foreloop") + "."]
    failed = {(e["peer"], e["model"], e["error"]) for e in results if "error" in e}
    return table(times), table(ratios), "\n".join(notes + [f"{peer}, {model}: {why}" for peer, model, why in failed])


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    name, model = (re.search(rf"^{field}\s*: (.*)$", info, re.M) for field in ("model name", "model"))
    return f"{name[1] if name else 'unknown'} (model {model[1] if model else '?'}), {os.cpu_count()} cores"


def packages():
    names = ("torch", "transformers", "onnxruntime", "openvino", "nncf", "ctranslate2")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def plot(results, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "encoder"
    import matplotlib.pyplot as plt
    cases = best_times(results)
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    for at, precision in enumerate(PRECISIONS):
        values = [(i + (at - 1.5) * 0.2, found[0]) for i, case in enumerate(cases.values())
                  if (found := ratio(case, precision))]
        if values:
            axes.bar([x for x, _ in values], [y for _, y in values], width=0.2, label=precision)
    axes.axhline(1, color="black", linewidth=0.8)
    labels = [f"{model}\n{tokens} tokens\n{threads} thr." for model, tokens, threads in cases]
    axes.set_xticks(range(len(cases)), labels, fontsize=7)
    axes.set_ylabel("best peer's time / foreloop's")
    axes.legend(ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def write_document(results, prefix):
    times, ratios, notes = tables(results)
    plot(results, prefix.with_suffix(".svg"))
    prefix.with_suffix(".md").write_text(f"""# The encoder's speed beside its peers

Made by `bench/peers/encoder.py --realtime --document docs/encoder-speed` on {datetime.date.today()}; {machine()};
{packages()}. One sequence a pass; peers by turns, the best pass of all rounds. How far the machine's limits are is in
[KERNELS.md](KERNELS.md).

![best peer's time over foreloop's]({prefix.name}.svg)

## The best peer's time over foreloop's, by precision

int8: groups of 64 inputs; int8_row: a scale for each row. Peers quantise by rows or channels, but OpenVINO's inputs by
groups of 64.

{ratios}

## Milliseconds

{times}

{notes}
""")


def numbers(text):
    return [int(part) for part in text.split(",")]


def names(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names, default=list(SHAPES))
    parser.add_argument("--tokens", type=numbers, default=[16, 128, 512])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--peers", type=names, default=PEERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("encoder-results.jsonl"))
    turns.add_options(parser)
    parser.add_argument("--document", type=pathlib.Path)
    parser.add_argument("--models-at", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "foreloop-bench-encoder")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.models_at)
        return
    results = read_results(given.results)
    done = {(e["peer"], e["model"], e["tokens"], e["threads"], e["round"]) for e in results if "ms" in e}

    def keep(entry):
        results.append(entry)
        with given.results.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    for shape in given.models:
        if not (given.models_at / shape / "ctranslate2" / "model.bin").exists():
            print(f"making the model {shape}", file=sys.stderr)
            make_model(given.models_at / shape, shape)
        measure_model(given, shape, keep, done)
    print("\n\n".join(tables(results)))
    if given.document:
        write_document(results, given.document)


if __name__ == "__main__":
    main()
