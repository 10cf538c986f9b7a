/* tenancy.c - organisations, projects, people, service accounts and who is in what. Platform
 * things are the operators'; what is inside a project is its admins'. Passwords are hashed by
 * the slow one before the writer sees the verb. */
#include "control/call.h"
#include <stdio.h>

static const char *quota_json(struct call *c, const struct quota *q)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &quota_fields, q);
    return arena_text(c->mem, text.at);
}

bool org_create(struct call *c, const void *body, struct err *err)
{
    const struct org_ask *ask = body;
    struct org *o;
    for (size_t i = 0; (o = map_next(c->s->orgs, &i));)
        if (text_is(o->name, ask->name))
            return err_set(err, RC_CONFLICT, "the name '%s' is taken by another organisation",
                           ask->name);
    o = ARENA_NEW(c->s->mem, struct org);
    o->id = new_id(c);
    o->created_ms = c->now_ms;
    snprintf(o->name, sizeof o->name, "%s", ask->name);
    map_put(c->s->orgs, o->id, o);
    EMIT(c, ORG_ADD, V_INT(o->id), V_TEXT(o->name), V_INT(o->created_ms));
    emit_event(c, 0, "org.created", id_of(c, PREFIX_ORG, o->id), NULL);
    struct simple_view view
        = { .id = o->id, .name = o->name, .state = "active", .created_ms = o->created_ms };
    reply_view(c, &simple_view_fields, &view);
    return true;
}

static bool org_find(struct state *s, const char *ref, struct org **out, struct err *err)
{
    int64_t id;
    struct org *o;
    bool by_id = text_given(ref) && id_parse(ref, PREFIX_ORG, &id);
    if (!text_given(ref) && map_count(s->orgs) > 1)
        return err_field(err, "org", "there are several organisations; say which one");
    for (size_t i = 0; (o = map_next(s->orgs, &i));)
        if (!text_given(ref) || (by_id ? o->id == id : text_is(o->name, ref)))
            return *out = o, true;
    return err_field(err, "org", "there is no organisation '%s'", text_given(ref) ? ref : "");
}

static void project_reply(struct call *c, const struct project *p)
{
    const struct org *o = map_get(c->s->orgs, p->org);
    struct project_view view = { .id = p->id,
                                 .name = p->name,
                                 .state = "active",
                                 .org = o ? o->name : "",
                                 .quota = p->quota,
                                 .weight_milli = p->weight_milli,
                                 .residency = p->residency ? p->residency : "",
                                 .range = net_range(c->mem, p->net),
                                 .egress = p->egress,
                                 .mbit = p->mbit,
                                 .created_ms = p->created_ms,
                                 .version = p->version };
    c->r->version = p->version;
    reply_view(c, &project_view_fields, &view);
}

static void tell_quota(struct call *c, const struct project *p)
{
    sched_of_project(p, emit_news(c, SCHED_PROJECT));
}

static void weigh(struct call *c, struct project *p, const struct project_ask *ask)
{
    if (!ask->weight_milli || ask->weight_milli == p->weight_milli)
        return;
    p->weight_milli = ask->weight_milli;
    EMIT(c, PROJECT_WEIGHT, V_INT(p->id), V_INT(p->weight_milli));
}

/* words: as words_parse has settled them. */
static void reside(struct call *c, struct project *p, const char *words)
{
    if (text_is(words, p->residency ? p->residency : ""))
        return;
    p->residency = text_given(words) ? arena_text(c->s->mem, words) : NULL;
    EMIT(c, PROJECT_RESIDENCY, V_INT(p->id), V_TEXT(words));
}

/* Tasks that run hear of it too: their nodes are told. */
static void connect(struct call *c, struct project *p, const char *egress, int64_t mbit)
{
    if (text_is(egress, p->egress) && mbit == p->mbit)
        return;
    p->egress = arena_text(c->s->mem, egress);
    p->mbit = mbit;
    EMIT(c, PROJECT_EGRESS, V_INT(p->id), V_TEXT(egress), V_INT(mbit));
    struct attempt *a;
    for (size_t i = 0; (a = map_next(c->s->attempts, &i));)
        if (a->task->job->project == p && a->address)
            node_changed(c, a->node, a);
}

