#include "stream_node.h"

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

TEST(what_is_too_long_for_a_frame_is_called_by_its_name)
{
    static char long_word[FRAME_MAX];
    memset(long_word, 'x', sizeof long_word - 1);
    for (int ssh = 0; ssh < 2; ssh++) {
        struct node x;
        node_open(&x, 15);
        ask(&x, (struct open_stream){ .what = ssh ? "ssh" : "exec", .argv = { (const char *[]){ long_word }, 1 } });
        run_for(x.sim, 1000);
        CHECK(control_is(&x, ssh ? "{\"error\":\"the public keys are too long together\"}" : "{\"error\":\"the command is too long\"}") && x.dials == 0);
        node_close(&x);
    }
}

TEST(a_terminal_waits_for_the_word_that_its_task_runs)
{
    struct node x;
    AUTO(arena_free) struct arena *mem = arena_new();
    node_open(&x, 14);
    x.unknown = true;
    ask(&x, (struct open_stream){ .what = "exec", .argv = { (const char *[]){ "sh" }, 1 } });
    run_for(x.sim, 1000);
    head_stream_say(&x.head, CHANNEL_IN, "ls\n");
    head_stream_say(&x.head, CHANNEL_CONTROL, "{\"eof\":true}");
    run_for(x.sim, 1000);
    streams_changed(x.streams, 7); /* it prepares */
    CHECK(x.dials == 0 && !x.head.stream.closed);
    x.unknown = false;
    streams_changed(x.streams, 7);
    streams_changed(x.streams, 7);
    run_for(x.sim, 1000);
    CHECK(x.dials == 1 && text_starts(frame_at(&x, 0, mem), "q {\"op\":\"exec\""));
    CHECK(text_is(frame_at(&x, 1, mem), "i ls\n") && text_is(frame_at(&x, 2, mem), "z "));
    node_close(&x);
}

TEST(a_terminal_that_waits_ends_with_its_task_and_with_its_user)
{
    for (int leaves = 0; leaves < 2; leaves++) {
        struct node x;
        node_open(&x, 15);
        x.unknown = true;
        ask(&x, (struct open_stream){ .what = "exec", .argv = { (const char *[]){ "sh" }, 1 } });
        run_for(x.sim, 1000);
        if (leaves)
            ws_drop(x.head.stream.ws);
        x.alive = leaves;
        streams_changed(x.streams, 7);
        run_for(x.sim, 100000);
        CHECK(x.dials == 0 && (leaves || control_is(&x, "{\"error\":\"the task has ended\"}")));
        CHECK(leaves ? streams_count(x.streams) == 0 : x.head.stream.closed);
        node_close(&x);
    }
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

TEST(a_port_is_bridged_and_either_side_may_end_first)
{
    struct node x;
    AUTO(arena_free) struct arena *mem = arena_new();
    node_open(&x, 17);
    ask(&x, (struct open_stream){ .what = "dial", .port = 8888 });
    run_for(x.sim, 1000);
    CHECK(x.socket && text_starts(frame_at(&x, 0, mem), "q {\"op\":\"dial\"") && strstr(frame_at(&x, 0, mem), "\"port\":8888"));
    say_frame(&x, FRAME_READY, "{}");
    say_frame(&x, FRAME_OUTPUT, "last words");
    say_frame(&x, FRAME_OUTPUT_END, "");
    run_for(x.sim, 1000);
    CHECK(out_is(&x, "last words", "") && control_is(&x, "{\"eof\":true}") && !x.head.stream.closed);
    head_stream_say(&x.head, CHANNEL_IN, "still here");
    head_stream_say(&x.head, CHANNEL_CONTROL, "{\"eof\":true}");
    run_for(x.sim, 1000);
    CHECK(text_is(frame_at(&x, 1, mem), "i still here") && text_is(frame_at(&x, 2, mem), "z ") && x.closes == 0);
    say_frame(&x, FRAME_EXIT, "{\"exit_code\":0,\"signal\":0}");
    run_for(x.sim, 1000);
    CHECK(control_is(&x, "{\"eof\":true}{\"exit\":0}") && x.head.stream.closed && x.closes == 1);
    node_close(&x);
}
