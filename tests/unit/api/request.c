#include "world.h"
#include "model/job.h"

/* What the door was asked, copied out while it is there. */
struct seen {
    int times;
    char name[64], image[64], env[64], project[64], idem[160], hash[DIGEST_HEX], job[64], argv[64];
    int64_t count, limit, priority, if_match, tail;
    bool follow, tty;
    uint64_t given;
};

static bool note(void *arg, struct control *c, struct request *r)
{
    struct seen *s = arg;
    (void)c;
    s->times++;
    s->if_match = r->if_match;
    s->given = r->given;
    snprintf(s->project, sizeof s->project, "%s", r->from.project);
    snprintf(s->idem, sizeof s->idem, "%s", r->idem ? r->idem : "");
    memcpy(s->hash, r->body_hash, sizeof s->hash);
    if (r->verb == VERB_JOB_SUBMIT) {
        const struct job_spec *b = r->body;
        snprintf(s->name, sizeof s->name, "%s", b->name ? b->name : "");
        snprintf(s->image, sizeof s->image, "%s", b->image ? b->image : "");
        snprintf(s->env, sizeof s->env, "%s", b->env.count ? b->env.at[0].value : "");
        s->count = b->count;
    } else if (r->verb == VERB_JOB_UPDATE) {
        const struct job_update_ask *b = r->body;
        snprintf(s->job, sizeof s->job, "%s", b->job);
        s->priority = b->priority;
    } else if (r->verb == VERB_JOB_LIST) {
        const struct job_list_ask *b = r->body;
        s->limit = b->limit;
        s->follow = b->all;
    } else if (r->verb == VERB_JOB_EXEC) {
        const struct job_exec_ask *b = r->body;
        for (size_t i = 0; i < b->argv.count; i++)
            snprintf(s->argv + strlen(s->argv), sizeof s->argv - strlen(s->argv), "[%s]",
                     b->argv.at[i]);
        s->tty = b->tty;
    }
    return false;
}

static void open_seen(struct world *w, struct seen *s)
{
    *s = (struct seen){ 0 };
    world_open(w);
    w->control->script = note;
    w->control->arg = s;
}

TEST(json_and_yaml_bodies_bind_to_the_same_request)
{
    static const struct { const char *type, *body; } same[] = {
        { "application/json", "{\"name\":\"a\",\"image\":\"host\",\"command\":[\"true\"],\"count\":3,\"env\":{\"N\":\"no\"}}" },
        { "application/json; charset=utf-8", "{\"name\":\"a\",\"image\":\"host\",\"command\":\"true\",\"count\":3,\"env\":[\"N=no\"]}" },
        { "application/yaml", "name: a\nimage: host\ncommand: [\"true\"]\ncount: 3\nenv: {N: no}\n" },
        { "text/yaml", "name: a\nimage: host\ncommand: [\"true\"]\ncount: 3\nenv:\n  N: no\n" },
        { "APPLICATION/X-YAML", "{name: a, image: host, command: [\"true\"], count: 3, env: {N: no}}" },
    };
    struct world w;
    struct seen s;
    struct got g;
    open_seen(&w, &s);
    for (size_t i = 0; i < COUNT(same); i++) {
        s = (struct seen){ 0 };
        ask(&g, &w, "dev", "POST", "/v1/jobs", same[i].type, same[i].body);
        CHECK(g.status == 201 && s.times == 1);
        CHECK(text_is(s.name, "a") && text_is(s.image, "host") && s.count == 3
              && text_is(s.env, "no"));
        got_done(&g);
    }
    world_close(&w);
}

