/* evict.c - who yields to a job that finds no room: spot work, and of other classes only what the rules name; the fewest that suffice, and of
 * those the youngest, for they lose least.
 *
 * What an eviction frees is claimed for the job before anybody is told. A task that was asked to go is not asked again, and its place is closed to it
 * when it comes back, so two jobs cannot chase each other. The brake counts what was evicted in its window; places that were lent out of a reservation
 * are not counted, since whoever made the reservation said so. */
#include "sched/sched_internal.h"
#include <stdlib.h>

enum { TRIES_ON_NODE = 4096, LINE_MOST = 16, LARGE = 256, FAILS_MOST = 4 };

static int64_t milli_of(const struct hold *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->count; i++)
        sum += h->gpus[i].milli;
    return sum;
}

/* If one of a gang goes, all do. */
static int64_t gang_of(const struct sched *s, const struct hold *h)
{
    const struct job *j = map_get(s->jobs, h->job);
    return j && j->class->gang ? j->class->gang : 1;
}

/* --- the least on one node */

static int by_youth(const void *a, const void *b)
{
    const struct hold *x = *(struct hold *const *)a, *y = *(struct hold *const *)b;
    if (x->since_ms != y->since_ms)
        return x->since_ms > y->since_ms ? -1 : 1;
    if (x->job != y->job)
        return x->job > y->job ? -1 : 1;
    return x->task > y->task ? -1 : x->task < y->task;
}

/* The youngest first; not more than can be tried. */
static int candidates(const struct sched *s, const struct node *n, unsigned ranks, struct hold *out[static VICTIMS_MOST])
{
    struct hold *all[HOLDS_MOST];
    int count = 0;
    for (struct hold *h = map_get(s->held_on, n->id); h && count < HOLDS_MOST; h = h->next)
        if ((ranks >> h->rank & 1) && h->confirmed && !h->yields_ms && !h->evicted_for && !h->returning)
            all[count++] = h;
    if (count > 1)
        qsort(all, (size_t)count, sizeof *all, by_youth);
    count = MIN(count, (int)VICTIMS_MOST);
    memcpy(out, all, (size_t)count * sizeof *out);
    return count;
}

static bool fits_without(struct sched *s, struct class *c, struct node *n, struct hold *const *of, int count)
{
    for (int i = 0; i < count; i++)
        hold_as(n, of[i], -1);
    bool fits = index_fits(&s->index, c->wanted, n);
    for (int i = 0; i < count; i++)
        hold_as(n, of[i], 1);
    return fits;
}

/* The next choice of k numbers below `of`, such that one with a smaller largest number comes before: the youngest sets come first. */
static bool next_choice(int at[], int k, int of)
{
    for (int i = 0; i < k; i++)
        if (at[i] + 1 < (i + 1 < k ? at[i + 1] : of)) {
            at[i]++;
            while (i-- > 0)
                at[i] = i;
            return true;
        }
    return false;
}

/* One that suffices, without anybody that could be spared. */
static int greedy(struct sched *s, struct class *c, struct node *n, struct hold *const *from, int count, struct hold **out)
{
    int k = 0;
    while (k < count && !fits_without(s, c, n, from, k))
        k++;
    memcpy(out, from, (size_t)k * sizeof *out);
    for (int i = k; i-- > 0;) {
        struct hold *was = out[i];
        memmove(out + i, out + i + 1, (size_t)(k - i - 1) * sizeof *out);
        if (fits_without(s, c, n, out, k - 1)) {
            k--;
        } else {
            memmove(out + i + 1, out + i, (size_t)(k - i - 1) * sizeof *out);
            out[i] = was;
        }
    }
    return k;
}

/* So many at the least: what is missing, by the largest part of it that one of them has. */
static int at_least(const struct class *c, const struct node *n, struct hold *const *from, int count)
{
    int64_t cpu, mem, gpus = c->shape.gpu.milli / 1000, most[3] = { 0 };
    shape_on(&c->shape, n->cpu_milli, n->mem_mib, n->kept_mib, n->gpu_count, &cpu, &mem);
    for (int i = 0; i < n->gpu_count; i++)
        gpus -= !n->gpus[i].holders && !n->gpus[i].closed;
    const int64_t needs[3] = { cpu - (n->cpu_milli - n->cpu_used - n->cpu_claimed), mem - (n->mem_mib - n->mem_used - n->mem_claimed), gpus };
    for (int i = 0; i < count; i++) {
        most[0] = MAX(most[0], from[i]->cpu_milli);
        most[1] = MAX(most[1], from[i]->mem_mib);
        most[2] = MAX(most[2], from[i]->count);
    }
    int64_t k = 1;
    for (int i = 0; i < 3; i++)
        if (needs[i] > 0)
            k = MAX(k, most[i] ? (needs[i] + most[i] - 1) / most[i] : VICTIMS_MOST);
    return (int)MIN(k, (int64_t)VICTIMS_MOST);
}

