/* agent.c - holds the parts together: the runtime tells what became of attempts, the spool keeps it, the link carries it
 * up and brings the desired set down, and reconcile says what to do.
 *
 * The law: a start and an end are in the spool before anything else acts on them, and an attempt is forgotten (its folder
 * first, what was told of it last) only when the server has settled it. Every step may be the last before kill -9. The disk is not waited
 * for: what the server has not confirmed after SYNC_MS is synced. What a power cut takes of the last moment nobody was promised: an order
 * of before the boot that nothing is known of any more has ended as a fault of the node. */
#include "agent/agent.h"
#include "agent/care.h"
#include "agent/gpus.h"
#include "agent/join.h"
#include "agent/link.h"
#include "agent/probe.h"
#include "agent/reconcile.h"
#include "agent/runtime.h"
#include "agent/self.h"
#include "agent/spool.h"
#include "agent/streams.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include <inttypes.h>
#include <stdlib.h>

enum { BEAT_MS = 5000, RETRY_MS = 1000, CLOCK_DRIFT_MS = 30000, LOOK_MS = 5000, SYNC_MS = 200 };

struct task { /* an attempt that something is known of */
    struct task_now now;
    struct task_status status; /* detail is malloc'd */
};

struct agent {
    struct os *os;
    struct arena *mem; /* of the configuration */
    struct agent_config config;
    struct heads *heads;
    struct self *self;
    struct runtime *runtime;
    struct spool *spool;
    struct join *join;
    struct link *link;
    struct streams *streams;
    struct gpus *gpus;
    struct care *care;
    struct identity *me; /* joined, and waiting for the devices to be known */
    struct map *tasks;   /* attempt -> struct task */
    struct timer *retry; /* the spool could not be written */
    struct timer *sync;  /* the server has that long to confirm what was spooled */
    struct timer *look;  /* has the machine changed? */
    struct str told;     /* the inventory that the last hello told */
    bool complete;       /* the whole desired set has come since we started */
    bool rebooted;       /* the machine was switched on since an agent last was told everything here: what was not synced then is lost */
    bool marked;         /* the next agent of this boot has no such doubt */
    struct texts swept;  /* volumes that the server named as gone; malloc'd, until it names them no more */
    bool drift_told;
};

static struct task *task_of(struct agent *a, int64_t attempt)
{
    struct task *t = map_get(a->tasks, attempt);
    if (t)
        return t;
    if (!(t = calloc(1, sizeof *t)))
        abort();
    t->now.attempt = attempt;
    map_put(a->tasks, attempt, t);
    return t;
}

static void task_drop(struct agent *a, struct task *t)
{
    map_take(a->tasks, t->now.attempt);
    free((char *)t->status.detail);
    free(t);
}

/* --- facts: runtime -> spool */

static void report_all(struct agent *a);

static void on_retry(void *arg)
{
    struct agent *a = arg;
    a->retry = NULL;
    report_all(a);
}

static void on_sync(void *arg)
{
    struct agent *a = arg;
    struct err err = { 0 };
    a->sync = NULL;
    if (spool_sync(a->spool, &err))
        return;
    log_line(LOG_ERROR, "agent", "%s; trying again", err.text);
    a->sync = timer_start(a->os, RETRY_MS, on_sync, a);
}

static void sync_later(struct agent *a)
{
    if (!a->sync && spool_unsynced(a->spool))
        a->sync = timer_start(a->os, SYNC_MS, on_sync, a);
}

static bool spool_news(struct agent *a, const struct task *t, enum task_news news)
{
    const struct task_status *s = &t->status;
    struct err err = { 0 };
    struct report_item item
        = { .attempt = t->now.attempt, .news = (int)news, .at_ms = s->started_ms };
    if (news == TASK_ENDED) {
        item.at_ms = s->ended_ms;
        item.started_ms = s->started_ms;
        item.outcome = s->outcome;
        item.exit_code = s->exit_code;
        item.signal = s->signal;
        item.detail = s->detail;
        item.blame = s->blame;
    }
    if (spool_add(a->spool, &item, &err))
        return sync_later(a), true;
    log_line(LOG_ERROR, "agent", "%s; trying again", err.text);
    if (!a->retry)
        a->retry = timer_start(a->os, RETRY_MS, on_retry, a);
    return false;
}

