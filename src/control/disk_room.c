/* disk_room.c - where there is room for the disks that instances keep, and those that wait for it.
 *
 * A disk that is kept holds a node's space for as long as its owner likes, whether he runs or not. So all of a node's are at most half of what it has, and
 * where there are several projects one of them has at most half of that: the rest is for what everybody needs there. The planner knows nothing of
 * disks: a placement on a node without room is refused at the door, and the instance is held to the node that has the most of it. If there is none, it is blocked
 * with REASON_DISK, which its row remembers, until a look around finds one. */
#include "control/call.h"

enum { KEPT_SHARE = 2, PROJECT_SHARE = 2, LOOKS = 16 };     /* LOOKS: of those that wait, at one tick */

static int64_t most_of(const struct state *s, const struct node *n)
{
    return n->info.disk_mib / KEPT_SHARE / (map_count(s->projects) > 1 ? PROJECT_SHARE : 1);
}

/* What is left there for a disk of this project; below 0: it has too much already. */
static int64_t room_on(const struct state *s, const struct project *p, const struct node *n)
{
    int64_t all = 0, own = 0;
    for (const struct volume *v = n->disks; v; v = v->next) {
        all += v->mib;
        own += v->project == p->id ? v->mib : 0;
    }
    return MIN(n->info.disk_mib / KEPT_SHARE - all, most_of(s, n) - own);
}

bool disk_may(const struct state *s, const struct node *n, const struct job *j)
{
    if (!job_is_instance(j) || j->disk)
        return true;
    /* An agent that has just begun tries first what its machine can do: an instance that came meanwhile would never have a disk. */
    return n->info.disks ? room_on(s, j->project, n) >= j->spec.disk_mib : !text_is(n->info.runtime, "on trial");
}

bool disk_check(const struct call *c, const struct project *p, const struct job_spec *spec, int64_t others_mib, struct err *err)
{
    int64_t most = p->quota.disk_mib, held = p->disk_held + others_mib, largest = 0;
    if (most >= 0 && held + spec->disk_mib > most)
        return err_set(err, RC_OVER_QUOTA, "project %s may keep disks of %lld MiB for instances: %lld are taken, and this one asks for %lld; ask for less (--disk), cancel an instance, or have an operator raise the quota",
                       p->name, (long long)most, (long long)held, (long long)spec->disk_mib);
    const struct node *n;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        if (!n->info.disks)
            return true; /* it may run there, or it is not known yet what can be kept there */
        largest = MAX(largest, most_of(c->s, n));
    }
    return !map_count(c->s->nodes) || spec->disk_mib <= largest
           || err_field(err, "disk_size", "disk_size: %lld MiB are to be kept for this instance, and no node of this cloud keeps a disk of more than %lld for one project; ask for less (--disk)",
                        (long long)spec->disk_mib, (long long)largest);
}

/* --- those that wait */

static void unblock(struct job *j)
{
    j->blocked -= j->no_room;
    j->no_room = false;
}

void disk_waits_no_more(struct state *s, struct job *j)
{
    if (map_take(s->disk_waits, j->id)) {
        unblock(j);
        j->lean = 0;
    }
}

void disk_waits(struct state *s, struct job *j)
{
    map_put(s->disk_waits, j->id, j);
    j->blocked += !j->no_room;
    j->no_room = true;
    j->lean = 0;
}

static struct node *roomiest(struct call *c, struct job *j)
{
    struct node *n, *best = NULL;
    int64_t most = j->spec.disk_mib - 1;
    j->lean = 0;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        int64_t room = n->info.disks && n->state == NODE_READY ? room_on(c->s, j->project, n) : -1;
        if ((room > most || (best && room == most && n->id < best->id)) && node_could_run(c, n, j))
            most = room, best = n;
    }
    return best;
}

static void seek(struct call *c, struct job *j)
{
    struct node *n = roomiest(c, j);
    enum reason was = j->reason;
    if (n) {
        map_put(c->s->disk_waits, j->id, j);
        unblock(j);
        j->lean = n->id;
        if (was == REASON_DISK)
            j->reason = j->blocked ? REASON_DEPENDENCY : REASON_PRIORITY;
    } else {
        disk_waits(c->s, j);
        j->reason = REASON_DISK;
    }
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    if (j->reason == was)
        return;
    job_write(c, j);
    emit_event(c, j->project->id, "job.waiting", id_of(c, PREFIX_JOB, j->id), arena_printf(c->mem, "{\"reason\":\"%s\"}", reason_name(j->reason)));
}

void disk_refused(struct call *c, struct job *j, const struct node *n)
{
    if (n && j && n->info.disks && !j->no_room && j->state == JOB_QUEUED && !disk_may(c->s, n, j))
        seek(c, j);
}

/* A few of them each time: somebody has gone, or a node has come, or the one that it is held to takes nothing any more. */
void disks_tick(struct call *c)
{
    struct job *some[LOOKS], *j;
    size_t count = 0;
    while (count < LOOKS && (j = map_next(c->s->disk_waits, &c->s->disk_look)))
        some[count++] = j;
    if (count < LOOKS)
        c->s->disk_look = 0;
    for (size_t i = 0; i < count; i++) {
        j = some[i];
        const struct node *n = j->lean ? map_get(c->s->nodes, j->lean) : NULL;
        bool good = n && n->state == NODE_READY && disk_may(c->s, n, j);
        if (!good && j->state == JOB_QUEUED && (!j->no_room || roomiest(c, j)))
            seek(c, j);
    }
}
