#!/usr/bin/env python3
"""foreloop's encoder beside its peers: milliseconds of a forward pass over one sequence.

    python bench/peers/encoder.py [--models 12x768,4x256] [--tokens 16,128,512] [--threads 1,2] [--peers NAME,...]
                                  [--rounds 3] [--results FILE] [--under COMMAND]

A random RoBERTa of CodeBERT's size (12 layers of 768) and one of 4 layers of 256 go through

    foreloop            foreloop_encode_ids, f32
    foreloop-bf16       the same in bf16; foreloop-int8 and foreloop-int8_row likewise
    torch               transformers' RobertaModel on PyTorch, f32, with its fused attention
    torch-bf16          the same in bf16
    onnxruntime         ONNX Runtime, f32, after its own optimiser for transformers
    openvino            OpenVINO, f32
    openvino-bf16       OpenVINO, bf16
    ctranslate2         CTranslate2, f32

Each measurement is a process of its own, peers by turns, so that all of them see the same machine; a figure is the best
of all rounds. Results are appended to FILE as JSON lines; what is there already is not measured again, so a run that
was stopped goes on where it was. --under runs each measurement under a command, such as "taskset -c 0" or "chrt -f 50".
Ends with a table, where a ratio is the best peer's time over foreloop's in that precision, and the largest difference
of a mean state from foreloop's in f32. Needs bench/peers/requirements-encoder.txt
and FORELOOP_LIBRARY or build/src/libforeloop.so.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {"12x768": (12, 768, 12, 3072), "4x256": (4, 256, 4, 1024)}
PEERS = ["foreloop", "foreloop-bf16", "foreloop-int8", "foreloop-int8_row", "torch", "torch-bf16", "onnxruntime",
         "openvino", "openvino-bf16", "ctranslate2"]
SECONDS = 3.0  # of a measurement, at the most, and at least 3 passes


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
    directory.mkdir(parents=True)
    model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    export_onnx(model, directory)
    optimise_onnx(directory, heads, hidden)
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


# -- one measurement, in a process of its own


def open_foreloop(directory, threads, precision="f32"):
    sys.path[:0] = [str(ROOT / "integrations" / "python")]
    import foreloop_ctypes
    library = foreloop_ctypes.load()
    transformer = library.transformer(directory, precision=precision)
    if threads > 1:
        transformer.use_threads(library.thread_pool(threads))
    return transformer.hidden


def open_torch(directory, threads, dtype=None):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(threads)
    model = transformers.RobertaModel.from_pretrained(directory, add_pooling_layer=False,
                                                      attn_implementation="sdpa").eval()
    if dtype:
        model = model.to(torch.bfloat16)

    def run(ids):
        with torch.inference_mode():
            return model(input_ids=torch.tensor([ids])).last_hidden_state[0].float().numpy()

    return run


def open_onnxruntime(directory, threads):
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(directory / "optimised.onnx"), options, ["CPUExecutionProvider"])
    kinds = {entry.name: np.int32 if "int32" in entry.type else np.int64 for entry in session.get_inputs()}

    def run(ids):
        inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)))}
        return session.run(None, {name: inputs[name].astype(kind) for name, kind in kinds.items()})[0][0]

    return run


def open_openvino(directory, threads, precision="f32"):
    import numpy as np
    import openvino
    core = openvino.Core()
    model = core.compile_model(core.read_model(str(directory / "model.onnx")), "CPU", {
        "INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY"})
    request = model.create_infer_request()

    def run(ids):
        return request.infer([np.array([ids]), np.ones((1, len(ids)), np.int64)])[0][0]

    return run


def open_ctranslate2(directory, threads):
    import ctranslate2
    import numpy as np
    encoder = ctranslate2.Encoder(str(directory / "ctranslate2"), device="cpu", compute_type="float32",
                                  inter_threads=1, intra_threads=threads)
    return lambda ids: np.array(encoder.forward_batch([ids], token_type_ids=[[0] * len(ids)]).last_hidden_state)[0]


def measure(peer, directory, tokens, threads):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    name, _, precision = peer.partition("-")
    opener = {"foreloop": open_foreloop, "torch": open_torch, "onnxruntime": open_onnxruntime,
              "openvino": open_openvino, "ctranslate2": open_ctranslate2}[name]
    run = opener(directory, threads, precision) if precision else opener(directory, threads)
    ids, times, begin = ids_of(tokens), [], time.perf_counter()
    states = run(ids)
    while len(times) < 3 or (time.perf_counter() - begin < SECONDS and len(times) < 200):
        start = time.perf_counter()
        run(ids)
        times.append(time.perf_counter() - start)
    print(json.dumps({"ms": min(times) * 1e3, "median_ms": sorted(times)[len(times) // 2] * 1e3,
                      "mean_state": [float(value) for value in states.mean(0)]}))


# -- all of them


def read_results(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_case(case, models, under):
    command = [*under, sys.executable, __file__, "--case", json.dumps(case), "--models-at", str(models)]
    result = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode or not lines:
        return {**case, "error": (result.stderr.strip().splitlines() or ["no result"])[-1][:200]}
    return {**case, **json.loads(lines[-1])}


def ratio(best, precision):
    """The best peer's time over foreloop's, of one precision; "-" where one of them is missing."""
    own = "foreloop" if precision == "f32" else f"foreloop-{precision}"
    others = [ms for peer, ms in best.items() if ms and not peer.startswith("foreloop") and
              peer.endswith("bf16") == (precision == "bf16")]
    return f"{min(others) / best[own]:.2f}" if others and best.get(own) else "-"


def print_table(results):
    import numpy as np
    cases = {}
    for entry in results:
        cases.setdefault((entry["model"], entry["tokens"], entry["threads"]), {}).setdefault(
            entry["peer"], []).append(entry)
    peers = [peer for peer in PEERS if any(peer in case for case in cases.values())]
    print(f"{'model':8}{'tokens':>8}{'threads':>8}" + "".join(f"{peer:>19}" for peer in peers) +
          f"{'f32 ratio':>12}{'bf16 ratio':>12}")
    off = {}
    for (model, tokens, threads), case in sorted(cases.items()):
        best = {peer: min((entry["ms"] for entry in entries if "ms" in entry), default=None)
                for peer, entries in case.items()}
        states = {peer: np.array(entries[0].get("mean_state", [])) for peer, entries in case.items()}
        for peer, state in states.items():
            if state.size and peer != "foreloop" and states.get("foreloop", state).size:
                off[peer] = max(off.get(peer, 0.0), float(np.abs(state - states.get("foreloop", state)).max()))
        cells = "".join(f"{best[peer]:19.2f}" if best.get(peer) else f"{'-':>19}" for peer in peers)
        print(f"{model:8}{tokens:8}{threads:8}{cells}{ratio(best, 'f32'):>12}{ratio(best, 'bf16'):>12}")
    print("\nmean state, largest difference from foreloop's: " +
          ", ".join(f"{peer} {value:.1e}" for peer, value in sorted(off.items())))
    for entry in results:
        if "error" in entry:
            print(f"{entry['peer']}, {entry['model']}, {entry['tokens']} tokens: {entry['error']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="12x768,4x256")
    parser.add_argument("--tokens", default="16,128,512")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("encoder-results.jsonl"))
    parser.add_argument("--models-at", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "foreloop-bench-encoder")
    parser.add_argument("--under", default="")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        case = json.loads(given.case)
        measure(case["peer"], given.models_at / case["model"], case["tokens"], case["threads"])
        return
    for shape in given.models.split(","):
        if not (given.models_at / shape / "ctranslate2" / "model.bin").exists():
            print(f"making the model {shape}", file=sys.stderr)
            make_model(given.models_at / shape, shape)
    results = read_results(given.results)
    done = {(e["peer"], e["model"], e["tokens"], e["threads"], e["round"]) for e in results if "ms" in e}
    for number in range(given.rounds):
        for shape in given.models.split(","):
            for tokens in map(int, given.tokens.split(",")):
                for threads in map(int, given.threads.split(",")):
                    for peer in given.peers.split(","):
                        if (peer, shape, tokens, threads, number) in done:
                            continue
                        case = {"peer": peer, "model": shape, "tokens": tokens, "threads": threads, "round": number}
                        results.append(run_case(case, given.models_at, shlex.split(given.under)))
                        with given.results.open("a") as file:
                            file.write(json.dumps(results[-1]) + "\n")
    print_table(results)


if __name__ == "__main__":
    main()
