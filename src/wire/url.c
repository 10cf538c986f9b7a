/* url.c - percent-encoding, declared in http_parse.h. A decoded text is UTF-8 without NUL, or it is refused. */
#include "wire/http_parse.h"
#include "wire/utf8.h"

static int hex(char c)
{
    int low = c | 32;
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool url_decode(struct slice in, bool plus_is_space, struct arena *mem, char **out)
{
    char *text = arena_take(mem, in.len + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        char c = in.at[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%') {
            if (in.len - i < 3 || hex(in.at[i + 1]) < 0 || hex(in.at[i + 2]) < 0)
                return false;
            c = (char)(hex(in.at[i + 1]) << 4 | hex(in.at[i + 2]));
            i += 2;
        }
        if (!c)
            return false;
        text[n++] = c;
    }
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = utf8_len(text + i, n - i)))
            return false;
    *out = text;
    return true;
}

void url_encode(struct str *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || strchr("-._~", c))
            str_char(out, *text);
        else
            str_put(out, (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3);
    }
}
