/* sealed.c - the OCI runtime as a copy in memory that nobody can write to: it would make one itself and start over, so that a container cannot
 * reach its file on the node. Giving it one saves a second start.
 *
 * A program in memory has no place to look for libraries beside. So the bundle's runtime is a script that tells NAME.bin beside it where they
 * are (`./dev bundle`); we tell it that ourselves and save the script too. Any other script is run as it is. */
#include "task/task.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static bool copy_program(const char *path, int *out)
{
    AUTO(fd_close) int from = open(path, O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int copy = memfd_create("runtime", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    struct stat st;
    char magic[4] = "";
    if (from == -1 || copy == -1 || fstat(from, &st) == -1 || read(from, magic, 4) != 4 || memcmp(magic, "\177ELF", 4) != 0)
        return false;
    for (off_t at = 0; at < st.st_size;)
        if (sendfile(copy, from, &at, (size_t)(st.st_size - at)) <= 0)
            return false;
    if (fcntl(copy, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == -1)
        return false;
    *out = copy;
    copy = -1;
    return true;
}

void sealed_open(struct sealed *s, const char *path)
{
    const char *slash = strrchr(path, '/');
    *s = (struct sealed){ .fd = -1 };
    snprintf(s->path, sizeof s->path, "%s", path);
    if (!slash || copy_program(path, &s->fd))
        return;
    char program[MARK_PATH];
    struct stat st;
    if ((size_t)snprintf(program, sizeof program, "%s.bin", path) >= sizeof program
        || (size_t)snprintf(s->libraries, sizeof s->libraries, "LD_LIBRARY_PATH=%.*s/lib", (int)(slash - path), path) >= sizeof s->libraries
        || stat(strchr(s->libraries, '/'), &st) == -1 || !S_ISDIR(st.st_mode) || !copy_program(program, &s->fd))
        return;
    memcpy(s->path, program, sizeof program);
}

void sealed_close(struct sealed *s)
{
    fd_close(s->fd);
    s->fd = -1;
}
