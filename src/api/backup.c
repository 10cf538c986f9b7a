/* backup.c - a backup over HTTP: the door says who may, an actor of its own prepares it, and it is sent as fast as
 * the client takes it. One at a time; the loop never waits for it. */
#include "api/api_internal.h"
#include "api/backup_make.h"
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 256 * 1024, IN_FLIGHT = 1 << 20 };

struct backups {
    struct api *api;
    char data[256], spool[300];
    struct store *store;
    struct actor *actor;
    struct sending *now;                /* the one that is under way */
};

struct sending {
    struct post post;                   /* of the step that is with the actor */
    struct backups *all;
    struct visit *visit;                /* NULL: the client has left */
    struct backup *backup;
    void (*done)(struct sending *s);    /* on the loop */
    struct str bytes;
    struct err err;
    bool busy, prepared, dropping, ok;
};

/* --- steps: one at a time, on the actor */

static void on_posts(void *arg, struct post *first)
{
    struct backups *all = arg;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        struct sending *s = CONTAINER(p, struct sending, post);
        if (s->dropping)
            backup_free(TAKE(s->backup));
        else if (!s->prepared)
            s->ok = s->prepared = backup_rows(s->backup, &s->err);
        else
            s->ok = backup_piece(s->backup, PIECE, &s->bytes, &s->err);
        os_post(all->api->os, p);
    }
}

static void let_go(struct sending *s);

static void step_done(void *arg, struct post *p)
{
    struct sending *s = CONTAINER(p, struct sending, post);
    (void)arg;
    s->busy = false;
    if (s->visit)
        s->done(s);
    else
        let_go(s);
}

static void step(struct sending *s, void (*done)(struct sending *s))
{
    s->busy = true;
    s->done = done;
    s->post = (struct post){ .fn = step_done };
    actor_post(s->all->actor, &s->post);
}

/* Nobody waits for it: its file is removed by the actor, then the memory goes. */
static void let_go(struct sending *s)
{
    struct api *a = s->all->api;
    if (!s->dropping)
        backup_stop(s->backup);
    if (s->busy)
        return;
    if (!s->dropping) {
        s->dropping = true;
        step(s, NULL);
        return;
    }
    s->all->now = NULL;
    str_done(&s->bytes);
    free(s);
    api_release(a);
}

static struct visit *leave(struct sending *s)
{
    struct visit *v = TAKE(s->visit);
    v->gone = NULL;
    v->drained = NULL;
    v->work = NULL;
    let_go(s);
    return v;
}

static void gone(struct visit *v)
{
    struct sending *s = v->work;
    s->visit = NULL;
    let_go(s);
}

static void fail(struct sending *s)
{
    struct err why = s->err;
    log_line(LOG_WARN, "api", "%s backup: %s", s->visit->from.request, why.text);
    struct visit *v = leave(s);
    if (v->begun)
        reply_cut(v);
    else
        reply_problem(v, &why);
}

/* --- out */

static void came(struct sending *s);

static void send_on(struct sending *s)
{
    if (!s->busy && http_waiting(s->visit->rq) <= IN_FLIGHT)
        step(s, came);
}

static void came(struct sending *s)
{
    if (!s->ok) {
        fail(s);
    } else if (s->bytes.len) {
        http_piece(s->visit->rq, s->bytes.at, s->bytes.len);
        str_clear(&s->bytes);
        send_on(s);
    } else {
        reply_done(leave(s));
    }
}

static void drained(struct visit *v)
{
    struct sending *s = v->work;
    if (v->begun)
        send_on(s);
}

static void prepared(struct sending *s)
{
    if (!s->ok) {
        fail(s);
        return;
    }
    if (backup_missing(s->backup))
        log_line(LOG_ERROR, "api", "%s backup: the files of %zu uploads are gone from the data folder",
                 s->visit->from.request, backup_missing(s->backup));
    reply_begin(s->visit, "application/x-tar", backup_size(s->backup), NULL);
    send_on(s);
}

static void answered(struct visit *v)
{
    struct backups *all = v->api->backups;
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
        return;
    }
    if (all->now) {
        reply_error(v, RC_CONFLICT, "another backup is being made at the moment; wait for its end");
        return;
    }
    struct sending *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->all = all;
    s->visit = v;
    s->backup = backup_new(v->api->os, all->store, all->data, all->spool, v->api->version);
    all->now = s;
    v->work = s;
    v->gone = gone;
    v->drained = drained;
    api_hold(v->api);
    visit_keep(v);
    step(s, prepared);
}

void backup_begin(struct visit *v) { visit_ask(v, VERB_BACKUP, v->body, answered); }

/* --- all of it */

bool backups_open(struct api *a, const char *data, struct store *store, struct backups **out,
                  struct err *err)
{
    struct backups *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->api = a;
    snprintf(b->data, sizeof b->data, "%s", data);
    snprintf(b->spool, sizeof b->spool, "%s/backup.part", data);
    if (!file_remove(a->os, b->spool, err)) {
        free(b);
        return err_wrap(err, "what an earlier backup left");
    }
    b->store = store;
    b->actor = actor_new(a->os, "backup", on_posts, b);
    *out = b;
    return true;
}

void backups_close(struct backups *b)
{
    if (!b)
        return;
    actor_stop(b->actor);
    free(b);
}
