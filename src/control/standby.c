/* standby.c - a server that does not write follows the event log by its numbers and feeds the same
 * followers as its own commits would. What was told is remembered, so that nothing is told twice or
 * left out when the server becomes the writer, or ceases to be it. */
#include "control/control_internal.h"

enum { PAGE = 500 };

static void tell(struct control *c, const struct rows *r, struct arena *mem)
{
    struct commit *k = ARENA_NEW(mem, struct commit);
    struct event *events = ARENA_ARRAY(mem, struct event, r->count);
    for (size_t i = 0; i < r->count; i++)
        events[i] = (struct event){ .seq = row_int(r, i, 0),
                                    .at_ms = row_int(r, i, 1),
                                    .project = row_int(r, i, 2),
                                    .kind = row_text(r, i, 3),
                                    .subject = row_text(r, i, 4),
                                    .actor = row_text(r, i, 5),
                                    .data = row_text(r, i, 6) };
    c->writer.told = events[r->count - 1].seq;
    k->post = (struct post){ .fn = control_committed, .arg = c };
    k->events = events;
    k->event_count = r->count;
    k->mem = mem;
    os_post(c->os, &k->post);
}

bool follow_events(struct control *c, struct err *err)
{
    for (;;) {
        struct arena *mem = arena_new();
        struct rows r;
        struct value args[] = { V_INT(c->writer.told), V_INT(PAGE) };
        if (!store_query(c->writer.conn, ST_EVENT_LIST_ALL, args, 2, mem, &r, err)) {
            arena_free(mem);
            return false;
        }
        if (r.count == 0) {
            arena_free(mem);
            return true;
        }
        tell(c, &r, mem);
        if (r.count < PAGE)
            return true;
    }
}
