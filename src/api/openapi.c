/* openapi.c - /openapi.json (OpenAPI 3.1), printed from verbs[] and the field tables: what is
 * described is what is bound, and a verb cannot be forgotten.
 *
 * Each table is one schema under components; a parameter is a reference into the schema of its
 * verb's table. Two tables of one struct get two names. */
#include "api/api_internal.h"
#include <stdio.h>

enum { SCHEMAS = 2 * VERB_COUNT };

struct schemas {
    struct { const struct fields *fields; char name[64]; } at[SCHEMAS];
    size_t count;
};

static void pair(struct json_out *o, const char *key, const char *text)
{
    json_key(o, key);
    json_put_text(o, text);
}

static void flag(struct json_out *o, const char *key, bool yes)
{
    json_key(o, key);
    json_put_bool(o, yes);
}

static void ref(struct json_out *o, const char *to)
{
    json_open(o, '{');
    pair(o, "$ref", to);
    json_close(o, '}');
}

/* --- names of schemas */

static const char *schema_name(struct schemas *s, const struct fields *fields, const char *verb)
{
    bool taken = false;
    for (size_t i = 0; i < s->count; i++) {
        if (s->at[i].fields == fields)
            return s->at[i].name;
        taken |= text_is(s->at[i].name, fields->name);
    }
    s->at[s->count].fields = fields;
    char *name = s->at[s->count++].name;
    snprintf(name, 64, taken ? "%s_%s" : "%s", fields->name, verb);
    for (char *p = name; *p; p++)
        if (*p == '.')
            *p = '_';
    return name;
}

static void schema_ref(struct json_out *o, struct schemas *s, const struct fields *fields,
                       const char *verb, const char *member)
{
    char to[192];
    snprintf(to, sizeof to, "#/components/schemas/%s%s%s", schema_name(s, fields, verb),
             member ? "/properties/" : "", member ? member : "");
    ref(o, to);
}

/* --- parts of an operation */

static bool has_body(const struct verb *v)
{
    return text_is(v->method, "POST") || text_is(v->method, "PUT") || text_is(v->method, "PATCH");
}

static void parameter(struct json_out *o, struct schemas *s, const struct verb *v,
                      const struct field *f)
{
    json_open(o, '{');
    pair(o, "name", f->name);
    pair(o, "in", f->in_path ? "path" : "query");
    flag(o, "required", f->in_path || f->required);
    if (f->help)
        pair(o, "description", f->help);
    if (!f->in_path && (f->type == F_TEXTS || f->type == F_PAIRS))
        flag(o, "explode", true);
    json_key(o, "schema");
    schema_ref(o, s, v->takes, v->name, f->name);
    json_close(o, '}');
}

static void parameters(struct json_out *o, struct schemas *s, const struct verb *v)
{
    json_key(o, "parameters");
    json_open(o, '[');
    for (size_t i = 0; i < v->takes->count; i++) {
        const struct field *f = &v->takes->rows[i];
        if (f->in_path
            || (!has_body(v) && !f->hidden && f->type != F_INLINE && f->type != F_OBJECT))
            parameter(o, s, v, f);
    }
    if (v->roles)
        ref(o, "#/components/parameters/Project");
    if (v->kind == VERB_WRITE && v->roles)
        ref(o, "#/components/parameters/IdempotencyKey");
    if (text_is(v->method, "PATCH"))
        ref(o, "#/components/parameters/IfMatch");
    if (v == &verbs[VERB_EVENT_LIST])
        ref(o, "#/components/parameters/LastEventId");
    json_close(o, ']');
}

static size_t body_rows(const struct verb *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->takes->count; i++)
        n += !v->takes->rows[i].in_path;
    return n;
}

static void content(struct json_out *o, const char *type)
{
    json_key(o, type);
    json_open(o, '{');
    json_key(o, "schema");
}

static void bytes_content(struct json_out *o, const char *type)
{
    content(o, type);
    json_open(o, '{');
    pair(o, "type", "string");
    json_close(o, '}');
    json_close(o, '}');
}

static void request_body(struct json_out *o, struct schemas *s, const struct verb *v)
{
    static const char *const types[] = { "application/json", "application/yaml" };
    bool raw = v == &verbs[VERB_BLOB_PUT];
    if (!has_body(v) || (!raw && !body_rows(v)))
        return;
    json_key(o, "requestBody");
    json_open(o, '{');
    flag(o, "required", true);
    json_key(o, "content");
    json_open(o, '{');
    if (raw)
        bytes_content(o, "application/octet-stream");
    for (size_t i = 0; !raw && i < COUNT(types); i++) {
        content(o, types[i]);
        schema_ref(o, s, v->takes, v->name, NULL);
        json_close(o, '}');
    }
    json_close(o, '}');
    json_close(o, '}');
}

