/* auth.c - the decision who a credential is, and its facts from the store. The facts from memory
 * are in control/state.c. */
#include "auth/auth.h"
#include "base/id.h"

unsigned role_reach(unsigned roles)
{
    static const struct {
        enum role role;
        unsigned reach;
    } rows[] = {
        { ROLE_ADMIN, ROLE_DEVELOPER | ROLE_VIEWER },
        { ROLE_DEVELOPER, ROLE_VIEWER },
        { ROLE_OPERATOR, ROLE_AUDITOR },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        roles |= roles & rows[i].role ? rows[i].reach : 0;
    return roles;
}

bool auth_decide(const struct auth_facts *f, const char *project_asked, int64_t now_ms,
                 struct caller *out, struct err *err)
{
    bool good = f->found && f->key_state == 0 && f->owner_state == 0
                && (!f->expires_ms || f->expires_ms > now_ms);
    if (!good)
        return err_set(err, RC_UNAUTHENTICATED,
                       "this key is not valid: it is unknown, has expired or was disabled");
    struct caller c = { .kind = f->owner_kind, .id = f->owner, .key = f->key };
    text_cut(c.name, sizeof c.name, f->owner_name);
    if (f->owner_kind == PRINCIPAL_NODE) {
        c.roles = ROLE_NODE;
        return *out = c, true;
    }
    unsigned roles = f->owner_roles | (f->owner_kind == PRINCIPAL_USER ? f->member_roles : 0);
    roles &= PROJECT_ROLES | PLATFORM_ROLES;
    if (f->key_roles)
        roles = role_reach(roles) & f->key_roles;
    bool in_project = f->project_found && (roles & (PROJECT_ROLES | PLATFORM_ROLES));
    if (f->project_found && f->key_project && f->project != f->key_project)
        in_project = false;
    if (text_given(project_asked) && !in_project) /* not there, or not yours: the same words */
        return err_set(err, RC_NOT_FOUND, "there is no project '%s' that this key may use",
                       project_asked);
    if (in_project) {
        c.project = f->project;
        c.org = f->org;
    } else {
        roles &= PLATFORM_ROLES;
    }
    c.roles = roles | ROLE_PERSON;
    return *out = c, true;
}

bool auth_facts_read(struct conn *conn, const char *hash, const char *project, struct arena *mem,
                     struct auth_facts *out, struct err *err)
{
    struct auth_facts f = { 0 };
    struct rows r;
    if (!store_query(conn, ST_AUTH_KEY, (struct value[]){ V_TEXT(hash) }, 1, mem, &r, err))
        return false;
    if (r.count == 0)
        return *out = f, true;
    f.found = true;
    f.key = row_int(&r, 0, 0);
    f.owner_kind = (enum principal)row_int(&r, 0, 1);
    f.owner = row_int(&r, 0, 2);
    f.key_project = row_int(&r, 0, 3);
    f.key_roles = (unsigned)row_int(&r, 0, 4);
    f.expires_ms = row_int(&r, 0, 5);
    f.key_state = (int)row_int(&r, 0, 6);
    f.owner_name = row_text(&r, 0, 7);
    f.owner_roles = (unsigned)row_int(&r, 0, 8);
    f.owner_state = (int)row_int(&r, 0, 9);
    if (f.owner_kind == PRINCIPAL_NODE)
        return *out = f, true;
    int64_t wanted = f.key_project;
    bool named = text_given(project);
    if (named && !id_parse(project, "prj", &wanted))
        wanted = 0;
    struct value args[] = { V_INT(f.owner_kind == PRINCIPAL_USER ? f.owner : 0),
                            V_TEXT(named ? project : ""), V_INT(wanted) };
    enum statement st = named || wanted ? ST_AUTH_PROJECT : ST_AUTH_PROJECT_ANY;
    if (!store_query(conn, st, args, st == ST_AUTH_PROJECT ? 3 : 1, mem, &r, err))
        return false;
    if (r.count > 0) {
        f.project_found = true;
        f.project = row_int(&r, 0, 0);
        f.org = row_int(&r, 0, 1);
        f.member_roles = (unsigned)row_int(&r, 0, 2);
    }
    return *out = f, true;
}