/* Idempotent: the spool takes each start and each end once. */
static bool report_task(struct agent *a, const struct task *t)
{
    if (t->status.phase == PHASE_RUNNING)
        return spool_news(a, t, TASK_STARTED);
    return t->status.phase != PHASE_ENDED || spool_news(a, t, TASK_ENDED);
}

static void report_all(struct agent *a)
{
    const struct task *t;
    for (size_t at = 0; (t = map_next(a->tasks, &at));)
        if (!report_task(a, t))
            break; /* the timer comes back to all of them */
    if (a->link)
        link_kick(a->link);
}

static void take_status(struct agent *a, const struct task_status *s)
{
    struct task *t = task_of(a, s->attempt);
    if (t->status.phase == PHASE_ENDED && s->phase != PHASE_ENDED)
        return;
    char *detail = s->detail ? strdup(s->detail) : NULL;
    free((char *)t->status.detail);
    t->status = *s;
    t->status.detail = detail;
    t->now.alive = s->phase != PHASE_ENDED;
    t->now.ended = s->phase == PHASE_ENDED;
    report_task(a, t);
    streams_changed(a->streams, s->attempt);
    if (a->link)
        link_kick(a->link);
}

static void on_status(void *arg, const struct task_status *s)
{
    static const char *const phases[] = { "prepares", "runs", "has ended" };
    char id[ID_TEXT];
    log_line(LOG_INFO, "agent", "%s %s%s%s", id_text(id, PREFIX_ATTEMPT, s->attempt),
             phases[MIN((unsigned)s->phase, 2u)], s->phase == PHASE_ENDED ? ": " : "",
             s->phase == PHASE_ENDED && (unsigned)s->outcome < OUTCOME_COUNT
                 ? outcome_name((enum outcome)s->outcome)
                 : "");
    take_status(arg, s);
}

/* Nothing of it is spooled: the note on the disk is told with every report. */
static void on_hold(void *arg)
{
    struct agent *a = arg;
    if (a->link)
        link_tell(a->link);
}

/* --- intent: desired -> actions */

/* What the server has forgotten and we have not: it was restored from a backup. An attempt that has ended is told again, and
 * never begun a second time. */
static void do_start(struct agent *a, struct task *t, const struct action *x)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task_status past = { 0 };
    if (runtime_past(a->runtime, x->attempt, mem, &past)) {
        take_status(a, &past);
        return;
    }
    t->now.alive = true;
    runtime_start(a->runtime, x->order);
}

static void do_stop(struct agent *a, struct task *t, const struct action *x)
{
    t->now.stopping = true;
    t->now.stopping_grace_s = x->grace_s;
    runtime_stop(a->runtime, x->attempt, x->grace_s, (enum outcome)x->as);
}

static void do_refuse(struct agent *a, struct task *t, const struct action *x)
{
    (void)t;
    take_status(a, &(struct task_status){ .attempt = x->attempt,
                                          .phase = PHASE_ENDED,
                                          .outcome = x->as,
                                          .ended_ms = os_wall_ms(a->os),
                                          .detail = x->as == OUTCOME_NODE_FAULT
                                                        ? "nothing is left of it on its node"
                                                        : "it was ended before it began" });
}

static void do_forget(struct agent *a, struct task *t, const struct action *x)
{
    runtime_forget(a->runtime, x->attempt);
    /* Removing takes its time, and what an agent finds after a restart it tells, unless it remembers having told it. */
    if (!runtime_settled(a->runtime, x->attempt))
        return; /* the next answer of the server asks again */
    spool_forget(a->spool, x->attempt);
    task_drop(a, t);
}

static void (*const doers[])(struct agent *a, struct task *t, const struct action *x) = {
    [ACTION_START] = do_start,
    [ACTION_STOP] = do_stop,
    [ACTION_REFUSE] = do_refuse,
    [ACTION_FORGET] = do_forget,
};

