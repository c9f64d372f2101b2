/* foreloop_gemm_f32 by oneDNN. Builds on OpenMP take the calling thread's number of threads: one, while they run. */
#include "kernels_cpu/gemm/gemm.h"
#include <dnnl.h>

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
int omp_get_max_threads(void);
void omp_set_num_threads(int count);
#else
static int omp_get_max_threads(void) {
    return 1;
}

static void omp_set_num_threads(int count) {
    (void)count;
}
#endif

void foreloop_gemm_f32(float *y, size_t y_stride, const float *x, size_t x_stride, const float *w, size_t rows,
                       size_t in, size_t out, int add) {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    (void)dnnl_sgemm('N', 'T', (dnnl_dim_t)rows, (dnnl_dim_t)out, (dnnl_dim_t)in, 1, x, (dnnl_dim_t)x_stride, w,
                     (dnnl_dim_t)in, add ? 1 : 0, y, (dnnl_dim_t)y_stride);
    omp_set_num_threads(threads);
}
