/* retain.c - what is older than it is to be kept goes, in small steps: each is one commit of a bounded number of rows among the writer's
 * others, so that nobody waits longer for it than for any commit, and a step that fails or dies leaves all or nothing of itself.
 *
 * Finished jobs and events are dropped, uploads that nobody has used for as long as jobs are kept, and join tokens that were used or no longer good a day ago. What is never dropped, audit and usage, goes to a segment of the archive in the same
 * transaction that takes it out of its table. The slow one looks for what is old; the writer only writes. */
#include "control/retain.h"
#include "base/log.h"
#include <stdlib.h>

enum { STEP = 300, BLOBS = 50, SOON_MS = 50, LATER_MS = 60 * 1000, FIRST_MS = 5 * 1000 };
static const int64_t day_s = 24 * 3600;

/* --- what a step is about to do */

enum drop_kind { DROP_JOBS, DROP_BLOBS, DROP_EVENTS, DROP_USAGE, ROLL_USAGE, TAKE_NOTES, DROP_TOKENS, DROP_KINDS };
struct drop_job { int64_t job, upto; bool whole; };
struct drop_blob { int64_t project; const char *digest; bool used; };
struct drop_token { int64_t id; const char *hash; };
struct drop_ask {
    enum drop_kind kind;
    bool more;                  /* it was as much as a step may be: there is likely more */
    struct drop_job *jobs;
    size_t job_count;
    struct drop_blob *blobs;
    size_t blob_count;
    int64_t blobs_before;       /* not used since */
    int64_t event_upto, note_upto;
    struct segment segment;     /* kind NULL: none */
    int64_t *attempts;
    struct interval *intervals;
    size_t attempt_count;
    struct note *notes;         /* of the inbox */
    int64_t *note_ids;
    size_t note_count;
    struct drop_token *tokens;
    size_t token_count;
};

/* Idempotency-Keys live for a day, in rows of jobs and events. */
static int64_t cutoff(const struct call *c, int64_t keep_s)
{
    return keep_s ? c->now_ms - MAX(keep_s, IDEM_DAYS * day_s + 3600) * 1000 : 0;
}

static bool old_jobs(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows jobs, tasks;
    int64_t before = cutoff(c, control_settings(c->control)->keep_jobs_s), left = STEP;
    if (!before)
        return true;
    if (!ROWS(c, OLD_JOBS, &jobs, err, V_INT(before), V_INT(STEP)))
        return false;
    d->jobs = ARENA_ARRAY(c->mem, struct drop_job, jobs.count);
    d->more = jobs.count == STEP;
    for (size_t i = 0; i < jobs.count && left > 0; i++) {
        struct drop_job *j = &d->jobs[d->job_count++];
        *j = (struct drop_job){ row_int(&jobs, i, 0), INT64_MAX, true };
        if (!ROWS(c, OLD_TASKS, &tasks, err, V_INT(j->job), V_INT(left)))
            return false;
        if ((int64_t)tasks.count == left) {
            j->upto = row_int(&tasks, tasks.count - 1, 0);
            j->whole = false;
            d->more = true;
        }
        left -= (int64_t)tasks.count + 1;
    }
    d->more = d->more || d->job_count < jobs.count;
    return true;
}

static bool old_blobs(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r;
    d->blobs_before = cutoff(c, control_settings(c->control)->keep_jobs_s);
    if (!d->blobs_before)
        return true;
    if (!ROWS(c, OLD_BLOBS, &r, err, V_INT(d->blobs_before), V_INT(BLOBS)))
        return false;
    d->blobs = ARENA_ARRAY(c->mem, struct drop_blob, r.count);
    d->more = r.count == BLOBS;
    for (; d->blob_count < r.count; d->blob_count++)
        d->blobs[d->blob_count] = (struct drop_blob){ row_int(&r, d->blob_count, 0), row_text(&r, d->blob_count, 1), false };
    return true;
}

