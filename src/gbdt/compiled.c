/*
 * The compiled form of a model: its arrays as they lie in memory, those for the kernels too, so that opening neither
 * parses nor lays out. It is used where it lies. Whoever opens it has made sure that it is what was written
 * (model/compiled.h); it is checked here all the same, so that no content leads out of bounds.
 */
#include "common/sections.h"
#include "gbdt/layout.h"
#include "gbdt/model.h"
#include <string.h>

enum {
    SECTION_NODES,
    SECTION_ORIGINS,
    SECTION_TREES,
    SECTION_OUTPUT_TREES,
    SECTION_SOURCE_TREES,
    SECTION_BASE_MARGINS,
    SECTION_CATEGORIES,
    SECTION_SETS,
    SECTION_LAID_OUT, /* trees of the layout */
    SECTION_ROOTS,
    SECTION_CHUNKS,
    SECTION_FEATURES,
    SECTION_TABLES,
    SECTION_THRESHOLDS,
    SECTION_COLUMNS,
    SECTION_EXITS,
    SECTION_LEAVES,
    SECTION_WALKED, /* nodes of the layout */
    SECTION_USED,
    SECTION_TEXTS, /* objective, notes, names and types of features, each with its terminator */
    SECTIONS
};

/* In front. */
typedef struct compiled_head {
    uint64_t counts[SECTIONS]; /* of elements */
    uint64_t sizes[SECTIONS];  /* of an element */
    uint64_t feature_count, output_count, iteration_count;
    int64_t best_iteration;
    uint64_t set_count, test_count, exit_count, leaf_count;
    uint64_t has_gain, has_cover, has_names, has_types;
} compiled_head;

/* An array of the model. */
typedef struct section {
    void *pointer; /* where the pointer to it is */
    size_t count, size;
} section;

/* What is read behind the last element belongs to an array. */
static size_t padded(size_t count, size_t behind) {
    return count > 0 ? count + behind : 0;
}

