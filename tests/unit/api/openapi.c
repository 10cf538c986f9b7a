#include "world.h"

static const struct json *pointer(const struct json *at, const char *path)     /* "#/a/b~1c" */
{
    for (path++; at && *path == '/';) {
        char name[128];
        size_t n = 0;
        for (path++; *path && *path != '/' && n < sizeof name - 1; path++) {
            name[n++] = *path == '~' ? (path[1] == '1' ? '/' : '~') : *path;
            path += *path == '~';
        }
        name[n] = 0;
        at = json_get(at, name);
    }
    return at;
}

static int check_refs(const struct json *root, const struct json *at)
{
    int count = 0;
    for (const struct json *m = at->first; m; m = m->next) {
        if (text_is(m->name, "$ref") && m->type == JSON_TEXT) {
            count++;
            if (!pointer(root, m->text))
                printf("# nothing at %s\n", m->text);
            CHECK(pointer(root, m->text) != NULL);
        }
        count += check_refs(root, m);
    }
    return count;
}

static bool has_parameter(const struct json *root, const struct json *operation, const char *in,
                          const char *name)
{
    const struct json *list = json_get(operation, "parameters");
    for (const struct json *p = list ? list->first : NULL; p; p = p->next) {
        const struct json *q = json_text(p, "$ref") ? pointer(root, json_text(p, "$ref")) : p;
        if (text_is(json_text(q, "in"), in) && text_is(json_text(q, "name"), name))
            return true;
    }
    return false;
}

static void check_operation(const struct json *root, const struct verb *v)
{
    char method[8] = "", status[8];
    for (size_t i = 0; v->method[i]; i++)
        method[i] = (char)(v->method[i] | 32);
    snprintf(status, sizeof status, "%d", v->status);
    const struct json *o = json_get(json_get(json_get(root, "paths"), v->path), method);
    CHECK(o && text_is(json_text(o, "operationId"), v->name) && json_text(o, "summary"));
    CHECK(json_get(json_get(o, "responses"), status)
          && json_get(json_get(o, "responses"), "default"));
    CHECK((json_get(o, "security") != NULL) == !v->roles);
    for (const char *p = strchr(v->path, '{'); p; p = strchr(p + 1, '{')) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1, "}"), p + 1);
        CHECK(has_parameter(root, o, "path", name));
    }
    bool body
        = text_is(v->method, "POST") || text_is(v->method, "PUT") || text_is(v->method, "PATCH");
    for (size_t i = 0; i < v->takes->count; i++) {
        const struct field *f = &v->takes->rows[i];
        if (!f->in_path && !f->hidden && f->type != F_INLINE)
            CHECK(body ? json_get(o, "requestBody") != NULL
                       : has_parameter(root, o, "query", f->name));
    }
}

TEST(the_api_text_describes_every_route_and_every_reference_in_it_resolves)
{
    AUTO(str_done) struct str text = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *root = NULL;
    struct err err = { 0 };
    openapi_print(&text, "1.0", false);
    CHECK(json_parse((struct slice){ text.at, text.len }, mem, &root,
                     &err)); /* also: no name is there twice */
    if (!root) {
        printf("# %s\n", err.text);
        return;
    }
    CHECK(text_is(json_text(root, "openapi"), "3.1.0")
          && json_text(json_get(root, "info"), "version"));
    CHECK(check_refs(root, root) > 200);
    size_t count = 0, paths = 0;
    for (int i = 0; i < VERB_COUNT; i++)
        if (verbs[i].path) {
            check_operation(root, &verbs[i]);
            count++;
        }
    for (const struct json *p = json_get(root, "paths")->first; p; p = p->next)
        for (const struct json *o = p->first; o; o = o->next)
            paths++;
    CHECK(paths == count + 3); /* and nothing that is not there */
    CHECK(json_get(json_get(json_get(root, "components"), "securitySchemes"), "key"));
}

TEST(a_secret_is_marked_as_one_way)
{
    AUTO(str_done) struct str text = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *root = NULL;
    struct err err = { 0 };
    openapi_print(&text, "1.0", true);
    CHECK(json_parse((struct slice){ text.at, text.len }, mem, &root, &err));
    const struct json *password
        = pointer(root, "#/components/schemas/login_ask/properties/password");
    CHECK(password && json_get(password, "writeOnly") && json_get(password, "writeOnly")->flag);
    CHECK(strstr(json_text(json_get(root, "info"), "description"), "simulated"));
}
