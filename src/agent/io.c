/* io.c - see io.h. A weight counts where something looks at it: BFQ as the disk's scheduler, or io.cost switched on for it. Partitions have no limits of their own, so the
 * disk that they are of is meant. */
#include "agent/io.h"
#include "base/str.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static size_t get(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(out, 1, room - 1, f) : 0;
    out[n] = 0;
    if (f)
        fclose(f);
    return n;
}

/* The folder of the disk in sysfs, and its number; false: the data is on no block device (overlay, tmpfs, a network). */
static bool find_disk(const char *sys, struct io_means *m, char folder[static PATH_MAX])
{
    char path[PATH_MAX], text[64];
    snprintf(path, sizeof path, "%s/dev/block/%u:%u", sys, m->major, m->minor);
    if (!realpath(path, folder))
        return false;
    if ((size_t)snprintf(path, sizeof path, "%s/partition", folder) < sizeof path && access(path, F_OK) == 0)
        *strrchr(folder, '/') = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/dev", folder) >= sizeof path || !get(path, text, sizeof text)
        || sscanf(text, "%u:%u", &m->major, &m->minor) != 2)
        return false;
    text_cut(m->disk, sizeof m->disk, strrchr(folder, '/') + 1);
    return true;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
            return true;
    return false;
}

static bool uses_bfq(const char *folder)
{
    char path[PATH_MAX], text[256];
    return (size_t)snprintf(path, sizeof path, "%s/queue/scheduler", folder) < sizeof path && get(path, text, sizeof text) && strstr(text, "[bfq]");
}

/* Lines of io.cost.qos: "254:0 enable=1 ctrl=auto ..." */
static bool uses_cost(const struct cgroups *c, const struct io_means *m)
{
    char path[256], text[4096], begins[32];
    snprintf(path, sizeof path, "%s/io.cost.qos", c->mounts[0].path);
    snprintf(begins, sizeof begins, "%u:%u ", m->major, m->minor);
    get(path, text, sizeof text);
    for (char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
        if (text_starts(line, begins))
            return has_word(line, "enable=1");
    return false;
}

void io_find(const struct cgroups *c, const char *sys, unsigned major, unsigned minor, struct io_means *out)
{
    char folder[PATH_MAX], path[256], text[512];
    *out = (struct io_means){ .major = major, .minor = minor };
    if (!find_disk(sys, out, folder))
        return;
    if (c->unified) {
        snprintf(path, sizeof path, "%s/cgroup.controllers", c->mounts[0].path);
        out->limits = get(path, text, sizeof text) && has_word(text, "io");
        out->weight = !out->limits ? NULL : uses_bfq(folder) ? "io.bfq.weight" : uses_cost(c, out) ? "io.weight" : NULL;
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        snprintf(path, sizeof path, "%s/blkio.throttle.write_bps_device", c->mounts[i].path);
        out->limits |= access(path, W_OK) == 0;
    }
}

void io_find_for(const struct cgroups *c, const char *folder, struct io_means *out)
{
    struct stat st;
    *out = (struct io_means){ 0 };
    if (stat(folder, &st) == 0)
        io_find(c, "/sys", major(st.st_dev), minor(st.st_dev), out);
}
