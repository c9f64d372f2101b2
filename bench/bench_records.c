/*
 * Speed of reading tuning records: megabytes of JSON text a second, one thread, medians of repeated runs over a file
 * whose lines are repeated in memory until it is large.
 *
 *     bench_records RECORDS [--megabytes N] [--full-trace] [--json]
 *
 * The same text is read plain and as gzip; the rate of gzip counts the text that comes out of it.
 */
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

enum { RUNS = 9 };

typedef struct bench_bytes {
    unsigned char *data;
    size_t size;
} bench_bytes;

static void fail(const char *what) {
    fprintf(stderr, "bench_records: %s\n", what);
    exit(1);
}

static bench_bytes allocate(size_t size) {
    bench_bytes bytes = {malloc(size > 0 ? size : 1), size};
    if (!bytes.data)
        fail("out of memory");
    return bytes;
}

/* The text of a file, plain or gzip, with a newline at its end, repeated until it has `size` bytes at least. */
static bench_bytes read_repeated(const char *path, size_t size) {
    enum { PIECE = 1 << 16 };
    bench_bytes once = {NULL, 0};
    gzFile file = gzopen(path, "rb");
    if (!file)
        fail("cannot open the records");
    for (int length = PIECE; length > 0;) {
        once.data = realloc(once.data, once.size + PIECE + 1);
        if (!once.data)
            fail("out of memory");
        length = gzread(file, once.data + once.size, PIECE);
        once.size += length > 0 ? (size_t)length : 0;
    }
    gzclose(file);
    if (once.size == 0)
        fail("the file of records is empty or damaged");
    if (once.data[once.size - 1] != '\n')
        once.data[once.size++] = '\n';
    size_t times = (size + once.size - 1) / once.size;
    bench_bytes text = allocate(once.size * times);
    for (size_t i = 0; i < times; i++)
        memcpy(text.data + i * once.size, once.data, once.size);
    free(once.data);
    return text;
}

static bench_bytes compress_gzip(bench_bytes text) {
    z_stream stream = {0};
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        fail("out of memory");
    bench_bytes packed = allocate(deflateBound(&stream, text.size));
    stream.next_in = text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = packed.data;
    stream.avail_out = (uInt)packed.size;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        fail("cannot compress the records");
    packed.size = stream.total_out;
    deflateEnd(&stream);
    return packed;
}

/* Time of the processor, so that what else runs on the machine counts less. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Seconds to read all records, whose number goes to *count. */
static double time_reading(bench_bytes bytes, int full_trace, size_t *count) {
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        foreloop_records *records = NULL;
        foreloop_records_options options;
        foreloop_record record = {.size = sizeof record};
        foreloop_error error;
        foreloop_status status;
        foreloop_records_options_init(&options, sizeof options);
        options.full_trace = full_trace;
        *count = 0;
        times[run] = now();
        if (foreloop_records_open_memory(&records, bytes.data, bytes.size, &options, &error) != FORELOOP_OK)
            fail(error.message);
        while ((status = foreloop_records_next(records, &record, &error)) == FORELOOP_OK)
            ++*count;
        if (status != FORELOOP_END)
            fail(error.message);
        foreloop_records_close(records);
        times[run] = now() - times[run];
    }
    qsort(times, RUNS, sizeof *times, compare);
    return times[RUNS / 2];
}

int main(int argc, char **argv) {
    const char *path = NULL;
    size_t megabytes = 64, count = 0;
    int json = 0, full_trace = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--full-trace") == 0)
            full_trace = 1;
        else if (strcmp(argv[i], "--megabytes") == 0 && i + 1 < argc)
            megabytes = (size_t)strtoul(argv[++i], NULL, 10);
        else if (!path && argv[i][0] != '-')
            path = argv[i];
        else
            path = "";
    }
    if (!path || !*path || megabytes < 1 || megabytes > 1024)
        fail("usage: bench_records RECORDS [--megabytes N] [--full-trace] [--json]");
    bench_bytes text = read_repeated(path, megabytes * 1000000), packed = compress_gzip(text);
    double plain = time_reading(text, full_trace, &count), gzip = time_reading(packed, full_trace, &count);
    double size = 1e-6 * (double)text.size;
    if (json)
        printf("{\"bench\":\"records\",\"megabytes\":%.1f,\"records\":%zu,\"plain_mb_per_s\":%.1f,"
               "\"gzip_mb_per_s\":%.1f,\"plain_us_per_record\":%.2f}\n",
               size, count, size / plain, size / gzip, 1e6 * plain / (double)count);
    else
        printf("%.1f MB in %zu records\nplain  %8.1f MB/s  %8.2f us/record\ngzip   %8.1f MB/s  %8.2f us/record\n", size,
               count, size / plain, 1e6 * plain / (double)count, size / gzip, 1e6 * gzip / (double)count);
    free(text.data);
    free(packed.data);
    return 0;
}
