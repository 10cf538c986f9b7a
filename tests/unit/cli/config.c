/* config.c - contexts of several clouds: kept, private, and never mixed up. */
#include "cli_test.h"
#include "base/fault.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void forget(struct stage *s)
{
    s->c->context = (struct context){ 0 };
    s->c->context_name = NULL;
}

TEST(a_context_comes_back_as_it_was_kept_in_a_file_for_its_owner_only)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    struct stat st;
    struct context x = { "lab", "https://lab:6640", "ak_1", "aabb", "/ca.pem", "vision" };
    CHECK(config_keep(s.c, &x, &err));
    CHECK(config_keep(s.c, &(struct context){ .name = "local", .server = "http://127.0.0.1:1" },
                      &err));
    CHECK(stat(s.c->config_path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(stat(stage_path(&s, "config"), &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(config_load(s.c, &err) && text_is(s.c->context.name, "local")
          && text_is(s.c->context.server, "http://127.0.0.1:1") && !s.c->context.key);
    forget(&s);
    s.c->context_name = "lab";
    CHECK(config_load(s.c, &err));
    CHECK(text_is(s.c->context.key, "ak_1") && text_is(s.c->context.pin, "aabb")
          && text_is(s.c->context.ca, "/ca.pem") && text_is(s.c->context.project, "vision"));
    forget(&s);
    s.c->context_name = "nowhere";
    CHECK(!config_load(s.c, &err) && strstr(err.text, "there is no context 'nowhere'"));
}

TEST(a_key_never_goes_to_another_cloud)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    struct context x = { "lab", "https://lab:6640", "ak_1", "aabb", NULL, "vision" };
    CHECK(config_keep(s.c, &x, &err));
    s.c->context.server = "https://evil:6640";
    CHECK(config_load(s.c, &err) && text_is(s.c->context.server, "https://evil:6640"));
    CHECK(!s.c->context.key && !s.c->context.pin && !s.c->context.project && !s.c->context.name);
    forget(&s);
    setenv("ARCUS_SERVER", "https://evil:6640", 1);
    CHECK(config_load(s.c, &err) && !s.c->context.key);
    setenv("ARCUS_KEY", "ak_env", 1);
    forget(&s);
    CHECK(config_load(s.c, &err) && text_is(s.c->context.key, "ak_env"));
    forget(&s);
    /* named on the command line: the environment speaks of another */
    s.c->context_name = "lab";
    CHECK(config_load(s.c, &err) && text_is(s.c->context.server, "https://lab:6640")
          && text_is(s.c->context.key, "ak_1"));
    unsetenv("ARCUS_SERVER");
    unsetenv("ARCUS_KEY");
    forget(&s);
    CHECK(
        config_keep(s.c, &(struct context){ .name = "lab", .server = "https://moved:6640" }, &err));
    CHECK(config_load(s.c, &err) && !s.c->context.key && !s.c->context.pin);
}

TEST(words_of_the_config_file)
{
    AUTO(stage_down) struct stage s = stage_up();
    stage_write(&s, "key", "ak_file\nrest\n");
    CHECK(PLAY(&s, "config", "set", "a", "--server", "http://a:1", "--key-file",
               stage_path(&s, "key"), "--pin", "00")
          == 0);
    CHECK(PLAY(&s, "config", "set", "b", "--server=http://b:1", "--project", "p") == 0);
    CHECK(PLAY(&s, "config") == 0);
    CHECK(text_is(s.out.at, "NAME  STATE    SERVER      PROJECT\na     -        http://a:1  -\nb   "
                            "  current  http://b:1  p\n"));
    CHECK(PLAY(&s, "config", "use", "a") == 0 && PLAY(&s, "config", "list", "-o", "json") == 0
          && !strstr(s.out.at, "ak_file"));
    struct err err;
    s.c->context = (struct context){ 0 };
    CHECK(config_load(s.c, &err) && text_is(s.c->context.key, "ak_file")
          && text_is(s.c->context.name, "a"));
    CHECK(PLAY(&s, "config", "use", "c") == 4 && strstr(s.errors.at, "there is no context 'c'"));
    CHECK(PLAY(&s, "config", "remove", "a") == 0 && PLAY(&s, "config", "remove", "a") == 4);
    CHECK(PLAY(&s, "config", "set") == 2 && PLAY(&s, "config", "set", "n") == 2
          && strstr(s.errors.at, "--server"));
    CHECK(PLAY(&s, "config", "set", "n", "--server", "http://n:1", "--key-file", "/nowhere/key")
          != 0);
    s.c->context = (struct context){ 0 };
    CHECK(config_load(s.c, &err) && text_is(s.c->context.name, "b"));
}

TEST(a_broken_config_file_is_named)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    stage_write(&s, "broken", "{\"current\": 7, ");
    s.c->config_path = stage_path(&s, "broken");
    CHECK(!config_load(s.c, &err) && strstr(err.text, "broken"));
    CHECK(PLAY(&s, "config", "set", "x", "--server", "http://x:1") == 2);
    struct slice text;
    /* and left alone */
    CHECK(file_read(s.c->os, s.c->config_path, 1000, s.c->mem, &text, &err)
          && text_starts(text.at, "{\"current\": 7"));
}

TEST(the_config_file_is_old_or_new_whatever_fails)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    CHECK(config_keep(s.c, &(struct context){ .name = "old", .server = "http://old:1" }, &err));
    for (int nth = 1; nth < 100; nth++) {
        fault_arm(nth);
        bool ok
            = config_keep(s.c, &(struct context){ .name = "new", .server = "http://new:1" }, &err);
        bool fired = fault_fired();
        fault_arm(0);
        forget(&s);
        CHECK(config_load(s.c, &err) && text_is(s.c->context.name, ok ? "new" : s.c->context.name));
        CHECK(text_is(s.c->context.name, "old") || text_is(s.c->context.name, "new"));
        if (!fired)
            break;
        CHECK(config_keep(s.c, &(struct context){ .name = "old", .server = "http://old:1" }, &err));
    }
}
