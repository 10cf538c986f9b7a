/* self.c - a server that does not write asks the one that does for something of its own: a join token for the agent beside it (`arcus up`).
 *
 * It has no key of the API. What the servers of a cloud share are its master keys, so it shows a MAC over the question and the time; the one that
 * writes serves it as it would serve itself. Nothing else can be asked this way. */
#include "api/api_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum { OLD_MS = 10 * 60 * 1000, ANSWER_MS = 5000 };     /* OLD_MS: clocks differ */

struct asking {
    struct api *api;
    struct http_client *client;
    struct http_call *call;
    void (*done)(void *arg, const char *json);
    void *arg;
};

static void self_mac(struct api *a, int64_t at_ms, char out[static DIGEST_HEX])
{
    char text[96];
    snprintf(text, sizeof text, "self %lld\n%s\n%s\n", (long long)at_ms, verbs[VERB_NODE_TOKEN].method, verbs[VERB_NODE_TOKEN].path);
    control_mac(a->control, text, out);
}

static bool is_self(struct visit *v)
{
    const char *h = http_header(v->rq, "arcus-self"), *blank = h ? strchr(h, ' ') : NULL;
    char mac[DIGEST_HEX];
    if (!blank || blank - h > 19 || strlen(blank + 1) != DIGEST_HEX - 1)
        return false;
    int64_t at_ms = strtoll(h, NULL, 10), now = os_wall_ms(v->api->os);
    self_mac(v->api, at_ms, mac);
    return digest_equal(mac, blank + 1) && at_ms > now - OLD_MS && at_ms < now + OLD_MS;
}

void token_begin(struct visit *v)
{
    if (!is_self(v)) {
        visit_ask(v, VERB_NODE_TOKEN, v->body, reply_answer);
        return;
    }
    v->who = (struct caller){ .kind = PRINCIPAL_SYSTEM, .roles = ROLE_OPERATOR, .name = "arcus up" };
    visit_ask_inside(v, VERB_NODE_TOKEN, v->body, reply_answer);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct asking *k = arg;
    struct api *a = k->api;
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *json = !err && status == verbs[VERB_NODE_TOKEN].status ? arena_bytes(mem, body.at, body.len) : NULL;
    if (!json)
        log_line(LOG_DEBUG, "api", "the server that writes gave no token: %s", err ? err->text : arena_bytes(mem, body.at, body.len));
    a->asking = NULL;
    k->done(k->arg, json);
    http_client_free(k->client);
    free(k);
}

bool api_ask_token(struct api *a, struct slice body, void (*done)(void *arg, const char *json), void *arg)
{
    static const struct http_call_events events = { .on_end = on_end };
    const char *url = control_writer(a->control);
    int64_t now = os_wall_ms(a->os);
    struct asking *k = calloc(1, sizeof *k);
    struct err err;
    char mac[DIGEST_HEX], value[DIGEST_HEX + 24];
    if (!k)
        abort();
    *k = (struct asking){ .api = a, .done = done, .arg = arg };
    if (a->closing || a->asking || !*url || !http_client_new(a->os, url, pass_ca(a), NULL, NULL, &k->client, &err)) {
        free(k);
        return false;
    }
    self_mac(a, now, mac);
    snprintf(value, sizeof value, "%lld %s", (long long)now, mac);
    const struct http_header headers[] = { { "Arcus-Self", value }, { "Content-Type", "application/json" } };
    a->asking = k;
    k->call = http_call(k->client, verbs[VERB_NODE_TOKEN].method, verbs[VERB_NODE_TOKEN].path, headers, COUNT(headers), body,
                        (int64_t)body.len, &events, k);
    http_call_timeout(k->call, ANSWER_MS);
    return true;
}

void token_close(struct api *a)
{
    struct asking *k = TAKE(a->asking);
    if (!k)
        return;
    http_call_cancel(k->call);
    http_client_free(k->client);
    free(k);
}
