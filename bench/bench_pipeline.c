/*
 * Time and memory of every stage of ranking one tuning database: medians of repeated runs, one thread.
 *
 *     bench_pipeline MODEL WORKLOAD.txt RECORDS [--json]
 */
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ACTIONS = 1 << 16, MAX_RECORDS = 4096, MAX_RUNS = 101 };

/* Bytes in use and the most ever, by an allocator that writes the size before each block. */
typedef struct memory {
    size_t live, peak;
} memory;

static void *counted_allocate(void *user, size_t size, size_t alignment) {
    memory *m = user;
    size_t room = alignment < 16 ? 16 : alignment;
    void *block = NULL;
    if (posix_memalign(&block, room, size + room) != 0)
        return NULL;
    unsigned char *pointer = (unsigned char *)block + room;
    memcpy(pointer - 16, &size, sizeof size);
    memcpy(pointer - 8, &room, sizeof room);
    m->live += size;
    m->peak = m->live > m->peak ? m->live : m->peak;
    return pointer;
}

static void counted_release(void *user, void *pointer) {
    memory *m = user;
    size_t size, room;
    memcpy(&size, (unsigned char *)pointer - 16, sizeof size);
    memcpy(&room, (unsigned char *)pointer - 8, sizeof room);
    m->live -= size;
    free((unsigned char *)pointer - room);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *times, size_t count) {
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

typedef struct bench {
    memory memory;
    foreloop_options options;
    foreloop_allocator allocator;
    foreloop_error error;
    foreloop_model *model;
    foreloop_encoder *encoder;
    foreloop_workload *workload;
    foreloop_actions *actions;
    foreloop_scorer *scorer;
    uint32_t ids[MAX_ACTIONS];
    size_t offsets[MAX_RECORDS + 1], records;
    size_t open_bytes, encoder_bytes, table_bytes, scorer_bytes;
    double times[MAX_RUNS];
} bench;

static void check(bench *b, foreloop_status status, const char *what) {
    if (status == FORELOOP_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, b->error.message);
    exit(1);
}

static double bench_open(bench *b, const char *path) {
    enum { RUNS = 11 };
    size_t before = b->memory.live;
    for (size_t i = 0; i < RUNS; i++) {
        foreloop_model_close(b->model);
        double start = now();
        check(b, foreloop_model_open(&b->model, path, &b->options, &b->error), "open");
        b->times[i] = now() - start;
    }
    b->open_bytes = b->memory.live - before;
    return median(b->times, RUNS);
}

static double bench_encode(bench *b, const char *text, size_t length) {
    enum { RUNS = 7 };
    size_t before = b->memory.live;
    check(b, foreloop_encoder_create(&b->encoder, foreloop_model_transformer(b->model), &b->error), "encoder");
    for (size_t i = 0; i < RUNS; i++) {
        foreloop_workload_close(b->workload);
        double start = now();
        check(b, foreloop_workload_encode(&b->workload, b->model, b->encoder, text, length, &b->error), "encode");
        b->times[i] = now() - start;
    }
    b->encoder_bytes = b->memory.live - before;
    return median(b->times, RUNS);
}

/* Seconds to tokenise the text once. */
static double bench_tokenize(bench *b, const char *text, size_t length) {
    enum { RUNS = 51 };
    foreloop_encoding *encoding = NULL;
    const foreloop_transformer *transformer = foreloop_model_transformer(b->model);
    check(b, foreloop_encoding_create(&encoding, foreloop_transformer_tokenizer(transformer), &b->error), "encoding");
    for (size_t i = 0; i < RUNS; i++) {
        double start = now();
        check(b, foreloop_tokenize(encoding, text, length, 1, &b->error), "tokenize");
        b->times[i] = now() - start;
    }
    foreloop_encoding_close(encoding);
    return median(b->times, RUNS);
}

/* Reads all records, without and with interning; seconds for the whole file. */
static double bench_records(bench *b, const char *path, int intern) {
    enum { RUNS = 11 };
    size_t before = b->memory.live;
    for (size_t i = 0; i < RUNS; i++) {
        foreloop_records *records = NULL;
        foreloop_records_options options;
        foreloop_records_options_init(&options, sizeof options);
        options.allocator = &b->allocator;
        if (intern && !b->actions)
            check(b, foreloop_actions_create(&b->actions, b->model, 0, &b->error), "actions");
        double start = now();
        check(b, foreloop_records_open(&records, path, &options, &b->error), "records");
        b->records = 0;
        foreloop_record record = {.size = sizeof record};
        while (foreloop_records_next(records, &record, NULL) == FORELOOP_OK && b->records < MAX_RECORDS) {
            size_t at = b->offsets[b->records];
            if (at + record.action_count > MAX_ACTIONS)
                break;
            if (intern)
                check(b,
                      foreloop_actions_intern(b->actions, record.actions, record.action_count, b->ids + at, &b->error),
                      "intern");
            b->offsets[++b->records] = at + record.action_count;
        }
        b->times[i] = now() - start;
        foreloop_records_close(records);
    }
    if (intern)
        b->table_bytes = b->memory.live - before;
    return median(b->times, RUNS);
}

static double bench_score(bench *b) {
    enum { RUNS = 51 };
    float scores[MAX_RECORDS];
    size_t before = b->memory.live;
    check(b, foreloop_scorer_create(&b->scorer, b->model, b->actions, NULL, &b->error), "scorer");
    b->scorer_bytes = b->memory.live - before;
    for (size_t i = 0; i < RUNS; i++) {
        double start = now();
        check(b, foreloop_score(b->scorer, b->workload, b->ids, b->offsets, b->records, scores, &b->error), "score");
        b->times[i] = now() - start;
    }
    return median(b->times, RUNS);
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 22);
    if (!file || !text) {
        perror(path);
        exit(1);
    }
    *length = fread(text, 1, 1 << 22, file);
    fclose(file);
    return text;
}

