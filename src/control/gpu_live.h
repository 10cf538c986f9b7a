/* gpu_live.h - GPUs as one who asks may see them, for the listing and for Prometheus. */
#pragma once
#include "control/call.h"

struct live_row { struct live_view view; const struct node *node; const struct gpu_info *gpu; };
struct live_rows { struct live_row *at; size_t count; int64_t next; };      /* next: the last node of this page; 0: there are no more */
/* In the order of their nodes' ids, from behind `after`; about `most` of them, but whole nodes. */
struct live_rows live_rows(struct call *c, const struct gpu_live_ask *ask, int64_t after, size_t most);
const struct gpu_live *live_of(const struct call *c, const struct node *n, const struct gpu_info *g);    /* NULL: nothing new is known of it */
MUST_CHECK bool live_node_check(struct call *c, const struct gpu_live_ask *ask, struct err *err);   /* is there the node that is asked about? */
