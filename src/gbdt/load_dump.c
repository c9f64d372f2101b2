/* Reads dump_model JSON: an array of nested trees, with or without statistics. A dump has no base score, objective,
 * weights or list of columns: what the options do not give is assumed, and said in the notes. */
#include "common/hash.h"
#include "common/number.h"
#include "gbdt/model.h"
#include <math.h>
#include <string.h>

/* What stands in a node of the file before its children are found. */
typedef struct dump_node {
    int64_t id, yes, no, missing;
    bool has_id, has_leaf, has_feature, has_yes, has_no, has_missing, has_condition, has_gain, has_cover, categorical;
    uint32_t feature, vector;
    float value, gain, cover;
    size_t category_begin, category_count;
    size_t child_count;
    int64_t child_ids[2];
    size_t child_places[2];
} dump_node;

typedef struct dump_loader {
    foreloop_json *json;
    foreloop_gbdt *gbdt;
    const foreloop_gbdt_options *options;

    /* Names by feature, in order of first occurrence or as the options give them, and a hash table of features + 1. */
    const char **names;
    size_t name_count, name_capacity;
    uint32_t *slots;
    size_t slot_count; /* a power of two */

    bool has_indicator;
    bool has_cut;

    /* Of the tree that is being read. */
    foreloop_gbdt_source_node *nodes;
    size_t node_capacity, node_count;
    bool has_gain, has_cover;
    size_t width;         /* numbers in a leaf; 0: no leaf yet. The same in all trees. */
    foreloop_floats leaf; /* the numbers of the last vector leaf */
    float *vectors;
    size_t vector_count, vector_capacity; /* in numbers */
    uint32_t *categories;
    size_t category_count, category_capacity;
} dump_loader;

/* ---- Feature names ----------------------------------------------------------------------------------------------- */

/* The slot that holds the name, or the empty one where it belongs. */
static uint32_t *find_slot(const dump_loader *loader, const char *name, size_t length) {
    size_t slot = (size_t)foreloop_hash(FORELOOP_HASH_START, name, length) & (loader->slot_count - 1);
    while (loader->slots[slot] != 0) {
        const char *other = loader->names[loader->slots[slot] - 1];
        if (strlen(other) == length && memcmp(other, name, length) == 0)
            break;
        slot = (slot + 1) & (loader->slot_count - 1);
    }
    return &loader->slots[slot];
}

static foreloop_status grow_slots(dump_loader *loader) {
    const foreloop_allocator *allocator = &loader->gbdt->allocator;
    size_t count = loader->slot_count > 0 ? loader->slot_count * 2 : 64;
    uint32_t *slots = foreloop_allocate_zeroed(allocator, count, sizeof *slots);
    if (!slots)
        return foreloop_fail_memory(loader->json->error, count, sizeof *slots, "the feature names");
    foreloop_release(allocator, loader->slots);
    loader->slots = slots;
    loader->slot_count = count;
    for (size_t i = 0; i < loader->name_count; i++)
        *find_slot(loader, loader->names[i], strlen(loader->names[i])) = (uint32_t)i + 1;
    return FORELOOP_OK;
}

/* The feature of this name; `added` says that it is new. */
static foreloop_status intern_name(dump_loader *loader, foreloop_text name, uint32_t *feature, bool *added) {
    foreloop_gbdt *gbdt = loader->gbdt;
    if (loader->name_count * 2 >= loader->slot_count)
        FORELOOP_TRY(grow_slots(loader));
    uint32_t *slot = find_slot(loader, name.text, name.length);
    *added = *slot == 0;
    if (*added) {
        if (loader->name_count >= FORELOOP_GBDT_FEATURE)
            return foreloop_fail(loader->json->error, FORELOOP_ERROR_LIMIT, "more than 2^29 features");
        FORELOOP_TRY(foreloop_reserve(&gbdt->allocator, &loader->names, &loader->name_capacity, loader->name_count,
                                      loader->name_count + 1, sizeof *loader->names, loader->json->error));
        const char *kept = foreloop_arena_text(&gbdt->texts, name.text, name.length);
        if (!kept)
            return foreloop_fail_memory(loader->json->error, name.length, 1, "a feature name");
        loader->names[loader->name_count++] = kept;
        *slot = (uint32_t)loader->name_count;
    }
    *feature = *slot - 1;
    return FORELOOP_OK;
}