static void act(struct agent *a, struct arena *mem)
{
    size_t count = 0, n;
    struct task_now *list = ARENA_ARRAY(mem, struct task_now, map_count(a->tasks));
    struct action *actions;
    struct task *t;
    for (size_t at = 0; (t = map_next(a->tasks, &at));) {
        const struct spool_told *told = spool_told(a->spool, t->now.attempt);
        t->now.told_started = told && told->started_n;
        t->now.told_ended = told && told->ended_n;
        t->now.settled = told && told->ended_n && told->ended_n <= spool_last_kept(a->spool);
        t->now.alive |= !t->now.ended && runtime_has(a->runtime, t->now.attempt);
        list[count++] = t->now;
    }
    n = reconcile(list, count, a->complete, mem, &actions);
    for (size_t i = 0; i < n; i++)
        doers[actions[i].kind](a, map_get(a->tasks, actions[i].attempt), &actions[i]);
}

static void want(struct agent *a, const struct desired *d)
{
    const struct order *orders = d->orders.at;
    struct task *t;
    int64_t attempt;
    for (size_t at = 0; d->full && (t = map_next(a->tasks, &at));)
        t->now.wanted = false;
    bool before = d->full && !a->complete && a->rebooted;
    a->complete |= d->full;
    runtime_mesh(a->runtime, d->full, d->nets); /* before those start that want to reach them */
    for (size_t i = 0; i < d->orders.count; i++) {
        t = task_of(a, orders[i].attempt);
        t->now.doubtful |= before;
        t->now.wanted = true;
        t->now.stop |= orders[i].stop; /* a wish to end is never taken back */
        t->now.stop_as = orders[i].stop ? orders[i].stop_as : t->now.stop_as;
        t->now.grace_s = orders[i].grace_s;
        t->now.order = &orders[i];
        runtime_policy(a->runtime, &orders[i]);
        if (orders[i].hold_n)
            runtime_hold(a->runtime, orders[i].attempt, orders[i].hold_n, orders[i].hold, orders[i].hold_mib);
    }
    for (size_t i = 0; i < d->gone.count; i++)
        if (!id_parse(d->gone.at[i], PREFIX_ATTEMPT, &attempt))
            log_line(LOG_WARN, "agent", "the server settled '%.32s', which is no attempt",
                     d->gone.at[i]);
        else if ((t = map_get(a->tasks, attempt)) || runtime_has(a->runtime, attempt))
            task_of(a, attempt)->now.gone = true;
}

static void swept_free(struct agent *a)
{
    for (size_t i = 0; i < a->swept.count; i++)
        free((char *)a->swept.at[i]);
    free(a->swept.at);
    a->swept = (struct texts){ 0 };
}

/* Idempotent: the server names them again until a report has told that they are gone. */
static void sweep_volumes(struct agent *a, struct texts gone)
{
    int64_t volume;
    swept_free(a);
    a->swept.at = calloc(gone.count + 1, sizeof *a->swept.at);
    for (size_t i = 0; a->swept.at && i < gone.count; i++)
        if (id_parse(gone.at[i], PREFIX_VOLUME, &volume)) {
            runtime_drop_volume(a->runtime, volume);
            a->swept.at[a->swept.count++] = strdup(gone.at[i]);
        }
}

static struct texts swept(void *arg) { return ((struct agent *)arg)->swept; }

static void tell_drift(struct agent *a, int64_t server_ms)
{
    int64_t drift = os_wall_ms(a->os) - server_ms;
    if (a->drift_told || server_ms == 0 || (drift < CLOCK_DRIFT_MS && drift > -CLOCK_DRIFT_MS))
        return;
    a->drift_told = true;
    log_line(LOG_WARN, "agent",
             "the clock of this machine differs from the server's by %" PRId64 " s", drift / 1000);
}

/* --- was the machine switched on since? */

static struct slice boot_id(struct agent *a, struct arena *mem)
{
    struct slice boot;
    struct err ignored;
    return file_read(a->os, "/proc/sys/kernel/random/boot_id", 64, mem, &boot, &ignored) ? boot : (struct slice){ "", 0 };
}

/* A supervisor's first words are not synced, and a start is told a little later: for the time between only this tells. The mark is lost with
 * them, or names another boot. */
