/* bind_value.c - texts into members: the types of field.h, their limits and the classes of texts.
 *
 * Every refusal is one clause that completes "FIELD: ...". Knows nothing of documents and paths. */
#include "wire/bind_value.h"
#include "base/id.h"
#include "base/when.h"
#include "wire/utf8.h"
#include <stdio.h>

static bool in_class(char c, const char *also, bool upper)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper && c >= 'A' && c <= 'Z')
           || (c && strchr(also, c));
}

static bool all_in_class(struct slice t, const char *also, bool upper)
{
    for (size_t i = 0; i < t.len; i++)
        if (!in_class(t.at[i], also, upper))
            return false;
    return t.len > 0;
}

static bool is_name(struct slice t)
{
    return t.len <= 63 && all_in_class(t, "._-", false) && in_class(t.at[0], "", false)
        && in_class(t.at[t.len - 1], "", false);
}

static bool is_label(struct slice t)
{
    return all_in_class(t, "._/-", true) && in_class(t.at[0], "", true);
}

static bool is_path(struct slice t)
{
    if (!t.len || t.at[0] != '/')
        return false;
    for (size_t i = 0; i + 2 < t.len; i++)
        if (memcmp(t.at + i, "/..", 3) == 0 && (i + 3 == t.len || t.at[i + 3] == '/'))
            return false;
    return true;
}

static bool is_digest(struct slice t)
{
    if (t.len != 7 + 64 || memcmp(t.at, "sha256:", 7) != 0)
        return false;
    for (size_t i = 7; i < t.len; i++)
        if (!strchr("0123456789abcdef", t.at[i]))
            return false;
    return true;
}

static const struct class {
    const char *name, *regex, *looks;
    bool (*is)(struct slice);
} classes[] = {
    { "name", "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
      "1 to 63 of a-z, 0-9, '.', '_' and '-', with a letter or digit at both ends", is_name },
    { "label", "^[A-Za-z0-9][A-Za-z0-9._/-]*$",
      "letters, digits, '.', '_', '/' and '-', with a letter or digit first", is_label },
    { "path", "^/", "an absolute path without '..'", is_path },
    { "digest", "^sha256:[0-9a-f]{64}$", "sha256: and 64 hex digits", is_digest },
};

static const struct class *class_of(const char *name)
{
    for (size_t i = 0; i < COUNT(classes); i++)
        if (text_is(classes[i].name, name))
            return &classes[i];
    return NULL;
}

const char *value_pattern(const char *class)
{
    const struct class *c = class_of(class);
    return c ? c->regex : NULL;
}

static bool printable(struct slice t)
{
    for (size_t i = 0, n; i < t.len; i += n) {
        unsigned char c = (unsigned char)t.at[i];
        n = utf8_len(t.at + i, t.len - i);
        if (!n || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f
            || (n == 2 && c == 0xc2 && (unsigned char)t.at[i + 1] < 0xa0))
            return false;
    }
    return true;
}

bool value_text_ok(struct slice text, size_t most, const char *pattern, struct err *err)
{
    const struct class *c = class_of(pattern);
    assert(c || !pattern);
    if (text.len > most)
        return err_set(err, RC_BAD_INPUT, "%zu bytes are too many, at most %zu", text.len, most);
    if (!printable(text))
        return err_set(err, RC_BAD_INPUT,
                       "must be printable UTF-8 text; a control character is in it");
    if (c && !c->is(text))
        return err_set(err, RC_BAD_INPUT, "'%.*s' is not %s", (int)MIN(text.len, 80u), text.at,
                       c->looks);
    return true;
}

static const char *limit_text(const struct field *f, int64_t n, char out[static WHEN_TEXT])
{
    if (f->type == F_DURATION && n >= 0)
        return span_text(out, n);
    if (f->type == F_TIME)
        return when_text(out, n);
    if (f->type == F_MILLI && n % 1000)
        snprintf(out, WHEN_TEXT, "%lld.%03lld", (long long)n / 1000,
                 (long long)(n < 0 ? -n : n) % 1000);
    else
        snprintf(out, WHEN_TEXT, "%lld%s", (long long)(f->type == F_MILLI ? n / 1000 : n),
                 f->type == F_MIB ? " MiB" : "");
    return out;
}

