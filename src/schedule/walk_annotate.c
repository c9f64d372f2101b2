/* Annotations: those that steer the post-processing have action kinds of their own. */
#include "common/error.h"
#include "common/number.h"
#include "schedule/walk_emit.h"
#include "schedule/walk_instruction.h"
#include "schedule/walk_state.h"
#include <string.h>

/* A list of numbers as text, "0,0,1"; NULL when it holds something else or is long. */
static foreloop_status join_numbers(foreloop_walk *walk, const foreloop_value *list, const char **text) {
    enum { MAX_JOINED = 64 };
    *text = NULL;
    if (list->type != FORELOOP_VALUE_ARRAY || list->count > MAX_JOINED)
        return FORELOOP_OK;
    char *joined = foreloop_arena_allocate(walk->arena, list->count * (FORELOOP_NUMBER_TEXT_SIZE + 1) + 1, 1);
    if (!joined)
        return foreloop_fail_memory(walk->error, list->count, FORELOOP_NUMBER_TEXT_SIZE, "the value of an annotation");
    size_t length = 0;
    for (size_t i = 0; i < list->count; i++) {
        double number;
        if (!foreloop_walk_input_number(walk, &list->items[i], &number))
            return FORELOOP_OK;
        if (i > 0)
            joined[length++] = ',';
        length += foreloop_format_double(number, joined + length);
    }
    joined[length] = '\0';
    *text = joined;
    return FORELOOP_OK;
}

/* Annotations that steer the post-processing have kinds of their own: they decide the speed. */
static const char *annotation_kind(const foreloop_value *key) {
    static const struct {
        const char *key, *action;
    } known[] = {
        {"meta_schedule.parallel", "annotate_parallel"},       {"meta_schedule.vectorize", "annotate_vectorize"},
        {"meta_schedule.unroll_explicit", "annotate_unroll"},  {"meta_schedule.unroll_implicit", "annotate_unroll"},
        {"meta_schedule.tiling_structure", "annotate_tiling"}, {"meta_schedule.cooperative_fetch", "annotate_fetch"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (foreloop_value_is(key, known[i].key))
            return known[i].action;
    return NULL;
}

/* `key`, and the block or loop that it is on. */
static void add_annotated(foreloop_walk *walk, foreloop_binding target, const foreloop_value *key) {
    if (key->type == FORELOOP_VALUE_TEXT)
        foreloop_walk_add_copy(walk, "key", key);
    if (target.type == FORELOOP_VARIABLE_BLOCK)
        foreloop_walk_add_block(walk, target.index);
    else if (target.type == FORELOOP_VARIABLE_LOOP)
        foreloop_walk_add_loop(walk, target.index);
}

/* What the summary of the nest will need (walk_summary.c). */
static void keep_limit(foreloop_walk *walk, const char *kind, double value) {
    if (kind && strcmp(kind, "annotate_parallel") == 0)
        walk->parallel_limit = value;
    else if (kind && strcmp(kind, "annotate_vectorize") == 0)
        walk->vector_limit = value;
    else if (kind && strcmp(kind, "annotate_unroll") == 0)
        walk->unroll_limit = value;
}

foreloop_status foreloop_on_annotate(foreloop_walk *walk, const foreloop_instruction *instruction,
                                     const foreloop_kind_info *info) {
    const foreloop_value *key = foreloop_value_item(&instruction->attrs, 0),
                         *value = foreloop_value_item(&instruction->inputs, 1);
    foreloop_binding target = foreloop_walk_variable(walk, foreloop_value_item(&instruction->inputs, 0));
    const char *kind = annotation_kind(key), *text = NULL;
    double number;
    FORELOOP_TRY(foreloop_walk_quoted(walk, value, &text));
    if (!text)
        FORELOOP_TRY(join_numbers(walk, value, &text));
    if (kind && strcmp(kind, "annotate_tiling") == 0) {
        foreloop_walk_add_text(walk, "structure", text);
        if (text && target.type == FORELOOP_VARIABLE_BLOCK)
            walk->blocks[target.index].structure = text;
        return foreloop_walk_emit(walk, kind);
    }
    if (!kind)
        add_annotated(walk, target, key);
    else if (strcmp(kind, "annotate_fetch") == 0 && target.type == FORELOOP_VARIABLE_BLOCK)
        foreloop_walk_add_block(walk, target.index);
    else if (strcmp(kind, "annotate_unroll") == 0)
        foreloop_walk_add_number(walk, "explicit", foreloop_value_is(key, "meta_schedule.unroll_explicit"));
    if (foreloop_walk_input_number(walk, value, &number)) {
        foreloop_walk_add_number(walk, "value", number);
        keep_limit(walk, kind, number);
    } else if (!kind) {
        foreloop_walk_add_text(walk, "value_text", text);
    }
    return foreloop_walk_emit(walk, kind ? kind : info->action);
}

foreloop_status foreloop_on_unannotate(foreloop_walk *walk, const foreloop_instruction *instruction,
                                       const foreloop_kind_info *info) {
    add_annotated(walk, foreloop_walk_variable(walk, foreloop_value_item(&instruction->inputs, 0)),
                  foreloop_value_item(&instruction->attrs, 0));
    return foreloop_walk_emit(walk, info->action);
}
