/* Reading of the manifest's action vocabulary, look-up by name, and the encoding of slot values. */
#include "transh/vocabulary.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/number.h"
#include <math.h>
#include <string.h>

static bool is_name(foreloop_text text) {
    for (size_t i = 0; i < text.length; i++) {
        char c = text.text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return text.length > 0;
}

static foreloop_status read_name(foreloop_vocabulary *vocabulary, foreloop_json *json, const char *what,
                                 const char **name) {
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(json, &text));
    if (!is_name(text))
        return foreloop_json_fail(json, "the %s '%.*s' must consist of letters, digits and underscores", what,
                                  FORELOOP_QUOTED(text.text, text.length));
    if (text.length > FORELOOP_MAX_NAME)
        return foreloop_json_fail(json, "the %s '%.*s...' has %zu letters: shorten it to %d", what,
                                  FORELOOP_QUOTED(text.text, text.length), text.length, FORELOOP_MAX_NAME);
    *name = foreloop_arena_text(&vocabulary->arena, text.text, text.length);
    return *name ? FORELOOP_OK : foreloop_fail_memory(json->error, text.length, 1, what);
}

static foreloop_status read_category(foreloop_vocabulary *vocabulary, foreloop_json *json, bool texts,
                                     foreloop_category *category) {
    foreloop_text text;
    FORELOOP_TRY(texts ? foreloop_json_string(json, &text) : foreloop_json_number(json, &text));
    category->number = 0;
    if (!texts && (!foreloop_parse_double(text.text, text.length, &category->number) || !isfinite(category->number)))
        return foreloop_json_fail(json, "a slot's value must be finite");
    if (texts && (foreloop_text_is(text, "?") || memchr(text.text, 0, text.length)))
        return foreloop_json_fail(json, "'?' and zero bytes are not allowed in a vocabulary");
    category->text = foreloop_arena_text(&vocabulary->arena, text.text, text.length);
    return category->text ? FORELOOP_OK : foreloop_fail_memory(json->error, text.length, 1, "a slot's value");
}

static foreloop_status read_categories(foreloop_vocabulary *vocabulary, foreloop_json *json, bool texts,
                                       foreloop_slot *slot) {
    foreloop_category *categories = NULL;
    size_t capacity = 0, count = 0;
    foreloop_status status = foreloop_json_array(json);
    bool more = false;
    while (status == FORELOOP_OK && (status = foreloop_json_element(json, &more)) == FORELOOP_OK && more) {
        if (count == FORELOOP_MAX_CATEGORIES)
            status = foreloop_json_fail(json, "a slot has more than %d values", FORELOOP_MAX_CATEGORIES);
        if (status == FORELOOP_OK)
            status = foreloop_reserve(vocabulary->arena.allocator, &categories, &capacity, count, count + 1,
                                      sizeof *categories, json->error);
        if (status == FORELOOP_OK)
            status = read_category(vocabulary, json, texts, &categories[count]);
        for (size_t i = 0; status == FORELOOP_OK && i < count; i++)
            if (texts ? strcmp(categories[i].text, categories[count].text) == 0
                      : categories[i].number == categories[count].number)
                status = foreloop_json_fail(json, "the value '%.40s' stands twice in a slot", categories[count].text);
        count++;
    }
    if (status == FORELOOP_OK) {
        foreloop_category *kept = foreloop_arena_allocate(&vocabulary->arena, count, sizeof *kept);
        if (!kept)
            status = foreloop_fail_memory(json->error, count, sizeof *kept, "a slot's values");
        else if (count)
            memcpy(kept, categories, count * sizeof *kept);
        slot->categories = kept;
        slot->category_count = count;
    }
    foreloop_release(vocabulary->arena.allocator, categories);
    return status;
}

