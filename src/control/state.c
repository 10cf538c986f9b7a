/* state.c - the writer's memory: adding, finding and dropping things. Loading it is in
 * state_load.c. */
#include "control/state.h"
#include "model/hold.h"
#include "wire/bind.h"
#include "base/must.h"
#include <stdio.h>
#include <stdlib.h>

static void *zeroed(size_t n)
{
    return must(calloc(1, n));
}

struct project *state_project(struct state *s, const char *ref)
{
    int64_t id;
    return id_parse(ref, PREFIX_PROJECT, &id) ? map_get(s->projects, id)
                                              : map_get_text(s->project_names, ref);
}

struct person *state_person(struct state *s, const char *ref)
{
    int64_t id;
    return id_parse(ref, PREFIX_USER, &id) ? map_get(s->persons, id)
                                           : map_get_text(s->person_names, ref);
}

struct node *state_node(struct state *s, const char *ref)
{
    int64_t id;
    return id_parse(ref, PREFIX_NODE, &id) ? map_get(s->nodes, id)
                                           : map_get_text(s->node_names, ref);
}

struct reservation *state_reservation(struct state *s, const char *ref)
{
    int64_t id;
    struct reservation *r;
    if (id_parse(ref, PREFIX_RESERVATION, &id))
        return map_get(s->reservations, id);
    for (size_t i = 0; (r = map_next(s->reservations, &i));)
        if (text_is(r->name, ref))
            return r;
    return NULL;
}

bool reservation_shape(const char *gpus, struct shape *out, struct err *err)
{
    *out = (struct shape){ 0 };
    if (!gpu_ask_parse(gpus, &out->gpu, err))
        return false;
    return out->gpu.milli > 0 || err_field(err, "gpus", "a reservation is of GPUs: say how many each place has");
}

/* Never a walk: what one tenant makes many of would be paid for by every other's wishes. */
static void *thing_named(const struct state *s, enum thing_kind kind, int64_t project, const char *name)
{
    const struct project *p = map_get(s->projects, project);
    return p && p->things[kind] ? map_get_text(p->things[kind], name) : NULL;
}

void state_name(struct state *s, enum thing_kind kind, int64_t project, const char *name, void *x)
{
    struct project *p = map_get(s->projects, project);
    if (!p)
        return;
    if (!p->things[kind])
        p->things[kind] = map_new();
    map_put_text(p->things[kind], name, x);
}

void state_unname(struct state *s, enum thing_kind kind, int64_t project, const char *name)
{
    struct project *p = map_get(s->projects, project);
    if (p && p->things[kind])
        map_take_text(p->things[kind], name);
}

size_t state_named(const struct state *s, enum thing_kind kind, int64_t project)
{
    const struct project *p = map_get(s->projects, project);
    return p && p->things[kind] ? map_count(p->things[kind]) : 0;
}

#define FIND_IN(s, map, T, kind, project_, prefix, ref)                                            \
    int64_t id_;                                                                                   \
    if (!id_parse(ref, prefix, &id_))                                                              \
        return thing_named(s, kind, project_, ref);                                                \
    T *x = map_get((s)->map, id_);                                                                 \
    return x && x->project == (project_) ? x : NULL

struct account *state_account(struct state *s, int64_t project, const char *ref)
{
    FIND_IN(s, accounts, struct account, THING_ACCOUNT, project, PREFIX_ACCOUNT, ref);
}
struct secret *state_secret(struct state *s, int64_t project, const char *ref)
{
    return thing_named(s, THING_SECRET, project, ref); /* by name alone: the name is what it is sealed with */
}
static struct volume *any_volume(struct state *s, int64_t project, const char *ref)
{
    FIND_IN(s, volumes, struct volume, THING_VOLUME, project, PREFIX_VOLUME, ref);
}
/* The disk of an instance is a filesystem that the node mounts: nobody else may reach it. */
struct volume *state_volume(struct state *s, int64_t project, const char *ref)
{
    struct volume *v = any_volume(s, project, ref);
    return v && !v->job ? v : NULL;
}
struct image *state_image(struct state *s, int64_t project, const char *ref)
{
    FIND_IN(s, images, struct image, THING_IMAGE, project, PREFIX_IMAGE, ref);
}

