/*
 * Every schedule computes what its program computes. Candidates of random operators, odd and prime extents among them,
 * are run by an interpreter of the loop tree, which knows nothing of code generation, and some of them as compiled
 * kernels. The programs themselves are compared with loops written here.
 */
#include "codegen.h"
#include "measure.h"
#include "operators.h"
#include "space.h"
#include "tap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCHEDULES = 40 /* interpreted for each operator */, COMPILED = 4 };

static const char *const OPERATORS[] = {"matmul 12 8 10",
                                        "matmul 7 13 11",
                                        "matmul 1 16 5",
                                        "matmul 16 1 9",
                                        "matmul 1 1 1",
                                        "matmul 31 32 1",
                                        "matmul 19 37 3",
                                        "matmul 4 197 5",
                                        "batch_matmul 2 17 25 6",
                                        "batch_matmul 3 5 8 6",
                                        "batch_matmul 1 4 9 2",
                                        "conv2d 1 3 7 7 4 3 1 1",
                                        "conv2d 2 4 9 8 3 3 2 1",
                                        "conv2d 1 5 6 6 7 1 1 0",
                                        "conv2d 1 1 5 5 2 5 1 2",
                                        "conv2d 1 2 19 17 2 3 1 1",
                                        "depthwise 1 4 8 8 3 1 1",
                                        "depthwise 1 17 8 8 5 1 2",
                                        "depthwise 1 2 37 38 3 2 1",
                                        "depthwise 2 3 11 9 5 2 2",
                                        "depthwise 1 1 5 5 3 1 0",
                                        "softmax 6 24",
                                        "softmax 7 13",
                                        "softmax 3 37",
                                        "softmax 2 197",
                                        "softmax 1 40",
                                        "softmax 5 1",
                                        "layer_norm 4 32",
                                        "layer_norm 5 17",
                                        "layer_norm 2 149",
                                        "layer_norm 1 30",
                                        "layer_norm 16 6"};

/* ---- An interpreter ---------------------------------------------------------------------------------------------- */

typedef struct machine {
    const program *p;
    float *memory[MAX_BUFFERS];
    int values[MAX_VARIABLES];
    bool outside; /* something was read or written out of bounds */
} machine;

static int evaluate(const affine *index, const int *values) {
    int result = index->constant;
    for (int i = 0; i < index->count; i++)
        result += index->terms[i].factor * values[index->terms[i].variable];
    return result;
}

/* The element's place, or -1 out of bounds. */
static long place_of(const machine *m, const element *a, const int *iterators) {
    const buffer *b = &m->p->buffers[a->buffer];
    long at = 0;
    for (int d = 0; d < b->dims; d++) {
        const int index = evaluate(&a->index[d], iterators);
        if (index < 0 || index >= b->shape[d])
            return -1;
        at = at * b->shape[d] + index;
    }
    return at;
}

static float value_of(machine *m, int e, const int *iterators) {
    const expression *x = &m->p->expressions[e];
    long at;
    float left, right;
    switch (x->op) {
    case OP_CONSTANT:
        return x->value;
    case OP_LOAD:
    case OP_LOAD_PADDED:
        at = place_of(m, &m->p->accesses[x->access], iterators);
        if (at < 0) {
            m->outside = m->outside || x->op == OP_LOAD;
            return 0;
        }
        return m->memory[m->p->accesses[x->access].buffer][at];
    case OP_EXP:
        return expf(value_of(m, x->left, iterators));
    case OP_RSQRT:
        return 1 / sqrtf(value_of(m, x->left, iterators));
    case OP_ADD:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE:
        break;
    }
    left = value_of(m, x->left, iterators);
    right = value_of(m, x->right, iterators);
    return x->op == OP_ADD        ? left + right
           : x->op == OP_SUBTRACT ? left - right
           : x->op == OP_MULTIPLY ? left * right
                                  : left / right;
}

static void run_block(machine *m, int b) {
    const block *k = &m->p->blocks[b];
    int iterators[MAX_ITERS];
    bool first = true; /* nothing has been reduced into this element yet */
    for (int i = 0; i < k->iters; i++) {
        iterators[i] = evaluate(&k->iter[i].binding, m->values);
        if (iterators[i] >= k->iter[i].extent)
            return;
        m->outside = m->outside || iterators[i] < 0;
        first = first && (i < k->spatial || iterators[i] == 0);
    }
    if (k->guard_extent && evaluate(&k->guard, iterators) >= k->guard_extent)
        return;
    const element made = output_access(m->p, b);
    const long at = place_of(m, &made, iterators);
    if (at < 0) {
        m->outside = true;
        return;
    }
    float *out = &m->memory[k->output][at];
    const float value = value_of(m, k->body, iterators);
    if (k->combine == COMBINE_NONE)
        *out = value;
    else if (k->combine == COMBINE_SUM)
        *out = first ? value : *out + value;
    else
        *out = first ? value : fmaxf(*out, value);
}

