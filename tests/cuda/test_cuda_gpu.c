/* Opening a GPU, its memory, and the answers where there is none. */
#include "cuda_test.h"
#include <stdlib.h>
#include <string.h>

static void without_gpu(void) {
    foreloop_error error = {.message = ""};
    foreloop_cuda *gpu = NULL;
    size_t count = 77;
    const foreloop_status status = foreloop_cuda_device_count(&count, &error);
    CHECK(status == FORELOOP_OK || (status == FORELOOP_ERROR_DEVICE && count == 77 && error.message[0]),
          "counting GPUs: %s", error.message);
    if (status == FORELOOP_OK && count > 0)
        return;
    CHECK(foreloop_cuda_open(&gpu, NULL, &error) == FORELOOP_ERROR_DEVICE && !gpu && strlen(error.message) > 20,
          "opening one that is not there: %s", error.message);
}

static void bad_arguments(void) {
    foreloop_cuda_options options;
    foreloop_cuda *gpu = NULL;
    foreloop_error error = {.message = ""};
    CHECK(foreloop_cuda_open(NULL, NULL, &error) == FORELOOP_ERROR_ARGUMENT, "open: NULL");
    CHECK(foreloop_cuda_device_count(NULL, NULL) == FORELOOP_ERROR_ARGUMENT, "device_count: NULL");
    memset(&options, 0, sizeof options);
    CHECK(foreloop_cuda_open(&gpu, &options, &error) == FORELOOP_ERROR_ARGUMENT && !gpu, "options without a size: %s",
          error.message);
    foreloop_cuda_options_init(&options, sizeof options);
    options.arena = &options;
    CHECK(foreloop_cuda_open(&gpu, &options, &error) == FORELOOP_ERROR_ARGUMENT && !gpu, "arena without a size: %s",
          error.message);
    foreloop_cuda_options_init(&options, sizeof options);
    options.device = -1;
    CHECK(foreloop_cuda_open(&gpu, &options, &error) == FORELOOP_ERROR_DEVICE && !gpu, "GPU -1: %s", error.message);
    options.device = 1000;
    CHECK(foreloop_cuda_open(&gpu, &options, &error) == FORELOOP_ERROR_DEVICE && !gpu, "GPU 1000: %s", error.message);
    foreloop_cuda_close(NULL);
    foreloop_cuda_get_info(NULL, NULL);
}

static void with_gpu(void) {
    foreloop_cuda *gpu = NULL;
    foreloop_error error;
    foreloop_hardware hardware;
    foreloop_cuda_info info = {.size = sizeof info};
    CHECK(foreloop_cuda_open(&gpu, NULL, &error) == FORELOOP_OK, "opened");
    if (!gpu)
        return;
    foreloop_cuda_get_info(gpu, &info);
    CHECK(info.name && info.name[0] && info.compute_capability >= 80 && info.sm_count > 0 && info.memory_bytes > 0 &&
              info.allocated_bytes == 0,
          "%s, compute capability %d, %zu SMs", info.name, info.compute_capability, info.sm_count);
    foreloop_hardware_init(&hardware, sizeof hardware);
    hardware.cores = 5;
    CHECK(foreloop_cuda_hardware(gpu, &hardware, &error) == FORELOOP_OK && hardware.sm_count == (double)info.sm_count &&
              hardware.shared_memory_bytes == (double)info.shared_memory_bytes && hardware.cores == 0,
          "its hardware features");
    CHECK(foreloop_cuda_hardware(gpu, NULL, &error) == FORELOOP_ERROR_ARGUMENT, "hardware: NULL");
    foreloop_cuda_close(gpu);
}

int main(void) {
    without_gpu();
    bad_arguments();
    if (cuda_test_has_gpu())
        with_gpu();
    return tap_done();
}
