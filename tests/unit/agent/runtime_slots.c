#include "agent/task_plan.h"
#include "base/id.h"
#include "containers.h"
#include "model/prefix.h"
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TASKS = 40, SLOT = 128 };

/* "RUN/slots/7": where the attempt was run; "": by a supervisor of its own. */
static void slot_of(struct containers *c, int64_t attempt, char out[static SLOT])
{
    char name[ID_TEXT];
    struct slice text = { 0 };
    struct err err = { 0 };
    const char *path = containers_path(c, "%s/tasks/%s/plan.json", c->data, id_text(name, PREFIX_ATTEMPT, attempt));
    CHECK(file_read(c->os, path, PLAN_BYTES, c->mem, &text, &err));
    const char *at = text.at ? strstr(text.at, "\"run\":\"") : NULL;
    CHECK(at && sscanf(at + 7, "%127[^\"]", out) == 1);
    if (!strstr(out, "/slots/"))
        *out = 0;
}

static void stop(void *arg) { os_stop(((struct containers *)arg)->os); }

/* The more often none was ready the longer they are waited for: how soon one is depends on what else the machine does. */
static void give_time(struct containers *c, int times)
{
    timer_start(c->os, 1 + 20 * times, stop, c);
    os_run(c->os);
}

/* How many of the tasks were run where one had been before. */
static int run_many(struct containers *c, const char *image, const char *script, bool (*good)(const char *said))
{
    char slots[TASKS][SLOT];
    int again = 0;
    for (int i = 0; i < TASKS && again < 4; i++) {
        struct order *o = containers_order(c, image, script);
        CHECK(containers_run(c, o)->outcome == OUTCOME_SUCCEEDED);
        const char *said = containers_log(c, o->attempt, 'o');
        if (!good(said))
            printf("# %s\n", said);
        CHECK(good(said));
        slot_of(c, o->attempt, slots[i]);
        int before = again;
        for (int k = 0; k < i; k++)
            again += *slots[i] && text_is(slots[i], slots[k]);
        runtime_forget(c->r, o->attempt);
        if (again == before)
            give_time(c, i);
    }
    return again;
}

static bool nothing_seen(const char *said) { return *said == 0; }

TEST(a_place_that_is_used_again_has_nothing_of_the_task_before)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    /* what was made, removed, changed or only marked; in a file that is the task's own though it lies elsewhere, too */
    CHECK(run_many(&c, "host",
                   "ls -A /tmp /root /run /var/tmp /workdir /outputs 2>/dev/null | grep -v : | grep .; ls / | grep mine; test -d /home || echo no home;"
                   "test -L /bin -o -d /bin || echo no bin; stat -c %a /srv | grep -v 755; grep mine /etc/hosts; getfattr -d /mnt 2>/dev/null;"
                   "mkdir -p /tmp/deep/er && echo mine >/tmp/deep/er/secret && echo mine >/var/tmp/s && ln -s /etc /tmp/l && echo x >/outputs/x &&"
                   "touch /mine && rmdir /home && rm -f /bin; chmod 700 /srv; echo mine >>/etc/hosts; setfattr -n user.mine -v 1 /mnt 2>/dev/null; true",
                   nothing_seen)
          > 0);
    /* one thing at a time, since any of them makes a new root of it */
    CHECK(run_many(&c, "host", "getfattr -d /mnt 2>/dev/null; setfattr -n user.mine -v 1 /mnt 2>/dev/null; true", nothing_seen) > 0);
    CHECK(run_many(&c, "host", "stat -c %a /srv | grep -v 755; chmod 700 /srv", nothing_seen) > 0);
    CHECK(run_many(&c, "host", "grep mine /etc/hosts; echo mine >>/etc/hosts", nothing_seen) > 0);
    CHECK(run_many(&c, "host", "find /tmp /var/tmp -newermt 2030-01-01; touch -d 2031-01-01 /tmp", nothing_seen) > 0);
    CHECK(run_many(&c, "host", "true", nothing_seen) > 0);
    containers_close(&c);
}

