/*
 * Time of the linear layers' kernels on every shape that CodeBERT's size and 4 x 256 have, at 16, 128 and 512 rows, one
 * thread: this library in every precision, beside OpenBLAS and oneDNN where they were there when it was built. By
 * turns; the best of all rounds, in operations a second (two for a multiplication and addition). This library's figures
 * hold the preparation of x (rounding, quantising) and the bias; the other libraries get x in the type that they
 * multiply, and weights in the layout that they ask for. The last column is the machine's ceiling for float32,
 * multiply-adds that wait for nothing, measured between the rounds. OpenBLAS may know too little of a new processor:
 * OPENBLAS_CORETYPE=SkylakeX has it use AVX-512.
 *
 *     bench_gemm [--rounds N] [--rows N] [--json]
 */
#include "bench_machine.h"
#include "common/alloc.h"
#include "kernels_cpu/cpu.h"
#include "kernels_cpu/kernels.h"
#include "kernels_cpu/linear_bf16.h"
#include "kernels_cpu/linear_int8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(BENCH_OPENBLAS)
#include <cblas.h>
#endif
#if defined(BENCH_ONEDNN)
#include <dnnl.h>
void omp_set_num_threads(int count);
#endif

typedef struct gemm_shape {
    const char *model;
    size_t in, out;
} gemm_shape;

static const gemm_shape shapes[] = {{"12x768", 768, 2304}, {"12x768", 768, 768}, {"12x768", 768, 3072},
                                    {"12x768", 3072, 768}, {"4x256", 256, 768},  {"4x256", 256, 256},
                                    {"4x256", 256, 1024},  {"4x256", 1024, 256}};
static const size_t row_counts[] = {16, 128, 512};

enum { SHAPES = sizeof shapes / sizeof *shapes, ROW_COUNTS = 3, MAX_SUBJECTS = 16, MAX_ROWS = 512, LARGEST = 3072 };

/* What is timed on one shape: called for `rows` rows, it multiplies once. */
typedef struct subject {
    const char *name;
    foreloop_linear kernel; /* of this library, or packed_size NULL */
    void *packed;
#if defined(BENCH_ONEDNN)
    dnnl_data_type_t input, weight, result;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[3];
#endif
    double best;
} subject;

typedef struct bench {
    subject subjects[MAX_SUBJECTS];
    size_t count;
    foreloop_tier tier;
    double peak; /* operations a second */
    float *x, *weight, *bias, *y;
    void *prepared;
#if defined(BENCH_ONEDNN)
    dnnl_engine_t engine;
    dnnl_stream_t stream;
#endif
} bench;

/* As the library allocates: in huge pages where they fit. */
static void *memory(size_t size) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    void *block = foreloop_allocate(&allocator, size, 1);
    if (!block) {
        fprintf(stderr, "bench_gemm: out of memory\n");
        exit(1);
    }
    memset(block, 0, size);
    return block;
}

static subject *add(bench *b, const char *name) {
    b->subjects[b->count] = (subject){.name = name};
    return &b->subjects[b->count++];
}

static void add_kernel(bench *b, const char *name, const foreloop_linear *kernel) {
    add(b, name)->kernel = *kernel;
}

static void add_subjects(bench *b) {
    const foreloop_cpu_limits limits = {.use_amx = true};
    const unsigned features = foreloop_cpu_choose(&limits);
    foreloop_kernels kernels;
    b->tier = foreloop_cpu_features_tier(features);
    foreloop_kernels_init(&kernels, b->tier, features);
    static const char *const names[FORELOOP_PRECISIONS] = {"f32", "bf16", "int8", "int8_row"};
    for (int p = 0; p < FORELOOP_PRECISIONS; p++)
        add_kernel(b, names[p], &kernels.linear[p]);
#if defined(FORELOOP_X86_KERNELS)
    if (foreloop_cpu_features() & ~features & FORELOOP_CPU_AVX512_BF16) {
        foreloop_linear kernel;
        foreloop_linear_bf16_avx512_bf16(&kernel);
        add_kernel(b, "vdpbf16ps", &kernel); /* present, but not chosen */
    }
#endif
#if defined(BENCH_OPENBLAS)
    add(b, "OpenBLAS f32");
#endif
#if defined(BENCH_ONEDNN)
    static const struct {
        const char *name;
        dnnl_data_type_t input, weight, result;
    } types[] = {{"oneDNN f32", dnnl_f32, dnnl_f32, dnnl_f32},
                 {"oneDNN bf16", dnnl_bf16, dnnl_bf16, dnnl_f32},
                 {"oneDNN int8", dnnl_u8, dnnl_s8, dnnl_s32}};
    omp_set_num_threads(1);
    if (dnnl_engine_create(&b->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags) != dnnl_success)
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        subject *s = add(b, types[i].name);
        s->input = types[i].input;
        s->weight = types[i].weight;
        s->result = types[i].result;
    }
