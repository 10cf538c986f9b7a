#include "agent/blobs.h"
#include "agent/heads.h"
#include "agent/tree.h"
#include "net/http.h"
#include "os/os.h"
#include "wire/digest.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a server that has one blob, and lies about another */

struct world {
    struct os *os;
    struct http_server *server;
    struct heads *heads;
    struct blobs *blobs;
    char top[40], good[80], *bytes;
    size_t n;
    int asked, calls;
    bool waiting;
    struct err err;
    bool found;
};

static void on_request(void *arg, struct http_request *rq)
{
    struct world *w = arg;
    w->asked++;
    bool good = strstr(http_path(rq), w->good) != NULL, lie = strstr(http_path(rq), "sha256:ffff") != NULL;
    http_reply(rq, good || lie ? 200 : 404, "application/octet-stream", NULL, 0, good || lie ? (struct slice){ w->bytes, w->n } : (struct slice){ "no", 2 });
}
static void on_gone(void *arg, struct http_request *rq) { (void)arg, (void)rq; }
static void on_bad(void *arg, const char *peer, const struct err *why, struct str *type, struct str *body) { (void)arg, (void)peer, (void)why, (void)type, (void)body; }
static void on_blob(void *arg, const char *path, const struct err *err)
{
    struct world *w = arg;
    w->found = path != NULL && access(path, R_OK) == 0;
    w->err = *err;
    if (--w->calls == 0 && w->waiting)
        os_stop(w->os);
}

static struct world *world_make(void)
{
    static const struct http_handler handler = { .on_request = on_request, .on_gone = on_gone, .on_bad = on_bad };
    struct world *w = calloc(1, sizeof *w);
    struct err err = {0};
    char hex[DIGEST_HEX], url[80];
    snprintf(w->top, sizeof w->top, "/tmp/arcus-blobs-XXXXXX");
    CHECK(digest_start() && mkdtemp(w->top));
    w->n = 6 << 20;                     /* more than is let under way at once */
    w->bytes = malloc(w->n);
    for (size_t i = 0; i < w->n; i++)
        w->bytes[i] = (char)(i * 2654435761u >> 13);
    digest_sha256(w->bytes, w->n, hex);
    snprintf(w->good, sizeof w->good, "sha256:%s", hex);
    w->os = os_real_new(&err);
    CHECK(http_listen(w->os, "127.0.0.1:0", NULL, &http_limits_default, &handler, w, &w->server, &err));
    snprintf(url, sizeof url, "http://%s", http_address(w->server));
    w->heads = heads_new(w->os, NULL, NULL);
    CHECK(heads_add(w->heads, url, &err));
    w->blobs = blobs_new(w->os, w->top, w->heads);
    return w;
}

static void stop(void *arg) { os_stop(((struct world *)arg)->os); }

static void world_drop(struct world *w)
{
    struct err err = {0};
    blobs_free(w->blobs);
    heads_free(w->heads);
    http_server_close(w->server, 0);
    timer_start(w->os, 20, stop, w);
    os_run(w->os);
    os_free(w->os);
    CHECK(tree_remove(w->top, &err));
    free(w->bytes);
    free(w);
}

static void want(struct world *w, const char *digest)
{
    w->calls = 1;
    w->found = false;
    w->err = (struct err){0};
    blobs_want(w->blobs, digest, on_blob, w);
    w->waiting = w->calls > 0;
    if (w->waiting)
        os_run(w->os);
    w->waiting = false;
}

TEST(a_blob_is_fetched_once_for_all_who_wait)
{
    struct world *w = world_make();
    w->calls = 3;
    for (int i = 0; i < 3; i++)
        blobs_want(w->blobs, w->good, on_blob, w);
    w->waiting = true;
    os_run(w->os);
    w->waiting = false;
    CHECK(w->found && w->asked == 1);
    want(w, w->good);                   /* here already */
    CHECK(w->found && w->asked == 1);
    blobs_drop(w->blobs, w->good);
    want(w, w->good);
    CHECK(w->found && w->asked == 2);
    world_drop(w);
}

TEST(what_is_not_what_was_asked_for_is_never_kept)
{
    struct world *w = world_make();
    want(w, "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff");
    CHECK(!w->found && strstr(w->err.text, "is not sha256:ffff"));
    want(w, "sha256:0000000000000000000000000000000000000000000000000000000000000000");
    CHECK(!w->found && w->err.rc == RC_NOT_FOUND);
    want(w, "../../etc/passwd");
    CHECK(!w->found && w->err.rc == RC_BAD_INPUT && w->asked == 2);
    CHECK(rmdir(w->top) == 0 && mkdtemp(strcpy(w->top, "/tmp/arcus-blobs-XXXXXX")));    /* nothing half was left */
    world_drop(w);
}

TEST(a_fetch_may_be_left_at_any_moment)
{
    for (int ms = 0; ms < 12; ms += 3) {
        struct world *w = world_make();
        w->calls = 1;
        blobs_want(w->blobs, w->good, on_blob, w);
        timer_start(w->os, ms, stop, w);
        os_run(w->os);
        world_drop(w);
    }
}
