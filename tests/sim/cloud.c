/* cloud.c - machines come and go: starting, killing and crashing the server and the agents, and an operator who starts again
 * what has fallen.
 *
 * What a killed program held in memory is left to the process of the test, which lives for one seed only: code whose
 * machine is dead is never called again, so nobody could free it in order. */
#include "cloud.h"
#include "agent/agent.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control_internal.h"
#include "store/store_internal.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVER_PROGRAM "/usr/bin/arcus-server"
#define AGENT_PROGRAM  "/usr/bin/arcus-agent"

void cloud_fail(struct cloud *c, const char *fmt, ...)
{
    va_list ap;
    if (!cloud_ok(c))
        return; /* what follows from the first is of no interest */
    va_start(ap, fmt);
    int n = snprintf(c->failed, sizeof c->failed, "at %lld ms: ", (long long)sim_now_ms(c->sim));
    vsnprintf(c->failed + n, sizeof c->failed - (size_t)n, fmt, ap);
    va_end(ap);
}

void cloud_say(const struct cloud *c, const char *fmt, ...)
{
    va_list ap;
    if (!c->loud)
        return;
    va_start(ap, fmt);
    printf("# %7lld ms  ", (long long)sim_now_ms(c->sim));
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

int64_t chance(struct cloud *c, int64_t least, int64_t most)
{
    return least + (int64_t)rng_below(&c->rng, (uint64_t)(most - least) + 1);
}

int64_t luck(struct cloud *c, int64_t least, int64_t most)
{
    return least + (int64_t)rng_below(&c->luck, (uint64_t)(most - least) + 1);
}

/* --- files of a machine */

static void put_file(struct cloud *c, struct os *os, const char *path, const char *text)
{
    struct err err = { 0 };
    char folder[128];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (!dir_make(os, folder, 0755, &err) || !file_replace(os, path, SLICE(text), 0600, &err))
        cloud_fail(c, "%s", err.text);
}

static void remove_tree(struct os *os, const char *path)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err = { 0 };
    if (dir_list(os, path, mem, &names, &err))
        for (size_t i = 0; i < names.count; i++)
            remove_tree(os, arena_printf(mem, "%s/%s", path, names.at[i]));
    if (!file_remove(os, path, &err))
        return;
}

/* --- programs */

static void on_exit_of(void *arg, int wait_status)
{
    struct machine_of *m = arg;
    (void)wait_status;
    m->proc = NULL;
    m->program = NULL;
}

static void new_boot_id(struct os *os, int64_t now_ms)
{
    static const char *const path = "/proc/sys/kernel/random/boot_id";
    struct err err = { 0 };
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)now_ms);
    for (int i = 0; i < 2; i++) /* only one operation fails at a time; on a full disk there is none then */
        if (file_remove(os, path, &err) && dir_make(os, "/proc/sys/kernel/random", 0755, &err) && file_replace(os, path, SLICE(text), 0644, &err))
            return;
}

static void boot(struct cloud *c, struct machine_of *m)
{
    m->os = sim_machine(c->sim, m->host);
    if (m->fresh) {
        remove_tree(m->os, "/run/arcus"); /* it is in memory */
        new_boot_id(m->os, sim_now_ms(c->sim));
    }
    m->fresh = false;
}

static void fall(struct cloud *c, struct machine_of *m, int64_t back_after_ms)
{
    m->back_ms = sim_now_ms(c->sim) + MAX(back_after_ms, 1);
}

static void spawn(struct cloud *c, struct machine_of *m, const char *program, const char *word)
{
    struct err err = { 0 };
    const char *const argv[] = { program, word, NULL };
    struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
    m->back_ms = 0;
    if (proc_spawn(m->os, &spec, on_exit_of, m, &m->proc, &err))
        return;
    fall(c, m, 500);
    if (!c->faults && !c->filled)
        cloud_fail(c, "cannot start %s: %s", program, err.text);
}

static void power_off(struct cloud *c, struct machine_of *m, int64_t back_after_ms)
{
    sim_crash(c->sim, m->os);
    m->proc = NULL;
    m->os = m->program = NULL;
    m->fresh = true;
    fall(c, m, back_after_ms);
}

