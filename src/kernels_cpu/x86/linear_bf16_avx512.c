/* linear_bf16, AVX512. */
#include "kernels_cpu/x86/linear_bf16_fma.h"

void foreloop_linear_bf16_avx512(foreloop_linear *linear) {
    bf16_kernel(linear, "bf16, widened");
}
