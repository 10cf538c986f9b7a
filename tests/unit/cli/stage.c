/* stage.c - the stage of cli_test.h. No tests of its own: there is no src/cli/stage.c. */
#include "cli_test.h"
#include "wire/digest.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CUT_MS = 20 };

struct straw {
    struct stage *stage;
    struct os *os;
    struct http_server *server;
    const struct answer *answers;
    size_t count;
    int seen_count[64];
    struct str seen;
    const struct ws_events *events;
    void *arg;
    char idems[8][64];
    size_t idem_count;
};

struct stage stage_up(void)
{
    struct stage s = { 0 };
    struct err err;
    struct arena *mem = arena_new();
    snprintf(s.folder, sizeof s.folder, "/tmp/arcus-cli-XXXXXX");
    if (!mkdtemp(s.folder) || !digest_start())
        abort();
    s.c = ARENA_NEW(mem, struct cli);
    s.c->mem = mem;
    s.c->os = os_real_new(&err);
    s.c->config_path = arena_printf(mem, "%s/config/file", s.folder);
    unsetenv("ARCUS_SERVER");
    unsetenv("ARCUS_KEY");
    unsetenv("ARCUS_PROJECT");
    return s;
}

static void remove_all(const char *folder)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err;
    AUTO(str_done) struct str command = { 0 };
    (void)err;
    str_printf(&command, "chmod -R u+rwx %s; rm -rf %s", folder, folder);
    if (system(command.at) != 0)
        fprintf(stderr, "# %s is left\n", folder);
}

void stage_down(struct stage *s)
{
    cli_disconnect(s->c);
    if (s->straw) {
        http_server_drop(s->straw->server);
        str_done(&s->straw->seen);
        free(s->straw);
    }
    os_free(s->c->os);
    str_done(&s->out);
    str_done(&s->errors);
    arena_free(s->c->mem);
    remove_all(s->folder);
}

char *stage_path(struct stage *s, const char *name)
{
    return arena_printf(s->c->mem, "%s/%s", s->folder, name);
}

void stage_write(struct stage *s, const char *name, const char *text)
{
    FILE *f = fopen(stage_path(s, name), "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

/* --- the server */

static bool same_kind(const struct answer *a, const struct answer *b)
{
    return text_is(a->method, b->method) && text_is(a->path, b->path);
}

/* Requests are counted by the first answer of their kind. */
static const struct answer *answer_for(struct straw *w, const char *method, const char *path)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct answer *a = &w->answers[i];
        if (!text_is(a->method, method) || !text_starts(path, a->path))
            continue;
        size_t first = 0;
        while (!same_kind(&w->answers[first], a))
            first++;
        if (a->nth && a->nth != w->seen_count[first] + 1)
            continue;
        w->seen_count[first]++;
        return a;
    }
    return NULL;
}

static void cut(void *rq) { http_abort(rq); }

static void on_request(void *arg, struct http_request *rq)
{
    struct straw *w = arg;
    struct slice body = http_body(rq);
    const char *idem = http_header(rq, "idempotency-key"),
               *project = http_header(rq, "arcus-project"),
               *bearer = http_header(rq, "authorization");
    if (idem && w->idem_count < COUNT(w->idems))
        snprintf(w->idems[w->idem_count++], sizeof w->idems[0], "%s", idem);
    str_printf(&w->seen, "%s %s?%s\n", http_method(rq), http_path(rq), http_query(rq));
    str_printf(&w->seen, "project=%s key=%s %s\n%.*s\n\n", project ? project : "",
               bearer ? bearer : "", idem ? "once" : "", (int)body.len, body.at ? body.at : "");
    if (w->events && ws_asked(rq)) {
        struct ws *ws = ws_accept(rq, NULL, w->events, w->arg);
        if (w->events->on_open)
            w->events->on_open(w->arg, ws);
        return;
    }
    const struct answer *a = answer_for(
        w, http_method(rq), arena_printf(http_mem(rq), "%s?%s", http_path(rq), http_query(rq)));
    if (a && text_starts(a->body, "@cut ")) {
        http_begin(rq, a->status, "text/plain", NULL, 0, -1);
        http_piece(rq, a->body + 5, strlen(a->body + 5));
        timer_start(w->os, CUT_MS, cut, rq);        /* after what was said has gone out */
        return;
    }
    struct http_header after = { "Retry-After", "1" };
    if (a && text_starts(a->body, "@after ")) {
        http_reply(rq, a->status, "application/problem+json", &after, 1, SLICE(a->body + 7));
        return;
    }
    if (a) {
        http_reply(rq, a->status, a->status < 300 ? "application/json" : "application/problem+json",
                   NULL, 0, SLICE(a->body));
        return;
    }
    http_reply(
        rq, 404, "application/problem+json", NULL, 0,
        SLICE("{\"type\":\"/problems/not_found\",\"detail\":\"the straw has no such answer\"}"));
}

