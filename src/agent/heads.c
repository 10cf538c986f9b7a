#include "agent/heads.h"
#include <stdlib.h>

enum { HEADS_MOST = 32, URL_MOST = 300 };

struct one {
    char *url;
    struct http_client *client;
    bool given, told; /* at the start; by the cloud */
};
struct heads {
    struct os *os;
    char *ca, *pin, *key;
    struct one list[HEADS_MOST];
    size_t count, now;
};

static char *copy(const char *text) { return text ? strdup(text) : NULL; }

struct heads *heads_new(struct os *os, const char *ca_pem, const char *pin)
{
    struct heads *h = calloc(1, sizeof *h);
    if (!h)
        abort();
    *h = (struct heads){ .os = os, .ca = copy(ca_pem), .pin = copy(pin) };
    return h;
}

static void drop(struct heads *h, size_t i)
{
    http_client_free(h->list[i].client);
    free(h->list[i].url);
    memmove(&h->list[i], &h->list[i + 1], (h->count - i - 1) * sizeof h->list[0]);
    h->count--;
    if (h->now > i)
        h->now--;
}

void heads_free(struct heads *h)
{
    if (!h)
        return;
    while (h->count)
        drop(h, h->count - 1);
    free(h->ca);
    free(h->pin);
    free(h->key);
    free(h);
}

static struct one *find(struct heads *h, const char *url)
{
    for (size_t i = 0; i < h->count; i++)
        if (text_is(h->list[i].url, url))
            return &h->list[i];
    return NULL;
}

static bool add(struct heads *h, const char *url, struct one **out, struct err *err)
{
    struct http_client *client;
    *out = find(h, url);
    if (*out)
        return true;
    if (h->count == HEADS_MOST)
        return err_set(err, RC_BAD_INPUT, "at most %d addresses", HEADS_MOST);
    if (!http_client_new(h->os, url, h->ca, h->pin, h->key, &client, err))
        return false;
    *out = &h->list[h->count++];
    **out = (struct one){ .url = copy(url), .client = client };
    return true;
}

bool heads_add(struct heads *h, const char *urls, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    for (const char *at = urls; *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ", ");
        struct one *one;
        if (n && !add(h, arena_bytes(mem, at, n), &one, err))
            return false;
        if (n)
            one->given = true;
        at += n;
    }
    return true;
}

static bool is_here(const char *url)
{
    const char *at = strstr(url, "://");
    return text_starts(url, "unix:") || (at && address_is_loopback(at + 3));
}

static bool may_be_told(const struct heads *h, const char *url)
{
    bool here = false;
    for (size_t i = 0; i < h->count; i++)
        here |= h->list[i].given && is_here(h->list[i].url);
    return url && strlen(url) < URL_MOST && (here || !is_here(url));
}

bool heads_learn(struct heads *h, struct texts urls)
{
    struct err ignored;
    bool news = false;
    for (size_t i = 0; i < urls.count; i++) {
        struct one *one = find(h, urls.at[i]);
        if (!one && (!may_be_told(h, urls.at[i]) || !add(h, urls.at[i], &one, &ignored)))
            continue;
        news |= !one->told;
        one->told = true;
    }
    for (size_t i = h->count; i-- > 0;) {
        struct one *one = &h->list[i];
        bool listed = false;
        for (size_t k = 0; k < urls.count; k++)
            listed |= text_is(one->url, urls.at[k]);
        if (listed || !one->told)
            continue;
        news = true;
        one->told = false;
        if (!one->given && i != h->now)
            drop(h, i);
    }
    return news;
}

struct http_client *heads_client(const struct heads *h)
{
    return h->count ? h->list[h->now].client : NULL;
}
const char *heads_url(const struct heads *h) { return h->count ? h->list[h->now].url : ""; }
size_t heads_count(const struct heads *h) { return h->count; }

void heads_next(struct heads *h)
{
    size_t was = h->now;
    if (h->count)
        h->now = (h->now + 1) % h->count;
    if (h->now != was && !h->list[was].given && !h->list[was].told)
        drop(h, was);
}

bool heads_prefer(struct heads *h, const char *url)
{
    struct one *one;
    struct err ignored;
    if (!find(h, url) && !may_be_told(h, url))
        return false;
    if (!add(h, url, &one, &ignored))
        return false;
    h->now = (size_t)(one - h->list);
    return true;
}

void heads_token(struct heads *h, const char *key)
{
    free(h->key);
    h->key = copy(key);
    for (size_t i = 0; i < h->count; i++)
        http_client_token(h->list[i].client, key);
}