static bool was_rebooted(struct agent *a)
{
    struct slice boot = boot_id(a, a->mem), known;
    struct err ignored;
    return !file_read(a->os, arena_printf(a->mem, "%s/boot", a->config.data), 64, a->mem, &known, &ignored) || known.len != boot.len
           || memcmp(known.at, boot.at, boot.len) != 0;
}

/* Not before all that is in doubt was told: an agent that is killed sooner leaves the doubt to the next. */
static void mark_boot(struct agent *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *mark = arena_printf(mem, "%s/boot", a->config.data);
    struct err err = { 0 };
    if (a->marked || !a->complete || a->retry)
        return;
    a->marked = true;
    if (!file_remove(a->os, mark, &err) || !file_append(a->os, mark, boot_id(a, mem), false, &err))
        log_line(LOG_WARN, "agent", "%s; orders of before may be refused when the agent begins again", err.text);
}

static void on_desired(void *arg, const struct desired *d, bool fresh)
{
    struct agent *a = arg;
    struct err err = { 0 };
    struct task *t;
    AUTO(arena_free) struct arena *mem = arena_new();
    if (fresh)
        runtime_contact(a->runtime);
    if (!(d->full ? spool_align : spool_kept)(a->spool, d->kept, &err))
        log_line(LOG_ERROR, "agent", "%s", err.text);
    tell_drift(a, d->now_ms);
    self_greeted(a->self);
    self_servers(a->self, d->servers);
    runtime_servers(a->runtime, d->servers);
    gpus_pace(a->gpus, d->look_ms);
    if (d->rotate)
        self_rotate(a->self);
    want(a, d);
    act(a, mem);
    gpus_watch(a->gpus, runtime_has_shares(a->runtime));
    mark_boot(a);
    sweep_volumes(a, d->volumes_gone);
    for (size_t at = 0; (t = map_next(a->tasks, &at));)
        t->now.order = NULL;
}

/* --- the link */

static void describe(struct agent *a, struct arena *mem, struct node_info *info, struct str *text)
{
    struct probe_config probe
        = { .sim_gpus = gpus_none(a->gpus) ? a->config.sim_gpus : 0, .sim_model = a->config.sim_model,
            .sim_kinds = a->config.sim_kinds };
    info->version = a->config.version;
    info->host_image = a->config.host_image;
    info->labels = a->config.labels;
    struct err bad;
    if (a->config.topology && !where_parse(a->config.topology, mem, &info->where, &bad))
        info->where = (struct topology){ 0 }; /* looked at when the agent began */
    probe_machine(a->os, &probe, a->config.data, mem, info);
    gpus_describe(a->gpus, mem, info);
    care_describe(a->care, mem, info);
    runtime_describe(a->runtime, info, mem);
    bind_write(&(struct json_out){ .to = text }, &node_info_fields, info);
    struct texts has = runtime_goods(a->runtime);
    for (size_t i = 0; i < has.count; i++)
        str_text(text, has.at[i]);
}

/* The runtime is still being tried out when the agent starts, and devices come and go. That a GPU is out is told before its tasks end, so that
 * none of them is sent there again. */
static void look(struct agent *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct node_info info = { 0 }, devices = { 0 };
    describe(a, mem, &info, &text);
    if (a->link && !text_is(text.at, a->told.at))
        link_greet(a->link);
    gpus_describe(a->gpus, mem, &devices);
    care_look(a->care, &devices);
}

static void on_look(void *arg)
{
    struct agent *a = arg;
    a->look = timer_start(a->os, LOOK_MS, on_look, a);
    look(a);
}

static void fill_hello(void *arg, struct arena *mem, struct hello *out)
{
    struct agent *a = arg;
    int64_t *running;
    str_clear(&a->told);
    describe(a, mem, &out->info, &a->told);
    out->has = runtime_goods(a->runtime);
    out->next = spool_next(a->spool);
    out->running.count = runtime_list(a->runtime, mem, &running);
    out->running.at = ARENA_ARRAY(mem, const char *, out->running.count);
    for (size_t i = 0; i < out->running.count; i++)
        out->running.at[i] = id_text(ARENA_ARRAY(mem, char, ID_TEXT), PREFIX_ATTEMPT, running[i]);
}

static struct objects pending_items(void *arg, int64_t after, size_t limit)
{
    struct agent *a = arg;
    return spool_items(a->spool, after, limit);
}

