/* links.c - the agents' connections: reports up, desired sets and orders to open streams down.
 *
 * One live link a node; a newer one replaces the older, and what that one still says counts for nothing (a node that lost its power may
 * give a number again that was on its way). A message becomes a verb as the node that
 * the door found, and the door's answer is what goes down. Messages are asked in order, a few at a
 * time; beyond that the link is not read. What a commit pushes between a hello and its answer is
 * held back and follows it, if it is newer. What is longer than a message may be goes in parts:
 * binary ones, and the last as a text.
 *
 * There may be ten thousand of them, silent most of the time: so a link outlives the visit that it
 * came with and keeps only what it needs, and is looked at again now and then in its own time. */
#include "api/api_internal.h"
#include "base/id.h"
#include "model/hello.h"
#include "model/order.h"
#include "model/prefix.h"
#include <stdlib.h>

enum { MESSAGE_MOST = 8 << 20, AT_ONCE = 16, HELD_MOST = 64, SLOW = 32 << 20, PART = 1 << 20 };
enum link_state { LINK_NEW, LINK_GREETING, LINK_UP };

struct node_link {
    struct api *api;
    struct ws *ws;                  /* NULL: closed, but messages of it are still at the door */
    struct credential from;
    struct caller who;
    int64_t checked_ms;             /* when it was last asked whether its key still holds */
    bool checking;
    bool over;                      /* nothing that it says counts any more */
    int64_t node;
    enum link_state state;
    size_t asked;                   /* messages at the door */
    bool paused;
    bool met;                       /* it has been up before */
    struct arena *held_mem;
    struct slice *held;             /* HELD_MOST, in held_mem */
    size_t held_count;
};
struct message { struct request ask; struct node_link *link; bool hello; };

static void maybe_free(struct node_link *l)
{
    if (l->ws || l->asked)
        return;
    struct api *a = l->api;
    arena_free(l->held_mem);
    free(l);
    api_release(a);
}

static void refuse(struct node_link *l, enum rc rc, const char *why)
{
    log_line(LOG_WARN, "api", "link of node %s: %s", l->who.name, why);
    if (l->ws)
        ws_close(l->ws, 4000 + rc_http(rc), why);
}

/* --- down */

static void send_text(struct node_link *l, struct slice json)
{
    if (!l->ws)
        return;
    if (ws_waiting(l->ws) > SLOW) { /* of what came before: one long message is no fault of the agent's */
        refuse(l, RC_TIMEOUT, "the agent does not read what it is sent");
        return;
    }
    for (; json.len > PART; json.at += PART, json.len -= PART)
        ws_send(l->ws, false, json.at, PART);
    while (json.len && ((unsigned char)json.at[0] & 0xc0) == 0x80) { /* a text begins with a letter */
        ws_send(l->ws, false, json.at, 1);
        json.at++, json.len--;
    }
    ws_send(l->ws, true, json.at, json.len);
}

static int64_t generation_of(struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err err;
    return json_parse_own(json, mem, &doc, &err) ? json_int(doc, "generation", 0) : 0;
}

static void greeted(struct node_link *l, struct slice full)
{
    int64_t seen = l->held_count ? generation_of(full) : 0;
    l->state = LINK_UP;
    l->met = true;
    send_text(l, full);
    for (size_t i = 0; i < l->held_count; i++)
        if (generation_of(l->held[i]) > seen)
            send_text(l, l->held[i]);
    l->held_count = 0;
    arena_free(TAKE(l->held_mem));
}

static void push(struct node_link *l, struct slice json)
{
    if (l->state == LINK_UP) {
        send_text(l, json);
    } else if (l->state == LINK_GREETING) {
        if (l->held_count == HELD_MOST) {
            refuse(l, RC_UNAVAILABLE, "too much changed during the hello; dial again");
            return;
        }
        if (!l->held_mem) {
            l->held_mem = arena_new();
            l->held = ARENA_ARRAY(l->held_mem, struct slice, HELD_MOST);
        }
        l->held[l->held_count++]
            = (struct slice){ arena_bytes(l->held_mem, json.at, json.len), json.len };
    }
}

void links_commit(struct api *a, const struct commit *k)
{
    for (size_t i = 0; i < k->push_count; i++) {
        struct node_link *l = map_get(a->links, k->pushes[i].node);
        if (l)
            push(l, k->pushes[i].json);
    }
}

bool links_open_stream(struct api *a, int64_t node, const struct open_stream *o, struct err *err)
{
    struct node_link *l = map_get(a->links, node);
    if (!l || !l->ws || !l->met)            /* a hello again, for a changed inventory, is in nobody's way */
        return err_set(err, RC_UNAVAILABLE,
                       "the node that holds it is not connected at the moment; try again later");
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &open_stream_fields, o);
    send_text(l, (struct slice){ text.at, text.len });
    return true;
}

/* --- up */

static void answered(void *arg, struct request *r)
{
    struct message *m = arg;
    struct node_link *l = m->link;
    l->asked--;
    if (l->ws && !r->ok)
        refuse(l, r->err.rc, r->err.text);
    else if (l->ws && m->hello)
        greeted(l, (struct slice){ r->reply.at, r->reply.len });
    else if (l->ws && r->reply.len)
        send_text(l, (struct slice){ r->reply.at, r->reply.len });
    if (l->ws && l->paused) {
        l->paused = false;
        ws_pause(l->ws, false);
    }
    maybe_free(l);
    str_done(&r->reply);
    arena_free(r->mem);                 /* m is in it */
}

