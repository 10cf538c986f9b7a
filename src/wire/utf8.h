/* utf8.h - how long is the character at this place? Refuses overlong forms, surrogates and what lies above U+10FFFF. */
#pragma once
#include "base/base.h"

static inline bool utf8_tail(const char *at, size_t i) { return ((unsigned char)at[i] & 0xc0) == 0x80; }

/* The bytes of the character at `at`, of which n may be read; 0: not UTF-8. */
static inline size_t utf8_len(const char *at, size_t n)
{
    unsigned char a = n ? (unsigned char)at[0] : 0xff, b = n > 1 ? (unsigned char)at[1] : 0;
    if (a < 0x80)
        return 1;
    if (a >= 0xc2 && a <= 0xdf)
        return n >= 2 && utf8_tail(at, 1) ? 2 : 0;
    if ((a & 0xf0) == 0xe0)
        return n >= 3 && utf8_tail(at, 1) && utf8_tail(at, 2) && !(a == 0xe0 && b < 0xa0)
                && !(a == 0xed && b > 0x9f) ? 3 : 0;
    if (a >= 0xf0 && a <= 0xf4)
        return n >= 4 && utf8_tail(at, 1) && utf8_tail(at, 2) && utf8_tail(at, 3) && !(a == 0xf0 && b < 0x90)
                && !(a == 0xf4 && b > 0x8f) ? 4 : 0;
    return 0;
}

static inline size_t utf8_put(char *out, uint32_t c)    /* c is a scalar value; at most 4 bytes */
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)), 3;
    out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63));
    return 4;
}
