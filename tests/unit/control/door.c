#include "door.h"
#include <stdio.h>
#include <stdlib.h>

static void open_all(struct door *d)
{
    struct err err = { 0 };
    bool made;
    struct control_config config = { .keys = "/data/keys",
                                     .run_for_s = 300,
                                     .margin_s = 15,
                                     .default_image = "host",
                                     .keep_jobs_s = 30 * 86400,
                                     .keep_events_s = 30 * 86400,
                                     .keep_usage_s = 90 * 86400,
                                     .plan = d->plan };
    struct slice key;
    d->control = NULL;
    d->store = NULL;
    d->conn = NULL;
    CHECK(store_open(d->os, "/data/arcus.db", &d->store, &err));
    CHECK(control_bootstrap(d->os, d->store, "/data/keys", "/data/admin.key", &made, &err));
    CHECK(control_open(d->os, d->store, &config, &d->control, &err));
    CHECK(conn_open(d->store, false, &d->conn, &err));
    CHECK(file_read(d->os, "/data/admin.key", 256, d->mem, &key, &err));
    snprintf(d->admin, sizeof d->admin, "%.*s", (int)strcspn(key.at, "\n"), key.at);
    if (err.text[0])
        printf("# %s\n", err.text);
}

static struct door *machine(bool plan, uint64_t seed)
{
    struct door *d = calloc(1, sizeof *d);
    struct err err = { 0 };
    d->mem = arena_new();
    d->sim = sim_new(seed);
    d->os = sim_machine(d->sim, "head");
    d->plan = plan;
    CHECK(dir_make(d->os, "/data/keys", 0700, &err));
    return d;
}

struct door *door_seed(bool plan, uint64_t seed)
{
    struct door *d = machine(plan, seed);
    open_all(d);
    return d;
}
struct door *door_new(bool plan)
{
    return door_seed(plan, 42);
}

static struct sim **kept;
static size_t kept_count;

static void shut(struct door *d)
{
    conn_close(TAKE(d->conn));
    control_close(TAKE(d->control));
    store_close(TAKE(d->store));
}

void door_free(struct door *d)
{
    door_run(d, 5); /* what is on its way arrives */
    shut(d);
    if (d->crashed) {
        kept = realloc(kept, (kept_count + 1) * sizeof *kept);
        kept[kept_count++] = d->sim;
    } else {
        sim_free(d->sim);
    }
    arena_free(d->mem);
    free(d);
}

bool door_crash(struct door *d)
{
    sim_crash(d->sim, d->os);
    d->crashed = true;
    shut(d);
    d->os = sim_machine(d->sim, "head");
    open_all(d);
    return d->control != NULL;
}

static const char *const paths[] = { "/data/arcus.db", "/data/arcus.db-wal", "/data/keys/hash.key",
                                     "/data/keys/seal.key", "/data/admin.key" };

void door_freeze(struct door *d, struct frozen *out)
{
    *out = (struct frozen){ 0 };
    door_run(d, 5);
    shut(d);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct slice bytes;
        struct err err;
        if (!file_read(d->os, paths[i], 64 << 20, d->mem, &bytes, &err))
            continue;
        char *copy = malloc(bytes.len + 1);
        memcpy(copy, bytes.at, bytes.len);
        snprintf(out->files[out->count].path, sizeof out->files[0].path, "%s", paths[i]);
        out->files[out->count++].bytes = (struct slice){ copy, bytes.len };
    }
    sim_free(d->sim);
    arena_free(d->mem);
    free(d);
}

void frozen_done(struct frozen *f)
{
    for (size_t i = 0; i < f->count; i++)
        free((char *)f->files[i].bytes.at);
}

struct door *door_thaw(const struct frozen *f, bool plan)
{
    struct door *d = machine(plan, 7);
    struct err err = { 0 };
    for (size_t i = 0; i < f->count; i++)
        CHECK(file_replace(d->os, f->files[i].path, f->files[i].bytes, 0600, &err));
    open_all(d);
    return d;
}

