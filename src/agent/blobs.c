/* blobs.c - GET /v1/blobs/DIGEST into a file. The loop only passes pieces on; hashing and
 * writing are a workshop's work, and the server is made to wait while too many pieces are under
 * way. */
#include "agent/blobs.h"
#include "agent/heads.h"
#include "agent/image_manifest.h"
#include "agent/workshop.h"
#include "net/http.h"
#include "wire/digest.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNDERWAY_MAX = 4 << 20, STALL_MS = 60000, TRIES = 30, AGAIN_MS = 500 };

struct waiter {
    struct waiter *next;
    blob_fn *fn;
    void *arg;
};
struct blobs {
    struct os *os;
    struct heads *heads;
    struct workshop *shop;
    char *folder;
    struct fetch *fetches;
};
struct fetch {
    struct work end;
    struct fetch *next;
    struct blobs *blobs;
    struct waiter *waiters;
    struct http_call *call;
    struct timer *again;
    int tries;
    bool lost; /* the server went away, or does not serve at the moment */
    size_t underway; /* bytes at the workshop */
    bool ending;     /* `end` is at the workshop: it frees us if nobody is left to be told */
    char digest[80], path[4200], part[4200];
    int status;
    /* the workshop's */
    int fd;
    struct sha256 *hash;
    struct err err;
};
struct piece {
    struct work work;
    struct fetch *f;
    size_t n;
    char at[];
};

struct blobs *blobs_new(struct os *os, const char *folder, struct heads *heads)
{
    struct blobs *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    *b = (struct blobs){
        .os = os, .heads = heads, .folder = strdup(folder), .shop = workshop_new(os, "blobs")
    };
    return b;
}