static foreloop_status take_given_names(dump_loader *loader) {
    const foreloop_gbdt_options *options = loader->options;
    for (size_t i = 0; i < options->feature_name_count; i++) {
        const char *name = options->feature_names[i];
        uint32_t feature;
        bool added = false;
        if (name)
            FORELOOP_TRY(intern_name(loader, (foreloop_text){name, strlen(name)}, &feature, &added));
        if (!added)
            return foreloop_fail(loader->json->error, FORELOOP_ERROR_ARGUMENT,
                                 "feature_names[%zu] is NULL or the same as one before", i);
    }
    return FORELOOP_OK;
}

static foreloop_status read_feature(dump_loader *loader, uint32_t *feature) {
    foreloop_json *json = loader->json;
    foreloop_text name;
    bool added = false;
    FORELOOP_TRY(foreloop_json_string(json, &name));
    if (memchr(name.text, '\0', name.length))
        return foreloop_json_fail(json, "a feature name with a zero byte");
    FORELOOP_TRY(intern_name(loader, name, feature, &added));
    if (added && loader->options->feature_names)
        return foreloop_gbdt_locate(json, json->offset,
                                    foreloop_fail(json->error, FORELOOP_ERROR_MISMATCH,
                                                  "the trees read \"%.*s\", which is not among the feature names",
                                                  FORELOOP_QUOTED(name.text, name.length)));
    return FORELOOP_OK;
}

/* The number in "f12"; false for other names, such as "f012". */
static bool default_name(const char *name, size_t *number) {
    int64_t value;
    size_t length = strlen(name);
    if (name[0] != 'f' || length < 2 || (name[1] == '0' && length > 2) || strspn(name + 1, "0123456789") != length - 1)
        return false;
    if (!foreloop_parse_int64(name + 1, length - 1, &value) || value >= FORELOOP_GBDT_FEATURE)
        return false;
    *number = (size_t)value;
    return true;
}

/* When all names are f0, f1 ..., turns features from order of occurrence into the names' numbers. */
static foreloop_status number_features(dump_loader *loader) {
    foreloop_gbdt *gbdt = loader->gbdt;
    size_t number = 0, count = 0;
    for (size_t i = 0; i < loader->name_count; i++) {
        if (!default_name(loader->names[i], &number)) {
            gbdt->feature_count = loader->name_count;
            gbdt->feature_names = loader->names;
            loader->names = NULL;
            return foreloop_gbdt_note(gbdt, loader->json->error,
                                      "columns are the features in the order in which they first occur, since a dump "
                                      "has no list of them");
        }
        count = number + 1 > count ? number + 1 : count;
    }
    gbdt->feature_count = count;
    for (size_t i = 0; i < gbdt->node_count; i++) {
        if (!(gbdt->nodes[i].feature & FORELOOP_GBDT_SPLIT))
            continue;
        default_name(loader->names[gbdt->nodes[i].feature & FORELOOP_GBDT_FEATURE], &number);
        gbdt->nodes[i].feature = (gbdt->nodes[i].feature & ~FORELOOP_GBDT_FEATURE) | (uint32_t)number;
    }
    return FORELOOP_OK;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static foreloop_status read_category_list(dump_loader *loader, dump_node *node) {
    node->categorical = true;
    node->category_begin = loader->category_count;
    FORELOOP_TRY(foreloop_gbdt_read_categories(loader->json, &loader->gbdt->allocator, &loader->categories,
                                               &loader->category_capacity, &loader->category_count));
    node->category_count = loader->category_count - node->category_begin;
    return FORELOOP_OK;
}

static foreloop_status read_condition(dump_loader *loader, dump_node *node) {
    node->has_condition = true;
    if (foreloop_json_peek(loader->json) == FORELOOP_JSON_ARRAY)
        return read_category_list(loader, node);
    foreloop_text text;
    FORELOOP_TRY(foreloop_json_number(loader->json, &text));
    if (!foreloop_parse_float(text.text, text.length, &node->value))
        return foreloop_json_fail(loader->json, "malformed threshold");
    foreloop_text least = {"-2147483648", 11}, greatest = {"2147483647", 10};
    loader->has_cut |= (text.length == least.length && memcmp(text.text, least.text, least.length) == 0) ||
                       (text.length == greatest.length && memcmp(text.text, greatest.text, greatest.length) == 0);
    return FORELOOP_OK;
}

static foreloop_status read_id(foreloop_json *json, int64_t *id, bool *has) {
    *has = true;
    return foreloop_json_bounded(json, 0, (int64_t)FORELOOP_GBDT_MAX_COUNT, id);
}

static foreloop_status read_vector(dump_loader *loader, dump_node *node) {
    foreloop_json *json = loader->json;
    foreloop_status status = foreloop_json_floats(json, &loader->leaf);
    if (status == FORELOOP_ERROR_FORMAT && json->offset < json->size && json->data[json->offset] == '.')
        return foreloop_fail(json->error, FORELOOP_ERROR_UNSUPPORTED,
                             "%s: the dump leaves out numbers of vector leaves (\"...\"): use save_model", json->name);
    FORELOOP_TRY(status);
    const size_t width = loader->leaf.count;
    if (width < 2 || width > FORELOOP_GBDT_MAX_OUTPUTS)
        return foreloop_json_fail(json, "a leaf of %zu numbers", width);
    if (loader->width == 0)
        loader->width = width;
    if (width != loader->width)
        return foreloop_json_fail(json, "a leaf of %zu numbers after one of %zu", width, loader->width);
    FORELOOP_TRY(foreloop_reserve(&loader->gbdt->allocator, &loader->vectors, &loader->vector_capacity,
                                  loader->vector_count, loader->vector_count + width, sizeof *loader->vectors,
                                  json->error));
    memcpy(loader->vectors + loader->vector_count, loader->leaf.items, width * sizeof *loader->vectors);
    node->vector = (uint32_t)(loader->vector_count / width);
    loader->vector_count += width;
    return FORELOOP_OK;
}

static foreloop_status read_leaf(dump_loader *loader, dump_node *node) {
    foreloop_json *json = loader->json;
    node->has_leaf = true;
    if (foreloop_json_peek(json) == FORELOOP_JSON_ARRAY)
        return read_vector(loader, node);
    if (loader->width > 1)
        return foreloop_json_fail(json, "a leaf of one number after one of %zu", loader->width);
    loader->width = 1;
    return foreloop_json_float(json, &node->value);
}

static foreloop_status read_node(dump_loader *loader, size_t *place, int64_t *id);

static foreloop_status read_children(dump_loader *loader, dump_node *node) {
    foreloop_json *json = loader->json;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;; node->child_count++) {
        bool more;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return FORELOOP_OK;
        if (node->child_count == 2)
            return foreloop_json_fail(json, "a node with more than two children");
        FORELOOP_TRY(read_node(loader, &node->child_places[node->child_count], &node->child_ids[node->child_count]));
    }
}

