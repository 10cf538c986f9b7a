/* reserve.c - capacity that is promised to a project for a time: `count` places of one shape, each on one node. The planner keeps them
 * free for the project's jobs from their beginning on, and lends them to spot work while nobody is there (sched/).
 *
 * A promise is made only if it can be kept: it is tried on a picture of the whole fleet with what is promised already and nothing else. What
 * runs there now is no obstacle: it ends before, or yields if it is spot work. */
#include "control/call.h"
#include <stdio.h>

static const int64_t longest_ms = INT64_C(366) * 86400 * 1000;

static const char *word_of(int64_t from_ms, int64_t until_ms, int64_t now_ms)
{
    return now_ms < from_ms ? "waiting" : now_ms < until_ms ? "active" : "over";
}

static void reply(struct call *c, const struct reservation *r, const char *state)
{
    struct reserve_view v = { .id = r->id,
                              .name = r->name,
                              .state = state ? state : word_of(r->from_ms, r->until_ms, c->now_ms),
                              .project = r->project->name,
                              .gpus = r->gpus,
                              .count = r->count,
                              .from_ms = r->from_ms,
                              .until_ms = r->until_ms,
                              .created_ms = r->created_ms };
    reply_view(c, &reserve_view_fields, &v);
}

/* How many of its places there are, whoever is there now. */
static int64_t could_have(struct call *c, const struct reservation *want)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct batch b = { .mem = arena_new() };
    struct call aside = { .s = c->s, .batch = &b, .now_ms = c->now_ms };
    struct node *n;
    struct reservation *other;
    for (size_t i = 0; (n = map_next(c->s->nodes, &i));) {
        struct sched_event *e = n->state == NODE_DOWN && n->lost ? NULL : emit_news(&aside, SCHED_NODE);
        if (!e)
            continue;
        sched_of_node(c->s, n, e);
        e->usable = n->drain == DRAIN_NONE; /* cordoned or silent for a while is no reason */
        sched_apply(s, e);
    }
    arena_free(b.mem);
    for (size_t i = 0; (other = map_next(c->s->reservations, &i));) {
        struct sched_event e = { 0 };
        if (other->until_ms <= want->from_ms || want->until_ms <= other->from_ms)
            continue;
        sched_of_reservation(other, &e);
        sched_apply(s, &e);
    }
    (void)sched_plan(s, c->now_ms, 1, c->mem); /* they get their places */
    struct sched_event e = { 0 };
    sched_of_reservation(want, &e);
    return sched_can_reserve(s, &e, c->now_ms);
}

static bool times_of(struct call *c, const struct reserve_ask *ask, int64_t *from, int64_t *until, struct err *err)
{
    *from = was_given(c, "from") ? ask->from_ms : c->now_ms;
    if (was_given(c, "until") == was_given(c, "duration"))
        return err_field(err, "until", "say until when, or for how long (duration): one of the two");
    *until = was_given(c, "until") ? ask->until_ms : *from + ask->duration_s * 1000;
    if (*until <= *from || *until <= c->now_ms)
        return err_field(err, was_given(c, "until") ? "until" : "duration", "it would be over before it begins, or is over already");
    if (*until - *from > longest_ms || *from - c->now_ms > longest_ms)
        return err_field(err, "from", "a reservation begins within a year and lasts a year at most");
    return true;
}

static void reservation_begin(struct call *c, struct reservation *r)
{
    r->begun = true;
    EMIT(c, RESERVE_BEGIN, V_INT(r->id));
    emit_event(c, r->project->id, "reservation.active", id_of(c, PREFIX_RESERVATION, r->id),
               arena_printf(c->mem, "{\"name\":\"%s\",\"until_ms\":%lld}", r->name, (long long)r->until_ms));
}

bool reserve_create(struct call *c, const void *body, struct err *err)
{
    const struct reserve_ask *ask = body;
    struct reservation r = { .count = ask->count, .created_ms = c->now_ms };
    struct reservation *other;
    if (!(r.project = state_project(c->s, ask->project)))
        return err_field(err, "project", "there is no project '%s'", ask->project);
    if (!reservation_shape(ask->gpus, &r.shape, err) || !times_of(c, ask, &r.from_ms, &r.until_ms, err))
        return false;
    if (!text_copy(r.gpus, sizeof r.gpus, ask->gpus))
        return err_field(err, "gpus", "this is too long");
    snprintf(r.name, sizeof r.name, "%s", text_given(ask->name) ? ask->name : "");
    if (r.name[0] && !name_check(r.name, PREFIX_RESERVATION, err))
        return false;
    for (size_t i = 0; r.name[0] && (other = map_next(c->s->reservations, &i));)
        if (text_is(other->name, r.name))
            return err_set(err, RC_CONFLICT, "the name '%s' is taken by another reservation", r.name);
    int64_t have = could_have(c, &r);
    if (have < r.count)
        return err_set(err, RC_CONFLICT,
                       have ? "only %lld of %lld places of %s can be had in that time: the fleet has no more, or they are promised to others (arcus reserve list)"
                            : "%lld of %lld places of %s can be had in that time: no node is like that, or all are promised to others (arcus reserve list)",
                       (long long)have, (long long)r.count, r.gpus);
    r.id = new_id(c);
    struct reservation *kept = ARENA_NEW(c->s->mem, struct reservation);
    *kept = r;
    if (!kept->name[0])
        snprintf(kept->name, sizeof kept->name, "%s", id_of(c, PREFIX_RESERVATION, r.id));
    map_put(c->s->reservations, kept->id, kept);
    EMIT(c, RESERVE_ADD, V_INT(kept->id), V_INT(kept->project->id), V_TEXT(kept->name), V_TEXT(kept->gpus), V_INT(kept->count),
         V_INT(kept->from_ms), V_INT(kept->until_ms), V_INT(kept->created_ms));
    emit_event(c, kept->project->id, "reservation.created", id_of(c, PREFIX_RESERVATION, kept->id),
               arena_printf(c->mem, "{\"name\":\"%s\",\"gpus\":\"%s\",\"count\":%lld,\"from_ms\":%lld,\"until_ms\":%lld}", kept->name, kept->gpus,
                            (long long)kept->count, (long long)kept->from_ms, (long long)kept->until_ms));
    if (kept->from_ms <= c->now_ms)
        reservation_begin(c, kept);
    sched_of_reservation(kept, emit_news(c, SCHED_RESERVE));
    reply(c, kept, NULL);
    return true;
}

