#include "nodes.h"
#include "base/id.h"
#include "model/channel.h"
#include "model/prefix.h"

static const char *where(const char *state)
{
    static char text[256];
    char node[ID_TEXT], attempt[ID_TEXT], project[ID_TEXT];
    snprintf(text, sizeof text,
             "{\"node\":\"%s\",\"attempt\":\"%s\",\"project\":\"%s\",\"state\":\"%s\"}",
             id_text(node, PREFIX_NODE, fake_node(1)), id_text(attempt, PREFIX_ATTEMPT, 77),
             id_text(project, PREFIX_PROJECT, fake_project()), state);
    return text;
}

struct scene { struct world w; struct straw s; struct talk link, user, agent; char path[128]; };

static void scene_open(struct scene *x, const char *path, const char *says)
{
    x->s = (struct straw){ .where = where("running") };
    world_open(&x->w);
    node_link(&x->link, &x->w, &x->s, "node1");
    talk_start(&x->user, &x->w, "dev", path);
    CHECK(opened(&x->link, 1, x->path, says));
}

static void scene_splice(struct scene *x)
{
    talk_start(&x->agent, &x->w, "node1", x->path);
    CHECK(talk_open(&x->agent) && talk_open(&x->user));
}

static void scene_close(struct scene *x)
{
    talk_done(&x->link);
    world_close(&x->w);
}

TEST(exec_splices_the_two_sides_frame_by_frame)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/exec?argv=sh&argv=-c&tty=true&rows=24&cols=80",
               "\"what\":\"exec\",\"attempt\":\"att-");
    CHECK(strstr(x.link.got.at, "\"argv\":[\"sh\",\"-c\"],\"tty\":true,\"rows\":24,\"cols\":80"));
    scene_splice(&x);
    frame(&x.user, CHANNEL_IN, "ls\n");
    CHECK(talk_has(&x.agent, "ls\n") && x.agent.got.at[0] == CHANNEL_IN);
    frame(&x.agent, CHANNEL_OUT, "file");
    frame(&x.agent, CHANNEL_CONTROL, "{\"exit\":0}");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(talk_closed(&x.user) && x.user.why.rc == RC_OK);
    CHECK(x.user.messages == 2 && memcmp(x.user.got.at, "\1file\n\3{\"exit\":0}\n", 18) == 0);
    talk_done(&x.user);
    talk_done(&x.agent);
    CHECK(map_count(x.w.api->crowds) == 0);
    scene_close(&x);
}

