/* Reads the command line. */
#include "options.h"
#include "operators.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: autoscheduler COMMAND [options] ...\n"
    "\n"
    "commands\n"
    "  search OPERATOR        find a fast kernel for it; goes on from --log if that is there\n"
    "  baseline OPERATOR      time the plain loops compiled by -O3, and OpenBLAS for matrices\n"
    "  show OPERATOR          print the program, its search space and the plain C code\n"
    "  collect FILE           measure candidates of each operator in FILE, a line each, to train a model on\n"
    "  states FOLDER...       write the programs on the way of what `collect` measured, which train/ learns from\n"
    "  replay LOG...          search again in what a log has measured, by looking times up: the same at each run\n"
    "\n"
    "operators, in quotes\n%s"
    "\n"
    "options\n"
    "  --trials N             candidates to measure (256)\n"
    "  --batch N              of these at a time, 1 to 64 (16)\n"
    "  --scored N             candidates to score for each second batch, in steps of 2048 (65536)\n"
    "  --method METHOD        foreloop, random, or explore: half random, half mutations of the best (foreloop)\n"
    "  --seed N               of what is drawn (1)\n"
    "  --model PATH           bundle to use instead of the one that is linked in\n"
    "  --log FILE             keeps every trial; a search that was interrupted goes on from it\n"
    "  --output FILE          C file of the fastest kernel (best.c)\n"
    "  --out FOLDER           of collect and states\n"
    "  --threads N            of a kernel (all processors)\n"
    "  --jobs N               compilers at a time (all processors)\n"
    "  --timeout SECONDS      for a compiler and for a kernel (20); over ten times that for the plain loops\n"
    "  --cc COMPILER          (cc)\n"
    "  --tmp FOLDER           one that exists, to make a folder for generated files in ($TMPDIR, else /tmp)\n"
    "  --lock FILE            hold this lock while timing, in turn with others on this machine\n"
    "  --realtime             time with real-time priority, where it is allowed\n"
    "  --json                 print the result as JSON\n";

static const struct {
    const char *name;
    method method;
} METHODS[] = {{"foreloop", METHOD_MODEL}, {"random", METHOD_RANDOM}, {"explore", METHOD_EXPLORE}};

enum {
    HELP = 256,
    TRIALS,
    BATCH,
    SCORED,
    METHOD,
    SEED,
    MODEL,
    LOG,
    OUTPUT,
    OUT,
    THREADS,
    JOBS,
    TIMEOUT,
    CC,
    TMP,
    LOCK,
    REALTIME,
    JSON
};
static const struct option OPTIONS[] = {{"help", no_argument, NULL, HELP},
                                        {"trials", required_argument, NULL, TRIALS},
                                        {"batch", required_argument, NULL, BATCH},
                                        {"scored", required_argument, NULL, SCORED},
                                        {"method", required_argument, NULL, METHOD},
                                        {"seed", required_argument, NULL, SEED},
                                        {"model", required_argument, NULL, MODEL},
                                        {"log", required_argument, NULL, LOG},
                                        {"output", required_argument, NULL, OUTPUT},
                                        {"out", required_argument, NULL, OUT},
                                        {"threads", required_argument, NULL, THREADS},
                                        {"jobs", required_argument, NULL, JOBS},
                                        {"timeout", required_argument, NULL, TIMEOUT},
                                        {"cc", required_argument, NULL, CC},
                                        {"tmp", required_argument, NULL, TMP},
                                        {"lock", required_argument, NULL, LOCK},
                                        {"realtime", no_argument, NULL, REALTIME},
                                        {"json", no_argument, NULL, JSON},
                                        {NULL, 0, NULL, 0}};

enum { MAX_THREADS = 1024 };

static bool number(const char *name, const char *text, long least, long most, long *value) {
    char *end;
    *value = strtol(text, &end, 10);
    if (end != text && *end == 0 && *value >= least && *value <= most)
        return true;
    fprintf(stderr, "autoscheduler: --%s is %ld to %ld, not \"%s\"\n", name, least, most, text);
    return false;
}

