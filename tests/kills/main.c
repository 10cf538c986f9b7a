/* main.c - kills BASE ARCUS TESTS SEED SECONDS KILLS [PG STORE]: runs the whole of it. BASE gets kills.log (what was done when) and
 * problems (KIND: text, one a line; empty when all is well). Exits with 1 if there is one. */
#include "kills.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

void say(struct cloud *c, const char *fmt, ...)
{
    va_list args;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    va_start(args, fmt);
    flockfile(c->log);
    fprintf(c->log, "%lld.%03ld ", (long long)t.tv_sec % 100000, t.tv_nsec / 1000000);
    vfprintf(c->log, fmt, args);
    fputc('\n', c->log);
    fflush(c->log);
    funlockfile(c->log);
    va_end(args);
}

void problem(struct cloud *c, const char *kind, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    flockfile(c->problems);
    fprintf(c->problems, "%s: ", kind);
    vfprintf(c->problems, fmt, args);
    fputc('\n', c->problems);
    fflush(c->problems);
    c->problem_count++;
    funlockfile(c->problems);
    va_end(args);
}

const char *path_of(char out[static PATH_MOST], const struct cloud *c, const char *fmt, ...)
{
    va_list args;
    int n = snprintf(out, PATH_MOST, "%s/", c->base);
    va_start(args, fmt);
    vsnprintf(out + n, (size_t)(PATH_MOST - n), fmt, args);
    va_end(args);
    return out;
}

static void *follower_run(void *arg)
{
    follow_events(arg);
    return NULL;
}

static void run(struct cloud *c)
{
    struct client clients[CLIENTS + 1];
    pthread_t follower;
    pthread_create(&follower, NULL, follower_run, c);
    for (int i = 0; i <= CLIENTS; i++) {
        clients[i] = (struct client){ .c = c,
                                      .number = i,
                                      .rng = { c->seed * 7919 + (uint64_t)i * 104729 } };
        pthread_create(&clients[i].thread, NULL, i < CLIENTS ? client_run : guests_run,
                       &clients[i]);
    }
    kill_for_a_while(c);
    say(c, "the killing is over");
    c->load_stops = true;
    for (int i = 0; i <= CLIENTS; i++)
        while (pthread_tryjoin_np(clients[i].thread, NULL) != 0)
            parts_run(c, 50);
    settle(c);
    say(c, "settled");
    nets_check(c);
    check_books(c);
    c->all_stops = true;
    pthread_join(follower, NULL);
    c->all_stops = false;
}

int main(int argc, char **argv)
{
    static struct cloud c = { .lock = PTHREAD_MUTEX_INITIALIZER };
    char path[PATH_MOST];
    if (argc != 7 && argc != 9) {
        fprintf(stderr, "usage: kills BASE ARCUS TESTS SEED SECONDS KILLS [PG-FOLDER STORE-URL]\n");
        return 64;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    c.base = argv[1], c.arcus = argv[2], c.tests = argv[3];
    c.seed = strtoull(argv[4], NULL, 10);
    c.seconds = atoll(argv[5]);
    c.kills = atoi(argv[6]);
    if (argc == 9)
        c.pg = argv[7], c.store = argv[8];
    c.jobs = calloc(JOBS_MOST, sizeof *c.jobs);
    c.keys = calloc(KEYS_MOST, sizeof *c.keys);
    c.log = fopen(path_of(path, &c, "kills.log"), "we");
    c.problems = fopen(path_of(path, &c, "problems"), "we");
    if (!c.jobs || !c.keys || !c.log || !c.problems)
        abort();
    if (!cloud_start(&c))
        return problem(&c, "process", "the cloud does not come up"), 1;
    c.began = now_ms();
    run(&c);
    parts_stop(&c);
    fclose(c.log);
    fclose(c.problems);
    free(c.jobs);
    free(c.keys);
    return c.problem_count > 0;
}
