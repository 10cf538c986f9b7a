/* gang.c - a place for n tasks at once, one on each of n nodes, as close together as can be.
 *
 * Law: all or nothing. A gang is looked for as a whole and taken as a whole in the same pass, so nothing is ever held half and two gangs
 * cannot wait for each other's rest. Nodes with room are counted in every place above them. From the level that the gang prefers outward
 * to the one that it must not leave, the smallest place with room for all of it wins: larger ones stay whole for those who need them.
 * Inside, the fewest places below, then the better score, then the node that joined first. */
#include "sched/sched_internal.h"
#include <stdlib.h>

struct search {
    struct sched *s;
    struct class *c;
    struct arena *mem;
    struct seat *seats;
    size_t count, room;
    struct place **places;      /* those above them, each once */
    size_t place_count, place_room;
};

/* --- counting */

static void count_up(struct search *x, const struct node *n)
{
    for (struct place *p = n->place; p; p = p->up) {
        if (p->search != x->s->searches) {
            p->search = x->s->searches;
            p->seats = 0;
            p->first = n->id;
            x->places = arena_more(x->mem, x->places, x->place_count, &x->place_room, sizeof *x->places);
            x->places[x->place_count++] = p;
        }
        p->seats++;
        p->first = MIN(p->first, n->id);
    }
}

static void add_lot(struct lot *l, const struct pick *pick, void *arg)
{
    struct search *x = arg;
    struct pick *kept = ARENA_NEW(x->mem, struct pick);
    *kept = *pick;
    kept->score = INT64_MIN;    /* not worked out yet */
    for (uint32_t i = 0; i < l->count; i++) {
        x->seats = arena_more(x->mem, x->seats, x->count, &x->room, sizeof *x->seats);
        x->seats[x->count++] = (struct seat){ .n = l->nodes[i], .pick = kept };
    }
}

static void count_all(struct search *x, int make) /* -1: of any */
{
    x->s->searches++;
    x->place_count = 0;
    for (size_t i = 0; i < x->count; i++)
        if (make < 0 || x->seats[i].n->make == make)
            count_up(x, x->seats[i].n);
}

/* The smallest place of that level with room; NULL: there is none. */
static struct place *smallest(const struct search *x, int level, int64_t nodes)
{
    struct place *best = NULL;
    for (size_t i = 0; i < x->place_count; i++) {
        struct place *p = x->places[i];
        if (p->level == level && p->seats >= nodes
            && (!best || p->seats < best->seats || (p->seats == best->seats && p->first < best->first)))
            best = p;
    }
    return best;
}

static struct place *best_place(const struct search *x)
{
    const struct class *c = x->c;
    struct place *p = NULL;
    for (int l = MAX(c->prefer, c->within); !p && l >= c->within; l--)
        p = smallest(x, l, c->gang);
    return p;
}

/* --- choosing inside a place */

struct part { struct seat *seats; size_t count; int64_t score, first; };

static int by_group(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->n->id < y->n->id ? -1 : x->n->id > y->n->id;
}

