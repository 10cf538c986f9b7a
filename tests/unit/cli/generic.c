/* generic.c - one word for several things: each is asked for, and the first failure is the exit code. */
#include "cli_test.h"

#define NO(name) "{\"type\":\"/problems/not_found\",\"detail\":\"there is no " name "\"}"
static const struct answer answers[] = {
    { "POST", "/v1/jobs/a/cancel", 0, 200, "{\"id\":\"job-1\",\"name\":\"a\",\"state\":\"cancelled\"}" },
    { "POST", "/v1/jobs/b/cancel", 0, 404, NO("b") },
    { "POST", "/v1/jobs/c/cancel", 0, 409, "{\"type\":\"/problems/conflict\",\"detail\":\"c has ended\"}" },
    { "POST", "/v1/jobs/d/cancel", 0, 200, "{\"id\":\"job-4\",\"name\":\"d\",\"state\":\"cancelled\"}" },
    { "POST", "/v1/jobs/x/cancel", 0, 401, "{\"type\":\"/problems/unauthenticated\",\"detail\":\"who?\"}" },
};

TEST(one_that_fails_does_not_stop_the_others_and_is_the_exit_code)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "cancel", "a", "d", "--task", "3") == 0 && strstr(s.out.at, "job-1") && strstr(s.out.at, "\n\nid:"));
    CHECK(strstr(straw_seen(&s), "/v1/jobs/d/cancel?\n") && straw_count(&s, "POST", "/") == 2);
    CHECK(PLAY(&s, "cancel", "b", "a", "c", "d") == 4 && strstr(s.out.at, "job-1") && strstr(s.out.at, "job-4"));
    CHECK(strstr(s.errors.at, "arcus: there is no b\narcus: c has ended\n") || strstr(s.errors.at, "there is no b"));
    CHECK(PLAY(&s, "cancel", "c", "b") == 5 && strstr(s.errors.at, "c has ended") && strstr(s.errors.at, "there is no b"));
}

TEST(for_programs_several_are_a_list_and_one_is_itself)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "cancel", "a", "b", "d", "-o", "json") == 4 && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err));
    struct json *items = json_get(doc, "items");
    CHECK(items && text_is(json_text(items->first, "name"), "a") && text_is(json_text(items->first->next, "name"), "d") && !items->first->next->next);
    CHECK(PLAY(&s, "cancel", "a", "-o", "json") == 0 && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err) && text_is(json_text(doc, "name"), "a"));
}

TEST(what_would_fail_for_all_is_told_once)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "cancel", "a", "x", "a", "d") == 3 && straw_count(&s, "POST", "/") == 2 && strstr(s.errors.at, "2 more: not tried"));
}
