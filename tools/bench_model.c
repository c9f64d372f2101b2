/* A packed bundle in memory. The encoder is as small as can be: scoring does not use it. */
#include "bench_model.h"
#include "bench.h"
#include "bench_trees.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { HIDDEN = 4, VOCABULARY = 4, POSITIONS = 8, MLP_HIDDEN = 64, MAX_TENSORS = 4096 };

static const char *const slot_names[BENCH_SLOTS] = {"extent", "factor_0", "factor_1", "factor_2", "inner", "depth"};

/* Roughly normal, of variance 1. */
static float draw_normal(uint64_t *random) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)bench_draw(random) / 2147483648.0 - 0.5;
    return (float)(sum * sqrt(3));
}

/* The bundle while it is made: a safetensors header, and the data behind it. */
typedef struct maker {
    const bench_shape *shape;
    foreloop_buffer header, data;
    uint64_t random;
    bool failed;
} maker;

static const char *kind_name(const bench_shape *shape, size_t kind, char name[BENCH_NAME_SIZE]) {
    (void)snprintf(name, BENCH_NAME_SIZE, "kind_%zu", kind);
    return shape->kind_names ? shape->kind_names[kind] : name;
}

__attribute__((format(printf, 3, 4))) static void print(maker *make, foreloop_buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    make->failed |= !bench_print(buffer, format, arguments);
    va_end(arguments);
}

static void add_entry(maker *make, const char *name, const char *type, const char *shape, const void *data,
                      size_t size) {
    print(make, &make->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
          make->header.size ? "," : "{", name, type, shape, make->data.size, make->data.size + size);
    if (foreloop_buffer_append(&make->data, data, size, NULL) != FORELOOP_OK)
        make->failed = true;
}

static void add_text(maker *make, const char *name, const foreloop_buffer *text) {
    char shape[32];
    (void)snprintf(shape, sizeof shape, "%zu", text->size);
    if (text->data)
        add_entry(make, name, "U8", shape, text->data, text->size);
}

/* A tensor of random numbers of this scale around `mean`; a vector when rows is 0; rows of unit length on request. */
static void add_tensor(maker *make, const char *name, size_t rows, size_t columns, float mean, float scale, bool unit) {
    const size_t count = (rows ? rows : 1) * columns;
    float *values = foreloop_allocate(make->data.allocator, count, sizeof *values);
    char shape[64];
    if (!values) {
        make->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = mean + scale * draw_normal(&make->random);
    for (size_t r = 0; unit && r < rows; r++) {
        double squares = 0;
        for (size_t i = 0; i < columns; i++)
            squares += (double)values[r * columns + i] * values[r * columns + i];
        for (size_t i = 0; i < columns; i++)
            values[r * columns + i] = (float)(values[r * columns + i] / sqrt(squares));
    }
    (void)(rows ? snprintf(shape, sizeof shape, "%zu,%zu", rows, columns)
                : snprintf(shape, sizeof shape, "%zu", columns));
    add_entry(make, name, "F32", shape, values, count * sizeof *values);
    foreloop_release(make->data.allocator, values);
}

static void add_encoder(maker *make) {
    static const char *const square[] = {"attention.self.query",   "attention.self.key", "attention.self.value",
                                         "attention.output.dense", "intermediate.dense", "output.dense"};
    static const char *const norms[] = {"embeddings.LayerNorm", "encoder.layer.0.attention.output.LayerNorm",
                                        "encoder.layer.0.output.LayerNorm"};
    char name[128];
    add_tensor(make, "encoder/embeddings.word_embeddings.weight", VOCABULARY, HIDDEN, 0, 1, false);
    add_tensor(make, "encoder/embeddings.position_embeddings.weight", POSITIONS, HIDDEN, 0, 1, false);
    add_tensor(make, "encoder/embeddings.token_type_embeddings.weight", 1, HIDDEN, 0, 1, false);
    for (size_t i = 0; i < sizeof square / sizeof *square; i++) {
        (void)snprintf(name, sizeof name, "encoder/encoder.layer.0.%s.weight", square[i]);
        add_tensor(make, name, HIDDEN, HIDDEN, 0, 1, false);
        (void)snprintf(name, sizeof name, "encoder/encoder.layer.0.%s.bias", square[i]);
        add_tensor(make, name, 0, HIDDEN, 0, 1, false);
    }
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        (void)snprintf(name, sizeof name, "encoder/%s.weight", norms[i]);
        add_tensor(make, name, 0, HIDDEN, 1, 0, false);
        (void)snprintf(name, sizeof name, "encoder/%s.bias", norms[i]);
        add_tensor(make, name, 0, HIDDEN, 0, 0, false);
    }
    add_tensor(make, "encoder/pooling.weight", make->shape->latent, HIDDEN, 0, 1, false);
    add_tensor(make, "encoder/pooling.bias", 0, make->shape->latent, 0, 1, false);
}

