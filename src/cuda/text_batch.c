/* Tokenises the texts of a call and deals their windows out to runs. */
#include "cuda/text_batch.h"
#include "model/text_encoder.h"
#include <string.h>

foreloop_status foreloop_cuda_text_batch_open(foreloop_cuda_text_batch *batch, const foreloop_allocator *allocator,
                                              const foreloop_transformer *transformer, foreloop_error *error) {
    *batch = (foreloop_cuda_text_batch){.allocator = *allocator, .transformer = transformer};
    return foreloop_encoding_create(&batch->encoding, transformer->tokenizer, error);
}

void foreloop_cuda_text_batch_close(foreloop_cuda_text_batch *batch) {
    if (!batch->transformer)
        return;
    foreloop_encoding_close(batch->encoding);
    foreloop_release(&batch->allocator, batch->ids);
    foreloop_release(&batch->allocator, batch->windows);
    foreloop_release(&batch->allocator, batch->texts);
    *batch = (foreloop_cuda_text_batch){.transformer = NULL};
}

/* Room for a window, whose ids are to be written to *ids. */
static foreloop_status add_window(foreloop_cuda_text_batch *batch, size_t tokens, size_t first, size_t pooled,
                                  uint32_t **ids, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(&batch->allocator, &batch->ids, &batch->id_capacity, batch->id_count,
                                  batch->id_count + tokens, sizeof *batch->ids, error));
    FORELOOP_TRY(foreloop_reserve(&batch->allocator, &batch->windows, &batch->window_capacity, batch->window_count,
                                  batch->window_count + 1, sizeof *batch->windows, error));
    batch->windows[batch->window_count++] =
        (foreloop_cuda_window){batch->id_count, (uint32_t)tokens, (uint32_t)first, (uint32_t)pooled};
    *ids = batch->ids + batch->id_count;
    batch->id_count += tokens;
    return FORELOOP_OK;
}

void foreloop_cuda_text_batch_begin(foreloop_cuda_text_batch *batch) {
    batch->id_count = batch->window_count = batch->text_count = 0;
    batch->next_window = batch->next_text = 0;
    batch->carried = false;
}

/* The windows since the text before. */
static foreloop_status end_text(foreloop_cuda_text_batch *batch, uint64_t pooled, foreloop_error *error) {
    FORELOOP_TRY(foreloop_reserve(&batch->allocator, &batch->texts, &batch->text_capacity, batch->text_count,
                                  batch->text_count + 1, sizeof *batch->texts, error));
    batch->texts[batch->text_count++] = (foreloop_cuda_text){batch->window_count, pooled};
    return FORELOOP_OK;
}

static foreloop_status add_text(foreloop_cuda_text_batch *batch, const char *text, size_t length, size_t index,
                                size_t count, foreloop_error *error) {
    foreloop_text_windows windows;
    foreloop_text_window window;
    uint64_t pooled = 0;
    FORELOOP_TRY(
        foreloop_text_windows_open(&windows, batch->transformer, batch->encoding, text, length, index, count, error));
    while (foreloop_text_windows_next(&windows, &window)) {
        uint32_t *ids;
        FORELOOP_TRY(add_window(batch, window.tokens, window.first, window.pooled, &ids, error));
        foreloop_text_window_ids(batch->transformer, &window, ids);
        pooled += window.pooled;
    }
    return end_text(batch, pooled, error);
}

foreloop_status foreloop_cuda_text_batch_read(foreloop_cuda_text_batch *batch, const char *const *texts,
                                              const size_t *lengths, size_t count, foreloop_error *error) {
    foreloop_cuda_text_batch_begin(batch);
    for (size_t i = 0; i < count; i++) {
        if (!texts[i] && lengths[i])
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_cuda_encode_texts: text %zu is NULL", i);
        FORELOOP_TRY(add_text(batch, texts[i], lengths[i], i, count, error));
    }
    return FORELOOP_OK;
}

foreloop_status foreloop_cuda_text_batch_add_ids(foreloop_cuda_text_batch *batch, const uint32_t *ids, size_t count,
                                                 foreloop_error *error) {
    uint32_t *own;
    FORELOOP_TRY(add_window(batch, count, 0, count, &own, error));
    memcpy(own, ids, count * sizeof *ids);
    return end_text(batch, count, error);
}

/* ---- Runs ---- */

static size_t tiles_of(size_t tokens) {
    return (tokens + FORELOOP_CUDA_QUERIES - 1) / FORELOOP_CUDA_QUERIES;
}

/* A run has `tokens` windows and tiles at the most. */
size_t foreloop_cuda_run_size(size_t tokens, size_t texts) {
    return texts * sizeof(foreloop_cuda_pool_text) +
           tokens * (sizeof(foreloop_cuda_pool_window) + sizeof(foreloop_cuda_attention_tile) + 3 * sizeof(uint32_t));
}

