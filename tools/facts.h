/* Named facts for `foreloop inspect`: a table for people, one JSON object for programs. */
#ifndef FORELOOP_TOOLS_FACTS_H
#define FORELOOP_TOOLS_FACTS_H

#include "output.h"

typedef struct fact_sheet {
    bool json, failed;
    cJSON *object;      /* with json */
    output_table table; /* without */
    output_table kinds; /* of the manifest */
    output_table training;
} fact_sheet;

void facts_begin(fact_sheet *facts, bool json);
/* Names are those of the JSON object; the table shows them with blanks for underscores. */
void facts_text(fact_sheet *facts, const char *name, const char *text);
/* `text` is what the table shows; NULL: the number. */
void facts_number(fact_sheet *facts, const char *name, double value, const char *text);
/* The action kinds and the training section of a model.json. */
void facts_manifest(fact_sheet *facts, const char *manifest, size_t length);
/* Prints and frees; returns the exit status. */
int facts_print(fact_sheet *facts);

#endif
