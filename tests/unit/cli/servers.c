#include "cli_test.h"

#define JOB "{\"id\":\"job-1\",\"name\":\"j\",\"state\":\"queued\"}"
#define AWAY "{\"type\":\"/problems/unavailable\",\"detail\":\"no server writes at the moment\"}"

/* The straw behind addresses where nobody is. */
static void behind_the_dead(struct stage *s)
{
    s->c->context.server = arena_printf(s->c->mem, "http://127.0.0.1:1,%s, http://127.0.0.1:2", s->c->context.server);
}

TEST(a_server_that_is_not_there_is_passed_over)
{
    static const struct answer answers[] = { { "POST", "/v1/jobs", 0, 201, JOB }, { "GET", "/v1/jobs", 0, 200, "{\"items\":[],\"next\":null}" } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    behind_the_dead(&s);
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 0 && strstr(s.out.at, "job-1"));
    CHECK(PLAY(&s, "ps") == 0 && straw_count(&s, "POST", "/v1/jobs") == 1 && straw_count(&s, "GET", "/v1/jobs") == 1);
}

TEST(what_was_not_answered_is_asked_again_as_the_same_request)
{
    static const struct answer answers[] = { { "POST", "/v1/jobs", 1, 503, AWAY }, { "POST", "/v1/jobs", 2, 201, "@cut {" }, { "POST", "/v1/jobs", 0, 201, JOB } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    behind_the_dead(&s);
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 0 && strstr(s.out.at, "job-1"));
    CHECK(straw_count(&s, "POST", "/v1/jobs") == 3 && text_given(straw_idem(&s, 0)));
    CHECK(text_is(straw_idem(&s, 0), straw_idem(&s, 1)) && text_is(straw_idem(&s, 0), straw_idem(&s, 2)));
}

TEST(a_server_that_says_when_is_asked_once_more_then_and_one_that_does_not_is_not)
{
    static const struct answer when[] = { { "POST", "/v1/jobs", 1, 503, "@after " AWAY }, { "POST", "/v1/jobs", 0, 201, JOB } },
                               slow[] = { { "POST", "/v1/jobs", 0, 429, "@after {\"type\":\"/problems/too_many\",\"detail\":\"slow down\"}" } },
                               never[] = { { "POST", "/v1/jobs", 0, 503, AWAY } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, when, COUNT(when));
    int64_t began = os_boot_ms(s.c->os);
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 0 && os_boot_ms(s.c->os) - began >= 900);
    CHECK(straw_count(&s, "POST", "/v1/jobs") == 2 && text_is(straw_idem(&s, 0), straw_idem(&s, 1)));
    straw_answers(&s, slow, COUNT(slow));
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 7 && straw_count(&s, "POST", "/v1/jobs") == 2);
    straw_answers(&s, never, COUNT(never));
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 7 && straw_count(&s, "POST", "/v1/jobs") == 1);
}

TEST(what_a_server_refuses_is_not_asked_of_another)
{
    static const struct answer answers[] = { { "POST", "/v1/jobs", 0, 400, "{\"type\":\"/problems/bad_input\",\"detail\":\"no\"}" } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    behind_the_dead(&s);
    CHECK(PLAY(&s, "submit", "--image", "x", "--", "true") == 2 && straw_count(&s, "POST", "/v1/jobs") == 1);
}

TEST(when_nobody_is_there_it_ends_in_time_and_one_alone_at_once)
{
    AUTO(stage_down) struct stage s = stage_up();
    int64_t began = os_boot_ms(s.c->os);
    s.c->context.server = "http://127.0.0.1:1";
    CHECK(PLAY(&s, "ps") == 7);
    cli_disconnect(s.c);
    s.c->context.server = "http://127.0.0.1:1,http://127.0.0.1:2";
    CHECK(PLAY(&s, "ps") == 7 && os_boot_ms(s.c->os) - began < 60 * 1000);
}

TEST(logs_go_on_at_another_server_without_a_byte_lost_or_said_twice)
{
    static const struct answer answers[] = { { "GET", "/readyz", 0, 200, "ok" },
                                             { "GET", "/v1/jobs/j/logs", 1, 200, "@cut att-a.1.0.4 4\none\natt-a.1.0.8 8\ntw" },
                                             { "GET", "/v1/jobs/j/logs", 2, 503, AWAY },
                                             { "GET", "/v1/jobs/j/logs", 3, 200, "@cut att-a.1.0.8" },
                                             { "GET", "/v1/jobs/j/logs", 0, 200, "att-a.1.0.14 10\ntwo\nthree\n" },
                                             { "GET", "/v1/jobs/j", 0, 200, JOB } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    behind_the_dead(&s);
    CHECK(PLAY(&s, "logs", "-f", "j") == 0 && text_is(s.out.at, "one\ntwo\nthree\n"));
}

#define EVENT(n) "id: " #n "\ndata: {\"id\":" #n ",\"name\":\"e" #n "\"}\n\n"
TEST(events_go_on_at_another_server_from_the_last_number)
{
    static const struct answer answers[] = { { "GET", "/readyz", 0, 200, "ok" },
                                             { "GET", "/v1/events?since=0", 0, 200, "@cut " EVENT(1) EVENT(2) },
                                             { "GET", "/v1/events?since=2", 1, 503, AWAY },
                                             { "GET", "/v1/events?since=2", 0, 200, "@cut " EVENT(3) EVENT(4) } };
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    behind_the_dead(&s);
    CHECK(PLAY(&s, "events", "-f", "--limit", "4", "-o", "json") == 0);
    const char *at = s.out.at ? s.out.at : "";
    for (int i = 1; i <= 4; i++) {
        char word[16];
        snprintf(word, sizeof word, "\"e%d\"", i);
        const char *found = strstr(at, word);
        CHECK(found != NULL && !strstr(found + 1, word));
        at = found ? found : at;
    }
}

TEST(the_key_of_a_cloud_goes_to_its_own_addresses_only)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    CHECK(servers_within("https://a", "https://a,https://b", mem) && servers_within("https://b, https://a", "https://a,https://b", mem));
    CHECK(!servers_within("https://c", "https://a,https://b", mem) && !servers_within("https://a,https://c", "https://a,https://b", mem));
    CHECK(!servers_within("https://a", NULL, mem) && !servers_within("", "https://a", mem) && !servers_within("https://a.evil", "https://a", mem));
}
