/* foreloop encode: texts to vectors. */
#include "common/alloc.h"
#include "input.h"
#include "output.h"

typedef struct encode_options {
    const char *text;
    const char *model;
    const char *checkpoint;
    const char *precision;
    bool amx, json, jsonl;
} encode_options;

static const cli_option options[] = {
    {"model", 'm', CLI_TEXT, offsetof(encode_options, model), "MODEL",
     "The model bundle, a directory or a packed file; without -m and --hf\nthe default bundle."},
    {"hf", 0, CLI_TEXT, offsetof(encode_options, checkpoint), "DIR",
     "A Hugging Face checkpoint: a directory with config.json,\nmodel.safetensors and tokenizer.json."},
    {"precision", 0, CLI_TEXT, offsetof(encode_options, precision), "NAME",
     "What the encoder multiplies in: f32, bf16, int8 or int8_row; f32\nwithout it."},
    {"amx", 0, CLI_FLAG, offsetof(encode_options, amx), NULL, "Use AMX for bf16 and int8 where the machine has it."},
    {"jsonl", 0, CLI_FLAG, offsetof(encode_options, jsonl), NULL,
     "The input holds one JSON string a line, each a text of its own;\none output line for each. Blank lines are "
     "skipped; the first bad line ends the command."},
    {"json", 0, CLI_FLAG, offsetof(encode_options, json), NULL, "Print an object a text: {\"embedding\":[...]}."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

typedef struct text_encoder {
    foreloop_model *model;             /* NULL with a checkpoint */
    foreloop_transformer *transformer; /* NULL with a model */
    foreloop_encoder *encoder;
    size_t size; /* of the vector */
    float *vector;
} text_encoder;

static int open_encoder(text_encoder *encoder, const encode_options *given) {
    foreloop_error error = {.code = FORELOOP_OK};
    const foreloop_transformer *transformer;
    foreloop_options opening;
    int status = input_model_options(&opening, &command_encode, given->precision, given->amx);
    if (status != CLI_DONE)
        return status;
    if (given->checkpoint) {
        if (foreloop_transformer_open(&encoder->transformer, given->checkpoint, &opening, &error) != FORELOOP_OK)
            return cli_fail_file("cannot open the checkpoint", given->checkpoint, error.message);
        transformer = encoder->transformer;
    } else {
        status = input_model_open(&encoder->model, given->model, &opening);
        if (status != CLI_DONE)
            return status;
        transformer = foreloop_model_transformer(encoder->model);
    }
    encoder->size = foreloop_transformer_embedding_size(transformer);
    encoder->vector = foreloop_allocate(cli_allocator(), encoder->size, sizeof(float));
    if (!encoder->vector)
        return cli_fail_memory();
    if (foreloop_encoder_create(&encoder->encoder, transformer, &error) != FORELOOP_OK)
        return cli_fail("%s", error.message);
    return CLI_DONE;
}

static void close_encoder(text_encoder *encoder) {
    foreloop_encoder_close(encoder->encoder);
    foreloop_transformer_close(encoder->transformer);
    foreloop_model_close(encoder->model);
    foreloop_release(cli_allocator(), encoder->vector);
}

static bool print_vector(const float *vector, size_t size, bool json) {
    cJSON *object;
    if (!json) {
        output_floats(vector, size);
        return true;
    }
    object = cJSON_CreateObject();
    if (output_json_add(object, "embedding", output_json_floats(vector, size)))
        return output_json_line(object);
    cJSON_Delete(object);
    return false;
}

/* A model encodes programs, in their canonical text; a checkpoint encodes the text as it stands. */
static int encode_text(text_encoder *encoder, const char *name, const char *text, size_t length, bool json) {
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_workload *workload = NULL;
    const float *vector = encoder->vector;
    int status = CLI_DONE;
    if (encoder->model) {
        size_t mark = input_mark_length(text, length);
        text += mark;
        length -= mark;
        status = input_check_program(text, length, name);
        if (status != CLI_DONE)
            return status;
        if (foreloop_workload_encode(&workload, encoder->model, encoder->encoder, text, length, &error) != FORELOOP_OK)
            return cli_fail("cannot encode the text: %s", error.message);
        vector = foreloop_workload_latent(workload);
    } else if (foreloop_encode_text(encoder->encoder, text, length, encoder->vector, &error) != FORELOOP_OK) {
        return cli_fail("cannot encode the text: %s", error.message);
    }
    if (!print_vector(vector, encoder->size, json))
        status = cli_fail_memory();
    foreloop_workload_close(workload);
    return status;
}

static int encode_all(text_encoder *encoder, const encode_options *given) {
    input_texts *texts;
    int status = input_texts_open(&texts, given->text, given->jsonl);
    if (status != CLI_DONE)
        return status;
    while (output_ok()) {
        const char *text;
        size_t length;
        bool more;
        status = input_texts_next(texts, &text, &length, &more);
        if (status != CLI_DONE || !more)
            break;
        status = encode_text(encoder, input_texts_name(texts), text, length, given->json);
        if (status != CLI_DONE)
            break;
    }
    input_texts_close(texts);
    return status;
}

static int run(int argc, char **argv) {
    encode_options given = {.text = NULL};
    text_encoder encoder = {.model = NULL};
    int status;

    if (!cli_parse(&command_encode, argc, argv, &given, &status))
        return status;
    if (given.model && given.checkpoint)
        return cli_fail_usage(&command_encode, "-m and --hf exclude each other");
    status = open_encoder(&encoder, &given);
    if (status == CLI_DONE)
        status = encode_all(&encoder, &given);
    close_encoder(&encoder);
    return status;
}

const cli_command command_encode = {
    .name = "encode",
    .summary = "Turn a program's text into its vector.",
    .usage = "[-m MODEL | --hf DIR] [TEXT-FILE|-] [--precision NAME] [--amx] [--json] [--jsonl]",
    .description = "Reads a text from TEXT-FILE, or from standard input, and prints its vector. With a model\n"
                   "bundle the text is a program: it is rewritten by the model's canonical rule first, and the\n"
                   "vector is the latent state that rank starts from. With --hf it is taken as it stands, and\n"
                   "pooled as the checkpoint's sentence-transformers files ask for, by the mean without them.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(encode_options, text),
    .run = run,
};
