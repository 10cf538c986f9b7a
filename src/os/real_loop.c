/* real_loop.c - the epoll loop: sources, timers, posts from other threads.
 *
 *
 * A turn is: wait, events, timers due, streams' unfinished work, then what has ended is freed.
 * Timers are a heap and the wait's timeout, because a timer of an HTTP connection is set again
 * with every request and must cost no system call. */
#include "os/real.h"
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* epoll's clock stops in suspend: look again each minute */
enum { EVENTS = 256, WAIT_MOST_MS = 60 * 1000 };
enum { GIVE_BACK = 4 << 20 };   /* less is not worth it */
enum { HOLD_ONE = 8 << 20, HOLD_FREED = 32 << 20, HOLD_STEP = 256 << 10 };      /* the largest piece of the heap; what is kept at its end; how it grows */

struct rtimer {
    struct timer base;
    int64_t due;
    uint64_t order;     /* timers of one millisecond fire as they were started */
    size_t at;
    void (*fn)(void *arg);
    void *arg;
};

static int64_t clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t real_boot_ms(struct os *os) { return (void)os, clock_ms(CLOCK_BOOTTIME); }
static int64_t real_wall_ms(struct os *os) { return (void)os, clock_ms(CLOCK_REALTIME); }

static void real_random(struct os *os, void *out, size_t n)
{
    (void)os;
    for (char *at = out; n;) {
        ssize_t got = getrandom(at, MIN(n, 256u), 0);
        if (got < 0 && errno != EINTR)
            abort();
        at += MAX(got, 0);
        n -= (size_t)MAX(got, 0);
    }
}

void source_init(struct real *r, struct source *src, void (*ready)(struct source *src, uint32_t ev),
                 void (*drop)(struct source *src))
{
    *src = (struct source){ .loop = r, .ready = ready, .drop = drop, .fd = -1 };
    link_add(&r->all, &src->link);
}

bool source_poll(struct source *src, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.ptr = src };
    if (epoll_ctl(src->loop->epoll, EPOLL_CTL_ADD, fd, &e) == -1)
        return false;
    src->fd = fd;
    return true;
}

void source_end(struct source *src)
{
    if (src->dead)
        return;
    if (src->fd >= 0)
        epoll_ctl(src->loop->epoll, EPOLL_CTL_DEL, src->fd, NULL);
    link_cut(&src->link);
    link_add(&src->loop->dead, &src->link);
    src->dead = true;
}

static void drop_dead(struct real *r)
{
    while (!link_empty(&r->dead)) {
        struct source *src = CONTAINER(r->dead.next, struct source, link);
        link_cut(&src->link);
        src->drop(src);
    }
}

static bool timer_before(const struct rtimer *a, const struct rtimer *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_put(struct real *r, size_t at, struct rtimer *t)
{
    r->heap[at] = t;
    t->at = at;
}

static void heap_settle(struct real *r, size_t at, struct rtimer *t)
{
    for (size_t up; at && timer_before(t, r->heap[up = (at - 1) / 2]); at = up)
        heap_put(r, at, r->heap[up]);
    for (size_t down; (down = at * 2 + 1) < r->timers; at = down) {
        if (down + 1 < r->timers && timer_before(r->heap[down + 1], r->heap[down]))
            down++;
        if (!timer_before(r->heap[down], t))
            break;
        heap_put(r, at, r->heap[down]);
    }
    heap_put(r, at, t);
}

static void heap_take(struct real *r, struct rtimer *t)
{
    struct rtimer *last = r->heap[--r->timers];
    if (last != t)
        heap_settle(r, t->at, last);
}

struct timer *real_timer_start(struct os *os, int64_t after_ms, void (*fn)(void *arg), void *arg)
{
    struct real *r = real_of(os);
    struct rtimer *t = os_alloc(sizeof *t);
    int64_t now = real_boot_ms(os);
    *t = (struct rtimer){ .base.os = os, .fn = fn, .arg = arg, .order = r->timer_order++ };
    t->due = after_ms > INT64_MAX - now ? INT64_MAX : now + after_ms;
    if (r->timers == r->heap_room) {
        r->heap_room = r->heap_room ? r->heap_room * 2 : 64;
        r->heap = realloc(r->heap, r->heap_room * sizeof *r->heap);
        if (!r->heap)
            abort();
    }
    r->timers++;
    heap_settle(r, r->timers - 1, t);
    return &t->base;
}

void real_timer_cancel(struct timer *timer)
{
    struct rtimer *t = (struct rtimer *)timer;
    heap_take(real_of(timer->os), t);
    free(t);
}

static void fire_timers(struct real *r)
{
    int64_t now = r->timers ? real_boot_ms(&r->os) : 0;
    uint64_t newest = r->timer_order;   /* one that a timer starts waits for the next turn */
    while (r->timers && r->heap[0]->due <= now && r->heap[0]->order < newest) {
        struct rtimer *t = r->heap[0], fire = *t;
        heap_take(r, t);
        free(t);
        fire.fn(fire.arg);
    }
}

static void wake_up(struct real *r)
{
    uint64_t one = 1;
    while (write(r->wake.fd, &one, sizeof one) == -1 && errno == EINTR)
        ;
}

void real_posts(struct os *os, struct post *first)
{
    struct real *r = real_of(os);
    struct post *last = first;
    while (last->next)
        last = last->next;
    pthread_mutex_lock(&r->lock);
    *r->posts_end = first;
    r->posts_end = &last->next;
    bool asleep = !r->posted;
    r->posted = true;
    /* under the lock: an os that is being freed has closed its descriptor after it */
    if (asleep)
        wake_up(r);
    pthread_mutex_unlock(&r->lock);
}

struct post *real_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg)
{
    struct real *r = real_of(os);
    pthread_mutex_lock(&r->lock);
    struct post *taken = posts_take(&r->posts, &r->posts_end, fn, arg);
    pthread_mutex_unlock(&r->lock);
    return taken;
}

