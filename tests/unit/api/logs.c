#include "nodes.h"
#include "base/id.h"
#include "model/channel.h"
#include "model/prefix.h"

static const char *where(char out[static 256], int64_t attempt, const char *state, const char *job)
{
    char node[ID_TEXT], id[ID_TEXT], project[ID_TEXT];
    snprintf(out, 256,
             "{\"node\":\"%s\",\"attempt\":\"%s\",\"project\":\"%s\",\"state\":\"%s\",\"job_"
             "state\":\"%s\"}",
             id_text(node, PREFIX_NODE, fake_node(1)), id_text(id, PREFIX_ATTEMPT, attempt),
             id_text(project, PREFIX_PROJECT, fake_project()), state, job);
    return out;
}
static const char nothing_yet[]
    = "{\"node\":null,\"attempt\":null,\"state\":\"queued\",\"job_state\":\"queued\"}";

static void happens(struct world *w)
{
    struct event e = { .seq = ++w->control->last_event,
                       .project = fake_project(),
                       .kind = "task.started",
                       .data = "{}" };
    fake_commit(w->control, &(struct commit){ .events = &e, .event_count = 1 });
}

struct scene {
    struct world w;
    struct straw s;
    struct talk link, agent;
    struct got g;
    char path[128], texts[3][256];
};

static void scene_open(struct scene *x, const char *path)
{
    x->s = (struct straw){ .where = where(x->texts[0], 77, "running", "running") };
    world_open(&x->w);
    node_link(&x->link, &x->w, &x->s, "node1");
    if (path)
        got_start(&x->g, &x->w, "view", "GET", path, NULL, (struct slice){ 0 });
}

static void dial(struct scene *x, int nth, const char *says)
{
    CHECK(opened(&x->link, nth, x->path, says));
    talk_start(&x->agent, &x->w, "node1", x->path);
    CHECK(talk_open(&x->agent));
}

/* As an agent sends a piece of what is followed. */
static void piece(struct scene *x, const char *place, const char *text)
{
    char at[96];
    snprintf(at, sizeof at, "{\"at\":\"%s\"}", place);
    frame(&x->agent, CHANNEL_CONTROL, at);
    frame(&x->agent, CHANNEL_OUT, text);
}

static void scene_close(struct scene *x)
{
    got_done(&x->g);
    talk_done(&x->link);
    world_close(&x->w);
}

TEST(a_log_is_the_plain_bytes_of_what_the_task_printed)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/logs?tail=5&source=stdout");
    dial(&x, 1, "\"what\":\"logs\"");
    CHECK(strstr(x.link.got.at, "\"tail\":5,\"source\":\"stdout\""));
    frame(&x.agent, CHANNEL_OUT, "one\n");
    frame(&x.agent, CHANNEL_ERR, "two\n");
    frame(&x.agent, CHANNEL_CONTROL, "{\"eof\":true}");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_wait(&x.g, &x.w) && x.g.status == 200 && x.g.err.rc == RC_OK
          && text_is(x.g.type, "text/plain; charset=utf-8"));
    CHECK(text_is(x.g.body.at, "one\ntwo\n"));
    talk_done(&x.agent);
    CHECK(map_count(x.w.api->crowds) == 0);
    scene_close(&x);
}