static foreloop_status read_encoding(foreloop_json *json, foreloop_slot *slot) {
    static const char *const names[] = {"linear", "signed_log", "one_hot", "vocabulary"};
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_string(json, &text));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (foreloop_text_is(text, names[i])) {
            slot->encoding = (foreloop_slot_encoding)i;
            return FORELOOP_OK;
        }
    }
    return foreloop_json_fail(json, "unknown slot encoding '%.*s': expected linear, signed_log, one_hot or vocabulary",
                              FORELOOP_QUOTED(text.text, text.length));
}

static foreloop_status read_range(foreloop_json *json, foreloop_slot *slot) {
    double *const bounds[2] = {&slot->range_min, &slot->range_max};
    size_t count = 0;
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        foreloop_text text;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            break;
        FORELOOP_TRY(foreloop_json_number(json, &text));
        if (count < 2 && (!foreloop_parse_double(text.text, text.length, bounds[count]) || !isfinite(*bounds[count])))
            return foreloop_json_fail(json, "a slot's range must be finite");
        count++;
    }
    if (count != 2 || slot->range_min > slot->range_max)
        return foreloop_json_fail(json, "a slot's range is two numbers, the smaller one first");
    return FORELOOP_OK;
}

static foreloop_status read_slot(foreloop_vocabulary *vocabulary, foreloop_json *json, foreloop_slot *slot) {
    *slot = (foreloop_slot){.scale = 1, .range_min = -INFINITY, .range_max = INFINITY};
    bool has_encoding = false;
    size_t values_at = 0;
    foreloop_text key, span = {NULL, 0};
    foreloop_json_keys keys = {.count = 0};
    const char *values_key = NULL;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(json, &keys, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "name")) {
            FORELOOP_TRY(read_name(vocabulary, json, "slot", &slot->name));
        } else if (foreloop_text_is(key, "encoding")) {
            FORELOOP_TRY(read_encoding(json, slot));
            has_encoding = true;
        } else if (foreloop_text_is(key, "scale")) {
            FORELOOP_TRY(foreloop_json_float(json, &slot->scale));
            if (!isfinite(slot->scale))
                return foreloop_json_fail(json, "a slot's scale must be finite");
        } else if (foreloop_text_is(key, "range")) {
            FORELOOP_TRY(read_range(json, slot));
        } else if (foreloop_text_is(key, "values") || foreloop_text_is(key, "sentinels")) {
            /* How the list reads depends on the encoding, which may come later. */
            if (values_key)
                return foreloop_json_fail(json, "a slot has 'values' or 'sentinels', not both");
            values_key = foreloop_text_is(key, "values") ? "values" : "sentinels";
            FORELOOP_TRY(foreloop_json_span(json, &span));
            values_at = json->base + (size_t)(span.text - json->data);
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    if (!slot->name || !has_encoding)
        return foreloop_json_fail(json, "a slot needs 'name' and 'encoding'");
    bool numeric = slot->encoding == FORELOOP_SLOT_LINEAR || slot->encoding == FORELOOP_SLOT_SIGNED_LOG;
    const char *expected = numeric ? "sentinels" : "values";
    if (values_key ? strcmp(values_key, expected) != 0 : !numeric)
        return foreloop_json_fail(json, "the slot '%.40s' needs '%s' with its encoding%s%s", slot->name, expected,
                                  values_key ? ", not " : "", values_key ? values_key : "");
    if (values_key) {
        foreloop_json list;
        foreloop_json_open(&list, vocabulary->arena.allocator, span.text, span.length, json->name, json->error);
        list.base = values_at;
        foreloop_status status = read_categories(vocabulary, &list, slot->encoding == FORELOOP_SLOT_VOCABULARY, slot);
        foreloop_json_close(&list);
        FORELOOP_TRY(status);
    }
    slot->element_count = slot->category_count + 1;
    return FORELOOP_OK;
}

