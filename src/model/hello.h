/* hello.h - the first message of an agent on its connection: what the machine is, what runs on it, where its reports are.
 *
 * The server answers with a full `desired`, whose `kept` tells which report items the agent may drop. */
#pragma once
#include "model/node.h"

struct hello {
    const char *kind;           /* "hello" */
    struct node_info info;
    struct texts running;       /* ids of the attempts that have not ended */
    struct texts has;           /* images and work folders that are there: "KEY:MIB", see goods.h; what cannot be read is passed over */
    int64_t generation;         /* of the last `desired` taken; 0 after a restart of the agent */
    int64_t beat;               /* see struct report */
    int64_t next;               /* the number of the next report item: 1 on a node that never reported */
};
extern const struct fields hello_fields;
