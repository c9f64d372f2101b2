"""PyTorch's batched transition on a GPU, the work of bench_cuda's rollouts: prints one JSON object.

    python bench/peers/cuda_score.py [CANDIDATES]

The direct form z <- z - beta (w . z) w + d for 20 actions of 32 kinds in 256 dimensions, float32 without TF32, actions
gathered from a table of 4,096; no features and no trees. Without torch or a GPU the object says so.
"""
import json
import sys
import time

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 18
LATENT, KINDS, ACTIONS, LENGTH = 256, 32, 4096, 20


def main():
    try:
        import torch
    except ImportError:
        return {"skipped": "no torch"}
    if not torch.cuda.is_available():
        return {"skipped": "torch finds no GPU"}
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    normal = torch.nn.functional.normalize(torch.randn(KINDS, LATENT, device="cuda"), dim=1)
    beta, kinds = torch.rand(KINDS, device="cuda"), torch.randint(KINDS, (ACTIONS,), device="cuda")
    embedding, z0 = torch.randn(ACTIONS, LATENT, device="cuda"), torch.randn(LATENT, device="cuda")
    ids = torch.randint(ACTIONS, (COUNT, LENGTH), device="cuda")

    def roll():
        z = z0.expand(COUNT, LATENT)
        for step in range(LENGTH):
            kind = kinds[ids[:, step]]
            w = normal[kind]
            z = z - (beta[kind] * (w * z).sum(1))[:, None] * w + embedding[ids[:, step]]
        return z

    times = []
    for _ in range(6):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        roll()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return {"gpu": torch.cuda.get_device_name(), "candidates": COUNT, "torch": torch.__version__,
            "rollouts_per_second": round(COUNT / sorted(times[1:])[2])}


print(json.dumps({"bench": "torch_cuda", **main()}))