/* A name of a file or folder; longer ones would be cut off. */
static bool path(const char *text, const char **value) {
    *value = text;
    if (text[0] && strlen(text) <= MAX_PATH)
        return true;
    fprintf(stderr, "autoscheduler: a file name is 1 to %d bytes long, not %zu\n", MAX_PATH, strlen(text));
    return false;
}

/* Files that a run writes or locks must be different ones. */
static bool are_different(const options *o) {
    const char *const files[] = {o->search.log, o->search.output, o->measure.lock};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++)
            if (files[i] && files[j] && same_file(files[i], files[j])) {
                fprintf(stderr, "autoscheduler: --log, --output and --lock are different files, not %.200s twice\n",
                        files[i]);
                return false;
            }
    return true;
}

static bool take_method(options *o, const char *text) {
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (strcmp(METHODS[i].name, text) == 0) {
            o->search.method = METHODS[i].method;
            return true;
        }
    fprintf(stderr, "autoscheduler: --method is foreloop, random or explore, not \"%s\"\n", text);
    return false;
}

static bool take_number(options *o, int which, const char *text) {
    long value = 0;
    bool ok = true;
    switch (which) {
    case TRIALS:
        ok = number("trials", text, 1, 1000000, &value);
        o->search.trials = (int)value;
        break;
    case BATCH:
        ok = number("batch", text, 1, MAX_BATCH, &value);
        o->search.batch = (int)value;
        break;
    case SCORED:
        ok = number("scored", text, 1, 100000000, &value);
        o->search.scored = (int)value;
        break;
    case SEED:
        ok = number("seed", text, 0, 1000000000, &value);
        o->search.seed = (uint64_t)value;
        break;
    case THREADS:
        ok = number("threads", text, 1, MAX_THREADS, &value);
        o->measure.threads = (int)value;
        break;
    case JOBS:
        ok = number("jobs", text, 1, MAX_BATCH, &value);
        o->measure.jobs = (int)value;
        break;
    default:
        ok = number("timeout", text, 1, 3600, &value);
        o->measure.timeout = (double)value;
    }
    return ok;
}

static bool take(options *o, int which, char *text) {
    switch (which) {
    case METHOD:
        return take_method(o, text);
    case MODEL:
        return path(text, &o->search.model);
    case LOG:
        return path(text, &o->search.log);
    case OUTPUT:
        return path(text, &o->search.output);
    case OUT:
        return path(text, &o->out);
    case CC:
        o->measure.compiler = text;
        return true;
    case TMP:
        return path(text, &o->measure.directory);
    case LOCK:
        return path(text, &o->measure.lock);
    case REALTIME:
        o->measure.realtime = true;
        return true;
    case JSON:
        o->json = true;
        return true;
    default:
        return take_number(o, which, text);
    }
}

int options_read(options *o, int argc, char **argv) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int cores = processors < 1 ? 1 : processors < MAX_THREADS ? (int)processors : MAX_THREADS;
    *o = (options){
        .search = {.method = METHOD_MODEL, .trials = 256, .batch = 16, .scored = 65536, .seed = 1, .output = "best.c"},
        .measure = {.compiler = "cc", .threads = cores, .jobs = cores < MAX_BATCH ? cores : MAX_BATCH, .timeout = 20}};
    for (int which; (which = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        if (which == HELP) {
            printf(USAGE, operators_help);
            return -1;
        }
        if (which == '?' || !take(o, which, optarg))
            return 2;
    }
    if (optind >= argc) {
        fprintf(stderr, USAGE, operators_help);
        return 2;
    }
    const char *parent = getenv("TMPDIR");
    if ((parent && *parent && !path(parent, &parent)) || !are_different(o))
        return 2;
    o->command = argv[optind];
    o->argument_count = argc - optind - 1;
    o->arguments = argv + optind + 1;
    o->search.progress = stderr;
    o->search.terminal = isatty(STDERR_FILENO) != 0;
    return 0;
}
