/* The texts of a call, tokenised and cut into windows, and the runs of the encoder that take them up in order. */
#ifndef FORELOOP_CUDA_TEXT_BATCH_H
#define FORELOOP_CUDA_TEXT_BATCH_H

#include "cuda/gpu.h"
#include "kernels_cuda/encoder_kernels.h"
#include "model/text_windows.h"

typedef struct foreloop_cuda_window {
    size_t first_id;
    uint32_t tokens, first, pooled; /* with the special ones; those of them that are pooled */
} foreloop_cuda_window;

typedef struct foreloop_cuda_text {
    size_t window_end; /* the next text's first window */
    uint64_t pooled;   /* tokens of all its windows */
} foreloop_cuda_text;

/* Belongs to one thread; keeps its memory from call to call. */
typedef struct foreloop_cuda_text_batch {
    foreloop_allocator allocator;
    const foreloop_transformer *transformer;
    foreloop_encoding *encoding;
    uint32_t *ids;
    size_t id_count, id_capacity;
    foreloop_cuda_window *windows;
    size_t window_count, window_capacity;
    foreloop_cuda_text *texts;
    size_t text_count, text_capacity;
    /* What the next run begins with. */
    size_t next_window, next_text;
    bool carried; /* next_text has windows in earlier runs */
} foreloop_cuda_text_batch;

foreloop_status foreloop_cuda_text_batch_open(foreloop_cuda_text_batch *batch, const foreloop_allocator *allocator,
                                              const foreloop_transformer *transformer, foreloop_error *error);
void foreloop_cuda_text_batch_close(foreloop_cuda_text_batch *batch);

/* Tokenises the texts, in place of what was there. */
foreloop_status foreloop_cuda_text_batch_read(foreloop_cuda_text_batch *batch, const char *const *texts,
                                              const size_t *lengths, size_t count, foreloop_error *error);
/* The same in steps: an empty batch, then sequences of ids, all pooled, each a text of one window. */
void foreloop_cuda_text_batch_begin(foreloop_cuda_text_batch *batch);
foreloop_status foreloop_cuda_text_batch_add_ids(foreloop_cuda_text_batch *batch, const uint32_t *ids, size_t count,
                                                 foreloop_error *error);

/* One run: whole windows. Its inputs are one block of memory, on the host and on the GPU. */
typedef struct foreloop_cuda_run {
    size_t first_window, window_end; /* of the batch */
    size_t first_text, text_end;     /* of the batch; a text that goes on in the next run is the last one */
    size_t finished;                 /* texts that end here */
    bool carried, unfinished;        /* the first text goes on from the run before; the last one goes on in the next */
    size_t tokens, tiles;
    /* Where in the block the arrays begin. */
    size_t texts_at, windows_at, tiles_at, ids_at, positions_at, types_at;
    size_t size;
} foreloop_cuda_run;

/* Bytes that the inputs of a run of so many tokens and texts take at the most. */
size_t foreloop_cuda_run_size(size_t tokens, size_t texts);
/* The next run, of at most so many; false when all texts are finished. */
bool foreloop_cuda_run_next(foreloop_cuda_text_batch *batch, size_t tokens, size_t texts, foreloop_cuda_run *run);
/* Writes the run's inputs to block[run->size], aligned to 8; token types (may be NULL: none, and not to be read) are
 * those of the batch's ids. */
void foreloop_cuda_run_fill(const foreloop_cuda_run *run, const foreloop_cuda_text_batch *batch, const uint32_t *types,
                            unsigned char *block);

#endif
