#include "agent/streams.h"
#include "agent/log_format.h"
#include "agent/task_proto.h"
#include "head.h"
#include "model/channel.h"
#include "wire/json.h"
#include <stdlib.h>
#include <string.h>

/* A node with one attempt, whose log lies in /logs and whose supervisor's socket is /sock: this test writes and answers. */
struct node {
    struct sim *sim;
    struct head head;
    struct os *os;
    struct http_client *client;
    struct streams *streams;
    bool alive;
    /* the supervisor */
    struct listener *listener;
    struct stream *socket;
    struct str got;             /* frames, as they came */
    int dials, closes;
};

static bool is_alive(void *arg, int64_t attempt) { return ((struct node *)arg)->alive && attempt == 7; }
static void log_folder(void *arg, int64_t attempt, char out[static 256]) { (void)arg, (void)attempt; snprintf(out, 256, "/logs"); }
static void socket_path(void *arg, int64_t attempt, char out[static 108]) { (void)arg, (void)attempt; snprintf(out, 108, "/sock"); }
static const struct streams_host host = { .is_alive = is_alive, .log_folder = log_folder, .socket = socket_path };

static size_t sup_data(void *arg, const char *at, size_t n)
{
    struct node *x = arg;
    str_put(&x->got, at, n);
    return n;
}
static void sup_close(void *arg, const struct err *why)
{
    struct node *x = arg;
    (void)why;
    x->socket = NULL;
    x->closes++;
}
static void sup_accept(void *arg, struct stream *s)
{
    static const struct stream_events events = { .on_data = sup_data, .on_close = sup_close };
    struct node *x = arg;
    x->dials++;
    x->socket = s;
    stream_bind(s, &events, x);
}

static void node_open(struct node *x, uint64_t seed)
{
    struct err err = { 0 };
    *x = (struct node){ .sim = sim_new(seed), .alive = true };
    head_open(&x->head, x->sim);
    x->os = sim_machine(x->sim, "n1");
    CHECK(http_client_new(x->os, "http://head:80", NULL, NULL, "nk_1", &x->client, &err));
    CHECK(dir_make(x->os, "/logs", 0700, &err));
    CHECK(stream_listen(x->os, "unix:/sock", NULL, sup_accept, x, &x->listener, &err));
    x->streams = streams_new(x->os, "/data", &host, x);
}

static void node_close(struct node *x)
{
    streams_free(x->streams);
    listener_close(x->listener);
    run_for(x->sim, 20000);
    http_client_free(x->client);
    head_free(&x->head);
    run_for(x->sim, 20000);
    str_done(&x->got);
    sim_free(x->sim);
}

static void print(struct node *x, int segment, char stream, const char *text)
{
    char head[LOG_HEADER_MAX], name[LOG_SEGMENT_NAME + 1], path[64];
    AUTO(str_done) struct str record = { 0 };
    struct err err = { 0 };
    str_put(&record, head, log_header(head, 1731677000123, stream, strlen(text)));
    str_text(&record, text);
    log_segment_name(name, segment);
    snprintf(path, sizeof path, "/logs/%s", name);
    CHECK(file_append(x->os, path, (struct slice){ record.at, record.len }, false, &err));
}

static void ask(struct node *x, struct open_stream o)
{
    o.kind = "open";
    o.stream = "st_1";
    o.attempt = o.volume ? 0 : 7;
    streams_open(x->streams, x->client, &o);
}

static bool out_is(const struct node *x, const char *out, const char *err)
{
    const struct head_stream *s = &x->head.stream;
    bool same = text_is(s->out.at ? s->out.at : "", out) && text_is(s->err.at ? s->err.at : "", err);
    if (!same)
        printf("# out [%s] err [%s]\n", s->out.at ? s->out.at : "", s->err.at ? s->err.at : "");
    return same;
}
static bool control_is(const struct node *x, const char *text) { return text_is(x->head.stream.control.at, text); }

TEST(a_log_is_sent_whole_and_ends)
{
    struct node x;
    node_open(&x, 1);
    x.alive = false;
    print(&x, 1, 'o', "one\n"), print(&x, 1, 'e', "oops\n"), print(&x, 2, 'o', "two\nthr"), print(&x, 2, 'o', "ee\n");
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1 });
    run_for(x.sim, 5000);
    CHECK(out_is(&x, "one\ntwo\nthree\n", "oops\n") && control_is(&x, "{\"eof\":true}") && x.head.stream.closed && streams_count(x.streams) == 0);
    CHECK(text_is(x.head.bearer, "Bearer nk_1"));
    node_close(&x);
}

