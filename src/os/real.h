/* real.h - inside of the real machine: the loop, and what its parts ask of each other. Only
 * real_*.c include it.
 *
 *
 * Everything epoll may report is a struct source. A source that ends while a turn goes on is
 * only marked and freed at the end of the turn, because events already fetched may still name
 * it. */
#pragma once
#include "os/link.h"
#include "os/os_internal.h"
#include <pthread.h>
#include <sys/types.h>

struct real;
struct source {
    struct link link;       /* in the loop's all, or its dead */
    struct real *loop;
    void (*ready)(struct source *src, uint32_t events);
    void (*drop)(struct source *src);   /* closes and frees; no callback into the code above */
    int fd;                 /* -1: none yet */
    bool dead;
};

struct rtimer;
struct signals;

struct real {
    struct os os;
    int epoll;
    struct source wake;
    struct link all, dead;          /* sources */
    struct rtimer **heap;
    size_t timers, heap_room;
    uint64_t timer_order;

    pthread_mutex_t lock;           /* for posts, posted and stop, which other threads touch */
    struct post *posts, **posts_end;
    bool posted, stop;

    struct link asleep;             /* actors that are to be woken at the end of the turn */
    struct link lent;               /* actors whose light work is done at the end of the turn */
    struct link ready, dirty, closing;  /* streams with work left for the end of the turn */
    size_t out_bytes, kept_bytes;   /* of all streams: not taken by the peers, not taken by the code above */
    int handshakes, deferred;       /* steps of them in this turn: each costs as much as many requests; and those put off */
    struct link shaking;            /* accepted streams in the midst of one, the oldest first */
    int shakes;                     /* how many they are */
    /* every stream reads into it first: an idle stream has no buffer */
    char *scratch;
    char *spare[64];                /* out-buffers of SPARE_BYTES that nobody uses */
    int spares;
    struct signals *signals;
    size_t heap_step;               /* of the heaps of actors; 0: as the C library does it */
};
enum { SCRATCH = 64 * 1024, SPARE_BYTES = 16 * 1024 };

static inline struct real *real_of(struct os *os) { return (struct real *)os; }

void source_init(struct real *r, struct source *src, void (*ready)(struct source *src, uint32_t ev),
                 void (*drop)(struct source *src));
bool source_poll(struct source *src, int fd, uint32_t events);  /* takes fd, if true; else errno */
void source_end(struct source *src);    /* out of epoll now, dropped at the end of the turn */
int64_t real_boot_ms(struct os *os);
bool tls_hold_memory(void);             /* before anything of TLS; false: too late, and nothing has changed */
size_t tls_idle_memory(void);           /* of what it holds: in no use */

void streams_turn(struct real *r);
bool streams_shake(struct real *r);     /* enough of them are in the midst of a handshake */
void signals_free(struct real *r);

/* Sockets (real_socket.c). */
struct sockets { struct { unsigned char raw[128]; unsigned len; } at[8]; size_t count; };
bool sockets_numeric(const struct address *a, struct sockets *out);
bool sockets_lookup(const struct address *a, struct sockets *out, struct err *err);    /* blocks */
void socket_peer(int fd, char out[static 64]);
struct lookup;
struct lookup *lookup_start(struct real *r, const struct address *a,
                            void (*done)(void *arg, const struct sockets *found,
                                         const struct err *err), void *arg);
void lookup_cancel(struct lookup *l);   /* NULL is fine */
void lookups_sweep(struct post *first); /* frees those whose answer came too late */
struct stream *rstream_accepted(struct real *r, int fd, struct tls *tls);   /* NULL: fd is closed */

/* TLS on one connection (real_tls.c). IO_* are what reads and writes return besides a count; 0
 * read is a clean end. */