/* The lines and borders of a segment of audit rows. Numbers go on from the segment before. */
static bool audit_segment(struct call *c, struct drop_ask *d, int64_t first, int64_t last, struct err *err)
{
    struct rows r;
    AUTO(str_done) struct str lines = { 0 };
    if (!ROWS(c, AUDIT_RANGE, &r, err, V_INT(first), V_INT(last)))
        return false;
    if (!r.count)
        return true;            /* somebody has removed them; what is left of the numbers tells */
    struct segment *s = &d->segment;
    *s = (struct segment){ .kind = ARCHIVE_AUDIT, .first = first, .last = last, .from_ms = INT64_MAX, .entries = (int64_t)r.count };
    for (size_t i = 0; i < r.count; i++) {
        struct audit_row row;
        audit_row_read(&r, i, &row);
        audit_line(&lines, &row);
        s->from_ms = MIN(s->from_ms, row.at_ms), s->to_ms = MAX(s->to_ms, row.at_ms);
    }
    s->lines = arena_text(c->mem, lines.at);
    d->note_upto = last;
    return archive_next(c, s, err);
}

/* Notes that are old and have no event behind them that would take them along. */
static bool old_notes(struct call *c, struct drop_ask *d, int64_t first, int64_t before, struct err *err)
{
    struct rows r;
    int64_t last = 0;
    if (!ROWS(c, AUDIT_RANGE, &r, err, V_INT(first), V_INT(first + STEP - 1)))
        return false;
    for (size_t i = 0; i < r.count && !row_int(&r, i, 1) && row_int(&r, i, 2) < before; i++)
        last = row_int(&r, i, 0);
    d->more = last == first + STEP - 1;
    return !last || audit_segment(c, d, first, last, err);
}

/* The newest event always stays: the numbers go on from it. */
static bool old_events(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r, archived;
    int64_t before = cutoff(c, control_settings(c->control)->keep_events_s), audit = 0;
    if (!before)
        return true;
    if (!ROWS(c, OLD_EVENTS, &r, err, V_INT(STEP + 1)) || !ROWS(c, ARCHIVE_LAST, &archived, err, V_TEXT(ARCHIVE_AUDIT)))
        return false;
    int64_t first = archived.count ? row_int(&archived, 0, 1) + 1 : 1, most = first + ARCHIVE_ROWS_MOST - 1;
    size_t n = 0;
    for (; n + 1 < r.count && row_int(&r, n, 1) < before; n++) {
        if (row_int(&r, n, 2) > most)
            break;              /* so many notes between: the next segment takes on */
        audit = MAX(audit, row_int(&r, n, 2));
        d->event_upto = row_int(&r, n, 0);
    }
    d->more = n == STEP;
    if (!audit && !n && r.count && row_int(&r, 0, 2) > most)
        return d->more = true, audit_segment(c, d, first, most, err);
    return audit >= first ? audit_segment(c, d, first, audit, err) : n ? true : old_notes(c, d, first, before, err);
}

void usage_line_write(struct str *out, const struct rows *r, size_t row)
{
    struct json_out o = { .to = out };
    json_open(&o, '[');
    for (int i = 0; i < r->columns; i++)
        if (i == 6)
            json_put_text(&o, row_text(r, row, i));
        else
            json_put_int(&o, row_int(r, row, i));
    json_close(&o, ']');
    str_char(out, '\n');
}

static bool old_usage(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r;
    AUTO(str_done) struct str lines = { 0 };
    int64_t before = cutoff(c, control_settings(c->control)->keep_usage_s);
    if (!before)
        return true;
    if (!ROWS(c, OLD_USAGE, &r, err, V_INT(before), V_INT(STEP)))
        return false;
    if (!r.count)
        return true;
    struct segment *s = &d->segment;
    *s = (struct segment){ .kind = ARCHIVE_USAGE, .from_ms = INT64_MAX, .entries = (int64_t)r.count };
    d->attempts = ARENA_ARRAY(c->mem, int64_t, r.count);
    d->more = r.count == STEP;
    for (size_t i = 0; i < r.count; i++) {
        d->attempts[d->attempt_count++] = row_int(&r, i, 0);
        usage_line_write(&lines, &r, i);
        s->from_ms = MIN(s->from_ms, row_int(&r, i, 11)), s->to_ms = MAX(s->to_ms, row_int(&r, i, 12));
    }
    s->lines = arena_text(c->mem, lines.at);
    return archive_next(c, s, err);
}

