/* node_report.c - facts from the nodes: a hello, a report, silence. Each report item is numbered
 * by its node; the last number taken is in the node's row, written in the same commit as what it
 * changed, so each item counts exactly once. A node speaks only about attempts that it holds. */
#include "control/call.h"
#include "model/hello.h"
#include <stdio.h>
#include <stdlib.h>

static struct node *self(struct call *c)
{
    return map_get(c->s->nodes, c->who->id);
}

void node_write(struct call *c, struct node *n, enum node_state state, const char *kind)
{
    n->state = state;
    n->version++;
    if (state != NODE_DOWN)
        node_lost_set(c, n, 0);
    EMIT(c, NODE_SET, V_INT(n->id), V_INT(n->state), V_INT(n->cordoned), V_TEXT(n->info_text),
         V_INT(n->kept), V_INT(n->version), V_TEXT(n->settings_text));
    emit_event(c, 0, kind, id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
    sched_of_node(c->s, n, emit_news(c, SCHED_NODE));
}

/* Any word from a node renews its run-until times; one that was silent is back. */
static void heard(struct call *c, struct node *n)
{
    n->heard_boot_ms = c->boot_ms;
    if (n->state == NODE_DOWN)
        node_write(c, n, n->cordoned ? NODE_CORDONED : NODE_READY, "node.up");
}

static void job_runs(struct job *j)
{
    if (j->state == JOB_PLACED || j->state == JOB_QUEUED)
        j->state = JOB_RUNNING;
}

static void tell_started(struct call *c, const struct attempt *a)
{
    const struct job *j = a->task->job;
    emit_event(c, j->project->id, "task.started", id_of(c, PREFIX_ATTEMPT, a->id),
               arena_printf(c->mem, "{\"job\":\"%s\",\"task\":%lld}", id_of(c, PREFIX_JOB, j->id),
                            (long long)a->task->index));
}

static void started(struct call *c, struct attempt *a, const struct report_item *item)
{
    struct task *t = a->task;
    struct job *j = t->job;
    if (a->started_ms || (a->state != JOB_PLACED && a->state != JOB_STOPPING))
        return; /* a node that lost its power tells once more what it finds */
    a->started_ms = item->at_ms;
    t->started_ms = item->at_ms;
    order_shorten(c, a);
    if (a->state == JOB_PLACED) {
        struct err ignored;
        a->state = JOB_RUNNING;
        (void)!job_step(&t->state, NEWS_STARTED, &ignored);
    }
    if (!j->started_ms)
        j->started_ms = item->at_ms;
    job_runs(j);
    EMIT(c, ATTEMPT_SET, V_INT(a->id), V_INT(a->state), V_INT(OUTCOME_NONE), V_INT(a->started_ms),
         V_INT(0), V_INT(0), V_INT(0), V_TEXT(a->stop_why ? a->stop_why : ""));
    task_write(c, t, NULL);
    job_write(c, j);
    tell_started(c, a);
}

static void take_item(struct call *c, struct node *n, const struct report_item *item)
{
    struct attempt *a = map_get(c->s->attempts, item->attempt);
    if (!a
        || a->node
               != n) { /* an attempt that is over, or somebody else's: noted, and nothing changes */
        emit_event(c, 0, "report.late", id_of(c, PREFIX_ATTEMPT, item->attempt),
                   arena_printf(c->mem, "{\"node\":\"%s\"}", n->name));
        node_gone(c, n, item->attempt);
        return;
    }
    if (item->news == TASK_STARTED) {
        started(c, a, item);
        return;
    }
    struct ending how = { .outcome = (enum outcome)item->outcome,
                          .started_ms = item->started_ms ? item->started_ms : a->started_ms,
                          .ended_ms = item->at_ms,
                          .exit_code = item->exit_code,
                          .signal = item->signal,
                          .detail = item->detail,
                          .blame = (enum blame)item->blame };
    if (how.outcome == OUTCOME_NONE)
        how.outcome = OUTCOME_NODE_FAULT;
    bool wished = how.outcome == OUTCOME_CANCELLED || how.outcome == OUTCOME_PREEMPTED;
    if (wished && !a->stop)
        how.outcome = OUTCOME_NODE_FAULT; /* nobody asked for it */
    else if (wished && a->started_ms && !item->started_ms) { /* it had begun, and a power cut took all that its node knew of it */
        how.outcome = OUTCOME_NODE_FAULT;
        how.detail = "nothing is left of it on its node";
    }
    if (a->stop_why && how.outcome == a->stop_as)
        how.detail = arena_text(c->mem, a->stop_why);
    if (how.started_ms && !a->started_ms) { /* it was so short that its start is told with its end */
        job_runs(a->task->job);
        tell_started(c, a);
    }
    attempt_over(c, a, &how);
}

/* Folders of removed volumes that the node has done away with. */
static void take_swept(struct call *c, struct node *n, struct texts swept)
{
    for (size_t i = 0; i < swept.count; i++) {
        int64_t volume;
        char *text
            = id_parse(swept.at[i], PREFIX_VOLUME, &volume) ? map_take(n->goners, volume) : NULL;
        if (!text)
            continue;
        free(text);
        EMIT(c, GONER_DROP, V_INT(volume));
        emit_event(c, 0, "volume.swept", swept.at[i],
                   arena_printf(c->mem, "{\"node\":\"%s\"}", n->name));
    }
}

bool node_report(struct call *c, const void *body, struct err *err)
{
    const struct report *ask = body;
    const struct report_item *items = ask->items.at;
    struct node *n = self(c);
    if (!n)
        return err_set(err, RC_DENIED, "this node was removed");
    if (!n->linked)
        return err_set(err, RC_CONFLICT, "say hello first");
    heard(c, n);
    int64_t kept = n->kept;
    for (size_t i = 0; i < ask->items.count; i++) {
        if (items[i].n <= n->kept)
            continue; /* said before */
        if (items[i].n != n->kept + 1)
            break; /* a gap: `kept` in the answer makes the node say it again from there */
        n->kept = items[i].n;
        take_item(c, n, &items[i]);
    }
    if (n->kept != kept)
        EMIT(c, NODE_KEPT, V_INT(n->id), V_INT(n->kept));
    take_swept(c, n, ask->swept);
    holds_take(c, n, &ask->holds);
    node_take_live(c, n, &ask->live);
    autostop_take(c, n, &ask->uses);
    str_text(&c->r->reply, desired_json(c, n, false, ask->beat));
    return true;
}

_Static_assert((int)SCHED_GPUS == (int)NODE_OFFERS, "what agents leave out is what is refused here");

static bool gpus_check(const struct objects *list, struct err *err)
{
    const struct gpu_info *gpus = list->at;
    if (list->count > SCHED_GPUS)
        return err_field(err, "info.gpus", "a node may have at most %d GPUs", SCHED_GPUS);
    for (size_t i = 0; i < list->count; i++) {
        if (gpus[i].index >= SCHED_GPUS)
            return err_field(err, "info.gpus", "GPUs are numbered from 0 to %d", SCHED_GPUS - 1);
        for (size_t k = 0; k < i; k++)
            if (gpus[k].index == gpus[i].index)
                return err_field(err, "info.gpus", "GPU %lld is told twice",
                                 (long long)gpus[i].index);
    }
    return true;
}

static bool where_check(const struct topology *w, struct err *err)
{
    for (int l = PLACE_REGION; l < PLACE_LEVELS; l++)
        if (!place_name_check(place_names.at[l], w->at[l], err))
            return false;
    return true;
}

/* A node that forgot everything would begin the orders in our answer once more, under the same
 * attempt: what it does not say it runs is over. */
static void wipe(struct call *c, struct node *n, const struct texts *running)
{
    struct attempt *a;
    for (size_t i = 0; (a = map_next(n->attempts, &i));) {
        bool there = false;
        for (size_t k = 0; k < running->count && !there; k++)
            there = text_is(running->at[k], id_of(c, PREFIX_ATTEMPT, a->id));
        if (there)
            continue;
        struct ending how = { .outcome = OUTCOME_NODE_FAULT,
                              .started_ms = a->started_ms,
                              .ended_ms = MAX(c->now_ms, a->started_ms),
                              .detail = "the node lost its disk" };
        attempt_over(c, a, &how);
    }
}

/* A full hello tells what runs. What the server thinks is there and is not has been lost by the
 * node, unless its order is still on its way: the full set in the answer starts it. Only an
 * attempt that was seen running and is neither alive nor in the node's spool is over; the agent
 * itself reports those, so nothing is concluded here. */
bool node_hello(struct call *c, const void *body, struct err *err)
{
    const struct hello *ask = body;
    struct node *n = self(c);
    if (!n)
        return err_set(err, RC_DENIED, "this node was removed");
    if (!gpus_check(&ask->info.gpus, err) || !where_check(&ask->info.where, err))
        return false;
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &node_info_fields, &ask->info);
    bool changed = !text_is(n->info_text, text.at);
    struct objects turned = changed ? gpus_turned(c, n, &ask->info.gpus) : (struct objects){ 0 };
    bool moves = !text_is(n->info.underlay ? n->info.underlay : "", ask->info.underlay ? ask->info.underlay : "");
    if (moves)
        mesh_move(c, n, false);
    bool taken = !changed || state_node_info(n, text.at, err);
    if (moves)
        mesh_move(c, n, true);
    if (!taken)
        return false;
    house_settle(c->s, n);
    bool wiped = ask->next == 1 && n->kept > 0; /* its disk was lost: its numbers begin again */
    if (wiped) {
        n->kept = 0;
        changed = true;
    }
    n->linked = true;
    n->heard_boot_ms = c->boot_ms;
    node_key_used(c, n);
    if (changed || n->state == NODE_DOWN)
        node_write(c, n, n->cordoned ? NODE_CORDONED : NODE_READY,
                   n->state == NODE_DOWN ? "node.up" : "node.changed");
    goods_take(c, n, &ask->has);
    gpus_tell_turned(c, n, &turned);
    if (wiped)
        wipe(c, n, &ask->running);
    str_text(&c->r->reply, desired_json(c, n, true, ask->beat));
    return true;
}

