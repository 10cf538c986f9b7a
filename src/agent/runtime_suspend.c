/* runtime_suspend.c - tasks that are to give their GPUs back for a while, or to have them again. The work is a helper's (suspend.h), one at a
 * time for a task; here it is started, waited for, and its note read.
 *
 * A wish has a number, and the newest counts. An agent that begins finds what one before it left: a note that says `moving` is worked on in the
 * direction it had, behind the helper that may still be at it. What does not get there in TRIES is brought back to run; what does not
 * even do that is ended as a fault of the node, so that it is tried again elsewhere. */
#include "agent/runtime_internal.h"
#include "agent/suspend.h"
#include "base/log.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 2, AGAIN_MS = 1000, SHRINK_MS = 500, OVER_MS = 30000, HELPER_S = 300, LATE_MS = (HELPER_S + 30) * 1000 };
_Static_assert((int)HOLD_RUNNING == (int)SUSPEND_RUNNING && (int)HOLD_SUSPENDED == (int)SUSPEND_SUSPENDED, "told as they are noted");

static void work(struct attempt *a);

static const char *folder_of(const struct attempt *a, char out[static RUNTIME_PATH])
{
    return in_data(a->r, out, "tasks", a->name);
}

static void tell(struct attempt *a)
{
    if (a->r->events->on_hold)
        a->r->events->on_hold(a->r->arg);
}

static void give_up(struct attempt *a, const char *why)
{
    log_line(LOG_ERROR, "agent", "%s cannot be brought back: %s", a->name, why);
    attempt_stop(a, 0, OUTCOME_NODE_FAULT, why);
}

/* What a task gave back counts as its own for a while yet; but who goes on using it uses what nobody gave it, and the node has promised it to
 * others. v1 refuses a limit below what is in use, so it is ended here and not by the kernel. Until then the server counts it (over_mib). The note keeps
 * the limit that it had: the next suspension begins from there. */
static void on_shrink(void *arg)
{
    struct attempt *a = arg;
    struct hold *h = &a->hold;
    struct err err = { 0 };
    char group[64];
    h->shrink = NULL;
    if (h->helper || h->state != SUSPEND_RUNNING || a->stage != STAGE_LIVE)
        return; /* it is being suspended again */
    snprintf(group, sizeof group, "arcus/%s", a->name);
    if (cgroup_memory_set(&a->r->cgroups, group, h->limit_bytes, &err)) {
        h->limit_bytes = 0;
        tell(a);
        return;
    }
    h->left_ms -= h->shrink_ms;
    if (h->left_ms <= 0 && err.rc == RC_CONFLICT) {
        attempt_stop(a, 0, OUTCOME_OUT_OF_MEMORY, "it used more than its memory after it was resumed");
        return;
    }
    h->shrink_ms = h->left_ms > 0 ? MIN(h->shrink_ms * 2, h->left_ms) : OVER_MS;
    h->shrink = timer_start(a->r->os, h->shrink_ms, on_shrink, a);
}

static void take_note(struct attempt *a, const struct suspend_note *note)
{
    struct hold *h = &a->hold;
    h->limit_bytes = note->state == SUSPEND_RUNNING ? note->limit_bytes : 0;
    h->left_ms = a->r->config.over_ms ? a->r->config.over_ms : OVER_MS;
    h->shrink_ms = MIN((int64_t)SHRINK_MS, h->left_ms);
    timer_cancel(TAKE(h->shrink));
    if (h->limit_bytes && a->r->real)
        h->shrink = timer_start(a->r->os, h->shrink_ms, on_shrink, a);
    free(h->why);
    h->why = note->why ? strdup(note->why) : NULL;
    h->done = note->n;
    h->state = note->state;
    h->at_ms = note->at_ms;
    h->gpu_mib = note->gpu_mib;
    h->mem_mib = note->state == SUSPEND_SUSPENDED ? note->mem_mib : 0;
    if (note->state == SUSPEND_SUSPENDED)
        gpus_away(a);
}

/* No helper has come so far that it had to note it. */
static bool untouched(const struct attempt *a, bool read, const struct suspend_note *note)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char path[RUNTIME_PATH + 16], folder[RUNTIME_PATH];
    struct suspend_note other;
    snprintf(path, sizeof path, "%s/suspend.json", folder_of(a, folder));
    if (read)
        return note->state == SUSPEND_RUNNING || note->state == SUSPEND_SUSPENDED;
    return !disk_exists(a->r->os, path) || suspend_note_read(folder, 0, mem, &other); /* folders are used again */
}

static void on_again(void *arg)
{
    struct attempt *a = arg;
    a->hold.again = NULL;
    work(a);
}

/* Its note is the answer, whatever it ended with. */
static void helper_over(struct attempt *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char folder[RUNTIME_PATH];
    struct hold *h = &a->hold;
    struct suspend_note note = { 0 };
    if (a->stage != STAGE_LIVE || a->stop_as)
        return;
    bool read = suspend_note_read(folder_of(a, folder), a->id, mem, &note);
    if (read && note.n == h->asked && note.state == SUSPEND_BROKEN) {
        give_up(a, note.why ? note.why : "the driver lost it");
        return;
    }
    if (read && note.n == h->asked && note.state != SUSPEND_MOVING) {
        h->tries = 0;
        take_note(a, &note);
        log_line(LOG_INFO, "agent", "%s %s%s%s", a->name, note.state == SUSPEND_SUSPENDED ? "is suspended" : "runs",
                 note.why ? ": " : "", note.why ? note.why : "");
        tell(a);
        work(a); /* a newer wish may have come */
    } else if (++h->tries < 2 * TRIES) {
        h->again = timer_start(a->r->os, AGAIN_MS, on_again, a);
    } else if (untouched(a, read, &note)) {
        h->tries = 0;
        note.n = h->asked;
        note.why = "its helper does not work";
        note.at_ms = os_wall_ms(a->r->os);
        take_note(a, &note);
        tell(a);
    } else {
        give_up(a, "its helper did not bring it to an end");
    }
}