bool value_in_limits(const struct field *f, int64_t n, struct err *err)
{
    char least[WHEN_TEXT], most[WHEN_TEXT];
    if ((!f->min && !f->max) || (n >= f->min && (n <= f->max || f->max < f->min)))
        return true;
    if (f->max < f->min)        /* only a least value was given */
        return err_set(err, RC_BAD_INPUT, "must be at least %s", limit_text(f, f->min, least));
    return err_set(err, RC_BAD_INPUT, "must be between %s and %s", limit_text(f, f->min, least),
                   limit_text(f, f->max, most));
}

static bool refuse(const struct field *f, struct slice t, struct err *err)
{
    int len = (int)MIN(t.len, 60u);
    if (f->named && f->words)
        return err_set(err, RC_BAD_INPUT, "'%.*s' is not %s, nor one of %s", len, t.at,
                       bind_kinds[f->type].expects, f->words);
    return err_set(err, RC_BAD_INPUT, "'%.*s' is not %s", len, t.at, bind_kinds[f->type].expects);
}

/* The parsers of base/ want a text that ends where it ends. */
static bool clean(struct slice t) { return t.len < TEXT_MAX && !memchr(t.at, 0, t.len); }

static bool set_number(const struct field *f, int64_t n, void *to, struct err *err)
{
    if (!value_in_limits(f, n, err))
        return false;
    *(int64_t *)to = n;
    return true;
}

static bool read_bool(const struct field *f, struct slice t, struct arena *mem, void *to,
                      struct err *err)
{
    static const struct { const char *word; bool yes; } words[] = {
        { "true", true }, { "false", false }, { "yes", true }, { "no", false }, { "on", true }, { "off", false },
        { "1", true }, { "0", false },
    };
    (void)mem;
    for (size_t i = 0; i < COUNT(words); i++)
        if (t.len == strlen(words[i].word) && strncasecmp(t.at, words[i].word, t.len) == 0)
            return *(bool *)to = words[i].yes, true;
    return refuse(f, t, err);
}

static bool read_int(const struct field *f, struct slice t, struct arena *mem, void *to,
                     struct err *err)
{
    (void)mem;
    char word[32];
    int64_t named;
    if (f->named && t.len < sizeof word) {
        memcpy(word, t.at, t.len);
        word[t.len] = 0;
        if (f->named(word, &named))
            return set_number(f, named, to, err);
    }
    bool minus = t.len && t.at[0] == '-';
    uint64_t n = 0, most = (uint64_t)INT64_MAX + minus;
    for (size_t i = minus; i < t.len; i++) {
        unsigned d = (unsigned char)t.at[i] - '0';
        if (d > 9 || n > (most - d) / 10)
            return refuse(f, t, err);
        n = n * 10 + d;
    }
    return t.len > minus ? set_number(f, (int64_t)(minus ? 0 - n : n), to, err) : refuse(f, t, err);
}

static bool read_text(const struct field *f, struct slice t, struct arena *mem, void *to,
                      struct err *err)
{
    if (!value_text_ok(t, f->max > 0 ? (size_t)f->max : TEXT_MAX, f->pattern, err))
        return false;
    if (f->min > 0 && t.len < (size_t)f->min)
        return err_set(err, RC_BAD_INPUT,
                       t.len ? "%zu bytes are too few, at least %lld" : "must not be empty", t.len,
                       (long long)f->min);
    *(const char **)to = arena_bytes(mem, t.at, t.len);
    return true;
}

