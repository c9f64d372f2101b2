/* foreloop tokenize: texts to token ids. */
#include "input.h"
#include "output.h"

typedef struct tokenize_options {
    const char *text;
    const char *model;
    const char *tokenizer;
    bool json, jsonl;
} tokenize_options;

static const cli_option options[] = {
    {"model", 'm', CLI_TEXT, offsetof(tokenize_options, model), "MODEL",
     "The model bundle whose tokenizer is used; without -m and\n--tokenizer the default bundle."},
    {"tokenizer", 0, CLI_TEXT, offsetof(tokenize_options, tokenizer), "FILE", "A tokenizer.json of Hugging Face."},
    {"jsonl", 0, CLI_FLAG, offsetof(tokenize_options, jsonl), NULL,
     "The input holds one JSON string a line, each a text of its own;\none output line for each: the ids. Blank lines "
     "are skipped."},
    {"json", 0, CLI_FLAG, offsetof(tokenize_options, json), NULL,
     "Print an object a text: {\"ids\":[...],\"tokens\":[...]}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

static const char *token_text(const foreloop_tokenizer *tokenizer, uint32_t id) {
    const char *text = foreloop_tokenizer_token(tokenizer, id);
    return text ? text : "";
}

static bool print_json(const foreloop_tokenizer *tokenizer, const foreloop_encoding *encoding) {
    size_t count = foreloop_encoding_count(encoding);
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    cJSON *object = cJSON_CreateObject();
    cJSON *id_array = cJSON_CreateArray();
    cJSON *token_array = cJSON_CreateArray();
    /* Both are added before they are filled, so that the object owns them from here on. */
    bool complete = output_json_add(object, "ids", id_array);
    complete = output_json_add(object, "tokens", token_array) && complete;
    for (size_t i = 0; complete && i < count; i++)
        complete = output_json_append(id_array, output_json_count(ids[i])) &&
                   output_json_append(token_array, cJSON_CreateString(token_text(tokenizer, ids[i])));
    if (complete)
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

static void print_ids(const foreloop_encoding *encoding) {
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    for (size_t i = 0; i < foreloop_encoding_count(encoding); i++)
        printf("%s%lu", i ? " " : "", (unsigned long)ids[i]);
    (void)putchar('\n');
}

static bool print_table(const foreloop_tokenizer *tokenizer, const foreloop_encoding *encoding) {
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    const size_t *offsets = foreloop_encoding_offsets(encoding);
    output_table table;
    output_table_begin(&table, "rrrl");
    output_table_row(&table, OUTPUT_BOLD);
    output_table_cell(&table, "id");
    output_table_cell(&table, "from byte");
    output_table_cell(&table, "to byte");
    output_table_cell(&table, "token");
    for (size_t i = 0; i < foreloop_encoding_count(encoding) && !table.failed; i++) {
        output_table_row(&table, OUTPUT_PLAIN);
        output_table_cell(&table, "%lu", (unsigned long)ids[i]);
        output_table_cell(&table, "%zu", offsets[2 * i]);
        output_table_cell(&table, "%zu", offsets[2 * i + 1]);
        output_table_cell(&table, "%s", token_text(tokenizer, ids[i]));
    }
    return output_table_print(&table, 0);
}

static int tokenize_text(const foreloop_tokenizer *tokenizer, foreloop_encoding *encoding, const char *text,
                         size_t length, const tokenize_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    bool printed = true;
    if (foreloop_tokenize(encoding, text, length, 1, &error) != FORELOOP_OK)
        return cli_fail("cannot tokenize the text: %s", error.message);
    if (given->json)
        printed = print_json(tokenizer, encoding);
    else if (given->jsonl)
        print_ids(encoding);
    else
        printed = print_table(tokenizer, encoding);
    return printed ? CLI_DONE : cli_fail_memory();
}

static int tokenize_all(const foreloop_tokenizer *tokenizer, const tokenize_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_encoding *encoding;
    input_texts *texts;
    int status = input_texts_open(&texts, given->text, given->jsonl);
    if (status != CLI_DONE)
        return status;
    if (foreloop_encoding_create(&encoding, tokenizer, &error) != FORELOOP_OK) {
        input_texts_close(texts);
        return cli_fail("%s", error.message);
    }
    while (output_ok()) {
        const char *text;
        size_t length;
        bool more;
        status = input_texts_next(texts, &text, &length, &more);
        if (status != CLI_DONE || !more)
            break;
        status = tokenize_text(tokenizer, encoding, text, length, given);
        if (status != CLI_DONE)
            break;
    }
    foreloop_encoding_close(encoding);
    input_texts_close(texts);
    return status;
}

static int run(int argc, char **argv) {
    tokenize_options given = {.text = NULL};
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_model *model = NULL;
    int status;

    if (!cli_parse(&command_tokenize, argc, argv, &given, &status))
        return status;
    if (given.model && given.tokenizer)
        return cli_fail_usage(&command_tokenize, "-m and --tokenizer exclude each other");
    if (given.tokenizer) {
        if (foreloop_tokenizer_open(&tokenizer, given.tokenizer, NULL, &error) != FORELOOP_OK)
            return cli_fail("cannot open the tokenizer %s: %s", given.tokenizer, error.message);
        status = tokenize_all(tokenizer, &given);
    } else {
        status = input_model_open(&model, given.model);
        if (status == CLI_DONE)
            status = tokenize_all(foreloop_transformer_tokenizer(foreloop_model_transformer(model)), &given);
    }
    foreloop_tokenizer_close(tokenizer);
    foreloop_model_close(model);
    return status;
}

const cli_command command_tokenize = {
    .name = "tokenize",
    .summary = "Split a text into the tokenizer's tokens.",
    .usage = "[-m MODEL | --tokenizer FILE] [TEXT-FILE|-] [--json] [--jsonl]",
    .description = "Reads a text from TEXT-FILE, or from standard input, and prints its tokens with their ids and\n"
                   "their place in the text, special tokens included. The text is taken as it stands: without the\n"
                   "canonical rule that encode and rank apply to programs.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(tokenize_options, text),
    .run = run,
};