static void on_open(void *arg, const struct open_stream *o)
{
    struct agent *a = arg;
    streams_open(a->streams, heads_client(a->heads), o);
}

static void on_down(void *arg, const struct err *why)
{
    struct agent *a = arg;
    if (why->rc == RC_UNAUTHENTICATED)
        self_refused(a->self);
    enum log_level level
        = why->rc == RC_UNAUTHENTICATED || why->rc == RC_DENIED ? LOG_ERROR : LOG_WARN;
    log_line(level, "agent", "not connected: %s",
             why->rc == RC_OK ? "the server closed the connection" : why->text);
}

static struct objects live_figures(void *arg) { return gpus_live(((struct agent *)arg)->gpus); }

static bool has_session(void *arg, int64_t attempt) { return streams_has(((struct agent *)arg)->streams, attempt); }

static struct objects uses(void *arg) { return runtime_uses(((struct agent *)arg)->runtime, has_session, arg); }

static struct objects holds(void *arg) { return runtime_holds(((struct agent *)arg)->runtime); }

static const struct link_events link_events = {
    .hello = fill_hello,
    .items = pending_items,
    .swept = swept,
    .live = live_figures,
    .uses = uses,
    .holds = holds,
    .on_desired = on_desired,
    .on_open = on_open,
    .on_down = on_down,
};

static void on_switch(void *arg)
{
    link_again(((struct agent *)arg)->link);
}

static void start_link(struct agent *a, const struct identity *who)
{
    char id[ID_TEXT];
    log_line(LOG_INFO, "agent", "this is %s (%s)", id_text(id, PREFIX_NODE, who->id),
             who->name ? who->name : "");
    a->self = self_new(a->os, a->heads, a->config.data, who, on_switch, a);
    a->link = link_new(a->os, a->heads, a->config.beat_ms, &link_events, a);
    a->look = timer_start(a->os, LOOK_MS, on_look, a);
}

/* The first hello tells the devices: a node that seemed to have none for a moment would be given other work. */
static void start_linking(struct agent *a, const struct identity *who)
{
    if (gpus_ready(a->gpus)) {
        start_link(a, who);
        return;
    }
    a->me = ARENA_NEW(a->mem, struct identity);
    bind_copy(&identity_fields, who, a->mem, a->me);
}

static void on_found(void *arg)
{
    struct agent *a = arg;
    struct identity *me = TAKE(a->me);
    look(a);
    if (me)
        start_link(a, me);
}

static void on_live(void *arg)
{
    struct agent *a = arg;
    if (a->link)
        link_tell(a->link);
}

static void on_held(void *arg, const struct objects *held)
{
    struct agent *a = arg;
    runtime_held(a->runtime, held);
    care_held(a->care, held);
    gpus_watch(a->gpus, runtime_has_shares(a->runtime));
}

static void on_xid(void *arg, const char *uuid, int64_t xid)
{
    struct agent *a = arg;
    runtime_xid(a->runtime, uuid, xid);
}

static void on_care(void *arg)
{
    struct agent *a = arg;
    if (a->link)
        look(a);
}

static void on_gpu_fault(void *arg, const char *uuid, const char *why)
{
    runtime_lose_gpu(((struct agent *)arg)->runtime, uuid, why);
}

static void on_gpu_passed(void *arg, const char *uuid) { gpus_passed(((struct agent *)arg)->gpus, uuid); }

static void on_joined(void *arg, const struct identity *who)
{
    struct agent *a = arg;
    a->join = NULL;
    start_linking(a, who);
}

static void on_refused(void *arg, const struct err *why)
{
    struct agent *a = arg;
    a->join = NULL;
    log_line(LOG_ERROR, "agent", "%s", why->text);
    if (a->config.on_failed)
        a->config.on_failed(a->config.arg, why);
    else
        os_stop(a->os);
}

/* A token may have the hash of the cloud's authority behind it: jt_SECRET.HASH. */
static const char *token_pin(const char *token)
{
    const char *dot = token ? strchr(token, '.') : NULL;
    return dot ? dot + 1 : NULL;
}

