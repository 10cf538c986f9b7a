/* help.c - every word explains itself. */
#include "cli_test.h"
#include <ctype.h>
#include <unistd.h>

TEST(every_word_tells_usage_flags_and_examples)
{
    AUTO(stage_down) struct stage s = stage_up();
    for (size_t i = 0; i < word_count; i++) {
        char *space = strchr(words[i].name, ' '), first[32];
        snprintf(first, sizeof first, "%.*s", space ? (int)(space - words[i].name) : 31,
                 words[i].name);
        if (words[i].run == word_help_word)
            continue;
        int code = space ? PLAY(&s, first, space + 1, "--help") : PLAY(&s, first, "--help");
        CHECK(code == 0 && text_starts(s.out.at, "usage: arcus ")
              && strstr(s.out.at, "\nexamples:\n  ") && strstr(s.out.at, "--output")
              && !s.errors.len);
        for (const char *line = s.out.at; *line; line += strcspn(line, "\n") + 1)
            CHECK(strcspn(line, "\n") <= 150);
    }
    CHECK(PLAY(&s, "run", "-h") == 0 && strstr(s.out.at, "-d, --detach")
          && strstr(s.out.at, "-g, -G, --gpus") && strstr(s.out.at, "(10GB when left out)"));
    CHECK(PLAY(&s, "users", "create", "--help") == 0 && !strstr(s.out.at, "--password TEXT"));
    CHECK(PLAY(&s, "nodes", "cordon", "--help") == 0 && !strstr(s.out.at, "--state"));
}

TEST(help_finds_words)
{
    AUTO(stage_down) struct stage s = stage_up();
    CHECK(PLAY(&s, "help") == 0 && strstr(s.out.at, "  cancel ")
          && strstr(s.out.at, "  nodes token ") && strstr(s.out.at, "  server "));
    CHECK(strstr(s.out.at, "\n\njobs:\n  run ") && strstr(s.out.at, "\n\nfleet:\n  nodes ")
          && strstr(s.out.at, "\n\npeople and keys:\n  projects ")
          && strstr(s.out.at, "\n\ndata:\n  secrets ")
          && strstr(s.out.at, "\n\nlooking back:\n  events ")
          && strstr(s.out.at, "\n\nthis program:\n  login "));
    CHECK(PLAY(&s, "help", "restore") == 0 && strstr(s.out.at, "`arcus restore --help`"));
    CHECK(PLAY(&s, "help", "audit") == 0 && strstr(s.out.at, "the newest 100 when left out"));
    CHECK(PLAY(&s, "help", "logs") == 0 && strstr(s.out.at, "\nflags:\n  --stdout")
          && strstr(s.out.at, "--tail") && !strstr(s.out.at, "more flags"));
    CHECK(PLAY(&s, "help", "ps") == 0
          && strstr(s.out.at, "at most this many; all when left out, e.g. 20\n")
          && !strstr(s.out.at, "one page"));
    CHECK(PLAY(&s, "help", "secrets", "set") == 0
          && text_starts(s.out.at, "usage: arcus secrets set NAME"));
    CHECK(PLAY(&s, "help", "node") == 0 && text_starts(s.out.at, "usage: arcus nodes\n")
          && strstr(s.out.at, "\nalso:\n  arcus nodes get"));
    CHECK(PLAY(&s, "help", "nothing") == 2 && strstr(s.errors.at, "there is no word"));
    CHECK(PLAY(&s, "version") == 0 && text_starts(s.out.at, "arcus "));
}

/* A page that forgets a word or a field is worse than none. */
static const char *page(struct stage *s, const char *path)
{
    char here[4096];
    struct slice text;
    struct err err;
    if (!getcwd(here, sizeof here))
        return NULL;
    return file_read(s->c->os, arena_printf(s->c->mem, "%s/%s", here, path), 1 << 20, s->c->mem,
                     &text, &err)
               ? arena_bytes(s->c->mem, text.at, text.len)
               : NULL;
}

static bool mentions(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || !(isalnum(p[-1]) || p[-1] == '_')) && !(isalnum(p[n]) || p[n] == '_'))
            return true;
    printf("# '%s' is not in the page\n", word);
    return false;
}

TEST(the_man_pages_know_every_word_and_every_field)
{
    AUTO(stage_down) struct stage s = stage_up();
    const char *one = page(&s, "doc/arcus.1"), *five = page(&s, "doc/arcus.5");
    if (!one || !five) {
        test_skip("not in the root of the tree");
        return;
    }
    for (size_t i = 0; i < word_count; i++) {
        char *save = NULL;
        for (char *w = strtok_r(arena_text(s.c->mem, words[i].name), " ", &save); w;
             w = strtok_r(NULL, " ", &save))
            CHECK(mentions(one, w));
    }
    for (size_t i = 0; i < job_spec_fields.count; i++) {
        char *save = NULL, *aliases = arena_text(s.c->mem, job_spec_fields.rows[i].aliases);
        CHECK(mentions(five, job_spec_fields.rows[i].name));
        for (char *a = aliases ? strtok_r(aliases, " ", &save) : NULL; a;
             a = strtok_r(NULL, " ", &save))
            CHECK(mentions(five, a));
    }
    for (int o = OUTCOME_SUCCEEDED; o < OUTCOME_COUNT; o++)
        CHECK(mentions(five, outcome_name((enum outcome)o)));
}
