/* supervisor.c - arcus-task made of straw: it reads the plan and the bundle, writes the status, obeys the stop file, the lease,
 * max_duration and SIGKILL as the real one does, and its container is a timer.
 *
 * The law that is checked here: an attempt begins at most once, and never while another attempt of its task lives (the
 * latter by books.c, from what is noted here). */
#include "agent/task_plan.h"
#include "cloud.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBEYS_MS = 40, THAWS_MS = 200, UNSYNCED_MS = 10000 }; /* an agent that does not stand still has what it was told on its disk, or on the server's, long before */

struct straw {
    struct cloud *c;
    struct run *run;
    struct os *os;
    struct sim_proc *self;
    struct arena *mem;
    struct plan plan;
    struct task_status status;
    struct timer *timer;
    struct watch *watch;
    int64_t begun, prepared_at, run_ms, exit_code;
    int64_t container_at; /* boot clock; 0: it is not there yet */
    bool stubborn;        /* SIGTERM is not enough */
    int64_t frozen_at;    /* its container stands still since then; 0: it does not */
    enum outcome as;
    int64_t kill_at;
};

struct run *run_of(struct cloud *c, int64_t attempt)
{
    for (size_t i = 0; i < c->run_count; i++)
        if (c->runs[i].attempt == attempt)
            return &c->runs[i];
    return NULL;
}

static bool read_as(struct straw *s, const char *path, const struct fields *fields, void *out)
{
    struct err err = { 0 };
    struct slice text;
    struct json *doc;
    return file_read(s->os, path, PLAN_BYTES, s->mem, &text, &err)
           && json_parse(text, s->mem, &doc, &err)
           && bind_read(doc, fields, s->mem, out, NULL, &err);
}

static bool write_status(struct straw *s)
{
    AUTO(str_done) struct str text = { 0 };
    struct err err = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &task_status_fields, &s->status);
    str_char(&text, '\n');
    /* that it begins is not synced: what comes next is, or what the agent spools of it */
    if (s->status.phase == PHASE_PREPARING || (s->run->lazy && s->c->nodes[s->run->node].proc))
        return file_append(s->os, s->plan.status, (struct slice){ text.at, text.len }, false, &err);
    return file_replace(s->os, s->plan.status, (struct slice){ text.at, text.len }, 0600, &err);
}

/* The process is gone, by whatever hand. */
static void bury(struct straw *s)
{
    struct run *r = s->run;
    if (!r->to_ms)
        r->to_ms = sim_now_ms(s->c->sim);
    if (s->container_at && !r->ended_ms)
        r->ended_ms = os_wall_ms(s->os);
    r->alive = NULL;
    arena_free(s->mem);
    free(s);
}

/* A disk that refuses is asked again: the container is gone, but nobody has been told. */
static void tell_end(void *arg)
{
    enum { AGAIN_MS = 1000 };
    struct straw *s = arg;
    struct sim_proc *self = s->self;
    struct run *r = s->run;
    s->timer = NULL;
    r->tried = true;
    r->outcome = (enum outcome)s->status.outcome;
    r->exit_code = s->status.exit_code;
    if (disk_exists(s->os, s->plan.folder) && !write_status(s)) {
        s->timer = timer_start(s->os, AGAIN_MS, tell_end, s);
        return;
    }
    r->told = true;
    cloud_say(s->c, "%s ends as %s", s->plan.id, outcome_name(r->outcome));
    bury(s);
    sim_proc_exit(self, 0);
}

static void end(struct straw *s, enum outcome outcome, int64_t exit_code)
{
    s->run->to_ms = sim_now_ms(s->c->sim);
    s->status.phase = PHASE_ENDED;
    s->status.ended_ms = s->run->ended_ms = os_wall_ms(s->os);
    s->status.outcome = (int)outcome;
    s->status.exit_code = exit_code;
    timer_cancel(s->timer);
    if (s->watch)
        watch_stop(s->watch);
    tell_end(s);
}

static void end_it(struct straw *s, enum outcome as, int64_t grace_s)
{
    int64_t now = os_boot_ms(s->os), at = now + grace_s * 1000;
    if (s->as == OUTCOME_NONE)
        s->as = as;
    if (!s->stubborn || !s->container_at || s->frozen_at)
        at = MIN(at, now + OBEYS_MS);
    if (!s->kill_at || at < s->kill_at)
        s->kill_at = at;
}

