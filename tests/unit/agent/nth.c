/* Every step of a node with the nth of its operations failing, for n from 1 until none is left; afterwards the state is the old one or
 * the new one. The tables of places that can fail are the linker's: one that no loop here has reached fails the last test. */
#include "agent/cgroup.h"
#include "agent/image.h"
#include "agent/suspend.h"
#include "agent/tree.h"
#include "base/fault.h"
#include "base/id.h"
#include "containers.h"
#include "model/ipv4.h"
#include "model/prefix.h"
#include "wire/tar.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NTH_MOST = 400 };

/* --- control groups */

static bool group_is_there(const struct cgroups *g, const char *name)
{
    char path[512];
    for (size_t i = 0; i < g->count; i++) {
        snprintf(path, sizeof path, "%s/%s", g->mounts[i].path, name);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static bool is_gone(pid_t pid) { return waitpid(pid, NULL, WNOHANG) == pid; }

static bool fail_in_group(const struct cgroups *g, const char *name, const char *point, int nth)
{
    struct err err = { 0 };
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        for (;;)
            pause();
    }
    fault_arm_at(point, nth);
    bool moved = cgroup_move(g, name, pid, &err), killed = cgroup_kill(g, name, 5000),
         removed = cgroup_remove(g, name), fired = fault_fired();
    fault_arm(0);
    CHECK(moved || fired);
    bool gone = is_gone(pid);
    for (int i = 0; moved && killed && !gone && i < 30000; i++, usleep(2000))
        gone = is_gone(pid);
    CHECK(gone || !moved || !killed);
    CHECK(!removed || !group_is_there(g, name));
    if (!gone) {                /* a move that failed half way leaves it in some hierarchies */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    CHECK(cgroup_kill(g, name, 5000) && cgroup_remove(g, name) && !group_is_there(g, name));
    return fired;
}

TEST(whichever_operation_on_a_control_group_fails_who_is_told_dead_is_dead)
{
    static const char *const points[] = { "cgroup.make", "cgroup.write", "cgroup.read", "cgroup.remove" };
    struct cgroups g;
    struct err err = { 0 };
    char name[64];
    int most = getenv("ARCUS_SOAK") ? NTH_MOST : 3;     /* the same for each hierarchy */
    if (geteuid() != 0) {
        test_skip("needs root");
        return;
    }
    CHECK(cgroups_find(&g, &err));
    snprintf(name, sizeof name, "arcus/nth-%d", getpid());
    for (size_t i = 0; i < COUNT(points); i++)
        for (int nth = 1; nth <= most && fail_in_group(&g, name, points[i], nth); nth++)
            ;
}

/* --- trees */

static void put_entry(struct str *out, enum tar_type type, const char *name, const char *body)
{
    tar_header(out, &(struct tar_entry){ .type = type, .name = name, .target = "", .mode = 0755, .size = (int64_t)strlen(body) });
    str_text(out, body);
    tar_pad(out, (int64_t)strlen(body));
}

static bool receive(int dir, const struct str *tar, struct err *err)
{
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    return tree_receive(dir, "to", -1, -1, &r, err) && tree_receive_feed(r, tar->at, tar->len, err)
        && tree_receive_end(r, err);
}

TEST(whichever_operation_fails_a_tree_is_received_or_the_failure_is_told)
{
    char top[] = "/tmp/arcus-nth-XXXXXX", path[64];
    AUTO(str_done) struct str tar = { 0 };
    CHECK(mkdtemp(top) != NULL);
    int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), nth = 1;
    put_entry(&tar, TAR_DIR, "a/", "");
    put_entry(&tar, TAR_FILE, "a/one", "first");
    put_entry(&tar, TAR_FILE, "two", "second");
    tar_end(&tar);
    snprintf(path, sizeof path, "%s/to", top);
    for (bool fired = true; fired && nth < NTH_MOST; nth++) {
        struct err err = { 0 }, again = { 0 };
        fault_arm(nth);
        bool ok = receive(dir, &tar, &err), removed = tree_remove(path, &again);
        fired = fault_fired();
        fault_arm(0);
        CHECK(ok || (fired && err.text[0]));
        CHECK(removed ? access(path, F_OK) == -1 : fired && again.text[0] && tree_remove(path, &again));
        CHECK(receive(dir, &tar, &err));                /* what was left half is no obstacle */
        CHECK(tree_remove(path, &again));
    }
    CHECK(nth > 4 && nth < NTH_MOST);
    close(dir);
    rmdir(top);
}

/* --- images */

static bool sh(struct containers *c, const char *text)
{
    return system(containers_path(c, "cd %s && { %s; } >sh.log 2>&1", c->top, text)) == 0;
}

TEST(whichever_operation_fails_an_image_is_whole_or_not_there)
{
    struct containers c = { 0 };
    if (access("/usr/bin/skopeo", X_OK) != 0 || access("/usr/bin/umoci", X_OK) != 0) {
        test_skip("skopeo and umoci are needed");
        return;
    }
    if (!containers_open(&c))
        return;
    CHECK(sh(&c, "umoci init --layout layout && umoci new --image layout:image && umoci unpack --image layout:image b && echo hi > b/rootfs/file"
                 " && umoci repack --image layout:image b && tar -C layout -cf oci.tar ."));
    const char *folder = containers_path(&c, "%s/unpacked", c.top), *part = containers_path(&c, "%s.part", folder),
               *archive = containers_path(&c, "%s/oci.tar", c.top);
    int nth = 1;
    for (bool fired = true; fired && nth < NTH_MOST; nth++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err = { 0 };
        struct image image = { 0 };
        fault_arm(nth);
        bool ok = image_build(c.os, archive, NULL, folder, 100 << 20, &err) && image_load(folder, mem, &image, &err);
        fired = fault_fired();
        fault_arm(0);
        CHECK(ok ? image.root != NULL : fired && err.text[0]);
        bool there = access(folder, F_OK) == 0;
        CHECK(!there || access(containers_path(&c, "%s/rootfs/file", folder), F_OK) == 0);
        CHECK(!there || image_load(folder, mem, &image, &err));
        CHECK(!there || access(part, F_OK) == -1);
        CHECK(tree_remove(folder, &err));
    }
    CHECK(nth > 10 && nth < NTH_MOST);
    printf("# an image: %d operations can fail\n", nth - 2);
    containers_close(&c);
}

/* --- a task: the agent's operations, and those of its supervisor */

static const char *name_of(const struct order *o)
{
    static char text[ID_TEXT];
    return id_text(text, PREFIX_ATTEMPT, o->attempt);
}

/* No group, no state of the runtime, nothing that the agent has forgotten about. */
static bool left_over(struct containers *c, const struct order *o)
{
    struct cgroups g;
    struct err err = { 0 };
    return !cgroups_find(&g, &err) || group_is_there(&g, containers_path(c, "arcus/%s", name_of(o)))
        || access(containers_path(c, "%s/crun/%s", c->run, name_of(o)), F_OK) == 0;
}

static const char talks[] = "seq -f 'line %.0f of a log that is cut into several segments, each of which is made anew' 0 3999; echo last words";

/* Lines are in order, and what was lost, the last words perhaps, was lost in one piece. */
static bool log_is_sound(const char *text)
{
    int before = -1, gaps = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        int i = -1;
        if (text_starts(at, "last words"))
            return gaps <= 3;           /* a line may be cut at either end of what is missing */
        if (sscanf(at, "line %d of", &i) == 1)
            gaps += i != before + 1, before = i;
    }
    return before > 3000 && !gaps;
}

