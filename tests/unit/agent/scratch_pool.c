#include "agent/scratch_pool.h"
#include "agent/task_plan.h"
#include "base/id.h"
#include "containers.h"
#include "model/prefix.h"
#include <stdlib.h>
#include <unistd.h>

enum { TASKS = 40 };

/* "/dev/loop7": what the attempt's plan says; "": the supervisor made its own. */
static void device_of(struct containers *c, int64_t attempt, char out[static SCRATCH_DEVICE])
{
    char name[ID_TEXT];
    struct slice text = { 0 };
    struct err err = { 0 };
    const char *path = containers_path(c, "%s/tasks/%s/plan.json", c->data, id_text(name, PREFIX_ATTEMPT, attempt));
    CHECK(file_read(c->os, path, PLAN_BYTES, c->mem, &text, &err));
    const char *at = text.at ? strstr(text.at, "\"scratch_device\":\"") : NULL;
    *out = 0;
    if (at)
        CHECK(sscanf(at + 18, "%31[^\"]", out) == 1);
}

TEST(a_scratch_that_is_used_again_has_nothing_of_the_task_before)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    char devices[TASKS][SCRATCH_DEVICE];
    int ready = 0, again = 0;
    for (int i = 0; i < TASKS && !again; i++) {
        struct order *o = containers_order(&c, "host",
                                           "ls -A /tmp /root /run /var/tmp /workdir 2>/dev/null | grep -v :; "
                                           "mkdir -p /tmp/deep/er && echo mine >/tmp/deep/er/secret && echo mine >/var/tmp/s && ln -s /etc /tmp/l");
        CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED);
        CHECK(!strstr(containers_log(&c, o->attempt, 'o'), "deep") && !strstr(containers_log(&c, o->attempt, 'o'), "s\n"));
        device_of(&c, o->attempt, devices[i]);
        ready += *devices[i] != 0;
        for (int k = 0; k < i; k++)
            again += *devices[i] && text_is(devices[i], devices[k]);
        runtime_forget(c.r, o->attempt);
    }
    if (ready == 0)
        test_skip("no loop devices here, or a kernel that cannot mount without a place");
    else
        CHECK(again > 0);
    containers_close(&c);
}

TEST(a_scratch_whose_task_still_runs_is_given_to_nobody)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    char first[SCRATCH_DEVICE] = "", other[SCRATCH_DEVICE];
    struct order *o = NULL;
    for (int i = 0; i < TASKS && !*first; i++) {
        o = containers_order(&c, "host", "sleep 1000");
        runtime_start(c.r, o);
        CHECK(containers_wait(&c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
        device_of(&c, o->attempt, first);
        if (!*first) {
            runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
            containers_wait(&c, o->attempt, PHASE_ENDED);
        }
    }
    for (int i = 0; i < 5; i++) {
        struct order *next = containers_order(&c, "host", "true");
        CHECK(containers_run(&c, next)->outcome == OUTCOME_SUCCEEDED);
        device_of(&c, next->attempt, other);
        CHECK(!*first || !text_is(first, other));
    }
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}
