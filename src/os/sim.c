/* sim.c - the world: one clock, one heap of events, one stream of chance; hosts, machines and
 * their timers.
 *
 *
 * Everything that happens is an event of the heap, and every choice comes from the seed in the
 * order of events, so a run is its seed. Nothing here may depend on an address, on real time or
 * on another thread. */
#include "os/sim_internal.h"
#include <stdio.h>
#include <stdlib.h>

static const int64_t WALL_AT_START = 1794700800000;     /* 2026-11-15T00:00:00Z */

struct chunk { struct link link; struct machine *owner; _Alignas(max_align_t) char mem[]; };

uint64_t sim_chance(struct sim *w, uint64_t below) { return rng_below(&w->rng, below); }
int64_t sim_now_ms(const struct sim *w) { return w->now; }
void sim_wall_jump(struct sim *w, int64_t ms) { w->wall_offset += ms; }
uint64_t sim_trace(const struct sim *w) { return w->trace; }
int64_t sim_steps(const struct sim *w) { return (int64_t)w->steps; }

int64_t sim_between(struct sim *w, int64_t least, int64_t most)
{
    return most <= least ? least : least + (int64_t)sim_chance(w, (uint64_t)(most - least) + 1);
}

void sim_note(struct sim *w, uint64_t what)
{
    struct rng mix = { w->trace ^ what };
    w->trace = rng_next(&mix);
}

/* --- events */
static bool event_before(const struct event *a, const struct event *b)
{
    if (a->due != b->due)
        return a->due < b->due;
    if (a->asked != b->asked)
        return a->asked < b->asked;
    return a->tie != b->tie ? a->tie < b->tie : a->order < b->order;
}

static void heap_put(struct sim *w, size_t at, struct event *e)
{
    w->heap[at] = e;
    e->at = at;
}

static void heap_settle(struct sim *w, size_t at, struct event *e)
{
    for (size_t up; at && event_before(e, w->heap[up = (at - 1) / 2]); at = up)
        heap_put(w, at, w->heap[up]);
    for (size_t down; (down = at * 2 + 1) < w->events; at = down) {
        if (down + 1 < w->events && event_before(w->heap[down + 1], w->heap[down]))
            down++;
        if (!event_before(w->heap[down], e))
            break;
        heap_put(w, at, w->heap[down]);
    }
    heap_put(w, at, e);
}

struct event *sim_later(struct sim *w, struct machine *owner, int64_t after_ms,
                        void (*fn)(void *arg), void *arg)
{
    struct event *e = os_alloc(sizeof *e);
    *e = (struct event){ .owner = owner, .fn = fn, .arg = arg, .order = w->order++ };
    e->due = e->asked = after_ms > INT64_MAX - w->now ? INT64_MAX : w->now + after_ms;
    e->tie = rng_next(&w->rng);
    if (w->events == w->room) {
        w->room = w->room ? w->room * 2 : 64;
        w->heap = realloc(w->heap, w->room * sizeof *w->heap);
        if (!w->heap)
            abort();
    }
    w->events++;
    heap_settle(w, w->events - 1, e);
    return e;
}

static void heap_take(struct sim *w, struct event *e)
{
    struct event *last = w->heap[--w->events];
    if (last != e)
        heap_settle(w, e->at, last);
}

void event_cancel(struct sim *w, struct event *e)
{
    if (!e)
        return;
    heap_take(w, e);
    free(e);
}

static bool event_due(struct sim *w)        /* drops what dead machines left on top */
{
    for (struct machine *m; w->events && (m = w->heap[0]->owner);) {
        struct event *e = w->heap[0];
        if (m->dead) {
            event_cancel(w, e);
        } else if (MAX(e->due, w->now) < m->still_until) {
            e->due = m->still_until;        /* what waited runs then, in the order it was asked for */
            heap_settle(w, 0, e);
        } else {
            break;
        }
    }
    return w->events;
}

bool sim_step(struct sim *w)
{
    if (!event_due(w))
        return false;
    struct event *e = w->heap[0], now = *e;
    event_cancel(w, e);
    w->now = MAX(w->now, now.due);
    w->steps++;
    sim_note(w, now.order ^ (uint64_t)w->now << 32);
    now.fn(now.arg);
    return true;
}