static void lay_out(foreloop_cuda_run *run) {
    run->texts_at = 0;
    run->windows_at = run->texts_at + (run->text_end - run->first_text) * sizeof(foreloop_cuda_pool_text);
    run->tiles_at = run->windows_at + (run->window_end - run->first_window) * sizeof(foreloop_cuda_pool_window);
    run->ids_at = run->tiles_at + run->tiles * sizeof(foreloop_cuda_attention_tile);
    run->positions_at = run->ids_at + run->tokens * sizeof(uint32_t);
    run->types_at = run->positions_at + run->tokens * sizeof(uint32_t);
    run->size = run->types_at + run->tokens * sizeof(uint32_t);
}

bool foreloop_cuda_run_next(foreloop_cuda_text_batch *batch, size_t tokens, size_t texts, foreloop_cuda_run *run) {
    size_t window = batch->next_window, text = batch->next_text;
    if (text == batch->text_count)
        return false;
    *run = (foreloop_cuda_run){.first_window = window, .first_text = text, .carried = batch->carried};
    for (; text < batch->text_count && run->finished < texts; text++, run->finished++) {
        const size_t end = batch->texts[text].window_end, begun = window;
        for (; window < end && run->tokens + batch->windows[window].tokens <= tokens; window++) {
            run->tokens += batch->windows[window].tokens;
            run->tiles += tiles_of(batch->windows[window].tokens);
        }
        if (window < end) {
            run->unfinished = window > begun;
            break;
        }
    }
    run->window_end = window;
    run->text_end = text + run->unfinished;
    batch->carried = run->unfinished;
    batch->next_window = window;
    batch->next_text = text;
    lay_out(run);
    return true;
}

/* The windows with the most tiles first: the blocks that take longest begin first. */
static void fill_tiles(const foreloop_cuda_run *run, const foreloop_cuda_window *windows,
                       foreloop_cuda_attention_tile *tiles) {
    size_t below = SIZE_MAX;
    for (size_t done = 0; done < run->tiles;) {
        size_t most = 0;
        for (size_t w = run->first_window; w < run->window_end; w++) {
            const size_t count = tiles_of(windows[w].tokens);
            if (count < below && count > most)
                most = count;
        }
        uint32_t row = 0;
        for (size_t w = run->first_window; w < run->window_end; row += windows[w++].tokens)
            for (uint32_t query = 0; tiles_of(windows[w].tokens) == most && query < windows[w].tokens;
                 query += FORELOOP_CUDA_QUERIES)
                tiles[done++] = (foreloop_cuda_attention_tile){row, windows[w].tokens, query};
        below = most;
    }
}

static void fill_positions(const foreloop_transformer_config *config, const uint32_t *ids, size_t count,
                           uint32_t *positions) {
    size_t next = config->position_offset;
    for (size_t t = 0; t < count; t++)
        positions[t] = (uint32_t)foreloop_transformer_position(config, ids[t], &next);
}

void foreloop_cuda_run_fill(const foreloop_cuda_run *run, const foreloop_cuda_text_batch *batch, const uint32_t *types,
                            unsigned char *block) {
    const foreloop_transformer_config *config = &batch->transformer->weights.config;
    foreloop_cuda_pool_text *texts = (void *)(block + run->texts_at);
    foreloop_cuda_pool_window *windows = (void *)(block + run->windows_at);
    uint32_t *ids = (void *)(block + run->ids_at), *positions = (void *)(block + run->positions_at);
    uint32_t row = 0;
    for (size_t w = run->first_window; w < run->window_end; w++) {
        const foreloop_cuda_window *window = &batch->windows[w];
        memcpy(ids + row, batch->ids + window->first_id, window->tokens * sizeof *ids);
        fill_positions(config, ids + row, window->tokens, positions + row);
        windows[w - run->first_window] = (foreloop_cuda_pool_window){row + window->first, window->pooled};
        row += window->tokens;
    }
    if (types)
        memcpy(block + run->types_at, types, run->tokens * sizeof *types);
    fill_tiles(run, batch->windows, (void *)(block + run->tiles_at));
    size_t window = run->first_window;
    for (size_t t = run->first_text; t < run->text_end; t++) {
        const foreloop_cuda_text *text = &batch->texts[t];
        const size_t end = text->window_end < run->window_end ? text->window_end : run->window_end;
        texts[t - run->first_text] = (foreloop_cuda_pool_text){.window = (uint32_t)(window - run->first_window),
                                                               .window_end = (uint32_t)(end - run->first_window),
                                                               .carried = run->carried && t == run->first_text,
                                                               .unfinished = run->unfinished && t + 1 == run->text_end,
                                                               .count = text->pooled};
        window = end;
    }
}