TEST(bad_input_names_the_field_and_never_reaches_its_verb)
{
    static const struct {
        const char *method, *path, *type, *body;
        int status;
        const char *field, *detail;
    } bad[] = {
        { "POST", "/v1/jobs", "application/json", "{\"imag\":\"x\",\"command\":[\"a\"]}", 400,
          "imag", "did you mean 'image'" },
        { "POST", "/v1/jobs", "application/yaml", "imag: x\n", 400, "imag",
          "did you mean 'image'" },
        { "POST", "/v1/jobs", "application/json", "{\"name\":", 400, NULL, "line 1" },
        { "POST", "/v1/jobs", "application/json", "{\"name\":\"a\",\"name\":\"b\"}", 400, NULL,
          "name" },
        { "POST", "/v1/jobs", "application/json", "[]", 400, NULL, "object" },
        { "POST", "/v1/jobs", "application/json", "{\"name\":\"a\"} x", 400, NULL, "JSON" },
        { "POST", "/v1/jobs", "application/yaml", "a: [b", 400, NULL, "YAML" },
        { "POST", "/v1/jobs", "application/yaml", "a: &x [*x]\n", 400, NULL, "YAML" },
        { "POST", "/v1/jobs", "application/json", "{\"count\":99999999999999999999}", 400, "count",
          "whole number" },
        { "POST", "/v1/jobs", "application/json", "{\"count\":-1}", 400, "count", "" },
        { "POST", "/v1/jobs", "application/json", "{\"count\":1e99}", 400, "count", "" },
        { "POST", "/v1/jobs?name=b", "application/json", "{\"name\":\"a\"}", 400, "name",
          "query and in the body" },
        { "POST", "/v1/jobs", "text/plain", "name: a", 415, "Content-Type", "application/json" },
        { "POST", "/v1/jobs", "application/jsonp", "{}", 415, "Content-Type", "application/json" },
        { "PATCH", "/v1/jobs/one", "application/json", "{\"job\":\"two\",\"priority\":1}", 400,
          "job", "address" },
        { "PATCH", "/v1/jobs/one", "application/json", "{}", 400, "priority", "required" },
        { "GET", "/v1/jobs?limit=5&limit=6", NULL, NULL, 400, "limit", "twice" },
        { "GET", "/v1/jobs?limit=0", NULL, NULL, 400, "limit", "" },
        { "GET", "/v1/jobs?limit=abc", NULL, NULL, 400, "limit", "" },
        { "GET", "/v1/jobs?limt=5", NULL, NULL, 400, "limt", "did you mean 'limit'" },
        { "GET", "/v1/jobs?name=%zz", NULL, NULL, 400, NULL, "percent-encoded" },
        { "GET", "/v1/jobs?name=%00", NULL, NULL, 400, NULL, "percent-encoded" },
        { "GET", "/v1/jobs/%ff", NULL, NULL, 400, "job", "percent-encoded" },
        { "GET", "/v1/jobs?project=a&project=b", NULL, NULL, 400, "project", "twice" },
        { "GET", "/v1/jobs", "application/json", "{\"limit\":5}", 400, NULL, "query" },
        { "PUT", "/v1/blobs/sha256:12", "application/octet-stream", "x", 400, "digest", "" },
    };
    struct world w;
    struct seen s;
    struct got g;
    open_seen(&w, &s);
    for (size_t i = 0; i < COUNT(bad); i++) {
        ask(&g, &w, "dev", bad[i].method, bad[i].path, bad[i].type, bad[i].body);
        if (g.status != bad[i].status)
            printf("# %s %s: %d\n", bad[i].method, bad[i].path, g.status);
        CHECK(g.status == bad[i].status && text_is(g.type, "application/problem+json"));
        CHECK(got_says(&g, "detail", bad[i].detail)
              && (!bad[i].field || got_says(&g, "field", bad[i].field)));
        CHECK(got_says(&g, "instance", g.id) && strlen(g.id) == 20);
        got_done(&g);
    }
    for (int v = 0; v < VERB_COUNT; v++)
        CHECK(!w.control->asked[v] || v == VERB_WHOAMI);
    CHECK(w.control->asked[VERB_WHOAMI] == (int)COUNT(bad));
    world_close(&w);
}

TEST(a_stranger_is_told_that_he_is_one_and_not_what_is_wrong_with_his_request)
{
    struct world w;
    struct got g;
    world_open(&w);
    ask(&g, &w, NULL, "POST", "/v1/jobs", "application/json", "{\"imag\":1}");
    CHECK(g.status == 401 && text_is(g.asks, "Bearer realm=\"arcus\"")
          && !strstr(g.body.at, "imag"));
    got_done(&g);
    ask(&g, &w, "nobody", "GET", "/v1/jobs?limit=x", NULL, NULL);
    CHECK(g.status == 401 && got_says(&g, "type", "/problems/unauthenticated"));
    got_done(&g);
    ask(&g, &w, "view", "POST", "/v1/jobs", "application/json", "{\"imag\":1}");
    CHECK(g.status == 403 && !strstr(g.body.at, "imag"));
    got_done(&g);
    ask(&g, &w, NULL, "POST", "/v1/login", "application/json",
        "{\"usr\":1}"); /* it carries its own credential */
    CHECK(g.status == 400 && got_says(&g, "detail", "did you mean 'user'"));
    got_done(&g);
    world_close(&w);
}

TEST(a_body_over_the_limit_is_refused_before_it_is_kept)
{
    struct world w;
    struct seen s;
    struct got g;
    open_seen(&w, &s);
    size_t n = 10 << 20;
    char *big = malloc(n + 1);
    memset(big, ' ', n);
    big[n] = 0;
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", big);
    CHECK(g.status == 413 && got_says(&g, "type", "/problems/too_large") && s.times == 0);
    got_done(&g);
    free(big);
    world_close(&w);
}

/* Reading it takes long and much: the door is asked first who sends it. */
TEST(a_large_body_is_read_only_for_somebody_whom_the_door_knows)
{
    struct world w;
    struct seen s;
    struct got g;
    AUTO(str_done) struct str body = { 0 };
    open_seen(&w, &s);
    str_text(&body, "{\"image\":\"host\",\"command\":[\"true\"],\"name\":\"large\",\"nonsense\":\"");
    for (int i = 0; i < 100 << 10; i++)
        str_char(&body, 'x');
    str_text(&body, "\"}");
    ask(&g, &w, "nobody", "POST", "/v1/jobs", "application/json", body.at);
    CHECK(g.status == 401 && s.times == 0);
    got_done(&g);
    ask(&g, &w, NULL, "POST", "/v1/login", "application/json", body.at);
    CHECK(g.status == 413 && s.times == 0);
    got_done(&g);
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", body.at);
    CHECK(g.status == 400 && got_says(&g, "detail", "nonsense"));
    got_done(&g);
    str_clear(&body);
    str_text(&body, "{\"image\":\"host\",\"command\":[\"true\"],\"name\":\"large\"}");
    for (int i = 0; i < 100 << 10; i++)
        str_char(&body, ' ');
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", body.at);
    CHECK(text_is(s.name, "large"));
    got_done(&g);
    world_close(&w);
}

