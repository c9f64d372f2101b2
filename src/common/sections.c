/* Sections of compiled forms: where they lie, nothing about what they are. */
#include "common/sections.h"

static size_t padding(size_t at) {
    return (FORELOOP_ALIGNMENT - at % FORELOOP_ALIGNMENT) % FORELOOP_ALIGNMENT;
}

foreloop_status foreloop_sections_append(foreloop_buffer *buffer, size_t start, const void *data, size_t size,
                                         foreloop_error *error) {
    static const char zeros[FORELOOP_ALIGNMENT];
    foreloop_status status = foreloop_buffer_append(buffer, zeros, padding(buffer->size - start), error);
    return status == FORELOOP_OK ? foreloop_buffer_append(buffer, data, size, error) : status;
}

bool foreloop_sections_find(const void *data, size_t size, size_t head_size, const uint64_t *counts,
                            const size_t *sizes, const void **sections, size_t section_count) {
    size_t at = head_size;
    for (size_t i = 0; i < section_count; i++) {
        at += padding(at);
        if (at > size || counts[i] > (size - at) / sizes[i])
            return false;
        sections[i] = (const unsigned char *)data + at;
        at += (size_t)counts[i] * sizes[i];
    }
    return at == size;
}
