/* logs.c - the flags of logs become its question. */
#include "cli_test.h"

TEST(logs_ask_for_what_the_flags_say)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = { { "GET", "/v1/jobs/t/logs?follow=true", 0, 200, "att-a.1.0.5 5\nline\n" },
                                             { "GET", "/v1/jobs/t/logs", 0, 200, "line\n" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "logs", "t") == 0 && text_is(s.out.at, "line\n")
          && straw_count(&s, "GET", "/v1/jobs/t/logs?follow=false&tail=-1&task=-1\n") == 1);
    CHECK(PLAY(&s, "logs", "-f", "t", "-n", "3", "--tail", "10", "--stderr", "--attempt", "2")
          == 0);
    CHECK(straw_count(&s, "GET",
                      "/v1/jobs/t/logs?follow=true&tail=10&task=3&marks=true&source=stderr&attempt=2\n")
          == 1 && text_is(s.out.at, "line\n"));
    CHECK(PLAY(&s, "logs", "t", "--stdout", "--stderr") == 0
          && straw_count(&s, "GET", "/v1/jobs/t/logs?follow=false&tail=-1&task=-1\n") == 2);
    CHECK(PLAY(&s, "logs", "none") == 4);
}

TEST(logs_of_many_tasks_say_whose_they_are)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/many/logs", 0, 200, "line\033[1m\n" },
        { "GET", "/v1/jobs/many", 0, 200, "{\"id\":\"job-1\",\"count\":10}" },
        { "GET", "/v1/jobs/one/logs", 0, 200, "line\n" },
        { "GET", "/v1/jobs/one", 0, 200, "{\"id\":\"job-2\",\"count\":1}" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "logs", "many") == 0
          && text_is(s.errors.at, "note: task 0 of 10; --task N shows another\n"));
    CHECK(text_is(s.out.at, "line\033[1m\n")); /* the task's bytes are its own */
    CHECK(PLAY(&s, "logs", "many", "--task", "0") == 0 && !s.errors.len);
    CHECK(PLAY(&s, "logs", "one") == 0 && !s.errors.len);
    CHECK(PLAY(&s, "logs", "many", "-q") == 0 && !s.errors.len);
    s.c->quiet = false;
}
