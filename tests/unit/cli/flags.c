/* flags.c - arguments against the field tables. */
#include "cli_test.h"
#include <stdlib.h>

static bool parse(struct stage *s, const char *word, const char *const *args, struct flags *f,
                  struct err *err)
{
    char *first[] = { (char *)word, NULL, NULL }, *space = strchr(word, ' ');
    char name[32], **argv = ARENA_ARRAY(s->c->mem, char *, 32);
    int used, argc = 0;
    snprintf(name, sizeof name, "%.*s", space ? (int)(space - word) : 31, word);
    first[0] = name, first[1] = space ? space + 1 : NULL;
    const struct word *w = word_find(space ? 2 : 1, first, &used);
    while (args[argc])
        argv[argc] = arena_text(s->c->mem, args[argc]), argc++;
    s->c->help = false;
    return w && flags_parse(s->c, w, argc, argv, f, err);
}
#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
static const char *doc_of(struct stage *s, const struct flags *f)
{
    AUTO(str_done) struct str text = { 0 };
    json_print(&text, f->doc);
    return arena_bytes(s->c->mem, text.at, text.len);
}

TEST(flags_of_run_become_the_fields_of_a_job)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(parse(&s, "run",
                ARGS("--gpus", "H200:2", "-c4", "--mem=16GB", "-e", "A=1", "-e", "B=x=y",
                     "--secret", "TOK", "-n", "3", "--", "sh", "-c", "x"),
                &f, &err));
    CHECK(
        text_is(doc_of(&s, &f), "{\"gpus\":\"H200:2\",\"cpus\":\"4\",\"memory\":\"16GB\",\"env\":{"
                                "\"A\":\"1\",\"B\":\"x=y\"},\"secrets\":[\"TOK\"],\"count\":3}"));
    CHECK(f.rest.count == 3 && text_is(f.rest.at[2], "x"));
    struct job_spec spec = { 0 };
    CHECK(bind_read(f.doc, &job_spec_fields, s.c->mem, &spec, NULL, &err) && spec.cpu_milli == 4000
          && spec.mem_mib == 16 * 1024);
}

TEST(a_command_keeps_its_own_flags)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(
        parse(&s, "run", ARGS("-g", "1", "python", "train.py", "-o", "json", "--help"), &f, &err));
    CHECK(f.rest.count == 5 && text_is(f.rest.at[4], "--help") && !s.c->help
          && s.c->output == OUT_TABLE);
    CHECK(parse(&s, "exec", ARGS("-it", "train", "ls", "-t"), &f, &err));
    CHECK(f.rest.count == 2 && text_is(doc_of(&s, &f), "{\"tty\":true,\"job\":\"train\"}"));
    CHECK(parse(&s, "exec", ARGS("train", "-n", "2", "--", "-x"), &f, &err));
    CHECK(f.rest.count == 1 && text_is(f.rest.at[0], "-x") && json_int(f.doc, "task", 0) == 2);
}

TEST(a_variable_without_a_value_comes_from_our_environment)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    setenv("ARCUS_TEST_VARIABLE", "from here", 1);
    CHECK(parse(&s, "run", ARGS("-e", "ARCUS_TEST_VARIABLE", "true"), &f, &err));
    CHECK(text_is(json_text(json_get(f.doc, "env"), "ARCUS_TEST_VARIABLE"), "from here"));
    unsetenv("ARCUS_TEST_VARIABLE");
    CHECK(!parse(&s, "run", ARGS("-e", "ARCUS_TEST_VARIABLE", "true"), &f, &err)
          && strstr(err.text, "-e: 'ARCUS_TEST_VARIABLE'"));
}

TEST(what_is_wrong_is_told_with_the_name_of_its_flag)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(!parse(&s, "run", ARGS("--cpus", "many", "true"), &f, &err)
          && text_starts(err.text, "--cpus: 'many' is not a number"));
    CHECK(!parse(&s, "run", ARGS("-p", "101", "true"), &f, &err) && text_starts(err.text, "-p: ")
          && err.rc == RC_BAD_INPUT);
    CHECK(!parse(&s, "run", ARGS("--gpsu", "1", "true"), &f, &err)
          && strstr(err.text, "did you mean --gpus?"));
    CHECK(!parse(&s, "ps", ARGS("--limit"), &f, &err) && strstr(err.text, "--limit needs a value"));
    CHECK(!parse(&s, "logs", ARGS("a", "b"), &f, &err) && strstr(err.text, "too many"));
    CHECK(parse(&s, "cancel", ARGS("a", "--grace", "5s", "b", "c"), &f, &err) && f.rest.count == 3
          && text_is(f.each, "job") && text_is(f.rest.at[0], "a") && text_is(f.rest.at[2], "c"));
    CHECK(!parse(&s, "cancel", ARGS("--grace", "5s"), &f, &err)
          && strstr(err.text, "JOB is missing; usage: arcus cancel JOB"));
    CHECK(!parse(&s, "cp", ARGS(NULL), &f, &err) && text_starts(err.text, "FROM is missing"));
    CHECK(!parse(&s, "describe", ARGS(NULL), &f, &err) && text_starts(err.text, "JOB is missing"));
    CHECK(!parse(&s, "members set", ARGS("--roles", "viewer"), &f, &err)
          && text_starts(err.text, "USER is missing"));
    CHECK(!parse(&s, "ps", ARGS("-o", "xml"), &f, &err) && text_starts(err.text, "-o: "));
}

