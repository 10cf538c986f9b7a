/* read_tenancy.c - looking at who is who: organisations, projects, members, users, accounts,
 * keys, and the small things of a project. */
#include "control/call.h"

/* The number behind `page`, for lists in the order of ids. */
static bool page_after(const struct page_ask *ask, const char *prefix, int64_t *after,
                       struct err *err)
{
    *after = 0;
    return !text_given(ask->page) || id_parse(ask->page, prefix, after)
           || err_field(err, "page", "this is not the `next` of a page before");
}

/* Every list is: ask for one row more than wanted, show what was wanted, tell where the next
 * page begins. */
#define LIST(prefix, fields, st, row, ...)                                                         \
    const struct page_ask *ask = body;                                                             \
    int64_t after;                                                                                 \
    struct rows r;                                                                                 \
    if (!page_after(ask, prefix, &after, err)                                                      \
        || !ROWS(c, st, &r, err, __VA_ARGS__ V_INT(after), V_INT(ask->limit + 1)))                 \
        return false;                                                                              \
    struct list l = list_open(c);                                                                  \
    size_t n = MIN(r.count, (size_t)ask->limit);                                                   \
    for (size_t i = 0; i < n; i++)                                                                 \
        row(c, &l, &r, i, &fields);                                                                \
    list_close(&l, r.count > n ? id_of(c, prefix, row_int(&r, n - 1, 0)) : NULL);                  \
    return true

static const char *roles_of(struct call *c, int64_t roles)
{
    return role_text(arena_take(c->mem, 96, 1), (unsigned)roles);
}
static const char *active(int64_t state)
{
    return state ? "disabled" : "active";
}

static void org_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                    const struct fields *f)
{
    (void)c;
    struct simple_view v = { .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .state = "active",
                             .created_ms = row_int(r, i, 2) };
    list_add(l, f, &v);
}
bool org_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_ORG, simple_view_fields, ORG_LIST, org_row, );
}

static void project_view(struct call *c, const struct rows *r, size_t i, struct project_view *v)
{
    struct json *doc;
    struct err ignored;
    *v = (struct project_view){ .id = row_int(r, i, 0),
                                .name = row_text(r, i, 1),
                                .state = "active",
                                .org = row_text(r, i, 2),
                                .created_ms = row_int(r, i, 4),
                                .version = row_int(r, i, 5),
                                .roles = roles_of(c, row_int(r, i, 6)),
                                .weight_milli = row_int(r, i, 7),
                                .residency = row_text(r, i, 8),
                                .range = net_range(c->mem, row_int(r, i, 9)),
                                .egress = row_text(r, i, 10),
                                .mbit = row_int(r, i, 11) };
    if (!json_parse(SLICE(row_text(r, i, 3)), c->mem, &doc, &ignored)
        || !bind_read_ours(doc, &quota_fields, c->mem, &v->quota, NULL, &ignored))
        v->quota = QUOTA_NONE;
}
static void project_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                        const struct fields *f)
{
    struct project_view v;
    project_view(c, r, i, &v);
    list_add(l, f, &v);
}
/* Users see the projects they are in; operators and auditors all; a service account its own. */
static int64_t sees_all(const struct call *c)
{
    return (c->who->roles & PLATFORM_ROLES) || c->who->kind == PRINCIPAL_ACCOUNT;
}

static bool own_project(struct call *c, struct err *err)
{
    struct rows r;
    struct project_view v;
    if (!ROWS(c, PROJECT_FIND, &r, err, V_INT(0), V_INT(1), V_TEXT(""), V_INT(c->who->project)))
        return false;
    struct list l = list_open(c);
    if (r.count) {
        project_view(c, &r, 0, &v);
        list_add(&l, &project_view_fields, &v);
    }
    list_close(&l, NULL);
    return true;
}

bool project_list(struct call *c, const void *body, struct err *err)
{
    if (c->who->kind == PRINCIPAL_ACCOUNT) /* not even how many others there are */
        return own_project(c, err);
    LIST(PREFIX_PROJECT, project_view_fields, PROJECT_LIST, project_row, V_INT(c->who->id),
         V_INT(sees_all(c)), );
}

bool project_get(struct call *c, const void *body, struct err *err)
{
    const struct project_ref *ask = body;
    int64_t id = 0;
    struct rows r;
    struct project_view v;
    (void)id_parse(ask->project, PREFIX_PROJECT, &id);
    if (!ROWS(c, PROJECT_FIND, &r, err, V_INT(c->who->id), V_INT(sees_all(c)), V_TEXT(ask->project),
              V_INT(id)))
        return false;
    if (r.count == 0 || (c->who->kind == PRINCIPAL_ACCOUNT && row_int(&r, 0, 0) != c->who->project))
        return err_set(err, RC_NOT_FOUND, "there is no project '%s' that you are in", ask->project);
    project_view(c, &r, 0, &v);
    c->r->version = v.version;
    reply_view(c, &project_view_fields, &v);
    return true;
}