bool on_disk(struct door *d, const char *bytes)
{
    for (size_t i = 0; i < 2; i++) {
        struct slice file;
        struct err err;
        AUTO(arena_free) struct arena *mem = arena_new();
        if (file_read(d->os, paths[i], 64 << 20, mem, &file, &err)
            && memmem(file.at, file.len, bytes, strlen(bytes)))
            return true;
    }
    return false;
}

struct state *memory_of(struct door *d)
{
    actor_settle(d->control->writer.commits);   /* and the store has it too */
    return d->control->writer.state;
}

/* --- requests */
static void replied(void *arg, struct request *r)
{
    (void)r;
    ((struct flying *)arg)->done = true;
}
static bool is_done(void *arg)
{
    return ((struct flying *)arg)->done;
}

static struct flying *flying_new(struct door *d, enum verb_id verb, const void *body)
{
    struct flying *f = ARENA_NEW(d->mem, struct flying);
    f->r = (struct request){
        .verb = verb, .mem = d->mem, .on_reply = replied, .arg = f, .body = body
    };
    return f;
}

struct answer door_landed(struct door *d, struct flying *f)
{
    struct answer a = { 0 };
    struct err ignored;
    CHECK(sim_until(d->sim, sim_now_ms(d->sim) + 60000, is_done, f));
    a.ok = f->r.ok;
    a.err = f->r.err;
    a.version = f->r.version;
    a.replayed = f->r.replayed;
    a.text = arena_text(d->mem, f->r.reply.at ? f->r.reply.at : "");
    if (a.ok && *a.text && f->r.verb != VERB_METRICS)     /* that one is no JSON */
        CHECK(json_parse(SLICE(a.text), d->mem, &a.json, &ignored));
    str_done(&f->r.reply);
    return a;
}

static bool bind_body(struct door *d, struct flying *f, const char *body, struct err *err)
{
    const struct fields *takes = verbs[f->r.verb].takes;
    void *bound = arena_take(d->mem, 1, takes->size);
    struct json *doc;
    body = body ? body : "{}";
    digest_sha256(body, strlen(body), f->r.body_hash);
    f->r.body = bound;
    return json_parse(SLICE(body), d->mem, &doc, err)
           && bind_read(doc, takes, d->mem, bound, &f->r.given, err);
}

struct flying *door_send(struct door *d, const char *key, const char *project, enum verb_id verb,
                         const char *body, const char *idem)
{
    struct flying *f = flying_new(d, verb, NULL);
    struct err err = { 0 };
    f->r.idem = idem;
    control_credential(d->control, key, project, "test", &f->r.from);
    if (!bind_body(d, f, body, &err)) {
        f->r.err = err;
        f->done = true;
        return f;
    }
    control_ask(d->control, &f->r);
    return f;
}

struct answer door_ask_full(struct door *d, const char *key, const char *project, enum verb_id verb,
                            const char *body, const char *idem, int64_t if_match)
{
    struct flying *f = flying_new(d, verb, NULL);
    struct answer bad = { 0 };
    f->r.idem = idem;
    f->r.if_match = if_match;
    control_credential(d->control, key, project, "test", &f->r.from);
    if (!bind_body(d, f, body, &bad.err))
        return bad;
    control_ask(d->control, &f->r);
    return door_landed(d, f);
}

struct answer door_ask(struct door *d, const char *key, enum verb_id verb, const char *body)
{
    return door_ask_full(d, key, NULL, verb, body, NULL, 0);
}

struct answer door_ask_bound(struct door *d, const char *key, const char *project,
                             enum verb_id verb, const void *body)
{
    struct flying *f = flying_new(d, verb, body);
    control_credential(d->control, key, project, "test", &f->r.from);
    control_ask(d->control, &f->r);
    return door_landed(d, f);
}

struct answer door_ask_as(struct door *d, const struct caller *who, enum verb_id verb,
                          const void *body)
{
    struct flying *f = flying_new(d, verb, body);
    f->r.who = *who;
    control_ask(d->control, &f->r);
    return door_landed(d, f);
}