struct job *state_job(struct state *s, int64_t project, const char *ref)
{
    int64_t id;
    struct job *j, *newest = NULL;
    if (id_parse(ref, PREFIX_JOB, &id)) {
        j = map_get(s->jobs, id);
        return j && j->project->id == project ? j : NULL;
    }
    for (size_t i = 0; (j = map_next(s->jobs, &i));)
        if (j->project->id == project && text_is(j->name, ref) && (!newest || j->id > newest->id))
            newest = j;
    return newest;
}

static void facts_of_project(struct state *s, const struct credential *from, struct auth_facts *f)
{
    struct project *p = NULL, *any;
    if (from->project[0])
        p = state_project(s, from->project);
    else if (f->key_project)
        p = map_get(s->projects, f->key_project);
    else
        for (size_t i = 0;
             (any = map_next(s->projects, &i));) /* the first by id, as readers find it */
            if (any->state == 0 && map_get(any->members, f->owner) && (!p || any->id < p->id))
                p = any;
    if (!p || p->state != 0)
        return;
    struct member *m = f->owner_kind == PRINCIPAL_USER ? map_get(p->members, f->owner) : NULL;
    f->project_found = true;
    f->project = p->id;
    f->org = p->org;
    f->member_roles = m ? m->roles : 0;
}

void state_facts(struct state *s, const struct credential *from, struct auth_facts *f)
{
    *f = (struct auth_facts){ 0 };
    struct apikey *k = map_get_text(s->key_hashes, from->hash);
    if (!k)
        return;
    *f = (struct auth_facts){ .found = true,
                              .key = k->id,
                              .owner = k->owner,
                              .key_project = k->project,
                              .expires_ms = k->expires_ms,
                              .owner_kind = k->owner_kind,
                              .key_roles = k->roles,
                              .key_state = k->state,
                              .owner_state = 1 };
    struct person *u = k->owner_kind == PRINCIPAL_USER ? map_get(s->persons, k->owner) : NULL;
    struct account *a = k->owner_kind == PRINCIPAL_ACCOUNT ? map_get(s->accounts, k->owner) : NULL;
    struct node *n = k->owner_kind == PRINCIPAL_NODE ? map_get(s->nodes, k->owner) : NULL;
    if (u)
        f->owner_name = u->name, f->owner_roles = u->roles, f->owner_state = u->state;
    if (a)
        f->owner_name = a->name, f->owner_roles = a->roles, f->owner_state = a->state;
    if (n)
        f->owner_name = n->name, f->owner_state = 0;
    if (u || a)
        facts_of_project(s, from, f);
}

struct project *state_add_project(struct state *s, int64_t id, int64_t org, const char *name,
                                  const char *quota, int64_t created_ms)
{
    struct project *p = ARENA_NEW(s->mem, struct project);
    struct json *doc;
    struct err err;
    p->id = id;
    p->org = org;
    p->created_ms = created_ms;
    p->version = 1;
    p->weight_milli = 1000;
    p->egress = "all";
    p->members = map_new();
    snprintf(p->name, sizeof p->name, "%s", name);
    if (!json_parse(SLICE(quota), s->mem, &doc, &err)
        || !bind_read_ours(doc, &quota_fields, s->mem, &p->quota, NULL, &err))
        p->quota = QUOTA_NONE;
    map_put(s->projects, id, p);
    map_put_text(s->project_names, p->name, p);
    return p;
}

struct apikey *state_add_key(struct state *s, const struct apikey *k)
{
    struct apikey *copy = zeroed(sizeof *copy);
    *copy = *k;
    map_put(s->keys, copy->id, copy);
    map_put_text(s->key_hashes, copy->hash, copy);
    state_link_key(s, copy);
    return copy;
}

/* In whatever order they are loaded the older one is in use. */
void state_link_key(struct state *s, struct apikey *k)
{
    struct node *n = k->owner_kind == PRINCIPAL_NODE ? map_get(s->nodes, k->owner) : NULL;
    if (!n || n->key == k || n->next_key == k)
        return;
    bool older = n->key && k->id < n->key->id;
    struct apikey *newer = older ? n->key : k;
    n->key = !n->key || older ? k : n->key;
    n->next_key = newer == n->key ? NULL : newer;
}

void state_drop_key(struct state *s, struct apikey *k)
{
    struct node *n = k->owner_kind == PRINCIPAL_NODE ? map_get(s->nodes, k->owner) : NULL;
    if (n && n->key == k)
        n->key = TAKE(n->next_key);
    else if (n && n->next_key == k)
        n->next_key = NULL;
    map_take(s->keys, k->id);
    map_take_text(s->key_hashes, k->hash);
    free(k);
}

