/* Cuts a text's tokens into windows. */
#include "model/text_windows.h"

#include "common/error.h"
#include "model/text_encoder.h"
#include <string.h>

foreloop_status foreloop_text_windows_open(foreloop_text_windows *windows, const foreloop_transformer *transformer,
                                           foreloop_encoding *encoding, const char *text, size_t length, size_t index,
                                           size_t text_count, foreloop_error *error) {
    const foreloop_pooling *pooling = &transformer->pooling;
    const foreloop_status status = foreloop_tokenize(encoding, text, length, 0, error);
    if (status != FORELOOP_OK && text_count > 1)
        return foreloop_error_prefix(error, status, "text %zu", index);
    FORELOOP_TRY(status);
    const size_t count = foreloop_encoding_count(encoding);
    const size_t most = pooling->window_length - transformer->prefix_count - transformer->suffix_count;
    *windows = (foreloop_text_windows){
        .transformer = transformer,
        .content = foreloop_encoding_ids(encoding),
        .content_count = count,
        .count = pooling->truncate ? 1 : foreloop_window_count(count, most, pooling->window_stride)};
    return FORELOOP_OK;
}

static foreloop_text_window window_at(const foreloop_text_windows *windows, size_t index) {
    const foreloop_transformer *transformer = windows->transformer;
    const foreloop_pooling *pooling = &transformer->pooling;
    const size_t special = transformer->prefix_count + transformer->suffix_count;
    foreloop_text_window window = {.first = transformer->prefix_count};
    size_t begin;
    foreloop_window_at(windows->content_count, pooling->window_length - special, pooling->window_stride, index, &begin,
                       &window.content_count);
    window.content = window.content_count ? windows->content + begin : NULL;
    window.tokens = window.content_count + special;
    window.pooled = window.content_count;
    if (pooling->mode == FORELOOP_POOLING_FIRST) {
        window.first = 0;
        window.pooled = window.tokens ? 1 : 0;
    } else if (pooling->include_special) {
        window.first = 0;
        window.pooled = window.tokens;
    }
    return window;
}

bool foreloop_text_windows_next(foreloop_text_windows *windows, foreloop_text_window *window) {
    while (windows->next < windows->count) {
        *window = window_at(windows, windows->next++);
        if (window->pooled)
            return true;
    }
    return false;
}

void foreloop_text_window_ids(const foreloop_transformer *transformer, const foreloop_text_window *window,
                              uint32_t *ids) {
    const size_t prefix = transformer->prefix_count, suffix = transformer->suffix_count;
    if (prefix)
        memcpy(ids, transformer->special, prefix * sizeof *ids);
    if (window->content_count)
        memcpy(ids + prefix, window->content, window->content_count * sizeof *ids);
    if (suffix)
        memcpy(ids + prefix + window->content_count, transformer->special + prefix, suffix * sizeof *ids);
}
