/* foreloop_gemm_f32 by OpenBLAS. */
#include "kernels_cpu/gemm/gemm.h"
#include <cblas.h>

void foreloop_gemm_f32(float *y, size_t y_stride, const float *x, size_t x_stride, const float *w, size_t rows,
                       size_t in, size_t out, int add) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)out, (blasint)in, 1, x,
                (blasint)x_stride, w, (blasint)in, add ? 1 : 0, y, (blasint)y_stride);
}
