/* sim_internal.h - inside of the simulation: the world and its events, hosts that stay, machines
 * that come and go.
 *
 *
 * A host is a name, a disk and ports. A struct machine is one os on it: the host's own, or
 * that of one process. Memory that code above may still point to is taken with sim_take and
 * freed only with the world once its machine is dead. */
#pragma once
#include "base/map.h"
#include "base/rand.h"
#include "os/link.h"
#include "os/os_internal.h"
#include "os/sim.h"

struct machine;
struct event {
    int64_t due, asked;         /* asked: before its owner stood still */
    uint64_t tie, order;        /* chance decides between things due at the same time */
    struct machine *owner;      /* not run once that is dead; NULL: the world's */
    void (*fn)(void *arg);
    void *arg;
    size_t at;
};

struct host {
    struct link link;
    char name[64];
    struct map *files;          /* struct sfile by path */
    struct machine *main;       /* NULL: down */
    int next_port, next_pid;
    struct host *mounted;       /* whose disk mounted_at is on */
    char mounted_at[64];
    struct map *memory;         /* struct shared by name: what its processes share */
    struct shared *lost;        /* by a crash */
    int64_t sync_ms_most;       /* a slow disk */
    bool full;
};

struct machine {
    struct os os;
    struct link link;           /* in the world's machines */
    struct sim *w;
    struct host *host;
    struct sim_proc *process;   /* whose os it is, or NULL */
    bool dead;
    int64_t still_until;        /* nothing of it runs before; 0: it does */
    struct link memory, streams, listeners, watches, handles;
    struct post *posts, **posts_end;
    struct event *post_event;
};

struct cut { const struct host *from, *to; };
struct sim {
    struct rng rng;
    int64_t now, wall_offset;
    uint64_t order, trace, steps;
    struct event **heap;
    size_t events, room;
    struct link hosts, machines, programs, procs;
    struct cut cuts[128];
    size_t cut_count;
    int64_t delay_min, delay_max;
    unsigned lost_milli, reset_milli;
    int reset_in;               /* pieces; 0: none */
    void (*on_bytes)(void *arg, const char *from, const char *to, const char *at, size_t n);
    void *on_bytes_arg;
};

extern const struct os_ops sim_ops;
static inline struct machine *machine_of(struct os *os) { return (struct machine *)os; }

struct event *sim_later(struct sim *w, struct machine *owner, int64_t after_ms,
                        void (*fn)(void *arg), void *arg);
void event_cancel(struct sim *w, struct event *e);      /* NULL is fine */
void *sim_take(struct machine *m, size_t size);
void sim_give(void *p);                                 /* of a live machine, or it stays */
struct host *sim_host(struct sim *w, const char *name);
struct machine *machine_new(struct host *h, struct sim *w);
/* at once for the code above; tidied up in a later step */
void machine_die(struct machine *m, bool crashed);
bool machine_failed(struct machine *m, struct err *err);    /* true, and says so, when it is dead */
void sim_note(struct sim *w, uint64_t what);            /* into the trace */
int64_t sim_between(struct sim *w, int64_t least, int64_t most);

/* Tidying a dead machine, by file. */
void net_clear(struct machine *m, bool crashed);
void disk_clear(struct machine *m);
void net_heal(struct sim *w);
bool sim_is_cut(const struct sim *w, const struct host *from, const struct host *to);
void host_lose(struct sim *w, struct host *h);          /* what was not synced */
void host_free_disk(struct host *h);
void procs_crash(struct sim *w, struct host *h);
void procs_free(struct sim *w);

/* The rows of sim_ops, by file. */
bool sim_listen(struct os *os, const char *address, struct tls *tls,
                void (*on_accept)(void *arg, struct stream *s), void *arg, struct listener **out,
                struct err *err);
void sim_listener_close(struct listener *l);
struct stream *sim_dial(struct os *os, const char *address, struct tls *tls, const char *name,
                        const struct stream_events *events, void *arg);
void sim_write(struct stream *s, const void *at, size_t n);
size_t sim_waiting(const struct stream *s);
size_t sim_waiting_all(const struct os *os);
void sim_pause(struct stream *s, bool paused);
void sim_end(struct stream *s);
void sim_shut(struct stream *s);
void sim_close(struct stream *s);
bool sim_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int st),
               void *arg, struct proc **out, struct err *err);
bool sim_proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg),
                    void *arg, struct proc **out);
void sim_proc_kill(struct proc *p, int signal);
void sim_proc_forget(struct proc *p);
bool sim_proc_run(struct os *os, const char *const *argv, size_t limit,
                  const struct proc_guard *guard, struct arena *mem, char **output,
                  int *wait_status, struct err *err);
bool sim_file_read(struct os *os, const char *path, size_t limit, struct arena *mem,
                   struct slice *out, struct err *err);
bool sim_file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode,
                      struct err *err);
bool sim_file_append(struct os *os, const char *path, struct slice bytes, bool durable,
                     struct err *err);
bool sim_file_remove(struct os *os, const char *path, struct err *err);
bool sim_dir_make(struct os *os, const char *path, unsigned mode, struct err *err);
bool sim_dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out,
                  struct err *err);
struct watch *sim_dir_watch(struct os *os, const char *path,
                            void (*on_change)(void *arg, const char *name), void *arg);
void sim_watch_stop(struct watch *w);
struct disk_file *sim_disk_open(struct os *os, const char *path, bool create, struct err *err);
void sim_disk_close(struct disk_file *f);
int64_t sim_disk_size(struct disk_file *f);
bool sim_disk_read(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got);
bool sim_disk_write(struct disk_file *f, int64_t at, const void *from, size_t n);
bool sim_disk_truncate(struct disk_file *f, int64_t size);
bool sim_disk_sync(struct disk_file *f);
bool sim_disk_exists(struct os *os, const char *path);
int64_t sim_disk_free(struct os *os, const char *path);
bool sim_disk_remove(struct os *os, const char *path);
bool sim_disk_rename(struct os *os, const char *from, const char *to);
struct actor *sim_actor_new(struct os *os, const char *name,
                            void (*on_posts)(void *arg, struct post *first), void *arg);
void sim_actor_post(struct actor *a, struct post *p);
void sim_actor_post_light(struct actor *a, struct post *p);
void sim_actor_settle(struct actor *a);
void sim_actor_stop(struct actor *a);
void sim_posts(struct os *os, struct post *first);
struct post *sim_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg);
