/* Measured candidates for `foreloop train-ranker`: rows of features, by group, from tables or from tuning records. */
#ifndef FORELOOP_TOOLS_MEASURED_H
#define FORELOOP_TOOLS_MEASURED_H

#include "input.h"

typedef struct measured {
    float *rows; /* [count][columns] */
    size_t row_capacity;
    double *values; /* [count]: times in seconds, or relevances */
    uint64_t *ids;  /* [count]: rows of one group have equal ones */
    size_t count, value_capacity, id_capacity;
    size_t columns;
    bool relevances;
    size_t *groups; /* [group_count + 1]: when the rows have been arranged */
    size_t group_count;
    const char **names; /* [columns], NULL when they have none */
    foreloop_arena texts;

    foreloop_model *model; /* of tuning records, else NULL */
    uint64_t skipped;      /* lines without a usable measurement */
} measured;

/* Tables: `groups` names a file of one number a row, equal for rows of a group; `values` one of times, or of
 * relevances. */
typedef struct measured_tables {
    const char *features, *groups, *values;
    bool relevances;
} measured_tables;
int measured_read_tables(measured *data, const measured_tables *tables);

/* Tuning records and the programs that they belong to. */
typedef struct measured_records {
    const char *model, *hardware; /* NULL: the default bundle, this machine */
    cli_texts workloads, records; /* alike in number */
} measured_records;
int measured_read_records(measured *data, const measured_records *given);

/* Adds a row, whose features the caller writes to *row. */
int measured_add(measured *data, double value, uint64_t id, float **row);
/* Brings the rows of each group together, and fills in `groups`. */
int measured_arrange(measured *data);
void measured_close(measured *data);

#endif
