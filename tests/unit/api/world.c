#include "world.h"
#include "wire/digest.h"
#include <unistd.h>

static void on_closed(void *arg) { *(bool *)arg = true; }

void world_open(struct world *w)
{
    struct err err = { 0 };
    *w = (struct world){ 0 };
    log_level_set(LOG_ERROR);
    snprintf(w->data, sizeof w->data, "/tmp/arcus-api-XXXXXX");
    bool ok = digest_start() && mkdtemp(w->data) && (w->os = os_real_new(&err));
    w->control = ok ? fake_control_new(w->os) : NULL;
    struct api_config config = { .address = "127.0.0.1:0",
                                 .data = w->data,
                                 .version = "1.2.3",
                                 .on_closed = on_closed,
                                 .arg = &w->closed };
    if (!ok || !api_open(w->os, w->control, &config, &w->api, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    snprintf(w->url, sizeof w->url, "http://%s", api_address(w->api));
    CHECK(http_client_new(w->os, w->url, NULL, NULL, NULL, &w->client, &err));
}

static bool is_true(void *arg) { return *(bool *)arg; }

void world_close(struct world *w)
{
    char command[96];
    http_client_free(w->client);
    if (!w->closed)
        api_close(w->api, 0);
    fake_release(w->control);
    CHECK(world_until(w, is_true, &w->closed));
    fake_control_free(w->control);
    os_free(w->os);
    snprintf(command, sizeof command, "rm -rf '%s'", w->data);
    CHECK(system(command) == 0);
}

/* A wait for nothing is counted in turns of the loop: a process that stood still for a while has missed one of them, not all. */
struct waiting { struct world *w; bool (*enough)(void *arg); void *arg; int64_t until, turns; bool held; };

static void look(void *arg)
{
    struct waiting *q = arg;
    q->held = q->enough && q->enough(q->arg);
    if (q->held || (q->turns-- <= 0 && os_boot_ms(q->w->os) >= q->until))
        os_stop(q->w->os);
    else
        timer_start(q->w->os, 1, look, q);
}

static bool run(struct world *w, bool (*enough)(void *arg), void *arg, int64_t ms)
{
    struct waiting q = { w, enough, arg, os_boot_ms(w->os) + ms, enough ? 0 : ms / 2, false };
    timer_start(w->os, 0, look, &q);
    os_run(w->os);
    return q.held;
}

bool world_until(struct world *w, bool (*enough)(void *arg), void *arg)
{
    return run(w, enough, arg, 60000);
}
void world_wait(struct world *w, int64_t ms) { run(w, NULL, NULL, ms); }

/* --- calls */

static void keep(char *out, size_t room, const char *value)
{
    snprintf(out, room, "%s", value ? value : "");
}

static void on_head(void *arg, int status, struct http_call *c)
{
    struct got *g = arg;
    g->status = status;
    keep(g->type, sizeof g->type, http_call_header(c, "content-type"));
    keep(g->etag, sizeof g->etag, http_call_header(c, "etag"));
    keep(g->location, sizeof g->location, http_call_header(c, "location"));
    keep(g->allow, sizeof g->allow, http_call_header(c, "allow"));
    keep(g->retry, sizeof g->retry, http_call_header(c, "retry-after"));
    keep(g->asks, sizeof g->asks, http_call_header(c, "www-authenticate"));
    keep(g->id, sizeof g->id, http_call_header(c, "arcus-request-id"));
    keep(g->replayed, sizeof g->replayed, http_call_header(c, "idempotent-replayed"));
}

static void on_data(void *arg, const char *at, size_t n)
{
    str_put(&((struct got *)arg)->body, at, n);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct got *g = arg;
    (void)body;
    g->ended = true;
    g->call = NULL;
    g->status = status ? status : g->status;
    if (err)
        g->err = *err;
}

void got_start(struct got *g, struct world *w, const char *key, const char *method,
               const char *path, const struct http_header *more, struct slice body)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    char bearer[64];
    struct http_header headers[4];
    size_t n = 0;
    *g = (struct got){ 0 };
    if (key) {
        snprintf(bearer, sizeof bearer, "Bearer %s", key);
        headers[n++] = (struct http_header){ "Authorization", bearer };
    }
    for (; more && more->name && n < COUNT(headers); more++)
        headers[n++] = *more;
    g->call = http_call(w->client, method, path, headers, n, body, (int64_t)body.len, &events, g);
}

static bool has_ended(void *arg) { return ((struct got *)arg)->ended; }
bool got_wait(struct got *g, struct world *w) { return world_until(w, has_ended, g); }

struct look_for { struct str *in; const char *text; };
static bool is_there(void *arg)
{
    struct look_for *l = arg;
    return l->in->at && memmem(l->in->at, l->in->len, l->text, strlen(l->text));
}
bool got_has(struct got *g, struct world *w, const char *text)
{
    return world_until(w, is_there, &(struct look_for){ &g->body, text });
}

void got_done(struct got *g)
{
    if (g->call)
        http_call_cancel(g->call);
    str_done(&g->body);
}

void ask(struct got *g, struct world *w, const char *key, const char *method, const char *path,
         const char *type, const char *body)
{
    struct http_header more[] = { { type ? "Content-Type" : NULL, type }, { NULL, NULL } };
    got_start(g, w, key, method, path, more, body ? SLICE(body) : (struct slice){ 0 });
    CHECK(got_wait(g, w));
}

bool got_says(const struct got *g, const char *member, const char *text)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err err;
    const char *value = json_parse((struct slice){ g->body.at, g->body.len }, mem, &doc, &err)
                            ? json_text(doc, member)
                            : NULL;
    if (value && strstr(value, text))
        return true;
    printf("# %d %s, not '%s' in %s\n", g->status, g->body.at ? g->body.at : "(nothing)", text,
           member);
    return false;
}

