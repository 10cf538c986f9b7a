/* limits.h - how often somebody may ask: a bucket for each key, one for each address, and a small one for failed attempts.
 *
 * The tables have a fixed size: who has not been seen for longest gives way. A key has a place only after the door has let it in, so
 * that made-up keys push nobody out. Every 429 and every 503 is counted, in one function, limits_refused. */
#pragma once
#include "api/turns.h"
#include "control/control.h"

struct api_limits {             /* a second; 0: no limit */
    int64_t key_rate;           /* requests of one key: 50000, and twice that at once */
    int64_t address_rate;       /* requests of one address, whoever sends them: 100000, and twice that at once */
    int64_t failure_rate;       /* attempts without a good key, of one address: 10, and 200 at once */
};
extern const struct api_limits api_limits_default;

enum refusal {
    REFUSED_ADDRESS, REFUSED_KEY, REFUSED_STRANGER, REFUSED_TURN,
    REFUSED_ROOM,               /* no connection or memory was left */
    REFUSED_MANY,               /* any other 429: streams of a project, passwords that are being checked */
    REFUSED_AWAY,               /* any other 503: the store, the writer or a node does not answer, or the server ends */
    REFUSALS
};
struct limits;
struct limits *limits_new(struct os *os, const struct api_limits *config);
void limits_free(struct limits *l);
/* One more request of this address. */
MUST_CHECK bool limits_address(struct limits *l, const char *address, struct err *err);
/* Whom a credential belongs to, as far as is known, and whether that one may ask now. */
MUST_CHECK bool limits_enter(struct limits *l, const struct credential *from, struct standing *out, struct err *err);
void limits_standing(struct limits *l, const struct credential *from, struct standing *out);    /* without counting */
/* What the door made of it. carried: the verb has its own credential (login, node.join). */
void limits_learn(struct limits *l, const struct credential *from, bool carried, bool ok, enum rc rc, const struct caller *who);
/* Everybody who is told to come again later comes by here, once. Tells how many there were. */
uint64_t limits_refused(struct limits *l, enum refusal why, const char *address);
uint64_t limits_count(const struct limits *l, enum refusal why);
