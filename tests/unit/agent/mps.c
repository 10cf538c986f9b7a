#include "agent/mps_internal.h"
#include "tap.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* NVIDIA's daemon is tests/fake/mps.c; what makes it is a few lines of shell. */
enum { LIMIT_MS = 60000 };
#define GPU "GPU-0-7"
static const struct share quarter = { .uuid = GPU, .milli = 250, .mem_mib = 35942 };
static const struct share half = { .uuid = GPU, .milli = 500, .mem_mib = 70000 };
struct try {
    struct os *os;
    struct mps *m;
    char top[48], self[64], program[512], why[240];
    int done, refused, lost, whole, kept;
    struct err err;
    bool over, own;
    int64_t beat_ms;
    int64_t end_ms;
    bool (*until)(struct try *t);
};

static void check(struct try *t)
{
    if (t->until && t->until(t))
        os_stop(t->os);
}
static void on_done(void *arg, const struct err *err)
{
    struct try *t = arg;
    t->done += !err;
    t->refused += err != NULL;
    if (err)
        t->err = *err;
    check(t);
}
static void on_lost(void *arg, const char *uuid, const char *why)
{
    struct try *t = arg;
    t->lost += text_is(uuid, GPU);
    snprintf(t->why, sizeof t->why, "%s", why);
    check(t);
}
static void on_whole(void *arg, const char *uuid, const struct err *err)
{
    struct try *t = arg;
    t->whole += !err && text_is(uuid, GPU);
    t->kept += err != NULL;
    if (err)
        t->err = *err;
    check(t);
}
static const struct mps_events events = { on_lost, on_whole };
static void on_limit(void *arg) { ((struct try *)arg)->over = true, os_stop(((struct try *)arg)->os); }
static struct timer *look;
static void on_look(void *arg)
{
    struct try *t = arg;
    look = timer_start(t->os, 20, on_look, t);
    check(t);
}

static void until(struct try *t, bool (*is)(struct try *t))
{
    t->until = is;
    t->over = false;
    struct timer *limit = timer_start(t->os, LIMIT_MS, on_limit, t);
    look = timer_start(t->os, 20, on_look, t);
    if (!is(t))
        os_run(t->os);
    timer_cancel(look);
    if (!t->over)
        timer_cancel(limit);
    CHECK(!t->over);
    t->until = NULL;
}

static const char *in(struct try *t, const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/mps/7/%s", t->top, name);
    return path;
}