/* --- WebSockets */

static void ws_opened(void *arg, struct ws *ws) { (void)ws, ((struct talk *)arg)->opened++; }

static void ws_message(void *arg, struct ws *ws, bool text, const char *at, size_t n)
{
    struct talk *t = arg;
    (void)ws, (void)text;
    t->messages++;
    t->bytes += n;
    if (t->keep) {
        str_put(&t->got, at, n);
        str_char(&t->got, '\n');
    }
}

static void ws_closed(void *arg, struct ws *ws, const struct err *why)
{
    struct talk *t = arg;
    (void)ws;
    t->closed++;
    t->why = *why;
    t->ws = NULL;
}

void talk_start(struct talk *t, struct world *w, const char *key, const char *path)
{
    static const struct ws_events events
        = { .on_open = ws_opened, .on_message = ws_message, .on_close = ws_closed };
    char bearer[64];
    snprintf(bearer, sizeof bearer, "Bearer %s", key);
    struct http_header header = { "Authorization", bearer };
    *t = (struct talk){ .w = w, .keep = true };
    t->ws = ws_dial(w->client, path, &header, 1, NULL, &events, t);
}

static bool open_or_closed(void *arg)
{
    return ((struct talk *)arg)->opened || ((struct talk *)arg)->closed;
}
static bool is_closed(void *arg) { return ((struct talk *)arg)->closed; }
bool talk_open(struct talk *t)
{
    return world_until(t->w, open_or_closed, t) && t->opened && !t->closed;
}
bool talk_has(struct talk *t, const char *text)
{
    return world_until(t->w, is_there, &(struct look_for){ &t->got, text });
}
bool talk_closed(struct talk *t) { return world_until(t->w, is_closed, t); }

void talk_done(struct talk *t)
{
    if (t->ws)
        ws_drop(t->ws);
    CHECK(talk_closed(t));
    str_done(&t->got);
}
