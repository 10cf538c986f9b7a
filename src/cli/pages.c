/* pages.c - every page of a list, one after the other, for what has no end: no more than one is held, however long it is. */
#include "cli/cli.h"
#include <stdio.h>

enum { PAGE_TEXT = 256, PAGE_ITEMS = 1000 };

static struct json *copy_ask(struct cli *c, const struct json *from)
{
    struct json *to = json_new(c->mem, JSON_OBJECT);
    for (const struct json *m = from->first; m; m = m->next) {
        struct json *one = json_new(c->mem, m->type);
        *one = *m;
        one->next = NULL;
        json_add(to, m->name, one);
    }
    return to;
}

/* False: it is over, well if the error is none. */
static bool page_put(struct cli *c, enum verb_id verb, struct json *ask, char page[static PAGE_TEXT], int64_t most, page_fn *put, void *arg)
{
    struct json *reply;
    if (*page)
        doc_set(c, ask, "page", page);
    if (most || !json_get(ask, "limit"))
        doc_set(c, ask, "limit", arena_printf(c->mem, "%lld", (long long)(most ? MIN(most, PAGE_ITEMS) : PAGE_ITEMS)));
    if (!cli_call(c, verb, ask, &reply, &c->err))
        return false;
    const struct json *items = json_get(reply, "items");
    if (items && items->first && !put(arg, items))
        return c->err.rc ? false : err_set(&c->err, RC_INTERNAL, "standard output cannot be written");
    const char *next = json_text(reply, "next");
    snprintf(page, PAGE_TEXT, "%s", next ? next : "");
    return *page;
}

static int64_t count_of(const struct json *items)
{
    int64_t n = 0;
    for (const struct json *m = items->first; m; m = m->next)
        n++;
    return n;
}

struct counted {
    page_fn *put;
    void *arg;
    int64_t items;
};

static bool put_counted(void *arg, const struct json *items)
{
    struct counted *k = arg;
    k->items += count_of(items);
    return k->put(k->arg, items);
}

bool pages_each(struct cli *c, enum verb_id verb, const struct json *ask, int64_t most, page_fn *put, void *arg)
{
    struct counted k = { put, arg, 0 };
    struct arena *whole = c->mem;
    char page[PAGE_TEXT] = "";
    if (!cli_connect(c, &c->err))       /* what it keeps outlives a page */
        return false;
    for (bool more = true; more && (!most || k.items < most);) {
        c->mem = arena_new();
        more = page_put(c, verb, copy_ask(c, ask), page, most ? most - k.items : 0, put_counted, &k);
        arena_free(c->mem);
        c->mem = whole;
    }
    return !c->err.rc;
}