/* All arrays but the texts, by the model's counts. */
static void list_sections(foreloop_gbdt *g, section sections[SECTIONS]) {
    foreloop_gbdt_layout *l = g->layout;
    const section all[SECTIONS] = {
        [SECTION_NODES] = {&g->nodes, g->node_count, sizeof *g->nodes},
        [SECTION_ORIGINS] = {&g->origins, g->node_count, sizeof *g->origins},
        [SECTION_TREES] = {&g->trees, g->tree_count, sizeof *g->trees},
        [SECTION_OUTPUT_TREES] = {&g->output_trees, g->output_count + 1, sizeof *g->output_trees},
        [SECTION_SOURCE_TREES] = {&g->source_trees, g->source_count, sizeof *g->source_trees},
        [SECTION_BASE_MARGINS] = {&g->base_margins, g->output_count, sizeof *g->base_margins},
        [SECTION_CATEGORIES] = {&g->categories, g->category_count, sizeof *g->categories},
        [SECTION_SETS] = {&g->sets, padded(g->set_count, 1), sizeof *g->sets},
        [SECTION_LAID_OUT] = {&l->trees, g->tree_count, sizeof *l->trees},
        [SECTION_ROOTS] = {&l->roots, g->tree_count, sizeof *l->roots},
        [SECTION_CHUNKS] = {&l->chunks, l->chunk_count, sizeof *l->chunks},
        [SECTION_FEATURES] = {&l->features, l->feature_count, sizeof *l->features},
        [SECTION_TABLES] = {&l->tables, l->table_size, sizeof *l->tables},
        [SECTION_THRESHOLDS] = {&l->thresholds, padded(l->test_count, FORELOOP_TREES_TABLE), sizeof *l->thresholds},
        [SECTION_COLUMNS] = {&l->columns, l->test_count, sizeof *l->columns},
        [SECTION_EXITS] = {&l->exits, padded(l->exit_count, FORELOOP_TREES_TABLE), sizeof *l->exits},
        [SECTION_LEAVES] = {&l->leaves, padded(l->leaf_count, FORELOOP_TREES_LEAVES), sizeof *l->leaves},
        [SECTION_WALKED] = {&l->nodes, l->node_count, sizeof *l->nodes},
        [SECTION_USED] = {&l->used, l->used_count, sizeof *l->used},
        [SECTION_TEXTS] = {NULL, 0, 1},
    };
    memcpy(sections, all, sizeof all);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static foreloop_status append_text(foreloop_buffer *texts, const char *text, foreloop_error *error) {
    return foreloop_buffer_append(texts, text, strlen(text) + 1, error);
}

static foreloop_status append_texts(const foreloop_gbdt *gbdt, foreloop_buffer *texts, foreloop_error *error) {
    FORELOOP_TRY(append_text(texts, gbdt->objective->name, error));
    FORELOOP_TRY(append_text(texts, gbdt->notes.data, error));
    for (size_t i = 0; gbdt->feature_names && i < gbdt->feature_count; i++)
        FORELOOP_TRY(append_text(texts, gbdt->feature_names[i], error));
    for (size_t i = 0; gbdt->feature_types && i < gbdt->feature_count; i++)
        FORELOOP_TRY(append_text(texts, gbdt->feature_types[i], error));
    return FORELOOP_OK;
}

static foreloop_status append_sections(const section sections[SECTIONS], const compiled_head *head,
                                       const foreloop_buffer *texts, foreloop_buffer *out, foreloop_error *error) {
    const size_t start = out->size;
    FORELOOP_TRY(foreloop_buffer_append(out, head, sizeof *head, error));
    for (int i = 0; i < SECTION_TEXTS; i++) {
        const void *array;
        memcpy(&array, sections[i].pointer, sizeof array);
        FORELOOP_TRY(foreloop_sections_append(out, start, array, sections[i].count * sections[i].size, error));
    }
    return foreloop_sections_append(out, start, texts->data, texts->size, error);
}

foreloop_status foreloop_gbdt_compile(const foreloop_gbdt *gbdt, foreloop_buffer *out, foreloop_error *error) {
    foreloop_gbdt shallow = *gbdt; /* the list points at what may be changed */
    foreloop_gbdt_layout layout = *gbdt->layout;
    section sections[SECTIONS];
    foreloop_buffer texts = {.allocator = &gbdt->allocator};
    compiled_head head = {
        .feature_count = gbdt->feature_count,
        .output_count = gbdt->output_count,
        .iteration_count = gbdt->iteration_count,
        .best_iteration = gbdt->best_iteration,
        .set_count = gbdt->set_count,
        .test_count = layout.test_count,
        .exit_count = layout.exit_count,
        .leaf_count = layout.leaf_count,
        .has_gain = gbdt->has_gain,
        .has_cover = gbdt->has_cover,
        .has_names = gbdt->feature_names != NULL,
        .has_types = gbdt->feature_types != NULL,
    };
    shallow.layout = &layout;
    list_sections(&shallow, sections);
    foreloop_status status = append_texts(gbdt, &texts, error);
    sections[SECTION_TEXTS].count = texts.size;
    for (int i = 0; i < SECTIONS; i++) {
        head.counts[i] = sections[i].count;
        head.sizes[i] = sections[i].size;
    }
    if (status == FORELOOP_OK)
        status = append_sections(sections, &head, &texts, out, error);
    foreloop_buffer_close(&texts);
    return status;
}

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

/* The order of foreloop_gbdt_add_tree: breadth first, children side by side; from it comes the depth. */
static bool is_sound_tree(foreloop_gbdt *g, const foreloop_gbdt_tree *tree) {
    uint32_t next = 1, level_end = 1, depth = 0;
    if (tree->node_count == 0 || tree->root > g->node_count || tree->node_count > g->node_count - tree->root)
        return false;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const foreloop_gbdt_node *node = &g->nodes[tree->root + i];
        if (i == level_end) {
            depth++;
            level_end = next;
        }
        if (!(node->feature & FORELOOP_GBDT_SPLIT)) {
            if (node->feature != 0 || node->left != tree->root + i)
                return false;
            continue;
        }
        const uint32_t feature = node->feature & FORELOOP_GBDT_FEATURE;
        const bool categorical = (node->feature & FORELOOP_GBDT_CATEGORICAL) != 0;
        if (node->left != tree->root + next || feature >= g->feature_count ||
            (categorical && (!tree->categorical || node->split.set >= g->set_count)))
            return false;
        next += 2;
        if (next > tree->node_count)
            return false;
        g->read_end = feature >= g->read_end ? feature + (size_t)1 : g->read_end;
    }
    g->max_depth = depth > g->max_depth ? depth : g->max_depth;
    return next == tree->node_count && depth == tree->depth;
}

