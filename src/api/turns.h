/* turns.h - who goes through the door next: each tenant has a queue of its own before the writer, the readers and the slow one.
 *
 * A tenant alone has nearly all of the door; as soon as another one asks, each may have only its share of few requests at the door
 * at a time. So what somebody waits for is a short batch, however many requests another one has. Agents' links and the server's own
 * followers do not come through here: they go straight in. */
#pragma once
#include "base/err.h"
#include "os/os.h"

enum gate { GATE_WRITER, GATE_READERS, GATE_SLOW, GATES };
enum rank {
    RANK_STRANGER,              /* not known to be anybody yet: by address, and few of them */
    RANK_TENANT,                /* by project */
    RANK_PLATFORM,              /* operators, auditors, nodes: by themselves */
    RANKS
};
struct standing { enum rank rank; uint64_t id; };

struct turns;
struct turn {                   /* a member of what waits; zero: neither waiting nor inside */
    struct turn *next, *prev;
    struct turn_queue *queue;
    bool inside;
    int cost;
    void (*go)(struct turn *me);
};
struct turns *turns_new(struct os *os);
void turns_free(struct turns *t);
/* Calls go(me), now or when its turn has come. False: too many of that tenant wait already, unless it must. */
MUST_CHECK bool turn_take(struct turns *t, enum gate gate, const struct standing *who, size_t bytes, bool must, struct turn *me,
                          struct err *err);
/* It came back through the door, or (if it still waits) does not want to go any more. */
void turn_done(struct turn *me);
static inline bool turn_waits(const struct turn *me) { return me->queue && !me->inside; }
