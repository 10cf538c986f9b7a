/* keys.c - API keys and sessions: shown once, kept as a keyed hash, never wider than whoever
 * makes them. */
#include "control/call.h"
#include <stdio.h>

#define SESSION_PREFIX "as_"

bool key_make(struct call *c, enum principal kind, int64_t owner, int64_t project, unsigned roles,
              const char *name, const char *prefix, int64_t expires_ms, struct key_view *view)
{
    return key_keep(c, kind, owner, project, roles, name, prefix, expires_ms, NULL, view);
}

bool key_keep(struct call *c, enum principal kind, int64_t owner, int64_t project, unsigned roles,
              const char *name, const char *prefix, int64_t expires_ms, const char *own,
              struct key_view *view)
{
    unsigned char random[32];
    char *secret = arena_take(c->mem, SECRET_TEXT, 1), *role_names = arena_take(c->mem, 96, 1);
    control_random(c->control, random, sizeof random);
    secret_make(random, prefix, secret);
    if (text_given(own))
        snprintf(secret, SECRET_TEXT, "%s", own);
    struct apikey k = { .id = new_id(c),
                        .owner_kind = kind,
                        .owner = owner,
                        .project = project,
                        .roles = roles,
                        .created_ms = c->now_ms,
                        .expires_ms = expires_ms };
    digest_keyed(control_keys(c->control)->hash, secret, k.hash);
    snprintf(k.name, sizeof k.name, "%s", name);
    snprintf(k.hint, sizeof k.hint, "%.7s...", secret);
    state_add_key(c->s, &k);
    EMIT(c, KEY_ADD, V_INT(k.id), V_INT(k.owner_kind), V_INT(k.owner), V_INT(k.project),
         V_INT(k.roles), V_TEXT(k.name), V_TEXT(k.hint), V_TEXT(k.hash), V_INT(k.created_ms),
         V_INT(k.expires_ms));
    *view = (struct key_view){ .id = k.id,
                               .name = arena_text(c->mem, k.name),
                               .state = "active",
                               .hint = arena_text(c->mem, k.hint),
                               .roles = role_text(role_names, roles),
                               .created_ms = k.created_ms,
                               .expires_ms = expires_ms,
                               .key = secret };
    return true;
}

/* The password is checked by the slow one; the writer gets the caller it turned out to be. A
 * name that does not exist costs as much time. */
bool login_prepare(struct call *c, const void *body, struct err *err)
{
    static const char nobody[] = "$argon2id$v=19$m=65536,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
                                 "Zu2kBTLx8iZpnVV4Ls1Q3lqP0QxWk5TQnIY0N5pCY3E";
    const struct login_ask *ask = body;
    struct rows r;
    if (!ROWS(c, PERSON_BY_NAME, &r, err, V_TEXT(ask->user)))
        return false;
    bool there = r.count > 0 && text_given(row_text(&r, 0, 2));
    if (there) /* a name that nobody has may be a password in the wrong place */
        c->r->subject = arena_text(c->mem, ask->user);
    bool right = password_verify(there ? row_text(&r, 0, 2) : nobody, ask->password);
    if (!there || !right || row_int(&r, 0, 4) != 0)
        return err_set(err, RC_UNAUTHENTICATED, "this user name and password do not fit");
    c->r->who
        = (struct caller){ .kind = PRINCIPAL_USER, .id = row_int(&r, 0, 0), .roles = ROLE_PERSON };
    snprintf(c->r->who.name, sizeof c->r->who.name, "%s", ask->user);
    snprintf(c->r->who.address, sizeof c->r->who.address, "%s", c->r->from.address);
    return true;
}

bool login(struct call *c, const void *body, struct err *err)
{
    const struct login_ask *ask = body;
    struct person *u = map_get(c->s->persons, c->who->id);
    if (c->who->kind != PRINCIPAL_USER || !u || u->state)
        return err_set(err, RC_UNAUTHENTICATED, "this user name and password do not fit");
    int64_t lasts_s = ask->expires_in_s > 0 ? ask->expires_in_s : 12 * 3600;
    struct key_view view;
    key_make(c, PRINCIPAL_USER, u->id, 0, 0, "login", SESSION_PREFIX, c->now_ms + lasts_s * 1000,
             &view);
    view.owner = u->name;
    emit_event(c, 0, "user.login", id_of(c, PREFIX_USER, u->id), NULL);
    reply_view(c, &key_view_fields, &view);
    return true;
}

/* When what is made with this caller's key must end; 0: never. A session is for a person who has
 * shown a password. */
static int64_t last_ms(struct call *c)
{
    const struct apikey *with = map_get(c->s->keys, c->who->key);
    return with && !text_starts(with->hint, SESSION_PREFIX) ? with->expires_ms : 0;
}