/* A task may run unseen until its time is over; only a margin later it is somebody else's. */
static int64_t unseen_ms(struct call *c, const struct attempt *a)
{
    return (a->run_for_s + control_settings(c->control)->margin_s) * 1000;
}

/* gone: nobody waits for the node any more, so what was to run nowhere else is over too. at_once: the node itself is taken out, so it
 * cannot be given anything before what runs there has ended. */
static void lose(struct call *c, struct node *n, const char *detail, bool gone, bool at_once)
{
    struct attempt *a;
    int64_t silent = c->boot_ms - n->heard_boot_ms;
    for (size_t i = 0; (a = map_next(n->attempts, &i));) {
        if (!at_once && (a->run_for_s ? silent <= unseen_ms(c, a) : !gone))
            continue; /* on_lost: wait, or it may still run */
        struct ending how
            = { .outcome = OUTCOME_NODE_LOST,
                .started_ms = a->started_ms,
                .detail = detail,
                .ended_ms = c->now_ms - silent }; /* billed, if at all, until it was last heard */
        how.ended_ms = MAX(how.ended_ms, how.started_ms);
        if (silent <= unseen_ms(
                c, a)) /* of a node that was removed: it may still run there for that long */
            how.not_before_ms = c->now_ms + unseen_ms(c, a) - silent;
        attempt_over(c, a, &how);
    }
}

