#include "door.h"
#include "model/hello.h"
#include <stdio.h>
#include <stdlib.h>

static void open_all(struct door *d, bool plan)
{
    struct err err = { 0 };
    bool made;
    struct control_config config = { .keys = "/data/keys", .run_for_s = 300, .margin_s = 15, .default_image = "host", .plan = plan };
    struct slice key;
    CHECK(store_open(d->os, "/data/arcus.db", &d->store, &err));
    CHECK(control_bootstrap(d->os, d->store, "/data/keys", "/data/admin.key", &made, &err));
    CHECK(control_open(d->os, d->store, &config, &d->control, &err));
    CHECK(file_read(d->os, "/data/admin.key", 256, d->mem, &key, &err));
    snprintf(d->admin, sizeof d->admin, "%.*s", (int)strcspn(key.at, "\n"), key.at);
    if (err.text[0])
        printf("# %s\n", err.text);
}

struct door *door_new(bool plan)
{
    struct door *d = calloc(1, sizeof *d);
    struct err err = { 0 };
    d->mem = arena_new();
    d->sim = sim_new(42);
    d->os = sim_machine(d->sim, "head");
    CHECK(dir_make(d->os, "/data", 0700, &err));
    open_all(d, plan);
    return d;
}

void door_free(struct door *d)
{
    control_close(d->control);
    store_close(d->store);
    sim_free(d->sim);
    arena_free(d->mem);
    free(d);
}

struct waiting { struct request r; bool done; };
static void replied(void *arg, struct request *r)
{
    (void)r;
    ((struct waiting *)arg)->done = true;
}
static bool is_done(void *arg) { return ((struct waiting *)arg)->done; }

static struct answer ask(struct door *d, struct waiting *w, enum verb_id verb, const char *body)
{
    struct answer a = { 0 };
    struct json *doc;
    const struct fields *takes = verbs[verb].takes;
    void *bound = arena_take(d->mem, 1, takes->size);
    w->r.verb = verb;
    w->r.mem = d->mem;
    w->r.on_reply = replied;
    w->r.arg = w;
    w->r.body = bound;
    body = body ? body : "{}";
    digest_sha256(body, strlen(body), w->r.body_hash);
    if (!json_parse(SLICE(body), d->mem, &doc, &a.err) || !bind_read(doc, takes, d->mem, bound, &w->r.given, &a.err))
        return a;
    control_ask(d->control, &w->r);
    CHECK(sim_until(d->sim, sim_now_ms(d->sim) + 60000, is_done, w));
    a.ok = w->r.ok;
    a.err = w->r.err;
    a.version = w->r.version;
    a.replayed = w->r.replayed;
    a.text = arena_text(d->mem, w->r.reply.at ? w->r.reply.at : "");
    struct err ignored;
    if (a.ok && *a.text)
        CHECK(json_parse(SLICE(a.text), d->mem, &a.json, &ignored));
    str_done(&w->r.reply);
    return a;
}

struct answer door_ask_full(struct door *d, const char *key, const char *project, enum verb_id verb, const char *body, const char *idem, int64_t if_match)
{
    struct waiting w = { .r = { .idem = idem, .if_match = if_match } };
    control_credential(d->control, key, project, "test", &w.r.from);
    return ask(d, &w, verb, body);
}

struct answer door_ask(struct door *d, const char *key, enum verb_id verb, const char *body) { return door_ask_full(d, key, NULL, verb, body, NULL, 0); }

struct answer door_ask_as(struct door *d, const struct caller *who, enum verb_id verb, const char *body)
{
    struct waiting w = { .r = { .who = *who } };
    return ask(d, &w, verb, body);
}

static bool never(void *arg) { return (void)arg, false; }
void door_run(struct door *d, int64_t ms) { sim_until(d->sim, sim_now_ms(d->sim) + ms, never, NULL); }

/* What a crashed machine leaves behind is nobody's: kept in sight, so that the leak checker does not count it. */
static struct { void *control, *store; } dead[64];
static size_t dead_count;

bool door_crash(struct door *d)
{
    sim_crash(d->sim, d->os);
    if (dead_count < COUNT(dead)) {
        dead[dead_count].control = d->control;
        dead[dead_count++].store = d->store;
    }
    d->os = sim_machine(d->sim, "head");
    d->control = NULL;
    d->store = NULL;
    open_all(d, false);
    return d->control != NULL;
}

const char *get(const struct answer *a, const char *member)
{
    const char *text = a->json ? json_text(a->json, member) : NULL;
    return text ? text : "";
}
int64_t get_int(const struct answer *a, const char *member) { return a->json ? json_int(a->json, member, -1) : -1; }

int64_t rows_in(struct door *d, const char *table)
{
    struct conn *conn;
    struct err err;
    if (!conn_open(d->store, false, &conn, &err))
        return -1;
    int64_t n = store_count(conn, table);
    conn_close(conn);
    return n;
}

void door_node(struct door *d, const char *name, int gpus, char key[static SECRET_TEXT])
{
    struct answer token = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    struct answer joined = door_ask(d, NULL, VERB_NODE_JOIN, arena_printf(d->mem, "{\"token\":\"%s\",\"name\":\"%s\"}", get(&token, "token"), name));
    CHECK(joined.ok);
    snprintf(key, SECRET_TEXT, "%s", get(&joined, "key"));
    struct hello *hello = ARENA_NEW(d->mem, struct hello);
    struct gpu_info *list = ARENA_ARRAY(d->mem, struct gpu_info, (size_t)gpus);
    for (int i = 0; i < gpus; i++)
        list[i] = (struct gpu_info){ .index = i, .uuid = arena_printf(d->mem, "GPU-%s-%d", name, i), .model = "NVIDIA H200", .mem_mib = 143771, .simulated = true, .healthy = true };
    *hello = (struct hello){ .kind = "hello", .next = 1, .info = { .hostname = name, .version = "1", .cpu_milli = 64000, .mem_mib = 262144, .disk_mib = 1 << 20, .host_image = true, .gpus = { list, (size_t)gpus } } };
    struct waiting w = { .r = { .verb = VERB_NODE_HELLO, .body = hello, .mem = d->mem, .on_reply = replied, .arg = &w } };
    control_credential(d->control, key, NULL, "test", &w.r.from);
    control_ask(d->control, &w.r);
    CHECK(sim_until(d->sim, sim_now_ms(d->sim) + 60000, is_done, &w));
    CHECK(w.r.ok);
    if (!w.r.ok)
        printf("# hello: %s\n", w.r.err.text);
    str_done(&w.r.reply);
}
