/* job_place.c - the planner's verb: tasks get nodes and slices. Every placement is checked again
 * here, on the memory that counts; one that no longer fits is refused alone and waits again, but a
 * gang is taken or refused as a whole. Why the others wait is noted with it. */
#include "control/call.h"
#include <stdio.h>

static int64_t gpu_held(const struct node *n, int64_t index, int64_t *mib)
{
    int64_t milli = 0;
    struct attempt *a;
    *mib = 0;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        for (int g = 0; g < a->gpu_count; g++)
            if (a->gpus[g].index == index)
                milli += a->gpus[g].milli, *mib += a->gpus[g].mem_mib;
    return milli;
}

static const struct gpu_info *gpu_of(const struct node *n, int64_t index)
{
    const struct gpu_info *list = n->info.gpus.at;
    for (size_t i = 0; i < n->info.gpus.count; i++)
        if (list[i].index == index)
            return &list[i];
    return NULL;
}

static void held_on(const struct node *n, const struct job *j, int64_t *cpu, int64_t *mem)
{
    shape_on(&j->shape, n->info.cpu_milli, n->info.mem_mib, node_kept_mib(n), (int64_t)n->info.gpus.count, cpu, mem);
}

static bool node_has_room(const struct node *n, const struct job *j, const struct placement *p)
{
    int64_t cpu, mem, mib;
    struct attempt *a;
    held_on(n, j, &cpu, &mem);
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        cpu += a->cpu_milli, mem += a->mem_mib;
    if (cpu > n->info.cpu_milli || mem > n->info.mem_mib)
        return false;
    const struct order_gpu *gpus = p->gpus.at;
    for (size_t g = 0; g < p->gpus.count; g++) {
        const struct gpu_info *info = gpu_of(n, gpus[g].index);
        if (!info || !info->healthy || gpu_held(n, gpus[g].index, &mib) + gpus[g].milli > 1000
            || mib + gpus[g].mem_mib > info->mem_mib)
            return false;
    }
    return true;
}

static bool limits_allow(struct call *c, struct project *p, const struct job *j, const struct node *n, const struct placement *at);

/* Those that it had, whole ones, if nobody has them nor the CPUs and the memory that it held with them, and its project may hold them. */
bool gpus_may_return(struct call *c, const struct attempt *a)
{
    const struct node *n = a->node;
    struct job *j = a->task->job;
    struct project *p = j->project;
    int64_t milli = 0, mib, cpu = a->own_cpu, mem = MAX(a->own_mem, a->mem_mib);
    const struct attempt *other;
    if (n->state == NODE_DOWN)
        return false;
    for (size_t i = 0; (other = map_next(n->attempts, &i));)
        if (other != a)
            cpu += other->cpu_milli, mem += other->mem_mib;
    if (cpu > n->info.cpu_milli || mem > n->info.mem_mib)
        return false;
    for (int g = 0; g < a->away; g++) {
        const struct gpu_info *info = gpu_of(n, a->gpus[g].index);
        milli += a->gpus[g].milli;
        if (!info || !info->healthy || !text_is(info->uuid, a->gpus[g].uuid) || gpu_held(n, a->gpus[g].index, &mib))
            return false;
    }
    const struct placement at = { .gpus = { (void *)a->gpus, (size_t)a->away } };
    const struct quota *q = &p->quota;
    return (q->gpu_milli < 0 || p->gpu_held + milli <= q->gpu_milli) && (q->cpu_milli < 0 || p->cpu_held + a->own_cpu - a->cpu_milli <= q->cpu_milli)
           && (q->mem_mib < 0 || p->mem_held + MAX(a->own_mem - a->mem_mib, 0) <= q->mem_mib) && limits_allow(c, p, j, n, &at);
}

static struct limit_ask limit_ask_of(const struct job *j, const struct node *n, const struct placement *at)
{
    const struct order_gpu *gpus = at->gpus.at;
    struct limit_ask a = { .owner = j->owner, .bound_ms = limit_bound_ms(&j->spec) };
    for (size_t g = 0; g < at->gpus.count; g++) {
        const struct gpu_info *info = gpu_of(n, gpus[g].index);
        limit_ask_add(&a, info ? info->model : NULL, gpus[g].milli);
    }
    return a;
}

static bool limits_allow(struct call *c, struct project *p, const struct job *j, const struct node *n,
                         const struct placement *at)
{
    enum limit_kind kind;
    if (!p->limits.count)
        return true;
    struct limit_ask a = limit_ask_of(j, n, at);
    books_roll(&p->limits, c->now_ms);
    return !books_refuse(&p->limits, &a, false, &kind);
}

