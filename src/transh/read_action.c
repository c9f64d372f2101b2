/* An action as the host writes it to the values of its kind's slots: names that come from where they came before are
 * found by one comparison. */
#include "common/error.h"
#include "transh/action.h"
#include <float.h>
#include <math.h>
#include <string.h>

static inline bool same_text(const char *a, const char *b) {
    return a == b || strcmp(a, b) == 0;
}

static foreloop_text_hint *hint_of(const foreloop_actions *actions, const char *text) {
    const uintptr_t address = (uintptr_t)text;
    return &actions->hints[(address ^ address >> 8) % FORELOOP_TEXT_HINTS];
}

/* The kind's index, or kind_count. */
static size_t find_kind(const foreloop_actions *actions, const char *name) {
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    foreloop_text_hint *hint = hint_of(actions, name);
    if (hint->text == name && hint->where == vocabulary && same_text(name, vocabulary->kinds[hint->index].name))
        return hint->index;
    const size_t index = foreloop_vocabulary_find(vocabulary, name, strlen(name));
    if (index < vocabulary->kind_count)
        *hint = (foreloop_text_hint){name, vocabulary, (uint32_t)index};
    return index;
}

/* The category's index, or category_count. */
static size_t find_category(const foreloop_actions *actions, const foreloop_slot *slot, const char *text) {
    foreloop_text_hint *hint = hint_of(actions, text);
    if (hint->text == text && hint->where == slot && same_text(text, slot->categories[hint->index].text))
        return hint->index;
    size_t category = 0;
    while (category < slot->category_count && !same_text(slot->categories[category].text, text))
        category++;
    if (category < slot->category_count)
        *hint = (foreloop_text_hint){text, slot, (uint32_t)category};
    return category;
}

/* The slot's number, or slot_count. */
static size_t find_argument(const foreloop_kind *kind, const char *name) {
    size_t slot = 0;
    while (slot < kind->slot_count && !same_text(name, kind->slots[slot].name))
        slot++;
    return slot;
}

/* One argument to the comparable form of a slot's value (vocabulary.h). */
static foreloop_status slot_value(const foreloop_actions *actions, const foreloop_kind *kind, const foreloop_slot *slot,
                                  const foreloop_argument *argument, foreloop_action_note *note, double *value,
                                  foreloop_error *error) {
    const bool texts = slot->encoding == FORELOOP_SLOT_VOCABULARY;
    if (texts != (argument->text != NULL))
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' must be a %s",
                             slot->name, kind->name, texts ? "string" : "number");
    if (texts) {
        const size_t category = find_category(actions, slot, argument->text);
        note->unknown_values += category == slot->category_count;
        *value = (double)category;
        return FORELOOP_OK;
    }
    const double number = argument->number + 0.0; /* -0 becomes 0 */
    if (!isfinite(number))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "the argument '%.40s' of kind '%.40s' must be finite",
                             slot->name, kind->name);
    *value = number;
    const bool one_hot = slot->encoding == FORELOOP_SLOT_ONE_HOT;
    const bool outside = !(number >= slot->range_min && number <= slot->range_max);
    if (!one_hot && !outside)
        return FORELOOP_OK;
    size_t category = 0;
    while (category < slot->category_count && slot->categories[category].number != number)
        category++;
    if (category == slot->category_count) {
        note->unknown_values += one_hot;
        note->out_of_range += !one_hot && outside;
    }
    return FORELOOP_OK;
}

/* Whether the argument is a number that needs no further look. */
static inline bool is_ordinary(const foreloop_slot *slot, const foreloop_argument *argument) {
    const double number = argument->number;
    return slot->encoding <= FORELOOP_SLOT_SIGNED_LOG && !argument->text && number >= slot->range_min &&
           number <= slot->range_max && isfinite(number);
}
_Static_assert(FORELOOP_SLOT_LINEAR < FORELOOP_SLOT_ONE_HOT && FORELOOP_SLOT_SIGNED_LOG < FORELOOP_SLOT_ONE_HOT &&
                   FORELOOP_SLOT_SIGNED_LOG < FORELOOP_SLOT_VOCABULARY,
               "numeric slots come first");

static const char no_name[] = "";
const foreloop_argument_hint foreloop_no_argument_hint = {.name = no_name};

