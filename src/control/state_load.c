/* state_load.c - the writer's memory built from the store: once at start, and again after every
 * refused commit. */
#include "control/state.h"
#include <stdio.h>
#include <stdlib.h>

struct load {
    struct state *s;
    struct conn *conn;
    struct arena *mem;
    int64_t wall_ms, boot_ms, idems_since;
    struct rows r;
    bool (*hold)(void *arg, struct err *err);
    void *arg;
    struct err *err;
};

static bool ask(struct load *l, enum statement st, const struct value *args, int n)
{
    return (!l->hold || l->hold(l->arg, l->err)) && store_query(l->conn, st, args, n, l->mem, &l->r, l->err);
}
/* What expires is looked at again when it is used; the clock may have been ahead when this was
 * loaded. */
static const int64_t slack_ms = INT64_C(24) * 3600 * 1000;

#define INT(col)      row_int(&l->r, i, col)
#define TEXT(col)     row_text(&l->r, i, col)
#define INT_LAST(col) row_int(&l->r, l->r.count - 1, col)
#define EACH(st, ...)                                                                              \
    if (!ask(l, st, __VA_ARGS__))                                                                  \
        return false;                                                                              \
    for (size_t i = 0; i < l->r.count; i++)

/* What there may be many of comes in pages, in the order of its key. */
enum { PAGE = 2000 };
static bool load_pages(struct load *l,
                       bool (*page)(struct load *l, int64_t *after, int64_t *after2))
{
    int64_t after = 0, after2 = -1;
    struct arena *whole = l->mem;
    bool ok;
    do {
        AUTO(arena_free) struct arena *mem = l->mem = arena_new();
        ok = page(l, &after, &after2);
    } while (ok && l->r.count == PAGE);
    l->mem = whole;
    return ok;
}

static bool load_tenants(struct load *l)
{
    struct state *s = l->s;
    EACH(ST_LOAD_ORG, NULL, 0)
    {
        struct org *o = ARENA_NEW(s->mem, struct org);
        o->id = INT(0), o->created_ms = INT(2);
        snprintf(o->name, sizeof o->name, "%s", TEXT(1));
        map_put(s->orgs, o->id, o);
    }
    EACH(ST_LOAD_PROJECT, NULL, 0)
    {
        struct project *p = state_add_project(s, INT(0), INT(1), TEXT(2), TEXT(4), INT(5));
        p->state = (int)INT(3), p->version = INT(6), p->weight_milli = INT(7);
        p->residency = text_given(TEXT(8)) ? arena_text(s->mem, TEXT(8)) : NULL;
        p->net = INT(9), p->mbit = INT(11), p->egress = arena_text(s->mem, TEXT(10));
    }
    EACH(ST_LOAD_LIMIT, NULL, 0)
    {
        struct project *p = map_get(s->projects, INT(0));
        struct limit limit = { { INT(3), INT(4), INT(5), INT(6), INT(7) } };
        if (p)
            books_set(&p->limits, INT(1), TEXT(2), &limit);
    }
    EACH(ST_LOAD_PERSON, NULL, 0)
    {
        struct person *u = ARENA_NEW(s->mem, struct person);
        u->id = INT(0), u->roles = (unsigned)INT(3), u->state = (int)INT(4), u->created_ms = INT(5),
        u->version = INT(6);
        snprintf(u->name, sizeof u->name, "%s", TEXT(1));
        snprintf(u->password, sizeof u->password, "%s", TEXT(2));
        map_put(s->persons, u->id, u);
        map_put_text(s->person_names, u->name, u);
    }
    EACH(ST_LOAD_MEMBER, NULL, 0)
    {
        struct project *p = map_get(s->projects, INT(0));
        struct member *m = ARENA_NEW(s->mem, struct member);
        m->person = INT(1), m->roles = (unsigned)INT(2);
        if (p)
            map_put(p->members, m->person, m);
    }
    EACH(ST_LOAD_ACCOUNT, NULL, 0)
    {
        struct account *a = ARENA_NEW(s->mem, struct account);
        a->id = INT(0), a->project = INT(1), a->roles = (unsigned)INT(3), a->state = (int)INT(4),
        a->created_ms = INT(5);
        snprintf(a->name, sizeof a->name, "%s", TEXT(2));
        map_put(s->accounts, a->id, a);
        state_name(s, THING_ACCOUNT, a->project, a->name, a);
    }
    return true;
}

