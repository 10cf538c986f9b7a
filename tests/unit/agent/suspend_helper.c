/* suspend_helper.c - the helper itself against the kernel's control groups, a made-up libcuda and a made-up NVML: sleepers that have /dev/zero open stand for
 * processes that use CUDA. What the driver does is told by a file, and each helper is a process of its own, as it is under the agent. */
#include "agent/cgroup.h"
#include "agent/suspend.h"
#include "base/id.h"
#include "base/str.h"
#include "model/prefix.h"
#include "tap.h"
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCS = 3, LIMIT_MIB = 64 };
struct try {
    struct arena *mem;
    char top[64], task[96], group[64], name[ID_TEXT], cuda[160], nvml[160];
    struct cgroups cgroups;
    int64_t attempt;
    pid_t pids[PROCS];          /* the first two use CUDA, the third does not */
    struct suspend_note note;
};

static bool fake(const char *name, const char *to)
{
    char self[512], from[640], command[1400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[MAX(n, 0)] = 0;
    char *slash = strrchr(self, '/');
    snprintf(from, sizeof from, "%.*s/fake/%s", slash ? (int)(slash - self) : 0, self, name);
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    return system(command) == 0;
}

static void write_file(struct try *t, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", t->top, name);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

/* It has its file open when this comes back. */
static pid_t sleeper(const char *open_this)
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid) {
        close(ready[1]);
        CHECK(read(ready[0], &byte, 1) == 1);
        close(ready[0]);
        return pid;
    }
    alarm(300);
    prctl(PR_SET_NAME, "a name) R)");    /* as a tenant may call his */
    sigset_t moved;
    int fd = open_this ? open(open_this, O_RDONLY) : -1, heard;
    sigemptyset(&moved);
    sigaddset(&moved, SIGUSR1);
    sigaddset(&moved, SIGUSR2);
    sigprocmask(SIG_BLOCK, &moved, NULL);
    if ((open_this && fd == -1) || write(ready[1], "r", 1) != 1)
        _exit(1);
    close(ready[0]);
    close(ready[1]);
    while (sigwait(&moved, &heard) == 0) { /* "closes 1" of the made-up driver */
        if (heard == SIGUSR1)
            close(fd);
        else
            fd = open(open_this, O_RDONLY);
    }
    _exit(1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void end(struct try *t)
{
    CHECK(cgroup_kill(&t->cgroups, t->group, 60000)); /* whether it stands still or not */
    for (int i = 0; i < PROCS; i++)
        waitpid(t->pids[i], NULL, 0);
    CHECK(cgroup_remove(&t->cgroups, t->group));
    nftw(t->top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(t->mem);
}

static bool begin(struct try *t)
{
    struct err err = { 0 };
    *t = (struct try){ .mem = arena_new(), .attempt = 1000000 + getpid() };
    if (geteuid() != 0 || !cgroups_find(&t->cgroups, &err) || !cgroups_freeze(&t->cgroups))
        return arena_free(t->mem), test_skip("needs root and a freezer"), false;
    snprintf(t->top, sizeof t->top, "/tmp/suspend.XXXXXX");
    CHECK(mkdtemp(t->top) && snprintf(t->task, sizeof t->task, "%s/task", t->top) > 0 && mkdir(t->task, 0700) == 0);
    snprintf(t->cuda, sizeof t->cuda, "%s/libcuda.so.1", t->top);
    snprintf(t->nvml, sizeof t->nvml, "%s/libnvidia-ml.so.1", t->top);
    CHECK(fake("libcuda.so.1", t->cuda) && fake("libnvidia-ml.so.1", t->nvml));
    id_text(t->name, PREFIX_ATTEMPT, t->attempt);
    snprintf(t->group, sizeof t->group, "arcus/%s", t->name);
    for (int i = 0; i < PROCS; i++) {
        t->pids[i] = sleeper(i < 2 ? "/dev/zero" : NULL);
        CHECK(cgroup_move(&t->cgroups, t->group, t->pids[i], &err));
    }
    int64_t was;
    if (!cgroup_memory_limit(&t->cgroups, t->group, &was, &err)) { /* on v2 somebody may have to let it be */
        end(t);
        return test_skip("memory is not limited here"), false;
    }
    CHECK(cgroup_memory_set(&t->cgroups, t->group, (int64_t)LIMIT_MIB << 20, &err));
    write_file(t, "cuda.conf", "");
    write_file(t, "nvml.conf", arena_printf(t->mem, "gpus 1\ngpu 0 process %d 100\ngpu 0 process %d 30\ngpu 0 process 1 7000\ncuda %s/cuda.conf\n", t->pids[0], t->pids[1], t->top));
    return true;
}

/* What the helper leaves: its state; -1: no note. */
static int go(struct try *t, const char *to, int n, const char *limit_s)
{
    char number[16], turns[96];
    int status;
    snprintf(number, sizeof number, "%d", n);
    snprintf(turns, sizeof turns, "%s/turns", t->top);
    char *argv[] = { "suspend-helper", "--attempt", t->name, "--folder", t->task, "--group", t->group, "--to", (char *)to, "--number", number,
                     "--turns", turns, "--libcuda", t->cuda, "--nvml", t->nvml, "--uvm", "/dev/zero", "--limit", (char *)limit_s, "--room", "1000" };
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        _exit(suspend_main((int)COUNT(argv), argv));
    }
    waitpid(pid, &status, 0);
    t->note = (struct suspend_note){ 0 };
    return suspend_note_read(t->task, t->attempt, t->mem, &t->note) ? t->note.state : -1;
}

static int64_t limit_mib(struct try *t)
{
    int64_t bytes = 0;
    struct err err = { 0 };
    CHECK(cgroup_memory_limit(&t->cgroups, t->group, &bytes, &err));
    return bytes >> 20;
}

/* Of what was called: "lock lock checkpoint ...", and the log begins anew. */
static const char *calls(struct try *t)
{
    char path[128], word[32];
    AUTO(str_done) struct str text = { 0 };
    int pid, rc;
    snprintf(path, sizeof path, "%s/cuda.conf.log", t->top);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%31s %d %d", word, &pid, &rc) == 3)
        str_printf(&text, "%s%s%s", text.len ? " " : "", word, rc ? "!" : "");
    if (f)
        fclose(f);
    unlink(path);
    return arena_text(t->mem, text.at ? text.at : "");
}

TEST(a_helper_moves_all_cuda_processes_of_a_group_and_freezes_it)
{
    struct try t;
    if (!begin(&t))
        return;
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_SUSPENDED && t.note.gpu_mib == 130 && t.note.n == 1);
    CHECK(text_is(calls(&t), "init lock lock checkpoint checkpoint") && limit_mib(&t) == LIMIT_MIB + 130 + SUSPEND_SPARE_MIB);
    CHECK(go(&t, "suspended", 2, "60") == SUSPEND_SUSPENDED && text_is(calls(&t), "") && t.note.n == 2);
    CHECK(go(&t, "running", 3, "60") == SUSPEND_RUNNING && text_is(calls(&t), "init restore restore unlock unlock") && limit_mib(&t) == LIMIT_MIB);
    end(&t);
}

TEST(one_that_is_moved_away_has_the_device_closed_and_is_found_again)
{
    struct try t;
    if (!begin(&t))
        return;
    write_file(&t, "cuda.conf", "closes 1\n");
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_SUSPENDED && text_is(calls(&t), "init lock lock checkpoint checkpoint"));
    CHECK(go(&t, "running", 2, "60") == SUSPEND_RUNNING && text_is(calls(&t), "init restore restore unlock unlock"));
    write_file(&t, "cuda.conf", arena_printf(t.mem, "closes 1\nfail checkpoint %d %d\n", t.pids[1], CUDA_NOT_SUPPORTED));
    CHECK(go(&t, "suspended", 3, "60") == SUSPEND_RUNNING && t.note.why && strstr(t.note.why, "801")); /* the first was away already */
    CHECK(text_is(calls(&t), "init lock lock checkpoint checkpoint! restore unlock unlock") && limit_mib(&t) == LIMIT_MIB);
    end(&t);
}

