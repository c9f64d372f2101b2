/* foreloop tokenize: texts to token ids. */
#include "input.h"
#include "output.h"
#include <inttypes.h>

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
     "are skipped; the first bad line ends the command."},
    {"json", 0, CLI_FLAG, offsetof(tokenize_options, json), NULL,
     "Print an object a text: {\"ids\":[...],\"tokens\":[...]}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { TOKEN_SIZE = 512 }; /* a longer one is cut in the table */

static const char *token_text(const foreloop_tokenizer *tokenizer, uint32_t id) {
    const char *text = foreloop_tokenizer_token(tokenizer, id);
    return text ? text : "";
}

/* Piece by piece: a tree of all tokens would take many times the text's size. */
static bool print_json(const foreloop_tokenizer *tokenizer, const foreloop_encoding *encoding) {
    size_t count = foreloop_encoding_count(encoding);
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    printf("{\"ids\":[");
    for (size_t i = 0; i < count && output_ok(); i++)
        printf("%s%" PRIu32, i ? "," : "", ids[i]);
    printf("],\"tokens\":[");
    for (size_t i = 0; i < count && output_ok(); i++) {
        printf("%s", i ? "," : "");
        if (!output_json_text(token_text(tokenizer, ids[i])))
            return false;
    }
    printf("]}\n");
    return true;
}

static void print_ids(const foreloop_encoding *encoding) {
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    for (size_t i = 0; i < foreloop_encoding_count(encoding); i++)
        printf("%s%" PRIu32, i ? " " : "", ids[i]);
    (void)putchar('\n');
}

static int digits(uint64_t number) {
    int count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* Line by line, in columns whose widths a first pass finds. */
static void print_table(const foreloop_tokenizer *tokenizer, const foreloop_encoding *encoding) {
    static const char from[] = "from byte", to[] = "to byte";
    const size_t count = foreloop_encoding_count(encoding);
    const uint32_t *ids = foreloop_encoding_ids(encoding);
    const size_t *offsets = foreloop_encoding_offsets(encoding);
    int id_width = sizeof "id" - 1, from_width = sizeof from - 1, to_width = sizeof to - 1;
    for (size_t i = 0; i < count; i++) {
        id_width = larger(id_width, digits(ids[i]));
        from_width = larger(from_width, digits(offsets[2 * i]));
        to_width = larger(to_width, digits(offsets[2 * i + 1]));
    }
    printf("%s%*s  %*s  %*s  token%s\n", output_style_begin(OUTPUT_BOLD), id_width, "id", from_width, from, to_width,
           to, output_style_end(OUTPUT_BOLD));
    for (size_t i = 0; i < count && output_ok(); i++) {
        char token[TOKEN_SIZE];
        (void)snprintf(token, sizeof token, "%s", token_text(tokenizer, ids[i]));
        cli_clean(token);
        printf("%*" PRIu32 "  %*zu  %*zu%s%s\n", id_width, ids[i], from_width, offsets[2 * i], to_width,
               offsets[2 * i + 1], *token ? "  " : "", token);
    }
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
        print_table(tokenizer, encoding);
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
            return cli_fail_file("cannot open the tokenizer", given.tokenizer, error.message);
        status = tokenize_all(tokenizer, &given);
    } else {
        status = input_model_open(&model, given.model, NULL);
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
