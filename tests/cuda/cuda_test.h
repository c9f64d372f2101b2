/* What the tests of libforeloop_cuda share. Each is built twice: against the emulation, and against the library, where
 * its parts that need a GPU are skipped visibly when there is none. */
#ifndef FORELOOP_TESTS_CUDA_TEST_H
#define FORELOOP_TESTS_CUDA_TEST_H

#include "tap.h"
#include <cuda_runtime_api.h>
#include <foreloop/cuda.h>

#ifdef FORELOOP_CUDA_EMULATED
/* For C: tests/cuda/emulation.h. */
void emulation_set_seed(unsigned long long seed);
const char *emulation_take_fault(void);
#else
static inline void emulation_set_seed(unsigned long long seed) {
    (void)seed;
}
static inline const char *emulation_take_fault(void) {
    return "";
}
#endif

/* Whether there is a GPU; else says so as a skipped test. */
static inline int cuda_test_has_gpu(void) {
    foreloop_error error = {.message = "no GPU"};
    size_t count = 0;
    if (foreloop_cuda_device_count(&count, &error) == FORELOOP_OK && count > 0)
        return 1;
    tap_skip(error.message);
    return 0;
}

#endif