#endif
}

#if defined(BENCH_ONEDNN)
static dnnl_memory_t onednn_memory(const bench *b, const dnnl_memory_desc_t *description) {
    dnnl_memory_t made;
    void *data;
    if (dnnl_memory_create(&made, description, b->engine, DNNL_MEMORY_ALLOCATE) != dnnl_success)
        return NULL;
    dnnl_memory_get_data_handle(made, &data);
    memset(data, 0x3c, dnnl_memory_desc_get_size(description)); /* small numbers in each type */
    return made;
}

/* A matrix product of these types; s->primitive stays NULL where there is none. */
static void open_onednn(const bench *b, subject *s, size_t rows, const gemm_shape *shape) {
    const dnnl_dims_t x = {(dnnl_dim_t)rows, (dnnl_dim_t)shape->in},
                      w = {(dnnl_dim_t)shape->in, (dnnl_dim_t)shape->out};
    const dnnl_dims_t y = {(dnnl_dim_t)rows, (dnnl_dim_t)shape->out};
    dnnl_memory_desc_t input, weight, result;
    dnnl_matmul_desc_t description;
    dnnl_primitive_desc_t chosen;
    s->primitive = NULL;
    if (dnnl_memory_desc_init_by_tag(&input, 2, x, s->input, dnnl_ab) != dnnl_success ||
        dnnl_memory_desc_init_by_tag(&weight, 2, w, s->weight, dnnl_format_tag_any) != dnnl_success ||
        dnnl_memory_desc_init_by_tag(&result, 2, y, s->result, dnnl_ab) != dnnl_success ||
        dnnl_matmul_desc_init(&description, &input, &weight, NULL, &result) != dnnl_success ||
        dnnl_primitive_desc_create(&chosen, &description, NULL, b->engine, NULL) != dnnl_success)
        return;
    if (dnnl_primitive_create(&s->primitive, chosen) == dnnl_success) {
        const dnnl_memory_desc_t *layout = dnnl_primitive_desc_query_md(chosen, dnnl_query_weights_md, 0);
        s->arguments[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, onednn_memory(b, &input)};
        s->arguments[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, onednn_memory(b, layout)};
        s->arguments[2] = (dnnl_exec_arg_t){DNNL_ARG_DST, onednn_memory(b, &result)};
    }
    dnnl_primitive_desc_destroy(chosen);
}

static void close_onednn(subject *s) {
    if (!s->primitive)
        return;
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(s->arguments[i].memory);
    dnnl_primitive_destroy(s->primitive);
    s->primitive = NULL;
}
#endif

static void multiply(bench *b, const subject *s, size_t rows, const gemm_shape *shape) {
    const size_t in = shape->in, out = shape->out;
    if (s->kernel.packed_size) {
        const foreloop_linear_call call = {.rows = rows,
                                           .in = in,
                                           .out = out,
                                           .x = b->x,
                                           .x_stride = in,
                                           .prepared = s->kernel.prepare ? b->prepared : NULL,
                                           .packed = s->packed,
                                           .bias = b->bias,
                                           .epilogue = FORELOOP_EPILOGUE_NONE,
                                           .y = b->y,
                                           .y_stride = out};
        if (s->kernel.prepare)
            s->kernel.prepare(b->prepared, b->x, in, rows, in, 0, rows);
        s->kernel.run(&call, 0, rows, 0, out);
        return;
    }
#if defined(BENCH_ONEDNN)
    if (s->primitive) {
        dnnl_primitive_execute(s->primitive, b->stream, 3, s->arguments);
        dnnl_stream_wait(b->stream);
        return;
    }
#endif
#if defined(BENCH_OPENBLAS)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)out, (blasint)in, 1, b->x, (blasint)in,
                b->weight, (blasint)in, 0, b->y, (blasint)out);
#endif
}

