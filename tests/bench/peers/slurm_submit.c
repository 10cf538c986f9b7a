/* slurm_submit.c - how many batch jobs a second Slurm takes through its own library, from several processes at once. Held jobs: only
 * the taking is measured; else as sbatch gives them by default. Built by submits.sh where libslurm-dev is there; SLURM_CONF says which cluster.
 *
 *   slurm_submit PROCESSES SECONDS [held]      prints a rate */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int submit(double until, bool held, int out)
{
    char *env[] = { "PATH=/bin:/usr/bin", NULL };
    long count = 0;
    slurm_init(NULL);
    while (now() < until) {
        job_desc_msg_t d;
        submit_response_msg_t *r = NULL;
        slurm_init_job_desc_msg(&d);
        d.name = "bench";
        d.script = "#!/bin/sh\ntrue\n";
        d.work_dir = "/tmp";
        d.environment = env;
        d.env_size = 1;
        d.user_id = getuid();
        d.group_id = getgid();
        if (held)
            d.priority = 0;
        d.min_cpus = 1;
        if (slurm_submit_batch_job(&d, &r) != 0) {
            fprintf(stderr, "slurm_submit: %s\n", slurm_strerror(errno));
            return 1;
        }
        slurm_free_submit_response_response_msg(r);
        count++;
    }
    return write(out, &count, sizeof count) != sizeof count;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 8, fds[2], bad = 0, status;
    double seconds = argc > 2 ? atof(argv[2]) : 5, until = now() + seconds;
    long total = 0, one;
    if (pipe(fds) != 0)
        return 1;
    for (int i = 0; i < processes; i++)
        if (fork() == 0)
            _exit(submit(until, argc > 3, fds[1]));
    close(fds[1]);
    while (read(fds[0], &one, sizeof one) == sizeof one)
        total += one;
    while (wait(&status) > 0)
        bad |= status;
    printf("%.0f\n", (double)total / seconds);
    return bad != 0;
}
