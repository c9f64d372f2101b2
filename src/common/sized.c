/* Copies between the caller's size-led structs and those of this version. */
#include "common/sized.h"
#include "common/error.h"
#include <string.h>

static size_t size_of(const void *sized) {
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

void foreloop_sized_init(void *given, size_t size) {
    if (!given || size < sizeof size)
        return;
    memset(given, 0, size);
    memcpy(given, &size, sizeof size);
}

foreloop_status foreloop_sized_read(void *own, size_t own_size, const void *given, const char *name,
                                    foreloop_error *error) {
    memset(own, 0, own_size);
    if (!given)
        return FORELOOP_OK;
    size_t size = size_of(given);
    if (size < sizeof size)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the size of %s is not set: call its init function first",
                             name);
    memcpy(own, given, size < own_size ? size : own_size);
    return FORELOOP_OK;
}

void foreloop_sized_write(void *given, void *full, size_t full_size) {
    size_t size = size_of(given);
    size = size < full_size ? size : full_size;
    if (size < sizeof size)
        return;
    memcpy(full, &size, sizeof size);
    memcpy(given, full, size);
}