TEST(a_place_whose_task_still_runs_is_given_to_nobody)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    char first[SLOT] = "", other[SLOT];
    struct order *o = NULL;
    for (int i = 0; i < TASKS && !*first; i++) {
        o = containers_order(&c, "host", "sleep 1000");
        runtime_start(c.r, o);
        CHECK(containers_wait(&c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
        slot_of(&c, o->attempt, first);
        if (!*first) {
            runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
            containers_wait(&c, o->attempt, PHASE_ENDED);
            give_time(&c, i);
        }
    }
    CHECK(*first);
    for (int i = 0; i < 5; i++) {
        struct order *next = containers_order(&c, "host", "true");
        CHECK(containers_run(&c, next)->outcome == OUTCOME_SUCCEEDED);
        slot_of(&c, next->attempt, other);
        CHECK(!text_is(first, other));
    }
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    CHECK(containers_wait(&c, o->attempt, PHASE_ENDED)->outcome == OUTCOME_CANCELLED);
    containers_close(&c);
}

/* Those that wait are gone, and so are their folders. */
static bool none_is_left(struct containers *c)
{
    struct texts names = { 0 };
    struct err err = { 0 };
    for (int i = 0; i < 3000; i++) {
        CHECK(dir_list(c->os, containers_path(c, "%s/slots", c->run), c->mem, &names, &err));
        if (!names.count)
            return true;
        timer_start(c->os, 20, stop, c);
        os_run(c->os);
    }
    return false;
}

TEST(a_task_outlives_the_agent_that_gave_it_to_a_waiting_supervisor)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    char slot[SLOT] = "";
    struct order *o = NULL;
    for (int i = 0; i < TASKS && !*slot; i++) {
        o = containers_order(&c, "host", "echo begun; until [ -e /outputs/go ]; do sleep 0.1; done; echo done; exit 4");
        runtime_start(c.r, o);
        CHECK(containers_wait(&c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
        slot_of(&c, o->attempt, slot);
        if (!*slot) {
            runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
            containers_wait(&c, o->attempt, PHASE_ENDED);
            give_time(&c, i);
        }
    }
    CHECK(*slot && containers_reopen(&c));
    CHECK(access(slot, F_OK) == 0);     /* whoever comes next does not take it away */
    char name[ID_TEXT];
    const char *go = containers_path(&c, "%s/outputs/%s/go", c.data, id_text(name, PREFIX_ATTEMPT, o->attempt));
    fclose(fopen(go, "w"));
    const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_EXITED && s->exit_code == 4);
    CHECK(text_is(containers_log(&c, o->attempt, 'o'), "begun\ndone\n"));
    CHECK(none_is_left(&c));
    containers_close(&c);
}

static bool sees_it(const char *said) { return text_is(said, "here\n"); }

TEST(a_waiting_supervisor_notices_what_is_mounted_on_the_node)
{
    struct containers c = { 0 };
    char top[] = "/opt/arcus-slots-XXXXXX";
    if (!containers_open(&c))
        return;
    if (!mkdtemp(top)) {
        test_skip("no folder can be made in /opt");
        containers_close(&c);
        return;
    }
    const char *look = containers_path(&c, "cat %s/file 2>/dev/null; true", top);
    chmod(top, 0755);
    CHECK(run_many(&c, "host", look, nothing_seen) > 0);
    if (mount("test", top, "tmpfs", 0, "mode=0755") == 0) {
        const char *path = containers_path(&c, "%s/file", top);
        FILE *f = fopen(path, "w");
        fprintf(f, "here\n");
        fclose(f);
        chmod(path, 0644);
        CHECK(run_many(&c, "host", look, sees_it) > 0);
        CHECK(umount(top) == 0);
        CHECK(run_many(&c, "host", look, nothing_seen) > 0);
    } else {
        test_skip("nothing can be mounted here");
    }
    rmdir(top);
    containers_close(&c);
}

static bool seen_before(struct containers *c, ino_t *seen, int *count)
{
    struct stat st = { 0 };
    char name[ID_TEXT];
    bool again = false;
    CHECK(stat(containers_path(c, "%s/tasks/%s", c->data, id_text(name, PREFIX_ATTEMPT, c->wanted)), &st) == 0);
    for (int i = 0; i < *count; i++)
        again |= seen[i] == st.st_ino;
    seen[(*count)++] = st.st_ino;
    return again;
}

TEST(a_folder_that_is_used_again_has_no_wish_and_no_plan_of_the_task_before)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    ino_t seen[2 * TASKS];
    int again = 0, count = 0;
    for (int i = 0; i < TASKS && again < 3; i++) {
        struct order *o = containers_order(&c, "host", "sleep 1000");
        o->env = (struct pairs){ &(struct pair){ "LONG", "0123456789012345678901234567890123456789" }, 1 };
        runtime_start(c.r, o);
        CHECK(containers_wait(&c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
        again += seen_before(&c, seen, &count);
        runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
        CHECK(containers_end(&c, o->attempt)->outcome == OUTCOME_CANCELLED);
        runtime_forget(c.r, o->attempt);
        CHECK(containers_run(&c, containers_order(&c, "host", "echo $LONG over"))->outcome == OUTCOME_SUCCEEDED);
        CHECK(text_is(containers_log(&c, c.wanted, 'o'), "over\n"));
        again += seen_before(&c, seen, &count);
        runtime_forget(c.r, c.wanted);
        if (!again)
            give_time(&c, i);
    }
    CHECK(again > 0);
    containers_close(&c);
}

/* As `./dev bundle` lays it out. */
TEST(the_program_behind_a_script_that_only_tells_where_its_libraries_are_is_run_without_it)
{
    struct containers c = { 0 };
    if (access("/usr/bin/crun", X_OK) != 0) {
        test_skip("needs crun");
        return;
    }
    if (!containers_open(&c))
        return;
    const char *near = containers_path(&c, "%s/near", c.top), *ran = containers_path(&c, "%s/ran", near);
    CHECK(system(containers_path(&c, "mkdir -p %s/lib && cp /usr/bin/crun %s/crun.bin && printf '#!/bin/sh\necho x >>%s\nexec %s/crun.bin \"$@\"\n' >%s/crun && chmod 755 %s/crun",
                                 near, near, ran, near, near, near)) == 0);
    c.self = containers_path(&c, "%s/arcus", near);
    struct stat before, after;
    CHECK(containers_reopen(&c));
    CHECK(containers_run(&c, containers_order(&c, "host", "true"))->outcome == OUTCOME_SUCCEEDED);
    CHECK(stat(ran, &before) == 0);             /* it was asked for its version */
    for (int i = 0; i < 4; i++) {
        struct order *o = containers_order(&c, "host", "echo said");
        CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED && text_is(containers_log(&c, o->attempt, 'o'), "said\n"));
    }
    CHECK(stat(ran, &after) == 0 && after.st_size == before.st_size);
    containers_close(&c);
}