void node_lose_tick(struct call *c, struct node *n)
{
    if (map_count(n->attempts))
        lose(c, n, n->lost == 2 ? "an operator said that its node is gone" : "the node was silent for longer than the task may run unseen",
             n->lost == 2, false);
}

/* The wall clock went back, maybe while nobody looked: a pause that was to take seconds must not
 * take what the clock was wrong by. */
static void shorten_pauses(struct call *c)
{
    const struct control_config *cfg = control_settings(c->control);
    struct job *j;
    struct task *t;
    for (size_t i = 0; (j = map_next(c->s->jobs, &i));) {
        int64_t latest
            = c->now_ms + MAX(j->spec.retry.delay_s, cfg->run_for_s + cfg->margin_s) * 1000;
        for (size_t k = 0; j->waiting && (t = map_next(j->tasks, &k));) {
            if (t->state != JOB_QUEUED || t->not_before_ms <= latest)
                continue;
            t->not_before_ms = latest;
            task_write(c, t, NULL);
            struct sched_event *e = emit_news(c, SCHED_TASK_QUEUED);
            e->job = j->id, e->task = t->index, e->not_before_ms = t->not_before_ms,
            e->project = j->project->id;
        }
    }
}

/* A store that came from a backup knows nothing of what was placed since. What of it runs on nodes that come back is
 * ended by them, for it is not wanted; what runs elsewhere ends by itself when its run-until time passes. Only then is
 * anything placed again. */