static void on_over(void *arg)
{
    struct attempt *a = arg;
    struct runtime *r = a->r;
    a->hold.helper = NULL;
    timer_cancel(TAKE(a->hold.late));
    helper_over(a);
    warm_ready(r);
}

/* Not even SIGALRM has ended it: it hangs in the kernel, with the task's state in its hands. */
static void on_late(void *arg)
{
    struct attempt *a = arg;
    a->hold.late = NULL;
    warm_forget(TAKE(a->hold.helper));
    give_up(a, "the driver hangs");
}

static bool spawn(struct attempt *a, bool suspended, struct err *err)
{
    struct runtime *r = a->r;
    char folder[RUNTIME_PATH];
    AUTO(str_done) struct str line = { 0 };
    str_printf(&line, "--attempt\t%s\t--folder\t%s\t--group\tarcus/%s\t--to\t%s\t--number\t%lld\t--limit\t%d\t--room\t%lld\t--turns\t%s/suspend.turns\n", a->name,
               folder_of(a, folder), a->name, suspended ? "suspended" : "running", (long long)a->hold.asked, HELPER_S, (long long)a->hold.room_mib, r->config.data);
    return (a->hold.helper = warm_take(r, line.at, on_over, a, err)) != NULL;
}

/* In a simulated world a task has nothing on its GPUs, and stands still as long as there is a file that says so. */
static void pretend(struct attempt *a)
{
    char path[RUNTIME_PATH + 16], folder[RUNTIME_PATH];
    struct err err = { 0 };
    snprintf(path, sizeof path, "%s/frozen", folder_of(a, folder));
    bool went = a->hold.on ? file_replace(a->r->os, path, (struct slice){ "", 0 }, 0600, &err) : file_remove(a->r->os, path, &err);
    bool frozen = disk_exists(a->r->os, path);
    take_note(a, &(struct suspend_note){ .n = a->hold.asked,
                                         .state = frozen ? SUSPEND_SUSPENDED : SUSPEND_RUNNING,
                                         .mem_mib = 1,
                                         .at_ms = os_wall_ms(a->r->os),
                                         .why = went || frozen == a->hold.on ? NULL : err.text });
    tell(a);
}

static void work(struct attempt *a)
{
    struct hold *h = &a->hold;
    struct err err = { 0 };
    if (h->done >= h->asked || h->helper || h->again || a->stage != STAGE_LIVE || a->stop_as)
        return;
    if (!a->r->real) {
        pretend(a);
        return;
    }
    bool away = h->on && h->tries < TRIES;
    *a->waits_whole = 0;        /* what it waited for may not be wanted any more */
    if (!away && (!has_whole_again(a) || !gpus_back(a)))
        return; /* whoever comes then comes here again */
    if (spawn(a, away, &err)) {
        h->late = timer_start(a->r->os, LATE_MS, on_late, a);
        return;
    }
    log_line(LOG_ERROR, "agent", "%s: the suspend helper does not start: %s", a->name, err.text);
    h->again = timer_start(a->r->os, AGAIN_MS, on_again, a);
}

void runtime_hold(struct runtime *r, int64_t attempt, int64_t n, bool on, int64_t room_mib)
{
    struct attempt *a = map_get(r->attempts, attempt);
    if (!a || n <= a->hold.asked)
        return;
    a->hold.asked = n;
    a->hold.on = on;
    a->hold.room_mib = room_mib;
    a->hold.tries = 0;
    work(a);
}

/* --- the rest of an attempt's life */

void suspend_found(struct attempt *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char folder[RUNTIME_PATH];
    struct suspend_note note = { 0 };
    if (!a->r->real || !suspend_note_read(folder_of(a, folder), a->id, mem, &note))
        return;
    a->hold.asked = note.n;
    a->hold.on = note.want == SUSPEND_SUSPENDED;
    a->hold.room_mib = note.room_mib;
    if (note.state == SUSPEND_MOVING || note.state == SUSPEND_BROKEN)
        return; /* suspend_live goes on with it */
    take_note(a, &note);
}

void suspend_live(struct attempt *a) { work(a); }

void suspend_clean(struct attempt *a, const char *why)
{
    if (a->stage != STAGE_LIVE || a->stop_as)
        return;
    if (why)
        give_up(a, why);
    else if (a->hold.on && a->hold.state == SUSPEND_SUSPENDED)
        gpus_away(a); /* it is to stay where it is, after all */
    else
        work(a);
}

void suspend_end(struct attempt *a)
{
    warm_forget(TAKE(a->hold.helper));
    timer_cancel(TAKE(a->hold.late));
    timer_cancel(TAKE(a->hold.again));
    timer_cancel(TAKE(a->hold.shrink));
    free(TAKE(a->hold.why));
}

struct objects runtime_holds(struct runtime *r)
{
    struct attempt *a;
    size_t n = 0;
    struct hold_told *list = realloc(r->holds, (map_count(r->attempts) + 1) * sizeof *list);
    if (!list)
        abort();
    r->holds = list;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->hold.done && a->stage == STAGE_LIVE)
            list[n++] = (struct hold_told){ .attempt = a->id, .n = a->hold.done, .state = a->hold.state, .at_ms = a->hold.at_ms,
                                            .gpu_mib = a->hold.gpu_mib, .mem_mib = a->hold.mem_mib,
                                            .over_mib = a->hold.limit_bytes ? a->hold.gpu_mib : 0, .why = a->hold.why };
    return (struct objects){ list, n };
}
