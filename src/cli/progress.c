/* progress.c - something moves on standard error while a person waits: a spinner, or a bar where
 * the whole is known.
 *
 * Only on a terminal, only after a second, and gone without a trace at the end. It is drawn by a
 * timer while the loop runs and by progress_set while a file is read outside of it. */
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { AFTER_MS = 1000, EVERY_MS = 100, BAR = 24 };

struct progress {
    struct cli *c;
    struct timer *timer;
    char what[256];
    int64_t done, total, began_ms, drawn_ms;
    int turn;
    bool shown;
};

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

static void draw(struct progress *p)
{
    static const char *const turns[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" };
    AUTO(str_done) struct str line = { 0 };
    p->drawn_ms = os_boot_ms(p->c->os);
    p->shown = true;
    if (p->total > 0) {
        int64_t done = MIN(p->done, p->total), filled = done * BAR / p->total;
        for (int64_t i = 0; i < BAR; i++)
            str_text(&line, i < filled ? "█" : "░");
        str_printf(&line, " %3lld%% %s ", (long long)(done * 100 / p->total), p->what);
        bytes_text(&line, done);
        str_text(&line, " of ");
        bytes_text(&line, p->total);
    } else {
        str_printf(&line, "%s %s", turns[p->turn++ % (int)COUNT(turns)], p->what);
    }
    size_t most = terminal_columns() - 1, cut = line.len;
    while (text_width(line.at) > most && cut > 0)
        line.at[--cut] = 0;
    while (cut > 0 && cut < line.len && ((unsigned char)line.at[cut - 1] & 0xc0) == 0xc0)
        line.at[--cut] = 0;             /* not half a character */
    fprintf(stderr, "\r\033[K%s", line.at);
    fflush(stderr);
}

static void tick(void *arg)
{
    struct progress *p = arg;
    p->timer = timer_start(p->c->os, EVERY_MS, tick, p);
    if (os_boot_ms(p->c->os) - p->began_ms >= AFTER_MS)
        draw(p);
}

struct progress *progress_start(struct cli *c, const char *what, int64_t total)
{
    if (!c->tty_err || c->quiet || c->progress)
        return NULL;
    struct progress *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct progress){ .c = c, .total = total, .began_ms = os_boot_ms(c->os) };
    snprintf(p->what, sizeof p->what, "%s", what);
    p->timer = timer_start(c->os, EVERY_MS, tick, p);
    c->progress = p;
    return p;
}

void progress_set(struct progress *p, int64_t done)
{
    if (!p)
        return;
    p->done = done;
    int64_t now = os_boot_ms(p->c->os);
    if (now - p->began_ms >= AFTER_MS && now - p->drawn_ms >= EVERY_MS)
        draw(p);
}

void progress_text(struct progress *p, const char *fmt, ...)
{
    AUTO(str_done) struct str clean = { 0 };
    char text[sizeof p->what];
    va_list ap;
    if (!p)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    clean_text(&clean, text);
    snprintf(p->what, sizeof p->what, "%s", clean.at ? clean.at : "");
}

void progress_clear(struct progress *p)
{
    if (!p || !p->shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->shown = false;
}

void progress_end(struct progress *p)
{
    if (!p)
        return;
    progress_clear(p);
    p->c->progress = NULL;
    timer_cancel(p->timer);
    free(p);
}
