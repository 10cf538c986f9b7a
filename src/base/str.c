/* str.c - the growable buffer doubles, so appending byte by byte is cheap; out of memory stops the process (arena.h). */
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

char *str_grow(struct str *s, size_t n)
{
    if (n > SIZE_MAX / 4)
        abort();
    if (s->room - s->len < n + 1) {
        size_t room = s->room ? s->room * 2 : 64;
        while (room - s->len < n + 1)
            room *= 2;
        char *at = realloc(s->at, room);
        if (!at)
            abort();
        s->at = at;
        s->room = room;
    }
    return s->at + s->len;
}

void str_put(struct str *s, const void *bytes, size_t n)
{
    char *to = str_grow(s, n);
    if (n)
        memcpy(to, bytes, n);
    s->len += n;
    s->at[s->len] = 0;
}

void str_text(struct str *s, const char *text) { str_put(s, text, strlen(text)); }

void str_printf(struct str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    vsnprintf(str_grow(s, (size_t)n), (size_t)n + 1, fmt, again);
    va_end(again);
    s->len += (size_t)n;
}

void str_drop(struct str *s, size_t n)
{
    assert(n <= s->len);
    if (!n)
        return;
    memmove(s->at, s->at + n, s->len - n);
    s->len -= n;
    s->at[s->len] = 0;
}

void str_clear(struct str *s)
{
    s->len = 0;
    if (s->at)
        s->at[0] = 0;
}

void str_done(struct str *s)
{
    free(s->at);
    *s = (struct str){ 0 };
}

char *arena_bytes(struct arena *a, const void *at, size_t n)
{
    char *copy = arena_take(a, n + 1, 1);
    if (n)
        memcpy(copy, at, n);
    return copy;
}

char *arena_text(struct arena *a, const char *text)
{
    return text ? arena_bytes(a, text, strlen(text)) : NULL;
}

bool text_copy(char *out, size_t room, const char *text)
{
    size_t n = strlen(text);
    if (n >= room)
        return false;
    memcpy(out, text, n + 1);
    return true;
}

void text_cut(char *out, size_t room, const char *text)
{
    size_t n = text ? strnlen(text, room - 1) : 0;
    if (n)
        memcpy(out, text, n);
    out[n] = 0;
}

char *text_digits(char *end, uint64_t n)
{
    do
        *--end = (char)('0' + n % 10);
    while (n /= 10);
    return end;
}

size_t text_distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MOST || m >= MOST)
        return MOST;
    unsigned char row[MOST + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned char)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned char corner = row[0];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned char above = row[j];
            unsigned best = corner + (a[i - 1] != b[j - 1]);
            best = MIN(best, above + 1u);
            best = MIN(best, row[j - 1] + 1u);
            row[j] = (unsigned char)best;
            corner = above;
        }
    }
    return row[m];
}
