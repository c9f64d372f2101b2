/* Rows of any layout: one value, one walk through a tree. For what need not be as fast as plain predictions. */
#ifndef FORELOOP_GBDT_ROWS_H
#define FORELOOP_GBDT_ROWS_H

#include "gbdt/model.h"

/* The rows of a call with their defaults filled in, checked against what the trees read. `call` is for messages. */
foreloop_status foreloop_gbdt_take_rows(foreloop_gbdt_rows *taken, const foreloop_gbdt *gbdt,
                                        const foreloop_gbdt_rows *given, const char *call, foreloop_error *error);

/* The value of a feature that some tree reads, NaN when it is missing. */
float foreloop_gbdt_value(const foreloop_gbdt_rows *rows, size_t row, uint32_t feature);

/* Whether x goes right at a split: 1 or 0. */
uint32_t foreloop_gbdt_goes_right(const foreloop_gbdt *gbdt, const foreloop_gbdt_node *node, float x);

#endif
