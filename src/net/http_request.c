/* http_request.c - what a handler may read of a request. Nothing here changes the connection. */
#include "net/http_internal.h"
#include <strings.h>

const char *http_method(const struct http_request *rq)
{
    return rq->head.method;
}
const char *http_path(const struct http_request *rq)
{
    return rq->path;
}
const char *http_query(const struct http_request *rq)
{
    return rq->query;
}
struct slice http_body(const struct http_request *rq)
{
    return rq->body;
}
const char *http_peer(const struct http_request *rq)
{
    return stream_peer(rq->conn->stream);
}
struct arena *http_mem(struct http_request *rq)
{
    return http_parse_mem(rq->conn->parse);
}
void *http_data(const struct http_request *rq)
{
    return rq->data;
}
void http_set_data(struct http_request *rq, void *data)
{
    rq->data = data;
}
struct os *http_os(const struct http_request *rq)
{
    return rq->conn->server->os;
}
size_t http_waiting(const struct http_request *rq)
{
    return stream_waiting(rq->conn->stream);
}
void http_limit_body(struct http_request *rq, size_t bytes)
{
    rq->body_limit = bytes;
}

void http_stream_body(struct http_request *rq, bool (*on_chunk)(void *arg, struct http_request *rq,
                                                                const char *at, size_t n))
{
    rq->on_chunk = on_chunk;
}

const char *http_header(const struct http_request *rq, const char *name)
{
    const char *all = NULL;
    for (size_t i = 0; i < rq->head.header_count; i++) {
        const struct http_pair *h = &rq->head.headers[i];
        if (h->name[0] != (name[0] | 32) || strcasecmp(h->name, name) != 0)     /* what came is in small letters */
            continue;
        all = all ? arena_printf(http_parse_mem(rq->conn->parse), "%s, %s", all, h->value)
                  : h->value;
    }
    return all;
}
