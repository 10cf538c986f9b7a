/* fleet.c - a large fleet in one process: each node has the agent's own link over TLS, reports every 5 s, and says of every order
 * that it runs. Nothing runs: the containers are simulated, the server is not.
 *
 *   bench-fleet URL CA.pem KEY NODES TASKS SECONDS SERVER-PID
 *
 * Tells the server's CPU and memory with all tasks live, and how long it takes from a submit to the order at its node. */
#include "agent/link.h"
#include "base/id.h"
#include "model/prefix.h"
#include "wire/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { JOINS_AT_ONCE = 64, BEAT_MS = 5000, ARRAY = 10000, PROBES = 200, PROBE_MS = 100, CPU_MILLI = 64000, MEM_MIB = 256 << 10 };

struct fleet;
struct node {
    struct fleet *f;
    int index;
    char name[24];
    struct heads *heads;
    struct link *link;
    struct report_item *items;  /* all that was ever told: they are few */
    size_t count;
    int64_t kept;
    bool up;
};
struct fleet {
    struct os *os;
    const char *url, *ca, *key;
    struct http_client *operator;
    struct node *nodes;
    int count, joined, joining, up;
    int64_t tasks, orders, submitted;
    int seconds, server, probe;
    int64_t sent_us, cpu_before, began_ms;
    int64_t latency_us[PROBES];
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench-fleet: %s: %s\n", what, why ? why : "");
    exit(1);
}

