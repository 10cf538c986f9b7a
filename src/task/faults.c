/* faults.c - the n-th failure inside a supervisor, which is a program of its own and gets no environment: RUN/fault-ATTEMPT has the
 * name of a place and a number, and what was made to fail is written to RUN/fired-ATTEMPT. Not in a release build. */
#include "base/fault.h"
#include "task/task.h"
#ifdef FAULTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static char fired_path[4200], point_name[64];

static void tell(const char *point)
{
    char text[64]; /* children of ours count on by themselves, so there may be several */
    int n = snprintf(text, sizeof text, " %s ", point);
    AUTO(fd_close) int fd = open(fired_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd == -1 || write(fd, text, (size_t)n) < 0)
        abort();
}

void faults_arm(const struct plan *p)
{
    char path[4200], text[80] = "";
    int nth = 0;
    snprintf(fired_path, sizeof fired_path, "%s/../../fired-%s", p->run, p->id);
    snprintf(path, sizeof path, "%s/../../fault-%s", p->run, p->id);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    fault_on(tell);
    if (n > 0 && sscanf(text, "%63s %d", point_name, &nth) == 2)
        fault_arm_at(point_name, nth);
}

bool faults_asked(int argc, char **argv)
{
    struct fault_point *p;
    if (argc != 2 || !text_is(argv[1], "--faults"))
        return false;
    for (size_t at = 0; (p = fault_next(&at));)
        puts(p->name);
    return true;
}
#endif