static bool says(struct try *t, const char *words)
{
    static char text[16384];
    FILE *f = fopen(in(t, "said"), "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return strstr(text, words) != NULL;
}

static void odd(struct try *t, const char *how)
{
    char line[256];
    snprintf(line, sizeof line, "mkdir -p '%s' && touch '%s/%s'", in(t, ""), in(t, ""), how);
    CHECK(system(line) == 0);
}

static void begin(struct try *t)
{
    t->m = mps_new(t->os, &(struct mps_config){ .run = t->top, .self = t->self, .program = t->program, .own = t->own, .end_ms = t->end_ms, .beat_ms = t->beat_ms }, &events, t);
}

static void try_open(struct try *t)
{
    struct err err = { 0 };
    *t = (struct try){ .os = os_real_new(&err) };
    snprintf(t->top, sizeof t->top, "/tmp/arcus-mps-XXXXXX");
    CHECK(t->os && mkdtemp(t->top));
    ssize_t n = readlink("/proc/self/exe", t->program, sizeof t->program - 64);
    t->program[MAX(n, 0)] = 0;
    strcpy(strrchr(t->program, '/'), "/fake/nvidia-cuda-mps-control");
    snprintf(t->self, sizeof t->self, "%s/self", t->top);
    FILE *f = fopen(t->self, "we");
    CHECK(f && fputs("#!/bin/bash\nif [ $1 = device-mode ]; then\n [ -e ${2%/*}/refuse ] && { echo the driver refused; exit 1; }\n"
                     " echo \"0 mode $4\" >>${2%/*}/said; if [ $4 = restore ]; then rm -f $2; else touch $2; fi; exit 0\nfi\ns=$(</proc/$$/stat); set -- \"$@\" ${s##*) }; echo \"$$ ${24}\" >$2/daemon\n"
                     "CUDA_VISIBLE_DEVICES=$3 CUDA_MPS_PIPE_DIRECTORY=$2/pipe exec $4 -f --multiuser-server >>$2/log/daemon 2>&1\n", f) >= 0 && fclose(f) == 0 && chmod(t->self, 0755) == 0);
    begin(t);
}

static int pid_of(struct try *t)
{
    int pid = 0;
    FILE *f = fopen(in(t, "daemon"), "re");
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid;
}
static bool is_gone(struct try *t) { return pid_of(t) == 0 || kill(pid_of(t), 0) == -1; }
static bool is_done(struct try *t) { return t->done + t->refused > 0; }
static bool both_done(struct try *t) { return t->done + t->refused > 1; }
static bool is_lost(struct try *t) { return t->lost > 0; }

static void try_done_auto(struct try *t)
{
    char line[128];
    if (!is_gone(t))
        kill(pid_of(t), SIGKILL);
    mps_free(t->m);
    os_free(t->os);
    snprintf(line, sizeof line, "rm -rf '%s'", t->top);
    CHECK(system(line) == 0);
}

TEST(a_gpu_has_one_daemon_from_its_first_share_to_its_last)
{
    AUTO(try_done) struct try t;
    AUTO(arena_free) struct arena *mem = arena_new();
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, both_done);
    CHECK(t.done == 2 && says(&t, "begins -f --multiuser-server") && says(&t, "CUDA_VISIBLE_DEVICES=" GPU));
    CHECK(says(&t, "0 set_default_active_thread_percentage 25.0\n") && says(&t, "0 set_default_device_pinned_mem_limit 0 35942M\n"));
    int pid = pid_of(&t);
    mps_want(t.m, 3, &quarter, on_done, &t);
    CHECK(t.done == 3);         /* it is there */
    struct stat st;
    const char *door = mps_door(t.m, GPU, mem);
    CHECK(door && stat(arena_printf(mem, "%s/control", door), &st) == 0 && S_ISSOCK(st.st_mode) && stat(arena_printf(mem, "%s/nvidia-cuda-mps-control.pid", door), &st) == -1);
    mps_drop(t.m, 1);
    mps_drop(t.m, 2);
    CHECK(kill(pid, 0) == 0);
    mps_drop(t.m, 3);
    until(&t, is_gone);
    CHECK(says(&t, "0 quit\n") && !t.lost);
    mps_want(t.m, 4, &quarter, on_done, &t);
    t.done = 0;
    until(&t, is_done);
    CHECK(t.done == 1 && pid_of(&t) != pid);
}

TEST(another_size_of_share_and_a_daemon_that_lies_are_refused)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    mps_want(t.m, 2, &half, on_done, &t);
    CHECK(t.done == 1 && t.refused == 1 && strstr(t.err.text, "250 thousandths"));
    mps_drop(t.m, 1);
    until(&t, is_gone);
    odd(&t, "wrong");
    t.done = t.refused = 0;
    mps_want(t.m, 3, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(!t.done && strstr(t.err.text, "does not take"));
}

TEST(behind_a_daemon_that_is_leaving_the_first_who_waits_decides_how_the_gpu_is_divided)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    t.done = 0;
    mps_drop(t.m, 1);
    mps_want(t.m, 2, &half, on_done, &t);
    mps_want(t.m, 3, &half, on_done, &t);
    CHECK(!t.done && !t.refused);
    mps_want(t.m, 4, &quarter, on_done, &t);
    CHECK(t.refused == 1 && strstr(t.err.text, "500 thousandths"));
    t.refused = 0;
    until(&t, both_done);
    CHECK(t.done == 2 && says(&t, "0 set_default_active_thread_percentage 50.0\n"));
}

TEST(who_comes_when_the_first_has_gone_before_the_daemon_was_there_gets_its_own_division)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    mps_drop(t.m, 1);
    mps_want(t.m, 2, &half, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1 && says(&t, "0 set_default_active_thread_percentage 50.0\n") && says(&t, "0 set_default_device_pinned_mem_limit 0 70000M\n"));
}

TEST(a_daemon_that_dies_is_told_and_the_next_share_has_a_new_one)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    int pid = pid_of(&t);
    CHECK(kill(pid, SIGKILL) == 0);
    until(&t, is_lost);
    CHECK(strstr(t.why, "ended by itself"));
    mps_drop(t.m, 1);
    t.done = 0;
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1 && pid_of(&t) != pid);
}