/* The largest first; of equals the one with the best score. */
static int by_size(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The place right below `top` that a node is in; NULL: in none, it stands for itself. */
static struct place *below(const struct place *top, const struct node *n)
{
    struct place *p = n->place;
    while (p != top && p->up != top)
        p = p->up;
    return p == top ? NULL : p;
}

static size_t parts_of(struct search *x, const struct place *top, struct seat *seats, size_t count, struct part **out)
{
    struct part *parts = ARENA_ARRAY(x->mem, struct part, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct place *in = below(top, seats[i].n);
        seats[i].group = in ? in->id : UINT64_C(1) << 63 | (uint64_t)seats[i].n->id;
        if (seats[i].pick->score == INT64_MIN && !index_on(&x->s->index, x->c->wanted, seats[i].n, seats[i].pick))
            abort(); /* it fitted a moment ago */
    }
    qsort(seats, count, sizeof *seats, by_group);
    for (size_t i = 0; i < count; i++) {
        if (!i || seats[i].group != seats[i - 1].group)
            parts[n++] = (struct part){ .seats = &seats[i], .score = INT64_MIN, .first = seats[i].n->id };
        parts[n - 1].count++;
        parts[n - 1].score = MAX(parts[n - 1].score, seats[i].pick->score);
    }
    qsort(parts, n, sizeof *parts, by_size);
    return *out = parts, n;
}

/* The best `wanted` of these seats, all in `top`, to the front of `out`. */
static void choose(struct search *x, const struct place *top, struct seat *seats, size_t count, size_t wanted, struct seat *out)
{
    struct part *parts;
    size_t n = parts_of(x, top, seats, count, &parts);
    for (size_t i = 0; wanted; i++) {
        struct part *p = &parts[i];
        if (p->count < wanted) { /* none has room for all: the largest is filled */
            memcpy(out, p->seats, p->count * sizeof *out);
            out += p->count;
            wanted -= p->count;
            continue;
        }
        /* One of these has room for the rest: the smallest, and of equals the best. */
        size_t last = i;
        while (last + 1 < n && parts[last + 1].count >= wanted)
            last++;
        while (last > i && parts[last - 1].count == parts[last].count)
            last--;
        p = &parts[last];
        if (p->count == wanted)
            memcpy(out, p->seats, wanted * sizeof *out);
        else
            choose(x, below(top, p->seats[0].n), p->seats, p->count, wanted, out);
        return;
    }
}

static struct seat *seats_in(struct search *x, const struct place *top, int make)
{
    struct seat *in = ARENA_ARRAY(x->mem, struct seat, (size_t)top->seats), *out = ARENA_ARRAY(x->mem, struct seat, (size_t)x->c->gang);
    size_t n = 0;
    for (size_t i = 0; i < x->count; i++) {
        const struct place *p = x->seats[i].n->place;
        while (p && p != top)
            p = p->up;
        if (p && (make < 0 || x->seats[i].n->make == make))
            in[n++] = x->seats[i];
    }
    choose(x, top, in, n, (size_t)x->c->gang, out);
    return out;
}

/* --- the whole */

static bool quota_allows_all(struct search *x, const struct seat *seats)
{
    struct class *c = x->c;
    int64_t cpu = 0, mem = 0;
    for (int64_t i = 0; i < c->gang; i++)
        cpu += seats[i].pick->cpu_milli, mem += seats[i].pick->mem_mib;
    return quota_allows_gang(x->s, c, seats, cpu, mem);
}

/* A quota may bind on one model, or because large machines give more CPUs with a GPU: then nodes of one build are tried by themselves. */
static struct seat *of_one_make(struct search *x)
{
    bool tried[FLEET_MAKES] = { false };
    for (size_t i = 0; i < x->count; i++) {
        int make = x->seats[i].n->make;
        if (tried[make])
            continue;
        tried[make] = true;
        count_all(x, make);
        struct place *top = best_place(x);
        struct seat *seats = top ? seats_in(x, top, make) : NULL;
        if (seats && quota_allows_all(x, seats))
            return seats;
    }
    return NULL;
}

struct seat *gang_find(struct sched *s, struct class *c, struct arena *mem, enum reason *why)
{
    struct search x = { .s = s, .c = c, .mem = mem };
    index_each(&s->index, c->wanted, add_lot, &x);
    count_all(&x, -1);
    struct place *top = best_place(&x);
    if (!top) {
        *why = c->within > PLACE_REGION && smallest(&x, PLACE_REGION, c->gang) ? REASON_TOPOLOGY : REASON_RESOURCES;
        return NULL;
    }
    struct seat *seats = seats_in(&x, top, -1);
    if (!quota_allows_all(&x, seats))
        seats = of_one_make(&x);
    *why = seats ? REASON_NONE : REASON_QUOTA;
    return seats;
}

struct node *gang_first(struct sched *s, struct class *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    enum reason why;
    struct seat *seats = gang_find(s, c, mem, &why);
    return seats ? seats[0].n : NULL;
}

bool gang_possible(struct sched *s, const struct class *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct search x = { .s = s, .mem = mem };
    s->searches++;
    for (size_t i = 0; i < s->fleet.count; i++)
        if (node_could(&s->fleet, s->fleet.nodes[i], c))
            count_up(&x, s->fleet.nodes[i]);
    return smallest(&x, c->within, c->gang) != NULL;
}

bool gang_ready(const struct job *j, int64_t now_ms, int64_t *wake_ms)
{
    int64_t waits = 0, latest = 0;
    for (size_t i = 0; i < j->waiting.count; i++) {
        const struct range *r = &waiting_ranges(&j->waiting)[i];
        waits += r->last - r->first + 1;
        latest = MAX(latest, r->not_before_ms);
    }
    if (waits < j->class->gang)
        return false; /* the others have not come back yet */
    if (latest > now_ms)
        *wake_ms = latest;
    return latest <= now_ms;
}
