/* os_internal.h - what the two machines share: the table of operations and the head of every
 * object.
 *
 *
 * Every object starts with its machine, so that a call finds the right table. Only src/os may
 * include this. */
#pragma once
#include "os/os.h"

struct os_ops {
    void (*free)(struct os *os);
    void (*run)(struct os *os);
    void (*stop)(struct os *os);
    int64_t (*wall_ms)(struct os *os);
    int64_t (*boot_ms)(struct os *os);
    void (*random)(struct os *os, void *out, size_t n);

    struct timer *(*timer_start)(struct os *os, int64_t after_ms, void (*fn)(void *arg), void *arg);
    void (*timer_cancel)(struct timer *t);

    bool (*listen)(struct os *os, const char *address, struct tls *tls,
                   void (*on_accept)(void *arg, struct stream *s), void *arg,
                   struct listener **out, struct err *err);
    void (*listener_close)(struct listener *l);
    struct stream *(*dial)(struct os *os, const char *address, struct tls *tls, const char *name,
                           const struct stream_events *events, void *arg);
    struct stream *(*of_fd)(struct os *os, int fd, const struct stream_events *events, void *arg);
    void (*write)(struct stream *s, const void *at, size_t n);
    size_t (*waiting)(const struct stream *s);
    size_t (*waiting_all)(const struct os *os);
    void (*pause)(struct stream *s, bool paused);
    void (*end)(struct stream *s);
    void (*shut)(struct stream *s);
    void (*close)(struct stream *s);

    struct actor *(*actor_new)(struct os *os, const char *name,
                               void (*on_posts)(void *arg, struct post *first), void *arg);
    void (*actor_post)(struct actor *a, struct post *p);
    void (*actor_post_soon)(struct actor *a, struct post *p);
    void (*actor_post_light)(struct actor *a, struct post *p);
    void (*actor_settle)(struct actor *a);
    void (*actor_stop)(struct actor *a);
    void (*posts)(struct os *os, struct post *first);
    struct post *(*unpost)(struct os *os, void (*fn)(void *arg, struct post *p), void *arg);

    bool (*spawn)(struct os *os, const struct proc_spec *spec, void (*on_exit)(void *arg, int st),
                  void *arg, struct proc **out, struct err *err);
    bool (*proc_watch)(struct os *os, int pid, uint64_t start_time, void (*on_gone)(void *arg),
                       void *arg, struct proc **out);
    void (*proc_kill)(struct proc *p, int signal);
    void (*proc_forget)(struct proc *p);
    bool (*proc_run)(struct os *os, const char *const *argv, size_t limit,
                     const struct proc_guard *guard, struct arena *mem, char **output,
                     int *wait_status, struct err *err);
    void (*on_signal)(struct os *os, int signal, void (*fn)(void *arg), void *arg);

    bool (*file_read)(struct os *os, const char *path, size_t limit, struct arena *mem,
                      struct slice *out, struct err *err);
    bool (*file_replace)(struct os *os, const char *path, struct slice bytes, unsigned mode,
                         struct err *err);
    bool (*file_append)(struct os *os, const char *path, struct slice bytes, bool durable,
                        struct err *err);
    bool (*file_remove)(struct os *os, const char *path, struct err *err);
    bool (*dir_make)(struct os *os, const char *path, unsigned mode, struct err *err);
    bool (*dir_list)(struct os *os, const char *path, struct arena *mem, struct texts *out,
                     struct err *err);
    void (*dir_tidy)(const char *path); /* NULL: nothing is ever left */
    struct watch *(*dir_watch)(struct os *os, const char *path,
                               void (*on_change)(void *arg, const char *name), void *arg);
    void (*watch_stop)(struct watch *w);

    struct disk_file *(*disk_open)(struct os *os, const char *path, bool create, struct err *err);
    void (*disk_close)(struct disk_file *f);
    int64_t (*disk_size)(struct disk_file *f);
    bool (*disk_read)(struct disk_file *f, int64_t at, void *out, size_t n, size_t *got);
    bool (*disk_write)(struct disk_file *f, int64_t at, const void *from, size_t n);
    bool (*disk_truncate)(struct disk_file *f, int64_t size);
    bool (*disk_sync)(struct disk_file *f);
    bool (*disk_exists)(struct os *os, const char *path);
    int64_t (*disk_free)(struct os *os, const char *path);
    bool (*disk_remove)(struct os *os, const char *path);
    bool (*disk_rename)(struct os *os, const char *from, const char *to);
    bool simulated;
};

struct os { const struct os_ops *ops; };
struct timer { struct os *os; };
struct listener { struct os *os; char address[128]; };
struct stream { struct os *os; struct stream_events events; void *arg; char peer[64]; };
struct actor { struct os *os; void (*on_light)(void *arg, struct post *first); size_t light_most; int rest_ms; };
struct post *posts_beyond(struct post *first, size_t most);     /* cuts the list behind so many (at least one); NULL: there are no more */
struct proc { struct os *os; int pid; uint64_t start_time; };
struct watch { struct os *os; };
struct disk_file { struct os *os; };

enum {
    STREAM_FULL = 64 * 1024,        /* on_drain comes when the out-buffer falls under it */
    STREAM_KEPT_MOST = 1024 * 1024, /* of bytes that on_data left */
};

/* "host:port", "[v6]:port" or "unix:/path", cut into pieces. */
struct address { bool is_unix; char host[256]; char port[8]; };
bool address_parse(const char *text, struct address *out, struct err *err);

/* zeroed; a machine out of memory stops the process */
void *os_alloc(size_t size);
/* what a file_replace that was cut short left behind */
bool name_is_temporary(const char *name);
void path_folder(const char *path, char out[static 4096]);  /* of the folder that holds it */

/* Takes the posts with this fn and arg out of a list, in order. */
struct post *posts_take(struct post **list, struct post ***end,
                        void (*fn)(void *arg, struct post *p), void *arg);
