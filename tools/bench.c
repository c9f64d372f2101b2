/* What the parts of foreloop bench share. */
#include "bench.h"
#include <stdio.h>
#include <time.h>

double bench_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

uint32_t bench_draw(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33);
}

bool bench_print(foreloop_buffer *text, const char *format, va_list arguments) {
    char piece[512];
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    return length >= 0 && (size_t)length < sizeof piece &&
           foreloop_buffer_append(text, piece, (size_t)length, NULL) == FORELOOP_OK;
}
