/* What a search has to beat: the compiler's own -O3 on the plain loops, also with the outermost ones in parallel, and
 * for matrices OpenBLAS, which is loaded when it is there. */
#include "codegen.h"
#include "commands.h"
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANS = 111 };

/* Of the one call that a process makes of `multiply`. */
static struct {
    int batch, m, n, k, threads;
    sgemm_function *sgemm;
} matrices;

/* Processors that an OpenBLAS is too old to know get its oldest kernels; name it better ones. */
static void choose_kernels(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        (void)setenv("OPENBLAS_CORETYPE", __builtin_cpu_supports("avx512vl") ? "SkylakeX" : "Haswell", 0);
#endif
}

/* Loads OpenBLAS in the process that measures, as its threads do not survive a fork, and says which one it is. */
static bool load_openblas(void) {
    void *symbol;
    void (*set_threads)(int);
    int (*is_parallel)(void);
    char *(*name)(void);
    choose_kernels();
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library || !(symbol = dlsym(library, "openblas_set_num_threads"))) {
        fprintf(stderr, "OpenBLAS: %s\n", library ? "no such library" : dlerror());
        return false;
    }
    memcpy(&set_threads, &symbol, sizeof set_threads);
    set_threads(matrices.threads);
    symbol = dlsym(library, "openblas_get_parallel");
    memcpy(&is_parallel, &symbol, sizeof is_parallel);
    symbol = dlsym(library, "openblas_get_corename");
    memcpy(&name, &symbol, sizeof name);
    if (is_parallel && name)
        fprintf(stderr, "OpenBLAS: kernels for %s, %s\n", name(),
                is_parallel() ? "with threads" : "built without threads");
    symbol = dlsym(library, "cblas_sgemm");
    memcpy(&matrices.sgemm, &symbol, sizeof matrices.sgemm);
    return symbol != NULL;
}

static void multiply(float *const *buffers) {
    const int m = matrices.m, n = matrices.n, k = matrices.k;
    if (!matrices.sgemm && !load_openblas())
        return; /* leaves the output wrong: a failed measurement */
    for (int i = 0; i < matrices.batch; i++)
        matrices.sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, buffers[0] + (size_t)i * (size_t)m * (size_t)k, k,
                       buffers[1] + (size_t)i * (size_t)k * (size_t)n, n, 0,
                       buffers[2] + (size_t)i * (size_t)m * (size_t)n, n);
}

static bool is_matrices(const search_space *space) {
    const block *k = &space->initial.blocks[space->main_block];
    const int first = strcmp(k->name, "batch_matmul") == 0;
    if (!first && strcmp(k->name, "matmul") != 0)
        return false;
    matrices.batch = first ? k->iter[0].extent : 1;
    matrices.m = k->iter[first].extent;
    matrices.n = k->iter[first + 1].extent;
    matrices.k = k->iter[first + 2].extent;
    return true;
}

static void measure_plain(runner *r, const program *p, measurement *m) {
    char path[FILE_PATH_SIZE + 64];
    whole_file w;
    const char *error = NULL;
    (void)snprintf(path, sizeof path, "%s/plain.c", r->scratch.path);
    *m = (measurement){.count = 0};
    if (whole_open(&w, path) && (error = generate_c(p, w.out), whole_close(&w, !error)))
        runner_measure_file(r, path, "-O3", m);
    else
        (void)snprintf(m->error, sizeof m->error, "cannot write the C file: %.60s", error ? error : strerror(errno));
    (void)unlink(path);
}

static void print(const options *o, const char *name, const measurement *m, bool first) {
    if (o->json && m->count)
        printf("%s\"%s\":%.9g", first ? "" : ",", name, median(m));
    else if (o->json)
        printf("%s\"%s\":null", first ? "" : ",", name);
    else if (m->count)
        printf("%-20s %.6g ms\n", name, 1e3 * median(m));
    else
        printf("%-20s failed: %s\n", name, m->error);
}

int command_baseline(const options *o) {
    search_space space;
    measurement m;
    char message[512];
    if (!open_only_operator(o, &space))
        return 2;
    runner *r = calloc(1, sizeof *r);
    schedule *parallel = calloc(1, sizeof *parallel);
    bool ok = false;
    if (!r || !parallel)
        fprintf(stderr, "autoscheduler: not enough memory\n");
    else if (!runner_open(r, &space.initial, &o->measure, message, sizeof message))
        fprintf(stderr, "autoscheduler: %s\n", message);
    else if (!(ok = runner_begin(r, message, sizeof message))) {
        fprintf(stderr, "autoscheduler: %s\n", message);
        runner_close(r);
    }
    if (ok) {
        printf(o->json ? "{" : "");
        measure_plain(r, &space.initial, &m);
        print(o, "O3", &m, true);
        schedule_begin(parallel, &space.initial);
        for (int n = parallel->p.nodes[0].child; n != NONE; n = parallel->p.nodes[n].next)
            if (parallel->p.nodes[n].block == NONE && !loop_reduces(&parallel->p, n))
                annotate(parallel, n, LOOP_PARALLEL);
        measure_plain(r, &parallel->p, &m);
        print(o, "O3_parallel", &m, false);
        if (is_matrices(&space)) {
            matrices.threads = o->measure.threads;
            runner_measure_function(r, multiply, &m);
            print(o, "OpenBLAS", &m, false);
        }
        printf(o->json ? "}\n" : "");
        runner_close(r);
    }
    free(r);
    free(parallel);
    space_close(&space);
    return !ok;
}
