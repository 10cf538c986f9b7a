/* workshop.h - one thing after the other on a thread of its own, each coming back to the loop
 * when it is done.
 *
 * For what blocks: unpacking, running helpers, removing trees. A work is embedded in what it is
 * about. After workshop_close no `done` is called any more, only `drop`, so nothing comes back
 * to a closed owner. */
#pragma once
#include "os/os.h"

struct workshop;
struct work {
    struct post post;           /* the workshop's own */
    struct workshop *shop;
    void (*run)(struct work *w);        /* on the actor; must not touch what belongs to the loop */
    void (*done)(struct work *w);       /* on the loop; the work is the caller's again */
    void (*drop)(struct work *w);       /* on the loop, instead of done; NULL: free(w) */
};
struct workshop *workshop_new(struct os *os, const char *name);
void workshop_do(struct workshop *s, struct work *w);
void workshop_settle(struct workshop *s);       /* blocks until all that was asked for has run; nothing has come home by then */
void workshop_close(struct workshop *s);        /* waits for what runs; NULL is fine */
