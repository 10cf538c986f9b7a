/* runtime_words.c - the words of crun 1.8 and runc 1.1, and whose fault they tell of. */
#include "agent/runtime_words.h"
#include <stdio.h>

/* The word between the first quotes of either kind: crun writes `x`, runc \"x\". */
static bool quoted(const char *text, char *out, size_t room)
{
    const char *open = strpbrk(text, "`\""), *end = open ? strpbrk(open + 1, "`\"\\") : NULL;
    return open && end && end > open + 1
           && snprintf(out, room, "%.*s", (int)(end - open - 1), open + 1) > 0;
}

/* What crun and runc say when a process of theirs is gone all of a sudden. One that fails by itself tells why. */
static const char *const helper_lost[]
    = { "read from the init process", "read from sync socket", "read pid from sync socket",
        "read status from sync socket", "invalid read from sync pipe", "unexpected EOF",
        "can't get final child's PID from pipe: EOF" };
static const char *const helper_lost_end[]
    = { ": No such process", ": Broken pipe", ": Connection reset by peer" };

static bool lost_helper(const char *words)
{
    for (size_t i = 0; i < COUNT(helper_lost); i++)
        if (strstr(words, helper_lost[i]))
            return true;
    size_t len = strlen(words);
    for (size_t i = 0; i < COUNT(helper_lost_end); i++) {
        size_t n = strlen(helper_lost_end[i]);
        if (len >= n && text_is(words + len - n, helper_lost_end[i]))
            return true;
    }
    return false;
}

bool runtime_why(const char *runtime, const char *log, struct err *err)
{
    char words[RUNTIME_WORDS], what[128];
    const char *at = strstr(log, "msg=\"");
    at = at ? at + 5 : log;
    snprintf(words, sizeof words, "%.*s", (int)MIN(strcspn(at, "\n"), sizeof words - 1), at);
    const char *names = strstr(words, "exec: ");
    if (lost_helper(words))
        return err_set(err, RC_INTERNAL, "it could not be started: a process of %s was killed", runtime);
    if (strstr(words, "not found in $PATH") && quoted(names ? names + 6 : words, what, sizeof what))
        err_set(err, RC_BAD_INPUT, "%s: command not found in the image", what);
    else if (strstr(words, "open executable") || (names && strstr(names, "permission denied")))
        err_set(err, RC_BAD_INPUT,
                "the command cannot be executed: it is not an executable file, or its user may not "
                "run it");
    else
        err_set(err, RC_INTERNAL, "it could not be started: %s", words);
    return true;
}