/* A program that does not start: an operation was made to fail, and the operator tries again. */
static void refused(struct cloud *c, struct machine_of *m, struct sim_proc *self, const char *what,
                    const struct err *why)
{
    cloud_say(c, "the %s does not start: %s", what, why->text);
    if (!c->faults && !c->filled)
        cloud_fail(c, "the %s does not start: %s", what, why->text);
    fall(c, m, 500);
    sim_proc_exit(self, 256);
}

/* --- the server */

/* One that stands still may think so for long. */
static bool is_of_this_epoch(struct cloud *c, int64_t epoch)
{
    int64_t now = -1;
    struct err err = { 0 };
    if (!c->look)
        return true;
    fault_hold(true);
    bool ok = c->store->how->number(c->look, "SELECT epoch FROM writer", &now, &err);
    fault_hold(false);
    if (!ok)
        cloud_fail(c, "who writes? %s", err.text);
    return now == epoch;
}

void head_pick(struct cloud *c)
{
    int64_t highest = -1;
    c->server = NULL;
    for (int h = 0; h < c->head_count; h++) {
        struct server *s = c->servers[h].server;
        const struct writer *w = s ? &server_control(s)->writer : NULL;
        if (w && w->state && w->conn->epoch > highest)
            c->server = s, highest = w->conn->epoch;
    }
    if (c->server && !is_of_this_epoch(c, highest))
        c->server = NULL;
}

struct conn *cloud_conn(struct cloud *c)
{
    return c->look ? c->look : server_control(c->server)->writer.conn;
}

static void on_commit(void *arg, const struct commit *k)
{
    struct head_of *h = arg;
    h->c->commits++;
    head_pick(h->c);
    watch_commit(h->c, h->h, k);
}

static void server_signal(void *arg, int signal)
{
    struct head_of *h = arg;
    if (signal == SIGKILL)
        h->server = NULL;
    head_pick(h->c);
}

static int head_number(const struct cloud *c, const char *host)
{
    for (int i = 0; i < c->head_count; i++)
        if (text_is(c->heads[i].host, host))
            return i;
    return 0;
}

static void server_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct cloud *c = arg;
    struct err err = { 0 };
    struct head_of *me = &c->servers[head_number(c, argv[1])];
    bool alone = c->head_count == 1;
    char url[64];
    snprintf(url, sizeof url, "http://%s:6640", argv[1]);
    struct server_config config = { .data = "/data",
                                    .store = alone ? NULL : "/shared/arcus.db",
                                    .keys = alone ? NULL : "/shared/keys",
                                    .advertise = url,
                                    .shared = !alone,
                                    .address = "0.0.0.0:6640",
                                    .default_image = "host",
                                    .run_for_s = RUN_FOR_S,
                                    .simulated = true };
    me->server = NULL;
    if (!server_open(os, &config, &me->server, &err)) {
        refused(c, &c->heads[me->h], self, "server", &err);
        return;
    }
    me->self = self;
    c->heads[me->h].program = os;
    sim_proc_on_signal(self, server_signal, me);
    control_follow(server_control(me->server), on_commit, me);
    head_pick(c);
    watch_server(c, me->h);
}

void head_start(struct cloud *c, int h)
{
    struct machine_of *m = &c->heads[h];
    if (m->proc && c->servers[h].server) { /* it was told to leave and stands still; its lock keeps another away */
        fall(c, m, 500);
        return;
    }
    cloud_say(c, "start %s", m->host);
    boot(c, m);
    spawn(c, m, SERVER_PROGRAM, m->host);
}

void head_kill(struct cloud *c, int h, int64_t back_after_ms)
{
    cloud_say(c, "kill %s for %lld ms", c->heads[h].host, (long long)back_after_ms);
    if (c->heads[h].proc)
        proc_kill(c->heads[h].proc, SIGKILL);
    fall(c, &c->heads[h], back_after_ms + 5);
}

void head_crash(struct cloud *c, int h, int64_t back_after_ms)
{
    cloud_say(c, "crash %s for %lld ms", c->heads[h].host, (long long)back_after_ms);
    power_off(c, &c->heads[h], back_after_ms);
    c->servers[h].server = NULL;
    head_pick(c);
}

