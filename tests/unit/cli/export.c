/* export.c and pages.c - CSV page by page, without names unless they are asked for. */
#include "cli_test.h"

#define ROW(n, project) "{\"id\":\"att-" #n "\",\"name\":\"att-" #n "\",\"state\":\"ended\",\"project\":\"" project "\",\"priority\":50,\"cpu_milli\":1000,\"memory_mib\":2048,\"num_gpu\":1," \
                        "\"gpu_milli\":500,\"gpu_spec\":\"A,B\\\"C\",\"creation_time\":1" #n ",\"scheduled_time\":2" #n ",\"deletion_time\":3" #n "}"
#define HEADER "name,state,project,priority,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,scheduled_time,deletion_time\n"
#define LINE(n, project) "att-" #n ",ended," project ",50,1000,2048,1,500,\"A,B\"\"C\",1" #n ",2" #n ",3" #n "\n"

static const struct answer pages[] = {
    { "GET", "/v1/trace", 1, 200, "{\"items\":[" ROW(1, "prj-a") "," ROW(2, "prj-b") "],\"next\":\"a1.2\"}" },
    { "GET", "/v1/trace", 2, 200, "{\"items\":[],\"next\":\"u7.-1\"}" },
    { "GET", "/v1/trace", 3, 200, "{\"items\":[" ROW(3, "prj-a") "],\"next\":null}" },
    { "GET", "/v1/trace", 4, 200, "{\"items\":[" ROW(1, "vision") "," ROW(2, "vision") "],\"next\":\"a1.2\"}" },
    { "GET", "/v1/trace", 5, 200, "{\"items\":[" ROW(3, "vision") "],\"next\":\"a1.3\"}" },
    { "GET", "/v1/trace", 6, 200, "{\"items\":[" ROW(1, "prj-a") "],\"next\":\"a1.2\"}" },
    { "GET", "/v1/trace", 7, 403, "{\"type\":\"/problems/denied\",\"detail\":\"not yours\"}" },
};

TEST(a_trace_is_fetched_page_by_page_and_tells_nobody)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, pages, COUNT(pages));
    CHECK(PLAY(&s, "export", "trace", "--from", "2026-10-01") == 0);
    CHECK(text_is(s.out.at, HEADER LINE(1, "p1") LINE(2, "p2") LINE(3, "p1")));
    CHECK(straw_count(&s, "GET", "/v1/trace") == 3 && strstr(straw_seen(&s), "page=a1.2") && strstr(straw_seen(&s), "page=u7.-1")
          && strstr(straw_seen(&s), "limit=1000") && strstr(straw_seen(&s), "from="));
    CHECK(PLAY(&s, "export", "trace", "--names", "--limit", "3") == 0 && text_is(s.out.at, HEADER LINE(1, "vision") LINE(2, "vision") LINE(3, "vision")));
    CHECK(straw_count(&s, "GET", "/v1/trace") == 5 && strstr(straw_seen(&s), "limit=1"));      /* two pages, and no third */
    CHECK(PLAY(&s, "export", "trace") == 4 || s.errors.len);
    CHECK(strstr(s.errors.at, "not yours") && strstr(s.out.at, LINE(1, "p1")));
}

TEST(a_fleet_is_written_as_the_simulation_reads_it)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/nodes", 0, 200, "{\"items\":[{\"name\":\"n1\",\"cpus\":95.5,\"memory_mib\":1000,\"gpus\":8,\"gpu_model\":\"NVIDIA H200\",\"gpu_memory_mib\":143771},"
                                      "{\"name\":\"n2\",\"cpus\":4,\"memory_mib\":500,\"gpus\":0,\"gpu_model\":\"\",\"gpu_memory_mib\":0}],\"next\":null}" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "export", "nodes") == 0);
    CHECK(text_is(s.out.at, "sn,cpu_milli,memory_mib,gpu,model,gpu_mib\nn1,95500,1000,8,NVIDIA H200,143771\nn2,4000,500,0,,\n"));
}

TEST(an_audit_is_exported_page_by_page_from_its_beginning)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/audit", 1, 200, "{\"items\":[{\"id\":1},{\"id\":2}],\"next\":\"2\"}" },
        { "GET", "/v1/audit", 2, 200, "{\"items\":[{\"id\":3}],\"next\":null}" },
        { "GET", "/v1/audit", 3, 200, "{\"items\":[{\"id\":1}],\"next\":\"1\"}" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "audit", "export") == 0 && text_is(s.out.at, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n"));
    CHECK(strstr(straw_seen(&s), "since=0") && strstr(straw_seen(&s), "page=2"));
    CHECK(PLAY(&s, "audit", "export", "--limit", "1") == 0 && text_is(s.out.at, "{\"id\":1}\n"));
}
