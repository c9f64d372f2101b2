/* Operators as blocks. Their names are those that TVM's operator library gives them. */
#include "operators.h"
#include <stdlib.h>
#include <string.h>

const char operators_help[] = "  matmul M N K                       C[m,n] = sum A[m,k] B[k,n]\n"
                              "  batch_matmul B M N K               C[b,m,n] = sum A[b,m,k] B[b,k,n]\n"
                              "  conv2d N C H W F K STRIDE PAD      NCHW, F filters of K x K\n"
                              "  depthwise N C H W K STRIDE PAD     NCHW, one filter of K x K for each channel\n"
                              "  softmax ROWS COLUMNS               over each row\n"
                              "  layer_norm ROWS COLUMNS            over each row, with scale and shift\n";

enum { MAX_SHAPE = 8, MAX_EXTENT = 1 << 20 };
static const double MAX_ELEMENTS = 1 << 28; /* of a buffer */

/* `index` of a load: a sum of terms by iterator number. */
static void index_of(program *p, int e, int dim, int first, int factor, int other, int constant) {
    affine *index = &p->accesses[p->expressions[e].access].index[dim];
    bool full = false;
    affine term = affine_variable(first);
    *index = affine_constant(constant);
    affine_add(index, &term, factor, &full);
    if (other != NONE) {
        term = affine_variable(other);
        affine_add(index, &term, 1, &full);
    }
}

/* A load of buffer[iterators]. */
static int load(program *p, int from, const int *iterators) {
    const int e = add_load(p, OP_LOAD, from);
    for (int d = 0; d < p->buffers[from].dims; d++)
        index_of(p, e, d, iterators[d], 1, NONE, 0);
    return e;
}

static void matmul(program *p, const int *x) {
    static const char *const names[] = {"i", "j", "k"};
    const int a = add_buffer(p, "A", BUFFER_INPUT, 2, (int[]){x[0], x[2]});
    const int b = add_buffer(p, "B", BUFFER_INPUT, 2, (int[]){x[2], x[1]});
    const int c = add_buffer(p, "C", BUFFER_OUTPUT, 2, x);
    const int left = load(p, a, (int[]){0, 2}), right = load(p, b, (int[]){2, 1});
    (void)add_block(p, "matmul", c, COMBINE_SUM, add_expression(p, OP_MULTIPLY, left, right), 3, names, x);
}

static void batch_matmul(program *p, const int *x) {
    static const char *const names[] = {"b", "i", "j", "k"};
    const int a = add_buffer(p, "A", BUFFER_INPUT, 3, (int[]){x[0], x[1], x[3]});
    const int b = add_buffer(p, "B", BUFFER_INPUT, 3, (int[]){x[0], x[3], x[2]});
    const int c = add_buffer(p, "C", BUFFER_OUTPUT, 3, x);
    const int left = load(p, a, (int[]){0, 1, 3}), right = load(p, b, (int[]){0, 3, 2});
    (void)add_block(p, "batch_matmul", c, COMBINE_SUM, add_expression(p, OP_MULTIPLY, left, right), 4, names, x);
}

/* The input, or a block that pads it. */
static int padded(program *p, int input, int pad) {
    static const char *const names[] = {"i0", "i1", "i2", "i3"};
    if (pad == 0)
        return input;
    int shape[4];
    memcpy(shape, p->buffers[input].shape, sizeof shape);
    shape[2] += 2 * pad;
    shape[3] += 2 * pad;
    const int out = add_buffer(p, "pad", BUFFER_INTERMEDIATE, 4, shape);
    const int e = add_load(p, OP_LOAD_PADDED, input);
    for (int d = 0; d < 4; d++)
        index_of(p, e, d, d, 1, NONE, d < 2 ? 0 : -pad);
    const int b = add_block(p, "pad_temp", out, COMBINE_NONE, e, 4, names, shape);
    p->blocks[b].role = "producer";
    return out;
}

/* The element of a source in NCHW that a filter meets: image and place are loops 0, 2 and 3 of the convolution, the
 * place in the filter is loops `window` and `window` + 1. */
static int load_window(program *p, int source, int channel, int stride, int window) {
    const int loaded = add_load(p, OP_LOAD, source);
    index_of(p, loaded, 0, 0, 1, NONE, 0);
    index_of(p, loaded, 1, channel, 1, NONE, 0);
    index_of(p, loaded, 2, 2, stride, window, 0);
    index_of(p, loaded, 3, 3, stride, window + 1, 0);
    return loaded;
}