static bool never(void *arg)
{
    return (void)arg, false;
}
void door_run(struct door *d, int64_t ms)
{
    sim_until(d->sim, sim_now_ms(d->sim) + ms, never, NULL);
}

/* --- answers */
const char *get(const struct answer *a, const char *member)
{
    const char *text = a->json ? json_text(a->json, member) : NULL;
    return text ? text : "";
}
int64_t get_int(const struct answer *a, const char *member)
{
    return a->json ? json_int(a->json, member, -1) : -1;
}

static struct json *items(const struct answer *a)
{
    return a->json ? json_get(a->json, "items") : NULL;
}

size_t item_count(const struct answer *a)
{
    size_t n = 0;
    struct json *list = items(a);
    for (struct json *i = list ? list->first : NULL; i; i = i->next)
        n++;
    return n;
}

const char *item(struct door *d, const struct answer *a, size_t at, const char *member)
{
    struct json *list = items(a), *i = list ? list->first : NULL;
    for (; i && at; at--)
        i = i->next;
    struct json *v = i ? json_get(i, member) : NULL;
    if (!v)
        return NULL;
    return v->type == JSON_NUMBER ? FMT(d, "%lld", (long long)json_int(i, member, 0))
                                  : json_text(i, member);
}

int64_t rows_in(struct door *d, const char *table)
{
    return store_count(d->conn, table);
}

/* --- nodes */
struct answer door_hello(struct door *d, const char *key, const char *name, int gpus, int64_t next,
                         struct texts running)
{
    struct hello *hello = ARENA_NEW(d->mem, struct hello);
    struct gpu_info *list = ARENA_ARRAY(d->mem, struct gpu_info, (size_t)gpus);
    for (int i = 0; i < gpus; i++)
        list[i] = (struct gpu_info){ .index = i,
                                     .uuid = FMT(d, "GPU-%s-%d", name, i),
                                     .model = "NVIDIA H200",
                                     .mem_mib = 143771,
                                     .simulated = true,
                                     .healthy = true };
    *hello = (struct hello){ .kind = "hello", .next = next, .running = running, .beat = 1 };
    hello->info = (struct node_info){ .hostname = name,
                                      .version = "1",
                                      .cpu_milli = 64000,
                                      .mem_mib = 262144,
                                      .disk_mib = 1 << 20,
                                      .host_image = true,
                                      .disks = !d->no_disks,
                                      .network = !d->no_network,
                                      .underlay = d->no_network ? NULL : d->underlay ? d->underlay : "192.0.2.1",
                                      .gpus = { list, (size_t)gpus } };
    return door_ask_bound(d, key, NULL, VERB_NODE_HELLO, hello);
}

void door_node(struct door *d, const char *name, int gpus, char key[static SECRET_TEXT])
{
    struct answer token = door_ask(d, d->admin, VERB_NODE_TOKEN, NULL);
    struct answer joined
        = door_ask(d, NULL, VERB_NODE_JOIN,
                   FMT(d, "{\"token\":\"%s\",\"name\":\"%s\"}", get(&token, "token"), name));
    CHECK(joined.ok);
    snprintf(key, SECRET_TEXT, "%s", get(&joined, "key"));
    CHECK(door_hello(d, key, name, gpus, 1, (struct texts){ 0 }).ok);
}

/* As a node does: it tells with an end when that began. */
struct answer door_report(struct door *d, const char *key, int64_t n, const char *attempt,
                          const char *news, const char *more)
{
    int64_t id = 0;
    struct attempt *a = id_parse(attempt, PREFIX_ATTEMPT, &id) && memory_of(d) ? map_get(memory_of(d)->attempts, id) : NULL;
    bool adds = a && a->started_ms && text_is(news, "ended") && !(more && strstr(more, "started_ms"));
    return door_ask(d, key, VERB_NODE_REPORT,
                    FMT(d,
                        "{\"kind\":\"report\",\"items\":[{\"n\":%lld,\"attempt\":\"%s\",\"news\":"
                        "\"%s\",\"at_ms\":%lld%s%s}]}",
                        (long long)n, attempt, news, (long long)os_wall_ms(d->os), more ? more : "",
                        adds ? FMT(d, ",\"started_ms\":%lld", (long long)a->started_ms) : ""));
}

