/* linear_bf16 by tdpbf16ps: 32 x 32 results in four tiles of sums. Near the limit of the tile multiplier for many rows,
 * of loading the weights for few. Bits must not depend on the number of rows, so a single row takes this way too. */
#define FORELOOP_UNITS_IN_TILES
#include "kernels_cpu/x86/amx_tiles.h"
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS_AMX, NUMBER = sizeof(uint16_t) };

FORELOOP_INLINE void begin_units(void) {
    tile_configure_rows(UNIT_ROWS);
}

FORELOOP_INLINE void end_units(void) {
    tile_release();
}

#include "kernels_cpu/x86/linear_bf16_units.h"

FORELOOP_INLINE void multiply(const unit_work *work, float *sums, bool both) {
    enum { WEIGHT_ROW = 2 * TILE_BYTES };
    const unsigned char *x = work->unit, *w = work->panel;
    tile_zero(0);
    tile_zero(1);
    if (both) {
        tile_zero(2);
        tile_zero(3);
    }
    for (size_t c = 0; c < work->shape->chunks; c++, x += UNIT_ROWS * CHUNK, w += TILE_ROWS_AMX * WEIGHT_ROW) {
        tile_load(4, x, CHUNK);
        tile_load(6, w, WEIGHT_ROW);
        tile_load(7, w + TILE_BYTES, WEIGHT_ROW);
        tile_dot_bf16(0, 4, 6);
        tile_dot_bf16(1, 4, 7);
        if (both) {
            tile_load(5, x + TILE_ROWS_AMX * CHUNK, CHUNK);
            tile_dot_bf16(2, 5, 6);
            tile_dot_bf16(3, 5, 7);
        }
    }
    tile_store(0, sums, PANEL * sizeof(float));
    tile_store(1, sums + LANES, PANEL * sizeof(float));
    if (both) {
        tile_store(2, sums + TILE_ROWS_AMX * PANEL, PANEL * sizeof(float));
        tile_store(3, sums + TILE_ROWS_AMX * PANEL + LANES, PANEL * sizeof(float));
    }
}

static void run_unit(const unit_work *work) {
    float sums[UNIT_ROWS * PANEL];
    if (work->rows < UNIT_ROWS)
        tile_configure_rows(work->rows);
    if (work->rows > TILE_ROWS_AMX)
        multiply(work, sums, true);
    else
        multiply(work, sums, false);
    if (work->rows < UNIT_ROWS)
        tile_configure_rows(UNIT_ROWS);
    finish_tile(work, 0, work->rows, sums);
}

void foreloop_linear_bf16_amx(foreloop_linear *linear) {
    bf16_kernel(linear, "bf16, tdpbf16ps");
}
