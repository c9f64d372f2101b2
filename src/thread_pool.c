/*
 * The built-in threads. A run opens a job; workers that come while it is open join it, and the caller takes part and
 * closes it when no index is left. Workers spin for a moment before they sleep, as the steps of an encoder follow each
 * other within microseconds.
 */
#include "common/alloc.h"
#include "common/error.h"
#include "common/sized.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_THREADS = 1024, SPINS = 4000 };

struct foreloop_thread_pool {
    foreloop_allocator allocator;
    foreloop_parallel_for parallel;
    pid_t process; /* threads do not live on in a forked child */
    pthread_mutex_t caller;
    pthread_mutex_t mutex;
    pthread_cond_t opened, left;
    size_t worker_count;
    /* Under the mutex; `jobs` and `busy` are also read without it, to spin. */
    atomic_size_t jobs; /* opened so far */
    atomic_size_t busy; /* workers that have joined the job */
    bool open, closing;
    void (*task)(void *argument, size_t index);
    void *argument;
    size_t count;
    atomic_size_t next; /* index */
    pthread_t workers[];
};

static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void take_part(foreloop_thread_pool *pool) {
    const size_t count = pool->count;
    for (;;) {
        const size_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (index >= count)
            return;
        pool->task(pool->argument, index);
    }
}

static void *work(void *argument) {
    foreloop_thread_pool *pool = argument;
    size_t seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load_explicit(&pool->jobs, memory_order_relaxed) == seen; i++)
            pause_processor();
        pthread_mutex_lock(&pool->mutex);
        while (!pool->closing && (pool->jobs == seen || !pool->open)) {
            seen = pool->jobs; /* one that has been closed meanwhile */
            pthread_cond_wait(&pool->opened, &pool->mutex);
        }
        if (pool->closing) {
            pthread_mutex_unlock(&pool->mutex);
            return NULL;
        }
        seen = pool->jobs;
        pool->busy++;
        pthread_mutex_unlock(&pool->mutex);
        take_part(pool);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->left);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static void run_alone(size_t count, void (*task)(void *argument, size_t index), void *argument) {
    for (size_t i = 0; i < count; i++)
        task(argument, i);
}

static void run(void *user, size_t count, void (*task)(void *argument, size_t index), void *argument) {
    foreloop_thread_pool *pool = user;
    /* In a forked child, inside a task, and while another thread's job runs. */
    if (count < 2 || pool->worker_count == 0 || pool->process != getpid() || pthread_mutex_trylock(&pool->caller)) {
        run_alone(count, task, argument);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->task = task;
    pool->argument = argument;
    pool->count = count;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    pool->open = true;
    pool->jobs++;
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->mutex);
    take_part(pool);
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool->busy, memory_order_relaxed); i++)
        pause_processor();
    pthread_mutex_lock(&pool->mutex);
    pool->open = false;
    while (pool->busy)
        pthread_cond_wait(&pool->left, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_mutex_unlock(&pool->caller);
}

/* Signals are for the host's threads. */
static bool start_workers(foreloop_thread_pool *pool, size_t count) {
    sigset_t all, former;
    bool started = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    while (started && pool->worker_count < count) {
        started = pthread_create(&pool->workers[pool->worker_count], NULL, work, pool) == 0;
        pool->worker_count += started;
    }
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    return started;
}

foreloop_status foreloop_thread_pool_create(foreloop_thread_pool **result, size_t threads,
                                            const foreloop_options *options, foreloop_error *error) {
    foreloop_options own;
    if (!result)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_thread_pool_create: the pool is NULL");
    if (threads < 1 || threads > MOST_THREADS)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                             "foreloop_thread_pool_create: threads must be from 1 to %d", MOST_THREADS);
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    const foreloop_allocator allocator = foreloop_allocator_or_default(own.allocator);
    foreloop_thread_pool *pool =
        foreloop_allocate_zeroed(&allocator, 1, sizeof *pool + (threads - 1) * sizeof pool->workers[0]);
    if (!pool)
        return foreloop_fail_memory(error, 1, sizeof *pool, "a thread pool");
    pool->allocator = allocator;
    pool->parallel = (foreloop_parallel_for){.run = run, .user = pool};
    pool->process = getpid();
    pthread_mutex_init(&pool->caller, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->opened, NULL);
    pthread_cond_init(&pool->left, NULL);
    if (!start_workers(pool, threads - 1)) {
        const size_t started = pool->worker_count;
        foreloop_thread_pool_close(pool);
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT,
                             "foreloop_thread_pool_create: the system starts no more than %zu of %zu threads",
                             started + 1, threads);
    }
    *result = pool;
    return FORELOOP_OK;
}

void foreloop_thread_pool_close(foreloop_thread_pool *pool) {
    if (!pool)
        return;
    const foreloop_allocator allocator = pool->allocator;
    if (pool->process == getpid()) {
        pthread_mutex_lock(&pool->mutex);
        pool->closing = true;
        pthread_cond_broadcast(&pool->opened);
        pthread_mutex_unlock(&pool->mutex);
        for (size_t i = 0; i < pool->worker_count; i++)
            pthread_join(pool->workers[i], NULL);
        pthread_cond_destroy(&pool->left);
        pthread_cond_destroy(&pool->opened);
        pthread_mutex_destroy(&pool->mutex);
        pthread_mutex_destroy(&pool->caller);
    }
    foreloop_release(&allocator, pool);
}

const foreloop_parallel_for *foreloop_thread_pool_parallel(const foreloop_thread_pool *pool) {
    return pool ? &pool->parallel : NULL;
}
