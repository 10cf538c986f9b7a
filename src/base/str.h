/* str.h - bytes: a growable buffer, and a borrowed slice.
 *
 * A struct str owns malloc'd memory and is always NUL-terminated after its length, so that .at can be read as text.
 * A struct slice owns nothing. */
#pragma once
#include "base/arena.h"

struct slice { const char *at; size_t len; };
#define SLICE(text) ((struct slice){ (text), strlen(text) })

struct str { char *at; size_t len, room; };

void str_put(struct str *s, const void *bytes, size_t n);
void str_text(struct str *s, const char *text);
void str_printf(struct str *s, const char *fmt, ...) PRINTF(2, 3);
char *str_grow(struct str *s, size_t n);            /* room for n more bytes behind len; len is unchanged */
static inline void str_char(struct str *s, char c)
{
    char *to = s->room - s->len < 2 ? str_grow(s, 1) : s->at + s->len;
    to[0] = c;
    to[1] = 0;
    s->len++;
}
void str_drop(struct str *s, size_t n);             /* removes n bytes from the front */
void str_clear(struct str *s);                      /* keeps the memory */
void str_done(struct str *s);
static inline void str_done_auto(struct str *s) { str_done(s); }

char *arena_text(struct arena *a, const char *text);            /* copy; NULL stays NULL */
char *arena_bytes(struct arena *a, const void *at, size_t n);   /* copy with a NUL behind it */
bool text_copy(char *out, size_t room, const char *text);       /* false, and nothing copied, if it does not fit */
void text_cut(char *out, size_t room, const char *text);        /* as much of it as fits; NULL is "" */
char *text_digits(char *end, uint64_t n);                       /* its digits, up to end; where they begin */
size_t text_distance(const char *a, const char *b);             /* Levenshtein, for 'did you mean' */
