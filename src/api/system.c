/* system.c - the three pages that need no credential: is the process alive, can it serve, what does
 * it speak. Nothing about tenants is in them. */
#include "api/api_internal.h"

static void send(struct http_request *rq, int status, const char *type, struct slice body)
{
    static const struct http_header headers[]
        = { { "Cache-Control", "no-store" }, { "X-Content-Type-Options", "nosniff" }, { "Retry-After", "1" } };
    http_reply(rq, status, type, headers, COUNT(headers) - (status != 503), body);
}

static void healthz(struct api *a, struct http_request *rq)
{
    (void)a;
    send(rq, 200, "application/json", SLICE("{\"status\":\"ok\"}"));
}

static void readyz(struct api *a, struct http_request *rq)
{
    AUTO(str_done) struct str body = { 0 };
    struct err why = { 0 };
    if (a->closing || !control_ready(a->control, &why)) {
        if (a->closing)
            err_set(&why, RC_UNAVAILABLE, "the server is closing");
        why.rc = RC_UNAVAILABLE;
        problem_print(&body, 503, &why, NULL);
        limits_refused(a->limits, REFUSED_AWAY, http_peer(rq));
        send(rq, 503, "application/problem+json", (struct slice){ body.at, body.len });
        return;
    }
    struct json_out o = { .to = &body };
    json_open(&o, '{');
    json_key(&o, "status");
    json_put_text(&o, "ready");
    json_key(&o, "version");
    json_put_text(&o, a->version);
    if (a->simulated) {
        json_key(&o, "simulated");
        json_put_bool(&o, true);
    }
    json_close(&o, '}');
    send(rq, 200, "application/json", (struct slice){ body.at, body.len });
}

static void openapi(struct api *a, struct http_request *rq)
{
    send(rq, 200, "application/json", (struct slice){ a->openapi.at, a->openapi.len });
}

static const struct {
    const char *path;
    void (*serve)(struct api *a, struct http_request *rq);
} pages[] = {
    { "/healthz", healthz },
    { "/readyz", readyz },
    { "/openapi.json", openapi },
};

bool system_serve(struct api *a, struct http_request *rq)
{
    bool reads = text_is(http_method(rq), "GET") || text_is(http_method(rq), "HEAD");
    for (size_t i = 0; i < COUNT(pages); i++)
        if (text_is(http_path(rq), pages[i].path)) {
            if (reads)
                pages[i].serve(a, rq);
            else
                reply_not_allowed(visit_new(a, rq, NULL), "GET, HEAD");
            return true;
        }
    return false;
}
