/* Whole arrays of numbers into lists, from JSON and UBJSON. */
#include "common/json.h"
#include "common/ubjson.h"

foreloop_status foreloop_json_integers(foreloop_json *json, int64_t minimum, int64_t maximum, foreloop_integers *list) {
    list->count = 0;
    FORELOOP_TRY(foreloop_json_array(json));
    if (json->binary)
        FORELOOP_TRY(foreloop_ubjson_integers(json, minimum, maximum, list));
    for (;;) {
        bool more = false, flag = false;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_reserve(json->scratch.allocator, &list->items, &list->capacity, list->count,
                                      list->count + 1, sizeof *list->items, json->error));
        if (foreloop_json_peek(json) == FORELOOP_JSON_BOOL) {
            FORELOOP_TRY(foreloop_json_bool(json, &flag));
            list->items[list->count] = flag;
        } else {
            FORELOOP_TRY(foreloop_json_bounded(json, minimum, maximum, &list->items[list->count]));
        }
        list->count++;
    }
}

foreloop_status foreloop_json_floats(foreloop_json *json, foreloop_floats *list) {
    list->count = 0;
    FORELOOP_TRY(foreloop_json_array(json));
    if (json->binary)
        FORELOOP_TRY(foreloop_ubjson_floats(json, list));
    for (;;) {
        bool more = false;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        FORELOOP_TRY(foreloop_reserve(json->scratch.allocator, &list->items, &list->capacity, list->count,
                                      list->count + 1, sizeof *list->items, json->error));
        FORELOOP_TRY(foreloop_json_float(json, &list->items[list->count]));
        list->count++;
    }
}
