/* router.c - a tree of path parts made from verbs[] once, walked for each request without
 * allocating.
 *
 * A literal part goes before a parameter (/v1/nodes/link is not a node), unless only the
 * parameter's branch has the method. Parts are compared as they came: an escaped slash or letter
 * never matches a literal one. */
#include "api/api_internal.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
enum { METHODS = COUNT(methods), GET = 0, HEAD = 1 };

struct part {
    struct slice text;              /* of a parameter: its name */
    bool param;
    struct part *child, *next;
    int verbs[METHODS];             /* verb + 1; 0: none */
};
struct router { struct part root; };

static int method_of(const char *name)
{
    for (size_t i = 0; i < METHODS; i++)
        if (text_is(methods[i], name))
            return (int)i;
    return -1;
}

static void parts_free(struct part *p)
{
    for (struct part *next; p; p = next) {
        next = p->next;
        parts_free(p->child);
        free(p);
    }
}

void router_free(struct router *r)
{
    if (r)
        parts_free(r->root.child);
    free(r);
}

static bool same(struct slice a, struct slice b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static struct part *grow(struct part *from, struct slice text)
{
    bool param = text.len > 2 && text.at[0] == '{';
    if (param)
        text = (struct slice){ text.at + 1, text.len - 2 };
    struct part **to = &from->child;
    for (; *to; to = &(*to)->next)
        if ((*to)->param == param && (param || same((*to)->text, text))) {
            assert(same((*to)->text, text));    /* one place, one name of the parameter */
            return *to;
        }
    if (!param)                                 /* literals first */
        for (to = &from->child; *to && !(*to)->param; to = &(*to)->next)
            ;
    struct part *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct part){ .text = text, .param = param, .next = *to };
    return *to = p;
}

static struct slice next_part(const char **path)    /* *path is at a slash */
{
    const char *from = *path + 1;
    size_t n = strcspn(from, "/");
    *path = from + n;
    return (struct slice){ from, n };
}

struct router *router_new(void)
{
    struct router *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (!verbs[i].path)
            continue;
        struct part *p = &r->root;
        for (const char *path = verbs[i].path; *path;)
            p = grow(p, next_part(&path));
        int m = method_of(verbs[i].method);
        assert(m >= 0 && !p->verbs[m]);
        p->verbs[m] = (int)i + 1;
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {       /* a page that can be read can be asked about */
        struct part *p = &r->root;
        for (const char *path = verbs[i].path; path && *path;)
            p = grow(p, next_part(&path));
        int get = p->verbs[GET];
        if (get && !p->verbs[HEAD] && verbs[get - 1].kind == VERB_READ)
            p->verbs[HEAD] = get;
    }
    return r;
}

static bool walk(const struct part *from, const char *path, int method, struct match *m,
                 unsigned *allowed)
{
    if (!*path) {
        for (size_t i = 0; i < METHODS; i++)
            *allowed |= from->verbs[i] ? 1u << i : 0;
        if (method < 0 || !from->verbs[method])
            return false;
        m->verb = (enum verb_id)(from->verbs[method] - 1);
        return true;
    }
    struct slice text = next_part(&path);
    for (const struct part *p = from->child; p && text.len; p = p->next) {
        size_t count = m->count;
        if (!p->param && !same(p->text, text))
            continue;
        if (p->param) {
            m->params[m->count].name = p->text;
            m->params[m->count++].value = text;
        }
        if (walk(p, path, method, m, allowed))
            return true;
        m->count = count;
    }
    return false;
}

enum found router_find(const struct router *r, const char *method, const char *path,
                       struct match *out, char allow[static 64])
{
    unsigned allowed = 0;
    *out = (struct match){ 0 };
    if (*path == '/' && walk(&r->root, path, method_of(method), out, &allowed))
        return FOUND;
    size_t n = 0;
    allow[0] = 0;
    for (size_t i = 0; i < METHODS; i++)
        if (allowed & 1u << i)
            n += (size_t)snprintf(allow + n, 64 - n, "%s%s", n ? ", " : "", methods[i]);
    return n ? FOUND_OTHER_METHODS : FOUND_NO_PATH;
}
