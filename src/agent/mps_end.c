/* mps_end.c - before a process of a share is killed its daemon is asked to end what it does on the GPU (terminate_client): killed in the middle of that
 * it would take its neighbours' work with it.
 *
 * Three questions: which servers, which clients of them, and the end of those that are the attempt's (by the control group of the process). All of it
 * has a second; whoever waits for it goes on then, since a task that must end does end. */
#include "agent/helper.h"
#include "agent/mps_internal.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SERVERS_MOST = 8, CLIENTS_MOST = 256, WORDS_BYTES = 16384 };
enum round { ROUND_SERVERS, ROUND_CLIENTS, ROUND_ENDED };

struct ending {
    struct ending *next;
    struct mps *m;
    struct daemon *d;
    int64_t attempt;
    enum round round;
    int servers[SERVERS_MOST];
    size_t server_count;
    struct proc *proc;
    int answer;
    struct timer *timer;
    void (*done)(void *arg);
    void *arg;
};

static void ending_free(struct ending *e)
{
    timer_cancel(e->timer);
    if (e->proc)
        proc_kill(e->proc, SIGKILL);
    proc_forget(e->proc);
    if (e->answer != -1)
        close(e->answer);
    free(e);
}

static void over(struct ending *e)
{
    void (*done)(void *arg) = e->done;
    void *arg = e->arg;
    struct ending **at = &e->m->endings;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    ending_free(e);
    done(arg);
}

static void on_late(void *arg)
{
    struct ending *e = arg;
    e->timer = NULL;
    over(e);
}

static void on_answer(void *arg, int status);

static bool ask(struct ending *e, const char *words)
{
    struct err ignored = { 0 };
    if (e->answer != -1)
        close(e->answer);
    e->answer = -1;
    return *words && daemon_talk(e->d, words, on_answer, e, &e->proc, &e->answer, &ignored);
}

static size_t numbers(const char *text, int *out, size_t most)
{
    size_t n = 0;
    for (char *end; n < most && *text; text = *end ? end + 1 : end) {
        long v = strtol(text, &end, 10);
        if (end != text && v > 1 && v < 1 << 30)
            out[n++] = (int)v;
        end += strcspn(end, "\n");
    }
    return n;
}

static void words_for_clients(const struct ending *e, struct str *words)
{
    for (size_t i = 0; i < e->server_count; i++)
        str_printf(words, "get_client_list %d\n", e->servers[i]);
}

static void words_to_end(const struct ending *e, const char *answer, struct str *words)
{
    int clients[CLIENTS_MOST];
    size_t n = numbers(answer, clients, CLIENTS_MOST);
    for (size_t i = 0; i < n; i++)
        for (size_t s = 0; helper_attempt_of(clients[i]) == e->attempt && s < e->server_count; s++)
            str_printf(words, "terminate_client %d %d\n", e->servers[s], clients[i]);
}

static void on_answer(void *arg, int status)
{
    struct ending *e = arg;
    char answer[WORDS_BYTES] = "";
    AUTO(str_done) struct str words = { 0 };
    (void)status;
    e->proc = NULL;
    ssize_t n = pread(e->answer, answer, sizeof answer - 1, 0);
    answer[MAX(n, 0)] = 0;
    if (e->round == ROUND_SERVERS) {
        e->server_count = numbers(answer, e->servers, SERVERS_MOST);
        words_for_clients(e, &words);
    } else if (e->round == ROUND_CLIENTS)
        words_to_end(e, answer, &words);
    e->round++;
    if (e->round > ROUND_ENDED || !words.len || !ask(e, words.at))
        over(e);
}

void mps_terminate(struct mps *m, int64_t attempt, const char *uuid, void (*done)(void *arg), void *arg)
{
    struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    struct ending *e = d && d->proc && d->state == DAEMON_READY && mps_shared(m, uuid) ? calloc(1, sizeof *e) : NULL;
    if (!e) {                   /* nobody is beside it */
        done(arg);
        return;
    }
    *e = (struct ending){ .next = m->endings, .m = m, .d = d, .attempt = attempt, .answer = -1, .done = done, .arg = arg };
    m->endings = e;
    e->timer = timer_start(m->os, m->end_ms, on_late, e);
    if (!ask(e, "get_server_list\n"))
        over(e);
}

void endings_free(struct mps *m)
{
    for (struct ending *e = m->endings, *next; e; e = next) {
        next = e->next;
        ending_free(e);
    }
    m->endings = NULL;
}
