/* ws_open.c - how an HTTP request becomes a WebSocket, on the server's side and on the client's
 * (RFC 6455, section 4).
 *
 * A dial that the server refuses ends with what the server said, in its words: the `detail` of its
 * problem+json. No subprotocols and no extensions are asked for or granted. */
#include "net/http_client_internal.h"
#include "net/http_internal.h"
#include "net/ws_internal.h"
#include "wire/json.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* The list in a header such as "keep-alive, Upgrade" has this word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at && *at;) {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, " \t,;");
        if (len == n && strncasecmp(at, word, n) == 0)
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static void answer_to(const char *key, char out[static WS_KEY_TEXT])
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* the RFC's */
    char text[128];
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    int n = snprintf(text, sizeof text, "%.64s%s", key, salt);
    if (!EVP_Digest(text, (size_t)n, sum, &length, EVP_sha1(), NULL) || length != 20)
        abort();
    EVP_EncodeBlock((unsigned char *)out, sum, 20);
}

static bool key_is_good(const char *key)
{
    static const char letters[]
        = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return key && strlen(key) == 24 && strspn(key, letters) == 22 && text_is(key + 22, "==");
}

/* --- the server's side */

bool ws_asked(const struct http_request *rq)
{
    return text_is(rq->head.method, "GET") && rq->head.minor == 1
           && has_word(http_header(rq, "upgrade"), "websocket")
           && has_word(http_header(rq, "connection"), "upgrade")
           && text_is(http_header(rq, "sec-websocket-version"), "13")
           && key_is_good(http_header(rq, "sec-websocket-key"));
}

struct ws *ws_accept(struct http_request *rq, const struct ws_limits *limits,
                     const struct ws_events *events, void *arg)
{
    assert(ws_asked(rq) && !rq->begun && rq->conn->whole);
    struct ws *w = ws_new(http_os(rq), false, limits, events, arg);
    char answer[WS_KEY_TEXT], head[200];
    answer_to(http_header(rq, "sec-websocket-key"), answer);
    int n = snprintf(
        head, sizeof head,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\n\r\n",
        answer);
    struct stream *s = http_take(rq, &ws_stream_events, ws_leave, w);
    stream_write(s, head, (size_t)n);
    ws_open(w, s);
    return w;
}

/* --- the client's side */

enum { ELSEWHERE_MOST = 299 };

static struct http_taker on_switched(void *arg, struct http_call *k, struct stream *s)
{
    struct ws *w = arg;
    w->dial = NULL;
    if (!has_word(http_call_header(k, "upgrade"), "websocket")
        || !has_word(http_call_header(k, "connection"), "upgrade")
        || !text_is(http_call_header(k, "sec-websocket-accept"), w->expected)) {
        struct err why;
        err_set(&why, RC_INTERNAL, "the server's answer is not one of a WebSocket");
        ws_over(w, &why);
        return (struct http_taker){ 0 };
    }
    ws_open(w, s);
    if (w->events.on_open)
        w->events.on_open(w->arg, w);
    return (struct http_taker){ &ws_stream_events, w };
}

static void on_head(void *arg, int status, struct http_call *k)
{
    struct ws *w = arg;
    const char *url = http_call_header(k, "arcus-writer");
    w->code = status >= 400 ? 4000 + status : 0;
    if (url && strlen(url) <= ELSEWHERE_MOST && !w->elsewhere && !(w->elsewhere = strdup(url)))
        abort();
}

static void on_refused(void *arg, int status, struct slice body, const struct err *err)
{
    struct ws *w = arg;
    w->dial = NULL;
    if (err) {
        ws_over(w, err);
        return;
    }
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *problem = NULL;
    struct err why, ignored;
    const char *text = NULL;
    if (json_parse(body, mem, &problem, &ignored))
        text = json_text(problem, "detail") ? json_text(problem, "detail")
                                            : json_text(problem, "title");
    enum rc rc = rc_of_http(status);
    if (text)
        err_set(&why, rc == RC_OK ? RC_INTERNAL : rc, "%s", text);
    else
        err_set(&why, rc == RC_OK ? RC_INTERNAL : rc,
                "the server answered %d instead of a WebSocket", status);
    ws_over(w, &why);
}

struct ws *ws_dial(struct http_client *c, const char *path, const struct http_header *headers,
                   size_t count, const struct ws_limits *limits, const struct ws_events *events,
                   void *arg)
{
    static const struct http_call_events call = { .on_head = on_head, .on_end = on_refused };
    struct ws *w = ws_new(http_client_os(c), true, limits, events, arg);
    unsigned char chance[16];
    char key[WS_KEY_TEXT];
    os_random(w->os, chance, sizeof chance);
    EVP_EncodeBlock((unsigned char *)key, chance, sizeof chance);
    answer_to(key, w->expected);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct http_header *all = ARENA_ARRAY(mem, struct http_header, count + 4);
    if (count)
        memcpy(all, headers, count * sizeof *headers);
    all[count] = (struct http_header){ "Upgrade", "websocket" };
    all[count + 1] = (struct http_header){ "Connection", "Upgrade" };
    all[count + 2] = (struct http_header){ "Sec-WebSocket-Version", "13" };
    all[count + 3] = (struct http_header){ "Sec-WebSocket-Key", key };
    w->dial = http_call_upgrade(c, path, all, count + 4, &call, on_switched, w);
    return w;
}
