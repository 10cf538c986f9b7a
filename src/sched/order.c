/* order.c - who comes next: the starved, then the highest class of priority; in it the project that has had least for its weight; of
 * a project's jobs the highest number, then the oldest.
 *
 * Jobs that ask for the same stand in one line (struct class), so what is sorted are lines, not jobs: a line stands in its project's lane,
 * a lane in its band by share. Shares grow while work runs, and nobody looks: the key of a lane is what it was when it was last
 * looked at, which is never too large, and the first of a band is worked out again until it stays the first. A line that cannot
 * start anything is parked and costs nothing until something is given back. */
#include "sched/sched_internal.h"
#include <stdlib.h>

/* --- lines */

static struct job *first(const struct class *c)
{
    return c->ready[c->head];
}

static int64_t bound_ms(const struct job *j)
{
    return j->since_ms + priorities[priority_of(j->priority)].starved_s * 1000;
}

bool order_starved(const struct sched *s, const struct job *j)
{
    return bound_ms(j) <= s->last_now_ms;
}

/* Who of a line has waited longest for anything at all: the oldest, or the one behind it while an array before it is being served. */
static struct job *hungriest(const struct class *c)
{
    struct job *a = first(c), *b = c->count > 1 ? c->ready[c->head + 1] : a;
    return bound_ms(b) < bound_ms(a) ? b : a;
}

