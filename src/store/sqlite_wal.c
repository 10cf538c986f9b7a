/* sqlite_wal.c - the write-ahead log stays bounded: its pages go back into the file after every
 * few megabytes.
 *
 * The bulk of them is copied and synced by a thread of its own with a handle of its own, beside
 * the writer, which goes on; what came in meanwhile is little, and the writer copies that itself,
 * so that the log can start over. When readers keep it from starting over for long, the writer
 * waits for them a moment. A failure here is no failure of a commit, which is durable already; it
 * is tried again after a later one. The simulation has no threads: there the writer does it all. */
#include "store/sqlite_internal.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { TAIL_PAGES = 1000, WAIT_MS = 200 };

struct wal {
    struct store *store;
    struct actor *helper;               /* made when there is first something to do */
    struct post post;
    struct handle handle;               /* the helper's */
    atomic_bool busy;
    int from, until;                    /* begin at `from` pages; the helper was sent when there were `until`, 0: it was not */
    int last;                           /* pages after the last commit */
};

struct wal *wal_new(struct store *s)
{
    struct wal *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->store = s;
    w->from = WAL_PAGES;
    return w;
}

void wal_free(struct wal *w)
{
    if (!w)
        return;
    if (w->helper)
        actor_stop(w->helper);
    sqlite3_close(w->handle.db);
    free(w);
}

static void helper_on_posts(void *arg, struct post *first)
{
    (void)first;
    struct wal *w = arg;
    struct err ignored = { 0 };
    if (w->handle.db || handle_open(w->store, true, &w->handle, &ignored))
        sqlite3_wal_checkpoint_v2(w->handle.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    w->busy = false;
}

static void send_helper(struct wal *w, int pages)
{
    if (!w->helper)
        w->helper = actor_new(w->store->os, "checkpoint", helper_on_posts, w);
    w->until = pages;
    w->busy = true;
    actor_post(w->helper, &w->post);
}

static void copy_back(struct handle *h, int how)
{
    sqlite3_busy_timeout(h->db, WAIT_MS);
    sqlite3_wal_checkpoint_v2(h->db, NULL, how, NULL, NULL);
    sqlite3_busy_timeout(h->db, STORE_WAIT_MS);
}

/* True: enough of it is in the file that the writer should do the rest. */
static bool little_is_left(struct wal *w, int pages)
{
    if (pages < w->last)                /* it has started over */
        w->until = 0, w->from = WAL_PAGES;
    w->last = pages;
    if (pages < w->from || w->busy)
        return false;
    if (w->until && pages - w->until <= TAIL_PAGES)
        return true;
    send_helper(w, pages);
    return false;
}

void wal_trim(struct wal *w, struct handle *h)
{
    int pages = h->wal_pages;
    if (pages >= h->wal_patience) {
        copy_back(h, SQLITE_CHECKPOINT_TRUNCATE);
        h->wal_patience = pages + WAL_PAGES;
    } else if (w ? little_is_left(w, pages) : pages >= WAL_PAGES) {
        copy_back(h, SQLITE_CHECKPOINT_PASSIVE);
        h->wal_patience = WAL_PAGES_MOST;
    } else {
        return;
    }
    h->wal_pages = 0;
    if (w)
        w->until = 0, w->from = pages + WAL_PAGES;      /* if it does not start over, not at once again */
}
