/* Opening a model: every part is loaded and checked here, so that scoring needs no checks. */
#include "model/model.h"
#include "common/alloc.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/sized.h"
#include "gbdt/model.h"
#include "model/compiled.h"
#include "model/text_encoder.h"
#include "tokenizer/tokenizer.h"
#include "transformer/config.h"
#include <float.h>
#include <math.h>
#include <string.h>

static foreloop_status load_manifest(foreloop_model *model, foreloop_error *error) {
    const foreloop_bytes *text = &model->bundle.texts[FORELOOP_BUNDLE_MANIFEST];
    model->manifest_text = foreloop_copy_text(&model->allocator, text->data, text->size);
    if (!model->manifest_text)
        return foreloop_fail_memory(error, text->size, 1, "model.json");
    return foreloop_manifest_read(&model->manifest, &model->allocator, model->manifest_text, text->size,
                                  foreloop_bundle_text_names[FORELOOP_BUNDLE_MANIFEST], error);
}

static foreloop_status read_config(const foreloop_model *model, foreloop_transformer_config *config,
                                   foreloop_error *error) {
    const foreloop_bytes *text = &model->bundle.texts[FORELOOP_BUNDLE_CONFIG];
    foreloop_json json;
    foreloop_json_open(&json, &model->allocator, text->data, text->size,
                       foreloop_bundle_text_names[FORELOOP_BUNDLE_CONFIG], error);
    foreloop_status status = foreloop_transformer_config_read(config, &json);
    if (status == FORELOOP_OK)
        status = foreloop_json_end(&json);
    foreloop_json_close(&json);
    return status;
}

/* The optional projection of the pooled vector, as matrix [latent_size][hidden] and bias, in one block. */
static foreloop_status load_projection(const foreloop_model *model, size_t hidden, float **block,
                                       foreloop_error *error) {
    const foreloop_safetensors *weights = model->bundle.weights[FORELOOP_BUNDLE_ENCODER];
    const char *prefix = model->bundle.prefixes[FORELOOP_BUNDLE_ENCODER], *part = "the projection of model.json";
    const foreloop_tensor *weight, *bias;
    FORELOOP_TRY(foreloop_safetensors_require(weights, prefix, "pooling.weight", part, &weight, error));
    FORELOOP_TRY(foreloop_safetensors_require(weights, prefix, "pooling.bias", part, &bias, error));
    size_t size = model->manifest.latent_size;
    FORELOOP_TRY(foreloop_tensor_expect_shape(weight, 2, (size_t[]){size, hidden}, error));
    FORELOOP_TRY(foreloop_tensor_expect_shape(bias, 1, &size, error));
    float *values = foreloop_allocate(&model->allocator, size * (hidden + 1), sizeof *values);
    if (!values)
        return foreloop_fail_memory(error, size * (hidden + 1), sizeof *values, "the projection");
    foreloop_status status = foreloop_tensor_to_float(weight, true, values, error);
    if (status == FORELOOP_OK)
        status = foreloop_tensor_to_float(bias, true, values + size * hidden, error);
    if (status != FORELOOP_OK) {
        foreloop_release(&model->allocator, values);
        return status;
    }
    *block = values;
    return FORELOOP_OK;
}

/* From its compiled form where there is one that fits. */
static foreloop_status load_tokenizer(const foreloop_model *model, foreloop_tokenizer **tokenizer,
                                      foreloop_error *error) {
    const foreloop_bytes text = model->bundle.texts[FORELOOP_BUNDLE_TOKENIZER];
    const char *name = foreloop_bundle_text_names[FORELOOP_BUNDLE_TOKENIZER];
    foreloop_bytes content;
    FORELOOP_TRY(foreloop_compiled_content(model->bundle.compiled[FORELOOP_BUNDLE_TOKENIZER],
                                           FORELOOP_TOKENIZER_COMPILED_VERSION, text, name, &content, error));
    return content.data ? foreloop_tokenizer_open_compiled(tokenizer, content.data, content.size, name,
                                                           &model->allocator, model->kernels.tier, error)
                        : foreloop_tokenizer_open_named(tokenizer, text.data, text.size, name, &model->allocator,
                                                        model->kernels.tier, error);
}

