/* gpus.c - see gpus.h. One question is on its way at a time: `look` at the start, once a minute and when something is odd, `live` in between.
 * Whatever is late is answered by SIGKILL; the next helper is started when the last one is gone, since one that is stuck in its driver stays
 * stuck, and more of them would help nobody. */
#include "agent/gpus.h"
#include "agent/xid.h"
#include "base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LATE_MS = 10000,
    BEGIN_MS = 30000,
    LOOK_EVERY_MS = 60000,
    LOOK_SOON_MS = 3000,
    LOOK_SICK_MS = 5000,
    NONE_AGAIN_MS = 600000,
    AGAIN_MS = 500,
    AGAIN_MOST_MS = 60000,
    LINE_MOST = 1 << 20
};

struct
    talk { /* what the stream's callbacks get: it outlives the picture when that is freed first */
    struct gpus *gpus;
    struct stream *stream;
};
struct known {
    char uuid[96];
    int64_t index, xid;
};
struct gpus {
    struct os *os;
    struct arena *config_mem;
    struct gpus_config config;
    char boot[64]; /* which start of the machine this is */
    const struct gpus_events *events;
    void *arg;
    struct proc *proc;
    struct talk *talk; /* NULL: there is nobody to ask */
    const char *asked; /* the word on its way; NULL: none */
    struct timer *late, *next, *again;
    int64_t again_ms, pace_ms, looked_ms, lived_ms;
    bool ready, answered, silent, look_wanted, watched;
    struct arena *found_mem, *live_mem;
    struct node_info found;
    struct str found_text;
    struct objects live;
    bool live_new;
    struct known known[NODE_OFFERS];
    size_t known_count;
};

static void spawn(struct gpus *g);
static void ask(struct gpus *g, const char *word);

static void tell(struct gpus *g)
{
    g->ready = true;
    g->events->on_found(g->arg);
}

/* --- numbers that stay */

static const char *file_of(const struct gpus *g, struct arena *mem)
{
    return arena_printf(mem, "%s/gpus", g->config.data);
}

static struct known *known_of(struct gpus *g, const char *uuid)
{
    for (size_t i = 0; i < g->known_count; i++)
        if (text_is(g->known[i].uuid, uuid))
            return &g->known[i];
    return NULL;
}

static void boot_load(struct gpus *g)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err ignored;
    bool told = file_read(g->os, "/proc/sys/kernel/random/boot_id", 64, mem, &text, &ignored);
    if (!told || sscanf(arena_bytes(mem, text.at, text.len), "%63s", g->boot) != 1)
        text_cut(g->boot, sizeof g->boot, "unknown");
}

/* "0 GPU-...", and of one with a bad error that error and the start of the machine in which it was told: "0 GPU-... 79 BOOT". */
static void numbers_load(struct gpus *g)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err ignored;
    unsigned taken = 0;
    if (!file_read(g->os, file_of(g, mem), 64 << 10, mem, &text, &ignored))
        return;
    for (const char *at = arena_bytes(mem, text.at, text.len); *at && g->known_count < NODE_OFFERS; at += strcspn(at, "\n"), at += *at == '\n') {
        struct known k = { 0 };
        char boot[64] = "";
        const char *line = arena_bytes(mem, at, strcspn(at, "\n"));
        if (sscanf(line, "%" SCNd64 " %95s %" SCNd64 " %63s", &k.index, k.uuid, &k.xid, boot) < 2 || k.index < 0 || k.index >= NODE_OFFERS
            || taken >> k.index & 1 || known_of(g, k.uuid))
            continue;
        taken |= 1u << k.index;
        k.xid = text_is(boot, g->boot) && xid_bad(k.xid) ? k.xid : 0;
        g->known[g->known_count++] = k;
    }
}

static void numbers_store(struct gpus *g)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct err err = { 0 };
    for (size_t i = 0; i < g->known_count; i++)
        if (g->known[i].xid)
            str_printf(&text, "%" PRId64 " %s %" PRId64 " %s\n", g->known[i].index, g->known[i].uuid, g->known[i].xid, g->boot);
        else
            str_printf(&text, "%" PRId64 " %s\n", g->known[i].index, g->known[i].uuid);
    if (text.len
        && !file_replace(g->os, file_of(g, mem), (struct slice){ text.at, text.len }, 0644, &err))
        log_line(LOG_WARN, "gpus", "%s; GPUs may be numbered anew after a restart, and bad errors be forgotten", err.text);
}

