/* progress.c - seen only by people, only when it takes long, and gone at the end. */
#include "cli_test.h"
#include <fcntl.h>
#include <unistd.h>

static const char *shown(struct stage *s, int64_t total, int64_t ms)
{
    int saved = dup(2), fd = open(stage_path(s, "seen"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char text[65536];
    CHECK(saved != -1 && dup2(fd, 2) == 2);
    struct progress *p = progress_start(s->c, "copying", total);
    CHECK(!p || !progress_start(s->c, "another", 0)); /* there is never a second */
    progress_set(p, total / 2);
    cli_sleep(s->c, ms);
    progress_set(p, total / 2);
    progress_end(p);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[MAX(n, 0)] = 0;
    dup2(saved, 2);
    close(saved);
    close(fd);
    return text;
}

TEST(progress_is_for_people_who_wait)
{
    AUTO(stage_down) struct stage s = stage_up();
    CHECK(!*shown(&s, 0, 5)); /* no terminal */
    s.c->tty_err = true;
    CHECK(!*shown(&s, 0, 150)); /* not long enough */
    const char *bar = shown(&s, 4096, 1150);
    CHECK(strstr(bar, " 50% copying 2.0 KB of 4.0 KB"));
    CHECK(strlen(bar) > 4 && text_is(bar + strlen(bar) - 4, "\r\033[K"));
    s.c->quiet = true;
    CHECK(!*shown(&s, 0, 5));
    CHECK(!s.c->progress);
}
