/* err.c - the one table that says what each kind of failure is called, answered and exited with. */
#include "base/err.h"
#include <errno.h>
#include <stdio.h>

static const struct {
    const char *name, *title;
    int http, exit;
} kinds[] = {
    [RC_OK] = { "ok", "OK", 200, 0 },
    [RC_BAD_INPUT] = { "bad_input", "The request is wrong", 400, 2 },
    [RC_UNAUTHENTICATED] = { "unauthenticated", "Who are you?", 401, 3 },
    [RC_DENIED] = { "denied", "Not allowed", 403, 3 },
    [RC_NOT_FOUND] = { "not_found", "Not found", 404, 4 },
    [RC_CONFLICT] = { "conflict", "Not in this state", 409, 5 },
    [RC_STALE] = { "stale", "It has changed meanwhile", 412, 5 },
    [RC_GONE] = { "gone", "No longer kept", 410, 5 },
    [RC_TOO_LARGE] = { "too_large", "Too large", 413, 2 },
    [RC_OVER_QUOTA] = { "over_quota", "Over quota", 403, 6 },
    [RC_TOO_MANY] = { "too_many", "Slow down", 429, 7 },
    [RC_TIMEOUT] = { "timeout", "Took too long", 408, 7 },
    [RC_UNAVAILABLE] = { "unavailable", "Try again later", 503, 7 },
    [RC_NOT_WRITER] = { "not-writer", "Another server writes", 421, 7 },
    [RC_INTERNAL] = { "internal", "Our fault", 500, 1 },
};
_Static_assert(COUNT(kinds) == RC_COUNT, "every rc has a row");

int rc_http(enum rc rc) { return kinds[rc].http; }
int rc_exit(enum rc rc) { return kinds[rc].exit; }
const char *rc_name(enum rc rc) { return kinds[rc].name; }
const char *rc_title(enum rc rc) { return kinds[rc].title; }

enum rc rc_of_http(int status)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].http == status)
            return (enum rc)i;
    return status < 300 ? RC_OK : status < 500 ? RC_BAD_INPUT : RC_INTERNAL;
}

static void set_text(struct err *e, enum rc rc, const char *fmt, va_list ap)
{
    char text[sizeof e->text];          /* an argument may point into *e */
    vsnprintf(text, sizeof text, fmt, ap);
    e->rc = rc;
    memcpy(e->text, text, strlen(text) + 1);
}

bool err_set(struct err *e, enum rc rc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    set_text(e, rc, fmt, ap);
    va_end(ap);
    e->field[0] = 0;
    return false;
}

bool err_field(struct err *e, const char *field, const char *fmt, ...)
{
    char name[sizeof e->field]; /* field may point into *e when a path is built outwards */
    va_list ap;
    va_start(ap, fmt);
    snprintf(name, sizeof name, "%s", field);
    set_text(e, RC_BAD_INPUT, fmt, ap);
    memcpy(e->field, name, sizeof name);
    va_end(ap);
    return false;
}

bool err_wrap(struct err *e, const char *fmt, ...)
{
    char inner[sizeof e->text];
    memcpy(inner, e->text, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    size_t n = (size_t)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n < sizeof e->text)
        snprintf(e->text + n, sizeof e->text - n, ": %s", inner);
    return false;
}

bool err_errno(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    char what[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    enum rc rc = saved == ENOENT ? RC_NOT_FOUND : saved == ENOSPC ? RC_UNAVAILABLE : RC_INTERNAL;
    return err_set(e, rc, "%s: %s", what, strerror(saved));
}
