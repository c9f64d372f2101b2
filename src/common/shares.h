/* Work cut into shares that may run at the same time, on the caller's threads. */
#ifndef FORELOOP_COMMON_SHARES_H
#define FORELOOP_COMMON_SHARES_H

#include <foreloop/foreloop.h>

typedef struct foreloop_shares {
    foreloop_parallel_for parallel; /* its `run` is NULL for none: one share after the other */
    size_t count;                   /* 0 and 1: all the work is one share */
} foreloop_shares;

typedef void foreloop_share_task(void *argument, size_t share);

/* task(argument, i) for each i below `count`, at most shares->count. */
static inline void foreloop_shares_run(const foreloop_shares *shares, size_t count, foreloop_share_task *task,
                                       void *argument) {
    if (count > 1 && shares->parallel.run) {
        shares->parallel.run(shares->parallel.user, count, task, argument);
        return;
    }
    for (size_t i = 0; i < count; i++)
        task(argument, i);
}

/* Where share number `share` of `shares` begins among `count` units of equal work; it ends where the next begins. */
static inline size_t foreloop_share_begin(size_t count, size_t shares, size_t share) {
    const size_t longer = count % shares;
    return count / shares * share + (share < longer ? share : longer);
}

#endif
