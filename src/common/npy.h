/* NumPy's .npy files, versions 1 to 3: f4 and f8, C and Fortran order, one or two dimensions. */
#ifndef FORELOOP_COMMON_NPY_H
#define FORELOOP_COMMON_NPY_H

#include <foreloop/foreloop.h>

/* Parses data[size] and gives rows x columns values in row-major order as float32 (a one-dimensional array is one row),
 * in memory of the allocator that the caller releases. Either byte order. */
foreloop_status foreloop_npy_read(const void *data, size_t size, const char *name, const foreloop_allocator *allocator,
                                  float **values, size_t *rows, size_t *columns, foreloop_error *error);

#endif