static void conv2d(program *p, const int *x) {
    static const char *const names[] = {"nn", "ff", "yy", "xx", "rc", "ry", "rx"};
    const int n = x[0], c = x[1], f = x[4], k = x[5], stride = x[6], pad = x[7];
    const int h = (x[2] + 2 * pad - k) / stride + 1, w = (x[3] + 2 * pad - k) / stride + 1;
    const int in = add_buffer(p, "X", BUFFER_INPUT, 4, x);
    const int filters = add_buffer(p, "W", BUFFER_INPUT, 4, (int[]){f, c, k, k});
    const int out = add_buffer(p, "Y", BUFFER_OUTPUT, 4, (int[]){n, f, h, w});
    const int source = padded(p, in, pad);
    const int left = load_window(p, source, 4, stride, 5);
    const int right = load(p, filters, (int[]){1, 4, 5, 6});
    (void)add_block(p, "conv2d_nchw", out, COMBINE_SUM, add_expression(p, OP_MULTIPLY, left, right), 7, names,
                    (int[]){n, f, h, w, c, k, k});
}

static void depthwise(program *p, const int *x) {
    static const char *const names[] = {"b", "c", "i", "j", "di", "dj"};
    const int n = x[0], c = x[1], k = x[4], stride = x[5], pad = x[6];
    const int h = (x[2] + 2 * pad - k) / stride + 1, w = (x[3] + 2 * pad - k) / stride + 1;
    const int in = add_buffer(p, "X", BUFFER_INPUT, 4, x);
    const int filters = add_buffer(p, "W", BUFFER_INPUT, 3, (int[]){c, k, k});
    const int out = add_buffer(p, "Y", BUFFER_OUTPUT, 4, (int[]){n, c, h, w});
    const int source = padded(p, in, pad);
    const int left = load_window(p, source, 1, stride, 4);
    const int right = load(p, filters, (int[]){1, 4, 5});
    (void)add_block(p, "DepthwiseConv2d", out, COMBINE_SUM, add_expression(p, OP_MULTIPLY, left, right), 6, names,
                    (int[]){n, c, h, w, k, k});
}

static void softmax(program *p, const int *x) {
    static const char *const names[] = {"i", "k"};
    static const int both[] = {0, 1};
    const int in = add_buffer(p, "X", BUFFER_INPUT, 2, x);
    const int out = add_buffer(p, "Y", BUFFER_OUTPUT, 2, x);
    const int most = add_buffer(p, "T_softmax_maxelem", BUFFER_INTERMEDIATE, 1, x);
    const int powers = add_buffer(p, "T_softmax_exp", BUFFER_INTERMEDIATE, 2, x);
    const int sum = add_buffer(p, "T_softmax_expsum", BUFFER_INTERMEDIATE, 1, x);
    (void)add_block(p, "T_softmax_maxelem", most, COMBINE_MAX, load(p, in, both), 2, names, x);
    int left = load(p, in, both), right = load(p, most, both);
    const int shifted = add_expression(p, OP_SUBTRACT, left, right);
    (void)add_block(p, "T_softmax_exp", powers, COMBINE_NONE, add_expression(p, OP_EXP, shifted, NONE), 2, names, x);
    (void)add_block(p, "T_softmax_expsum", sum, COMBINE_SUM, load(p, powers, both), 2, names, x);
    left = load(p, powers, both);
    right = load(p, sum, both);
    (void)add_block(p, "T_softmax_norm", out, COMBINE_NONE, add_expression(p, OP_DIVIDE, left, right), 2, names, x);
}

