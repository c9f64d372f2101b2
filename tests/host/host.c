/* A host outside of the project: links the installed library and uses it. */
#include <foreloop/foreloop.h>
#include <stdio.h>

int main(int argc, char **argv) {
    foreloop_error error;
    foreloop_model *model = NULL;
    if (argc != 2 || foreloop_model_open(&model, argv[1], NULL, &error) != FORELOOP_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? error.message : "usage: host MODEL");
        return 1;
    }
    foreloop_model_info info = {.size = sizeof info};
    foreloop_model_get_info(model, &info);
    printf("foreloop %s, %zu kinds, %zu features\n", foreloop_version(), info.kind_count, info.feature_count);
    foreloop_model_close(model);
    return info.kind_count ? 0 : 1;
}
