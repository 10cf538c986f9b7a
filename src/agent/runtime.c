/* runtime.c - the attempts of this node: which there are, who supervises them, what is told
 * about them.
 *
 * The folders are the truth, this is only a picture of them: an agent that starts reads it from
 * there. An attempt is known from the moment its folder is made until it is forgotten; its end
 * is told by its status file and by nothing else. */
#include "agent/runtime_internal.h"
#include "base/log.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include "wire/digest.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- paths and small files */

const char *in_data(struct runtime *r, char out[static RUNTIME_PATH], const char *folder,
                    const char *name)
{
    snprintf(out, RUNTIME_PATH, "%s/%s/%s", r->config.data, folder, name);
    return out;
}

const char *in_run(struct runtime *r, char out[static RUNTIME_PATH], const char *folder,
                   const char *name)
{
    snprintf(out, RUNTIME_PATH, "%s/%s/%s", r->config.run, folder, name);
    return out;
}

/* A start cannot wait for the disk, and nothing of it is needed after a crash: what ran is gone
 * then. */
bool plain_write(struct runtime *r, const char *path, struct slice bytes, unsigned mode,
                 struct err *err)
{
    char temp[RUNTIME_PATH + 8];
    if (!r->real)
        return file_replace(r->os, path, bytes, mode, err);
    snprintf(temp, sizeof temp, "%s.new", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    bool ok = fd != -1 && write(fd, bytes.at, bytes.len) == (ssize_t)bytes.len
              && rename(temp, path) == 0;
    if (!ok)
        err_errno(err, "cannot write %s", path);
    if (fd != -1)
        close(fd);
    return ok;
}

void write_object(struct str *out, const struct fields *fields, const void *from)
{
    struct json_out o = { .to = out };
    bind_write(&o, fields, from);
}

static bool read_object(struct runtime *r, const char *path, const struct fields *fields,
                        struct arena *mem, void *out, struct err *err)
{
    struct slice text;
    struct json *doc = NULL;
    return file_read(r->os, path, PLAN_BYTES, mem, &text, err) && json_parse(text, mem, &doc, err)
           && bind_read_ours(doc, fields, mem, out, NULL, err);
}

static bool read_status_file(struct runtime *r, const char *path, struct arena *mem, struct task_status *out, struct err *err)
{
    struct slice text;
    return file_read(r->os, path, PLAN_BYTES, mem, &text, err) && status_read(text, mem, out, err);
}

/* --- attempts */

struct attempt *attempt_new(struct runtime *r, int64_t id)
{
    struct attempt *a = calloc(1, sizeof *a);
    if (!a)
        abort();
    *a = (struct attempt){ .r = r, .id = id };
    id_text(a->name, PREFIX_ATTEMPT, id);
    map_put(r->attempts, id, a);
    return a;
}

static void leave_network(struct attempt *a)
{
    if (*a->address)
        net_drop(a->r->net, a->id, a->address);
    *a->address = 0;
}

static void give_range_back(struct attempt *a)
{
    if (a->uid_base && map_get(a->r->ranges, a->uid_base) == a)
        map_take(a->r->ranges, a->uid_base);
    a->uid_base = 0;
}

void attempt_free(struct attempt *a)
{
    give_range_back(a);
    slot_leave(a);
    proc_forget(a->proc);
    timer_cancel(a->patience);
    timer_cancel(a->again);
    arena_free(a->mem);
    shares_end(a);
    suspend_end(a);
    use_watch(a, false);
    free(a->slices);
    gpus_left(a);
    free(a);
}

void attempt_tell(struct attempt *a, const struct task_status *s)
{
    if (s->phase == PHASE_ENDED && shares_doubt(a, s))
        return;
    struct task_status told = *s;
    if (a->blame && s->phase == PHASE_ENDED && s->outcome == OUTCOME_NODE_FAULT)
        told.blame = (int)a->blame;
    a->last = told;
    a->last.detail = NULL;
    if (s->phase == PHASE_ENDED) {
        a->stage = STAGE_ENDED;
        proc_forget(TAKE(a->proc));
        timer_cancel(TAKE(a->patience));
        timer_cancel(TAKE(a->again));
        give_range_back(a);
        leave_network(a);
        shares_end(a);
        suspend_end(a);
        gpus_left(a);
        slot_leave(a);
        arena_free(TAKE(a->mem));
        a->order = NULL;
    }
    a->r->events->on_status(a->r->arg, &told);
}

void attempt_end(struct attempt *a, enum outcome outcome, const char *detail)
{
    char path[RUNTIME_PATH];
    struct err err = { 0 };
    AUTO(str_done) struct str text = { 0 };
    struct task_status s = { .attempt = a->id,
                             .phase = PHASE_ENDED,
                             .started_ms = a->last.started_ms,
                             .ended_ms = os_wall_ms(a->r->os),
                             .outcome = (int)outcome,
                             .detail = detail,
                             .blame = outcome == OUTCOME_NODE_FAULT ? (int)a->blame : 0 };
    write_object(&text, &task_status_fields, &s);
    /* One that cannot be kept (disk full) is told all the same; after a restart it is found dead
     * again and told the same way. */
    if (!file_replace(a->r->os, in_data(a->r, path, "status", a->name),
                      (struct slice){ text.at, text.len }, 0600, &err))
        log_line(LOG_ERROR, "agent", "%s", err.text);
    attempt_tell(a, &s);
}

/* *there: false where nobody has written one. A disk that cannot be read at the moment says
 * nothing about that. What can be read and makes no sense was cut off by a power cut, if nobody writes it any more. */
static bool read_status(struct attempt *a, struct arena *mem, struct task_status *s, bool *there)
{
    char path[RUNTIME_PATH];
    struct err err = { 0 };
    bool ok = read_status_file(a->r, in_data(a->r, path, "status", a->name), mem, s, &err) && s->attempt == a->id;
    *there = ok || err.rc != RC_NOT_FOUND;
    a->unread = ok || !*there ? 0 : a->unread + 1;
    a->torn = !ok && err.rc == RC_BAD_INPUT;
    return ok;
}

static void on_again(void *arg);

/* An end that could not be read is no end without a word: it is looked at again, for a while. */
static bool reads_again(struct attempt *a)
{
    if (a->unread == 0 || a->unread > READ_TRIES)
        return false;
    if (!a->again)
        a->again = timer_start(a->r->os, READ_AGAIN_MS, on_again, a);
    return true;
}

void supervisor_gone(struct attempt *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task_status s = { 0 };
    bool there;
    if (a->stage == STAGE_ENDED)
        return;
    if (read_status(a, mem, &s, &there) && s.phase == PHASE_ENDED)
        attempt_tell(a, &s);
    else if (!reads_again(a))
        clean_dead(a);
}

static void on_again(void *arg)
{
    struct attempt *a = arg;
    a->again = NULL;
    attempt_look(a);
    if (!a->again && !a->proc && !a->patience)
        supervisor_gone(a);
}

void attempt_doubt(struct attempt *a, int64_t ms)
{
    if (!a->again)
        a->again = timer_start(a->r->os, ms, on_again, a);
}

static void on_gone(void *arg)
{
    struct attempt *a = arg;
    proc_forget(TAKE(a->proc));
    supervisor_gone(a);
}

/* "Look for a stop": a signal that does nothing to a process that does not know it. A supervisor looks by itself when it begins,
 * and one that we did not know yet is told as soon as we do. */
static void wake(struct attempt *a)
{
    if (a->r->real && a->proc)
        proc_kill(a->proc, PLAN_WAKE);
}

bool attempt_watch(struct attempt *a)
{
    if (a->proc)
        return true;
    if (!proc_watch(a->r->os, (int)a->last.pid, (uint64_t)a->last.start_time, on_gone, a, &a->proc))
        return false;
    if (a->stop_as)
        wake(a);
    return true;
}

void attempt_look(struct attempt *a)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct task_status s = { 0 };
    bool there;
    if (a->stage == STAGE_ENDED || a->stage == STAGE_CLEANING)
        return;
    if (!read_status(a, mem, &s, &there)) {
        reads_again(a);
        return;
    }
    timer_cancel(TAKE(a->patience));
    bool news
        = a->stage != STAGE_LIVE || s.phase != a->last.phase || s.started_ms != a->last.started_ms;
    bool watched = false; /* before it is told: who hears of it may want its socket */
    if (s.phase != PHASE_ENDED) {
        a->stage = STAGE_LIVE;
        a->last.pid = s.pid;
        a->last.start_time = s.start_time;
        watched = attempt_watch(a);
    }
    if (news)
        attempt_tell(a, &s);
    if (a->stage == STAGE_LIVE && !watched)
        supervisor_gone(a);
    suspend_live(a);
}

