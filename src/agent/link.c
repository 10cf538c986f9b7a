/* link.c - the states of the connection are few: dialling, open (hello sent), greeted (the full set came), and the pause
 * between two. A WebSocket's callbacks get a small struct of their own, because it outlives the link when that is freed. */
#include "agent/link.h"
#include "base/log.h"
#include "base/rand.h"
#include "net/ws.h"
#include "wire/bind.h"
#include <stdlib.h>

enum {
    PAUSE_MIN_MS = 100,
    PAUSE_MAX_MS = 5000,
    OPEN_MS = 3000, /* before the next address is tried, where there is one */
    ITEMS_AT_ONCE = 256,
    SEND_WAITING = 256 << 10, /* more is not pushed into a slow connection */
    MESSAGE_LIMIT = 16 << 20,
    SILENT_BEATS = 4,
    SILENT_MIN_MS = 15000,
    BEATS_KEPT = 64,
};

/* What a WebSocket's callbacks get: it outlives the link when that is freed first. */
struct wire {
    struct link *link;
    struct ws *ws;
    struct str parts; /* binary messages; a text ends them */
    void (*gone)(void *arg);
    void *arg;
};

struct link {
    struct os *os;
    struct heads *heads;
    size_t hops; /* addresses tried since the server last answered */
    int64_t beat_ms;
    const struct link_events *events;
    void *arg;
    struct wire *wire; /* NULL: between two connections */
    bool open, greeted;
    bool come_again; /* we cut it ourselves, to come with another key */
    bool echoes; /* the server tells which beat it answers */
    struct timer *again, *tick, *opening;
    int64_t pause_ms;
    struct rng rng;
    int64_t sent_n, kept; /* items sent and confirmed on this connection */
    int64_t generation;
    int64_t beat, sent_at[BEATS_KEPT];
    int64_t last_sent, last_heard, last_kept;
};

static void dial(struct link *l);

static void tell_down(struct link *l, const struct err *why)
{
    if (l->events->on_down)
        l->events->on_down(l->arg, why);
}

static void on_again(void *arg)
{
    struct link *l = arg;
    l->again = NULL;
    dial(l);
}

/* Half of the pause is chance, so that a thousand agents do not come back in step. It grows once a round. A server that sends us
 * elsewhere, or says goodbye, is left at once, but nobody is asked twice a round without a pause. */
static void dial_again(struct link *l, bool at_once)
{
    size_t count = MAX(heads_count(l->heads), (size_t)1);
    int64_t half = l->pause_ms / 2;
    int64_t wait = half + (int64_t)rng_below(&l->rng, (uint64_t)half + 1);
    at_once = at_once && l->hops < count;
    l->again = timer_start(l->os, at_once ? 0 : wait, on_again, l);
    if (++l->hops % count == 0)
        l->pause_ms = MIN(l->pause_ms * 2, PAUSE_MAX_MS);
}

static bool leave(struct link *l, const struct ws *ws)
{
    static const int elsewhere = 4421, goodbyes[] = { 1001, 1012, 4421 };
    bool said = false;
    if (l->come_again)
        return true; /* to the same one */
    for (size_t i = 0; i < COUNT(goodbyes); i++)
        said |= ws_code(ws) == goodbyes[i];
    if (ws_code(ws) != elsewhere || !*ws_elsewhere(ws) || !heads_prefer(l->heads, ws_elsewhere(ws)))
        heads_next(l->heads);
    return said;
}

/* --- up */

static void send_text(struct link *l, const struct str *text)
{
    ws_send(l->wire->ws, true, text->at, text->len);
    l->last_sent = os_boot_ms(l->os);
    l->sent_at[l->beat % BEATS_KEPT] = l->last_sent;
}

static void send_hello(struct link *l)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct hello hello = { 0 };
    l->events->hello(l->arg, mem, &hello);
    hello.kind = "hello";
    hello.beat = ++l->beat;
    hello.generation = l->generation;
    bind_write(&(struct json_out){ .to = &text }, &hello_fields, &hello);
    send_text(l, &text);
}

