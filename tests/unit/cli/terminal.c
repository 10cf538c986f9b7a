/* terminal.c - standard input from its own thread. */
#include "cli_test.h"
#include "cli/terminal.h"
#include <unistd.h>

struct heard { struct cli *c; struct str text; bool ended; };
static void on_data(void *arg, const char *at, size_t n)
{
    struct heard *h = arg;
    str_put(&h->text, at, n);
    os_stop(h->c->os);
}
static void on_end(void *arg)
{
    struct heard *h = arg;
    h->ended = true;
    os_stop(h->c->os);
}
static const struct input_events events = { on_data, on_end };

TEST(input_comes_in_order_and_ends_once)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct heard h = { .c = s.c };
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct input *i = input_start(s.c, ends[0], &events, &h);
    for (int n = 0; n < 50; n++) {
        CHECK(dprintf(ends[1], "%d ", n) > 0);
        while (!h.text.len || h.text.at[h.text.len - 1] != ' ')
            os_run(s.c->os);
    }
    close(ends[1]);
    while (!h.ended)
        os_run(s.c->os);
    CHECK(text_starts(h.text.at, "0 1 2 ") && strstr(h.text.at, " 48 49 "));
    input_stop(i);
    close(ends[0]);
    str_done(&h.text);
}

TEST(a_reader_that_waits_can_be_stopped)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct heard h = { .c = s.c };
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct input *i = input_start(s.c, ends[0], &events, &h);
    input_pause(i, true);
    CHECK(write(ends[1], "x", 1) == 1);
    input_stop(i);
    /* what it did not take is still there, or it was heard */
    i = input_start(s.c, ends[0], &events, &h);
    while (!h.text.len)
        os_run(s.c->os);
    input_stop(i);
    CHECK(!terminal_raw(ends[0]));                  /* a pipe is no terminal */
    close(ends[0]);
    close(ends[1]);
    str_done(&h.text);
}