static foreloop_status load_encoder(foreloop_model *model, foreloop_error *error) {
    const foreloop_manifest *manifest = &model->manifest;
    foreloop_transformer_config config;
    FORELOOP_TRY(read_config(model, &config, error));
    if (!manifest->projection && manifest->latent_size != config.hidden_size)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "model.json: latent_size is %zu, but the encoder's hidden_size is %zu and there is no "
                             "projection",
                             manifest->latent_size, config.hidden_size);
    foreloop_tokenizer *tokenizer = NULL;
    FORELOOP_TRY(load_tokenizer(model, &tokenizer, error));
    foreloop_status status = FORELOOP_OK;
    foreloop_pooling pooling = {.window_length = manifest->window_length,
                                .window_stride = manifest->window_stride,
                                .normalize = manifest->normalize};
    float *projection = NULL;
    if (manifest->projection) {
        status = load_projection(model, config.hidden_size, &projection, error);
        if (status == FORELOOP_OK) {
            pooling.projection = projection;
            pooling.projection_bias = projection + manifest->latent_size * config.hidden_size;
            pooling.projection_size = manifest->latent_size;
        }
    }
    if (status == FORELOOP_OK)
        status =
            foreloop_transformer_create(&model->transformer, &model->allocator, &model->kernels, &config,
                                        model->bundle.weights[FORELOOP_BUNDLE_ENCODER],
                                        model->bundle.prefixes[FORELOOP_BUNDLE_ENCODER], tokenizer, &pooling, error);
    foreloop_release(&model->allocator, projection);
    if (status != FORELOOP_OK) {
        foreloop_tokenizer_close(tokenizer);
        return foreloop_error_prefix(error, status, "encoder");
    }
    return FORELOOP_OK;
}

static size_t find_feature(const foreloop_feature_plan *plan, const char *name, size_t guess) {
    if (guess < plan->count && strcmp(plan->features[guess].name, name) == 0)
        return guess; /* the usual case: the ranker has the manifest's order */
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->features[i].name, name) == 0)
            return i;
    return plan->count;
}

/* A bound that ordinary models are far from: no sum of leaves reaches it. A network's output added to it changes
 * nothing of that (FORELOOP_SCORE_NETWORK_MAX_VALUE). */
static bool margins_are_finite(const foreloop_gbdt *gbdt) {
    double largest = 0;
    for (size_t i = 0; i < gbdt->node_count; i++) {
        const foreloop_gbdt_node *node = &gbdt->nodes[i];
        if (!(node->feature & FORELOOP_GBDT_SPLIT) && !(fabs((double)node->split.leaf) <= largest))
            largest = fabs((double)node->split.leaf);
    }
    return fabs((double)gbdt->base_margins[0]) + largest * (double)gbdt->tree_count < FLT_MAX;
}

foreloop_status foreloop_model_match_ranker(const foreloop_model *model, const foreloop_gbdt *gbdt, const char *file,
                                            uint32_t **columns, foreloop_error *error) {
    const foreloop_feature_plan *plan = &model->manifest.plan;
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    const size_t count = info.feature_count;
    if (info.output_count != 1)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "%s: a ranker must have one output, not %zu", file,
                             info.output_count);
    if (count > plan->count)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "%s: the ranker has %zu features, but model.json lists %zu: retrain the ranker on this "
                             "manifest",
                             file, count, plan->count);
    if (info.tree_count == 0)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "%s: the ranker has no trees", file);
    if (!margins_are_finite(gbdt))
        return foreloop_fail(error, FORELOOP_ERROR_VALUE, "%s: the sum of the leaves can overflow", file);
    uint32_t *made = foreloop_allocate(&model->allocator, count, sizeof *made);
    if (!made)
        return foreloop_fail_memory(error, count, sizeof *made, "the ranker's features");
    for (size_t i = 0; i < count; i++) {
        const char *name = foreloop_gbdt_feature_name(gbdt, i);
        size_t feature = name ? find_feature(plan, name, i) : i;
        if (feature == plan->count) {
            foreloop_release(&model->allocator, made);
            return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                                 "%s: the ranker's feature '%.60s' is not among the features of model.json: retrain "
                                 "the ranker on this manifest",
                                 file, name);
        }
        made[i] = (uint32_t)feature;
    }
    *columns = made;
    return FORELOOP_OK;
}

/* From its compiled form where there is one that fits. */
static foreloop_status open_ranker(foreloop_model *model, const char *file, foreloop_error *error) {
    const foreloop_bytes text = model->bundle.texts[FORELOOP_BUNDLE_RANKER];
    const foreloop_gbdt_options options = {
        .size = sizeof options, .allocator = &model->allocator, .tier = model->kernels.tier};
    foreloop_bytes content;
    FORELOOP_TRY(foreloop_compiled_content(model->bundle.compiled[FORELOOP_BUNDLE_RANKER],
                                           FORELOOP_GBDT_COMPILED_VERSION, text, file, &content, error));
    return content.data ? foreloop_gbdt_open_compiled(&model->gbdt, content.data, content.size, file, &model->allocator,
                                                      model->kernels.tier, error)
                        : foreloop_gbdt_open_named(&model->gbdt, text.data, text.size, file, &options, error);
}