TEST(a_connection_to_a_port_of_a_task_is_a_stream_too)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/dial?port=8888", "\"what\":\"dial\",\"attempt\":\"att-");
    CHECK(strstr(x.link.got.at, "\"port\":8888"));
    scene_splice(&x);
    frame(&x.user, CHANNEL_IN, "GET / HTTP/1.0\r\n\r\n");
    CHECK(talk_has(&x.agent, "GET /"));
    frame(&x.agent, CHANNEL_CONTROL, "{\"exit\":0}");
    ws_close(x.agent.ws, 1000, NULL);
    CHECK(talk_closed(&x.user) && x.user.why.rc == RC_OK);
    talk_done(&x.user);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(the_word_of_a_stream_is_good_once_and_for_its_node_only)
{
    struct scene x;
    struct talk t;
    scene_open(&x, "/v1/jobs/j/files?path=/outputs&put=true", "\"what\":\"put\"");
    talk_start(&t, &x.w, "node2", x.path);
    CHECK(!talk_open(&t) && t.why.rc == RC_NOT_FOUND);
    talk_done(&t);
    talk_start(&t, &x.w, "dev", x.path);
    CHECK(!talk_open(&t) && t.why.rc == RC_DENIED);
    talk_done(&t);
    talk_start(&t, &x.w, "node1", "/v1/streams/st_0000000000000000000000000000000000000000000");
    CHECK(!talk_open(&t) && t.why.rc == RC_NOT_FOUND);
    talk_done(&t);
    CHECK(strlen(x.path) == strlen("/v1/streams/st_") + 43 && !x.user.opened);
    scene_splice(&x);
    talk_start(&t, &x.w, "node1", x.path);
    CHECK(!talk_open(&t) && t.why.rc == RC_NOT_FOUND);
    talk_done(&t);
    talk_done(&x.user);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(a_side_that_leaves_takes_the_other_with_it)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/exec?argv=sh", "exec");
    scene_splice(&x);
    ws_drop(x.user.ws);
    CHECK(talk_closed(&x.agent));
    talk_done(&x.user);
    talk_done(&x.agent);
    talk_start(&x.user, &x.w, "dev", "/v1/jobs/j/exec?argv=sh");
    CHECK(opened(&x.link, 2, x.path, ""));
    scene_splice(&x);
    ws_drop(x.agent.ws);
    CHECK(talk_closed(&x.user) && x.user.why.rc != RC_OK);
    talk_done(&x.user);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(a_user_who_leaves_before_the_agent_dials_leaves_nothing_to_dial)
{
    struct scene x;
    struct talk t;
    scene_open(&x, "/v1/jobs/j/exec?argv=sh", "exec");
    talk_done(&x.user);
    world_wait(&x.w, 20);
    CHECK(map_count(x.w.api->awaited) == 0 && map_count(x.w.api->crowds) == 0);
    talk_start(&t, &x.w, "node1", x.path);
    CHECK(!talk_open(&t) && t.why.rc == RC_NOT_FOUND);
    talk_done(&t);
    scene_close(&x);
}

static bool all_came(void *arg) { return ((struct talk *)arg)->bytes >= 200 * 100001u; }

TEST(a_side_that_does_not_read_stops_the_other_and_nothing_is_lost)
{
    struct scene x;
    static char big[100001];
    scene_open(&x, "/v1/jobs/j/files?path=/outputs", "\"what\":\"get\"");
    scene_splice(&x);
    x.user.keep = false;
    ws_pause(x.user.ws, true);
    memset(big, 'x', sizeof big);
    big[0] = CHANNEL_OUT;
    for (int i = 0; i < 200; i++)
        ws_send(x.agent.ws, false, big, sizeof big);
    world_wait(&x.w, 100);
    CHECK(ws_waiting(x.agent.ws)
          > (1 << 20)); /* it is the agent that has to wait, not the server that has to keep */
    ws_pause(x.user.ws, false);
    CHECK(world_until(&x.w, all_came, &x.user));
    CHECK(x.user.bytes == 200 * sizeof big && x.user.messages == 200);
    talk_done(&x.user);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(a_message_larger_than_a_channel_allows_ends_the_stream)
{
    struct scene x;
    static char big[CHANNEL_MESSAGE + 1];
    scene_open(&x, "/v1/jobs/j/exec?argv=sh", "exec");
    scene_splice(&x);
    ws_send(x.user.ws, false, big, sizeof big);
    CHECK(talk_closed(&x.user) && x.user.why.rc == RC_TOO_LARGE && talk_closed(&x.agent));
    talk_done(&x.user);
    talk_done(&x.agent);
    scene_close(&x);
}

TEST(what_cannot_be_reached_is_said_in_words)
{
    struct world w;
    struct straw s = { .where = where("running") };
    struct talk t;
    world_open(&w);
    w.control->script = straw_answer;
    w.control->arg = &s;
    talk_start(&t, &w, "dev", "/v1/jobs/j/exec?argv=sh");
    CHECK(!talk_open(&t) && t.why.rc == RC_UNAVAILABLE && strstr(t.why.text, "not connected"));
    talk_done(&t);
    s.where = "{\"node\":null,\"attempt\":null,\"state\":\"queued\"}";
    s.asks = 0;
    talk_start(&t, &w, "dev", "/v1/jobs/j/exec?argv=sh");
    CHECK(!talk_open(&t) && t.why.rc == RC_CONFLICT && strstr(t.why.text, "not been placed"));
    talk_done(&t);
    talk_start(&t, &w, "view", "/v1/jobs/j/exec?argv=sh");
    CHECK(!talk_open(&t) && t.why.rc == RC_DENIED);
    talk_done(&t);
    world_close(&w);
}

TEST(a_project_may_have_so_many_streams_and_no_more)
{
    struct scene x;
    struct err err;
    scene_open(&x, "/v1/jobs/j/exec?argv=sh", "exec");
    for (int i = 0; i < 255; i++)
        CHECK(crowd_enter(x.w.api, fake_project(), &err));
    struct talk t;
    talk_start(&t, &x.w, "dev", "/v1/jobs/j/exec?argv=sh");
    CHECK(!talk_open(&t) && t.why.rc == RC_TOO_MANY);
    talk_done(&t);
    CHECK(crowd_enter(x.w.api, fake_project() + 1, &err));   /* another project is not in its way */
    crowd_leave(x.w.api, fake_project() + 1);
    for (int i = 0; i < 255; i++)
        crowd_leave(x.w.api, fake_project());
    talk_done(&x.user);
    scene_close(&x);
}

TEST(whoever_may_no_longer_exec_is_cut_in_the_middle_of_it)
{
    struct scene x;
    scene_open(&x, "/v1/jobs/j/exec?argv=sh", "exec");
    scene_splice(&x);
    x.w.control->disabled = "dev";
    struct event e
        = { .seq = 3, .project = fake_project(), .kind = "member.removed", .data = "{}" };
    fake_commit(x.w.control, &(struct commit){ .events = &e, .event_count = 1 });
    CHECK(talk_closed(&x.user) && x.user.why.rc == RC_DENIED && talk_closed(&x.agent));
    talk_done(&x.user);
    talk_done(&x.agent);
    CHECK(!x.link.closed);
    scene_close(&x);
}