/* The place in the machine, if it is nobody else's; else the first that is free. */
static int64_t number_for(const struct gpus *g, int64_t wish)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < g->known_count; i++)
        taken |= UINT64_C(1) << g->known[i].index;
    for (int64_t n = 0; taken >> wish & 1 && n < NODE_OFFERS; n++)
        if (!(taken >> n & 1))
            wish = n;
    return wish;
}

static bool is_here(const struct node_info *found, const char *uuid)
{
    const struct gpu_info *gpus = found->gpus.at;
    for (size_t k = 0; k < found->gpus.count; k++)
        if (text_is(gpus[k].uuid, uuid))
            return true;
    return false;
}

/* Those of before that are not here when the agent begins have left the machine, and their numbers are free. */
static void forget_left(struct gpus *g, const struct node_info *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->known_count; i++)
        if (is_here(found, g->known[i].uuid))
            g->known[kept++] = g->known[i];
    g->known_count = kept;
}

/* With all numbers given away a new one takes that of one that is gone, which is then forgotten. */
static struct known *know(struct gpus *g, const struct node_info *found, const char *uuid, size_t place)
{
    struct known *k = g->known;
    if (g->known_count < NODE_OFFERS) {
        k = &g->known[g->known_count];
        *k = (struct known){ .index = number_for(g, (int64_t)place) };
        g->known_count++;
    } else {
        while (is_here(found, k->uuid)) /* there are at most as many here, and the new one is not among those known */
            k++;
        *k = (struct known){ .index = k->index };
    }
    text_cut(k->uuid, sizeof k->uuid, uuid);
    return k;
}

static void number_all(struct gpus *g, struct node_info *found)
{
    struct gpu_info *gpus = found->gpus.at;
    int64_t to[NODE_OFFERS];
    bool grew = false;
    for (size_t i = 0; i < found->gpus.count; i++) {
        struct known *k = known_of(g, gpus[i].uuid);
        grew |= !k;
        to[i] = (k ? k : know(g, found, gpus[i].uuid, i))->index;
    }
    for (size_t i = 0; i < found->gpus.count; i++) {
        struct gpu_peer *peers = gpus[i].peers.at;
        gpus[i].index = to[i];
        for (size_t p = 0; p < gpus[i].peers.count; p++)
            peers[p].index = peers[p].index >= 0 && peers[p].index < (int64_t)found->gpus.count
                                 ? to[peers[p].index]
                                 : 0;
    }
    struct nic_info *nics = found->nics.at;
    for (size_t i = 0; i < found->nics.count; i++)
        for (size_t p = 0; p < nics[i].near.count; p++) {
            long n = strtol(nics[i].near.at[p].key, NULL, 10);
            if (n >= 0 && n < (long)found->gpus.count)
                nics[i].near.at[p].key = arena_printf(g->found_mem, "%" PRId64, to[n]);
        }
    if (grew)
        numbers_store(g);
}

/* --- answers */

static void keep_gone(struct gpus *g, const struct node_info *before, struct node_info *now)
{
    const struct gpu_info *old = before->gpus.at;
    struct gpu_info *gpus = now->gpus.at;
    struct gpu_info *all
        = ARENA_ARRAY(g->found_mem, struct gpu_info, before->gpus.count + now->gpus.count);
    size_t count = 0;
    for (size_t i = 0; i < now->gpus.count; i++)
        all[count++] = gpus[i];
    for (size_t i = 0; i < before->gpus.count; i++) {
        if (is_here(now, old[i].uuid) || count == NODE_OFFERS || !known_of(g, old[i].uuid))
            continue;
        bind_copy(&gpu_info_fields, &old[i], g->found_mem, &all[count]);
        all[count].healthy = false;
        all[count].fault = "held";
        all[count++].health = "it is gone: its driver does not list it any more";
    }
    now->gpus = (struct objects){ all, count };
}

