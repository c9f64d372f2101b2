#!/bin/sh
# Checks what libforeloop_cuda exports and needs, and that the core needs nothing of CUDA. Usage: symbols_cuda.sh
# CUDA-LIBRARY CORE-LIBRARY
set -u
. "$(dirname "$0")/../check.sh"
header=$(dirname "$0")/../../include/foreloop/cuda.h
exported() { nm -D --defined-only "$1" | awk '{print $3}' | grep -v -e '^_init$' -e '^_fini$'; }
check "the library exports the functions of its header only" \
    "$(exported "$1" | while read -r symbol; do grep -q "\b$symbol(" "$header" || echo "$symbol"; done)"
check "every function of the header is exported" \
    "$(tr '\n' ' ' <"$header" | grep -o 'FORELOOP_API[^;]*' | grep -o 'foreloop_cuda[a-z0-9_]*(' | tr -d '(' |
        while read -r symbol; do exported "$1" | grep -qx "$symbol" || echo "$symbol"; done)"
check "no library of CUDA is needed to load it" \
    "$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -e cuda -e cublas -e nv)"
check "the core needs no library of CUDA" \
    "$(readelf -d "$2" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -e cuda -e cublas -e nv)"
echo "1..$count"
