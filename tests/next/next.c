/* next.c - what a later version could have, linked around this one (Makefile: arcus-next): one more schema step, a field more in what servers and
 * agents tell each other and in what is kept as JSON, a header more between servers. Flow 36 runs it beside this version: each must
 * understand the other. Only what a version may add without asking is here. */
#include "control/control.h"
#include "net/http_pass.h"
#include "store/store_internal.h"
#include "wire/bind.h"
#include <stdlib.h>

#define MORE "\"next_field\":{\"list\":[1,\"two\",null]}"

bool __real_migrate(struct store *s, struct steps steps, struct err *err);
bool __wrap_migrate(struct store *s, struct steps steps, struct err *err);
void __real_bind_write(struct json_out *o, const struct fields *fields, const void *from);
void __wrap_bind_write(struct json_out *o, const struct fields *fields, const void *from);
struct http_pass *__real_http_pass(struct http_client *to, struct http_request *rq, const struct http_header *extra, size_t count, bool stream,
                                   const struct http_pass_events *events, void *arg);
struct http_pass *__wrap_http_pass(struct http_client *to, struct http_request *rq, const struct http_header *extra, size_t count, bool stream,
                                   const struct http_pass_events *events, void *arg);
bool __real_control_open(struct os *os, struct store *store, const struct control_config *config, struct control **out, struct err *err);
bool __wrap_control_open(struct os *os, struct store *store, const struct control_config *config, struct control **out, struct err *err);

bool __wrap_migrate(struct store *s, struct steps steps, struct err *err)
{
    const char *all[256];
    struct steps more = { all, steps.count + 1, steps.compatible_from };
    if (steps.count != store_steps().count || steps.count >= (int)COUNT(all))  /* as for a restore: not to the newest */
        return __real_migrate(s, steps, err);
    memcpy(all, steps.at, (size_t)steps.count * sizeof *all);
    all[steps.count] = "ALTER TABLE job ADD COLUMN next_hint BIGINT NOT NULL DEFAULT 0";
    return __real_migrate(s, more, err);
}

/* In the outermost object, and in each order, report and stream that names its attempt. */
void __wrap_bind_write(struct json_out *o, const struct fields *fields, const void *from)
{
    static const char *const tables[] = { "desired", "report", "report_item", "hello", "node_info", "order", "open_stream", "job_spec", "quota", "task_request" };
    static const char inner[] = "\"attempt\":";
    size_t began = o->to->len, k = 0;
    __real_bind_write(o, fields, from);
    while (k < COUNT(tables) && !text_is(fields->name, tables[k]))
        k++;
    if (k == COUNT(tables))
        return;
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *text = arena_bytes(mem, o->to->at + began, o->to->len - began), *open = strchr(text, '{') + 1;
    o->to->len = began;
    str_put(o->to, text, (size_t)(open - text));
    str_text(o->to, *open == '}' ? MORE : MORE ",");
    for (const char *at; (at = strstr(open, inner)); open = at + strlen(inner)) {
        str_put(o->to, open, (size_t)(at - open));
        str_printf(o->to, "%s%s", at[-1] == '{' && at - 1 != text ? MORE "," : "", inner);
    }
    str_text(o->to, open);
}

struct http_pass *__wrap_http_pass(struct http_client *to, struct http_request *rq, const struct http_header *extra, size_t count, bool stream,
                                   const struct http_pass_events *events, void *arg)
{
    struct http_header more[8] = { 0 };
    memcpy(more, extra, MIN(count, COUNT(more) - 1) * sizeof *more);
    more[MIN(count, COUNT(more) - 1)] = (struct http_header){ "Arcus-Next", "1" };
    return __real_http_pass(to, rq, more, count + 1, stream, events, arg);
}

bool __wrap_control_open(struct os *os, struct store *store, const struct control_config *config, struct control **out, struct err *err)
{
    struct control_config next = *config;
    next.version = "next";
    return __real_control_open(os, store, &next, out, err);
}
