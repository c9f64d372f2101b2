/* For the tokenizer's tests: opening documents and writing results as text, to be compared with what is expected. */
#ifndef FORELOOP_TESTS_TOKENIZER_TEST_H
#define FORELOOP_TESTS_TOKENIZER_TEST_H

#include "tap.h"
#include <foreloop/foreloop.h>
#include <stdio.h>
#include <string.h>

/* Opens a document; a failure counts as a failed check and gives NULL. */
__attribute__((unused)) static foreloop_tokenizer *open_document(const char *document) {
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_error error = {0};
    if (foreloop_tokenizer_open_memory(&tokenizer, document, strlen(document), NULL, &error) != FORELOOP_OK)
        CHECK(0, "open: %s", error.message);
    return tokenizer;
}

/* The tokens of a text, joined by '|'; an error's message when it fails. */
__attribute__((unused)) static void tokens_text(const foreloop_tokenizer *tokenizer, const char *text, size_t length,
                                                int add_special, char *result, size_t capacity) {
    foreloop_encoding *encoding = NULL;
    foreloop_error error = {0};
    size_t used = 0;

    result[0] = '\0';
    if (!tokenizer || foreloop_encoding_create(&encoding, tokenizer, &error) != FORELOOP_OK ||
        foreloop_tokenize(encoding, text, length, add_special, &error) != FORELOOP_OK)
        snprintf(result, capacity, "error: %s", error.message);
    for (size_t i = 0; i < foreloop_encoding_count(encoding) && used < capacity; i++) {
        const char *token = foreloop_tokenizer_token(tokenizer, foreloop_encoding_ids(encoding)[i]);
        used += (size_t)snprintf(result + used, capacity - used, "%s%s", i > 0 ? "|" : "", token ? token : "?");
    }
    foreloop_encoding_close(encoding);
}

/* Checks the tokens and, where `offsets` is not NULL, their places as "0-1 1-3". */
__attribute__((unused)) static void check_tokens(const foreloop_tokenizer *tokenizer, const char *text, size_t length,
                                                 const char *tokens, const char *offsets, const char *name) {
    char found[4096], places[4096] = "";
    foreloop_encoding *encoding = NULL;
    size_t used = 0;

    tokens_text(tokenizer, text, length, 0, found, sizeof found);
    CHECK(strcmp(found, tokens) == 0, "%s: tokens %s, expected %s", name, found, tokens);
    if (!offsets || !tokenizer)
        return;
    if (foreloop_encoding_create(&encoding, tokenizer, NULL) == FORELOOP_OK &&
        foreloop_tokenize(encoding, text, length, 0, NULL) == FORELOOP_OK) {
        const size_t *pairs = foreloop_encoding_offsets(encoding);
        for (size_t i = 0; i < foreloop_encoding_count(encoding) && used < sizeof places; i++)
            used += (size_t)snprintf(places + used, sizeof places - used, "%s%zu-%zu", i > 0 ? " " : "", pairs[2 * i],
                                     pairs[2 * i + 1]);
    }
    CHECK(strcmp(places, offsets) == 0, "%s: offsets %s, expected %s", name, places, offsets);
    foreloop_encoding_close(encoding);
}

#define CHECK_TOKENS(tokenizer, text, tokens, offsets, name)                                                           \
    check_tokens(tokenizer, text, sizeof(text) - 1, tokens, offsets, name)

/* The status and message of opening a document that must fail. */
__attribute__((unused)) static void check_refused(const char *document, foreloop_status status, const char *message,
                                                  const char *name) {
    foreloop_tokenizer *tokenizer = NULL;
    foreloop_error error = {0};
    foreloop_status found = foreloop_tokenizer_open_memory(&tokenizer, document, strlen(document), NULL, &error);
    CHECK(found == status && !tokenizer && strstr(error.message, message), "%s: status %d, \"%s\"", name, (int)found,
          error.message);
    foreloop_tokenizer_close(tokenizer);
}

#define DOCUMENT(model, normalizer, pre_tokenizer, post_processor, added)                                              \
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[" added                               \
    "],\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre_tokenizer ",\"post_processor\":" post_processor           \
    ",\"decoder\":null,\"model\":" model "}"

#define ADDED(id, content, flags) "{\"id\":" id ",\"content\":\"" content "\"," flags "}"
#define FLAGS(single_word, lstrip, rstrip, normalized)                                                                 \
    "\"single_word\":" single_word ",\"lstrip\":" lstrip ",\"rstrip\":" rstrip ",\"normalized\":" normalized           \
    ",\"special\":true"
#define PLAIN FLAGS("false", "false", "false", "false")

#endif
