/* acts.c - everything that is done to a cloud, as lines of text: what people ask for, what goes wrong, and how long it takes until the
 * next. Chance only writes such lines (sim.c, client.c, people.c); here they are done.
 *
 * So a run is a text that can be kept, shortened and played again whatever chance would write today. A line that makes no sense any more
 * (about a job that is not there) does nothing. */
#include "base/fault.h"
#include "base/when.h"
#include "cloud.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MOST = 16, LINE_MOST = 1024 };
struct words { const char *at[WORDS_MOST]; size_t count; };

static int64_t number(const struct words *w, size_t i)
{
    return i < w->count ? strtoll(w->at[i], NULL, 10) : 0;
}

/* --- who is meant */

static struct machine_of *the_writer(struct cloud *c)
{
    head_pick(c);
    for (int h = 0; h < c->head_count; h++)
        if (c->server && c->servers[h].server == c->server)
            return &c->heads[h];
    return &c->heads[0];
}

static struct machine_of *machine_named(struct cloud *c, const char *host)
{
    if (text_is(host, "writer"))
        return the_writer(c);
    for (int h = 0; h < c->head_count; h++)
        if (text_is(c->heads[h].host, host))
            return &c->heads[h];
    for (int i = 0; i < c->node_count; i++)
        if (text_is(c->nodes[i].host, host))
            return &c->nodes[i];
    return text_is(host, "client") ? &c->client : NULL;
}

static bool is_head(const struct cloud *c, const struct machine_of *m)
{
    return m >= c->heads && m < c->heads + HEADS_MOST;
}

static bool is_node(const struct cloud *c, const struct machine_of *m)
{
    return m >= c->nodes && m < c->nodes + NODES_MOST;
}

/* --- misfortune */

static void act_kill(struct cloud *c, const struct words *w)
{
    struct machine_of *m = machine_named(c, w->at[1]);
    if (!m || m->back_ms)
        return;
    if (is_head(c, m))
        head_kill(c, (int)(m - c->heads), number(w, 2));
    else if (is_node(c, m))
        node_kill(c, (int)(m - c->nodes), number(w, 2));
}

static void act_crash(struct cloud *c, const struct words *w)
{
    struct machine_of *m = machine_named(c, w->at[1]);
    if (!m || m->back_ms)
        return;
    if (is_head(c, m))
        head_crash(c, (int)(m - c->heads), number(w, 2));
    else if (is_node(c, m))
        node_crash(c, (int)(m - c->nodes), number(w, 2));
}

static void act_leave(struct cloud *c, const struct words *w)
{
    struct machine_of *m = machine_named(c, w->at[1]);
    if (m && is_head(c, m) && !m->back_ms)
        head_leave(c, (int)(m - c->heads), number(w, 2));
}

static void act_supervisor(struct cloud *c, const struct words *w)
{
    straw_kill(c, (size_t)number(w, 1));
}

/* "store" is a host, and nobody's machine. */
static const char *host_named(struct cloud *c, const char *word)
{
    struct machine_of *m = machine_named(c, word);
    return m ? m->host : text_is(word, "store") && c->head_count > 1 ? "store" : NULL;
}

static void cut_or_mend(struct cloud *c, const struct words *w, bool cut, bool both)
{
    const char *a = host_named(c, w->at[1]), *b = host_named(c, w->at[2]);
    if (!a || !b || a == b)
        return;
    c->filled |= cut && text_is(b, "store");
    sim_partition_way(c->sim, a, b, cut);
    if (both)
        sim_partition_way(c->sim, b, a, cut);
}
static void act_cut(struct cloud *c, const struct words *w) { cut_or_mend(c, w, true, true); }
static void act_cut_way(struct cloud *c, const struct words *w) { cut_or_mend(c, w, true, false); }
static void act_mend(struct cloud *c, const struct words *w) { cut_or_mend(c, w, false, true); }

static void cut_alone(struct cloud *c, struct machine_of *m, bool cut)
{
    sim_partition(c->sim, m->host, "client", cut);
    for (int i = 0; i < c->node_count; i++)
        sim_partition(c->sim, m->host, c->nodes[i].host, cut);
    for (int h = 0; h < c->head_count; h++)
        if (&c->heads[h] != m)
            sim_partition(c->sim, m->host, c->heads[h].host, cut);
}

static void act_alone(struct cloud *c, const struct words *w) /* off everybody but the store */
{
    struct machine_of *m = machine_named(c, w->at[1]);
    if (m && is_head(c, m))
        cut_alone(c, m, true);
}