static void report(const char *stage, double seconds, const char *per, size_t bytes, int json) {
    if (json)
        printf("{\"stage\":\"%s\",\"microseconds\":%.3f,\"per\":\"%s\",\"bytes\":%zu}\n", stage, seconds * 1e6, per,
               bytes);
    else
        printf("%-24s %12.2f us %-14s %10zu KB\n", stage, seconds * 1e6, per, bytes / 1024);
}

int main(int argc, char **argv) {
    static bench b;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_pipeline MODEL WORKLOAD.txt RECORDS [--json]\n");
        return 2;
    }
    int json = argc > 4 && strcmp(argv[4], "--json") == 0;
    b.allocator = (foreloop_allocator){counted_allocate, counted_release, &b.memory};
    foreloop_options_init(&b.options, sizeof b.options);
    b.options.allocator = &b.allocator;
    size_t length, packed_bytes;
    char *text = read_file(argv[2], &length), packed[] = "/tmp/foreloop-bench-XXXXXX";
    int file = mkstemp(packed);
    if (file < 0)
        return 1;
    check(&b, foreloop_model_pack(argv[1], packed, &b.options, &b.error), "pack");

    double open_packed = bench_open(&b, packed);
    packed_bytes = b.open_bytes;
    foreloop_model_close(b.model);
    b.model = NULL;
    double open_directory = bench_open(&b, argv[1]);
    double tokenize = bench_tokenize(&b, text, length), encode = bench_encode(&b, text, length);
    double read = bench_records(&b, argv[3], 0), intern = bench_records(&b, argv[3], 1), score = bench_score(&b);
    double records = (double)b.records;

    report("open directory", open_directory, "", b.open_bytes, json);
    report("open packed file", open_packed, "", packed_bytes, json);
    report("tokenize", tokenize, "a program", 0, json);
    report("encode", encode, "a program", b.encoder_bytes, json);
    report("read records", read / records, "a candidate", 0, json);
    report("intern (known actions)", (intern - read) / records, "a candidate", b.table_bytes, json);
    report("score", score / records, "a candidate", b.scorer_bytes, json);
    report("peak", 0, "", b.memory.peak, json);

    remove(packed);
    foreloop_scorer_close(b.scorer);
    foreloop_actions_close(b.actions);
    foreloop_workload_close(b.workload);
    foreloop_encoder_close(b.encoder);
    foreloop_model_close(b.model);
    free(text);
    return 0;
}
