/* The log of a search. Lines are read with cJSON, which foreloop needs anyway. */
#include "log.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
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

bool trials_have(const trials *t, const search_space *space, const uint16_t *choices) {
    for (int i = 0; i < t->count; i++)
        if (memcmp(t->items[i].choices, choices, (size_t)space->count * sizeof *choices) == 0)
            return true;
    return false;
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

bool log_read(const char *path, const char *operator_text, const search_space *space, bool repair, trials *t,
              char *message, size_t message_size) {
    gzFile in = gzopen(path, "rb");
    if (!in && errno == ENOENT)
        return true;
    char *line = in ? malloc(MAX_LINE) : NULL;
    if (!line) {
        (void)snprintf(message, message_size, "%.200s: %s", path, in ? "not enough memory" : strerror(errno));
        if (in)
            (void)gzclose(in);
        return false;
    }
    bool ok = true;
    z_off_t whole = 0; /* bytes of whole lines */
    for (int number = 1; ok && gzgets(in, line, MAX_LINE); number++) {
        const size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\n') {
            if (!gzeof(in))
                ok = complain(message, message_size, path, number, "longer than a record, or not text");
            break; /* cut off */
        }
        whole = gztell(in);
        line[length - 1] = 0;
        if (number == 1) {
            if (strncmp(line, HEAD, strlen(HEAD)) != 0)
                ok = complain(message, message_size, path, number, "this is no log of the autoscheduler");
            else if (strcmp(line + strlen(HEAD), operator_text) != 0)
                ok = complain(message, message_size, path, number, "the log of another operator");
            continue;
        }
        trial item;
        const char *error = read_trial(line, length - 1, space, &item);
        if (error)
            ok = complain(message, message_size, path, number, error);
        else if (!trials_add(t, &item))
            ok = complain(message, message_size, path, number, "not enough memory");
    }
    const bool plain = gzdirect(in) != 0;
    free(line);
    (void)gzclose(in);
    if (ok && repair && plain && truncate(path, whole) != 0) {
        (void)snprintf(message, message_size, "%.200s: %s", path, strerror(errno));
        ok = false;
    }
    return ok;
}

bool log_operator(const char *path, char *operator_text, size_t size) {
    char line[512];
    gzFile in = gzopen(path, "rb");
    const bool ok = in && gzgets(in, line, sizeof line) && strncmp(line, HEAD, strlen(HEAD)) == 0;
    if (ok)
        (void)snprintf(operator_text, size, "%.*s", (int)strcspn(line + strlen(HEAD), "\n"), line + strlen(HEAD));
    if (in)
        (void)gzclose(in);
    return ok;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

FILE *log_open(const char *path, const char *operator_text, char *message, size_t message_size) {
    FILE *out = fopen(path, "a");
    if (out && fseek(out, 0, SEEK_END) == 0 && ftell(out) == 0 &&
        (fprintf(out, "%s%s\n", HEAD, operator_text) < 0 || fflush(out) != 0)) {
        (void)fclose(out);
        out = NULL;
    }
    if (!out)
        (void)snprintf(message, message_size, "%.200s: %s", path, strerror(errno));
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
        fprintf(log, "%s%.6g", i ? "," : "", m->seconds[i]);
    fputs("],", log);
    if (m->error[0])
        fprintf(log, "\"error\":\"%s\",", m->error);
    write_actions(log, s);
    fputs("}\n", log);
    return fflush(log) == 0 && !ferror(log);
}
