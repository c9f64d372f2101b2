/* Functions that libforeloop exports although they are no API: for libforeloop_cuda, which is built with it. Headers
 * mark them, so that this name finds them all. */
#ifndef FORELOOP_COMMON_INTERNAL_API_H
#define FORELOOP_COMMON_INTERNAL_API_H

#include <foreloop/foreloop.h>

#define FORELOOP_INTERNAL_API FORELOOP_API

#endif