TEST(one_source_and_the_last_lines_can_be_asked_for)
{
    static const struct { int64_t tail; const char *source, *out, *err; } rows[] = {
        { -1, "stdout", "1\n2\n3\n4\n5\n6", "" }, { -1, "stderr", "", "E1\nE2\n" }, { 1, "stdout", "6", "" }, { 2, "stdout", "5\n6", "" },
        { 3, "stdout", "4\n5\n6", "" }, { 4, "stdout", "3\n4\n5\n6", "" }, { 6, "stdout", "1\n2\n3\n4\n5\n6", "" }, { 99, "stdout", "1\n2\n3\n4\n5\n6", "" },
        { 0, "stdout", "", "" }, { 1, "stderr", "", "E2\n" }, { 2, "stderr", "", "E1\nE2\n" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node x;
        node_open(&x, 2);
        x.alive = false;
        print(&x, 1, 'o', "1\n2"), print(&x, 1, 'e', "E1\n"), print(&x, 1, 'o', "\n"), print(&x, 2, 'o', "3\n4\n"), print(&x, 3, 'o', "5\n"), print(&x, 3, 'e', "E2\n"), print(&x, 3, 'o', "6");
        ask(&x, (struct open_stream){ .what = "logs", .tail = rows[i].tail, .source = rows[i].source });
        run_for(x.sim, 5000);
        CHECK(out_is(&x, rows[i].out, rows[i].err) && x.head.stream.closed);
        node_close(&x);
    }
}

TEST(a_log_without_anything_in_it_just_ends)
{
    struct node x;
    node_open(&x, 3);
    x.alive = false;
    ask(&x, (struct open_stream){ .what = "logs", .tail = 10 });
    run_for(x.sim, 5000);
    CHECK(out_is(&x, "", "") && control_is(&x, "{\"eof\":true}"));
    node_close(&x);
}

TEST(a_followed_log_goes_on_through_segments_until_the_task_has_ended)
{
    struct node x;
    node_open(&x, 4);
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1, .follow = true });
    run_for(x.sim, 3000);
    CHECK(!x.head.stream.closed && x.dials == 1);
    print(&x, 1, 'o', "a\n");
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "a\n", "") && !x.head.stream.closed);
    print(&x, 1, 'o', "b\n"), print(&x, 2, 'e', "c\n");
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "a\nb\n", "c\n"));
    print(&x, 2, 'o', "last\n");
    x.alive = false;
    streams_changed(x.streams, 7);
    run_for(x.sim, 500);
    CHECK(out_is(&x, "a\nb\nlast\n", "c\n") && control_is(&x, "{\"eof\":true}") && x.head.stream.closed);
    node_close(&x);
}

TEST(word_from_the_supervisor_makes_following_immediate)
{
    struct node x;
    node_open(&x, 5);
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1, .follow = true });
    run_for(x.sim, 2000);
    CHECK(x.socket && x.got.len > FRAME_HEAD && x.got.at[0] == FRAME_REQUEST && strstr(x.got.at + FRAME_HEAD, "\"follow\""));
    print(&x, 1, 'o', "now\n");
    unsigned char news[FRAME_HEAD];
    frame_head(news, FRAME_NEWS, 0);
    stream_write(x.socket, news, sizeof news);
    run_for(x.sim, 100);
    CHECK(out_is(&x, "now\n", ""));
    stream_close(x.socket);             /* without it the slow look goes on */
    run_for(x.sim, 100);
    print(&x, 1, 'o', "later\n");
    run_for(x.sim, 2000);
    CHECK(out_is(&x, "now\nlater\n", ""));
    node_close(&x);
}

TEST(a_torn_record_is_waited_for_and_a_broken_segment_is_left)
{
    struct node x;
    struct err err = { 0 };
    node_open(&x, 6);
    print(&x, 1, 'o', "good\n");
    CHECK(file_append(x.os, "/logs/00000001", SLICE("1731677000123 o 5\nab"), false, &err));
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1, .follow = true });
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "good\n", ""));
    CHECK(file_append(x.os, "/logs/00000001", SLICE("cd\n"), false, &err));
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "good\nabcd\n", ""));
    CHECK(file_append(x.os, "/logs/00000001", SLICE("this is no log\n"), false, &err));
    print(&x, 2, 'o', "next\n");
    run_for(x.sim, 4000);
    CHECK(out_is(&x, "good\nabcd\nnext\n", "") && !x.head.stream.closed);
    node_close(&x);
}