static void on_wake(struct source *src, uint32_t events)
{
    (void)events;
    struct real *r = src->loop;
    uint64_t count;
    while (read(src->fd, &count, sizeof count) == -1 && errno == EINTR)
        ;
    pthread_mutex_lock(&r->lock);
    struct post *p = r->posts;
    r->posts = NULL;
    r->posts_end = &r->posts;
    r->posted = false;
    pthread_mutex_unlock(&r->lock);
    for (struct post *next; p; p = next) {
        next = p->next;
        p->fn(p->arg, p);
    }
}

static void real_stop(struct os *os)
{
    struct real *r = real_of(os);
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    wake_up(r);
    pthread_mutex_unlock(&r->lock);
}

static bool stopped(struct real *r)
{
    pthread_mutex_lock(&r->lock);
    bool stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop;
}

static int wait_ms(struct real *r)
{
    if (!link_empty(&r->ready) || !link_empty(&r->dirty) || !link_empty(&r->closing))
        return 0;
    if (!r->timers)
        return WAIT_MOST_MS;
    int64_t left = r->heap[0]->due - real_boot_ms(&r->os);
    return (int)MIN(MAX(left, 0), WAIT_MOST_MS);
}

static void real_run(struct os *os)
{
    struct real *r = real_of(os);
    struct epoll_event events[EVENTS];
    while (!stopped(r)) {
        actors_wake(r);
        int n = epoll_wait(r->epoll, events, EVENTS, wait_ms(r));
        for (int i = 0; i < n; i++) {
            struct source *src = events[i].data.ptr;
            if (!src->dead)
                src->ready(src, events[i].events);
        }
        fire_timers(r);
        actors_wake(r);         /* they work while the replies of this turn go out */
        streams_turn(r);
        drop_dead(r);
        actors_help(r);
    }
    pthread_mutex_lock(&r->lock);
    r->stop = false;    /* os_run may be called again */
    pthread_mutex_unlock(&r->lock);
}

static void real_free(struct os *os)
{
    struct real *r = real_of(os);
    signals_free(r);
    while (!link_empty(&r->all))
        source_end(CONTAINER(r->all.next, struct source, link));
    drop_dead(r);
    lookups_sweep(r->posts);
    for (size_t i = 0; i < r->timers; i++)
        free(r->heap[i]);
    while (r->spares)
        free(r->spare[--r->spares]);
    pthread_mutex_destroy(&r->lock);
    close(r->wake.fd);
    close(r->epoll);
    free(r->heap);
    free(r->scratch);
    free(r);
}

/* Nothing yet: until the streams are gone, a lookup's thread may still post. */
static void drop_wake(struct source *src) { (void)src; }