static bool project_has_room(struct call *c, struct project *p, const struct job *j, const struct node *n,
                             const struct placement *at)
{
    const struct quota *q = &p->quota;
    int64_t cpu, mem;
    held_on(n, j, &cpu, &mem);
    return limits_allow(c, p, j, n, at) && (q->gpu_milli < 0 || p->gpu_held + j->shape.gpu.milli <= q->gpu_milli)
           && (q->cpu_milli < 0 || p->cpu_held + cpu <= q->cpu_milli)
           && (q->mem_mib < 0 || p->mem_held + mem <= q->mem_mib);
}

/* Its GPUs are what the job asks for, and who is on them may be beside it. */
static bool gpus_suit(const struct node *n, const struct job *j, const struct placement *p)
{
    const struct order_gpu *gpus = p->gpus.at;
    int64_t milli = 0;
    for (size_t g = 0; g < p->gpus.count; g++) {
        const struct gpu_info *info = gpu_of(n, gpus[g].index);
        milli += gpus[g].milli;
        if (!info || !gpu_ask_fits(&j->shape.gpu, info->model, info->mem_mib) || !house_allows_gpu(n, j, info, &gpus[g]))
            return false;
    }
    return milli == j->shape.gpu.milli;
}

/* A volume may have got its node since this was planned, by another placement of the same wish. */
static bool may_be_there(struct call *c, const struct node *n, const struct job *j)
{
    bool by_volume;
    int64_t home = job_home(c->s, j, &by_volume);
    struct topology where = node_where(n);
    return (!home || home == n->id) && where_fits(&where, j->spec.region, j->spec.zone) && (!text_is(j->spec.image, "host") || n->info.host_image)
           && disk_may(c->s, n, j);
}

bool node_could_run(struct call *c, const struct node *n, const struct job *j)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    int64_t cpu, mem, milli = 0;
    for (size_t g = 0; g < n->info.gpus.count; g++)
        if (gpus[g].healthy && gpu_ask_fits(&j->shape.gpu, gpus[g].model, gpus[g].mem_mib))
            milli += 1000;
    if (milli < j->shape.gpu.milli || !may_be_there(c, n, j) || !house_allows(n, j))
        return false;
    held_on(n, j, &cpu, &mem);
    return cpu <= n->info.cpu_milli && mem <= n->info.mem_mib;
}

/* What is free there, without who is before it. Of MIG slices nothing is known here. */
bool node_could_start(struct call *c, const struct node *n, const struct job *j)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    const struct placement nothing = { 0 };
    int64_t mib, need = j->shape.gpu.milli, part = MIN(need, 1000);
    if (j->shape.gpu.mig[0] || !node_could_run(c, n, j) || !node_has_room(n, j, &nothing))
        return false;
    for (size_t g = 0; g < n->info.gpus.count && need > 0; g++) {
        struct order_gpu at = { .index = gpus[g].index, .milli = part };
        if (gpus[g].healthy && gpu_ask_fits(&j->shape.gpu, gpus[g].model, gpus[g].mem_mib)
            && gpu_held(n, gpus[g].index, &mib) + part <= 1000 && house_allows_gpu(n, j, &gpus[g], &at))
            need -= part;
    }
    return need <= 0;
}

/* next: the number of the task that comes next, if it was never placed. */
static bool acceptable(struct call *c, struct job *j, const struct placement *p, int64_t next)
{
    struct node *n = map_get(c->s->nodes, p->node);
    if (!j || !n || !node_takes(n) || j->blocked || j->state == JOB_STOPPING
        || p->gpus.count > SCHED_GPUS)
        return false;
    struct task *t = job_task(j, p->task);
    if (t ? t->state != JOB_QUEUED || t->not_before_ms > c->now_ms : p->task != next)
        return false;
    return may_be_there(c, n, j) && house_allows(n, j) && gpus_suit(n, j, p) && node_has_room(n, j, p)
           && project_has_room(c, j->project, j, n, p);
}

/* Counts one of a gang as if it were placed, or takes that back: the next one must fit beside it. */
static void count_tentatively(const struct job *j, const struct node *n, const struct placement *at, int sign)
{
    struct project *p = j->project;
    struct limit_ask a = limit_ask_of(j, n, at);
    int64_t cpu, mem;
    held_on(n, j, &cpu, &mem);
    p->gpu_held += sign * j->shape.gpu.milli;
    p->cpu_held += sign * cpu;
    p->mem_held += sign * mem;
    books_hold(&p->limits, &a, sign);
}

