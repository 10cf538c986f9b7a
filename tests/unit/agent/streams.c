#include "stream_node.h"

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
