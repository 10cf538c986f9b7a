/* idem.h - Idempotency-Keys: looked up in memory and, where memory does not hold all, in the store. */
#pragma once
#include "control/control_internal.h"

int64_t idem_slot(const struct control *c, const char *key, int64_t at_ms);     /* where the store keeps it */
/* What the store has under the slots of r->idem goes to r->looked. On whatever thread owns conn. */
MUST_CHECK bool idem_look(struct control *c, struct conn *conn, struct request *r, struct err *err);
/* The writer: what was done with this key (of idem_key) within a day; NULL: nothing. */
MUST_CHECK bool idem_find(struct call *c, const char *key, struct idem **out, struct err *err);