/* The fewest, and of those the youngest: all sets of a size are tried, then of the next, as long as there are not too many. */
static int least(struct sched *s, struct class *c, struct node *n, struct hold *const *from, int count, int k, int most, struct hold **out)
{
    struct hold *rough[VICTIMS_MOST];
    if (fits_without(s, c, n, from, k)) { /* as nearly always, if they are alike */
        memcpy(out, from, (size_t)k * sizeof *out);
        return k;
    }
    int enough = greedy(s, c, n, from, count, rough), tries = 0;
    for (; k <= MIN(enough, most); k++) {
        int at[VICTIMS_MOST];
        for (int i = 0; i < k; i++)
            at[i] = i;
        do {
            for (int i = 0; i < k; i++)
                out[i] = from[at[i]];
            if (fits_without(s, c, n, out, k))
                return k;
        } while (++tries < TRIES_ON_NODE && next_choice(at, k, count));
        if (tries >= TRIES_ON_NODE)
            break;
    }
    memcpy(out, rough, (size_t)enough * sizeof *out);
    return enough;
}

bool victims_least(struct sched *s, struct class *c, struct node *n, unsigned ranks, struct victims *best)
{
    struct hold *from[VICTIMS_MOST];
    struct victims v = { .at.node = n, .oldest_ms = INT64_MAX };
    int count = n->usable && (!c->only_node || c->only_node == n->id) ? candidates(s, n, ranks, from) : 0;
    int k = count ? at_least(c, n, from, count) : 0, most = best->at.node ? (int)MIN(best->cost, VICTIMS_MOST) : VICTIMS_MOST;
    if (!count || k > MIN(count, most) || (best->at.node && k == best->cost && from[k - 1]->since_ms < best->oldest_ms)
        || !fits_without(s, c, n, from, count))
        return false;
    v.count = least(s, c, n, from, count, k, most, v.of);
    for (int i = 0; i < v.count; i++) {
        v.oldest_ms = MIN(v.oldest_ms, v.of[i]->since_ms);
        v.cost += gang_of(s, v.of[i]);
    }
    if (best->at.node && (v.cost > best->cost || (v.cost == best->cost && v.oldest_ms < best->oldest_ms)))
        return false;
    for (int i = 0; i < v.count; i++)
        hold_as(n, v.of[i], -1);
    bool fits = index_as(&s->index, c->wanted, n, &v.at.pick, v.at.gpus, &v.at.count) && place_allowed(s, c, &v.at);
    for (int i = 0; i < v.count; i++)
        hold_as(n, v.of[i], 1);
    if (!fits || (best->at.node && v.cost == best->cost && v.oldest_ms == best->oldest_ms && v.at.pick.score <= best->at.pick.score))
        return false;
    *best = v;
    return true;
}

/* --- the brake */

static int64_t part_of_fleet(const struct sched *s)
{
    int64_t node = 0;
    for (size_t i = 0; i < s->fleet.make_count; i++)
        if (s->fleet.makes[i].nodes)
            node = MAX(node, s->fleet.makes[i].gpu_count * INT64_C(1000));
    return s->rules.brake_permille ? MAX(s->clock.capacity[SHARE_GPU] * s->rules.brake_permille / 1000, node) : 0;
}

void evict_time(struct sched *s, int64_t now_ms)
{
    while (s->brake_from < s->brake_count && s->brakes[s->brake_from].at_ms + s->rules.brake_window_ms <= now_ms)
        s->brake_from++;
    if (s->brake_from == s->brake_count)
        s->brake_from = s->brake_count = 0;
    s->evict_fails = 0;
    if (now_ms >= s->braked_ms) {
        s->braked_ms = INT64_MAX;
        s->dirty = true;
    }
}

int64_t victims_milli(const struct sched *s, const struct victims *v)
{
    int64_t sum = 0;
    for (int i = 0; i < v->count; i++)
        sum += milli_of(v->of[i]) * gang_of(s, v->of[i]);
    return sum;
}

bool brake_allows(struct sched *s, int64_t milli)
{
    int64_t sum = milli, part = part_of_fleet(s);
    if (sum > part)
        return false;
    for (size_t i = s->brake_from; i < s->brake_count; i++)
        sum += s->brakes[i].milli;
    if (sum > part && s->brake_from < s->brake_count)
        s->braked_ms = MIN(s->braked_ms, s->brakes[s->brake_from].at_ms + s->rules.brake_window_ms);
    return sum <= part;
}