static void on_change(void *arg, const char *name)
{
    struct runtime *r = arg;
    int64_t id;
    struct attempt *a;
    if (name && id_parse(name, PREFIX_ATTEMPT, &id) && (a = map_get(r->attempts, id)))
        attempt_look(a);
    for (size_t at = 0;
         !name && (a = map_next(r->attempts, &at));) /* events were lost: look at all */
        attempt_look(a);
}

/* --- what an agent finds when it starts */

static void on_impatience(void *arg)
{
    struct attempt *a = arg;
    a->patience = NULL;
    clean_dead(a);
}

/* A free lock is taken away: a supervisor that comes late finds none and leaves. */
static bool is_locked(struct attempt *a)
{
    char path[RUNTIME_PATH];
    snprintf(path, sizeof path, "%s/tasks/%s/plan.json", a->r->config.data, a->name);
    int fd = a->r->real ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool locked = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1;
    if (!locked && fd != -1)
        unlink(path);
    if (fd != -1)
        close(fd);
    return locked;
}

bool attempt_comes(struct attempt *a)
{
    if (a->stage != STAGE_SPAWNED || !is_locked(a))
        return false;
    if (!a->patience)
        a->patience = timer_start(a->r->os, SPAWN_WAIT_MS, on_impatience, a);
    return true;
}