static void add_transition(maker *make) {
    const size_t kinds = make->shape->kinds, latent = make->shape->latent;
    char name[128], own[BENCH_NAME_SIZE];
    add_tensor(make, "transition/kind_embedding", kinds, latent, 0, 0.1f, false);
    add_tensor(make, "transition/normal", kinds, latent, 0, 1, true);
    add_tensor(make, "transition/beta", 0, kinds, 1, 0.2f, false);
    for (size_t r = 0; r < kinds; r++) {
        (void)snprintf(name, sizeof name, "transition/mlp.%s.0.weight", kind_name(make->shape, r, own));
        add_tensor(make, name, MLP_HIDDEN, BENCH_SLOTS, 0, 0.1f, false);
        (void)snprintf(name, sizeof name, "transition/mlp.%s.0.bias", kind_name(make->shape, r, own));
        add_tensor(make, name, 0, MLP_HIDDEN, 0, 0.1f, false);
        (void)snprintf(name, sizeof name, "transition/mlp.%s.1.weight", kind_name(make->shape, r, own));
        add_tensor(make, name, latent, MLP_HIDDEN, 0, 0.02f, false);
        (void)snprintf(name, sizeof name, "transition/mlp.%s.1.bias", kind_name(make->shape, r, own));
        add_tensor(make, name, 0, latent, 0, 0.02f, false);
    }
}

static void add_network(maker *make) {
    const size_t features = make->shape->latent + BENCH_AGGREGATES, width = make->shape->network;
    const size_t sizes[] = {features, width, width, 1};
    char name[128];
    if (width == 0)
        return;
    add_tensor(make, "score_network/shift", 0, features, 0, 1, false);
    add_tensor(make, "score_network/scale", 0, features, 0.5f, 0.2f, false);
    add_tensor(make, "score_network/limit", 0, 1, 4, 0, false);
    for (size_t layer = 0; layer < 3; layer++) {
        (void)snprintf(name, sizeof name, "score_network/%zu.weight", layer);
        add_tensor(make, name, sizes[layer + 1], sizes[layer], 0, 1 / sqrtf((float)sizes[layer]), false);
        (void)snprintf(name, sizeof name, "score_network/%zu.bias", layer);
        add_tensor(make, name, 0, sizes[layer + 1], 0, 0.1f, false);
    }
}

static void add_manifest(maker *make) {
    static const char *const aggregates[] = {"sum", "max", "min", "first", "last"};
    foreloop_buffer text = {.allocator = make->data.allocator};
    char name[BENCH_NAME_SIZE];
    print(make, &text,
          "{\"format\":\"foreloop-model\",%s,\"text_rule\":1,\"latent_size\":%zu,"
          "\"window\":{\"length\":8,\"stride\":4},\"pooling\":{\"projection\":true,\"normalize\":true},"
          "\"activation\":\"relu\",\"actions\":[",
          make->shape->network ? "\"format_version\":2,\"score_network\":true" : "\"format_version\":1",
          make->shape->latent);
    for (size_t r = 0; r < make->shape->kinds; r++) {
        print(make, &text, "%s{\"kind\":\"%s\",\"slots\":[", r ? "," : "", kind_name(make->shape, r, name));
        for (size_t i = 0; i < BENCH_SLOTS; i++)
            print(make, &text, "%s{\"name\":\"%s\",\"encoding\":\"signed_log\",\"range\":[0,65536]}", i ? "," : "",
                  slot_names[i]);
        print(make, &text, "]}");
    }
    print(make, &text, "],\"features\":[");
    for (size_t i = 0; i < make->shape->latent; i++)
        print(make, &text, "\"z.%zu\",", i);
    for (size_t i = 0; i < BENCH_AGGREGATES; i++) {
        const size_t kind = i % make->shape->kinds;
        if (i < make->shape->kinds && i % 2 == 0)
            print(make, &text, "\"count.%s\",", kind_name(make->shape, kind, name));
        else
            print(make, &text, "\"%s.%s.%s\",", aggregates[i % 5], kind_name(make->shape, kind, name),
                  slot_names[i % BENCH_SLOTS]);
    }
    if (text.data)
        text.size--; /* the last comma */
    print(make, &text, "]}");
    add_text(make, "model.json", &text);
    foreloop_buffer_close(&text);
}

