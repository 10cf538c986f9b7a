/* fleet.c - nodes, kinds of GPU, and lots. See fleet.h. Law: which lot a node is in follows from the node alone. */
#include "sched/fleet.h"
#include "base/map.h"
#include <stdlib.h>

enum { LOG_MIN = 1024, OWN_LOG_MIN = 256, MOVED_KEEP = 1024 };

/* --- nodes */

static size_t node_place(const struct fleet *f, int64_t id)
{
    size_t low = 0, high = f->count;
    if (high && f->ids[high - 1] < id) /* the newest mostly goes last */
        return high;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (f->ids[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct node *fleet_node(const struct fleet *f, int64_t id)
{
    size_t at = node_place(f, id);
    return at < f->count && f->ids[at] == id ? f->nodes[at] : NULL;
}

const struct gpu *node_gpu(const struct node *n, int64_t index)
{
    for (int i = 0; i < n->gpu_count; i++)
        if (n->gpus[i].index == index)
            return &n->gpus[i];
    return NULL;
}

static bool kind_is(const struct gpu_kind *k, const struct sched_gpu *g)
{
    return k->mem_mib == g->mem_mib && k->whole_only == g->whole_only && k->mig.on == g->mig.on
           && memcmp(k->mig.starts, g->mig.starts, sizeof k->mig.starts) == 0 && strcmp(k->model, g->model) == 0;
}

static uint16_t kind_of(struct fleet *f, const struct sched_gpu *g)
{
    size_t i = 0;
    while (i < f->kind_count && !kind_is(&f->kinds[i], g))
        i++;
    if (i < f->kind_count || i == UINT16_MAX)
        return (uint16_t)i;
    f->kinds = room_for(f->kinds, i, &f->kind_room, sizeof *f->kinds);
    f->kinds[i] = (struct gpu_kind){ .mem_mib = g->mem_mib,
                                      .whole_only = g->whole_only,
                                      .mig = g->mig,
                                      .part = g->mig.on ? mig_part_of(g->model, g->mem_mib) : NULL };
    memcpy(f->kinds[i].model, g->model, sizeof g->model);
    f->kind_count++;
    return (uint16_t)i;
}

const char *fleet_house(const struct fleet *f, uint16_t house)
{
    return house < f->house_count ? f->houses[house] : NULL;
}

/* Houses are few, and are kept for as long as the fleet is. False: there are too many. */
static bool house_of(struct fleet *f, const char *text, uint16_t *number)
{
    *number = 0;
    if (!f->house_count) {
        f->houses = room_for(f->houses, 0, &f->house_room, sizeof *f->houses);
        f->houses[f->house_count++] = NULL;
        f->house_numbers = map_new();
        f->named = map_new();
    }
    if (!text_given(text))
        return true;
    size_t known = (size_t)map_get_text(f->house_numbers, text);
    if (!known && f->house_count == UINT16_MAX)
        return false;
    if (!known) {
        f->houses = room_for(f->houses, f->house_count, &f->house_room, sizeof *f->houses);
        f->houses[known = f->house_count++] = must(strdup(text));
        map_put_text(f->house_numbers, f->houses[known], (void *)known);
        if (house_project(text))
            map_put(f->named, house_project(text), f->houses[known]);
    }
    *number = (uint16_t)known;
    return true;
}

/* Machines of one build differ by some MiB: what counts is the order of magnitude. */
static int64_t about(int64_t mib)
{
    int64_t grain = 1;
    while (mib / grain >= 32)
        grain *= 2;
    return mib / grain * grain;
}

static uint16_t make_of(struct fleet *f, const struct node *n)
{
    struct make like = { .cpu_milli = n->cpu_milli,
                         .mem_mib = about(n->mem_mib),
                         .gpu_count = n->gpu_count,
                         .kind = n->gpu_count ? n->gpus[0].kind : UINT16_MAX };
    size_t i = 0;
    for (; i < f->make_count; i++) {
        const struct make *m = &f->makes[i];
        if (m->cpu_milli == like.cpu_milli && m->mem_mib == like.mem_mib
            && m->gpu_count == like.gpu_count && m->kind == like.kind)
            return (uint16_t)i;
    }
    if (i == FLEET_MAKES)
        return FLEET_MAKES - 1;
    f->makes[f->make_count++] = like;
    return (uint16_t)i;
}

void fleet_touch(struct fleet *f, struct node *n)
{
    if (n->moved)
        return;
    f->moved = room_for(f->moved, f->moved_count, &f->moved_room, sizeof *f->moved);
    f->moved[f->moved_count++] = n;
    n->moved = true;
}

static struct node *node_new(struct fleet *f, const struct sched_event *e)
{
    int gpus = MIN(e->gpu_count, (int)SCHED_GPUS);
    struct node *n = must(calloc(1, sizeof *n + (size_t)gpus * sizeof n->gpus[0]));
    n->id = e->node;
    n->usable = house_of(f, e->house, &n->house) && e->usable; /* a filter that cannot be kept is kept by using nothing */
    n->shut = (uint8_t)(!e->usable && e->shut < FILTER_COUNT ? e->shut : FILTER_OTHER);
    n->host_image = e->host_image;
    n->cpu_milli = e->cpu_milli;
    n->mem_mib = e->mem_mib;
    for (int i = 0; i < gpus; i++) {
        struct gpu *g = &n->gpus[n->gpu_count++];
        uint16_t kind = kind_of(f, &e->gpus[i]);
        *g = (struct gpu){ .index = (uint8_t)e->gpus[i].index,
                           .kind = kind,
                           .healthy = e->gpus[i].healthy && kind != UINT16_MAX,
                           .simulated = e->gpus[i].simulated,
                           .mixes = e->gpus[i].mixes,
                           .equal = e->gpus[i].equal };
    }
    n->make = make_of(f, n);
    n->place = place_enter(f, e->where);
    return n;
}

static void lot_leave(struct fleet *f, struct node *n);

static void node_forget(struct fleet *f, struct node *n)
{
    f->makes[n->make].nodes -= n->usable;
    f->shut[n->shut] -= !n->usable;
    if (n->lot)
        lot_leave(f, n);
    for (size_t i = 0; n->moved && i < f->moved_count; i++)
        if (f->moved[i] == n)
            f->moved[i] = f->moved[--f->moved_count];
    place_leave(f, n->place);
    free(n);
}

void fleet_set(struct fleet *f, const struct sched_event *e)
{
    struct node *n = node_new(f, e);
    size_t at = node_place(f, e->node);
    if (at < f->count && f->ids[at] == e->node) {
        node_forget(f, f->nodes[at]);
    } else {
        size_t room = f->room;
        f->ids = room_for(f->ids, f->count, &room, sizeof *f->ids);
        f->nodes = room_for(f->nodes, f->count, &f->room, sizeof *f->nodes);
        memmove(f->nodes + at + 1, f->nodes + at, (f->count - at) * sizeof *f->nodes);
        memmove(f->ids + at + 1, f->ids + at, (f->count++ - at) * sizeof *f->ids);
    }
    f->nodes[at] = n;
    f->ids[at] = n->id;
    f->makes[n->make].nodes += n->usable;
    f->shut[n->shut] += !n->usable;
    fleet_touch(f, n);
    f->changes++;
}

bool fleet_drop(struct fleet *f, int64_t id)
{
    struct node *n = fleet_node(f, id);
    if (!n)
        return false;
    size_t at = node_place(f, id);
    node_forget(f, n);
    f->count--;
    memmove(f->nodes + at, f->nodes + at + 1, (f->count - at) * sizeof *f->nodes);
    memmove(f->ids + at, f->ids + at + 1, (f->count - at) * sizeof *f->ids);
    f->changes++;
    return true;
}

/* --- what is taken */

static void count_gpus(struct node *n, int64_t project, const struct held_gpu *gpus, int count,
                       int sign)
{
    for (int i = 0; i < count; i++) {
        struct gpu *g = (struct gpu *)node_gpu(n, gpus[i].index);
        if (!g)
            continue; /* the node no longer has it */
        g->used_milli += (int32_t)(sign * gpus[i].milli);
        if (gpus[i].slots)
            g->slots = sign > 0 ? g->slots | gpus[i].slots : g->slots & (uint16_t)~gpus[i].slots;
        else
            g->squares += (int32_t)(sign * gpus[i].milli * gpus[i].milli);
        g->used_mib += (int32_t)(sign * gpus[i].mem_mib);
        g->holders = (uint16_t)(g->holders + sign);
        g->projects += (uint64_t)sign * (uint64_t)project;
        g->projects2 += (uint64_t)sign * (uint64_t)project * (uint64_t)project;
    }
}

void node_count(struct node *n, int64_t project, int64_t cpu_milli, int64_t mem_mib,
                const struct held_gpu *gpus, int count, int sign)
{
    n->cpu_used += sign * cpu_milli;
    n->mem_used += sign * mem_mib;
    count_gpus(n, project, gpus, count, sign);
}

void fleet_take(struct fleet *f, struct node *n, int64_t project, int64_t cpu_milli,
                int64_t mem_mib, const struct held_gpu *gpus, int count)
{
    node_count(n, project, cpu_milli, mem_mib, gpus, count, 1);
    fleet_touch(f, n);
}

void fleet_give(struct fleet *f, struct node *n, int64_t project, int64_t cpu_milli,
                int64_t mem_mib, const struct held_gpu *gpus, int count)
{
    node_count(n, project, cpu_milli, mem_mib, gpus, count, -1);
    fleet_touch(f, n);
}

/* --- the nodes of a lot: a heap by id */

static void put_at(struct lot *l, uint32_t at, struct node *n)
{
    l->nodes[at] = n;
    n->at = at;
    if (at == 0)
        l->first = n->id;
}

static void sift_up(struct lot *l, uint32_t at, struct node *n)
{
    for (; at && l->nodes[(at - 1) / 2]->id > n->id; at = (at - 1) / 2)
        put_at(l, at, l->nodes[(at - 1) / 2]);
    put_at(l, at, n);
}

static void sift_down(struct lot *l, uint32_t at, struct node *n)
{
    for (uint32_t child; (child = 2 * at + 1) < l->count; at = child) {
        if (child + 1 < l->count && l->nodes[child + 1]->id < l->nodes[child]->id)
            child++;
        if (l->nodes[child]->id > n->id)
            break;
        put_at(l, at, l->nodes[child]);
    }
    put_at(l, at, n);
}

static void lot_put(struct lot *l, struct node *n)
{
    if (l->count == l->room) {
        struct node **more = l->room > 1 ? l->nodes : NULL;
        more = must(reallocarray(more, l->room * 2UL, sizeof *more));
        if (l->room == 1)
            more[0] = l->only;
        l->nodes = more;
        l->room *= 2;
    }
    n->lot = l;
    sift_up(l, l->count++, n);
}

/* --- lots */

bool lot_dark(const struct lot *l)
{
    return l->cpu_free == l->cpu_milli && l->mem_free == l->mem_mib
           && l->free_milli == l->whole * 1000;
}

struct lot *fleet_lot(const struct fleet *f, struct lot_ref ref)
{
    return f->briefs[ref.id].birth == ref.birth ? f->lots[ref.id] : NULL;
}

/* Half of a long log is dropped: rankings that had not read it begin anew, which is not more work than reading on. */
static void log_add(struct log *log, size_t least, const struct lot *l)
{
    if (log->count >= MAX(least, 4 * log->live)) {
        size_t half = log->count / 2;
        memmove(log->at, log->at + half, (log->count - half) * sizeof *log->at);
        log->count -= half;
        log->from += half;
    }
    log->at = room_for(log->at, log->count, &log->room, sizeof *log->at);
    log->at[log->count++] = (struct lot_ref){ l->id, l->birth };
}

static void lot_log(struct fleet *f, const struct lot *l)
{
    struct brief *b = &f->briefs[l->id];
    f->log.live = f->live;
    log_add(&f->log, LOG_MIN, l);
    b->logged = f->log.from + f->log.count - 1;
    for (uint64_t left = b->owners; left; left &= left - 1)
        log_add(&f->logs[__builtin_ctzll(left)], OWN_LOG_MIN, l);
}

static void lot_free(struct fleet *f, struct lot *l)
{
    struct lot **at = &f->table[l->hash & (f->table_size - 1)];
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    f->lots[l->id] = NULL;
    for (uint64_t left = f->briefs[l->id].owners; left; left &= left - 1)
        f->logs[__builtin_ctzll(left)].live--;
    f->briefs[l->id].birth = 0;
    f->unused = room_for(f->unused, f->unused_count, &f->unused_room, sizeof *f->unused);
    f->unused[f->unused_count++] = l->id;
    f->live--;
    if (l->room > 1)
        free(l->nodes);
    free(l);
}

static void lot_leave(struct fleet *f, struct node *n)
{
    struct lot *l = n->lot;
    struct node *last = l->nodes[--l->count];
    n->lot = NULL;
    if (!l->count) {
        lot_free(f, l);
    } else if (last != n) {
        sift_down(l, n->at, last);
        sift_up(l, last->at, last);
    }
}

static void table_grow(struct fleet *f)
{
    size_t size = f->table_size ? f->table_size * 2 : 256;
    struct lot **table = must(calloc(size, sizeof *table));
    for (size_t i = 0; i < f->lot_count; i++) {
        struct lot *l = f->lots[i];
        if (l) {
            l->next = table[l->hash & (size - 1)];
            table[l->hash & (size - 1)] = l;
        }
    }
    free(f->table);
    f->table = table;
    f->table_size = size;
}

static void group_add(struct lot *l, const struct group *g)
{
    int at = 0;
    for (; at < l->groups; at++) {
        const struct group *b = &l->group[at];
        int64_t order = g->kind != b->kind               ? g->kind - b->kind
                        : g->free_milli != b->free_milli ? g->free_milli - b->free_milli
                        : g->free_mib != b->free_mib     ? (int64_t)g->free_mib - b->free_mib
                        : g->each != b->each             ? g->each - b->each
                        : g->slots != b->slots           ? g->slots - b->slots
                        : g->project != b->project       ? (g->project < b->project ? -1 : 1)
                                                         : 0;
        if (!order) {
            l->group[at].count++;
            return;
        }
        if (order < 0)
            break;
    }
    memmove(l->group + at + 1, l->group + at, (size_t)(l->groups++ - at) * sizeof *g);
    l->group[at] = *g;
}

/* Who has slots holds them in hardware, whoever is beside it. Where somebody is on a GPU in MIG mode without any, it must have changed its mode
 * under him: nothing comes there until he is gone. */
static bool mig_group(const struct gpu_kind *k, const struct gpu *g, struct group *out)
{
    *out = (struct group){ .kind = g->kind, .count = 1, .slots = g->slots };
    return k->part && !g->squares && (g->slots & (MIG_MEDIA - 1)) != (1 << k->part->slots) - 1;
}

static uint16_t each_of(const struct gpu *g)
{
    if (!g->equal)
        return EACH_ANY;
    if (!g->holders)
        return EACH_EVEN;
    bool same = (int64_t)g->squares * g->holders == (int64_t)g->used_milli * g->used_milli;
    return same ? (uint16_t)(g->used_milli / g->holders) : EACH_NONE;
}

bool gpu_group(const struct fleet *f, const struct gpu *g, struct group *out)
{
    const struct gpu_kind *k = g->healthy ? &f->kinds[g->kind] : NULL;
    if (g->closed)
        return false;
    if (k && k->mig.on)
        return mig_group(k, g, out);
    int64_t mib = k ? k->mem_mib - g->used_mib : 0;
    if (g->used_milli >= 1000 || mib <= 0)
        return false;
    *out = (struct group){ gpu_owner(g), (uint32_t)mib, g->kind, (uint16_t)(1000 - g->used_milli), 1, each_of(g), 0 };
    return true;
}

void node_state(const struct fleet *f, const struct node *n, struct state *state)
{
    struct lot *out = &state->lot;
    *out = (struct lot){ .cpu_milli = n->cpu_milli,
                         .mem_mib = n->mem_mib,
                         .cpu_free = n->cpu_milli - n->cpu_used - n->cpu_claimed,
                         .mem_free = n->mem_mib - n->mem_used - n->mem_claimed,
                         .kept_mib = n->kept_mib,
                         .gpu_count = n->gpu_count,
                         .make = n->make,
                         .site = place_site(n->place),
                         .house = n->house,
                         .host_image = n->host_image };
    for (int i = 0; i < n->gpu_count; i++) {
        const struct gpu *g = &n->gpus[i];
        struct group one;
        if (!gpu_group(f, g, &one))
            continue;
        group_add(out, &one);
        out->free_milli += one.free_milli;
        out->whole = (uint8_t)(out->whole + (one.free_milli && !g->holders));
    }
    uint64_t h = 0xcbf29ce484222325ULL;
    const int64_t parts[]
        = { n->cpu_milli, n->mem_mib, out->cpu_free, out->mem_free, n->kept_mib, n->make | n->host_image << 16 | (int64_t)out->site->id << 17, n->house };
    for (size_t i = 0; i < COUNT(parts); i++)
        h = (h ^ (uint64_t)parts[i]) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
    for (int i = 0; i < out->groups; i++) {
        const struct group *g = &out->group[i];
        h = (h ^ ((uint64_t)g->kind << 48 | (uint64_t)g->free_milli << 32 | g->free_mib))
            * 0x9e3779b97f4a7c15ULL;
        h = (h ^ (uint64_t)g->project ^ (uint64_t)g->count << 56 ^ h >> 29) * 0xbf58476d1ce4e5b9ULL;
        if (g->each | g->slots)
            h = (h ^ ((uint64_t)g->each << 16 | g->slots)) * 0x9e3779b97f4a7c15ULL;
    }
    out->hash = h ^ h >> 32;
}

static bool same_state(const struct lot *a, const struct lot *b)
{
    bool same = a->hash == b->hash && a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib
                && a->cpu_free == b->cpu_free && a->mem_free == b->mem_free && a->kept_mib == b->kept_mib && a->make == b->make
                && a->gpu_count == b->gpu_count && a->host_image == b->host_image && a->house == b->house
                && a->site == b->site && a->groups == b->groups;
    for (int i = 0; same && i < a->groups; i++) {
        const struct group *x = &a->group[i], *y = &b->group[i];
        same = x->project == y->project && x->free_mib == y->free_mib && x->kind == y->kind
               && x->free_milli == y->free_milli && x->count == y->count && x->each == y->each && x->slots == y->slots;
    }
    return same;
}

static struct brief brief_of(const struct lot *l)
{
    struct brief b = { .cpu_free = (int32_t)MAX(MIN(l->cpu_free, INT32_MAX), -1),
                       .mem_free = (int32_t)MAX(MIN(l->mem_free, INT32_MAX), -1),
                       .birth = l->birth,
                       .whole = l->whole };
    for (int i = 0; i < l->groups; i++) {
        const struct group *g = &l->group[i];
        if (!g->project || g->project == OWNER_ANY) {
            b.largest = MAX(b.largest, g->free_milli);
        } else {
            b.rest = MAX(b.rest, g->free_milli);
            b.owners |= UINT64_C(1) << owner_bit(g->project);
        }
    }
    return b;
}

static struct lot *lot_new(struct fleet *f, const struct lot *like)
{
    size_t groups = like->groups * sizeof like->group[0];
    struct lot *l = must(malloc(sizeof *l + groups));
    memcpy(l, like, sizeof *l + groups);
    if (f->live >= f->table_size)
        table_grow(f);
    if (f->unused_count) {
        l->id = f->unused[--f->unused_count];
    } else {
        size_t room = f->lot_room;
        f->lots = room_for(f->lots, f->lot_count, &f->lot_room, sizeof *f->lots);
        f->briefs = room_for(f->briefs, f->lot_count, &room, sizeof *f->briefs);
        l->id = (uint32_t)f->lot_count++;
    }
    l->birth = ++f->births;
    f->lots[l->id] = l;
    f->briefs[l->id] = brief_of(l);
    for (uint64_t left = f->briefs[l->id].owners; left; left &= left - 1)
        f->logs[__builtin_ctzll(left)].live++;
    f->live++;
    l->nodes = &l->only;
    l->room = 1;
    l->next = f->table[l->hash & (f->table_size - 1)];
    return f->table[l->hash & (f->table_size - 1)] = l;
}

static void find_lot(struct fleet *f, struct node *n)
{
    struct state state;
    node_state(f, n, &state);
    struct lot *l = f->table_size ? f->table[state.lot.hash & (f->table_size - 1)] : NULL;
    while (l && !same_state(l, &state.lot))
        l = l->next;
    if (l && l == n->lot)
        return;
    if (n->lot)
        lot_leave(f, n);
    bool fresh = !l;
    l = l ? l : lot_new(f, &state.lot);
    lot_put(l, n);
    if (fresh || l->nodes[0] == n)
        lot_log(f, l);
}

void fleet_settle(struct fleet *f)
{
    for (size_t i = 0; i < f->moved_count; i++) {
        struct node *n = f->moved[i];
        n->moved = false;
        if (n->usable)
            find_lot(f, n);
        else if (n->lot)
            lot_leave(f, n);
    }
    f->moved_count = 0;
    if (f->moved_room > MOVED_KEEP) { /* a whole fleet was told */
        free(TAKE(f->moved));
        f->moved_room = 0;
    }
}

void fleet_done(struct fleet *f)
{
    for (size_t i = 0; i < f->lot_count; i++)
        if (f->lots[i]) {
            if (f->lots[i]->room > 1)
                free(f->lots[i]->nodes);
            free(f->lots[i]);
        }
    for (size_t i = 0; i < f->count; i++) {
        place_leave(f, f->nodes[i]->place);
        free(f->nodes[i]);
    }
    if (f->anywhere)
        place_leave(f, f->anywhere);
    map_free(f->places);
    for (size_t i = 0; i < f->house_count; i++)
        free(f->houses[i]);
    map_free(f->house_numbers);
    map_free(f->named);
    free(f->houses);
    free(f->nodes);
    free(f->ids);
    free(f->kinds);
    free(f->moved);
    free(f->lots);
    free(f->briefs);
    free(f->table);
    free(f->unused);
    free(f->log.at);
    for (int i = 0; i < OWNERS; i++)
        free(f->logs[i].at);
}