static void list_schema(struct json_out *o, struct schemas *s, const struct verb *v)
{
    json_open(o, '{');
    pair(o, "type", "object");
    json_key(o, "required");
    json_put_raw(o, "[\"items\",\"next\"]");
    json_key(o, "properties");
    json_open(o, '{');
    json_key(o, "items");
    json_open(o, '{');
    pair(o, "type", "array");
    json_key(o, "items");
    schema_ref(o, s, v->gives, v->name, NULL);
    json_close(o, '}');
    json_key(o, "next");
    json_put_raw(o, "{\"type\":[\"string\",\"null\"],\"description\":\"give it as `page` for the "
                    "entries that follow\"}");
    json_close(o, '}');
    json_close(o, '}');
}

static void good_reply(struct json_out *o, struct schemas *s, const struct verb *v)
{
    char status[8];
    snprintf(status, sizeof status, "%d", v->status);
    json_key(o, status);
    json_open(o, '{');
    pair(o, "description",
         v->status == 101   ? "It is a WebSocket from here on"
         : v->status == 201 ? "It was made"
                            : "As asked");
    if (v->status != 101 && !text_is(v->method, "HEAD")) {
        json_key(o, "content");
        json_open(o, '{');
        if (v->gives) {
            content(o, "application/json");
            if (v->list)
                list_schema(o, s, v);
            else
                schema_ref(o, s, v->gives, v->name, NULL);
            json_close(o, '}');
        }
        if (v == &verbs[VERB_EVENT_LIST])
            bytes_content(o, "text/event-stream");
        if (!v->gives)
            bytes_content(o,
                          v == &verbs[VERB_JOB_LOGS] || v == &verbs[VERB_METRICS] ? "text/plain" : "application/octet-stream");
        json_close(o, '}');
    }
    json_close(o, '}');
}

static void responses(struct json_out *o, struct schemas *s, const struct verb *v)
{
    static const struct { const char *status; bool named_only, open_too; } bad[] = {
        { "400", false, true }, { "401", false, true }, { "403", false, false }, { "404", true, true }, { "429", false, true },
        { "503", false, true }, { "default", false, true },
    };
    json_key(o, "responses");
    json_open(o, '{');
    good_reply(o, s, v);
    for (size_t i = 0; i < COUNT(bad); i++)
        if ((!bad[i].named_only || strchr(v->path, '{')) && (v->roles || bad[i].open_too)) {
            json_key(o, bad[i].status);
            ref(o, "#/components/responses/Problem");
        }
    if (v == &verbs[VERB_EVENT_LIST]) {
        json_key(o, "410");
        json_put_raw(o, "{\"description\":\"What was asked for is no longer kept; here is how things stand, and from where to go on\",\"content\":"
                        "{\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/Gone\"}}}}");
    }
    json_close(o, '}');
}

static void operation(struct json_out *o, struct schemas *s, const struct verb *v)
{
    char method[8], roles[96], tag[32];
    size_t n = 0;
    for (; n < sizeof method - 1 && v->method[n]; n++)
        method[n] = (char)(v->method[n] | 32);
    method[n] = 0;
    snprintf(tag, sizeof tag, "%.*s", (int)strcspn(v->name, "."), v->name);
    json_key(o, method);
    json_open(o, '{');
    pair(o, "operationId", v->name);
    pair(o, "summary", v->help);
    if (v->roles) {
        char text[128];
        const char *who = role_text(roles, v->roles);
        snprintf(text, sizeof text, "For: %s.", text_given(who) ? who : "anybody with a key");
        pair(o, "description", text);
    }
    json_key(o, "tags");
    json_open(o, '[');
    json_put_text(o, tag);
    json_close(o, ']');
    if (!v->roles) {
        json_key(o, "security");
        json_put_raw(o, "[]");
    }
    parameters(o, s, v);
    request_body(o, s, v);
    responses(o, s, v);
    json_close(o, '}');
}

/* --- the document */

static void system_page(struct json_out *o, const char *path, const char *name, const char *what)
{
    json_key(o, path);
    json_open(o, '{');
    json_key(o, "get");
    json_open(o, '{');
    pair(o, "operationId", name);
    pair(o, "summary", what);
    json_key(o, "security");
    json_put_raw(o, "[]");
    json_key(o, "responses");
    json_put_raw(o, "{\"200\":{\"description\":\"Yes\",\"content\":{\"application/"
                    "json\":{\"schema\":{\"type\":\"object\"}}}},"
                    "\"default\":{\"$ref\":\"#/components/responses/Problem\"}}");
    json_close(o, '}');
    json_close(o, '}');
}

