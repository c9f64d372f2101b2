/* foreloop tokenize: texts to token ids. */
#include "common/alloc.h"
#include "input.h"
#include "output.h"
#include <inttypes.h>
#include <string.h>

typedef struct tokenize_options {
    const char *text;
    const char *model;
    const char *tokenizer, *merges;
    cli_count window, overlap;
    bool json, jsonl, no_special, strict, as_file, decode;
} tokenize_options;

static const cli_option options[] = {
    {"model", 'm', CLI_TEXT, offsetof(tokenize_options, model), "MODEL",
     "The model bundle whose tokenizer is used; without -m and\n--tokenizer the default bundle."},
    {"tokenizer", 0, CLI_TEXT, offsetof(tokenize_options, tokenizer), "FILE",
     "A tokenizer.json of Hugging Face, a vocab.txt of BERT (uncased),\nor with --merges a vocab.json."},
    {"merges", 0, CLI_TEXT, offsetof(tokenize_options, merges), "FILE", "The merges.txt of a vocab.json."},
    {"no-special", 0, CLI_FLAG, offsetof(tokenize_options, no_special), NULL, "Leave the special tokens out."},
    {"strict", 0, CLI_FLAG, offsetof(tokenize_options, strict), NULL,
     "Refuse text that is not UTF-8, instead of taking U+FFFD for\nwhat is not."},
    {"as-file", 0, CLI_FLAG, offsetof(tokenize_options, as_file), NULL, "Truncate and pad as tokenizer.json asks for."},
    {"window", 0, CLI_POSITIVE, offsetof(tokenize_options, window), "N",
     "Cut the text into windows of N tokens, special ones included."},
    {"overlap", 0, CLI_COUNT, offsetof(tokenize_options, overlap), "N",
     "Neighbouring windows share N tokens of the text."},
    {"decode", 0, CLI_FLAG, offsetof(tokenize_options, decode), NULL,
     "The other way: the input is ids between blanks or line ends;\nprint their text."},
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
static bool print_json(const foreloop_tokenizer *tokenizer, const foreloop_window *window) {
    printf("{\"ids\":[");
    for (size_t i = 0; i < window->count && output_ok(); i++)
        printf("%s%" PRIu32, i ? "," : "", window->ids[i]);
    printf("],\"tokens\":[");
    for (size_t i = 0; i < window->count && output_ok(); i++) {
        printf("%s", i ? "," : "");
        if (!output_json_text(token_text(tokenizer, window->ids[i])))
            return false;
    }
    printf("]}\n");
    return true;
}

static void print_ids(const foreloop_window *window) {
    for (size_t i = 0; i < window->count; i++)
        printf("%s%" PRIu32, i ? " " : "", window->ids[i]);
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
static void print_table(const foreloop_tokenizer *tokenizer, const foreloop_window *window) {
    static const char from[] = "from byte", to[] = "to byte";
    const size_t count = window->count;
    const uint32_t *ids = window->ids;
    const size_t *offsets = window->offsets;
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
    const foreloop_tokenize_options chosen = {.size = sizeof chosen,
                                              .no_special = given->no_special,
                                              .strict = given->strict,
                                              .as_file = given->as_file,
                                              .window_length = (size_t)given->window.value,
                                              .window_overlap = (size_t)given->overlap.value};
    foreloop_window window = {.size = sizeof window};
    foreloop_error error = {.code = FORELOOP_OK};
    bool printed = true;
    if (foreloop_tokenize_with(encoding, text, length, &chosen, &error) != FORELOOP_OK)
        return cli_fail("cannot tokenize the text: %s", error.message);
    for (size_t i = 0; printed && output_ok() && foreloop_encoding_window(encoding, i, &window); i++) {
        if (given->json) {
            printed = print_json(tokenizer, &window);
        } else if (given->jsonl) {
            print_ids(&window);
        } else {
            if (i > 0)
                (void)putchar('\n');
            print_table(tokenizer, &window);
        }
    }
    return printed ? CLI_DONE : cli_fail_memory();
}

/* ---- Decoding ---- */

/* The ids of the text, which end the list where they are not numbers any more. */
static int read_ids(const input_file *file, uint32_t *ids, size_t *count) {
    const char *at = file->data, *end = file->data + file->size;
    *count = 0;
    for (;;) {
        uint64_t id = 0;
        const char *begin;
        while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
            at++;
        if (at == end)
            return CLI_DONE;
        for (begin = at; at < end && *at >= '0' && *at <= '9' && id <= UINT32_MAX; at++)
            id = 10 * id + (uint64_t)(*at - '0');
        if (at == begin || id > UINT32_MAX)
            return cli_fail("%s: byte %zu: expected a token's id", file->name, (size_t)(begin - file->data));
        ids[(*count)++] = (uint32_t)id;
    }
}

static int decode_ids(const foreloop_tokenizer *tokenizer, const uint32_t *ids, size_t count, bool skip_special) {
    foreloop_error error = {.code = FORELOOP_OK};
    size_t length = 0;
    char *text;
    if (foreloop_tokenizer_decode(tokenizer, ids, count, skip_special, NULL, 0, &length, &error) != FORELOOP_OK)
        return cli_fail("cannot decode the ids: %s", error.message);
    text = foreloop_allocate(cli_allocator(), length, 1);
    if (!text)
        return cli_fail_memory();
    if (foreloop_tokenizer_decode(tokenizer, ids, count, skip_special, text, length, &length, &error) == FORELOOP_OK)
        (void)fwrite(text, 1, length, stdout);
    foreloop_release(cli_allocator(), text);
    return CLI_DONE;
}

static int decode_all(const foreloop_tokenizer *tokenizer, const tokenize_options *given) {
    input_file file = {NULL, 0, NULL};
    int status = input_read_bytes(&file, given->text, INPUT_TEXT_LIMIT);
    uint32_t *ids = status == CLI_DONE ? foreloop_allocate(cli_allocator(), file.size / 2 + 1, sizeof *ids) : NULL;
    size_t count = 0;
    if (status == CLI_DONE)
        status = ids ? read_ids(&file, ids, &count) : cli_fail_memory();
    if (status == CLI_DONE)
        status = decode_ids(tokenizer, ids, count, given->no_special);
    foreloop_release(cli_allocator(), ids);
    input_close(&file);
    return status;
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

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static foreloop_status open_tokenizer(foreloop_tokenizer **tokenizer, const tokenize_options *given,
                                      foreloop_error *error) {
    if (given->merges)
        return foreloop_tokenizer_open_bpe(tokenizer, given->tokenizer, given->merges, NULL, error);
    if (ends_with(given->tokenizer, ".txt"))
        return foreloop_tokenizer_open_wordpiece(tokenizer, given->tokenizer, NULL, error);
    return foreloop_tokenizer_open(tokenizer, given->tokenizer, NULL, error);
}

static int check_options(const tokenize_options *given) {
    if (given->model && given->tokenizer)
        return cli_fail_usage(&command_tokenize, "-m and --tokenizer exclude each other");
    if (given->merges && !given->tokenizer)
        return cli_fail_usage(&command_tokenize, "--merges goes with --tokenizer");
    if (given->as_file && given->window.given)
        return cli_fail_usage(&command_tokenize, "--as-file and --window exclude each other");
    if (given->overlap.given && !given->window.given)
        return cli_fail_usage(&command_tokenize, "--overlap goes with --window");
    if (given->decode && (given->json || given->jsonl || given->as_file || given->window.given || given->strict))
        return cli_fail_usage(&command_tokenize, "--decode goes with --no-special alone");
    return CLI_DONE;
}

static int run(int argc, char **argv) {
    tokenize_options given = {.text = NULL};
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_tokenizer *own = NULL;
    const foreloop_tokenizer *tokenizer = NULL;
    foreloop_model *model = NULL;
    int status;

    if (!cli_parse(&command_tokenize, argc, argv, &given, &status))
        return status;
    status = check_options(&given);
    if (status != CLI_DONE)
        return status;
    if (given.tokenizer) {
        if (open_tokenizer(&own, &given, &error) != FORELOOP_OK)
            return cli_fail_file("cannot open the tokenizer", given.tokenizer, error.message);
        tokenizer = own;
    } else {
        status = input_model_open(&model, given.model, NULL);
        if (status == CLI_DONE)
            tokenizer = foreloop_transformer_tokenizer(foreloop_model_transformer(model));
    }
    if (status == CLI_DONE)
        status = given.decode ? decode_all(tokenizer, &given) : tokenize_all(tokenizer, &given);
    foreloop_tokenizer_close(own);
    foreloop_model_close(model);
    return status;
}

const cli_command command_tokenize = {
    .name = "tokenize",
    .summary = "Split a text into the tokenizer's tokens.",
    .usage = "[-m MODEL | --tokenizer FILE [--merges FILE]] [TEXT-FILE|-] [--json] [--jsonl]\n"
             "                         [--no-special] [--strict] [--as-file | --window N [--overlap N]] [--decode]",
    .description = "Reads a text from TEXT-FILE, or from standard input, and prints its tokens with their ids and\n"
                   "their place in the text, special tokens included. The text is taken as it stands: without the\n"
                   "canonical rule that encode and rank apply to programs. Of several windows each is printed as\n"
                   "a text of its own.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(tokenize_options, text),
    .run = run,
};
