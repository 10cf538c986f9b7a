/* task.h - the supervisor's parts. One process per attempt, one thread, below 1 MB of its own
 * memory.
 *
 * It uses base/, JSON and binding of wire/, and libc: nothing of os/, because it must stay small
 * and static, and because what it does (mount, wait, kill) has no simulated twin: the simulation
 * has a program of its own in its place. */
#pragma once
#include "agent/cgroup.h"
#include "agent/task_plan.h"

#define SUPERVISORS "arcus/supervisors"     /* their control group: the agent's may be killed as a whole */

/* Where tasks are run: a mount namespace, a range of ids, a scratch. One task after the other may use it. */
enum { MARKS_MOST = 128, MARK_PATH = 300 };
struct mark { char path[MARK_PATH]; uint64_t inode; int64_t sec, nsec; };
struct sealed { int fd; char path[MARK_PATH], libraries[MARK_PATH]; };    /* fd -1: run it from its own file; path: of the program; libraries: what its environment needs */
struct place {
    bool open;
    int userns;                 /* of its range of ids */
    int host, host_mounts;      /* the node's own mount namespace, and its list of mounts, which can be polled for changes */
    struct sealed runtime;
    struct mark program;        /* the runtime that was copied */
    bool host_root;             /* stands; marks tell what it looked like when the last task began */
    bool steady;                /* ... and a later change of it cannot bear the same time */
    bool other;                 /* ... and it has more in it than every task may see */
    struct mark *marks;         /* NULL: one task only, so nobody asks */
    size_t mark_count;
};

struct task {
    struct plan plan;
    struct arena *mem;
    struct place *place;
    struct cgroups cgroups;
    bool left;                  /* we were born outside of the agent's groups */
    struct task_status status;
    int file;                   /* of the status; -1: not open, so what is in it was told */
    int agent;                  /* the socket of an agent that lives and writes down what it is told, so that we need not wait for the disk; -1: nobody does */
    bool torn, named;           /* its file may end in half a line; its name is on the disk */
    int lock;                   /* held until its end was told */
    int out[2], err[2];         /* what we read, what the container writes */
    int fabric;                 /* the namespace of the node's networks; -1: it gets none */
    int container;              /* pid; 0: not known yet, -1: gone */
    int *told;                  /* who got the last signal to all */
    size_t told_count;
};

/* faults.c - in a build for tests the nth operation of a supervisor fails if RUN/fault-ATTEMPT says so; RUN/fired-ATTEMPT then names it.
 * arcus-task --faults names all that can. */
#ifdef FAULTS
bool faults_asked(int argc, char **argv);
void faults_arm(const struct plan *p);
#else
static inline bool faults_asked(int argc, char **argv) { (void)argc, (void)argv; return false; }
static inline void faults_arm(const struct plan *p) { (void)p; }
#endif

/* files.c - small files */
MUST_CHECK bool small_read(const char *path, size_t limit, struct arena *mem, struct slice *out, struct err *err);
MUST_CHECK bool small_replace(const char *path, struct slice bytes, unsigned mode, struct err *err);   /* old or new, never half */
MUST_CHECK bool small_parse(const char *path, const struct fields *fields, struct arena *mem, void *out, struct err *err);
const char *path_in(struct arena *mem, const char *folder, const char *name);
static inline void fd_close(int fd);

/* status.c */
MUST_CHECK bool status_note(struct task *t, bool durable, struct err *err);     /* whoever comes behind us finds it; nobody is told */
MUST_CHECK bool status_write(struct task *t, struct err *err);                  /* told, and on the disk unless an agent sees to that */
void status_tell(struct task *t);                                               /* what was noted */
MUST_CHECK bool status_sync(const char *path, struct err *err);                 /* the agent is gone: what it was told has to outlast us */
uint64_t own_start_time(void);
int64_t wall_ms(void);
int64_t boot_ms(void);

/* place.c: a place for tasks of this range of ids and size of scratch; we stand in its folder from then on. Opened a second time it
 * is made anew. */
MUST_CHECK bool place_open(struct place *s, const struct plan *p, const struct cgroups *cgroups, struct err *err);
MUST_CHECK bool place_settle(struct place *s, const struct plan *p, struct err *err);   /* makes a host root ahead, before a task comes */
void place_begin(struct place *s);                                  /* a task's first process is about to run */
MUST_CHECK bool place_reset(struct place *s, const struct plan *p, struct err *err);    /* that task is over: nothing of it stays */
MUST_CHECK bool place_clear(struct place *s, struct err *err);      /* no root, and an empty scratch */
bool place_is_stale(const struct place *s);                         /* the node's mounts or the runtime are not what they were; tells it once */

