/* forward.c - `arcus port-forward`: ports of this machine's loopback that lead into a task.
 *
 * Each connection to one of them is a stream of its own to the task's loopback, through the server and the node's tunnel. A
 * side that does not read stops the other; a half-close goes through. One that fails is told and closed; the ports stay
 * open until we are interrupted, or may no longer reach the job. */
#include "cli/cli.h"
#include "cli/forward.h"
#include "model/channel.h"
#include "net/ws.h"
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { IN_FLIGHT = 256 << 10, PIECE = 64 << 10 };

struct way { struct forward *f; struct listener *listener; int64_t port; };
struct forward {
    struct cli *c;
    struct json *doc;               /* of job.dial, less its port */
    struct way ways[FORWARD_WAYS];
    size_t way_count;
    struct link *first;
    bool done;
    struct err err;                 /* why no connection can succeed any more */
};
struct link {                       /* lives until both sides have closed */
    struct forward *f;
    struct link *next;
    struct stream *local;
    struct ws *ws;
    int64_t port;
    bool ended, told;               /* the far side's last word was good, bad */
};

bool forward_parse(const char *text, int64_t *local, int64_t *remote, struct err *err)
{
    const char *colon = strchr(text, ':'), *second = colon ? colon + 1 : text;
    char *end = NULL, *rest = NULL;
    long long a = colon && colon != text ? strtoll(text, &end, 10) : 0, b = strtoll(second, &rest, 10);
    bool digits = isdigit((unsigned char)*second) && (!colon || colon == text || (isdigit((unsigned char)*text) && end == colon));
    if (!digits || *rest || a < 0 || a > 65535 || b < 1 || b > 65535)
        return err_set(err, RC_BAD_INPUT, "'%.40s' is not a port to forward; write REMOTE, LOCAL:REMOTE, or :REMOTE for any free port here", text);
    *local = colon ? a : b;
    *remote = b;
    return true;
}

/* --- one connection */

static void link_done(struct link *k)
{
    if (k->local || k->ws)
        return;
    struct link **at = &k->f->first;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    os_stop(k->f->c->os);           /* whoever leaves waits for the last */
    free(k);
}

static void finish(struct forward *f)
{
    f->done = true;
    os_stop(f->c->os);
}

static void send_eof(void *arg)
{
    static const char text[] = "\3{\"eof\":true}";
    _Static_assert(CHANNEL_CONTROL == 3, "the first byte of the text");
    struct link *k = arg;
    if (k->ws)
        ws_send(k->ws, false, text, sizeof text - 1);
}

static size_t on_local(void *arg, const char *at, size_t n)
{
    struct link *k = arg;
    char message[PIECE + 1];
    if (!k->ws)
        return n;
    message[0] = CHANNEL_IN;
    for (size_t done = 0, m; done < n; done += m) {
        m = MIN(n - done, (size_t)PIECE);
        memcpy(message + 1, at + done, m);
        ws_send(k->ws, false, message, m + 1);
    }
    if (ws_waiting(k->ws) > IN_FLIGHT)
        stream_pause(k->local, true);
    return n;
}

static void on_local_drain(void *arg)
{
    struct link *k = arg;
    if (k->ws)
        ws_pause(k->ws, false);
}

static void on_local_close(void *arg, const struct err *why)
{
    struct link *k = arg;
    (void)why;
    k->local = NULL;
    if (k->ws) {
        ws_pause(k->ws, false);
        ws_close(k->ws, 1000, "");
    }
    link_done(k);
}

static void on_control(struct link *k, struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err why;
    if (!k->local || !json_parse(json, mem, &doc, &why))
        return;
    if (json_text(doc, "error")) {
        k->told = true;
        say(k->f->c, "port %lld: %s", (long long)k->port, json_text(doc, "error"));
        stream_close(k->local);
    } else if (json_get(doc, "exit")) {
        k->ended = true;
        stream_end(k->local);
    } else if (json_get(doc, "eof")) {
        stream_shut(k->local);
    }
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct link *k = arg;
    (void)text;
    if (n > 0 && at[0] == CHANNEL_CONTROL) {
        on_control(k, (struct slice){ at + 1, n - 1 });
    } else if (n > 1 && at[0] == CHANNEL_OUT && k->local) {
        stream_write(k->local, at + 1, n - 1);
        if (stream_waiting(k->local) > IN_FLIGHT)
            ws_pause(w, true);
    }
}

/* Also when it opens: what waited for that goes out without a word of its own. */
static void on_drain(void *arg, struct ws *w)
{
    struct link *k = arg;
    (void)w;
    if (k->local)
        stream_pause(k->local, false);
}

static bool is_final(enum rc rc)
{
    return rc == RC_NOT_FOUND || rc == RC_DENIED || rc == RC_UNAUTHENTICATED;
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct link *k = arg;
    struct forward *f = k->f;
    (void)w;
    k->ws = NULL;
    if (why->rc != RC_OK && !k->told && !k->ended && !f->done) {
        say(f->c, "port %lld: %s", (long long)k->port, why->text);
        if (is_final(why->rc)) {
            f->err = *why;
            finish(f);
        }
    }
    if (k->local && !k->ended)
        stream_close(k->local);
    link_done(k);
}