static void paths(struct json_out *o, struct schemas *s)
{
    json_key(o, "paths");
    json_open(o, '{');
    system_page(o, "/healthz", "healthz", "Is the process alive?");
    system_page(o, "/readyz", "readyz", "Can it serve?");
    system_page(o, "/openapi.json", "openapi", "This document");
    for (size_t i = 0; i < VERB_COUNT; i++) {
        bool first = verbs[i].path != NULL;
        for (size_t k = 0; first && k < i; k++)
            first = !text_is(verbs[k].path, verbs[i].path);
        if (!first)
            continue;
        json_key(o, verbs[i].path);
        json_open(o, '{');
        for (size_t k = i; k < VERB_COUNT; k++)
            if (text_is(verbs[k].path, verbs[i].path))
                operation(o, s, &verbs[k]);
        json_close(o, '}');
    }
    json_close(o, '}');
}

static const char shared[] =
    "\"parameters\":{"
    "\"Project\":{\"name\":\"Arcus-Project\",\"in\":\"header\",\"description\":\"the project that the request speaks for, by name or id; the query "
    "`project` says the same; the key's own when left out\",\"schema\":{\"type\":\"string\",\"maxLength\":63}},"
    "\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"the same request with the same key is done once\","
    "\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128,\"pattern\":\"^[!-~]+$\"}},"
    "\"IfMatch\":{\"name\":\"If-Match\",\"in\":\"header\",\"description\":\"the ETag that was read: refused if it has changed meanwhile\","
    "\"schema\":{\"type\":\"string\",\"pattern\":\"^(\\\\*|\\\"?[1-9][0-9]*\\\"?)$\"}},"
    "\"LastEventId\":{\"name\":\"Last-Event-ID\",\"in\":\"header\",\"description\":\"resume behind this event\","
    "\"schema\":{\"type\":\"string\",\"pattern\":\"^[0-9]{1,18}$\"}}},"
    "\"responses\":{\"Problem\":{\"description\":\"It did not happen; `detail` says why (RFC 9457)\",\"content\":{\"application/problem+json\":{"
    "\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}},"
    "\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"an API key\"}}";
static const char problem_schema[] =
    "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\"],\"properties\":{"
    "\"type\":{\"type\":\"string\",\"description\":\"stable: /problems/ and the kind\"},\"title\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},\"field\":{\"type\":\"string\",\"description\":\"what in the request was "
    "wrong, by its path\"},\"instance\":{\"type\":\"string\",\"description\":\"the request's id\"}}}";
static const char gone_schema[] =
    "{\"allOf\":[{\"$ref\":\"#/components/schemas/Problem\"},{\"type\":\"object\",\"required\":[\"snapshot\"],\"properties\":{"
    "\"snapshot\":{\"type\":\"object\",\"required\":[\"number\",\"oldest\"],\"description\":\"how things stand, instead of the events that are no "
    "longer kept: it holds all that happened up to `number`. Take it as your new picture, then ask for events after `number`; what you are told of it a "
    "second time means the same.\",\"properties\":{"
    "\"number\":{\"type\":\"integer\",\"description\":\"go on with ?since= this\"},"
    "\"oldest\":{\"type\":\"integer\",\"description\":\"the first event that is kept\"},"
    "\"jobs\":{\"type\":\"object\",\"description\":\"the project's live jobs as GET /v1/jobs lists them: items, and next for the page behind them\"},"
    "\"nodes\":{\"type\":\"object\",\"description\":\"for operators and auditors: as GET /v1/nodes lists them\"}}}}}]}";

static void components(struct json_out *o, struct schemas *s)
{
    json_key(o, "components");
    json_open(o, '{');
    json_key(o, "schemas");
    json_open(o, '{');
    json_key(o, "Problem");
    json_put_raw(o, problem_schema);
    json_key(o, "Gone");
    json_put_raw(o, gone_schema);
    for (size_t i = 0; i < s->count; i++) {
        json_key(o, s->at[i].name);
        bind_schema(o, s->at[i].fields);
    }
    json_close(o, '}');
    str_char(o->to, ',');
    str_text(o->to, shared);
    json_close(o, '}');
}

void openapi_print(struct str *out, const char *version, bool simulated)
{
    struct schemas s = { .count = 0 };
    struct json_out o = { .to = out };
    json_open(&o, '{');
    pair(&o, "openapi", "3.1.0");
    json_key(&o, "info");
    json_open(&o, '{');
    pair(&o, "title", "Arcus");
    pair(&o, "version", version);
    pair(&o, "description", simulated ? "A GPU cloud. Its GPUs are simulated." : "A GPU cloud.");
    json_close(&o, '}');
    json_key(&o, "security");
    json_put_raw(&o, "[{\"key\":[]}]");
    paths(&o, &s);
    components(&o, &s);
    json_close(&o, '}');
}