TEST(a_daemon_outlives_the_agent_and_is_found_again)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    int pid = pid_of(&t);
    mps_free(t.m);
    begin(&t);
    mps_hold(t.m, 1, &quarter);
    mps_begin(t.m);
    CHECK(!t.lost && kill(pid, 0) == 0);
    mps_want(t.m, 2, &quarter, on_done, &t);
    CHECK(t.done == 2 && pid_of(&t) == pid);
    mps_free(t.m);
    begin(&t);
    mps_begin(t.m);             /* nobody of before is left */
    until(&t, is_gone);
    CHECK(says(&t, "0 quit\n"));
}

TEST(shares_whose_daemon_died_behind_the_agent_are_told)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    mps_free(t.m);
    kill(pid_of(&t), SIGKILL);
    until(&t, is_gone);
    begin(&t);
    mps_hold(t.m, 1, &quarter);
    mps_begin(t.m);
    CHECK(t.lost == 1 && strstr(t.why, "no agent looked"));
}

TEST(a_daemon_that_does_not_go_when_asked_is_made_to)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    odd(&t, "stubborn");
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    mps_drop(t.m, 1);
    until(&t, is_gone);
}

static bool is_restored(struct try *t) { return says(t, "0 mode restore\n"); }
static bool has_begun(struct try *t) { return says(t, "begins"); }

TEST(a_card_that_we_own_is_exclusive_before_its_daemon_begins_and_given_back_after_it)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_free(t.m);
    t.own = true;
    begin(&t);
    odd(&t, "refuse");
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.refused == 1 && strstr(t.err.text, "the driver refused") && !has_begun(&t));
    CHECK(unlink(in(&t, "refuse")) == 0);
    t.refused = 0;
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1 && says(&t, "0 mode exclusive_process\nbegins"));
    mps_drop(t.m, 2);
    until(&t, is_restored);
    until(&t, is_gone);
    CHECK(says(&t, "0 quit\n0 mode restore\n"));
}

static bool is_whole(struct try *t) { return t->whole > 0; }
static bool is_kept(struct try *t) { return t->kept > 0; }

TEST(a_card_is_whole_again_when_its_daemon_has_left_and_its_mode_is_given_back)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_free(t.m);
    t.own = true;
    begin(&t);
    CHECK(mps_whole(t.m, GPU) && mps_whole(NULL, GPU));
    mps_want(t.m, 1, &quarter, on_done, &t);
    CHECK(!mps_whole(t.m, GPU) && mps_whole(t.m, "GPU-0-8"));
    until(&t, is_done);
    mps_drop(t.m, 1);
    CHECK(!mps_whole(t.m, GPU) && !t.whole);
    until(&t, is_whole);
    CHECK(says(&t, "0 quit\n0 mode restore\n"));
    CHECK(t.whole == 1);
    CHECK(mps_whole(t.m, GPU));
    until(&t, is_gone);
}

TEST(a_card_that_cannot_be_given_back_is_not_whole_and_whoever_wants_it_tries_again)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_free(t.m);
    t.own = true;
    begin(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    odd(&t, "refuse");
    mps_drop(t.m, 1);
    until(&t, is_kept);
    CHECK(!t.whole && strstr(t.err.text, "cannot be given back: the driver refused"));
    t.kept = 0;
    CHECK(!mps_whole(t.m, GPU));
    until(&t, is_kept);
    CHECK(!t.whole && unlink(in(&t, "refuse")) == 0 && !mps_whole(t.m, GPU));
    until(&t, is_whole);
    CHECK(is_restored(&t) && mps_whole(t.m, GPU));
}

TEST(no_mode_is_touched_where_the_devices_are_the_operators)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    mps_drop(t.m, 1);
    until(&t, is_gone);
    CHECK(says(&t, "0 quit\n") && !says(&t, "mode"));
}