static foreloop_status read_slots(foreloop_vocabulary *vocabulary, foreloop_json *json, foreloop_kind *kind) {
    foreloop_slot slots[FORELOOP_MAX_SLOTS];
    size_t count = 0;
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            break;
        if (count == FORELOOP_MAX_SLOTS)
            return foreloop_json_fail(json, "a kind has more than %d slots", FORELOOP_MAX_SLOTS);
        FORELOOP_TRY(read_slot(vocabulary, json, &slots[count]));
        for (size_t i = 0; i < count; i++)
            if (strcmp(slots[i].name, slots[count].name) == 0)
                return foreloop_json_fail(json, "the slot '%.40s' stands twice in a kind", slots[count].name);
        slots[count].element = kind->element_count;
        kind->element_count += slots[count].element_count;
        count++;
    }
    foreloop_slot *kept = foreloop_arena_allocate(&vocabulary->arena, count, sizeof *kept);
    if (!kept)
        return foreloop_fail_memory(json->error, count, sizeof *kept, "slots");
    if (count)
        memcpy(kept, slots, count * sizeof *kept);
    kind->slots = kept;
    kind->slot_count = count;
    return FORELOOP_OK;
}

static foreloop_status read_kind(foreloop_vocabulary *vocabulary, foreloop_json *json, foreloop_kind *kind) {
    *kind = (foreloop_kind){0};
    foreloop_text key;
    foreloop_json_keys keys = {.count = 0};
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_key_once(json, &keys, &key));
        if (!key.text)
            break;
        if (foreloop_text_is(key, "kind")) {
            FORELOOP_TRY(read_name(vocabulary, json, "kind", &kind->name));
        } else if (foreloop_text_is(key, "slots")) {
            FORELOOP_TRY(read_slots(vocabulary, json, kind));
        } else {
            FORELOOP_TRY(foreloop_json_skip(json));
        }
    }
    return kind->name ? FORELOOP_OK : foreloop_json_fail(json, "an action needs 'kind'");
}

static size_t index_slot(const foreloop_vocabulary *vocabulary, const char *name, size_t length) {
    size_t slot = (size_t)foreloop_hash(FORELOOP_HASH_START, name, length) & vocabulary->index_mask;
    for (; vocabulary->index[slot]; slot = (slot + 1) & vocabulary->index_mask) {
        const char *other = vocabulary->kinds[vocabulary->index[slot] - 1].name;
        if (strlen(other) == length && memcmp(other, name, length) == 0)
            break;
    }
    return slot;
}

static foreloop_status build_index(foreloop_vocabulary *vocabulary, foreloop_json *json) {
    size_t size = 16;
    while (size < 2 * vocabulary->kind_count)
        size *= 2;
    vocabulary->index = foreloop_arena_allocate(&vocabulary->arena, size, sizeof *vocabulary->index);
    if (!vocabulary->index)
        return foreloop_fail_memory(json->error, size, sizeof *vocabulary->index, "the index of kinds");
    memset(vocabulary->index, 0, size * sizeof *vocabulary->index);
    vocabulary->index_mask = size - 1;
    for (size_t i = 0; i < vocabulary->kind_count; i++) {
        const foreloop_kind *kind = &vocabulary->kinds[i];
        size_t slot = index_slot(vocabulary, kind->name, strlen(kind->name));
        if (vocabulary->index[slot])
            return foreloop_json_fail(json, "the kind '%.40s' stands twice", kind->name);
        vocabulary->index[slot] = (uint32_t)(i + 1);
        if (kind->slot_count > vocabulary->max_slot_count)
            vocabulary->max_slot_count = kind->slot_count;
        if (kind->element_count > vocabulary->max_element_count)
            vocabulary->max_element_count = kind->element_count;
    }
    return FORELOOP_OK;
}

static foreloop_status read_kinds(foreloop_vocabulary *vocabulary, foreloop_json *json) {
    foreloop_kind *kinds = foreloop_arena_allocate(&vocabulary->arena, FORELOOP_MAX_KINDS, sizeof *kinds);
    if (!kinds)
        return foreloop_fail_memory(json->error, FORELOOP_MAX_KINDS, sizeof *kinds, "kinds");
    vocabulary->kinds = kinds;
    bool more;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            break;
        if (vocabulary->kind_count == FORELOOP_MAX_KINDS)
            return foreloop_json_fail(json, "more than %d kinds", FORELOOP_MAX_KINDS);
        FORELOOP_TRY(read_kind(vocabulary, json, &kinds[vocabulary->kind_count]));
        vocabulary->kind_count++;
    }
    return build_index(vocabulary, json);
}