enum { IO_AGAIN = -1, IO_FAILED = -2 };
struct ssl_st;
struct ssl_st *tls_attach(struct tls *t, int fd, const char *server_name, struct err *err);
void tls_detach(struct ssl_st *ssl);
struct tls *tls_keep(struct tls *t);                            /* until one more tls_free */
int tls_stage(struct ssl_st *ssl);                              /* another number: a handshake has moved */
int tls_handshake(struct ssl_st *ssl, struct err *err);         /* 1: done */
ssize_t tls_read(struct ssl_st *ssl, void *out, size_t n, struct err *err);
ssize_t tls_write(struct ssl_st *ssl, const void *at, size_t n, struct err *err);
void tls_goodbye(struct ssl_st *ssl);

/* The rows of real_ops, by file. */
struct timer *real_timer_start(struct os *os, int64_t after_ms, void (*fn)(void *arg), void *arg);
void real_timer_cancel(struct timer *t);
void real_posts(struct os *os, struct post *first);
struct post *real_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg);
bool real_listen(struct os *os, const char *address, struct tls *tls,
                 void (*on_accept)(void *arg, struct stream *s), void *arg, struct listener **out,
                 struct err *err);
void real_listener_close(struct listener *l);
struct stream *real_dial(struct os *os, const char *address, struct tls *tls, const char *name,
                         const struct stream_events *events, void *arg);
struct stream *real_of_fd(struct os *os, int fd, const struct stream_events *events, void *arg);
void real_write(struct stream *s, const void *at, size_t n);
size_t real_waiting(const struct stream *s);
size_t real_waiting_all(const struct os *os);
void real_pause(struct stream *s, bool paused);
void real_end(struct stream *s);
void real_shut(struct stream *s);
void real_close(struct stream *s);
struct actor *real_actor_new(struct os *os, const char *name,
                             void (*on_posts)(void *arg, struct post *first), void *arg);
void real_actor_post(struct actor *a, struct post *p);
void real_actor_post_soon(struct actor *a, struct post *p);
void real_actor_post_light(struct actor *a, struct post *p);
void actors_wake(struct real *r);       /* those that were posted to in this turn */
void actors_help(struct real *r);       /* does their light work */
void real_actor_settle(struct actor *a);
void real_actor_stop(struct actor *a);
bool real_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int st),
                void *arg, struct proc **out, struct err *err);
bool real_proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg),
                     void *arg, struct proc **out);
void real_proc_kill(struct proc *p, int signal);
void real_proc_forget(struct proc *p);
bool real_proc_run(struct os *os, const char *const *argv, size_t limit,
                   const struct proc_guard *guard, struct arena *mem, char **output,
                   int *wait_status, struct err *err);
void real_on_signal(struct os *os, int signal, void (*fn)(void *arg), void *arg);
bool real_file_read(struct os *os, const char *path, size_t limit, struct arena *mem,
                    struct slice *out, struct err *err);
bool real_file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode,
                       struct err *err);
bool real_file_append(struct os *os, const char *path, struct slice bytes, bool durable,
                      struct err *err);
bool real_file_remove(struct os *os, const char *path, struct err *err);
bool real_dir_make(struct os *os, const char *path, unsigned mode, struct err *err);
bool real_dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out,
                   struct err *err);
void real_dir_tidy(const char *path);
struct watch *real_dir_watch(struct os *os, const char *path,
                             void (*on_change)(void *arg, const char *name), void *arg);
void real_watch_stop(struct watch *w);
struct disk_file *real_disk_open(struct os *os, const char *path, bool create, struct err *err);
void real_disk_close(struct disk_file *f);
int64_t real_disk_size(struct disk_file *f);
bool real_disk_read(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got);
bool real_disk_write(struct disk_file *f, int64_t at, const void *from, size_t n);
bool real_disk_truncate(struct disk_file *f, int64_t size);
bool real_disk_sync(struct disk_file *f);
bool real_disk_exists(struct os *os, const char *path);
int64_t real_disk_free(struct os *os, const char *path);
bool real_disk_remove(struct os *os, const char *path);
bool real_disk_rename(struct os *os, const char *from, const char *to);
int folder_sync(const char *path);      /* of the folder that holds path; -1 and errno */
