/* os.h - the machine: clock, timers, streams, processes, files, threads. Every system call of the program is behind it.
 *
 * Two implementations. real_*.c's is an epoll loop on this machine. sim*.c make any number of machines in one process, with
 * one seed, virtual time and a network and disks that can fail; a run is replayed by its seed. Code above os/ cannot
 * tell which it has. Callbacks run on the loop's thread, one at a time, never inside the call that caused them. */
#pragma once
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

struct os;
struct os *os_real_new(struct err *err);
void os_keep_memory(void);                                      /* of this process: it goes into no core file, and nobody but root may look into it */
void os_hold_freed(struct os *os);                              /* real only; what was freed stays this process's until os_give_back: a burst does not take the same pages again and again, and threads take them in large steps */
/* What was freed and is still this process's goes back to the machine, where that is much and there is little to do: it takes some
 * milliseconds. For every few seconds; what it remembers between them is zero at first. */
struct os_spare { size_t kept; int64_t at_ms, cpu_ms; };
void os_give_back(struct os *os, struct os_spare *s);
void os_free(struct os *os);                     /* what is still open is dropped without a callback; stop actors first */
void os_run(struct os *os);                     /* until os_stop; the simulation steps its machines itself */
void os_stop(struct os *os);                    /* from any thread or a signal callback */

/* --- clock and chance */
int64_t os_wall_ms(struct os *os);              /* for people, rows and bills; may jump */
int64_t os_boot_ms(struct os *os);              /* CLOCK_BOOTTIME: for spans; never goes back */
void os_random(struct os *os, void *out, size_t n);

/* --- timers: fire once; freed when fired or cancelled */
struct timer;
struct timer *timer_start(struct os *os, int64_t after_ms, void (*fn)(void *arg), void *arg);
void timer_cancel(struct timer *t);             /* NULL is fine */

/* --- streams: TCP, TLS or unix sockets, and the ends of pipes */
struct stream;
struct stream_events {
    void (*on_open)(void *arg);                                 /* dialled (and TLS is up); may be NULL */
    size_t (*on_data)(void *arg, const char *at, size_t n);     /* returns how much it took; the rest comes again with more */
    void (*on_drain)(void *arg);                                /* the out-buffer fell under 64 KiB again; may be NULL */
    void (*on_close)(void *arg, const struct err *why);         /* exactly once, also after stream_close; why->rc RC_OK at a clean end */
    void (*on_eof)(void *arg);          /* the peer sends no more, writes go on. NULL: closes once what is buffered has gone out */
};
/* What on_data leaves is kept, up to 1 MiB in all (then nothing more is read), and comes again with more bytes or
 * after stream_pause(s, false). Before on_close has returned every call below is safe; after it the stream is freed. */
struct tls;                                     /* a certificate and its key, or the CA to trust */
MUST_CHECK bool tls_server(struct tls **out, const char *cert_pem, const char *key_pem, struct err *err);   /* PEM texts */
/* NULL, NULL: the system's CAs. A pin is the hash of the server's own certificate or of the authority that signed it: either is
 * trusted whatever name it was dialled by. With a CA too, both are demanded. */
MUST_CHECK bool tls_client(struct tls **out, const char *ca_pem, const char *pin_sha256, struct err *err);
void tls_free(struct tls *t);
AUTO_FN(struct tls *, tls_free)
/* A certificate for a server may be replaced while it serves: connections from then on are shown the new one. */
MUST_CHECK bool tls_renew(struct tls *server, const char *cert_pem, const char *key_pem, struct err *err);
/* The cloud's own authority, and certificates that it signs: for those names and the loopback's, with the authority's behind it. */
MUST_CHECK bool tls_ca_make(struct arena *mem, char **cert_pem, char **key_pem, struct err *err);
MUST_CHECK bool tls_cert_make(const char *ca_pem, const char *ca_key_pem, struct texts names, struct arena *mem, char **cert_pem, char **key_pem, struct err *err);
bool tls_cert_holds(const char *cert_pem, const char *key_pem, const char *ca_pem, struct texts names);     /* it is this authority's, for just these names, and not near its end */
MUST_CHECK bool tls_sha256(const char *cert_pem, char hex[static 65], struct err *err);   /* of the first certificate: what is pinned */
bool address_is_loopback(const char *address);   /* "127.0.0.1:6640", "[::1]:6640", "localhost", "unix:/path"; no name that could mean something else */

