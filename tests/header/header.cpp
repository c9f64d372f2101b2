/* The public headers must compile with nothing before it. */
#include <foreloop/foreloop.h>

#include <foreloop/cuda.h>

int main(void) {
    return sizeof(foreloop_error) == 512 ? 0 : 1;
}
