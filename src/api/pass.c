/* pass.c - a server that does not write hands writes, and what needs a node's link, on to the one
 * that does.
 *
 * Nothing is done twice: a request is sent again only when it cannot have been taken (no
 * connection, or that server said 421), or when an Idempotency-Key makes a repeat harmless: who
 * sends none is given one here. Else its client is told that the outcome is not known. While nobody writes, it waits a little for
 * somebody to. The address of the client travels in a header that counts only with a MAC made from
 * the keys that the servers share; a request that was passed on is never passed on again. */
#include "api/api_internal.h"
#include "net/http_pass.h"
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 4000, COMING_MS = 12 * 1000, AGAIN_MS = 100, LATE_MS = 2000 };
enum {
    LOOK_MS = 100,              /* how often is looked whether the one that writes has answered, */
    PING_MS = 250,              /* how often it is asked, */
    PING_STUCK_MS = 600,        /* and when on a new connection */
    PING_LATE_MS = 950,         /* it has not answered for so long: it is taken from one that writes nothing, */
    PING_LOST_MS = 1500,        /* ... and from any */
    ASKED_MS = 10 * 1000,       /* so long ago somebody came with a wish for who writes */
    USURP_MS = 10 * 1000, USURP_MOST_MS = 10 * 60 * 1000,
    BLIND_MS = 600,
};

struct far {                            /* another server */
    struct far *next;
    char url[256];
    struct http_client *client;
    size_t users;                       /* passes that go there */
    struct http_call *ping;
    struct passer *passer;
    int64_t answered_ms, asked_ms;
};

struct pass {
    struct visit *visit;                /* NULL: a tunnel */
    struct api *api;
    struct pass *next, *prev;
    struct far *far;                    /* NULL: it waits */
    struct http_pass *on;
    struct timer *timer;
    int64_t until_ms;
    bool streamed;                      /* its body comes in pieces: it cannot be sent twice */
    bool whole;                         /* all of that has come */
    struct str early;                   /* what came of it while nobody wrote */
    bool repeats;                       /* it has an Idempotency-Key, or only reads */
    char key[48];                       /* the one we gave it; "": it has its own, or needs none */
};

struct passer {
    struct api *api;
    struct pass *all;
    struct far *fars;
    char *ca_pem;
    /* the one that writes, as seen from here */
    struct timer *timer;
    char url[256];
    int64_t looked_ms, usurped_ms, patience_ms;
    bool usurping;                      /* it was asked for, and may be refused */
    bool wrote;                         /* this one did, at the last turn */
    int64_t stood_ms;                   /* and does not since then */
    int64_t asked_ms, asked_far_ms;     /* when somebody last came who needs the one that writes; the same from another machine */
};

/* --- who asked, really */

static const char *mac_of(struct api *a, struct http_request *rq, const char *address, struct arena *mem,
                          char out[static DIGEST_HEX])
{
    control_mac(a->control, arena_printf(mem, "%s\n%s\n%s\n%s", address, http_method(rq), http_path(rq),
                                         http_query(rq)), out);
    return out;
}

const char *pass_address(struct api *a, struct http_request *rq, struct arena *mem, bool *passed)
{
    const char *h = http_header(rq, "arcus-passed"), *blank = h ? strchr(h, ' ') : NULL;
    char mac[DIGEST_HEX];
    *passed = false;
    if (!blank || blank - h > 45 || strlen(blank + 1) != DIGEST_HEX - 1)
        return http_peer(rq);
    const char *address = arena_bytes(mem, h, (size_t)(blank - h));
    mac_of(a, rq, address, mem, mac);
    *passed = digest_equal(mac, blank + 1);
    return *passed ? address : http_peer(rq);
}

/* --- the others */

static struct far *far_of(struct passer *ps, const char *url, struct err *err)
{
    for (struct far *f = ps->fars; f; f = f->next)
        if (text_is(f->url, url))
            return f;
    struct far *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    snprintf(f->url, sizeof f->url, "%s", url);
    f->passer = ps;
    f->answered_ms = os_boot_ms(ps->api->os);
    if (!http_client_new(ps->api->os, url, ps->ca_pem, NULL, NULL, &f->client, err)) {
        free(f);
        return NULL;
    }
    f->next = ps->fars;
    ps->fars = f;
    return f;
}

/* Those that nobody needs any more go. */
static void far_sweep(struct passer *ps, bool all)
{
    for (struct far **at = &ps->fars, *f; (f = *at);) {
        if (!all && (f->users || text_is(f->url, ps->url))) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        if (f->ping)
            http_call_cancel(f->ping);
        http_client_free(f->client);
        free(f);
    }
}

/* --- one of them */