static void send_report(struct link *l, struct objects items)
{
    AUTO(str_done) struct str text = { 0 };
    struct report report
        = { .kind = "report",
            .generation = l->generation,
            .beat = ++l->beat,
            .items = items,
            .swept = l->events->swept ? l->events->swept(l->arg) : (struct texts){ 0 },
            .live = l->events->live ? l->events->live(l->arg) : (struct objects){ 0 },
            .uses = l->events->uses ? l->events->uses(l->arg) : (struct objects){ 0 },
            .holds = l->events->holds ? l->events->holds(l->arg) : (struct objects){ 0 } };
    bind_write(&(struct json_out){ .to = &text }, &report_fields, &report);
    send_text(l, &text);
}

static void send_items(struct link *l)
{
    while (l->greeted && ws_waiting(l->wire->ws) < SEND_WAITING) {
        struct objects items = l->events->items(l->arg, l->sent_n, ITEMS_AT_ONCE);
        if (!items.count)
            return;
        if (l->sent_n <= l->kept)
            l->last_kept = os_boot_ms(l->os); /* the wait for a confirmation begins */
        l->sent_n = ((const struct report_item *)items.at)[items.count - 1].n;
        send_report(l, items);
    }
}

void link_kick(struct link *l)
{
    if (l->wire && l->open)
        send_items(l);
}

void link_tell(struct link *l)
{
    if (l->greeted && ws_waiting(l->wire->ws) < SEND_WAITING)
        send_report(l, (struct objects){ 0 });
}

void link_greet(struct link *l)
{
    if (l->greeted)
        send_hello(l);
}

static void on_tick(void *arg)
{
    struct link *l = arg;
    int64_t now = os_boot_ms(l->os), silent = MAX(SILENT_BEATS * l->beat_ms, SILENT_MIN_MS);
    l->tick = NULL;
    bool deaf
        = now - l->last_heard >= silent || (l->sent_n > l->kept && now - l->last_kept >= silent);
    if (deaf) {
        log_line(LOG_WARN, "link", "the server has not answered for %d s: dialling again",
                 (int)(silent / 1000));
        ws_drop(l->wire->ws);
        return;
    }
    if (l->greeted && now - l->last_sent >= l->beat_ms)
        send_report(l, (struct objects){ 0 });
    int64_t next = l->greeted ? l->last_sent + l->beat_ms - now : l->beat_ms;
    l->tick = timer_start(l->os, MAX(next, 1), on_tick, l);
}

/* --- down */

static bool is_fresh(const struct link *l, const struct desired *d)
{
    if (d->beat == 0)
        return !l->echoes; /* a push: it may have waited in the network for long */
    if (d->beat > l->beat || l->beat - d->beat >= BEATS_KEPT)
        return false;
    return os_boot_ms(l->os) - l->sent_at[d->beat % BEATS_KEPT] <= l->beat_ms;
}

static bool take_desired(struct link *l, const struct json *doc, struct arena *mem, struct err *err)
{
    struct desired d = { 0 };
    if (!bind_read_ours(doc, &desired_fields, mem, &d, NULL, err))
        return false;
    if (!l->greeted && !d.full)
        return err_set(err, RC_BAD_INPUT, "the first answer of a connection must be a full set");
    if (d.kept > l->kept)
        l->kept = d.kept, l->last_kept = os_boot_ms(l->os);
    if (!l->greeted)
        l->sent_n = d.kept;
    l->sent_n = MAX(l->sent_n, d.kept);
    l->greeted = true;
    l->echoes |= d.beat != 0;
    l->pause_ms = PAUSE_MIN_MS;
    l->hops = 0;
    l->generation = d.generation;
    struct wire *w = l->wire;
    l->events->on_desired(l->arg, &d, is_fresh(l, &d));
    if (w->link) /* the call may have freed us */
        send_items(l);
    return true;
}

static bool take_open(struct link *l, const struct json *doc, struct arena *mem, struct err *err)
{
    struct open_stream o = { 0 };
    if (!bind_read_ours(doc, &open_stream_fields, mem, &o, NULL, err))
        return false;
    l->events->on_open(l->arg, &o);
    return true;
}

static const struct {
    const char *kind;
    bool (*take)(struct link *l, const struct json *doc, struct arena *mem, struct err *err);
} kinds[] = { { "desired", take_desired }, { "ack", take_desired }, { "open", take_open } };

