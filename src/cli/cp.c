/* cp.c - `arcus cp`: files into and out of a task or a volume, as tar over a WebSocket.
 *
 * As cp does it: a target that is a folder gets the thing under its own name, any other target
 * becomes the thing. Whether a remote target is a folder is asked first, by looking at the first
 * entry of it. */
#include "cli/cp.h"
#include "cli/pack.h"
#include "model/channel.h"
#include "net/ws.h"
#include "wire/tar.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { IN_FLIGHT = 1 << 20, PIECE = 64 << 10 };

/* --- places */

bool place_parse(struct cli *c, const char *text, struct place *out, struct err *err)
{
    size_t colon = strcspn(text, ":"), slash = strcspn(text, "/");
    *out = (struct place){ 0 };
    if (!text[colon] || slash < colon || colon == 0) {
        out->path = text;
        return *text ? true : err_set(err, RC_BAD_INPUT, "an empty path");
    }
    const char *who = arena_bytes(c->mem, text, colon), *path = text + colon + 1;
    if (text_is(who, "vol") || text_is(who, "volume")) {
        size_t n = strcspn(path, "/");
        out->volume = arena_bytes(c->mem, path, n);
        out->path = path[n] ? path + n : "/";
        if (!n)
            return err_set(err, RC_BAD_INPUT, "'%.60s' names no volume; write vol:NAME/path", text);
    } else {
        out->job = who;
        out->path = path;
        if (path[0] != '/')
            return err_set(err, RC_BAD_INPUT,
                           "'%.60s': a path inside a job begins with /; write %.40s:/path", text,
                           who);
    }
    for (const char *p = out->path; (p = strstr(p, "..")); p += 2)
        if ((p == out->path || p[-1] == '/') && (p[2] == 0 || p[2] == '/'))
            return err_set(err, RC_BAD_INPUT, "'%.60s': '..' is not taken in a remote path", text);
    return true;
}

static bool is_remote(const struct place *p) { return p->job || p->volume; }

/* The last part of a path, and what it is called where that has no name. */
static const char *name_of(struct cli *c, const struct place *p)
{
    size_t n = strlen(p->path);
    while (n > 1 && p->path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && p->path[from - 1] != '/')
        from--;
    const char *name = arena_bytes(c->mem, p->path + from, n - from);
    if (!is_remote(p) && (!*name || text_is(name, ".") || text_is(name, ".."))) {
        char *real = realpath(p->path, NULL), *slash = real ? strrchr(real, '/') : NULL;
        name = slash && slash[1] ? arena_text(c->mem, slash + 1) : "root";
        free(real);
    }
    return *name ? name : p->volume ? p->volume : p->job ? p->job : "root";
}

static const char *folder_of(struct cli *c, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 1 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return arena_bytes(c->mem, path, n);
}

/* --- one stream */

struct copy {
    struct cli *c;
    struct ws *ws;
    bool open, done, good;          /* good: the other side said that all went well */
    struct unpack *unpack;          /* of get */
    struct tar_reader *probe;       /* looks for the first entry */
    bool found, folder;
    struct progress *progress;
    int64_t sent;
    struct err err;
};

static void finish(struct copy *k)
{
    k->done = true;
    os_stop(k->c->os);
}

static void fail(struct copy *k, const struct err *why)
{
    if (k->err.rc == RC_OK)
        k->err = *why;
    finish(k);
}

static void on_control(struct copy *k, struct slice json)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err why;
    if (!json_parse(json, mem, &doc, &why))
        return;
    if (json_text(doc, "error")) {
        enum rc rc = strstr(json_text(doc, "error"), "no such file") ? RC_NOT_FOUND : RC_CONFLICT;
        fail(k, (err_set(&why, rc, "%s", json_text(doc, "error")), &why));
    } else if (json_get(doc, "exit") || json_get(doc, "eof")) {
        k->good = true;
        finish(k);
    }
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct copy *k = arg;
    struct err why;
    (void)w, (void)text;
    if (n < 1 || k->done)
        return;
    if (at[0] == CHANNEL_CONTROL) {
        on_control(k, (struct slice){ at + 1, n - 1 });
    } else if (at[0] == CHANNEL_OUT && k->probe) {
        if (!tar_feed(k->probe, at + 1, n - 1, &why) && !k->found)
            fail(k, &why);
        if (k->found)
            finish(k);
    } else if (at[0] == CHANNEL_OUT && k->unpack) {
        if (!unpack_feed(k->unpack, at + 1, n - 1, &why))
            fail(k, &why);
        AUTO(str_done) struct str so_far = { 0 };
        bytes_text(&so_far, unpack_bytes(k->unpack));
        progress_text(k->progress, "copied %s", so_far.at);
    }
}

