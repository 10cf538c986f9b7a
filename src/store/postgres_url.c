/* postgres_url.c - is this a URL that libpq will understand, and can it be told without showing
 * the password? And does it lead to a place that is spoken to in the open?
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

/* A socket is a path; every host of a list counts. */
static bool is_near(const char *hosts)
{
    for (const char *at = hosts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");
        bool socket = n == 0 || *at == '/' || *at == '@', loop = text_starts(at, "127.") && strspn(at, "0123456789.") == n;
        if (!socket && !loop && !(n == 3 && text_starts(at, "::1")) && !(n == 9 && text_starts(at, "localhost")))
            return false;
    }
    return true;
}

static const char *given(const PQconninfoOption *all, const char *name, const char *variable)
{
    const char *value = option(all, name);
    return text_given(value) ? value : getenv(variable);
}

bool store_place_check(const char *where, bool plain, struct err *err)
{
    static const char *const good[] = { "require", "verify-ca", "verify-full" };
    if (!text_starts(where, "postgres://") && !text_starts(where, "postgresql://"))
        return true;
    if (!libpq_load(err) || !url_check(where, err))
        return false;
    PQconninfoOption *all = PQconninfoParse(where, NULL);
    const char *mode = given(all, "sslmode", "PGSSLMODE");
    bool off = text_is(mode, "disable"),
         ok = is_near(given(all, "host", "PGHOST")) && is_near(given(all, "hostaddr", "PGHOSTADDR"));
    for (size_t i = 0; i < COUNT(good); i++)
        ok = ok || text_is(mode, good[i]);
    ok = ok || (off && plain);
    PQconninfoFree(all);
    if (ok)
        return true;
    return off ? err_set(err, RC_BAD_INPUT, "the store's URL leads over a network with sslmode=disable: say sslmode=verify-full, "
                         "or, if that network is trusted with everything, --store-tls off as well")
               : err_set(err, RC_BAD_INPUT, "the store's URL leads over a network, where PostgreSQL is spoken to with TLS only: add "
                         "sslmode=verify-full&sslrootcert=FILE (or at least sslmode=require) to it");
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