static bool read_id(const struct field *f, struct slice t, struct arena *mem, void *to,
                    struct err *err)
{
    (void)mem;
    char example[ID_TEXT], prefix[9] = "";
    const char *want = f->prefix;
    int64_t id;
    if (!want && clean(t)) {    /* any kind of thing */
        const char *dash = memrchr(t.at, '-', t.len);
        if (dash && (size_t)(dash - t.at) < sizeof prefix)
            memcpy(prefix, t.at, (size_t)(dash - t.at));
        want = prefix;
    }
    if (!clean(t) || !id_parse(t.at, want, &id) || id == 0)  /* 0 is written as null */
        return err_set(err, RC_BAD_INPUT, "'%.*s' is not an id; one looks like %s",
                       (int)MIN(t.len, 60u), t.at,
                       id_text(example, f->prefix ? f->prefix : "job", 0x0d3d7f2a51c9b64e));
    *(int64_t *)to = id;
    return true;
}

static bool read_time(const struct field *f, struct slice t, struct arena *mem, void *to,
                      struct err *err)
{
    (void)mem;
    int64_t n;
    return clean(t) && when_parse(t.at, &n) ? set_number(f, n, to, err) : refuse(f, t, err);
}

static bool read_duration(const struct field *f, struct slice t, struct arena *mem, void *to,
                          struct err *err)
{
    (void)mem;
    int64_t n;
    return clean(t) && span_parse(t.at, &n) ? set_number(f, n, to, err) : refuse(f, t, err);
}

static bool read_mib(const struct field *f, struct slice t, struct arena *mem, void *to,
                     struct err *err)
{
    (void)mem;
    int64_t n;
    return clean(t) && mib_parse(t.at, &n) ? set_number(f, n, to, err) : refuse(f, t, err);
}

static bool read_milli(const struct field *f, struct slice t, struct arena *mem, void *to,
                       struct err *err)
{
    (void)mem;
    int64_t n;
    return clean(t) && milli_parse(t.at, &n) ? set_number(f, n, to, err) : refuse(f, t, err);
}