TEST(depth_is_bounded)
{
    struct world w;
    struct got g;
    world_open(&w);
    char deep[2100] = "";
    memset(deep, '[', 2000);
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/json", deep);
    CHECK(g.status == 400 && got_says(&g, "detail", "deep"));
    got_done(&g);
    ask(&g, &w, "dev", "POST", "/v1/jobs", "application/yaml", deep);
    CHECK(g.status == 400);
    got_done(&g);
    world_close(&w);
}

static void ask_with(struct got *g, struct world *w, const char *method, const char *path,
                     const char *name, const char *value, const char *body)
{
    struct http_header more[]
        = { { name, value }, { "Content-Type", "application/json" }, { NULL, NULL } };
    got_start(g, w, "dev", method, path, more, SLICE(body));
    CHECK(got_wait(g, w));
}

TEST(the_headers_of_a_request_reach_the_door)
{
    struct world w;
    struct seen s;
    struct got g;
    open_seen(&w, &s);
    ask_with(&g, &w, "PATCH", "/v1/jobs/a%20b", "If-Match", "\"17\"", "{\"priority\":7}");
    CHECK(g.status == 200 && s.if_match == 17 && text_is(s.job, "a b") && s.priority == 7);
    got_done(&g);
    ask_with(&g, &w, "PATCH", "/v1/jobs/one", "If-Match", "3",
             "{\"job\":\"one\",\"priority\":7}"); /* a repeat is fine */
    CHECK(g.status == 200 && s.if_match == 3);
    got_done(&g);
    ask_with(&g, &w, "GET", "/v1/jobs?all&limit=7", "Arcus-Project", "vision", "");
    CHECK(g.status == 200 && text_is(s.project, "vision") && s.limit == 7 && s.follow);
    got_done(&g);
    ask_with(&g, &w, "GET", "/v1/jobs?project=vision", "Arcus-Project", "vision", "");
    CHECK(g.status == 200);
    got_done(&g);
    ask_with(&g, &w, "GET", "/v1/jobs?project=other", "Arcus-Project", "vision", "");
    CHECK(g.status == 400 && got_says(&g, "field", "project"));
    got_done(&g);
    ask_with(&g, &w, "GET", "/v1/jobs/x/exec?argv=a%26b&argv=c+d&tty=true", "X", "y", "");
    CHECK(g.status == 426 && text_is(s.argv, "[a&b][c d]") && s.tty);
    got_done(&g);
    world_close(&w);
}

TEST(bad_headers_are_refused)
{
    static const struct { const char *name, *value; } bad[] = {
        { "If-Match", "W/\"3\"" }, { "If-Match", "\"3" }, { "If-Match", "0" }, { "If-Match", "-1" }, { "If-Match", "\"3\", \"4\"" },
        { "If-Match", "99999999999999999999999" }, { "Idempotency-Key", "a b" },
        { "Idempotency-Key", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
                             "01234567890123456789012345678" },
    };
    struct world w;
    struct seen s;
    struct got g;
    open_seen(&w, &s);
    for (size_t i = 0; i < COUNT(bad); i++) {
        s.times = 0;
        ask_with(&g, &w, "PATCH", "/v1/jobs/one", bad[i].name, bad[i].value, "{\"priority\":7}");
        CHECK(g.status == 400 && got_says(&g, "field", bad[i].name));
        got_done(&g);
    }
    CHECK(!w.control->asked[VERB_JOB_UPDATE]);
    world_close(&w);
}

TEST(the_same_wish_has_the_same_hash_and_another_has_another)
{
    struct world w;
    struct seen s;
    struct got g;
    char first[DIGEST_HEX];
    open_seen(&w, &s);
    ask_with(&g, &w, "POST", "/v1/jobs", "Idempotency-Key", "k1", "{\"command\":[\"a\"]}");
    got_done(&g);
    memcpy(first, s.hash, sizeof first);
    CHECK(text_is(s.idem, "k1") && strlen(first) == 64);
    ask_with(&g, &w, "POST", "/v1/jobs", "Idempotency-Key", "k1", "{\"command\":[\"a\"]}");
    got_done(&g);
    CHECK(text_is(first, s.hash));
    ask_with(&g, &w, "POST", "/v1/jobs", "Idempotency-Key", "k1", "{\"command\":[\"b\"]}");
    got_done(&g);
    CHECK(!text_is(first, s.hash));
    world_close(&w);
}