/* Rows that a version before this one wrote: into the sums of their days. */
static bool loose_usage(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r;
    if (!ROWS(c, USAGE_UNROLLED, &r, err, V_INT(0)))
        return false;
    size_t n = MIN(r.count, STEP);
    d->attempts = ARENA_ARRAY(c->mem, int64_t, n);
    d->intervals = ARENA_ARRAY(c->mem, struct interval, n);
    d->more = n == STEP;
    for (; d->attempt_count < n; d->attempt_count++) {
        size_t i = d->attempt_count;
        d->attempts[i] = row_int(&r, i, 0);
        d->intervals[i] = usage_interval(&r, i);
    }
    return true;
}

/* Of servers that do not write. One that cannot be read is dropped: nobody of ours wrote it. */
static bool left_notes(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r;
    if (!ROWS(c, INBOX_LIST, &r, err, V_INT(STEP)))
        return false;
    d->notes = ARENA_ARRAY(c->mem, struct note, r.count);
    d->note_ids = ARENA_ARRAY(c->mem, int64_t, r.count);
    d->more = r.count == STEP;
    for (size_t i = 0; i < r.count; i++) {
        struct err damaged;
        d->note_ids[d->note_count] = row_int(&r, i, 0);
        if (!audit_note_read(row_text(&r, i, 1), c->mem, &d->notes[d->note_count++], &damaged))
            d->notes[d->note_count - 1].times = 0;
    }
    return true;
}

/* Whoever joined with one is known by its own key. */
static bool old_tokens(struct call *c, struct drop_ask *d, struct err *err)
{
    struct rows r;
    if (!ROWS(c, OLD_TOKENS, &r, err, V_INT(c->now_ms - day_s * 1000), V_INT(STEP)))
        return false;
    d->tokens = ARENA_ARRAY(c->mem, struct drop_token, r.count);
    d->more = r.count == STEP;
    for (; d->token_count < r.count; d->token_count++)
        d->tokens[d->token_count] = (struct drop_token){ row_int(&r, d->token_count, 0), row_text(&r, d->token_count, 1) };
    return true;
}

bool data_drop_prepare(struct call *c, const void *body, struct err *err)
{
    static bool (*const look[DROP_KINDS])(struct call *c, struct drop_ask *d, struct err *err)
        = { old_jobs, old_blobs, old_events, old_usage, loose_usage, left_notes, old_tokens };
    struct drop_ask *d = (struct drop_ask *)body;
    return look[d->kind](c, d, err);
}

static void mark_used(struct drop_ask *d, int64_t project, const char *digest)
{
    for (size_t i = 0; text_given(digest) && i < d->blob_count; i++)
        d->blobs[i].used |= d->blobs[i].project == project && text_is(d->blobs[i].digest, digest);
}

/* What an upload left behind nobody names any more: no job that lives, no image. What is in use is noted as such, so that it is not
 * looked at again for as long. The files go when the event is heard (api/blobs.c). */
static bool drop_blobs(struct call *c, struct drop_ask *d, struct err *err)
{
    const struct job *j;
    const struct image *m;
    struct rows r;
    for (size_t i = 0; d->blob_count && (j = map_next(c->s->jobs, &i));)
        mark_used(d, j->project->id, j->spec.workdir);
    for (size_t i = 0; d->blob_count && (m = map_next(c->s->images, &i));)
        mark_used(d, m->project, m->digest);
    for (size_t i = 0; i < d->blob_count; i++) {
        const struct drop_blob *b = &d->blobs[i];
        if (b->used) {
            EMIT(c, BLOB_USED, V_INT(b->project), V_TEXT(b->digest), V_INT(c->now_ms));
            continue;
        }
        if (!ROWS(c, BLOB_OLD, &r, err, V_INT(b->project), V_TEXT(b->digest), V_INT(d->blobs_before)))
            return false;
        if (!r.count || emitted_blob(c, ST_BLOB_USED, b->project, b->digest))
            continue;                   /* somebody was faster */
        EMIT(c, BLOB_DROP, V_INT(b->project), V_TEXT(b->digest), V_INT(d->blobs_before));
        emit_event(c, b->project, "blob.dropped", b->digest, NULL);
    }
    return true;
}