static foreloop_status load_ranker(foreloop_model *model, foreloop_error *error) {
    const char *file = foreloop_bundle_text_names[FORELOOP_BUNDLE_RANKER];
    FORELOOP_TRY(open_ranker(model, file, error));
    model->gbdt_info.size = sizeof model->gbdt_info;
    foreloop_gbdt_get_info(model->gbdt, &model->gbdt_info);
    /* A dump without names has only as many columns as its trees read; a model file tells the exact number. */
    const bool exact = strcmp(model->gbdt_info.objective, "unknown") != 0;
    if (exact && model->gbdt_info.feature_count < model->manifest.plan.count)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "%s: the ranker has %zu features, but model.json lists %zu: retrain the ranker on this "
                             "manifest",
                             file, model->gbdt_info.feature_count, model->manifest.plan.count);
    return foreloop_model_match_ranker(model, model->gbdt, file, &model->ranker_columns, error);
}

/* Where the network names the features that it has learnt on, they are the manifest's: only their number would tell a
 * network of another bundle otherwise. */
static foreloop_status match_network(const foreloop_model *model, foreloop_error *error) {
    const foreloop_feature_plan *plan = &model->manifest.plan;
    const foreloop_tensor *tensor =
        foreloop_safetensors_find_part(model->bundle.weights[FORELOOP_BUNDLE_SCORE_NETWORK],
                                       model->bundle.prefixes[FORELOOP_BUNDLE_SCORE_NETWORK], "features");
    if (!tensor)
        return FORELOOP_OK;
    if (tensor->dtype != FORELOOP_DTYPE_U8)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH, "the tensor '%s' must hold text, as U8", tensor->name);
    const unsigned char *text = tensor->data;
    size_t left = tensor->size;
    for (size_t i = 0; i < plan->count; i++) {
        const char *name = plan->features[i].name;
        const size_t length = strlen(name);
        if (left <= length || memcmp(text, name, length) != 0 || text[length] != '\n')
            return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                                 "the network has learnt on other features than model.json lists, from number %zu, "
                                 "'%.60s', on: train it on this manifest",
                                 i, name);
        text += length + 1;
        left -= length + 1;
    }
    if (left)
        return foreloop_fail(error, FORELOOP_ERROR_MISMATCH,
                             "the network has learnt on more features than the %zu of model.json: train it on this "
                             "manifest",
                             plan->count);
    return FORELOOP_OK;
}

static foreloop_status load_network(foreloop_model *model, foreloop_error *error) {
    const foreloop_bundle *bundle = &model->bundle;
    foreloop_status status = foreloop_score_network_load(
        &model->network, &model->allocator, bundle->weights[FORELOOP_BUNDLE_SCORE_NETWORK],
        bundle->prefixes[FORELOOP_BUNDLE_SCORE_NETWORK], model->manifest.plan.count, model->kernels.tier, error);
    if (status == FORELOOP_OK)
        status = match_network(model, error);
    if (status != FORELOOP_OK)
        return foreloop_error_prefix(error, status, "score network");
    model->has_network = true;
    return FORELOOP_OK;
}

void foreloop_model_mark_read(const foreloop_model *model, unsigned char *known) {
    for (size_t i = 0; i < model->gbdt_info.feature_count; i++)
        known[model->ranker_columns[i]] |= model->ranker_reads[i];
    for (size_t i = 0; i < model->network.input_count; i++)
        known[model->network.features[i]] = 1;
}

/* After the ranker and the network, which say which features have to be formed. */
static foreloop_status plan_rollout(foreloop_model *model, foreloop_error *error) {
    const size_t columns = model->gbdt_info.feature_count, count = model->manifest.plan.count;
    model->ranker_reads = foreloop_allocate_zeroed(&model->allocator, columns, sizeof *model->ranker_reads);
    unsigned char *used = foreloop_allocate_zeroed(&model->allocator, count, sizeof *used);
    foreloop_status status;
    if (model->ranker_reads && used) {
        foreloop_gbdt_used_features(model->gbdt, model->ranker_reads);
        foreloop_model_mark_read(model, used);
        status = foreloop_rollout_plan_create(&model->rollout, &model->allocator, &model->manifest.vocabulary,
                                              &model->transition, &model->manifest.plan, used, error);
    } else {
        status = foreloop_fail_memory(error, columns + count, sizeof *used, "the ranker's features");
    }
    foreloop_release(&model->allocator, used);
    return status;
}

