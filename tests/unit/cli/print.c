/* print.c - one thing line by line, JSON that reads back, and what a terminal must not be told. */
#include "cli_test.h"

static const struct answer answers[] = {
    { "GET", "/v1/nodes/n", 0, 200,
      "{\"id\":\"nod-1\",\"name\":\"n\\u001b[2J\",\"state\":\"ready\",\"info\":{\"gpus\":[1,2]},"
      "\"labels\":{},\"seen\":null,\"joined\":\"2020-01-01T00:00:00.000Z\"}" },
    { "GET", "/v1/nodes", 0, 200,
      "{\"items\":[{\"id\":\"nod-1\",\"name\":\"n\",\"state\":\"ready\",\"gpus\":4,\"simulated\":"
      "true,\"cpus\":0.5}],\"next\":null}" },
    { "GET", "/v1/volumes", 0, 200, "{\"items\":[],\"next\":null}" },
};

TEST(one_thing_is_told_line_by_line)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "nodes", "get", "n") == 0);
    CHECK(text_starts(s.out.at, "id:     nod-1\nname:   n?[2J\nstate:  ready\ninfo:\n  gpus:\n")
          && !strchr(s.out.at, 033));
    CHECK(strstr(s.out.at, "joined: 2020-01-01T00:00:00.000Z (") && strstr(s.out.at, "d ago)")
          && !strstr(s.out.at, "seen") && !strstr(s.out.at, "labels"));
}

TEST(what_the_cloud_says_does_not_drive_the_terminal)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 };
    static const struct answer hostile[] = {
        { "GET", "/v1/nodes/n", 0, 404,
          "{\"type\":\"/problems/not_found\",\"detail\":\"a\\u001b]0;x\\u0007\\u009b2Jb\"}" },
        { "GET", "/v1/gpus", 0, 503,
          "{\"type\":\"/problems/unavailable\",\"detail\":\"TLS handshake: self-signed "
          "certificate\"}" },
        { "GET", "/v1/events", 0, 200,
          "{\"items\":[{\"id\":1,\"at\":\"t\",\"name\":\"n\\u001b[2J\",\"subject\":\"zo\u00eb\","
          "\"actor\":\"\\u202ex\",\"data\":{\"k\":\"\\u009b\\u001b\"}}],\"next\":null}" },
    };
    clean_text(&out, "a\tb\nc\r\033[1m\177\xc2\x9b\xe2\x80\xaezo\u00eb \u65e5");
    CHECK(text_is(out.at, "a b c ?[1m???zo\u00eb \u65e5"));
    straw_answers(&s, hostile, COUNT(hostile));
    CHECK(PLAY(&s, "nodes", "get", "n") == 4 && text_is(s.errors.at, "arcus: a?]0;x??2Jb\n"));
    CHECK(PLAY(&s, "gpus") == 7 && strstr(s.errors.at, "\nhint: if it is the right server: --pin"));
    CHECK(PLAY(&s, "events") == 0 && !strchr(s.out.at, 033) && !strstr(s.out.at, "\xc2\x9b")
          && strstr(s.out.at, " n?[2J ") && strstr(s.out.at, " ?x "));
}

TEST(lists_are_tables_json_or_yaml)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "nodes") == 0 && strstr(s.out.at, "4 (simulated)")
          && text_starts(s.out.at, "NAME"));
    CHECK(PLAY(&s, "nodes", "-o", "json") == 0 && strstr(s.out.at, "\"state\": \"ready\""));
    CHECK(json_parse(SLICE(s.out.at), s.c->mem, &doc, &err)
          && json_get(doc, "next")->type == JSON_NULL
          && json_get(json_get(doc, "items")->first, "cpus")->type == JSON_NUMBER);
    CHECK(PLAY(&s, "nodes", "-o", "yaml") == 0 && strstr(s.out.at, "state: ready")
          && strstr(s.out.at, "next: null"));
    CHECK(PLAY(&s, "volumes") == 0 && !s.out.len && text_is(s.errors.at, "none\n"));
    CHECK(PLAY(&s, "volumes", "-o", "json") == 0 && strstr(s.out.at, "\"items\": []"));
    CHECK(PLAY(&s, "volumes", "-q") == 0 && !s.errors.len);
    s.c->quiet = false;
}
