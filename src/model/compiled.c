/* The head of a compiled part: what it was made of, and a checksum of its content. */
#include "model/compiled.h"
#include "common/error.h"
#include "common/hash.h"
#include <string.h>

static const char mark[8] = {'F', 'L', 'C', 'O', 'M', 'P', '0', '1'};
static const uint64_t byte_order = UINT64_C(0x0102030405060708);

typedef struct compiled_head {
    char mark[8];
    uint64_t byte_order; /* as the machine that packed writes it: the content is in its order */
    uint64_t version;
    uint64_t source_size, source_hash;
    uint64_t content_size, content_hash;
    uint64_t unused;
} compiled_head;
_Static_assert(sizeof(compiled_head) == FORELOOP_ALIGNMENT, "the content behind the head is aligned");

static compiled_head make_head(uint32_t version, foreloop_bytes source, const void *content, size_t size) {
    compiled_head head = {.byte_order = byte_order,
                          .version = version,
                          .source_size = source.size,
                          .source_hash = foreloop_hash_lanes(source.data, source.size),
                          .content_size = size,
                          .content_hash = foreloop_hash_lanes(content, size)};
    memcpy(head.mark, mark, sizeof mark);
    return head;
}

foreloop_status foreloop_compiled_begin(foreloop_buffer *buffer, foreloop_error *error) {
    static const compiled_head empty;
    return foreloop_buffer_append(buffer, &empty, sizeof empty, error);
}

void foreloop_compiled_finish(foreloop_buffer *buffer, uint32_t version, foreloop_bytes source) {
    const size_t size = sizeof(compiled_head);
    const compiled_head head = make_head(version, source, buffer->data + size, buffer->size - size);
    memcpy(buffer->data, &head, sizeof head);
}

foreloop_status foreloop_compiled_content(foreloop_bytes compiled, uint32_t version, foreloop_bytes source,
                                          const char *name, foreloop_bytes *content, foreloop_error *error) {
    const unsigned char *data = compiled.data;
    compiled_head head, wanted;

    *content = (foreloop_bytes){NULL, 0};
    if (!data || compiled.size < sizeof head || (uintptr_t)data % sizeof(uint64_t) != 0)
        return FORELOOP_OK;
    memcpy(&head, data, sizeof head);
    if (memcmp(head.mark, mark, sizeof mark) != 0 || head.byte_order != byte_order || head.version != version ||
        head.source_size != source.size || head.source_hash != foreloop_hash_lanes(source.data, source.size))
        return FORELOOP_OK;
    wanted = make_head(version, (foreloop_bytes){"", 0}, data + sizeof head, compiled.size - sizeof head);
    if (head.content_size != wanted.content_size || head.content_hash != wanted.content_hash)
        return foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                             "the compiled part of %s is damaged: pack the model's directory again", name);
    *content = (foreloop_bytes){data + sizeof head, compiled.size - sizeof head};
    return FORELOOP_OK;
}