/* `path` is where the bundle was opened, NULL for memory. */
static foreloop_status load_parts(foreloop_model *model, const char *path, bool read_into_memory,
                                  foreloop_error *error) {
    FORELOOP_TRY(load_manifest(model, error));
    foreloop_status status = FORELOOP_OK;
    if (model->manifest.score_network)
        status = foreloop_bundle_add_score_network(&model->bundle, path, read_into_memory, error);
    if (status != FORELOOP_OK)
        return foreloop_error_prefix(error, status, "the score network that model.json tells of");
    FORELOOP_TRY(load_encoder(model, error));
    status = foreloop_transition_load(&model->transition, &model->allocator,
                                      model->bundle.weights[FORELOOP_BUNDLE_TRANSITION],
                                      model->bundle.prefixes[FORELOOP_BUNDLE_TRANSITION], &model->manifest.vocabulary,
                                      model->manifest.latent_size, model->kernels.tier, error);
    if (status != FORELOOP_OK)
        return foreloop_error_prefix(error, status, "transition");
    if (model->manifest.score_network)
        FORELOOP_TRY(load_network(model, error));
    FORELOOP_TRY(load_ranker(model, error));
    FORELOOP_TRY(plan_rollout(model, error));
    model->fingerprint = foreloop_bundle_fingerprint(&model->bundle);
    return FORELOOP_OK;
}

/* `options` is this version's copy of the caller's. */
static foreloop_status create(foreloop_model **model, const foreloop_options *options, foreloop_error *error) {
    foreloop_allocator allocator = foreloop_allocator_or_default(options->allocator);
    foreloop_kernel_choice kernels;
    FORELOOP_TRY(foreloop_transformer_choose(&kernels, options, error));
    *model = foreloop_allocate_zeroed(&allocator, 1, sizeof **model);
    if (!*model)
        return foreloop_fail_memory(error, 1, sizeof **model, "the model");
    (*model)->allocator = allocator;
    (*model)->kernels = kernels;
    return FORELOOP_OK;
}