static void on_open(void *arg, struct ws *w)
{
    struct copy *k = arg;
    (void)w;
    k->open = true;
    os_stop(k->c->os);
}

static void on_drain(void *arg, struct ws *w)
{
    (void)w;
    os_stop(((struct copy *)arg)->c->os);
}

static void on_close(void *arg, struct ws *w, const struct err *why)
{
    struct copy *k = arg;
    struct err cut;
    (void)w;
    k->ws = NULL;
    if (why->rc != RC_OK)
        fail(k, why);
    else if (!k->good && !k->done)
        fail(k,
             (err_set(&cut, RC_UNAVAILABLE, "the connection ended before all was copied"), &cut));
    finish(k);
}

static bool dial(struct copy *k, const struct place *p, const char *path, bool put, int64_t task,
                 struct err *err)
{
    static const struct ws_events events = { on_open, on_message, on_drain, on_close };
    static const struct ws_limits limits = { .message_bytes = CHANNEL_MESSAGE };
    AUTO(str_done) struct str body = { 0 };
    struct json *ask = json_new(k->c->mem, JSON_OBJECT);
    struct http_header headers[CLI_HEADERS];
    char *route;
    doc_set(k->c, ask, p->job ? "job" : "volume", p->job ? p->job : p->volume);
    doc_set(k->c, ask, "path", path);
    doc_set(k->c, ask, "put", put ? "true" : "false");
    if (p->job)
        doc_set(k->c, ask, "task", arena_printf(k->c->mem, "%lld", (long long)task));
    if (!cli_connect_live(k->c, err)
        || !cli_route(k->c, p->job ? VERB_JOB_FILES : VERB_VOLUME_FILES, ask, &route, &body, err))
        return false;
    k->ws = ws_dial(k->c->client, route, headers, cli_headers(k->c, headers, false, false), &limits,
                    &events, k);
    while (!k->open && !k->done)
        os_run(k->c->os);
    return k->open || (*err = k->err, false);
}

static void hang_up(struct copy *k)
{
    if (k->ws)
        ws_drop(k->ws);
    while (k->ws)
        os_run(k->c->os);
}

/* --- is it a folder there? */

static bool first_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct copy *k = arg;
    k->folder = e->type == TAR_DIR;
    k->found = true;
    return err_set(err, RC_CONFLICT, "seen");
}
static bool no_data(void *arg, const char *at, size_t n, struct err *err)
{
    return (void)arg, (void)at, (void)n, (void)err, true;
}
static bool no_end(void *arg, struct err *err) { return (void)arg, (void)err, true; }

static bool remote_is_folder(struct cli *c, const struct place *p, int64_t task, bool *out,
                             struct err *err)
{
    static const struct tar_events events = { first_entry, no_data, no_end };
    struct copy k = { .c = c };
    size_t n = strlen(p->path);
    *out = p->path[n - 1] == '/';
    if (*out)
        return true;
    AUTO(tar_reader_free) struct tar_reader *tar = k.probe = tar_reader_new(&events, &k);
    if (!dial(&k, p, p->path, false, task, err))
        return false;
    cli_wait(c, &k.done);
    hang_up(&k);
    *out = k.found && k.folder;
    return k.found || k.good || k.err.rc == RC_NOT_FOUND || (*err = k.err, false);
}

/* --- towards it */

static bool put_piece(void *arg, const char *at, size_t n, struct err *err)
{
    struct copy *k = arg;
    char message[PIECE + 1];
    message[0] = CHANNEL_IN;
    while (n) {
        size_t m = MIN(n, (size_t)PIECE);
        while (k->ws && !k->done && ws_waiting(k->ws) > IN_FLIGHT)
            os_run(k->c->os);
        if (!k->ws || k->done)
            return *err = k->err, false;
        memcpy(message + 1, at, m);
        ws_send(k->ws, false, message, m + 1);
        k->sent += (int64_t)m;
        progress_set(k->progress, k->sent);
        at += m;
        n -= m;
    }
    return true;
}

