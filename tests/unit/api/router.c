#include "world.h"

/* A path of the table with its parameters filled in. */
static void fill(char out[static 256], const char *path, const char *value)
{
    size_t n = 0;
    while (*path && n < 200) {
        if (*path == '{') {
            n += (size_t)snprintf(out + n, 256 - n, "%s", value);
            path = strchr(path, '}') + 1;
        } else {
            out[n++] = *path++;
        }
    }
    out[n] = 0;
}

TEST(every_verb_with_a_route_is_found_by_it_and_no_other_is)
{
    AUTO(router_free) struct router *r = router_new();
    char path[256], allow[64];
    for (int i = 0; i < VERB_COUNT; i++) {
        struct match m;
        if (!verbs[i].path)
            continue;
        fill(path, verbs[i].path, "x%2fy");
        CHECK(router_find(r, verbs[i].method, path, &m, allow) == FOUND);
        CHECK(m.verb == (enum verb_id)i);
        CHECK(m.count == (strchr(verbs[i].path, '{') ? 1u : 0u));
        CHECK(!m.count
              || (m.params[0].value.len == 5 && memcmp(m.params[0].value.at, "x%2fy", 5) == 0));
    }
}

TEST(every_path_parameter_is_bound_by_its_verbs_table)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        const char *p = verbs[i].path ? strchr(verbs[i].path, '{') : NULL;
        if (!p)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p + 1, "}"), p + 1);
        const struct field *f = bind_find(verbs[i].takes, name);
        CHECK(f && f->in_path);
    }
}

TEST(a_literal_part_goes_before_a_parameter)
{
    AUTO(router_free) struct router *r = router_new();
    struct match m;
    char allow[64];
    CHECK(router_find(r, "GET", "/v1/nodes/link", &m, allow) == FOUND && m.verb == VERB_NODE_LINK);
    CHECK(router_find(r, "GET", "/v1/nodes/tokens", &m, allow) == FOUND && m.verb == VERB_NODE_GET);
    CHECK(router_find(r, "POST", "/v1/nodes/tokens", &m, allow) == FOUND
          && m.verb == VERB_NODE_TOKEN);
    CHECK(router_find(r, "DELETE", "/v1/nodes/link", &m, allow) == FOUND
          && m.verb == VERB_NODE_REMOVE);
}

TEST(what_is_not_there_is_told_apart_from_a_wrong_method)
{
    static const char *const nowhere[] = { "/",
                                           "",
                                           "*",
                                           "/v1",
                                           "/v1/",
                                           "/v1/jobs/",
                                           "/v1//jobs",
                                           "//v1/jobs",
                                           "/v2/jobs",
                                           "/v1/jobs/a/b",
                                           "/v1/jobs/a/logs/b",
                                           "/v1/job%73",
                                           "/V1/jobs",
                                           "/v1/jobs/a/../b",
                                           "v1/jobs" };
    AUTO(router_free) struct router *r = router_new();
    struct match m;
    char allow[64];
    for (size_t i = 0; i < COUNT(nowhere); i++)
        CHECK(router_find(r, "GET", nowhere[i], &m, allow) == FOUND_NO_PATH);
    CHECK(router_find(r, "DELETE", "/v1/jobs", &m, allow) == FOUND_OTHER_METHODS);
    CHECK(text_is(allow, "GET, HEAD, POST"));
    CHECK(router_find(r, "BREW", "/v1/jobs/a/cancel", &m, allow) == FOUND_OTHER_METHODS);
    CHECK(text_is(allow, "POST"));
    CHECK(router_find(r, "HEAD", "/v1/jobs", &m, allow) == FOUND && m.verb == VERB_JOB_LIST);
    CHECK(router_find(r, "HEAD", "/v1/jobs/a/logs", &m, allow)
          == FOUND_OTHER_METHODS); /* a stream has no short form */
}