static void run_children(machine *m, int parent);

static void run_loop(machine *m, int loop, int which) {
    const node *n = &m->p->nodes[loop];
    if (which == n->count) {
        run_children(m, loop);
        return;
    }
    const int v = n->variables[which];
    for (m->values[v] = 0; m->values[v] < m->p->variables[v].extent; m->values[v]++)
        run_loop(m, loop, which + 1);
    m->values[v] = 0;
}

static void run_children(machine *m, int parent) {
    for (int n = m->p->nodes[parent].child; n != NONE; n = m->p->nodes[n].next)
        if (m->p->nodes[n].block != NONE)
            run_block(m, m->p->nodes[n].block);
        else
            run_loop(m, n, 0);
}

/* Runs a program on the inputs of all its forms; the output goes to a new array. */
static float *interpret(const program *p, float *const *inputs, bool *outside) {
    machine *m = calloc(1, sizeof *m);
    float *result = NULL;
    if (!m)
        return NULL;
    m->p = p;
    for (int b = 0; b < p->buffer_count; b++) {
        m->memory[b] =
            p->buffers[b].kind == BUFFER_INPUT ? inputs[b] : malloc(buffer_elements(&p->buffers[b]) * sizeof(float));
        for (size_t i = 0; p->buffers[b].kind != BUFFER_INPUT && i < buffer_elements(&p->buffers[b]); i++)
            m->memory[b][i] = NAN;
    }
    run_children(m, 0);
    *outside = m->outside;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == BUFFER_OUTPUT)
            result = m->memory[b];
        else if (p->buffers[b].kind == BUFFER_INTERMEDIATE)
            free(m->memory[b]);
    free(m);
    return result;
}

static int output_of(const program *p) {
    int b = 0;
    while (p->buffers[b].kind != BUFFER_OUTPUT)
        b++;
    return b;
}

static bool is_close(const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(b[i]))))
            return false;
    return true;
}

/* ---- What the operators compute ---------------------------------------------------------------------------------- */

static void expected_matrices(int batch, int m, int n, int k, const float *a, const float *b, float *c) {
    for (int s = 0; s < batch; s++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int l = 0; l < k; l++)
                    sum += a[(s * m + i) * k + l] * b[(s * k + l) * n + j];
                c[(s * m + i) * n + j] = sum;
            }
}

/* x: n c h w f k stride pad; a depthwise one has f = 1 filter for each channel. */
static void expected_conv(const int *x, bool depthwise, const float *in, const float *filters, float *out) {
    const int c = x[1], h = x[2], w = x[3], k = x[5], stride = x[6], pad = x[7];
    const int outputs = depthwise ? c : x[4], oh = (h + 2 * pad - k) / stride + 1, ow = (w + 2 * pad - k) / stride + 1;
    for (int n = 0; n < x[0]; n++)
        for (int f = 0; f < outputs; f++)
            for (int y = 0; y < oh; y++)
                for (int z = 0; z < ow; z++) {
                    float sum = 0;
                    for (int l = depthwise ? f : 0; l < (depthwise ? f + 1 : c); l++)
                        for (int r = 0; r < k; r++)
                            for (int s = 0; s < k; s++) {
                                const int iy = y * stride + r - pad, iz = z * stride + s - pad;
                                const float weight = filters[((depthwise ? f : f * c + l) * k + r) * k + s];
                                if (iy >= 0 && iy < h && iz >= 0 && iz < w)
                                    sum += in[((n * c + l) * h + iy) * w + iz] * weight;
                            }
                    out[((n * outputs + f) * oh + y) * ow + z] = sum;
                }
}

