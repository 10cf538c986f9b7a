#include "supervisor.h"
#include "agent/task_plan.h"
#include "tap.h"
#include "wire/bind.h"
#include <signal.h>
#include <stdlib.h>

enum { TICK_MS = 100 };

struct supervisor {
    struct supervisor *next;
    struct supervisors *all;
    struct supervised *mine;
    struct os *os;
    struct sim_proc *self;
    struct arena *mem;
    struct plan plan;
    struct task_status status;
    struct plan_stop stop;
    bool stopping;
    int64_t begun_ms, kill_ms;
};

struct supervised *supervised(struct supervisors *s, int64_t attempt)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->of[i].attempt == attempt)
            return &s->of[i];
    CHECK(s->count < SUPERVISED_MOST);
    s->of[s->count] = (struct supervised){ .attempt = attempt };
    return &s->of[s->count++];
}

int supervisors_alive(const struct supervisors *s)
{
    int n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += s->of[i].alive;
    return n;
}

static bool read_as(struct supervisor *l, const char *path, const struct fields *fields, void *out)
{
    struct err err = { 0 };
    struct slice text;
    struct json *doc;
    return file_read(l->os, path, 1 << 20, l->mem, &text, &err) && json_parse(text, l->mem, &doc, &err)
        && bind_read(doc, fields, l->mem, out, NULL, &err);
}

static bool write_status(struct supervisor *l)
{
    AUTO(str_done) struct str text = { 0 };
    struct err err = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &task_status_fields, &l->status);
    /* that it begins is not synced: what comes next is, or what the agent spools of it */
    str_char(&text, '\n');
    if (l->status.phase == PHASE_PREPARING || l->all->lazy)
        return file_append(l->os, l->plan.status, (struct slice){ text.at, text.len }, false, &err);
    return file_replace(l->os, l->plan.status, (struct slice){ text.at, text.len }, 0600, &err);
}

static void bury_it(struct supervisor *l)
{
    struct supervisor **at = &l->all->first;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->mine->alive--;
    arena_free(l->mem);
    free(l);
}

static void leave(struct supervisor *l)
{
    struct sim_proc *self = l->self;
    bury_it(l);
    sim_proc_exit(self, 0);
}

void supervisors_crashed(struct supervisors *s, const char *run)
{
    struct supervisor *next;
    for (struct supervisor *l = s->first; l; l = next) {
        next = l->next;
        if (text_starts(l->plan.run, run))
            bury_it(l);
    }
}

static void again(void *arg)
{
    struct supervisor *l = arg;
    if (write_status(l))
        leave(l);
    else
        timer_start(l->os, TICK_MS, again, l);
}

static void end(struct supervisor *l, enum outcome outcome, int exit_code)
{
    l->status.phase = PHASE_ENDED;
    l->status.ended_ms = os_wall_ms(l->os);
    l->status.outcome = (int)outcome;
    l->status.exit_code = exit_code;
    if (write_status(l))
        leave(l);
    else
        timer_start(l->os, TICK_MS, again, l);      /* the disk failed: what was decided stands */
}

static bool lease_is_over(struct supervisor *l)
{
    struct err err = { 0 };
    struct slice text;
    if (!l->plan.run_for_s || !file_read(l->os, l->plan.lease, 100, l->mem, &text, &err))
        return false;
    return os_boot_ms(l->os) - strtoll(text.at, NULL, 10) > l->plan.run_for_s * 1000;
}

static void tick(void *arg)
{
    struct supervisor *l = arg;
    int64_t now = os_boot_ms(l->os), age = now - l->begun_ms;
    struct plan_stop stop = { 0 };
    const char *path = arena_printf(l->mem, "%s/stop", l->plan.folder);
    if (disk_exists(l->os, path) && read_as(l, path, &plan_stop_fields, &stop) && !l->stopping)
        l->stopping = true, l->stop = stop, l->kill_ms = now + stop.grace_s * 1000;
    if (lease_is_over(l)) {
        end(l, OUTCOME_NODE_LOST, 0);
        return;
    }
    if (l->stopping && now >= l->kill_ms) {
        end(l, (enum outcome)l->stop.as, 0);
        return;
    }
    if (l->status.phase == PHASE_PREPARING && age >= l->all->prepare_ms) {
        l->status.phase = PHASE_RUNNING;
        l->status.started_ms = os_wall_ms(l->os);
        if (!write_status(l))
            l->status.phase = PHASE_PREPARING;
    } else if (l->status.phase == PHASE_RUNNING && l->all->run_ms && age >= l->all->prepare_ms + l->all->run_ms) {
        end(l, l->all->exit_code ? OUTCOME_EXITED : OUTCOME_SUCCEEDED, l->all->exit_code);
        return;
    }
    timer_start(l->os, TICK_MS, tick, l);
}

static void on_signal(void *arg, int signal)
{
    struct supervisor *l = arg;
    if (signal == SIGKILL)
        bury_it(l);
}

static void start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct supervisors *all = arg;
    struct supervisor *l = calloc(1, sizeof *l);
    *l = (struct supervisor){ .all = all, .os = os, .self = self, .mem = arena_new(), .begun_ms = os_boot_ms(os) };
    bool read = argv[1] && read_as(l, arena_printf(l->mem, "%s/plan.json", argv[1]), &plan_fields, &l->plan);
    if (!read || disk_exists(os, l->plan.status)) {         /* somebody ran before */
        arena_free(l->mem);
        free(l);
        sim_proc_exit(self, 256);
        return;
    }
    l->mine = supervised(all, l->plan.attempt);
    l->next = all->first;
    all->first = l;
    all->twice += l->mine->begun++ > 0;
    l->mine->alive++;
    sim_proc_on_signal(self, on_signal, l);
    l->status = (struct task_status){ .attempt = l->plan.attempt, .phase = PHASE_PREPARING, .pid = sim_proc_pid(self),
                                      .start_time = (int64_t)sim_proc_start_time(self) };
    if (write_status(l))
        timer_start(os, TICK_MS, tick, l);
    else
        leave(l);                                   /* dead before it was known */
}

void supervisors_install(struct supervisors *s, struct sim *sim, const char *run)
{
    char path[256];
    s->sim = sim;
    snprintf(path, sizeof path, "%s/bin/arcus-task", run);
    sim_program(sim, path, start, s);
}
