/* linear_int8 by tdpbusd: 32 x 32 results in four tiles of sums. Groups of 64 inputs are one multiplication of tiles
 * each, so the vector instructions behind it are their limit; whole rows are limited by the tile multiplier. */
#define FORELOOP_UNITS_IN_TILES
#include "kernels_cpu/x86/amx_tiles.h"
#include "kernels_cpu/x86/linear_units.h"

enum { UNIT_ROWS = 2 * TILE_ROWS_AMX, NUMBER = 1, UNIT = 4 };

FORELOOP_INLINE void begin_units(void) {
    tile_configure_rows(UNIT_ROWS);
}

FORELOOP_INLINE void end_units(void) {
    tile_release();
}

#include "kernels_cpu/x86/linear_int8_units.h"

/* Exact sums of q w over `chunks` chunks. */
FORELOOP_INLINE void multiply(const unsigned char *x, const unsigned char *w, size_t chunks, int32_t *exact,
                              bool both) {
    enum { WEIGHT_ROW = 2 * TILE_BYTES };
    tile_zero(0);
    tile_zero(1);
    if (both) {
        tile_zero(2);
        tile_zero(3);
    }
    for (size_t c = 0; c < chunks; c++, x += UNIT_ROWS * CHUNK, w += TILE_ROWS_AMX * WEIGHT_ROW) {
        tile_load(4, x, CHUNK);
        tile_load(6, w, WEIGHT_ROW);
        tile_load(7, w + TILE_BYTES, WEIGHT_ROW);
        tile_dot_unsigned(0, 4, 6);
        tile_dot_unsigned(1, 4, 7);
        if (both) {
            tile_load(5, x + TILE_ROWS_AMX * CHUNK, CHUNK);
            tile_dot_unsigned(2, 5, 6);
            tile_dot_unsigned(3, 5, 7);
        }
    }
    tile_store(0, exact, PANEL * sizeof *exact);
    tile_store(1, exact + LANES, PANEL * sizeof *exact);
    if (both) {
        tile_store(2, exact + TILE_ROWS_AMX * PANEL, PANEL * sizeof *exact);
        tile_store(3, exact + TILE_ROWS_AMX * PANEL + LANES, PANEL * sizeof *exact);
    }
}

FORELOOP_INLINE void run_unit_mode(const unit_work *work, bool whole_rows) {
    const size_t groups = whole_rows ? 1 : foreloop_int8_groups(work->call->in);
    const size_t chunks = work->shape->chunks / groups;
    float sums[UNIT_ROWS * PANEL] = {0};
    int32_t exact[UNIT_ROWS * PANEL];
    if (work->rows < UNIT_ROWS)
        tile_configure_rows(work->rows);
    for (size_t g = 0; g < groups; g++) {
        const group_work group = group_of(work, g, groups, chunks);
        if (work->rows > TILE_ROWS_AMX)
            multiply(group.x, group.block, chunks, exact, true);
        else
            multiply(group.x, group.block, chunks, exact, false);
        add_scaled(&group, 0, work->rows, exact, sums, whole_rows);
    }
    if (work->rows < UNIT_ROWS)
        tile_configure_rows(UNIT_ROWS);
    finish_tile(work, 0, work->rows, sums);
}

static void run_unit_groups(const unit_work *work) {
    run_unit_mode(work, false);
}

static void run_unit_rows(const unit_work *work) {
    run_unit_mode(work, true);
}

void foreloop_linear_int8_amx(foreloop_linear *linear, bool whole_rows) {
    int8_kernel(linear, whole_rows, whole_rows ? "int8_row, tdpbusd" : "int8, tdpbusd");
}