foreloop_status foreloop_vocabulary_read(foreloop_vocabulary *vocabulary, const foreloop_allocator *allocator,
                                         foreloop_json *json) {
    *vocabulary = (foreloop_vocabulary){.arena = {.allocator = allocator}};
    foreloop_status status = read_kinds(vocabulary, json);
    if (status != FORELOOP_OK)
        foreloop_vocabulary_close(vocabulary);
    return status;
}

void foreloop_vocabulary_close(foreloop_vocabulary *vocabulary) {
    if (vocabulary->arena.allocator)
        foreloop_arena_close(&vocabulary->arena);
    *vocabulary = (foreloop_vocabulary){0};
}

size_t foreloop_vocabulary_find(const foreloop_vocabulary *vocabulary, const char *name, size_t length) {
    size_t found = vocabulary->index[index_slot(vocabulary, name, length)];
    return found ? found - 1 : vocabulary->kind_count;
}

bool foreloop_vocabulary_element(const foreloop_vocabulary *vocabulary, const char *name, size_t *kind,
                                 size_t *element) {
    const char *dot = strchr(name, '.');
    if (!dot)
        return false;
    size_t k = foreloop_vocabulary_find(vocabulary, name, (size_t)(dot - name));
    if (k == vocabulary->kind_count)
        return false;
    const char *slot_name = dot + 1, *equals = strchr(slot_name, '=');
    size_t length = equals ? (size_t)(equals - slot_name) : strlen(slot_name);
    for (size_t i = 0; i < vocabulary->kinds[k].slot_count; i++) {
        const foreloop_slot *slot = &vocabulary->kinds[k].slots[i];
        if (strlen(slot->name) != length || memcmp(slot->name, slot_name, length) != 0)
            continue;
        bool numeric = slot->encoding == FORELOOP_SLOT_LINEAR || slot->encoding == FORELOOP_SLOT_SIGNED_LOG;
        *kind = k;
        *element = slot->element;
        if (!equals)
            return numeric;
        if (numeric)
            *element += 1; /* the numeric element comes first, the sentinels follow */
        for (size_t j = 0; j < slot->category_count; j++, *element += 1)
            if (strcmp(slot->categories[j].text, equals + 1) == 0)
                return true;
        return !numeric && strcmp(equals + 1, "?") == 0;
    }
    return false;
}

static void encode_slot(const foreloop_slot *slot, double value, float *elements) {
    bool numeric = slot->encoding == FORELOOP_SLOT_LINEAR || slot->encoding == FORELOOP_SLOT_SIGNED_LOG;
    size_t category = 0;
    if (slot->encoding == FORELOOP_SLOT_VOCABULARY)
        category = (size_t)value;
    else
        while (category < slot->category_count && slot->categories[category].number != value)
            category++;
    if (!numeric) {
        elements[category] = 1;
    } else if (category < slot->category_count) {
        elements[1 + category] = 1;
    } else if (slot->encoding == FORELOOP_SLOT_LINEAR) {
        elements[0] = (float)value * slot->scale;
    } else {
        elements[0] = (float)copysign(log2(1 + fabs(value)), value) * slot->scale;
    }
}

void foreloop_vocabulary_encode(const foreloop_kind *kind, const double *values, float *phi) {
    memset(phi, 0, kind->element_count * sizeof *phi);
    for (size_t i = 0; i < kind->slot_count; i++)
        if (values[i] != FORELOOP_SLOT_ABSENT)
            encode_slot(&kind->slots[i], values[i], phi + kind->slots[i].element);
}
