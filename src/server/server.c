#include "server/server.h"
#include "api/api.h"
#include "server/own_tls.h"
#include "model/ask.h"
#include "wire/bind.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOK_AT_CERT_MS = 12 * 3600 * 1000, GIVE_BACK_MS = 5000, HOSTS = 5 };

struct server {
    struct os *os;
    struct arena *mem;
    struct store *store;
    struct control *control;
    struct api *api;
    struct tls *tls;
    struct own_ca ca;
    const char *data, *hosts[HOSTS];    /* of a certificate of our own */
    size_t host_count;
    struct timer *look, *give_back;
    struct os_spare spare;
    char url[300], pin[DIGEST_HEX];
    int64_t grace_ms;
    struct token_wish *wish;            /* under way, or waiting to be asked again */
    void (*on_closed)(void *arg);
    void *arg;
};

/* The host of "host:port", "[::1]:port" or "https://host:port"; NULL: it is none that anybody could dial. */
static const char *host_of(struct arena *mem, const char *address)
{
    static const char *const everywhere[] = { "", "0.0.0.0", "::", "*" };
    const char *at = strstr(address, "://") ? strstr(address, "://") + 3 : address;
    if (text_starts(at, "unix:"))
        return NULL;
    const char *host = *at == '[' ? arena_bytes(mem, at + 1, strcspn(at + 1, "]")) : arena_bytes(mem, at, strcspn(at, ":/"));
    for (size_t i = 0; i < COUNT(everywhere); i++)
        if (text_is(host, everywhere[i]))
            return NULL;
    return host;
}

/* What this server may be dialled by: what it was told, or where that says nothing, the machine's own name. */
static void hosts_of(struct server *s, const struct server_config *c, const char *address)
{
    const char *told[] = { c->host, host_of(s->mem, address), text_given(c->advertise) ? host_of(s->mem, c->advertise) : NULL };
    char name[256] = "";
    for (size_t i = 0; i < COUNT(told); i++)
        if (text_given(told[i]))
            s->hosts[s->host_count++] = arena_text(s->mem, told[i]);
    if (!told[1] && gethostname(name, sizeof name - 1) == 0 && *name)
        s->hosts[s->host_count++] = arena_text(s->mem, name);
}

static void look_at_cert(void *arg)
{
    struct server *s = arg;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct own_cert mine;
    struct err err = { 0 };
    s->look = timer_start(s->os, LOOK_AT_CERT_MS, look_at_cert, s);
    if (!own_cert(s->os, s->data, &s->ca, (struct texts){ s->hosts, s->host_count }, mem, &mine, &err)
        || (mine.made && !tls_renew(s->tls, mine.cert, mine.key, &err)))
        log_line(LOG_ERROR, "server", "%s", err.text);
    else if (mine.made)
        log_line(LOG_INFO, "server", "the certificate was made anew");
}

static void give_back(void *arg)
{
    struct server *s = arg;
    s->give_back = timer_start(s->os, GIVE_BACK_MS, give_back, s);
    os_give_back(s->os, &s->spare);
}

/* A certificate that was given, or one of the cloud's own authority. TLS is not simulated. */
static bool open_tls(struct server *s, const struct server_config *c, const char *address, const char *keys, struct err *err)
{
    struct slice cert, key;
    struct own_cert mine;
    if (os_is_simulated(s->os))
        return true;
    /* One that has none must not make one for a cloud that does. On SQLite there is no other server. */
    bool shared = text_is(store_kind(s->store), "postgres"), there = disk_exists(s->os, arena_printf(s->mem, "%s/ca.pem", keys));
    if ((shared && !there && !control_authority(s->store, keys, NULL, err)) || !own_ca(s->os, keys, s->mem, &s->ca, err)
        || (shared && !control_authority(s->store, keys, s->ca.pin, err)))
        return false;
    if (text_given(c->cert) || text_given(c->key)) {
        if (!text_given(c->cert) || !text_given(c->key))
            return err_set(err, RC_BAD_INPUT, "give both --tls-cert and --tls-key");
        return file_read(s->os, c->cert, 1 << 20, s->mem, &cert, err) && file_read(s->os, c->key, 1 << 20, s->mem, &key, err)
               && tls_server(&s->tls, cert.at, key.at, err);
    }
    if (address_is_loopback(address))
        return true;
    hosts_of(s, c, address);
    s->data = arena_text(s->mem, c->data);
    if (!own_cert(s->os, s->data, &s->ca, (struct texts){ s->hosts, s->host_count }, s->mem, &mine, err) || !tls_server(&s->tls, mine.cert, mine.key, err))
        return false;
    snprintf(s->pin, sizeof s->pin, "%s", s->ca.pin);
    s->look = timer_start(s->os, LOOK_AT_CERT_MS, look_at_cert, s);
    return true;
}

