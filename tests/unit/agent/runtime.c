#include "containers.h"
#include "agent/cgroup.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

TEST(a_host_task_runs_and_its_words_are_kept_apart)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "echo to out; echo to err >&2; exit 3");
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->phase == PHASE_ENDED && s->outcome == OUTCOME_EXITED && s->exit_code == 3);
    CHECK(s->started_ms > 0 && s->ended_ms >= s->started_ms);
    CHECK(text_is(containers_log(&c, o->attempt, 'o'), "to out\n"));
    CHECK(text_is(containers_log(&c, o->attempt, 'e'), "to err\n"));
    printf("# %s\n", s->detail);
    containers_close(&c);
}
