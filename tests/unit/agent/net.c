/* A task's network as it sees it, with a real container: skipped where containers or networks do not work. */
#include "agent/runtime_internal.h"
#include "containers.h"
#include "model/ipv4.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_networks(struct containers *c)
{
    struct node_info info = { 0 };
    runtime_describe(c->r, &info, c->mem);
    for (size_t i = 0; !info.network && i < info.cannot.count; i++)
        printf("# %s\n", info.cannot.at[i]);
    if (!info.network)
        test_skip("no networks here");
    return info.network;
}
static struct order *connected(struct containers *c, int64_t net, int64_t host, const char *script)
{
    struct order *o = containers_order(c, "host", script);
    o->net = net;
    o->address = ipv4_text(net_address(net, host), arena_take(c->mem, IPV4_TEXT, 1));
    o->egress = "all";
    return o;
}

#define SHOW "sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/net/dev | sort | tr '\\n' ' '; awk '$2 == \"00000000\" {print $1, $3}' /proc/net/route; hostname -i"

TEST(a_task_has_its_address_a_way_out_and_nothing_else)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    if (has_networks(&c))
        for (int i = 0; i < 3; i++) { /* by a supervisor of its own, then where one has been before */
            struct order *o = connected(&c, 3, 2 + i, SHOW);
            CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED);
            const char *said = containers_log(&c, o->attempt, 0);
            CHECK(text_is(said, containers_path(&c, "eth0 lo eth0 01304064\n100.64.48.%d\n", 2 + i)));
            runtime_forget(c.r, o->attempt);
        }
    containers_close(&c);
}

TEST(a_task_without_an_address_has_only_itself)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    struct order *o = containers_order(&c, "host", SHOW);
    CHECK(containers_run(&c, o)->outcome == OUTCOME_SUCCEEDED && text_is(containers_log(&c, o->attempt, 0), "lo 127.0.1.1\n"));
    runtime_forget(c.r, o->attempt);
    containers_close(&c);
}

