#include "world.h"

static bool made(void *arg, struct control *c, struct request *r)
{
    (void)arg, (void)c;
    if (r->verb == VERB_JOB_SUBMIT) {
        str_text(&r->reply, "{\"id\":\"job-0000000000001\",\"name\":\"a\"}");
        r->version = 4;
        r->replayed = r->idem != NULL;
    } else if (r->verb == VERB_ORG_CREATE) {
        str_text(&r->reply, "{\"id\":\"org-1\"}");
    } else if (r->verb == VERB_JOB_GET) {
        const struct { const char *job; enum rc rc; } *row, rows[] = {
            { "busy", RC_TOO_MANY }, { "away", RC_UNAVAILABLE }, { "stale", RC_STALE }, { "broken", RC_INTERNAL }, { "full", RC_OVER_QUOTA },
        };
        const struct job_ref *ask = r->body;
        for (row = rows; row < rows + COUNT(rows); row++)
            if (text_is(row->job, ask->job))
                r->ok = err_set(&r->err, row->rc, "it is %s", row->job);
        str_text(&r->reply, "{}");
    } else {
        return false;
    }
    return true;
}

TEST(what_was_made_has_a_location_a_version_and_an_id_of_the_request)
{
    struct world w;
    struct got g;
    world_open(&w);
    w.control->script = made;
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", "{\"command\":[\"a\"]}");
    CHECK(g.status == 201 && text_is(g.type, "application/json") && text_is(g.etag, "\"4\""));
    CHECK(text_is(g.location, "/v1/jobs/job-0000000000001") && text_starts(g.id, "req-")
          && !g.replayed[0]);
    CHECK(got_says(&g, "id", "job-0000000000001"));
    got_done(&g);
    struct http_header more[]
        = { { "Idempotency-Key", "k" }, { "Content-Type", "application/json" }, { NULL, NULL } };
    got_start(&g, &w, "dev", "POST", "/v1/jobs", more, SLICE("{\"command\":[\"a\"]}"));
    CHECK(got_wait(&g, &w) && text_is(g.replayed, "true"));
    got_done(&g);
    ask(&g, &w, "op", "POST", "/v1/orgs", "application/json", "{\"name\":\"x\"}");
    CHECK(g.status == 201 && !g.location[0]
          && !g.etag[0]); /* there is no page of one organisation */
    got_done(&g);
    world_close(&w);
}

TEST(each_kind_of_failure_has_its_status_and_a_stable_type)
{
    static const struct { const char *path; int status; const char *type; bool retry; } rows[] = {
        { "/v1/jobs/busy", 429, "/problems/too_many", true }, { "/v1/jobs/away", 503, "/problems/unavailable", true },
        { "/v1/jobs/stale", 412, "/problems/stale", false }, { "/v1/jobs/broken", 500, "/problems/internal", false },
        { "/v1/jobs/full", 403, "/problems/over_quota", false }, { "/v1/nowhere", 404, "/problems/not_found", false },
    };
    struct world w;
    struct got g;
    world_open(&w);
    w.control->script = made;
    for (size_t i = 0; i < COUNT(rows); i++) {
        ask(&g, &w, "dev", "GET", rows[i].path, NULL, NULL);
        CHECK(g.status == rows[i].status && got_says(&g, "type", rows[i].type)
              && text_is(g.type, "application/problem+json"));
        CHECK(text_is(g.retry, rows[i].retry ? "1" : ""));
        got_done(&g);
    }
    CHECK(limits_count(w.api->limits, REFUSED_MANY) == 1 && limits_count(w.api->limits, REFUSED_AWAY) == 1);
    world_close(&w);
}

TEST(a_wrong_method_is_told_which_are_right)
{
    struct world w;
    struct got g;
    world_open(&w);
    ask(&g, &w, "dev", "DELETE", "/v1/jobs", NULL, NULL);
    CHECK(g.status == 405 && text_is(g.allow, "GET, HEAD, POST")
          && got_says(&g, "type", "/problems/method_not_allowed"));
    got_done(&g);
    world_close(&w);
}

TEST(a_problem_is_json_whatever_is_in_its_text)
{
    AUTO(str_done) struct str out = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err, why;
    struct json *doc;
    err_field(&why, "a\"b", "quote \" backslash \\ line\n end");
    problem_print(&out, 400, &why, NULL);
    CHECK(json_parse((struct slice){ out.at, out.len }, mem, &doc, &err));
    CHECK(text_is(json_text(doc, "field"), "a\"b") && json_int(doc, "status", 0) == 400
          && !json_get(doc, "instance"));
}
