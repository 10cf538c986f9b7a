#include "server/server.h"
#include "api/api.h"
#include "model/ask.h"
#include "wire/json.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct server {
    struct os *os;
    struct arena *mem;
    struct store *store;
    struct control *control;
    struct api *api;
    struct tls *tls;
    char url[300], pin[DIGEST_HEX];
    int64_t grace_ms;
    void (*on_closed)(void *arg);
    void *arg;
};

static bool is_loopback(const char *address)
{
    return text_starts(address, "127.") || text_starts(address, "[::1]") || text_starts(address, "localhost:") || text_starts(address, "unix:");
}

/* A certificate that was given, or one of our own, kept in DATA/tls. */
static bool open_tls(struct server *s, const struct server_config *c, const char *address, struct err *err)
{
    struct slice cert, key;
    if (text_given(c->cert) || text_given(c->key)) {
        if (!text_given(c->cert) || !text_given(c->key))
            return err_set(err, RC_BAD_INPUT, "give both --tls-cert and --tls-key");
        return file_read(s->os, c->cert, 1 << 20, s->mem, &cert, err) && file_read(s->os, c->key, 1 << 20, s->mem, &key, err)
               && tls_server(&s->tls, cert.at, key.at, err);
    }
    if (is_loopback(address))
        return true;
    const char *folder = arena_printf(s->mem, "%s/tls", c->data), *cert_file = arena_printf(s->mem, "%s/cert.pem", folder),
               *key_file = arena_printf(s->mem, "%s/key.pem", folder), *pin_file = arena_printf(s->mem, "%s/pin", folder);
    struct slice pin;
    struct err why = { 0 };
    if (!file_read(s->os, cert_file, 1 << 20, s->mem, &cert, &why) || !file_read(s->os, key_file, 1 << 20, s->mem, &key, &why)
        || !file_read(s->os, pin_file, 256, s->mem, &pin, &why)) {
        if (why.rc != RC_NOT_FOUND)
            return *err = why, false;
        char *cert_pem, *key_pem, *hex, *host = arena_text(s->mem, c->host ? c->host : address);
        char *colon = strrchr(host, ':');
        if (colon && !c->host)
            *colon = 0;
        if (!tls_self_signed(host, s->mem, &cert_pem, &key_pem, &hex, err) || !dir_make(s->os, folder, 0700, err)
            || !file_replace(s->os, key_file, SLICE(key_pem), 0600, err) || !file_replace(s->os, cert_file, SLICE(cert_pem), 0644, err)
            || !file_replace(s->os, pin_file, SLICE(hex), 0644, err))
            return err_wrap(err, "a certificate of our own");
        cert = SLICE(cert_pem), key = SLICE(key_pem), pin = SLICE(hex);
    }
    snprintf(s->pin, sizeof s->pin, "%.64s", pin.at);
    return tls_server(&s->tls, cert.at, key.at, err);
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

/* The servers of a cloud know each other by its CA, where it has one. */
static const char *peer_ca(struct server *s, const char *keys)
{
    struct slice pem;
    struct err err;
    const char *file = arena_printf(s->mem, "%s/ca.pem", keys);
    return file_read(s->os, file, 1 << 20, s->mem, &pem, &err) ? arena_bytes(s->mem, pem.at, pem.len) : NULL;
}

static bool open_parts(struct server *s, const struct server_config *c, struct err *err)
{
    const char *address = c->address ? c->address : ARCUS_ADDRESS,
               *keys = text_given(c->keys) ? c->keys : arena_printf(s->mem, "%s/keys", c->data),
               *where = c->store ? c->store : arena_printf(s->mem, "%s/arcus.db", c->data), *key_file = arena_printf(s->mem, "%s/admin.key", c->data);
    bool made;
    if (!dir_make(s->os, c->data, 0711, err) || !store_open(s->os, where, &s->store, err)
        || !control_bootstrap(s->os, s->store, keys, key_file, &made, err) || !open_tls(s, c, address, err))
        return false;
    struct control_config control = { .keys = keys, .run_for_s = c->run_for_s ? c->run_for_s : 300, .margin_s = 15,
                                      .default_image = c->default_image ? arena_text(s->mem, c->default_image) : "", .plan = true,
                                      .shared = c->shared || text_is(store_kind(s->store), "postgres"), .version = ARCUS_VERSION };
    struct api_config api = { .address = address, .tls = s->tls, .data = arena_text(s->mem, c->data), .store = s->store, .version = ARCUS_VERSION, .rates = c->rates, .limits = c->limits,
                              .peer_ca = peer_ca(s, keys), .simulated = c->simulated, .on_closed = api_gone, .arg = s };
    if (!control_open(s->os, s->store, &control, &s->control, err) || !api_open(s->os, s->control, &api, &s->api, err))
        return false;
    snprintf(s->url, sizeof s->url, "%s://%s", s->tls ? "https" : "http", api_address(s->api));
    control_advertise(s->control, reached_by(s, c));
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
    if (!control_resign(s->control, resigned, s))
        api_close(s->api, grace_ms);
}

void server_free(struct server *s)
{
    if (!s)
        return;
    control_close(s->control);
    store_close(s->store);
    tls_free(s->tls);
    arena_free(s->mem);
    free(s);
}

struct control *server_control(struct server *s) { return s->control; }
const char *server_url(const struct server *s) { return s->url; }
const char *server_pin(const struct server *s) { return s->pin; }

enum { TOKEN_AGAIN_MS = 200 };
struct token_wish { struct request r; struct server *server; void (*on_token)(void *arg, const char *token); void *arg; };
static void token_ask(void *arg)
{
    struct token_wish *w = arg;
    control_ask(w->server->control, &w->r);
}

static void token_done(void *arg, struct request *r)
{
    struct token_wish *w = arg;
    struct json *doc;
    struct err err;
    if (!r->ok && r->err.rc == RC_NOT_WRITER) { /* at the start the lease may still be somebody else's */
        timer_start(w->server->os, TOKEN_AGAIN_MS, token_ask, w);
        return;
    }
    const char *token = r->ok && json_parse((struct slice){ r->reply.at, r->reply.len }, r->mem, &doc, &err) ? json_text(doc, "token") : NULL;
    if (!token)
        log_line(LOG_ERROR, "server", "no token for the agent: %s", r->err.text);
    w->on_token(w->arg, token);
    arena_free(r->mem);
    str_done(&r->reply);
    free(w);
}

void server_token(struct server *s, void (*on_token)(void *arg, const char *token), void *arg)
{
    struct token_wish *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->server = s;
    w->on_token = on_token;
    w->arg = arg;
    w->r = (struct request){ .verb = VERB_NODE_TOKEN, .mem = arena_new(), .on_reply = token_done, .arg = w,
                             .who = { .kind = PRINCIPAL_SYSTEM, .roles = ROLE_OPERATOR, .name = "arcus up" } };
    struct node_token_ask *ask = ARENA_NEW(w->r.mem, struct node_token_ask);
    ask->expires_in_s = 600;
    w->r.body = ask;
    token_ask(w);
}
