/* boost for every processor. */
#include "kernels_cpu/boost_body.h"

void foreloop_boost_ref(foreloop_boost *kernels) {
    fill(kernels, FORELOOP_TIER_REF);
}
