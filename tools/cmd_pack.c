/* foreloop pack: a bundle directory into one file. */
#include "cli.h"
#include "output.h"
#include <inttypes.h>

typedef struct pack_options {
    const char *directory;
    const char *output;
} pack_options;

static const cli_option options[] = {
    {"output", 'o', CLI_TEXT, offsetof(pack_options, output), "FILE", "The packed file; replaced whole if it exists."},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

static int run(int argc, char **argv) {
    pack_options given = {NULL, NULL};
    foreloop_error error = {.code = FORELOOP_OK};
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model *model;
    int status;

    if (!cli_parse(&command_pack, argc, argv, &given, &status))
        return status;
    if (!given.directory)
        return cli_fail_usage(&command_pack, "name the bundle's directory");
    if (!given.output)
        return cli_fail_usage(&command_pack, "name the file to write with -o FILE");
    if (foreloop_model_pack(given.directory, given.output, NULL, &error) != FORELOOP_OK)
        return cli_fail("cannot pack %s: %s", given.directory, error.message);
    if (foreloop_model_open(&model, given.output, NULL, &error) != FORELOOP_OK)
        return cli_fail("%s was written but cannot be opened: %s", given.output, error.message);
    foreloop_model_get_info(model, &info);
    printf("%s: packed, fingerprint %016" PRIx64 "\n", given.output, info.fingerprint);
    foreloop_model_close(model);
    return CLI_DONE;
}

const cli_command command_pack = {
    .name = "pack",
    .summary = "Pack a model bundle's directory into one file.",
    .usage = "DIR -o FILE",
    .description = "Checks the model bundle in the directory DIR and writes it as one file, which opens\n"
                   "faster and has the same fingerprint.",
    .options = options,
    .takes_operand = true,
    .operand_offset = offsetof(pack_options, directory),
    .run = run,
};