static int64_t lease_ends(struct straw *s)
{
    struct err err = { 0 };
    struct slice text;
    bool heard = file_read(s->os, s->plan.lease, 100, s->mem, &text, &err);
    if (heard)
        watch_lease(s->c, s->run->node, strtoll(text.at, NULL, 10));
    return (heard ? strtoll(text.at, NULL, 10) : s->begun) + s->plan.run_for_s * 1000;
}

static bool begin_container(struct straw *s)
{
    s->container_at = s->run->container_ms = os_boot_ms(s->os);
    s->status.phase = PHASE_RUNNING;
    s->status.started_ms = os_wall_ms(s->os);
    s->run->started_ms = s->status.started_ms;
    watch_runs(s->c, s->run);
    return write_status(s);
}

static void on_timer(void *arg);

/* The kernel's freezer: a file that the agent makes, and takes away. */
static void freeze(struct straw *s, int64_t now)
{
    bool frozen = s->container_at && disk_exists(s->os, arena_printf(s->mem, "%s/frozen", s->plan.folder));
    if (frozen == (s->frozen_at > 0))
        return;
    cloud_say(s->c, "%s %s", s->plan.id, frozen ? "stands still" : "goes on");
    if (!frozen)
        s->run_ms += now - s->frozen_at;
    s->frozen_at = frozen ? now : 0;
    s->run->frozen = frozen;
    s->c->freezes += frozen;
    if (!frozen)
        watch_runs(s->c, s->run);
}

static void look(struct straw *s)
{
    int64_t now = os_boot_ms(s->os), next = INT64_MAX;
    const struct plan *p = &s->plan;
    struct plan_stop stop = { 0 };
    const char *path = arena_printf(s->mem, "%s/stop", p->folder);
    freeze(s, now);
    if (disk_exists(s->os, path) && read_as(s, path, &plan_stop_fields, &stop))
        end_it(s, (enum outcome)stop.as, stop.grace_s);
    if (p->run_for_s && now >= lease_ends(s)) {
        end(s, OUTCOME_NODE_LOST, 0);
        return;
    }
    if (!s->container_at && !s->kill_at && now >= s->prepared_at && !begin_container(s)) {
        end(s, OUTCOME_NODE_FAULT, 0);
        return;
    }
    int64_t deadline = s->container_at && p->max_duration_s
                           ? s->container_at + p->max_duration_s * 1000
                           : INT64_MAX;
    if (now >= deadline && !s->kill_at)
        end_it(s, OUTCOME_DEADLINE, p->grace_s);
    int64_t over = s->frozen_at ? INT64_MAX : s->container_at ? s->container_at + s->run_ms : s->prepared_at;
    bool by_itself = s->container_at && now >= over;
    if (by_itself || (s->kill_at && now >= s->kill_at)) {
        enum outcome own = s->exit_code ? OUTCOME_EXITED : OUTCOME_SUCCEEDED;
        end(s, s->as ? s->as : own, by_itself ? s->exit_code : 0);
        return;
    }
    next = MIN(over, s->kill_at ? s->kill_at : deadline);
    if (p->run_for_s)
        next = MIN(next, lease_ends(s));
    if (s->frozen_at) /* nobody tells that a file is gone */
        next = MIN(next, now + THAWS_MS);
    timer_cancel(s->timer);
    s->timer = timer_start(s->os, MAX(next - now, 1), on_timer, s);
}

static void on_timer(void *arg)
{
    struct straw *s = arg;
    s->timer = NULL;
    look(s);
}

static void on_stop_file(void *arg, const char *name)
{
    if (!name || text_is(name, "stop") || text_is(name, "frozen"))
        look(arg);
}

static void on_signal(void *arg, int signal)
{
    struct straw *s = arg;
    if (signal == SIGKILL) {
        bury(s);
    } else if (signal == SIGTERM && s->status.phase != PHASE_ENDED) { /* its agent could not write a stop file, or the node goes down */
        end_it(s, OUTCOME_NODE_FAULT, s->plan.grace_s);
        look(s);
    }
}

/* What the container does is said by its command: work MILLISECONDS EXITCODE obeys|stubborn. */
static bool read_bundle(struct straw *s)
{
    struct err err = { 0 };
    struct slice text;
    struct json *doc;
    if (!file_read(s->os, arena_printf(s->mem, "%s/config.json", s->plan.folder), 1 << 20,
                   s->mem, &text, &err)
        || !json_parse(text, s->mem, &doc, &err))
        return false;
    struct json *args = json_get(json_get(doc, "process"), "args"), *at = args ? args->first : NULL;
    if (!at || !text_is(at->text, "work") || !at->next || !at->next->next || !at->next->next->next)
        return false;
    s->run_ms = strtoll(at->next->text, NULL, 10);
    s->exit_code = strtoll(at->next->next->text, NULL, 10);
    s->stubborn = text_is(at->next->next->next->text, "stubborn");
    return true;
}

