/* os.c - hands every call to the machine its object belongs to, and what both machines share. No
 * system calls here. */
#include "os/os_internal.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

void *os_alloc(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        abort();
    return p;
}

bool name_is_temporary(const char *name) { return text_starts(name, ".tmp-"); }

void path_folder(const char *path, char out[static 4096])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    snprintf(out, 4096, "%.*s", (int)MAX(n, 1u), n ? path : slash ? "/" : ".");
}

static bool port_is_good(const char *port)
{
    size_t n = strspn(port, "0123456789");
    return n && n <= 5 && !port[n] && atoi(port) <= 65535;
}

bool address_parse(const char *text, struct address *out, struct err *err)
{
    struct address a = { 0 };
    if (text_starts(text, "unix:")) {
        a.is_unix = true;
        if (text[5] != '/' || !text_copy(a.host, 108, text + 5))
            return err_set(err, RC_BAD_INPUT,
                           "%.80s: a socket's path is absolute and below 108 bytes", text);
        return *out = a, true;
    }
    const char *colon = text ? strrchr(text, ':') : NULL;
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool v6 = n > 2 && text[0] == '[' && text[n - 1] == ']';
    const char *host = v6 ? text + 1 : text;
    n -= v6 ? 2 : 0;
    if (!n || n >= sizeof a.host || !port_is_good(colon + 1) || (!v6 && strcspn(host, ":[]/ ") < n))
        return err_set(err, RC_BAD_INPUT,
                       "'%.80s' is not an address: host:port, [v6]:port or unix:/path are",
                       text ? text : "");
    memcpy(a.host, host, n);
    snprintf(a.port, sizeof a.port, "%d", atoi(colon + 1));
    *out = a;
    return true;
}

void os_free(struct os *os)
{
    if (os)
        os->ops->free(os);
}
void os_run(struct os *os) { os->ops->run(os); }
void os_stop(struct os *os) { os->ops->stop(os); }
int64_t os_wall_ms(struct os *os) { return os->ops->wall_ms(os); }
int64_t os_boot_ms(struct os *os) { return os->ops->boot_ms(os); }
void os_random(struct os *os, void *out, size_t n) { os->ops->random(os, out, n); }
bool os_is_simulated(const struct os *os) { return os->ops->simulated; }
void os_post(struct os *os, struct post *p)
{
    p->next = NULL;
    os->ops->posts(os, p);
}
void os_posts(struct os *os, struct post *first) { os->ops->posts(os, first); }
struct post *os_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg)
{
    return os->ops->unpost(os, fn, arg);
}

struct post *posts_take(struct post **list, struct post ***end,
                        void (*fn)(void *arg, struct post *p), void *arg)
{
    struct post *taken = NULL, **last = &taken, *all = *list;
    *list = NULL;
    *end = list;
    for (struct post *p = all, *next; p; p = next) {
        next = p->next;
        struct post ***to = p->fn == fn && p->arg == arg ? &last : end;
        p->next = NULL;
        **to = p;
        *to = &p->next;
    }
    return taken;
}

struct timer *timer_start(struct os *os, int64_t after_ms, void (*fn)(void *arg), void *arg)
{
    return os->ops->timer_start(os, MAX(after_ms, 0), fn, arg);
}
void timer_cancel(struct timer *t)
{
    if (t)
        t->os->ops->timer_cancel(t);
}

bool address_is_loopback(const char *address)
{
    char host[64];
    unsigned char raw[16];
    size_t bracket = *address == '[';
    size_t n = bracket ? strcspn(address, "]") - 1 : strcspn(address, ":");
    if (text_starts(address, "unix:"))
        return true;
    if (n >= sizeof host)
        return false;
    memcpy(host, address + bracket, n);
    host[n] = 0;
    if (bracket)
        return text_is(host, "::1");
    return text_is(host, "localhost") || (inet_pton(AF_INET, host, raw) == 1 && raw[0] == 127);
}

bool stream_listen(struct os *os, const char *address, struct tls *tls,
                   void (*on_accept)(void *arg, struct stream *s), void *arg, struct listener **out,
                   struct err *err)
{
    return os->ops->listen(os, address, tls, on_accept, arg, out, err);
}
const char *listener_address(const struct listener *l) { return l->address; }
void listener_close(struct listener *l)
{
    if (l)
        l->os->ops->listener_close(l);
}
void stream_bind(struct stream *s, const struct stream_events *events, void *arg)
{
    s->events = *events;
    s->arg = arg;
}
struct stream *stream_dial(struct os *os, const char *address, struct tls *tls,
                           const char *server_name, const struct stream_events *events, void *arg)
{
    return os->ops->dial(os, address, tls, server_name, events, arg);
}
struct stream *stream_of_fd(struct os *os, int fd, const struct stream_events *events, void *arg)
{
    return os->ops->of_fd(os, fd, events, arg);
}
void stream_write(struct stream *s, const void *at, size_t n) { s->os->ops->write(s, at, n); }
size_t stream_waiting(const struct stream *s) { return s->os->ops->waiting(s); }
size_t os_waiting(const struct os *os) { return os->ops->waiting_all(os); }
void stream_pause(struct stream *s, bool paused) { s->os->ops->pause(s, paused); }
void stream_end(struct stream *s) { s->os->ops->end(s); }
void stream_shut(struct stream *s) { s->os->ops->shut(s); }
void stream_close(struct stream *s) { s->os->ops->close(s); }
const char *stream_peer(const struct stream *s) { return s->peer; }