static void take_found(struct gpus *g, const struct helper_said *said)
{
    struct arena *before_mem = g->found_mem;
    struct node_info before = g->found;
    bool was_silent = g->silent, first = !g->answered;
    g->found_mem = arena_new();
    struct helper_said copy = { 0 };
    bind_copy(&helper_said_fields, said, g->found_mem, &copy);
    g->found = copy.found;
    g->found.gpus.count = MIN(g->found.gpus.count, (size_t)NODE_OFFERS);
    if (first)
        forget_left(g, &g->found);
    number_all(g, &g->found);
    keep_gone(g, &before, &g->found);
    arena_free(before_mem);
    g->answered = true;
    g->silent = false;
    g->looked_ms = os_boot_ms(g->os);
    g->look_wanted = false;
    AUTO(str_done) struct str text = g->found_text;
    g->found_text = (struct str){ 0 };
    bind_write(&(struct json_out){ .to = &g->found_text }, &node_info_fields, &g->found);
    if (first || was_silent || !text_is(text.at, g->found_text.at))
        tell(g);
}

/* Something about a healthy GPU that a look would call by its name. */
static bool is_odd(const struct gpus *g, const struct gpu_live *l)
{
    const struct gpu_info *gpus = g->found.gpus.at;
    for (size_t i = 0; i < g->found.gpus.count; i++)
        if (text_is(gpus[i].uuid, l->uuid))
            return gpus[i].healthy
                   && (l->ecc_uncorrected > 0 || l->row_failure > 0
                       || (l->mem_used_mib < 0 && l->temp_c < 0
                           && text_is(gpus[i].vendor, "nvidia")));
    return true;
}

static void take_live(struct gpus *g, const struct helper_said *said)
{
    struct helper_said copy = { 0 };
    arena_free(g->live_mem);
    g->live_mem = arena_new();
    bind_copy(&helper_said_fields, said, g->live_mem, &copy);
    g->live = copy.live;
    g->live_new = true;
    g->lived_ms = os_boot_ms(g->os);
    const struct gpu_live *live = g->live.at;
    for (size_t i = 0; i < g->live.count; i++)
        g->look_wanted |= is_odd(g, &live[i]);
    g->events->on_live(g->arg);
}

static void take_xid(struct gpus *g, const struct helper_said *said)
{
    struct known *k = said->uuid ? known_of(g, said->uuid) : NULL;
    const char *bad = xid_bad(said->xid);
    log_line(bad ? LOG_ERROR : LOG_WARN, "gpus", "%s: the driver told XID %" PRId64 "%s%s",
             said->uuid ? said->uuid : "a GPU", said->xid, bad ? ": " : "", bad ? bad : "");
    if (k && g->events->on_xid)
        g->events->on_xid(g->arg, k->uuid, said->xid);
    if (!k || !bad)
        return;
    bool first = !k->xid;
    k->xid = said->xid;
    if (first)
        numbers_store(g);
    tell(g);
}

/* That it is well again is news, too. */
static bool has_sick(const struct gpus *g)
{
    const struct gpu_info *gpus = g->found.gpus.at;
    for (size_t i = 0; i < g->found.gpus.count; i++)
        if (text_given(gpus[i].health))
            return true;
    return false;
}

static void on_next(void *arg)
{
    struct gpus *g = arg;
    g->next = NULL;
    if (g->asked || !g->talk)
        return;
    int64_t now = os_boot_ms(g->os), since = now - g->looked_ms;
    bool look = since >= LOOK_EVERY_MS || (g->look_wanted && since >= LOOK_SOON_MS) || (has_sick(g) && since >= LOOK_SICK_MS);
    ask(g, look ? "look" : !g->live.at || now - g->lived_ms >= g->pace_ms || !g->watched ? "live" : "held");
}

/* A machine without GPUs needs nobody to watch them. */
static void rest(struct gpus *g)
{
    if (g->talk)
        stream_close(g->talk->stream);
}

static void answered(struct gpus *g)
{
    timer_cancel(TAKE(g->late));
    g->asked = NULL;
    g->again_ms = AGAIN_MS;
    if (!g->found.gpus.count) {
        rest(g);
        return;
    }
    timer_cancel(g->next);
    g->next = timer_start(g->os, !g->live.at ? 0 : g->watched ? MIN(g->pace_ms, (int64_t)GPUS_WATCH_MS) : g->pace_ms, on_next, g);
}

