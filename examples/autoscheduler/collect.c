/* Data to train a model on: measured candidates of many operators, a folder each, as train/ reads them; and the
 * programs on the way from the operator to each candidate, which the encoder and the transition learn from. */
#include "commands.h"
#include "operators.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_SIZE = FILE_PATH_SIZE, MAX_OPERATOR = 256 };

static bool complain(const char *path) {
    fprintf(stderr, "autoscheduler: %s: %s\n", path, strerror(errno));
    return false;
}

/* ---- collect ----------------------------------------------------------------------------------------------------- */

static bool write_workload(const char *folder, const program *p) {
    char path[PATH_SIZE + 32];
    whole_file w;
    (void)snprintf(path, sizeof path, "%s/workload.txt", folder);
    if (!whole_open(&w, path))
        return complain(path);
    print_program(p, w.out);
    return whole_close(&w, true) || complain(path);
}

static void processor(char *name, size_t size) {
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "r");
    (void)snprintf(name, size, "unknown");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            (void)snprintf(name, size, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n\"\\"), strchr(line, ':') + 2);
            break;
        }
    if (in)
        (void)fclose(in);
}

/* Says what the records are of; written last, so that a folder that has it is complete. */
static bool write_meta(const char *folder, const char *operator_text, const options *o, const search_result *found) {
    char path[PATH_SIZE + 32], cpu[128], date[32] = "";
    const time_t today = time(NULL);
    struct tm broken;
    (void)snprintf(path, sizeof path, "%s/meta.json", folder);
    processor(cpu, sizeof cpu);
    if (gmtime_r(&today, &broken))
        (void)strftime(date, sizeof date, "%Y-%m-%d", &broken);
    whole_file w;
    if (!whole_open(&w, path))
        return complain(path);
    fprintf(w.out,
            "{\"name\": \"%s\", \"host\": \"autoscheduler\", \"cpu\": \"%s\", \"mcpu\": \"%s\", \"threads\": %d, "
            "\"records\": %d, \"date\": \"%s\"}\n",
            operator_text, cpu, cpu, o->measure.threads, found->trials, date);
    return whole_close(&w, true) || complain(path);
}

static bool collect_operator(const options *o, const char *operator_text) {
    char name[MAX_OPERATOR], folder[PATH_SIZE], log[PATH_SIZE + 32], message[512] = "";
    search_space space;
    search_result found;
    if (!open_operator(operator_text, &space))
        return false;
    operator_name(operator_text, name, sizeof name);
    (void)snprintf(folder, sizeof folder, "%s/%s", o->out, name);
    (void)snprintf(log, sizeof log, "%s/records.jsonl", folder);
    runner *r = calloc(1, sizeof *r);
    if (!r)
        (void)snprintf(message, sizeof message, "not enough memory");
    bool ok =
        (mkdir(folder, 0777) == 0 || errno == EEXIST || complain(folder)) && write_workload(folder, &space.initial);
    if (ok && (ok = r && runner_open(r, &space.initial, &o->measure, message, sizeof message))) {
        search_options how = o->search;
        const measurer by = measurer_of(r);
        how.method = METHOD_EXPLORE;
        how.log = log;
        how.output = NULL;
        ok = search_run(operator_text, &space, &by, &how, &found, message, sizeof message);
        runner_close(r);
        if (ok && (found.trials >= how.trials || found.over))
            ok = write_meta(folder, operator_text, o, &found);
    }
    if (!ok && message[0])
        fprintf(stderr, "autoscheduler: %s: %s\n", operator_text, message);
    free(r);
    space_close(&space);
    return ok;
}

int command_collect(const options *o) {
    char line[MAX_OPERATOR];
    int status = 0;
    FILE *in = o->argument_count == 1 ? fopen(o->arguments[0], "r") : NULL;
    if (o->argument_count != 1 || !o->out) {
        fprintf(stderr, "autoscheduler: collect takes a file of operators and --out\n");
        if (in)
            (void)fclose(in);
        return 2;
    }
    if (!in || (mkdir(o->out, 0777) != 0 && errno != EEXIST)) {
        (void)complain(in ? o->out : o->arguments[0]);
        if (in)
            (void)fclose(in);
        return 1;
    }
    while (!(o->search.cancel && *o->search.cancel) && fgets(line, sizeof line, in)) {
        const size_t length = strcspn(line, "\r\n");
        if (length == sizeof line - 1) {
            fprintf(stderr, "autoscheduler: %s: a line longer than an operator\n", o->arguments[0]);
            status = 1;
            break;
        }
        line[length] = 0;
        if (line[0] && line[0] != '#' && !collect_operator(o, line))
            status = 1;
    }
    if (ferror(in))
        status = !complain(o->arguments[0]);
    (void)fclose(in);
    return status || (o->search.cancel && *o->search.cancel);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

enum { EVERY = 3 /* actions between two states that are kept, besides the last */ };

typedef struct states {
    gzFile texts, paths;
    uint64_t *known; /* hashes of the texts that have been written */
    size_t count, capacity;
    int line, kept; /* of the current record; states on its path so far */
    bool failed;
} states;

static bool is_new(states *t, uint64_t hash) {
    for (size_t i = 0; i < t->count; i++)
        if (t->known[i] == hash)
            return false;
    if (t->count == t->capacity) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 1024;
        uint64_t *known = realloc(t->known, capacity * sizeof *known);
        if (!known) {
            t->failed = true;
            return false;
        }
        t->known = known;
        t->capacity = capacity;
    }
    t->known[t->count++] = hash;
    return true;
}