/* (x - mean) / sqrt(mean of squares - mean squared + 1e-5) * scale + shift */
static void layer_norm(program *p, const int *x) {
    static const char *const names[] = {"i", "k"};
    static const int both[] = {0, 1}, column[] = {1};
    const int in = add_buffer(p, "X", BUFFER_INPUT, 2, x);
    const int scale = add_buffer(p, "gamma", BUFFER_INPUT, 1, x + 1);
    const int shift = add_buffer(p, "beta", BUFFER_INPUT, 1, x + 1);
    const int out = add_buffer(p, "Y", BUFFER_OUTPUT, 2, x);
    const int sum = add_buffer(p, "A_sum", BUFFER_INTERMEDIATE, 1, x);
    const int squares = add_buffer(p, "A_square_sum", BUFFER_INTERMEDIATE, 1, x);
    (void)add_block(p, "A_sum", sum, COMBINE_SUM, load(p, in, both), 2, names, x);
    int left = load(p, in, both), right = load(p, in, both);
    (void)add_block(p, "A_square_sum", squares, COMBINE_SUM, add_expression(p, OP_MULTIPLY, left, right), 2, names, x);
    const int share = add_constant(p, 1.0f / (float)x[1]);
    const int mean = add_expression(p, OP_MULTIPLY, load(p, sum, both), share);
    const int mean_squared = add_expression(p, OP_MULTIPLY, mean, mean);
    const int of_squares = add_expression(p, OP_MULTIPLY, load(p, squares, both), share);
    const int variance = add_expression(p, OP_SUBTRACT, of_squares, mean_squared);
    const int deviation =
        add_expression(p, OP_RSQRT, add_expression(p, OP_ADD, variance, add_constant(p, 1e-5f)), NONE);
    left = add_expression(p, OP_SUBTRACT, load(p, in, both), mean);
    left = add_expression(p, OP_MULTIPLY, add_expression(p, OP_MULTIPLY, left, deviation), load(p, scale, column));
    left = add_expression(p, OP_ADD, left, load(p, shift, column));
    (void)add_block(p, "T_layer_norm", out, COMBINE_NONE, left, 2, names, x);
}

static const struct {
    const char *name;
    int numbers, image; /* how many; where the height stands, the kernel, stride and padding being the last ones */
    void (*build)(program *p, const int *shape);
} OPERATORS[] = {{"matmul", 3, 0, matmul},   {"batch_matmul", 4, 0, batch_matmul},
                 {"conv2d", 8, 2, conv2d},   {"depthwise", 7, 2, depthwise},
                 {"softmax", 2, 0, softmax}, {"layer_norm", 2, 0, layer_norm}};

bool operator_build(const char *text, program *p, char *message, size_t message_size) {
    const size_t length = strcspn(text, " ");
    size_t o = 0;
    while (o < sizeof OPERATORS / sizeof *OPERATORS &&
           (strlen(OPERATORS[o].name) != length || strncmp(OPERATORS[o].name, text, length) != 0))
        o++;
    if (o == sizeof OPERATORS / sizeof *OPERATORS) {
        (void)snprintf(message, message_size, "unknown operator \"%.40s\"", text);
        return false;
    }
    int shape[MAX_SHAPE];
    const char *at = text + length;
    if (at[strspn(at, " 0123456789")] != 0) {
        (void)snprintf(message, message_size, "\"%.60s\": only numbers may follow the operator", text);
        return false;
    }
    for (int i = 0; i < OPERATORS[o].numbers; i++) {
        const bool is_pad = OPERATORS[o].image && i == OPERATORS[o].numbers - 1;
        char *end;
        const long value = strtol(at, &end, 10);
        if (end == at || value < (is_pad ? 0 : 1) || value > MAX_EXTENT) {
            (void)snprintf(message, message_size, "\"%.60s\": number %d of %d must be %d to %d", text, i + 1,
                           OPERATORS[o].numbers, is_pad ? 0 : 1, MAX_EXTENT);
            return false;
        }
        shape[i] = (int)value;
        at = end;
    }
    if (at[strspn(at, " ")] != 0) {
        (void)snprintf(message, message_size, "\"%.60s\": more than %d numbers", text, OPERATORS[o].numbers);
        return false;
    }
    if (OPERATORS[o].image) {
        const int *last = shape + OPERATORS[o].numbers - 3, *image = shape + OPERATORS[o].image;
        if (last[0] > image[0] + 2 * last[2] || last[0] > image[1] + 2 * last[2]) {
            (void)snprintf(message, message_size, "\"%.60s\": the filter is larger than the padded image", text);
            return false;
        }
    }
    memset(p, 0, sizeof *p);
    OPERATORS[o].build(p, shape);
    for (int b = 0; b < p->buffer_count; b++) {
        double elements = 1;
        for (int d = 0; d < p->buffers[b].dims; d++)
            elements *= p->buffers[b].shape[d];
        if (elements > MAX_ELEMENTS) {
            (void)snprintf(message, message_size, "\"%.60s\": %s has more than 2^28 elements", text,
                           p->buffers[b].name);
            return false;
        }
    }
    for (int b = 0; b < p->block_count; b++)
        p->blocks[b].number = p->block_count - 1 - b;
    return true;
}

void operator_name(const char *text, char *name, size_t size) {
    size_t n = 0;
    for (; text[n] && text[n] != '\n' && n + 1 < size; n++)
        name[n] = text[n] == ' ' ? '_' : text[n];
    name[n] = 0;
}