typedef struct node_reader {
    dump_loader *loader;
    dump_node *node;
} node_reader;

static foreloop_status read_field(void *user, foreloop_text key) {
    dump_loader *loader = ((node_reader *)user)->loader;
    dump_node *node = ((node_reader *)user)->node;
    foreloop_json *json = loader->json;
    if (foreloop_text_is(key, "nodeid"))
        return read_id(json, &node->id, &node->has_id);
    if (foreloop_text_is(key, "yes"))
        return read_id(json, &node->yes, &node->has_yes);
    if (foreloop_text_is(key, "no"))
        return read_id(json, &node->no, &node->has_no);
    if (foreloop_text_is(key, "missing"))
        return read_id(json, &node->missing, &node->has_missing);
    if (foreloop_text_is(key, "split_condition"))
        return read_condition(loader, node);
    if (foreloop_text_is(key, "children"))
        return read_children(loader, node);
    if (foreloop_text_is(key, "split")) {
        node->has_feature = true;
        return read_feature(loader, &node->feature);
    }
    if (foreloop_text_is(key, "leaf"))
        return read_leaf(loader, node);
    if (foreloop_text_is(key, "gain")) {
        node->has_gain = true;
        return foreloop_json_float(json, &node->gain);
    }
    if (foreloop_text_is(key, "cover")) {
        node->has_cover = true;
        return foreloop_json_float(json, &node->cover);
    }
    return foreloop_json_skip(json);
}

/* The place of the child with this id, -1 when there is none. */
static int64_t child_place(const dump_node *node, int64_t id) {
    for (size_t i = 0; i < node->child_count; i++)
        if (node->child_ids[i] == id)
            return (int64_t)node->child_places[i];
    return -1;
}

