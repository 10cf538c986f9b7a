#include "sim_pair.h"
#include "base/fault.h"
#include <signal.h>
#include <sys/wait.h>

struct prog {
    struct sim_proc *self;
    struct os *os;
    int starts, signals, last_signal, ticks;
    char arg1[32];
    bool stays;
};

static void tick(void *arg)
{
    struct prog *p = arg;
    p->ticks++;
    timer_start(p->os, 100, tick, p);
}
static void handler(void *arg, int signal)
{
    struct prog *p = arg;
    p->signals++;
    p->last_signal = signal;
    if (!p->stays && signal != SIGKILL)
        sim_proc_exit(p->self, 3 << 8);
}
static void daemon_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct prog *p = arg;
    p->self = self;
    p->os = os;
    p->starts++;
    snprintf(p->arg1, sizeof p->arg1, "%s", argv[1] ? argv[1] : "");
    sim_proc_on_signal(self, handler, p);
    tick(p);
}
static void plain_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    (void)arg, (void)os, (void)self, (void)argv;
}
static void printer_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    (void)arg, (void)os;
    sim_proc_print(self, "hello ");
    sim_proc_print(self, argv[1]);
    sim_proc_exit(self, text_is(argv[1], "bad") ? 1 << 8 : 0);
}

struct ended { int times, status; struct proc *p; };
static void on_exit_(void *arg, int status)
{
    struct ended *e = arg;
    e->times++;
    e->status = status;
    proc_forget(e->p);          /* harmless inside the callback */
}
static void on_gone(void *arg) { on_exit_(arg, -2); }

struct yard { struct sim *w; struct os *os; struct prog prog; struct ended e; struct err err; };
static struct yard *yard_new(void)
{
    struct yard *y = calloc(1, sizeof *y);
    y->w = sim_new(1);
    y->os = sim_machine(y->w, "m");
    sim_program(y->w, "/bin/daemon", daemon_start, &y->prog);
    sim_program(y->w, "/bin/plain", plain_start, NULL);
    sim_program(y->w, "/bin/printer", printer_start, NULL);
    return y;
}
static void yard_free(struct yard *y)
{
    sim_free(y->w);
    free(y);
}
static bool start(struct yard *y, const char *path, bool own_session)
{
    struct proc_spec spec
        = { .argv = (const char *[]){ path, "one", NULL }, .own_session = own_session };
    return proc_spawn(y->os, &spec, on_exit_, &y->e, &y->e.p, &y->err);
}
static void wait_ms(struct yard *y, int64_t ms)
{
    sim_until(y->w, sim_now_ms(y->w) + ms, NULL, NULL);
}

TEST(a_simulated_process_starts_gets_signals_and_its_end_is_told)
{
    struct yard *y = yard_new();
    CHECK(start(y, "/bin/daemon", false) && y->prog.starts == 0);
    wait_ms(y, 1000);
    CHECK(y->prog.starts == 1 && text_is(y->prog.arg1, "one") && y->prog.ticks >= 9);
    CHECK(proc_pid(y->e.p) == sim_proc_pid(y->prog.self));
    y->prog.stays = true;
    proc_kill(y->e.p, SIGHUP);
    wait_ms(y, 10);
    CHECK(y->prog.last_signal == SIGHUP && y->e.times == 0);
    y->prog.stays = false;
    proc_kill(y->e.p, SIGTERM);
    wait_ms(y, 10);
    CHECK(y->e.times == 1 && WIFEXITED(y->e.status) && WEXITSTATUS(y->e.status) == 3);
    int ticks = y->prog.ticks;
    wait_ms(y, 1000);
    CHECK(y->prog.ticks == ticks && y->e.times == 1);       /* its os died with it */
    yard_free(y);
}

TEST(a_simulated_kill_is_told_apart_from_an_exit)
{
    struct yard *y = yard_new();
    CHECK(start(y, "/bin/daemon", false));
    y->prog.stays = true;
    wait_ms(y, 10);
    proc_kill(y->e.p, SIGKILL);
    wait_ms(y, 10);
    CHECK(y->e.times == 1 && WIFSIGNALED(y->e.status) && WTERMSIG(y->e.status) == SIGKILL);
    CHECK(y->prog.last_signal == SIGKILL);
    CHECK(start(y, "/bin/plain", false));
    wait_ms(y, 10);
    proc_kill(y->e.p, SIGWINCH);
    wait_ms(y, 10);
    CHECK(y->e.times == 1);
    proc_kill(y->e.p, SIGTERM);
    wait_ms(y, 10);
    CHECK(y->e.times == 2 && WIFSIGNALED(y->e.status) && WTERMSIG(y->e.status) == SIGTERM);
    yard_free(y);
}

