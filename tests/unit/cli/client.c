/* client.c - verbs over HTTP: routes filled in, pages followed, problems told as what they were. */
#include "cli_test.h"
#include "base/fault.h"

static struct json *ask_of(struct stage *s, const char *text)
{
    struct json *doc = NULL;
    struct err err;
    CHECK(json_parse(SLICE(text), s->c->mem, &doc, &err));
    return doc;
}

TEST(a_route_takes_its_members_from_what_is_asked)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str body = { 0 }, none = { 0 };
    struct err err = { 0 };
    char *path;
    CHECK(cli_route(s.c, VERB_JOB_CANCEL, ask_of(&s, "{\"job\":\"a b/ü\",\"task\":3}"), &path,
                    &body, &err));
    CHECK(text_is(path, "/v1/jobs/a%20b%2F%C3%BC/cancel") && text_is(body.at, "{\"task\":3}"));
    CHECK(cli_route(s.c, VERB_JOB_EXEC,
                    ask_of(&s, "{\"job\":\"j\",\"argv\":[\"sh\",\"-c\",\"a&b\"],\"tty\":true}"),
                    &path, &none, &err));
    CHECK(text_is(path, "/v1/jobs/j/exec?argv=sh&argv=-c&argv=a%26b&tty=true") && !none.len);
    CHECK(!cli_route(s.c, VERB_JOB_GET, ask_of(&s, "{}"), &path, &none, &err)
          && strstr(err.text, "job is missing"));
    CHECK(!cli_route(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"..\"}"), &path, &none, &err)
          && !cli_route(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"\"}"), &path, &none, &err));
}

TEST(a_call_carries_key_project_and_a_key_for_doing_it_once)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    struct json *reply;
    static const struct answer answers[]
        = { { "POST", "/v1/jobs", 0, 201, "{\"id\":\"job-1\"}" },
            { "GET", "/v1/whoami", 0, 200, "{\"name\":\"ada\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    s.c->context.key = "ak_1", s.c->context.project = "vision";
    CHECK(cli_call(s.c, VERB_JOB_SUBMIT, ask_of(&s, "{\"name\":\"n\"}"), &reply, &err)
          && text_is(json_text(reply, "id"), "job-1"));
    CHECK(strstr(straw_seen(&s),
                 "POST /v1/jobs?\nproject=vision key=Bearer ak_1 once\n{\"name\":\"n\"}\n"));
    CHECK(cli_call(s.c, VERB_WHOAMI, ask_of(&s, "{}"), &reply, &err)
          && text_is(json_text(reply, "name"), "ada"));
    CHECK(strstr(straw_seen(&s), "GET /v1/whoami?\nproject=vision key=Bearer ak_1 \n"));
}

TEST(a_problem_becomes_the_error_it_was)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/over", 0, 403,
          "{\"type\":\"/problems/over_quota\",\"detail\":\"the project may hold 2 "
          "GPUs\",\"field\":\"gpus\"}" },
        { "GET", "/v1/jobs/odd", 0, 502, "<html>a proxy</html>" },
        { "GET", "/v1/jobs/garbage", 0, 200, "not json" },
        { "GET", "/v1/jobs/empty", 0, 404, "" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(!cli_call(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"over\"}"), NULL, &err));
    CHECK(err.rc == RC_OVER_QUOTA && text_is(err.text, "the project may hold 2 GPUs")
          && text_is(err.field, "gpus"));
    CHECK(!cli_call(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"odd\"}"), NULL, &err)
          && strstr(err.text, "is an Arcus server there?"));
    CHECK(!cli_call(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"garbage\"}"), NULL, &err));
    CHECK(!cli_call(s.c, VERB_JOB_GET, ask_of(&s, "{\"job\":\"empty\"}"), NULL, &err)
          && err.rc == RC_NOT_FOUND);
}

TEST(every_page_is_followed_unless_a_limit_is_given)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    struct json *list;
    static const struct answer answers[] = {
        { "GET", "/v1/jobs", 1, 200,
          "{\"items\":[{\"id\":\"1\"},{\"id\":\"2\"}],\"next\":\"p2\"}" },
        { "GET", "/v1/jobs", 2, 200, "{\"items\":[{\"id\":\"3\"}],\"next\":\"p3\"}" },
        { "GET", "/v1/jobs", 3, 200, "{\"items\":[{\"id\":\"4\"}],\"next\":null}" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(cli_get_all(s.c, VERB_JOB_LIST, ask_of(&s, "{\"all\":true}"), 0, &list, &err));
    AUTO(str_done) struct str text = { 0 };
    json_print(&text, list);
    CHECK(text_is(
        text.at,
        "{\"items\":[{\"id\":\"1\"},{\"id\":\"2\"},{\"id\":\"3\"},{\"id\":\"4\"}],\"next\":null}"));
    CHECK(strstr(straw_seen(&s), "page=p3") && straw_count(&s, "GET", "/v1/jobs") == 3);
    straw_answers(&s, answers, COUNT(answers));
    CHECK(cli_get_all(s.c, VERB_JOB_LIST, ask_of(&s, "{}"), 2, &list, &err)
          && straw_count(&s, "GET", "/v1/jobs") == 1);
    CHECK(strstr(straw_seen(&s), "limit=2") && text_is(json_text(list, "next"), "p2"));
}

TEST(a_server_that_is_not_there_is_told_with_how_to_start_it)
{
    AUTO(stage_down) struct stage s = stage_up();
    s.c->context.server = "http://127.0.0.1:1";
    CHECK(PLAY(&s, "ps") == 7 && strstr(s.errors.at, "arcus: cannot reach 127.0.0.1:1: ")
          && strstr(s.errors.at, "hint: is the cloud running?"));
    CHECK(!s.out.len);
}

TEST(a_call_ends_whatever_fails_below_it)
{
    static const struct answer answers[]
        = { { "GET", "/v1/whoami", 0, 200, "{\"name\":\"ada\"}" } };
    for (int nth = 1; nth < 200; nth++) {
        AUTO(stage_down) struct stage s = stage_up();
        struct err err = { 0 };
        struct json *reply;
        straw_answers(&s, answers, COUNT(answers));
        fault_arm(nth);
        bool ok = cli_call(s.c, VERB_WHOAMI, ask_of(&s, "{}"), &reply, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok ? text_is(json_text(reply, "name"), "ada")
                 : err.rc != RC_OK && text_given(err.text));
        if (!fired)
            break;
    }
}