bool state_node_info(struct node *n, const char *json, struct err *err)
{
    AUTO(arena_free) struct arena *tree = arena_new(); /* only what is bound stays */
    struct json *doc;
    struct node_info info = { 0 };
    if (!json_parse(SLICE(json), tree, &doc, err))
        return false;
    if (doc->first && !bind_read_ours(doc, &node_info_fields, tree, &info, NULL, err))
        return false;
    free(n->info_text);
    arena_free(n->info_mem);
    n->info_text = must(strdup(json));
    n->info_mem = arena_new_for(strlen(json));
    bind_copy(&node_info_fields, &info, n->info_mem, &n->info);
    return true;
}

bool state_node_settings(struct node *n, const char *json, struct err *err)
{
    AUTO(arena_free) struct arena *tree = arena_new();
    struct json *doc;
    struct node_settings settings = { 0 };
    if (!json_parse(SLICE(json), tree, &doc, err) || !bind_read_ours(doc, &node_settings_fields, tree, &settings, NULL, err))
        return false;
    free(n->settings_text);
    arena_free(n->settings_mem);
    n->settings_text = must(strdup(json));
    n->settings_mem = arena_new_for(strlen(json));
    bind_copy(&node_settings_fields, &settings, n->settings_mem, &n->settings);
    return true;
}

struct topology node_where(const struct node *n)
{
    return where_over(&n->settings.where, &n->info.where);
}

struct node *state_add_node(struct state *s, int64_t id, const char *name, int64_t joined_ms)
{
    struct node *n = zeroed(sizeof *n);
    n->id = id;
    n->joined_ms = joined_ms;
    n->version = 1;
    n->state = NODE_DOWN;
    n->attempts = map_new();
    n->changed = map_new();
    n->goners = map_new();
    n->settings_text = must(strdup("{}"));
    snprintf(n->name, sizeof n->name, "%s", name);
    map_put(s->nodes, id, n);
    map_put_text(s->node_names, n->name, n);
    return n;
}

void node_goner(struct node *n, int64_t volume)
{
    map_put(n->goners, volume, (void *)id_text(zeroed(ID_TEXT), PREFIX_VOLUME, volume));
}

static void node_free(struct node *n)
{
    void *text;
    for (size_t i = 0; (text = map_next(n->goners, &i));)
        free(text);
    map_free(n->goners);
    mesh_free_node(n);
    map_free(n->attempts);
    map_free(n->changed);
    arena_free(n->info_mem);
    free(n->info_text);
    arena_free(n->live_mem);
    arena_free(n->settings_mem);
    free(n->settings_text);
    free(n->gone);
    free(n->goods);
    free(n);
}

void state_drop_node(struct state *s, struct node *n)
{
    map_take(s->nodes, n->id);
    map_take_text(s->node_names, n->name);
    node_free(n);
}

static struct job *keep_job(struct state *s, int64_t id, struct project *p, struct job *j,
                            struct arena *mem)
{
    j->id = id;
    j->project = p;
    j->priority = j->spec.priority;
    j->count = j->spec.nodes > 1 ? j->spec.nodes : j->spec.count;
    j->version = 1;
    j->name = text_given(j->spec.name) ? j->spec.name : "job";
    j->tasks = map_new();
    j->mem = mem;
    p->spec_bytes += strlen(j->spec_text);
    j->tolerates = tolerations_text(&j->spec.tolerations, j->spec.network == NETWORK_HOST, mem);
    map_put(s->jobs, id, j);
    return j;
}

struct job *state_add_job(struct state *s, int64_t id, struct project *p, const char *spec_text,
                          struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(arena_free) struct arena *tree = arena_new(); /* only what is bound stays */
    struct job *j = ARENA_NEW(mem, struct job);
    struct json *doc;
    j->spec_text = arena_text(mem, spec_text);
    if (!json_parse(SLICE(j->spec_text), tree, &doc, err)
        || !bind_read_ours(doc, &job_spec_fields, mem, &j->spec, NULL, err)
        || !job_spec_settle(&j->spec, mem, &j->shape, err))
        return NULL;
    return keep_job(s, id, p, j, TAKE(mem));
}