static void member_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                       const struct fields *f)
{
    struct member_view v = { .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .state = active(row_int(r, i, 2)),
                             .roles = roles_of(c, row_int(r, i, 3)) };
    list_add(l, f, &v);
}
bool member_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_USER, member_view_fields, MEMBER_LIST, member_row, V_INT(c->who->project), );
}

static void user_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                     const struct fields *f)
{
    struct user_view v = { .id = row_int(r, i, 0),
                           .name = row_text(r, i, 1),
                           .roles = roles_of(c, row_int(r, i, 2)),
                           .state = active(row_int(r, i, 3)),
                           .created_ms = row_int(r, i, 4),
                           .version = row_int(r, i, 5) };
    list_add(l, f, &v);
}
bool user_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_USER, user_view_fields, PERSON_LIST, user_row, );
}

static void account_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                        const struct fields *f)
{
    struct member_view v = { .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .roles = roles_of(c, row_int(r, i, 2)),
                             .state = active(row_int(r, i, 3)) };
    list_add(l, f, &v);
}
bool account_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_ACCOUNT, account_view_fields, ACCOUNT_LIST, account_row, V_INT(c->who->project), );
}

static void key_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                    const struct fields *f)
{
    int64_t expires = row_int(r, i, 6);
    struct key_view v = { .id = row_int(r, i, 0),
                          .name = row_text(r, i, 1),
                          .roles = roles_of(c, row_int(r, i, 3)),
                          .hint = row_text(r, i, 4),
                          .created_ms = row_int(r, i, 5),
                          .expires_ms = expires,
                          .owner = row_text(r, i, 7),
                          .project = row_text(r, i, 8),
                          .state = row_int(r, i, 2)                  ? "disabled"
                                   : expires && expires <= c->now_ms ? "expired"
                                                                     : "active" };
    list_add(l, f, &v);
}
bool key_list(struct call *c, const void *body, struct err *err)
{
    int64_t project = c->who->roles & ROLE_ADMIN ? c->who->project : 0;
    LIST(PREFIX_KEY, key_view_fields, KEY_LIST, key_row, V_INT(c->who->kind), V_INT(c->who->id),
         V_INT(project), );
}

static void secret_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                       const struct fields *f)
{
    (void)c;
    struct secret_view v = { .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .state = "active",
                             .created_ms = row_int(r, i, 2),
                             .updated_ms = row_int(r, i, 3),
                             .version = row_int(r, i, 4) };
    list_add(l, f, &v);
}
bool secret_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_SECRET, secret_view_fields, SECRET_LIST, secret_row, V_INT(c->who->project), );
}

static void volume_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                       const struct fields *f)
{
    (void)c;
    struct volume_view v = { .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .state = "active",
                             .created_ms = row_int(r, i, 2),
                             .node = row_text(r, i, 3) };
    list_add(l, f, &v);
}
bool volume_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_VOLUME, volume_view_fields, VOLUME_LIST, volume_row, V_INT(c->who->project), );
}

static void image_row(struct call *c, struct list *l, const struct rows *r, size_t i,
                      const struct fields *f)
{
    (void)c;
    struct image_view v = { .id = row_int(r, i, 0),
                            .name = row_text(r, i, 1),
                            .state = "active",
                            .digest = row_text(r, i, 2),
                            .format = row_text(r, i, 3),
                            .size = row_int(r, i, 4),
                            .created_ms = row_int(r, i, 5) };
    list_add(l, f, &v);
}
bool image_list(struct call *c, const void *body, struct err *err)
{
    LIST(PREFIX_IMAGE, image_view_fields, IMAGE_LIST, image_row, V_INT(c->who->project), );
}

bool whoami(struct call *c, const void *body, struct err *err)
{
    (void)body;
    struct rows r, key;
    if (!ROWS(c, PROJECT_NAME, &r, err, V_INT(c->who->project))
        || !ROWS(c, AUTH_KEY, &key, err, V_TEXT(c->r->from.hash)))
        return false;
    struct whoami_view v = { .id = c->who->id,
                             .name = c->who->name,
                             .state = "active",
                             .kind = c->who->kind == PRINCIPAL_USER ? "user" : "account",
                             .project = r.count ? row_text(&r, 0, 0) : "",
                             .roles = roles_of(c, c->who->roles),
                             .key_id = c->who->key,
                             .key_expires_ms = key.count ? row_int(&key, 0, 5) : 0 };
    reply_view(c, &whoami_view_fields, &v);
    return true;
}
