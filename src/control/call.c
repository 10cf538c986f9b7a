/* call.c - the words of a verb: rows, events, news for the planner, replies. Texts are copied,
 * so that a verb may drop what it tells of. */
#include "control/idem.h"
#include <stdio.h>
#include <stdlib.h>

enum { REPLY_USUAL = 900 };

void emit(struct call *c, enum statement st, const struct value *args, int count)
{
    struct batch *b = c->batch;
    struct value *copy = ARENA_ARRAY(b->mem, struct value, (size_t)count);
    for (int i = 0; i < count; i++) {
        copy[i] = args[i];
        if (args[i].type == VALUE_TEXT || args[i].type == VALUE_BLOB)
            copy[i].text = arena_bytes(b->mem, args[i].text, args[i].len);
    }
    b->writes = arena_more(b->mem, b->writes, b->write_count, &b->write_room, sizeof *b->writes);
    b->writes[b->write_count++] = (struct write){ st, count, copy };
}

void emit_event(struct call *c, int64_t project, const char *kind, const char *subject,
                const char *data)
{
    struct batch *b = c->batch;
    char *idem = NULL;
    if (idem_key(c) && c->r->verb != VERB_JOB_SUBMIT
        && !c->idem_write) { /* the first event of a request carries it */
        idem = arena_printf(b->mem, "%s\n%.16s %lld %s", c->r->idem, c->r->body_hash,
                            (long long)c->who->project, verbs[c->r->verb].name);
        c->idem_write = b->write_count + 1;
        c->idem_event = b->event_count + 1;
    }
    struct event e = { .seq = ++c->s->last_event,
                       .at_ms = c->now_ms,
                       .project = project,
                       .kind = arena_text(b->mem, kind),
                       .subject = arena_text(b->mem, subject),
                       .actor = arena_text(b->mem, c->who->name),
                       .data = data ? arena_text(b->mem, data) : "{}" };
    b->events = arena_more(b->mem, b->events, b->event_count, &b->event_room, sizeof *b->events);
    b->events[b->event_count++] = e;
    if (!c->first_event)
        c->first_event = b->write_count + 1;
    EMIT(c, EVENT_ADD, V_INT(e.seq), V_INT(e.at_ms), V_INT(project), V_TEXT(e.kind),
         V_TEXT(e.subject), V_TEXT(c->who->name), V_INT(c->who->id), V_INT(c->who->key),
         V_TEXT(c->who->address), V_TEXT(c->who->request), V_TEXT(idem), V_TEXT(e.data), V_NULL,
         V_NULL, V_NULL, /* audit_seal fills these three */
         idem ? V_INT(idem_slot(c->control, c->r->idem, e.at_ms)) : V_NULL);
}

struct sched_event *emit_news(struct call *c, enum sched_kind kind)
{
    struct batch *b = c->batch;
    struct arena *mem = b->news_mem ? b->news_mem : b->mem;
    if (!b->news_room && b->news_first)
        b->news = ARENA_ARRAY(mem, struct sched_event, b->news_room = b->news_first);
    b->news = arena_more(mem, b->news, b->news_count, &b->news_room, sizeof *b->news);
    struct sched_event *e = &b->news[b->news_count++];
    e->kind = kind;             /* what an arena gives is zeroed */
    e->at_ms = c->now_ms;
    if (kind == SCHED_NODE) {
        e->gpus = ARENA_ARRAY(b->mem, struct sched_gpu, SCHED_GPUS);
        e->where = ARENA_ARRAY(b->mem, char, PLACE_ADDRESS);
    }
    if (kind == SCHED_RULES)
        e->rules.weight = ARENA_ARRAY(b->mem, int64_t, TERM_COUNT);
    if (kind == SCHED_TASK_HELD)
        e->held = ARENA_ARRAY(b->mem, struct sched_held, SCHED_GPUS);
    return e;
}

static void node_dirty(struct call *c, struct node *n)
{
    struct batch *b = c->batch;
    if (b->node_count && b->nodes[b->node_count - 1] == n->id)
        return;
    b->nodes = arena_more(b->mem, b->nodes, b->node_count, &b->node_room, sizeof *b->nodes);
    b->nodes[b->node_count++] = n->id;
}

void order_shorten(struct call *c, struct attempt *a)
{
    bool took = node_takes(a->node);
    attempt_begun(a);
    if (took != node_takes(a->node))
        sched_of_node(c->s, a->node, emit_news(c, SCHED_NODE));
}

void node_tell(struct call *c, struct node *n)
{
    n->tell = true;
    node_dirty(c, n);
}

void node_changed(struct call *c, struct node *n, struct attempt *a)
{
    map_put(n->changed, a->id, a);
    node_dirty(c, n);
}

void node_gone(struct call *c, struct node *n, int64_t attempt)
{
    int64_t *more = realloc(n->gone, (n->gone_count + 1) * sizeof *more);
    if (!more)
        abort();
    n->gone = more;
    n->gone[n->gone_count++] = attempt;
    node_dirty(c, n);
}

const char *id_of(struct call *c, const char *prefix, int64_t id)
{
    char *text = arena_take(c->mem, ID_TEXT, 1);
    return id_text(text, prefix, id);
}

int64_t new_id(struct call *c)
{
    return id_make(&c->s->ids, c->now_ms);
}

void reply_view(struct call *c, const struct fields *fields, const void *view)
{
    struct json_out out = { .to = &c->r->reply };
    str_clear(&c->r->reply);
    str_grow(&c->r->reply, REPLY_USUAL);        /* at once, and not by halves */
    bind_write(&out, fields, view);
}

struct list list_open(struct call *c)
{
    struct list l = { .out = { .to = &c->r->reply } };
    str_clear(&c->r->reply);
    json_open(&l.out, '{');
    json_key(&l.out, "items");
    json_open(&l.out, '[');
    return l;
}

void list_add(struct list *l, const struct fields *fields, const void *view)
{
    bind_write(&l->out, fields, view);
}

void list_close(struct list *l, const char *next)
{
    json_close(&l->out, ']');
    json_key(&l->out, "next");
    json_put_text(&l->out, next);
    json_close(&l->out, '}');
}

bool rows_of(struct call *c, enum statement st, const struct value *args, int count,
             struct rows *out, struct err *err)
{
    struct conn *conn;
    return call_conn(c, &conn, err) && store_query(conn, st, args, count, c->mem, out, err);
}

bool name_check(const char *name, const char *prefix, struct err *err)
{
    int64_t id;
    return !id_parse(name, prefix, &id)
           || err_field(err, "name", "'%s' reads as an id; choose another name", name);
}

/* Who carries no key (node.join) has no name to remember a wish by. */
const char *idem_key(struct call *c)
{
    return text_given(c->r->idem) && c->who->kind != PRINCIPAL_NONE
               ? arena_printf(c->mem, "%lld/%lld/%s", (long long)c->who->project,
                              (long long)c->who->id, c->r->idem)
               : NULL;
}

bool was_given(const struct call *c, const char *name)
{
    const struct fields *f = verbs[c->r->verb].takes;
    for (size_t i = 0; i < f->count; i++)
        if (text_is(f->rows[i].name, name))
            return c->r->given >> i & 1;
    return false;
}