static void writes(struct try *t, const char *line)
{
    char path[160];
    snprintf(path, sizeof path, "%s", in(t, "log"));
    CHECK(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
    FILE *f = fopen(in(t, "log/daemon"), "ae");
    CHECK(f && fputs(line, f) >= 0 && fclose(f) == 0);
}

/* Who it was may be told in the next line: that is waited for. */
static void look_on(struct try *t)
{
    mps_look(t->m);
    CHECK(!t->lost);
    for (int i = 0; !t->lost && i < LIMIT_MS / 20; i++) {
        usleep(20000);
        mps_look(t->m);
    }
}

TEST(a_fault_of_one_is_told_to_all_who_share_its_gpu_and_the_next_have_a_new_daemon)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    writes(&t, "[2026-11-16 03:25:00.001 Server   898] Client {PID: 1, Context ID: 1} encountered a fatal exception\n");
    mps_look(t.m);
    CHECK(!t.lost && !mps_fault(t.m, GPU));          /* it is alone: its own business */
    mps_want(t.m, 2, &quarter, on_done, &t);
    CHECK(t.done == 2 && mps_shared(t.m, GPU));
    mps_look(t.m);
    CHECK(!t.lost);             /* it was said once */
    writes(&t, "[2026-11-16 03:26:00.001 Server   898] New client 17 connected\n[2026-11-16 03:26:00.001 Server   898] Device status is FA");
    mps_look(t.m);
    CHECK(!t.lost);
    writes(&t, "ULT\n[2026-11-16 03:26:00.002 Server   898] Client {PID: 1, Context ID: 1} encountered a fatal exception\n");
    look_on(&t);
    CHECK(t.lost == 1 && strstr(t.why, "Device status is FAULT") && mps_fault(t.m, GPU) && !mps_fault(t.m, "GPU-0-8"));
    int pid = pid_of(&t);
    mps_want(t.m, 3, &quarter, on_done, &t);
    CHECK(t.done == 2);         /* not before both have gone */
    mps_drop(t.m, 1);
    CHECK(kill(pid, 0) == 0 && t.done == 2);
    mps_drop(t.m, 2);
    t.done = 0;
    until(&t, is_done);
    CHECK(t.done == 1 && pid_of(&t) != pid);
    writes(&t, "[2026-11-16 03:27:00.001 Server   899] Device status is FAULT\n");
    mps_look(t.m);
    CHECK(t.lost == 1 && !mps_fault(t.m, GPU));      /* alone again: the last one's words are not for it */
}

TEST(one_that_failed_and_left_has_still_hit_who_was_beside_it)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, both_done);
    mps_drop(t.m, 2);
    CHECK(mps_shared(t.m, GPU));
    writes(&t, "[x Server   898] Device 0 status is FAULT\n");
    look_on(&t);
    CHECK(t.lost == 1 && mps_fault(t.m, GPU) && mps_blame(t.m, 1, GPU) == BLAME_NONE);
}

/* A process of this test stands for a client; it is of attempt 1 or 2 because the driver's list says so. */
static pid_t client(struct try *t, int64_t attempt)
{
    char text[16];
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    snprintf(text, sizeof text, "1 %d", pid);
    mps_seen(t->m, GPU, attempt, text);
    return pid;
}
static void kill_client(pid_t pid) { CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid); }
static int64_t since;
static bool some_time(struct try *t) { return os_wall_ms(t->os) > since + 50; }
static void a_moment(struct try *t) { since = os_wall_ms(t->os), until(t, some_time); }

/* As driver 580 writes it, in the time of this place. */
static void fault_of(struct try *t, pid_t pid, int64_t now)
{
    char when[32], text[256];
    time_t s = (time_t)(now / 1000);
    strftime(when, sizeof when, "%F %T", localtime(&s));
    snprintf(text, sizeof text, "[%s.%03d Server  8807] Client {PID: %d, Context: 1} encountered a fatal GPU error.\n[%s.%03d Server  8807] Server is handling a fatal GPU error.\n",
             when, (int)(now % 1000), pid, when, (int)(now % 1000));
    writes(t, text);
}

static void share(struct try *t)
{
    try_open(t);
    mps_want(t->m, 1, &quarter, on_done, t);
    mps_want(t->m, 2, &quarter, on_done, t);
    until(t, both_done);
}