static void on_server_closed(void *arg)
{
    struct head_of *h = arg;
    server_free(TAKE(h->server));
    head_pick(h->c);
    sim_proc_exit(h->self, 0);
}

void head_leave(struct cloud *c, int h, int64_t back_after_ms)
{
    if (!c->servers[h].server)
        return;
    cloud_say(c, "%s leaves", c->heads[h].host);
    server_close(c->servers[h].server, 1000, on_server_closed, &c->servers[h]);
    fall(c, &c->heads[h], back_after_ms + 3000);
}

/* --- the agents */

static int node_number(const struct cloud *c, const char *host)
{
    for (int i = 0; i < c->node_count; i++)
        if (text_is(c->nodes[i].host, host))
            return i;
    return 0;
}

static void on_agent_failed(void *arg, const struct err *why)
{
    struct machine_of *m = arg;
    (void)why;
    m->refused = true;
}

static void agent_signal(void *arg, int signal)
{
    (void)arg, (void)signal; /* SIGKILL: its memory is left where it is */
}

static void agent_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct cloud *c = arg;
    struct err err = { 0 };
    int i = node_number(c, argv[1]);
    const char *urls[HEADS_MOST];
    for (int h = 0; h < c->head_count; h++)
        urls[h] = arena_printf(c->mem, "http://%s:6640", c->heads[h].host);
    struct agent_config config = { .servers = { urls, (size_t)c->head_count },
                                   .token = c->tokens[i],
                                   .data = "/var/lib/arcus",
                                   .run = "/run/arcus",
                                   .self = "/usr/bin/arcus",
                                   .version = "sim",
                                   .host_image = true,
                                   .sim_gpus = i == 0   ? 2
                                               : i == 1 ? 1
                                                        : 4,
                                   .on_failed = on_agent_failed,
                                   .arg = &c->nodes[i] };
    sim_proc_on_signal(self, agent_signal, c);
    c->nodes[i].program = os;
    c->agents[i] = agent_new(os, &config, &err);
    if (!c->agents[i])
        refused(c, &c->nodes[i], self, "agent", &err);
}

static void on_token(void *arg, const char *token)
{
    snprintf(arg, sizeof((struct cloud *)0)->tokens[0], "%s", token ? token : "");
}

/* The operator gets it a (new) token, and then starts it with that. */
static void join(struct cloud *c, int node)
{
    enum { AGAIN_MS = 2000 };
    struct machine_of *m = &c->nodes[node];
    int64_t now = sim_now_ms(c->sim);
    if (c->tokens[node][0] && m->asked_ms) {
        m->refused = false;
        m->asked_ms = 0;
        if (m->proc)
            node_kill(c, node, 10);
        else
            node_start(c, node);
    } else if (c->server && (!m->asked_ms || now - m->asked_ms > AGAIN_MS)) {
        c->tokens[node][0] = 0;
        m->asked_ms = now;
        server_token(c->server, on_token, c->tokens[node]);
    }
}

void node_start(struct cloud *c, int node)
{
    cloud_say(c, "start %s", c->nodes[node].host);
    boot(c, &c->nodes[node]);
    spawn(c, &c->nodes[node], AGENT_PROGRAM, c->nodes[node].host);
}

void node_kill(struct cloud *c, int node, int64_t back_after_ms)
{
    struct machine_of *m = &c->nodes[node];
    cloud_say(c, "kill the agent of %s for %lld ms", m->host, (long long)back_after_ms);
    if (m->proc)
        proc_kill(m->proc, SIGKILL);
    straws_orphaned(c, node);
    fall(c, m, back_after_ms + 5);
}

void node_crash(struct cloud *c, int node, int64_t back_after_ms)
{
    cloud_say(c, "crash %s for %lld ms", c->nodes[node].host, (long long)back_after_ms);
    power_off(c, &c->nodes[node], back_after_ms);
    straws_crashed(c, node);
}

/* --- time */

static int64_t next_return(const struct cloud *c)
{
    int64_t next = INT64_MAX;
    for (int h = 0; h < c->head_count; h++)
        if (c->heads[h].back_ms)
            next = MIN(next, c->heads[h].back_ms);
    for (int i = 0; i < c->node_count; i++)
        if (c->nodes[i].back_ms)
            next = MIN(next, c->nodes[i].back_ms);
    return next;
}

