/* orders.c - placements through the door, end to end: the planner asks for up to 1,000 at a time (job.place), each wish is
 * decided, committed, and its orders come out for the nodes, as the agents' links would get them.
 *
 *   bench-orders FOLDER PLACE FLOOR [NODES [JOBS]]      PLACE and FLOOR are two fresh stores of one kind
 *
 * The floor: the very same commits, row by row, put into a second store that was brought to the same state before. */
#include "control/control_internal.h"
#include "model/hello.h"
#include "store/store_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GPUS = 8 };

struct noted { struct noted *next; struct write *writes; size_t count; bool places; };
struct bench {
    struct os *os;
    struct store *store;
    struct control *control;
    struct arena *mem;
    char admin[SECRET_TEXT];
    int64_t placed, wanted;
    size_t bytes;
    double began, ended;
};
static struct {                 /* the store's commits pass by here, on the actor that makes them */
    const struct backend *how;
    struct backend noting;
    struct arena *mem;
    struct noted *first, **end;
} notes = { .end = &notes.first };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench-orders: %s: %s\n", what, why);
    exit(1);
}

/* --- the commits are noted as they pass */

static bool note_commit(struct conn *c, const struct write *writes, size_t count, bool *unknown, struct err *err)
{
    struct noted *n = ARENA_NEW(notes.mem, struct noted);
    *n = (struct noted){ .writes = ARENA_ARRAY(notes.mem, struct write, count), .count = count };
    for (size_t i = 0; i < count; i++) {
        struct value *args = ARENA_ARRAY(notes.mem, struct value, (size_t)writes[i].count);
        for (int k = 0; k < writes[i].count; k++) {
            args[k] = writes[i].args[k];
            if (args[k].type == VALUE_TEXT || args[k].type == VALUE_BLOB)
                args[k].text = arena_bytes(notes.mem, args[k].text, args[k].len);
        }
        n->writes[i] = (struct write){ writes[i].st, writes[i].count, args };
        n->places |= writes[i].st == ST_ATTEMPT_ADD;
    }
    *notes.end = n;
    notes.end = &n->next;
    return notes.how->commit(c, writes, count, unknown, err);
}

static double floor_seconds(struct bench *b, const char *place, const char *folder)
{
    struct store *s;
    struct conn *c;
    struct err err = { 0 };
    bool made, unknown;
    double took = 0;
    const char *keys = arena_printf(b->mem, "%s/keys", folder), *admin = arena_printf(b->mem, "%s/admin.key", folder);
    if (!store_open(b->os, place, &s, &err) || !control_bootstrap(b->os, s, keys, admin, &made, &err) || !conn_open(s, true, &c, &err))
        give_up("the floor", err.text);
    for (const struct noted *n = notes.first; n; n = n->next) {
        double t = now();
        if (!store_commit(c, n->writes, n->count, &unknown, &err))
            give_up("the floor", err.text);
        took += n->places ? now() - t : 0;
    }
    conn_close(c);
    store_close(s);
    return took;
}

/* --- asking */

static void replied(void *arg, struct request *r)
{
    (void)r;
    os_stop(((struct bench *)arg)->os);
}

static const char *ask(struct bench *b, const char *key, enum verb_id verb, const void *body, struct arena *mem, const char *member)
{
    struct request r = { .verb = verb, .mem = mem, .body = body, .on_reply = replied, .arg = b };
    struct json *doc;
    struct err err;
    control_credential(b->control, key, NULL, "bench", &r.from);
    control_ask(b->control, &r);
    os_run(b->os);
    if (!r.ok)
        give_up(verbs[verb].name, r.err.text);
    const char *text = member && json_parse(SLICE(arena_text(mem, r.reply.at)), mem, &doc, &err) ? json_text(doc, member) : NULL;
    str_done(&r.reply);
    return text;
}

