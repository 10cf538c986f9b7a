/* mps_watch.c - a process that faults on a shared GPU, or is killed in the middle of its work there, ends the GPU work of all who share it: its server
 * tells each of them an error (700 on an H200), and none of them why. Here it is noticed: by what the daemon and its servers write (RUN/mps/GPU/log/daemon), and by the
 * errors that the driver tells by number.
 *
 * Who may have caused it is mps_pids.c's. The line that names a process may come behind a line, or an error of the driver, that names none: for half a second
 * such a one is a suspicion. One that was alone there has itself to blame, and nobody is told. What is written is read once and
 * bounded: who connects ten thousand times fills no disk. */
#include "agent/mps_internal.h"
#include "agent/xid.h"
#include "base/log.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MOST = 4 << 20, READ_MOST = 64 << 10, BURST_MS = 3000, RECENT_MS = 10000, NAMED_MS = 500, BESIDE_MS = 5000, WATCH_MS = 100, FRESH_MS = 60000 };

/* In the daemon's own words; a server that ends well had nobody left. */
static bool tells_fault(const char *line)
{
    static const char *const words[] = { "fatal", "FAULT", "exited with status" };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(line, words[i]))
            return !strstr(line, "exited with status 0");
    return false;
}

/* "... Client {PID: 1002, Context ID: 1} ...": whose process that is; 0: it is not told, or of no task. Whoever is named is kept: he may be gone when he is
 * named the next time. */
static int64_t named(struct daemon *d, const char *line)
{
    int pid = mps_client_in(line);
    int64_t whose = pid ? daemon_whose(d, pid) : 0;
    daemon_saw(d, pid, whose);
    return whose;
}

/* "[2026-11-16 11:12:01.480 Server  8807] ...", in the time of this place; else: as good as none. */
static int64_t time_of(const char *line, int64_t other)
{
    struct tm t = { .tm_isdst = -1 };
    int ms;
    if (sscanf(line, "[%4d-%2d-%2d %2d:%2d:%2d.%3d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec, &ms) != 7)
        return other;
    t.tm_year -= 1900;
    t.tm_mon--;
    int64_t at = (int64_t)mktime(&t) * 1000 + ms;
    return at <= other && at > other - FRESH_MS ? at : other;
}

static size_t let_in(const struct daemon *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->count; i++)
        n += !d->holders[i].done;
    return n;
}

/* Who failed there may be gone, even well, before those whom it hit have noticed. */
static bool is_shared(const struct daemon *d)
{
    return let_in(d) > 1 || (let_in(d) == 1 && d->beside_ms && os_boot_ms(d->m->os) - d->beside_ms < BESIDE_MS);
}

void daemon_parts(struct daemon *d)
{
    if (let_in(d) > 1)
        d->beside_ms = os_boot_ms(d->m->os);
}

static void fault(struct daemon *d, const char *how, int64_t named, int64_t at_ms)
{
    *d->suspicion = 0;
    if (d->state != DAEMON_READY && d->state != DAEMON_DIVIDING)
        return;
    d->fault_ms = os_boot_ms(d->m->os);
    log_line(LOG_WARN, "mps", "%s: a process on it failed: %s", d->uuid, how);
    *d->fault = 0;              /* what is said there may be of another time */
    if (!is_shared(d))
        return;
    snprintf(d->fault, sizeof d->fault, "a process on its GPU failed (%.120s), which ends the GPU work of all that share it", how);
    daemon_hush(d);
    daemon_judge(d, named, at_ms);
    daemon_lost(d, d->fault);
}

/* The first one counts: what follows may be the echo of it at those who were hit. */
static void suspect(struct daemon *d, const char *how, int64_t at_ms)
{
    if (*d->suspicion)
        return;
    text_cut(d->suspicion, sizeof d->suspicion, how);
    d->suspected_ms = os_boot_ms(d->m->os);
    d->suspected_wall_ms = at_ms;
}

static void take_lines(struct daemon *d, char *text)
{
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        int64_t whose = named(d, line);
        if (!tells_fault(line))
            continue;
        const char *words = strchr(line, ']');
        words = words ? words + 1 + (words[1] == ' ') : line;
        int64_t at_ms = *d->suspicion ? d->suspected_wall_ms : time_of(line, os_wall_ms(d->m->os));
        if (whose) {
            fault(d, words, whose, at_ms);
            return;
        }
        suspect(d, words, at_ms);
    }
    if (*d->suspicion && (!is_shared(d) || os_boot_ms(d->m->os) - d->suspected_ms >= NAMED_MS)) {
        char how[sizeof d->suspicion];
        text_copy(how, sizeof how, d->suspicion);
        fault(d, how, 0, d->suspected_wall_ms);
    }
}

static void look(struct daemon *d)
{
    char path[MPS_PATH + 16], text[READ_MOST + 1];
    struct stat st;
    snprintf(path, sizeof path, "%s/log/daemon", d->folder);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        if (fd != -1)
            close(fd);
        take_lines(d, strcpy(text, ""));
        return;
    }
    d->log_at = st.st_size < d->log_at ? 0 : MAX(d->log_at, st.st_size - READ_MOST);
    ssize_t n = pread(fd, text, READ_MOST, d->log_at);
    text[MAX(n, 0)] = 0;
    char *last = strrchr(text, '\n');       /* half a line is read again */
    if (last) {
        last[1] = 0;
        d->log_at += last + 1 - text;
    }
    if (st.st_size > LOG_MOST && ftruncate(fd, 0) == 0)
        d->log_at = 0;
    close(fd);
    take_lines(d, text);
}

void daemon_skip_log(struct daemon *d)
{
    char path[MPS_PATH + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/log/daemon", d->folder);
    d->log_at = lstat(path, &st) == 0 ? st.st_size : 0;
    *d->suspicion = 0;
}

void mps_look(struct mps *m)
{
    for (struct daemon *d = m ? m->first : NULL; d; d = d->next)
        if (d->count && (d->state == DAEMON_READY || d->state == DAEMON_DIVIDING))
            look(d);
}

/* A client that comes, fails and is gone between two looks of the driver would be named in vain. */
static void on_watch(void *arg)
{
    struct mps *m = arg;
    m->watch = NULL;
    mps_look(m);
    mps_keep_watch(m);
}

void mps_keep_watch(struct mps *m)
{
    bool some = false;
    for (const struct daemon *d = m->first; d; d = d->next)
        some |= d->count > 1;
    if (some && !m->watch)
        m->watch = timer_start(m->os, WATCH_MS, on_watch, m);
}

/* They come in bursts, also after what caused them is over: what is written by a new daemon is its own, a number may be the last one's. */
void mps_xid(struct mps *m, const char *uuid, int64_t xid)
{
    struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    char how[64];
    if (!d || !xid_of_program(xid) || (d->fault_ms && os_boot_ms(m->os) - d->fault_ms < BURST_MS))
        return;
    snprintf(how, sizeof how, "XID %" PRId64, xid);
    suspect(d, how, os_wall_ms(m->os));
}

const char *mps_fault(struct mps *m, const char *uuid)
{
    struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    bool recent = d && *d->fault && os_boot_ms(m->os) - d->fault_ms < RECENT_MS;
    return recent ? d->fault : NULL;
}

bool mps_shared(const struct mps *m, const char *uuid)
{
    const struct daemon *d = m ? daemon_of(m, uuid) : NULL;
    return d && is_shared(d);
}