bool sim_until(struct sim *w, int64_t boot_ms, bool (*enough)(void *arg), void *arg)
{
    for (;;) {
        if (enough && enough(arg))
            return true;
        if (!event_due(w) || w->heap[0]->due > boot_ms)
            break;
        sim_step(w);
    }
    w->now = MAX(w->now, boot_ms);
    return !enough;
}

/* --- memory */
void *sim_take(struct machine *m, size_t size)
{
    struct chunk *c = os_alloc(sizeof *c + size);
    c->owner = m;
    link_add(&m->memory, &c->link);
    return c->mem;
}

void sim_give(void *p)
{
    struct chunk *c = CONTAINER(p, struct chunk, mem);
    if (c->owner->dead)
        return;
    link_cut(&c->link);
    free(c);
}

void sim_stall(struct sim *w, struct os *os, int64_t ms)
{
    struct machine *m = machine_of(os);
    m->still_until = MAX(m->still_until, w->now + ms);
}

/* --- hosts and machines */
struct host *sim_host(struct sim *w, const char *name)
{
    LINK_EACH (&w->hosts, l)
        if (text_is(CONTAINER(l, struct host, link)->name, name))
            return CONTAINER(l, struct host, link);
    struct host *h = os_alloc(sizeof *h);
    snprintf(h->name, sizeof h->name, "%s", name);
    h->files = map_new();
    h->memory = map_new();
    h->next_port = 40000;
    h->next_pid = 1000;
    link_add(&w->hosts, &h->link);
    return h;
}

struct machine *machine_new(struct host *h, struct sim *w)
{
    struct machine *m = os_alloc(sizeof *m);
    m->os.ops = &sim_ops;
    m->w = w;
    m->host = h;
    m->posts_end = &m->posts;
    struct link *rings[] = { &m->memory, &m->streams, &m->listeners, &m->watches, &m->handles };
    for (size_t i = 0; i < COUNT(rings); i++)
        link_init(rings[i]);
    link_add(&w->machines, &m->link);
    return m;
}

struct os *sim_machine(struct sim *w, const char *host)
{
    struct host *h = sim_host(w, host);
    if (!h->main)
        h->main = machine_new(h, w);
    return &h->main->os;
}

static void clear(struct machine *m, bool crashed)
{
    net_clear(m, crashed);
    disk_clear(m);
}
static void clear_crashed(void *arg) { clear(arg, true); }
static void clear_ended(void *arg) { clear(arg, false); }

void machine_die(struct machine *m, bool crashed)
{
    if (m->dead)
        return;
    m->dead = true;
    if (m->host->main == m)
        m->host->main = NULL;
    /* Later, because a callback of this very machine may be running on one of its buffers. */
    sim_later(m->w, NULL, 0, crashed ? clear_crashed : clear_ended, m);
}

bool machine_failed(struct machine *m, struct err *err)
{
    if (m->dead)
        err_set(err, RC_UNAVAILABLE, "the simulated machine %s is dead", m->host->name);
    return m->dead;
}

void sim_crash(struct sim *w, struct os *os)
{
    struct host *h = machine_of(os)->host;
    if (machine_of(os)->dead)
        return;
    LINK_EACH (&w->machines, l) {
        struct machine *m = CONTAINER(l, struct machine, link);
        if (m->host == h)
            machine_die(m, true);
    }
    procs_crash(w, h);
    host_lose(w, h);
}

static void sim_os_free(struct os *os) { machine_die(machine_of(os), false); }

struct sim *sim_new(uint64_t seed)
{
    struct sim *w = os_alloc(sizeof *w);
    w->rng.s = seed;
    w->now = 1;
    w->delay_max = 5;
    struct link *rings[] = { &w->hosts, &w->machines, &w->programs, &w->procs };
    for (size_t i = 0; i < COUNT(rings); i++)
        link_init(rings[i]);
    return w;
}

static void machine_free(struct machine *m)
{
    m->dead = true;
    clear(m, true);
    LINK_EACH (&m->memory, l)
        free(CONTAINER(l, struct chunk, link));
    free(m);
}