static void node(struct bench *b, int number)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *name = arena_printf(mem, "node-%d", number);
    const char *token = ask(b, b->admin, VERB_NODE_TOKEN, &(struct node_token_ask){ .expires_in_s = 3600 }, mem, "token");
    const char *key = ask(b, NULL, VERB_NODE_JOIN, &(struct node_join_ask){ .token = token, .name = name }, mem, "key");
    struct gpu_info gpus[GPUS];
    for (int i = 0; i < GPUS; i++)
        gpus[i] = (struct gpu_info){ .index = i, .uuid = arena_printf(mem, "GPU-%08d-0000-0000-0000-%012d", number, i),
                                     .model = "NVIDIA H200", .mem_mib = 143771, .simulated = true, .healthy = true };
    struct hello h = { .kind = "hello", .next = 1, .beat = 1 };
    h.info = (struct node_info){ .hostname = name, .version = "bench", .cpu_milli = 192000, .mem_mib = 1 << 20, .disk_mib = 1 << 20,
                                 .host_image = true, .gpus = { gpus, GPUS } };
    ask(b, key, VERB_NODE_HELLO, &h, mem, NULL);
}

static void submit(struct bench *b, int count)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct job_spec *jobs = ARENA_ARRAY(mem, struct job_spec, (size_t)count);
    static const char *words[] = { "true" };
    for (int i = 0; i < count; i++)
        jobs[i] = (struct job_spec){ .name = "j", .command = { words, 1 }, .gpus = "1", .cpu_milli = 1000, .mem_mib = 1024, .shm_mib = 64,
                                     .disk_mib = 1024, .count = 1, .priority = 50, .grace_s = 30, .log_mib = 100 };
    struct job_batch_ask all = { .jobs = { jobs, (size_t)count } };
    ask(b, b->admin, VERB_JOB_BATCH, &all, mem, NULL);
}

static void on_commit(void *arg, const struct commit *k)
{
    struct bench *b = arg;
    for (size_t i = 0; i < k->event_count; i++) {
        b->placed += text_is(k->events[i].kind, "task.placed");
        if (!b->began && text_is(k->events[i].kind, "jobs.queued"))
            b->began = now();
    }
    for (size_t i = 0; i < k->push_count; i++)
        b->bytes += k->pushes[i].json.len;
    if (b->placed == b->wanted && !b->ended) {
        b->ended = now();
        os_stop(b->os);
    }
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    bool made;
    if (argc < 4)
        return fprintf(stderr, "usage: bench-orders FOLDER PLACE FLOOR [NODES [JOBS]]\n"), 1;
    int nodes = argc > 4 ? atoi(argv[4]) : 1250, jobs = argc > 5 ? MIN(atoi(argv[5]), JOB_BATCH_MAX) : JOB_BATCH_MAX;
    struct bench b = { .os = os_real_new(&err), .mem = arena_new(), .wanted = jobs };
    const char *keys = arena_printf(b.mem, "%s/keys", argv[1]), *admin = arena_printf(b.mem, "%s/admin.key", argv[1]);
    struct control_config config = { .keys = keys, .run_for_s = 300, .margin_s = 15, .default_image = "host", .plan = true };
    struct slice key;
    if (!b.os || !dir_make(b.os, keys, 0700, &err) || !store_open(b.os, argv[2], &b.store, &err)
        || !control_bootstrap(b.os, b.store, keys, admin, &made, &err) || !control_open(b.os, b.store, &config, &b.control, &err)
        || !file_read(b.os, admin, 256, b.mem, &key, &err))
        give_up("start", err.text);
    snprintf(b.admin, sizeof b.admin, "%.*s", (int)strcspn(key.at, "\n"), key.at);
    notes.mem = arena_new();
    notes.how = b.store->how;
    notes.noting = *notes.how;
    notes.noting.commit = note_commit;
    b.store->how = &notes.noting;
    control_follow(b.control, on_commit, &b);
    for (int i = 0; i < nodes; i++)
        node(&b, i);
    submit(&b, jobs);
    while (!b.ended)
        os_run(b.os);
    control_close(b.control);
    b.store->how = notes.how;
    store_close(b.store);
    double took = b.ended - b.began, least = floor_seconds(&b, argv[3], argv[1]);
    printf("%d placements on %d nodes: %.0f a second with the orders out (%.1f KB each); the store alone, the same commits: %.0f; ratio %.2f\n",
           jobs, nodes, jobs / took, (double)b.bytes / jobs / 1024, jobs / least, least / took);
    arena_free(notes.mem);
    arena_free(b.mem);
    os_free(b.os);
    return 0;
}
