/* Hardware descriptions in JSON: {"cores": 8, "simd_bits": 512, ...}. */
#include "common/json.h"
#include "input.h"
#include <math.h>
#include <string.h>

#define FIELD(name)                                                                                                    \
    { #name, offsetof(foreloop_hardware, name) }
const input_hardware_field input_hardware_fields[] = {
    FIELD(cores),    FIELD(simd_bits), FIELD(l1d_bytes),           FIELD(l2_bytes),         FIELD(l3_bytes),
    FIELD(clock_hz), FIELD(sm_count),  FIELD(shared_memory_bytes), FIELD(memory_bandwidth), {NULL, 0},
};

double input_hardware_get(const foreloop_hardware *hardware, const input_hardware_field *field) {
    double value;
    memcpy(&value, (const char *)hardware + field->offset, sizeof value);
    return value;
}

static foreloop_status fail_unknown_field(foreloop_json *json, foreloop_text key) {
    const char *names[sizeof input_hardware_fields / sizeof *input_hardware_fields];
    char typed[41];
    const char *hint;
    size_t i = 0;
    for (; input_hardware_fields[i].name; i++)
        names[i] = input_hardware_fields[i].name;
    names[i] = NULL;
    (void)snprintf(typed, sizeof typed, "%.*s", FORELOOP_QUOTED(key.text, key.length));
    hint = cli_nearest(typed, names);
    return hint ? foreloop_json_fail(json, "unknown field \"%s\", did you mean \"%s\"?", typed, hint)
                : foreloop_json_fail(json, "unknown field \"%s\" ('foreloop inspect --cpu' lists the fields)", typed);
}

static foreloop_status parse_field(foreloop_json *json, foreloop_text key, foreloop_hardware *hardware) {
    for (const input_hardware_field *field = input_hardware_fields; field->name; field++) {
        double value;
        if (!foreloop_text_is(key, field->name))
            continue;
        FORELOOP_TRY(foreloop_json_double(json, &value));
        if (!isfinite(value) || value < 0)
            return foreloop_json_fail(json, "\"%s\" must be a finite number, and not negative", field->name);
        memcpy((char *)hardware + field->offset, &value, sizeof value);
        return FORELOOP_OK;
    }
    return fail_unknown_field(json, key);
}

static foreloop_status parse(foreloop_json *json, foreloop_hardware *hardware) {
    foreloop_text key;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return foreloop_json_end(json);
        FORELOOP_TRY(parse_field(json, key, hardware));
    }
}

int input_hardware_read(foreloop_hardware *hardware, const char *path) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_json json;
    input_file file;
    int status = input_read_bytes(&file, path, INPUT_SETTINGS_LIMIT);
    if (status != CLI_DONE)
        return status;
    input_drop_mark(&file);
    foreloop_json_open(&json, cli_allocator(), file.data, file.size, file.name, &error);
    if (parse(&json, hardware) != FORELOOP_OK)
        status = cli_fail_file(NULL, file.name, error.message);
    foreloop_json_close(&json);
    input_close(&file);
    return status;
}
