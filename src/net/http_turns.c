/* http_turns.c - requests of one tenant take turns on the loop with those of others.
 *
 * A group may end so many requests in one turn of the loop, or send so much of bodies: few where another has asked lately, more where
 * it is alone. What follows on such a connection stays unread in the kernel until the next turn, before which all others are looked at.
 * So a thousand connections that ask for cheap pages delay nobody by more than that, what they ask for costs nothing while it waits, and
 * nothing stands still: a turn in which nobody else asks begins at once. */
#include "net/http_internal.h"
#include <stdlib.h>

enum { SHARE = 4, SHARE_ALONE = 64, MIXED_MS = 1000 };

uint64_t group_of_peer(const char *peer)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *peer; peer++)
        h = (h ^ (unsigned char)*peer) * 0x100000001b3u;
    return h | 1ull << 63;              /* a handler's own numbers are not so large */
}

void group_enter(struct conn *c, uint64_t id)
{
    struct http_server *s = c->server;
    if (c->group && c->group->id == id)
        return;
    struct http_group *g = map_get(s->groups, (int64_t)id);
    if (!g) {
        if (!(g = calloc(1, sizeof *g)))
            abort();
        g->id = id;
        g->last = &g->first;
        map_put(s->groups, (int64_t)id, g);
    }
    group_leave(c);
    g->count++;
    g->held_bytes += c->held_bytes;
    c->group = g;
}

static void unlist(struct http_server *s, struct http_group *g)
{
    for (struct http_group **at = &s->parked; *at; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            break;
        }
    g->listed = false;
}

static void unpark(struct conn *c)
{
    struct http_group *g = c->group;
    struct conn **at = &g->first;
    while (*at != c)
        at = &(*at)->park_next;
    *at = c->park_next;
    if (g->last == &c->park_next)
        g->last = at;
    c->park_next = NULL;
    c->parked = false;
}

void group_leave(struct conn *c)
{
    struct http_server *s = c->server;
    struct http_group *g = c->group;
    if (!g)
        return;
    if (c->parked)
        unpark(c);
    c->group = NULL;
    g->held_bytes -= c->held_bytes;
    if (--g->count > 0)
        return;
    if (g->listed)
        unlist(s, g);
    if (s->last_group == g)
        s->last_group = NULL;
    map_take(s->groups, (int64_t)g->id);
    free(g);
}

void groups_free(struct http_server *s)
{
    timer_cancel(s->round);
    map_free(s->groups);                /* every group has gone with its last connection */
}

static int share(const struct http_server *s, int64_t now_ms) { return now_ms < s->mixed_until_ms ? SHARE : SHARE_ALONE; }

static void on_round(void *arg)
{
    struct http_server *s = arg;
    struct http_group *left = NULL, *g;
    int most = share(s, os_boot_ms(s->os));
    s->round = NULL;
    while ((g = s->parked)) {
        s->parked = g->next;
        g->listed = false;
        g->served = 0;
        for (int i = 0; i < most && g->first; i++) {
            struct conn *c = g->first;
            unpark(c);
            conn_go_on(c);
        }
        if (g->first) {
            g->listed = true;
            g->next = left;
            left = g;
        }
    }
    s->parked = left;
    if (left)
        s->round = timer_start(s->os, 0, on_round, s);
}

static void note_group(struct http_server *s, const struct http_group *g, int64_t now_ms)
{
    if (s->last_group != g && s->last_group)
        s->mixed_until_ms = now_ms + MIXED_MS;
    s->last_group = g;
}

bool group_spent(struct conn *c, int cost)
{
    struct http_server *s = c->server;
    struct http_group *g = c->group;
    if (!g)
        return false;
    int64_t now_ms = os_boot_ms(s->os);
    if (g->round_ms != now_ms) {
        g->round_ms = now_ms;
        g->served = 0;
    }
    note_group(s, g, now_ms);
    bool spent = g->served >= share(s, now_ms);
    g->served += cost;
    if (!spent)
        return false;
    c->parked = true;
    *g->last = c;
    g->last = &c->park_next;
    if (!g->listed) {
        g->listed = true;
        g->next = s->parked;
        s->parked = g;
    }
    if (!s->round)
        s->round = timer_start(s->os, 0, on_round, s);
    return true;
}

void http_group(struct http_request *rq, uint64_t group)
{
    if (!rq->over && rq->conn->group)
        group_enter(rq->conn, group & ~(1ull << 63));
}

void http_rest(struct http_request *rq, int64_t ms) { rq->rest_ms = ms; }
