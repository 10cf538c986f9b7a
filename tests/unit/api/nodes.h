/* nodes.h - agents of straw for the tests of links, streams and logs. */
#pragma once
#include "world.h"

#define HELLO "{\"kind\":\"hello\",\"next\":7,\"info\":{\"hostname\":\"n\",\"version\":\"1\",\"cpu_milli\":1000,\"mem_mib\":1000}}"

struct straw {
    int64_t generation, next, hello_node;
    int hellos, reports, asks;
    const char *where;              /* what the door says of a stream */
    const char *then;               /* ... from the second time on; NULL: the same */
};
bool straw_answer(void *arg, struct control *c, struct request *r);
bool something_held(void *arg);
void say(struct talk *t, const char *text);
void frame(struct talk *t, int channel, const char *text);
void node_link(struct talk *t, struct world *w, struct straw *s, const char *key);     /* greeted */
void push(struct world *w, int64_t node, int64_t generation);
/* Waits for the nth `open` on a link and gives the path to dial, and what else it says. */
bool opened(struct talk *link, int nth, char path[static 128], const char *says);