static void end_restore(struct call *c)
{
    const struct control_config *cfg = control_settings(c->control);
    struct node *n;
    if (!c->s->restored || c->boot_ms - c->s->loaded_boot_ms < (cfg->run_for_s + cfg->margin_s) * 1000)
        return;
    c->s->restored = false;
    emit(c, ST_RESTORED_DROP, NULL, 0);
    emit_event(c, 0, "cloud.restored", "", NULL);
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));)
        sched_of_node(c->s, n, emit_news(c, SCHED_NODE));
}

bool job_tick(struct call *c, const void *body, struct err *err)
{
    (void)body, (void)err;
    struct node *n;
    end_restore(c);
    if (!c->s->ticked_ms || c->now_ms < c->s->ticked_ms)
        shorten_pauses(c);
    c->s->ticked_ms = c->now_ms;
    bool holds = fleet_holds(c);
    const struct control_config *cfg = control_settings(c->control);
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        int64_t silent = c->boot_ms - n->heard_boot_ms;
        if (silent > NODE_SILENT_MS && n->state != NODE_DOWN) {
            n->linked = false;
            node_write(c, n, NODE_DOWN, "node.down");
        }
        node_drain_tick(c, n);
        if (silent <= NODE_SILENT_MS || (holds && !n->lost))
            continue;
        node_lose_tick(c, n);
        if (!n->lost && silent > (cfg->run_for_s + cfg->margin_s) * 1000)
            node_lost_set(c, n, 1);
    }
    live_tick(c);
    disks_tick(c);
    rules_tick(c);
    reservations_tick(c);
    state_prune(c->s, c->now_ms);
    return true;
}

