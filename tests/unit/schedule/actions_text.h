/* Renders the actions of a record as lines "done kind name=value ...", so that tests can compare text. */
#ifndef FORELOOP_TESTS_ACTIONS_TEXT_H
#define FORELOOP_TESTS_ACTIONS_TEXT_H

#include "common/number.h"
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <string.h>

typedef struct text_writer {
    char *text;
    size_t capacity, size;
} text_writer;

static void write_text(text_writer *writer, const char *text) {
    size_t length = strlen(text);
    if (writer->size + length + 1 > writer->capacity)
        length = writer->capacity - writer->size - 1;
    memcpy(writer->text + writer->size, text, length);
    writer->size += length;
    writer->text[writer->size] = '\0';
}

/* Returns 0 when an argument is given twice in one action. */
static int actions_text(const foreloop_record *record, char *text, size_t capacity) {
    text_writer writer = {text, capacity, 0};
    int distinct = 1;
    text[0] = '\0';
    for (size_t i = 0; i < record->action_count; i++) {
        const foreloop_action *action = &record->actions[i];
        char done[24];
        snprintf(done, sizeof done, "%u ", (unsigned)record->instructions[i]);
        write_text(&writer, done);
        write_text(&writer, action->kind);
        for (size_t k = 0; k < action->argument_count; k++) {
            const foreloop_argument *argument = &action->arguments[k];
            char number[FORELOOP_NUMBER_TEXT_SIZE + 1];
            number[foreloop_format_double(argument->number, number)] = '\0';
            write_text(&writer, " ");
            write_text(&writer, argument->name);
            write_text(&writer, "=");
            write_text(&writer, argument->text ? argument->text : number);
            for (size_t other = 0; other < k; other++)
                distinct = distinct && strcmp(action->arguments[other].name, argument->name) != 0;
        }
        write_text(&writer, "\n");
    }
    return distinct;
}

#endif