struct job *state_keep_job(struct state *s, int64_t id, struct project *p, const char *spec_text,
                           const struct job_spec *settled, const struct shape *shape)
{
    /* Its text, and the parts of it, each rounded up a little. */
    struct arena *mem = arena_new_for(sizeof(struct job) + 2 * strlen(spec_text) + 128);
    struct job *j = ARENA_NEW(mem, struct job);
    j->spec_text = arena_text(mem, spec_text);
    bind_copy(&job_spec_fields, settled, mem, &j->spec);
    j->shape = *shape;
    return keep_job(s, id, p, j, mem);
}

static void job_free(struct job *j)
{
    map_free(j->tasks);
    map_free(j->skipped);
    arena_free(j->mem);
}

void state_drop_job(struct state *s, struct job *j)
{
    map_take(s->jobs, j->id);
    j->project->spec_bytes -= strlen(j->spec_text);
    job_free(j);
}

void state_end_job(struct state *s, struct job *j)
{
    map_take(s->jobs, j->id);
    j->project->spec_bytes -= strlen(j->spec_text);
    map_put(s->ended, j->id, j);
}

void state_forget_ended(struct state *s)
{
    struct job *j;
    if (!map_count(s->ended))
        return;
    for (size_t i = 0; (j = map_next(s->ended, &i));)
        job_free(j);
    map_free(s->ended);
    s->ended = map_new();
}

void job_follow(struct job *j, int64_t follower, enum after_when when)
{
    if (j->follower_count == j->follower_room) {
        j->follower_room = j->follower_room ? j->follower_room * 2 : 4;
        struct follower *more = ARENA_ARRAY(j->mem, struct follower, j->follower_room);
        if (j->follower_count)
            memcpy(more, j->followers, j->follower_count * sizeof *more);
        j->followers = more;
    }
    j->followers[j->follower_count++] = (struct follower){ follower, when };
}

bool job_skips(const struct job *j, int64_t index)
{
    return j->skipped && map_get(j->skipped, index);
}

void job_skip(struct job *j, int64_t index)
{
    if (!j->skipped)
        j->skipped = map_new();
    map_put(j->skipped, index, (void *)(intptr_t)(index + 1));
    job_advance(j);
}

void job_advance(struct job *j)
{
    while (job_skips(j, j->next_task))
        map_take(j->skipped, j->next_task++);
}

bool job_waits(const struct job *j)
{
    return j->state != JOB_STOPPING && (j->next_task < j->count || j->waiting > 0);
}

bool job_gang(const struct job *j)
{
    return j->spec.nodes > 1;
}

struct task *job_task(struct job *j, int64_t index)
{
    return map_get(j->tasks, index);
}

struct task *job_add_task(struct job *j, int64_t index)
{
    struct task *t = ARENA_NEW(j->mem, struct task);
    t->job = j;
    t->index = index;
    map_put(j->tasks, index, t);
    return t;
}

/* A lease is {"cpu":milli,"mem":mib,"address":"100.64.16.2","gpus":[{"index","uuid","milli","mem_mib","simulated"}]}, of a MIG slice also "mig", "slot" and "size":
 * written by job.place, read here. Of one that was suspended also "hold", "hold_n", "hold_ms", "parked", "parts", and "away" in the place of "gpus": job_suspend.c, job_parts.c. */
