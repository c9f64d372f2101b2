/* Classifying ASCII text, eight bytes at a time in ordinary registers: a byte's answer is its highest bit, and eight of
 * those are gathered by a multiplication. */
#include "kernels_cpu/classify_ascii.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Highest bits of the bytes that are at least `least`; all bytes, and `least`, are below 0x80. */
static uint64_t at_least(uint64_t bytes, unsigned least) {
    return (bytes + EACH(0x80u - least)) & EACH(0x80u);
}

static uint64_t between(uint64_t bytes, unsigned first, unsigned last) {
    return at_least(bytes, first) & ~at_least(bytes, last + 1);
}

static uint64_t gather(uint64_t highest_bits) {
    return ((highest_bits >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

void foreloop_classify_ascii_ref(const char text[FORELOOP_CLASSIFY_BYTES], foreloop_ascii_masks *masks) {
    foreloop_ascii_masks all = {0};
    for (unsigned i = 0; i < FORELOOP_CLASSIFY_BYTES; i += 8) {
        const unsigned char *bytes = (const unsigned char *)text + i;
        uint64_t word = 0, beyond, low;
        for (unsigned j = 0; j < 8; j++)
            word |= (uint64_t)bytes[j] << 8 * j;
        beyond = word & EACH(0x80u);
        low = word & ~EACH(0x80u);
        all.letters |= gather(between(low | EACH(0x20u), 'a', 'z') & ~beyond) << i;
        all.digits |= gather(between(low, '0', '9') & ~beyond) << i;
        all.blanks |= gather(between(low, ' ', ' ') & ~beyond) << i;
        all.spaces |= gather((between(low, 9, 13) | between(low, ' ', ' ')) & ~beyond) << i;
        all.beyond |= gather(beyond) << i;
    }
    *masks = all;
}