/* --- people */
static int64_t owner_of(struct door *d, enum principal kind, const char *owner)
{
    struct state *s = memory_of(d);
    struct account *a;
    if (kind == PRINCIPAL_USER)
        return state_person(s, owner)->id;
    for (size_t i = 0; (a = map_next(s->accounts, &i));)
        if (text_is(a->name, owner))
            return a->id;
    return 0;
}

const char *door_grant(struct door *d, enum principal kind, const char *owner, const char *project,
                       unsigned roles, int64_t expires_ms)
{
    struct batch b = { .mem = arena_new() };
    struct request r = { .verb = VERB_KEY_CREATE, .who = system_caller };
    struct call c = { .control = d->control,
                      .s = memory_of(d),
                      .batch = &b,
                      .r = &r,
                      .who = &r.who,
                      .mem = d->mem,
                      .now_ms = os_wall_ms(d->os) };
    struct project *p = project ? state_project(memory_of(d), project) : NULL;
    struct key_view view;
    struct err err;
    bool unknown;
    key_make(&c, kind, owner_of(d, kind, owner), p ? p->id : 0, roles, "granted", "ak_", expires_ms,
             &view);
    CHECK(store_commit(d->control->writer.conn, b.writes, b.write_count, &unknown, &err));
    arena_free(b.mem);
    return view.key;
}

/* --- jobs */
const char *door_submit(struct door *d, const char *key, const char *body)
{
    struct answer a = door_ask(d, key, VERB_JOB_SUBMIT, body);
    if (!a.ok)
        printf("# %s: %s\n", a.err.field, a.err.text);
    return get(&a, "id");
}

const char *job_word(struct door *d, const char *job, const char *member)
{
    struct answer a = door_ask(d, d->admin, VERB_JOB_GET, FMT(d, "{\"job\":\"%s\"}", job));
    return get(&a, member);
}
int64_t job_number(struct door *d, const char *job, const char *member)
{
    struct answer a = door_ask(d, d->admin, VERB_JOB_GET, FMT(d, "{\"job\":\"%s\"}", job));
    return get_int(&a, member);
}

const char *door_attempt(struct door *d, const char *job, int64_t task)
{
    struct answer a = door_ask(d, d->admin, VERB_JOB_LOGS,
                               FMT(d, "{\"job\":\"%s\",\"task\":%lld}", job, (long long)task));
    return get(&a, "attempt");
}

bool door_place(struct door *d, const char *job, int64_t task, const char *node, int gpu)
{
    struct placement *p = ARENA_NEW(d->mem, struct placement);
    struct order_gpu *g = ARENA_NEW(d->mem, struct order_gpu);
    struct place_ask *ask = ARENA_NEW(d->mem, struct place_ask);
    struct node *n = state_node(memory_of(d), node);
    int64_t before = rows_in(d, "attempt");
    *g = (struct order_gpu){ .index = gpu, .uuid = "", .milli = 1000, .mem_mib = 143771 };
    *p = (struct placement){ .task = task, .node = n ? n->id : 0, .gpus = { g, gpu >= 0 } };
    CHECK(id_parse(job, PREFIX_JOB, &p->job));
    ask->placements = (struct objects){ p, 1 };
    CHECK(door_ask_as(d, &system_caller, VERB_JOB_PLACE, ask).ok);
    return rows_in(d, "attempt") == before + 1;
}

size_t door_events(struct door *d, const char *kind)
{
    struct answer a = door_ask(d, d->admin, VERB_EVENT_LIST, "{\"limit\":1000}");
    size_t n = 0;
    for (size_t i = 0; i < item_count(&a); i++)
        n += text_is(item(d, &a, i, "name"), kind);
    return n;
}
