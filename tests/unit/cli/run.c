/* run.c - a job is followed to its end, and its end is our exit code. */
#include "cli_test.h"

#define JOB(state, more)                                                                           \
    "{\"id\":\"job-1\",\"name\":\"sh\",\"count\":1,\"state\":\"" state "\"" more "}"

static int code_of(const char *job, const char *task)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *j = NULL, *t = NULL;
    struct err err;
    CHECK(json_parse(SLICE(job), mem, &j, &err)
          && (!task || json_parse(SLICE(task), mem, &t, &err)));
    return job_exit_code(j, t);
}

TEST(every_end_has_its_exit_code)
{
    CHECK(code_of(JOB("done", ",\"outcome\":\"succeeded\",\"exit_code\":0"), NULL) == 0);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"exited\",\"exit_code\":3"), NULL) == 3);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"signaled\",\"exit_code\":0"), "{\"signal\":11}")
          == 139);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"signaled\",\"exit_code\":143"), NULL) == 143);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"out_of_memory\",\"exit_code\":137"), NULL) == 137);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"deadline\""), NULL) == 124);
    CHECK(code_of(JOB("cancelled", ",\"outcome\":\"cancelled\""), NULL) == 130
          && code_of(JOB("cancelled", ",\"outcome\":\"\""), NULL) == 130);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"image_not_found\""), NULL) == 125
          && code_of(JOB("failed", ",\"outcome\":\"node_lost\""), NULL) == 125);
    CHECK(
        code_of(JOB("failed", ",\"outcome\":\"start_failed\",\"detail\":\"nope: command not found "
                              "in the image\""),
                NULL)
        == 127);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"start_failed\",\"detail\":\"2 of 3 failed\""),
                  "{\"detail\":\"the command cannot be executed: it is a folder\"}")
          == 126);
    CHECK(code_of(JOB("failed", ",\"outcome\":\"start_failed\",\"detail\":\"bad mount\""), NULL)
          == 125);
    /* a task's own words count for nothing when the node says something else */
    CHECK(
        code_of(JOB("failed", ",\"outcome\":\"node_lost\",\"detail\":\"x: command not found in the "
                              "image\""),
                NULL)
        == 125);
    /* a failure is never told as success */
    CHECK(code_of(JOB("failed", ",\"outcome\":\"exited\",\"exit_code\":0"), NULL) == 125);
    for (int o = OUTCOME_EXITED; o < OUTCOME_COUNT; o++) {
        char job[128];
        snprintf(job, sizeof job, "{\"state\":\"failed\",\"outcome\":\"%s\",\"exit_code\":0}",
                 outcome_name((enum outcome)o));
        CHECK(code_of(job, NULL) != 0);
    }
}

TEST(the_two_streams_of_a_job_come_out_where_they_belong)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "POST", "/v1/jobs", 0, 201, JOB("queued", "") },
        { "GET", "/v1/jobs/job-1/logs?follow=true&tail=-1&task=0&marks=true&source=stdout", 0, 200,
          "att-a.1.0.7 7\nto out\n" },
        { "GET", "/v1/jobs/job-1/logs?follow=true&tail=-1&task=0&marks=true&source=stderr", 0, 200,
          "att-a.1.0.7 7\nto err\n" },
        { "GET", "/v1/jobs/job-1/tasks", 0, 200,
          "{\"items\":[{\"state\":\"failed\",\"signal\":0}],\"next\":null}" },
        { "GET", "/v1/jobs/job-1", 1, 200,
          JOB("queued", ",\"reason\":\"resources\",\"reason_text\":\"no room\"") },
        { "GET", "/v1/jobs/job-1", 2, 200, JOB("running", ",\"gpus\":\"1\",\"simulated\":true") },
        { "GET", "/v1/jobs/job-1", 0, 200,
          JOB("failed",
              ",\"outcome\":\"exited\",\"exit_code\":3,\"gpus\":\"1\",\"simulated\":true") },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "run", "-g", "1", "--", "sh", "-c", "x") == 3);
    CHECK(text_is(s.out.at, "to out\n"));
    CHECK(text_starts(s.errors.at, "job-1 (sh) is submitted\n") && strstr(s.errors.at, "to err\n")
          && strstr(s.errors.at, "note: the GPUs of job-1 are simulated\n"));
    CHECK(strstr(straw_seen(&s), "source=stdout") && strstr(straw_seen(&s), "source=stderr"));
}

TEST(a_detached_job_is_only_its_id)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = { { "POST", "/v1/jobs", 0, 201, JOB("queued", "") } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "run", "-d", "--", "true") == 0 && text_is(s.out.at, "job-1\n") && !s.errors.len
          && straw_count(&s, "GET", "/") == 0);
    CHECK(PLAY(&s, "run", "-d", "-o", "json", "--", "true") == 0
          && text_is(s.out.at,
                     "{\n  \"id\": \"job-1\",\n  \"name\": \"sh\",\n  \"state\": \"queued\"\n}\n"));
    CHECK(PLAY(&s, "run", "-d", "-o", "yaml", "--", "true") == 0
          && text_is(s.out.at, "id: job-1\nname: sh\nstate: queued\n"));
}

TEST(how_it_failed_is_told_where_its_own_words_do_not)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "POST", "/v1/jobs", 0, 201, JOB("queued", "") },
        { "GET", "/v1/jobs/job-1/logs", 0, 200, "" },
        { "GET", "/v1/jobs/job-1/tasks", 0, 200, "{\"items\":[],\"next\":null}" },
        { "GET", "/v1/jobs/job-1", 0, 200,
          JOB("failed", ",\"outcome\":\"image_not_found\",\"detail\":\"nope:1 is not "
                        "there\",\"exit_code\":0") },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "run", "--", "true") == 125
          && strstr(s.errors.at, "job-1 failed: image_not_found: nope:1 is not there\n"));
    CHECK(PLAY(&s, "run") == 2 && strstr(s.errors.at, "what to run?"));
}

TEST(a_job_that_is_refused_is_not_followed)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "POST", "/v1/jobs", 0, 400,
              "{\"type\":\"/problems/bad_input\",\"detail\":\"gpus: 'x' is not a "
              "wish\",\"field\":\"gpus\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "run", "-g", "x", "--", "true") == 2
          && text_is(s.errors.at, "arcus: gpus: 'x' is not a wish\n")
          && straw_count(&s, "GET", "/") == 0);
}