TEST(a_simulated_process_can_be_watched_by_pid_and_start)
{
    struct yard *y = yard_new();
    CHECK(start(y, "/bin/daemon", true));
    int pid = proc_pid(y->e.p);
    uint64_t started = proc_start_time(y->e.p);
    os_free(y->os);                                 /* the program that spawned it ends */
    wait_ms(y, 200);
    CHECK(y->prog.ticks >= 2);
    struct os *next = sim_machine(y->w, "m"), *other = sim_machine(y->w, "n");
    struct ended e = { 0 };
    CHECK(!proc_watch(next, pid, started + 1, on_gone, &e, &e.p));
    CHECK(!proc_watch(other, pid, started, on_gone, &e, &e.p));
    CHECK(proc_watch(next, pid, started, on_gone, &e, &e.p));
    proc_kill(e.p, SIGKILL);
    wait_ms(y, 10);
    CHECK(e.times == 1 && e.status == -2 && y->e.times == 0);
    CHECK(!proc_watch(next, pid, started, on_gone, &e, &e.p));
    yard_free(y);
}

TEST(a_crash_ends_processes_without_a_word)
{
    struct yard *y = yard_new();
    CHECK(start(y, "/bin/daemon", true));
    wait_ms(y, 200);
    int pid = proc_pid(y->e.p), ticks = y->prog.ticks;
    uint64_t started = proc_start_time(y->e.p);
    sim_crash(y->w, y->os);
    wait_ms(y, 1000);
    CHECK(y->e.times == 0 && y->prog.ticks == ticks && y->prog.signals == 0);
    struct proc *p;
    CHECK(!proc_watch(sim_machine(y->w, "m"), pid, started, on_gone, &y->e, &p));
    yard_free(y);
}

TEST(streams_of_a_killed_process_end_for_its_peer)
{
    struct yard *y = yard_new();
    struct end client = { 0 }, server = { 0 };
    struct listener *l;
    CHECK(start(y, "/bin/daemon", false));
    wait_ms(y, 10);
    CHECK(stream_listen(y->prog.os, "unix:/s", NULL, end_accept, &server, &l, &y->err));
    client.s = stream_dial(y->os, "unix:/s", NULL, NULL, &end_events, &client);
    wait_ms(y, 10);
    CHECK(client.opened == 1);
    proc_kill(y->e.p, SIGKILL);
    wait_ms(y, 10);
    CHECK(client.closed == 1 && server.closed == 0);
    struct end late = { 0 };
    late.s = stream_dial(y->os, "unix:/s", NULL, NULL, &end_events, &late);
    wait_ms(y, 10);
    CHECK(late.closed == 1 && late.opened == 0);
    yard_free(y);
}

TEST(a_simulated_helper_prints_and_an_unknown_one_fails_clearly)
{
    struct yard *y = yard_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    char *out = NULL;
    int st = -1;
    CHECK(proc_run(y->os, (const char *[]){ "/bin/printer", "world", NULL }, 100, mem, &out, &st,
                   &y->err));
    CHECK(text_is(out, "hello world") && st == 0);
    const char *bad[] = { "/bin/printer", "bad", NULL };
    CHECK(proc_run(y->os, bad, 100, mem, &out, &st, &y->err) && WEXITSTATUS(st) == 1);
    CHECK(!proc_run(y->os, bad, 100, mem, &out, NULL, &y->err));
    CHECK(!proc_run(y->os, bad, 3, mem, &out, &st, &y->err) && y->err.rc == RC_TOO_LARGE);
    CHECK(!proc_run(y->os, (const char *[]){ "/bin/daemon", NULL }, 9, mem, &out, &st, &y->err));
    CHECK(!proc_run(y->os, (const char *[]){ "/bin/none", NULL }, 9, mem, &out, &st, &y->err));
    CHECK(y->err.rc == RC_NOT_FOUND && strstr(y->err.text, "no such simulated program"));
    CHECK(!start(y, "/bin/none", false) && !start(y, "relative", false));
    fault_arm(1);
    CHECK(!start(y, "/bin/plain", false) && fault_fired());
    fault_arm(0);
    CHECK(start(y, "/bin/plain", false));
    proc_forget(y->e.p);
    wait_ms(y, 10);
    yard_free(y);
}
