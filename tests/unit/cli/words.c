/* words.c - the table of words against the table of verbs. */
#include "cli_test.h"

/* Verbs that people do not ask for by a word. */
static const enum verb_id not_words[] = {
    VERB_BLOB_PUT, VERB_BLOB_HEAD, VERB_BLOB_GET,           /* inside run -w and images import */
    VERB_NODE_JOIN, VERB_NODE_REKEY, VERB_NODE_LINK, VERB_NODE_STREAM,       /* agents */
    VERB_PASSWORD,                                          /* users passwd, without a name */
    VERB_JOB_GET, VERB_JOB_FILES, VERB_VOLUME_FILES,        /* describe and cp ask for several */
    VERB_JOB_WHY,                                           /* describe */
    VERB_METRICS,                                           /* Prometheus */
    VERB_JOB_BATCH,                                         /* submit -f with several documents */
};

TEST(every_verb_with_a_route_is_reached_by_a_word)
{
    for (size_t v = 0; v < VERB_COUNT; v++) {
        bool found = !verbs[v].path;
        for (size_t i = 0; i < word_count; i++)
            found |= words[i].verb == (int)v;
        for (size_t i = 0; i < COUNT(not_words); i++) {
            /* else it does not belong on the list */
            CHECK(not_words[i] != v || !found);
            found |= not_words[i] == v;
        }
        if (!found)
            printf("# %s\n", verbs[v].name);
        CHECK(found);
    }
}

TEST(every_word_has_help_examples_and_a_function)
{
    for (size_t i = 0; i < word_count; i++) {
        CHECK(words[i].run && text_given(words[i].help)
              && words[i].help[strlen(words[i].help) - 1] != '.');
        CHECK(text_given(words[i].examples) && words[i].verb < VERB_COUNT && words[i].verb >= -1);
        CHECK(words[i].run != word_generic || words[i].verb >= 0);
        for (size_t k = 0; k < i; k++)
            CHECK(!text_is(words[i].name, words[k].name));
    }
}

TEST(every_example_finds_its_word_and_its_flags_are_known)
{
    AUTO(stage_down) struct stage s = stage_up();
    for (size_t i = 0; i < word_count; i++)
        for (const char *line = words[i].examples; *line;
             line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
            char *argv[32], *copy = arena_bytes(s.c->mem, line, strcspn(line, "\n<|;'")),
                            *save = NULL;
            int argc = 0, used;
            struct flags f;
            struct err err = { 0 };
            for (char *w = strtok_r(copy, " ", &save); w && argc < 31;
                 w = strtok_r(NULL, " ", &save))
                argv[argc++] = w;
            if (argc < 2 || !text_is(argv[0], "arcus"))
                continue;
            const struct word *found = word_find(argc - 1, argv + 1, &used);
            bool ok = found && flags_parse(s.c, found, argc - 1 - used, argv + 1 + used, &f, &err);
            if (!ok || found != &words[i])
                printf("# %s: %s\n", line, err.text);
            CHECK(ok && found == &words[i]);
        }
}

static bool has_path(const struct fields *fields, const char *path)
{
    char name[64];
    size_t n = strcspn(path, ".");
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    const struct field *f = fields ? bind_find(fields, name) : NULL;
    return f && (!path[n] || (f->sub && has_path(f->sub, path + n + 1)));
}

TEST(columns_show_members_that_the_verb_gives)
{
    for (size_t i = 0; i < word_count; i++) {
        const struct word *w = &words[i];
        CHECK(w->verb < 0 || !verbs[w->verb].list || w->run != word_generic || w->column_count);
        for (size_t k = 0; k < w->column_count; k++) {
            const char *colon = strchr(w->columns[k].member, ':');
            if (!has_path(verbs[w->verb].gives, colon ? colon + 1 : w->columns[k].member))
                printf("# %s: %s\n", w->name, w->columns[k].member);
            CHECK(has_path(verbs[w->verb].gives, colon ? colon + 1 : w->columns[k].member));
        }
    }
}

TEST(whatever_lists_gpus_says_when_they_are_simulated)
{
    for (size_t i = 0; i < word_count; i++) {
        const struct word *w = &words[i];
        if (w->verb < 0 || !verbs[w->verb].list || !verbs[w->verb].gives
            || !bind_find(verbs[w->verb].gives, "simulated"))
            continue;
        bool told = w->run == word_top;     /* it draws: see top.c */
        for (size_t k = 0; k < w->column_count; k++)
            told |= !w->columns[k].wide
                    && (text_starts(w->columns[k].member, "gpus:")
                        || text_is(w->columns[k].member, "mark:simulated"));
        CHECK(told);
    }
}

TEST(fixed_members_and_positional_ones_are_known_to_the_verb)
{
    AUTO(stage_down) struct stage s = stage_up();
    for (size_t i = 0; i < word_count; i++) {
        struct json *doc;
        struct err err = { 0 };
        if (words[i].fixed) {
            CHECK(json_parse(SLICE(words[i].fixed), s.c->mem, &doc, &err));
            for (struct json *m = doc->first; m; m = m->next)
                CHECK(bind_find(word_takes(&words[i]), m->name));
        }
        char *save = NULL, *takes = arena_text(s.c->mem, words[i].takes);
        for (char *name = takes ? strtok_r(takes, " ", &save) : NULL; name;
             name = strtok_r(NULL, " ", &save))
            CHECK(bind_find(word_takes(&words[i]), name)
                  || (words[i].own && bind_find(words[i].own, name)));
    }
}

static const char *found(const char *a, const char *b, int *used)
{
    char *argv[] = { (char *)a, (char *)b };
    const struct word *w = word_find(b ? 2 : 1, argv, used);
    return w ? w->name : "";
}

TEST(one_and_many_and_the_words_of_other_systems_are_understood)
{
    int used;
    CHECK(text_is(found("node", NULL, &used), "nodes list") && used == 1);
    CHECK(text_is(found("nodes", "-o", &used), "nodes list") && used == 1);
    CHECK(text_is(found("node", "rm", &used), "nodes remove") && used == 2);
    CHECK(text_is(found("image", "import", &used), "images import") && used == 2);
    CHECK(text_is(found("projects", "new", &used), "projects create") && used == 2);
    CHECK(text_is(found("jobs", NULL, &used), "ps") && used == 1);
    CHECK(text_is(found("job", "list", &used), "ps") && used == 2);
    CHECK(text_is(found("jobs", "-a", &used), "ps") && used == 1);
    CHECK(text_is(found("job", "cancel", &used), "cancel") && used == 2);
    CHECK(text_is(found("run", "list", &used), "run") && used == 1);
    CHECK(!*found("runs", NULL, &used) && !*found("nodes", "foo", &used));
}

TEST(a_word_that_is_not_there_gets_the_nearest)
{
    struct err err;
    char *typo[] = { "cancle" }, *sub[] = { "nodes", "foo" };
    CHECK(!word_unknown(1, typo, &err) && strstr(err.text, "did you mean 'cancel'?")
          && err.rc == RC_BAD_INPUT);
    CHECK(!word_unknown(2, sub, &err)
          && strstr(err.text, "nodes knows no 'foo'; it knows list, get, token"));
    char *keys[] = { "ssh-keys", "frob" };
    int used;
    CHECK(!word_unknown(2, keys, &err) && strstr(err.text, "it knows list, add, remove"));
    CHECK(text_is(found("ssh-keys", "create", &used), "ssh-keys add") && text_is(found("ssh-keys", "add", &used), "ssh-keys add") && text_is(found("keys", "add", &used), "keys create"));
}