/* By when it was: a snapshot tells them in another order. */
static void brake_add(struct sched *s, const struct brake *b)
{
    size_t at = s->brake_count;
    s->brakes = room_for(s->brakes, s->brake_count++, &s->brake_room, sizeof *s->brakes);
    for (; at > s->brake_from && s->brakes[at - 1].at_ms > b->at_ms; at--)
        s->brakes[at] = s->brakes[at - 1];
    s->brakes[at] = *b;
}

static void brake_back(struct sched *s, int64_t job, int64_t task)
{
    size_t at = s->brake_count;
    while (at > s->brake_from && (s->brakes[at - 1].job != job || s->brakes[at - 1].task != task))
        at--;
    if (at > s->brake_from)
        memmove(s->brakes + at - 1, s->brakes + at, (s->brake_count-- - at) * sizeof *s->brakes);
}

/* What the door counted is what counts: at its time, after a restart too. */
void evict_told(struct sched *s, const struct sched_event *e)
{
    if (e->job)
        brake_back(s, e->job, e->task);
    brake_add(s, &(struct brake){ .at_ms = e->at_ms, .milli = e->count });
}

/* --- evictions */

/* The door ends the rest of a gang: they are not asked by themselves. */
static void yield_for(struct sched *s, struct hold *h, int64_t job)
{
    h->evicted_for = job;
    for (int64_t i = 0, n = gang_of(s, h); n > 1 && i < n; i++) {
        struct hold *other = hold_find(s, h->job, i);
        if (other)
            other->evicted_for = job;
    }
}

static void tell(struct sched *s, struct hold *h, int64_t job, enum evict_why why)
{
    s->evictions = room_for(s->evictions, s->eviction_count, &s->eviction_room, sizeof *s->evictions);
    s->evictions[s->eviction_count++] = (struct eviction){ h->job, h->task, h->node, job, (int)why };
    yield_for(s, h, job);
}

void evict_take(struct sched *s, struct job *j, const struct victims *v, bool reserved)
{
    struct claim like = { .kind = CLAIM_EVICT,
                          .job = j->id,
                          .node = v->at.node->id,
                          .start_ms = s->last_now_ms + s->rules.notice_ms,
                          .cpu_milli = v->at.pick.cpu_milli,
                          .mem_mib = v->at.pick.mem_mib,
                          .count = v->at.count };
    memcpy(like.gpus, v->at.gpus, sizeof like.gpus);
    for (int i = 0; i < v->count; i++) {
        enum evict_why why = reserved ? EVICT_RESERVATION : v->of[i]->rank == CLASS_SPOT ? EVICT_SPOT : EVICT_CLASS;
        tell(s, v->of[i], j->id, why);
        if (!reserved)
            brake_add(s, &(struct brake){ s->last_now_ms, milli_of(v->of[i]) * gang_of(s, v->of[i]), v->of[i]->job, v->of[i]->task });
    }
    claim_new(s, &like);
}

/* Only the reserved devices of a node are open, and then as they were. */
static void only_reserved(struct sched *s, const struct reserve *r, struct node *n, bool begin)
{
    for (int i = 0; begin && i < n->gpu_count; i++)
        n->gpus[i].closed++;
    for (struct claim *cl = map_get(s->claims.on, n->id); cl; cl = cl->next) {
        if (cl->reserve != r)
            continue;
        if (!begin)
            claim_take(s, cl);
        else
            claim_lift(s, cl);
        for (int k = 0; k < cl->count; k++) {
            struct gpu *g = (struct gpu *)node_gpu(n, cl->gpus[k].index);
            g->closed = (uint8_t)(g->closed - (begin ? 1 : -1));
        }
    }
    for (int i = 0; !begin && i < n->gpu_count; i++)
        n->gpus[i].closed--;
}

bool victims_lent(struct sched *s, const struct job *j, struct node *n, struct victims *best)
{
    bool better = false;
    const struct reserve *last = NULL;
    for (const struct claim *cl = map_get(s->claims.on, n->id); cl; cl = cl->next) {
        if (!cl->reserve || cl->reserve == last || !claim_own(s, cl, j))
            continue;
        last = cl->reserve;
        only_reserved(s, last, n, true);
        better = victims_least(s, j->class, n, SPOT_YIELDS, best) || better;
        only_reserved(s, last, n, false);
    }
    return better;
}

static bool from_reserved(struct sched *s, const struct job *j, struct victims *v)
{
    struct reserve *r;
    int64_t last = 0;
    for (size_t i = 0; (r = map_next(s->reserves, &i));)
        for (int64_t k = 0; r->class->project == j->class->project && reserve_open(s, r) && k < r->count; k++) {
            struct node *n = r->parts[k] && r->parts[k]->node != last ? fleet_node(&s->fleet, r->parts[k]->node) : NULL;
            if (n)
                victims_lent(s, j, n, v);
            last = n ? n->id : last;
        }
    return v->at.node;
}

