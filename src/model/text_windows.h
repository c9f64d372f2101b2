/* A text's tokens in the windows that an encoder runs over (transformer/window_pool.h has the rule). */
#ifndef FORELOOP_MODEL_TEXT_WINDOWS_H
#define FORELOOP_MODEL_TEXT_WINDOWS_H

#include "common/internal_api.h"
#include <foreloop/foreloop.h>
#include <stdbool.h>

/* A walk over one text's windows. Borrows the transformer and the encoding. */
typedef struct foreloop_text_windows {
    const foreloop_transformer *transformer;
    const uint32_t *content; /* the text's tokens, without special ones */
    size_t content_count;
    size_t count, next; /* windows */
} foreloop_text_windows;

typedef struct foreloop_text_window {
    const uint32_t *content; /* between the special tokens */
    size_t content_count;
    size_t tokens;        /* with the special ones; at most the transformer's window */
    size_t first, pooled; /* those of them that are pooled */
} foreloop_text_window;

/* Tokenises text number `index` of `text_count`, which the message of an error names. */
FORELOOP_INTERNAL_API foreloop_status foreloop_text_windows_open(foreloop_text_windows *windows,
                                                                 const foreloop_transformer *transformer,
                                                                 foreloop_encoding *encoding, const char *text,
                                                                 size_t length, size_t index, size_t text_count,
                                                                 foreloop_error *error);
/* The next window that has something to pool; false behind the last. */
FORELOOP_INTERNAL_API bool foreloop_text_windows_next(foreloop_text_windows *windows, foreloop_text_window *window);
/* ids[window->tokens] */
FORELOOP_INTERNAL_API void foreloop_text_window_ids(const foreloop_transformer *transformer,
                                                    const foreloop_text_window *window, uint32_t *ids);

#endif
