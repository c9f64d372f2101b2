/* Compilers and kernels as child processes. */
#include "measure.h"
#include "codegen.h"
#include "space.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double MIN_REPEAT = 0.002; /* seconds: a repeat runs the kernel as often as this takes */
static const double SLOW = 0.1;         /* kernels slower than this are repeated once */
static const double HOLD = 2;           /* the lock is handed on after so long */
static const double TOLERANCE = 1e-4;   /* of a number, relative to its size and the typical one of its output */
static const double ROUNDING = 5e-7;    /* sums of n terms in another order: at least this x sqrt(n) */
enum { PATH_SIZE = FILE_PATH_SIZE + 64, REALTIME_PRIORITY = 50 };

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double median(const measurement *m) {
    double sorted[MAX_REPEATS];
    if (m->count == 0)
        return INFINITY;
    for (int i = 0; i < m->count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > m->seconds[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = m->seconds[i];
    }
    return m->count % 2 ? sorted[m->count / 2] : (sorted[m->count / 2 - 1] + sorted[m->count / 2]) / 2;
}

static void fail(measurement *m, const char *error) {
    m->count = 0;
    (void)snprintf(m->error, sizeof m->error, "%s", error);
}

static void fail_host(measurement *m, const char *error) {
    fail(m, error);
    m->host = true;
}

/* ---- The lock ---------------------------------------------------------------------------------------------------- */

static void lock(runner *r) {
    const double begin = now();
    if (r->lock < 0 || r->locked)
        return;
    while (flock(r->lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    r->locked = true;
    r->locked_since = now();
    r->clock.waiting += r->locked_since - begin;
}

static void unlock(runner *r, bool at_once) {
    if (!r->locked || (!at_once && now() - r->locked_since < HOLD))
        return;
    (void)flock(r->lock, LOCK_UN);
    r->locked = false;
}

/* ---- Compiling --------------------------------------------------------------------------------------------------- */

/* Starts the compiler; returns its process, -1 when there is none. */
static pid_t start_compiler(const runner *r, const char *source, const char *library, const char *flags) {
    const char *const arguments[] = {r->options.compiler,
                                     "-O2",
                                     "-ftree-vectorize",
                                     "-march=native",
                                     "-fno-math-errno",
                                     "-fno-trapping-math",
                                     "-fopenmp",
                                     "-w",
                                     "-fPIC",
                                     "-shared",
                                     "-o",
                                     library,
                                     source,
                                     "-lm",
                                     flags,
                                     NULL};
    const pid_t pid = fork();
    if (pid > 0)
        (void)setpgid(pid, pid); /* here as well, as either may come first */
    if (pid != 0)
        return pid;
    (void)signal(SIGINT, SIG_IGN); /* an interrupted search finishes its round */
    (void)setpgid(0, 0);           /* the compiler's own processes end with it */
    (void)setenv("TMPDIR", r->scratch.path, 1);
    const int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
    }
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static const char NO_COMPILER[] = "the compiler cannot be run";

/* Waits for a compiler; kills it, with what it has started, after the timeout. Returns NULL, or what went wrong. */
static const char *finish_compiler(pid_t pid, double timeout) {
    const double end = now() + timeout;
    int status;
    for (;;) {
        const pid_t done = waitpid(pid, &status, WNOHANG);
        if (done == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0     ? NULL
                   : WIFEXITED(status) && WEXITSTATUS(status) == 127 ? NO_COMPILER
                                                                     : "does not compile";
        if ((done < 0 && errno != EINTR) || now() > end)
            break;
        (void)poll(NULL, 0, 1);
    }
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return "the compiler takes too long";
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef void kernel_function(float *const *buffers);

/* Memory for a kernel: the runner's inputs, and fresh outputs. The process ends soon, so nothing is freed.
 */
static bool kernel_memory(const runner *r, const program *p, float **memory) {
    int numbers[MAX_BUFFERS];
    const int count = kernel_buffers(p, numbers);
    for (int i = 0; i < count; i++) {
        const int b = numbers[i];
        if (p->buffers[b].kind == BUFFER_INPUT) {
            memory[i] = r->buffers[b];
            continue;
        }
        const size_t size = buffer_elements(&p->buffers[b]) * sizeof(float);
        memory[i] = aligned_alloc(64, (size + 63) / 64 * 64);
        if (!memory[i])
            return false;
        memset(memory[i], 0xff, size); /* NaN: what is not computed is found out */
    }
    return true;
}

/* Numbers are compared with the size that an output has: where sums cancel out, what is left is small and as inexact as
 * the others; where all numbers are small, such as shares of a long row, an absolute bound would let anything pass. */
static void set_tolerance(runner *r) {
    double terms = 1;
    for (int b = 0; b < r->initial.block_count; b++) {
        double of_block = 1;
        for (int i = r->initial.blocks[b].spatial; i < r->initial.blocks[b].iters; i++)
            of_block *= r->initial.blocks[b].iter[i].extent;
        terms = fmax(terms, of_block);
    }
    r->tolerance = fmax(TOLERANCE, ROUNDING * sqrt(terms));
    for (int b = 0; b < r->initial.buffer_count; b++) {
        const size_t n = r->expected[b] ? buffer_elements(&r->initial.buffers[b]) : 0;
        double squares = 0;
        size_t count = 0; /* without zeros, of which padding makes as many as it likes */
        for (size_t i = 0; i < n; i++) {
            const double x = (double)r->expected[b][i];
            squares += x * x;
            count += x != 0;
        }
        r->typical[b] = count ? sqrt(squares / (double)count) : 0;
    }
}

static bool is_right(const runner *r, const program *p, float *const *memory) {
    int numbers[MAX_BUFFERS];
    const int count = kernel_buffers(p, numbers);
    for (int i = 0; i < count; i++) {
        const int b = numbers[i];
        if (p->buffers[b].kind != BUFFER_OUTPUT || !r->expected[b])
            continue;
        const size_t n = buffer_elements(&p->buffers[b]);
        for (size_t j = 0; j < n; j++) {
            const double want = (double)r->expected[b][j], got = (double)memory[i][j];
            if (!(fabs(got - want) <= r->tolerance * (r->typical[b] + fabs(want))))
                return false;
        }
    }
    return true;
}

/* What all kernels share cannot be written by one: it crashes instead of spoiling the trials after it. */
static bool protect_shared(const runner *r) {
    for (int b = 0; b < r->initial.buffer_count; b++) {
        float *const shared = r->buffers[b] ? r->buffers[b] : r->expected[b];
        if (shared && mprotect(shared, buffer_elements(&r->initial.buffers[b]) * sizeof(float), PROT_READ) != 0)
            return false;
    }
    return true;
}

/* In the child: runs the kernel, checks what it computes, and times it. */
static void run_kernel(const runner *r, const program *p, kernel_function *kernel, measurement *m) {
    float *memory[MAX_BUFFERS];
    if (!kernel_memory(r, p, memory) || !protect_shared(r)) {
        fail_host(m, "not enough memory");
        return;
    }
    kernel(memory);
    if (!is_right(r, p, memory)) {
        fail(m, "computes something else");
        return;
    }
    double begin = now();
    kernel(memory);
    const double once = now() - begin;
    const int runs = once >= MIN_REPEAT ? 1 : (int)(MIN_REPEAT / (once + 1e-8)) + 1;
    m->count = once > SLOW ? 1 : MAX_REPEATS;
    for (int i = 0; i < m->count; i++) {
        begin = now();
        for (int j = 0; j < runs; j++)
            kernel(memory);
        m->seconds[i] = (now() - begin) / runs;
    }
}

/* In the child, for the expected outputs: runs the kernel once and copies what it makes to where the parent sees it. */
static void run_once(const runner *r, const program *p, kernel_function *kernel, measurement *m) {
    float *memory[MAX_BUFFERS];
    int numbers[MAX_BUFFERS];
    const int count = kernel_buffers(p, numbers);
    if (!kernel_memory(r, p, memory)) {
        fail_host(m, "not enough memory");
        return;
    }
    kernel(memory);
    for (int i = 0; i < count; i++)
        if (p->buffers[numbers[i]].kind == BUFFER_OUTPUT)
            memcpy(r->expected[numbers[i]], memory[i], buffer_elements(&p->buffers[numbers[i]]) * sizeof(float));
    m->count = 1;
    m->seconds[0] = 1;
}

typedef void child_task(const runner *r, const program *p, kernel_function *kernel, measurement *m);

static void child(const runner *r, pid_t parent, const program *p, const char *library, kernel_function *kernel,
                  child_task *task, int out) {
    measurement m = {.count = 0};
#ifdef __linux__
    /* It holds the parent's locks, so it ends with it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
#else
    (void)parent;
#endif
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%d", r->options.threads);
    (void)setenv("OMP_NUM_THREADS", threads, 1);
    (void)signal(SIGINT, SIG_IGN);
    if (r->options.realtime) {
        /* The parent may not get a processor to end a kernel that hangs, so the system does. */
        const struct sched_param priority = {.sched_priority = REALTIME_PRIORITY};
        const rlim_t most = (rlim_t)(1e6 * r->options.timeout); /* microseconds without a pause */
        const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
        if (setrlimit(RLIMIT_RTTIME, &limit) == 0)
            (void)sched_setscheduler(0, SCHED_FIFO, &priority); /* where it is refused, measure as we are */
    }
    if (library) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        void *symbol = handle ? dlsym(handle, "kernel") : NULL;
        memcpy(&kernel, &symbol, sizeof kernel);
    }
    if (kernel)
        task(r, p, kernel, &m);
    else
        fail(&m, "cannot be loaded");
    const ssize_t written = write(out, &m, sizeof m);
    _exit(written == (ssize_t)sizeof m ? 0 : 1);
}

static void run_in_child(const runner *r, const program *p, const char *library, kernel_function *kernel,
                         child_task *task, measurement *m) {
    int ends[2], status = 0;
    if (pipe(ends) != 0) {
        fail_host(m, "no pipe");
        return;
    }
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        fail_host(m, "no process");
        (void)close(ends[0]);
        (void)close(ends[1]);
        return;
    }
    if (pid == 0) {
        (void)close(ends[0]);
        child(r, parent, p, library, kernel, task, ends[1]);
    }
    (void)close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    int answered;
    while ((answered = poll(&ready, 1, (int)(1000 * r->options.timeout))) < 0 && errno == EINTR)
        ;
    measurement received;
    if (answered == 0)
        fail(m, "takes too long");
    else if (read(ends[0], &received, sizeof received) == (ssize_t)sizeof received)
        *m = received;
    else
        fail(m, "crashes");
    (void)close(ends[0]);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
}

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

static void paths(const runner *r, int i, char *source, char *library) {
    (void)snprintf(source, PATH_SIZE, "%s/kernel_%d.c", r->scratch.path, i);
    (void)snprintf(library, PATH_SIZE, "%s/kernel_%d.so", r->scratch.path, i);
}

/* False, with the failure, when there is no such file. */
static bool write_source(const program *p, const char *path, measurement *m) {
    whole_file w;
    const char *error = NULL;
    *m = (measurement){.count = 0};
    if (whole_open(&w, path) && (error = generate_c(p, w.out), whole_close(&w, !error)))
        return true;
    if (error)
        fail(m, error);
    else {
        char text[sizeof m->error];
        (void)snprintf(text, sizeof text, "cannot write the C file: %.60s", strerror(errno));
        fail_host(m, text);
    }
    return false;
}

/* Compiles the program as it is; NULL, or what went wrong. */
static const char *compile_plain(const runner *r, const char *source, const char *library, double timeout,
                                 measurement *m) {
    if (!write_source(&r->initial, source, m))
        return m->error;
    const pid_t pid = start_compiler(r, source, library, NULL);
    return pid < 0 ? NO_COMPILER : finish_compiler(pid, timeout);
}

/* Candidates that do not compile are not to blame where the program as it is does not either, as on a disk that has
 * become full. */
static void find_fault(const runner *r, int count, measurement *results) {
    char source[PATH_SIZE], library[PATH_SIZE], text[sizeof results->error];
    bool failed = false;
    measurement m;
    for (int i = 0; i < count; i++)
        failed = failed || results[i].error[0];
    if (!failed)
        return;
    paths(r, MAX_BATCH, source, library);
    const char *error = compile_plain(r, source, library, r->options.timeout, &m);
    (void)unlink(source);
    (void)unlink(library);
    if (!error)
        return;
    (void)snprintf(text, sizeof text, "the operator as it is, compiled again: %.50s", error);
    for (int i = 0; i < count; i++)
        if (results[i].error[0])
            fail_host(&results[i], text);
}

/* Compiles all candidates, options.jobs at a time. */
static void compile_all(runner *r, const program *const *candidates, int count, measurement *results) {
    char source[PATH_SIZE], library[PATH_SIZE];
    pid_t running[MAX_BATCH];
    int begun = 0, done = 0;
    const double begin = now();
    while (done < count) {
        while (begun < count && begun - done < r->options.jobs) {
            const double generating = now();
            paths(r, begun, source, library);
            const bool written = write_source(candidates[begun], source, &results[begun]);
            r->clock.generating += now() - generating;
            running[begun] = written ? start_compiler(r, source, library, NULL) : -1;
            if (written && running[begun] < 0)
                fail_host(&results[begun], NO_COMPILER);
            begun++;
        }
        if (running[done] >= 0) {
            const char *error = finish_compiler(running[done], r->options.timeout);
            if (error)
                fail(&results[done], error);
        }
        done++;
    }
    find_fault(r, count, results);
    r->clock.compiling += now() - begin;
}

static void run(runner *r, const program *p, const char *library, kernel_function *kernel, child_task *task,
                measurement *m) {
    lock(r);
    const double begin = now();
    run_in_child(r, p, library, kernel, task, m);
    r->clock.running += now() - begin;
    unlock(r, false);
}

void runner_measure(runner *r, const program *const *candidates, int count, measurement *results) {
    char source[PATH_SIZE], library[PATH_SIZE];
    compile_all(r, candidates, count, results);
    for (int i = 0; i < count; i++) {
        paths(r, i, source, library);
        if (!results[i].error[0])
            run(r, candidates[i], library, NULL, run_kernel, &results[i]);
        (void)unlink(source);
        (void)unlink(library);
    }
    unlock(r, true);
}

void runner_measure_file(runner *r, const char *path, const char *flags, measurement *result) {
    char source[PATH_SIZE], library[PATH_SIZE];
    paths(r, MAX_BATCH, source, library);
    *result = (measurement){.count = 0};
    const pid_t pid = start_compiler(r, path, library, flags);
    const char *error = pid < 0 ? NO_COMPILER : finish_compiler(pid, r->options.timeout);
    if (error)
        fail(result, error);
    else
        run(r, &r->initial, library, NULL, run_kernel, result);
    (void)unlink(library);
    unlock(r, true);
}

void runner_measure_function(runner *r, void (*kernel)(float *const *buffers), measurement *result) {
    *result = (measurement){.count = 0};
    run(r, &r->initial, NULL, kernel, run_kernel, result);
    unlock(r, true);
}

/* ---- Open and close ---------------------------------------------------------------------------------------------- */

/* Memory that children share; zero. */
static float *shared_memory(size_t elements) {
    void *memory = mmap(NULL, elements * sizeof(float), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool make_buffers(runner *r) {
    uint64_t random = 88172645463325252u;
    for (int b = 0; b < r->initial.buffer_count; b++) {
        const buffer *k = &r->initial.buffers[b];
        const size_t n = buffer_elements(k);
        if (k->kind == BUFFER_INTERMEDIATE)
            continue;
        if (r->buffers[b] || r->expected[b])
            continue;
        float *memory = shared_memory(n);
        if (!memory)
            return false;
        if (k->kind == BUFFER_OUTPUT) {
            r->expected[b] = memory;
            continue;
        }
        r->buffers[b] = memory;
        for (size_t i = 0; i < n; i++)
            memory[i] = (float)(draw_next(&random) >> 40) * (1.0f / (1 << 23)) - 1.0f;
    }
    return true;
}

bool runner_open(runner *r, const program *initial, const measure_options *options, char *message,
                 size_t message_size) {
    memset(r, 0, sizeof *r);
    r->options = *options;
    r->initial = *initial;
    r->lock = -1;
    if (!scratch_open(&r->scratch, options->directory)) {
        (void)snprintf(message, message_size, "a folder for generated files, %.200s: %s; --tmp takes one that exists",
                       r->scratch.path, strerror(errno));
        return false;
    }
    if (options->lock && (r->lock = open(options->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0) {
        (void)snprintf(message, message_size, "%.200s: %s", options->lock, strerror(errno));
        runner_close(r);
        return false;
    }
    return true;
}

bool runner_begin(runner *r, char *message, size_t message_size) {
    char source[PATH_SIZE], library[PATH_SIZE];
    measurement m;
    if (r->ready)
        return true;
    if (!make_buffers(r)) {
        (void)snprintf(message, message_size, "not enough memory for the operator's buffers");
        return false;
    }
    paths(r, 0, source, library);
    const char *error = compile_plain(r, source, library, 10 * r->options.timeout, &m);
    if (!error) {
        const double timeout = r->options.timeout;
        r->options.timeout = 60 + 10 * timeout;
        run_in_child(r, &r->initial, library, NULL, run_once, &m);
        r->options.timeout = timeout;
        error = m.count ? NULL : m.error;
    }
    (void)unlink(source);
    (void)unlink(library);
    if (error) {
        (void)snprintf(message, message_size, "the operator as it is, compiled by %.100s: %s%s", r->options.compiler,
                       error, strstr(error, "too long") ? "; --timeout gives it more time" : "");
        return false;
    }
    set_tolerance(r);
    r->ready = true;
    return true;
}

void runner_close(runner *r) {
    for (int b = 0; b < r->initial.buffer_count; b++) {
        const size_t size = buffer_elements(&r->initial.buffers[b]) * sizeof(float);
        if (r->buffers[b])
            (void)munmap(r->buffers[b], size);
        if (r->expected[b])
            (void)munmap(r->expected[b], size);
        r->buffers[b] = r->expected[b] = NULL;
    }
    scratch_close(&r->scratch);
    if (r->lock >= 0)
        (void)close(r->lock);
    r->lock = -1;
}