TEST(who_is_named_is_a_suspect_and_who_dies_of_it_is_not)
{
    AUTO(try_done) struct try t;
    share(&t);
    pid_t one = client(&t, 1), two = client(&t, 2);
    a_moment(&t);
    fault_of(&t, one, os_wall_ms(t.os));
    a_moment(&t);
    kill_client(two);           /* it was told an error */
    until(&t, is_lost);
    CHECK(t.lost == 1 && mps_blame(t.m, 1, GPU) == BLAME_SUSPECT && mps_blame(t.m, 2, GPU) == BLAME_BYSTANDER && mps_blame(t.m, 1, "GPU-0-8") == BLAME_NONE);
    kill_client(one);
}

TEST(where_one_was_killed_before_the_neighbour_whom_the_log_names_is_no_suspect)
{
    AUTO(try_done) struct try t;
    share(&t);
    pid_t one = client(&t, 1), two = client(&t, 2);
    mps_want(t.m, 3, &quarter, on_done, &t);
    a_moment(&t);
    kill_client(two);
    a_moment(&t);
    int64_t gone = 0;
    for (size_t i = 0; i < MPS_SEEN; i++)
        gone = MAX(gone, daemon_of(t.m, GPU)->seen[i].gone_ms);
    CHECK(gone > 0);
    fault_of(&t, one, gone + 20);
    until(&t, is_lost);
    CHECK(mps_blame(t.m, 2, GPU) == BLAME_NONE && mps_blame(t.m, 1, GPU) == BLAME_NONE && mps_blame(t.m, 3, GPU) == BLAME_BYSTANDER);
    kill_client(one);
    int daemon = pid_of(&t);
    t.lost = 0;
    for (int i = 1; i <= 3; i++)
        mps_drop(t.m, i);
    t.done = 0;
    mps_want(t.m, 4, &quarter, on_done, &t);
    mps_want(t.m, 5, &quarter, on_done, &t);
    until(&t, both_done);
    CHECK(pid_of(&t) != daemon && kill(pid_of(&t), SIGKILL) == 0);
    until(&t, is_lost);
    CHECK(mps_blame(t.m, 2, GPU) == BLAME_BYSTANDER && mps_blame(t.m, 4, GPU) == BLAME_BYSTANDER);      /* a daemon that dies is nobody's */
}

TEST(what_went_with_the_daemon_of_before_makes_nobody_less_of_a_suspect)
{
    AUTO(try_done) struct try t;
    share(&t);
    pid_t one = client(&t, 1), two = client(&t, 2);
    a_moment(&t);
    fault_of(&t, one, os_wall_ms(t.os));
    until(&t, is_lost);
    mps_drop(t.m, 1);
    mps_drop(t.m, 2);
    t.done = t.lost = 0;
    mps_want(t.m, 3, &quarter, on_done, &t);
    mps_want(t.m, 4, &quarter, on_done, &t);
    kill_client(one);
    kill_client(two);
    until(&t, both_done);
    pid_t three = client(&t, 3);
    a_moment(&t);
    fault_of(&t, three, os_wall_ms(t.os));
    until(&t, is_lost);
    CHECK(mps_blame(t.m, 3, GPU) == BLAME_SUSPECT && mps_blame(t.m, 4, GPU) == BLAME_BYSTANDER);
    kill_client(three);
}

TEST(what_is_written_is_read_without_being_asked_while_several_share)
{
    AUTO(try_done) struct try t;
    share(&t);
    writes(&t, "[x Server   898] Device 0 status is FAULT\n");
    until(&t, is_lost);
    CHECK(t.lost == 1 && mps_blame(t.m, 1, GPU) == BLAME_NONE);
}

TEST(a_daemon_that_answers_nothing_any_more_is_ended_and_told)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_free(t.m);
    t.beat_ms = 1000;
    begin(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    int pid = pid_of(&t);
    odd(&t, "deaf");
    until(&t, is_lost);
    CHECK(strstr(t.why, "does not answer") && mps_blame(t.m, 1, GPU) == BLAME_NONE);
    until(&t, is_gone);
    mps_drop(t.m, 1);
    CHECK(unlink(in(&t, "deaf")) == 0);
    t.done = 0;
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1 && pid_of(&t) != pid);
}

TEST(its_server_is_there_before_the_first_is_let_in_and_without_one_it_goes_on)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1 && says(&t, "0 start_server -uid 0\n"));
    FILE *f = fopen(in(&t, "server.pid"), "re");
    int server = 0;
    CHECK(f && fscanf(f, "%d", &server) == 1 && fclose(f) == 0 && kill(server, 0) == 0);
    mps_drop(t.m, 1);
    until(&t, is_gone);
    odd(&t, "idle");
    t.done = 0;
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, is_done);
    CHECK(t.done == 1);
}

