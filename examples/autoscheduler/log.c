/* The log of a search. Lines are read with cJSON, which foreloop needs anyway. */
#include "log.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char HEAD[] = "# foreloop autoscheduler log 1: ";
enum { MAX_LINE = 1 << 20 };

/* ---- Trials ------------------------------------------------------------------------------------------------------ */

bool trials_add(trials *t, const trial *item) {
    if (t->count == t->capacity) {
        const int capacity = t->capacity ? 2 * t->capacity : 256;
        trial *items = realloc(t->items, (size_t)capacity * sizeof *items);
        if (!items)
            return false;
        t->items = items;
        t->capacity = capacity;
    }
    t->items[t->count++] = *item;
    return true;
}

void trials_close(trials *t) {
    free(t->items);
    *t = (trials){.items = NULL};
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Reads the record of one line; NULL, or what is wrong with it. */
static const char *read_trial(const char *line, size_t length, const search_space *space, trial *out) {
    cJSON *record = cJSON_ParseWithLength(line, length);
    const cJSON *decisions = cJSON_GetObjectItemCaseSensitive(record, "decisions");
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(record, "seconds");
    const char *error = NULL;
    measurement m = {.count = 0};
    *out = (trial){.seconds = 0};
    if (!cJSON_IsObject(record) || !cJSON_IsArray(decisions) || !cJSON_IsArray(seconds))
        error = "no JSON object with decisions and seconds";
    else if (cJSON_GetArraySize(decisions) != space->count)
        error = "another number of decisions than this operator has";
    int d = 0;
    for (const cJSON *item = error ? NULL : decisions->child; item && !error; item = item->next, d++)
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < space->decisions[d].options))
            error = "a decision that is none of its options";
        else
            out->choices[d] = (uint16_t)item->valuedouble;
    for (const cJSON *item = error ? NULL : seconds->child; item && !error; item = item->next)
        if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble < 1e9))
            error = "a time that is none";
        else if (m.count < MAX_REPEATS)
            m.seconds[m.count++] = item->valuedouble;
    out->seconds = median(&m);
    cJSON_Delete(record);
    return error;
}

static bool complain(char *message, size_t size, const char *path, int line, const char *what) {
    (void)snprintf(message, size, "%.200s, line %d: %s; mend or remove the file", path, line, what);
    return false;
}

/* Reads lines to the end or to one that was cut off; `whole` gets the bytes before that. */
static bool read_lines(gzFile in, const char *path, const char *operator_text, const search_space *space, trials *t,
                       z_off_t *whole, char *message, size_t message_size) {
    char *line = malloc(MAX_LINE), head[512];
    bool ok = line != NULL;
    (void)snprintf(head, sizeof head, "%s%.400s\n", HEAD, operator_text);
    if (!ok)
        (void)complain(message, message_size, path, 0, "not enough memory");
    *whole = 0;
    for (int number = 1; ok && gzgets(in, line, MAX_LINE); number++) {
        const size_t length = strlen(line);
        const bool cut = length == 0 || line[length - 1] != '\n';
        trial item;
        const char *error = NULL;
        if (cut && !gzeof(in))
            error = "longer than a record, or not text";
        else if (number == 1 && strncmp(line, HEAD, length < strlen(HEAD) ? length : strlen(HEAD)) != 0)
            error = "this is no log of the autoscheduler";
        else if (number == 1 && strncmp(line, head, length) != 0)
            error = "the log of another operator";
        else if (cut)
            break;
        else if (number > 1 && !(error = read_trial(line, length - 1, space, &item)) && !trials_add(t, &item))
            error = "not enough memory";
        if (error)
            ok = complain(message, message_size, path, number, error);
        *whole = gztell(in);
    }
    free(line);
    int damage = Z_OK;
    (void)gzerror(in, &damage);
    if (ok && damage != Z_OK && damage != Z_STREAM_END) {
        (void)snprintf(message, message_size, "%.200s: %s", path,
                       damage == Z_ERRNO ? strerror(errno) : "compressed data that is damaged or cut off");
        ok = false;
    }
    return ok;
}

bool log_read(const char *path, const char *operator_text, const search_space *space, trials *t, char *message,
              size_t message_size) {
    z_off_t whole;
    gzFile in = gzopen(path, "rb");
    if (!in) {
        (void)snprintf(message, message_size, "%.200s: %s", path, strerror(errno));
        return false;
    }
    const bool ok = read_lines(in, path, operator_text, space, t, &whole, message, message_size);
    (void)gzclose(in);
    return ok;
}

