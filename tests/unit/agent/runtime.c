#include "containers.h"
#include "agent/cgroup.h"
#include "agent/task_plan.h"
#include "base/id.h"
#include "model/prefix.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has(const char *text, const char *part)
{
    if (text && strstr(text, part))
        return true;
    printf("# in: %s\n", text ? text : "(nothing)");
    return false;
}

static const char *name_of(const struct order *o)
{
    static char name[ID_TEXT];
    return id_text(name, PREFIX_ATTEMPT, o->attempt);
}

/* Nothing of an attempt is left on the machine: no group, no state of the runtime. */
static bool left_over(struct containers *c, const struct order *o)
{
    struct cgroups groups;
    struct err err = {0};
    if (!cgroups_find(&groups, &err))
        return true;
    for (size_t i = 0; i < groups.count; i++)
        if (access(containers_path(c, "%s/arcus/%s", groups.mounts[i].path, name_of(o)), F_OK) == 0)
            return true;
    return access(containers_path(c, "%s/crun/%s", c->run, name_of(o)), F_OK) == 0;
}

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
    CHECK(!left_over(&c, o));
    CHECK(runtime_has(c.r, o->attempt));
    runtime_forget(c.r, o->attempt);
    CHECK(!runtime_has(c.r, o->attempt));
    const char *folder = containers_path(&c, "%s/tasks/%s", c.run, name_of(o));
    for (int i = 0; i < 6000 && access(folder, F_OK) == 0; i++)
        usleep(10000);
    CHECK(access(folder, F_OK) == -1);
    const char *status = containers_path(&c, "%s/status/%s", c.data, name_of(o)); /* the last to go */
    for (int i = 0; i < 6000 && access(status, F_OK) == 0; i++)
        usleep(10000);
    CHECK(access(containers_path(&c, "%s/tasks/%s", c.data, name_of(o)), F_OK) == -1 && access(status, F_OK) == -1);
    CHECK(access(containers_path(&c, "%s/outputs/%s", c.data, name_of(o)), F_OK) == 0);
    containers_close(&c);
}

TEST(ends_are_told_apart)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    const struct task_status *s = containers_run(&c, containers_order(&c, "host", "true"));
    CHECK(s->outcome == OUTCOME_SUCCEEDED);
    s = containers_run(&c, containers_order(&c, "host", "sh -c 'kill -11 $$'; exit $?"));
    CHECK(s->outcome == OUTCOME_EXITED && s->exit_code == 139);
    struct order *o = containers_order(&c, "host", "python3 -c 'x = bytearray(100 << 20)' || exec dd if=/dev/zero of=/dev/null bs=200M");
    o->mem_mib = 32;
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_OUT_OF_MEMORY && has(s->detail, "32 MiB"));
    o = containers_order(&c, "host", "");
    o->argv.at[0] = "no-such-command";
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_START_FAILED && has(s->detail, "no-such-command: command not found in the image") && s->started_ms == 0);
    CHECK(!left_over(&c, o));
    o = containers_order(&c, "host", "sleep 100");
    o->max_duration_s = 1;
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_DEADLINE);
    o = containers_order(&c, "host", "true");
    o->user = "nobody-knows-me";
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_START_FAILED && has(s->detail, "no user 'nobody-knows-me'"));
    containers_close(&c);
}