/* What the sums of days tell: hours of the periods that run, and what each project had lately. */
static bool load_used(struct load *l)
{
    const int64_t day_ms = slack_ms;
    int64_t today = l->wall_ms / day_ms, month = period_begin(PERIODS - 1, l->wall_ms) / day_ms;
    struct project *p;
    for (size_t i = 0; (p = map_next(l->s->projects, &i));)
        books_roll(&p->limits, l->wall_ms);
    EACH(ST_LOAD_USED, (struct value[]){ V_INT(MIN(month, today - PAST_DAYS)) }, 1)
    {
        int64_t day = INT(3), ago = today - day;
        if (!(p = map_get(l->s->projects, INT(0))))
            continue;
        books_used_day(&p->limits, INT(1), TEXT(2), day * day_ms, INT(4));
        if (ago < 0 || ago >= PAST_DAYS)
            continue;
        p->past[ago].day_ms = day * day_ms;
        for (int k = 0; k < 3; k++)
            p->past[ago].used[k] += INT(4 + k);
    }
    return true;
}

static bool load_keys(struct load *l, int64_t *after, int64_t *after2)
{
    (void)after2;
    EACH(ST_LOAD_KEY, ((struct value[]){ V_INT(l->wall_ms - slack_ms), V_INT(*after) }), 2)
    {
        struct apikey k = { .id = INT(0),
                            .owner_kind = (enum principal)INT(1),
                            .owner = INT(2),
                            .project = INT(3),
                            .roles = (unsigned)INT(4),
                            .state = (int)INT(8),
                            .created_ms = INT(9),
                            .expires_ms = INT(10) };
        snprintf(k.name, sizeof k.name, "%s", TEXT(5));
        snprintf(k.hint, sizeof k.hint, "%s", TEXT(6));
        snprintf(k.hash, sizeof k.hash, "%s", TEXT(7));
        state_add_key(l->s, &k);
    }
    *after = l->r.count ? INT_LAST(0) : 0;
    return true;
}