static void fetch_free(struct fetch *f)
{
    char hex[DIGEST_HEX];
    if (f->hash)
        sha256_end(f->hash, hex);
    if (f->fd != -1)
        close(f->fd);
    for (struct waiter *w = f->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    free(f);
}

void blobs_free(struct blobs *b)
{
    if (!b)
        return;
    for (struct fetch *f = b->fetches; f; f = f->next) {
        if (f->call)
            http_call_cancel(f->call);
        timer_cancel(TAKE(f->again));
    }
    workshop_close(b->shop);
    for (struct fetch *f = b->fetches, *next; f; f = next) {
        next = f->next;
        if (!f->ending)
            fetch_free(f);
    }
    free(b->folder);
    free(b);
}

/* --- on the workshop's thread */

static void piece_write(struct work *w)
{
    struct piece *p = CONTAINER(w, struct piece, work);
    struct fetch *f = p->f;
    if (f->err.rc)
        return;
    sha256_add(f->hash, p->at, p->n);
    for (size_t done = 0; done < p->n;) {
        ssize_t n = write(f->fd, p->at + done, p->n - done);
        if (n <= 0) {
            err_errno(&f->err, "cannot write %s", f->part);
            return;
        }
        done += (size_t)n;
    }
}

static void end_write(struct work *w)
{
    struct fetch *f = CONTAINER(w, struct fetch, end);
    char hex[DIGEST_HEX] = "";
    sha256_end(TAKE(f->hash), hex);
    if (!f->err.rc && strcmp(hex, f->digest + 7) != 0)
        err_set(&f->err, RC_INTERNAL, "what came from the server is not %s", f->digest);
    if (!f->err.rc && (fsync(f->fd) == -1 || rename(f->part, f->path) == -1))
        err_errno(&f->err, "cannot keep %s", f->path);
    if (f->err.rc)
        unlink(f->part);
}

/* --- on the loop */

static void tell(struct fetch *f, const struct err *err)
{
    for (struct fetch **at = &f->blobs->fetches; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    for (struct waiter *w = f->waiters; w; w = w->next)
        w->fn(w->arg, err->rc ? NULL : f->path, err);
    fetch_free(f);
}

static bool fetch_start(struct blobs *b, struct fetch *f, struct err *err);

static void on_again(void *arg)
{
    struct fetch *f = arg;
    struct err err = { 0 };
    f->again = NULL;
    if (!fetch_start(f->blobs, f, &err))
        tell(f, &err);
}

/* A server that goes away in the middle is no reason to fail a task: another one has it too. */
static void end_done(struct work *w)
{
    struct fetch *f = CONTAINER(w, struct fetch, end);
    struct err err = f->err;
    f->ending = false;
    if (f->lost && ++f->tries < TRIES) {
        close(f->fd);
        f->fd = -1;
        f->err = (struct err){ 0 };
        f->again = timer_start(f->blobs->os, AGAIN_MS, on_again, f);
        return;
    }
    tell(f, &err);
}

static void end_drop(struct work *w)
{
    fetch_free(CONTAINER(w, struct fetch, end));
}

static void piece_done(struct work *w)
{
    struct piece *p = CONTAINER(w, struct piece, work);
    struct fetch *f = p->f;
    f->underway -= p->n;
    if (f->call && f->underway < UNDERWAY_MAX / 2)
        http_call_pause(f->call, false);
    free(p);
}

static void on_head(void *arg, int status, struct http_call *c)
{
    (void)c;
    ((struct fetch *)arg)->status = status;
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct fetch *f = arg;
    if (f->status != 200)
        return;
    struct piece *p = malloc(sizeof *p + n);
    if (!p)
        abort();
    *p = (struct piece){ .work = { .run = piece_write, .done = piece_done }, .f = f, .n = n };
    memcpy(p->at, at, n);
    f->underway += n;
    if (f->underway > UNDERWAY_MAX && f->call)
        http_call_pause(f->call, true);
    workshop_do(f->blobs->shop, &p->work);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    (void)body;
    struct fetch *f = arg;
    f->call = NULL;
    f->lost = (err && err->rc) || status == 421 || status == 429 || status >= 502;
    if (err && err->rc)
        f->err = *err;
    else if (status == 404)
        err_set(&f->err, RC_NOT_FOUND, "the server does not have %s", f->digest);
    else if (status != 200)
        err_set(&f->err, RC_UNAVAILABLE, "the server answered %d for %s", status, f->digest);
    f->end = (struct work){ .run = end_write, .done = end_done, .drop = end_drop };
    f->ending = true;
    workshop_do(f->blobs->shop, &f->end); /* behind every piece, as the order of posts is kept */
}

static bool fetch_start(struct blobs *b, struct fetch *f, struct err *err)
{
    static const struct http_call_events events
        = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    snprintf(f->part, sizeof f->part, "%s/.%s", b->folder, f->digest + 7);
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd == -1)
        return err_errno(err, "cannot make %s", f->part);
    struct http_client *server = b->heads ? heads_client(b->heads) : NULL;
    if (!server)
        return err_set(err, RC_UNAVAILABLE, "there is no server to fetch %s from", f->digest);
    f->hash = sha256_new();
    char path[128];
    snprintf(path, sizeof path, "/v1/blobs/%s", f->digest);
    f->call = http_call(server, "GET", path, NULL, 0, (struct slice){ 0 }, 0, &events, f);
    http_call_timeout(f->call, STALL_MS);
    return true;
}

void blobs_want(struct blobs *b, const char *digest, blob_fn *fn, void *arg)
{
    struct err err = { 0 };
    char path[4200];
    if (!image_digest_ok(digest)) {
        err_set(&err, RC_BAD_INPUT, "'%.80s' is not a sha256 digest", digest ? digest : "");
        fn(arg, NULL, &err);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", b->folder, digest + 7);
    if (utimensat(AT_FDCWD, path, NULL, 0)
        == 0) { /* here, and used now: what nobody uses is removed after a while */
        fn(arg, path, &err);
        return;
    }
    struct fetch *f = b->fetches;
    while (f && strcmp(f->digest, digest) != 0)
        f = f->next;
    bool fresh = !f;
    if (fresh) {
        f = calloc(1, sizeof *f);
        if (!f)
            abort();
        f->fd = -1;
        f->blobs = b;
        f->next = b->fetches;
        b->fetches = f;
        snprintf(f->digest, sizeof f->digest, "%s", digest);
        snprintf(f->path, sizeof f->path, "%s", path);
    }
    struct waiter *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *w = (struct waiter){ f->waiters, fn, arg };
    f->waiters = w;
    if (fresh && !fetch_start(b, f, &err))
        tell(f, &err);
}

void blobs_drop(struct blobs *b, const char *digest)
{
    char path[4200];
    if (!image_digest_ok(digest))
        return;
    snprintf(path, sizeof path, "%s/%s", b->folder, digest + 7);
    unlink(path);
}
