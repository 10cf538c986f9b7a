/* blobs.c - bytes by their digest: a work folder, an image archive. The HTTP side; the disk's is
 * blob_file.c, the store's (with several servers) blob_parts.c, on a few actors.
 *
 * An upload is let in by the door before its body is read, is read only as fast as the disk takes
 * it, and is told to the door (blob.add) once it is in its place: what the door does not know is
 * not there, whatever lies on the disk. */
#include "api/api_internal.h"
#include "api/blob_parts.h"
#include "model/view.h"
#include <stdio.h>
#include <stdlib.h>

enum { ACTORS = 2, PIECE = 256 * 1024, IN_FLIGHT = 1 << 20 };
static const size_t blob_most = (size_t)BLOB_MOST_GIB << 30;

struct blobs {
    struct api *api;
    char folder[256];
    struct transfer *uploads;       /* under way */
    struct lane { struct actor *actor; struct blob_lane parts; } lanes[ACTORS];   /* all that is done to one blob is done in order, on one */
};

struct transfer {
    struct transfer *next, **at;    /* of an upload, among those under way */
    struct visit *visit;            /* NULL: the client has left */
    struct api *api;
    struct lane *lane;
    struct blob_file file;          /* the actor's, while steps > 0; as are these: */
    int64_t project, part;
    bool part_whole, missing;
    size_t steps;                   /* with the actor */
    struct str waiting;             /* of an upload: came, but is not with the actor yet */
    size_t in_flight;
    bool open, whole, paused;
    bool dropped;                   /* the last step is with the actor */
};
struct step {
    struct post post;
    struct transfer *transfer;
    void (*run)(struct step *s);    /* on the actor */
    void (*done)(struct step *s);   /* on the loop */
    struct str bytes;
};

/* --- steps */

static void on_posts(void *arg, struct post *first)
{
    struct blobs *b = arg;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        struct step *s = CONTAINER(p, struct step, post);
        s->run(s);
        os_post(b->api->os, p);
    }
}

static void transfer_let_go(struct transfer *t);

static void step_done(void *arg, struct post *p)
{
    struct step *s = CONTAINER(p, struct step, post);
    struct transfer *t = s->transfer;
    (void)arg;
    t->steps--;
    if (t->visit)
        s->done(s);
    else
        transfer_let_go(t);
    str_done(&s->bytes);
    free(s);
}

static void post_step(struct transfer *t, void (*run)(struct step *s), void (*done)(struct step *s),
                      struct str bytes)
{
    struct step *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    *s = (struct step){ .post.fn = step_done, .transfer = t, .run = run, .done = done, .bytes = bytes };
    t->steps++;
    actor_post(t->lane->actor, &s->post);
}

static void run_drop(struct step *s) { blob_file_drop(&s->transfer->file); }

/* Nobody waits for it: the file is closed by the actor, then the memory goes. */
static void transfer_let_go(struct transfer *t)
{
    struct api *a = t->api;
    if (t->steps)
        return;
    if (!t->dropped && t->file.os) {
        t->dropped = true;
        post_step(t, run_drop, NULL, (struct str){ 0 });
        return;
    }
    if (t->at && (*t->at = t->next))
        t->next->at = t->at;
    str_done(&t->waiting);
    free(t);
    api_release(a);
}

static void gone(struct visit *v)
{
    struct transfer *t = v->work;
    t->visit = NULL;
    transfer_let_go(t);
}

static struct visit *let_go(struct transfer *t)     /* before the last reply */
{
    struct visit *v = t->visit;
    v->gone = NULL;
    v->drained = NULL;
    v->work = NULL;
    t->visit = NULL;
    transfer_let_go(t);
    return v;
}

static void fail(struct transfer *t, const struct err *why)
{
    struct err copy = *why;
    if (copy.rc >= RC_TIMEOUT)
        log_line(LOG_WARN, "api", "%s blob: %s", t->visit->from.request, copy.text);
    struct visit *v = let_go(t);
    if (v->begun)
        reply_cut(v);
    else
        reply_problem(v, &copy);
}

static struct transfer *transfer_new(struct visit *v)
{
    struct transfer *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    *t = (struct transfer){ .visit = v, .api = v->api, .lane = v->api->blobs->lanes };
    v->work = t;
    v->gone = gone;
    api_hold(v->api);
    return t;
}

static struct lane *lane_of(struct blobs *b, const struct blob_file *f) { return &b->lanes[(unsigned char)f->hex[0] % ACTORS]; }

