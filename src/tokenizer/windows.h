/* The truncation and padding sections of tokenizer.json. */
#ifndef FORELOOP_TOKENIZER_WINDOWS_H
#define FORELOOP_TOKENIZER_WINDOWS_H

#include "tokenizer/component.h"

typedef struct foreloop_truncation {
    bool present;
    bool from_file;    /* else from the caller's options */
    bool from_end;     /* windows are counted from the end of the text */
    bool second_only;  /* cuts the second of two texts: an error for one that is too long */
    size_t max_length; /* with the special tokens */
    size_t stride;     /* tokens that neighbouring windows share */
} foreloop_truncation;

typedef struct foreloop_padding {
    bool present;
    bool on_left;
    bool fixed; /* to `length`; else to the first window's */
    size_t length;
    size_t multiple; /* of which the length is made one; 0: as it is */
    uint32_t id;
} foreloop_padding;

/* Each reads the next value, its section or null. */
foreloop_status foreloop_truncation_read(foreloop_truncation *truncation, foreloop_json *json);
foreloop_status foreloop_padding_read(foreloop_padding *padding, foreloop_json *json);

#endif
