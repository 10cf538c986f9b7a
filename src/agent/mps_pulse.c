/* mps_pulse.c - a daemon that lives and answers nothing is as good as dead: on an H200 one hung for ever, with all who came to it later, when a client had died
 * while it waited for its server to start. So it is asked how its server does, as long as somebody holds a part of its GPU, by a process that may hang with it.
 * Where that has not answered by the next time, and not by the time after it either, the daemon is killed and its tasks are told as for any that is gone: nobody
 * is suspected. That a client waits for a server at all is avoided by mps_tell.c. */
#include "agent/mps_internal.h"
#include "base/log.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void on_answer(void *arg, int status)
{
    struct daemon *d = arg;
    char answer[256] = "";
    (void)status;
    d->pulse = NULL;
    d->misses = 0;
    ssize_t n = pread(d->pulse_answer, answer, sizeof answer - 1, 0);
    answer[MAX(n, 0)] = 0;
    if (!d->server)
        d->server = mps_first_number(answer);
    else if (strstr(answer, "not found"))
        d->server = 0;
}

void daemon_pulse_stop(struct daemon *d)
{
    if (d->pulse)
        proc_kill(d->pulse, SIGKILL);
    proc_forget(TAKE(d->pulse));
    if (d->pulse_answer > 0)
        close(d->pulse_answer);
    d->pulse_answer = 0;
}

static void feel(struct daemon *d)
{
    struct err err = { 0 };
    char words[64] = "get_server_list\n";
    d->misses += d->pulse != NULL;
    daemon_pulse_stop(d);
    if (d->state != DAEMON_READY || !d->proc || !daemon_holds(d)) {
        d->misses = 0;
        return;
    }
    if (d->misses >= MPS_MISSES) {
        d->misses = 0;
        daemon_fails(d, "the MPS daemon of its GPU does not answer any more");
        if (d->proc)
            proc_kill(d->proc, SIGKILL);
        return;
    }
    if (d->server)
        snprintf(words, sizeof words, "get_server_status %d\n", d->server);
    if (!daemon_talk(d, words, on_answer, d, &d->pulse, &d->pulse_answer, &err))
        log_line(LOG_WARN, "mps", "%s: its daemon cannot be asked: %s", d->uuid, err.text);
}

static void on_beat(void *arg)
{
    struct mps *m = arg;
    m->beat = NULL;
    for (struct daemon *d = m->first; d; d = d->next)
        feel(d);
    mps_keep_beat(m);
}

void mps_keep_beat(struct mps *m)
{
    bool some = false;
    for (const struct daemon *d = m->first; d; d = d->next)
        some |= d->count > 0 || d->pulse;
    if (some && !m->beat)
        m->beat = timer_start(m->os, m->beat_ms, on_beat, m);
}
