/* cp.c - the two places of a copy, and copies both ways with a server of straw. */
#include "cli_test.h"
#include "cli/cp.h"
#include "cli/pack.h"
#include "model/channel.h"
#include "wire/tar.h"
#include <sys/stat.h>

static bool is(struct stage *s, const char *text, const char *job, const char *volume,
               const char *path)
{
    struct place p;
    struct err err;
    return place_parse(s->c, text, &p, &err) && (job ? text_is(p.job, job) : !p.job)
           && (volume ? text_is(p.volume, volume) : !p.volume) && text_is(p.path, path);
}

TEST(places_are_local_paths_jobs_or_volumes)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct place p;
    struct err err;
    CHECK(is(&s, "file", NULL, NULL, "file") && is(&s, "./a:b", NULL, NULL, "./a:b")
          && is(&s, "/x:y", NULL, NULL, "/x:y") && is(&s, "..", NULL, NULL, ".."));
    CHECK(is(&s, "train:/outputs", "train", NULL, "/outputs")
          && is(&s, "train:/a:b", "train", NULL, "/a:b"));
    CHECK(is(&s, "vol:data", NULL, "data", "/") && is(&s, "vol:data/x/y", NULL, "data", "/x/y")
          && is(&s, "volume:data/", NULL, "data", "/"));
    CHECK(!place_parse(s.c, "train:x", &p, &err) && strstr(err.text, "begins with /"));
    CHECK(!place_parse(s.c, "train:/a/../b", &p, &err) && strstr(err.text, "'..'"));
    CHECK(!place_parse(s.c, "vol:", &p, &err) && !place_parse(s.c, "", &p, &err)
          && is(&s, "t:/a..b", "t", NULL, "/a..b"));
    CHECK(PLAY(&s, "cp", "a", "b") == 2 && strstr(s.errors.at, "JOB:/path"));
    CHECK(PLAY(&s, "cp", "a:/x", "vol:b") == 2 && strstr(s.errors.at, "local"));
}

/* The far side takes a tree and says that all went well. */
struct far { struct str took; bool put_ended; };

static void say_control(struct ws *w, const char *json)
{
    AUTO(str_done) struct str m = { 0 };
    str_char(&m, CHANNEL_CONTROL);
    str_text(&m, json);
    ws_send(w, false, m.at, m.len);
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct far *f = arg;
    (void)text;
    if (at[0] == CHANNEL_IN)
        str_put(&f->took, at + 1, n - 1);
    if (at[0] == CHANNEL_CONTROL) {
        f->put_ended = true;
        say_control(w, "{\"exit\":0}");
        ws_close(w, 1000, "");
    }
}
static void on_close(void *arg, struct ws *w, const struct err *why)
{
    (void)arg, (void)w, (void)why;
}

static const struct ws_events events = { .on_message = on_message, .on_close = on_close };

static bool keep(void *arg, const char *at, size_t n, struct err *err)
{
    (void)err;
    str_put(arg, at, n);
    return true;
}

TEST(a_folder_goes_into_a_job_under_the_name_that_was_asked_for)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str want = { 0 };
    struct far far = { 0 };
    struct err err;
    mkdir(stage_path(&s, "d"), 0755), stage_write(&s, "d/f", "data");
    straw_answers(&s, NULL, 0);
    straw_ws(&s, &events, &far);
    /* a slash at the end: no need to ask */
    CHECK(PLAY(&s, "cp", stage_path(&s, "d"), "train:/tmp/into/") == 0);
    CHECK(pack(stage_path(&s, "d"), &(struct pack_how){ .top = "d" }, &(struct sink){ keep, &want },
               &err));
    CHECK(far.put_ended && far.took.len == want.len && memcmp(far.took.at, want.at, want.len) == 0);
    CHECK(strstr(straw_seen(&s),
                 "GET /v1/jobs/train/files?path=%2Ftmp%2Finto%2F&put=true&task=-1\n"));
    CHECK(PLAY(&s, "cp", stage_path(&s, "none"), "train:/tmp/") != 0
          && strstr(s.errors.at, "none"));
    str_done(&far.took);
}

TEST(what_is_not_there_is_told_with_its_own_exit_code)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "GET", "/v1/jobs/gone/files", 0, 404,
              "{\"type\":\"/problems/not_found\",\"detail\":\"there is no job 'gone' in this "
              "project\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "cp", "gone:/x", stage_path(&s, "y")) == 4
          && strstr(s.errors.at, "there is no job 'gone'"));
}

/* A far side that gives. */
struct giver { struct str tar; const char *end; };
static void give_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    (void)arg, (void)w, (void)text, (void)at, (void)n;
}
static void give(void *arg, struct ws *w)
{
    struct giver *g = arg;
    AUTO(str_done) struct str m = { 0 };
    str_char(&m, CHANNEL_OUT);
    str_put(&m, g->tar.at, g->tar.len);
    ws_send(w, false, m.at, m.len);
    if (g->end)
        say_control(w, g->end);
    ws_close(w, 1000, "");
}
static const struct ws_events giving
    = { .on_open = give, .on_message = give_message, .on_close = on_close };

static bool got(struct stage *s, const char *from, const char *to, struct giver *g)
{
    straw_answers(s, NULL, 0);
    straw_ws(s, &giving, g);
    return PLAY(s, "cp", from, to) == 0;
}

static const char *text_at(struct stage *s, const char *name)
{
    struct slice text;
    struct err err;
    return file_read(s->c->os, stage_path(s, name), 1000, s->c->mem, &text, &err)
               ? arena_bytes(s->c->mem, text.at, text.len)
               : "";
}

TEST(files_come_out_under_the_name_that_was_asked_for_or_not_at_all)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct giver g = { .end = "{\"exit\":0}" };
    struct tar_entry e = { .type = TAR_FILE, .name = "log.txt", .mode = 0644, .size = 2 };
    tar_header(&g.tar, &e);
    str_text(&g.tar, "hi");
    tar_pad(&g.tar, 2);
    tar_end(&g.tar);
    CHECK(got(&s, "train:/var/log.txt", stage_path(&s, "mine"), &g)
          && text_is(text_at(&s, "mine"), "hi"));
    CHECK(strstr(straw_seen(&s), "path=%2Fvar%2Flog.txt&put=false"));
    mkdir(stage_path(&s, "d"), 0755);
    CHECK(got(&s, "train:/var/log.txt", stage_path(&s, "d"), &g)
          && text_is(text_at(&s, "d/log.txt"), "hi"));
    CHECK(got(&s, "train:/outputs", stage_path(&s, "outs"), &g)
          && text_is(text_at(&s, "outs/log.txt"), "hi")
          && strstr(straw_seen(&s), "path=%2Foutputs%2F.&"));
    CHECK(got(&s, "vol:data", stage_path(&s, "d"), &g)
          && text_is(text_at(&s, "d/data/log.txt"), "hi"));
    g.end = "{\"error\":\"/var/log.txt: no such file or folder\"}";
    g.tar.len = 0;
    CHECK(!got(&s, "train:/var/log.txt", stage_path(&s, "none"), &g)
          && strstr(s.errors.at, "no such file") && !*text_at(&s, "none"));
    g.end = NULL;
    CHECK(!got(&s, "train:/var/log.txt", stage_path(&s, "none"), &g)
          && strstr(s.errors.at, "before all was copied"));
    str_done(&g.tar);
}
