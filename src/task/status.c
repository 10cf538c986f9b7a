/* status.c - what the agent is told: the whole status each time, as one more line of a file; half a line counts for nothing. The agent looks
 * at the file when a writer closes it, so what it need not know yet is written and left open. */
#include "task/task.h"
#include "base/fault.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

static int64_t clock_ms(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t wall_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}
int64_t boot_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}

uint64_t own_start_time(void)
{
    char text[1024];
    FILE *f = fopen("/proc/self/stat", "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    unsigned long long start = 0;
    const char *behind = strrchr(text, ')'); /* a process may call itself anything, also ") 1 2" */
    if (!behind
        || sscanf(
               behind + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &start)
               != 1)
        return 0;
    return start;
}

/* A write that failed may have left half a line: the next one begins a new one. */
static bool append(struct task *t, const struct str *line, bool durable, struct err *err)
{
    if (t->file == -1 && !broken("status.open"))
        t->file = open(t->plan.status, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->file == -1 || broken("status.write") || write(t->file, line->at, line->len) != (ssize_t)line->len
        || (durable && (broken("status.sync") || fsync(t->file) == -1)))
        return err_errno(err, "cannot write %s", t->plan.status);
    return true;
}

void status_tell(struct task *t)
{
    fd_close(t->file);
    t->file = -1;
}

static bool sync_name(const char *path, struct err *err)
{
    char folder[4200];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    AUTO(fd_close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (dir != -1 && !broken("status.name") && fsync(dir) == 0) || err_errno(err, "cannot sync %s", folder);
}

bool status_note(struct task *t, bool durable, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    if (t->torn)
        str_char(&text, '\n');
    bind_write(&o, &task_status_fields, &t->status);
    str_char(&text, '\n');
    t->torn = !append(t, &text, durable, err);
    if (!t->torn && durable && !t->named) /* that has to be told to the disk only once */
        t->named = sync_name(t->plan.status, err);
    return !t->torn && (!durable || t->named);
}

bool status_write(struct task *t, struct err *err)
{
    bool ok = status_note(t, t->agent == -1, err);
    status_tell(t);
    return ok;
}

bool status_sync(const char *path, struct err *err)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd == -1 && errno == ENOENT)
        return true; /* it was settled before */
    return fd != -1 && fsync(fd) == 0 ? sync_name(path, err) : err_errno(err, "cannot sync %s", path);
}