static bool read_enum(const struct field *f, struct slice t, struct arena *mem, void *to,
                      struct err *err)
{
    (void)mem;
    char all[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < f->names->count; i++) {
        const char *name = f->names->at[i];
        if (!name)
            continue;
        if (strlen(name) == t.len && memcmp(name, t.at, t.len) == 0)
            return *(int *)to = (int)i, true;
        if (n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", name);
    }
    return err_set(err, RC_BAD_INPUT, "'%.*s' is none of: %s", (int)MIN(t.len, 40u), t.at, all);
}

size_t value_list_max(const struct field *f) { return f->max > 0 ? (size_t)f->max : LIST_MAX; }

static bool room_for_more(const struct field *f, size_t count, struct err *err)
{
    return count < value_list_max(f)
           || err_set(err, RC_BAD_INPUT, "at most %zu entries", value_list_max(f));
}

/* A list with room behind its last entry; those that this file grows have room up to the next power of two. */
static void *grown(const void *at, size_t count, size_t size, struct arena *mem)
{
    size_t room = 1;
    while (room <= count)
        room *= 2;
    void *more = arena_take(mem, room, size);
    if (count)
        memcpy(more, at, count * size);
    return more;
}

bool value_add_text(const struct field *f, struct slice t, struct arena *mem, struct texts *to,
                    struct err *err)
{
    if (!room_for_more(f, to->count, err) || !value_text_ok(t, ENTRY_MAX, f->pattern, err))
        return false;
    if (!(to->count & (to->count - 1)))
        to->at = grown(to->at, to->count, sizeof *to->at, mem);
    to->at[to->count++] = arena_bytes(mem, t.at, t.len);
    return true;
}

bool value_add_pair(const struct field *f, struct slice key, struct slice value, struct arena *mem,
                    struct pairs *to, struct err *err)
{
    if (!room_for_more(f, to->count, err))
        return false;
    if (!key.len || memchr(key.at, '=', key.len))
        return err_set(err, RC_BAD_INPUT, "the key '%.*s' is empty or holds '='",
                       (int)MIN(key.len, 60u), key.at);
    if (!value_text_ok(key, TEXT_MAX, f->pattern, err)
        || !value_text_ok(value, ENTRY_MAX, NULL, err))
        return false;
    for (size_t i = 0; i < to->count; i++)
        if (strlen(to->at[i].key) == key.len && memcmp(to->at[i].key, key.at, key.len) == 0)
            return err_set(err, RC_BAD_INPUT, "'%s' is given twice", to->at[i].key);
    if (!(to->count & (to->count - 1)))
        to->at = grown(to->at, to->count, sizeof *to->at, mem);
    to->at[to->count++]
        = (struct pair){ arena_bytes(mem, key.at, key.len), arena_bytes(mem, value.at, value.len) };
    return true;
}

bool value_add_assignment(const struct field *f, struct slice t, struct arena *mem,
                          struct pairs *to, struct err *err)
{
    const char *equals = memchr(t.at, '=', t.len);
    if (!equals)
        return err_set(
            err, RC_BAD_INPUT,
            "'%.*s' has no value; write KEY=VALUE, nothing is taken from your own environment",
            (int)MIN(t.len, 60u), t.at);
    struct slice key = { t.at, (size_t)(equals - t.at) };
    return value_add_pair(f, key, (struct slice){ equals + 1, t.len - key.len - 1 }, mem, to, err);
}

/* Whoever made the list before may have left no room in it. */
static bool read_texts(const struct field *f, struct slice t, struct arena *mem, void *to,
                       struct err *err)
{
    struct texts *list = to,
                 more = { grown(list->at, list->count, sizeof *list->at, mem), list->count };
    return value_add_text(f, t, mem, &more, err) && (*list = more, true);
}

static bool read_pairs(const struct field *f, struct slice t, struct arena *mem, void *to,
                       struct err *err)
{
    struct pairs *list = to,
                 more = { grown(list->at, list->count, sizeof *list->at, mem), list->count };
    return value_add_assignment(f, t, mem, &more, err) && (*list = more, true);
}

const struct kind bind_kinds[FIELD_TYPE_COUNT] = {
    [F_BOOL] = { "true or false", sizeof(bool), .read = read_bool },
    [F_INT] = { "a whole number", sizeof(int64_t), .number = true, .read = read_int },
    [F_TEXT] = { "a text", sizeof(char *), .quoted = true, .number = true, .read = read_text },
    [F_ID] = { "an id", sizeof(int64_t), .quoted = true, .read = read_id },
    [F_TIME] = { "a time such as 2026-11-15T13:22:41Z", sizeof(int64_t), .quoted = true, .read = read_time },
    [F_DURATION] = { "a duration such as 90, 10m, 1h30m, 2d or 1:30:00", sizeof(int64_t), .quoted = true, .number = true, .read = read_duration },
    [F_MIB] = { "a size such as 512MB, 16GB or 16 (GB)", sizeof(int64_t), .quoted = true, .number = true, .read = read_mib },
    [F_MILLI] = { "a number with at most three decimals", sizeof(int64_t), .quoted = true, .number = true, .read = read_milli },
    [F_ENUM] = { "one of the known words", sizeof(int), .quoted = true, .read = read_enum },
    [F_TEXTS] = { "a text or a list of texts", sizeof(struct texts), .quoted = true, .number = true, .read = read_texts },
    [F_PAIRS] = { "names with values", sizeof(struct pairs), .quoted = true, .read = read_pairs },
    [F_OBJECT] = { "an object", 0 },
    [F_OBJECTS] = { "a list of objects", sizeof(struct objects) },
    [F_INLINE] = { "an object", 0 },
    [F_JSON] = { "a JSON value", sizeof(char *) },
};

size_t value_size(const struct field *f)
{
    return bind_kinds[f->type].size ? bind_kinds[f->type].size : f->sub->size;
}

bool value_is_zero(const struct field *f, const void *at)
{
    const char *p = at;
    if (f->type == F_TEXT || f->type == F_JSON)
        return !text_given(*(const char *const *)at);
    if (f->type == F_TEXTS || f->type == F_PAIRS || f->type == F_OBJECTS)
        return !((const struct objects *)at)->count;
    int64_t n;
    if (value_size(f) == sizeof n)
        return memcpy(&n, at, sizeof n), !n;
    for (size_t i = 0; i < value_size(f); i++)
        if (p[i])
            return false;
    return true;
}