static void act_mend_heads(struct cloud *c, const struct words *w)
{
    (void)w;
    for (int h = 0; h < c->head_count; h++) {
        sim_partition(c->sim, c->heads[h].host, "store", false);
        cut_alone(c, &c->heads[h], false);
    }
}

static void act_loss(struct cloud *c, const struct words *w)
{
    sim_loss(c->sim, (unsigned)number(w, 1), (unsigned)number(w, 2));
}

static void act_reset(struct cloud *c, const struct words *w)
{
    sim_reset_nth(c->sim, (int)number(w, 1));
}

static void act_network(struct cloud *c, const struct words *w)
{
    sim_network(c->sim, number(w, 1), number(w, 2));
}

static void act_full(struct cloud *c, const struct words *w)
{
    bool full = number(w, 2);
    if (!machine_named(c, w->at[1]))
        return;
    c->filled |= full;
    sim_disk_full(c->sim, machine_named(c, w->at[1])->host, full);
}

static void act_slow(struct cloud *c, const struct words *w)
{
    if (machine_named(c, w->at[1]))
        sim_disk_slow(c->sim, machine_named(c, w->at[1])->host, number(w, 2));
}

static void act_still(struct cloud *c, const struct words *w)
{
    struct machine_of *m = machine_named(c, w->at[1]);
    if (!m || !m->program)
        return;
    sim_stall(c->sim, m->program, number(w, 2));
    m->still_from = m->still_to > sim_now_ms(c->sim) ? m->still_from : sim_now_ms(c->sim);
    m->still_to = MAX(m->still_to, sim_now_ms(c->sim) + number(w, 2));
}

static void act_clock(struct cloud *c, const struct words *w)
{
    c->jumped = true;
    sim_wall_jump(c->sim, number(w, 1));
}

static void act_faults(struct cloud *c, const struct words *w)
{
    (void)w;
    c->faults = true;
}

static void act_arm(struct cloud *c, const struct words *w)
{
    c->faults = true;
    fault_arm((int)number(w, 1));
}

/* --- time */

static void act_wait(struct cloud *c, const struct words *w) { cloud_run(c, number(w, 1)); }

static void act_linked(struct cloud *c, const struct words *w)
{
    (void)w;
    cloud_wait(c, 10000, agents_are_linked);
}

static void act_check(struct cloud *c, const struct words *w)
{
    (void)w;
    fault_arm(0);
    books_memory(c);
}

/* --- people */

static struct wish *job_named(struct cloud *c, const char *name)
{
    for (size_t i = 0; i < c->wish_count; i++)
        if (c->wishes[i].kind == WISH_SUBMIT && c->wishes[i].job[0]
            && text_is(c->wishes[i].name, name))
            return &c->wishes[i];
    return NULL;
}

static void act_submit(struct cloud *c, const struct words *w)
{
    if (w->count < 15 || number(w, 2) >= TENANTS)
        return;
    struct wish *x = wish_new(c, WISH_SUBMIT, (int)number(w, 2));
    if (!x)
        return;
    snprintf(x->name, sizeof x->name, "%s", w->at[1]);
    snprintf(x->path, sizeof x->path, "/v1/jobs");
    x->twice = number(w, 3), x->run_ms = number(w, 4), x->exit_code = number(w, 5);
    x->count = number(w, 6), x->retries = number(w, 7), x->max_duration_s = number(w, 8);
    x->waits = number(w, 9), x->impossible = number(w, 10), x->has_secret = number(w, 11);
    x->after = job_named(c, w->at[12]);
    x->when = (int)number(w, 13);
    str_printf(&x->body, "{\"name\":\"%s\",%s", x->name, w->at[14]);
    wish_after(x);
    str_char(&x->body, '}');
    wish_send(x);
}

static void act_cancel(struct cloud *c, const struct words *w)
{
    struct wish *target = job_named(c, w->at[1]),
                *x = target ? wish_new(c, WISH_CANCEL, target->tenant) : NULL;
    int64_t task = number(w, 2);
    if (!x)
        return;
    x->target = target;
    x->partly = task >= 0 && target->count > 1;
    snprintf(x->path, sizeof x->path, "/v1/jobs/%s/cancel", target->job);
    if (x->partly)
        str_printf(&x->body, "{\"task\":%lld}", (long long)task);
    else
        str_text(&x->body, number(w, 3) ? "{\"grace\":\"1s\"}" : "{}");
    wish_send(x);
}

