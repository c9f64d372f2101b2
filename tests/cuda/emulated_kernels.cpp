/* All kernels, for the emulation. */
#include "emulation.h"