/* address: "127.0.0.1:6640", "[::1]:6640", "host:6640", "unix:/path". Port 0 picks one; listener_address tells it. */
struct listener;
MUST_CHECK bool stream_listen(struct os *os, const char *address, struct tls *tls, void (*on_accept)(void *arg, struct stream *s),
                              void *arg, struct listener **out, struct err *err);
const char *listener_address(const struct listener *l);
void listener_close(struct listener *l);
void stream_bind(struct stream *s, const struct stream_events *events, void *arg);  /* for an accepted one, in on_accept */
struct stream *stream_dial(struct os *os, const char *address, struct tls *tls, const char *server_name,
                           const struct stream_events *events, void *arg);          /* failure comes through on_close */
struct stream *stream_of_fd(struct os *os, int fd, const struct stream_events *events, void *arg);   /* real only; takes the fd */
void stream_write(struct stream *s, const void *at, size_t n);  /* buffers what the peer does not take yet */
size_t stream_waiting(const struct stream *s);                  /* bytes buffered for the peer */
size_t os_waiting(const struct os *os);                         /* for all of them together */
void stream_pause(struct stream *s, bool paused);               /* no on_data while paused: back-pressure; false shows again what was kept */
void stream_end(struct stream *s);                              /* closes after what is buffered has gone out */
void stream_shut(struct stream *s);                             /* half-close: no more writes after what is buffered; reads go on */
void stream_close(struct stream *s);                            /* at once; on_close follows */
const char *stream_peer(const struct stream *s);                /* "127.0.0.1", or "unix" */

/* --- threads: an actor gets what was posted to it, all that waits at once, on its own thread (in the simulation: at
 * some later step). The loop itself takes posts too. Values cross, structs do not. */
struct post { struct post *next; void (*fn)(void *arg, struct post *p); void *arg; };
struct actor;
struct actor *actor_new(struct os *os, const char *name, void (*on_posts)(void *arg, struct post *first), void *arg);
void actor_post(struct actor *a, struct post *p);               /* from any thread; order of one poster is kept */
void actor_post_soon(struct actor *a, struct post *p);          /* from the loop, for what comes by the dozen: it wakes the actor at the end of the turn, or by so many together */
/* From the loop: work so short that waking a thread for it costs more. At the end of its turn the loop does it itself by on_light, if the actor rests; else, or if
 * the actor has other posts too, it comes to on_posts, as does, in order, what is beyond the first `most` of a turn: the loop has others to serve.
 * on_light must not wait for anything. */
void actor_lend(struct actor *a, void (*on_light)(void *arg, struct post *first), size_t most);
void actor_post_light(struct actor *a, struct post *p);
/* From on_posts, for one whom nobody waits for while much comes: what is posted from then on it takes together, so much later (at most 100 ms), and nobody has to
 * wake it. In the simulation waking costs nothing, and it does not rest. */
void actor_rest(struct actor *a, int ms);
void actor_settle(struct actor *a);                             /* waits until what was posted is done; never from that actor itself */
void actor_stop(struct actor *a);                               /* the same, and it is freed; NULL is fine */
void os_post(struct os *os, struct post *p);                    /* runs p->fn(p->arg, p) on the loop */
void os_posts(struct os *os, struct post *first);               /* several, linked by next, in that order; for the price of one */
/* Takes back, in order, what was posted with this fn and arg and has not run yet. For the end: the loop does not run any more. */
struct post *os_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg);

/* --- processes */
struct proc;
struct proc_spec {
    const char *const *argv;                    /* argv[0] is an absolute path */
    const char *const *env;                     /* NULL: empty. Nothing is inherited. */
    const char *dir;
    int in, out, err;                           /* descriptors for 0, 1, 2 (stay the caller's); -1: /dev/null. Everything else is closed. Real only. */
    bool own_session;                           /* setsid and a double fork: it outlives us and is not our child */
};
MUST_CHECK bool proc_spawn(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int wait_status), void *arg,
                           struct proc **out, struct err *err);  /* on_exit may be NULL; wait_status as waitpid(2) gives it, -1 with own_session */
