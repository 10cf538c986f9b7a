/* login.c - secrets come from standard input, go to the server, and stay out of what is printed. */
#include "cli_test.h"

TEST(a_login_keeps_its_key_in_a_context)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "POST", "/v1/login", 0, 201, "{\"id\":\"key-1\",\"key\":\"ak_new\"}" },
            { "GET", "/v1/whoami", 0, 200, "{\"name\":\"ada\"}" } };
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    const char *server = s.c->context.server;
    CHECK(config_keep(
        s.c, &(struct context){ .name = "old", .server = "http://other:1", .key = "ak_old" },
        &err));
    CHECK(play_with(&s, "hunter22\n",
                    (const char *const[]){ "login", "--user", "ada", "--server", server,
                                           "--context", "new", NULL })
          == 0);
    CHECK(strstr(straw_seen(&s), "{\"user\":\"ada\",\"password\":\"hunter22\"}")
          && !strstr(straw_seen(&s), "ak_old"));
    CHECK(!strstr(s.errors.at, "hunter22") && !strstr(s.errors.at, "ak_new") && !s.out.len);
    s.c->context = (struct context){ 0 }, s.c->context_name = NULL;
    CHECK(config_load(s.c, &err) && text_is(s.c->context.name, "new")
          && text_is(s.c->context.key, "ak_new") && text_is(s.c->context.server, server));
    s.c->context = (struct context){ 0 }, s.c->context_name = "old";
    CHECK(config_load(s.c, &err) && text_is(s.c->context.key, "ak_old"));
}

TEST(a_login_makes_the_context_it_names_on_the_current_server)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "POST", "/v1/login", 0, 201, "{\"id\":\"key-1\",\"key\":\"ak_bob\"}" } };
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    const char *server = s.c->context.server;
    CHECK(config_keep(
        s.c,
        &(struct context){ .name = "old", .server = server, .key = "ak_old", .project = "vision" },
        &err));
    s.c->context = (struct context){ 0 };
    CHECK(play_with(&s, "hunter22\n",
                    (const char *const[]){ "login", "--user", "bob", "--context", "bobby", NULL })
          == 0);
    s.c->context = (struct context){ 0 }, s.c->context_name = NULL;
    CHECK(config_load(s.c, &err) && text_is(s.c->context.name, "bobby")
          && text_is(s.c->context.key, "ak_bob") && text_is(s.c->context.server, server)
          && !s.c->context.project);
    s.c->context = (struct context){ 0 }, s.c->context_name = "old";
    CHECK(config_load(s.c, &err) && text_is(s.c->context.key, "ak_old")
          && text_is(s.c->context.project, "vision"));
}

TEST(a_refused_login_changes_nothing)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "POST", "/v1/login", 0, 401,
              "{\"type\":\"/problems/unauthenticated\",\"detail\":\"they do not fit\"}" } };
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(play_with(&s, "x\n", (const char *const[]){ "login", "--user", "ada", NULL }) == 3
          && text_is(s.errors.at, "arcus: they do not fit\n"));
    CHECK(PLAY(&s, "login") == 2 && strstr(s.errors.at, "--user is missing"));
    s.c->context = (struct context){ 0 };
    CHECK(config_load(s.c, &err) && !s.c->context.name);
}

TEST(a_secret_is_read_from_standard_input_without_the_newline_of_echo)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "PUT", "/v1/secrets/", 0, 200,
              "{\"id\":\"sec-1\",\"name\":\"TOK\",\"state\":\"active\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(play_with(&s, "line one\nline two\n",
                    (const char *const[]){ "secrets", "set", "TOK", NULL })
          == 0);
    CHECK(strstr(straw_seen(&s), "PUT /v1/secrets/TOK?\n")
          && strstr(straw_seen(&s), "{\"value\":\"line one\\nline two\"}"));
    CHECK(!strstr(s.out.at, "line one"));
    CHECK(PLAY(&s, "secrets", "set", "TOK", "--value", "v") == 0
          && strstr(straw_seen(&s), "{\"value\":\"v\"}"));
    CHECK(PLAY(&s, "secrets", "set", "TOK") == 2 && strstr(s.errors.at, "empty"));
}

TEST(users_get_a_password_only_where_one_is_given)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = { { "POST", "/v1/users", 0, 201, "{\"name\":\"ada\"}" },
                                             { "PATCH", "/v1/users/ada", 0, 200, "{}" },
                                             { "POST", "/v1/password", 0, 200, "{}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(play_with(&s, "longenough\n",
                    (const char *const[]){ "users", "create", "ada", "--password-stdin", NULL })
              == 0
          && strstr(straw_seen(&s), "\"password\":\"longenough\""));
    straw_answers(&s, answers, COUNT(answers));
    CHECK(play_with(&s, "longenough\r\nnot this\n",
                    (const char *const[]){ "users", "create", "ada", NULL })
              == 0
          && strstr(straw_seen(&s), "\"password\":\"longenough\"") && !s.errors.len);
    straw_answers(&s, answers, COUNT(answers));
    CHECK(play_with(&s, "longenough\n",
                    (const char *const[]){ "users", "create", "ada", "--no-password", NULL })
              == 0
          && !strstr(straw_seen(&s), "password"));
    straw_answers(&s, NULL, 0);
    CHECK(PLAY(&s, "users", "create", "ada") == 4 && !strstr(s.errors.at, "cannot log in"));
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "users", "create", "ada") == 0 && !strstr(straw_seen(&s), "password")
          && strstr(s.errors.at, "cannot log in"));
    CHECK(play_with(&s, "newpassword\n", (const char *const[]){ "users", "passwd", "ada", NULL })
              == 0
          && strstr(straw_seen(&s), "{\"password\":\"newpassword\"}"));
    CHECK(play_with(&s, "old\nnewpassword\n", (const char *const[]){ "users", "passwd", NULL })
          == 0);
    CHECK(strstr(straw_seen(&s), "{\"password\":\"old\",\"new_password\":\"newpassword\"}"));
}
