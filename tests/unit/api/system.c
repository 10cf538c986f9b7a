#include "world.h"

TEST(only_three_pages_need_no_key)
{
    struct world w;
    struct got g;
    world_open(&w);
    ask(&g, &w, NULL, "GET", "/healthz", NULL, NULL);
    CHECK(g.status == 200 && got_says(&g, "status", "ok"));
    got_done(&g);
    ask(&g, &w, NULL, "GET", "/readyz", NULL, NULL);
    CHECK(g.status == 200 && got_says(&g, "version", "1.2.3") && !g.retry[0]);
    got_done(&g);
    w.control->ready = false;
    ask(&g, &w, NULL, "GET", "/readyz", NULL, NULL);
    CHECK(g.status == 503 && got_says(&g, "detail", "the store is away") && text_is(g.retry, "1"));
    CHECK(limits_count(w.api->limits, REFUSED_AWAY) == 1);
    got_done(&g);
    ask(&g, &w, NULL, "GET", "/openapi.json", NULL, NULL);
    CHECK(g.status == 200 && got_says(&g, "openapi", "3.1.0"));
    got_done(&g);
    ask(&g, &w, NULL, "POST", "/healthz", NULL, NULL);
    CHECK(g.status == 405 && text_is(g.allow, "GET, HEAD"));
    got_done(&g);
    for (int i = 0; i < VERB_COUNT; i++) {
        char path[256];
        if (!verbs[i].path || !verbs[i].roles)
            continue;
        snprintf(path, sizeof path, "%s", verbs[i].path);
        for (char *p; (p = strchr(path, '{'));)
            memmove(p, "x", 1), memmove(p + 1, strchr(p, '}') + 1, strlen(strchr(p, '}')));
        ask(&g, &w, NULL, verbs[i].method, path, NULL, NULL);
        CHECK(g.status == 401);
        got_done(&g);
    }
    world_close(&w);
}