/* Flags come before what was kept, and that before what a token says. */
static bool make_heads(struct agent *a, const struct identity *me, struct err *err)
{
    const struct agent_config *c = &a->config;
    const char *pin = text_given(c->pin)      ? c->pin
                      : text_given(c->ca_pem) ? NULL
                      : text_given(me->pin)   ? me->pin
                                              : token_pin(c->token);
    a->heads = heads_new(a->os, c->ca_pem, pin);
    for (size_t i = 0; i < c->servers.count; i++)
        if (!heads_add(a->heads, c->servers.at[i], err))
            return err_wrap(err, "server %s", c->servers.at[i]);
    return heads_count(a->heads) > 0 || err_field(err, "server", "give at least one server address");
}

static bool start_join(struct agent *a, struct err *err)
{
    static const struct join_events events = { .on_joined = on_joined, .on_refused = on_refused };
    struct node_info info = { 0 };
    probe_machine(a->os, &(struct probe_config){ 0 }, a->config.data, a->mem, &info);
    if (!text_given(a->config.name) && text_is(info.hostname, PROBE_NO_NAME)) /* it would be for good */
        return err_field(err, "name",
                         "this machine does not tell its name: name it in /etc/hostname, or give --name");
    struct node_join_ask ask
        = { .token = a->config.token,
            .name
            = text_given(a->config.name) ? a->config.name : join_name(info.hostname, a->mem) };
    a->join = join_start(a->os, a->heads, a->config.data, &ask, token_pin(a->config.token),
                         text_given(a->config.name), &events, a);
    return true;
}

/* --- life */

static bool task_is_alive(void *arg, int64_t attempt)
{
    struct agent *a = arg;
    const struct task *t = map_get(a->tasks, attempt);
    return t && t->now.alive && !t->now.ended;
}

static void task_log_folder(void *arg, int64_t attempt, char out[static 256])
{
    runtime_log_folder(((struct agent *)arg)->runtime, attempt, out);
}

static bool task_socket(void *arg, int64_t attempt, char out[static 108])
{
    return runtime_socket(((struct agent *)arg)->runtime, attempt, out);
}

static void task_used(void *arg, int64_t attempt) { runtime_used(((struct agent *)arg)->runtime, attempt); }

static const struct streams_host streams_host
    = { .is_alive = task_is_alive, .log_folder = task_log_folder, .socket = task_socket, .used = task_used };

static void copy_config(struct agent *a, const struct agent_config *c)
{
    struct agent_config *to = &a->config;
    *to = *c;
    for (const char **const *p
         = (const char **const[]){ &to->token, &to->data, &to->run, &to->name, &to->self,
                                   &to->version, &to->sim_model, &to->nvml, &to->sys, &to->ca_pem, &to->pin, &to->topology, &to->cdi, &to->libcuda, &to->uvm, &to->mps, &to->underlay_address, NULL };
         *p; p++)
        **p = arena_text(a->mem, **p);
    to->labels.at = ARENA_ARRAY(a->mem, struct pair, c->labels.count);
    for (size_t i = 0; i < c->labels.count; i++)
        to->labels.at[i] = (struct pair){ arena_text(a->mem, c->labels.at[i].key),
                                          arena_text(a->mem, c->labels.at[i].value) };
    to->hide.at = ARENA_ARRAY(a->mem, const char *, c->hide.count);
    for (size_t i = 0; i < c->hide.count; i++)
        to->hide.at[i] = arena_text(a->mem, c->hide.at[i]);
    to->servers.at = ARENA_ARRAY(a->mem, const char *, c->servers.count);
    for (size_t i = 0; i < c->servers.count; i++)
        to->servers.at[i] = arena_text(a->mem, c->servers.at[i]);
    to->beat_ms = c->beat_ms > 0 ? c->beat_ms : BEAT_MS;
}

/* Those that we are started with, and those that the cloud told before. */
static struct texts all_servers(struct agent *a, struct texts told)
{
    const struct texts given = a->config.servers;
    struct texts all = { ARENA_ARRAY(a->mem, const char *, given.count + told.count + 1), 0 };
    for (size_t i = 0; i < given.count + told.count; i++)
        all.at[all.count++] = i < given.count ? given.at[i] : told.at[i - given.count];
    return all;
}