static void on_accept(void *arg, struct stream *s)
{
    static const struct stream_events local
        = { .on_data = on_local, .on_drain = on_local_drain, .on_close = on_local_close, .on_eof = send_eof };
    static const struct ws_events far = { .on_open = on_drain, .on_message = on_message, .on_drain = on_drain, .on_close = on_close };
    static const struct ws_limits limits = { .message_bytes = CHANNEL_MESSAGE };
    struct way *way = arg;
    struct forward *f = way->f;
    AUTO(str_done) struct str body = { 0 };
    struct http_header headers[CLI_HEADERS];
    struct err err = { 0 };
    char *path;
    struct link *k = calloc(1, sizeof *k);
    if (!k)
        abort();
    *k = (struct link){ .f = f, .next = f->first, .local = s, .port = way->port };
    f->first = k;
    stream_bind(s, &local, k);
    doc_drop(f->doc, "port");
    struct json *port = json_new(f->c->mem, JSON_NUMBER);
    port->is_int = true;
    port->number = way->port;
    json_add(f->doc, "port", port);
    if (f->done || !cli_route(f->c, VERB_JOB_DIAL, f->doc, &path, &body, &err)) {
        stream_close(s);
        return;
    }
    k->ws = ws_dial(f->c->client, path, headers, cli_headers(f->c, headers, false, false), &limits, &far, k);
}

/* --- the whole */

static bool open_way(struct forward *f, const char *text, struct err *err)
{
    struct way *w = &f->ways[f->way_count];
    int64_t local, remote;
    char address[32];
    if (f->way_count == FORWARD_WAYS)
        return err_set(err, RC_BAD_INPUT, "at most %d ports at once", FORWARD_WAYS);
    if (!forward_parse(text, &local, &remote, err))
        return false;
    snprintf(address, sizeof address, "127.0.0.1:%lld", (long long)local);
    *w = (struct way){ .f = f, .port = remote };
    if (!stream_listen(f->c->os, address, NULL, on_accept, w, &w->listener, err))
        return err_wrap(err, "port %lld of this machine", (long long)local);
    f->way_count++;
    return true;
}

static void on_interrupt(void *arg) { finish(arg); }

static void close_all(struct forward *f)
{
    f->done = true;
    for (size_t i = 0; i < f->way_count; i++)
        listener_close(f->ways[i].listener);
    for (struct link *k = f->first; k; k = k->next) {
        if (k->local)
            stream_close(k->local);
        if (k->ws)
            ws_drop(k->ws);
    }
    while (f->first)
        os_run(f->c->os);
}

static bool is_up(struct cli *c, const struct json *doc, struct err *err)
{
    struct json *job, *ask = json_new(c->mem, JSON_OBJECT);
    doc_set(c, ask, "job", json_text(doc, "job"));
    if (!cli_call(c, VERB_JOB_GET, ask, &job, err))
        return false;
    const char *state = json_text(job, "state");
    return text_is(state, "running")
           || err_set(err, RC_CONFLICT, "%s is %s: its ports can be reached while it runs", json_text(doc, "job"), state);
}

int forward_run(struct cli *c, struct json *doc, const struct texts *ports, void (*on_ready)(void *arg, int64_t local, int64_t remote), void *arg)
{
    struct forward f = { .c = c, .doc = doc };
    if (!cli_connect_live(c, &c->err) || !is_up(c, doc, &c->err))
        return print_error(c, &c->err);
    for (size_t i = 0; i < ports->count; i++)
        if (!open_way(&f, ports->at[i], &c->err)) {
            close_all(&f);
            return print_error(c, &c->err);
        }
    os_on_signal(c->os, SIGINT, on_interrupt, &f);
    os_on_signal(c->os, SIGTERM, on_interrupt, &f);
    os_on_signal(c->os, SIGHUP, on_interrupt, &f);
    for (size_t i = 0; i < f.way_count; i++) {
        const char *address = listener_address(f.ways[i].listener);
        on_ready(arg, strtoll(strrchr(address, ':') + 1, NULL, 10), f.ways[i].port);
    }
    cli_wait(c, &f.done);
    close_all(&f);
    return f.err.rc == RC_OK ? 0 : rc_exit(f.err.rc);
}

static void print_way(void *arg, int64_t local, int64_t remote)
{
    char line[80];
    (void)arg;
    int n = snprintf(line, sizeof line, "Forwarding from 127.0.0.1:%lld -> %lld\n", (long long)local, (long long)remote);
    out_write(line, (size_t)n);
}

struct forward_own { const char *ports; };
static const struct field forward_rows[] = {
    FIELD(struct forward_own, ports, TEXT, .required = true, .max = 16, .flag = "", .help = "REMOTE, LOCAL:REMOTE, or :REMOTE for any free port here"),
};
const struct fields forward_fields = FIELDS(forward_own, forward_rows);

int word_port_forward(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    return forward_run(c, f.doc, &f.rest, print_way, NULL);
}
