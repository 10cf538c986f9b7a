/* base.h - the words every file may use. */
#pragma once
#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNT(a)      (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
#define PRINTF(f, v)  __attribute__((format(printf, f, v)))
#define MUST_CHECK    __attribute__((warn_unused_result))
#define AUTO(fn)      __attribute__((cleanup(fn##_auto), unused))
#define AUTO_FN(T, fn) static inline void fn##_auto(T *p) { fn(*p); }
#define TAKE(p)       ({ __typeof__(p) taken_ = (p); (p) = NULL; taken_; })
#define CONTAINER(ptr, T, member) ((T *)((char *)(ptr) - offsetof(T, member)))

static inline bool text_is(const char *a, const char *b)    /* NULL equals nothing */
{
    return a && b && strcmp(a, b) == 0;
}
static inline bool text_given(const char *s) { return s && *s; }
static inline bool text_starts(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}
