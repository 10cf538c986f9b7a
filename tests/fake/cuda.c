/* cuda.c - a libcuda.so.1 without a driver, for tests: it keeps where each process is in files, so that one helper finds what another left.
 * What it does is in $FAKE_CUDA, or cuda.conf in the folder of the library, read at every call. Lines:
 *
 *   unknown PID | unknown *            the driver does not know the process
 *   fail CALL PID|* RC [TIMES]         that call answers RC (TIMES times, else always). CALL: init, state, lock, checkpoint, restore, unlock
 *   slow CALL PID|* MS                 that call takes so long
 *   hang CALL PID|*                    that call hangs until the line is gone
 *   lose CALL PID|* RC                 as fail, and the process is in state FAILED afterwards
 *   init 1                             calls answer 3 (not initialized) until cuInit was called
 *   closes 1                           SIGUSR1 to a process that is moved away, SIGUSR2 to one that is back: it closes /dev/zero and opens it again, as the driver has it do
 *
 * FILE.PID holds the state of a process (a digit), FILE.log a line "CALL PID RC" of each call but GetState. Who has /dev/zero open uses CUDA, or is a
 * fork of one; whoever else was not moved away is not known, which is 3 as well. One that is stopped is waited for. */
#include "agent/cuda.h"
#include "conf.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 256 };
static bool begun;
__attribute__((weak)) void cuda_work_begin(void);   /* there where cuda_work.c is linked too */

static const char *path_of(void) { return conf_path("FAKE_CUDA", "cuda.conf"); }

/* The last line "WORD CALL WHO rest" that is about this call of this process; false: there is none. */
static bool said(const char *word, const char *call, int pid, long rest[static 2])
{
    FILE *f = fopen(path_of(), "re");
    char line[LINE], w[32], c[32], who[32];
    bool found = false;
    while (f && fgets(line, sizeof line, f)) {
        long a = 0, b = 0;
        if (sscanf(line, "%31s %31s %31s %ld %ld", w, c, who, &a, &b) < 3 || strcmp(w, word) != 0 || strcmp(c, call) != 0
            || (strcmp(who, "*") != 0 && atoi(who) != pid))
            continue;
        rest[0] = a, rest[1] = b;
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

static bool has_line(const char *text)
{
    FILE *f = fopen(path_of(), "re");
    char line[LINE];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        found = strcmp(line, text) == 0;
    }
    if (f)
        fclose(f);
    return found;
}

static void note(const char *call, int pid, int rc)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.log", path_of());
    FILE *f = fopen(path, "ae");
    if (!f)
        return;
    fprintf(f, "%s %d %d\n", call, pid, rc);
    fclose(f);
}

static int times(const char *call, int pid, int rc)
{
    char path[4200], line[LINE], want[64];
    int n = 0;
    snprintf(path, sizeof path, "%s.log", path_of());
    snprintf(want, sizeof want, "%s %d %d\n", call, pid, rc);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        n += strcmp(line, want) == 0;
    if (f)
        fclose(f);
    return n;
}

static int state_of(int pid)
{
    char path[4200];
    int state = CUDA_RUNNING;
    snprintf(path, sizeof path, "%s.%d", path_of(), pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &state) != 1)
        state = CUDA_RUNNING;
    if (f)
        fclose(f);
    return state;
}

static void set_state(int pid, int state)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.%d", path_of(), pid);
    FILE *f = fopen(path, "we");
    if (!f)
        return;
    fprintf(f, "%d\n", state);
    fclose(f);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL); }

/* What the file makes of a call; CUDA_OK: what it is made for happens. */
static int fate(const char *call, int pid)
{
    long rest[2] = { 0 };
    char unknown[32];
    while (said("hang", call, pid, rest))
        pause_ms(20);
    if (said("slow", call, pid, rest))
        pause_ms(rest[0]);
    if (strcmp(call, "init") != 0 && has_line("init 1") && !begun)
        return CUDA_NOT_INITIALIZED;
    if (strcmp(call, "init") != 0 && kill(pid, 0) == -1 && errno == ESRCH)
        return CUDA_INVALID_VALUE;
    snprintf(unknown, sizeof unknown, "unknown %d", pid);
    if (strcmp(call, "init") != 0 && (has_line(unknown) || has_line("unknown *")))
        return CUDA_INVALID_VALUE;
    if (said("lose", call, pid, rest)) {
        set_state(pid, CUDA_FAILED);
        return (int)rest[0];
    }
    if (said("fail", call, pid, rest) && (!rest[1] || times(call, pid, (int)rest[0]) < rest[1]))
        return (int)rest[0];
    return CUDA_OK;
}

static bool has_device_open(int pid)
{
    char path[64];
    struct stat st, zero;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    bool found = false, known = stat("/dev/zero", &zero) == 0;
    for (struct dirent *e; d && known && !found && (e = readdir(d));)
        found = e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == zero.st_rdev;
    if (d)
        closedir(d);
    return found;
}

static bool is_stopped(int pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'T';
}

static void close_device(int pid, bool away)
{
    if (!has_line("closes 1") || kill(pid, away ? SIGUSR1 : SIGUSR2) == -1)
        return;
    for (int i = 0; i < 500 && has_device_open(pid) == away; i++)
        pause_ms(10);
}

static int step(const char *call, int pid, int from, int to)
{
    int rc = fate(call, pid);
    if (rc == CUDA_OK && state_of(pid) != from)
        rc = CUDA_ILLEGAL_STATE;
    if (rc == CUDA_OK)
        set_state(pid, to);
    note(call, pid, rc);
    return rc;
}

#define X(member, symbol, arguments) int symbol arguments;
CUDA_FUNCTIONS(X)
#undef X

int cuInit(unsigned flags)
{
    int rc = fate("init", 0);
    (void)flags;
    begun = rc == CUDA_OK;
    if (begun && cuda_work_begin)
        cuda_work_begin();
    note("init", 0, rc);
    return rc;
}

int cuCheckpointProcessGetState(int pid, int *out)
{
    while (is_stopped(pid))
        pause_ms(20);
    int rc = fate("state", pid);
    if (rc == CUDA_OK && state_of(pid) == CUDA_RUNNING && !has_device_open(pid))
        rc = CUDA_NOT_INITIALIZED;
    if (rc == CUDA_OK)
        *out = state_of(pid);
    return rc;
}

int cuCheckpointProcessLock(int pid, struct cuda_args *args)
{
    long rest[2];
    if (args->timeout_ms && said("slow", "lock", pid, rest) && rest[0] > (long)args->timeout_ms) {
        pause_ms(args->timeout_ms);
        note("lock", pid, CUDA_NOT_READY);
        return CUDA_NOT_READY;
    }
    return step("lock", pid, CUDA_RUNNING, CUDA_LOCKED);
}

int cuCheckpointProcessCheckpoint(int pid, struct cuda_args *args)
{
    (void)args;
    int rc = step("checkpoint", pid, CUDA_LOCKED, CUDA_CHECKPOINTED);
    if (rc == CUDA_OK)
        close_device(pid, true);
    return rc;
}

int cuCheckpointProcessRestore(int pid, struct cuda_args *args)
{
    (void)args;
    int rc = step("restore", pid, CUDA_CHECKPOINTED, CUDA_LOCKED);
    if (rc == CUDA_OK)
        close_device(pid, false);
    return rc;
}

int cuCheckpointProcessUnlock(int pid, struct cuda_args *args)
{
    (void)args;
    return step("unlock", pid, CUDA_LOCKED, CUDA_RUNNING);
}
