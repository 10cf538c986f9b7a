/* top.c - what every GPU of the cloud does now, drawn again every second until somebody presses q: with the tasks that hold it below it. A tenant
 * sees those that its own tasks hold.
 *
 * On a terminal the picture is drawn in place; elsewhere one is printed. What a device does not tell is a dash, and a simulated one says
 * so in every picture. */
#include "cli/terminal.h"
#include "base/when.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BAR = 10, WIDTH = 110, AGAIN_MS = 1200, AGAIN_MOST = 3, FRESH_MS = 4000 };
struct top_own { int64_t count, every_s; };
struct top {
    struct cli *c;
    const struct json *doc;
    bool drawn, quit, wake;
    struct timer *timer;        /* until the next picture */
};

/* --- the picture */

static void put_number(struct str *out, int width, int64_t n, const char *unit)
{
    if (n < 0)
        str_printf(out, "%*s%*s", width, "-", (int)strlen(unit), "");
    else
        str_printf(out, "%*lld%s", width, (long long)n, unit);
}

static void put_bar(struct str *out, int64_t percent)
{
    str_char(out, '[');
    for (int i = 0; i < BAR; i++)
        str_char(out, percent > i * 100 / BAR ? '|' : ' ');
    str_char(out, ']');
    put_number(out, 4, percent, "%");
}

static void put_memory(struct str *out, int64_t used, int64_t all)
{
    if (used < 0)
        str_printf(out, "%7s", "-");
    else
        str_printf(out, "%5lld.%lld", (long long)(used / 1024), (long long)(used % 1024 * 10 / 1024));
    if (all > 0)
        str_printf(out, "/%5lld GB", (long long)all / 1024);
    else
        str_printf(out, " GB      ");
}

static void put_power(struct str *out, int64_t mw, int64_t cap_mw)
{
    if (mw < 0)
        str_printf(out, "%4s", "-");
    else
        str_printf(out, "%4lld", (long long)(mw + 500) / 1000);
    if (cap_mw > 0)
        str_printf(out, "/%-4lldW", (long long)(cap_mw + 500) / 1000);
    else
        str_printf(out, " W    ");
}

static const char *word(const struct json *thing, const char *member)
{
    const char *text = json_text(thing, member);
    return text ? text : "";
}

/* Texts of the cloud are no commands for our terminal. */
static void put_clean(struct str *out, int width, int most, const char *text)
{
    AUTO(str_done) struct str clean = { 0 };
    clean_text(&clean, text);
    str_printf(out, "%-*.*s", width, most, clean.at ? clean.at : "");
}

/* On a line of its own: terminals are narrow. */
static void put_why(struct str *out, const char *before, const char *why)
{
    if (!*why)
        return;
    str_printf(out, "%15s     %s", "", before);
    put_clean(out, 0, 200, why);
    str_char(out, '\n');
}

static void put_gpu(struct str *out, const struct json *g)
{
    const struct json *simulated = json_get(g, "simulated");
    char model[128];
    snprintf(model, sizeof model, "%s%s", word(g, "model"), simulated && simulated->flag ? " (simulated)" : "");
    put_clean(out, 14, 14, word(g, "node"));
    str_printf(out, " %3lld ", (long long)json_int(g, "index", 0));
    put_clean(out, 24, 24, model);
    str_char(out, ' ');
    put_clean(out, 9, 9, word(g, "state"));
    str_char(out, ' ');
    put_bar(out, json_int(g, "utilization", -1));
    str_char(out, ' ');
    put_memory(out, json_int(g, "memory_used_mib", -1), json_int(g, "memory_mib", 0));
    str_char(out, ' ');
    put_power(out, json_int(g, "power_mw", -1), json_int(g, "power_cap_mw", 0));
    put_number(out, 4, json_int(g, "temperature_c", -1), "C");
    put_number(out, 6, json_int(g, "clock_mhz", -1), "MHz");
    while (out->at[out->len - 1] == ' ')
        out->at[--out->len] = 0;
    str_char(out, '\n');
    put_why(out, "", word(g, "health"));
    put_why(out, "slowed down by: ", word(g, "throttle"));
}

