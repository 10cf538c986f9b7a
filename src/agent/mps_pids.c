/* mps_pids.c - whose processes are on a shared GPU, whose were, and with that who may have caused a fault there.
 *
 * What the log says of a fault is no proof: a process that is killed in the middle of its work is gone when its server notices, and on an H200 the server
 * names the neighbour. So processes are known by number from when they are first seen (by the driver's lists, by the daemon's words about a client), and
 * when they went. Who is named is a suspect where nobody else lost a process in the two seconds before; where somebody did it may be either, and neither is
 * one: whoever runs many short programs must not be made a suspect by his neighbour, nor who is named because another was killed. All the others are
 * bystanders. Nothing is decided on one fault: the server counts them (job_life.c).
 *
 * Bounded, and one task cannot push another's out: it has its own part of the room, in which its oldest goes first. Numbers come again: the newest counts. */
#include "agent/helper.h"
#include "agent/mps_internal.h"
#include <stdio.h>

enum { BEFORE_MS = 2000 };

static uint64_t start_time(int pid)
{
    char ignored;
    return proc_started(pid, &ignored);
}

static void on_gone(void *arg)
{
    struct seen *s = arg;
    s->proc = NULL;
    s->gone_ms = os_wall_ms(s->os);
}

static struct seen *place_for(struct daemon *d, int pid, int64_t attempt)
{
    struct seen *own = NULL, *any = &d->seen[0];
    size_t mine = 0;
    for (size_t i = 0; i < MPS_SEEN; i++) {
        struct seen *s = &d->seen[i];
        if (s->pid == pid)
            return s;
        mine += s->attempt == attempt;
        if (s->attempt == attempt && (!own || s->at < own->at))
            own = s;
        if (s->at < any->at)
            any = s;
    }
    return mine >= MPS_SEEN_EACH ? own : any;
}

void daemon_saw(struct daemon *d, int pid, int64_t attempt)
{
    if (pid <= 1 || !attempt)
        return;
    struct seen *s = place_for(d, pid, attempt);
    bool known = s->pid == pid && s->attempt == attempt && s->proc;
    s->at = ++d->sights;
    if (known || (s->pid == pid && s->attempt == attempt && !start_time(pid)))      /* when it went is known */
        return;
    proc_forget(s->proc);
    *s = (struct seen){ .pid = pid, .attempt = attempt, .at = d->sights, .os = d->m->os };
    if (!proc_watch(d->m->os, pid, start_time(pid), on_gone, s, &s->proc)) {
        s->proc = NULL;
        s->gone_ms = os_wall_ms(d->m->os);
    }
}

void daemon_unsee(struct daemon *d)
{
    for (size_t i = 0; i < MPS_SEEN; i++)
        proc_forget(d->seen[i].proc);
    memset(d->seen, 0, sizeof d->seen);
}

int64_t daemon_whose(struct daemon *d, int pid)
{
    int64_t attempt = helper_attempt_of(pid);
    for (size_t i = 0; !attempt && i < MPS_SEEN; i++)
        if (d->seen[i].pid == pid)
            attempt = d->seen[i].attempt;
    return attempt;
}

/* "New client 1002 connected", "NEW CLIENT 1002 from user 0", "Client {PID: 1002, Context ID: 1}": behind the time and the name of who writes. */
int mps_client_in(const char *line)
{
    static const char *const before[] = { "PID: ", "lient ", "LIENT " };
    const char *words = strchr(line, ']');
    int pid = 0;
    for (size_t i = 0; i < COUNT(before); i++) {
        const char *at = strstr(words ? words : line, before[i]);
        if (at && sscanf(at + strlen(before[i]), "%9d", &pid) == 1 && pid > 1)
            return pid;
    }
    return 0;
}

void mps_seen(struct mps *m, const char *uuid, int64_t attempt, const char *pids)
{
    struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    int pid, n;
    for (; d && pids && sscanf(pids, "%9d%n", &pid, &n) == 1; pids += n)
        daemon_saw(d, pid, attempt);
}

/* --- who it may have been */

static bool may_be(const struct daemon *d, int64_t attempt)
{
    for (size_t i = 0; i < d->suspect_count; i++)
        if (d->suspects[i] == attempt)
            return true;
    return false;
}

static void suspect(struct daemon *d, int64_t attempt)
{
    if (attempt && !may_be(d, attempt) && d->suspect_count < MPS_HOLDERS)
        d->suspects[d->suspect_count++] = attempt;
}

void daemon_judge(struct daemon *d, int64_t named, int64_t at_ms)
{
    daemon_acquit(d);
    suspect(d, named);
    for (size_t i = 0; i < MPS_SEEN; i++)
        if (d->seen[i].gone_ms && d->seen[i].gone_ms <= at_ms && d->seen[i].gone_ms > at_ms - BEFORE_MS)
            suspect(d, d->seen[i].attempt);
    d->certain = named && d->suspect_count == 1;
}

void daemon_acquit(struct daemon *d)
{
    d->suspect_count = 0;
    d->certain = d->nobodys = false;
}

enum blame mps_blame(const struct mps *m, int64_t attempt, const char *uuid)
{
    const struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    if (!d || (!d->suspect_count && !d->nobodys))
        return BLAME_NONE;
    return !may_be(d, attempt) ? BLAME_BYSTANDER : d->certain ? BLAME_SUSPECT : BLAME_NONE;
}