void sim_free(struct sim *w)
{
    if (!w)
        return;
    LINK_EACH (&w->machines, l)     /* all at once, so that no stream looks for its peer */
        CONTAINER(l, struct machine, link)->dead = true;
    LINK_EACH (&w->machines, l)
        machine_free(CONTAINER(l, struct machine, link));
    procs_free(w);
    LINK_EACH (&w->hosts, l) {
        struct host *h = CONTAINER(l, struct host, link);
        host_free_disk(h);
        map_free(h->files);
        free(h);
    }
    for (size_t i = 0; i < w->events; i++)
        free(w->heap[i]);
    free(w->heap);
    free(w);
}

/* --- clock, chance, timers */
static int64_t sim_wall_ms(struct os *os)
{
    struct sim *w = machine_of(os)->w;
    return WALL_AT_START + w->now + w->wall_offset;
}
static int64_t sim_boot_ms(struct os *os) { return machine_of(os)->w->now; }

static void sim_random(struct os *os, void *out, size_t n)
{
    for (unsigned char *at = out; n; at++, n--)
        *at = (unsigned char)sim_chance(machine_of(os)->w, 256);
}

struct stimer { struct timer base; struct event *event; void (*fn)(void *arg); void *arg; };

static void timer_fire(void *arg)
{
    struct stimer now = *(struct stimer *)arg;
    sim_give(arg);
    now.fn(now.arg);
}

static struct timer *sim_timer_start(struct os *os, int64_t after_ms, void (*fn)(void *arg),
                                     void *arg)
{
    struct machine *m = machine_of(os);
    struct stimer *t = sim_take(m, sizeof *t);
    *t = (struct stimer){ .base.os = os, .fn = fn, .arg = arg };
    if (!m->dead)
        t->event = sim_later(m->w, m, after_ms, timer_fire, t);
    return &t->base;
}

static void sim_timer_cancel(struct timer *timer)
{
    struct machine *m = machine_of(timer->os);
    if (m->dead)            /* its event may be gone already */
        return;
    event_cancel(m->w, ((struct stimer *)timer)->event);
    sim_give(timer);
}

static void sim_run(struct os *os)
{
    (void)os;
    assert(!"the simulation steps its machines itself");
}
static void sim_stop(struct os *os) { (void)os; }
static void sim_on_signal(struct os *os, int signal, void (*fn)(void *arg), void *arg)
{
    (void)os, (void)signal, (void)fn, (void)arg;
}
static struct stream *sim_of_fd(struct os *os, int fd, const struct stream_events *events,
                                void *arg)
{
    (void)os, (void)fd, (void)events, (void)arg;
    assert(!"a simulated machine has no descriptors");
    return NULL;
}

const struct os_ops sim_ops = {
    .simulated = true, .free = sim_os_free, .run = sim_run, .stop = sim_stop,
    .wall_ms = sim_wall_ms, .boot_ms = sim_boot_ms, .random = sim_random,
    .timer_start = sim_timer_start, .timer_cancel = sim_timer_cancel,
    .listen = sim_listen, .listener_close = sim_listener_close,
    .dial = sim_dial, .of_fd = sim_of_fd, .write = sim_write, .waiting = sim_waiting,
    .waiting_all = sim_waiting_all,
    .pause = sim_pause, .end = sim_end, .shut = sim_shut, .close = sim_close,
    .actor_new = sim_actor_new, .actor_post = sim_actor_post, .actor_post_soon = sim_actor_post, .actor_post_light = sim_actor_post_light,
    .actor_settle = sim_actor_settle, .actor_stop = sim_actor_stop,
    .posts = sim_posts, .unpost = sim_unpost,
    .spawn = sim_spawn, .proc_watch = sim_proc_watch, .proc_kill = sim_proc_kill,
    .proc_forget = sim_proc_forget, .proc_run = sim_proc_run, .on_signal = sim_on_signal,
    .file_read = sim_file_read, .file_replace = sim_file_replace,
    .file_append = sim_file_append, .file_remove = sim_file_remove,
    .dir_make = sim_dir_make, .dir_list = sim_dir_list,
    .dir_watch = sim_dir_watch, .watch_stop = sim_watch_stop,
    .disk_open = sim_disk_open, .disk_close = sim_disk_close, .disk_size = sim_disk_size,
    .disk_read = sim_disk_read, .disk_write = sim_disk_write,
    .disk_truncate = sim_disk_truncate, .disk_sync = sim_disk_sync,
    .disk_exists = sim_disk_exists, .disk_free = sim_disk_free, .disk_remove = sim_disk_remove,
    .disk_rename = sim_disk_rename,
};