/* method, path behind the job, body */
static void about_job(struct cloud *c, const char *name, enum wish_kind kind, const char *method,
                      const char *more, const char *body)
{
    struct wish *target = job_named(c, name), *x = target ? wish_new(c, kind, target->tenant) : NULL;
    if (!x)
        return;
    x->target = target;
    x->method = method;
    snprintf(x->path, sizeof x->path, "/v1/jobs/%s%s", target->job, more);
    str_text(&x->body, body);
    wish_send(x);
}

static void act_read(struct cloud *c, const struct words *w)
{
    about_job(c, w->at[1], WISH_READ, "GET", "", "");
}

static void act_logs(struct cloud *c, const struct words *w)
{
    about_job(c, w->at[1], WISH_LOGS, "GET", number(w, 2) ? "/logs?follow=true" : "/logs", "");
}

static void act_priority(struct cloud *c, const struct words *w)
{
    char body[48];
    snprintf(body, sizeof body, "{\"priority\":%lld}", (long long)number(w, 2));
    about_job(c, w->at[1], WISH_CHANGE, "PATCH", "", body);
}

static void hold(struct cloud *c, const struct words *w, const char *how)
{
    struct wish *target = job_named(c, w->at[1]);
    int64_t task = number(w, 2);
    char body[32] = "{}";
    if (!target)
        return;
    if (task >= 0 && task < target->count)
        snprintf(body, sizeof body, "{\"task\":%lld}", (long long)task);
    target->held = true;
    about_job(c, target->name, WISH_CHANGE, "POST", how, body);
}
static void act_suspend(struct cloud *c, const struct words *w) { hold(c, w, "/suspend"); }
static void act_resume(struct cloud *c, const struct words *w) { hold(c, w, "/resume"); }
static void act_start(struct cloud *c, const struct words *w) { hold(c, w, "/start"); }

static void act_spot(struct cloud *c, const struct words *w)
{
    struct wish *x = wish_new(c, WISH_CHANGE, 0);
    if (!x)
        return;
    x->method = "PATCH";
    snprintf(x->path, sizeof x->path, "/v1/rules");
    str_printf(&x->body, "{\"spot_suspend\":\"%s\"}", w->at[1]);
    wish_send(x);
}

static void act_node(struct cloud *c, const struct words *w)
{
    struct wish *x = wish_new(c, WISH_CHANGE, 0);
    if (!x)
        return;
    x->method = "PATCH";
    snprintf(x->path, sizeof x->path, "/v1/nodes/%s", w->at[1]);
    str_printf(&x->body, "{\"state\":\"%s\"}", w->at[2]);
    wish_send(x);
}

static void act_drain(struct cloud *c, const struct words *w)
{
    struct wish *x = wish_new(c, WISH_CHANGE, 0);
    if (!x)
        return;
    snprintf(x->path, sizeof x->path, "/v1/nodes/%s/drain", w->at[1]);
    str_text(&x->body, w->at[2]);
    wish_send(x);
}

/* reserve PROJECT NAME GPUS SECONDS-UNTIL SECONDS; one that cannot be kept is refused, and that is as good. */
static void act_reserve(struct cloud *c, const struct words *w)
{
    char from[WHEN_TEXT];
    struct wish *x = wish_new(c, WISH_CHANGE, 0);
    if (!x)
        return;
    snprintf(x->path, sizeof x->path, "/v1/reservations");
    str_printf(&x->body, "{\"project\":\"%s\",\"name\":\"%s\",\"gpus\":\"%s\",\"from\":\"%s\",\"duration\":%lld}", w->at[1], w->at[2], w->at[3],
               when_text(from, os_wall_ms(c->client.os) + number(w, 4) * 1000), (long long)number(w, 5));
    wish_send(x);
}

static void act_unreserve(struct cloud *c, const struct words *w)
{
    struct wish *x = wish_new(c, WISH_CHANGE, 0);
    if (!x)
        return;
    x->method = "DELETE";
    snprintf(x->path, sizeof x->path, "/v1/reservations/%s", w->at[1]);
    wish_send(x);
}

static void act_key(struct cloud *c, const struct words *w)
{
    (void)w;
    spare_make(c);
}
static void act_key_try(struct cloud *c, const struct words *w) { spare_use(c, number(w, 1), false); }
static void act_key_off(struct cloud *c, const struct words *w) { spare_use(c, number(w, 1), true); }

static void act_secret(struct cloud *c, const struct words *w)
{
    if (number(w, 1) < TENANTS)
        secret_change(c, (int)number(w, 1));
}

static void act_quota(struct cloud *c, const struct words *w)
{
    (void)w;
    quota_grow(c);
}