static void add_ranker(maker *make) {
    const bench_forest forest = {.trees = make->shape->trees,
                                 .features = make->shape->latent + BENCH_AGGREGATES,
                                 .depth = make->shape->depth,
                                 .lowest = -2,
                                 .highest = 3};
    foreloop_buffer text = {.allocator = make->data.allocator};
    make->failed |= !bench_trees_make(&text, &forest);
    add_text(make, "ranker.json", &text);
    foreloop_buffer_close(&text);
}

static void add_small_texts(maker *make) {
    foreloop_buffer text = {.allocator = make->data.allocator};
    print(make, &text,
          "{\"model_type\":\"bert\",\"hidden_size\":%d,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
          "\"intermediate_size\":%d,\"max_position_embeddings\":%d,\"vocab_size\":%d,\"type_vocab_size\":1,"
          "\"pad_token_id\":0}",
          HIDDEN, HIDDEN, POSITIONS, VOCABULARY);
    add_text(make, "config.json", &text);
    text.size = 0;
    print(make, &text,
          "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
          "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":null,\"decoder\":null,\"model\":{"
          "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
          "\"max_input_chars_per_word\":100,\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"c\":3}}}");
    add_text(make, "tokenizer.json", &text);
    foreloop_buffer_close(&text);
}

bool bench_model_make(foreloop_buffer *bundle, const bench_shape *shape) {
    maker make = {.shape = shape,
                  .header = {.allocator = bundle->allocator},
                  .data = {.allocator = bundle->allocator},
                  .random = 1};
    add_encoder(&make);
    add_transition(&make);
    add_network(&make);
    add_manifest(&make);
    add_small_texts(&make);
    add_ranker(&make);
    print(&make, &make.header, "}");
    while (make.header.size % 8 && !make.failed)
        print(&make, &make.header, " ");
    unsigned char length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)make.header.size >> (8 * i));
    if (!make.failed)
        make.failed = foreloop_buffer_append(bundle, length, sizeof length, NULL) != FORELOOP_OK ||
                      foreloop_buffer_append(bundle, make.header.data, make.header.size, NULL) != FORELOOP_OK ||
                      foreloop_buffer_append(bundle, make.data.data, make.data.size, NULL) != FORELOOP_OK;
    foreloop_buffer_close(&make.header);
    foreloop_buffer_close(&make.data);
    return !make.failed;
}

void bench_action(size_t i, size_t kinds, char name[BENCH_NAME_SIZE], foreloop_argument arguments[BENCH_SLOTS],
                  foreloop_action *action) {
    uint64_t random = i / kinds + 1;
    (void)snprintf(name, BENCH_NAME_SIZE, "kind_%zu", i % kinds);
    for (size_t slot = 0; slot < BENCH_SLOTS; slot++) {
        const double value = slot == 0 ? (double)(i / kinds + 1) : (double)(1u << bench_draw(&random) % 12);
        arguments[slot] = (foreloop_argument){slot_names[slot], NULL, value};
    }
    *action = (foreloop_action){name, arguments, BENCH_SLOTS};
}

size_t bench_kind(bool trace, size_t candidate, size_t step, size_t kinds, uint64_t *random) {
    /* MetaSchedule's schedule of one block has the same order of kinds in nearly all candidates: tiling, the splits,
     * reorder, placements of the stages before and behind, annotations. Further blocks follow in the same way, with
     * fewer kinds of their own. */
    static const unsigned char order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 10, 11, 6, 7, 8, 12, 9};
    if (!trace)
        return bench_draw(random) % kinds;
    step += candidate % 8 == 0 && step >= 5; /* some candidates leave a placement out */
    return order[step % sizeof order] % kinds;
}