static bool fired_in_supervisor(struct containers *c, const struct order *o)
{
    return unlink(containers_path(c, "%s/fired-%s", c->run, name_of(o))) == 0;
}

static bool has_networks(struct containers *c)
{
    struct node_info info = { 0 };
    runtime_describe(c->r, &info, c->mem);
    return info.network;
}

static struct order *start_failing(struct containers *c, const char *point, int nth)
{
    static int64_t host = NET_FIRST;
    static struct order_secret secret = { "token", "value" };
    struct err err = { 0 };
    struct order *o = containers_order(c, "host", talks);
    static struct order_gpu gpu = { .uuid = "GPU-0", .milli = 1000 };
    o->secrets = (struct objects){ &secret, 1 };
    o->gpus = (struct objects){ &gpu, 1 };
    o->log_mib = 1;
    if (has_networks(c)) {
        o->net = 9;
        o->mbit = 1000;
        o->address = ipv4_text(net_address(o->net, host++), arena_take(c->mem, IPV4_TEXT, 1));
    }
    CHECK(file_replace(c->os, containers_path(c, "%s/fault-%s", c->run, name_of(o)),
                       SLICE(containers_path(c, "%s %d", point, nth)), 0600, &err));
    if (text_starts(point, "disk.")) {
        static int64_t disks = 1000;
        o->disk = ++disks;
    }
    runtime_start(c->r, o);
    return o;
}

static bool ended_well(struct containers *c, const struct order *o, const char *point, int nth)
{
    const struct task_status s = *containers_end(c, o->attempt);
    bool fired = fired_in_supervisor(c, o);
    bool good = s.outcome == OUTCOME_SUCCEEDED ? log_is_sound(containers_log(c, o->attempt, 'o'))
                                               : fired && s.outcome == OUTCOME_NODE_FAULT;
    CHECK(good);
    if (!good)
        printf("# %s %d: %s, %s\n", point, nth, outcome_name((enum outcome)s.outcome), s.detail);
    return fired;
}

static void on_rest(void *arg) { os_stop(arg); }

