#include "sample.h"
#include "tap.h"

TEST(the_schema_is_json_that_tells_what_the_table_tells)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct json *v = NULL;
    struct err err;
    bind_schema(&(struct json_out){ .to = &out }, &sample_fields);
    CHECK(json_parse((struct slice){ out.at, out.len }, mem, &v, &err));
    struct json *p = json_get(v, "properties"), *required = json_get(v, "required");
    CHECK(text_is(json_text(v, "type"), "object") && p && required && required->first && text_is(required->first->text, "name") && !required->first->next);
    struct json *closed = json_get(v, "additionalProperties");
    CHECK(closed && closed->type == JSON_BOOL && !closed->flag);
    size_t n = 0;
    for (struct json *m = p->first; m; m = m->next)
        n++;
    CHECK(n == sample_fields.count - 1 && !json_get(p, "resources"));       /* hidden rows are not told */
    CHECK(json_int(json_get(p, "count"), "minimum", 0) == -5 && json_int(json_get(p, "count"), "maximum", 0) == 64 && json_int(json_get(p, "count"), "default", 0) == 1);
    CHECK(text_is(json_text(json_get(p, "name"), "description"), "what it is called") && text_is(json_text(json_get(p, "name"), "pattern"), "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"));
    CHECK(text_is(json_text(json_get(p, "id"), "pattern"), "^job-[0-9a-hjkmnp-tv-z]{13}$") && text_is(json_text(json_get(p, "at"), "format"), "date-time"));
    struct json *example = json_get(json_get(p, "max_duration"), "examples");
    CHECK(example && example->first && example->first->is_int && example->first->number == 5400);  /* as the API prints it */
    struct json *words = json_get(json_get(p, "on_lost"), "enum");
    CHECK(words && text_is(words->first->text, "requeue") && text_is(words->first->next->text, "wait"));
    CHECK(json_get(json_get(p, "secret"), "writeOnly") && json_get(json_get(json_get(p, "retry"), "properties"), "limit"));
    CHECK(json_get(json_get(json_get(json_get(p, "after"), "items"), "properties"), "delay") && json_int(json_get(p, "after"), "maxItems", 0) == 2);
    CHECK(strstr(out.at, "\"minimum\":0.001,\"maximum\":64,\"default\":0.5"));
}
