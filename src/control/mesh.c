/* mesh.c - where the addresses of a project are, for the nodes that have tasks of it (the agent's side: agent/mesh.c).
 *
 * A project keeps which node has which of its addresses, and the last changes of that; each of its nodes, up to where it was told. So a change costs a word for each
 * node that the project has, nothing while it has only one, and whoever has fallen far behind, or is new, is told all of it. Nodes of a
 * small project are told at once, those of a large one with what they are told anyway: one task more or less is not worth a thousand messages.
 * Like orders this is memory alone: a node that comes back, or finds another writer, is told everything with its first answer. */
#include "control/call.h"
#include <stdlib.h>

enum { RING = 1024, AT_ONCE = 64 };
struct mesh {
    struct node *at[NET_HOSTS];
    struct map *homes;          /* nodes that have addresses of it: node -> struct home */
    int64_t seq;                /* changes so far */
    uint16_t ring[RING];        /* the last of them: of which address */
};
struct home {                   /* a project on a node */
    struct project *project;
    struct node *node;
    int64_t count, told;        /* addresses; changes that the node knows of, -1: it is told all */
    bool knows;                 /* others were told */
};

static struct home *home_of(struct state *s, struct project *p, struct node *n)
{
    if (!p->mesh) {
        p->mesh = ARENA_NEW(s->mem, struct mesh);
        p->mesh->homes = map_new();
    }
    n->homes = n->homes ? n->homes : map_new();
    struct home *h = map_get(n->homes, p->id);
    if (h)
        return h;
    h = calloc(1, sizeof *h);
    if (!h)
        abort();
    *h = (struct home){ .project = p, .node = n, .told = -1 };
    map_put(n->homes, p->id, h);
    return h;
}

static void home_drop(struct home *h)
{
    map_take(h->node->homes, h->project->id);
    free(h);
}

void mesh_hold(struct state *s, struct attempt *a, bool held)
{
    struct project *p = a->task->job->project;
    if (!a->address || !net_has(p->net, a->address) || !text_given(a->node->info.underlay))
        return;
    struct home *h = home_of(s, p, a->node);
    struct mesh *m = p->mesh;
    uint32_t host = a->address & (NET_HOSTS - 1);
    m->at[host] = held ? a->node : NULL;
    h->count += held ? 1 : -1;
    if (held && h->count == 1)
        map_put(m->homes, a->node->id, h);
    if (map_count(m->homes) > 1)
        m->ring[m->seq++ % RING] = (uint16_t)host;
    if (h->count)
        return;
    map_take(m->homes, a->node->id);
    h->told = -1;
    if (!h->knows)
        home_drop(h);
}

void mesh_tell(struct call *c, const struct project *p, const struct node *but)
{
    size_t count = p->mesh ? map_count(p->mesh->homes) : 0;
    struct home *h;
    if (count > AT_ONCE)
        return;
    for (size_t i = 0; count && (h = map_next(p->mesh->homes, &i));)
        if (h->node != but && h->node->linked && !h->node->tell)
            node_tell(c, h->node);
}

/* Its address on the underlay is another from now on: `held` false before, true after. */
void mesh_move(struct call *c, struct node *n, bool held)
{
    struct attempt *a;
    for (size_t i = 0; (a = map_next(n->attempts, &i));) {
        mesh_hold(c->s, a, held);
        mesh_tell(c, a->task->job->project, n);
    }
}

/* --- what a node is told */

struct words { struct call *c; struct net_at *at; size_t count, room; struct str hosts; };

static void words_end(struct words *w)
{
    if (w->count && w->hosts.len)
        w->at[w->count - 1].hosts = arena_text(w->c->mem, w->hosts.at);
    str_clear(&w->hosts);
}

static void words_add(struct words *w, const char *node, unsigned host)
{
    if (!w->count || !text_is(w->at[w->count - 1].node, node)) {
        words_end(w);
        w->at = arena_more(w->c->mem, w->at, w->count, &w->room, sizeof *w->at);
        w->at[w->count++] = (struct net_at){ .node = node };
    }
    str_printf(&w->hosts, w->hosts.len ? ",%u" : "%u", host);
}

static const char *place_of(const struct mesh *m, const struct node *asks, unsigned host)
{
    const struct node *n = m->at[host];
    return n && n != asks ? n->info.underlay : "";
}

static bool tell_home(struct call *c, struct home *h, struct net_part *out)
{
    const struct mesh *m = h->project->mesh;
    struct words w = { .c = c };
    bool whole = h->told == -1 || m->seq - h->told > RING, alone = map_count(m->homes) < 2;
    for (unsigned host = NET_FIRST; whole && h->count && !alone && host <= NET_LAST; host++)
        if (*place_of(m, h->node, host))
            words_add(&w, place_of(m, h->node, host), host);
    for (int64_t i = h->told; !whole && i < m->seq; i++) {
        unsigned host = m->ring[i % RING];
        if (m->at[host] != h->node || h->knows) /* one that it has itself may have been another's before */
            words_add(&w, place_of(m, h->node, host), host);
    }
    words_end(&w);
    str_done(&w.hosts);
    *out = (struct net_part){ .net = h->project->net, .whole = whole, .at = { w.at, w.count } };
    bool worth = w.count || (whole && h->knows);
    h->knows = whole ? w.count > 0 : h->knows || w.count;
    h->told = m->seq;
    if (!h->count)
        home_drop(h);
    return worth;
}

struct objects mesh_of(struct call *c, struct node *n, bool full)
{
    struct net_part *parts = ARENA_ARRAY(c->mem, struct net_part, n->homes ? map_count(n->homes) : 0);
    size_t count = 0;
    struct home *h;
    for (size_t i = 0; n->homes && (h = map_next(n->homes, &i));) {
        if (full)
            h->told = -1, h->knows = false; /* it forgets what it is not told now */
        count += tell_home(c, h, &parts[count]);
    }
    return (struct objects){ parts, count };
}

void mesh_free_node(struct node *n)
{
    struct home *h;
    for (size_t i = 0; n->homes && (h = map_next(n->homes, &i));)
        free(h);
    map_free(n->homes);
}

void mesh_free_project(struct project *p)
{
    if (p->mesh)
        map_free(p->mesh->homes);
}