TEST(two_of_a_project_reach_each_other_over_a_restart_of_the_agent_and_one_of_another_does_not)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    if (has_networks(&c)) {
        struct order *a = connected(&c, 3, 20, "busybox nc -ll -p 5000 -e echo hello & sleep 60");
        runtime_start(c.r, a);
        CHECK(containers_wait(&c, a->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
        const char *ask = "for i in $(seq 50); do busybox nc -w 1 100.64.48.20 5000 </dev/null && exit 0; sleep 0.1; done; exit 3";
        CHECK(containers_run(&c, connected(&c, 3, 21, ask))->outcome == OUTCOME_SUCCEEDED);
        CHECK(containers_reopen(&c));
        CHECK(containers_run(&c, connected(&c, 3, 22, ask))->outcome == OUTCOME_SUCCEEDED);
        CHECK(containers_run(&c, connected(&c, 4, 20, "busybox nc -w 1 100.64.48.20 5000 </dev/null && exit 0; exit 3"))->exit_code == 3);
        runtime_stop(c.r, a->attempt, 0, OUTCOME_CANCELLED);
        CHECK(containers_end(&c, a->attempt)->phase == PHASE_ENDED);
    }
    containers_close(&c);
}

TEST(an_order_whose_address_is_not_its_projects_is_not_run)
{
    struct containers c = { 0 };
    if (!containers_open(&c))
        return;
    if (has_networks(&c)) {
        struct order *o = connected(&c, 3, 30, "true");
        o->address = "10.0.0.7";
        CHECK(containers_run(&c, o)->outcome == OUTCOME_NODE_FAULT && strstr(c.last.detail, "address"));
    }
    containers_close(&c);
}

/* --- an agent after the other, with nothing but networks */

struct saying { const char *path, *words; char out[2048]; bool ok; };

static void *say(void *arg)
{
    struct saying *s = arg;
    void *lib = dlopen("libnftables.so.1", RTLD_NOW | RTLD_LOCAL), *ctx;
    void *(*new)(uint32_t) = (void *(*)(uint32_t))dlsym(lib, "nft_ctx_new");
    void (*end)(void *) = (void (*)(void *))dlsym(lib, "nft_ctx_free");
    int (*buffer)(void *) = (int (*)(void *))dlsym(lib, "nft_ctx_buffer_output"), (*errors)(void *) = (int (*)(void *))dlsym(lib, "nft_ctx_buffer_error");
    int (*run)(void *, const char *) = (int (*)(void *, const char *))dlsym(lib, "nft_run_cmd_from_buffer");
    const char *(*said)(void *) = (const char *(*)(void *))dlsym(lib, "nft_ctx_get_output_buffer");
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (setns(fd, CLONE_NEWNET) == 0 && (ctx = new(0))) {
        buffer(ctx), errors(ctx);
        s->ok = run(ctx, s->words) == 0;
        snprintf(s->out, sizeof s->out, "%s", said(ctx));
        end(ctx);
    }
    close(fd);
    return NULL;
}
/* What nft says in the fabric; NULL: it fails. */
static const char *nft_in(const struct net *n, const char *words, struct saying *s)
{
    pthread_t t;
    *s = (struct saying){ .path = net_fabric(n), .words = words };
    CHECK(pthread_create(&t, NULL, say, s) == 0 && pthread_join(t, NULL) == 0);
    return s->ok ? s->out : NULL;
}
static void stop(void *arg) { os_stop(arg); }
static bool comes_to(struct os *os, const struct net *n, const char *words, const char *has, const char *lacks)
{
    struct saying s;
    for (int i = 0; i < 600; i++) {
        const char *said = nft_in(n, words, &s);
        if (said && strstr(said, has) && !strstr(said, lacks))
            return true;
        timer_start(os, 50, stop, os);
        os_run(os);
    }
    return false;
}

static struct net_holder ourselves(void)
{
    struct net_holder h = { .pid = getpid() };
    unsigned long long start = 0;
    FILE *f = fopen("/proc/self/stat", "re");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) == 1);
    fclose(f);
    h.start_time = start;
    return h;
}

/* What its thread did comes home. */
static void end(struct os *os)
{
    timer_start(os, 50, stop, os);
    os_run(os);
    os_free(os);
}

TEST(where_a_project_may_go_changes_also_for_tasks_that_were_found_and_is_tried_until_it_does)
{
    struct err err = { 0 };
    struct saying s;
    struct os *os = os_real_new(&err);
    const struct net_config config = { .key = "net-test" };
    const struct net_holder self = ourselves();
    struct order all = { .net = 5, .egress = "all" }, none = { .net = 5, .egress = "none" }, other = { .net = 6, .egress = "none" };
    struct net *before = net_open(os, &config, NULL, 0), *after = net_works(before) ? net_open(os, &config, &self, 1) : NULL;
    if (after) {
        net_policy(before, &all);
        CHECK(comes_to(os, after, "list chain inet arcus e5", "jump public", "#"));
        net_policy(after, &none);
        CHECK(comes_to(os, after, "list chain inet arcus e5", "chain e5", "jump public"));
        CHECK(nft_in(after, "add chain inet arcus e6 { type filter hook input priority 5; }", &s)); /* nothing can jump there */
        net_policy(after, &other);
        timer_start(os, 200, stop, os);
        os_run(os);
        CHECK(nft_in(after, "delete chain inet arcus e6", &s));
        CHECK(comes_to(os, after, "list map inet arcus out", "\"p6\" : jump e6", "#"));
    } else {
        test_skip("no networks here");
    }
    net_close(after);
    net_close(before);
    end(os);
}