static void find_one(struct runtime *r, const char *name)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char path[RUNTIME_PATH];
    struct plan plan = { 0 };
    struct task_status s = { 0 };
    struct err err = { 0 };
    int64_t id;
    if (!id_parse(name, PREFIX_ATTEMPT, &id)) {
        clean_never_ran(r, name); /* on its way out when an agent died */
        return;
    }
    struct attempt *a = attempt_new(r, id);
    bool there, told = read_status(a, mem, &s, &there);
    if (!there && !is_locked(a)) { /* it never ran: as if it had never been here */
        map_take(r->attempts, id);
        attempt_free(a);
        clean_never_ran(r, name);
        return;
    }
    snprintf(path, sizeof path, "%s/tasks/%s/plan.json", r->config.data, name);
    if (s.phase != PHASE_ENDED && read_object(r, path, &plan_fields, mem, &plan, &err)) {
        a->uid_base = plan.uid_base;
        a->holder = (struct net_holder){ (int)s.pid, (uint64_t)s.start_time };
        text_copy(a->address, sizeof a->address, plan.address ? plan.address : "");
        shares_begin(a, shares_of_plan(&plan.shares));
        const struct plan_mount *m = plan.mounts.at;
        for (size_t i = 0; i < plan.mounts.count; i++)
            a->has_share |= a->shares.count && text_is(m[i].name, "mps");
        gpus_found(a, &plan);
        slices_found(a, &plan);
        suspend_found(a);
        map_put(r->ranges, a->uid_base, a);
    }
    a->stage = STAGE_SPAWNED;
    bool cut = a->torn && !is_locked(a);
    if (cut)
        a->unread = READ_TRIES;
    if (!told && (cut || !reads_again(a)))
        a->patience = timer_start(r->os, cut ? 0 : SPAWN_WAIT_MS, on_impatience, a);
}