static bool evict_for(struct sched *s, struct job *j)
{
    unsigned ranks = s->rules.preempt[priority_of(j->priority)];
    struct victims v = { 0 };
    size_t could = 0;
    for (int i = 0; i < CLASS_COUNT; i++)
        could += ranks >> i & 1 ? s->ranks[i] : 0;
    ranks &= ~(1u << priority_of(j->priority));
    bool lent = map_count(s->reserves) && s->ranks[CLASS_SPOT];
    if (j->class->gang)
        return (lent && crew_evict(s, j, 0, true)) || (could && crew_evict(s, j, ranks, false));
    if (lent) {
        index_ready(&s->index, j->class->wanted);
        if (from_reserved(s, j, &v)) {
            evict_take(s, j, &v, true);
            return true;
        }
    }
    if (!could)
        return false;
    index_ready(&s->index, j->class->wanted);
    for (size_t i = 0; i < s->fleet.count; i++)
        victims_least(s, j->class, s->fleet.nodes[i], ranks, &v);
    if (!v.at.node || !brake_allows(s, victims_milli(s, &v)))
        return false;
    evict_take(s, j, &v, false);
    return true;
}

/* As many tasks of the line as may start at once: they would not wait for each other's notice. */
static bool room_in_quota(struct sched *s, struct class *c, int64_t more)
{
    struct project *p = c->project;
    const struct project was = *p;
    if (more && p->limits.count)
        return false;
    p->gpu_held += more * c->shape.gpu.milli;
    p->cpu_held += more * c->shape.cpu_milli;
    p->mem_held += more * c->shape.mem_mib;
    bool allowed = quota_allows(s, c);
    p->gpu_held = was.gpu_held;
    p->cpu_held = was.cpu_held;
    p->mem_held = was.mem_held;
    return allowed;
}

static int64_t ready_tasks(const struct sched *s, const struct job *j)
{
    int64_t sum = 0;
    for (size_t i = 0; i < j->waiting.count && sum < LINE_MOST; i++) {
        const struct range *r = &waiting_ranges(&j->waiting)[i];
        sum += r->not_before_ms <= s->last_now_ms ? MIN(r->last - r->first + 1, LINE_MOST) : 0;
    }
    return sum;
}

static int64_t places_of(const struct sched *s, const struct job *j)
{
    int64_t sum = 0;
    for (const struct claim *cl = claims_of(s, j->id); cl; cl = cl->same)
        sum += cl->kind == CLAIM_EVICT;
    return sum;
}

bool evict_could(const struct sched *s, enum priority_class rank)
{
    bool any = s->ranks[CLASS_SPOT] && map_count(s->reserves);
    for (int i = 0; i < CLASS_COUNT; i++)
        any = any || ((s->rules.preempt[rank] >> i & 1) && s->ranks[i]);
    return any;
}

void evict_line(struct sched *s, struct class *c)
{
    int64_t claimed = 0;
    int asked = 0;
    if (!evict_could(s, priority_of(c->priority)))
        return;
    int64_t from_ms = MAX(c->evict_ms, s->evict_pause_ms);
    if (s->evict_fails == FAILS_MOST)
        from_ms = MAX(from_ms, s->last_now_ms + EVICT_PAUSE_MS / 4);
    if (s->last_now_ms < from_ms) {
        s->braked_ms = MIN(s->braked_ms, from_ms);
        return;
    }
    for (size_t i = 0; i < c->count && i < LINE_MOST; i++) {
        struct job *j = c->ready[c->head + i];
        int64_t tasks = c->gang ? 1 : ready_tasks(s, j), places = MIN(places_of(s, j), tasks);
        claimed += places;
        for (; places < tasks && asked < LINE_MOST && room_in_quota(s, c, claimed); places++, claimed++, asked++)
            if (!evict_for(s, j)) {
                if (s->fleet.count > LARGE) { /* it has looked everywhere: not again at once, and not everybody in one pass */
                    c->evict_ms = s->last_now_ms + EVICT_PAUSE_MS;
                    s->evict_fails++;
                }
                return;
            }
    }
}

void evict_kept(struct sched *s, struct hold *h)
{
    struct claim *next;
    const struct job *j = map_get(s->jobs, h->evicted_for);
    if (j && j->class->gang)
        claims_drop_of(s, j->id);
    for (struct claim *cl = claims_of(s, h->evicted_for); cl; cl = next) {
        next = cl->same;
        if (cl->kind == CLAIM_EVICT && cl->node == h->node)
            claim_drop(s, cl);
    }
    yield_for(s, h, 0);
    brake_back(s, h->job, h->task); /* nor does it count */
    s->braked_ms = MIN(s->braked_ms, s->last_now_ms + EVICT_PAUSE_MS);
    s->evict_pause_ms = s->last_now_ms + EVICT_PAUSE_MS;
}
