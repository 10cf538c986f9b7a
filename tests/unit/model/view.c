#include "model/view.h"
#include "base/str.h"
#include "tap.h"
#include "wire/bind.h"

static bool shows(const struct fields *f, const void *from, const char *part)
{
    AUTO(str_done) struct str out = { 0 };
    bind_write(&(struct json_out){ .to = &out }, f, from);
    if (!strstr(out.at, part))
        printf("# no %s in %s\n", part, out.at);
    return strstr(out.at, part);
}

TEST(a_job_shows_decimals_times_and_ids_as_people_read_them)
{
    struct job_view j = { .id = 0x0d3d7f2a51c9b64e, .name = "train", .state = "running", .cpu_milli = 1500, .mem_mib = 2048, .created_ms = 1000, .spec = "{\"a\":1}" };
    CHECK(shows(&job_view_fields, &j, "{\"id\":\"job-") && shows(&job_view_fields, &j, "\"cpus\":1.5,\"memory_mib\":2048"));
    CHECK(shows(&job_view_fields, &j, "\"created\":\"1970-01-01T00:00:01.000Z\",\"started\":null") && shows(&job_view_fields, &j, "\"spec\":{\"a\":1}"));
    CHECK(!bind_find(&job_brief_fields, "spec") && bind_find(&job_view_fields, "spec") && job_brief_fields.size == job_view_fields.size);
    CHECK(!bind_find(&node_brief_fields, "info") && bind_find(&node_view_fields, "info"));
}

TEST(a_key_is_shown_only_in_the_reply_that_makes_it)
{
    AUTO(str_done) struct str out = { 0 };
    struct key_view k = { .id = 5, .name = "laptop", .state = "active", .hint = "arc_12" };
    bind_write(&(struct json_out){ .to = &out }, &key_view_fields, &k);
    CHECK(!strstr(out.at, "\"key\":") && strstr(out.at, "\"id\":\"key-"));
    k.key = "arc_1234";
    CHECK(shows(&key_view_fields, &k, "\"key\":\"arc_1234\""));
}

TEST(the_same_struct_gets_the_id_of_what_it_stands_for)
{
    struct member_view m = { .id = 77, .name = "x" };
    struct simple_view s = { .id = 77, .name = "x" };
    CHECK(shows(&member_view_fields, &m, "\"usr-") && shows(&account_view_fields, &m, "\"svc-"));
    CHECK(shows(&simple_view_fields, &s, "\"org-") && shows(&gone_node_fields, &s, "\"nod-"));
}

TEST(usage_is_in_seconds_of_whole_things)
{
    struct usage_view u = { .name = "a", .seconds = 10, .gpu_milli_s = 5000, .cpu_milli_s = 12500, .mem_mib_s = 70, .gpu_mib_s = 80 };
    CHECK(shows(&usage_view_fields, &u, "\"seconds\":10,\"gpu_seconds\":5,\"gpu_mib_seconds\":80,\"cpu_seconds\":12.5,\"memory_mib_seconds\":70"));
}

TEST(an_event_is_known_by_its_number)
{
    struct event_view e = { .id = 12, .name = "job.queued", .data = "{}" };
    CHECK(shows(&event_view_fields, &e, "{\"id\":12,"));
}