/* A supervisor whose last write half succeeded writes its end again, maybe after the attempt was
 * forgotten; one that was killed as it wrote leaves a name that begins with a dot. */
static bool drop_orphans(struct runtime *r, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    char path[RUNTIME_PATH];
    int64_t id;
    if (!dir_list(r->os, arena_printf(mem, "%s/status", r->config.data), mem, &names, err))
        return false;
    for (size_t i = 0; i < names.count; i++)
        if (id_parse(names.at[i] + (names.at[i][0] == '.'), PREFIX_ATTEMPT, &id)
            && !map_get(r->attempts, id)
            && !file_remove(r->os, in_data(r, path, "status", names.at[i]), err))
            return false;
    return true;
}

static bool find_all(struct runtime *r, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    if (!dir_list(r->os, arena_printf(mem, "%s/tasks", r->config.data), mem, &names, err))
        return false;
    for (size_t i = 0; i < names.count; i++)
        find_one(r, names.at[i]);
    return drop_orphans(r, err);
}

static void on_first_look(void *arg, struct post *p)
{
    struct first_look *look = CONTAINER(p, struct first_look, post);
    struct runtime *r = look->r;
    (void)arg;
    free(look);
    if (!r) /* closed in between */
        return;
    r->look = NULL;
    on_change(r, NULL);
}

/* --- open, close */

/* What runs has its network from an agent before us: it is found through those who hold it. */
static void open_network(struct runtime *r)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct net_holder *holders = ARENA_ARRAY(mem, struct net_holder, map_count(r->attempts) + 1);
    size_t count = 0;
    struct attempt *a;
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->holder.pid > 0)
            holders[count++] = a->holder;
    const struct net_config config = { .uplink = r->config.uplink,
                                       .underlay = r->config.underlay,
                                       .underlay_address = r->config.underlay_address,
                                       .key = r->config.run,
                                       .servers = r->config.servers };
    r->net = net_open(r->os, &config, holders, count);
}


static bool make_folders(struct runtime *r, struct err *err)
{
    static const struct {
        bool run;
        const char *name;
        unsigned mode;
    } folders[] = {
        { false, "", 0711 },      { false, "tasks", 0700 },   { false, "status", 0700 },
        { false, "logs", 0700 },  { false, "outputs", 0700 }, { false, "volumes", 0700 },
        { false, "ends", 0700 },
        { false, "blobs", 0700 }, { false, "scratch", 0700 }, { true, "", 0711 },
        { true, "tasks", 0711 },  { true, "slots", 0711 }, { true, "bin", 0755 },
        { true, "launch", 0755 },
    };
    char path[RUNTIME_PATH];
    for (size_t i = 0; i < COUNT(folders); i++)
        if (!dir_make(r->os, (folders[i].run ? in_run : in_data)(r, path, folders[i].name, ""),
                      folders[i].mode, err))
            return false;
    return true;
}

/* Paths of the node that a task of `image: host` must not see, links resolved: what is bound
 * over must be the real place. */
static void hide_paths(struct runtime *r)
{
    const char *const ours[] = { r->config.data, r->config.run };
    const char **at = ARENA_ARRAY(r->mem, const char *, COUNT(ours) + r->config.hide.count);
    for (size_t i = 0; i < COUNT(ours) + r->config.hide.count; i++) {
        const char *path = i < COUNT(ours) ? ours[i] : r->config.hide.at[i - COUNT(ours)];
        char *real = realpath(path, NULL);
        at[r->hide.count++] = arena_text(r->mem, real ? real : path);
        free(real);
    }
    r->hide.at = at;
}