TEST(a_long_log_arrives_whole)
{
    struct node x;
    size_t total = 0;
    node_open(&x, 7);
    x.alive = false;
    char *line = malloc(50001);
    memset(line, 'x', 50000);
    line[49999] = '\n', line[50000] = 0;
    for (int i = 0; i < 100; i++, total += 50000)
        print(&x, 1 + i / 30, 'o', line);
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1 });
    run_for(x.sim, 60000);
    CHECK(x.head.stream.out.len == total && x.head.stream.closed);
    free(line);
    node_close(&x);
}

/* --- terminals */

static void say_frame(struct node *x, enum task_frame kind, const char *text)
{
    unsigned char head[FRAME_HEAD];
    frame_head(head, kind, (uint32_t)strlen(text));
    stream_write(x->socket, head, sizeof head);
    stream_write(x->socket, text, strlen(text));
}

/* The n-th frame that came, as "kind payload". */
static const char *frame_at(const struct node *x, int n, struct arena *mem)
{
    size_t at = 0;
    while (at + FRAME_HEAD <= x->got.len) {
        uint32_t length = frame_length((const unsigned char *)x->got.at + at);
        if (n-- == 0)
            return arena_printf(mem, "%c %.*s", x->got.at[at], (int)length, x->got.at + at + FRAME_HEAD);
        at += FRAME_HEAD + length;
    }
    return "";
}

static void exec(struct node *x, uint64_t seed)
{
    node_open(x, seed);
    ask(x, (struct open_stream){ .what = "exec", .argv = { (const char *[]){ "sh", "-i" }, 2 }, .tty = true, .rows = 24, .cols = 80 });
    run_for(x->sim, 1000);
}

TEST(a_terminal_is_bridged_both_ways)
{
    struct node x;
    AUTO(arena_free) struct arena *mem = arena_new();
    exec(&x, 8);
    CHECK(x.socket && text_starts(frame_at(&x, 0, mem), "q {\"op\":\"exec\",\"argv\":[\"sh\",\"-i\"],\"tty\":true,\"rows\":24,\"cols\":80"));
    head_stream_say(&x.head, CHANNEL_IN, "ls\n");
    head_stream_say(&x.head, CHANNEL_CONTROL, "{\"resize\":[50,132]}");
    head_stream_say(&x.head, CHANNEL_CONTROL, "{\"signal\":2}");
    head_stream_say(&x.head, CHANNEL_CONTROL, "{\"eof\":true}");
    run_for(x.sim, 1000);
    CHECK(text_is(frame_at(&x, 1, mem), "i ls\n") && text_is(frame_at(&x, 2, mem), "w {\"rows\":50,\"cols\":132}"));
    CHECK(text_is(frame_at(&x, 3, mem), "s {\"signal\":2}") && text_is(frame_at(&x, 4, mem), "z "));
    say_frame(&x, FRAME_READY, "{}");
    say_frame(&x, FRAME_OUTPUT, "file\n");
    say_frame(&x, FRAME_ERRORS, "warn\n");
    say_frame(&x, FRAME_EXIT, "{\"exit_code\":3,\"signal\":0}");
    run_for(x.sim, 1000);
    CHECK(out_is(&x, "file\n", "warn\n") && control_is(&x, "{\"exit\":3}") && x.head.stream.closed && x.closes == 1);
    node_close(&x);
}