TEST(a_task_sees_its_limits_and_its_identity)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host",
        "id -u; hostname; echo $GREETING; ulimit -n; grep -E 'CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; df -m /dev/shm | tail -1;"
        "touch /usr/x || echo read only; mount -t tmpfs t /mnt || echo no mount; mknod /tmp/n b 1 1 || echo no mknod; unshare -U true || echo no userns;"
        "cat /proc/net/dev | wc -l; echo $HOME; touch $HOME/f /tmp/f /outputs/f && echo writable; cat /proc/1/environ | tr '\\0' '\\n' | grep ARCUS");
    struct pair env[] = { { "GREETING", "good day" } };
    o->env = (struct pairs){ env, 1 };
    o->shm_mib = 17;
    const struct task_status *s = containers_run(&c, o);
    const char *out = containers_log(&c, o->attempt, 'o');
    CHECK(s->outcome == OUTCOME_SUCCEEDED);
    CHECK(has(out, "0\ntest\ngood day\n") && has(out, "CapBnd:\t00000000200405fb") && has(out, "NoNewPrivs:\t1") && has(out, "Seccomp:\t2"));
    CHECK(has(out, " 17 ") && has(out, "read only") && has(out, "no mount") && has(out, "no mknod") && has(out, "no userns"));
    CHECK(has(out, "\n3\n/root\nwritable\nARCUS_OUTPUTS=/outputs"));
    CHECK(access(containers_path(&c, "%s/outputs/%s/f", c.data, name_of(o)), F_OK) == 0);
    containers_close(&c);
}

TEST(a_host_task_cannot_read_keys_stores_sockets_or_another_tasks_files)
{
    struct containers c = {0};
    char secret_folder[] = "/opt/arcus-test-XXXXXX";        /* visible to a host task unless it is hidden */
    char open_folder[] = "/opt/arcus-test-XXXXXX";          /* visible, and anybody on the node may write to it */
    const char *hidden[] = { secret_folder };
    if (geteuid() == 0 && (!mkdtemp(secret_folder) || !mkdtemp(open_folder) || chmod(open_folder, 0777) != 0))
        return;
    c.hide = (struct texts){ hidden, 1 };
    if (!containers_open(&c)) {
        rmdir(secret_folder);
        rmdir(open_folder);
        return;
    }
    const char *key = containers_path(&c, "%s/key", secret_folder);
    int fd = open(key, O_WRONLY | O_CREAT, 0644);
    CHECK(fd != -1 && write(fd, "password", 8) == 8 && chmod(secret_folder, 0755) == 0);
    close(fd);
    struct order *other = containers_order(&c, "host", "echo private > /outputs/mine; echo private > /tmp/mine; sleep 60");
    runtime_start(c.r, other);
    CHECK(containers_wait(&c, other->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
    struct order *o = containers_order(&c, "host", containers_path(&c,
        "cat /etc/shadow %s; ls -A %s %s %s /root /home /run /var/lib /mnt /srv; ls /tmp; cat %s/outputs/%s/mine; find / -xdev -name mine 2>/dev/null; ls -A %s; touch %s/x",
        key, secret_folder, c.data, c.run, c.data, name_of(other), c.top, open_folder));
    const struct task_status *s = containers_run(&c, o);
    const char *out = containers_log(&c, o->attempt, 'o');
    CHECK(has(containers_log(&c, o->attempt, 'e'), "/etc/shadow: Permission denied"));
    CHECK(has(containers_log(&c, o->attempt, 'e'), "Read-only file system") && rmdir(open_folder) == 0);
    CHECK(s->phase == PHASE_ENDED && !strstr(out, "password") && !strstr(out, "private") && !strstr(out, "mine") && !strstr(out, "key"));
    CHECK(!strstr(out, "sock") && !strstr(out, "tasks") && !strstr(out, "lease"));
    runtime_stop(c.r, other->attempt, 0, OUTCOME_CANCELLED);
    CHECK(containers_wait(&c, other->attempt, PHASE_ENDED)->outcome == OUTCOME_CANCELLED);
    unlink(key);
    rmdir(secret_folder);
    containers_close(&c);
}

TEST(stopping_gives_grace_to_who_uses_it_and_wastes_none)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done");
    runtime_start(c.r, o);
    containers_wait(&c, o->attempt, PHASE_RUNNING);
    while (!strstr(containers_log(&c, o->attempt, 'o'), "up"))
        usleep(20000);
    runtime_stop(c.r, o->attempt, 30, OUTCOME_CANCELLED);
    runtime_stop(c.r, o->attempt, 30, OUTCOME_PREEMPTED);       /* the first reason counts */
    const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_CANCELLED && has(containers_log(&c, o->attempt, 'o'), "bye"));
    o = containers_order(&c, "host", "sleep 1000");             /* does not notice SIGTERM as pid 1 */
    runtime_start(c.r, o);
    containers_wait(&c, o->attempt, PHASE_RUNNING);
    runtime_stop(c.r, o->attempt, 600, OUTCOME_CANCELLED);
    s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_CANCELLED);                     /* and long before it would have to */
    o = containers_order(&c, "host", "trap '' TERM; echo up; while :; do sleep 0.1; done");
    runtime_start(c.r, o);
    containers_wait(&c, o->attempt, PHASE_RUNNING);
    while (!strstr(containers_log(&c, o->attempt, 'o'), "up"))
        usleep(20000);
    int64_t before = os_boot_ms(c.os);
    runtime_stop(c.r, o->attempt, 1, OUTCOME_PREEMPTED);
    s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_PREEMPTED && s->signal == SIGKILL && os_boot_ms(c.os) - before >= 900);
    CHECK(!left_over(&c, o));
    containers_close(&c);
}