static bool open_real(struct runtime *r, struct err *err)
{
    char path[RUNTIME_PATH];
    if (geteuid() != 0)
        return err_set(err, RC_DENIED,
                       "the agent needs root: it makes containers, mounts and control groups");
    if (!digest_start() || !cgroups_find(&r->cgroups, err) || !supervisor_write(r, err))
        return err->rc ? false : err_set(err, RC_INTERNAL, "libsodium does not start");
    snprintf(path, sizeof path, "%s/lease", r->config.run);
    r->lease = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char text[32] = "";
    if (r->lease == -1 || pread(r->lease, text, sizeof text - 1, 0) == -1)
        return err_errno(err, "cannot open %s", path);
    if (!*text || strtoll(text, NULL, 10) > os_boot_ms(r->os))
        runtime_contact(r); /* the first agent since the node came up: nothing runs yet */
    r->limit_swap = cgroups_limit_swap(&r->cgroups);
    io_find_for(&r->cgroups, r->config.data, &r->io);
    hide_paths(r);
    r->shop = workshop_new(r->os, "runtime");
    r->quick = workshop_new(r->os, "cleaner");
    r->slots = slots_new(r);
    r->inject = inject_new(&(struct inject_config){ .cdi = r->config.cdi });
    r->blobs = blobs_new(r->os, arena_printf(r->mem, "%s/blobs", r->config.data), r->config.heads);
    if (!images_open(r->os, r->config.data, r->blobs, &r->images, err))
        return false;
    r->goods = goods_new(r->os, r->config.data);
    trial_start(r);
    return true;
}

struct texts runtime_goods(struct runtime *r) { return goods_told(r->goods); }

bool runtime_open(struct os *os, const struct runtime_config *config,
                  const struct runtime_events *events, void *arg, struct runtime **out,
                  struct err *err)
{
    struct runtime *r = calloc(1, sizeof *r);
    struct first_look *look = calloc(1, sizeof *look);
    if (!r || !look)
        abort();
    *r = (struct runtime){ .os = os,
                           .mem = arena_new(),
                           .config = *config,
                           .events = events,
                           .arg = arg,
                           .real = !os_is_simulated(os),
                           .attempts = map_new(),
                           .ranges = map_new(),
                           .lease = -1 };
    r->config.data = arena_text(r->mem, config->data);
    r->config.run = arena_text(r->mem, config->run);
    in_run(r, r->supervisor, "bin", "arcus-task");
    r->means.known = !r->real;
    bool ok = make_folders(r, err) && (!r->real || open_real(r, err));
    if (!r->real && ok)
        r->shop = workshop_new(os, "runtime");
    if (!ok || !find_all(r, err)) {
        free(look);
        runtime_close(r);
        return false;
    }
    if (r->real) {
        shares_open(r);
        open_network(r);
        clean_sweep(r);
    }
    char path[RUNTIME_PATH];
    snprintf(path, sizeof path, "%s/status", r->config.data);
    r->watch = dir_watch(os, path, on_change, r);
    r->look = look;
    *look = (struct first_look){ .post = { .fn = on_first_look },
                                 .r = r }; /* later: our caller does not know us yet */
    os_post(os, &look->post);
    *out = r;
    return true;
}

void runtime_close(struct runtime *r)
{
    struct attempt *a;
    if (r->look)
        r->look->r = NULL;
    if (r->watch)
        watch_stop(r->watch);
    timer_cancel(r->sweep);
    goods_free(r->goods);
    images_close(r->images);
    blobs_free(r->blobs);
    workshop_close(r->shop);
    workshop_close(r->quick);
    net_close(TAKE(r->net));
    shares_close(r);
    slices_close(r);
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        attempt_free(a);
    map_free(r->attempts);
    map_free(r->ranges);
    slots_free(r->slots);
    inject_free(r->inject);
    if (r->lease != -1)
        close(r->lease);
    arena_free(r->mem);
    free(r->holds);
    free(r->uses);
    warm_forget(TAKE(r->warm));
    free(r);
}

/* --- the face */