static void on_head(void *arg, struct http_request *rq)
{
    (void)arg;
    http_limit_body(rq, 64 << 20);
}
static void on_gone(void *arg, struct http_request *rq) { (void)arg, (void)rq; }

void straw_answers(struct stage *s, const struct answer *answers, size_t count)
{
    static const struct http_handler handler
        = { .on_head = on_head, .on_request = on_request, .on_gone = on_gone };
    struct err err;
    if (!s->straw) {
        s->straw = calloc(1, sizeof *s->straw);
        s->straw->os = s->c->os;
        if (!http_listen(s->c->os, "127.0.0.1:0", NULL, NULL, &handler, s->straw, &s->straw->server,
                         &err))
            abort();
    }
    s->straw->answers = answers;
    s->straw->count = count;
    memset(s->straw->seen_count, 0, sizeof s->straw->seen_count);
    str_clear(&s->straw->seen);
    s->c->context.server = arena_printf(s->c->mem, "http://%s", http_address(s->straw->server));
}

void straw_ws(struct stage *s, const struct ws_events *events, void *arg)
{
    s->straw->events = events;
    s->straw->arg = arg;
}

const char *straw_idem(struct stage *s, size_t nth) { return nth < s->straw->idem_count ? s->straw->idems[nth] : ""; }
const char *straw_seen(struct stage *s) { return s->straw->seen.at ? s->straw->seen.at : ""; }

size_t straw_count(struct stage *s, const char *method, const char *path)
{
    AUTO(str_done) struct str want = { 0 };
    size_t n = 0;
    str_printf(&want, "%s %s", method, path);
    for (const char *p = straw_seen(s); (p = strstr(p, want.at)); p++)
        n += p == straw_seen(s) || p[-1] == '\n';
    return n;
}

/* --- words */

static int swap(int fd, const char *path, int flags)
{
    int saved = dup(fd), file = open(path, flags, 0600);
    if (saved == -1 || file == -1 || dup2(file, fd) == -1)
        abort();
    close(file);
    return saved;
}

static void swap_back(int fd, int saved)
{
    if (dup2(saved, fd) == -1)
        abort();
    close(saved);
}

static void read_back(struct stage *s, const char *name, struct str *out)
{
    struct slice text;
    struct err err;
    str_clear(out);
    if (file_read(s->c->os, stage_path(s, name), 8 << 20, s->c->mem, &text, &err))
        str_put(out, text.at, text.len);
    str_text(out, "");
}

static int run_word(struct stage *s, int argc, char **argv)
{
    int used = 0;
    const struct word *w = word_find(argc, argv, &used);
    s->c->help = false;
    s->c->output = OUT_TABLE;
    s->c->err = (struct err){ 0 };
    return w ? w->run(s->c, w, argc - used, argv + used) : -1;
}

static int run_main(struct stage *s, int argc, char **argv)
{
    (void)s;
    return cli_main(argc, argv);
}

static int caught(struct stage *s, int (*run)(struct stage *, int, char **), const char *input,
                  const char *const *argv)
{
    char *typed[64];
    int argc = 0;
    for (; argv[argc]; argc++)
        typed[argc] = arena_text(s->c->mem, argv[argc]);
    typed[argc] = NULL;
    stage_write(s, "in", input);
    fflush(stdout);
    int in = swap(0, stage_path(s, "in"), O_RDONLY);
    int out = swap(1, stage_path(s, "out"), O_WRONLY | O_CREAT | O_TRUNC);
    int errors = swap(2, stage_path(s, "errors"), O_WRONLY | O_CREAT | O_TRUNC);
    int code = run(s, argc, typed);
    fflush(stdout);
    swap_back(0, in), swap_back(1, out), swap_back(2, errors);
    read_back(s, "out", &s->out);
    read_back(s, "errors", &s->errors);
    return code;
}

int play_with(struct stage *s, const char *input, const char *const *argv)
{
    return caught(s, run_word, input, argv);
}

int play_main(struct stage *s, const char *const *argv)
{
    return caught(s, run_main, "", argv);
}
