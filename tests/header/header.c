/* The public header must compile with nothing before it. */
#include <foreloop/foreloop.h>

int main(void) {
    return sizeof(foreloop_error) == 512 ? 0 : 1;
}