static int node_of(struct cloud *c, struct os *os)
{
    static const char *const path = "/proc/sys/kernel/hostname";
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice name = { "", 0 };
    struct err err = { 0 };
    if (!file_read(os, path, 64, mem, &name, &err) && !file_read(os, path, 64, mem, &name, &err))
        return 0; /* only one operation fails at a time */
    for (int i = 0; i < c->node_count; i++)
        if (text_is(name.at, c->nodes[i].host))
            return i;
    return 0;
}

static void start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct cloud *c = arg;
    struct straw *s = calloc(1, sizeof *s);
    *s = (struct straw){
        .c = c, .os = os, .self = self, .mem = arena_new(), .begun = os_boot_ms(os)
    };
    /* No plan: a new agent found the folder before we came and took it away. A status: somebody ran before. */
    if (!read_as(s, arena_printf(s->mem, "%s/plan.json", argv[1]), &plan_fields, &s->plan)
        || !read_bundle(s) || disk_exists(os, s->plan.status) || c->run_count == RUNS_MOST) {
        arena_free(s->mem);
        free(s);
        sim_proc_exit(self, 256);
        return;
    }
    if (run_of(c, s->plan.attempt))
        cloud_fail(c, "attempt %s was begun a second time", s->plan.id);
    s->run = &c->runs[c->run_count++];
    *s->run = (struct run){ .attempt = s->plan.attempt,
                            .node = node_of(c, os),
                            .from_ms = sim_now_ms(c->sim),
                            .lazy = sim_chance(c->sim, 2),
                            .alive = s };
    cloud_say(c, "%s begins on n%d", s->plan.id, s->run->node + 1);
    watch_begins(c, s->run);
    s->prepared_at = s->begun + (int64_t)sim_chance(c->sim, 400);
    s->status = (struct task_status){ .attempt = s->plan.attempt,
                                      .phase = PHASE_PREPARING,
                                      .pid = sim_proc_pid(self),
                                      .start_time = (int64_t)sim_proc_start_time(self) };
    sim_proc_on_signal(self, on_signal, s);
    if (!write_status(s)) {
        bury(s);
        sim_proc_exit(self, 256);
        return;
    }
    s->watch = dir_watch(os, s->plan.folder, on_stop_file, s);
    look(s);
}

void straws_install(struct cloud *c)
{
    sim_program(c->sim, "/run/arcus/bin/arcus-task", start, c);
}

void straws_crashed(struct cloud *c, int node)
{
    for (size_t i = 0; i < c->run_count; i++) {
        struct run *r = &c->runs[i];
        if (r->node != node)
            continue;
        if (r->alive)
            bury(r->alive);
        const struct machine_of *m = &c->nodes[node]; /* while it stood still nobody heard of an end */
        int64_t heard = m->still_from <= r->to_ms && r->to_ms < m->still_to ? m->still_to : r->to_ms;
        r->lost |= r->lazy && sim_now_ms(c->sim) - heard < UNSYNCED_MS;
    }
}

void straws_orphaned(struct cloud *c, int node)
{
    for (size_t i = 0; i < c->run_count; i++) {
        struct run *r = &c->runs[i];
        char path[64], name[ID_TEXT];
        struct err err = { 0 };
        if (r->node != node || !r->lazy)
            continue;
        snprintf(path, sizeof path, "/var/lib/arcus/status/%s", id_text(name, PREFIX_ATTEMPT, r->attempt));
        if (disk_exists(c->nodes[node].os, path) && !file_append(c->nodes[node].os, path, (struct slice){ "", 0 }, true, &err))
            r->lost = true; /* it has tried */
    }
}

size_t straws_alive(const struct cloud *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->run_count; i++)
        n += c->runs[i].alive != NULL;
    return n;
}

bool straw_kill(struct cloud *c, size_t which)
{
    for (size_t i = 0; i < c->run_count; i++) {
        struct straw *s = c->runs[i].alive;
        struct proc *p;
        if (!s || which-- > 0)
            continue;
        if (!proc_watch(c->nodes[c->runs[i].node].os, sim_proc_pid(s->self),
                        sim_proc_start_time(s->self), NULL, NULL, &p))
            return false;
        cloud_say(c, "kill the supervisor of %s", s->plan.id);
        proc_kill(p, SIGKILL);
        proc_forget(p);
        return true;
    }
    return false;
}
