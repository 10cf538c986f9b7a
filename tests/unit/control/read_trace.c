/* What ran, in pages: whatever the size of a page, and wherever the rows are by now, the same lines come in the same order, each once. */
#include "door.h"
#include <stdlib.h>

static const int64_t day_ms = INT64_C(86400) * 1000;

static void run_one(struct door *d, const char *key, int64_t *n, const char *body, bool end)
{
    const char *job = door_submit(d, d->admin, body), *attempt;
    door_run(d, 1500);
    CHECK(text_given(attempt = door_attempt(d, job, 0)));
    CHECK(door_report(d, key, ++*n, attempt, "started", NULL).ok);
    door_run(d, 2000);
    if (end)
        CHECK(door_report(d, key, ++*n, attempt, "ended", ",\"outcome\":\"succeeded\"").ok);
}

/* Names of all lines, and how many pages it took. */
static const char *walk(struct door *d, int limit, const char *more, int *pages)
{
    AUTO(str_done) struct str out = { 0 };
    *pages = 0;
    for (const char *page = ""; page && *pages < 1000; ++*pages) {
        struct answer a = door_ask(d, d->admin, VERB_TRACE_LIST, FMT(d, "{\"limit\":%d,\"page\":\"%s\"%s}", limit, page, more));
        CHECK(a.ok && (int)item_count(&a) <= limit);
        for (size_t i = 0; i < item_count(&a); i++)
            str_printf(&out, "%s %s %s;", item(d, &a, i, "name"), item(d, &a, i, "state"), item(d, &a, i, "gpu_milli"));
        page = text_given(get(&a, "next")) ? get(&a, "next") : NULL;
    }
    return arena_text(d->mem, out.at ? out.at : "");
}

TEST(a_trace_is_the_same_in_pages_of_any_size_and_out_of_the_archive)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    int64_t n = 0;
    int pages;
    door_node(d, "n1", 4, key);
    for (int i = 0; i < 7; i++)
        run_one(d, key, &n, i % 2 ? "{\"command\":[\"true\"],\"gpus\":0.5}" : "{\"command\":[\"true\"],\"gpus\":\"H200:1\"}", true);
    const char *ended = walk(d, 1000, "", &pages);
    CHECK(pages < 5 && strstr(ended, " ended 500;") && strstr(ended, " ended 1000;"));
    for (int size = 1; size < 9; size++)
        CHECK(text_is(walk(d, size, "", &pages), ended) && pages >= 7 / size);
    int64_t until = os_wall_ms(d->os);
    run_one(d, key, &n, "{\"command\":[\"true\"],\"on_lost\":\"wait\"}", false);
    const char *all = walk(d, 2, "", &pages);
    CHECK(text_starts(all, ended) && strstr(all, " running "));
    CHECK(text_is(walk(d, 3, FMT(d, ",\"to\":\"%s\"", "2000-01-01T00:00:00Z"), &pages), ""));
    sim_wall_jump(d->sim, 100 * day_ms);
    door_run(d, 70 * 1000);
    CHECK(rows_in(d, "usage") == 0 && rows_in(d, "archive") > 0 && until > 0);
    for (int size = 1; size < 9; size += 3) {
        const char *old = walk(d, size, "", &pages);
        CHECK(text_starts(old, ended) && strstr(old, " running "));
    }
    static const char *const bad[] = { "x1.2", "a", "a1", "a1.x", "u-1.0", "l1.2.3", "1.2" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct answer a = door_ask(d, d->admin, VERB_TRACE_LIST, FMT(d, "{\"page\":\"%s\"}", bad[i]));
        CHECK(!a.ok && text_is(a.err.field, "page"));
    }
}