void attempt_stop(struct attempt *a, int64_t grace_s, enum outcome as, const char *why)
{
    struct runtime *r = a->r;
    char path[RUNTIME_PATH];
    struct err err = { 0 };
    if (a->stage == STAGE_ENDED || a->stage == STAGE_CLEANING)
        return;
    if (a->stage == STAGE_WAITS) {
        attempt_end(a, as, why ? why : "it was ended before it began");
        return;
    }
    if (grace_s == 0 && shares_clear(a, as, why))
        return;
    a->stop_as = a->stop_as ? a->stop_as : (int)as; /* the first reason is the one that is told */
    AUTO(str_done) struct str text = { 0 };
    write_object(&text, &plan_stop_fields,
                 &(struct plan_stop){ .grace_s = grace_s, .as = a->stop_as, .why = why });
    snprintf(path, sizeof path, "%s/tasks/%s/stop", r->config.data, a->name);
    if (plain_write(r, path, (struct slice){ text.at, text.len }, 0600, &err))
        wake(a);
    else if (a->proc) /* a full disk must not keep a task alive: the supervisor ends it on SIGTERM too */
        proc_kill(a->proc, 15);
}

void runtime_stop(struct runtime *r, int64_t attempt, int64_t grace_s, enum outcome as)
{
    struct attempt *a = map_get(r->attempts, attempt);
    if (a)
        attempt_stop(a, grace_s, as, NULL);
}

void runtime_policy(struct runtime *r, const struct order *o)
{
    struct attempt *a = map_get(r->attempts, o->attempt);
    if (a)
        use_watch(a, o->watch);
    a = o->net ? a : NULL;
    if (a && a->order) { /* what it waits with would be the last word otherwise */
        a->order->egress = arena_text(a->mem, o->egress);
        a->order->mbit = o->mbit;
    }
    if (a)
        net_policy(r->net, o);
}

void runtime_mesh(struct runtime *r, bool full, struct objects nets)
{
    if (r->net)
        net_mesh(r->net, full, nets);
}

void runtime_servers(struct runtime *r, struct texts urls)
{
    if (r->net)
        net_servers(r->net, urls);
}

void runtime_contact(struct runtime *r)
{
    char path[RUNTIME_PATH], text[32];
    struct err err = { 0 };
    int n = snprintf(text, sizeof text, "%019lld\n", (long long)os_boot_ms(r->os));
    snprintf(path, sizeof path, "%s/lease", r->config.run);
    /* A write that fails renews nothing: the tasks end too early rather than too late. */
    if (r->real ? pwrite(r->lease, text, (size_t)n, 0) != n
                : !file_replace(r->os, path, SLICE(text), 0600, &err))
        return;
}

/* Asked again for one that is not known any more: its folder could not be removed the first
 * time. */
void runtime_forget(struct runtime *r, int64_t attempt)
{
    struct attempt *a = map_get(r->attempts, attempt);
    char path[RUNTIME_PATH], name[ID_TEXT];
    if (a && (a->stage != STAGE_ENDED || a->awaited))
        return;
    id_text(name, PREFIX_ATTEMPT, attempt);
    if (a || disk_exists(r->os, in_data(r, path, "tasks", name)))
        clean_forgotten(r, name, a && a->in_slot);
    if (a)
        attempt_free(map_take(r->attempts, attempt));
}

const char *past_path(struct runtime *r, char out[static RUNTIME_PATH], const char *name)
{
    return in_data(r, out, "ends", name);
}

bool runtime_past(struct runtime *r, int64_t attempt, struct arena *mem, struct task_status *out)
{
    char path[RUNTIME_PATH], name[ID_TEXT];
    struct err err = { 0 };
    past_path(r, path, id_text(name, PREFIX_ATTEMPT, attempt));
    bool found = read_status_file(r, path, mem, out, &err);
    if (!found) { /* where the version before kept it */
        snprintf(path, sizeof path, "%s/logs/%s/end", r->config.data, name);
        found = read_status_file(r, path, mem, out, &err);
    }
    return found && out->attempt == attempt && out->phase == PHASE_ENDED;
}

