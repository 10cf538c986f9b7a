#include "agent/identity.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include "wire/digest.h"

enum { FILE_LIMIT = 64 << 10, SERVERS_MOST = 64 };

static const struct field rows[] = {
    FIELD(struct identity, id, ID, .prefix = PREFIX_NODE, .required = true),
    FIELD(struct identity, name, TEXT, .max = 128),
    FIELD(struct identity, key, TEXT, .required = true, .max = 128),
    FIELD(struct identity, next_key, TEXT, .max = 128, .when_set = true),
    FIELD(struct identity, pin, TEXT, .max = 128, .when_set = true),
    FIELD(struct identity, servers, TEXTS, .max = SERVERS_MOST, .when_set = true),
    FIELD(struct identity, state, TEXT, .max = 32, .when_set = true),
};
const struct fields identity_fields = FIELDS(identity, rows);

static const char *path_of(const char *data, struct arena *mem)
{
    return arena_printf(mem, "%s/node.json", data);
}

bool identity_load(struct os *os, const char *data, struct arena *mem, struct identity *out,
                   bool *found, struct err *err)
{
    const char *path = path_of(data, mem);
    struct identity me = { 0 };
    struct slice text;
    struct json *doc;
    *found = disk_exists(os, path);
    if (!*found)
        return true;
    if (!file_read(os, path, FILE_LIMIT, mem, &text, err) || !json_parse(text, mem, &doc, err)
        || !bind_read_ours(doc, &identity_fields, mem, &me, NULL, err)
        || (!(me.id && text_given(me.key)) && !err_set(err, RC_BAD_INPUT, "an id and a key are missing")))
        return err_wrap(err, "the node's key in %s", path);
    return *out = me, true;
}

bool identity_store(struct os *os, const char *data, const struct identity *me, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &identity_fields, me);
    str_char(&text, '\n');
    return file_replace(os, path_of(data, mem), (struct slice){ text.at, text.len }, 0600, err);
}

const char *identity_key(struct os *os, struct arena *mem)
{
    unsigned char random[32];
    char *key = arena_take(mem, SECRET_TEXT, 1);
    os_random(os, random, sizeof random);
    secret_make(random, "nk_", key);
    return key;
}

static const char *joining_path(const char *data, struct arena *mem)
{
    return arena_printf(mem, "%s/joining", data);
}

bool identity_joining(struct os *os, const char *data, struct arena *mem, const char **key,
                      struct err *err)
{
    const char *path = joining_path(data, mem);
    struct slice text;
    struct err why = { 0 };
    if (file_read(os, path, SECRET_TEXT, mem, &text, &why) && text.len)
        return *key = arena_bytes(mem, text.at, text.len), true;
    if (why.rc != RC_OK && why.rc != RC_NOT_FOUND)
        return *err = why, false;
    const char *made = identity_key(os, mem);
    return file_replace(os, path, SLICE(made), 0600, err) && (*key = made, true);
}

void identity_joined(struct os *os, const char *data)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err ignored;
    (void)!file_remove(os, joining_path(data, mem), &ignored); /* it is good for nothing else */
}