static foreloop_status complete_split(dump_loader *loader, const dump_node *node, foreloop_gbdt_source_node *result) {
    foreloop_json *json = loader->json;
    if (!node->has_feature || !node->has_yes || !node->has_no || node->child_count != 2)
        return foreloop_json_fail(json, "a node without leaf needs split, yes, no and two children");
    int64_t yes = child_place(node, node->yes), no = child_place(node, node->no);
    if (yes < 0 || no < 0 || yes == no)
        return foreloop_json_fail(json, "yes and no of node %lld are not the ids of its two children",
                                  (long long)node->id);
    result->feature = node->feature;
    if (!node->has_condition) {
        /* An indicator: any number goes to yes, a missing value to no. */
        loader->has_indicator = true;
        result->value = NAN;
        result->left = no;
        result->right = yes;
        result->default_left = true;
        return FORELOOP_OK;
    }
    if (!node->has_missing || (node->missing != node->yes && node->missing != node->no))
        return foreloop_json_fail(json, "missing of node %lld is neither its yes nor its no", (long long)node->id);
    /* Less than the threshold is yes and goes left; membership of the set is yes and goes right. */
    result->left = node->categorical ? no : yes;
    result->right = node->categorical ? yes : no;
    result->default_left = child_place(node, node->missing) == result->left;
    result->value = node->value;
    result->categorical = node->categorical;
    result->category_begin = node->category_begin;
    result->category_count = node->category_count;
    return FORELOOP_OK;
}

/* Reads a node and, in its turn, what hangs on it; the reader bounds the depth. */
static foreloop_status read_node(dump_loader *loader, size_t *place, int64_t *id) {
    foreloop_json *json = loader->json;
    dump_node node = {0};
    size_t own = loader->node_count;
    FORELOOP_TRY(foreloop_reserve(&loader->gbdt->allocator, &loader->nodes, &loader->node_capacity, own, own + 1,
                                  sizeof *loader->nodes, json->error));
    loader->node_count++;
    FORELOOP_TRY(foreloop_json_fields(json, read_field, &(node_reader){loader, &node}));
    if (!node.has_id)
        return foreloop_json_fail(json, "a node without nodeid");
    foreloop_gbdt_source_node result = {.left = -1, .value = node.value, .vector = node.vector};
    result.origin = (foreloop_gbdt_origin){.id = (uint32_t)node.id, .gain = node.gain, .cover = node.cover};
    loader->has_gain &= node.has_gain || node.has_leaf;
    loader->has_cover &= node.has_cover;
    if (!node.has_leaf)
        FORELOOP_TRY(complete_split(loader, &node, &result));
    else if (node.has_condition || node.child_count > 0)
        return foreloop_json_fail(json, "node %lld is a leaf and a split at once", (long long)node.id);
    loader->nodes[own] = result;
    *place = own;
    *id = node.id;
    return FORELOOP_OK;
}

/* ---- The document ------------------------------------------------------------------------------------------------ */

static foreloop_status read_document(dump_loader *loader) {
    foreloop_json *json = loader->json;
    FORELOOP_TRY(foreloop_json_array(json));
    for (;;) {
        bool more;
        size_t place, offset;
        int64_t id;
        FORELOOP_TRY(foreloop_json_element(json, &more));
        if (!more)
            return foreloop_json_end(json);
        loader->node_count = 0;
        loader->category_count = 0;
        loader->vector_count = 0;
        loader->has_gain = loader->has_cover = true;
        offset = json->offset;
        FORELOOP_TRY(read_node(loader, &place, &id));
        const foreloop_gbdt_source_tree tree = {
            .nodes = loader->nodes,
            .node_count = loader->node_count,
            .categories = loader->categories,
            .width = loader->width,
            .vectors = loader->vectors,
            .has_gain = loader->has_gain,
            .has_cover = loader->has_cover,
        };
        FORELOOP_TRY(foreloop_gbdt_locate(json, offset, foreloop_gbdt_add_tree(loader->gbdt, &tree, json->error)));
    }
}

static foreloop_status set_objective(dump_loader *loader) {
    const char *name = loader->options->objective;
    foreloop_error *error = loader->json->error;
    if (!name)
        return foreloop_gbdt_note(loader->gbdt, error, "a dump has no objective: predictions are the margins");
    loader->gbdt->objective = foreloop_gbdt_find_objective((foreloop_text){name, strlen(name)});
    if (!loader->gbdt->objective)
        return foreloop_fail(error, FORELOOP_ERROR_UNSUPPORTED, "the objective \"%.*s\" is not supported",
                             FORELOOP_QUOTED(name, strlen(name)));
    return FORELOOP_OK;
}

static foreloop_status set_base_margins(dump_loader *loader) {
    foreloop_gbdt *gbdt = loader->gbdt;
    const foreloop_gbdt_options *options = loader->options;
    gbdt->base_margins = foreloop_allocate(&gbdt->allocator, gbdt->output_count, sizeof *gbdt->base_margins);
    if (!gbdt->base_margins)
        return foreloop_fail_memory(loader->json->error, gbdt->output_count, sizeof *gbdt->base_margins,
                                    "the base scores");
    for (size_t k = 0; k < gbdt->output_count; k++)
        gbdt->base_margins[k] = options->has_base_score ? options->base_score : 0.5f;
    if (options->has_base_score)
        return FORELOOP_OK;
    return foreloop_gbdt_note(gbdt, loader->json->error, "a dump has no base score: 0.5 assumed");
}

