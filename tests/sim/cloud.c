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

static void boot(struct cloud *c, struct machine_of *m)
{
    m->os = sim_machine(c->sim, m->host);
    if (m->fresh)
        remove_tree(m->os, "/run/arcus"); /* it is in memory */
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

static void on_commit(void *arg, const struct commit *k)
{
    struct cloud *c = arg;
    c->commits++;
    watch_commit(c, k);
}

static void server_signal(void *arg, int signal)
{
    struct cloud *c = arg;
    if (signal == SIGKILL)
        c->server = NULL;
}

static void server_start(void *arg, struct os *os, struct sim_proc *self, const char *const *argv)
{
    struct cloud *c = arg;
    struct err err = { 0 };
    struct server_config config = { .data = "/data",
                                    .address = "0.0.0.0:6640",
                                    .default_image = "host",
                                    .run_for_s = RUN_FOR_S,
                                    .simulated = true };
    (void)argv;
    c->server = NULL;
    if (!server_open(os, &config, &c->server, &err)) {
        refused(c, &c->head, self, "server", &err);
        return;
    }
    c->server_self = self;
    c->head.program = os;
    sim_proc_on_signal(self, server_signal, c);
    control_follow(server_control(c->server), on_commit, c);
    watch_server(c);
}

void head_start(struct cloud *c)
{
    if (c->head.proc && c->server) { /* it was told to leave and stands still; its lock keeps another away */
        fall(c, &c->head, 500);
        return;
    }
    cloud_say(c, "start head");
    boot(c, &c->head);
    spawn(c, &c->head, SERVER_PROGRAM, NULL);
}

void head_kill(struct cloud *c, int64_t back_after_ms)
{
    cloud_say(c, "kill head for %lld ms", (long long)back_after_ms);
    if (c->head.proc)
        proc_kill(c->head.proc, SIGKILL);
    fall(c, &c->head, back_after_ms + 5);
}

void head_crash(struct cloud *c, int64_t back_after_ms)
{
    cloud_say(c, "crash head for %lld ms", (long long)back_after_ms);
    power_off(c, &c->head, back_after_ms);
    c->server = NULL;
}

static void on_server_closed(void *arg)
{
    struct cloud *c = arg;
    server_free(TAKE(c->server));
    sim_proc_exit(c->server_self, 0);
}

void head_leave(struct cloud *c, int64_t back_after_ms)
{
    if (!c->server)
        return;
    cloud_say(c, "head leaves");
    server_close(c->server, 1000, on_server_closed, c);
    fall(c, &c->head, back_after_ms + 3000);
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
    static const char *urls[] = { "http://head:6640" };
    struct agent_config config = { .servers = { urls, 1 },
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
    int64_t next = c->head.back_ms ? c->head.back_ms : INT64_MAX;
    for (int i = 0; i < c->node_count; i++)
        if (c->nodes[i].back_ms)
            next = MIN(next, c->nodes[i].back_ms);
    return next;
}

static void operate(struct cloud *c)
{
    int64_t now = sim_now_ms(c->sim);
    if (c->head.back_ms && now >= c->head.back_ms)
        head_start(c);
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
    sim_partition(c->sim, "client", "head", false);
    sim_disk_full(c->sim, "head", false);
    sim_disk_slow(c->sim, "head", 0);
    for (int i = 0; i < c->node_count; i++) {
        sim_partition(c->sim, c->nodes[i].host, "head", false);
        sim_disk_full(c->sim, c->nodes[i].host, false);
        sim_disk_slow(c->sim, c->nodes[i].host, 0);
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
    if (!file_read(c->head.os, "/data/admin.key", 256, c->mem, &text, &err))
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
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
        if (!dir_make(c->head.os, folder, 0700, &err)
            || !file_replace(c->head.os, path, prepared.files[i].bytes, 0600, &err))
            cloud_fail(c, "%s", err.text);
    }
    snprintf(c->tenants[1].key, sizeof c->tenants[1].key, "%s", prepared.beta);
}

static void begin(struct cloud *c, uint64_t seed, bool loud, bool cold)
{
    *c = (struct cloud){ .loud = loud,
                         .sim = sim_new(seed),
                         .rng = { seed ^ 0x5eed },
                         .mem = arena_new(),
                         .quota_gpus = 1,
                         .tenants = { { .name = "default" }, { .name = "beta" } } };
    sim_program(c->sim, SERVER_PROGRAM, server_start, c);
    sim_program(c->sim, AGENT_PROGRAM, agent_start, c);
    straws_install(c);
    watch_open(c);
    snprintf(c->head.host, sizeof c->head.host, "head");
    snprintf(c->client.host, sizeof c->client.host, "client");
    c->client.os = sim_machine(c->sim, "client");
    c->head.os = sim_machine(c->sim, "head");
    if (!cold)
        put_files(c);
    head_start(c);
    cloud_wait(c, 5000, server_is_up);
    if (!c->server) {
        cloud_fail(c, "the server does not come up");
        return;
    }
    read_key(c);
    client_open(c, 0);
    if (cold)
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
    begin(&c, 1, false, true);
    cloud_run(&c, 100);
    if (!cloud_ok(&c))
        printf("# no cloud to begin with: %s\n", c.failed), abort();
    snprintf(prepared.beta, sizeof prepared.beta, "%s", c.tenants[1].key);
    proc_kill(c.head.proc, SIGKILL);
    cloud_run(&c, 0);
    keep_files(c.head.os, "/data");
    cloud_close(&c);
}

void cloud_open(struct cloud *c, uint64_t seed, bool loud)
{
    enum { COLD_EVERY = 16 };
    begin(c, seed, loud, seed % COLD_EVERY == 0);
    c->furnished = true;
    c->node_count = chance(c, 0, 3) ? 3 : 2;
    for (int i = 0; cloud_ok(c) && i < c->node_count; i++) {
        snprintf(c->nodes[i].host, sizeof c->nodes[i].host, "n%d", i + 1);
        put_file(c, sim_machine(c->sim, c->nodes[i].host), "/proc/sys/kernel/hostname",
                 c->nodes[i].host);
        c->nodes[i].os = sim_machine(c->sim, c->nodes[i].host);
        c->nodes[i].refused = true; /* has no token yet */
    }
    if (cloud_ok(c) && chance(c, 0, 2)
        && !cloud_wait(c, 10000, agents_are_linked)) /* else they join when misfortune has begun */
        cloud_fail(c, "the agents do not join");
}

void cloud_close(struct cloud *c)
{
    sim_free(TAKE(c->sim));
    arena_free(c->mem);
}