/* Whether numbers ascend from 0 to `last`. */
static bool ascend(const size_t *numbers, size_t count, size_t last) {
    for (size_t i = 1; i < count; i++)
        if (numbers[i] < numbers[i - 1])
            return false;
    return numbers[0] == 0 && numbers[count - 1] == last;
}

static bool is_sound_model(foreloop_gbdt *g) {
    for (size_t t = 0; t < g->tree_count; t++)
        if (!is_sound_tree(g, &g->trees[t]))
            return false;
    for (size_t t = 0; t < g->source_count; t++)
        if (g->source_trees[t] >= g->tree_count)
            return false;
    for (size_t s = 0; s < g->set_count; s++)
        if (g->sets[s] > g->sets[s + 1] || g->sets[s + 1] > g->category_count)
            return false;
    return ascend(g->output_trees, g->output_count + 1, g->tree_count);
}

/* The nodes that single rows walk. */
static bool is_sound_walk(const foreloop_gbdt *g, const foreloop_gbdt_tree *tree, size_t root) {
    const foreloop_gbdt_layout *l = g->layout;
    if (root > l->node_count || tree->node_count > l->node_count - root)
        return false;
    for (size_t i = 0; i < tree->node_count; i++) {
        const uint32_t word = l->nodes[root + i].word, left = word & FORELOOP_TREES_LEFT;
        const uint32_t feature = word >> FORELOOP_TREES_FEATURE_SHIFT;
        if (word & FORELOOP_TREES_IS_LEAF ? left >= tree->node_count || feature != 0
                                          : left + 1 >= tree->node_count || feature >= g->feature_count)
            return false;
    }
    return true;
}

static bool is_sound_shape(const foreloop_gbdt *g, size_t t, size_t columns) {
    const foreloop_gbdt_layout *l = g->layout;
    const foreloop_trees_tree *laid_out = &l->trees[t];
    const size_t a = laid_out->pieces[0], b = laid_out->pieces[1], c = laid_out->pieces[2];
    const bool complete = laid_out->shape == FORELOOP_TREES_COMPLETE && laid_out->depth <= FORELOOP_TREES_DEPTH;
    const size_t width = complete ? (size_t)1 << laid_out->depth : 1;
    const size_t tests = complete ? width - 1 : 7 * a + 3 * b + c, exits = complete ? 0 : 8 * a + 4 * b + 2 * c;
    if (laid_out->shape == FORELOOP_TREES_WALK)
        return true;
    if ((!complete && laid_out->shape != FORELOOP_TREES_PIECES) || laid_out->depth != g->trees[t].depth ||
        g->trees[t].categorical || a + b + c > UINT8_MAX || tests != laid_out->test_count ||
        laid_out->test > l->test_count || tests > l->test_count - laid_out->test || laid_out->exit > l->exit_count ||
        exits > l->exit_count - laid_out->exit || laid_out->leaf >= l->leaf_count)
        return false;
    for (size_t i = laid_out->test; i < laid_out->test + tests; i++)
        if (l->columns[i] % FORELOOP_TREES_COLUMN_UNIT != 0 || l->columns[i] / FORELOOP_TREES_COLUMN_UNIT >= columns)
            return false;
    return is_sound_walk(g, &g->trees[t], l->roots[t]);
}

/* Gives the number of the chunk's columns, 0 when its features are not sound; 1 at least. */
static size_t count_columns(const foreloop_gbdt_layout *l, const foreloop_gbdt_chunk *chunk) {
    size_t columns = 1;
    for (size_t i = chunk->feature_begin; i < chunk->feature_end; i++) {
        const foreloop_trees_feature *feature = &l->features[i];
        if (feature->used >= l->used_count || l->used[feature->used] != feature->feature || feature->levels < 4 ||
            feature->levels > 8 || feature->table > l->table_size ||
            (size_t)1 << feature->levels > l->table_size - feature->table || feature->lefts > FORELOOP_TREES_COLUMNS ||
            feature->rights > FORELOOP_TREES_COLUMNS)
            return 0;
        if (feature->lefts < FORELOOP_TREES_COLUMNS && feature->lefts >= columns)
            columns = feature->lefts + (size_t)1;
        if (feature->rights < FORELOOP_TREES_COLUMNS && feature->rights >= columns)
            columns = feature->rights + (size_t)1;
    }
    return columns;
}

