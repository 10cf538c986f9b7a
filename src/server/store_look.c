/* store_look.c - a large store is looked at while it is served: by a process of its own (`arcus store-check FILE`, which nobody types), so that neither its
 * reading nor its time is ours, and it ends with us. A damaged one is left as it is, and so are we: with what to do, as a small one is
 * refused at the start. What the check itself cannot do stops nobody. */
#include "base/log.h"
#include "server/server.h"
#include "store/store.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIND = 10, DAMAGED = 86 };       /* KIND: to everybody else who wants a processor. DAMAGED: an exit code that nothing else has by accident */

struct store_look {
    struct proc *proc;
    void (*on_damaged)(void *arg);
    void *arg;
};

static void on_exit_of(void *arg, int status)
{
    struct store_look *c = arg;
    c->proc = NULL;
    if (WIFEXITED(status) && WEXITSTATUS(status) == DAMAGED)
        c->on_damaged(c->arg);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        log_line(LOG_WARN, "server", "whether the store is damaged could not be looked at");
}

struct store_look *store_look_start(struct os *os, const char *self, const char *where, void (*on_damaged)(void *arg), void *arg)
{
    if (!store_is_large(where))
        return NULL;
    struct store_look *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct store_look){ .on_damaged = on_damaged, .arg = arg };
    const char *argv[] = { self, "store-check", where, NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    struct proc_spec spec = { .argv = argv, .env = env, .in = -1, .out = STDERR_FILENO, .err = STDERR_FILENO };
    struct err err = { 0 };
    if (!proc_spawn(os, &spec, on_exit_of, c, &c->proc, &err))
        log_line(LOG_WARN, "server", "whether the store is damaged could not be looked at: %s", err.text);
    return c;
}

void store_look_stop(struct store_look *c)
{
    if (!c)
        return;
    if (c->proc) {
        proc_kill(c->proc, SIGKILL);
        proc_forget(c->proc);
    }
    free(c);
}

int store_look_main(int argc, char **argv)
{
    struct err err = { 0 };
    if (argc != 2) {
        fprintf(stderr, "arcus store-check: it is started by the server\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)!nice(KIND);
    if (store_check(argv[1], &err))
        return 0;
    log_line(err.rc == RC_INTERNAL ? LOG_ERROR : LOG_WARN, "server", "%s", err.text);
    return err.rc == RC_INTERNAL ? DAMAGED : 1;
}