static bool take(struct gpus *g, struct slice line, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct helper_said said = { 0 };
    if (!json_parse(line, mem, &doc, err)
        || !bind_read_ours(doc, &helper_said_fields, mem, &said, NULL, err))
        return false;
    if (text_is(said.kind, "xid"))
        take_xid(g, &said);
    else if (text_is(said.kind, "found"))
        take_found(g, &said);
    else if (text_is(said.kind, "live"))
        take_live(g, &said);
    else if (text_is(said.kind, "held"))
        g->events->on_held(g->arg, &said.live);
    if (g->asked
        && ((text_is(said.kind, "found") && text_is(g->asked, "look"))
            || text_is(said.kind, g->asked)))
        answered(g);
    return true;
}

/* --- the helper */

static size_t on_data(void *arg, const char *at, size_t n)
{
    struct talk *t = arg;
    size_t used = 0;
    const char *end;
    while (t->gpus && (end = memchr(at + used, '\n', n - used))) {
        struct err err = { 0 };
        struct slice line = { at + used, (size_t)(end - at) - used };
        used += line.len + 1;
        if (!take(t->gpus, line, &err))
            log_line(LOG_ERROR, "gpus", "the device helper said what cannot be understood: %s",
                     err.text);
    }
    if (n - used >= LINE_MOST / 2)
        stream_close(t->stream);
    return t->gpus ? used : n;
}

static void on_close(void *arg, const struct err *why)
{
    struct talk *t = arg;
    (void)why;
    if (t->gpus)
        t->gpus->talk = NULL;
    free(t);
}

static void on_again(void *arg)
{
    struct gpus *g = arg;
    g->again = NULL;
    spawn(g);
}

/* It may have been ended by us, have nothing to watch, or have died with the library that it used. */
static void on_exit_of(void *arg, int status)
{
    struct gpus *g = arg;
    bool idle = g->answered && !g->found.gpus.count && !g->asked;
    g->proc = NULL;
    if (g->talk)
        stream_close(g->talk->stream);
    timer_cancel(TAKE(g->next));
    if (!idle)
        log_line(LOG_WARN, "gpus", "the device helper ended (%s %d); starting it again",
                 WIFSIGNALED(status) ? "signal" : "exit code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (!g->ready)
        tell(g); /* whoever waits for it need not any more */
    g->again = timer_start(g->os, idle ? NONE_AGAIN_MS : g->again_ms, on_again, g);
    g->again_ms = MIN(g->again_ms * 2, (int64_t)AGAIN_MOST_MS);
}

/* The time for an answer is over, whether its asker still lives or the next one has not begun. */
static void on_late(void *arg)
{
    struct gpus *g = arg;
    g->late = NULL;
    g->asked = NULL;
    log_line(LOG_ERROR, "gpus", "the device helper does not answer: its driver hangs");
    g->silent = true;
    if (g->proc)
        proc_kill(g->proc, SIGKILL);
    tell(g);
}

static void ask(struct gpus *g, const char *word)
{
    int64_t begin = g->config.begin_ms ? g->config.begin_ms : BEGIN_MS,
            late = g->config.late_ms ? g->config.late_ms : LATE_MS;
    char line[16];
    g->asked = word;
    if (!g->late)
        g->late = timer_start(g->os, g->answered ? late : begin, on_late, g);
    stream_write(g->talk->stream, line, (size_t)snprintf(line, sizeof line, "%s\n", word));
}

static void spawn(struct gpus *g)
{
    static const struct stream_events events = { .on_data = on_data, .on_close = on_close };
    const char *argv[] = { g->config.self,
                           "device-helper",
                           "--sys",
                           g->config.sys,
                           g->config.nvml ? "--nvml" : NULL,
                           g->config.nvml,
                           NULL };
    struct err err = { 0 };
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1) {
        g->again = timer_start(g->os, AGAIN_MOST_MS, on_again, g);
        return;
    }
    struct proc_spec spec
        = { .argv = argv, .dir = "/", .in = pair[1], .out = pair[1], .err = STDERR_FILENO };
    bool ok = proc_spawn(g->os, &spec, on_exit_of, g, &g->proc, &err);
    close(pair[1]);
    if (!ok) {
        close(pair[0]);
        log_line(LOG_ERROR, "gpus", "the device helper does not start: %s", err.text);
        if (!g->ready)
            tell(g);
        g->again = timer_start(g->os, AGAIN_MOST_MS, on_again, g);
        return;
    }
    struct talk *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    *t = (struct talk){ .gpus = g };
    t->stream = stream_of_fd(g->os, pair[0], &events, t);
    g->talk = t;
    ask(g, "look");
}

