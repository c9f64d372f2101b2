/* Post-processors: special tokens around the text's tokens, and offsets without white space. */
#ifndef FORELOOP_TOKENIZER_POST_PROCESS_H
#define FORELOOP_TOKENIZER_POST_PROCESS_H

#include "tokenizer/aligned_text.h"
#include "tokenizer/component.h"

typedef struct foreloop_template_item {
    bool is_sequence; /* all tokens of the text; else one special token */
    uint32_t id;
} foreloop_template_item;

typedef struct foreloop_post_processor {
    bool *trims; /* each trims offsets once; its value is add_prefix_space */
    size_t trim_count;
    size_t trim_capacity;
    foreloop_template_item *items; /* the result in order */
    size_t item_count;
    size_t item_capacity;
} foreloop_post_processor;

/* Reads the next value, a post-processor or null. The arrays are the caller's to release by the arena's allocator, on
 * failure too. */
foreloop_status foreloop_post_processor_read(foreloop_post_processor *processor, foreloop_json *json,
                                             foreloop_arena *arena);

/* Takes white space off the ends of a token's span, of whose text `leading` and `trailing` characters are white space.
 * `input` is the whole text, `is_first` whether this is its first token. */
foreloop_span foreloop_post_processor_trim(const foreloop_post_processor *processor, const char *input, size_t length,
                                           foreloop_span span, uint32_t leading, uint32_t trailing, bool is_first);

#endif
