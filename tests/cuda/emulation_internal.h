/* What the emulation's two halves share: fibers and the runtime. */
#ifndef FORELOOP_TESTS_CUDA_EMULATION_INTERNAL_H
#define FORELOOP_TESTS_CUDA_EMULATION_INTERNAL_H

#include "emulation.h"

namespace emulation {

enum { MAX_SHARED = 99 << 10 }; /* dynamic shared memory of a block, as an RTX 4090 has */

bool has_fault();
/* Runs a kernel now. */
void run(dim3 blocks, dim3 threads, size_t shared_bytes, const std::function<void()> &kernel);

} /* namespace emulation */

#endif