foreloop_status foreloop_model_open(foreloop_model **result, const char *path, const foreloop_options *options,
                                    foreloop_error *error) {
    if (!result || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_model_open: an argument is NULL");
    foreloop_options own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_model *model;
    FORELOOP_TRY(create(&model, &own, error));
    foreloop_status status =
        foreloop_bundle_open(&model->bundle, path, &model->allocator, own.read_into_memory != 0, error);
    if (status == FORELOOP_OK) {
        status = load_parts(model, path, own.read_into_memory != 0, error);
        if (status != FORELOOP_OK)
            (void)foreloop_error_prefix(error, status, "%.200s", path);
    }
    if (status != FORELOOP_OK) {
        foreloop_model_close(model);
        return status;
    }
    *result = model;
    return FORELOOP_OK;
}

foreloop_status foreloop_model_open_memory(foreloop_model **result, const void *data, size_t size,
                                           const foreloop_options *options, foreloop_error *error) {
    if (!result || !data)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_model_open_memory: an argument is NULL");
    foreloop_options own;
    FORELOOP_TRY(foreloop_sized_read(&own, sizeof own, options, "foreloop_options", error));
    foreloop_model *model;
    FORELOOP_TRY(create(&model, &own, error));
    foreloop_status status = foreloop_bundle_open_memory(&model->bundle, data, size, &model->allocator, error);
    if (status == FORELOOP_OK)
        status = load_parts(model, NULL, false, error);
    if (status != FORELOOP_OK) {
        foreloop_model_close(model);
        return status;
    }
    *result = model;
    return FORELOOP_OK;
}

void foreloop_model_close(foreloop_model *model) {
    if (!model)
        return;
    foreloop_allocator allocator = model->allocator;
    foreloop_rollout_plan_close(&model->rollout);
    foreloop_release(&allocator, model->ranker_reads);
    foreloop_release(&allocator, model->ranker_columns);
    foreloop_gbdt_close(model->gbdt);
    foreloop_score_network_close(&model->network);
    foreloop_transition_close(&model->transition);
    foreloop_transformer_close(model->transformer);
    foreloop_manifest_close(&model->manifest);
    foreloop_release(&allocator, model->manifest_text);
    foreloop_bundle_close(&model->bundle);
    foreloop_release(&allocator, model);
}

/* The compiled forms of the texts that have one, by text. */
static foreloop_status compile_texts(const foreloop_model *model, foreloop_buffer compiled[FORELOOP_BUNDLE_TEXTS],
                                     foreloop_error *error) {
    const foreloop_bytes *texts = model->bundle.texts;
    foreloop_buffer *tokenizer = &compiled[FORELOOP_BUNDLE_TOKENIZER], *ranker = &compiled[FORELOOP_BUNDLE_RANKER];
    const foreloop_bytes source = texts[FORELOOP_BUNDLE_TOKENIZER];
    FORELOOP_TRY(foreloop_compiled_begin(tokenizer, error));
    FORELOOP_TRY(foreloop_tokenizer_compile(foreloop_transformer_tokenizer(model->transformer), source.data,
                                            source.size, tokenizer, error));
    foreloop_compiled_finish(tokenizer, FORELOOP_TOKENIZER_COMPILED_VERSION, source);
    FORELOOP_TRY(foreloop_compiled_begin(ranker, error));
    FORELOOP_TRY(foreloop_gbdt_compile(model->gbdt, ranker, error));
    foreloop_compiled_finish(ranker, FORELOOP_GBDT_COMPILED_VERSION, texts[FORELOOP_BUNDLE_RANKER]);
    return FORELOOP_OK;
}

foreloop_status foreloop_model_pack(const char *directory, const char *path, const foreloop_options *options,
                                    foreloop_error *error) {
    if (!directory || !path)
        return foreloop_fail(error, FORELOOP_ERROR_ARGUMENT, "foreloop_model_pack: an argument is NULL");
    foreloop_model *model;
    foreloop_buffer buffers[FORELOOP_BUNDLE_TEXTS];
    foreloop_bytes compiled[FORELOOP_BUNDLE_TEXTS];
    FORELOOP_TRY(foreloop_model_open(&model, directory, options, error));
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++)
        buffers[i] = (foreloop_buffer){.allocator = &model->allocator};
    foreloop_status status = compile_texts(model, buffers, error);
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++)
        compiled[i] = (foreloop_bytes){buffers[i].data, buffers[i].size};
    if (status == FORELOOP_OK)
        status = foreloop_bundle_pack(&model->bundle, compiled, path, error);
    for (int i = 0; i < FORELOOP_BUNDLE_TEXTS; i++)
        foreloop_buffer_close(&buffers[i]);
    foreloop_model_close(model);
    return status;
}

static size_t network_parameters(const foreloop_score_network *network) {
    size_t count = 0;
    for (size_t k = 0; k < network->layer_count; k++)
        count += (network->layers[k].in + 1) * network->layers[k].out;
    return count;
}

void foreloop_model_get_info(const foreloop_model *model, foreloop_model_info *info) {
    if (!model || !info)
        return;
    foreloop_model_info full = {.fingerprint = model->fingerprint,
                                .latent_size = model->manifest.latent_size,
                                .kind_count = model->manifest.vocabulary.kind_count,
                                .feature_count = model->manifest.plan.count,
                                .tree_count = model->gbdt_info.tree_count,
                                .text_rule = model->manifest.text_rule,
                                .manifest = model->manifest_text,
                                .manifest_length = model->bundle.texts[FORELOOP_BUNDLE_MANIFEST].size,
                                .network_parameters = network_parameters(&model->network)};
    foreloop_sized_write(info, &full, sizeof full);
}

const char *foreloop_model_kind_name(const foreloop_model *model, size_t index) {
    return model && index < model->manifest.vocabulary.kind_count ? model->manifest.vocabulary.kinds[index].name : NULL;
}

const char *foreloop_model_slot_name(const foreloop_model *model, size_t kind, size_t slot) {
    if (!model || kind >= model->manifest.vocabulary.kind_count ||
        slot >= model->manifest.vocabulary.kinds[kind].slot_count)
        return NULL;
    return model->manifest.vocabulary.kinds[kind].slots[slot].name;
}

const char *foreloop_model_feature_name(const foreloop_model *model, size_t index) {
    return model && index < model->manifest.plan.count ? model->manifest.plan.features[index].name : NULL;
}

const foreloop_transformer *foreloop_model_transformer(const foreloop_model *model) {
    return model ? model->transformer : NULL;
}

const foreloop_gbdt *foreloop_model_gbdt(const foreloop_model *model) {
    return model ? model->gbdt : NULL;
}