TEST(one_that_waits_to_start_goes_where_its_project_may_go_by_then)
{
    struct containers c = { 0 };
    struct saying s;
    if (!containers_open(&c))
        return;
    if (has_networks(&c)) {
        CHECK(containers_reopen(&c)); /* it does not know yet what works here, so whatever is to start waits */
        struct order *o = connected(&c, 3, 40, "true"), *later = connected(&c, 3, 40, "true");
        later->attempt = o->attempt;
        later->egress = "none";
        runtime_start(c.r, o);
        runtime_policy(c.r, later);
        CHECK(containers_end(&c, o->attempt)->outcome == OUTCOME_SUCCEEDED);
        const char *said = nft_in(c.r->net, "list chain inet arcus e3", &s);
        CHECK(said && strstr(said, "chain e3") && !strstr(said, "jump public"));
        runtime_forget(c.r, o->attempt);
    }
    containers_close(&c);
}

static bool same_place(const struct net *a, const struct net *b)
{
    struct stat x, y;
    return stat(net_fabric(a), &x) == 0 && stat(net_fabric(b), &y) == 0 && x.st_ino == y.st_ino;
}

TEST(networks_are_taken_over_from_a_supervisor_and_not_from_who_has_its_number)
{
    struct err err = { 0 };
    struct saying s;
    struct os *os = os_real_new(&err);
    const struct net_config config = { .key = "net-test" };
    const struct net_holder self = ourselves(), other = { self.pid, self.start_time + 1 };
    struct net *before = net_open(os, &config, NULL, 0);
    if (net_works(before)) {
        struct net *after = net_open(os, &config, &self, 1), *apart = net_open(os, &config, &other, 1);
        CHECK(net_works(after) && same_place(before, after) && net_works(apart) && !same_place(before, apart));
        net_close(apart);
        net_close(after);
        CHECK(nft_in(before, "delete table inet arcus", &s));
        after = net_open(os, &config, &self, 1); /* whatever it holds, it is no fabric */
        CHECK(net_works(after) && !same_place(before, after) && !nft_in(before, "list table inet arcus", &s));
        net_close(after);
    } else {
        test_skip("no networks here");
    }
    net_close(before);
    end(os);
}

/* On a thread whose node is a namespace of its own, since an uplink changes the node. */
static void *with_uplink(void *arg)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct saying s;
    const char *known[] = { "https://192.0.2.1:6640,https://[2001:db8::1]:6640", "unix:/run/x" }, *lost[] = { "https://192.0.2.1:6640", "https://nowhere.invalid:6640" };
    const char *told[] = { "https://192.0.2.7:6640" }, *cannot[16];
    struct node_info info = { 0 };
    size_t count = 0;
    if (unshare(CLONE_NEWNET) == -1)
        return NULL;
    struct os *os = os_real_new(&err);
    struct net_config config = { .key = "net-test", .uplink = true, .servers = { known, 2 } };
    struct net *n = net_open(os, &config, NULL, 0);
    net_describe(n, &info, mem, cannot, &count);
    bool leads_out = net_works(n);
    for (size_t i = 0; i < count; i++)
        leads_out &= !strstr(cannot[i], "nothing outside");
    if (leads_out) {
        *(bool *)arg = true;
        CHECK(comes_to(os, n, "list set inet arcus closed", "192.0.2.1", "#"));
        net_servers(n, (struct texts){ told, 1 });
        CHECK(comes_to(os, n, "list set inet arcus closed", "192.0.2.7", "#"));
        net_close(n);
        config.servers = (struct texts){ lost, 2 };
        n = net_open(os, &config, NULL, 0);
        count = 0;
        net_describe(n, &info, mem, cannot, &count);
        bool said = false;
        for (size_t i = 0; i < count; i++)
            said |= strstr(cannot[i], "nothing outside") && strstr(cannot[i], "nowhere.invalid");
        CHECK(net_works(n) && said && !nft_in(n, "list chain inet arcus bound", &s));
    }
    net_close(n);
    end(os);
    return NULL;
}
TEST(servers_are_closed_to_tasks_also_those_that_are_told_and_nothing_leads_out_while_one_is_not_known)
{
    bool done = false;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, with_uplink, &done) == 0 && pthread_join(t, NULL) == 0);
    if (!done)
        test_skip("no uplink here");
}