static const struct os_ops real_ops = {
    .free = real_free, .run = real_run, .stop = real_stop,
    .wall_ms = real_wall_ms, .boot_ms = real_boot_ms, .random = real_random,
    .timer_start = real_timer_start, .timer_cancel = real_timer_cancel,
    .listen = real_listen, .listener_close = real_listener_close,
    .dial = real_dial, .of_fd = real_of_fd, .write = real_write, .waiting = real_waiting,
    .waiting_all = real_waiting_all,
    .pause = real_pause, .end = real_end, .shut = real_shut, .close = real_close,
    .actor_new = real_actor_new, .actor_post = real_actor_post,
    .actor_post_soon = real_actor_post_soon, .actor_post_light = real_actor_post_light,
    .actor_settle = real_actor_settle, .actor_stop = real_actor_stop,
    .posts = real_posts, .unpost = real_unpost,
    .spawn = real_spawn, .proc_watch = real_proc_watch, .proc_kill = real_proc_kill,
    .proc_forget = real_proc_forget, .proc_run = real_proc_run, .on_signal = real_on_signal,
    .file_read = real_file_read, .file_replace = real_file_replace,
    .file_append = real_file_append, .file_remove = real_file_remove,
    .dir_make = real_dir_make, .dir_list = real_dir_list,
    .dir_tidy = real_dir_tidy,
    .dir_watch = real_dir_watch, .watch_stop = real_watch_stop,
    .disk_open = real_disk_open, .disk_close = real_disk_close, .disk_size = real_disk_size,
    .disk_read = real_disk_read, .disk_write = real_disk_write,
    .disk_truncate = real_disk_truncate, .disk_sync = real_disk_sync,
    .disk_exists = real_disk_exists, .disk_free = real_disk_free, .disk_remove = real_disk_remove,
    .disk_rename = real_disk_rename,
};

void os_keep_memory(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}

void os_hold_freed(struct os *os)
{
    real_of(os)->heap_step = HOLD_STEP;
    mallopt(M_MMAP_THRESHOLD, HOLD_ONE);
    mallopt(M_TRIM_THRESHOLD, HOLD_FREED);
    mallopt(M_TOP_PAD, HOLD_STEP);
    (void)!tls_hold_memory();
}

/* Without pages of files, which are not the heap's. */
static size_t resident(void)
{
    char text[96] = "";
    unsigned long long all, pages, shared;
    FILE *f = fopen("/proc/self/statm", "re");
    bool ok = f && fgets(text, sizeof text, f) && sscanf(text, "%llu %llu %llu", &all, &pages, &shared) == 3;
    if (f)
        fclose(f);
    return ok ? (size_t)(pages - shared) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* A burst (all agents of a fleet that dial at once, a large queue that is placed) leaves holes in the heap that are whole pages, and
 * the C library keeps them for ever. */
void os_give_back(struct os *os, struct os_spare *s)
{
    int64_t span_ms = real_boot_ms(os) - s->at_ms, cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    bool busy = (cpu_ms - s->cpu_ms) * 4 > span_ms;
    s->at_ms += span_ms;
    s->cpu_ms = cpu_ms;
    struct mallinfo2 m = mallinfo2();
    size_t used = m.uordblks + m.hblkhd - tls_idle_memory(), now = resident(), much = GIVE_BACK + used / 64;
    if (busy || now < used + much || now < s->kept + much)
        return;
    malloc_trim(0);
    s->kept = resident();
}

struct os *os_real_new(struct err *err)
{
    struct real *r = os_alloc(sizeof *r);
    r->os.ops = &real_ops;
    struct link *rings[] = { &r->all, &r->dead, &r->asleep, &r->lent, &r->ready, &r->dirty, &r->closing, &r->shaking };
    for (size_t i = 0; i < COUNT(rings); i++)
        link_init(rings[i]);
    r->posts_end = &r->posts;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    source_init(r, &r->wake, on_wake, drop_wake);
    if (r->epoll == -1 || wake == -1 || !source_poll(&r->wake, wake, EPOLLIN)) {
        err_errno(err, "cannot make an event loop");
        close(wake);
        close(r->epoll);
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->scratch = os_alloc(SCRATCH);
    signal(SIGPIPE, SIG_IGN);   /* a peer that left is an error of one write, not the end of us */
    return &r->os;
}