TEST(ends_of_a_command_are_told_apart)
{
    static const struct { enum task_frame kind; const char *frame, *control; } rows[] = {
        { FRAME_EXIT, "{\"exit_code\":0,\"signal\":0}", "{\"exit\":0}" },
        { FRAME_EXIT, "{\"exit_code\":0,\"signal\":9}", "{\"exit\":137}" },
        { FRAME_ERROR, "{\"kind\":\"not-found\",\"text\":\"zsh is not in the image\"}", "{\"error\":\"zsh is not in the image\"}" },
        { FRAME_EXIT, "rubbish", "{\"error\":\"the task's supervisor sent what cannot be understood\"}" },
        { (enum task_frame)'?', "", "{\"error\":\"the task's supervisor sent what cannot be understood\"}" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node x;
        exec(&x, 9);
        say_frame(&x, rows[i].kind, rows[i].frame);
        run_for(x.sim, 1000);
        CHECK(control_is(&x, rows[i].control) && x.head.stream.closed && x.closes == 1);
        node_close(&x);
    }
}

TEST(a_frame_that_is_too_long_ends_the_stream)
{
    struct node x;
    exec(&x, 10);
    unsigned char head[FRAME_HEAD];
    frame_head(head, FRAME_OUTPUT, FRAME_MAX + 1);
    stream_write(x.socket, head, sizeof head);
    run_for(x.sim, 1000);
    CHECK(x.head.stream.closed && x.closes == 1);
    node_close(&x);
}

TEST(a_task_that_dies_under_a_terminal_is_told)
{
    struct node x;
    exec(&x, 11);
    x.alive = false;
    stream_close(x.socket);
    run_for(x.sim, 1000);
    CHECK(control_is(&x, "{\"error\":\"the task has ended\"}") && x.head.stream.closed);
    node_close(&x);
}

TEST(a_user_who_leaves_hangs_up)
{
    struct node x;
    exec(&x, 12);
    ws_drop(x.head.stream.ws);
    run_for(x.sim, 1000);
    CHECK(x.closes == 1 && streams_count(x.streams) == 0);
    node_close(&x);
}

TEST(a_terminal_of_an_ended_task_is_refused)
{
    struct node x;
    node_open(&x, 13);
    x.alive = false;
    ask(&x, (struct open_stream){ .what = "exec", .argv = { (const char *[]){ "sh" }, 1 } });
    run_for(x.sim, 1000);
    CHECK(control_is(&x, "{\"error\":\"the task is not running\"}") && x.dials == 0);
    node_close(&x);
}

TEST(words_that_make_no_sense_end_a_stream)
{
    static const struct { int channel; const char *text; bool ends; } rows[] = {
        { 9, "x", true }, { CHANNEL_CONTROL, "{", true }, { CHANNEL_CONTROL, "{\"resize\":[0,0]}", false }, { CHANNEL_CONTROL, "{\"resize\":7}", false },
        { CHANNEL_CONTROL, "{\"signal\":99}", false }, { CHANNEL_OUT, "x", false }, { CHANNEL_CONTROL, "[]", false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node x;
        AUTO(arena_free) struct arena *mem = arena_new();
        exec(&x, 14);
        head_stream_say(&x.head, rows[i].channel, rows[i].text);
        run_for(x.sim, 1000);
        CHECK(x.head.stream.closed == rows[i].ends && text_is(frame_at(&x, 1, mem), ""));
        node_close(&x);
    }
}

TEST(a_stream_of_an_unknown_kind_is_refused)
{
    struct node x;
    node_open(&x, 15);
    ask(&x, (struct open_stream){ .what = "video" });
    run_for(x.sim, 1000);
    CHECK(strstr(x.head.stream.control.at, "does not know") && x.head.stream.closed);
    node_close(&x);
}

TEST(slow_input_waits_and_none_is_lost)
{
    struct node x;
    exec(&x, 16);
    stream_pause(x.socket, true);
    char *block = malloc(60000);
    memset(block, 'i', 60000);
    for (int i = 0; i < 60; i++)
        head_stream_send(&x.head, CHANNEL_IN, block, 60000);
    run_for(x.sim, 5000);
    stream_pause(x.socket, false);
    run_for(x.sim, 20000);
    size_t input = 0;
    for (size_t at = 0; at + FRAME_HEAD <= x.got.len;) {
        uint32_t length = frame_length((const unsigned char *)x.got.at + at);
        input += x.got.at[at] == FRAME_INPUT ? length : 0;
        at += FRAME_HEAD + length;
    }
    CHECK(input == 60 * 60000);
    free(block);
    node_close(&x);
}

TEST(streams_may_be_freed_at_any_moment)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct node x;
        node_open(&x, 200 + seed);
        print(&x, 1, 'o', "text\n");
        ask(&x, (struct open_stream){ .what = seed % 2 ? "exec" : "logs", .argv = { (const char *[]){ "sh" }, 1 }, .tail = 3, .follow = true });
        int64_t steps = (int64_t)sim_chance(x.sim, 40);
        while (steps-- && sim_step(x.sim))
            ;
        node_close(&x);
    }
}