TEST(a_follow_waits_for_an_attempt_and_goes_on_with_the_next_until_the_task_is_over)
{
    struct scene x;
    scene_open(&x, NULL);
    x.s.where = nothing_yet;
    got_start(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs?follow=true", NULL, (struct slice){ 0 });
    world_wait(&x.w, 30);
    CHECK(x.g.status == 200 && !x.g.ended);                  /* open, and quiet */
    x.s.where = where(x.texts[0], 77, "running", "running");
    happens(&x.w);
    dial(&x, 1, "\"follow\":true");
    piece(&x, "1.0.10", "first try\n");
    x.s.where = where(x.texts[1], 77, "failed", "running");  /* it ends, and will be tried again */
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_has(&x.g, &x.w, "first try\n") && talk_closed(&x.agent));
    talk_done(&x.agent);
    dial(&x, 2, "\"from\":\"1.0.10\""); /* the rest of it, now that it has ended */
    piece(&x, "1.30.11", "last words\n");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_has(&x.g, &x.w, "last words\n") && talk_closed(&x.agent));
    talk_done(&x.agent);
    world_wait(&x.w, 80);
    CHECK(!x.g.ended);
    x.s.where = where(x.texts[2], 78, "running", "running");
    happens(&x.w);
    dial(&x, 3, "logs");
    piece(&x, "1.0.11", "second try\n");
    CHECK(got_has(&x.g, &x.w, "second try\n") && !x.g.ended);
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(talk_closed(&x.agent));
    talk_done(&x.agent);
    world_wait(&x.w, 80);
    CHECK(!x.g.ended); /* the report of its end has not come yet */
    x.s.where = where(x.texts[0], 78, "done", "done");
    happens(&x.w);
    dial(&x, 4, "\"from\":\"1.0.11\"");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc == RC_OK
          && text_is(x.g.body.at, "first try\nlast words\nsecond try\n"));
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(a_task_of_an_array_is_over_when_it_is_and_not_when_its_job_is)
{
    struct scene x;
    scene_open(&x, NULL);
    char text[256];
    x.s.where = where(x.texts[0], 77, "failed", "running");
    snprintf(text, sizeof text, "%.*s,\"task_state\":\"failed\"}", (int)strlen(x.s.where) - 1,
             x.s.where);
    x.s.where = text;
    got_start(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs?follow=true&task=3", NULL,
              (struct slice){ 0 });
    dial(&x, 1, "logs");
    frame(&x.agent, CHANNEL_ERR, "no\n");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc == RC_OK && text_is(x.g.body.at, "no\n"));
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(half_a_log_is_never_taken_for_all_of_it)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/logs");
    dial(&x, 1, "logs");
    frame(&x.agent, CHANNEL_OUT, "half");
    CHECK(got_has(&x.g, &x.w, "half"));
    ws_drop(x.agent.ws);
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc != RC_OK);
    talk_done(&x.agent);
    scene_close(&x);
}

/* Also of the last lines, of which there are others when it is asked again. */
TEST(a_follow_goes_on_behind_what_it_has_when_the_agent_comes_back)
{
    static const char *const paths[] = { "/v1/jobs/j/logs?follow=true", "/v1/jobs/j/logs?follow=true&tail=1" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct scene x;
        scene_open(&x, paths[i]);
        dial(&x, 1, "logs");
        piece(&x, "7.100.2", "tw");
        CHECK(got_has(&x.g, &x.w, "tw"));
        frame(&x.agent, CHANNEL_CONTROL, "{\"at\":\"7.100.4\"}");          /* and what it tells of is lost */
        ws_drop(x.agent.ws);
        talk_done(&x.agent);
        talk_done(&x.link);                                  /* the whole agent is gone for a while */
        happens(&x.w);
        world_wait(&x.w, 80);
        CHECK(!x.g.ended);
        node_link(&x.link, &x.w, &x.s, "node1");
        happens(&x.w);
        dial(&x, 1, "\"tail\":-1,\"from\":\"7.100.2\"");
        piece(&x, "7.100.4", "o\n");
        x.s.where = where(x.texts[1], 77, "done", "done");
        ws_close(x.agent.ws, 1000, NULL);
        CHECK(talk_closed(&x.agent));
        talk_done(&x.agent);
        dial(&x, 2, "\"from\":\"7.100.4\"");
        ws_close(x.agent.ws, 1000, NULL);
        CHECK(got_wait(&x.g, &x.w) && x.g.err.rc == RC_OK && text_is(x.g.body.at, "two\n"));
        talk_done(&x.agent);
        scene_close(&x);
    }
}

