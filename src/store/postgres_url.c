/* postgres_url.c - is this a URL that libpq will understand, and can it be told without showing
 * the password?
 *
 * libpq repeats parts of a URL in its errors. A password with an unescaped @ / : or ? in it
 * lands in what libpq takes for the host or the port, so such URLs are refused here, in words of
 * ours, before libpq can print them. */
#include "store/postgres_internal.h"
#include "store/libpq.h"
#include <stdlib.h>

static const char *option(const PQconninfoOption *all, const char *name)
{
    for (; all && all->keyword; all++)
        if (text_is(all->keyword, name))
            return all->val;
    return NULL;
}

bool url_check(const char *url, struct err *err)
{
    const char *authority = strstr(url, "://") + 3, *at = strrchr(url, '@');
    size_t len = strcspn(authority, "/?#");
    if (at && (at >= authority + len || memchr(authority, '@', len) != at))
        return err_set(err, RC_BAD_INPUT, "the store's URL has an @ / ? or # in its user or "
                       "password: write %%40 %%2F %%3F %%23 instead");
    PQconninfoOption *all = PQconninfoParse(url, NULL);
    const char *port = option(all, "port");
    bool number = !port || !port[strspn(port, "0123456789,")];
    bool ok = all && number;
    PQconninfoFree(all);
    return ok || err_set(err, RC_BAD_INPUT, "the store's URL is not one of PostgreSQL%s: "
                         "postgres://user:password@host:5432/database",
                         number ? "" : " (its port is not a number)");
}

void url_hide(const char *url, char *text)
{
    PQconninfoOption *all = PQconninfoParse(url, NULL);
    const char *password = option(all, "password");
    size_t len = password ? strlen(password) : 0;
    for (char *at = text; len && (at = strstr(at, password)); at += len)
        memset(at, '*', len);
    PQconninfoFree(all);
}