static bool load_things(struct load *l)
{
    struct state *s = l->s;
    EACH(ST_LOAD_SECRET, NULL, 0)
    {
        struct secret *x = calloc(1, sizeof *x);
        if (!x)
            abort();
        x->id = INT(0), x->project = INT(1), x->created_ms = INT(4), x->updated_ms = INT(5),
        x->version = INT(6);
        snprintf(x->name, sizeof x->name, "%s", TEXT(2));
        if (!(x->sealed = strdup(TEXT(3))))
            abort();
        map_put(s->secrets, x->id, x);
        state_name(s, THING_SECRET, x->project, x->name, x);
    }
    EACH(ST_LOAD_TOKEN, (struct value[]){ V_INT(l->wall_ms - slack_ms) }, 1)
    {
        struct token *t = ARENA_NEW(s->mem, struct token);
        t->id = INT(0), t->expires_ms = INT(3);
        t->expires_boot_ms = l->boot_ms + MIN(INT(3) - l->wall_ms, INT(3) - INT(2));
        snprintf(t->hash, sizeof t->hash, "%s", TEXT(1));
        map_put_text(s->tokens, t->hash, t);
    }
    EACH(ST_LOAD_VOLUME, NULL, 0)
    {
        struct volume *v = ARENA_NEW(s->mem, struct volume);
        v->id = INT(0), v->project = INT(1), v->node = INT(3), v->created_ms = INT(4), v->job = INT(6);
        snprintf(v->name, sizeof v->name, "%s", TEXT(2));
        map_put(s->volumes, v->id, v);
        if (!v->job)
            state_name(s, THING_VOLUME, v->project, v->name, v);
    }
    EACH(ST_LOAD_IMAGE, NULL, 0)
    {
        struct image *m = ARENA_NEW(s->mem, struct image);
        m->id = INT(0), m->project = INT(1), m->size = INT(5), m->created_ms = INT(6);
        snprintf(m->name, sizeof m->name, "%s", TEXT(2));
        snprintf(m->digest, sizeof m->digest, "%s", TEXT(3));
        snprintf(m->format, sizeof m->format, "%s", TEXT(4));
        map_put(s->images, m->id, m);
        state_name(s, THING_IMAGE, m->project, m->name, m);
    }
    EACH(ST_LOAD_NODE, NULL, 0)
    {
        struct node *n = state_add_node(s, INT(0), TEXT(1), INT(5));
        n->state = (enum node_state)INT(2), n->kept = INT(4), n->version = INT(6),
        n->cordoned = INT(7) != 0, n->rotate_ms = INT(8);
        n->heard_boot_ms = l->boot_ms;
        n->lost = n->state == NODE_DOWN ? (int)INT(11) : 0;
        n->drain = (enum node_drain)INT(9), n->drain_until_ms = INT(10);
        n->drain_boot_ms = INT(10) ? l->boot_ms + MAX(INT(10) - l->wall_ms, 0) + 1 : 0;
        if (!state_node_info(n, TEXT(3), l->err) || !state_node_settings(n, TEXT(12), l->err))
            return err_wrap(l->err, "node %s", n->name);
        house_settle(s, n);
    }
    EACH(ST_LOAD_RULE, NULL, 0)
    {
        enum rule which;
        if (rule_named(TEXT(0), &which))
            s->rules.at[which] = INT(1);
    }
    EACH(ST_LOAD_RESERVE, NULL, 0)
    {
        struct reservation *v = ARENA_NEW(s->mem, struct reservation);
        v->id = INT(0), v->project = map_get(s->projects, INT(1)), v->count = INT(4);
        v->from_ms = INT(5), v->until_ms = INT(6), v->created_ms = INT(7), v->begun = INT(8) != 0;
        snprintf(v->name, sizeof v->name, "%s", TEXT(2));
        snprintf(v->gpus, sizeof v->gpus, "%s", TEXT(3));
        if (!v->project || !reservation_shape(v->gpus, &v->shape, l->err))
            return err_wrap(l->err, "reservation %s", v->name);
        map_put(s->reservations, v->id, v);
    }
    EACH(ST_LOAD_EVICTED, NULL, 0)
        state_evicted_add(s, INT(0), INT(1), INT(2));
    EACH(ST_LOAD_GONER, NULL, 0)
    {
        struct node *n = map_get(s->nodes, INT(1));
        if (n)
            node_goner(n, INT(0));
    }
    return true;
}

static bool load_jobs(struct load *l, int64_t *after, int64_t *after2)
{
    (void)after2;
    struct state *s = l->s;
    EACH(ST_LOAD_JOB, (struct value[]){ V_INT(*after) }, 1)
    {
        struct project *p = map_get(s->projects, INT(1));
        struct job *j = p ? state_add_job(s, INT(0), p, TEXT(15), l->err) : NULL;
        if (!j)
            return err_wrap(l->err, "job %lld", (long long)INT(0));
        j->owner_kind = (enum principal)INT(2), j->owner = INT(3),
        j->state = (enum job_state)INT(5);
        j->reason = (enum reason)INT(6), j->outcome = (enum outcome)INT(7), j->priority = INT(8),
        j->count = INT(9);
        j->next_task = INT(10), j->done = INT(11), j->failed = INT(12), j->cancelled = INT(13),
        j->exit_code = INT(14);
        j->flavor = arena_text(j->mem, TEXT(16));
        j->created_ms = INT(17), j->started_ms = INT(18), j->ended_ms = INT(19),
        j->version = INT(20), j->ready_ms = INT(21);
        p->jobs_live++;
        p->disk_held += job_is_instance(j) ? j->spec.disk_mib : 0;
        for (size_t v = 0; v < j->spec.volumes.count; v++) {
            struct job_mount m;
            struct err ignored;
            struct volume *vol = job_mount_parse(j->spec.volumes.at[v], j->mem, &m, &ignored)
                                     ? state_volume(s, p->id, m.volume)
                                     : NULL;
            if (vol)
                vol->users++;
        }
    }
    *after = l->r.count ? INT_LAST(0) : 0;
    return true;
}