static void put_task(struct str *out, const struct json *t)
{
    const struct json *gpus = json_get(t, "gpus");
    str_printf(out, "%15s     ", "");
    put_clean(out, 24, 24, word(t, "name"));
    if (!text_given(json_text(t, "job"))) {
        str_printf(out, " %-16s", "");
    } else {
        str_printf(out, " ");
        put_clean(out, 16, 16, word(t, "project"));
    }
    put_memory(out, json_int(t, "memory_used_mib", -1), json_int(t, "memory_mib", 0));
    str_printf(out, "  %lld process%s", (long long)json_int(t, "processes", 0), json_int(t, "processes", 0) == 1 ? "" : "es");
    if (text_given(json_text(t, "job"))) {
        str_printf(out, ", ");
        if (gpus && gpus->text)
            str_printf(out, "%s", gpus->text);
        else
            str_printf(out, "%lld", (long long)(gpus ? gpus->number : 0));
        str_printf(out, " GPU, wall: %s", word(t, "wall"));
    }
    str_char(out, '\n');
}

static void put_head(struct str *out, const struct top *t, const struct json *items, bool more)
{
    size_t gpus = 0, busy = 0, bad = 0, made_up = 0;
    int64_t mw = 0;
    for (const struct json *g = items->first; g; g = g->next, gpus++) {
        const struct json *simulated = json_get(g, "simulated");
        busy += text_is(word(g, "state"), "in use");
        bad += text_is(word(g, "state"), "unhealthy");
        made_up += simulated && simulated->flag;
        mw += MAX(json_int(g, "power_mw", 0), 0);
    }
    str_printf(out, "arcus top: %zu%s GPU%s, %zu in use", gpus, more ? "+" : "", gpus == 1 ? "" : "s", busy);
    if (bad)
        str_printf(out, ", %zu unhealthy", bad);
    if (made_up)
        str_printf(out, ", %zu simulated", made_up);
    if (mw)
        str_printf(out, ", %lld W", (long long)(mw / 1000));
    if (t->drawn)
        str_printf(out, "   (q: quit)");
    str_printf(out, "\n\n%s%-14s %3s %-24s %-9s %-16s  %-17s %-10s %4s %9s%s\n", t->c->colour ? "\033[1m" : "", "NODE", "GPU", "MODEL", "STATE", "UTILISATION", "MEMORY", "POWER",
               "TEMP", "CLOCK", t->c->colour ? "\033[0m" : "");
}

static void picture(struct str *out, const struct top *t, const struct json *reply)
{
    const struct json *items = json_get(reply, "items"), *next = json_get(reply, "next");
    put_head(out, t, items, next && next->type == JSON_TEXT);
    for (const struct json *g = items->first; g; g = g->next) {
        const struct json *tasks = json_get(g, "tasks");
        put_gpu(out, g);
        for (const struct json *k = tasks ? tasks->first : NULL; k; k = k->next)
            put_task(out, k);
    }
    if (!items->first)
        str_text(out, "no GPUs to show: operators see every one, others those that tasks of their project hold\n");
}

/* In place: what does not fit is left out, and what was there before goes. */
static void draw(const struct str *text)
{
    AUTO(str_done) struct str out = { 0 };
    int64_t rows = 24, cols = WIDTH, row = 0;
    if (!terminal_size(&rows, &cols))
        rows = 24, cols = WIDTH;
    str_text(&out, "\033[H");
    for (const char *at = text->at; *at && row < rows - 1; row++) {
        size_t n = strcspn(at, "\n");
        int escapes = *at == '\033' ? 8 : 0;    /* the head is bold */
        str_put(&out, at, MIN(n, (size_t)(cols + escapes)));
        str_text(&out, escapes ? "\033[0m\033[K\r\n" : "\033[K\r\n");
        at += n + (at[n] != 0);
    }
    str_text(&out, "\033[J");
    out_write(out.at, out.len);
}

/* --- asking */

/* Are the figures of every GPU that has some of this moment? Agents are asked for them when somebody begins to look. */
static bool is_fresh(struct cli *c, const struct json *reply)
{
    const struct json *items = json_get(reply, "items");
    int64_t at;
    for (const struct json *g = items ? items->first : NULL; g; g = g->next) {
        const struct json *simulated = json_get(g, "simulated");
        bool told = when_parse(word(g, "at"), &at) && os_wall_ms(c->os) - at < FRESH_MS;
        if (!told && !(simulated && simulated->flag) && !text_is(word(g, "state"), "unhealthy") && !text_is(word(g, "state"), "down"))
            return false;
    }
    return true;
}

