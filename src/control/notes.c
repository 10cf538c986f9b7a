/* notes.c - what belongs into the audit chain and left no event: refusals, repeats of what was done already, a shell opened in
 * a task. It is seen here on the loop as the answer goes out, which does not wait for it, and sent to the writer beside.
 *
 * The first of a caller, verb and result is sent at once; more of them within a minute are one row with their count. Who
 * comes from a thousand addresses fills no memory: beyond MOST kinds in a minute all others are counted together. What is
 * counted and not yet sent is lost if the server is killed, and sent when it is stopped. */
#include "control/audit.h"
#include "wire/utf8.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1024, READY_MOST = 4096, WINDOW_MS = 60 * 1000 };

struct tally { char key[160]; struct note note; int64_t began_ms; };
struct notes {
    struct map *tallies;        /* by key */
    struct note *ready;         /* to be sent */
    size_t ready_count, ready_room;
    struct request sent;        /* under way while sent.mem is there */
    size_t sent_count;
    struct request last;        /* when the server stops */
};

/* --- what is worth a note */

enum { LOOKS = 1 << RC_UNAUTHENTICATED | 1 << RC_DENIED | 1 << RC_NOT_FOUND | 1 << RC_OVER_QUOTA | 1 << RC_TOO_MANY,
       NEVER = 1 << RC_UNAVAILABLE | 1 << RC_INTERNAL | 1 << RC_TIMEOUT | 1 << RC_OK | 1 << RC_NOT_WRITER };     /* our own faults are no refusals */

static bool is_person(const struct caller *who)
{
    return who->kind == PRINCIPAL_USER || who->kind == PRINCIPAL_ACCOUNT;
}

static bool refusal_counts(const struct request *r)
{
    const struct verb *v = &verbs[r->verb];
    unsigned bit = 1u << r->err.rc;
    if (r->who.kind == PRINCIPAL_SYSTEM || (bit & NEVER))
        return false;
    if (v->method && text_is(v->method, "HEAD") && r->err.rc == RC_NOT_FOUND)
        return false;                   /* "is it there?" was answered, not refused */
    bool write = v->kind == VERB_WRITE || v->kind == VERB_INSIDE;
    return write && r->who.kind != PRINCIPAL_NODE ? true : (bit & LOOKS) != 0;
}

/* Acts without an event: who opens a shell, copies files or takes a backup, and what was asked for and changed nothing. */
static const char *act_result(const struct request *r)
{
    const struct verb *v = &verbs[r->verb];
    bool write = v->kind == VERB_WRITE || v->kind == VERB_INSIDE,
         enters = v->kind == VERB_STREAM && v->roles == DEVELOPERS && r->verb != VERB_BLOB_PUT; /* blob.add tells of that one */
    enters |= r->verb == VERB_BACKUP;
    if (r->audited || r->again || !(is_person(&r->who) || !v->roles) || !(write || enters))
        return NULL;
    return r->replayed ? "replayed" : "ok";
}

/* What the path names. The word of a stream is a secret, and only agents have one. */
static const char *subject_of(const struct request *r)
{
    const struct verb *v = &verbs[r->verb];
    if (r->subject || !r->body || !v->takes || v->roles == NODES)
        return r->subject ? r->subject : "";
    for (size_t i = 0; i < v->takes->count; i++) {
        const struct field *f = &v->takes->rows[i];
        const char *text = f->in_path && f->type == F_TEXT && !f->secret
                               ? *(const char *const *)((const char *)r->body + f->offset)
                               : NULL;
        if (text)
            return text;
    }
    return "";
}

/* --- sending */

static void send(struct control *c, struct request *r, size_t from,
                 void (*on_reply)(void *arg, struct request *r))
{
    struct notes *n = c->notes;
    *r = (struct request){ .verb = VERB_AUDIT_NOTE,
                           .who = system_caller,
                           .mem = arena_new(),
                           .on_reply = on_reply,
                           .arg = c };
    struct note_ask *ask = ARENA_NEW(r->mem, struct note_ask);
    ask->count = n->ready_count - from;
    ask->at = ARENA_ARRAY(r->mem, struct note, ask->count);
    memcpy(ask->at, n->ready + from, ask->count * sizeof *ask->at);
    r->body = ask;
    control_ask(c, r);
}

static void note_sent(void *arg, struct request *r);

static void send_ready(struct control *c)
{
    struct notes *n = c->notes;
    if (n->sent.mem || !n->ready_count || !c->open)
        return;
    n->sent_count = n->ready_count;
    send(c, &n->sent, 0, note_sent);
}

/* What the store did not take is tried again with the next tick. */
static void note_sent(void *arg, struct request *r)
{
    struct control *c = arg;
    struct notes *n = c->notes;
    bool ok = r->ok;
    arena_free(r->mem);
    str_done(&r->reply);
    r->mem = NULL;
    if (!ok)
        return;
    n->ready_count -= n->sent_count;
    memmove(n->ready, n->ready + n->sent_count, n->ready_count * sizeof *n->ready);
    send_ready(c);
}