/* A proc is freed after its on_exit or on_gone has returned, or by proc_forget before; without a callback only by the latter. */
/* Watches a process that is not our child (pidfd). start_time is the 22nd field of /proc/PID/stat, so that a pid used again
 * is not taken for it. False: it is gone. */
MUST_CHECK bool proc_watch(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg), void *arg, struct proc **out);
/* That of any process of this machine; 0: there is none. *state: a letter as ps has it (Z and X have ended, T and t are stopped); 0: unknown. */
uint64_t proc_started(int pid, char *state);
int proc_pid(const struct proc *p);
uint64_t proc_start_time(const struct proc *p); /* what proc_watch asks for later; 0: it was gone already */
void proc_kill(struct proc *p, int signal);
void proc_forget(struct proc *p);               /* no more callbacks; NULL is fine */
/* Runs a helper to its end and gives its standard output (bounded); blocks, so only from an actor or the CLI. Where it ended
 * badly err->text is the last line of its standard error; with wait_status NULL that is a failure. */
MUST_CHECK bool proc_run(struct os *os, const char *const *argv, size_t limit, struct arena *mem, char **output, int *wait_status, struct err *err);
/* The same, for a helper that works on what a stranger sent: go_on is asked now and then on the caller's thread; false ends the
 * helper and its group, and *why is what is told. */
struct proc_guard { bool (*go_on)(void *arg, struct err *why); void *arg; int every_ms; };
MUST_CHECK bool proc_run_guarded(struct os *os, const char *const *argv, size_t limit, const struct proc_guard *guard, struct arena *mem,
                                 char **output, struct err *err);
void os_on_signal(struct os *os, int signal, void (*fn)(void *arg), void *arg);     /* real only; the simulation has none */

/* --- files: small ones whole. Paths are absolute; in the simulation each machine has its own tree. */
MUST_CHECK bool file_read(struct os *os, const char *path, size_t limit, struct arena *mem, struct slice *out, struct err *err);
MUST_CHECK bool file_replace(struct os *os, const char *path, struct slice bytes, unsigned mode, struct err *err);  /* temp, fsync, rename, fsync of the folder: old or new, never half */
MUST_CHECK bool file_append(struct os *os, const char *path, struct slice bytes, bool durable, struct err *err);
MUST_CHECK bool file_remove(struct os *os, const char *path, struct err *err);       /* absent is fine */
MUST_CHECK bool dir_make(struct os *os, const char *path, unsigned mode, struct err *err);  /* with its parents; there already is fine */
MUST_CHECK bool dir_list(struct os *os, const char *path, struct arena *mem, struct texts *out, struct err *err);   /* sorted names */
void dir_tidy(struct os *os, const char *path);     /* removes what a file_replace left there that was killed; for the only one who replaces files in it */
struct watch;
struct watch *dir_watch(struct os *os, const char *path, void (*on_change)(void *arg, const char *name), void *arg);    /* a name was renamed into it, or written to and closed; NULL name: look at all of it. Returns NULL where there is no such folder */
void watch_stop(struct watch *w);

/* --- the store's disk: what SQLite's VFS needs. Unsynced bytes are lost when a simulated machine crashes. */
struct disk_file;
struct disk_file *disk_open(struct os *os, const char *path, bool create, struct err *err);
void disk_close(struct disk_file *f);
int64_t disk_size(struct disk_file *f);
MUST_CHECK bool disk_read(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got);
MUST_CHECK bool disk_write(struct disk_file *f, int64_t at, const void *from, size_t n);
MUST_CHECK bool disk_truncate(struct disk_file *f, int64_t size);
MUST_CHECK bool disk_sync(struct disk_file *f);
bool disk_exists(struct os *os, const char *path);
int64_t disk_free(struct os *os, const char *path);             /* bytes left on the filesystem of a file or folder; 0: it cannot be told */
MUST_CHECK bool disk_remove(struct os *os, const char *path);
MUST_CHECK bool disk_rename(struct os *os, const char *from, const char *to);  /* of a synced file, in one folder; replaces, and is durable */
bool os_is_simulated(const struct os *os);
