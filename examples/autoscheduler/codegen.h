/*
 * C code for a scheduled program: one file that compiles on its own, with one external function
 *
 *     void kernel(float *const *buffers);
 *
 * whose buffers are those of `kernel_buffers`, in this order. Intermediate results that outlive a loop are static in
 * the file, so a kernel runs once at a time. Parallel loops are OpenMP's: one line of standard C compilers that needs
 * no runtime in the host, and without -fopenmp the same file is a serial kernel.
 */
#ifndef AUTOSCHEDULER_CODEGEN_H
#define AUTOSCHEDULER_CODEGEN_H

#include "program.h"

/* Writes the kernel. Returns NULL, or why there is none: local buffers too large, too much unrolled. */
const char *generate_c(const program *p, FILE *out);
/* Whether generate_c will write it. */
bool can_generate_c(const program *p);

/* The buffers of a kernel's caller: inputs and outputs, the same for all schedules of a program. Returns their number.
 */
int kernel_buffers(const program *p, int *buffers);
size_t buffer_elements(const buffer *b);

#endif