/* mounts.c, mount_root.c, scratch.c: everything below the place's folder, in its mount namespace */
MUST_CHECK bool mounts_make(struct task *t, struct err *err);
MUST_CHECK bool mount_clone(const char *source, const char *target, int userns, uint64_t attributes, bool deep, struct err *err);
MUST_CHECK bool mount_clone_on(const char *source, int target, uint64_t attributes, bool deep, struct err *err);   /* the target is a descriptor: of a root that a tenant filled */
MUST_CHECK bool mount_image_root(const struct plan *p, int userns, struct err *err);
MUST_CHECK bool mount_host_root(const struct plan *p, struct err *err);
MUST_CHECK bool devices_mount(struct task *t, struct err *err);     /* devices.c: what its lease gives it of the node's devices */
MUST_CHECK bool scratch_mount(const struct plan *p, struct err *err);
MUST_CHECK bool disk_mount(const struct plan *p, struct err *err);                      /* at scratch, of one that is kept */
void disk_shut(const struct plan *p);                                                   /* all of it is on the node's disk, and nobody has it any more */
void disk_blame(const struct plan *p, struct err *err);                                 /* of a start that failed: it is full */
MUST_CHECK bool user_namespace(const char *map, int *out, struct err *err);             /* one that says which ids are meant; its one process only holds it until we have opened it */
MUST_CHECK bool make_owned(const char *path, unsigned mode, const struct plan *p);  /* a folder of the scratch, whose names no tenant can change */
MUST_CHECK bool workdir_unpack(const struct plan *p, struct err *err);

/* container.c: the OCI runtime, as a process of ours */
MUST_CHECK bool container_create(struct task *t, int *runtime_pid, struct err *err);
MUST_CHECK bool container_start(struct task *t, struct err *err);   /* once the runtime has left with 0 */
bool container_why(struct task *t, const char *log, struct err *err);   /* the runtime's words about a failure, made readable; false: it said none, as whoever was killed does */
bool container_frozen(struct task *t);                   /* it is suspended */
void container_thaw(struct task *t);                     /* it was suspended: it can die again */
void container_signal_all(struct task *t, int signal);
bool container_takes(struct task *t, int signal);                   /* the first process would notice this signal */
bool container_alone(struct task *t);                               /* of those that got the signal only the first process is left */
void container_clean(struct task *t);                               /* kill what is left; remove group and state */
MUST_CHECK bool helper_spawn(const char *const *argv, const struct sealed *program, int in, int out, int err_fd, int *pid, struct err *err);

/* sealed.c */
void sealed_open(struct sealed *s, const char *path);
void sealed_close(struct sealed *s);

/* net.c: its network, between container_create and its first instruction */
int fabric_open(const struct plan *p);                              /* before place_open */
MUST_CHECK bool net_join(struct task *t, struct err *err);

/* logs.c */
struct log_writer;
struct log_writer *log_writer_new(const char *folder, int64_t limit_mib, struct arena *mem);   /* borrows the name; made with the first word */
void log_writer_add(struct log_writer *w, char stream, const char *at, size_t n);
void log_writer_close(struct log_writer *w);

/* session.c: one connection of the socket, served by a child of ours; session_exec.c,
 * session_copy.c, session_dial.c, session_ssh.c: what it may ask */
struct task_request;
MUST_CHECK bool sessions_listen(int *fd, struct err *err);
void session_serve(struct task *t, int connection) __attribute__((noreturn));
void session_refuse(int connection, const char *why);               /* never waits */
MUST_CHECK bool session_exec(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool session_get(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool session_put(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool session_follow(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool session_ssh(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool container_enter(struct task *t, int *root, struct err *err);     /* its user and mount namespaces, as its root; root: opened there */
MUST_CHECK bool session_dial(struct task *t, int connection, const struct task_request *rq, struct err *err);
MUST_CHECK bool frame_rest(int connection, const void *at, size_t n);   /* what is left of one; waits */
MUST_CHECK bool frame_send(int connection, int kind, const void *at, size_t n);
MUST_CHECK bool frame_receive(int connection, int *kind, char *at, size_t room, size_t *n);   /* waits; false: closed or broken */
MUST_CHECK bool frame_object(int connection, int kind, const struct fields *fields, const void *from);

/* run.c: the life of the task; returns the exit code of the supervisor */
int task_run(struct task *t);
bool end_helpers(void);                                             /* true: of our pid namespace only we are left */

/* launch.c: another program under another name */
int launch_main(int argc, char **argv);

/* main.c */
MUST_CHECK bool task_open(struct task *t, const char *folder, struct err *err);         /* takes its lock, reads its plan; false: it is not ours to run */
void task_self(struct task *t);                                     /* who we are on the node, for the status */
MUST_CHECK bool task_begin(struct task *t, struct err *err);      /* tells that it is being prepared */
MUST_CHECK bool own_pids(struct task *t, struct err *err);          /* returns in the first process of a new pid namespace */

/* slot.c: a supervisor that takes one task after the other; returns its exit code */
int slot_run(const char *folder, char *title);

#include <unistd.h>
static inline void fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
AUTO_FN(int, fd_close)