static void time_shape(bench *b, size_t rows, const gemm_shape *shape, int rounds) {
    const foreloop_allocator allocator = foreloop_allocator_or_default(NULL);
    for (size_t i = 0; i < b->count; i++) {
        subject *s = &b->subjects[i];
        s->best = 1e9;
        if (s->kernel.packed_size) {
            s->packed = memory(s->kernel.packed_size(shape->in, shape->out));
            s->kernel.pack(s->packed, b->weight, shape->in, shape->out);
        }
#if defined(BENCH_ONEDNN)
        else if (strncmp(s->name, "oneDNN", 6) == 0)
            open_onednn(b, s, rows, shape);
#endif
    }
    b->peak = 0;
    for (int round = 0; round < rounds; round++) {
        const double peak = bench_peak(b->tier);
        b->peak = peak > b->peak ? peak : b->peak;
        for (size_t i = 0; i < b->count; i++) {
            multiply(b, &b->subjects[i], rows, shape); /* warms the caches again */
            const double begin = bench_wall_clock();
            multiply(b, &b->subjects[i], rows, shape);
            const double seconds = bench_wall_clock() - begin;
            if (seconds < b->subjects[i].best)
                b->subjects[i].best = seconds;
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        foreloop_release(&allocator, b->subjects[i].packed);
        b->subjects[i].packed = NULL;
#if defined(BENCH_ONEDNN)
        close_onednn(&b->subjects[i]);
#endif
    }
}

static void print_shape(const bench *b, size_t rows, const gemm_shape *shape, int json) {
    const double operations = 2.0 * (double)rows * (double)shape->in * (double)shape->out;
    if (json) {
        for (size_t i = 0; i < b->count; i++)
            printf("{\"bench\":\"gemm\",\"model\":\"%s\",\"rows\":%zu,\"in\":%zu,\"out\":%zu,\"subject\":\"%s\","
                   "\"us\":%.2f,\"gops\":%.1f}\n",
                   shape->model, rows, shape->in, shape->out, b->subjects[i].name, b->subjects[i].best * 1e6,
                   operations / b->subjects[i].best * 1e-9);
        printf("{\"bench\":\"gemm\",\"model\":\"%s\",\"rows\":%zu,\"in\":%zu,\"out\":%zu,\"subject\":\"peak f32\","
               "\"us\":%.2f,\"gops\":%.1f}\n",
               shape->model, rows, shape->in, shape->out, operations / b->peak * 1e6, b->peak * 1e-9);
        return;
    }
    printf("%-7s %5zu %5zu %5zu", shape->model, rows, shape->in, shape->out);
    for (size_t i = 0; i < b->count; i++)
        printf(" %12.0f", operations / b->subjects[i].best * 1e-9);
    printf(" %12.0f\n", b->peak * 1e-9);
}

static long number_after(int argc, char **argv, const char *option, long otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return strtol(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv) {
    static bench b;
    const int rounds = (int)number_after(argc, argv, "--rounds", 15);
    const long only = number_after(argc, argv, "--rows", 0);
    const int json = argc > 1 && strcmp(argv[argc - 1], "--json") == 0;
    uint64_t random = 7;
    b.x = memory(MAX_ROWS * LARGEST * sizeof(float));
    b.y = memory(MAX_ROWS * LARGEST * sizeof(float));
    b.weight = memory((size_t)LARGEST * LARGEST * sizeof(float));
    b.bias = memory(LARGEST * sizeof(float));
    b.prepared = memory((MAX_ROWS + 64) * LARGEST * 8);
    for (size_t i = 0; i < (size_t)LARGEST * LARGEST; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        b.weight[i] = ((float)(random >> 40) / 8388608.0f - 1) * 0.05f;
        if (i < MAX_ROWS * LARGEST)
            b.x[i] = b.weight[i] * 20;
    }
    add_subjects(&b);
    if (!json) {
        printf("Operations a second in 10^9, the best of %d rounds.\n", rounds);
#if defined(BENCH_OPENBLAS)
        printf("OpenBLAS runs its kernels for %s.\n", openblas_get_corename());
#endif
        printf("\n%-7s %5s %5s %5s", "model", "rows", "in", "out");
        for (size_t i = 0; i < b.count; i++)
            printf(" %12s", b.subjects[i].name);
        printf(" %12s\n", "peak f32");
    }
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t r = 0; r < ROW_COUNTS; r++) {
            if (only && (size_t)only != row_counts[r])
                continue;
            time_shape(&b, row_counts[r], &shapes[s], rounds);
            print_shape(&b, row_counts[r], &shapes[s], json);
        }
    return 0;
}