int job_order(const struct job *a, const struct job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void line_settle(struct class *c)
{
    const struct job *j = first(c), *k = hungriest(c);
    c->first_priority = j->priority;
    c->first_created_ms = j->created_ms;
    c->first_id = j->id;
    c->starves_ms = bound_ms(k);
    c->starves_id = k->id;
}

static bool line_before(const void *a, const void *b) /* as job_order */
{
    const struct class *x = a, *y = b;
    if (x->first_priority != y->first_priority)
        return x->first_priority > y->first_priority;
    return x->first_created_ms != y->first_created_ms ? x->first_created_ms < y->first_created_ms : x->first_id < y->first_id;
}

static bool starves_before(const void *a, const void *b)
{
    const struct class *x = a, *y = b;
    return x->starves_ms != y->starves_ms ? x->starves_ms < y->starves_ms : x->starves_id < y->starves_id;
}

static bool wakes_before(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->wake_ms != y->wake_ms ? x->wake_ms < y->wake_ms : x->id < y->id;
}

static bool lane_before(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;
    return x->key != y->key ? x->key < y->key : x->project->id < y->project->id;
}

static bool any_before(const void *a, const void *b) /* parked lines have no order */
{
    (void)a, (void)b;
    return false;
}

void order_start(struct sched *s)
{
    share_start(&s->clock, SHARE_HALF_LIFE_S * INT64_C(1000));
    for (int i = 0; i < CLASS_COUNT; i++)
        s->bands[i] = HEAP(struct lane, pos, lane_before);
    s->starving = HEAP(struct class, starve_pos, starves_before);
    s->sleepers = HEAP(struct job, asleep, wakes_before);
    s->parked = HEAP(struct class, parked_pos, any_before);
}

void order_done(struct sched *s)
{
    struct project *p;
    for (size_t at = 0; (p = map_next(s->projects, &at));)
        for (int i = 0; i < CLASS_COUNT; i++)
            heap_done(&p->lanes[i].classes);
    for (int i = 0; i < CLASS_COUNT; i++)
        heap_done(&s->bands[i]);
    heap_done(&s->starving);
    heap_done(&s->sleepers);
    heap_done(&s->parked);
}

/* --- shares */

static void held_by(const struct project *p, int64_t out[SHARE_COUNT])
{
    out[SHARE_GPU] = p->gpu_held;
    out[SHARE_CPU] = p->cpu_held;
    out[SHARE_MEM] = p->mem_held;
}

void order_held(struct sched *s, struct project *p)
{
    int64_t held[SHARE_COUNT];
    held_by(p, held);
    share_settle(&s->clock, &p->share, held);
}

static int64_t key_of(struct sched *s, struct project *p)
{
    int64_t held[SHARE_COUNT];
    held_by(p, held);
    share_settle(&s->clock, &p->share, held);
    return share_key(&s->clock, &p->share, held, p->weight_milli);
}

void order_moved(struct sched *s, struct project *p)
{
    int64_t key = key_of(s, p);
    for (int i = 0; i < CLASS_COUNT; i++) {
        p->lanes[i].key = key;
        heap_fix(&s->bands[i], &p->lanes[i]);
    }
}

/* Keys in other units: as good as never, but for nodes that come and go. */
static void all_moved(struct sched *s)
{
    struct project *p;
    for (size_t at = 0; (p = map_next(s->projects, &at));) {
        int64_t key = key_of(s, p);
        for (int i = 0; i < CLASS_COUNT; i++)
            p->lanes[i].key = key;
    }
    for (int i = 0; i < CLASS_COUNT; i++)
        heap_all(&s->bands[i]);
    s->other_units = false;
}

/* Also of nodes that are away: a share must not jump because one is restarted. */
void order_node(struct sched *s, const struct node *n, int sign)
{
    if (!n)
        return;
    s->clock.capacity[SHARE_GPU] += sign * 1000 * n->gpu_count;
    s->clock.capacity[SHARE_CPU] += sign * n->cpu_milli;
    s->clock.capacity[SHARE_MEM] += sign * n->mem_mib;
    s->other_units = true;
}

void order_clock(struct sched *s, int64_t at_ms)
{
    if (at_ms > s->clock.now_ms) /* a snapshot tells of what was long before */
        s->other_units |= share_time(&s->clock, at_ms);
}

void order_since(struct sched *s, const struct hold *h, int64_t at_ms)
{
    int64_t held[SHARE_COUNT] = { 0, h->cpu_milli, h->mem_mib };
    for (int i = 0; i < h->count; i++)
        held[SHARE_GPU] += h->gpus[i].milli;
    if (at_ms)
        share_add(&s->clock, &h->project->share, held, at_ms, s->clock.now_ms);
    order_moved(s, h->project);
}

void order_used(struct sched *s, struct project *p, const int64_t used[SHARE_COUNT], int64_t from_ms, int64_t to_ms)
{
    int64_t mean[SHARE_COUNT];
    for (int i = 0; i < SHARE_COUNT; i++)
        mean[i] = used[i] / MAX(to_ms - from_ms, 1);
    share_add(&s->clock, &p->share, mean, from_ms, to_ms);
}

/* --- lines that may start something */

static struct lane *lane_of(const struct class *c)
{
    return &c->project->lanes[priority_of(c->priority)];
}

static struct heap *band_of(struct sched *s, const struct class *c)
{
    return &s->bands[priority_of(c->priority)];
}

static void line_enter(struct sched *s, struct class *c)
{
    struct lane *l = lane_of(c);
    if (!l->classes.before)
        l->classes = HEAP(struct class, lane_pos, line_before), l->project = c->project;
    heap_add(&l->classes, c);
    heap_add(&s->starving, c);
    if (!heap_has(band_of(s, c), l)) {
        l->key = key_of(s, c->project);
        heap_add(band_of(s, c), l);
    }
}

static void line_leave(struct sched *s, struct class *c)
{
    struct lane *l = lane_of(c);
    heap_drop(&l->classes, c);
    heap_drop(&s->starving, c);
    if (!l->classes.count)
        heap_drop(band_of(s, c), l);
}

void order_park(struct sched *s, struct class *c)
{
    line_leave(s, c);
    heap_add(&s->parked, c);
}

void order_unpark(struct sched *s)
{
    struct class *c;
    while ((c = s->parked.count ? s->parked.at[s->parked.count - 1] : NULL)) {
        heap_drop(&s->parked, c);
        line_enter(s, c);
    }
}

/* --- jobs */

static size_t place_in(const struct class *c, const struct job *j)
{
    size_t low = 0, high = c->count;
    if (high && job_order(c->ready[c->head + high - 1], j) < 0) /* the newest goes last */
        return high;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (job_order(c->ready[c->head + mid], j) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void make_room(struct class *c)
{
    if (c->head + c->count < c->room)
        return;
    if (c->head > c->room / 2) {
        memmove(c->ready, c->ready + c->head, c->count * sizeof *c->ready);
        c->head = 0;
        return;
    }
    c->room = c->room ? c->room * 2 : 1;
    c->ready = must(reallocarray(c->ready, c->room, sizeof *c->ready));
}

static void line_add(struct sched *s, struct job *j)
{
    struct class *c = j->class;
    size_t at = place_in(c, j);
    make_room(c);
    struct job **list = c->ready + c->head;
    memmove(list + at + 1, list + at, (c->count - at) * sizeof *list);
    list[at] = j;
    c->count++;
    j->ready = true;
    if (at <= 1)
        line_settle(c);
    if (at && heap_has(&s->parked, c) && ((s->claims.count && j->bound_ms) || evict_could(s, priority_of(c->priority))))
        s->dirty = true; /* it may find a place that is too short for those before it, or somebody who yields */
    if (c->count == 1 && !heap_has(&s->parked, c)) {
        line_enter(s, c);
    } else if (at <= 1) {
        heap_fix(&lane_of(c)->classes, c);
        heap_fix(&s->starving, c);
    }
}

static void line_drop(struct sched *s, struct job *j)
{
    struct class *c = j->class;
    struct job **list = c->ready + c->head;
    size_t at = list[0] == j ? 0 : place_in(c, j);
    j->ready = false;
    if (c->count == 1) {
        if (heap_has(&s->parked, c))
            heap_drop(&s->parked, c);
        else
            line_leave(s, c);
        c->told = REASON_NONE;
        c->head = c->count = 0;
        return;
    }
    if (at == 0)
        c->head++;
    else
        memmove(list + at, list + at + 1, (c->count - at - 1) * sizeof *list);
    c->count--;
    if (at <= 1)
        line_settle(c);
    if (at <= 1 && !heap_has(&s->parked, c)) {
        heap_fix(&lane_of(c)->classes, c);
        heap_fix(&s->starving, c);
    }
}

void order_remove(struct sched *s, struct job *j)
{
    if (j->ready)
        line_drop(s, j);
    heap_drop(&s->sleepers, j);
    if (s->next == j)
        s->next = NULL;
}

void order_file(struct sched *s, struct job *j)
{
    size_t from = 0;
    int64_t task, now = s->last_now_ms, wake = INT64_MAX;
    bool ready = false;
    if (j->waiting.count && !j->blocked) {
        ready = j->class->gang ? gang_ready(j, now, &wake) : waiting_ready(&j->waiting, now, &from, &wake, &task);
        if (j->pause_ms > now && j->pause_ms <= now + REFUSED_PAUSE_MS) { /* else the clock went back */
            wake = ready ? j->pause_ms : MAX(wake, j->pause_ms);
            ready = false;
        }
    }
    if (ready && j->ready)
        return;
    order_remove(s, j);
    if (ready) {
        line_add(s, j);
    } else if (wake < INT64_MAX) {
        j->wake_ms = wake;
        heap_add(&s->sleepers, j);
    }
}

int64_t order_wake(const struct sched *s)
{
    const struct job *j = heap_top(&s->sleepers);
    return j ? j->wake_ms : INT64_MAX;
}

/* --- what comes next */

void order_started(struct sched *s, struct job *j, int64_t at_ms)
{
    if (at_ms <= j->since_ms)
        return;
    j->since_ms = at_ms;
    if (j->ready) {
        line_settle(j->class);
        heap_fix(&s->starving, j->class);
    }
}

struct job *order_next(struct sched *s)
{
    struct class *c = heap_top(&s->starving);
    if (s->other_units)
        all_moved(s);
    if (!c || c->starves_ms <= s->last_now_ms)
        return c ? hungriest(c) : NULL;
    for (int i = CLASS_COUNT - 1; i >= 0; i--)
        for (struct lane *l; (l = heap_top(&s->bands[i]));) {
            int64_t key = key_of(s, l->project);
            if (key == l->key)
                return first(heap_top(&l->classes));
            l->key = key;
            heap_fix(&s->bands[i], l);
        }
    return NULL;
}

bool order_before(const struct sched *s, const struct job *a, const struct job *b)
{
    if (bound_ms(a) <= s->last_now_ms || bound_ms(b) <= s->last_now_ms)
        return bound_ms(a) != bound_ms(b) ? bound_ms(a) < bound_ms(b) : a->id < b->id;
    const struct project *p = a->class->project, *q = b->class->project;
    int x = (int)priority_of(a->priority), y = (int)priority_of(b->priority);
    if (x != y)
        return x > y;
    return p != q ? lane_before(&p->lanes[x], &q->lanes[y]) : job_order(a, b) < 0;
}

void order_time(struct sched *s, int64_t now_ms)
{
    struct job *j;
    bool back = now_ms < s->last_now_ms;
    s->last_now_ms = now_ms;
    s->other_units |= share_time(&s->clock, now_ms);
    for (size_t at = 0; back && (j = map_next(s->jobs, &at));)
        order_file(s, j);
    while ((j = heap_top(&s->sleepers)) && j->wake_ms <= now_ms) {
        heap_drop(&s->sleepers, j);
        order_file(s, j);
        fresh_add(s, j);
    }
}