static void expected_rows(bool softmax, const int *x, float *const *inputs, float *out) {
    const int columns = x[1];
    for (int i = 0; i < x[0]; i++) {
        const float *row = inputs[0] + i * columns;
        float most = row[0], sum = 0, squares = 0;
        for (int k = 0; k < columns; k++)
            most = fmaxf(most, row[k]);
        for (int k = 0; k < columns; k++) {
            sum += softmax ? expf(row[k] - most) : row[k];
            squares += row[k] * row[k];
        }
        const float mean = sum / (float)columns, variance = squares / (float)columns - mean * mean;
        for (int k = 0; k < columns; k++)
            out[i * columns + k] = softmax ? expf(row[k] - most) / sum
                                           : (row[k] - mean) / sqrtf(variance + 1e-5f) * inputs[1][k] + inputs[2][k];
    }
}

static void expected(const char *text, float *const *inputs, float *out) {
    int x[8] = {0};
    char *end = strchr(text, ' ');
    for (int i = 0; i < 8 && *end; i++)
        x[i] = (int)strtol(end, &end, 10);
    if (strncmp(text, "matmul", 6) == 0)
        expected_matrices(1, x[0], x[1], x[2], inputs[0], inputs[1], out);
    else if (strncmp(text, "batch", 5) == 0)
        expected_matrices(x[0], x[1], x[2], x[3], inputs[0], inputs[1], out);
    else if (strncmp(text, "conv2d", 6) == 0)
        expected_conv(x, false, inputs[0], inputs[1], out);
    else if (strncmp(text, "depthwise", 9) == 0)
        expected_conv((int[]){x[0], x[1], x[2], x[3], 1, x[4], x[5], x[6]}, true, inputs[0], inputs[1], out);
    else
        expected_rows(strncmp(text, "softmax", 7) == 0, x, inputs, out);
}

/* ---- The tests --------------------------------------------------------------------------------------------------- */

typedef struct counts {
    int possible, impossible, wrong, actions;
} counts;

static void interpret_schedules(const search_space *space, float *const *inputs, const float *want, uint64_t *random,
                                schedule *s, counts *c) {
    const size_t elements = buffer_elements(&space->initial.buffers[output_of(&space->initial)]);
    for (int n = 0; n < SCHEDULES; n++) {
        uint16_t choices[MAX_DECISIONS];
        bool outside = false;
        space_sample(space, random, choices);
        for (int i = n % 4; i > 0; i--)
            space_mutate(space, random, choices);
        space_apply(space, choices, s);
        if (s->error) {
            c->impossible++;
            continue;
        }
        c->possible++;
        c->actions += s->action_count;
        float *got = interpret(&s->p, inputs, &outside);
        if (!got || outside || !is_close(got, want, elements))
            c->wrong++;
        free(got);
    }
}

/* Whether the code of a program, behind its prelude, has this text. */
static bool code_has(const program *p, const char *text) {
    char *code = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&code, &size);
    if (!out)
        return false;
    const bool good = !generate_c(p, out);
    (void)fclose(out);
    const char *kernel = code ? strstr(code, "__attribute__((noinline))") : NULL;
    const bool has = good && kernel && strstr(kernel, text);
    free(code);
    return has;
}

/* Kernels of random schedules whose code has a text, through the compiler. */
static void compile_schedules(const search_space *space, const measure_options *options, uint64_t *random,
                              const char *name, const char *text) {
    runner *r = calloc(1, sizeof *r);
    schedule *made = calloc(COMPILED, sizeof *made);
    const program *programs[COMPILED];
    measurement results[COMPILED];
    char message[512] = "no memory";
    int count = 0, right = 0;
    if (r && made && runner_open(r, &space->initial, options, message, sizeof message) &&
        runner_begin(r, message, sizeof message)) {
        for (int draws = 0; count < COMPILED && draws < 10000; draws++) {
            uint16_t choices[MAX_DECISIONS];
            space_sample(space, random, choices);
            space_apply(space, choices, &made[count]);
            if (!made[count].error && code_has(&made[count].p, text)) {
                programs[count] = &made[count].p;
                count++;
            }
        }
        runner_measure(r, programs, count, results);
        for (int i = 0; i < count; i++) {
            right += results[i].count > 0;
            if (results[i].count == 0)
                (void)snprintf(message, sizeof message, "%s", results[i].error);
        }
        runner_close(r);
    }
    CHECK(count == COMPILED && right == count, "%s: %d of %d compiled schedules are right (%s)", name, right, count,
          message);
    free(made);
    free(r);
}