static bool start(struct agent *a, struct err *err)
{
    static const struct runtime_events events = { .on_status = on_status, .on_hold = on_hold };
    const struct agent_config *c = &a->config;
    struct identity me = { 0 };
    bool joined;
    if (!dir_make(a->os, c->data, 0711, err)
        || !identity_load(a->os, c->data, a->mem, &me, &joined, err) || !make_heads(a, &me, err))
        return false;
    if (!joined && !text_given(c->token))
        return err_field(err, "token",
                         "this machine has not joined yet: give --token (an operator gets one with "
                         "`arcus nodes token`)");
    if (!spool_open(a->os, arena_printf(a->mem, "%s/spool", c->data), &a->spool, err))
        return false;
    if (spool_damaged(a->spool))
        log_line(LOG_WARN, "agent", "%zu lines of the spool were damaged and left out",
                 spool_damaged(a->spool));
    const struct spool_told *told;
    for (size_t at = 0; (told = spool_each(a->spool, &at));)
        task_of(a, told->attempt);
    sync_later(a); /* who wrote it may have been killed before he came to it */
    static const struct care_events care_events = { on_care, on_gpu_fault, on_gpu_passed };
    const struct care_config cc = { .data = c->data, .check = { .self = c->self, .libcuda = c->libcuda }, .when = c->gpu_test };
    a->care = care_new(a->os, &cc, &care_events, a);
    struct runtime_config rc = { .data = c->data,
                                 .keep_logs_s = c->keep_logs_s,
                                 .run = c->run,
                                 .self = c->self,
                                 .host_image = c->host_image,
                                 .uplink = c->uplink,
                                 .underlay = c->underlay,
                                 .underlay_address = c->underlay_address,
                                 .servers = all_servers(a, me.servers),
                                 .hide = c->hide,
                                 .cdi = c->cdi,
                                 .mps = c->mps,
                                 .nvml = c->nvml,
                                 .own_devices = c->own_devices,
                                 .libcuda = c->libcuda,
                                 .uvm = c->uvm,
                                 .care = a->care,
                                 .heads = a->heads };
    if (!runtime_open(a->os, &rc, &events, a, &a->runtime, err))
        return false;
    a->marked = !was_rebooted(a);
    a->rebooted = !a->marked && joined; /* who joins now has no orders of before */
    a->streams = streams_new(a->os, c->data, &streams_host, a);
    static const struct gpus_events gpus_events = { on_found, on_live, on_held, on_xid };
    a->gpus = gpus_new(a->os, &(struct gpus_config){ .self = c->self, .data = c->data, .nvml = c->nvml, .sys = c->sys }, &gpus_events, a);
    return joined ? (start_linking(a, &me), true) : start_join(a, err);
}

struct agent *agent_new(struct os *os, const struct agent_config *config, struct err *err)
{
    AUTO(agent_free) struct agent *a = calloc(1, sizeof *a);
    if (!a)
        abort();
    *a = (struct agent){ .os = os, .mem = arena_new(), .tasks = map_new() };
    copy_config(a, config);
    return start(a, err) ? TAKE(a) : NULL;
}

void agent_leave(struct agent *a, void (*gone)(void *arg), void *arg)
{
    if (!a)
        return;
    struct task *t;
    struct err err = { 0 };
    timer_cancel(a->retry);
    timer_cancel(a->sync);
    timer_cancel(a->look);
    if (a->spool && !spool_sync(a->spool, &err))
        log_line(LOG_ERROR, "agent", "%s", err.text);
    str_done(&a->told);
    swept_free(a);
    gpus_free(a->gpus);
    join_free(a->join);
    link_leave(a->link, gone, arg);
    streams_free(a->streams);
    if (a->runtime)
        runtime_close(a->runtime);
    care_free(a->care);
    spool_free(a->spool);
    self_free(a->self);
    heads_free(a->heads);
    for (size_t at = 0; (t = map_next(a->tasks, &at));)
        task_drop(a, t);
    map_free(a->tasks);
    arena_free(a->mem);
    free(a);
}

void agent_free(struct agent *a) { agent_leave(a, NULL, NULL); }

bool agent_linked(const struct agent *a)
{
    return a->link && link_up(a->link);
}
