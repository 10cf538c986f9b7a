/* disk_room.c - where there is room for the disks that instances keep, and those that wait for it.
 *
 * A disk that is kept holds a node's space for as long as its owner likes, whether he runs or not. So all of a node's are at most half of what it has, and
 * where there are several projects one of them has at most half of that: the rest is for what everybody needs there. The planner knows nothing of
 * disks: a placement on a node without room is refused at the door, and the instance is held to one that has it, where it could start
 * now rather than elsewhere, and to another after a while. If there is none, it is blocked
 * with REASON_DISK, which its row remembers, until a look around finds one. */
#include "control/call.h"

enum { KEPT_SHARE = 2, PROJECT_SHARE = 2, LOOKS = 16, LOOK_AGAIN_MS = 10 * 1000 };      /* LOOKS: of those that wait, at one tick */

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

static bool has_room(struct call *c, struct job *j, const struct node *n, int64_t *room)
{
    int64_t lean = j->lean;
    j->lean = 0; /* where it is held to now is no reason to be nowhere else */
    *room = n->info.disks && n->state == NODE_READY ? room_on(c->s, j->project, n) : -1;
    bool good = *room >= j->spec.disk_mib && node_could_run(c, n, j);
    j->lean = lean;
    return good;
}

static bool starts_on(struct call *c, struct job *j, const struct node *n)
{
    int64_t lean = j->lean;
    j->lean = 0;
    bool starts = node_could_start(c, n, j);
    j->lean = lean;
    return starts;
}

/* One where it could start now, else any; of those the one with the most room. */
static struct node *roomiest(struct call *c, struct job *j)
{
    struct node *n, *best = NULL;
    int64_t most = 0, room;
    bool now = false;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        if (!has_room(c, j, n, &room))
            continue;
        bool starts = starts_on(c, j, n);
        if (!best || starts > now || (starts == now && (room > most || (room == most && n->id < best->id))))
            best = n, most = room, now = starts;
    }
    return best;
}

/* The next one after the node that it is held to where it could start now; the last is followed by the first. */
static struct node *next_free(struct call *c, struct job *j)
{
    struct node *n, *after = NULL, *first = NULL;
    int64_t room;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        struct node **best = n->id > j->lean ? &after : &first;
        if (n->id != j->lean && (!*best || n->id < (*best)->id) && has_room(c, j, n, &room) && starts_on(c, j, n))
            *best = n;
    }
    return after ? after : first;
}

static void seek(struct call *c, struct job *j, const struct node *n)
{
    enum reason was = j->reason;
    if (n) {
        map_put(c->s->disk_waits, j->id, j);
        unblock(j);
        j->lean = n->id;
        j->leaned_ms = c->now_ms;
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
        seek(c, j, roomiest(c, j));
}

/* Whoever still waits where he is held to goes where he could start, since nobody holds that for him: what is free there by our books may be kept for others, too. */
static void look_again(struct call *c, struct job *j)
{
    if (c->now_ms - j->leaned_ms >= 0 && c->now_ms - j->leaned_ms < LOOK_AGAIN_MS)
        return;
    j->leaned_ms = c->now_ms;
    const struct node *n = next_free(c, j);
    if (n)
        seek(c, j, n);
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
        const struct node *n = j->lean ? map_get(c->s->nodes, j->lean) : NULL, *other;
        bool good = n && n->state == NODE_READY && disk_may(c->s, n, j);
        if (j->state != JOB_QUEUED)
            continue;
        if (good)
            look_again(c, j);
        else if ((other = roomiest(c, j)) || !j->no_room)
            seek(c, j, other);
    }
}
