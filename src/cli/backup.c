/* backup.c - `arcus backup FILE`: the cloud's own copy of itself, checked as it comes.
 *
 * It is written beside its place and gets its name only when it is whole, its checksum fits and it is on the disk: a FILE that
 * is there is a backup. */
#include "cli/cli.h"
#include "wire/backup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct backup_own { const char *file; };
static const struct field backup_rows[] = {
    FIELD(struct backup_own, file, TEXT, .required = true, .in_path = true, .max = 4000,
          .help = "where the backup goes; it must not be there yet"),
};
const struct fields backup_fields = FIELDS(backup_own, backup_rows);

struct download {
    struct cli *c;
    struct http_call *call;             /* NULL: it has ended */
    struct backup_reader *reader;
    struct progress *progress;
    struct str problem;
    int fd, status;
    int64_t got, missing;
    bool done;
    struct err err;
};

/* --- what is in it */

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct download *d = arg;
    (void)err;
    d->missing += text_starts(e->name, "missing/");
    return true;
}
static bool on_bytes(void *arg, const char *at, size_t n, struct err *err)
{
    return (void)arg, (void)at, (void)n, (void)err, true;
}
static bool on_entry_end(void *arg, struct err *err) { return (void)arg, (void)err, true; }

/* --- as it comes */

static void finish(struct download *d)
{
    d->done = true;
    os_stop(d->c->os);
}

static void on_head(void *arg, int status, struct http_call *call)
{
    struct download *d = arg;
    const char *length = http_call_header(call, "Content-Length");
    d->status = status;
    if (status < 300)
        d->progress = progress_start(d->c, "backing up", length ? strtoll(length, NULL, 10) : 0);
}

static bool take(struct download *d, const char *at, size_t n, struct err *err)
{
    if (!backup_feed(d->reader, at, n, err))
        return false;
    while (n) {
        ssize_t m = write(d->fd, at, n);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0)
            return err_errno(err, "cannot write it");
        at += m, n -= (size_t)m;
    }
    return true;
}

static void on_data(void *arg, const char *at, size_t n)
{
    struct download *d = arg;
    if (d->status >= 300) {
        if (d->problem.len < 65536)
            str_put(&d->problem, at, n);
        return;
    }
    d->got += (int64_t)n;
    progress_set(d->progress, d->got);
    if (take(d, at, n, &d->err))
        return;
    http_call_cancel(TAKE(d->call));
    finish(d);
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    struct download *d = arg;
    (void)body;
    d->call = NULL;
    if (err)
        d->err = *err;
    else if (status >= 300)
        problem_read(d->c, status, (struct slice){ d->problem.at, d->problem.len }, &d->err);
    finish(d);
}

static bool download(struct download *d, struct err *err)
{
    static const struct tar_events entries = { on_entry, on_bytes, on_entry_end };
    static const struct http_call_events events = { .on_head = on_head, .on_data = on_data, .on_end = on_end };
    struct http_header headers[CLI_HEADERS];
    AUTO(backup_reader_free) struct backup_reader *reader = backup_reader_new(&entries, d);
    size_t n = cli_headers(d->c, headers, false, false);
    d->reader = reader;
    d->call = http_call(d->c->client, "GET", verbs[VERB_BACKUP].path, headers, n, (struct slice){ 0 }, 0,
                        &events, d);
    http_call_timeout(d->call, 0);      /* the rows are gathered before the first byte comes */
    cli_wait(d->c, &d->done);
    progress_end(TAKE(d->progress));
    str_done(&d->problem);
    return (d->err.rc == RC_OK || (*err = d->err, false)) && backup_whole(reader, err);
}

static bool keep(struct cli *c, const char *file, struct download *d, struct err *err)
{
    char *part = arena_printf(c->mem, "%s.part", file);
    if (access(file, F_OK) == 0)
        return err_set(err, RC_CONFLICT, "%s is there already; choose another name", file);
    if (!cli_connect_live(c, err))
        return false;
    d->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (d->fd == -1)
        return err_errno(err, "%s", part);
    bool ok = download(d, err) && (fsync(d->fd) == 0 || err_errno(err, "%s", part));
    close(d->fd);
    ok = ok && (rename(part, file) == 0 || err_errno(err, "%s", file));
    if (!ok)
        unlink(part);
    return ok;
}

int word_backup(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct download d = { .c = c, .fd = -1 };
    AUTO(str_done) struct str size = { 0 };
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct backup_own *own = f.own;
    if (!keep(c, own->file, &d, &c->err))
        return err_wrap(&c->err, "no backup was made"), print_error(c, &c->err);
    bytes_text(&size, d.got);
    say(c, "%s: %s, whole and checked; the keys (DATA/keys and DATA/tls on the server) are not in it: keep them elsewhere",
        own->file, size.at);
    if (d.missing)
        say(c, "the files of %lld uploads are gone from the server and so not in it", (long long)d.missing);
    return 0;
}
