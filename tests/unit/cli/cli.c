/* cli.c - the whole program: flags before the word, words, the environment. */
#include "cli_test.h"
#include <stdlib.h>

TEST(the_program_finds_its_words_and_says_what_it_does_not_know)
{
    AUTO(stage_down) struct stage s = stage_up();
    CHECK(MAIN(&s, "--version") == 0 && text_starts(s.out.at, "arcus "));
    CHECK(MAIN(&s, "--help") == 0 && strstr(s.out.at, "usage: arcus WORD") && !s.errors.len);
    CHECK(MAIN(&s, NULL) == 2 && strstr(s.out.at, "usage: arcus WORD"));
    CHECK(MAIN(&s, "nods") == 2 && strstr(s.errors.at, "did you mean 'nodes'?") && !s.out.len);
    CHECK(MAIN(&s, "--bogus", "ps") == 2 && strstr(s.errors.at, "--bogus"));
    CHECK(MAIN(&s, "-o", "json", "version") == 0 && strstr(s.out.at, "\"version\": \""));
}

TEST(the_environment_names_the_cloud_the_key_and_the_file)
{
    AUTO(stage_down) struct stage s = stage_up();
    setenv("ARCUS_CONFIG", stage_path(&s, "other/config"), 1);
    CHECK(MAIN(&s, "config", "set", "x", "--server", "http://127.0.0.1:1", "--key", "ak_1") == 0);
    CHECK(MAIN(&s, "config") == 0 && strstr(s.out.at, "http://127.0.0.1:1"));
    CHECK(MAIN(&s, "whoami") == 7 && strstr(s.errors.at, "127.0.0.1:1"));
    setenv("ARCUS_SERVER", "http://127.0.0.1:2", 1);
    CHECK(MAIN(&s, "whoami") == 7 && strstr(s.errors.at, "127.0.0.1:2"));
    CHECK(MAIN(&s, "--server", "http://127.0.0.1:3", "whoami") == 7
          && strstr(s.errors.at, "127.0.0.1:3"));
    CHECK(MAIN(&s, "--context", "x", "whoami") == 7 && strstr(s.errors.at, "127.0.0.1:1"));
    CHECK(MAIN(&s, "--server", "ftp://x", "whoami") == 2);
    unsetenv("ARCUS_SERVER");
    unsetenv("ARCUS_CONFIG");
}