TEST(one_that_is_stopped_is_not_waited_for)
{
    struct try t;
    if (!begin(&t))
        return;
    CHECK(kill(t.pids[2], SIGSTOP) == 0 && go(&t, "suspended", 1, "30") == SUSPEND_SUSPENDED); /* it uses no GPU */
    CHECK(go(&t, "running", 2, "30") == SUSPEND_RUNNING);
    CHECK(kill(t.pids[0], SIGSTOP) == 0 && go(&t, "suspended", 3, "30") == SUSPEND_RUNNING && t.note.why && strstr(t.note.why, "is stopped"));
    CHECK(limit_mib(&t) == LIMIT_MIB);
    end(&t);
}

TEST(cuInit_is_called_when_the_driver_asks_for_it)
{
    struct try t;
    if (!begin(&t))
        return;
    write_file(&t, "cuda.conf", "init 1\n");
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_SUSPENDED && text_is(calls(&t), "init lock lock checkpoint checkpoint"));
    end(&t);
}

TEST(whichever_call_fails_the_task_runs_or_is_suspended)
{
    static const struct { const char *call, *to; int rc, state; const char *why; } all[] = {
        { "lock", "suspended", CUDA_NOT_READY, SUSPEND_RUNNING, "in time" },
        { "checkpoint", "suspended", CUDA_NOT_SUPPORTED, SUSPEND_RUNNING, "801" },
        { "checkpoint", "suspended", CUDA_OUT_OF_MEMORY, SUSPEND_RUNNING, "memory" },
        { "restore", "running", CUDA_OUT_OF_MEMORY, SUSPEND_SUSPENDED, "memory" },
        { "restore", "running", CUDA_INVALID_VALUE, SUSPEND_BROKEN, "CUDA IPC" },
        { "unlock", "running", CUDA_UNKNOWN, SUSPEND_BROKEN, "999" },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        for (int who = 0; who < 2; who++) {
            struct try t;
            if (!begin(&t))
                return;
            if (text_is(all[i].to, "running"))
                CHECK(go(&t, "suspended", 1, "60") == SUSPEND_SUSPENDED);
            write_file(&t, "cuda.conf", arena_printf(t.mem, "fail %s %d %d\n", all[i].call, t.pids[who], all[i].rc));
            CHECK(go(&t, all[i].to, 2, "60") == all[i].state && t.note.why && strstr(t.note.why, all[i].why));
            write_file(&t, "cuda.conf", "");
            calls(&t);
            if (all[i].state != SUSPEND_BROKEN)
                CHECK(go(&t, all[i].to, 3, "60") == (text_is(all[i].to, "running") ? SUSPEND_RUNNING : SUSPEND_SUSPENDED));
            end(&t);
        }
}

TEST(a_process_whose_state_the_driver_lost_makes_the_task_broken)
{
    struct try t;
    if (!begin(&t))
        return;
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_SUSPENDED);
    write_file(&t, "cuda.conf", arena_printf(t.mem, "lose restore %d 999\n", t.pids[1]));
    CHECK(go(&t, "running", 2, "60") == SUSPEND_BROKEN);
    end(&t);
}

