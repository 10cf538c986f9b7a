/* blob.c - bytes into the cloud under their own hash: hashed first, uploaded only if they are not
 * there yet.
 *
 * The source is walked twice instead of kept in a third place; if it changed in between, the
 * server's hash differs and the upload is refused, never silently another thing. */
#include "cli/blob.h"
#include "wire/digest.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IN_FLIGHT = 1 << 20, STORE_MS = 10 * 60 * 1000 };

/* --- the first walk */

struct hashing {
    struct sha256 *hash;
    int64_t size;
    struct progress *progress;
    const struct blob_check *check;
};

static bool hash_put(void *arg, const char *at, size_t n, struct err *err)
{
    struct hashing *h = arg;
    sha256_add(h->hash, at, n);
    h->size += (int64_t)n;
    progress_set(h->progress, h->size);
    return !h->check || h->check->put(h->check->arg, at, n, err);
}

/* --- the second */

struct upload {
    struct cli *c;
    struct http_call *call;         /* NULL: it has ended */
    struct progress *progress;
    int64_t sent, size;
    int status;
    bool done;
    struct err err;
};

static void on_drain(void *arg, struct http_call *call)
{
    struct upload *u = arg;
    (void)call;
    os_stop(u->c->os);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct upload *u = arg;
    u->call = NULL;
    u->done = true;
    u->status = status;
    if (err)
        u->err = *err;
    else if (status >= 300)
        problem_read(u->c, status, body, &u->err);
    os_stop(u->c->os);
}

static bool upload_put(void *arg, const char *at, size_t n, struct err *err)
{
    struct upload *u = arg;
    if (u->sent + (int64_t)n > u->size)
        return err_set(err, RC_CONFLICT, "it changed while it was uploaded; try again");
    while (u->call && http_call_waiting(u->call) > IN_FLIGHT)
        os_run(u->c->os);
    if (!u->call)
        return *err = u->err, false;
    http_call_body(u->call, at, n);
    u->sent += (int64_t)n;
    progress_set(u->progress, u->sent - (int64_t)http_call_waiting(u->call));
    return true;
}

static bool send_all(struct cli *c, const struct blob_source *s, const char *digest, int64_t size,
                     struct err *err)
{
    static const struct http_call_events events = { .on_body_drain = on_drain, .on_end = on_end };
    struct http_header headers[CLI_HEADERS];
    size_t n = cli_headers(c, headers, false, false);
    struct upload u = { .c = c, .size = size };
    headers[n++] = (struct http_header){ "Content-Type", "application/octet-stream" };
    AUTO(progress_end)
    struct progress *p = u.progress
        = progress_start(c, arena_printf(c->mem, "uploading %s", s->what), size);
    u.call = http_call(c->client, "PUT", arena_printf(c->mem, "/v1/blobs/%s", digest), headers, n,
                       (struct slice){ 0 }, size, &events, &u);
    http_call_timeout(u.call, 0);
    bool ok = s->walk(s->arg, &(struct sink){ upload_put, &u }, err);
    if (ok && u.sent != size)
        ok = err_set(err, RC_CONFLICT, "%s changed while it was uploaded; try again", s->what);
    if (!ok) {
        if (u.call)
            http_call_cancel(u.call);
        return u.done ? (*err = u.err, false) : false;
    }
    if (u.call) {
        http_call_timeout(u.call, STORE_MS);
        http_call_finish(u.call);
        cli_wait(c, &u.done);
    }
    return u.err.rc == RC_OK || (*err = u.err, false);
}

bool blob_upload(struct cli *c, const struct blob_source *s, const char **digest, struct err *err)
{
    char hex[DIGEST_HEX];
    struct hashing h = { .hash = sha256_new(), .check = s->check };
    struct json *ask = json_new(c->mem, JSON_OBJECT);
    if (!cli_connect_live(c, err))
        return sha256_end(h.hash, hex), false;
    h.progress = progress_start(c, arena_printf(c->mem, "reading %s", s->what), s->size);
    bool ok = s->walk(s->arg, &(struct sink){ hash_put, &h }, err)
              && (!s->check || s->check->end(s->check->arg, err));
    progress_end(h.progress);
    sha256_end(h.hash, hex);
    if (!ok)
        return false;
    *digest = arena_printf(c->mem, "sha256:%s", hex);
    doc_set(c, ask, "digest", *digest);
    if (cli_call(c, VERB_BLOB_HEAD, ask, NULL, err))
        return true;
    return err->rc == RC_NOT_FOUND && send_all(c, s, *digest, h.size, err);
}

/* --- sources */

struct folder { const char *path; struct pack_how how; };
static bool walk_folder(void *arg, const struct sink *sink, struct err *err)
{
    struct folder *f = arg;
    return pack(f->path, &f->how, sink, err);
}

bool folder_upload(struct cli *c, const char *path, bool ignore, const char **digest,
                   struct err *err)
{
    struct folder f = { path, { .same = true, .ignore = ignore } };
    struct blob_source s = { .what = path, .walk = walk_folder, .arg = &f };
    return pack_size(path, &f.how, &s.size, err) && blob_upload(c, &s, digest, err);
}

static bool walk_file(void *arg, const struct sink *sink, struct err *err)
{
    const char *path = arg;
    char *chunk = malloc(64 << 10);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = chunk && (fd != -1 || err_errno(err, "cannot read %s", path));
    while (ok) {
        ssize_t n = read(fd, chunk, 64 << 10);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        ok = n > 0 ? sink->put(sink->arg, chunk, (size_t)n, err)
                   : err_errno(err, "cannot read %s", path);
    }
    if (fd != -1)
        close(fd);
    free(chunk);
    return ok;
}

bool file_upload(struct cli *c, const char *path, const struct blob_check *check,
                 const char **digest, struct err *err)
{
    struct stat st;
    struct blob_source s = { .what = path, .walk = walk_file, .arg = (void *)path, .check = check };
    if (stat(path, &st) == -1)
        return err_errno(err, "%s", path);
    s.size = st.st_size;
    return blob_upload(c, &s, digest, err);
}