static foreloop_status add_notes(dump_loader *loader) {
    foreloop_error *error = loader->json->error;
    if (!loader->options->tree_weights)
        FORELOOP_TRY(foreloop_gbdt_note(loader->gbdt, error, "a dump has no DART weights: 1 assumed"));
    if (loader->has_indicator)
        FORELOOP_TRY(foreloop_gbdt_note(loader->gbdt, error,
                                        "indicator features (type i): a dump has no threshold for them, so any number "
                                        "counts as present and only NaN as absent"));
    if (loader->has_cut)
        FORELOOP_TRY(foreloop_gbdt_note(loader->gbdt, error,
                                        "a threshold is at an end of the 32-bit integers: the dump of an int feature "
                                        "has probably lost its value; use save_model"));
    return FORELOOP_OK;
}

/* Outputs take turns, num_parallel_tree trees at a time; a tree with vector leaves adds to all of them. */
static foreloop_status set_outputs(dump_loader *loader, size_t *begin, size_t *end) {
    foreloop_gbdt *gbdt = loader->gbdt;
    const foreloop_gbdt_options *options = loader->options;
    foreloop_error *error = loader->json->error;
    size_t parallel = options->num_parallel_tree > 0 ? options->num_parallel_tree : 1;
    size_t width = loader->width > 1 ? loader->width : 1;
    if (options->num_class > FORELOOP_GBDT_MAX_OUTPUTS || parallel > FORELOOP_GBDT_MAX_COUNT)
        return foreloop_fail(error, FORELOOP_ERROR_LIMIT, "num_class or num_parallel_tree is too large");
    if (width > 1 && options->num_class > 1 && options->num_class != width)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "num_class is %zu, but leaves have %zu numbers",
                             options->num_class, width);
    gbdt->output_count = options->num_class > 1 ? options->num_class : width;
    size_t turns = gbdt->output_count / width;
    uint64_t step = (uint64_t)turns * parallel;
    if (gbdt->source_count % step != 0)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "%zu trees are not whole iterations of %zu trees for each of %zu outputs",
                             gbdt->source_count, parallel, turns);
    for (size_t t = 0; t < gbdt->tree_count; t++)
        gbdt->trees[t].output += (uint32_t)(gbdt->trees[t].source / parallel % turns);
    gbdt->iteration_count = (size_t)(gbdt->source_count / step);
    FORELOOP_TRY(foreloop_gbdt_select(options, gbdt->iteration_count, begin, end, error));
    *begin *= (size_t)step;
    *end *= (size_t)step;
    return FORELOOP_OK;
}

static foreloop_status complete(dump_loader *loader) {
    foreloop_gbdt *gbdt = loader->gbdt;
    size_t begin = 0, end = 0;
    FORELOOP_TRY(set_outputs(loader, &begin, &end));
    FORELOOP_TRY(set_objective(loader));
    FORELOOP_TRY(set_base_margins(loader));
    if (loader->options->feature_names) {
        gbdt->feature_count = loader->name_count;
        gbdt->feature_names = loader->names;
        loader->names = NULL;
    } else {
        FORELOOP_TRY(number_features(loader));
    }
    FORELOOP_TRY(add_notes(loader));
    return foreloop_gbdt_finish(gbdt, loader->options->tree_weights, loader->options->tree_weight_count, begin, end,
                                loader->json->error);
}

foreloop_status foreloop_gbdt_load_dump(foreloop_gbdt *gbdt, foreloop_json *json,
                                        const foreloop_gbdt_options *options) {
    dump_loader loader = {.json = json, .gbdt = gbdt, .options = options};
    foreloop_status status = options->feature_names ? take_given_names(&loader) : FORELOOP_OK;
    if (status == FORELOOP_OK)
        status = read_document(&loader);
    if (status == FORELOOP_OK)
        status = foreloop_gbdt_locate(json, json->offset, complete(&loader));
    const foreloop_allocator *allocator = &gbdt->allocator;
    foreloop_release(allocator, (void *)loader.names);
    foreloop_release(allocator, loader.slots);
    foreloop_release(allocator, loader.nodes);
    foreloop_release(allocator, loader.leaf.items);
    foreloop_release(allocator, loader.vectors);
    foreloop_release(allocator, loader.categories);
    return status;
}
