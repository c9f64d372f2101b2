/* The options of training with their defaults filled in, and the checks of them that need no data. */
#ifndef FORELOOP_RANKER_OPTIONS_H
#define FORELOOP_RANKER_OPTIONS_H

#include "common/error.h"

enum { FORELOOP_RANKER_MAX_DEPTH = 24, FORELOOP_RANKER_MAX_GRADE = 31 };

foreloop_status foreloop_ranker_options_read(foreloop_ranker_options *own, const foreloop_ranker_options *given,
                                             foreloop_error *error);

#endif