/* --- the picture */

void gpus_describe(const struct gpus *g, struct arena *mem, struct node_info *info)
{
    if (!g)
        return;
    const struct gpu_info *gpus = g->found.gpus.at;
    struct gpu_info *out = ARENA_ARRAY(mem, struct gpu_info, g->found.gpus.count);
    for (size_t i = 0; i < g->found.gpus.count; i++) {
        const struct known *k = known_of((struct gpus *)g, gpus[i].uuid);
        out[i] = gpus[i];
        if (!text_given(out[i].health) && k && k->xid) {
            out[i].health = xid_bad(k->xid);
            out[i].fault = xid_tested(k->xid) ? "xid" : "held";
        }
        if (g->silent) { /* nothing is known to be broken: who runs there may well go on */
            out[i].health = "its driver does not answer";
            out[i].fault = NULL;
        }
        out[i].healthy = !text_given(out[i].health);
    }
    if (g->found.gpus.count)
        info->gpus = (struct objects){ out, g->found.gpus.count };
    info->cpu_model = g->found.cpu_model;
    info->sockets = g->found.sockets;
    info->cores = g->found.cores;
    info->numas = g->found.numas;
    info->nics = g->found.nics;
    for (size_t i = 0; i < g->found.cannot.count; i++)
        helper_cannot(info, mem, "%s", g->found.cannot.at[i]);
    if (g->silent && !g->found.gpus.count)
        helper_cannot(info, mem, "devices: their driver does not answer");
}

void gpus_passed(struct gpus *g, const char *uuid)
{
    struct known *k = g ? known_of(g, uuid) : NULL;
    if (!k || !k->xid)
        return;
    k->xid = 0;
    numbers_store(g);
}

struct objects gpus_live(struct gpus *g)
{
    bool fresh = g && g->live_new;
    if (fresh)
        g->live_new = false;
    return fresh ? g->live : (struct objects){ 0 };
}

void gpus_pace(struct gpus *g, int64_t every_ms)
{
    if (!g)
        return;
    int64_t pace = every_ms > 0 ? MAX(every_ms, (int64_t)LIVE_LOOK_MS) : LIVE_IDLE_MS;
    bool sooner = pace < g->pace_ms;
    g->pace_ms = pace;
    if (sooner && g->next) {
        timer_cancel(g->next);
        g->next = timer_start(g->os, 0, on_next, g);
    }
}

void gpus_watch(struct gpus *g, bool on)
{
    if (!g || g->watched == on)
        return;
    g->watched = on;
    if (on && g->next && g->live.at) {
        timer_cancel(g->next);
        g->next = timer_start(g->os, 0, on_next, g);
    }
}

bool gpus_ready(const struct gpus *g)
{
    return !g || g->ready;
}
bool gpus_none(const struct gpus *g)
{
    return !g || (g->answered && !g->found.gpus.count);
}

struct gpus *gpus_new(struct os *os, const struct gpus_config *config,
                      const struct gpus_events *events, void *arg)
{
    if (os_is_simulated(os) || !text_given(config->self))
        return NULL;
    struct gpus *g = calloc(1, sizeof *g);
    if (!g)
        abort();
    *g = (struct gpus){ .os = os,
                        .config_mem = arena_new(),
                        .config = *config,
                        .events = events,
                        .arg = arg,
                        .again_ms = AGAIN_MS,
                        .pace_ms = LIVE_IDLE_MS };
    g->config.self = arena_text(g->config_mem, config->self);
    g->config.data = arena_text(g->config_mem, config->data);
    g->config.nvml = arena_text(g->config_mem, config->nvml);
    g->config.sys = arena_text(g->config_mem, text_given(config->sys) ? config->sys : "/sys");
    boot_load(g);
    numbers_load(g);
    spawn(g);
    return g;
}

void gpus_free(struct gpus *g)
{
    if (!g)
        return;
    timer_cancel(g->late);
    timer_cancel(g->next);
    timer_cancel(g->again);
    if (g->talk) {
        g->talk->gpus = NULL;
        stream_close(g->talk->stream);
    }
    if (g->proc && g->silent)
        proc_kill(g->proc, SIGKILL);
    proc_forget(g->proc);
    arena_free(g->found_mem);
    arena_free(g->live_mem);
    arena_free(g->config_mem);
    str_done(&g->found_text);
    free(g);
}
