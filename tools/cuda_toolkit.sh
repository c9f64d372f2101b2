#!/usr/bin/env bash
# Prints the path of an nvcc: the machine's own, or one that it brings from PyPI into the folder (about 300 MB, once).
# Usage: tools/cuda_toolkit.sh [FOLDER]      FOLDER: by default build-cuda-toolkit
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-cuda-toolkit}
for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$folder"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    if [ -x "$nvcc" ]; then
        realpath "$nvcc"
        exit 0
    fi
done
python3 -m venv "$folder" >&2
timeout 600 "$folder/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 \
    nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 >&2
nvcc=$(echo "$folder"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
[ -x "$nvcc" ] || chmod +x "$(dirname "$nvcc")"/* "$(dirname "$nvcc")"/../nvvm/bin/*
realpath "$nvcc"
