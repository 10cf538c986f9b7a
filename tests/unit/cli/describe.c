/* describe.c - a job with all that belongs to it. */
#include "cli_test.h"

static const struct answer answers[] = {
    { "GET", "/v1/jobs/job-1/tasks", 0, 200,
      "{\"items\":[{\"task\":0,\"state\":\"done\"},{\"task\":1,\"state\":\"failed\"}],\"next\":"
      "null}" },
    { "GET", "/v1/jobs/job-1/attempts", 0, 200,
      "{\"items\":[{\"id\":\"att-1\",\"task\":0,\"state\":\"done\",\"gpus\":\"0 "
      "(simulated)\"}],\"next\":null}" },
    { "GET", "/v1/jobs/train", 0, 200,
      "{\"id\":\"job-1\",\"name\":\"train\",\"state\":\"queued\",\"reason\":\"resources\",\"reason_"
      "text\":\"no node has room\",\"spec\":{\"command\":[\"x\"],\"max_duration\":600,\"grace\":30,"
      "\"retry_delay\":5430,\"priority\":60,\"count\":0}}" },
    { "GET", "/v1/nodes/n", 0, 200, "{\"id\":\"nod-1\",\"name\":\"n\",\"state\":\"ready\"}" },
    { "GET", "/v1/projects/p", 0, 200,
      "{\"id\":\"prj-1\",\"name\":\"p\",\"quota\":{\"gpus\":-1,\"cpus\":2.5,\"memory_mib\":-1,"
      "\"jobs\":-1}}" },
};

TEST(a_job_is_shown_with_tasks_attempts_reason_and_spec)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "describe", "train") == 0);
    CHECK(strstr(s.out.at, "reason_text: no node has room\n") && strstr(s.out.at, "\ntasks:\nTASK")
          && strstr(s.out.at, "\nattempts:\nID") && strstr(s.out.at, "\nspec:\n  command:"));
    CHECK(strstr(s.out.at, "tasks:") < strstr(s.out.at, "attempts:")
          && strstr(s.out.at, "attempts:") < strstr(s.out.at, "spec:"));
    CHECK(strstr(s.out.at, "  max_duration: 10m\n") && strstr(s.out.at, "  grace: 30s\n")
          && strstr(s.out.at, "  retry_delay: 1h30m30s\n") && strstr(s.out.at, "  priority: 60\n"));
    CHECK(PLAY(&s, "describe", "job", "train", "-o", "json") == 0
          && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err));
    CHECK(json_get(doc, "tasks")->first->next && json_get(doc, "attempts")->first
          && json_get(doc, "spec"));
    CHECK(PLAY(&s, "describe", "node", "n") == 0 && strstr(s.out.at, "nod-1"));
    CHECK(PLAY(&s, "describe", "planet", "x") == 4 && PLAY(&s, "describe", "none") == 4
          && PLAY(&s, "describe") == 2);
}

TEST(several_are_shown_one_after_the_other)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "describe", "node", "n", "zero", "n") == 4 && strstr(s.out.at, "ready\n\nid:")
          && strstr(s.errors.at, "arcus: "));
    CHECK(PLAY(&s, "describe", "train", "train", "-o", "json") == 0
          && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err));
    struct json *items = json_get(doc, "items");
    CHECK(items && items->first && items->first->next && json_get(items->first->next, "attempts"));
}

TEST(a_limit_that_is_none_reads_so_and_is_a_number_for_programs)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    static const char *const ways[] = { "describe", "projects" };
    for (size_t i = 0; i < COUNT(ways); i++) {
        const char *sub = i ? "get" : "project";
        CHECK(PLAY(&s, ways[i], sub, "p") == 0 && strstr(s.out.at, "  gpus: no limit\n"));
        CHECK(strstr(s.out.at, "  memory_mib: no limit\n") && strstr(s.out.at, "  cpus: 2.5\n")
              && strstr(s.out.at, "  jobs: no limit\n"));
        CHECK(PLAY(&s, ways[i], sub, "p", "-o", "json") == 0 && strstr(s.out.at, "\"gpus\": -1,"));
    }
}