TEST(each_piece_has_a_mark_if_asked_for_and_who_brings_one_goes_on_behind_it)
{
    struct scene x;
    char id[ID_TEXT], want[64];
    id_text(id, PREFIX_ATTEMPT, 77);
    scene_open(&x, "/v1/jobs/j/logs?follow=true&marks=true");
    dial(&x, 1, "logs");
    piece(&x, "1.0.4", "one\n");
    snprintf(want, sizeof want, "%s.1.0.4 4\none\n", id);
    CHECK(got_has(&x.g, &x.w, want) && text_is(x.g.type, "application/vnd.arcus.log"));
    frame(&x.agent, CHANNEL_CONTROL, "{\"at\":\"nonsense\"}");             /* a node cannot put words into it */
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc != RC_OK);
    talk_done(&x.agent);
    got_done(&x.g);
    snprintf(want, sizeof want, "/v1/jobs/j/logs?follow=true&tail=5&from=%s.1.0.4", id);
    got_start(&x.g, &x.w, "view", "GET", want, NULL, (struct slice){ 0 });
    dial(&x, 2, "\"tail\":-1,\"from\":\"1.0.4\"");
    piece(&x, "1.0.8", "two\n");
    x.s.where = where(x.texts[1], 78, "running", "running");  /* the attempt of the mark is told: on with the next, all of it */
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(talk_closed(&x.agent));
    talk_done(&x.agent);
    dial(&x, 3, "\"tail\":-1");
    piece(&x, "1.0.6", "three\n");
    x.s.where = where(x.texts[2], 78, "done", "done");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(talk_closed(&x.agent));
    talk_done(&x.agent);
    dial(&x, 4, "\"from\":\"1.0.6\"");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc == RC_OK && text_is(x.g.body.at, "two\nthree\n"));
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(who_has_not_heard_anything_of_the_last_lines_yet_goes_on_where_they_began)
{
    struct scene x;
    char id[ID_TEXT], want[128];
    scene_open(&x, "/v1/jobs/j/logs?follow=true&marks=true&tail=0");
    dial(&x, 1, "\"tail\":0");
    frame(&x.agent, CHANNEL_CONTROL, "{\"begins\":\"3.50.0\"}");
    snprintf(want, sizeof want, "%s.3.50.0 0\n", id_text(id, PREFIX_ATTEMPT, 77));
    CHECK(got_has(&x.g, &x.w, want));
    ws_drop(x.agent.ws);
    talk_done(&x.agent);
    happens(&x.w);
    dial(&x, 2, "\"tail\":-1,\"from\":\"3.50.0\"");
    frame(&x.agent, CHANNEL_CONTROL, "{\"begins\":\"9.9.0\"}");             /* it has one */
    piece(&x, "3.60.4", "new\n");
    snprintf(want, sizeof want, "%s.3.50.0 0\n%s.3.60.4 4\nnew\n", id, id);
    CHECK(got_has(&x.g, &x.w, want) && text_is(x.g.body.at, want));
    frame(&x.agent, CHANNEL_CONTROL, "{\"at\":\"nonsense\"}");
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc != RC_OK);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(what_the_agent_cannot_give_is_a_problem_in_its_words)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/logs");
    dial(&x, 1, "logs");
    frame(&x.agent, CHANNEL_CONTROL, "{\"error\":\"its log is no longer kept\"}");
    CHECK(got_wait(&x.g, &x.w) && x.g.status == 409 && got_says(&x.g, "detail", "no longer kept"));
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(a_log_that_is_not_there_yet_or_out_of_reach_is_said_so)
{
    struct scene x;
    scene_open(&x, NULL);
    x.s.where = nothing_yet;
    ask(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs", NULL, NULL);
    CHECK(x.g.status == 409 && got_says(&x.g, "detail", "not started"));
    got_done(&x.g);
    ask(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs?source=both", NULL, NULL);
    CHECK(x.g.status == 400 && got_says(&x.g, "field", "source"));
    got_done(&x.g);
    x.s.where = "{\"attempt\":null,\"state\":\"cancelled\",\"job_state\":\"cancelled\"}";
    ask(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs?follow=true", NULL, NULL);
    CHECK(x.g.status == 200 && x.g.body.len == 0);
    got_done(&x.g);
    x.s.where = where(x.texts[0], 77, "running", "running");
    talk_done(&x.link);
    world_wait(&x.w, 20);
    ask(&x.g, &x.w, "view", "GET", "/v1/jobs/j/logs", NULL, NULL);
    CHECK(x.g.status == 503 && got_says(&x.g, "detail", "not connected")
          && text_is(x.g.retry, "1"));
    got_done(&x.g);
    CHECK(map_count(x.w.api->crowds) == 0);
    world_close(&x.w);
}

TEST(a_reader_who_leaves_ends_the_agents_side)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/logs?follow=true");
    dial(&x, 1, "logs");
    frame(&x.agent, CHANNEL_OUT, "x");
    CHECK(got_has(&x.g, &x.w, "x"));
    got_done(&x.g);
    x.g = (struct got){ 0 };
    CHECK(talk_closed(&x.agent));
    talk_done(&x.agent);
    CHECK(map_count(x.w.api->crowds) == 0);
    scene_close(&x);
}

TEST(a_reader_who_does_not_read_stops_the_agent)
{
    struct scene x;
    static char big[100001];
    scene_open(&x, "/v1/jobs/j/logs");
    dial(&x, 1, "logs");
    memset(big, 'x', sizeof big);
    big[0] = CHANNEL_OUT;
    frame(&x.agent, CHANNEL_OUT, "y");
    CHECK(got_has(&x.g, &x.w, "y"));
    http_call_pause(x.g.call, true);
    for (int i = 0; i < 200; i++)
        ws_send(x.agent.ws, false, big, sizeof big);
    ws_close(x.agent.ws, 1000, NULL);
    world_wait(&x.w, 100);
    CHECK(!x.agent.closed && ws_waiting(x.agent.ws) > (1 << 20));
    http_call_pause(x.g.call, false);
    CHECK(got_wait(&x.g, &x.w) && x.g.err.rc == RC_OK && x.g.body.len == 200 * 100000 + 1);
    talk_done(&x.agent);
    scene_close(&x);
}