static bool load_tasks(struct load *l, int64_t *after, int64_t *after2)
{
    struct state *s = l->s;
    EACH(ST_LOAD_TASK, ((struct value[]){ V_INT(*after), V_INT(*after2) }), 2)
    {
        struct job *j = map_get(s->jobs, INT(0));
        if (!j)
            return err_set(l->err, RC_INTERNAL,
                           "task %lld of job %lld lives, but its job has ended", (long long)INT(1),
                           (long long)INT(0));
        struct task *t = job_add_task(j, INT(1));
        t->state = (enum job_state)INT(3), t->outcome = (enum outcome)INT(4), t->tries = INT(5),
        t->faults = INT(6);
        t->exit_code = INT(8), t->signal = INT(9), t->not_before_ms = INT(11),
        t->started_ms = INT(12);
        t->evictions = INT(14);
        t->suspicions = INT(15);
        t->suspected_ms = INT(16);
        j->waiting += t->state == JOB_QUEUED;
    }
    *after = l->r.count ? INT_LAST(0) : 0;
    *after2 = l->r.count ? INT_LAST(1) : 0;
    return true;
}

static bool load_skipped(struct load *l, int64_t *after, int64_t *after2)
{
    EACH(ST_LOAD_SKIPPED, ((struct value[]){ V_INT(*after), V_INT(*after2) }), 2)
    {
        struct job *j = map_get(l->s->jobs, INT(0));
        if (j)
            job_skip(j, INT(1));
    }
    *after = l->r.count ? INT_LAST(0) : 0;
    *after2 = l->r.count ? INT_LAST(1) : 0;
    return true;
}

static bool load_attempts(struct load *l, int64_t *after, int64_t *after2)
{
    (void)after2;
    struct state *s = l->s;
    EACH(ST_LOAD_ATTEMPT, (struct value[]){ V_INT(*after) }, 1)
    {
        struct job *j = map_get(s->jobs, INT(1));
        struct task *t = j ? job_task(j, INT(2)) : NULL;
        struct node *n = map_get(s->nodes, INT(4));
        if (!t || !n)
            return err_set(l->err, RC_INTERNAL, "attempt %lld lives, but its task or node does not",
                           (long long)INT(0));
        struct attempt *a = state_add_attempt(s, INT(0), t, n, TEXT(7));
        a->state = (enum job_state)INT(5), a->run_for_s = INT(8), a->placed_ms = INT(9),
        a->started_ms = INT(10);
        a->grace_s = INT(11) >= 0 ? INT(11) : j->spec.grace_s;
        a->stop = a->state == JOB_STOPPING || INT(12);
        a->stop_as = a->state == JOB_STOPPING ? OUTCOME_CANCELLED : (enum outcome)INT(12);
        a->stop_ms = INT(14);
        if (INT(12))
            attempt_why(a, TEXT(13));
        if (a->state != JOB_PLACED || a->stop)
            attempt_begun(a);
    }
    *after = l->r.count ? INT_LAST(0) : 0;
    return true;
}

/* A job that comes after one that lives waits for it; what has ended, ended as it should, or
 * this one would not live. */
static void link_jobs(struct state *s)
{
    struct job *j;
    struct volume *v;
    for (size_t i = 0; (v = map_next(s->volumes, &i));)
        if (v->job && (j = map_get(s->jobs, v->job)) && map_get(s->nodes, v->node))
            disk_link(j, v, map_get(s->nodes, v->node));
    for (size_t i = 0; (j = map_next(s->jobs, &i));) {
        const struct job_after *list = j->spec.after.at;
        j->blocked += job_is_stopped(j);
        if (j->reason == REASON_DISK)
            disk_waits(s, j);
        for (size_t k = 0; k < j->spec.after.count; k++) {
            int64_t id;
            struct job *first
                = id_parse(list[k].job, PREFIX_JOB, &id) ? map_get(s->jobs, id) : NULL;
            if (!first)
                continue;
            job_follow(first, j->id, (enum after_when)list[k].when);
            j->blocked++;
        }
    }
}

/* The newest of them; those that the store does not find by their key, all. */
static bool load_idems(struct load *l, enum statement st, bool bare, int64_t *after, int64_t *after2)
{
    EACH(st, ((struct value[]){ V_INT(MAX(*after, l->idems_since)), V_INT(*after2) }), 2)
    {
        struct idem idem;
        if (!idem_read(&l->r, i, l->mem, &idem))
            continue;
        idem.bare = bare;
        state_idem_add(l->s, &idem);
    }
    *after = l->r.count ? INT_LAST(6) : 0;
    *after2 = l->r.count ? INT_LAST(1) : 0;
    return true;
}
#define LOADS(name, st, bare)                                                                      \
    static bool name(struct load *l, int64_t *after, int64_t *after2)                              \
    {                                                                                              \
        return load_idems(l, st, bare, after, after2);                                             \
    }