/* Whether the used features are those that the nodes read, each once. */
static bool are_used(const foreloop_gbdt *g, unsigned char *seen) {
    const foreloop_gbdt_layout *l = g->layout;
    size_t count = 0;
    memset(seen, 0, l->used_count);
    for (size_t i = 0; i < l->used_count; i++)
        if (l->used[i] >= g->feature_count || (i > 0 && l->used[i] <= l->used[i - 1]))
            return false;
    for (size_t i = 0; i < g->node_count; i++) {
        const uint32_t feature = g->nodes[i].feature & FORELOOP_GBDT_FEATURE;
        if (!(g->nodes[i].feature & FORELOOP_GBDT_SPLIT))
            continue;
        const size_t place = l->used_count > 0 ? foreloop_gbdt_used_place(l, feature) : 0;
        if (l->used_count == 0 || l->used[place] != feature)
            return false;
        count += !seen[place];
        seen[place] = 1;
    }
    return count == l->used_count;
}

static bool is_sound_layout(const foreloop_gbdt *g, unsigned char *seen) {
    const foreloop_gbdt_layout *l = g->layout;
    size_t tree = 0;
    for (size_t c = 0; c < l->chunk_count; c++) {
        const foreloop_gbdt_chunk *chunk = &l->chunks[c];
        if (chunk->tree_begin != tree || chunk->tree_end <= tree || chunk->tree_end > g->tree_count ||
            chunk->feature_begin > chunk->feature_end || chunk->feature_end > l->feature_count)
            return false;
        const size_t columns = count_columns(l, chunk);
        if (columns == 0)
            return false;
        for (; tree < chunk->tree_end; tree++)
            if (!is_sound_shape(g, tree, columns))
                return false;
    }
    return tree == g->tree_count && are_used(g, seen);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* The next text, and moves behind it; NULL when there is none. */
static const char *next_text(const char **texts, const char *end) {
    const char *text = *texts, *terminator = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    if (terminator)
        *texts = terminator + 1;
    return terminator ? text : NULL;
}

/* A list of the next texts, one for each feature. */
static foreloop_status read_list(const foreloop_gbdt *g, const char **texts, const char *end, const char ***list,
                                 bool *sound, foreloop_error *error) {
    if ((size_t)(end - *texts) < g->feature_count) { /* a byte each at least */
        *sound = false;
        return FORELOOP_OK;
    }
    *list = foreloop_allocate(&g->allocator, g->feature_count, sizeof **list);
    if (!*list)
        return foreloop_fail_memory(error, g->feature_count, sizeof **list, "names of features");
    for (size_t i = 0; i < g->feature_count; i++) {
        (*list)[i] = next_text(texts, end);
        *sound = *sound && (*list)[i];
    }
    return FORELOOP_OK;
}

static foreloop_status read_texts(foreloop_gbdt *g, const compiled_head *head, const char *texts, bool *sound,
                                  foreloop_error *error) {
    const char *end = texts + head->counts[SECTION_TEXTS];
    const char *objective = next_text(&texts, end), *notes = next_text(&texts, end);
    if (!objective || !notes) {
        *sound = false;
        return FORELOOP_OK;
    }
    g->objective = foreloop_gbdt_find_objective((foreloop_text){objective, strlen(objective)});
    if (!g->objective)
        g->objective = foreloop_gbdt_unknown_objective();
    *sound = *sound && strcmp(g->objective->name, objective) == 0;
    FORELOOP_TRY(foreloop_buffer_append(&g->notes, notes, strlen(notes), error));
    if (head->has_names)
        FORELOOP_TRY(read_list(g, &texts, end, &g->feature_names, sound, error));
    if (head->has_types)
        FORELOOP_TRY(read_list(g, &texts, end, &g->feature_types, sound, error));
    return FORELOOP_OK;
}

/* Takes the counts over; false when they are not what the head's other numbers tell. */
static bool take_counts(foreloop_gbdt *g, const compiled_head *head) {
    foreloop_gbdt_layout *l = g->layout;
    section sections[SECTIONS];
    if (head->feature_count > FORELOOP_GBDT_MAX_COUNT || head->output_count - 1 >= FORELOOP_GBDT_MAX_OUTPUTS ||
        head->set_count > FORELOOP_GBDT_MAX_COUNT || head->test_count > UINT32_MAX / 2 ||
        head->exit_count > UINT32_MAX / 2 || head->leaf_count > UINT32_MAX / 2)
        return false;
    g->feature_count = (size_t)head->feature_count;
    g->output_count = (size_t)head->output_count;
    g->iteration_count = (size_t)head->iteration_count;
    g->best_iteration = head->best_iteration;
    g->has_gain = head->has_gain != 0;
    g->has_cover = head->has_cover != 0;
    g->set_count = (size_t)head->set_count;
    g->node_count = (size_t)head->counts[SECTION_NODES];
    g->tree_count = (size_t)head->counts[SECTION_TREES];
    g->source_count = (size_t)head->counts[SECTION_SOURCE_TREES];
    g->category_count = (size_t)head->counts[SECTION_CATEGORIES];
    l->chunk_count = (size_t)head->counts[SECTION_CHUNKS];
    l->feature_count = (size_t)head->counts[SECTION_FEATURES];
    l->table_size = (size_t)head->counts[SECTION_TABLES];
    l->node_count = (size_t)head->counts[SECTION_WALKED];
    l->used_count = (size_t)head->counts[SECTION_USED];
    l->test_count = (size_t)head->test_count;
    l->exit_count = (size_t)head->exit_count;
    l->leaf_count = (size_t)head->leaf_count;
    list_sections(g, sections);
    for (int i = 0; i < SECTIONS; i++)
        if (head->sizes[i] != sections[i].size || (i != SECTION_TEXTS && head->counts[i] != sections[i].count))
            return false;
    return g->node_count <= FORELOOP_GBDT_MAX_COUNT && g->tree_count <= FORELOOP_GBDT_MAX_COUNT;
}

/* Lets the model's arrays be those of data[size], which is borrowed. */
static foreloop_status attach(foreloop_gbdt *g, const void *data, size_t size, bool *sound, foreloop_error *error) {
    section sections[SECTIONS];
    const void *found[SECTIONS];
    size_t sizes[SECTIONS];
    compiled_head head;
    *sound = false;
    if (size < sizeof head || (uintptr_t)data % sizeof(uint64_t) != 0)
        return FORELOOP_OK;
    memcpy(&head, data, sizeof head);
    if (!take_counts(g, &head))
        return FORELOOP_OK;
    list_sections(g, sections);
    for (int i = 0; i < SECTIONS; i++)
        sizes[i] = sections[i].size;
    if (!foreloop_sections_find(data, size, sizeof head, head.counts, sizes, found, SECTIONS))
        return FORELOOP_OK;
    for (int i = 0; i < SECTION_TEXTS; i++)
        memcpy(sections[i].pointer, &found[i], sizeof found[i]);
    *sound = true;
    FORELOOP_TRY(read_texts(g, &head, found[SECTION_TEXTS], sound, error));
    unsigned char *seen = foreloop_allocate(&g->allocator, g->layout->used_count, 1);
    if (!seen)
        return foreloop_fail_memory(error, g->layout->used_count, 1, "the features in use");
    *sound = *sound && is_sound_model(g) && is_sound_layout(g, seen);
    foreloop_release(&g->allocator, seen);
    return FORELOOP_OK;
}

foreloop_status foreloop_gbdt_open_compiled(foreloop_gbdt **gbdt, const void *data, size_t size, const char *name,
                                            const foreloop_allocator *allocator, foreloop_tier tier,
                                            foreloop_error *error) {
    foreloop_gbdt *made = NULL;
    bool sound = false;
    FORELOOP_TRY(foreloop_gbdt_create(&made, allocator, error));
    made->borrowed = true;
    foreloop_status status = foreloop_gbdt_layout_create(made, tier, error);
    if (status == FORELOOP_OK)
        status = attach(made, data, size, &sound, error);
    if (status == FORELOOP_OK && !sound)
        status = foreloop_fail(error, FORELOOP_ERROR_FORMAT,
                               "the compiled part of %s is malformed: pack the model's directory again", name);
    if (status != FORELOOP_OK) {
        foreloop_gbdt_close(made);
        return status;
    }
    foreloop_gbdt_layout_choose(made);
    *gbdt = made;
    return FORELOOP_OK;
}