static void api_gone(void *arg)
{
    struct server *s = arg;
    s->api = NULL;
    if (s->on_closed)
        s->on_closed(s->arg);
}

/* What others dial. An address that means every interface says nothing to them. */
static const char *reached_by(struct server *s, const struct server_config *c)
{
    static const char *const everywhere[] = { "0.0.0.0:", "[::]:", "*:" };
    const char *address = api_address(s->api), *scheme = s->tls ? "https" : "http";
    if (text_given(c->advertise))
        return c->advertise;
    for (size_t i = 0; i < COUNT(everywhere); i++)
        if (text_starts(address, everywhere[i])) {
            char name[256] = "localhost";
            if (!c->host && gethostname(name, sizeof name - 1) != 0)
                snprintf(name, sizeof name, "localhost");
            return arena_printf(s->mem, "%s://%s%s", scheme, c->host ? c->host : name, strrchr(address, ':'));
        }
    return s->url;
}

/* "30d" into seconds; "forever" is 0. */
static bool keep_read(struct server *s, const char *flag, const char *text, int64_t def_s, int64_t *out, struct err *err)
{
    static const struct field keep = { .name = "keep", .type = F_DURATION, .min = 86400, .max = INT64_C(36600) * 86400 };
    *out = def_s;
    if (!text_given(text))
        return true;
    if (text_is(text, "forever"))
        return *out = 0, true;
    return bind_text(&keep, text, s->mem, out, err) || err_set(err, RC_BAD_INPUT, "%s is a time of at least a day, such as 30d, or forever", flag);
}

static bool open_parts(struct server *s, const struct server_config *c, struct err *err)
{
    const char *address = c->address ? c->address : ARCUS_ADDRESS,
               *keys = text_given(c->keys) ? c->keys : arena_printf(s->mem, "%s/keys", c->data),
               *where = c->store ? c->store : arena_printf(s->mem, "%s/arcus.db", c->data), *key_file = arena_printf(s->mem, "%s/admin.key", c->data);
    bool made, plain = text_is(c->store_tls, "off");
    if (text_given(c->store_tls) && !plain)
        return err_set(err, RC_BAD_INPUT, "--store-tls takes one word: off");
    if (!store_place_check(where, plain, err) || !dir_make(s->os, c->data, 0711, err) || !store_open(s->os, where, &s->store, err)
        || !control_bootstrap(s->os, s->store, keys, key_file, &made, err) || !open_tls(s, c, address, keys, err))
        return false;
    struct control_config control = { .keys = keys, .run_for_s = c->run_for_s ? c->run_for_s : 300, .margin_s = 15,
                                      .default_image = c->default_image ? arena_text(s->mem, c->default_image) : "", .plan = true, .ca_pin = s->pin,
                                      .shared = c->shared || text_is(store_kind(s->store), "postgres"), .version = ARCUS_VERSION };
    if (!keep_read(s, "--keep-jobs", c->keep_jobs, 30 * 86400, &control.keep_jobs_s, err)
        || !keep_read(s, "--keep-events", c->keep_events, 30 * 86400, &control.keep_events_s, err)
        || !keep_read(s, "--keep-usage", c->keep_usage, 90 * 86400, &control.keep_usage_s, err))
        return false;
    struct api_config api = { .address = address, .tls = s->tls, .data = arena_text(s->mem, c->data), .store = s->store, .version = ARCUS_VERSION, .rates = c->rates, .limits = c->limits,
                              .peer_ca = text_given(c->cert) ? NULL : s->ca.cert, /* the servers of a cloud know each other by its authority */ .simulated = c->simulated, .on_closed = api_gone, .arg = s };
    if (!control_open(s->os, s->store, &control, &s->control, err) || !api_open(s->os, s->control, &api, &s->api, err))
        return false;
    snprintf(s->url, sizeof s->url, "%s://%s", s->tls ? "https" : "http", api_address(s->api));
    control_advertise(s->control, reached_by(s, c));
    if (!os_is_simulated(s->os))
        s->give_back = timer_start(s->os, GIVE_BACK_MS, give_back, s);
    return true;
}