static void pass_off(struct pass *p)            /* it is on its way no more */
{
    p->on = NULL;
    if (p->far)
        p->far->users--;
    p->far = NULL;
}

static struct visit *pass_free(struct pass *p)
{
    struct visit *v = p->visit;
    struct api *a = p->api;
    pass_off(p);
    timer_cancel(p->timer);
    if (p->next)
        p->next->prev = p->prev;
    *(p->prev ? &p->prev->next : &a->passer->all) = p->next;
    if (v)
        v->work = NULL, v->gone = NULL, v->drained = NULL;
    str_done(&p->early);
    free(p);
    api_release(a);
    return v;
}

static void pass_try(struct pass *p);
static void try_again(void *arg)
{
    struct pass *p = arg;
    p->timer = NULL;
    pass_try(p);
}

static void give_up(struct pass *p, const struct err *why)
{
    struct err copy = *why;
    copy.rc = RC_UNAVAILABLE;
    reply_problem(pass_free(p), &copy);
}

static void wait_for_writer(struct pass *p, const struct err *why)
{
    timer_cancel(p->timer);
    p->timer = NULL;
    if (os_boot_ms(p->api->os) >= p->until_ms + (control_coming(p->api->control) ? COMING_MS : 0)) {
        give_up(p, why);
        return;
    }
    p->timer = timer_start(p->api->os, AGAIN_MS, try_again, p);
}

static void on_failed(void *arg, const struct err *why, bool sent)
{
    struct pass *p = arg;
    struct err lost;
    pass_off(p);
    if (!p->streamed && (!sent || p->repeats)) {
        wait_for_writer(p, why);
        return;
    }
    err_set(&lost, RC_UNAVAILABLE, "the server that writes was lost%s; ask again with the same Idempotency-Key",
            sent ? " while this was asked of it, and whether it was done is not known" : "");
    give_up(p, &lost);
}

static bool on_head(void *arg, int status) { return (void)arg, status != 421; }

static void on_taken(void *arg)
{
    struct pass *p = arg;
    struct visit *v = TAKE(p->visit);
    v->work = NULL, v->gone = NULL, v->drained = NULL;
    v->rq = NULL;
    visit_end(v);
}

static void on_done(void *arg)
{
    struct visit *v = pass_free(arg);
    if (v)
        visit_end(v);
}

static void send_on(struct pass *p)
{
    static const struct http_pass_events events = { on_failed, on_head, on_taken, on_done };
    struct visit *v = p->visit;
    char mac[DIGEST_HEX];
    mac_of(p->api, v->rq, v->peer, v->mem, mac);
    struct http_header extra[] = {
        { "Arcus-Passed", arena_printf(v->mem, "%s %s", v->peer, mac) },
        { "Idempotency-Key", p->key },
    };
    p->far->users++;
    p->on = http_pass(p->far->client, v->rq, extra, p->key[0] ? 2 : 1, p->streamed, &events, p);
    if (!p->streamed)
        return;
    http_pause_body(v->rq, false);
    http_pass_body(p->on, p->early.at, p->early.len);
    str_done(&p->early);
    if (p->whole)
        http_pass_finish(p->on);
}

static void pass_try(struct pass *p)
{
    struct api *a = p->api;
    const char *url = control_writer(a->control);
    struct err why;
    if (control_writes(a->control) && !p->streamed) {
        visit_serve(pass_free(p));
        return;
    }
    if (control_writes(a->control)) {   /* what has come of it came for another */
        err_set(&why, RC_UNAVAILABLE, "this server has begun to write in the middle of this; ask again");
        give_up(p, &why);
        return;
    }
    if (!*url || text_is(url, control_address(a->control))) {
        err_set(&why, RC_UNAVAILABLE, "no server of this cloud writes at the moment; try again");
        wait_for_writer(p, &why);
    } else if ((p->far = far_of(a->passer, url, &why))) {
        send_on(p);
    } else {
        wait_for_writer(p, &why);
    }
}

static void gone(struct visit *v)
{
    struct pass *p = v->work;
    struct http_pass *on = p->on;
    pass_free(p);
    if (on)
        http_pass_stop(on, true);
}

static void drained(struct visit *v)
{
    struct pass *p = v->work;
    if (p->on)
        http_pass_drained(p->on);
}

/* What came while this server wrote says nothing about who reaches it now. */
void pass_needed(const struct visit *v)
{
    struct passer *ps = v->api->passer;
    bool near = text_starts(v->peer, "127.") || text_is(v->peer, "::1") || text_is(v->peer, "unix");
    ps->asked_ms = MAX(ps->asked_ms, v->began_ms);
    ps->asked_far_ms = near ? ps->asked_far_ms : MAX(ps->asked_far_ms, v->began_ms);
}

