#!/usr/bin/env bash
# Prints the registers, shared memory and local memory (spills) of each kernel for the GPU, as the table of
# docs/KERNELS.md. Usage: tools/cuda_kernels.sh [BUILD]; cuobjdump is the machine's own, or brought from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
objdump=$(command -v cuobjdump || true)
if [ -z "$objdump" ]; then
    folder=build-cuda-toolkit
    [ -x "$folder/bin/pip" ] || python3 -m venv "$folder"
    "$folder/bin/pip" install -q --disable-pip-version-check 'nvidia-cuda-cuobjdump>=13.2.51' >&2
    objdump=$(echo "$folder"/lib/python3*/site-packages/nvidia/cu13/bin/cuobjdump)
    [ -x "$objdump" ] || chmod +x "$objdump"
fi
echo "| kernel | registers, sm_89 | sm_90 | static shared memory | spilled |"
echo "| --- | --- | --- | --- | --- |"
for object in "$build"/src/kernels_cuda/*.cu.o; do
    "$objdump" --dump-resource-usage "$object" | awk '
        /^arch = /{arch = $3}
        /^ Function /{name = $2; sub(":$", "", name)}
        /REG:/{
            for (i = 1; i <= NF; i++) { split($i, pair, ":"); value[pair[1]] = pair[2] }
            registers[name, arch] = value["REG"]
            if (arch == "sm_89") shared[name] = value["SHARED"] # sm_90 counts 1 KB of its own
            spilled[name] += value["STACK"] + value["LOCAL"]
            if (!(name in seen)) { seen[name] = 1; order[++count] = name }
        }
        END {
            for (i = 1; i <= count; i++)
                printf "| `%s` | %s | %s | %d | %s |\n", order[i], registers[order[i], "sm_89"],
                    registers[order[i], "sm_90"], shared[order[i]], spilled[order[i]] ? spilled[order[i]] : "no"
        }'
done
