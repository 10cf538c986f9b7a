/* runtime_suspend.c - how the runtime starts helpers and follows them: real supervisors, and a helper of a few lines of shell that leaves the note that a file
 * tells it to. What a helper really does is suspend.c's and suspend_helper.c's. */
#include "agent/cgroup.h"
#include "agent/suspend.h"
#include "base/id.h"
#include "containers.h"
#include "model/prefix.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char script[] = "#!/bin/sh\n"
                             "top=${0%/*}\n"
                             "read -r line || exit 0\n"
                             "set -- $line\n"
                             "while [ $# -gt 0 ]; do case $1 in --folder) f=$2 ;; --to) to=$2 ;; --number) n=$2 ;; esac; shift; done\n"
                             "echo \"$to $n\" >>$top/asked\n"
                             "read -r state <$top/mode\n"
                             "[ $state = dies ] && exit 3\n"
                             "[ $state = works ] && state=$to\n"
                             "read -r attempt <$top/attempt\n"
                             "read -r limit <$top/limit\n"
                             "echo \"{\\\"attempt\\\":$attempt,\\\"n\\\":$n,\\\"want\\\":\\\"$to\\\",\\\"state\\\":\\\"$state\\\",\\\"limit_bytes\\\":$limit,\\\"gpu_mib\\\":7}\" >$f/suspend.new && mv $f/suspend.new $f/suspend.json\n";

static void put(struct containers *c, const char *name, const char *text, unsigned mode)
{
    struct err err = { 0 };
    const char *path = containers_path(c, "%s/%s", c->top, name);
    CHECK(file_replace(c->os, path, SLICE(text), mode, &err) && chmod(path, mode) == 0);
}

static const char *asked(struct containers *c)
{
    struct slice text;
    struct err err = { 0 };
    return file_read(c->os, containers_path(c, "%s/asked", c->top), 4096, c->mem, &text, &err) ? arena_bytes(c->mem, text.at, text.len) : "";
}

static void on_moment(void *arg) { os_stop(((struct containers *)arg)->os); }

/* What is told of it; NULL: nothing, for a long time. */
static const struct hold_told *told(struct containers *c, int64_t attempt, int64_t n)
{
    for (int i = 0; i < 600; i++) {
        struct objects all = runtime_holds(c->r);
        const struct hold_told *list = all.at;
        for (size_t k = 0; k < all.count; k++)
            if (list[k].attempt == attempt && list[k].n == n)
                return &list[k];
        timer_start(c->os, 50, on_moment, c);
        os_run(c->os);
    }
    return NULL;
}

static struct order *begin(struct containers *c)
{
    *c = (struct containers){ 0 };
    if (!containers_open(c))
        return NULL;
    put(c, "helper", script, 0755);
    put(c, "mode", "works\n", 0644);
    put(c, "limit", "0\n", 0644);
    c->self = containers_path(c, "%s/helper", c->top);
    CHECK(containers_reopen(c));
    struct order *o = containers_order(c, "host", "trap 'exit 0' TERM; while :; do sleep 0.1; done");
    put(c, "attempt", arena_printf(c->mem, "%lld\n", (long long)o->attempt), 0644);
    runtime_start(c->r, o);
    containers_wait(c, o->attempt, PHASE_RUNNING);
    return o;
}

static void end(struct containers *c, struct order *o)
{
    runtime_stop(c->r, o->attempt, 5, OUTCOME_CANCELLED);
    CHECK(containers_wait(c, o->attempt, PHASE_ENDED)->outcome == OUTCOME_CANCELLED && runtime_holds(c->r).count == 0);
    containers_close(c);
}

TEST(the_newest_wish_counts_and_is_told_with_its_number)
{
    struct containers c;
    struct order *o = begin(&c);
    if (!o)
        return;
    runtime_hold(c.r, o->attempt, 3, true, 0);
    const struct hold_told *t = told(&c, o->attempt, 3);
    CHECK(t && t->state == HOLD_SUSPENDED && t->gpu_mib == 7 && !t->why);
    runtime_hold(c.r, o->attempt, 3, true, 0);
    runtime_hold(c.r, o->attempt, 2, false, 0); /* an old one */
    runtime_hold(c.r, o->attempt, 4, false, 0);
    t = told(&c, o->attempt, 4);
    CHECK(t && t->state == HOLD_RUNNING && text_is(asked(&c), "suspended 3\nrunning 4\n"));
    end(&c, o);
}