static bool ask(struct top *t, bool all, struct json **reply)
{
    struct cli *c = t->c;
    struct json *doc = json_new(c->mem, JSON_OBJECT);
    for (const struct json *m = t->doc->first; m; m = m->next) {
        struct json *copy = json_new(c->mem, m->type);
        const char *name = m->name;
        *copy = *m;
        copy->next = NULL;
        json_add(doc, name, copy);
    }
    return all ? cli_get_all(c, VERB_GPU_LIVE, doc, 0, reply, &c->err) : cli_call(c, VERB_GPU_LIVE, doc, reply, &c->err);
}

static bool ask_fresh(struct top *t, bool all, struct json **reply)
{
    for (int i = 0; ask(t, all, reply); i++) {
        if (i == AGAIN_MOST || is_fresh(t->c, *reply))
            return true;
        cli_sleep(t->c, AGAIN_MS);
    }
    return false;
}

/* --- a terminal */

static void stop(struct top *t)
{
    t->quit = t->wake = true;
    os_stop(t->c->os);
}
static void on_key(void *arg, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr("qQ\003\004\033", at[i]) && at[i])
            stop(arg);
}
static void on_end(void *arg) { (void)arg; }        /* nobody types: a signal ends it */
static void on_signal(void *arg) { stop(arg); }
static void on_time(void *arg)
{
    struct top *t = arg;
    t->timer = NULL;
    t->wake = true;
    os_stop(t->c->os);
}

static int watch(struct top *t, const struct top_own *own)
{
    static const struct input_events events = { on_key, on_end };
    struct cli *c = t->c;
    struct arena *kept = c->mem;
    AUTO(terminal_restore) struct terminal *raw = terminal_raw(STDIN_FILENO);
    struct input *input = raw ? input_start(c, STDIN_FILENO, &events, t) : NULL;
    int code = 0;
    bool shown = false;
    os_on_signal(c->os, SIGTERM, on_signal, t);
    os_on_signal(c->os, SIGHUP, on_signal, t);
    os_on_signal(c->os, SIGINT, on_signal, t);
    for (int64_t i = 0; !t->quit && !code && (!own->count || i < own->count); i++) {
        struct json *reply;
        AUTO(str_done) struct str text = { 0 };
        c->mem = arena_new();       /* it may run for days */
        if (ask(t, false, &reply)) {
            picture(&text, t, reply);
            if (!shown)
                out_write("\033[?1049h\033[?25l", 14);
            shown = true;
            draw(&text);
        } else {
            code = rc_exit(c->err.rc);
        }
        arena_free(c->mem);
        c->mem = kept;
        t->wake = t->quit || code;
        t->timer = t->wake ? NULL : timer_start(c->os, own->every_s * 1000, on_time, t);
        cli_wait(c, &t->wake);
        timer_cancel(TAKE(t->timer));
    }
    input_stop(input);
    if (shown)
        out_write("\033[?25h\033[?1049l", 14);
    terminal_restore(TAKE(raw));
    if (code)
        print_error(c, &c->err);
    return code;
}

int word_top(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    if (!flags_parse(c, w, argc, argv, &f, &c->err))
        return print_error(c, &c->err);
    if (c->help)
        return word_help(w), 0;
    const struct top_own *own = f.own;
    struct top t = { .c = c, .doc = f.doc, .drawn = isatty(STDOUT_FILENO) && own->count != 1 };
    bool data = c->output == OUT_JSON || c->output == OUT_YAML;
    if (!cli_connect(c, &c->err))
        return print_error(c, &c->err);
    if (!data && t.drawn)
        return watch(&t, own);
    for (int64_t i = 0; i < MAX(own->count, (int64_t)1); i++) {
        AUTO(str_done) struct str text = { 0 };
        if (i)
            cli_sleep(c, own->every_s * 1000);
        if (!ask_fresh(&t, data, &reply))
            return print_error(c, &c->err);
        if (data)
            return print_data(c, reply), 0;
        picture(&text, &t, reply);
        out_write(text.at, text.len);
    }
    return 0;
}

static const struct field top_rows[] = {
    FIELD(struct top_own, count, INT, .min = 0, .max = INT64_C(1) << 40, .flag = "-n --count", .help = "pictures to show; 0: until q is pressed, or one where there is no terminal"),
    FIELD_AS(struct top_own, every_s, "every", DURATION, .min = 1, .max = 3600, .def = "1s", .flag = "-d --every", .help = "how often", .example = "2s"),
};
const struct fields top_fields = FIELDS(top_own, top_rows);
