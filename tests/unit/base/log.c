#include "base/log.h"
#include "base/str.h"
#include "tap.h"
#include <stdlib.h>
#include <unistd.h>

/* What log_line writes, caught from standard error. */
static char *caught(enum log_level level, const char *text, char out[static 4096])
{
    int pipe_fd[2], saved = dup(STDERR_FILENO);
    if (saved == -1 || pipe(pipe_fd) == -1)
        abort();
    dup2(pipe_fd[1], STDERR_FILENO);
    log_line(level, "test", "%s", text);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(pipe_fd[1]);
    ssize_t n = read(pipe_fd[0], out, 4095);
    close(pipe_fd[0]);
    out[n > 0 ? n : 0] = 0;
    return out;
}

TEST(a_line_has_time_level_who_and_text)
{
    char out[4096];
    caught(LOG_INFO, "hello", out);
    CHECK(strlen(out) == 24 + strlen(" info  test    hello\n") && text_is(out + 24, " info  test    hello\n") && out[10] == 'T' && out[23] == 'Z');
    caught(LOG_DEBUG, "quiet", out);
    CHECK(out[0] == 0);
    log_level_set(LOG_ERROR);
    CHECK(!*caught(LOG_WARN, "quiet", out) && *caught(LOG_ERROR, "loud", out));
    log_level_set(LOG_INFO);
}

TEST(a_name_from_outside_cannot_forge_a_line)
{
    char out[4096];
    caught(LOG_INFO, "a\nb\r\x1b[2J\x7f\tc", out);
    CHECK(strchr(out, '\n') == out + strlen(out) - 1 && !strpbrk(out, "\r\x1b\x7f\t"));
}

TEST(long_lines_are_cut_and_still_end)
{
    char big[5000], out[4096];
    for (size_t n = 950; n < 1100; n++) {
        memset(big, 'x', n), big[n] = 0;
        caught(LOG_WARN, big, out);
        if (strlen(out) > 1024 || out[strlen(out) - 1] != '\n')
            CHECK(!"a line is cut badly");
    }
}

TEST(levels_have_names)
{
    enum log_level l = LOG_ERROR;
    CHECK(log_level_of("debug", &l) && l == LOG_DEBUG && log_level_of("warn", &l) && l == LOG_WARN && !log_level_of("WARN", &l) && !log_level_of(NULL, &l) && l == LOG_WARN);
}