enum { UUID_BYTES = 48 };
static struct attempt *attempt_of_lease(struct state *s, const char *lease_json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc = NULL, *list = NULL;
    struct err err;
    size_t count = 0;
    if (json_parse(SLICE(lease_json), mem, &doc, &err))
        list = json_get(doc, "gpus");
    bool away = doc && (!list || !list->first) && json_get(doc, "away");
    if (away)
        list = json_get(doc, "away");
    for (struct json *g = list ? list->first : NULL; g && count < SCHED_GPUS; g = g->next)
        count++;
    struct attempt *a = slabs_zeroed(s->slabs, sizeof *a + count * (sizeof *a->gpus + UUID_BYTES));
    char *uuids = (char *)(a->gpus + count);
    a->cpu_milli = doc ? json_int(doc, "cpu", 0) : 0;
    a->mem_mib = doc ? json_int(doc, "mem", 0) : 0;
    if (!doc || !ipv4_parse(json_text(doc, "address"), &a->address))
        a->address = 0;
    for (struct json *g = list ? list->first : NULL; (size_t)a->gpu_count < count; g = g->next) {
        struct order_gpu *to = &a->gpus[a->gpu_count++];
        struct json *simulated = json_get(g, "simulated");
        const char *uuid = json_text(g, "uuid");
        snprintf(uuids, UUID_BYTES, "%s", uuid ? uuid : "");
        *to = (struct order_gpu){ .index = json_int(g, "index", 0),
                                  .uuid = uuids,
                                  .milli = json_int(g, "milli", 0),
                                  .mem_mib = json_int(g, "mem_mib", 0),
                                  .simulated = simulated && simulated->flag,
                                  .slot = json_int(g, "slot", 0),
                                  .size = json_int(g, "size", 0) };
        uuids += UUID_BYTES;
        a->gpu_milli += to->milli;
        a->gpu_mib += to->mem_mib;
        a->simulated |= to->simulated;
    }
    if (away) {
        a->away = a->gpu_count;
        a->gpu_count = 0;
        a->gpu_milli = a->gpu_mib = 0;
    }
    a->own_cpu = a->cpu_milli, a->own_mem = a->mem_mib;
    if (doc) {
        a->hold = (int)MIN(MAX(json_int(doc, "hold", 0), 0), (int64_t)HOLD_STEP_COUNT - 1);
        a->hold_n = json_int(doc, "hold_n", 0);
        a->hold_ms = json_int(doc, "hold_ms", 0);
        a->parked_mib = json_int(doc, "parked", 0);
        a->idle_mib = (int32_t)MIN(MAX(json_int(doc, "idle", away ? MAX(a->parked_mib, 1) : 0), 0), INT32_MAX);
        a->returns = json_int(doc, "returns", 0) != 0;
        a->parts = attempt_parts_get(doc);
        a->hold_why = json_text(doc, "hold_why") ? must(strdup(json_text(doc, "hold_why"))) : NULL;
        a->cpu_milli = away ? 0 : a->own_cpu;
        a->mem_mib = away ? a->parked_mib : a->own_mem + a->parked_mib;
    }
    return a;
}

struct attempt *state_add_attempt(struct state *s, int64_t id, struct task *t, struct node *n,
                                  const char *lease_json)
{
    struct attempt *a = attempt_of_lease(s, lease_json);
    a->id = id;
    a->task = t;
    a->node = n;
    a->state = JOB_PLACED;
    for (int i = 0; i < a->gpu_count; i++)
        a->gpus[i].mig = a->gpus[i].size ? t->job->shape.gpu.mig : NULL;
    t->attempt = a;
    map_put(s->attempts, id, a);
    map_put(n->attempts, id, a);
    a->order_bytes = order_bytes(t->job);
    n->order_bytes += a->order_bytes;
    attempt_hold(a, 1);
    bool holder = a->gpu_count + a->away > 0; /* one that has given them back comes back to them */
    if (holder && !t->job->project->holders)
        t->job->project->holders = map_new();
    if (holder)
        map_put(t->job->project->holders, id, a);
    addresses_hold(s, a, true);
    return a;
}

size_t order_bytes(const struct job *j) /* a secret may grow until its task begins */
{
    enum { NODE_TWICE = 2 * 64 + 10 * 24 }; /* of a gang: the names of its nodes, and its addresses */
    return ORDER_BYTES + strlen(j->spec_text) + (size_t)(job_gang(j) ? j->count * NODE_TWICE : 0) + j->spec.secrets.count * (SECRET_BYTES + 64);
}

void attempt_begun(struct attempt *a)
{
    a->node->order_bytes -= a->order_bytes - ORDER_BYTES;
    a->order_bytes = ORDER_BYTES;
}

void state_evicted_add(struct state *s, int64_t attempt, int64_t at_ms, int64_t gpu_milli)
{
    if (s->evicted_count == s->evicted_room) {
        s->evicted_room = MAX(s->evicted_room * 2, 16);
        s->evicted = must(realloc(s->evicted, s->evicted_room * sizeof *s->evicted));
    }
    s->evicted[s->evicted_count].attempt = attempt;
    s->evicted[s->evicted_count].at_ms = at_ms;
    s->evicted[s->evicted_count++].gpu_milli = gpu_milli;
}

void attempt_why(struct attempt *a, const char *why)
{
    free(a->stop_why);
    a->stop_why = must(strdup(why));
}

