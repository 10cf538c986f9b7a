/* forward.c - ports of this machine that lead into a task: how they are written, and what is asked before one is opened. The bytes are flow 46's. */
#include "cli_test.h"
#include "cli/forward.h"

TEST(a_port_to_forward_is_written_as_kubectl_has_it)
{
    static const struct { const char *text; int64_t local, remote; } good[] = {
        { "8888", 8888, 8888 }, { "8080:80", 8080, 80 }, { ":80", 0, 80 }, { "0:80", 0, 80 }, { "65535:65535", 65535, 65535 },
    };
    static const char *const bad[] = { "", ":", "0", ":0", "80:", "80:0", "65536", "65536:1", "x", "80:x", "x:80", "1:2:3", "-1", "+1", " 1", "1 ", "80:-1", "99999999999999999999:1", "0x10" };
    struct err err = { 0 };
    int64_t local, remote;
    for (size_t i = 0; i < COUNT(good); i++)
        CHECK(forward_parse(good[i].text, &local, &remote, &err) && local == good[i].local && remote == good[i].remote);
    for (size_t i = 0; i < COUNT(bad); i++) {
        local = remote = 7;
        CHECK(!forward_parse(bad[i], &local, &remote, &err) && err.rc == RC_BAD_INPUT && local == 7 && remote == 7);
    }
}

TEST(only_a_running_job_has_ports)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/jobs/gone", 0, 404, "{\"type\":\"/problems/not_found\",\"detail\":\"there is no job 'gone'\"}" },
        { "GET", "/v1/jobs/old", 0, 200, "{\"id\":\"job-1\",\"state\":\"done\"}" },
        { "GET", "/v1/jobs/up", 0, 200, "{\"id\":\"job-2\",\"state\":\"running\"}" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "port-forward", "gone", "80") == 4 && strstr(s.errors.at, "there is no job 'gone'"));
    CHECK(PLAY(&s, "port-forward", "old", ":80") == 5 && strstr(s.errors.at, "old is done"));
    CHECK(PLAY(&s, "port-forward", "up", "nonsense") == 2 && strstr(s.errors.at, "'nonsense' is not a port"));
    CHECK(PLAY(&s, "port-forward", "up") == 2);
}