bool project_create(struct call *c, const void *body, struct err *err)
{
    const struct project_ask *ask = body;
    struct org *o;
    const char *residency = "", *egress = "all";
    if (!org_find(c->s, ask->org, &o, err) || !name_check(ask->name, PREFIX_PROJECT, err)
        || !words_parse(ask->residency ? ask->residency : "", "residency", c->mem, &residency, err) || !egress_parse(ask->egress, c->mem, &egress, err))
        return false;
    if (map_get_text(c->s->project_names, ask->name))
        return err_set(err, RC_CONFLICT, "the name '%s' is taken by another project", ask->name);
    struct project *p = state_add_project(c->s, new_id(c), o->id, ask->name,
                                          quota_json(c, &ask->quota), c->now_ms);
    EMIT(c, PROJECT_ADD, V_INT(p->id), V_INT(p->org), V_TEXT(p->name), V_INT(0),
         V_TEXT(quota_json(c, &p->quota)), V_INT(p->created_ms));
    weigh(c, p, ask);
    reside(c, p, residency);
    connect(c, p, egress, ask->mbit);
    if (c->who->kind == PRINCIPAL_USER) { /* whoever makes it can let others in */
        struct member *m = ARENA_NEW(c->s->mem, struct member);
        *m = (struct member){ c->who->id, ROLE_ADMIN };
        map_put(p->members, m->person, m);
        EMIT(c, MEMBER_SET, V_INT(p->id), V_INT(m->person), V_INT(m->roles));
    }
    emit_event(c, p->id, "project.created", id_of(c, PREFIX_PROJECT, p->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", p->name));
    tell_quota(c, p);
    project_reply(c, p);
    return true;
}

bool project_update(struct call *c, const void *body, struct err *err)
{
    const struct project_ask *ask = body;
    struct project *p = state_project(c->s, ask->project);
    if (!p)
        return err_set(err, RC_NOT_FOUND, "there is no project '%s'", ask->project);
    if (c->r->if_match && c->r->if_match != p->version)
        return err_set(err, RC_STALE, "project %s has changed meanwhile (version %lld); look again",
                       p->name, (long long)p->version);
    const char *residency = p->residency ? p->residency : "", *egress = p->egress;
    if (was_given(c, "residency") && !words_parse(ask->residency ? ask->residency : "", "residency", c->mem, &residency, err))
        return false;
    if (was_given(c, "egress") && !egress_parse(ask->egress, c->mem, &egress, err))
        return false;
    const struct {
        const char *name;
        const int64_t *from;
        int64_t *to;
    } parts[] = {
        /* what is not given stays */
        { "gpus", &ask->quota.gpu_milli, &p->quota.gpu_milli },
        { "cpus", &ask->quota.cpu_milli, &p->quota.cpu_milli },
        { "memory_mib", &ask->quota.mem_mib, &p->quota.mem_mib },
        { "jobs", &ask->quota.jobs, &p->quota.jobs },
        { "disk_mib", &ask->quota.disk_mib, &p->quota.disk_mib },
    };
    for (size_t i = 0; i < COUNT(parts); i++)
        if (was_given(c, parts[i].name))
            *parts[i].to = *parts[i].from;
    weigh(c, p, ask);
    reside(c, p, residency);
    connect(c, p, egress, was_given(c, "bandwidth") ? ask->mbit : p->mbit);
    p->version++;
    EMIT(c, PROJECT_SET, V_INT(p->id), V_INT(p->state), V_TEXT(quota_json(c, &p->quota)),
         V_INT(p->version));
    emit_event(c, p->id, "project.updated", id_of(c, PREFIX_PROJECT, p->id),
               arena_printf(c->mem, "{\"quota\":%s,\"residency\":\"%s\",\"egress\":\"%s\"}", quota_json(c, &p->quota), residency, p->egress));
    tell_quota(c, p);
    project_reply(c, p);
    return true;
}

static bool platform_roles(const char *text, unsigned *roles, struct err *err)
{
    *roles = text_given(text) ? role_parse(text) : 0;
    if (text_given(text) && (!*roles || (*roles & ~(unsigned)PLATFORM_ROLES)))
        return err_field(err, "roles",
                         "platform roles are operator and auditor; roles in a project are given "
                         "with: arcus members set");
    return true;
}

static bool project_roles(const char *text, unsigned *roles, struct err *err)
{
    *roles = role_parse(text);
    if (!*roles || (*roles & ~(unsigned)PROJECT_ROLES))
        return err_field(err, "roles", "roles in a project are viewer, developer and admin");
    return true;
}

/* The password becomes its hash before the writer sees it; the hash travels in the same member. */
bool user_prepare(struct call *c, const void *body, struct err *err)
{
    struct user_ask *ask = (struct user_ask *)body; /* the request's own copy */
    if (!text_given(ask->password))
        return true;
    if (strlen(ask->password) < 8)
        return err_field(err, "password", "a password has at least 8 letters");
    char *hash = arena_take(c->mem, 128, 1);
    if (!password_hash(ask->password, hash))
        return err_set(err, RC_UNAVAILABLE, "not enough memory to hash a password; try again");
    ask->password = hash;
    return true;
}

static void user_reply(struct call *c, const struct person *u)
{
    char roles[96];
    struct user_view view = { .id = u->id,
                              .name = u->name,
                              .state = u->state ? "disabled" : "active",
                              .roles = role_text(roles, u->roles),
                              .created_ms = u->created_ms,
                              .version = u->version };
    c->r->version = u->version;
    reply_view(c, &user_view_fields, &view);
}

bool user_create(struct call *c, const void *body, struct err *err)
{
    const struct user_ask *ask = body;
    unsigned roles;
    if (!platform_roles(ask->roles, &roles, err) || !name_check(ask->name, PREFIX_USER, err))
        return false;
    if (map_get_text(c->s->person_names, ask->name))
        return err_set(err, RC_CONFLICT, "the name '%s' is taken by another user", ask->name);
    struct person *u = ARENA_NEW(c->s->mem, struct person);
    *u = (struct person){ .id = new_id(c), .created_ms = c->now_ms, .version = 1, .roles = roles };
    snprintf(u->name, sizeof u->name, "%s", ask->name);
    snprintf(u->password, sizeof u->password, "%s", ask->password ? ask->password : "");
    map_put(c->s->persons, u->id, u);
    map_put_text(c->s->person_names, u->name, u);
    EMIT(c, PERSON_ADD, V_INT(u->id), V_TEXT(u->name), V_TEXT(u->password), V_INT(u->roles),
         V_INT(u->created_ms));
    emit_event(c, 0, "user.created", id_of(c, PREFIX_USER, u->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", u->name));
    user_reply(c, u);
    return true;
}

static void user_write(struct call *c, struct person *u, const char *kind)
{
    u->version++;
    EMIT(c, PERSON_SET, V_INT(u->id), V_TEXT(u->password), V_INT(u->roles), V_INT(u->state),
         V_INT(u->version));
    emit_event(c, 0, kind, id_of(c, PREFIX_USER, u->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", u->name));
    user_reply(c, u);
}

bool user_update(struct call *c, const void *body, struct err *err)
{
    const struct user_ask *ask = body;
    struct person *u = state_person(c->s, ask->user);
    unsigned roles;
    if (!u)
        return err_set(err, RC_NOT_FOUND, "there is no user '%s'", ask->user);
    if (!platform_roles(ask->roles, &roles, err))
        return false;
    if (c->r->if_match && c->r->if_match != u->version)
        return err_set(err, RC_STALE, "user %s has changed meanwhile (version %lld); look again",
                       u->name, (long long)u->version);
    bool self = c->who->kind == PRINCIPAL_USER && c->who->id == u->id;
    if (self
        && ((was_given(c, "disabled") && ask->disabled)
            || (was_given(c, "roles") && !(roles & ROLE_OPERATOR))))
        return err_set(
            err, RC_CONFLICT,
            "you cannot disable yourself or take your own operator role; another operator can");
    if (was_given(c, "roles"))
        u->roles = roles;
    if (was_given(c, "disabled"))
        u->state = ask->disabled;
    if (text_given(ask->password))
        snprintf(u->password, sizeof u->password, "%s", ask->password);
    user_write(c, u, ask->disabled ? "user.disabled" : "user.updated");
    return true;
}

bool password_prepare(struct call *c, const void *body, struct err *err)
{
    struct password_ask *ask = (struct password_ask *)body;
    struct rows r;
    if (c->who->kind != PRINCIPAL_USER)
        return err_set(err, RC_DENIED, "only users have passwords");
    if (!ROWS(c, PERSON_BY_NAME, &r, err, V_TEXT(c->who->name)))
        return false;
    if (r.count == 0 || !password_verify(row_text(&r, 0, 2), ask->password))
        return err_field(err, "password", "this is not your password");
    struct user_ask fresh = { .password = ask->new_password };
    if (!user_prepare(c, &fresh, err))
        return false;
    ask->new_password = fresh.password;
    return true;
}

bool password_change(struct call *c, const void *body, struct err *err)
{
    const struct password_ask *ask = body;
    struct person *u = map_get(c->s->persons, c->who->id);
    if (!u)
        return err_set(err, RC_NOT_FOUND, "there is no such user");
    snprintf(u->password, sizeof u->password, "%s", ask->new_password);
    user_write(c, u, "user.password");
    return true;
}

bool member_set(struct call *c, const void *body, struct err *err)
{
    const struct member_ask *ask = body;
    struct project *p = map_get(c->s->projects, c->who->project);
    struct person *u = state_person(c->s, ask->user);
    unsigned roles;
    if (!project_roles(ask->roles, &roles, err))
        return false;
    if (!u)
        return err_field(err, "user",
                         "there is no user '%s'; an operator makes them: arcus users create",
                         ask->user);
    struct member *m = map_get(p->members, u->id);
    if (!m)
        map_put(p->members, u->id, m = ARENA_NEW(c->s->mem, struct member));
    *m = (struct member){ u->id, roles };
    EMIT(c, MEMBER_SET, V_INT(p->id), V_INT(u->id), V_INT(roles));
    char text[96];
    emit_event(c, p->id, "member.set", id_of(c, PREFIX_USER, u->id),
               arena_printf(c->mem, "{\"name\":\"%s\",\"roles\":\"%s\"}", u->name,
                            role_text(text, roles)));
    struct member_view view
        = { .id = u->id, .name = u->name, .state = "active", .roles = role_text(text, roles) };
    reply_view(c, &member_view_fields, &view);
    return true;
}

bool member_remove(struct call *c, const void *body, struct err *err)
{
    const struct member_ask *ask = body;
    struct project *p = map_get(c->s->projects, c->who->project);
    struct person *u = state_person(c->s, ask->user);
    if (!u || !map_take(p->members, u->id))
        return err_set(err, RC_NOT_FOUND, "there is no member '%s' in this project", ask->user);
    EMIT(c, MEMBER_DROP, V_INT(p->id), V_INT(u->id));
    emit_event(c, p->id, "member.removed", id_of(c, PREFIX_USER, u->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", u->name));
    struct member_view view = { .id = u->id, .name = u->name, .state = "removed", .roles = "" };
    reply_view(c, &member_view_fields, &view);
    return true;
}

static void account_reply(struct call *c, const struct account *a)
{
    char roles[96];
    struct member_view view = { .id = a->id,
                                .name = a->name,
                                .state = a->state ? "disabled" : "active",
                                .roles = role_text(roles, a->roles) };
    reply_view(c, &account_view_fields, &view);
}

bool account_create(struct call *c, const void *body, struct err *err)
{
    const struct account_ask *ask = body;
    unsigned roles;
    if (!project_roles(ask->roles, &roles, err) || !name_check(ask->name, PREFIX_ACCOUNT, err))
        return false;
    if (state_account(c->s, c->who->project, ask->name))
        return err_set(err, RC_CONFLICT, "the name '%s' is taken by another service account",
                       ask->name);
    struct account *a = ARENA_NEW(c->s->mem, struct account);
    *a = (struct account){
        .id = new_id(c), .project = c->who->project, .created_ms = c->now_ms, .roles = roles
    };
    snprintf(a->name, sizeof a->name, "%s", ask->name);
    map_put(c->s->accounts, a->id, a);
    state_name(c->s, THING_ACCOUNT, a->project, a->name, a);
    EMIT(c, ACCOUNT_ADD, V_INT(a->id), V_INT(a->project), V_TEXT(a->name), V_INT(a->roles),
         V_INT(a->created_ms));
    emit_event(c, a->project, "account.created", id_of(c, PREFIX_ACCOUNT, a->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", a->name));
    account_reply(c, a);
    return true;
}

bool account_disable(struct call *c, const void *body, struct err *err)
{
    const struct account_ask *ask = body;
    struct account *a = state_account(c->s, c->who->project, ask->account);
    if (!a)
        return err_set(err, RC_NOT_FOUND, "there is no service account '%s' in this project",
                       ask->account);
    if (a->state)
        return err_set(err, RC_CONFLICT, "service account %s is disabled already", a->name);
    a->state = 1;
    EMIT(c, ACCOUNT_STATE, V_INT(a->id), V_INT(1));
    emit_event(c, a->project, "account.disabled", id_of(c, PREFIX_ACCOUNT, a->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", a->name));
    account_reply(c, a);
    return true;
}
