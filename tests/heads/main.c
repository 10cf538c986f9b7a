/* main.c - clients of a cloud with several servers: they submit, write and read registers (quotas of projects), go to another server
 * when one fails, and write down what they asked and what they were told.
 *
 *   heads load CA.pem KEY SECONDS SEED HISTORY URL...   runs the load; CA.pem "-": plain HTTP
 *   heads check HISTORY                                 could one register have answered so?
 *   heads gap HISTORY TIME                              ms from TIME (us) to the next acknowledged write that was asked after it
 *   heads self                                          shows that the check can fail
 *
 * A submit is asked again with the same key until it is answered, and so is a read: the first time at once, of the next server; a write of a register
 * only once, so that its fate may stay unknown. */
#include "history.h"
#include "net/http.h"
#include "wire/json.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLIENTS = 12, SERVERS = 8, PATIENCE_MS = 20000, PAUSE_MS = 20, LATER_MS = 1000, REST_MS = 10, LIMIT = 1 << 20 };

struct load;
struct client {
    struct load *l;
    int number, server;         /* which it asks now */
    int64_t serial, value, start_us;
    enum { OP_SUBMIT, OP_WRITE, OP_READ } kind;
    int reg;
    bool again;                 /* a submit or a read whose answer did not come */
    bool asking;                /* its question is on its way */
    int tries;
};
struct load {
    struct os *os;
    struct http_client *servers[SERVERS];
    size_t count;
    int64_t end_ms, next_value;
    unsigned seed, run;         /* rand_r moves the first */
    FILE *history;
    struct client clients[CLIENTS];
    int busy;
    bool over;
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void next_op(void *arg);

static void ask(struct client *c);

static void note(struct client *c, enum answer answer, int64_t value)
{
    static const char *const kinds[] = { "submit", "write", "read" };
    fprintf(c->l->history, "%s %d %d %lld %lld %lld %d %d\n", kinds[c->kind], c->number, c->reg, (long long)value, (long long)c->start_us,
            (long long)now_us(), (int)answer, c->tries);
}

static void on_answer(void *arg, int status, struct slice body, const struct err *err)
{
    struct client *c = arg;
    struct load *l = c->l;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err why = { 0 };
    struct json *doc = NULL, *quota;
    bool ok = !err && status >= 200 && status < 300;
    c->asking = false;
    if (l->over)
        return;
    if (!ok && !err && status != 503 && status != 429 && status != 408) {
        fprintf(stderr, "heads: %d %.*s\n", status, (int)body.len, body.at);    /* a refusal is none of ours */
        exit(1);
    }
    if (c->kind == OP_READ && ok && json_parse(body, mem, &doc, &why) && (quota = json_get(doc, "quota")))
        note(c, ANSWER_OK, json_int(quota, "jobs", -2));
    else if (c->kind != OP_READ && (ok || c->kind == OP_WRITE))
        note(c, ok ? ANSWER_OK : ANSWER_UNKNOWN, c->value);
    if (!ok)
        c->server = (c->server + 1) % (int)l->count;
    c->again = c->kind != OP_WRITE && !ok;
    timer_start(l->os, ok ? REST_MS : c->tries == 1 ? 0 : err ? PAUSE_MS : LATER_MS, next_op, c); /* 503 has Retry-After: 1 */
}

static void ask(struct client *c)
{
    static const struct http_call_events events = { .on_end = on_answer };
    struct load *l = c->l;
    char path[64], body[160] = "", key[48];
    snprintf(key, sizeof key, "k-%u-%d-%lld", l->run, c->number, (long long)c->serial);
    const struct http_header headers[] = { { "Content-Type", "application/json" }, { "Idempotency-Key", key } };
    snprintf(path, sizeof path, "/v1/projects/reg-%d", c->reg);
    if (c->kind == OP_SUBMIT) {
        snprintf(path, sizeof path, "/v1/jobs");
        snprintf(body, sizeof body, "{\"name\":\"j-%d-%lld\",\"command\":[\"true\"],\"image\":\"host\",\"gpus\":64}", c->number, (long long)c->value);
    }
    if (c->kind == OP_WRITE)
        snprintf(body, sizeof body, "{\"jobs\":%lld}", (long long)c->value);
    static const char *const methods[] = { "POST", "PATCH", "GET" };
    struct http_call *call = http_call(l->servers[c->server], methods[c->kind], path, headers, c->kind == OP_READ ? 0 : 2, SLICE(body),
                                       (int64_t)strlen(body), &events, c);
    c->asking = true;
    http_call_timeout(call, PATIENCE_MS);
}

static void next_op(void *arg)
{
    struct client *c = arg;
    struct load *l = c->l;
    if (os_boot_ms(l->os) >= l->end_ms) {
        if (--l->busy == 0)
            os_stop(l->os);
        return;
    }
    if (!c->again) {
        int dice = rand_r(&l->seed) % 10;
        c->kind = dice < 4 ? OP_SUBMIT : dice < 7 ? OP_WRITE : OP_READ;
        c->reg = rand_r(&l->seed) % REGISTERS;
        c->server = rand_r(&l->seed) % (int)l->count;
        c->value = ++l->next_value;
        c->serial++;
        c->tries = 0;
        c->start_us = now_us();
    }
    c->tries++;
    ask(c);
}

/* A write that nobody has answered yet may have been read by others already. */
static void on_stop(void *arg)
{
    struct load *l = arg;
    for (int i = 0; i < CLIENTS && !l->over; i++)
        if (l->clients[i].asking && l->clients[i].kind == OP_WRITE)
            note(&l->clients[i], ANSWER_UNKNOWN, l->clients[i].value);
    l->over = true;
    os_stop(l->os);
}

static int run_load(int argc, char **argv)
{
    struct err err = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct load l = { .os = os_real_new(&err) };
    struct slice ca = { 0 };
    if (argc < 8 || argc - 7 > SERVERS || !l.os || !(l.history = fopen(argv[6], "we")))
        return fprintf(stderr, "see the head of main.c\n"), 2;
    if (!text_is(argv[2], "-") && !file_read(l.os, argv[2], LIMIT, mem, &ca, &err))
        return fprintf(stderr, "%s\n", err.text), 2;
    for (int i = 7; i < argc; i++, l.count++)
        if (!http_client_new(l.os, argv[i], ca.at, NULL, argv[3], &l.servers[l.count], &err))
            return fprintf(stderr, "%s: %s\n", argv[i], err.text), 2;
    setvbuf(l.history, NULL, _IOLBF, 0); /* others read along */
    l.seed = l.run = (unsigned)strtoul(argv[5], NULL, 10);
    l.next_value = 1000;
    l.end_ms = os_boot_ms(l.os) + atoll(argv[4]) * 1000;
    for (int i = 0; i < CLIENTS; i++, l.busy++) {
        l.clients[i] = (struct client){ .l = &l, .number = i };
        next_op(&l.clients[i]);
    }
    os_on_signal(l.os, SIGTERM, on_stop, &l);
    os_run(l.os);
    l.over = true;
    for (size_t i = 0; i < l.count; i++)
        http_client_drop(l.servers[i]);
    fclose(l.history);
    os_free(l.os);
    return 0;
}

static struct op *read_history(const char *path, size_t *count, int64_t *asked_after, int64_t *acknowledged)
{
    FILE *f = fopen(path, "re");
    struct op *ops = NULL;
    char kind[8];
    long long value, start, end;
    int number, reg, answer, tries;
    *count = 0;
    for (size_t room = 0; f && fscanf(f, "%7s %d %d %lld %lld %lld %d %d", kind, &number, &reg, &value, &start, &end, &answer, &tries) == 8;) {
        if (asked_after && !text_is(kind, "read") && answer == ANSWER_OK && start >= *asked_after)
            *acknowledged = MIN(*acknowledged, (int64_t)end);
        if (text_is(kind, "submit"))
            continue;
        if (*count == room && !(ops = realloc(ops, (room = room ? 2 * room : 1024) * sizeof *ops)))
            abort();
        ops[(*count)++] = (struct op){ reg, text_is(kind, "write"), value, start, end, (enum answer)answer };
    }
    if (f)
        fclose(f);
    return ops;
}

static int check(const char *path)
{
    size_t count;
    struct op *ops = read_history(path, &count, NULL, NULL);
    int bad = count < 100;
    if (bad)
        printf("the history has %zu operations only\n", count);
    for (int r = 0; r < REGISTERS; r++) {
        struct err err = { 0 };
        if (!history_check(ops, count, r, -1, &err))
            bad = printf("register %d: %s\n", r, err.text);
    }
    free(ops);
    return bad != 0;
}

static int self(void)
{
    static const struct {
        const char *what;
        bool good;
        struct op ops[5];
    } cases[] = {
        { "one after the other", true, { { 0, true, 1, 0, 10, 0 }, { 0, false, 1, 20, 30, 0 }, { 0, true, 2, 40, 50, 0 }, { 0, false, 2, 60, 70, 0 } } },
        { "a lost write", false, { { 0, true, 1, 0, 10, 0 }, { 0, true, 2, 20, 30, 0 }, { 0, false, 1, 40, 50, 0 } } },
        { "a stale read between", false, { { 0, true, 1, 0, 10, 0 }, { 0, true, 2, 20, 30, 0 }, { 0, false, 2, 40, 50, 0 }, { 0, false, 1, 60, 70, 0 } } },
        { "an unanswered write that came late", true, { { 0, true, 1, 0, 10, 0 }, { 0, true, 2, 5, 6, 1 }, { 0, false, 1, 20, 30, 0 }, { 0, false, 2, 40, 50, 0 } } },
        { "an unanswered write that came and went twice", false,
          { { 0, true, 1, 0, 10, 0 }, { 0, true, 2, 5, 6, 1 }, { 0, false, 2, 20, 30, 0 }, { 0, false, 1, 40, 50, 0 }, { 0, false, 2, 60, 70, 0 } } },
        { "a read of nothing written", false, { { 0, false, 7, 0, 10, 0 } } },
        { "a read before its write", false, { { 0, false, 3, 0, 10, 0 }, { 0, true, 3, 20, 30, 0 } } },
        { "overlapping writes, read in either order", true, { { 0, true, 1, 0, 50, 0 }, { 0, true, 2, 10, 60, 0 }, { 0, false, 1, 70, 80, 0 } } },
        { "the first value read again after a write", false, { { 0, true, 1, 0, 10, 0 }, { 0, false, -1, 20, 30, 0 } } },
    };
    int bad = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err = { 0 };
        size_t n = 0;
        while (n < COUNT(cases[i].ops) && cases[i].ops[n].end_us)
            n++;
        if (history_check(cases[i].ops, n, 0, -1, &err) != cases[i].good)
            bad = printf("the check is wrong about %s: %s\n", cases[i].what, err.text);
    }
    return bad != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && text_is(argv[1], "load"))
        return run_load(argc, argv);
    if (argc == 3 && text_is(argv[1], "check"))
        return check(argv[2]);
    if (argc == 2 && text_is(argv[1], "self"))
        return self();
    if (argc == 4 && text_is(argv[1], "gap")) {
        int64_t after = strtoll(argv[3], NULL, 10), end = INT64_MAX;
        size_t count;
        free(read_history(argv[2], &count, &after, &end));
        return printf("%lld\n", end == INT64_MAX ? -1 : (long long)(end - after) / 1000), 0;
    }
    return fprintf(stderr, "see the head of main.c\n"), 2;
}
