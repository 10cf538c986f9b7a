/* idem.c - Idempotency-Keys: what was asked with one is not done again for a day.
 *
 * Memory holds the newest of them; all are in the store, in the row of the job or of the event that
 * they brought, under a slot: the day and 40 bits of a keyed hash of the key, so that those of a day lie
 * together and nobody can make many meet. While memory does not hold all, a reader looks a key up
 * before the writer gets the request. What has left memory since that look is looked up by the writer:
 * state->idems_from, the number of the last event whose key may be gone from memory, tells. */
#include "control/idem.h"
#include <stdio.h>
#include <stdlib.h>

enum { SLOT_HEX = 10 };
static const int64_t day_ms = INT64_C(24) * 3600 * 1000;

static int64_t slot_in(const struct control *c, const char *key, int64_t day)
{
    AUTO(str_done) struct str text = { 0 };
    char hex[MAC_HEX];
    str_printf(&text, "idempotency\n%s", key);
    digest_mac(control_keys(c)->hash, text.at, text.len, hex);
    hex[SLOT_HEX] = 0;
    return day << (4 * SLOT_HEX) | (int64_t)strtoull(hex, NULL, 16);
}

int64_t idem_slot(const struct control *c, const char *key, int64_t at_ms)
{
    return slot_in(c, key, at_ms / day_ms);
}

/* Tomorrow too: the clock may have been ahead. */
bool idem_look(struct control *c, struct conn *conn, struct request *r, struct err *err)
{
    int64_t today = os_wall_ms(c->os) / day_ms;
    struct value slots[] = { V_INT(slot_in(c, r->idem, today - 1)), V_INT(slot_in(c, r->idem, today)),
                             V_INT(slot_in(c, r->idem, today + 1)) };
    return store_query(conn, ST_IDEM_LOOK, slots, COUNT(slots), r->mem, &r->looked, err);
}

/* A job's row keeps KEY, a line end and 16 digits of the body's hash; an event's has the caller's
 * project and the verb behind them, and the reply as its data. */
bool idem_read(const struct rows *r, size_t row, struct arena *mem, struct idem *out)
{
    bool of_job = row_int(r, row, 0) == 1;
    const char *text = row_text(r, row, 4), *cut = strrchr(text, '\n');
    char verb[64] = "";
    long long project = row_int(r, row, 2);
    if (!cut)
        return false;
    *out = (struct idem){ .verb = VERB_JOB_SUBMIT, .at_ms = row_int(r, row, 6) };
    if (of_job)
        out->job = row_int(r, row, 1);
    else if (sscanf(cut + 1, "%*16s %lld %63s", &project, verb) != 2 || !verb_find(verb))
        return false;
    if (!of_job) {
        out->verb = (enum verb_id)(verb_find(verb) - verbs);
        out->reply = (char *)row_text(r, row, 5);
    }
    snprintf(out->body, sizeof out->body, "%.16s", cut + 1);
    out->key = arena_printf(mem, "%lld/%lld/%.*s", project, (long long)row_int(r, row, 3),
                            (int)(cut - text), text);
    return true;
}

bool idem_find(struct call *c, const char *key, struct idem **out, struct err *err)
{
    struct request *r = c->r;
    struct idem *i = map_get_text(c->s->idems, key);
    *out = i;
    if (i || !c->s->idems_from)
        return true;
    struct conn *conn;
    if (r->looked_seq < c->s->idems_from && (!call_conn(c, &conn, err) || !idem_look(c->control, conn, r, err)))
        return false;
    i = ARENA_NEW(c->mem, struct idem);
    for (size_t row = 0; row < r->looked.count; row++)
        if (idem_read(&r->looked, row, c->mem, i) && text_is(i->key, key)
            && i->at_ms > c->now_ms - IDEM_DAYS * day_ms)
            return *out = i, true;
    return true;
}

void idem_keep(struct call *c, const char *key, int64_t job, const char *reply)
{
    struct idem like = { .key = (char *)key, .verb = c->r->verb, .job = job, .at_ms = c->now_ms,
                         .reply = (char *)reply };
    snprintf(like.body, sizeof like.body, "%.16s", c->r->body_hash);
    state_idem_add(c->s, &like);
    c->control->looks = c->s->idems_from;
}

/* --- in memory */
static void weigh(struct state *s, const struct idem *i, int sign)
{
    size_t bytes = sizeof *i + strlen(i->key) + (i->reply ? strlen(i->reply) : 0);
    if (i->bare)
        return;
    s->idem_count += (size_t)sign;
    s->idem_bytes += (size_t)sign * bytes;
}

static void idem_free(struct state *s, struct idem *i)
{
    weigh(s, i, -1);
    free(i->key);
    free(i->reply);
    free(i);
}

/* The oldest of them go, a quarter at a time. What an older program wrote is not found in the store by its key: it
 * stays, and counts for nothing here. */
static void evict(struct state *s)
{
    size_t most = s->idem_most - s->idem_most / 4, bytes = IDEM_BYTES - IDEM_BYTES / 4;
    struct idem *i;
    for (size_t at = 0; (s->idem_count > most || s->idem_bytes > bytes)
                        && (i = map_next(s->idems, &at));) {
        if (i->bare)
            continue;
        s->idems_from = MAX(s->idems_from, i->seq);
        s->idems_ms = MAX(s->idems_ms, i->at_ms);
        idem_free(s, map_take_text(s->idems, i->key));
    }
}

void state_idem_add(struct state *s, const struct idem *like)
{
    struct idem *i = map_take_text(s->idems, like->key);
    if (i)
        idem_free(s, i);
    i = malloc(sizeof *i);
    if (!i)
        abort();
    *i = *like;
    i->seq = MAX(1, s->last_event);
    i->key = strdup(like->key);
    i->reply = like->reply ? strdup(like->reply) : NULL;
    if (!i->key || (like->reply && !i->reply))
        abort();
    weigh(s, i, 1);
    map_put_text(s->idems, i->key, i);
    if (s->idem_count > s->idem_most || s->idem_bytes > IDEM_BYTES)
        evict(s);
}

void state_prune(struct state *s, int64_t now_ms)
{
    const int64_t hour_ms = 3600 * 1000, oldest = now_ms - IDEM_DAYS * day_ms;
    struct idem *i;
    if (now_ms >= s->pruned_ms && now_ms < s->pruned_ms + hour_ms)
        return;
    s->pruned_ms = now_ms;
    for (size_t at = 0; (i = map_next(s->idems, &at));)
        if (i->at_ms <= oldest)
            idem_free(s, map_take_text(s->idems, i->key));
    if (s->idems_ms <= oldest)
        s->idems_from = 0;
}

void state_idems_free(struct state *s)
{
    struct idem *i;
    for (size_t at = 0; (i = map_next(s->idems, &at));)
        idem_free(s, i);
    map_free(s->idems);
}
