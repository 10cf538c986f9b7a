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

TEST(a_log_that_breaks_off_goes_on_without_a_byte_twice)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err;
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/j/logs", 1, 200, "@cut one\ntw" },
        { "GET", "/v1/jobs/j/logs", 2, 200, "@cut one\ntwo\n" },
        { "GET", "/v1/jobs/j/logs", 3, 200, "one\ntwo\nthree\n" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(text_is(
        tailed(&s,
               &(struct tail_ask){ .job = "j", .lines = -1, .follow = true, .source = "stdout" },
               NULL, &err),
        "one\ntwo\nthree\n"));
    CHECK(err.rc == RC_OK
          && straw_count(&s, "GET", "/v1/jobs/j/logs?follow=true&tail=-1&task=0&source=stdout")
                 == 3);
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