static struct pass *pass_new(struct visit *v)
{
    struct api *a = v->api;
    struct pass *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct pass){ .visit = v, .api = a, .next = a->passer->all,
                        .until_ms = os_boot_ms(a->os) + WAIT_MS };
    bool remembered = v->verb->kind == VERB_WRITE && v->verb->roles;    /* by who sends it */
    p->repeats = remembered || v->verb->kind == VERB_ASK || text_is(http_method(v->rq), "GET");
    if (remembered && !http_header(v->rq, "idempotency-key"))
        snprintf(p->key, sizeof p->key, "passed-%016llx%016llx", (unsigned long long)rng_next(&a->ids),
                 (unsigned long long)rng_next(&a->ids));
    if (p->next)
        p->next->prev = p;
    a->passer->all = p;
    pass_needed(v);
    v->work = p;
    v->gone = gone;
    v->drained = drained;
    api_hold(a);
    return p;
}

/* --- what comes in */

bool pass_wanted(const struct visit *v)
{
    enum verb_kind kind = v->verb->kind;
    return (kind == VERB_WRITE || kind == VERB_ASK || kind == VERB_STREAM) && v->verb_id != VERB_NODE_LINK
           && v->verb_id != VERB_NODE_STREAM && v->verb_id != VERB_BLOB_GET
           && !control_writes(v->api->control);
}

void pass_begin(struct visit *v)
{
    if (v->passed)                      /* by one who thought that we write */
        reply_not_writer(v);
    else
        pass_try(pass_new(v));
}

static bool on_chunk(void *arg, struct http_request *rq, const char *at, size_t n)
{
    struct visit *v = http_data(rq);
    struct pass *p = v ? v->work : NULL;
    (void)arg;
    if (p && p->on)
        http_pass_body(p->on, at, n);
    else if (p)
        str_put(&p->early, at, n);      /* no more than was read with the head: then it is paused */
    return true;
}

void pass_begin_stream(struct visit *v, size_t most)
{
    http_limit_body(v->rq, most);
    http_stream_body(v->rq, on_chunk);
    v->streams = v->passing = true;
    if (v->passed) {
        reply_not_writer(v);
        return;
    }
    struct pass *p = pass_new(v);
    p->streamed = true;
    http_pause_body(v->rq, true);
    pass_try(p);
}

void pass_whole(struct visit *v)
{
    struct pass *p = v->work;
    if (p && p->on)
        http_pass_finish(p->on);
    else if (p)
        p->whole = true;
}

/* The door says that it does not write any more: nothing was done. */
bool pass_instead(struct visit *v)
{
    if (!v->rq || v->begun || v->streams || v->work || (v->verb->kind != VERB_WRITE && v->verb->kind != VERB_ASK)
        || v->ask.verb != v->verb_id)
        return false;
    pass_begin(v);
    return true;
}

/* --- the one that writes: another, or out of reach */

static void usurped(struct passer *ps)
{
    if (ps->usurped_ms)
        ps->patience_ms = MIN(ps->patience_ms * 2, USURP_MOST_MS);
    ps->usurped_ms = os_boot_ms(ps->api->os);
    ps->usurping = false;
}

static void on_turn(void *arg)
{
    struct api *a = arg;
    struct passer *ps = a->passer;
    const char *url = control_writer(a->control);
    bool writes = control_writes(a->control), other = !text_is(url, ps->url) && (*url || writes);
    if (ps->usurping && writes)
        usurped(ps);
    if (ps->wrote && !writes)
        ps->stood_ms = os_boot_ms(a->os);
    ps->wrote = writes;
    if (other)
        snprintf(ps->url, sizeof ps->url, "%s", url);
    for (struct pass *p = ps->all, *next; p; p = next) {
        next = p->next;
        if (!p->on) {
            timer_cancel(TAKE(p->timer));
            pass_try(p);
        } else if (other && !text_is(p->far->url, url) && !http_pass_begun(p->on)) {
            struct http_pass *on = p->on;
            if (p->repeats && !p->streamed) {
                pass_off(p);
                http_pass_stop(on, false);
                pass_try(p);
            } else {
                http_pass_hurry(on, LATE_MS);
            }
        }
    }
    far_sweep(ps, false);
    links_turn(a);
}

/* What was passed on to a server that went without a word is cut: its client asks again. */
static void cut_all(struct passer *ps, const char *url)
{
    for (struct pass *p = ps->all, *next; p; p = next) {
        next = p->next;
        if (!p->on || !text_is(p->far->url, url) || !http_pass_begun(p->on))
            continue;
        struct http_pass *on = p->on;
        struct visit *v = pass_free(p);
        http_pass_stop(on, false);
        if (v)
            visit_end(v);
    }
}

