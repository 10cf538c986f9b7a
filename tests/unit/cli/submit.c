/* submit.c - a file and flags become one workload; a work folder becomes its hash. */
#include "cli_test.h"
#include <sys/stat.h>

static const struct answer taken[] = {
    { "POST", "/v1/jobs", 0, 201,
      "{\"id\":\"job-1\",\"name\":\"n\",\"state\":\"queued\",\"count\":1}" },
    { "HEAD", "/v1/blobs/", 0, 404, "" },
    { "PUT", "/v1/blobs/", 0, 201, "{}" },
};

static bool sent(struct stage *s, const char *json) { return strstr(straw_seen(s), json) != NULL; }

TEST(a_file_is_sent_as_it_is_and_the_id_printed)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, taken, COUNT(taken));
    stage_write(
        &s, "w.yaml",
        "name: train\nresources: {gpus: H200:2}\nenvs: {A: 1, YES: no}\nrun: |\n  echo hi\n");
    CHECK(PLAY(&s, "submit", "-f", stage_path(&s, "w.yaml")) == 0 && text_is(s.out.at, "job-1\n")
          && !s.errors.len);
    CHECK(sent(&s, "{\"name\":\"train\",\"resources\":{\"gpus\":\"H200:2\"},\"envs\":{\"A\":1,"
                   "\"YES\":\"no\"},\"run\":\"echo hi\\n\"}"));
    CHECK(PLAY(&s, "submit", "-f", stage_path(&s, "w.yaml"), "-o", "json") == 0
          && text_is(s.out.at,
                     "{\n  \"id\": \"job-1\",\n  \"name\": \"n\",\n  \"state\": \"queued\"\n}\n"));
}

TEST(flags_overrule_the_file_whatever_it_calls_the_field)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, taken, COUNT(taken));
    stage_write(&s, "w.yaml",
                "accelerators: A100:8\nresources: {gpu: H100, cpus: 4}\nenvs: {A: 1, B: "
                "2}\ncommands: [a, b]\nnum_gpus: 3\n");
    CHECK(PLAY(&s, "submit", "-f", stage_path(&s, "w.yaml"), "--gpus", "1", "-e", "B=x", "-e",
               "C=y", "--", "echo", "hi")
          == 0);
    CHECK(sent(&s, "{\"resources\":{\"cpus\":4},\"envs\":{\"A\":1,\"B\":\"x\",\"C\":\"y\"},"
                   "\"gpus\":\"1\",\"command\":[\"echo\",\"hi\"]}"));
}

TEST(standard_input_is_a_file_too)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, taken, COUNT(taken));
    CHECK(play_with(&s, "{\"run\": \"true\"}", (const char *const[]){ "submit", "-f", "-", NULL })
              == 0
          && sent(&s, "{\"run\":true}") == false);
    CHECK(sent(&s, "{\"run\":\"true\"}"));
    CHECK(play_with(&s, "run: [", (const char *const[]){ "submit", "-f", "-", NULL }) == 2
          && strstr(s.errors.at, "arcus: -: "));
    CHECK(play_with(&s, "just text", (const char *const[]){ "submit", "-f", "-", NULL }) == 2
          && strstr(s.errors.at, "no fields"));
    CHECK(PLAY(&s, "submit") == 2 && strstr(s.errors.at, "nothing to submit"));
    CHECK(PLAY(&s, "submit", "-f", stage_path(&s, "none.yaml")) != 0
          && strstr(s.errors.at, "none.yaml"));
}

TEST(a_work_folder_is_uploaded_and_its_hash_submitted)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, taken, COUNT(taken));
    mkdir(stage_path(&s, "w"), 0755), stage_write(&s, "w/main.py", "print()");
    CHECK(PLAY(&s, "submit", "-w", stage_path(&s, "w"), "--", "true") == 0);
    CHECK(straw_count(&s, "PUT", "/v1/blobs/sha256:") == 1
          && sent(&s, "{\"command\":[\"true\"],\"workdir\":\"sha256:") && sent(&s, "\nmain.py"));
    straw_answers(&s, taken, COUNT(taken));
    stage_write(&s, "w.yaml", "working_dir: sha256:00\ncommand: x\n");
    CHECK(PLAY(&s, "submit", "-f", stage_path(&s, "w.yaml")) == 0
          && straw_count(&s, "PUT", "/v1") == 0 && sent(&s, "\"working_dir\":\"sha256:00\""));
    CHECK(PLAY(&s, "submit", "-w", stage_path(&s, "none"), "--", "true") != 0
          && strstr(s.errors.at, "workdir: "));
    CHECK(straw_count(&s, "POST", "/v1/jobs") == 1);
}