static void test_operator(const char *name, const measure_options *options, schedule *s, bool compile) {
    program *initial = calloc(1, sizeof *initial);
    search_space space;
    char message[256];
    float *inputs[MAX_BUFFERS] = {NULL};
    uint64_t random = 977;
    counts c = {0};
    bool outside = false;
    if (!initial || !operator_build(name, initial, message, sizeof message) || !space_open(&space, initial)) {
        CHECK(0, "%s cannot be built", name);
        free(initial);
        return;
    }
    for (int b = 0; b < initial->buffer_count; b++)
        if (initial->buffers[b].kind == BUFFER_INPUT) {
            const size_t n = buffer_elements(&initial->buffers[b]);
            inputs[b] = malloc(n * sizeof(float));
            for (size_t i = 0; i < n; i++)
                inputs[b][i] = (float)draw_below(&random, 2001) / 1000 - 1;
        }
    const size_t elements = buffer_elements(&initial->buffers[output_of(initial)]);
    float *want = malloc(elements * sizeof *want);
    expected(name, inputs, want);
    float *plain = interpret(initial, inputs, &outside);
    CHECK(plain && !outside && is_close(plain, want, elements), "%s: the program computes the operator", name);
    interpret_schedules(&space, inputs, want, &random, s, &c);
    CHECK(c.wrong == 0 && c.possible > SCHEDULES / 4,
          "%s: of %d schedules %d compute something else; %d were impossible", name, c.possible, c.wrong, c.impossible);
    if (compile)
        compile_schedules(&space, options, &random, name, "");
    for (int b = 0; b < MAX_BUFFERS; b++)
        free(inputs[b]);
    free(want);
    free(plain);
    space_close(&space);
    free(initial);
}

/* Each way of writing vectors. */
static void test_vectors(const measure_options *options) {
    static const struct {
        const char *name, *text;
    } cases[] = {{"depthwise 1 2 5 67 3 2 0", "every2_v16("},
                 {"depthwise 1 2 5 25 3 2 0", "every2_v8("},
                 {"depthwise 1 3 5 11 3 2 0", "every2_v4("},
                 {"depthwise 1 2 5 66 3 2 1", "padded_v16("},
                 {"conv2d 1 2 5 35 3 3 1 1", "padded_v16("},
                 {"conv2d 1 2 4 12 2 3 1 1", "padded_v8("},
                 {"conv2d 1 2 4 7 2 3 2 2", "padded_v4("},
                 {"softmax 3 37", "exp_v16("},
                 {"softmax 4 12", "exp_v8("},
                 {"softmax 5 7", "exp_v4("},
                 {"matmul 3 37 4", "v16 *)"},
                 {"conv2d 1 1 2 290 1 3 1 1", "+= 16)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program *initial = calloc(1, sizeof *initial);
        search_space space;
        char message[256];
        uint64_t random = 31 + i;
        if (initial && operator_build(cases[i].name, initial, message, sizeof message) && space_open(&space, initial)) {
            compile_schedules(&space, options, &random, cases[i].name, cases[i].text);
            space_close(&space);
        }
        free(initial);
    }
}

static void test_refused(void) {
    static const char *const texts[] = {"",
                                        "matmul",
                                        "matmul 1 2",
                                        "matmul 1 2 3 4",
                                        "matmul 0 2 3",
                                        "matmul -1 2 3",
                                        "matmul 1 2 x",
                                        "matmul 99999999999 2 3",
                                        "matmul 1048576 1048576 1",
                                        "conv2d 1 1 3 3 1 5 1 0",
                                        "conv2d 1 1 3 3 1 3 0 0",
                                        "pool 1 2 3",
                                        "matmul 1\n2 3",
                                        "matmul +1 2 3",
                                        "matmul 1/2 2 3"};
    static program p;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char message[256] = "";
        const bool built = operator_build(texts[i], &p, message, sizeof message);
        CHECK(!built && message[0], "operator %zu is refused", i);
    }
}

int main(int argc, char **argv) {
    char directory[512];
    (void)snprintf(directory, sizeof directory, "%s/kernels_space", argc > 1 ? argv[1] : "/tmp");
    (void)mkdir(directory, 0777);
    const measure_options options = {.compiler = "cc", .directory = directory, .threads = 2, .jobs = 2, .timeout = 60};
    schedule *s = calloc(1, sizeof *s);
    if (!s)
        return 1;
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++)
        test_operator(OPERATORS[i], &options, s, i % 2 == 0);
    test_vectors(&options);
    test_refused();
    free(s);
    return tap_done();
}