bool runtime_settled(struct runtime *r, int64_t attempt)
{
    char path[RUNTIME_PATH], end[RUNTIME_PATH], name[ID_TEXT];
    id_text(name, PREFIX_ATTEMPT, attempt);
    return !runtime_has(r, attempt) && !disk_exists(r->os, in_data(r, path, "tasks", name))
           && clean_status(r->os, in_data(r, path, "status", name), past_path(r, end, name));
}

bool runtime_has(struct runtime *r, int64_t attempt)
{
    return map_get(r->attempts, attempt) != NULL;
}

size_t runtime_list(struct runtime *r, struct arena *mem, int64_t **attempts)
{
    size_t n = 0;
    struct attempt *a;
    *attempts = ARENA_ARRAY(mem, int64_t, map_count(r->attempts));
    for (size_t at = 0; (a = map_next(r->attempts, &at));)
        if (a->stage != STAGE_ENDED)
            (*attempts)[n++] = a->id;
    return n;
}

const char *runtime_log_folder(struct runtime *r, int64_t attempt, char out[static 256])
{
    char name[ID_TEXT];
    snprintf(out, 256, "%s/logs/%s", r->config.data, id_text(name, PREFIX_ATTEMPT, attempt));
    return out;
}

/* Where only it can see it: nothing has to be tidied up behind one that was killed. A pid that nobody watches may be another's. */
bool runtime_socket(struct runtime *r, int64_t attempt, char out[static 108])
{
    const struct attempt *a = map_get(r->attempts, attempt);
    if (!a || !a->proc || a->last.phase != PHASE_RUNNING)
        return false;
    snprintf(out, 108, "/proc/%lld/cwd/sock", (long long)a->last.pid);
    return true;
}

void runtime_describe(struct runtime *r, struct node_info *info, struct arena *mem)
{
    devices_describe(r, info, mem);
    const char **cannot = ARENA_ARRAY(mem, const char *, info->cannot.count + 16);
    size_t n = 0;
    info->runtime
        = r->real ? arena_text(mem, r->means.known ? r->means.version : "on trial") : "simulated";
    info->cgroups = r->real ? cgroups_kind(&r->cgroups) : "simulated";
    if (r->real && !r->cgroups.unified)
        cannot[n++] = "cgroup v1: buffered writes of a task are not limited";
    if (r->real && !r->io.limits)
        cannot[n++] = "no limits for its disk: disk_bandwidth of a task is not held";
    if (r->real && r->cgroups.unified && !r->io.weight)
        cannot[n++] = "neither BFQ nor io.cost on its disk: tasks that read and write have no weights there";
    if (r->means.known && r->means.scratch == SCRATCH_TMPFS && r->real)
        cannot[n++]
            = "no loop devices: what a task writes lies in memory and counts against its memory";
    if (r->real && !cgroups_freeze(&r->cgroups))
        cannot[n++] = "no freezer: tasks cannot be suspended";
    if (r->real && r->means.known && !r->means.runtime) {
        cannot[n++] = arena_printf(mem, "no container can be run here: %s", r->means.why);
        info->cpu_milli = info->mem_mib = 0; /* nothing fits, so nothing is sent here to fail */
        for (size_t i = 0; i < info->gpus.count; i++)
            ((struct gpu_info *)info->gpus.at)[i].healthy = false;
    }
    info->disks = !r->real || (r->means.known && r->means.scratch == SCRATCH_LOOP);
    info->network = !r->real;
    shares_describe(r, info, cannot, &n);
    net_describe(r->net, info, mem, cannot, &n);
    for (size_t i = 0; i < info->cannot.count; i++)
        cannot[n++] = info->cannot.at[i];
    if (n > NODE_CANNOT) /* a server refuses more, and the whole node with them */
        cannot[NODE_CANNOT - 1] = arena_printf(mem, "and %zu more", n - (NODE_CANNOT - 1));
    info->cannot = (struct texts){ cannot, MIN(n, (size_t)NODE_CANNOT) };
}