TEST(an_error_that_the_driver_tells_of_a_program_is_a_fault_and_comes_once)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, both_done);
    mps_xid(t.m, GPU, 63);      /* a row is to be remapped: nobody was hit */
    mps_xid(t.m, "GPU-0-8", 31);
    CHECK(!t.lost);
    mps_xid(t.m, GPU, 31);
    mps_xid(t.m, GPU, 45);
    look_on(&t);
    mps_xid(t.m, GPU, 45);
    CHECK(t.lost == 1 && strstr(t.why, "XID 31") && mps_blame(t.m, 1, GPU) == BLAME_NONE);
}

TEST(a_log_that_clients_fill_is_bounded_and_what_an_agent_before_saw_is_not_told_again)
{
    AUTO(try_done) struct try t;
    struct stat st;
    try_open(&t);
    mps_want(t.m, 1, &quarter, on_done, &t);
    mps_want(t.m, 2, &quarter, on_done, &t);
    until(&t, both_done);
    writes(&t, "[x Server   898] Client encountered a fatal exception\n");
    mps_free(t.m);
    begin(&t);
    mps_hold(t.m, 1, &quarter);
    mps_hold(t.m, 2, &quarter);
    mps_begin(t.m);
    mps_look(t.m);
    CHECK(!t.lost);
    CHECK(truncate(in(&t, "log/daemon"), 5 << 20) == 0);
    mps_look(t.m);
    CHECK(stat(in(&t, "log/daemon"), &st) == 0 && st.st_size == 0);
    writes(&t, "[x Server   898] Client encountered a fatal exception\n");
    look_on(&t);
    CHECK(t.lost == 1);
}

static int ends;
static void on_end(void *arg) { ends++, check(arg); }
static bool has_ended(struct try *t) { return t && ends > 0; }

TEST(work_on_a_shared_gpu_is_ended_before_its_process_is_killed_and_a_deaf_daemon_holds_nobody_up)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    mps_free(t.m);
    t.end_ms = LIMIT_MS;
    begin(&t);
    odd(&t, "serves");
    mps_want(t.m, 0, &quarter, on_done, &t);        /* this process is of no attempt: 0 */
    until(&t, is_done);
    ends = 0;
    mps_terminate(t.m, 0, GPU, on_end, &t);
    CHECK(ends == 1);           /* nobody is beside it */
    mps_want(t.m, 2, &quarter, on_done, &t);
    char line[64];
    FILE *f = fopen(in(&t, "clients"), "we");
    CHECK(t.done == 2 && f && fprintf(f, "%d\n", getpid()) > 0 && fclose(f) == 0);
    ends = 0;
    mps_terminate(t.m, 0, GPU, on_end, &t);
    until(&t, has_ended);
    snprintf(line, sizeof line, " %d\n", getpid());
    CHECK(ends == 1 && says(&t, "0 get_client_list ") && says(&t, "0 terminate_client ") && says(&t, line));
    mps_free(t.m);
    t.end_ms = 50;
    begin(&t);
    mps_hold(t.m, 0, &quarter);
    mps_hold(t.m, 2, &quarter);
    mps_begin(t.m);
    ends = 0;
    odd(&t, "deaf");
    mps_terminate(t.m, 0, GPU, on_end, &t);
    until(&t, has_ended);
    mps_terminate(t.m, 0, GPU, on_end, &t);         /* one that is under way is let go with all */
    char path[160];
    int server = 0;
    snprintf(path, sizeof path, "%s", in(&t, "server.pid"));
    f = fopen(path, "re");
    CHECK(f && fscanf(f, "%d", &server) == 1 && fclose(f) == 0 && server > 1 && kill(server, SIGKILL) == 0);
}

TEST(the_daemons_of_two_agents_are_not_in_one_control_group)
{
    char one[MPS_GROUP], two[MPS_GROUP], again[MPS_GROUP];
    mps_group("/run/arcus/mps/7", one);
    mps_group("/run/other/mps/7", two);
    mps_group("/run/arcus/mps/7", again);
    CHECK(text_is(one, again) && !text_is(one, two) && text_starts(one, "arcus/mps-7-"));
}
