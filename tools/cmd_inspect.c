/* foreloop inspect: what a file holds, or what this machine is. */
#include "common/alloc.h"
#include "common/bytes.h"
#include "common/file.h"
#include "common/json.h"
#include "facts.h"
#include "input.h"
#include "output.h"
#include <inttypes.h>
#include <string.h>

typedef struct inspect_options {
    const char *path;
    bool cpu, json;
} inspect_options;

static const cli_option options[] = {
    {"cpu", 0, CLI_FLAG, offsetof(inspect_options, cpu), NULL, "Show this machine as models see it."},
    {"json", 0, CLI_FLAG, offsetof(inspect_options, json), NULL,
     "Print one JSON object; that of --cpu is what rank --hardware reads."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- This machine ---- */

static void cpu_fact(fact_sheet *facts, const input_hardware_field *field, double value) {
    char text[OUTPUT_NUMBER_SIZE] = "unknown";
    size_t length = strlen(field->name);
    if (value > 0 && length > 6 && strcmp(field->name + length - 6, "_bytes") == 0)
        (void)output_bytes(value, text);
    else if (value > 0 && strcmp(field->name, "clock_hz") == 0)
        (void)snprintf(text, sizeof text, "%.2f GHz", value / 1e9);
    else if (value > 0)
        (void)snprintf(text, sizeof text, "%.0f", value);
    facts_number(facts, field->name, value, text);
}

/* The names of instruction sets. */
static void instruction_fact(fact_sheet *facts, const char *name, unsigned features) {
    char text[128] = "";
    size_t length = 0;
    for (unsigned bit = 1; bit <= FORELOOP_CPU_AMX_INT8; bit <<= 1)
        if (features & bit)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? " " : "",
                                       foreloop_cpu_feature_name((foreloop_cpu_feature)bit));
    facts_text(facts, name, length ? text : "none");
}

static int inspect_cpu(bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_hardware hardware;
    fact_sheet facts;
    foreloop_hardware_init(&hardware, sizeof hardware);
    if (foreloop_hardware_detect(&hardware, &error) != FORELOOP_OK)
        return cli_fail("%s", error.message);
    facts_begin(&facts, json);
    if (!json) { /* JSON is what rank --hardware reads */
        foreloop_options amx;
        foreloop_options_init(&amx, sizeof amx);
        amx.use_amx = 1;
        instruction_fact(&facts, "instructions", foreloop_cpu_features_detect());
        instruction_fact(&facts, "instructions_used", foreloop_cpu_features_chosen(NULL));
        instruction_fact(&facts, "instructions_used_with_amx", foreloop_cpu_features_chosen(&amx));
    }
    for (const input_hardware_field *field = input_hardware_fields; field->name; field++)
        cpu_fact(&facts, field, input_hardware_get(&hardware, field));
    return facts_print(&facts);
}

/* ---- Trees, tokenizer, transformer ---- */

static void count_fact(fact_sheet *facts, const char *name, size_t count) {
    facts_number(facts, name, (double)count, NULL);
}

static void gbdt_facts(fact_sheet *facts, const foreloop_gbdt *gbdt) {
    foreloop_gbdt_info info = {.size = sizeof info};
    foreloop_gbdt_get_info(gbdt, &info);
    count_fact(facts, "trees", info.tree_count);
    count_fact(facts, "tree_depth", info.max_depth);
    count_fact(facts, "ranker_columns", info.feature_count);
    count_fact(facts, "ranker_outputs", info.output_count);
    facts_text(facts, "objective", info.objective);
    if (info.best_iteration >= 0)
        facts_number(facts, "best_iteration", (double)info.best_iteration, NULL);
    if (*info.notes)
        facts_text(facts, "ranker_notes", info.notes);
}

/* Without a telling key (not `known`), the file may be anything. */
static int inspect_ranker(const char *path, bool known, bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_gbdt *gbdt;
    fact_sheet facts;
    if (foreloop_gbdt_open(&gbdt, path, NULL, &error) != FORELOOP_OK)
        return cli_fail_file(known ? "cannot open the ranker" : "not a bundle, checkpoint, tokenizer or ranker", path,
                             error.message);
    facts_begin(&facts, json);
    facts_text(&facts, "file", path);
    facts_text(&facts, "type", "ranker");
    gbdt_facts(&facts, gbdt);
    foreloop_gbdt_close(gbdt);
    return facts_print(&facts);
}

static int inspect_tokenizer(const char *path, bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_tokenizer *tokenizer;
    fact_sheet facts;
    if (foreloop_tokenizer_open(&tokenizer, path, NULL, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the tokenizer", path, error.message);
    facts_begin(&facts, json);
    facts_text(&facts, "file", path);
    facts_text(&facts, "type", "tokenizer");
    count_fact(&facts, "token_ids", foreloop_tokenizer_vocabulary_size(tokenizer));
    foreloop_tokenizer_close(tokenizer);
    return facts_print(&facts);
}

static void transformer_facts(fact_sheet *facts, const foreloop_transformer *transformer) {
    count_fact(facts, "hidden_size", foreloop_transformer_hidden_size(transformer));
    count_fact(facts, "embedding_size", foreloop_transformer_embedding_size(transformer));
    count_fact(facts, "token_ids", foreloop_tokenizer_vocabulary_size(foreloop_transformer_tokenizer(transformer)));
}

static int inspect_checkpoint(const char *path, bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_transformer *transformer;
    fact_sheet facts;
    if (foreloop_transformer_open(&transformer, path, NULL, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the checkpoint", path, error.message);
    facts_begin(&facts, json);
    facts_text(&facts, "directory", path);
    facts_text(&facts, "type", "checkpoint");
    transformer_facts(&facts, transformer);
    foreloop_transformer_close(transformer);
    return facts_print(&facts);
}

/* ---- Bundles ---- */

/* The features by what stands before the first dot of their names: "z 256, length 1, count 24". */
static void feature_fact(fact_sheet *facts, const foreloop_model *model, size_t count) {
    struct {
        const char *name;
        size_t length, count;
    } groups[16];
    size_t group_count = 0, used = 0;
    char text[480] = "";
    for (size_t i = 0; i < count; i++) {
        const char *name = foreloop_model_feature_name(model, i);
        size_t length = strcspn(name, "."), group = 0;
        while (group < group_count && (groups[group].length != length || memcmp(groups[group].name, name, length) != 0))
            group++;
        if (group == sizeof groups / sizeof *groups)
            break;
        if (group == group_count) {
            groups[group].name = name;
            groups[group].length = length;
            groups[group].count = 0;
            group_count++;
        }
        groups[group].count++;
    }
    for (size_t i = 0; i < group_count && used < sizeof text; i++) {
        int written = snprintf(text + used, sizeof text - used, "%s%.*s %zu", i ? ", " : "",
                               FORELOOP_QUOTED(groups[i].name, groups[i].length), groups[i].count);
        used += written > 0 ? (size_t)written : 0;
    }
    facts_text(facts, "feature_groups", text);
}

static int inspect_bundle(const char *path, bool json) {
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model *model;
    char text[OUTPUT_NUMBER_SIZE];
    fact_sheet facts;
    double start = cli_clock();
    int status = input_model_open(&model, path, NULL);
    if (status != CLI_DONE)
        return status;
    double seconds = cli_clock() - start;
    foreloop_model_get_info(model, &info);
    facts_begin(&facts, json);
    facts_text(&facts, "model", path);
    facts_text(&facts, "type", "bundle");
    (void)snprintf(text, sizeof text, "%016" PRIx64, info.fingerprint);
    facts_text(&facts, "fingerprint", text);
    facts_number(&facts, "seconds_to_open", seconds, output_seconds(seconds, text));
    count_fact(&facts, "latent_size", info.latent_size);
    facts_number(&facts, "text_rule", info.text_rule, NULL);
    transformer_facts(&facts, foreloop_model_transformer(model));
    count_fact(&facts, "action_kinds", info.kind_count);
    count_fact(&facts, "features", info.feature_count);
    feature_fact(&facts, model, info.feature_count);
    gbdt_facts(&facts, foreloop_model_gbdt(model));
    if (info.network_parameters)
        count_fact(&facts, "score_network_parameters", info.network_parameters);
    facts_manifest(&facts, info.manifest, info.manifest_length);
    status = facts_print(&facts);
    foreloop_model_close(model);
    return status;
}

/* ---- What a file is ---- */

static bool has_file(const char *directory, const char *name) {
    char *path = foreloop_path_join(cli_allocator(), directory, name);
    bool exists = path && foreloop_path_exists(path);
    foreloop_release(cli_allocator(), path);
    return exists;
}

/* The length of a safetensors header, then the header's brace. */
static bool is_packed(const foreloop_file *file) {
    return file->size > 9 && file->data[8] == '{' && foreloop_load_le64(file->data) <= file->size - 8;
}

typedef enum file_type { FILE_UNKNOWN, FILE_RANKER, FILE_TOKENIZER, FILE_MANIFEST } file_type;

/* Tells JSON files apart by their first telling key; whatever has none is left to the reader of rankers, which knows
 * most formats and says what is wrong. */
static file_type json_type(const foreloop_file *file) {
    static const struct {
        const char *key;
        file_type type;
    } telling[] = {
        {"added_tokens", FILE_TOKENIZER}, {"pre_tokenizer", FILE_TOKENIZER}, {"post_processor", FILE_TOKENIZER},
        {"text_rule", FILE_MANIFEST},     {"format_version", FILE_MANIFEST}, {"learner", FILE_RANKER},
    };
    file_type type = FILE_UNKNOWN;
    foreloop_json json;
    foreloop_text key;
    bool found = false;
    foreloop_json_open(&json, cli_allocator(), file->data, file->size, "", NULL);
    if (foreloop_json_peek(&json) == FORELOOP_JSON_ARRAY)
        type = FILE_RANKER; /* a dump */
    else if (foreloop_json_object(&json) == FORELOOP_OK)
        while (!found && foreloop_json_key(&json, &key) == FORELOOP_OK && key.text) {
            for (size_t i = 0; !found && i < sizeof telling / sizeof *telling; i++)
                if (foreloop_text_is(key, telling[i].key)) {
                    type = telling[i].type;
                    found = true;
                }
            if (!found && foreloop_json_skip(&json) != FORELOOP_OK)
                break;
        }
    foreloop_json_close(&json);
    return type;
}

static int inspect_file(const char *path, bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_file file;
    file_type type;
    bool packed;
    if (foreloop_file_open(&file, path, cli_allocator(), false, &error) != FORELOOP_OK)
        return cli_fail_file("cannot open the model", path, error.message);
    packed = is_packed(&file);
    type = packed ? FILE_UNKNOWN : json_type(&file);
    foreloop_file_close(&file);
    if (packed)
        return inspect_bundle(path, json);
    if (type == FILE_TOKENIZER)
        return inspect_tokenizer(path, json);
    if (type == FILE_MANIFEST)
        return cli_fail("%s is the manifest of a bundle: name the bundle's directory", path);
    return inspect_ranker(path, type == FILE_RANKER, json);
}

/* Any file that only bundles have makes the directory one, so that an incomplete bundle is told what it lacks. */
static int inspect_directory(const char *path, bool json) {
    static const char *const telling[] = {"model.json", "transition.safetensors", "score_network.safetensors",
                                          "encoder.safetensors", "ranker.json"};
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (has_file(path, telling[i]))
            return inspect_bundle(path, json);
    if (has_file(path, "config.json"))
        return inspect_checkpoint(path, json);
    return cli_fail("%s is neither a bundle (it has no model.json) nor a checkpoint (it has no config.json)", path);
}

static int run(int argc, char **argv) {
    inspect_options given = {.path = NULL};
    int result;
    if (!cli_parse(&command_inspect, argc, argv, &given, &result))
        return result;
    if (given.path && given.cpu)
        return cli_fail_usage(&command_inspect, "a model and --cpu exclude each other");
    if (!given.path && !given.cpu)
        return cli_fail_usage(&command_inspect, "name a model, or give --cpu");
    if (given.cpu)
        return inspect_cpu(given.json);
    return foreloop_path_is_directory(given.path) ? inspect_directory(given.path, given.json)
                                                  : inspect_file(given.path, given.json);
}

const cli_command command_inspect = {
    .name = "inspect",
    .summary = "Show what a model holds, or this machine.",
    .usage = "MODEL | --cpu [--json]",
    .description = "MODEL is a model bundle (a directory or a packed file), a Hugging Face checkpoint's directory,\n"
                   "a tokenizer.json, or a ranker of XGBoost. Of a bundle it shows sizes, the action kinds with\n"
                   "their slots, features, trees, the score network, and how it was trained and tested.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(inspect_options, path),
    .run = run,
};
