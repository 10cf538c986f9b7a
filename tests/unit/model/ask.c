#include "model/ask.h"
#include "base/str.h"
#include "tap.h"
#include "wire/bind.h"
#include "wire/yaml.h"

static bool take(const struct fields *f, const char *text, struct arena *mem, void *out, uint64_t *given, struct err *err)
{
    struct json *doc;
    return json_parse(SLICE(text), mem, &doc, err) && bind_read(doc, f, mem, out, given, err);
}

TEST(no_limit_is_written_as_minus_one_and_read_back)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct err err = { 0 };
    struct quota q = QUOTA_NONE, back = { 0 };
    bind_write(&(struct json_out){ .to = &out }, &quota_fields, &q);
    CHECK(text_is(out.at, "{\"gpus\":-1,\"cpus\":-1,\"memory_mib\":-1,\"jobs\":-1,\"disk_mib\":-1}"));
    CHECK(take(&quota_fields, out.at, mem, &back, NULL, &err) && memcmp(&q, &back, sizeof q) == 0);
    CHECK(take(&quota_fields, "{}", mem, &back, NULL, &err) && memcmp(&q, &back, sizeof q) == 0);
    CHECK(take(&quota_fields, "{\"gpus\": 0.3, \"jobs\": 0}", mem, &back, NULL, &err) && back.gpu_milli == 300 && back.jobs == 0 && back.cpu_milli < 0);
    CHECK(!take(&quota_fields, "{\"gpus\": -2}", mem, &back, NULL, &err) && text_is(err.field, "gpus"));
}

TEST(a_projects_quota_may_be_given_flat_or_as_it_is_shown)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct project_ask flat = { 0 }, shown = { 0 };
    CHECK(take(&project_ask_fields, "{\"name\":\"vision\",\"gpus\":8,\"jobs\":5}", mem, &flat, NULL, &err));
    CHECK(take(&project_ask_fields, "{\"name\":\"vision\",\"quota\":{\"gpus\":8,\"jobs\":5}}", mem, &shown, NULL, &err));
    CHECK(memcmp(&flat.quota, &shown.quota, sizeof flat.quota) == 0 && flat.quota.gpu_milli == 8000 && flat.quota.jobs == 5 && flat.quota.mem_mib == -1);
    CHECK(!take(&project_ask_fields, "{\"name\":\"vision\",\"gpus\":8,\"quota\":{\"gpus\":9}}", mem, &flat, NULL, &err) && text_is(err.field, "quota.gpus"));
    CHECK(!take(&project_ask_fields, "{\"gpus\":8}", mem, &flat, NULL, &err) && text_is(err.field, "name"));
}

TEST(a_change_of_a_quota_tells_which_parts_were_given)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    uint64_t flat = 0, shown = 0;
    struct project_ask a = { .project = "vision" };
    CHECK(take(&project_set_fields, "{\"cpus\":4}", mem, &a, &flat, &err) && a.quota.cpu_milli == 4000 && a.quota.gpu_milli == 0);
    CHECK(take(&project_set_fields, "{\"quota\":{\"cpus\":4}}", mem, &a, &shown, &err));
    for (size_t i = 0; i < project_set_fields.count; i++) {
        const struct field *f = &project_set_fields.rows[i];
        CHECK(f->type == F_INLINE || (flat >> i & 1) == text_is(f->name, "cpus"));
        CHECK(f->type == F_INLINE || (shown >> i & 1) == text_is(f->name, "cpus"));
    }
}

TEST(lists_have_pages_of_a_bounded_size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct page_ask p = { 0 };
    CHECK(take(&page_ask_fields, "{}", mem, &p, NULL, &err) && p.limit == 100 && !p.page);
    CHECK(take(&page_ask_fields, "{\"limit\":1000}", mem, &p, NULL, &err) && p.limit == 1000);
    CHECK(!take(&page_ask_fields, "{\"limit\":1001}", mem, &p, NULL, &err) && text_is(err.field, "limit"));
    CHECK(!take(&page_ask_fields, "{\"limit\":0}", mem, &p, NULL, &err));
    CHECK(!take(&nothing_fields, "{\"x\":1}", mem, &(struct nothing){ 0 }, NULL, &err) && text_is(err.field, "x"));
}

TEST(what_is_left_out_means_all_tasks_and_all_lines)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct job_logs_ask logs = { .job = "j" };
    struct job_cancel_ask cancel = { .job = "j" };
    CHECK(take(&job_logs_ask_fields, "{}", mem, &logs, NULL, &err) && logs.task == -1 && logs.tail == -1 && !logs.follow && text_is(logs.job, "j"));
    CHECK(take(&job_cancel_ask_fields, "{\"grace\":\"5s\"}", mem, &cancel, NULL, &err) && cancel.task == -1 && cancel.grace_s == 5);
    CHECK(!take(&job_cancel_ask_fields, "{\"grace\":\"2h\"}", mem, &cancel, NULL, &err) && text_is(err.field, "grace"));
    CHECK(!take(&job_cancel_ask_fields, "{\"task\":-2}", mem, &cancel, NULL, &err));
}

TEST(a_weak_password_and_a_bad_name_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct user_ask u = { 0 };
    CHECK(!take(&user_ask_fields, "{\"name\":\"ada\",\"password\":\"short\"}", mem, &u, NULL, &err) && text_is(err.field, "password"));
    CHECK(!strstr(err.text, "short"));
    CHECK(!take(&user_ask_fields, "{\"name\":\"Ada Lovelace\"}", mem, &u, NULL, &err) && text_is(err.field, "name"));
    CHECK(take(&user_ask_fields, "{\"name\":\"ada\",\"password\":\"long enough\"}", mem, &u, NULL, &err) && text_is(u.password, "long enough"));
}
