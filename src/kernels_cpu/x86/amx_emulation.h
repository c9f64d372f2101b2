/*
 * AMX in C: what the tile instructions of amx_tiles.h do, so that the kernels which use them can be checked on machines
 * without them. Misuse (a tile that is not configured, shapes that do not fit) ends the program, as #UD would. Each
 * thread has tiles of its own. For tests only.
 */
#ifndef FORELOOP_KERNELS_CPU_X86_AMX_EMULATION_H
#define FORELOOP_KERNELS_CPU_X86_AMX_EMULATION_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The kernels compiled against this header stand beside those for the processor. */
#define foreloop_linear_bf16_amx foreloop_linear_bf16_amx_emulated
#define foreloop_linear_int8_amx foreloop_linear_int8_amx_emulated

enum { EMULATED_TILES = 8, EMULATED_ROWS = 16, EMULATED_BYTES = 64 };

typedef struct emulated_tile {
    size_t rows, bytes;
    uint8_t data[EMULATED_ROWS][EMULATED_BYTES];
} emulated_tile;

static _Thread_local emulated_tile emulated_tiles[EMULATED_TILES];

static inline emulated_tile *emulated(int number) {
    if (number < 0 || number >= EMULATED_TILES || emulated_tiles[number].rows == 0)
        abort();
    return &emulated_tiles[number];
}

static inline void tile_release(void) {
    memset(emulated_tiles, 0, sizeof emulated_tiles);
}

static inline void tile_configure(const tile_configuration *configuration) {
    tile_release();
    if (configuration->palette != 1)
        abort();
    for (int i = 0; i < EMULATED_TILES; i++) {
        const size_t rows = configuration->rows[i], bytes = configuration->row_bytes[i];
        if (rows > EMULATED_ROWS || bytes > EMULATED_BYTES || (rows == 0) != (bytes == 0))
            abort();
        emulated_tiles[i].rows = rows;
        emulated_tiles[i].bytes = bytes;
    }
}

static inline void tile_zero(int number) {
    emulated_tile *tile = emulated(number);
    memset(tile->data, 0, sizeof tile->data);
}

/* Rows and bytes beyond the configured ones become 0. */
static inline void tile_load(int number, const void *from, size_t stride) {
    tile_zero(number);
    emulated_tile *tile = emulated(number);
    for (size_t r = 0; r < tile->rows; r++)
        memcpy(tile->data[r], (const uint8_t *)from + r * stride, tile->bytes);
}

static inline void tile_store(int number, void *to, size_t stride) {
    const emulated_tile *tile = emulated(number);
    for (size_t r = 0; r < tile->rows; r++)
        memcpy((uint8_t *)to + r * stride, tile->data[r], tile->bytes);
}

/* Numbers below 2^-126 count as 0, on the way in and out. */
static inline float emulated_flush(float value) {
    return fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

static inline float emulated_bf16(const uint8_t *from) {
    uint16_t half;
    memcpy(&half, from, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return emulated_flush(value);
}

static inline void emulated_check(const emulated_tile *sum, const emulated_tile *a, const emulated_tile *b) {
    if (a->rows != sum->rows || b->bytes != sum->bytes || a->bytes % 4 != 0 || b->rows != a->bytes / 4)
        abort();
}

static inline void tile_dot_bf16(int sum_number, int a_number, int b_number) {
    emulated_tile *sum = emulated(sum_number);
    const emulated_tile *a = emulated(a_number), *b = emulated(b_number);
    emulated_check(sum, a, b);
    for (size_t m = 0; m < sum->rows; m++)
        for (size_t n = 0; n < sum->bytes; n += 4) {
            float even = 0, odd = 0, total;
            for (size_t k = 0; k < b->rows; k++) {
                const uint8_t *from_a = a->data[m] + 4 * k, *from_b = b->data[k] + n;
                even = emulated_flush(fmaf(emulated_bf16(from_a), emulated_bf16(from_b), even));
                odd = emulated_flush(fmaf(emulated_bf16(from_a + 2), emulated_bf16(from_b + 2), odd));
            }
            memcpy(&total, sum->data[m] + n, sizeof total);
            total = emulated_flush(emulated_flush(total) + emulated_flush(even + odd));
            memcpy(sum->data[m] + n, &total, sizeof total);
        }
}

static inline void tile_dot_unsigned(int sum_number, int a_number, int b_number) {
    emulated_tile *sum = emulated(sum_number);
    const emulated_tile *a = emulated(a_number), *b = emulated(b_number);
    emulated_check(sum, a, b);
    for (size_t m = 0; m < sum->rows; m++)
        for (size_t n = 0; n < sum->bytes; n += 4) {
            uint32_t total; /* wraps, as the instruction does */
            memcpy(&total, sum->data[m] + n, sizeof total);
            for (size_t k = 0; k < b->rows; k++)
                for (size_t j = 0; j < 4; j++)
                    total += (uint32_t)((int32_t)a->data[m][4 * k + j] * (int8_t)b->data[k][n + j]);
            memcpy(sum->data[m] + n, &total, sizeof total);
        }
}

#endif