static void operate(struct cloud *c)
{
    int64_t now = sim_now_ms(c->sim);
    for (int h = 0; h < c->head_count; h++)
        if (c->heads[h].back_ms && now >= c->heads[h].back_ms)
            head_start(c, h);
    head_pick(c);
    for (int i = 0; i < c->node_count; i++)
        if (c->nodes[i].back_ms && now >= c->nodes[i].back_ms) {
            boot(c, &c->nodes[i]);
            c->nodes[i].back_ms = 0;
            if (!c->nodes[i].refused)
                node_start(c, i);
        }
    for (int i = 0; i < c->node_count; i++)
        if (c->nodes[i].refused && !c->nodes[i].back_ms)
            join(c, i);
    client_tick(c);
}

bool cloud_wait(struct cloud *c, int64_t ms, bool (*enough)(struct cloud *c))
{
    enum { SLICE_MS = 250 };
    int64_t until = sim_now_ms(c->sim) + ms;
    while (cloud_ok(c) && sim_now_ms(c->sim) < until) {
        if (enough && enough(c))
            return true;
        int64_t next = MIN(until, MIN(next_return(c), sim_now_ms(c->sim) + SLICE_MS));
        sim_until(c->sim, MAX(next, sim_now_ms(c->sim)), NULL, NULL);
        operate(c);
    }
    return enough && cloud_ok(c) && enough(c);
}

void cloud_run(struct cloud *c, int64_t ms)
{
    cloud_wait(c, ms, NULL);
}

void heal(struct cloud *c)
{
    cloud_say(c, "peace");
    fault_arm(0);
    sim_network(c->sim, 0, 5);
    sim_loss(c->sim, 0, 0);
    const char *all[HEADS_MOST + NODES_MOST + 2] = { "client", "store" };
    size_t n = 2;
    for (int h = 0; h < c->head_count; h++)
        all[n++] = c->heads[h].host;
    for (int i = 0; i < c->node_count; i++)
        all[n++] = c->nodes[i].host;
    for (size_t i = 0; i < n; i++) {
        sim_disk_full(c->sim, all[i], false);
        sim_disk_slow(c->sim, all[i], 0);
        for (size_t k = 0; k < i; k++)
            sim_partition(c->sim, all[i], all[k], false);
    }
}

/* --- the first minute: nothing fails yet */

static bool server_is_up(struct cloud *c)
{
    return c->server != NULL;
}

bool agents_are_linked(struct cloud *c)
{
    for (int i = 0; i < c->node_count; i++)
        if (!c->agents[i] || !agent_linked(c->agents[i]))
            return false;
    return true;
}

static void read_key(struct cloud *c)
{
    struct slice text;
    struct err err = { 0 };
    if (!file_read(c->heads[0].os, "/data/admin.key", 256, c->mem, &text, &err))
        cloud_fail(c, "%s", err.text);
    else
        snprintf(c->tenants[0].key, sizeof c->tenants[0].key, "%.*s", (int)strcspn(text.at, "\n"),
                 text.at);
}

/* --- a cloud that was set up once, for all seeds but a few */

static struct {
    struct arena *mem;
    struct { const char *path; struct slice bytes; } files[32];
    size_t count;
    char beta[80];
} prepared;

