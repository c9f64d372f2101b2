/* What this machine can do at most, measured: the ceilings that benchmarks compare with. */
#ifndef FORELOOP_TOOLS_BENCH_MACHINE_H
#define FORELOOP_TOOLS_BENCH_MACHINE_H

#include <foreloop/foreloop.h>
#include <stddef.h>

/* Seconds of real time, from anywhere. */
double bench_wall_clock(void);

/* Fused multiply-adds in registers, in operations (two each) a second, by the given tier on one thread. About a
 * hundredth of a second. */
double bench_peak(foreloop_tier tier);

/* Reads memory[size], a line of 64 bytes after the other. */
void bench_read(const void *memory, size_t size);

#endif
