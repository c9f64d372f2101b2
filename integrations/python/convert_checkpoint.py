"""Converts a PyTorch checkpoint (pytorch_model.bin) to model.safetensors, which foreloop reads.

    python convert_checkpoint.py CHECKPOINT-DIR        (pip install torch==2.13.0 safetensors numpy)

Only tensors are unpickled (weights_only), shared tensors are written once each, and nothing else in the folder is
touched. Then: foreloop encode --hf CHECKPOINT-DIR text.txt
"""

import argparse
import pathlib
import sys

import torch
from safetensors.torch import save_file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory
    source, target = directory / "pytorch_model.bin", directory / "model.safetensors"
    if target.exists():
        sys.exit(f"{target} is there already")
    if not source.exists():
        sys.exit(f"{source} is missing")
    tensors = torch.load(source, map_location="cpu", weights_only=True)
    # Tensors that share memory (tied weights) are separated: safetensors has no notion of sharing.
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items() if torch.is_tensor(tensor)},
              target, metadata={"format": "pt"})
    print(f"{target}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