static bool make_ready(struct notes *n, const struct note *note)
{
    if (n->ready_count == READY_MOST)
        return false;
    if (n->ready_count == n->ready_room) {
        n->ready_room = n->ready_room ? n->ready_room * 2 : 16;
        n->ready = realloc(n->ready, n->ready_room * sizeof *n->ready);
        if (!n->ready)
            abort();
    }
    n->ready[n->ready_count++] = *note;
    return true;
}

/* --- counting */

static struct tally *tally_of(struct control *c, const char *key, const struct note *note)
{
    struct notes *n = c->notes;
    struct tally *t = map_get_text(n->tallies, key);
    if (t)
        return t;
    if (!(t = calloc(1, sizeof *t)))
        abort();
    snprintf(t->key, sizeof t->key, "%s", key);
    t->note = *note;
    t->note.times = 0;
    t->began_ms = os_boot_ms(c->os);
    map_put_text(n->tallies, t->key, t);
    return t;
}

static void count(struct control *c, const struct note *note)
{
    struct notes *n = c->notes;
    char key[160];
    if (note->key || note->actor_id)
        snprintf(key, sizeof key, "%lld/%lld %s %s", (long long)note->actor_id, (long long)note->key,
                 note->verb, note->result);
    else
        snprintf(key, sizeof key, "%s %s %s", note->address, note->verb, note->result);
    struct tally *t = map_get_text(n->tallies, key);
    if (t) {
        t->note.times++;
        return;
    }
    if (map_count(n->tallies) < MOST && make_ready(n, note)) {
        tally_of(c, key, note);
        send_ready(c);
        return;
    }
    struct note many = { .at_ms = note->at_ms, .verb = "many", .result = note->result, .address = "many" };
    snprintf(key, sizeof key, "many %s", note->result);
    tally_of(c, key, &many)->note.times++;
}

static void tallies_settle(struct control *c, bool all)
{
    struct notes *n = c->notes;
    int64_t now = os_boot_ms(c->os);
    struct tally *t;
    for (size_t i = 0; (t = map_next(n->tallies, &i));) {
        if (!all && now - t->began_ms < WINDOW_MS)
            continue;
        t->note.at_ms = os_wall_ms(c->os);
        if (t->note.times && !make_ready(n, &t->note))
            continue;                   /* no room: it goes on counting */
        map_take_text(n->tallies, t->key);
        free(t);
    }
}

/* --- what comes in */

/* A text that was cut to fit may end in the middle of a character. */
static void cut_whole(char *text)
{
    size_t n = strlen(text), i = 0;
    for (size_t step; i < n && (step = utf8_len(text + i, n - i)); i += step)
        ;
    text[i] = 0;
}

static void note_it(struct control *c, const char *verb, const struct credential *from,
                    const struct caller *who, const char *subject, const char *result)
{
    struct note note = { .at_ms = os_wall_ms(c->os),
                         .project = who->project,
                         .actor_id = who->id,
                         .key = who->key,
                         .times = 1,
                         .verb = verb,
                         .result = result };
    const char *address = text_given(from->address) ? from->address : who->address,
               *request = text_given(from->request) ? from->request : who->request;
    snprintf(note.subject, sizeof note.subject, "%s", subject);
    snprintf(note.actor, sizeof note.actor, "%s", who->name);
    snprintf(note.address, sizeof note.address, "%s", address);
    snprintf(note.request, sizeof note.request, "%s", request);
    cut_whole(note.subject);
    count(c, &note);
}

void notes_take(struct control *c, struct request *r)
{
    const char *result = r->ok                 ? act_result(r)
                         : refusal_counts(r) ? rc_name(r->err.rc)
                                             : NULL;
    if (!result || !c->notes)
        return;
    note_it(c, r->about ? r->about->name : verbs[r->verb].name, &r->from, &r->who, subject_of(r), result);
    r->audited = true;
}

void control_refused(struct control *c, const char *verb, const struct credential *from,
                     const struct caller *who, enum rc rc)
{
    note_it(c, verb, from, who, "", rc_name(rc));
}

void notes_tick(struct control *c)
{
    tallies_settle(c, false);
    send_ready(c);
}

static void last_sent(void *arg, struct request *r)
{
    (void)arg;
    arena_free(TAKE(r->mem));
    str_done(&r->reply);
}

void notes_last(struct control *c)
{
    struct notes *n = c->notes;
    if (!n || !c->open)
        return;
    tallies_settle(c, true);
    size_t from = n->sent.mem ? n->sent_count : 0;
    if (n->ready_count > from)
        send(c, &n->last, from, last_sent);
}

void notes_open(struct control *c)
{
    if (!(c->notes = calloc(1, sizeof *c->notes)))
        abort();
    c->notes->tallies = map_new();
}

void notes_close(struct control *c)
{
    struct notes *n = c->notes;
    struct tally *t;
    if (!n)
        return;
    for (size_t i = 0; (t = map_next(n->tallies, &i));)
        free(t);
    map_free(n->tallies);
    arena_free(n->sent.mem); /* there where the machine stopped with them under way */
    arena_free(n->last.mem);
    free(n->ready);
    free(TAKE(c->notes));
}