struct contacts { struct containers *c; struct timer *next; };
static void contact(void *arg)
{
    struct contacts *all = arg;
    runtime_contact(all->c->r);
    all->next = timer_start(all->c->os, 100, contact, all);
}

TEST(without_a_contact_a_task_ends_by_itself)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "sleep 1000");
    o->run_for_s = 4;
    struct contacts all = { &c, NULL };
    contact(&all);                          /* again and again, however long it takes to start */
    runtime_start(c.r, o);
    CHECK(containers_wait(&c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
    timer_cancel(all.next);
    int64_t before = os_boot_ms(c.os);
    runtime_contact(c.r);                   /* renewed: now it has four whole seconds again */
    const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_NODE_LOST && os_boot_ms(c.os) - before >= 4000);
    containers_close(&c);
}

/* The simulated cloud's seed 1508: the order lay in an agent that stood still. */
TEST(an_order_that_comes_after_its_lease_has_ended_starts_no_container)
{
    struct containers c = { 0 };
    struct err err = { 0 };
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "touch /outputs/ran; sleep 60");
    o->run_for_s = 5;
    CHECK(file_replace(c.os, containers_path(&c, "%s/lease", c.run),
                       SLICE(arena_printf(c.mem, "%lld", (long long)os_boot_ms(c.os) - 6000)), 0644, &err));
    const struct task_status *s = containers_run(&c, o);
    CHECK(s && s->outcome == OUTCOME_NODE_LOST && s->started_ms == 0);
    containers_close(&c);
}

TEST(a_killed_supervisor_is_a_node_fault_and_nothing_of_the_task_survives)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "trap '' TERM; sleep 1000 & sleep 1000");
    runtime_start(c.r, o);
    containers_wait(&c, o->attempt, PHASE_RUNNING);
    kill((pid_t)c.last.pid, SIGKILL);
    const struct task_status *s = containers_wait(&c, o->attempt, PHASE_ENDED);
    CHECK(s->outcome == OUTCOME_NODE_FAULT && s->started_ms > 0);
    CHECK(!left_over(&c, o));
    containers_close(&c);
}