TEST(a_helper_that_hangs_ends_itself_and_the_next_one_goes_back)
{
    struct try t;
    if (!begin(&t))
        return;
    write_file(&t, "cuda.conf", arena_printf(t.mem, "hang checkpoint %d\n", t.pids[1]));
    CHECK(go(&t, "suspended", 1, "3") == SUSPEND_MOVING);
    write_file(&t, "cuda.conf", "");
    CHECK(go(&t, "running", 2, "60") == SUSPEND_RUNNING && limit_mib(&t) == LIMIT_MIB && !t.note.why);
    end(&t);
}

TEST(what_the_driver_does_not_know_is_left_alone_unless_it_holds_memory)
{
    struct try t;
    if (!begin(&t))
        return;
    write_file(&t, "cuda.conf", arena_printf(t.mem, "unknown %d\n", t.pids[1]));
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_RUNNING || t.note.gpu_mib == 130); /* 30 MiB of it stay, which is little */
    CHECK(go(&t, "running", 2, "60") == SUSPEND_RUNNING);
    write_file(&t, "cuda.conf", arena_printf(t.mem, "unknown %d\n", t.pids[0]));
    CHECK(go(&t, "suspended", 3, "60") == SUSPEND_RUNNING && t.note.why && strstr(t.note.why, "stayed"));
    end(&t);
}

TEST(without_a_driver_a_task_is_left_as_it_is)
{
    struct try t;
    if (!begin(&t))
        return;
    snprintf(t.cuda, sizeof t.cuda, "%s/nonesuch.so", t.top);
    CHECK(go(&t, "suspended", 1, "60") == SUSPEND_RUNNING && t.note.why && strstr(t.note.why, "driver") && t.note.n == 1);
    end(&t);
}
