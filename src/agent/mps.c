/* mps.c - see mps.h: who holds parts of which GPU, and with that when its daemon comes and goes. RUN/mps/GPU/ has pipe (the daemon's own), door (what
 * tasks see of it), log, and daemon: the pid and start time of the process, by which it is found again. */
#include "agent/mps_internal.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const usual[] = {
    "/usr/bin/nvidia-cuda-mps-control",
    "/usr/local/nvidia/bin/nvidia-cuda-mps-control",
    "/usr/local/bin/nvidia-cuda-mps-control",
    "/run/nvidia/driver/usr/bin/nvidia-cuda-mps-control",
};

/* --- those who hold parts of it */

/* Sockets have short names: the last part of the UUID tells GPUs of one machine apart. */
static const char *short_name(const char *uuid)
{
    const char *last = strrchr(uuid, '-');
    return last ? last + 1 : uuid;
}

/* What is in it is killed as a whole: another agent of this machine must have another, and the folder is nobody else's. */
void mps_group(const char *folder, char out[static MPS_GROUP])
{
    const char *slash = strrchr(folder, '/');
    uint32_t sum = 2166136261u; /* FNV-1a */
    for (const char *p = folder; *p; p++)
        sum = (sum ^ (uint8_t)*p) * 16777619u;
    snprintf(out, MPS_GROUP, "arcus/mps-%.64s-%08x", slash ? slash + 1 : folder, sum);
}

struct daemon *daemon_of(const struct mps *m, const char *uuid)
{
    struct daemon *d = m->first;
    while (d && !text_is(strrchr(d->folder, '/') + 1, short_name(uuid)))
        d = d->next;
    return d;
}

/* One that was found by its folder learns its whole name from the first who wants it. */
static struct daemon *daemon_for(struct mps *m, const char *uuid)
{
    struct daemon *d = daemon_of(m, uuid);
    if (!d && !(d = calloc(1, sizeof *d)))
        abort();
    if (!d->m) {
        *d = (struct daemon){ .next = m->first, .m = m, .answer = -1 };
        snprintf(d->folder, sizeof d->folder, "%s/%s", m->run, short_name(uuid));
        m->first = d;
    }
    text_cut(d->uuid, sizeof d->uuid, uuid);
    return d;
}

static void daemon_free(struct daemon *d)
{
    daemon_unsee(d);
    daemon_pulse_stop(d);
    timer_cancel(d->timer);
    proc_forget(d->proc);
    proc_forget(d->asker);
    if (d->answer != -1)
        close(d->answer);
    free(d);
}

static void take_out(struct daemon *d, size_t i)
{
    d->holders[i] = d->holders[--d->count];
}

/* A callback may come back to us: the list is looked at anew after each. */
void daemon_tell(struct daemon *d, const struct err *err)
{
    for (size_t i = 0; i < d->count;) {
        struct holder h = d->holders[i];
        if (!h.done) {
            i++;
            continue;
        }
        d->holders[i].done = NULL;
        if (err)
            take_out(d, i);
        h.done(h.arg, err);
        i = 0;
    }
}

int64_t daemon_memory(const struct daemon *d)
{
    int64_t most = 0;
    for (size_t i = 0; i < d->count; i++)
        most = MAX(most, d->holders[i].share.mem_mib);
    return most;
}

bool daemon_holds(const struct daemon *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (!d->holders[i].done)
            return true;
    return false;
}

/* Nobody who was let in may go on as if nothing had happened; who still waits gets the next daemon. */
void daemon_lost(struct daemon *d, const char *why)
{
    struct mps *m = d->m;
    log_line(LOG_ERROR, "mps", "%s: %s", d->uuid, why);
    d->state = DAEMON_LOST;
    m->events->on_lost(m->arg, d->uuid, why);
}

/* Who has neighbours cannot be blamed for it, not even with a fault of the node: one of them may know how to bring it about. */
void daemon_fails(struct daemon *d, const char *why)
{
    daemon_acquit(d);
    d->nobodys = d->count > 1;
    daemon_lost(d, why);
}

/* --- the face */

