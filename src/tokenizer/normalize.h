/* Normalizers: rewriting the text before it is cut (lower case, accents, normal forms, replacements). */
#ifndef FORELOOP_TOKENIZER_NORMALIZE_H
#define FORELOOP_TOKENIZER_NORMALIZE_H

#include "tokenizer/aligned_text.h"
#include "tokenizer/component.h"

/* What tokenizer.json composes from objects and sequences is one flat list of steps here. */
typedef enum foreloop_normalize_kind {
    FORELOOP_NORMALIZE_BERT_CLEAN,   /* drops control characters, turns white space into ' ' */
    FORELOOP_NORMALIZE_SPACE_CJK,    /* puts spaces around ideographs */
    FORELOOP_NORMALIZE_FORM,         /* NFC, NFD, NFKC, NFKD */
    FORELOOP_NORMALIZE_DROP_CLASSES, /* drops the characters of `classes` */
    FORELOOP_NORMALIZE_LOWERCASE,
    FORELOOP_NORMALIZE_STRIP,   /* white space at the ends */
    FORELOOP_NORMALIZE_REPLACE, /* every `pattern` by `content` */
    FORELOOP_NORMALIZE_PREPEND  /* `content` before every piece that is not empty */
} foreloop_normalize_kind;

typedef struct foreloop_normalize_step {
    foreloop_normalize_kind kind;
    bool compose, compatible; /* FORM */
    bool left, right;         /* STRIP */
    uint32_t classes;         /* DROP_CLASSES */
    foreloop_text pattern, content;
} foreloop_normalize_step;

/* What BertNormalizer does, for one pass. */
typedef struct foreloop_bert_rule {
    bool clean, space_cjk, lowercase;
    uint32_t drop; /* with decomposition; 0: neither */
} foreloop_bert_rule;

typedef struct foreloop_normalizer {
    foreloop_normalize_step *steps;
    size_t count;
    size_t capacity;
    bool is_bert; /* the steps are those of `bert` */
    foreloop_bert_rule bert;
} foreloop_normalizer;

/* Adds the steps of the next value, a normalizer or null. Texts live in the arena; `steps` is the caller's to release
 * by the arena's allocator, on failure too. */
foreloop_status foreloop_normalizer_read(foreloop_normalizer *normalizer, foreloop_json *json, foreloop_arena *arena);

/* Rewrites every piece. */
foreloop_status foreloop_normalizer_run(const foreloop_normalizer *normalizer, foreloop_workspace *work,
                                        foreloop_error *error);

/* normalize_bert.c: the rule that makes up the steps, false when they are others. */
bool foreloop_bert_rule_find(foreloop_bert_rule *rule, const foreloop_normalize_step *steps, size_t count);
/* Rewrites every piece, or changes nothing and leaves *done false. */
foreloop_status foreloop_bert_rule_run(const foreloop_bert_rule *rule, foreloop_workspace *work, bool *done,
                                       foreloop_error *error);

/* normal_form.c: appends the piece's NFC, NFD, NFKC or NFKD to next_text. */
foreloop_status foreloop_normal_form(foreloop_workspace *work, size_t begin, size_t end, bool compose, bool compatible,
                                     foreloop_error *error);

#endif