TEST(an_agent_that_begins_tells_what_it_finds_and_goes_on_with_what_was_begun)
{
    struct containers c;
    struct order *o = begin(&c);
    if (!o)
        return;
    runtime_hold(c.r, o->attempt, 1, true, 0);
    CHECK(told(&c, o->attempt, 1) && containers_reopen(&c));
    const struct hold_told *t = told(&c, o->attempt, 1);
    CHECK(t && t->state == HOLD_SUSPENDED && text_is(asked(&c), "suspended 1\n"));
    char folder[ID_TEXT];
    struct err err = { 0 };
    CHECK(suspend_note_write(containers_path(&c, "%s/tasks/%s", c.data, id_text(folder, PREFIX_ATTEMPT, o->attempt)),
                             &(struct suspend_note){ .attempt = o->attempt, .n = 2, .want = SUSPEND_RUNNING, .state = SUSPEND_MOVING }, &err));
    CHECK(containers_reopen(&c));
    t = told(&c, o->attempt, 2);
    CHECK(t && t->state == HOLD_RUNNING && text_is(asked(&c), "suspended 1\nrunning 2\n"));
    end(&c, o);
}

TEST(what_does_not_get_there_is_brought_back_and_else_ended_as_our_fault)
{
    static const char *const modes[] = { "moving\n", "broken\n" };
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct containers c;
        struct order *o = begin(&c);
        if (!o)
            return;
        put(&c, "mode", modes[i], 0644);
        runtime_hold(c.r, o->attempt, 1, true, 0);
        const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
        CHECK(s->outcome == OUTCOME_NODE_FAULT && text_given(s->detail));
        CHECK(i == 1 || text_is(asked(&c), "suspended 1\nsuspended 1\nrunning 1\nrunning 1\n"));
        containers_close(&c);
    }
}

TEST(a_helper_that_never_works_costs_no_task)
{
    struct containers c;
    struct order *o = begin(&c);
    if (!o)
        return;
    put(&c, "mode", "dies\n", 0644);
    runtime_hold(c.r, o->attempt, 1, true, 0);
    const struct hold_told *t = told(&c, o->attempt, 1);
    CHECK(t && t->state == HOLD_RUNNING && text_given(t->why));
    end(&c, o);
}

static bool group_of(const struct order *o, struct cgroups *cgroups, char group[static 64])
{
    char name[ID_TEXT];
    struct err err = { 0 };
    snprintf(group, 64, "arcus/%s", id_text(name, PREFIX_ATTEMPT, o->attempt));
    return cgroups_find(cgroups, &err);
}

TEST(one_that_stands_still_ends_without_grace_and_never_runs_again)
{
    struct containers c;
    struct order *o = begin(&c);
    if (!o)
        return;
    struct cgroups cgroups;
    struct err err = { 0 };
    char group[64];
    CHECK(group_of(o, &cgroups, group));
    if (cgroups_freeze(&cgroups)) {
        CHECK(!cgroup_frozen(&cgroups, group) && cgroup_freeze(&cgroups, group, true, 30000, &err) && cgroup_frozen(&cgroups, group));
        runtime_stop(c.r, o->attempt, 600, OUTCOME_CANCELLED);
        const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
        CHECK(s->outcome == OUTCOME_CANCELLED && s->signal == 9 && s->exit_code == 0); /* one that hears SIGTERM exits with 0 */
    }
    containers_close(&c);
}

TEST(who_runs_again_and_keeps_using_what_it_was_lent_is_counted_for_it_and_then_ended)
{
    for (int i = 0; i < 2; i++) {
        struct containers c;
        struct order *o = begin(&c);
        if (!o)
            return;
        struct cgroups cgroups;
        struct err err = { 0 };
        char group[64];
        int64_t bytes = 0;
        c.over_ms = i ? 1 : 3600 * 1000;
        CHECK(group_of(o, &cgroups, group) && containers_reopen(&c));
        bool limited = cgroup_memory_limit(&cgroups, group, &bytes, &err);
        put(&c, "limit", "4096\n", 0644); /* nothing can live in that */
        runtime_hold(c.r, o->attempt, 1, false, 0);
        if (limited && i) {
            const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
            CHECK(s->outcome == OUTCOME_OUT_OF_MEMORY && text_given(s->detail));
            containers_close(&c);
            continue;
        }
        const struct hold_told *t = told(&c, o->attempt, 1);
        CHECK(t && t->state == HOLD_RUNNING && (!limited || t->over_mib == 7));
        end(&c, o);
    }
}

TEST(when_its_limit_is_lowered_nothing_more_is_counted)
{
    struct containers c;
    struct order *o = begin(&c);
    if (!o)
        return;
    struct cgroups cgroups;
    struct err err = { 0 };
    char group[64];
    int64_t bytes = 0;
    CHECK(group_of(o, &cgroups, group));
    if (cgroup_memory_limit(&cgroups, group, &bytes, &err)) {
        put(&c, "limit", "134217728\n", 0644);
        runtime_hold(c.r, o->attempt, 1, false, 0);
        const struct hold_told *t = told(&c, o->attempt, 1);
        for (int i = 0; i < 600 && t && t->over_mib; i++) {
            timer_start(c.os, 50, on_moment, &c);
            os_run(c.os);
            t = told(&c, o->attempt, 1);
        }
        CHECK(t && t->over_mib == 0 && cgroup_memory_limit(&cgroups, group, &bytes, &err) && bytes == 134217728);
    }
    end(&c, o);
}
