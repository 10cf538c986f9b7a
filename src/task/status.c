/* status.c - what the agent is told: the whole status each time, in one file that is old or new,
 * never half. */
#include "task/task.h"
#include "wire/bind.h"
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

bool status_write(struct task *t, bool durable, struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &task_status_fields, &t->status);
    return small_replace(t->plan.status, (struct slice){ text.at, text.len }, 0600, durable, err);
}
