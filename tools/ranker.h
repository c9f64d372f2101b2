/* The trees of `foreloop predict`: opening them with what a dump leaves out, and fitting columns to them. */
#ifndef FORELOOP_TOOLS_RANKER_H
#define FORELOOP_TOOLS_RANKER_H

#include "input.h"

/* What a dump does not hold. */
typedef struct ranker_options {
    cli_float base_score; /* of every format */
    cli_count num_class, num_parallel_tree;
    const char *objective;
    const char *tree_weights; /* a file of numbers */
} ranker_options;

int ranker_open(foreloop_gbdt **gbdt, const char *path, const ranker_options *given);

/* Fits the matrix to the trees: columns with names are put in the trees' order, those that the trees do not know are
 * dropped with a note. Afterwards the matrix has no names. `path` and `given` are those of ranker_open: trees whose
 * columns are taken by name are opened again where a dump would otherwise assume an order. */
int ranker_fit_columns(foreloop_gbdt **gbdt, const char *path, const ranker_options *given, input_matrix *matrix);

#endif
