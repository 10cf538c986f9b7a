/* request.c - headers, path, query and body become a credential and one bound struct.
 *
 * What is wrong is kept in v->bad and told only after the door has seen the credential: a stranger
 * learns that he is one, and nothing else. A name may come from one place only; the body may repeat
 * what the path says, for people send back what they were shown. */
#include "api/api_internal.h"
#include "wire/yaml.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { QUERY_MOST = 256, IDEM_MOST = 128, BODY_OF_ANYBODY = 64 << 10 };

/* --- headers */

static const char *bearer_of(struct http_request *rq)
{
    const char *h = http_header(rq, "authorization");
    if (!h || strncasecmp(h, "Bearer ", 7) != 0)
        return "";
    h += 7;
    return h + strspn(h, " ");
}

static bool idem_read(struct visit *v, struct err *err)
{
    const char *h = http_header(v->rq, "idempotency-key");
    if (!h)
        return true;
    size_t n = strlen(h);
    for (size_t i = 0; i < n; i++)
        if (h[i] < 0x21 || h[i] > 0x7e)
            return err_field(err, "Idempotency-Key",
                             "must be of printable characters without blanks");
    if (n < 1 || n > IDEM_MOST)
        return err_field(err, "Idempotency-Key", "must have 1 to %d characters", IDEM_MOST);
    v->idem = arena_text(v->mem, h);
    return true;
}

/* "7", "\"7\"" or "*". A weak one cannot match: an update needs the very version. */
static bool if_match_read(struct visit *v, struct err *err)
{
    const char *h = http_header(v->rq, "if-match");
    if (!h || text_is(h, "*"))
        return true;
    char *end;
    bool quoted = *h == '"';
    const char *digits = h + quoted;
    if (*digits < '1' || *digits > '9' || strlen(digits) > 19u + quoted)
        return err_field(err, "If-Match",
                         "must be the ETag of what is to be changed, such as \"7\"");
    v->if_match = strtoll(digits, &end, 10);
    if (!text_is(end, quoted ? "\"" : ""))
        return err_field(err, "If-Match", "must be one ETag, such as \"7\"");
    return true;
}

/* --- path and query */

static bool path_read(struct visit *v, const struct match *m, void *out, struct err *err)
{
    for (size_t i = 0; i < m->count; i++) {
        char name[64], *value;
        snprintf(name, sizeof name, "%.*s", (int)m->params[i].name.len, m->params[i].name.at);
        const struct field *f = bind_find(v->verb->takes, name);
        if (!f)
            return err_field(err, name, "the program does not bind it; this is a defect of ours");
        if (!url_decode(m->params[i].value, false, v->mem, &value))
            return err_field(err, name, "is not percent-encoded UTF-8");
        if (!bind_text(f, value, v->mem, out, err))
            return false;
    }
    return true;
}

static bool is_list(const struct field *f)
{
    return f && (f->type == F_TEXTS || f->type == F_PAIRS || f->type == F_OBJECTS);
}

static struct json *plain_text(struct arena *mem, const char *text)
{
    struct json *j = json_new(mem, JSON_TEXT);
    j->plain = true;
    j->text = text;
    j->len = strlen(text);
    return j;
}

static bool query_add(struct visit *v, struct json *query, const char *name, const char *value,
                      struct err *err)
{
    const struct field *f = bind_find(v->verb->takes, name);
    struct json *there = json_get(query, name);
    if (there && !is_list(f))
        return err_field(err, name, "is given twice in the query");
    if (is_list(f) && !there)
        json_add(query, name, there = json_new(v->mem, JSON_LIST));
    if (f && f->type == F_BOOL && !*value)
        value = "true";
    json_add(there ? there : query, there ? NULL : name, plain_text(v->mem, value));
    return true;
}

/* `project` says whom the request speaks for, everywhere; it is no field of a verb. */
static bool query_read(struct visit *v, struct json *query, const char **project, struct err *err)
{
    size_t count = 0;
    for (const char *at = http_query(v->rq); *at;) {
        size_t n = strcspn(at, "&"), eq = strcspn(at, "=");
        char *name, *value;
        if (++count > QUERY_MOST)
            return err_set(err, RC_BAD_INPUT, "the query has more than %d parameters", QUERY_MOST);
        struct slice left = { at, MIN(eq, n) },
                     right = { at + MIN(eq + 1, n), eq < n ? n - eq - 1 : 0 };
        at += n + (at[n] == '&');
        if (!url_decode(left, true, v->mem, &name) || !url_decode(right, true, v->mem, &value))
            return err_set(err, RC_BAD_INPUT, "the query is not percent-encoded UTF-8");
        if (!*name && !*value)
            continue;
        if (text_is(name, "project")) {
            if (*project)
                return err_field(err, "project", "is given twice");
            *project = value;
        } else if (!query_add(v, query, name, value, err)) {
            return false;
        }
    }
    return true;
}

/* --- the body */

static bool type_is(const char *header, const char *type)
{
    size_t n = strlen(type);
    return header && strncasecmp(header, type, n) == 0 && strchr(" \t;", header[n]);
}

static const struct {
    const char *type;
    bool (*parse)(struct slice, struct arena *, struct json **, struct err *);
} readers[] = {
    { "application/json", json_parse },
    { "application/yaml", yaml_parse },
    { "text/yaml", yaml_parse },
    { "application/x-yaml", yaml_parse },
};

