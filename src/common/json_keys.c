/* Objects whose keys stand but once: of two, a reader would silently take one. */
#include "common/hash.h"
#include "common/json.h"

foreloop_status foreloop_json_key_once(foreloop_json *json, foreloop_json_keys *keys, foreloop_text *key) {
    foreloop_text own;
    FORELOOP_TRY(foreloop_json_key(json, &own));
    if (own.text) {
        const uint64_t hash = foreloop_hash(FORELOOP_HASH_START, own.text, own.length);
        for (size_t i = 0; i < keys->count; i++)
            if (keys->hashes[i] == hash)
                return foreloop_json_fail(json, "the key '%.*s' stands twice in an object",
                                          FORELOOP_QUOTED(own.text, own.length));
        if (keys->count == sizeof keys->hashes / sizeof *keys->hashes)
            return foreloop_json_fail(json, "an object has more than %zu keys", keys->count);
        keys->hashes[keys->count++] = hash;
    }
    *key = own;
    return FORELOOP_OK;
}

foreloop_status foreloop_json_fields(foreloop_json *json, foreloop_json_field read, void *user) {
    foreloop_json_keys keys;
    keys.count = 0;
    FORELOOP_TRY(foreloop_json_object(json));
    for (;;) {
        foreloop_text key;
        FORELOOP_TRY(foreloop_json_key_once(json, &keys, &key));
        if (!key.text)
            return FORELOOP_OK;
        FORELOOP_TRY(read(user, key));
    }
}
