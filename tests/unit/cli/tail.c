/* tail.c - a log that breaks off is taken up again where it broke. */
#include "cli_test.h"
#include <fcntl.h>
#include <unistd.h>

static const char *tailed(struct stage *s, const struct tail_ask *ask, const char *prefix,
                          struct err *err)
{
    int fd = open(stage_path(s, "log"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char text[4096];
    *err = (struct err){ 0 };
    CHECK(cli_connect(s->c, err));
    AUTO(tail_free) struct tail *t = tail_start(s->c, ask, fd, prefix);
    while (!tail_over(t))
        os_run(s->c->os);
    (void)tail_failed(t, err);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[MAX(n, 0)] = 0;
    close(fd);
    return text;
}

TEST(a_log_that_breaks_off_goes_on_behind_the_last_whole_piece)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err;
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/j/logs", 1, 200, "@cut att-a.1.0.4 4\none\natt-a.1.9.6 6\ntwo\nt" },
        { "GET", "/v1/jobs/j/logs", 2, 200, "@cut att-a.1.9" },
        { "GET", "/v1/jobs/j/logs", 3, 200, "att-a.1.9.6 6\ntwo\nthatt-b.1.0.5 5\nree\n\n" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(text_is(
        tailed(&s, &(struct tail_ask){ .job = "j", .lines = 2, .follow = true, .source = "stdout" },
               NULL, &err),
        "one\ntwo\nthree\n\n"));
    CHECK(err.rc == RC_OK
          && straw_count(&s, "GET", "/v1/jobs/j/logs?follow=true&tail=2&task=0&marks=true&source=stdout") == 3
          && straw_count(&s, "GET", "/v1/jobs/j/logs?follow=true&tail=2&task=0&marks=true&source=stdout&from=att-a.1.0.4") == 2);
}

TEST(a_log_of_which_nothing_came_yet_goes_on_where_it_began)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err;
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/j/logs", 1, 200, "@cut att-a.1.7.0 0\n" },
        { "GET", "/v1/jobs/j/logs", 2, 200, "att-a.1.9.4 4\nnew\n" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(text_is(tailed(&s, &(struct tail_ask){ .job = "j", .lines = 0, .follow = true }, NULL, &err), "new\n"));
    CHECK(err.rc == RC_OK && straw_count(&s, "GET", "/v1/jobs/j/logs?follow=true&tail=0&task=0&marks=true&from=att-a.1.7.0") == 1);
}

TEST(what_is_no_log_with_marks_is_told_so)
{
    static const char *const bodies[] = { "plain text\n", "nomark\n", "att-a.1.0.0 99999999\n",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        AUTO(stage_down) struct stage s = stage_up();
        struct err err;
        struct answer answers[] = { { "GET", "/v1/jobs/j/logs", 0, 200, bodies[i] } };
        straw_answers(&s, answers, COUNT(answers));
        CHECK(!*tailed(&s, &(struct tail_ask){ .job = "j", .lines = -1, .follow = true }, NULL, &err) && err.rc == RC_INTERNAL);
    }
}

TEST(half_a_log_that_is_not_followed_is_an_error)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err;
    static const struct answer answers[]
        = { { "GET", "/v1/jobs/j/logs", 0, 200, "@cut one" },
            { "GET", "/v1/jobs/k/logs", 0, 404,
              "{\"type\":\"/problems/not_found\",\"detail\":\"no k\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(text_is(tailed(&s, &(struct tail_ask){ .job = "j", .lines = -1 }, NULL, &err), "one")
          && err.rc == RC_UNAVAILABLE);
    CHECK(!*tailed(&s, &(struct tail_ask){ .job = "k", .lines = 5, .follow = true }, NULL, &err)
          && err.rc == RC_NOT_FOUND && text_is(err.text, "no k"));
}

TEST(each_line_of_an_array_carries_its_task)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err;
    static const struct answer answers[] = { { "GET", "/v1/jobs/j/logs", 0, 200, "a\n\nb" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(
        text_is(tailed(&s, &(struct tail_ask){ .job = "j", .lines = -1, .task = 3 }, "[3] ", &err),
                "[3] a\n[3] \n[3] b"));
}