static void keep_files(struct os *os, const char *folder)
{
    struct texts names = { 0 };
    struct err err = { 0 };
    if (!dir_list(os, folder, prepared.mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++) {
        const char *path = arena_printf(prepared.mem, "%s/%s", folder, names.at[i]);
        struct slice bytes;
        if (!file_read(os, path, 64 << 20, prepared.mem, &bytes, &err)) {
            keep_files(os, path);
        } else if (prepared.count < COUNT(prepared.files)) {
            prepared.files[prepared.count].path = path;
            prepared.files[prepared.count++].bytes = bytes;
        }
    }
}

static void put_files(struct cloud *c)
{
    for (size_t i = 0; i < prepared.count; i++) {
        struct err err = { 0 };
        char folder[128];
        const char *path = prepared.files[i].path;
        bool all = text_starts(path, "/data/arcus.db") || text_starts(path, "/data/keys/");
        if (c->head_count > 1 && all)
            path = arena_printf(c->mem, "/shared/%s", path + strlen("/data/"));
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
        for (int h = 0; h < (all ? 1 : c->head_count); h++)
            if (!dir_make(c->heads[h].os, folder, 0700, &err)
                || !file_replace(c->heads[h].os, path, prepared.files[i].bytes, 0600, &err))
                cloud_fail(c, "%s", err.text);
    }
    snprintf(c->tenants[1].key, sizeof c->tenants[1].key, "%s", prepared.beta);
}

static void begin(struct cloud *c, const struct start *s, bool loud)
{
    int heads = s->heads;
    *c = (struct cloud){ .loud = loud,
                         .sim = sim_new(s->seed),
                         .rng = { s->seed ^ 0x5eed },
                         .luck = { s->seed ^ 0x1cc },
                         .mem = arena_new(),
                         .quota_gpus = 1,
                         .tenants = { { .name = "default" }, { .name = "beta" } } };
    sim_program(c->sim, SERVER_PROGRAM, server_start, c);
    sim_program(c->sim, AGENT_PROGRAM, agent_start, c);
    straws_install(c);
    watch_open(c);
    c->head_count = heads;
    sim_machine(c->sim, "store");
    for (int h = 0; h < heads; h++) {
        c->servers[h] = (struct head_of){ .c = c, .h = h };
        snprintf(c->heads[h].host, sizeof c->heads[h].host, h ? "head%d" : "head", h + 1);
        if (heads > 1)
            sim_mount(c->sim, c->heads[h].host, "/shared", "store");
        c->heads[h].os = sim_machine(c->sim, c->heads[h].host);
    }
    snprintf(c->client.host, sizeof c->client.host, "client");
    c->client.os = sim_machine(c->sim, "client");
    if (!s->cold)
        put_files(c);
    for (int h = 0; h < heads; h++)
        head_start(c, h);
    cloud_wait(c, 5000, server_is_up);
    if (!c->server) {
        cloud_fail(c, "the server does not come up");
        return;
    }
    struct err err = { 0 };
    if (heads > 1
        && (!store_open(sim_machine(c->sim, "store"), "/shared/arcus.db", &c->store, &err)
            || !conn_open(c->store, false, &c->look, &err)))
        cloud_fail(c, "%s", err.text);
    read_key(c);
    client_open(c, 0);
    if (s->cold)
        people_furnish(c);
    else
        client_open(c, 1);
}

void cloud_prepare(void)
{
    static struct cloud c;
    if (prepared.mem)
        return;
    prepared.mem = arena_new();
    begin(&c, &(struct start){ .seed = 1, .heads = 1, .cold = true }, false);
    cloud_run(&c, 100);
    if (!cloud_ok(&c))
        printf("# no cloud to begin with: %s\n", c.failed), abort();
    snprintf(prepared.beta, sizeof prepared.beta, "%s", c.tenants[1].key);
    proc_kill(c.heads[0].proc, SIGKILL);
    cloud_run(&c, 0);
    keep_files(c.heads[0].os, "/data");
    cloud_close(&c);
}

void cloud_open(struct cloud *c, const struct start *s, bool loud)
{
    begin(c, s, loud);
    c->furnished = true;
    start_print(s, &c->acts);
    c->node_count = s->nodes;
    for (int i = 0; cloud_ok(c) && i < c->node_count; i++) {
        snprintf(c->nodes[i].host, sizeof c->nodes[i].host, "n%d", i + 1);
        put_file(c, sim_machine(c->sim, c->nodes[i].host), "/proc/sys/kernel/hostname",
                 c->nodes[i].host);
        c->nodes[i].os = sim_machine(c->sim, c->nodes[i].host);
        c->nodes[i].refused = true; /* has no token yet */
    }
    if (cloud_ok(c) && s->joined
        && !cloud_wait(c, 10000, agents_are_linked)) /* else they join when misfortune has begun */
        cloud_fail(c, "the agents do not join");
}

void cloud_close(struct cloud *c)
{
    conn_close(c->look);
    store_close(c->store);
    sim_free(TAKE(c->sim));
    str_done(&c->acts);
    arena_free(c->mem);
}
