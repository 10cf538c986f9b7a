/* join.c - asks until there is an answer. The key is made here and kept before the first ask, so an answer that was lost is asked for
 * again, also after a crash: the server knows the asker by it. It is the node's own from the answer on, and that is stored before
 * anybody hears of it; storing is tried until it succeeds. */
#include "agent/join.h"
#include "base/log.h"
#include "wire/bind.h"
#include <ctype.h>
#include <stdlib.h>

enum {
    PAUSE_MIN_MS = 200,
    PAUSE_MAX_MS = 5000,
    NAME_LIMIT = 63,
    MAX_NAMES = 20
};

struct join {
    struct os *os;
    struct heads *heads;
    const char *data;
    struct node_join_ask ask;
    const char *base_name;
    bool fixed;
    int names; /* tried */
    const struct join_events *events;
    void *arg;
    struct http_call *call;
    struct timer *again;
    int64_t pause_ms;
    struct arena *mem;
    struct identity who; /* given by the server, not stored yet */
    bool given;
};

const char *join_name(const char *hostname, struct arena *mem)
{
    char *name = arena_bytes(mem, hostname, strnlen(hostname, NAME_LIMIT));
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    while (*name == '-')
        name++;
    for (size_t n = strlen(name); n && name[n - 1] == '-';)
        name[--n] = 0;
    return *name ? name : "node";
}

static void ask(struct join *j);
static void finish(struct join *j);

static void on_again(void *arg)
{
    struct join *j = arg;
    j->again = NULL;
    if (j->given)
        finish(j);
    else
        ask(j);
}

static void later(struct join *j)
{
    j->again = timer_start(j->os, j->pause_ms, on_again, j);
    j->pause_ms = MIN(j->pause_ms * 2, PAUSE_MAX_MS);
    heads_next(j->heads);
}

/* The token is spent by now, so a full disk must not lose the key: try until it is stored. */
static void finish(struct join *j)
{
    struct err err = { 0 };
    if (identity_store(j->os, j->data, &j->who, &err)) {
        identity_joined(j->os, j->data);
        j->events->on_joined(j->arg, &j->who);
        join_free(j);
        return;
    }
    log_line(LOG_ERROR, "agent", "the node's key cannot be stored: %s", err.text);
    later(j);
}

static bool read_answer(struct join *j, int status, struct slice body, struct err *err)
{
    struct json *doc;
    if (!json_parse(body, j->mem, &doc, err))
        return false;
    struct join_view view = { 0 };
    if (status / 100 == 2) {
        if (!bind_read_ours(doc, &join_view_fields, j->mem, &view, NULL, err))
            return false;
        j->who.id = view.id;
        j->who.name = view.name;
        j->who.key = text_given(view.key) ? view.key : j->ask.key; /* a server may still give one */
        return view.id || err_set(err, RC_BAD_INPUT, "the server's answer has no id");
    }
    const char *detail = json_text(doc, "detail");
    return err_set(err, rc_of_http(status), "%s", detail ? detail : "the server refused");
}

/* A machine may have the name of another one, or have joined before and lost its key. */
static bool another_name(struct join *j, const struct err *err)
{
    if (err->rc != RC_CONFLICT || j->fixed || ++j->names >= MAX_NAMES)
        return false;
    static const int digits = 3;
    j->ask.name = arena_printf(j->mem, "%.*s-%d", NAME_LIMIT - digits, j->base_name, j->names + 1);
    ask(j);
    return true;
}

static void on_end(void *arg, int status, struct slice body, const struct err *why)
{
    struct join *j = arg;
    struct err err = why ? *why : (struct err){ 0 };
    j->call = NULL;
    if (status && read_answer(j, status, body, &err)) {
        j->given = true;
        finish(j);
        return;
    }
    if (another_name(j, &err))
        return;
    bool refused = err.rc == RC_UNAUTHENTICATED || err.rc == RC_DENIED || err.rc == RC_CONFLICT
                   || err.rc == RC_GONE || (err.rc == RC_BAD_INPUT && status / 100 == 4 && status != 421)
                   || err.rc == RC_NOT_FOUND;
    if (refused) {
        err_wrap(&err, "the node cannot join");
        j->events->on_refused(j->arg, &err);
        join_free(j);
        return;
    }
    log_line(LOG_WARN, "agent", "joining: %s", err.text);
    later(j);
}

static void ask(struct join *j)
{
    static const struct http_header headers[] = { { "Content-Type", "application/json" } };
    static const struct http_call_events events = { .on_end = on_end };
    AUTO(str_done) struct str body = { 0 };
    struct err err = { 0 };
    if (!j->ask.key && !identity_joining(j->os, j->data, j->mem, &j->ask.key, &err)) {
        log_line(LOG_ERROR, "agent", "a key for this node cannot be stored: %s", err.text);
        later(j);
        return;
    }
    struct json_out o
        = { .to = &body }; /* by hand: a table does not print secrets, and the token is one */
    json_open(&o, '{');
    json_key(&o, "token"), json_put_text(&o, j->ask.token);
    json_key(&o, "name"), json_put_text(&o, j->ask.name);
    json_key(&o, "key"), json_put_text(&o, j->ask.key);
    json_close(&o, '}');
    j->call = http_call(heads_client(j->heads), "POST", "/v1/nodes/join", headers, COUNT(headers),
                        (struct slice){ body.at, body.len }, (int64_t)body.len, &events, j);
}

struct join *join_start(struct os *os, struct heads *heads, const char *data,
                        const struct node_join_ask *asked, const char *pin, bool fixed,
                        const struct join_events *events, void *arg)
{
    struct join *j = calloc(1, sizeof *j);
    if (!j)
        abort();
    *j = (struct join){ .os = os,
                        .heads = heads,
                        .who = { .pin = pin },
                        .data = data,
                        .ask = *asked,
                        .base_name = asked->name,
                        .fixed = fixed,
                        .events = events,
                        .arg = arg,
                        .pause_ms = PAUSE_MIN_MS,
                        .mem = arena_new() };
    ask(j);
    return j;
}

void join_free(struct join *j)
{
    if (!j)
        return;
    if (j->call)
        http_call_cancel(j->call);
    timer_cancel(j->again);
    arena_free(j->mem);
    free(j);
}