/* --- the table */

static const struct act {
    const char *name;
    size_t args;                /* so many at least; the last word of a submit is the rest of its line */
    void (*run)(struct cloud *c, const struct words *w);
    bool bad;                   /* a misfortune */
} acts[] = {
    { "wait", 1, act_wait },          { "linked", 0, act_linked },     { "check", 0, act_check },
    { "submit", 14, act_submit },     { "cancel", 3, act_cancel },     { "read", 1, act_read },
    { "logs", 2, act_logs },          { "priority", 2, act_priority }, { "node", 2, act_node },
    { "drain", 2, act_drain },        { "reserve", 5, act_reserve },   { "unreserve", 1, act_unreserve },
    { "suspend", 2, act_suspend },    { "resume", 2, act_resume },     { "spot", 1, act_spot },
    { "start", 2, act_start },
    { "key", 0, act_key },            { "key-try", 1, act_key_try },   { "key-off", 1, act_key_off },
    { "secret", 1, act_secret },      { "quota", 0, act_quota },       { "faults", 0, act_faults },
    { "kill", 2, act_kill, true },    { "crash", 2, act_crash, true }, { "leave", 2, act_leave, true },
    { "supervisor", 1, act_supervisor, true }, { "cut", 2, act_cut, true },
    { "cut-way", 2, act_cut_way, true },       { "mend", 2, act_mend },
    { "alone", 1, act_alone, true },           { "mend-heads", 0, act_mend_heads },
    { "loss", 2, act_loss, true },             { "reset", 1, act_reset, true },
    { "network", 2, act_network, true },       { "full", 2, act_full, true },
    { "slow", 2, act_slow, true },             { "still", 2, act_still, true },
    { "clock", 1, act_clock, true },           { "arm", 1, act_arm, true },
};

static const struct act *act_named(const char *name)
{
    for (size_t i = 0; i < COUNT(acts); i++)
        if (text_is(acts[i].name, name))
            return &acts[i];
    return NULL;
}

static struct words split(char *line)
{
    struct words w = { 0 };
    for (char *at = line; *at && w.count < WORDS_MOST;) {
        w.at[w.count++] = at;
        bool rest = w.count == 15;              /* the body of a submit */
        at += rest ? strlen(at) : strcspn(at, " ");
        if (*at)
            *at++ = 0;
    }
    return w;
}

static void perform(struct cloud *c, const char *text)
{
    char line[LINE_MOST];
    if (!text_copy(line, sizeof line, text)) {
        cloud_fail(c, "a line of %zu bytes", strlen(text));
        return;
    }
    cloud_say(c, "%s", line);
    struct words w = split(line);
    const struct act *a = w.count ? act_named(w.at[0]) : NULL;
    if (!a || w.count <= a->args) {
        cloud_fail(c, "nobody knows how to do '%s'", text);
        return;
    }
    c->misfortunes += a->bad;
    a->run(c, &w);
}

void act(struct cloud *c, const char *fmt, ...)
{
    char text[LINE_MOST];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    str_printf(&c->acts, "%s\n", text);
    perform(c, text);
}

void acts_play(struct cloud *c, const char *text)
{
    for (size_t n; *text && cloud_ok(c); text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        char line[LINE_MOST];
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        if (n && !text_starts(line, "cloud "))
            act(c, "%s", line);
    }
}

/* --- how it begins: the first line */

struct start start_of(uint64_t seed, int heads)
{
    enum { COLD_EVERY = 16 };
    struct rng rng = { seed ^ 0xbe61 };
    struct start s = { .seed = seed, .heads = heads ? heads : seed % 2 ? 2 : 3 };
    s.cold = s.heads == 1 && seed % COLD_EVERY == 0;
    s.nodes = rng_below(&rng, 4) ? 3 : 2;
    s.joined = rng_below(&rng, 3);
    return s;
}

void start_print(const struct start *s, struct str *out)
{
    str_printf(out, "cloud %llu %d %d %d %d\n", (unsigned long long)s->seed, s->heads, s->nodes, s->joined, s->cold);
}

bool start_read(const char *text, struct start *out)
{
    unsigned long long seed;
    int joined, cold;
    struct start s = { 0 };
    if (sscanf(text, "cloud %llu %d %d %d %d", &seed, &s.heads, &s.nodes, &joined, &cold) != 5
        || s.heads < 1 || s.heads > HEADS_MOST || s.nodes < 1 || s.nodes > NODES_MOST)
        return false;
    s.seed = seed, s.joined = joined, s.cold = cold;
    *out = s;
    return true;
}