static void reservation_end(struct call *c, struct reservation *r, const char *kind)
{
    EMIT(c, RESERVE_END, V_INT(r->id), V_INT(c->now_ms));
    emit_event(c, r->project->id, kind, id_of(c, PREFIX_RESERVATION, r->id), arena_printf(c->mem, "{\"name\":\"%s\"}", r->name));
    emit_news(c, SCHED_RESERVE_GONE)->reserve = r->id;
    map_take(c->s->reservations, r->id);
}

bool reserve_remove(struct call *c, const void *body, struct err *err)
{
    const struct reserve_ask *ask = body;
    struct reservation *r = state_reservation(c->s, ask->reservation);
    if (!r)
        return err_set(err, RC_NOT_FOUND, "there is no reservation '%s', or it is over", ask->reservation);
    reservation_end(c, r, "reservation.removed");
    reply(c, r, "removed");
    return true;
}

void reservations_tick(struct call *c)
{
    struct reservation *r;
    for (size_t i = 0; (r = map_next(c->s->reservations, &i));) {
        if (!r->begun && c->now_ms >= r->from_ms)
            reservation_begin(c, r);
        if (c->now_ms >= r->until_ms)
            reservation_end(c, r, "reservation.over");
    }
}

/* --- looking: a project sees its own, operators and auditors see all */

static void view_of(struct call *c, const struct rows *r, size_t i, struct reserve_view *v)
{
    int64_t ended_ms = row_int(r, i, 7);
    *v = (struct reserve_view){ .id = row_int(r, i, 0),
                                .name = row_text(r, i, 1),
                                .project = row_text(r, i, 2),
                                .gpus = row_text(r, i, 3),
                                .count = row_int(r, i, 4),
                                .from_ms = row_int(r, i, 5),
                                .until_ms = row_int(r, i, 6),
                                .created_ms = row_int(r, i, 8) };
    v->state = ended_ms && ended_ms < v->until_ms ? "removed" : word_of(v->from_ms, v->until_ms, ended_ms ? v->until_ms : c->now_ms);
}

static int64_t whose(const struct call *c)
{
    return c->who->roles & PLATFORM_ROLES ? 0 : c->who->project;
}

bool reserve_list(struct call *c, const void *body, struct err *err)
{
    const struct reserve_list_ask *ask = body;
    int64_t after = INT64_MAX;
    struct rows r;
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_RESERVATION, &after))
        return err_field(err, "page", "this is not the `next` of a page before");
    int64_t of = whose(c), most = ask->limit + 1;
    if (!(!ask->all ? ROWS(c, RESERVE_LIVE, &r, err, V_INT(of), V_INT(after), V_INT(most))
          : of      ? ROWS(c, RESERVE_OF, &r, err, V_INT(of), V_INT(after), V_INT(most))
                    : ROWS(c, RESERVE_ALL, &r, err, V_INT(after), V_INT(most))))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        struct reserve_view v;
        view_of(c, &r, i, &v);
        list_add(&l, &reserve_view_fields, &v);
    }
    list_close(&l, r.count > n ? id_of(c, PREFIX_RESERVATION, row_int(&r, n - 1, 0)) : NULL);
    return true;
}

bool reserve_get(struct call *c, const void *body, struct err *err)
{
    const struct reserve_ask *ask = body;
    int64_t id = 0;
    struct rows r;
    struct reserve_view v;
    (void)id_parse(ask->reservation, PREFIX_RESERVATION, &id);
    if (!ROWS(c, RESERVE_FIND, &r, err, V_INT(whose(c)), V_TEXT(ask->reservation), V_INT(id)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no reservation '%s'", ask->reservation);
    view_of(c, &r, 0, &v);
    reply_view(c, &reserve_view_fields, &v);
    return true;
}