/* Sends it through the door as the node; as whoever has its key, if checked is true. */
static void ask(struct node_link *l, enum verb_id verb, const void *body, struct arena *mem, bool check,
                void (*on_reply)(void *arg, struct request *r))
{
    struct message *m = ARENA_NEW(mem, struct message);
    *m = (struct message){ .link = l, .hello = verb == VERB_NODE_HELLO };
    m->ask = (struct request){ .verb = verb, .from = l->from, .body = body, .mem = mem, .on_reply = on_reply, .arg = m };
    if (!check) {
        m->ask.who = l->who;
        m->ask.from.hash[0] = 0;
    }
    m->ask.again = check;
    l->asked++;
    control_ask(l->api->control, &m->ask);
}

static const struct kind {
    const char *name;
    enum verb_id verb;
    const struct fields *fields;
} kinds[] = {
    { "hello", VERB_NODE_HELLO, &hello_fields },
    { "report", VERB_NODE_REPORT, &report_fields },
    { "beat", VERB_NODE_REPORT, &report_fields },
};

static bool read_message(struct node_link *l, struct slice text, struct arena *mem,
                         const struct kind **kind, void **body, struct err *err)
{
    struct json *doc;
    if (!json_parse(text, mem, &doc, err))
        return false;
    const char *name = json_text(doc, "kind");
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (text_is(name, kinds[i].name)) {
            *kind = &kinds[i];
            *body = arena_take(mem, 1, kinds[i].fields->size);
            if (kinds[i].verb != VERB_NODE_HELLO && l->state == LINK_NEW)
                return err_field(err, "kind", "the first message must be a hello");
            return bind_read_ours(doc, kinds[i].fields, mem, *body, NULL, err)
                   || err_wrap(err, "%s", name);
        }
    return err_field(err, "kind", "unknown kind of message '%.32s'", name ? name : "");
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct node_link *l = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    const struct kind *kind = NULL;
    void *body = NULL;
    struct err err = { 0 };
    if (l->over)
        return;
    if (!text) {
        refuse(l, RC_BAD_INPUT, "messages of a link are texts");
        return;
    }
    if (!read_message(l, (struct slice){ at, n }, mem, &kind, &body, &err)) {
        refuse(l, err.rc, err.text);
        return;
    }
    if (kind->verb == VERB_NODE_HELLO)
        l->state = LINK_GREETING;
    if (l->asked + 1 >= AT_ONCE) {
        l->paused = true;
        ws_pause(w, true);
    }
    ask(l, kind->verb, body, TAKE(mem), false, answered);
}

/* --- its life */

static void forget(struct node_link *l)
{
    if (map_get(l->api->links, l->node) == l)
        map_take(l->api->links, l->node);
    l->over = true;
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct node_link *l = arg;
    (void)w;
    l->ws = NULL;
    if (!l->over)
        log_line(LOG_INFO, "api", "node %s is disconnected: %s", l->who.name,
                 why->rc == RC_OK ? "it said goodbye" : why->text);
    forget(l);
    maybe_free(l);
}

static void checked(void *arg, struct request *r)
{
    struct node_link *l = ((struct message *)arg)->link;
    l->asked--;
    l->checking = false;
    if (!r->ok && (r->err.rc == RC_UNAUTHENTICATED || r->err.rc == RC_DENIED || r->err.rc == RC_NOT_FOUND)) {
        forget(l);
        if (l->ws)
            ws_close(l->ws, 4401, "the key of this node is no longer good");
    }
    maybe_free(l);
    str_done(&r->reply);
    arena_free(r->mem);
}

void links_check(struct api *a, int64_t before_ms)
{
    struct node_link *l;
    for (size_t i = 0; (l = map_next(a->links, &i));) {
        if (l->checking || l->checked_ms > before_ms)
            continue;
        struct arena *mem = arena_new();
        l->checking = true;
        l->checked_ms = os_boot_ms(a->os);
        ask(l, VERB_NODE_LINK, arena_take(mem, 1, verbs[VERB_NODE_LINK].takes->size), mem, true, checked);
    }
}

static void answered_link(struct visit *v)
{
    static const struct ws_events events = { .on_message = on_message, .on_close = on_close };
    static const struct ws_limits limits = { .message_bytes = MESSAGE_MOST };
    struct api *a = v->api;
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
        return;
    }
    if (!control_writes(a->control)) {
        pass_needed(v);
        reply_not_writer(v);
        return;
    }
    if (!ws_asked(v->rq)) {
        reply_upgrade(v);
        return;
    }
    struct node_link *l = calloc(1, sizeof *l), *old = map_get(a->links, v->who.id);
    if (!l)
        abort();
    *l = (struct node_link){ .api = a, .node = v->who.id, .from = v->from, .who = v->who, .checked_ms = os_boot_ms(a->os) };
    if (old && old->ws)
        ws_close(old->ws, 4409, "a newer connection of this node has taken over");
    map_put(a->links, l->node, l);
    api_hold(a);
    l->ws = ws_accept(TAKE(v->rq), &limits, &events, l);
    log_line(LOG_INFO, "api", "node %s is connected from %s", v->who.name, v->from.address);
    visit_end(v);
}

void link_begin(struct visit *v) { visit_ask(v, VERB_NODE_LINK, v->body, answered_link); }

/* Tasks go on; each agent finds the server that writes, and says hello there. */
void links_turn(struct api *a)
{
    struct node_link *l;
    if (control_writes(a->control))
        return;
    for (size_t i = 0; (l = map_next(a->links, &i));)
        if (l->ws)
            ws_close(l->ws, 4000 + rc_http(RC_NOT_WRITER), "another server writes now");
}

void links_close(struct api *a)
{
    struct node_link *l;
    for (size_t i = 0; (l = map_next(a->links, &i));)
        if (l->ws)
            ws_close(l->ws, 1001, "the server is closing");
}