static bool name_file(struct transfer *t, struct err *err)
{
    struct visit *v = t->visit;
    const struct blob_ask *ask = v->body;
    struct where where;
    if (!where_read(v, &where, err))
        return false;
    t->project = where.project;
    return (where.project || err_set(err, RC_INTERNAL, "the door did not say whose blob it is"))
           && blob_file_name(&t->file, t->api->os, t->api->blobs->folder, where.project,
                             ask->digest, rng_next(&t->api->ids), err)
           && (t->lane = lane_of(t->api->blobs, &t->file));
}

/* --- up */

static void run_create(struct step *s) { blob_file_create(&s->transfer->file); }
static void run_add(struct step *s)
{
    blob_file_add(&s->transfer->file, (struct slice){ s->bytes.at, s->bytes.len });
}
static void run_finish(struct step *s) { blob_file_finish(&s->transfer->file); }

static void pause_body(struct transfer *t, bool paused)
{
    if (t->paused == paused || t->whole)
        return;
    t->paused = paused;
    http_pause_body(t->visit->rq, paused);
}

static void added(struct step *s)
{
    struct transfer *t = s->transfer;
    t->in_flight -= s->bytes.len;
    if (t->steps == 0 && t->file.failed)
        fail(t, &t->file.err);
    else if (t->in_flight < IN_FLIGHT / 2)
        pause_body(t, false);
}

static void run_keep(struct step *s)
{
    struct transfer *t = s->transfer;
    if (blob_part_keep(&t->lane->parts, &t->file, t->project, t->part, &t->part_whole))
        t->part++;
}

static void kept(struct step *s);

/* In its place, and synced. Where this server is one of several, that is not enough. */
static void finished(struct step *s)
{
    struct transfer *t = s->transfer;
    t->part_whole = !control_shared(t->api->control);
    kept(s);
}

static void kept(struct step *s)
{
    struct transfer *t = s->transfer;
    if (t->file.failed) {
        fail(t, &t->file.err);
        return;
    }
    if (!t->part_whole) {
        post_step(t, run_keep, kept, (struct str){ 0 });
        return;
    }
    struct visit *v = t->visit;
    struct blob_view *what = ARENA_NEW(v->mem, struct blob_view);
    what->id = what->name = arena_printf(v->mem, "sha256:%s", t->file.hex);
    what->size = t->file.size;
    visit_ask_inside(let_go(t), VERB_BLOB_ADD, what, reply_answer);
}

static void flush(struct transfer *t)
{
    if (!t->open)
        return;
    if (t->waiting.len >= PIECE || (t->whole && t->waiting.len)) {
        t->in_flight += t->waiting.len;
        post_step(t, run_add, added, t->waiting);
        t->waiting = (struct str){ 0 };
    }
    if (t->in_flight > IN_FLIGHT)
        pause_body(t, true);
    if (t->whole)
        post_step(t, run_finish, finished, (struct str){ 0 });
}

static bool on_chunk(void *arg, struct http_request *rq, const char *at, size_t n)
{
    struct visit *v = http_data(rq);
    struct transfer *t = v ? v->work : NULL;
    (void)arg;
    if (t) {
        str_put(&t->waiting, at, n);
        flush(t);
    }
    return true;
}

static void put_answered(struct visit *v)
{
    struct transfer *t = v->work;
    struct err why;
    if (!v->ask.ok) {
        fail(t, &v->ask.err);
        return;
    }
    if (!name_file(t, &why)) {
        fail(t, &why);
        return;
    }
    t->open = true;
    t->at = &t->api->blobs->uploads;
    if ((t->next = *t->at))
        t->next->at = &t->next;
    *t->at = t;
    post_step(t, run_create, added, (struct str){ 0 });
    flush(t);
    pause_body(t, false);
}

void blob_put_head(struct visit *v)
{
    http_limit_body(v->rq, blob_most);
    http_stream_body(v->rq, on_chunk);
    http_pause_body(v->rq, true);
    v->streams = true;
    if (v->bad.rc != RC_OK) {
        request_refuse(v);
        return;
    }
    transfer_new(v)->paused = true;
    visit_ask(v, VERB_BLOB_PUT, v->body, put_answered);
}

void blob_put_whole(struct visit *v)
{
    struct transfer *t = v->work;
    if (!t)
        return;                         /* it is being refused */
    t->whole = true;
    flush(t);
}

/* --- down */

static void run_open(struct step *s)
{
    struct transfer *t = s->transfer;
    t->missing = blob_file_missing(&t->file);
    if (!t->missing)
        blob_file_open(&t->file);
}

static void run_fetch(struct step *s)
{
    struct transfer *t = s->transfer;
    if (blob_part_fetch(&t->lane->parts, &t->file, t->project, t->part, &t->part_whole))
        t->part++;
}
static void run_read(struct step *s) { blob_file_read(&s->transfer->file, &s->bytes, PIECE); }
static void came(struct step *s);