static void pinged(void *arg, int status, struct slice body, const struct err *err)
{
    struct far *f = arg;
    (void)status, (void)body;
    f->ping = NULL;
    if (err)
        return;
    f->answered_ms = os_boot_ms(f->passer->api->os);
    if (!text_is(f->url, f->passer->url))
        return;
    f->passer->patience_ms = USURP_MS;  /* what was, is mended */
    f->passer->usurped_ms = 0;
    f->passer->usurping = false;
}

static bool lately(const struct passer *ps, int64_t asked_ms)
{
    return asked_ms > ps->stood_ms && os_boot_ms(ps->api->os) - asked_ms < ASKED_MS;
}

/* Clients behind us cannot reach it either. Each time that this did not help we wait longer, until it has answered again.
 * Nobody behind us: nobody is helped, and it may be us who are cut off from all but the store. So a server from which the lease was taken for
 * that reason does not take it back, unless somebody has come to it since.
 * PING_LATE_MS are two packets lost in a row, which TCP sends again after 200 and 400 ms, and another connection: one that writes nothing meanwhile is
 * reached by nobody. One that does write is reached by others, and then a bad link of ours alone is given time until PING_LOST_MS; and if all who came
 * to us are on our own machine, it is left alone. */
static void usurp(struct passer *ps, const struct far *f)
{
    int64_t now = os_boot_ms(ps->api->os);
    bool idle = now - f->answered_ms <= PING_LOST_MS || !lately(ps, ps->asked_far_ms);
    if (!text_is(f->url, control_writer(ps->api->control)) || !lately(ps, ps->asked_ms)
        || (ps->usurped_ms && now - ps->usurped_ms < ps->patience_ms))
        return;
    if (!idle || !ps->usurping)
        log_line(LOG_WARN, "api", "the server that writes, %s, is out of reach for %lld ms", f->url,
                 (long long)(now - f->answered_ms));
    ps->usurping = idle;
    if (!idle)
        usurped(ps);
    control_usurp(ps->api->control, idle);
}

static void ping(struct passer *ps, struct far *f)
{
    static const struct http_call_events events = { .on_end = pinged };
    int64_t now = os_boot_ms(ps->api->os), silent_ms = now - f->answered_ms;
    if (silent_ms > PING_LOST_MS)
        cut_all(ps, f->url);
    if (silent_ms > PING_LATE_MS && text_is(f->url, ps->url))
        usurp(ps, f);
    if (f->ping || now - f->asked_ms < PING_MS)
        return;
    f->asked_ms = now;
    f->ping = http_call(f->client, "GET", "/healthz", NULL, 0, (struct slice){ 0 }, 0, &events, f);
    http_call_timeout(f->ping, PING_STUCK_MS);
}

static void on_ping(void *arg)
{
    struct passer *ps = arg;
    struct err err;
    int64_t now = os_boot_ms(ps->api->os), before = ps->looked_ms;
    ps->timer = timer_start(ps->api->os, LOOK_MS, on_ping, ps);
    ps->looked_ms = now;
    far_sweep(ps, false);
    for (struct far *f = ps->fars; f && now - before > BLIND_MS; f = f->next)
        f->answered_ms = now;           /* it was us who did not listen */
    if (ps->url[0] && text_is(ps->url, control_writer(ps->api->control)))
        (void)far_of(ps, ps->url, &err);
    for (struct far *f = ps->fars; f; f = f->next)
        ping(ps, f);
}

/* --- all of it */

void pass_open(struct api *a, const char *ca_pem)
{
    struct passer *ps = calloc(1, sizeof *ps);
    if (!ps)
        abort();
    *ps = (struct passer){ .api = a, .patience_ms = USURP_MS, .wrote = control_writes(a->control) };
    ps->ca_pem = ca_pem ? strdup(ca_pem) : NULL;
    a->passer = ps;
    control_watch(a->control, on_turn, a);
    if (control_shared(a->control))
        ps->timer = timer_start(a->os, LOOK_MS, on_ping, ps);
}

const char *pass_ca(const struct api *a) { return a->passer->ca_pem; }

void pass_close(struct api *a)
{
    timer_cancel(TAKE(a->passer->timer));
    for (struct far *f = a->passer->fars; f; f = f->next)
        if (f->ping)
            http_call_cancel(TAKE(f->ping));
}

void pass_free_all(struct api *a)
{
    struct passer *ps = TAKE(a->passer);
    if (!ps)
        return;
    control_watch(a->control, NULL, NULL);
    timer_cancel(ps->timer);
    far_sweep(ps, true);
    free(ps->ca_pem);
    free(ps);
}
