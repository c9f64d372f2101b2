/* Collecting and printing facts, and reading those of a bundle's manifest. */
#include "facts.h"
#include "cli.h"
#include "common/json.h"
#include "common/number.h"
#include <string.h>

void facts_begin(fact_sheet *facts, bool json) {
    memset(facts, 0, sizeof *facts);
    facts->json = json;
    if (json)
        facts->object = cJSON_CreateObject();
    output_table_begin(&facts->table, "ll");
    output_table_begin(&facts->kinds, "ll");
    output_table_begin(&facts->training, "ll");
}

static void table_fact(output_table *table, const char *name, const char *text) {
    char label[80];
    (void)snprintf(label, sizeof label, "%s", name);
    for (char *c = label; *c; c++)
        if (*c == '_')
            *c = ' ';
    output_table_row(table, OUTPUT_PLAIN);
    output_table_cell(table, "%s", label);
    output_table_cell(table, "%s", text);
}

void facts_text(fact_sheet *facts, const char *name, const char *text) {
    if (facts->json)
        facts->failed |= !output_json_add(facts->object, name, cJSON_CreateString(text));
    else
        table_fact(&facts->table, name, text);
}

void facts_number(fact_sheet *facts, const char *name, double value, const char *text) {
    char number[FORELOOP_NUMBER_TEXT_SIZE];
    (void)foreloop_format_double(value, number);
    if (facts->json)
        facts->failed |= !output_json_add(facts->object, name, output_json_double(value));
    else
        table_fact(&facts->table, name, text ? text : number);
}

/* ---- The manifest ---- */

/* Appends to a bounded text; what does not fit is left out. */
static void append(char *text, size_t size, const char *separator, const char *added, size_t length) {
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%.*s", used ? separator : "", (int)(length > size ? size : length),
                   added);
}

/* "extent (signed_log)" */
static foreloop_status read_slot(foreloop_json *json, char *slots, size_t size) {
    char name[80] = "", encoding[40] = "", slot[160];
    foreloop_text key, value;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        bool is_name = foreloop_text_is(key, "name"), is_encoding = foreloop_text_is(key, "encoding");
        if (!is_name && !is_encoding) {
            FORELOOP_TRY(foreloop_json_skip(json));
            continue;
        }
        FORELOOP_TRY(foreloop_json_string(json, &value));
        if (is_name)
            append(name, sizeof name, "", value.text, value.length);
        else
            append(encoding, sizeof encoding, "", value.text, value.length);
    }
    (void)snprintf(slot, sizeof slot, "%s (%s)", name, encoding);
    append(slots, size, ", ", slot, strlen(slot));
    return FORELOOP_OK;
}

static foreloop_status read_kind(fact_sheet *facts, foreloop_json *json) {
    char kind[80] = "", slots[480] = "";
    foreloop_text key, value;
    bool more;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "kind")) {
            FORELOOP_TRY(foreloop_json_string(json, &value));
            append(kind, sizeof kind, "", value.text, value.length);
        } else if (foreloop_text_is(key, "slots")) {
            FORELOOP_TRY(foreloop_json_array(json));
            for (;;) {
                FORELOOP_TRY(foreloop_json_element(json, &more));
                if (!more)
                    break;
                FORELOOP_TRY(read_slot(json, slots, sizeof slots));
            }
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    output_table_row(&facts->kinds, OUTPUT_PLAIN);
    output_table_cell(&facts->kinds, "%s", kind);
    output_table_cell(&facts->kinds, "%s", *slots ? slots : "-");
    return FORELOOP_OK;
}

/* Every scalar of a section, with its path: "test.top_1  0.79". Arrays are shown as they stand. */
static foreloop_status read_section(fact_sheet *facts, foreloop_json *json, const char *path) {
    foreloop_text key, value;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        char name[200], text[400];
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        (void)snprintf(name, sizeof name, "%s%s%.*s", path, *path ? "." : "", FORELOOP_QUOTED(key.text, key.length));
        foreloop_json_type type = foreloop_json_peek(json);
        if (type == FORELOOP_JSON_OBJECT) {
            FORELOOP_TRY(read_section(facts, json, name));
            continue;
        }
        if (type == FORELOOP_JSON_STRING)
            FORELOOP_TRY(foreloop_json_string(json, &value));
        else
            FORELOOP_TRY(foreloop_json_span(json, &value));
        (void)snprintf(text, sizeof text, "%.*s", (int)(value.length > sizeof text ? sizeof text : value.length),
                       value.text);
        if (type != FORELOOP_JSON_STRING)
            cJSON_Minify(text); /* an array may be written on several lines */
        output_table_row(&facts->training, OUTPUT_PLAIN);
        output_table_cell(&facts->training, "%s", name);
        output_table_cell(&facts->training, "%s", text);
    }
}

static foreloop_status read_manifest(fact_sheet *facts, foreloop_json *json) {
    foreloop_text key;
    bool more;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key(json, &key));
        if (!key.text)
            return FORELOOP_OK;
        if (foreloop_text_is(key, "actions")) {
            FORELOOP_TRY(foreloop_json_array(json));
            for (;;) {
                FORELOOP_TRY(foreloop_json_element(json, &more));
                if (!more)
                    break;
                FORELOOP_TRY(read_kind(facts, json));
            }
        } else if (foreloop_text_is(key, "training") && foreloop_json_peek(json) == FORELOOP_JSON_OBJECT) {
            FORELOOP_TRY(read_section(facts, json, ""));
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
}

void facts_manifest(fact_sheet *facts, const char *manifest, size_t length) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_json json;
    if (facts->json) {
        cJSON *value = cJSON_ParseWithLength(manifest, length);
        /* cJSON does not read NaN, which the library does. */
        facts->failed |= !output_json_add(facts->object, "manifest", value ? value : cJSON_CreateNull());
        return;
    }
    foreloop_json_open(&json, cli_allocator(), manifest, length, "model.json", &error);
    if (read_manifest(facts, &json) != FORELOOP_OK)
        cli_note("%s", error.message);
    foreloop_json_close(&json);
}

/* ---- Printing ---- */

static bool print_section(const char *title, output_table *table) {
    if (table->row_count > 0)
        printf("\n%s%s%s\n", output_style_begin(OUTPUT_BOLD), title, output_style_end(OUTPUT_BOLD));
    return output_table_print(table, 2);
}

int facts_print(fact_sheet *facts) {
    bool complete = !facts->failed;
    if (facts->json)
        complete = complete ? output_json_line(facts->object) : (cJSON_Delete(facts->object), false);
    complete = output_table_print(&facts->table, 0) && complete;
    complete = print_section("action kinds and their slots", &facts->kinds) && complete;
    complete = print_section("training", &facts->training) && complete;
    return complete ? CLI_DONE : cli_fail_memory();
}
