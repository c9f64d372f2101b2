/* Arrays one behind the other in a buffer, behind a head, each at a multiple of FORELOOP_ALIGNMENT: what compiled forms
 * are made of. */
#ifndef FORELOOP_COMMON_SECTIONS_H
#define FORELOOP_COMMON_SECTIONS_H

#include "common/alloc.h"
#include <stdbool.h>

/* Fills the buffer up to the next section's place, counted from `start`, and appends the section. */
foreloop_status foreloop_sections_append(foreloop_buffer *buffer, size_t start, const void *data, size_t size,
                                         foreloop_error *error);

/* Finds `section_count` sections of counts[i] elements of sizes[i] bytes behind a head; false when they do not make up
 * the whole. */
bool foreloop_sections_find(const void *data, size_t size, size_t head_size, const uint64_t *counts,
                            const size_t *sizes, const void **sections, size_t section_count);

#endif
