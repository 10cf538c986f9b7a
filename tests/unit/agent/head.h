/* head.h - a server as far as an agent can tell, on a simulated machine: it takes each report item once, keeps a desired
 * set, and misbehaves as told. Nothing is checked here but the numbers of the items. */
#pragma once
#include "model/hello.h"
#include "model/order.h"
#include "net/ws.h"
#include "os/sim.h"
#include "tap.h"

enum { HEAD_MOST = 256 };

struct head_stream {            /* a stream that an agent was told to open */
    struct ws *ws;
    struct str out, err, control;
    bool open, closed;
};
struct head {
    struct sim *sim;
    struct os *os;
    struct http_server *http;
    struct ws *link;
    struct arena *mem;
    /* what it has seen */
    int dials, hellos, reports, beats, joins, gaps;
    int late;                   /* items that tell what was told before, or about what was settled: noted, and nothing changes */
    int64_t hello_next, hello_generation, last_beat, heard_at;
    char hello_text[8192];
    struct report_item items[HEAD_MOST];    /* taken, in order */
    size_t item_count;
    struct task_use use;        /* the last that was told, and how many were */
    int uses;
    char token[64], bearer[64];
    /* its memory; survives head_close, as a store would */
    int64_t kept, generation;
    char node_key[64], next_key[64];    /* of the node; "": any is good */
    int rekeys;
    char link_key[64];          /* that the link came with */
    struct order orders[HEAD_MOST];
    size_t order_count;
    const char *gone[HEAD_MOST];
    size_t gone_count;
    struct head_stream stream;
    /* what it does */
    bool settle;                /* an end that was taken: out of the set, and gone with the answer */
    bool mute;                  /* hears and does not answer */
    bool cut_before, cut_after; /* the next report with items: cut before or after it is taken */
    bool no_echo;
    int refuse;                 /* HTTP status for dials of the link; 0: accepts */
    int64_t delay_ms;           /* before an answer */
    const char *say;            /* instead of the answer to a hello */
    bool rotate;                /* wants a new key */
    int lose;                   /* so many answers to join and rekey are lost after the work was done */
    const char *writer_url;     /* with a refusal: the header Arcus-Writer */
    const char *address;        /* its machine; NULL: head */
    struct texts servers;       /* told with every answer */
};

void head_open(struct head *h, struct sim *sim);        /* listens on "head:80" of a (new) machine "head"; without a sim, on h->os */
void head_close(struct head *h);                        /* everything is cut; call head_open to come back */
void head_crash(struct head *h);                        /* the same, as a machine does it */
void head_free(struct head *h);
struct order *head_order(struct head *h, int64_t attempt);      /* finds or adds one */
void head_drop(struct head *h, int64_t attempt);                /* out of the set */
void head_gone(struct head *h, int64_t attempt);
void head_push(struct head *h, bool full);              /* what there is now; only the last order unless full */
void head_say(struct head *h, const char *text);        /* as it is */
size_t head_took(const struct head *h, int64_t attempt, int news);
const struct report_item *head_end_of(const struct head *h, int64_t attempt);
void head_stream_say(struct head *h, int channel, const char *text);
void head_stream_send(struct head *h, int channel, const char *at, size_t n);
bool run_until(struct sim *sim, int64_t ms, bool (*enough)(void *arg), void *arg);  /* from now on */
void run_for(struct sim *sim, int64_t ms);
void bury(const void *p);      /* what a crashed machine held stays reachable, so that it is not taken for a leak */