TEST(an_agent_that_starts_anew_finds_its_tasks)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *lives = containers_order(&c, "host", "sleep 1000"), *dies = containers_order(&c, "host", "sleep 1000"), *ends = containers_order(&c, "host", "exit 7");
    runtime_start(c.r, lives);
    containers_wait(&c, lives->attempt, PHASE_RUNNING);
    runtime_start(c.r, dies);
    int64_t victim = containers_wait(&c, dies->attempt, PHASE_RUNNING)->pid;
    containers_run(&c, ends);
    runtime_close(c.r);
    c.r = NULL;
    kill((pid_t)victim, SIGKILL);
    struct cgroups groups;
    struct err err = {0};
    int pids[4], left = 1;
    CHECK(cgroups_find(&groups, &err));
    for (int i = 0; i < 3000 && left; i++, usleep(20000))        /* no agent is there: the kernel ends the container */
        left = (int)cgroup_pids(&groups, containers_path(&c, "arcus/%s", name_of(dies)), pids, COUNT(pids));
    CHECK(left == 0);
    CHECK(containers_reopen(&c));
    c.wanted = 0;
    runtime_start(c.r, lives);              /* idempotent: it runs already */
    CHECK(containers_wait(&c, lives->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
    CHECK(containers_wait(&c, dies->attempt, PHASE_ENDED)->outcome == OUTCOME_NODE_FAULT && !left_over(&c, dies));
    CHECK(runtime_has(c.r, ends->attempt));
    int64_t *list = NULL;
    CHECK(runtime_list(c.r, c.mem, &list) == 1 && list[0] == lives->attempt);
    runtime_stop(c.r, lives->attempt, 0, OUTCOME_CANCELLED);
    CHECK(containers_wait(&c, lives->attempt, PHASE_ENDED)->outcome == OUTCOME_CANCELLED);
    CHECK(containers_reopen(&c));
    CHECK(containers_wait(&c, ends->attempt, PHASE_ENDED)->exit_code == 7);
    containers_close(&c);
}

TEST(secrets_are_files_that_no_disk_has_seen)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order_secret secrets[] = { { "token", "s3cr3t-w0rds" }, { "other", "" } };
    struct order *o = containers_order(&c, "host", "cat /run/secrets/token; ls -ln /run/secrets | tail -2; touch /run/secrets/x || echo closed");
    o->secrets = (struct objects){ secrets, 2 };
    const struct task_status *s = containers_run(&c, o);
    const char *out = containers_log(&c, o->attempt, 'o');
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(out, "s3cr3t-w0rds") && has(out, "-r--------") && has(out, "closed"));
    struct order *quiet = containers_order(&c, "host", "sleep 0.5; test $(wc -c < /run/secrets/token) = 12");
    quiet->secrets = o->secrets;
    runtime_start(c.r, quiet);
    containers_wait(&c, quiet->attempt, PHASE_RUNNING);
    CHECK(system(containers_path(&c, "! grep -rqs s3cr3t-w0rds %s/tasks %s/status %s", c.data, c.data, c.run)) == 0);
    CHECK(containers_wait(&c, quiet->attempt, PHASE_ENDED)->outcome == OUTCOME_SUCCEEDED);
    containers_close(&c);
}

TEST(volumes_outlive_tasks_and_disks_are_bounded)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order_mount write = { .volume = 77, .name = "data", .path = "/data" }, read = write;
    read.read_only = true;
    struct order *o = containers_order(&c, "host", "echo kept > /data/a && dd if=/dev/zero of=/tmp/big bs=1M count=200; df -m /tmp | tail -1; rm /tmp/big; df -m /tmp | tail -1");
    o->mounts = (struct objects){ &write, 1 };
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(containers_log(&c, o->attempt, 'e'), "No space left"));
    struct order *next = containers_order(&c, "host", "cat /data/a; stat -c '%u %a' /data/a /data; touch /data/b || echo closed");
    next->mounts = (struct objects){ &read, 1 };
    s = containers_run(&c, next);
    const char *out = containers_log(&c, next->attempt, 'o');
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(out, "kept\n0 644\n0 777\nclosed"));
    containers_close(&c);
}

TEST(a_log_never_grows_beyond_what_was_granted)
{
    struct containers c = {0};
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", "yes 0123456789012345678901234567890123456789 | head -c 5000000; echo last words");
    o->log_mib = 1;
    containers_run(&c, o);
    const char *out = containers_log(&c, o->attempt, 'o');
    CHECK(strlen(out) > 700000 && strlen(out) <= 1 << 20 && has(out + strlen(out) - 20, "last words"));
    containers_close(&c);
}
