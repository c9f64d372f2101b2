/* The tokenizer of a Hugging Face checkpoint, from whichever files it comes in. */
#ifndef FORELOOP_MODEL_CHECKPOINT_TOKENIZER_H
#define FORELOOP_MODEL_CHECKPOINT_TOKENIZER_H

#include "transformer/config.h"
#include <foreloop/foreloop.h>

/* Opens DIRECTORY/tokenizer.json; without it vocab.json and merges.txt as RoBERTa's tokenizer reads them, or vocab.txt
 * as BERT's does, by the architecture. tokenizer_config.json is heeded there for add_prefix_space, do_lower_case,
 * strip_accents and tokenize_chinese_chars. */
foreloop_status foreloop_checkpoint_tokenizer_open(foreloop_tokenizer **tokenizer, const char *directory,
                                                   foreloop_architecture architecture, const foreloop_options *options,
                                                   foreloop_error *error);

#endif