void attempt_count(struct attempt *a)
{
    const struct job *j = a->task->job;
    const struct gpu_info *infos = a->node->info.gpus.at;
    if (a->counted)
        return;
    a->counted = zeroed(sizeof *a->counted);
    *a->counted = (struct limit_ask){ .owner = j->owner, .bound_ms = limit_bound_ms(&j->spec) };
    for (int i = 0; i < a->gpu_count; i++) {
        const char *model = NULL;
        for (size_t k = 0; k < a->node->info.gpus.count; k++)
            if (infos[k].index == a->gpus[i].index)
                model = infos[k].model;
        limit_ask_add(a->counted, model, a->gpus[i].milli);
    }
}

static void free_attempt(struct state *s, struct attempt *a)
{
    free(a->counted);
    free(a->stop_why);
    free(a->hold_why);
    free(a->parts);
    slabs_give(s->slabs, a);
}

/* What is counted for limits is counted anew: it was of other GPUs. */
void attempt_away(struct attempt *a, bool away, int64_t parked_mib)
{
    int count = a->gpu_count + a->away;
    attempt_hold(a, -1);
    free(TAKE(a->counted));
    a->parked_mib = parked_mib;
    a->cpu_milli = away ? 0 : a->own_cpu;
    a->mem_mib = away ? parked_mib : a->own_mem + parked_mib;
    a->away = away ? count : 0;
    a->gpu_count = away ? 0 : count;
    a->gpu_milli = a->gpu_mib = 0;
    for (int i = 0; i < a->gpu_count; i++)
        a->gpu_milli += a->gpus[i].milli, a->gpu_mib += a->gpus[i].mem_mib;
    attempt_hold(a, 1);
}

int64_t node_kept_mib(const struct node *n)
{
    int64_t mib = 0;
    const struct attempt *a;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        mib += a->away ? a->mem_mib : 0;
    return mib;
}

void attempt_hold(struct attempt *a, int sign)
{
    struct project *p = a->task->job->project;
    if (p->limits.count)
        attempt_count(a);
    if (a->counted)
        books_hold(&p->limits, a->counted, sign);
    p->gpu_held += sign * a->gpu_milli;
    p->cpu_held += sign * a->cpu_milli;
    p->mem_held += sign * a->mem_mib;
}

void state_drop_attempt(struct state *s, struct attempt *a)
{
    attempt_hold(a, -1);
    if (a->gpu_count + a->away)
        map_take(a->task->job->project->holders, a->id);
    addresses_hold(s, a, false);
    if (a->task->attempt == a)
        a->task->attempt = NULL;
    map_take(s->attempts, a->id);
    map_take(a->node->attempts, a->id);
    a->node->order_bytes -= a->order_bytes;
    map_take(a->node->changed, a->id);
    free_attempt(s, a);
}

void state_free(struct state *s)
{
    if (!s)
        return;
    state_forget_ended(s);
    void *x;
    for (size_t i = 0; (x = map_next(s->attempts, &i));)
        free_attempt(s, x);
    for (size_t i = 0; (x = map_next(s->jobs, &i));)
        job_free(x);
    for (size_t i = 0; (x = map_next(s->nodes, &i));)
        node_free(x);
    for (size_t i = 0; (x = map_next(s->keys, &i));)
        free(x);
    struct secret *secret;
    for (size_t i = 0; (secret = map_next(s->secrets, &i));) {
        free(secret->sealed);
        free(secret);
    }
    struct project *p;
    for (size_t i = 0; (p = map_next(s->projects, &i));) {
        map_free(p->members);
        map_free(p->holders);
        mesh_free_project(p);
        for (size_t k = 0; k < THING_KINDS; k++)
            map_free(p->things[k]);
        books_done(&p->limits);
    }
    state_idems_free(s);
    free(s->evicted);
    struct map *maps[]
        = { s->orgs,  s->projects,   s->project_names, s->persons,  s->person_names, s->accounts,
            s->keys,  s->key_hashes, s->secrets,       s->tokens,   s->volumes,      s->images,
            s->nodes, s->node_names, s->jobs,          s->attempts, s->ended, s->disk_waits, s->houses, s->reservations };
    for (size_t i = 0; i < COUNT(maps); i++)
        map_free(maps[i]);
    slabs_free(s->slabs);
    arena_free(s->mem);
    free(s);
}