static void write_text(gzFile out, const char *text) {
    for (; *text; text++)
        if (*text == '\n')
            (void)gzputs(out, "\\n");
        else {
            if (*text == '"' || *text == '\\')
                (void)gzputc(out, '\\');
            (void)gzputc(out, *text);
        }
}

static void write_state(void *user, const schedule *s) {
    states *t = user;
    if (s->action_count % EVERY && strcmp(s->actions[s->action_count - 1].kind, "postprocess") != 0)
        return;
    char *text = program_text(&s->p);
    if (!text) {
        t->failed = true;
        return;
    }
    const uint64_t hash = hash_bytes(HASH_BEGIN, text, strlen(text));
    if (is_new(t, hash)) {
        (void)gzprintf(t->texts, "{\"hash\":\"%016llx\",\"text\":\"", (unsigned long long)hash);
        write_text(t->texts, text);
        (void)gzputs(t->texts, "\"}\n");
    }
    (void)gzprintf(t->paths, "%s[%d,\"%016llx\"]", t->kept++ ? "," : "", s->action_count, (unsigned long long)hash);
    free(text);
}

/* The states of one log: OUT/NAME.texts.jsonl.gz and OUT/NAME.jsonl.gz, as train/replay.py writes them. */
static bool write_states(const char *folder, const char *operator_text, const search_space *space, const trials *done) {
    char name[MAX_OPERATOR], paths[2][PATH_SIZE], partial[2][PATH_SIZE + 32];
    states t = {.line = 0};
    schedule *s = calloc(1, sizeof *s);
    operator_name(operator_text, name, sizeof name);
    (void)snprintf(paths[0], sizeof *paths, "%s/%s.texts.jsonl.gz", folder, name);
    (void)snprintf(paths[1], sizeof *paths, "%s/%s.jsonl.gz", folder, name);
    for (int i = 0; i < 2; i++)
        partial_name(paths[i], partial[i], sizeof *partial);
    t.texts = gzopen(partial[0], "wb");
    t.paths = t.texts ? gzopen(partial[1], "wb") : NULL;
    bool ok = s && t.texts && t.paths;
    for (int i = 0; ok && i < done->count; i++) {
        t.kept = 0;
        s->observe = write_state;
        s->observer = &t;
        (void)gzprintf(t.paths, "{\"line\":%d,\"states\":[", i + 1); /* the first line of a log is its head */
        space_apply(space, done->items[i].choices, s);
        ok = gzputs(t.paths, "]}\n") > 0 && !t.failed;
    }
    ok = (!t.texts || gzclose(t.texts) == Z_OK) && ok;
    ok = (!t.paths || gzclose(t.paths) == Z_OK) && ok;
    free(t.known);
    free(s);
    ok = partial_end(partial[0], paths[0], ok);
    ok = partial_end(partial[1], paths[1], ok);
    return ok || complain(paths[1]);
}

/* Whether this is the operator of an earlier folder, whose states these would replace. */
static bool is_known(char (*names)[MAX_OPERATOR], int count, const char *operator_text) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], operator_text) == 0)
            return true;
    (void)snprintf(names[count], sizeof *names, "%s", operator_text);
    return false;
}

int command_states(const options *o) {
    int status = 0;
    if (o->argument_count < 1 || !o->out) {
        fprintf(stderr, "autoscheduler: states takes folders that collect has filled, and --out\n");
        return 2;
    }
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST)
        return !complain(o->out);
    char(*names)[MAX_OPERATOR] = calloc((size_t)o->argument_count, sizeof *names);
    if (!names) {
        fprintf(stderr, "autoscheduler: not enough memory\n");
        return 1;
    }
    for (int i = 0, known = 0; i < o->argument_count; i++) {
        char path[PATH_SIZE], operator_text[MAX_OPERATOR], message[512];
        search_space space;
        trials done = {.items = NULL};
        (void)snprintf(path, sizeof path, "%.1000s/records.jsonl", o->arguments[i]);
        if (access(path, R_OK) != 0)
            (void)snprintf(path, sizeof path, "%.1000s/records.jsonl.gz", o->arguments[i]);
        if (!log_operator(path, operator_text, sizeof operator_text, message, sizeof message)) {
            fprintf(stderr, "autoscheduler: %s\n", message);
            status = 1;
            continue;
        }
        if (is_known(names, known, operator_text)) {
            fprintf(stderr, "autoscheduler: %s: %s again; give each operator once\n", path, operator_text);
            status = 1;
            continue;
        }
        known++;
        if (!open_operator(operator_text, &space)) {
            status = 1;
            continue;
        }
        if (!log_read(path, operator_text, &space, &done, message, sizeof message)) {
            fprintf(stderr, "autoscheduler: %s\n", message);
            status = 1;
        } else if (!write_states(o->out, operator_text, &space, &done))
            status = 1;
        trials_close(&done);
        space_close(&space);
    }
    free(names);
    return status;
}