bool server_open(struct os *os, const struct server_config *config, struct server **out, struct err *err)
{
    struct server *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->os = os;
    s->mem = arena_new();
    if (!open_parts(s, config, err)) {
        server_free(s);
        return false;
    }
    return *out = s, true;
}

static void resigned(void *arg)
{
    struct server *s = arg;
    api_close(s->api, s->grace_ms);
}

void server_close(struct server *s, int64_t grace_ms, void (*on_closed)(void *arg), void *arg)
{
    s->on_closed = on_closed;
    s->arg = arg;
    s->grace_ms = grace_ms;
    if (control_resign(s->control, resigned, s))
        api_wind_down(s->api);
    else
        api_close(s->api, grace_ms);
}

static void wish_free(struct token_wish *w);

void server_free(struct server *s)
{
    if (!s)
        return;
    timer_cancel(s->look);
    timer_cancel(s->give_back);
    control_close(s->control);
    wish_free(s->wish);
    store_close(s->store);
    tls_free(s->tls);
    arena_free(s->mem);
    free(s);
}

struct control *server_control(struct server *s) { return s->control; }
const char *server_url(const struct server *s) { return s->url; }
const char *server_pin(const struct server *s) { return s->pin; }

enum { TOKEN_AGAIN_MS = 200 };
struct token_wish {
    struct request r;
    struct server *server;
    struct timer *timer;
    void (*on_token)(void *arg, const char *token);
    void *arg;
};

static void wish_free(struct token_wish *w)
{
    if (!w)
        return;
    timer_cancel(w->timer);
    arena_free(w->r.mem);
    str_done(&w->r.reply);
    free(w);
}

static void token_ask(void *arg)
{
    struct token_wish *w = arg;
    w->timer = NULL;
    control_ask(w->server->control, &w->r);
}

static void token_told(struct token_wish *w, struct slice json)
{
    struct json *doc;
    struct err err = { 0 };
    const char *token = json_parse(json, w->r.mem, &doc, &err) ? json_text(doc, "token") : NULL;
    if (!token)
        log_line(LOG_ERROR, "server", "no token for the agent: %s", err.text);
    w->server->wish = NULL;
    w->on_token(w->arg, token);
    wish_free(w);
}

static void token_passed(void *arg, const char *json)
{
    struct token_wish *w = arg;
    if (json)
        token_told(w, SLICE(json));
    else if (!w->server->on_closed)
        w->timer = timer_start(w->server->os, TOKEN_AGAIN_MS, token_ask, w);
}

static void token_done(void *arg, struct request *r)
{
    struct token_wish *w = arg;
    struct server *s = w->server;
    if (r->ok) {
        token_told(w, (struct slice){ r->reply.at, r->reply.len });
    } else if (r->err.rc == RC_NOT_WRITER) { /* another server has the lease: it is asked */
        if (!s->api || !api_ask_token(s->api, SLICE("{\"expires_in\":\"10m\"}"), token_passed, w))
            token_passed(w, NULL);
    } else {
        log_line(LOG_ERROR, "server", "no token for the agent: %s", r->err.text);
        s->wish = NULL;
        w->on_token(w->arg, NULL);
        wish_free(w);
    }
}

void server_token(struct server *s, void (*on_token)(void *arg, const char *token), void *arg)
{
    struct token_wish *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->server = s;
    w->on_token = on_token;
    w->arg = arg;
    s->wish = w;
    w->r = (struct request){ .verb = VERB_NODE_TOKEN, .mem = arena_new(), .on_reply = token_done, .arg = w,
                             .who = { .kind = PRINCIPAL_SYSTEM, .roles = ROLE_OPERATOR, .name = "arcus up" } };
    struct node_token_ask *ask = ARENA_NEW(w->r.mem, struct node_token_ask);
    ask->expires_in_s = 600;
    w->r.body = ask;
    token_ask(w);
}