bool log_operator(const char *path, char *operator_text, size_t size, char *message, size_t message_size) {
    char line[512] = "";
    gzFile in = gzopen(path, "rb");
    errno = in ? 0 : errno;
    const bool ok = in && gzgets(in, line, sizeof line) && strncmp(line, HEAD, strlen(HEAD)) == 0;
    if (ok)
        (void)snprintf(operator_text, size, "%.*s", (int)strcspn(line + strlen(HEAD), "\n"), line + strlen(HEAD));
    else
        (void)snprintf(message, message_size, "%.200s: %s", path,
                       !line[0] && errno ? strerror(errno) : "this is no log of the autoscheduler");
    if (in)
        (void)gzclose(in);
    return ok;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* The process that holds the lock of a file, where the system tells; else 0. */
static long holder(unsigned long file) {
    char line[256];
    long process = 0, found = 0;
    unsigned long locked;
    FILE *in = fopen("/proc/locks", "r");
    while (in && !found && fgets(line, sizeof line, in))
        if (sscanf(line, "%*d: FLOCK %*s %*s %ld %*x:%*x:%lu", &process, &locked) == 2 && locked == file)
            found = process;
    if (in)
        (void)fclose(in);
    return found;
}

/* Locks the log for as long as the process lives; NULL, or what stands against it. */
static const char *take(int log, struct stat *is, char *text, size_t size) {
    if (fstat(log, is) != 0)
        return strerror(errno);
    if (!S_ISREG(is->st_mode))
        return "it is no regular file";
    if (flock(log, LOCK_EX | LOCK_NB) == 0)
        return fstat(log, is) == 0 ? NULL : strerror(errno);
    if (errno != EWOULDBLOCK)
        return strerror(errno);
    const long process = holder((unsigned long)is->st_ino);
    char who[32] = "";
    if (process > 0)
        (void)snprintf(who, sizeof who, ", process %ld", process);
    (void)snprintf(text, size, "another run uses this log%s; wait for it, end it, or name another file", who);
    return text;
}

/* Reads what the log holds, cuts off a line that is not whole, and writes the first one of a log that is new. */
static bool go_on(int log, const struct stat *is, const char *path, const char *operator_text,
                  const search_space *space, trials *t, char *message, size_t message_size) {
    char head[512];
    z_off_t whole = 0;
    const int copy = dup(log);
    gzFile in = copy >= 0 ? gzdopen(copy, "rb") : NULL;
    if (!in && copy >= 0)
        (void)close(copy);
    bool ok = in && read_lines(in, path, operator_text, space, t, &whole, message, message_size);
    if (ok && !gzdirect(in)) {
        (void)snprintf(message, message_size, "%.200s is compressed: unpack it to go on from it", path);
        ok = false;
    }
    if (in)
        (void)gzclose(in);
    if (!ok)
        return false;
    const int size = snprintf(head, sizeof head, "%s%.400s\n", HEAD, operator_text);
    errno = ENOSPC; /* of a write that ends early */
    return (whole == is->st_size || ftruncate(log, whole) == 0) &&
           (whole > 0 || write(log, head, (size_t)size) == size);
}

FILE *log_open(const char *path, const char *operator_text, const search_space *space, trials *t, char *message,
               size_t message_size) {
    struct stat is = {.st_size = -1};
    char text[128];
    FILE *out = NULL;
    const int log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const char *error = log < 0 ? strerror(errno) : take(log, &is, text, sizeof text);
    message[0] = 0;
    if (error)
        (void)snprintf(message, message_size, "%.200s: %s", path, error);
    else if (!go_on(log, &is, path, operator_text, space, t, message, message_size) || !(out = fdopen(log, "a"))) {
        if (!message[0])
            (void)snprintf(message, message_size, "cannot write %.200s: %s", path, strerror(errno));
        if (is.st_size == 0)
            (void)unlink(path); /* without its first line it is of no use */
    }
    if (!out && log >= 0)
        (void)close(log);
    return out;
}

static void write_actions(FILE *log, const schedule *s) {
    fputs("\"actions\":[", log);
    for (int i = 0; i < s->action_count; i++) {
        fprintf(log, "%s[\"%s\",{", i ? "," : "", s->actions[i].kind);
        for (size_t j = 0; j < s->actions[i].argument_count; j++) {
            const foreloop_argument *a = &s->actions[i].arguments[j];
            fprintf(log, "%s\"%s\":", j ? "," : "", a->name);
            if (a->text)
                fprintf(log, "\"%s\"", a->text);
            else
                fprintf(log, "%.17g", a->number);
        }
        fputs("}]", log);
    }
    fputc(']', log);
}

bool log_write(FILE *log, const search_space *space, const uint16_t *choices, const schedule *s, const measurement *m) {
    fputs("{\"decisions\":[", log);
    for (int d = 0; d < space->count; d++)
        fprintf(log, "%s%d", d ? "," : "", choices[d]);
    fputs("],\"seconds\":[", log);
    for (int i = 0; i < m->count; i++)
        fprintf(log, "%s%.17g", i ? "," : "", m->seconds[i]); /* as it is, so that a search goes on alike */
    fputs("],", log);
    if (m->error[0])
        fprintf(log, "\"error\":\"%s\",", m->error);
    write_actions(log, s);
    fputs("}\n", log);
    return fflush(log) == 0 && !ferror(log);
}