bool node_remove(struct call *c, const void *body, struct err *err)
{
    const struct node_ask *ask = body;
    struct node *n = state_node(c->s, ask->node);
    if (!n)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    struct volume *v;
    for (size_t i = 0; (v = map_next(c->s->volumes, &i));)
        if (v->node == n->id && !v->job)
            return err_set(err, RC_CONFLICT,
                           "volume %s of a project is on node %s; remove or copy it first", v->name,
                           n->name);
    if (!disks_leave(c, n, err))
        return false;
    lose(c, n, "the node was removed from the fleet", true, true);
    struct apikey *k;
    for (size_t i = 0; (k = map_next(c->s->keys, &i));)
        if (k->owner_kind == PRINCIPAL_NODE && k->owner == n->id) {
            EMIT(c, KEY_STATE, V_INT(k->id), V_INT(1));
            state_drop_key(c->s, k);
        }
    EMIT(c, NODE_DROP, V_INT(n->id));
    emit_event(c, 0, "node.removed", id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
    emit_news(c, SCHED_NODE_GONE)->node = n->id;
    struct simple_view view = { .id = n->id,
                                .name = arena_text(c->mem, n->name),
                                .state = "removed",
                                .created_ms = n->joined_ms };
    state_drop_node(c->s, n);
    reply_view(c, &gone_node_fields, &view);
    return true;
}

/* As node.get shows it, from memory: what is free is what no attempt holds. */
void node_reply(struct call *c, const struct node *n)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    struct node_view v = { .id = n->id,
                           .name = n->name,
                           .state = node_state_word(n->state, n->drain),
                           .drain_until_ms = n->drain_until_ms,
                           .note = node_note(&c->s->rules, n->state, n->lost, n->drain),
                           .gpu_model = "",
                           .cpu_milli = n->info.cpu_milli,
                           .cpu_free_milli = n->info.cpu_milli,
                           .mem_mib = n->info.mem_mib,
                           .mem_free_mib = n->info.mem_mib,
                           .tasks = (int64_t)map_count(n->attempts),
                           .joined_ms = n->joined_ms,
                           .version = n->version,
                           .info = n->info_text,
                           .settings = n->settings_text };
    struct topology where = node_where(n);
    v.region = where.at[PLACE_REGION] ? where.at[PLACE_REGION] : "";
    v.zone = where.at[PLACE_ZONE] ? where.at[PLACE_ZONE] : "";
    v.topology = where_text(&where, arena_take(c->mem, PLACE_ADDRESS, 1));
    const struct project *owner = n->settings.exclusive ? map_get(c->s->projects, n->settings.exclusive) : NULL;
    v.exclusive = owner ? owner->name : "";
    v.taints = house_taints(c->mem, &n->settings);
    for (size_t g = 0; g < n->info.gpus.count; g++) {
        v.gpus++;
        v.gpus_free_milli += 1000;
        v.gpu_model = gpus[g].model;
        v.gpu_mib = gpus[g].mem_mib;
        v.simulated |= gpus[g].simulated;
    }
    struct attempt *a;
    for (size_t i = 0; (a = map_next(n->attempts, &i));) {
        v.cpu_free_milli -= a->cpu_milli;
        v.mem_free_mib -= a->mem_mib;
        v.gpus_free_milli -= a->gpu_milli;
    }
    c->r->version = n->version;
    reply_view(c, &node_view_fields, &v);
}

static bool anything_given(const struct call *c)
{
    const struct fields *f = verbs[c->r->verb].takes;
    for (size_t i = 0; i < f->count; i++)
        if (!f->rows[i].in_path && was_given(c, f->rows[i].name))
            return true;
    return false;
}

/* Changes what was given, and leaves the rest. After it nothing may fail. */
static bool settings_change(struct call *c, struct node *n, const struct node_ask *ask, struct err *err)
{
    struct node_settings s = n->settings;
    if (!where_check(&ask->settings.where, err) || !house_change(c, ask, &s, err))
        return false;
    for (int l = PLACE_REGION; l < PLACE_LEVELS; l++)
        if (was_given(c, place_names.at[l]))
            s.where.at[l] = ask->settings.where.at[l];
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &node_settings_fields, &s);
    if (!text_is(text.at, n->settings_text) && !state_node_settings(n, text.at, err))
        return false;
    house_settle(c->s, n);
    return true;
}

bool node_update(struct call *c, const void *body, struct err *err)
{
    const struct node_ask *ask = body;
    struct node *n = state_node(c->s, ask->node);
    if (!n)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    if (c->r->if_match && c->r->if_match != n->version)
        return err_set(err, RC_STALE, "node %s has changed meanwhile (version %lld); look again",
                       n->name, (long long)n->version);
    if (!anything_given(c))
        return err_set(err, RC_BAD_INPUT, "say what is to change of node %s", n->name);
    bool state = was_given(c, "state");
    if (state && ask->state != NODE_READY && ask->state != NODE_CORDONED)
        return err_field(err, "state", "a node can be set to ready or cordoned");
    if (!settings_change(c, n, ask, err))
        return false;
    n->cordoned = state ? ask->state == NODE_CORDONED : n->cordoned;
    if (state)
        node_drain_end(c, n);
    node_write(c, n, n->state == NODE_DOWN ? NODE_DOWN : n->cordoned ? NODE_CORDONED : NODE_READY,
               !state ? "node.set" : n->cordoned ? "node.cordoned" : "node.ready");
    node_reply(c, n);
    return true;
}