bool key_is_owners(struct call *c, const char *what, struct err *err)
{
    struct auth_facts f;
    state_facts(c->s, &c->r->from, &f);
    unsigned own = (f.owner_roles | (f.owner_kind == PRINCIPAL_USER ? f.member_roles : 0)) & (PROJECT_ROLES | PLATFORM_ROLES);
    return !f.key_roles || !(own & ~role_reach(f.key_roles))
           || err_set(err, RC_DENIED, "this API key may do less than its owner may here, so it cannot %s the profile; log in (arcus login) to do that", what);
}

bool key_stays(struct call *c, const char *what, struct err *err)
{
    return !last_ms(c)
           || err_set(err, RC_DENIED, "what is in a profile outlives this API key, which expires, so it cannot %s the profile; log in (arcus login) to do that", what);
}

bool key_create(struct call *c, const void *body, struct err *err)
{
    const struct key_ask *ask = body;
    unsigned mine = c->who->roles & (PROJECT_ROLES | PLATFORM_ROLES),
             roles = text_given(ask->roles) ? role_parse(ask->roles) : mine;
    enum principal kind = c->who->kind;
    int64_t owner = c->who->id;
    const char *owner_name = c->who->name;
    if (!roles || (roles & ~(unsigned)(PROJECT_ROLES | PLATFORM_ROLES)))
        return err_field(
            err, "roles",
            "roles of a key are some of viewer, developer, admin, operator and auditor");
    if (text_given(ask->account)) {
        struct account *a = c->who->roles & ROLE_ADMIN
                                ? state_account(c->s, c->who->project, ask->account)
                                : NULL;
        if (!a || a->state)
            return err_field(err, "account",
                             "there is no active service account '%s' that you may make keys for",
                             ask->account);
        kind = PRINCIPAL_ACCOUNT, owner = a->id, owner_name = a->name, mine = a->roles;
        roles = text_given(ask->roles) ? roles : a->roles;
    }
    if (roles & ~role_reach(mine))
        return err_field(err, "roles", "a key cannot be wider than its owner is here");
    struct key_view view;
    int64_t expires = ask->expires_in_s > 0 ? c->now_ms + ask->expires_in_s * 1000 : 0,
            last = last_ms(c);
    if (last && expires > last)
        return err_field(
            err, "expires_in",
            "a key cannot outlive the one that it is made with; log in to make a longer one");
    if (last && !expires)
        expires = last;
    key_make(c, kind, owner, roles & PROJECT_ROLES ? c->who->project : 0, roles,
             text_given(ask->name) ? ask->name : "key", "ak_", expires, &view);
    view.owner = owner_name;
    struct project *p = map_get(c->s->projects, c->who->project);
    view.project = p && (roles & PROJECT_ROLES) ? p->name : "";
    emit_event(c, c->who->project, "key.created", id_of(c, PREFIX_KEY, view.id), NULL);
    reply_view(c, &key_view_fields, &view);
    return true;
}

/* One's own; as an admin those of the project's service accounts; as an operator those of all
 * people. */
static bool may_disable(struct call *c, const struct apikey *k)
{
    struct account *a
        = k->owner_kind == PRINCIPAL_ACCOUNT ? map_get(c->s->accounts, k->owner) : NULL;
    return (k->owner_kind == c->who->kind && k->owner == c->who->id)
           || (a && (c->who->roles & ROLE_ADMIN) && a->project == c->who->project)
           || (k->owner_kind == PRINCIPAL_USER && (c->who->roles & ROLE_OPERATOR));
}

static bool key_find(struct call *c, const char *ref, struct apikey **out, struct err *err)
{
    int64_t id;
    struct apikey *k, *found = NULL;
    if (id_parse(ref, PREFIX_KEY, &id)) {
        k = map_get(c->s->keys, id);
        found = k && may_disable(c, k) ? k : NULL;
    } else {
        for (size_t i = 0; (k = map_next(c->s->keys, &i));) {
            if (!text_is(k->name, ref) || k->owner_kind != c->who->kind || k->owner != c->who->id)
                continue; /* names are one's own; of others' keys only the id tells which */
            if (found)
                return err_set(err, RC_CONFLICT,
                               "several keys of yours are called '%s'; give the id of one", ref);
            found = k;
        }
    }
    *out = found;
    return found || err_set(err, RC_NOT_FOUND, "there is no active key '%s' of yours", ref);
}

bool key_disable(struct call *c, const void *body, struct err *err)
{
    const struct key_ask *ask = body;
    struct apikey *k;
    if (!key_find(c, ask->key, &k, err))
        return false;
    struct key_view view = { .id = k->id,
                             .name = arena_text(c->mem, k->name),
                             .state = "disabled",
                             .hint = arena_text(c->mem, k->hint),
                             .created_ms = k->created_ms };
    EMIT(c, KEY_STATE, V_INT(k->id), V_INT(1));
    emit_event(c, c->who->project, "key.disabled", id_of(c, PREFIX_KEY, k->id), NULL);
    state_drop_key(c->s, k);
    reply_view(c, &key_view_fields, &view);
    return true;
}
