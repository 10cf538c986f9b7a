/* parts.c - the processes of the cloud: kept running, killed on request, found in /proc. Only the main thread starts and reaps, since
 * a child is to end with the thread that started it. */
#include "kills.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TICK_MS = 10,
    AGAIN_MS = 300,
    START_MS = 60000,
    STOP_MS = 30000,
    MINE_MOST = 4096,
    LEASE_S = 5,
    UNAVAILABLE = 7 /* it leaves with this where the database is away as it starts */
};

static pid_t spawn(const char *const *argv, const char *log)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644), in = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

static pid_t start_server(struct cloud *c)
{
    char data[PATH_MOST], log[PATH_MOST], listen[32], lease[8];
    const char *argv[16] = { c->arcus,   "server", "--data",          path_of(data, c, "data"),
                             "--listen", listen,   "--default-image", "host",
                             "--lease",  lease };
    snprintf(listen, sizeof listen, "127.0.0.1:%d", c->port);
    snprintf(lease, sizeof lease, "%d", LEASE_S);
    if (c->store)
        argv[10] = "--store", argv[11] = c->store;
    return spawn(argv, path_of(log, c, "server.log"));
}

static pid_t start_agent(struct cloud *c, const struct part *p)
{
    char data[PATH_MOST], run[PATH_MOST], log[PATH_MOST], url[64];
    const char *argv[24] = { c->arcus,
                             "agent",
                             "--server",
                             url,
                             "--data",
                             path_of(data, c, "%s.data", p->name),
                             "--run",
                             path_of(run, c, "%s.run", p->name),
                             "--name",
                             p->name,
                             "--allow-host-image",
                             "--sim-gpus",
                             "8",
                             "--beat-ms",
                             "500",
                             "--token",
                             p->token };
    snprintf(url, sizeof url, "http://127.0.0.1:%d", c->port);
    return spawn(argv, path_of(log, c, "%s.log", p->name));
}

static void ended(struct cloud *c, struct part *p, int status)
{
    p->pid = 0;
    if (p->killed || !p->wanted) {
        p->killed = false;
        p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return;
    }
    bool guest = p >= &c->parts[FIRST_GUEST];
    p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    p->start_at = now_ms() + AGAIN_MS;
    say(c, "%s ended by itself with %d", p->name, p->code);
    if (guest && WIFEXITED(status)) {
        p->refused = true; /* its token was spent by an answer that a kill swallowed */
        p->wanted = false;
    } else if (WIFSIGNALED(status) || p != &c->parts[SERVER] || !c->pg || p->code != UNAVAILABLE) {
        problem(c, "process", "%s ended by itself with %d (its log is %s.log)", p->name, p->code,
                p->name);
    }
}

void parts_tick(struct cloud *c)
{
    int status;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < PARTS; i++) {
        struct part *p = &c->parts[i];
        if (p->pid && waitpid(p->pid, &status, WNOHANG) == p->pid)
            ended(c, p, status);
        if (p->pid && !p->wanted && !p->told)
            p->told = kill(p->pid, SIGTERM) == 0;
        if (p->wanted && !p->pid && now_ms() >= p->start_at)
            p->pid = i == SERVER ? start_server(c) : start_agent(c, p);
    }
    pthread_mutex_unlock(&c->lock);
}

/* PostgreSQL comes back in the background: what else happens meanwhile must cope. */
static void db_tick(struct cloud *c)
{
    int status;
    char script[PATH_MOST], log[PATH_MOST];
    const char *argv[] = { "/bin/sh", script, c->pg, NULL };
    /* A postmaster whose recovery was killed gives up by itself, and takes its file with it. */
    if (c->pg && !c->db_down && access(path_of(log, c, "pg/data/postmaster.pid"), F_OK) != 0)
        c->db_down = true;
    if (!c->pg || !c->db_down)
        return;
    if (c->db_starter && waitpid(c->db_starter, &status, WNOHANG) == c->db_starter) {
        c->db_starter = 0;
        c->db_next = now_ms() + AGAIN_MS;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            c->db_down = false;
            say(c, "the database is back");
            return;
        }
    }
    if (!c->db_starter && now_ms() >= c->db_next) {
        snprintf(script, sizeof script, "%s/pg_start.sh", c->tests);
        c->db_starter = spawn(argv, path_of(log, c, "pg.log"));
    }
}

void parts_run(struct cloud *c, int64_t ms)
{
    int64_t until = now_ms() + ms;
    do {
        parts_tick(c);
        db_tick(c);
        sleep_ms(MIN(TICK_MS, MAX(until - now_ms(), 1)));
    } while (now_ms() < until);
}

void part_kill(struct cloud *c, struct part *p, int64_t down_ms)
{
    pthread_mutex_lock(&c->lock);
    if (p->pid && !p->killed) {
        p->killed = true;
        p->start_at = now_ms() + down_ms;
        kill(p->pid, SIGKILL);
    }
    pthread_mutex_unlock(&c->lock);
}

bool part_up(struct cloud *c, int i)
{
    pthread_mutex_lock(&c->lock);
    bool up = c->parts[i].pid && !c->parts[i].killed;
    pthread_mutex_unlock(&c->lock);
    return up;
}