/* A gang as a whole: every task of it, by rank, each on a node of its own, as close together as it must be, and all of it within what the
 * project may hold. */
static bool gang_acceptable(struct call *c, struct job *j, const struct placement *list, size_t count)
{
    AUTO(map_free) struct map *taken = map_new();
    struct topology first, where;
    size_t good = 0;
    if (!j || (int64_t)count != j->count)
        return false;
    for (; good < count; good++) {
        const struct placement *p = &list[good];
        if (p->task != (int64_t)good || map_get(taken, p->node)
            || !acceptable(c, j, p, j->next_task ? -1 : p->task))
            break;
        struct node *n = map_get(c->s->nodes, p->node);
        where = node_where(n);
        first = good ? first : where;
        if (!where_same(&first, &where, job_within(&j->spec)))
            break;
        map_put(taken, p->node, n);
        count_tentatively(j, n, p, 1);
    }
    for (size_t i = 0; i < good; i++)
        count_tentatively(j, map_get(taken, list[i].node), &list[i], -1);
    return good == count;
}

static const char *lease_json(struct call *c, const struct job *j, const struct node *n,
                              const struct placement *p)
{
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    const struct order_gpu *gpus = p->gpus.at;
    int64_t cpu, mem;
    held_on(n, j, &cpu, &mem);
    json_open(&o, '{');
    json_key(&o, "cpu"), json_put_int(&o, cpu);
    json_key(&o, "mem"), json_put_int(&o, mem);
    uint32_t address = addresses_next(c, j, n);
    char four[IPV4_TEXT];
    if (address)
        json_key(&o, "address"), json_put_text(&o, ipv4_text(address, four));
    json_key(&o, "gpus"), json_open(&o, '[');
    for (size_t g = 0; g < p->gpus.count; g++) {
        const struct gpu_info *info = gpu_of(n, gpus[g].index);
        json_open(&o, '{');
        json_key(&o, "index"), json_put_int(&o, gpus[g].index);
        json_key(&o, "uuid"), json_put_text(&o, info->uuid);
        json_key(&o, "milli"), json_put_int(&o, gpus[g].milli);
        json_key(&o, "mem_mib"), json_put_int(&o, gpus[g].mem_mib);
        json_key(&o, "simulated"), json_put_bool(&o, info->simulated);
        if (gpus[g].size) {
            json_key(&o, "mig"), json_put_text(&o, j->shape.gpu.mig);
            json_key(&o, "slot"), json_put_int(&o, gpus[g].slot);
            json_key(&o, "size"), json_put_int(&o, gpus[g].size);
        }
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    return arena_text(c->mem, text.at);
}

static void settle_volumes(struct call *c, const struct job *j, const struct node *n)
{
    for (size_t i = 0; i < j->spec.volumes.count; i++) {
        struct job_mount m;
        struct err ignored;
        struct volume *v = job_mount_parse(j->spec.volumes.at[i], c->mem, &m, &ignored)
                               ? state_volume(c->s, j->project->id, m.volume)
                               : NULL;
        if (!v || v->node)
            continue;
        v->node = n->id; /* a volume lives where it was first used */
        EMIT(c, VOLUME_NODE, V_INT(v->id), V_INT(n->id));
        emit_event(c, v->project, "volume.placed", id_of(c, PREFIX_VOLUME, v->id),
                   arena_printf(c->mem, "{\"node\":\"%s\"}", n->name));
        struct job *other;
        /* What waits with it, or is tried again, must follow it there: this job too. */
        for (size_t k = 0; (other = map_next(c->s->jobs, &k));)
            if (other->project == j->project && other->spec.volumes.count
                && other->state != JOB_STOPPING)
                sched_of_job(c->s, other, emit_news(c, SCHED_JOB));
    }
}

static void place(struct call *c, struct job *j, struct node *n, const struct placement *p)
{
    struct task *t = job_task(j, p->task);
    bool first_time = !t;
    if (first_time) {
        t = job_add_task(j, p->task);
        j->next_task = p->task + 1;
        job_advance(j);
    } else {
        j->waiting--;
    }
    const char *lease = lease_json(c, j, n, p);
    struct attempt *a = state_add_attempt(c->s, new_id(c), t, n, lease);
    if (!node_takes(n)) /* it was acceptable a moment ago */
        sched_of_node(c->s, n, emit_news(c, SCHED_NODE));
    a->placed_ms = c->now_ms;
    a->grace_s = j->spec.grace_s;
    a->run_for_s = j->spec.on_lost == ON_LOST_WAIT ? 0 : control_settings(c->control)->run_for_s;
    t->state = JOB_PLACED;
    t->tries++;
    t->not_before_ms = 0;
    if (j->state == JOB_QUEUED)
        j->state = JOB_PLACED;
    j->reason = job_waits(j) ? j->reason : REASON_NONE;
    j->project->wait.reason = REASON_NONE;
    settle_volumes(c, j, n);
    disk_settle(c, j, n);
    if (first_time)
        EMIT(c, TASK_ADD, V_INT(j->id), V_INT(t->index), V_INT(j->project->id), V_INT(t->state),
             V_INT(t->tries), V_INT(t->faults), V_INT(a->id));
    else
        task_write(c, t, NULL);
    EMIT(c, ATTEMPT_ADD, V_INT(a->id), V_INT(j->id), V_INT(t->index), V_INT(j->project->id),
         V_INT(n->id), V_TEXT(lease), V_INT(a->run_for_s), V_INT(a->placed_ms));
    job_write(c, j);
    emit_event(c, j->project->id, "task.placed", id_of(c, PREFIX_ATTEMPT, a->id),
               arena_printf(c->mem, "{\"job\":\"%s\",\"task\":%lld,\"node\":\"%s\"}",
                            id_of(c, PREFIX_JOB, j->id), (long long)t->index, n->name));
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
    node_changed(c, n, a);
    mesh_tell(c, j->project, n);
}

/* The project's own name stands where nobody else is meant. */
static const char *limit_words(struct call *c, const struct project *p, const struct wait *w)
{
    AUTO(str_done) struct str out = { 0 };
    limit_sentence(&out, (enum limit_kind)w->limit, limit_whose(c, p, w->owner), w->model, w->most, w->needs);
    str_text(&out, w->needs < 0 ? "; submit it with a max_duration" : "; it starts when enough of that is free again");
    return arena_text(c->mem, out.at);
}

/* Those who come behind it with the same wish wait for the same. */
static void remember_wait(struct job *j)
{
    if (j->reason != REASON_NO_NODE && j->reason != REASON_QUOTA)
        return;
    j->project->wait.reason = j->reason;
    text_copy(j->project->wait.flavor, sizeof j->project->wait.flavor, j->flavor);
}

static size_t run_of(const struct placement *list, size_t count) /* how many of the same job come one after the other */
{
    size_t n = 1;
    while (n < count && list[n].job == list[0].job)
        n++;
    return n;
}

bool job_place(struct call *c, const void *body, struct err *err)
{
    (void)err;
    const struct place_ask *ask = body;
    const struct placement *list = ask->placements.at;
    const struct wait *waits = ask->waits.at;
    holds_return(c, &ask->resumes);
    for (size_t i = 0, many; i < ask->placements.count; i += many) {
        struct job *j = map_get(c->s->jobs, list[i].job);
        bool gang = j && job_gang(j);
        many = gang ? run_of(list + i, ask->placements.count - i) : 1;
        if (gang ? gang_acceptable(c, j, list + i, many) : acceptable(c, j, &list[i], j ? j->next_task : 0)) {
            for (size_t k = i; k < i + many; k++)
                place(c, j, map_get(c->s->nodes, list[k].node), &list[k]);
            continue;
        }
        for (size_t k = i; k < i + many; k++) {
            struct sched_event *e = emit_news(c, SCHED_TASK_REFUSED);
            e->job = list[k].job, e->task = list[k].task, e->node = list[k].node;
        }
        disk_refused(c, j, map_get(c->s->nodes, list[i].node));
    }
    job_evictions(c, &ask->evictions);
    for (size_t i = 0; i < ask->waits.count; i++) {
        struct job *j = map_get(c->s->jobs, waits[i].job);
        if (!j || !job_waits(j) || job_is_stopped(j) || j->no_room)
            continue;
        if (waits[i].reason == REASON_QUOTA && waits[i].limit != LIMIT_ANY)
            EMIT(c, JOB_WHY, V_INT(j->id), V_TEXT(limit_words(c, j->project, &waits[i])));
        if (j->reason == (enum reason)waits[i].reason)
            continue;
        j->reason = (enum reason)waits[i].reason;
        remember_wait(j);
        job_write(c, j);
        emit_event(c, j->project->id, "job.waiting", id_of(c, PREFIX_JOB, j->id),
                   arena_printf(c->mem, "{\"reason\":\"%s\"}", reason_name(j->reason)));
    }
    return true;
}