static bool take(struct link *l, struct slice text, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    if (!json_parse_own(text, mem, &doc, err))
        return false;
    const char *kind = json_text(doc, "kind");
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (text_is(kind, kinds[i].kind))
            return kinds[i].take(l, doc, mem, err);
    return err_set(err, RC_BAD_INPUT, "a message of the unknown kind '%.32s'", kind ? kind : "");
}

/* --- the WebSocket */

static void on_open(void *arg, struct ws *ws)
{
    struct wire *w = arg;
    struct link *l = w->link;
    (void)ws;
    if (!l)
        return;
    l->open = true;
    timer_cancel(TAKE(l->opening));
    l->last_heard = l->last_kept = os_boot_ms(l->os);
    send_hello(l);
    l->tick = timer_start(l->os, l->beat_ms, on_tick, l);
}

static void on_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct wire *w = arg;
    struct link *l = w->link;
    struct err err = { 0 };
    if (!l)
        return;
    l->last_heard = os_boot_ms(l->os);
    bool fits = w->parts.len + n <= DESIRED_BYTES || err_set(&err, RC_TOO_LARGE, "too long");
    if (fits && (!text || w->parts.len))
        str_put(&w->parts, at, n);
    if (fits && !text)
        return;
    AUTO(str_done) struct str whole = w->parts;
    w->parts = (struct str){ 0 };
    if (fits
        && take(l, whole.len ? (struct slice){ whole.at, whole.len } : (struct slice){ at, n },
                &err))
        return;
    log_line(LOG_ERROR, "link", "the server sent what cannot be understood: %s", err.text);
    ws_drop(ws);
}

static void on_drain(void *arg, struct ws *ws)
{
    struct wire *w = arg;
    (void)ws;
    if (w->link)
        send_items(w->link);
}

static void on_close(void *arg, struct ws *ws, const struct err *why)
{
    struct wire *w = arg;
    struct link *l = w->link;
    if (!l && w->gone)
        w->gone(w->arg);
    str_done(&w->parts);
    free(w);
    if (!l)
        return;
    l->wire = NULL;
    l->open = l->greeted = l->echoes = false;
    timer_cancel(TAKE(l->tick));
    timer_cancel(TAKE(l->opening));
    dial_again(l, leave(l, ws));
    if (!l->come_again)
        tell_down(l, why);
    l->come_again = false;
}

static const struct ws_events ws_events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_drain = on_drain,
    .on_close = on_close,
};

static void on_opening(void *arg)
{
    struct link *l = arg;
    l->opening = NULL;
    ws_drop(l->wire->ws);
}

static void dial(struct link *l)
{
    struct wire *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->link = l;
    l->wire = w;
    l->beat = l->sent_n = l->kept = 0;
    if (heads_count(l->heads) > 1)
        l->opening = timer_start(l->os, OPEN_MS, on_opening, l);
    w->ws = ws_dial(heads_client(l->heads), "/v1/nodes/link", NULL, 0,
                    &(struct ws_limits){ .message_bytes = MESSAGE_LIMIT }, &ws_events, w);
}

struct link *link_new(struct os *os, struct heads *heads, int64_t beat_ms,
                      const struct link_events *events, void *arg)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    *l = (struct link){ .os = os,
                        .heads = heads,
                        .beat_ms = beat_ms,
                        .events = events,
                        .arg = arg,
                        .pause_ms = PAUSE_MIN_MS };
    os_random(os, &l->rng.s, sizeof l->rng.s);
    dial(l);
    return l;
}

void link_leave(struct link *l, void (*gone)(void *arg), void *arg)
{
    struct wire *w = l ? l->wire : NULL;
    if (w) {
        w->link = NULL;
        w->gone = gone;
        w->arg = arg;
        ws_close(w->ws, 1001, "the agent leaves");
    } else if (gone) {
        gone(arg);
    }
    if (!l)
        return;
    timer_cancel(l->again);
    timer_cancel(l->tick);
    timer_cancel(l->opening);
    free(l);
}

void link_free(struct link *l) { link_leave(l, NULL, NULL); }

bool link_up(const struct link *l)
{
    return l->greeted;
}

void link_again(struct link *l)
{
    if (!l->wire)
        return;
    l->come_again = true;
    ws_drop(l->wire->ws);
}
