/*
 * Compiled parts of a packed model: what was made of a text at packing, so that opening need not make it again. Beside
 * the text NAME lies the tensor compiled/NAME, a head and the part's own content. It counts only while it fits: the
 * head tells the version, the byte order, and the size and hash of the text that it was made of; where these differ the
 * text is read as if there were no compiled part. One that fits but was damaged is an error.
 */
#ifndef FORELOOP_MODEL_COMPILED_H
#define FORELOOP_MODEL_COMPILED_H

#include "common/alloc.h"
#include "common/file.h"

/* Writing: begin, then append the content to the buffer, then finish. `source` is the text. The content lies at a
 * multiple of FORELOOP_ALIGNMENT from the buffer's start. */
foreloop_status foreloop_compiled_begin(foreloop_buffer *buffer, foreloop_error *error);
void foreloop_compiled_finish(foreloop_buffer *buffer, uint32_t version, foreloop_bytes source);

/* The content of `compiled` (data NULL: there is none) if it fits the version and the text, else data NULL. FORMAT for
 * one that fits but is not what was written. */
foreloop_status foreloop_compiled_content(foreloop_bytes compiled, uint32_t version, foreloop_bytes source,
                                          const char *name, foreloop_bytes *content, foreloop_error *error);

#endif
