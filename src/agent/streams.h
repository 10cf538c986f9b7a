/* streams.h - what the server asks to be carried: logs, terminals and files of the tasks of this node.
 *
 * Each `open` order dials one more WebSocket, serves one wish on it (framed as model/channel.h says) and closes. Slow readers
 * slow the source down; nothing is collected in memory. */
#pragma once
#include "model/order.h"
#include "net/http.h"

struct streams;
struct streams_host {           /* what the node knows of an attempt */
    bool (*is_alive)(void *arg, int64_t attempt);                   /* it has not ended yet */
    void (*log_folder)(void *arg, int64_t attempt, char out[static 256]);
    void (*used)(void *arg, int64_t attempt);                       /* a session into it has ended; may be NULL */
    bool (*socket)(void *arg, int64_t attempt, char out[static 108]);   /* of its supervisor; false until it is known to run */
};
struct streams *streams_new(struct os *os, const char *data, const struct streams_host *host, void *arg);   /* data is borrowed */
void streams_free(struct streams *s);                               /* NULL is fine */
void streams_open(struct streams *s, struct http_client *client, const struct open_stream *o);
void streams_changed(struct streams *s, int64_t attempt);           /* its status changed; s may be NULL */
size_t streams_count(const struct streams *s);
bool streams_has(const struct streams *s, int64_t attempt);         /* somebody is in it: exec, SSH, a port, files; logs are looked at from outside */