/* User and system time of the server in ticks, and its resident memory in KiB. */
static int64_t cpu_ticks(int pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    long long user = 0, system = 0;
    const char *behind = strrchr(text, ')');
    if (!behind || sscanf(behind + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld %lld", &user, &system) != 2)
        give_up("the server is gone", path);
    return user + system;
}

static long memory_kib(int pid, const char *what)
{
    char path[48], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (text_starts(line, what))
            kib = strtol(line + strlen(what) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

/* --- one node */

static void fill_hello(void *arg, struct arena *mem, struct hello *out)
{
    struct node *n = arg;
    out->info = (struct node_info){ .hostname = n->name, .version = "bench", .os_name = "simulated", .kernel = "-", .arch = "x86_64",
                                    .runtime = "simulated", .cgroups = "simulated", .cpu_milli = CPU_MILLI, .mem_mib = MEM_MIB,
                                    .disk_mib = MEM_MIB, .host_image = true };
    out->next = (int64_t)n->count + 1;
    (void)mem;
}

static struct objects items(void *arg, int64_t after, size_t limit)
{
    struct node *n = arg;
    size_t from = (size_t)MAX(after, n->kept);
    return from >= n->count ? (struct objects){ 0 } : (struct objects){ n->items + from, MIN(limit, n->count - from) };
}

static struct texts swept(void *arg)
{
    (void)arg;
    return (struct texts){ 0 };
}

static void next_probe(void *arg);

static void on_desired(void *arg, const struct desired *d, bool fresh)
{
    struct node *n = arg;
    struct fleet *f = n->f;
    const struct order *o = d->orders.at;
    (void)fresh;
    n->kept = MAX(n->kept, d->kept);
    if (!n->up) {
        n->up = true;
        if (++f->up % 1000 == 0)
            fprintf(stderr, "\r%d nodes are linked", f->up);
    }
    for (size_t i = 0; i < d->orders.count; i++) {
        bool known = false;
        for (size_t k = 0; k < n->count && !known; k++)
            known = n->items[k].attempt == o[i].attempt;
        if (known || o[i].stop)
            continue;
        if (!(n->items = realloc(n->items, (n->count + 1) * sizeof *n->items)))
            abort();
        n->items[n->count] = (struct report_item){ .n = (int64_t)n->count + 1, .attempt = o[i].attempt, .news = TASK_STARTED,
                                                   .at_ms = os_wall_ms(f->os) };
        n->count++;
        f->orders++;
        if (f->sent_us && f->probe < PROBES) {
            f->latency_us[f->probe++] = now_us() - f->sent_us;
            f->sent_us = 0;
            timer_start(f->os, PROBE_MS, next_probe, f);
        }
    }
    link_kick(n->link);
}

static void on_open(void *arg, const struct open_stream *o) { (void)arg, (void)o; }

static void on_down(void *arg, const struct err *why)
{
    struct node *n = arg;
    fprintf(stderr, "\n%s: %s\n", n->name, why->rc ? why->text : "closed by the server");
}

static const struct link_events events
    = { .hello = fill_hello, .items = items, .swept = swept, .on_desired = on_desired, .on_open = on_open, .on_down = on_down };

/* --- the steps: join all, submit all, wait, measure */

static char *text_in(struct slice body, struct arena *mem, const char *name)
{
    struct json *doc;
    struct err err = { 0 };
    return json_parse(body, mem, &doc, &err) ? (char *)json_text(doc, name) : NULL;
}

static void post(struct fleet *f, const char *path, const char *body, void (*on_end)(void *arg, int status, struct slice body, const struct err *err),
                 void *arg)
{
    const struct http_call_events e = { .on_end = on_end };
    const struct http_header type = { "Content-Type", "application/json" };
    http_call(f->operator, "POST", path, &type, 1, SLICE(body), (int64_t)strlen(body), &e, arg);
}

static void join_more(struct fleet *f);

static void on_joined(void *arg, int status, struct slice body, const struct err *err)
{
    struct node *n = arg;
    struct fleet *f = n->f;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err why = { 0 };
    const char *key = status == 201 || status == 200 ? text_in(body, mem, "key") : NULL;
    if (!key)
        give_up("a node cannot join", err ? err->text : body.at);
    n->heads = heads_new(f->os, f->ca, NULL);
    if (!heads_add(n->heads, f->url, &why))
        give_up("a client", why.text);
    heads_token(n->heads, key);
    n->link = link_new(f->os, n->heads, BEAT_MS, &events, n);
    f->joining--;
    f->joined++;
    join_more(f);
}

static void on_token(void *arg, int status, struct slice body, const struct err *err)
{
    struct node *n = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    char ask[256];
    const char *token = status == 201 || status == 200 ? text_in(body, mem, "token") : NULL;
    if (!token)
        give_up("no token", err ? err->text : body.at);
    snprintf(ask, sizeof ask, "{\"token\":\"%s\",\"name\":\"%s\"}", token, n->name);
    post(n->f, "/v1/nodes/join", ask, on_joined, n);
}

static void join_more(struct fleet *f)
{
    for (; f->joining < JOINS_AT_ONCE && f->joined + f->joining < f->count; f->joining++) {
        struct node *n = &f->nodes[f->joined + f->joining];
        *n = (struct node){ .f = f, .index = f->joined + f->joining };
        snprintf(n->name, sizeof n->name, "fleet-%d", n->index);
        post(f, "/v1/nodes/tokens", "{}", on_token, n);
    }
}

static void finish(struct fleet *f);

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void on_probe(void *arg, int status, struct slice body, const struct err *err)
{
    (void)arg;
    if (status != 201)
        give_up("a submit was refused", err ? err->text : body.at);
}

static void next_probe(void *arg)
{
    struct fleet *f = arg;
    if (f->probe == PROBES) {
        finish(f);
        return;
    }
    f->sent_us = now_us();
    post(f, "/v1/jobs", "{\"command\":[\"true\"],\"image\":\"host\",\"cpus\":0.1,\"memory\":\"64MB\"}", on_probe, f);
}

static void finish(struct fleet *f)
{
    qsort(f->latency_us, PROBES, sizeof *f->latency_us, by_size);
    printf("submit to the order at its node: median %.1f ms, 99 %% %.1f ms\n", (double)f->latency_us[PROBES / 2] / 1000,
           (double)f->latency_us[PROBES * 99 / 100] / 1000);
    os_stop(f->os);
}

static void measured(void *arg)
{
    struct fleet *f = arg;
    double seconds = (double)(os_boot_ms(f->os) - f->began_ms) / 1000;
    printf("%d nodes over TLS, %lld live tasks, a report every %d s: %.2f of a core over %.0f s, %ld MB resident\n", f->up, (long long)f->orders,
           BEAT_MS / 1000, (double)(cpu_ticks(f->server) - f->cpu_before) / (double)sysconf(_SC_CLK_TCK) / seconds, seconds,
           memory_kib(f->server, "VmRSS:") / 1024);
    fflush(stdout);
    next_probe(f);
}

static void on_submitted(void *arg, int status, struct slice body, const struct err *err)
{
    (void)arg;
    if (status != 201)
        give_up("an array was refused", err ? err->text : body.at);
}

static void look(void *arg)
{
    struct fleet *f = arg;
    char ask[160];
    static int settled;
    if (f->up == f->count && f->submitted == 0)
        for (; f->submitted < f->tasks; f->submitted += ARRAY) {
            snprintf(ask, sizeof ask, "{\"command\":[\"true\"],\"image\":\"host\",\"cpus\":0.1,\"memory\":\"64MB\",\"count\":%lld}",
                     (long long)MIN((int64_t)ARRAY, f->tasks - f->submitted));
            post(f, "/v1/jobs", ask, on_submitted, f);
        }
    fprintf(stderr, "\r%d joined, %d linked, %lld orders ", f->joined, f->up, (long long)f->orders);
    if (f->orders < f->tasks || ++settled < 10) {       /* ten seconds for what is still under way */
        timer_start(f->os, 1000, look, f);
        return;
    }
    fprintf(stderr, "\n");
    f->began_ms = os_boot_ms(f->os);
    f->cpu_before = cpu_ticks(f->server);
    timer_start(f->os, f->seconds * 1000, measured, f);
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice ca;
    if (argc != 8)
        return fprintf(stderr, "usage: bench-fleet URL CA.pem KEY NODES TASKS SECONDS SERVER-PID\n"), 1;
    struct fleet f = { .os = os_real_new(&err), .url = argv[1], .key = argv[3], .count = atoi(argv[4]), .tasks = atoll(argv[5]),
                       .seconds = atoi(argv[6]), .server = atoi(argv[7]) };
    if (!f.os || !file_read(f.os, argv[2], 1 << 20, mem, &ca, &err))
        give_up("start", err.text);
    f.ca = ca.at;
    f.nodes = calloc((size_t)f.count, sizeof *f.nodes);
    if (!http_client_new(f.os, f.url, f.ca, NULL, f.key, &f.operator, &err))
        give_up("the operator's client", err.text);
    join_more(&f);
    timer_start(f.os, 1000, look, &f);
    os_run(f.os);
    return 0;
}
