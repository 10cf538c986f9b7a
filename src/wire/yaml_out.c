/* yaml_out.c - a tree as block style YAML for people. A text is left bare only where every reader takes it for that text;
 * everything doubtful is quoted, so that YAML 1.1 readers elsewhere agree with ours. */
#include "wire/utf8.h"
#include "wire/yaml.h"
#include <strings.h>

enum { LONG_KEY = 200 };        /* a simple key may have 1024 bytes with its escapes */

static void indent_by(struct str *out, size_t n)
{
    while (n--)
        str_char(out, ' ');
}

static uint32_t code_point(const char *at, size_t n)
{
    uint32_t c = (unsigned char)at[0];
    if (n == 1)
        return c;
    c &= 0xffu >> (n + 1);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)at[i] & 63);
    return c;
}

static bool printable(uint32_t c)       /* as YAML means it, without its odd line ends */
{
    return (c >= 0x20 && c < 0x7f)
           || (c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe
               && c != 0xffff);
}

static void put_quoted(struct str *out, const char *at, size_t len)
{
    str_char(out, '"');
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_len(at + i, len - i);
        uint32_t c = n ? code_point(at + i, n) : 0xfffd;
        n = n ? n : 1;
        if (c == '"' || c == '\\')
            str_printf(out, "\\%c", (char)c);
        else if (c == '\n')
            str_text(out, "\\n");
        else if (printable(c) && c != 0xfffd)
            str_put(out, at + i, n);
        else
            str_printf(out, "\\u%04x", c ? c : 0xfffd);
    }
    str_char(out, '"');
}

static bool bare(const char *at, size_t len)
{
    static const char *const words[]
        = { "true", "false", "null", "yes", "no", "on", "off", "y", "n" };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcasecmp(at, words[i]) == 0)
            return false;
    for (size_t i = 0; i < len; i++) {
        char c = at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '_';
        bool inner = (c >= '0' && c <= '9') || (c && strchr(".@+=-,", c));
        bool between
            = (c == ' ' || c == ':') && i + 1 < len && at[i + 1] != ' ' && at[i + 1] != ':';
        if (!letter && (i == 0 || !(inner || between)))
            return false;
    }
    return len > 0;
}

/* Lines that a literal block gives back byte by byte. */
static bool literal(const char *at, size_t len)
{
    if (!memchr(at, '\n', len) || at[0] == ' ' || at[0] == '\n' || at[0] == '\t'
        || (len > 1 && at[len - 1] == '\n' && at[len - 2] == '\n'))
        return false;
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_len(at + i, len - i);
        if (!n || (at[i] != '\n' && !printable(code_point(at + i, n))))
            return false;
    }
    return true;
}

static void put_literal(struct str *out, const char *at, size_t len, size_t indent)
{
    str_text(out, at[len - 1] == '\n' ? "|" : "|-");
    for (size_t i = 0; i < len;) {
        const char *end = memchr(at + i, '\n', len - i);
        size_t n = end ? (size_t)(end - at) - i : len - i;
        str_char(out, '\n');
        if (n)
            indent_by(out, indent);
        str_put(out, at + i, n);
        i += n + 1;
    }
}

static void put_value(struct str *out, const struct json *v, size_t indent, bool behind_dash);

static void put_text(struct str *out, const struct json *v, size_t indent)
{
    const char *at = v->text ? v->text : "";
    size_t len = v->len ? v->len : strlen(at);
    AUTO(str_done) struct str json = { 0 };
    if (v->plain)                       /* as JSON prints it: a number, a boolean or a text */
        json_print(&json, v);
    if (json.len && json.at[0] != '"')
        str_put(out, json.at, json.len);
    else if (bare(at, len))
        str_put(out, at, len);
    else if (indent && literal(at, len))
        put_literal(out, at, len, indent);
    else
        put_quoted(out, at, len);
}

static void put_key(struct str *out, const char *name, size_t indent)
{
    size_t len = strlen(name);
    bool is_long = len > LONG_KEY;
    str_text(out, is_long ? "? " : "");
    if (bare(name, len))
        str_put(out, name, len);
    else
        put_quoted(out, name, len);
    if (is_long) {
        str_char(out, '\n');
        indent_by(out, indent);
    }
    str_char(out, ':');
}

static void put_group(struct str *out, const struct json *v, size_t indent, bool behind_dash)
{
    for (const struct json *m = v->first; m; m = m->next) {
        bool group = (m->type == JSON_LIST || m->type == JSON_OBJECT) && m->first;
        if (m != v->first || !behind_dash) {
            if (out->len && out->at[out->len - 1] != '\n')
                str_char(out, '\n');
            indent_by(out, indent);
        }
        if (v->type == JSON_OBJECT)
            put_key(out, m->name, indent);
        else
            str_char(out, '-');
        bool goes_on = !group || v->type == JSON_LIST;
        if (goes_on)
            str_char(out, ' ');
        put_value(out, m, indent + 2, goes_on);
    }
}

static void put_value(struct str *out, const struct json *v, size_t indent, bool behind_dash)
{
    if (v->type == JSON_TEXT)
        put_text(out, v, indent);
    else if ((v->type == JSON_LIST || v->type == JSON_OBJECT) && v->first)
        put_group(out, v, indent, behind_dash);
    else
        json_print(out, v);
}

void yaml_print(struct str *out, const struct json *value)
{
    size_t from = out->len;
    put_value(out, value, 0, true);
    if (out->len == from || out->at[out->len - 1] != '\n')
        str_char(out, '\n');
}