/* The agent takes away what a supervisor could not. */
static void check_forgotten(struct containers *c, struct order *const *orders, int count)
{
    bool left = true;
    for (int i = 0; i < count; i++)
        runtime_forget(c->r, orders[i]->attempt);
    for (int tries = 0; left && tries < 500; tries++) {
        timer_start(c->os, 10, on_rest, c->os);
        os_run(c->os);
        left = false;
        for (int i = 0; i < count; i++)
            left |= left_over(c, orders[i]);
    }
    CHECK(!left);
}

/* The supervisor names the places itself. Trees and groups have loops of their own. */
static const char **places_of(struct containers *c, size_t *count)
{
    enum { PLACES = 64 };
    const char **names = ARENA_ARRAY(c->mem, const char *, PLACES);
    char *out = NULL;
    int status = -1;
    struct err err = { 0 };
    const char *const argv[] = { containers_path(c, "%s/bin/arcus-task", c->run), "--faults", NULL };
    CHECK(proc_run(c->os, argv, 1 << 16, c->mem, &out, &status, &err) && status == 0);
    for (char *name = out ? strtok(out, "\n") : NULL; name && *count < PLACES; name = strtok(NULL, "\n")) {
        bool known = text_starts(name, "tree.") || text_starts(name, "cgroup.");
        for (size_t i = 0; i < *count; i++)
            known |= text_is(names[i], name);
        if (!known)
            names[(*count)++] = name;
    }
    return names;
}

static bool keeps_disks(struct containers *c)
{
    struct node_info info = { 0 };
    runtime_describe(c->r, &info, c->mem);
    return info.disks;
}

/* What a supervisor that waits for a task has done before it has one: some of them are reached now and then only. */
static bool made_ahead(struct containers *c, const char *point)
{
    return (text_starts(point, "net.") && !has_networks(c)) || (text_starts(point, "disk.") && !keeps_disks(c)) || text_starts(point, "mount.") || text_is(point, "task.fork");
}

TEST(whichever_operation_of_a_supervisor_fails_its_task_is_told_as_it_was_and_nothing_is_left)
{
    enum { AT_ONCE = 4 };
    struct containers c = { 0 };
    size_t count = 0;
    int runs = 0, most = getenv("ARCUS_SOAK") ? NTH_MOST : AT_ONCE;
    if (!containers_open(&c))
        return;
    CHECK(containers_device(&c) && containers_reopen(&c));
    CHECK(containers_run(&c, containers_order(&c, "host", "true"))->outcome == OUTCOME_SUCCEEDED);   /* the node is tried out by then */
    const char **places = places_of(&c, &count);
    CHECK(count > 12);
    for (size_t p = 0; p < count; p++) {
        bool fired = true;
        for (int nth = 1; fired && nth <= most; nth += AT_ONCE) {
            struct order *orders[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++)
                orders[i] = start_failing(&c, places[p], nth + i);
            for (int i = 0; i < AT_ONCE; i++) {
                fired = ended_well(&c, orders[i], places[p], nth + i);
                runs += fired;
                CHECK(fired || nth + i > 1 || made_ahead(&c, places[p]));
            }
            check_forgotten(&c, orders, AT_ONCE);
        }
    }
    printf("# a supervisor: %d operations were made to fail at %zu places\n", runs, count);
    containers_close(&c);
}

/* --- the note of a suspension */

TEST(a_note_of_a_suspension_that_cannot_be_written_is_as_it_was_before)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char folder[] = "/tmp/suspend-nth.XXXXXX", path[64];
    struct suspend_note note = { .attempt = 7, .n = 1, .want = SUSPEND_SUSPENDED, .state = SUSPEND_MOVING }, read = { 0 };
    struct err err = { 0 };
    CHECK(mkdtemp(folder) && suspend_note_write(folder, &note, &err));
    note.state = SUSPEND_RUNNING;
    for (int nth = 1; nth <= 2; nth++) {
        fault_arm_at("suspend.note", nth);
        bool ok = suspend_note_write(folder, &note, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && fired == (nth == 1) && suspend_note_read(folder, 7, mem, &read));
        CHECK(read.state == (ok ? SUSPEND_RUNNING : SUSPEND_MOVING));
    }
    snprintf(path, sizeof path, "%s/suspend.json", folder);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

/* --- the table: every place of the agent that can fail was made to by some loop of this program */

TEST(every_place_of_the_agent_that_can_fail_has_a_loop_that_reaches_it)
{
    struct fault_point *p;
    if (getenv("TAP_ONLY") || geteuid() != 0 || access("/usr/bin/crun", X_OK) != 0 || access("/usr/bin/umoci", X_OK) != 0) {
        test_skip("needs all loops, and they need root, crun and umoci");
        return;
    }
    size_t count = 0;
    for (size_t at = 0; (p = fault_next(&at));) {
        if (!strstr(p->file, "src/agent/"))
            continue;
        count++;
        CHECK(p->failed > 0);
        if (!p->failed)
            printf("# no loop made %s fail in %s\n", p->name, p->file);
    }
    CHECK(count > 5);
}