bool parts_stop(struct cloud *c)
{
    int64_t until = now_ms() + STOP_MS;
    bool left = true, good = true;
    for (int i = PARTS - 1; i >= 0; i--)
        if (i != SERVER || !left)
            c->parts[i].wanted = false;
    while (left && now_ms() < until) {
        parts_run(c, 50);
        left = false;
        for (int i = FIRST_AGENT; i < PARTS; i++)
            left |= c->parts[i].pid != 0;
    }
    c->parts[SERVER].wanted = false;
    while (c->parts[SERVER].pid && now_ms() < until)
        parts_run(c, 50);
    for (int i = 0; i < PARTS; i++) {
        struct part *p = &c->parts[i];
        if (!*p->name || p->refused || (!p->pid && !p->code))
            continue;
        if (i >= FIRST_GUEST && (p->code == 137 || p->code == 143))
            continue; /* not needed any more before it was up again */
        good = false;
        problem(c, "process", "%s, asked to stop, %s %d", p->name,
                p->pid ? "goes on as" : "left with", p->pid ? (int)p->pid : p->code);
    }
    return good;
}

/* --- /proc */

static bool is_ours(const char *base, bool runtimes, const char *text, size_t n)
{
    if (!memmem(text, n, base, strlen(base)))
        return false;
    const char *first = strrchr(text, '/');
    bool task = text_starts(text, base) && first && text_is(first, "/arcus-task");
    return runtimes ? !task && memmem(text, n, "\0--pid-file", 11) : task;
}

/* A container's first process bears the runtime's name until it becomes what was asked for. Killed then, it is the task that was. */
static bool is_container(pid_t pid)
{
    char path[64], line[256];
    int levels = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !levels && fgets(line, sizeof line, f))
        if (text_starts(line, "NSpid:"))
            for (const char *at = line; (at = strchr(at, '\t')); at++)
                levels++;
    if (f)
        fclose(f);
    return levels > 2;
}

size_t find_processes(const char *base, bool runtimes, pid_t *out, size_t room)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    size_t n = 0;
    while (d && n < room && (e = readdir(d))) {
        char path[64], text[MINE_MOST];
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
        if (fd != -1)
            close(fd);
        if (got <= 0)
            continue;
        text[got] = 0;
        if (is_ours(base, runtimes, text, (size_t)got)
            && !(runtimes && is_container(atoi(e->d_name))))
            out[n++] = (pid_t)atoi(e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1)
        parent = 0;
    if (f)
        fclose(f);
    return parent;
}

/* The postmaster, or one of its children: then it ends all others and recovers by itself. */
void db_kill(struct cloud *c, struct rng *rng, int64_t down_ms)
{
    char path[PATH_MOST];
    int master = 0;
    bool whole = rng_below(rng, 2);
    uint64_t which = rng_next(rng);
    FILE *f = fopen(path_of(path, c, "pg/data/postmaster.pid"), "re");
    if (f && fscanf(f, "%d", &master) != 1)
        master = 0;
    if (f)
        fclose(f);
    if (!master || c->db_down)
        return;
    pid_t victims[256], victim = master;
    size_t n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && n < COUNT(victims) && (e = readdir(d));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && parent_of(atoi(e->d_name)) == master)
            victims[n++] = atoi(e->d_name);
    if (d)
        closedir(d);
    if (!whole && n)
        victim = victims[which % n];
    say(c, "  the database: %s %d", victim == master ? "postmaster" : "backend", (int)victim);
    kill(victim, SIGKILL);
    if (victim == master) {
        sleep_ms(down_ms);
        c->db_down = true;
    }
}

/* --- the beginning */

bool node_is(struct cloud *c, const char *name, const char *state)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc = ask_json(c, arena_printf(mem, "/v1/nodes/%s", name), mem);
    return doc && text_is(json_text(doc, "state"), state);
}

bool node_token(struct cloud *c, char out[static 128])
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct reply r = { 0 };
    struct json *doc = NULL;
    struct err err = { 0 };
    ask(c,
        &(struct ask){
            .method = "POST", .path = "/v1/nodes/tokens", .body = "{}", .patience_ms = START_MS },
        &r);
    const char *token
        = r.status == 201 && json_parse((struct slice){ r.body.at, r.body.len }, mem, &doc, &err)
              ? json_text(doc, "token")
              : NULL;
    bool ok = token && text_copy(out, 128, token);
    str_done(&r.body);
    return ok;
}

static bool read_word(struct cloud *c, const char *name, char *out, size_t room)
{
    char path[PATH_MOST];
    FILE *f = fopen(path_of(path, c, "data/%s", name), "re");
    bool ok = f && fgets(out, (int)room, f);
    if (f)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = 0;
    return ok;
}

bool cloud_start(struct cloud *c)
{
    int64_t until = now_ms() + START_MS;
    char url[128], *colon;
    struct part *s = &c->parts[SERVER];
    text_copy(s->name, sizeof s->name, "server");
    s->wanted = true;
    while (now_ms() < until
           && !(read_word(c, "address", url, sizeof url)
                && read_word(c, "admin.key", c->key, sizeof c->key)))
        parts_run(c, 50);
    if (!(colon = strrchr(url, ':')) || now_ms() >= until)
        return false;
    c->port = atoi(colon + 1);
    for (int i = 0; i < AGENTS; i++) {
        struct part *p = &c->parts[FIRST_AGENT + i];
        snprintf(p->name, sizeof p->name, "n%d", i + 1);
        if (!node_token(c, p->token))
            return false;
        p->wanted = true;
    }
    for (int i = 0; i < AGENTS; i++)
        while (!node_is(c, c->parts[FIRST_AGENT + i].name, "ready")) {
            if (now_ms() >= until)
                return false;
            parts_run(c, 100);
        }
    return true;
}
