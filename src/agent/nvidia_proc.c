/* nvidia_proc.c - see nvidia_proc.h. */
#include "agent/nvidia_proc.h"
#include "base/field.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool nvidia_proc_read(const char *path, char out[static NVIDIA_PROC_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd == -1 ? -1 : read(fd, out, NVIDIA_PROC_BYTES - 1);
    if (fd != -1)
        close(fd);
    out[MAX(n, 0)] = 0;
    return n > 0;
}

bool nvidia_proc_value(const char *text, const char *key, char *out, size_t room)
{
    const char *at = strstr(text, key);
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    size_t n = strcspn(at, " \t\n");
    snprintf(out, room, "%.*s", (int)MIN(n, room - 1), at);
    return n > 0 && n < room;
}

const char *nvidia_proc_device(const char *gpus, const char *uuid, const char *pci, struct arena *mem)
{
    const char *found = NULL;
    DIR *d = opendir(gpus);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        char text[NVIDIA_PROC_BYTES], told[96] = "", minor[16];
        if (e->d_name[0] == '.' || !nvidia_proc_read(arena_printf(mem, "%s/%s/information", gpus, e->d_name), text)
            || !nvidia_proc_value(text, "Device Minor:", minor, sizeof minor) || strspn(minor, "0123456789") != strlen(minor))
            continue;
        nvidia_proc_value(text, "GPU UUID:", told, sizeof told);
        if (text_is(told, uuid) || (pci && strcasecmp(e->d_name, pci) == 0))
            found = arena_printf(mem, "/dev/nvidia%s", minor);
    }
    if (d)
        closedir(d);
    return found;
}