bool data_drop(struct call *c, const void *body, struct err *err)
{
    struct drop_ask *d = (struct drop_ask *)body;
    if (!drop_blobs(c, d, err))
        return false;
    if (d->segment.kind)
        archive_add(c, &d->segment);
    for (size_t i = 0; i < d->job_count; i++) {
        EMIT(c, ATTEMPT_DROP, V_INT(d->jobs[i].job), V_INT(d->jobs[i].upto));
        EMIT(c, TASK_DROP, V_INT(d->jobs[i].job), V_INT(d->jobs[i].upto));
        if (d->jobs[i].whole)
            EMIT(c, JOB_DROP, V_INT(d->jobs[i].job));
    }
    if (d->event_upto)
        EMIT(c, EVENT_DROP, V_INT(d->event_upto));
    if (d->note_upto)
        EMIT(c, AUDIT_DROP, V_INT(d->note_upto));
    for (size_t i = 0; i < d->note_count; i++) {
        if (d->notes[i].times)
            audit_add_note(c, &d->notes[i]);
        EMIT(c, INBOX_DROP, V_INT(d->note_ids[i]));
    }
    for (size_t i = 0; i < d->token_count; i++) {
        map_take_text(c->s->tokens, d->tokens[i].hash);
        EMIT(c, TOKEN_DROP, V_INT(d->tokens[i].id));
    }
    for (size_t i = 0; i < d->attempt_count; i++)
        if (d->intervals) {
            usage_roll(c, &d->intervals[i]);
            EMIT(c, USAGE_ROLLED, V_INT(d->attempts[i]));
        } else {
            EMIT(c, USAGE_DROP, V_INT(d->attempts[i]));
        }
    return true;
}

/* --- the loop: one step at a time */

struct retain { struct request r; struct timer *timer; enum drop_kind kind; bool busy; };

static void step_done(void *arg, struct request *r);

static void step(void *arg)
{
    struct control *c = arg;
    struct retain *t = c->retain;
    t->timer = NULL;
    if (!c->writes) {
        t->timer = timer_start(c->os, LATER_MS, step, c);
        return;
    }
    t->r = (struct request){ .verb = VERB_DATA_DROP,
                             .who = system_caller,
                             .mem = arena_new(),
                             .on_reply = step_done,
                             .arg = c };
    struct drop_ask *d = ARENA_NEW(t->r.mem, struct drop_ask);
    d->kind = t->kind;
    t->r.body = d;
    control_ask(c, &t->r);
}

static void step_done(void *arg, struct request *r)
{
    struct control *c = arg;
    struct retain *t = c->retain;
    bool more = r->ok && ((const struct drop_ask *)r->body)->more;
    if (!r->ok && r->err.rc != RC_UNAVAILABLE && r->err.rc != RC_TOO_MANY && r->err.rc != RC_NOT_WRITER)
        log_line(LOG_WARN, "retain", "what is old cannot be dropped: %s", r->err.text);
    arena_free(TAKE(r->mem));
    str_done(&r->reply);
    t->busy |= more;
    if (!more)
        t->kind = (t->kind + 1) % DROP_KINDS;
    bool round = !more && t->kind == 0, rest = !r->ok || (round && !t->busy);
    if (round)
        t->busy = false;
    if (c->open)
        t->timer = timer_start(c->os, rest ? LATER_MS : SOON_MS, step, c);
}

void retain_open(struct control *c)
{
    if (!(c->retain = calloc(1, sizeof *c->retain)))
        abort();
    c->retain->timer = timer_start(c->os, FIRST_MS, step, c);
}

void retain_stop(struct control *c)
{
    if (c->retain)
        timer_cancel(TAKE(c->retain->timer));
}

void retain_close(struct control *c)
{
    if (c->retain)
        arena_free(c->retain->r.mem);   /* there where the machine stopped with a step under way */
    free(TAKE(c->retain));
}