struct actor *actor_new(struct os *os, const char *name,
                        void (*on_posts)(void *arg, struct post *first), void *arg)
{
    return os->ops->actor_new(os, name, on_posts, arg);
}
void actor_post(struct actor *a, struct post *p) { a->os->ops->actor_post(a, p); }
void actor_post_soon(struct actor *a, struct post *p) { a->os->ops->actor_post_soon(a, p); }
void actor_lend(struct actor *a, void (*on_light)(void *arg, struct post *first), size_t most)
{
    a->on_light = on_light;
    a->light_most = most;
}

struct post *posts_beyond(struct post *first, size_t most)
{
    struct post *p = first;
    for (size_t n = 1; p && n < most; n++)
        p = p->next;
    return p ? TAKE(p->next) : NULL;
}
void actor_post_light(struct actor *a, struct post *p) { a->os->ops->actor_post_light(a, p); }
void actor_rest(struct actor *a, int ms) { a->rest_ms = ms; }
void actor_settle(struct actor *a) { a->os->ops->actor_settle(a); }
void actor_stop(struct actor *a)
{
    if (a)
        a->os->ops->actor_stop(a);
}

bool proc_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int status),
                void *arg, struct proc **out, struct err *err)
{
    return os->ops->spawn(os, spec, on_exit, arg, out, err);
}
bool proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg), void *arg,
                struct proc **out)
{
    return os->ops->proc_watch(os, pid, start_time, on_gone, arg, out);
}
int proc_pid(const struct proc *p) { return p->pid; }
uint64_t proc_start_time(const struct proc *p) { return p->start_time; }
void proc_kill(struct proc *p, int signal) { p->os->ops->proc_kill(p, signal); }
void proc_forget(struct proc *p)
{
    if (p)
        p->os->ops->proc_forget(p);
}
bool proc_run(struct os *os, const char *const *argv, size_t limit, struct arena *mem,
              char **output, int *wait_status, struct err *err)
{
    return os->ops->proc_run(os, argv, limit, NULL, mem, output, wait_status, err);
}
bool proc_run_guarded(struct os *os, const char *const *argv, size_t limit,
                      const struct proc_guard *guard, struct arena *mem, char **output,
                      struct err *err)
{
    return os->ops->proc_run(os, argv, limit, guard, mem, output, NULL, err);
}
void os_on_signal(struct os *os, int signal, void (*fn)(void *arg), void *arg)
{
    os->ops->on_signal(os, signal, fn, arg);
}

bool file_read(struct os *os, const char *path, size_t limit, struct arena *mem, struct slice *out,
               struct err *err)
{
    return os->ops->file_read(os, path, limit, mem, out, err);
}
bool file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode,
                  struct err *err)
{
    return os->ops->file_replace(os, path, bytes, mode, err);
}
bool file_append(struct os *os, const char *path, struct slice bytes, bool durable, struct err *err)
{
    return os->ops->file_append(os, path, bytes, durable, err);
}
bool file_remove(struct os *os, const char *path, struct err *err)
{
    return os->ops->file_remove(os, path, err);
}
bool dir_make(struct os *os, const char *path, unsigned mode, struct err *err)
{
    return os->ops->dir_make(os, path, mode, err);
}
bool dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out,
              struct err *err)
{
    return os->ops->dir_list(os, path, mem, out, err);
}
void dir_tidy(struct os *os, const char *path)
{
    if (os->ops->dir_tidy)
        os->ops->dir_tidy(path);
}
struct watch *dir_watch(struct os *os, const char *path,
                        void (*on_change)(void *arg, const char *name), void *arg)
{
    return os->ops->dir_watch(os, path, on_change, arg);
}
void watch_stop(struct watch *w)
{
    if (w)
        w->os->ops->watch_stop(w);
}

struct disk_file *disk_open(struct os *os, const char *path, bool create, struct err *err)
{
    return os->ops->disk_open(os, path, create, err);
}
void disk_close(struct disk_file *f)
{
    if (f)
        f->os->ops->disk_close(f);
}
int64_t disk_size(struct disk_file *f) { return f->os->ops->disk_size(f); }
bool disk_read(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got)
{
    return f->os->ops->disk_read(f, at, out, n, got);
}
bool disk_write(struct disk_file *f, int64_t at, const void *from, size_t n)
{
    return f->os->ops->disk_write(f, at, from, n);
}
bool disk_truncate(struct disk_file *f, int64_t size) { return f->os->ops->disk_truncate(f, size); }
bool disk_sync(struct disk_file *f) { return f->os->ops->disk_sync(f); }
bool disk_exists(struct os *os, const char *path) { return os->ops->disk_exists(os, path); }
int64_t disk_free(struct os *os, const char *path) { return os->ops->disk_free(os, path); }
bool disk_remove(struct os *os, const char *path) { return os->ops->disk_remove(os, path); }
bool disk_rename(struct os *os, const char *from, const char *to)
{
    return os->ops->disk_rename(os, from, to);
}
