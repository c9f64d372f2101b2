/* The tile instructions that kernels use, of the processor or emulated. */
#ifndef FORELOOP_KERNELS_CPU_X86_AMX_TILES_H
#define FORELOOP_KERNELS_CPU_X86_AMX_TILES_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

/* What ldtilecfg reads. */
typedef struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_configuration;

#if defined(FORELOOP_AMX_EMULATION)
#include "kernels_cpu/x86/amx_emulation.h"
#else
#define tile_load(tile, from, stride) _tile_loadd(tile, from, stride)
#define tile_store(tile, to, stride)  _tile_stored(tile, to, stride)
#define tile_zero(tile)               _tile_zero(tile)
#define tile_dot_bf16(sum, a, b)      _tile_dpbf16ps(sum, a, b)
#define tile_dot_unsigned(sum, a, b)  _tile_dpbusd(sum, a, b)
#define tile_release()                _tile_release()

static inline void tile_configure(const tile_configuration *configuration) {
    /* Compilers take ldtilecfg to read 8 bytes; the rest must be in memory too. */
    __asm__ volatile("" ::"r"(configuration) : "memory");
    _tile_loadconfig(configuration);
}
#endif

/*
 * The tiles of a product of up to 32 rows by 32 outputs: sums 0 to 3, the rows in 4 and 5, the weights in 6 and 7. Each
 * chunk of 64 bytes of a row meets 16 rows of weights.
 */
enum { TILE_ROWS_AMX = 16, TILE_BYTES = 64 };

static inline void tile_configure_rows(size_t rows) {
    tile_configuration configuration = {.palette = 1};
    const uint8_t first = (uint8_t)(rows < TILE_ROWS_AMX ? rows : TILE_ROWS_AMX), second = (uint8_t)(rows - first);
    const uint8_t counts[8] = {first, first, second, second, first, second, TILE_ROWS_AMX, TILE_ROWS_AMX};
    for (int i = 0; i < 8; i++) {
        configuration.rows[i] = counts[i];
        configuration.row_bytes[i] = counts[i] ? TILE_BYTES : 0;
    }
    tile_configure(&configuration);
}

#endif