void mps_want(struct mps *m, int64_t attempt, const struct share *s, void (*done)(void *arg, const struct err *err), void *arg)
{
    struct daemon *d = daemon_of(m, s->uuid);
    struct err err = { 0 };
    if (!m->program)
        err_set(&err, RC_UNAVAILABLE, "this node has no nvidia-cuda-mps-control, which shares of its GPUs need");
    else if (d && d->count == MPS_HOLDERS)
        err_set(&err, RC_UNAVAILABLE, "its GPU is divided among %d tasks already", MPS_HOLDERS);
    else if (d && d->count && d->holders[0].share.milli != s->milli)       /* not d->milli: that may be of one that is just leaving */
        err_set(&err, RC_UNAVAILABLE, "its GPU is divided into parts of %" PRId64 " thousandths, and it asks for %" PRId64, d->holders[0].share.milli, s->milli);
    if (err.rc) {
        done(arg, &err);
        return;
    }
    d = daemon_for(m, s->uuid);
    d->holders[d->count++] = (struct holder){ attempt, *s, done, arg };
    mps_keep_watch(m);
    mps_keep_beat(m);
    if (d->state == DAEMON_READY && s->mem_mib <= d->mem_mib)
        daemon_tell(d, NULL);
    else if (d->state == DAEMON_READY) {
        d->mem_mib = s->mem_mib;
        daemon_divide(d);
    } else if (d->state == DAEMON_NONE && !d->clearing)
        daemon_come(d);
}

void mps_hold(struct mps *m, int64_t attempt, const struct share *s)
{
    struct daemon *d = daemon_for(m, s->uuid);
    if (d->count == MPS_HOLDERS)
        return;
    d->holders[d->count++] = (struct holder){ .attempt = attempt, .share = *s };
    d->milli = s->milli;
    d->mem_mib = daemon_memory(d);
    d->state = DAEMON_READY;
    mps_keep_watch(m);
    mps_keep_beat(m);
}

void mps_drop(struct mps *m, int64_t attempt)
{
    for (struct daemon *d = m ? m->first : NULL; d; d = d->next) {
        size_t before = d->count;
        for (size_t i = 0; i < d->count;)
            if (d->holders[i].attempt == attempt)
                daemon_parts(d), take_out(d, i);
            else
                i++;
        if (before && !d->count && d->state == DAEMON_READY)
            daemon_leave(d);
        else if (d->state == DAEMON_LOST && !d->clearing && !d->proc)
            daemon_settle(d);
        else if (d->state == DAEMON_LOST && !daemon_holds(d))
            daemon_leave(d);    /* it lives, and serves nobody new until all who saw the fault are gone */
    }
}

bool mps_whole(struct mps *m, const char *uuid)
{
    struct daemon *d = m && text_given(uuid) ? daemon_of(m, uuid) : NULL;
    bool idle = !d || (d->state == DAEMON_NONE && !d->clearing);
    if (!d || (idle && (!m->own || !daemon_has_mode(d))))
        return true;
    text_cut(d->uuid, sizeof d->uuid, uuid);
    if (idle)                   /* giving it back failed the last time */
        daemon_settle(d);
    return false;
}

void mps_begin(struct mps *m)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err = { 0 };
    for (struct daemon *d = m->first; d; d = d->next)
        if (d->count && daemon_find(d))
            daemon_skip_log(d);
        else if (d->count) {
            daemon_fails(d, "the MPS daemon of its GPU ended while no agent looked");
            daemon_clear(d);
        }
    if (!dir_list(m->os, m->run, mem, &names, &err))
        return;
    for (size_t i = 0; i < names.count; i++)
        if (!daemon_of(m, names.at[i]))
            daemon_leave(daemon_for(m, names.at[i]));
}

const char *mps_door(const struct mps *m, const char *uuid, struct arena *mem)
{
    const struct daemon *d = daemon_of(m, uuid);
    return d ? arena_printf(mem, "%s/door", d->folder) : NULL;
}

bool mps_works(const struct mps *m) { return m && m->program; }

struct mps *mps_new(struct os *os, const struct mps_config *config, const struct mps_events *events, void *arg)
{
    struct mps *m = calloc(1, sizeof *m);
    struct err err = { 0 };
    if (!m)
        abort();
    *m = (struct mps){ .os = os, .mem = arena_new(), .cgroups = config->cgroups, .shop = config->shop, .events = events, .arg = arg };
    m->run = arena_printf(m->mem, "%s/mps", config->run);
    m->self = arena_text(m->mem, config->self);
    m->program = arena_text(m->mem, config->program);
    m->nvml = arena_text(m->mem, config->nvml);
    m->own = config->own;
    m->end_ms = config->end_ms ? config->end_ms : MPS_END_MS;
    m->beat_ms = config->beat_ms ? config->beat_ms : MPS_BEAT_MS;
    for (size_t i = 0; !m->program && i < COUNT(usual); i++)
        m->program = access(usual[i], X_OK) == 0 ? usual[i] : NULL;
    if (!dir_make(os, m->run, 0711, &err))
        log_line(LOG_ERROR, "mps", "%s", err.text);
    return m;
}

void mps_free(struct mps *m)
{
    if (!m)
        return;
    endings_free(m);
    timer_cancel(m->watch);
    timer_cancel(m->beat);
    for (struct daemon *d = m->first, *next; d; d = next) {
        next = d->next;
        daemon_free(d);
    }
    arena_free(m->mem);
    free(m);
}
