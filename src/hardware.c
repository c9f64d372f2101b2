/* What this machine tells about itself, for the hardware features. Linux; elsewhere the counts of sysconf. */
#include "common/error.h"
#include "common/number.h"
#include "common/sized.h"
#include "kernels_cpu/cpu.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

void foreloop_hardware_init(foreloop_hardware *hardware, size_t size) {
    foreloop_sized_init(hardware, size);
}

/* The first bytes of a small file as terminated text; false when it cannot be read. */
static int read_text(const char *path, char *buffer, size_t capacity) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, buffer, capacity - 1);
    close(file);
    if (length <= 0)
        return 0;
    while (length > 0 && (buffer[length - 1] == '\n' || buffer[length - 1] == ' '))
        length--;
    buffer[length] = 0;
    return 1;
}

/* "48K" or "2048K" or "32M" to bytes. */
static double parse_size(char *text) {
    double unit = 1, value = 0;
    size_t length = strlen(text);
    if (length && (text[length - 1] == 'K' || text[length - 1] == 'M')) {
        unit = text[length - 1] == 'K' ? 1024 : 1048576;
        length--;
    }
    return foreloop_parse_double(text, length, &value) ? value * unit : 0;
}

static void read_caches(foreloop_hardware *hardware) {
    for (int i = 0; i < 8; i++) {
        char path[96], type[32], level[8], size[32];
        const char *format = "/sys/devices/system/cpu/cpu0/cache/index%d/%s";
        (void)snprintf(path, sizeof path, format, i, "type");
        if (!read_text(path, type, sizeof type))
            return;
        (void)snprintf(path, sizeof path, format, i, "level");
        if (!read_text(path, level, sizeof level))
            return;
        (void)snprintf(path, sizeof path, format, i, "size");
        if (!read_text(path, size, sizeof size) || strcmp(type, "Instruction") == 0)
            continue;
        double bytes = parse_size(size);
        if (strcmp(level, "1") == 0)
            hardware->l1d_bytes = bytes;
        else if (strcmp(level, "2") == 0)
            hardware->l2_bytes = bytes;
        else if (strcmp(level, "3") == 0)
            hardware->l3_bytes = bytes;
    }
}

static double read_clock(void) {
    char text[64];
    double kilohertz;
    if (read_text("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", text, sizeof text) &&
        foreloop_parse_double(text, strlen(text), &kilohertz))
        return kilohertz * 1e3;
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (__get_cpuid(0x16, &a, &b, &c, &d) && (a & 0xffff))
        return (a & 0xffff) * 1e6;
    if (__get_cpuid(0x15, &a, &b, &c, &d) && a && b && c)
        return (double)c * b / a;
#endif
    return 0;
}

/* The width of the vectors that the kernels of this machine's tier use. */
static double simd_bits(void) {
    switch (foreloop_cpu_tier(FORELOOP_TIER_BEST)) {
    case FORELOOP_TIER_AVX512:
        return 512;
    case FORELOOP_TIER_AVX2:
        return 256;
    default:
        return 128; /* SSE2 and NEON, which x86-64 and aarch64 always have */
    }
}

foreloop_status foreloop_hardware_detect(foreloop_hardware *hardware, foreloop_error *error) {
    foreloop_hardware found;
    if (!hardware)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_hardware_detect: an argument is NULL");
    FORELOOP_TRY(foreloop_sized_read(&found, sizeof found, hardware, "foreloop_hardware", error));
    foreloop_hardware_init(&found, sizeof found);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    found.cores = cores > 0 ? (double)cores : 0;
    found.simd_bits = simd_bits();
    found.clock_hz = read_clock();
    read_caches(&found);
    foreloop_sized_write(hardware, &found, sizeof found);
    return FORELOOP_OK;
}