static bool body_read(struct visit *v, struct arena *mem, struct json **out, struct err *err)
{
    struct slice body = http_body(v->rq);
    const char *type = http_header(v->rq, "content-type"), *method = v->verb->method;
    if (!body.len)
        return true;
    if (!text_is(method, "POST") && !text_is(method, "PUT") && !text_is(method, "PATCH"))
        return err_set(err, RC_BAD_INPUT, "%s takes its parameters in the query, not in a body",
                       method);
    for (size_t i = 0; i < COUNT(readers); i++)
        if (type_is(type, readers[i].type))
            return readers[i].parse(body, mem, out, err);
    v->bad_status = 415;
    return err_field(err, "Content-Type", "must be application/json or application/yaml, not %.60s",
                     type ? type : "absent");
}

static bool merge(struct json *doc, struct json *query, struct err *err)
{
    for (struct json *m = query->first, *next; m; m = next) {
        next = m->next;
        if (json_get(doc, m->name))
            return err_field(err, m->name, "is given in the query and in the body");
        m->next = NULL;
        json_add(doc, m->name, m);
    }
    return true;
}

/* So that the same key for another wish can be told from a repeat. */
static void hash_wish(struct visit *v)
{
    struct slice body = http_body(v->rq);
    struct sha256 *h = sha256_new();
    sha256_add(h, v->verb->name, strlen(v->verb->name) + 1);
    sha256_add(h, http_path(v->rq), strlen(http_path(v->rq)) + 1);
    sha256_add(h, http_query(v->rq), strlen(http_query(v->rq)) + 1);
    sha256_add(h, body.at, body.len);
    sha256_end(h, v->body_hash);
}

/* A document takes many times its size: only what is bound stays. */
static bool bind(struct visit *v, const struct match *m, struct json *query, struct err *err)
{
    AUTO(arena_clear) struct arena *mem = v->api->scratch;
    struct json *doc = NULL;
    void *out = arena_take(v->mem, 1, v->verb->takes->size);
    if (!path_read(v, m, out, err) || !body_read(v, mem, &doc, err))
        return false;
    if (!doc)
        doc = query;
    else if (doc->type == JSON_OBJECT && !merge(doc, query, err))
        return false;
    bool agents = v->verb->roles == NODES || v->verb_id == VERB_NODE_JOIN;      /* one of them may be newer than we are */
    const void **settled = &v->api->settled[v->verb_id];
    if (agents ? !bind_read_ours(doc, v->verb->takes, v->mem, out, &v->given, err)
               : (!*settled && !bind_settled(v->verb->takes, v->api->settled_mem, settled, err))
                     || !bind_read_over(doc, v->verb->takes, *settled, v->mem, out, &v->given, err))
        return false;
    v->body = out;
    return true;
}

static bool project_read(struct visit *v, const char *query, const char **out, struct err *err)
{
    const char *header = http_header(v->rq, "arcus-project");
    if (header && query && !text_is(header, query))
        return err_field(err, "project", "the header Arcus-Project and the query name two");
    const char *p = header ? header : query ? query : "";
    if (strlen(p) >= sizeof v->from.project)
        return err_field(err, "project", "is too long for the name or id of a project");
    *out = arena_text(v->mem, p);
    return true;
}

void request_read(struct visit *v, const struct match *m)
{
    struct err *err = &v->bad;
    struct json *query = json_new(v->mem, JSON_OBJECT);
    const char *in_query = NULL, *project = "";
    char id[REQUEST_ID];
    bool ok = query_read(v, query, &in_query, err) && project_read(v, in_query, &project, err);
    memcpy(id, v->from.request, sizeof id);
    control_credential(v->api->control, bearer_of(v->rq), project, v->peer, &v->from);
    memcpy(v->from.request, id, sizeof id);
    if (!ok || !idem_read(v, err) || !if_match_read(v, err) || !bind(v, m, query, err))
        return;
    if (v->idem)
        hash_wish(v);
    err->rc = RC_OK;
}

/* A large body is read only for somebody whom the door knows: for anybody else it would be work for nothing. */
static void body_known(struct visit *v)
{
    if (v->ask.ok)
        v->body_trusted(v);
    else
        reply_problem(v, &v->ask.err);
}

bool request_defer(struct visit *v, void (*trusted)(struct visit *v))
{
    if (http_body(v->rq).len <= BODY_OF_ANYBODY)
        return false;
    if (!v->verb->roles) {
        reply_error(v, RC_TOO_LARGE, "%s takes at most %d bytes", v->verb->name, BODY_OF_ANYBODY);
        return true;
    }
    char id[REQUEST_ID];
    memcpy(id, v->from.request, sizeof id);
    control_credential(v->api->control, bearer_of(v->rq), "", v->peer, &v->from);
    memcpy(v->from.request, id, sizeof id);
    v->body_trusted = trusted;
    visit_ask(v, VERB_WHOAMI, arena_take(v->mem, 1, verbs[VERB_WHOAMI].takes->size), body_known);
    return true;
}

/* A request that could not be read: tell who asks first whether the door knows and lets him, only
 * then what is wrong. */
static void bad_answered(struct visit *v)
{
    bool known = v->ask.ok || v->ask.err.rc == RC_DENIED;
    if (v->verb->roles && !known)
        reply_problem(v, &v->ask.err);
    else if (v->verb->roles && v->ask.ok && !(v->ask.who.roles & v->verb->roles))
        reply_error(v, RC_DENIED, "your roles do not allow %s", v->verb->name);
    else
        reply_status(v, v->bad_status ? v->bad_status : rc_http(v->bad.rc), &v->bad);
}

void request_refuse(struct visit *v)
{
    if (v->verb->roles)
        visit_ask(v, VERB_WHOAMI, arena_take(v->mem, 1, verbs[VERB_WHOAMI].takes->size),
                  bad_answered);
    else
        reply_status(v, v->bad_status ? v->bad_status : rc_http(v->bad.rc), &v->bad);
}

bool request_accepts(const struct visit *v, const char *type)
{
    const char *h = http_header(v->rq, "accept");
    return h && strcasestr(h, type);
}
