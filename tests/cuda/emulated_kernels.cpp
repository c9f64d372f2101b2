/* All kernels, for the emulation. */
#include "emulation.h"
#include "kernels_cuda/attention.cu"
#include "kernels_cuda/convert.cu"
#include "kernels_cuda/encoder_activation.cu"
#include "kernels_cuda/encoder_pool.cu"
#include "kernels_cuda/encoder_rows.cu"
