#include "stream_node.h"

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

/* What a node says of this log behind `from`, without following; "" for from: all of it. */
static const char *rest_of(struct node *x, const char *from, const char *source)
{
    static char text[256];
    x->alive = false;
    run_for(x->sim, 5000);      /* who followed until now has heard all */
    str_clear(&x->head.stream.out);
    ask(x, (struct open_stream){ .what = "logs", .tail = 2, .source = source, .from = from });
    run_for(x->sim, 5000);
    snprintf(text, sizeof text, "%s", x->head.stream.out.len ? x->head.stream.out.at : "");
    return text;
}

TEST(what_is_asked_for_behind_a_mark_is_the_rest_and_nothing_else)
{
    static const char whole[] = "1\n2\n4\n5\nsix";
    static const char *const rest[] = { "4\n5\nsix", "\nsix", "" };
    struct node x;
    struct err err = { 0 };
    char marks[4][LOG_PLACE];
    size_t n = 0;
    node_open(&x, 8);
    print(&x, 1, 'o', "1\n2\n"), print(&x, 1, 'e', "3\n"), print(&x, 2, 'o', "4\n5"), print(&x, 2, 'o', "\nsix");
    ask(&x, (struct open_stream){ .what = "logs", .tail = -1, .source = "stdout", .follow = true });
    run_for(x.sim, 3000);
    CHECK(out_is(&x, whole, ""));
    for (const char *at = x.head.stream.control.at; n < 4 && at && (at = strstr(at, "\"at\":\"")); at += 6)
        snprintf(marks[n++], LOG_PLACE, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
    CHECK(n == COUNT(rest));
    for (size_t i = 0; i < MIN(n, COUNT(rest)); i++)
        CHECK(log_place_good(marks[i]) && text_is(rest_of(&x, marks[i], "stdout"), rest[i]));
    CHECK(text_is(rest_of(&x, "1.0.1", "stdout"), whole + 1));           /* in the middle of a record */
    CHECK(text_is(rest_of(&x, "", "stdout"), "5\nsix"));                 /* without one, the last lines */
    CHECK(text_is(rest_of(&x, "9.0.0", ""), ""));
    CHECK(file_remove(x.os, "/logs/00000001", &err));
    CHECK(text_is(rest_of(&x, "1.0.1", "stdout"), "4\n5\nsix"));        /* dropped meanwhile: on with what there is */
    static const char *const bad[] = { "1", "1.2", "1.2.", "1.2.3.4", "-1.0.0", "1.0.x", "99999999999999999999.0.0" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(text_is(rest_of(&x, bad[i], ""), "") && strstr(x.head.stream.control.at, "not a mark"));
    node_close(&x);
}

TEST(who_follows_from_the_last_lines_on_and_has_none_yet_is_told_where_that_is)
{
    struct node x;
    node_open(&x, 9);
    ask(&x, (struct open_stream){ .what = "logs", .tail = 0, .follow = true });
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "", "") && control_is(&x, "{\"begins\":\"0.0.0\"}"));
    node_close(&x);
    node_open(&x, 10);
    print(&x, 1, 'o', "old\n"), print(&x, 2, 'o', "older\n");
    ask(&x, (struct open_stream){ .what = "logs", .tail = 0, .follow = true });
    run_for(x.sim, 3000);
    const char *at = x.head.stream.control.len ? strstr(x.head.stream.control.at, "{\"begins\":\"2.") : NULL;
    char place[LOG_PLACE] = "";
    if (at)
        snprintf(place, sizeof place, "%.*s", (int)strcspn(at + 11, "\""), at + 11);
    CHECK(out_is(&x, "", "") && log_place_good(place));
    print(&x, 2, 'o', "new\n"), print(&x, 3, 'o', "newer\n");
    run_for(x.sim, 3000);
    CHECK(out_is(&x, "new\nnewer\n", "") && !strstr(at + 11, "begins"));
    CHECK(text_is(rest_of(&x, place, ""), "new\nnewer\n"));
    node_close(&x);
}