static void read_on(struct transfer *t)
{
    if (t->steps || http_waiting(t->visit->rq) > IN_FLIGHT)
        return;
    if (t->file.at < t->file.size)
        post_step(t, run_read, came, (struct str){ 0 });
    else
        reply_done(let_go(t));
}

static void came(struct step *s)
{
    struct transfer *t = s->transfer;
    if (t->file.failed) {
        fail(t, &t->file.err);
        return;
    }
    http_piece(t->visit->rq, s->bytes.at, s->bytes.len);
    read_on(t);
}

static void opened(struct step *s);

static void fetched(struct step *s)
{
    struct transfer *t = s->transfer;
    if (t->file.failed)
        fail(t, &t->file.err);
    else if (t->part_whole)
        post_step(t, run_open, opened, (struct str){ 0 });
    else
        post_step(t, run_fetch, fetched, (struct str){ 0 });
}

static void opened(struct step *s)
{
    struct transfer *t = s->transfer;
    char etag[80];
    if (!t->file.failed && t->missing && !t->part) {
        post_step(t, run_fetch, fetched, (struct str){ 0 });
        return;
    }
    if (!t->file.failed && t->missing)
        t->file.failed = !err_set(&t->file.err, RC_INTERNAL, "the blob could not be kept on this server");
    if (t->file.failed) {
        fail(t, &t->file.err);
        return;
    }
    snprintf(etag, sizeof etag, "\"sha256:%s\"", t->file.hex);
    reply_begin(t->visit, "application/octet-stream", t->file.size, etag);
    read_on(t);
}

static void drained(struct visit *v)
{
    if (v->begun)
        read_on(v->work);
}

static void get_answered(struct visit *v)
{
    struct err why;
    if (!v->ask.ok) {
        reply_problem(v, &v->ask.err);
        return;
    }
    struct transfer *t = transfer_new(v);
    if (!name_file(t, &why)) {
        fail(t, &why);
        return;
    }
    v->drained = drained;
    post_step(t, run_open, opened, (struct str){ 0 });
}

void blob_get_begin(struct visit *v) { visit_ask(v, VERB_BLOB_GET, v->body, get_answered); }

/* --- away: the door has dropped it. Whoever uploads it at this moment puts it in its place anew, and later uploads come after this in
 * its lane; what another server has of it is no more than a copy. */

struct removal { struct step step; struct api *api; struct blob_file file; };

static void run_remove(struct step *s) { blob_file_remove(&CONTAINER(s, struct removal, step)->file); }

static void removed(void *arg, struct post *p)
{
    struct removal *r = CONTAINER(CONTAINER(p, struct step, post), struct removal, step);
    struct api *a = r->api;
    (void)arg;
    free(r);
    api_release(a);
}

static void blob_remove(struct api *a, const struct event *e)
{
    struct removal *r = calloc(1, sizeof *r);
    struct err err;
    if (!r)
        abort();
    bool busy = !blob_file_name(&r->file, a->os, a->blobs->folder, e->project, e->subject, 0, &err);
    for (const struct transfer *t = a->blobs->uploads; t && !busy; t = t->next)
        busy = text_is(t->file.path, r->file.path);
    if (busy) {
        free(r);
        return;
    }
    r->api = a;
    r->step = (struct step){ .post.fn = removed, .run = run_remove };
    api_hold(a);
    actor_post(lane_of(a->blobs, &r->file)->actor, &r->step.post);
}

void blobs_commit(struct api *a, const struct commit *k)
{
    for (size_t i = 0; i < k->event_count && !a->closing; i++)
        if (text_is(k->events[i].kind, "blob.dropped"))
            blob_remove(a, &k->events[i]);
}

/* --- all of them */

bool blobs_open(struct api *a, const char *data, struct store *store, struct blobs **out, struct err *err)
{
    struct blobs *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->api = a;
    if ((size_t)snprintf(b->folder, sizeof b->folder, "%s/blobs", data) >= sizeof b->folder) {
        free(b);
        return err_set(err, RC_BAD_INPUT, "the path of the data folder is too long");
    }
    if (!blob_file_sweep(a->os, b->folder, err)) {
        free(b);
        return err_wrap(err, "the folder of blobs");
    }
    for (size_t i = 0; i < ACTORS; i++)
        b->lanes[i] = (struct lane){ actor_new(a->os, "blobs", on_posts, b), { .store = store } };
    *out = b;
    return true;
}

void blobs_close(struct blobs *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < ACTORS; i++)
        actor_stop(b->lanes[i].actor), blob_lane_close(&b->lanes[i].parts);
    free(b);
}
