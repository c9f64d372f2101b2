#!/usr/bin/env python3
"""The encoder of bench/bench_cuda_encoder.c in PyTorch on the GPU: milliseconds of a forward pass, as JSON lines.

    python bench/peers/cuda_encoder.py

A random encoder of the same shapes (post-norm, exact GELU), through torch.nn.TransformerEncoderLayer's fast path and
through scaled_dot_product_attention; the better one counts. f32 without TF32, f16 and bf16; without padding. A figure is
the median of 21 passes, waited for one by one.
"""

import json
import statistics
import time

import torch

SHAPES = {"12x768": (12, 768, 12, 3072), "4x256": (4, 256, 4, 1024)}
LOADS = [(1, 16), (1, 128), (1, 512), (8, 512), (32, 512)]
PRECISIONS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


class Layer(torch.nn.Module):
    """As Hugging Face's: one product for query, key and value, and the fused attention."""

    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.heads = heads
        self.query_key_value = torch.nn.Linear(hidden, 3 * hidden)
        self.attention_output = torch.nn.Linear(hidden, hidden)
        self.attention_norm = torch.nn.LayerNorm(hidden)
        self.intermediate = torch.nn.Linear(hidden, inner)
        self.output = torch.nn.Linear(inner, hidden)
        self.output_norm = torch.nn.LayerNorm(hidden)

    def forward(self, states):
        batch, tokens, hidden = states.shape
        parts = self.query_key_value(states).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        context = torch.nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        context = context.transpose(1, 2).reshape(batch, tokens, hidden)
        states = self.attention_norm(states + self.attention_output(context))
        inner = torch.nn.functional.gelu(self.intermediate(states))
        return self.output_norm(states + self.output(inner))


def fast_path(layers, hidden, heads, inner):
    layer = torch.nn.TransformerEncoderLayer(hidden, heads, inner, activation="gelu", batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers)


def median_seconds(model, states):
    times = []
    for i in range(-3, 21):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        model(states).mean(dim=1)
        torch.cuda.synchronize()
        if i >= 0:
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main():
    if not torch.cuda.is_available():
        print(json.dumps({"bench": "cuda_encoder_torch", "skipped": "no GPU that PyTorch can use"}))
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    with torch.inference_mode():
        for name, (layers, hidden, heads, inner) in SHAPES.items():
            for precision, dtype in PRECISIONS.items():
                models = {"nn.TransformerEncoder": fast_path(layers, hidden, heads, inner),
                          "scaled_dot_product_attention":
                              torch.nn.Sequential(*[Layer(hidden, heads, inner) for _ in range(layers)])}
                models = {key: model.cuda().to(dtype).eval() for key, model in models.items()}
                for windows, tokens in LOADS:
                    states = torch.randn(windows, tokens, hidden, device="cuda", dtype=dtype)
                    seconds = {key: median_seconds(model, states) for key, model in models.items()}
                    best = min(seconds, key=seconds.get)
                    print(json.dumps({"bench": "cuda_encoder_torch", "torch": torch.__version__, "model": name,
                                      "precision": precision, "windows": windows, "tokens": tokens,
                                      "ms": round(seconds[best] * 1e3, 4), "by": best}), flush=True)


if __name__ == "__main__":
    main()
