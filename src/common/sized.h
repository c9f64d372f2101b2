/* Structs of the API that begin with their size, so that hosts built against an older header go on working. */
#ifndef FORELOOP_COMMON_SIZED_H
#define FORELOOP_COMMON_SIZED_H

#include "common/internal_api.h"

/* For init functions: all zero but the size. Does nothing to a struct too small for its size. */
FORELOOP_INTERNAL_API void foreloop_sized_init(void *given, size_t size);

/* For options: own[own_size] <- the fields that the caller's struct has, zero for the others; all zero when it is NULL.
 * ERROR_ARGUMENT, naming the struct, when its size is not set. */
FORELOOP_INTERNAL_API foreloop_status foreloop_sized_read(void *own, size_t own_size, const void *given,
                                                          const char *name, foreloop_error *error);

/* For results: writes as much of full[full_size] as the caller's struct has room for, and the size written. */
FORELOOP_INTERNAL_API void foreloop_sized_write(void *given, void *full, size_t full_size);

#endif
