/* faults.c - the n-th failure inside a supervisor, which is a program of its own and gets no environment: RUN/fault has the number, and
 * what was made to fail is written to RUN/fault.fired. Not in a release build. */
#include "base/fault.h"
#include "task/task.h"
#ifdef FAULTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static char fired_path[4200];

static void tell(const char *point)
{
    AUTO(fd_close) int fd = open(fired_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd == -1 || write(fd, point, strlen(point)) < 0)
        abort();
}

void faults_arm(const struct plan *p)
{
    char path[4200], text[16] = "";
    snprintf(fired_path, sizeof fired_path, "%s/../../fault.fired", p->run);
    snprintf(path, sizeof path, "%s/../../fault", p->run);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    fault_on(tell);
    if (n > 0)
        fault_arm(atoi(text));
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