TEST(arguments_without_a_flag_fill_the_members_of_the_word)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(parse(&s, "members set", ARGS("ada", "developer"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"user\":\"ada\",\"roles\":\"developer\"}"));
    /* a member that is no part of the path may come with its flag just as well */
    CHECK(parse(&s, "members set", ARGS("ada", "--roles", "developer"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"user\":\"ada\",\"roles\":\"developer\"}"));
    CHECK(parse(&s, "users roles", ARGS("--roles=auditor", "ada"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"roles\":\"auditor\",\"user\":\"ada\"}"));
    CHECK(parse(&s, "volumes create", ARGS("--name", "data"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"name\":\"data\"}"));
    CHECK(parse(&s, "volumes create", ARGS("data"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"name\":\"data\"}"));
    CHECK(parse(&s, "nodes cordon", ARGS("gpu-07"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"node\":\"gpu-07\",\"state\":\"cordoned\"}"));
    CHECK(parse(&s, "projects quota", ARGS("vision", "--gpus", "-1"), &f, &err)
          && text_is(json_text(f.doc, "gpus"), "-1"));
    CHECK(parse(&s, "keys create", ARGS(NULL), &f, &err) && !f.doc->first);
}

TEST(the_last_of_a_flag_counts_and_booleans_take_a_word)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(parse(&s, "ps", ARGS("-s", "done", "--state=failed", "--all=false", "-q"), &f, &err));
    CHECK(text_is(doc_of(&s, &f), "{\"state\":\"failed\",\"all\":false}") && s.c->quiet);
    CHECK(parse(&s, "ps", ARGS("--all=off"), &f, &err)
          && text_is(doc_of(&s, &f), "{\"all\":false}"));
    CHECK(parse(&s, "ps", ARGS("-a"), &f, &err) && text_is(doc_of(&s, &f), "{\"all\":true}"));
}

TEST(arguments_are_no_place_for_secrets)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct flags f;
    struct err err = { 0 };
    CHECK(!parse(&s, "users create", ARGS("ada", "--password", "hunter22"), &f, &err)
          && strstr(err.text, "knows no flag '--password'"));
    CHECK(!parse(&s, "login", ARGS("--user", "ada", "--password", "x"), &f, &err));
    /* only where it is asked for by name */
    CHECK(parse(&s, "secrets set", ARGS("TOK", "--value", "x"), &f, &err));
}

TEST(flags_of_the_whole_program_may_stand_before_the_word)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    char *typed[] = { "-o", "json", "--project=vision", "-q", "ps", "-a" }, **argv = typed;
    int argc = 6;
    CHECK(flags_global(s.c, &argc, &argv, &err) && argc == 2 && text_is(argv[0], "ps"));
    CHECK(s.c->output == OUT_JSON && s.c->quiet && text_is(s.c->context.project, "vision"));
    char *bad[] = { "--gpus", "1", "run" };
    argv = bad, argc = 3;
    CHECK(!flags_global(s.c, &argc, &argv, &err) && strstr(err.text, "--gpus"));
}

/* Two rows with one spelling: the second could never be given. */
TEST(no_flag_of_a_table_is_spelled_twice)
{
    for (size_t v = 0; v <= VERB_COUNT; v++) {
        const struct fields *t = v == VERB_COUNT ? &global_fields : verbs[v].takes;
        for (size_t i = 0; t && i < t->count; i++) {
            struct slice flag;
            for (size_t at = 0; flag_next(&t->rows[i], &at, &flag);) {
                if (!t->rows[i].flag)
                    continue;
                if (flag_find(t, flag.at, flag.len) != &t->rows[i])
                    printf("# %.*s of %s\n", (int)flag.len, flag.at, t->name);
                CHECK(flag_find(t, flag.at, flag.len) == &t->rows[i]);
            }
        }
    }
}