static bool put(struct cli *c, const struct place *from, const struct place *to, int64_t task,
                struct err *err)
{
    static const char eof[]
        = { CHANNEL_CONTROL, '{', '"', 'e', 'o', 'f', '"', ':', 't', 'r', 'u', 'e', '}' };
    struct copy k = { .c = c };
    struct stat st;
    bool folder;
    int64_t size;
    if (stat(from->path, &st) == -1)
        return err_errno(err, "%s", from->path);
    if (!remote_is_folder(c, to, task, &folder, err))
        return false;
    struct pack_how how = { .top = folder ? name_of(c, from) : name_of(c, to) };
    if (!pack_size(from->path, &how, &size, err)
        || !dial(&k, to, folder ? to->path : folder_of(c, to->path), true, task, err))
        return false;
    k.progress = progress_start(c, arena_printf(c->mem, "copying %s", from->path), size);
    bool ok = pack(from->path, &how, &(struct sink){ put_piece, &k }, err);
    if (ok && k.ws && !k.done)
        ws_send(k.ws, false, eof, sizeof eof);
    if (ok)
        cli_wait(c, &k.done);
    progress_end(k.progress);
    hang_up(&k);
    if (ok && !k.good)
        ok = (*err = k.err, false);
    return ok;
}

/* --- from it */

static bool get(struct cli *c, const struct place *from, const struct place *to, int64_t task,
                struct err *err)
{
    struct copy k = { .c = c };
    struct stat st;
    bool folder = stat(to->path, &st) == 0 && S_ISDIR(st.st_mode),
         all = text_is(from->path, "/") || text_is(from->path, "/outputs")
               || text_is(from->path, "/outputs/");
    const char *name = name_of(c, from),
               *target = folder ? arena_printf(c->mem, "%s/%s", to->path, name) : to->path;
    /* its own name is not in what an ended task left */
    const char *ask = all && from->job && from->path[1] ? "/outputs/." : from->path;
    AUTO(unpack_free) struct unpack *u = NULL;
    if (!folder && to->path[strlen(to->path) - 1] == '/' && mkdir(to->path, 0777) == -1)
        return err_errno(err, "cannot make %s", to->path);
    if (!unpack_start(target, all, &u, err))
        return false;
    k.unpack = u;
    if (!dial(&k, from, ask, false, task, err))
        return false;
    k.progress = progress_start(c, arena_printf(c->mem, "copying %s", from->path), 0);
    cli_wait(c, &k.done);
    progress_end(k.progress);
    hang_up(&k);
    if (k.err.rc != RC_OK)
        return *err = k.err, false;
    return unpack_end(u, err);
}

struct cp_own { const char *from, *to; int64_t task; };
static const struct field cp_rows[] = {
    FIELD(struct cp_own, from, TEXT, .required = true, .max = 4096, .flag = "",
          .help = "what to copy"),
    FIELD(struct cp_own, to, TEXT, .required = true, .max = 4096, .flag = "", .help = "where to"),
    FIELD(struct cp_own, task, INT, .min = -1, .max = JOB_COUNT_MAX, .def = "-1",
          .flag = "-n --task", .help = "of this task of an array", .example = "3"),
};
const struct fields cp_fields = FIELDS(cp_own, cp_rows);

int word_cp(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct place from, to;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct cp_own *own = f.own;
    if (!place_parse(c, own->from, &from, &c->err) || !place_parse(c, own->to, &to, &c->err))
        return print_error(c, &c->err);
    if (is_remote(&from) == is_remote(&to)) {
        err_set(&c->err, RC_BAD_INPUT,
                is_remote(&from) ? "one of the two must be a local path"
                                 : "one of the two must be JOB:/path or vol:NAME/path");
        return print_error(c, &c->err);
    }
    return (is_remote(&to) ? put : get)(c, &from, &to, own->task, &c->err)
               ? 0
               : print_error(c, &c->err);
}
