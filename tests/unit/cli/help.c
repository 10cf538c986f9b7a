/* help.c - every word explains itself. */
#include "cli_test.h"

TEST(every_word_tells_usage_flags_and_examples)
{
    AUTO(stage_down) struct stage s = stage_up();
    for (size_t i = 0; i < word_count; i++) {
        char *space = strchr(words[i].name, ' '), first[32];
        snprintf(first, sizeof first, "%.*s", space ? (int)(space - words[i].name) : 31, words[i].name);
        if (words[i].run == word_help_word)
            continue;
        int code = space ? PLAY(&s, first, space + 1, "--help") : PLAY(&s, first, "--help");
        CHECK(code == 0 && text_starts(s.out.at, "usage: arcus ") && strstr(s.out.at, "\nexamples:\n  ") && strstr(s.out.at, "--output") && !s.errors.len);
        for (const char *line = s.out.at; *line; line += strcspn(line, "\n") + 1)
            CHECK(strcspn(line, "\n") <= 150);
    }
    CHECK(PLAY(&s, "run", "-h") == 0 && strstr(s.out.at, "-d, --detach") && strstr(s.out.at, "-g, -G, --gpus") && strstr(s.out.at, "(10GB when left out)"));
    CHECK(PLAY(&s, "users", "create", "--help") == 0 && !strstr(s.out.at, "--password TEXT"));
    CHECK(PLAY(&s, "nodes", "cordon", "--help") == 0 && !strstr(s.out.at, "--state"));
}

TEST(help_finds_words)
{
    AUTO(stage_down) struct stage s = stage_up();
    CHECK(PLAY(&s, "help") == 0 && strstr(s.out.at, "  cancel ") && strstr(s.out.at, "  nodes token ") && strstr(s.out.at, "  server "));
    CHECK(PLAY(&s, "help", "secrets", "set") == 0 && text_starts(s.out.at, "usage: arcus secrets set NAME"));
    CHECK(PLAY(&s, "help", "node") == 0 && text_starts(s.out.at, "usage: arcus nodes\n") && strstr(s.out.at, "\nalso:\n  arcus nodes get"));
    CHECK(PLAY(&s, "help", "nothing") == 2 && strstr(s.errors.at, "there is no word"));
    CHECK(PLAY(&s, "version") == 0 && text_starts(s.out.at, "arcus "));
}