LOADS(load_job_idems, ST_LOAD_IDEM, false)
LOADS(load_event_idems, ST_LOAD_IDEM_EVENT, false)
LOADS(load_bare_job_idems, ST_LOAD_IDEM_BARE, true)
LOADS(load_bare_event_idems, ST_LOAD_IDEM_EVENT_BARE, true)

/* Since when they are loaded: a day ago, or later if there are more than so many. */
static bool idems_since(struct load *l, enum statement st)
{
    l->idems_since = l->wall_ms - IDEM_DAYS * slack_ms;
    if (!ask(l, st, (struct value[]){ V_INT(IDEM_LOAD) }, 1))
        return false;
    if (l->r.count && row_int(&l->r, 0, 0) > l->idems_since) {
        l->idems_since = row_int(&l->r, 0, 0);
        l->s->idems_ms = MAX(l->s->idems_ms, l->wall_ms);
    }
    return true;
}

static bool load_all_idems(struct load *l)
{
    if (!idems_since(l, ST_IDEM_SINCE) || !load_pages(l, load_job_idems)
        || !idems_since(l, ST_IDEM_EVENT_SINCE) || !load_pages(l, load_event_idems))
        return false;
    l->idems_since = l->wall_ms - IDEM_DAYS * slack_ms;
    return load_pages(l, load_bare_job_idems) && load_pages(l, load_bare_event_idems);
}

static bool load_numbers(struct load *l)
{
    struct state *s = l->s;
    if (!ask(l, ST_LAST_EVENT, NULL, 0))
        return false;
    s->last_event = row_int(&l->r, 0, 0);
    if (!ask(l, ST_LAST_ID, NULL, 0))
        return false;
    s->ids.last = row_int(&l->r, 0, 0);
    s->loaded_boot_ms = l->boot_ms;
    if (!ask(l, ST_LOAD_RESTORED, NULL, 0))
        return false;
    s->restored = row_int(&l->r, 0, 0) > 0;
    return true;
}

bool state_load_held(struct conn *conn, int64_t wall_ms, int64_t boot_ms, uint64_t seed,
                     bool (*hold)(void *arg, struct err *err), void *arg, struct state **out,
                     struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->mem = arena_new();
    s->slabs = slabs_new();
    s->ids.rng.s = seed;
    s->idem_most = IDEM_MOST;
    s->secrets_most = SECRETS_MOST;
    rules_usual(&s->rules);
    struct map **maps[]
        = { &s->orgs,     &s->projects, &s->project_names, &s->persons,    &s->person_names,
            &s->accounts, &s->keys,     &s->key_hashes,    &s->secrets,    &s->tokens,
            &s->volumes,  &s->images,   &s->nodes,         &s->node_names, &s->jobs,
            &s->attempts, &s->idems,    &s->ended, &s->disk_waits,     &s->houses, &s->reservations };
    for (size_t i = 0; i < COUNT(maps); i++)
        *maps[i] = map_new();
    struct load load
        = { .s = s, .conn = conn, .mem = mem, .wall_ms = wall_ms, .boot_ms = boot_ms, .hold = hold,
            .arg = arg, .err = err };
    if (!load_tenants(&load) || !load_pages(&load, load_keys) || !load_things(&load)
        || !load_pages(&load, load_jobs) || !load_pages(&load, load_tasks)
        || !load_pages(&load, load_skipped) || !load_pages(&load, load_attempts)
        || !load_used(&load) || !load_numbers(&load) || !load_all_idems(&load)) {
        state_free(s);
        return err->rc == RC_UNAVAILABLE || err->rc == RC_NOT_WRITER
                   ? false
                   : err_wrap(err, "the store does not hold together");
    }
    s->idems_from = s->idems_ms ? MAX(1, s->last_event) : 0;
    link_jobs(s);
    struct apikey *k;
    for (size_t i = 0; (k = map_next(s->keys, &i));)
        state_link_key(s, k);
    return *out = s, true;
}