/* Hosts pass the arguments of a kind in one order: the i-th is expected where it was the last time. */
static foreloop_argument_hint make_hint(const foreloop_kind *kind, size_t place) {
    const foreloop_slot *slot = &kind->slots[place];
    const bool number = slot->encoding <= FORELOOP_SLOT_SIGNED_LOG;
    return (foreloop_argument_hint){.name = number ? slot->name : no_name,
                                    .low = fmax(slot->range_min, -DBL_MAX),
                                    .high = fmin(slot->range_max, DBL_MAX),
                                    .place = place};
}

/* Reads what nearly all actions of a search are: every argument is what its hint says, by the model's own name, and no
 * slot is given twice. False when the action is anything else. Without branches, as all of it is true mostly. */
static bool read_expected(const foreloop_kind *kind, const foreloop_argument_hint *hints, const foreloop_action *action,
                          double *values) {
    const foreloop_argument *const arguments = action->arguments;
    const size_t count = action->argument_count;
    uint64_t given = 0, wrong = 0;
    if (count > kind->slot_count || kind->slot_count > FORELOOP_ARGUMENT_HINTS ||
        (count > 0 && arguments[0].name != hints[0].name))
        return false;
    for (size_t i = 0; count < kind->slot_count && i < kind->slot_count; i++)
        values[i] = FORELOOP_SLOT_ABSENT;
    for (size_t i = 0; i < count; i++) {
        const double number = arguments[i].number, least = number > hints[i].low ? number : hints[i].low;
        const double ranged = least < hints[i].high ? least : hints[i].high; /* the number itself, or it is outside */
        const uint64_t bit = UINT64_C(1) << hints[i].place;
        uint64_t own, expected;
        memcpy(&own, &number, sizeof own);
        memcpy(&expected, &ranged, sizeof expected);
        wrong |= (own ^ expected) | ((uintptr_t)arguments[i].name ^ (uintptr_t)hints[i].name) |
                 (uintptr_t)arguments[i].text | (given & bit);
        given |= bit;
        values[hints[i].place] = number + 0.0; /* -0 becomes 0 */
    }
    return !wrong;
}
_Static_assert(FORELOOP_ARGUMENT_HINTS == 64, "bits of the slots that are given");

foreloop_status foreloop_read_action(foreloop_actions *actions, const foreloop_action *action, size_t *kind_found,
                                     double *values, foreloop_action_note *note, foreloop_error *error) {
    const foreloop_vocabulary *vocabulary = actions->vocabulary;
    if (!action->kind)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no kind");
    const size_t kind_index = *kind_found = find_kind(actions, action->kind);
    *note = (foreloop_action_note){0};
    if (kind_index == vocabulary->kind_count)
        return FORELOOP_OK;
    const foreloop_kind *kind = &vocabulary->kinds[kind_index];
    foreloop_argument_hint *const hints = actions->arguments + kind_index * FORELOOP_ARGUMENT_HINTS;
    if (action->argument_count && !action->arguments)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "an action has no array of arguments");
    if (read_expected(kind, hints, action, values))
        return FORELOOP_OK;
    for (size_t i = 0; i < kind->slot_count; i++)
        values[i] = FORELOOP_SLOT_ABSENT;
    for (size_t i = 0; i < action->argument_count; i++) {
        const foreloop_argument *argument = &action->arguments[i];
        foreloop_argument_hint *const hint = i < FORELOOP_ARGUMENT_HINTS ? &hints[i] : NULL;
        size_t place = hint ? hint->place : kind->slot_count;
        if (!argument->name)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT,
                                 "argument %zu of an action of kind '%.40s' has no name", i, kind->name);
        if (place >= kind->slot_count || !same_text(argument->name, kind->slots[place].name))
            place = find_argument(kind, argument->name);
        if (place == kind->slot_count) {
            note->dropped_arguments++;
            continue;
        }
        if (hint && (hint->place != place || hint->name == no_name))
            *hint = make_hint(kind, place);
        const foreloop_slot *slot = &kind->slots[place];
        if (values[place] != FORELOOP_SLOT_ABSENT)
            return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "the argument '%.40s' of kind '%.40s' is given twice",
                                 slot->name, kind->name);
        if (is_ordinary(slot, argument))
            values[place] = argument->number + 0.0; /* -0 becomes 0 */
        else
            FORELOOP_TRY(slot_value(actions, kind, slot, argument, note, &values[place], error));
    }
    return FORELOOP_OK;
}
