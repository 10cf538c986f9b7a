/* runtime_start.c - from an order to a supervisor: wait for what is missing, then write the plan
 * and the bundle, then spawn.
 *
 * When everything is here already nothing waits: a start is a few small files and one process.
 * Whatever fails is told as the end of the attempt. No secret is written anywhere: they go
 * through a memory file that becomes the supervisor's standard input. */
#include "agent/bundle.h"
#include "agent/runtime_internal.h"
#include "model/ipv4.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RANGES = 61000,
    DISK_MIB = 10240,
    LOG_MIB = 100,
    PASSWD_BYTES = 1 << 20
};

/* The supervisor, linked in as bytes; a build without it has it beside the program. */
extern const char arcus_task_start[] __attribute__((weak));
extern const char arcus_task_end[] __attribute__((weak));

bool supervisor_write(struct runtime *r, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice bytes = { 0 };
    const char *slash = r->config.self ? strrchr(r->config.self, '/') : NULL;
    if (arcus_task_start)
        bytes = (struct slice){ arcus_task_start, (size_t)(arcus_task_end - arcus_task_start) };
    else if (!slash
             || !file_read(r->os,
                           arena_printf(mem, "%.*s/arcus-task", (int)(slash - r->config.self),
                                        r->config.self),
                           16 << 20, mem, &bytes, err))
        return slash ? false : err_set(err, RC_INTERNAL, "the supervisor is not built in");
    char path[RUNTIME_PATH];
    return plain_write(r, r->supervisor, bytes, 0755, err) && plain_write(r, in_run(r, path, "launch", LAUNCH_NAME), bytes, 0755, err);
}

bool take_range(struct runtime *r, int64_t *base, void *owner)
{
    for (int i = 0; i < RANGES; i++) {
        r->last_range = (r->last_range + 1) % RANGES;
        int64_t at = PLAN_UID_BASE + r->last_range * PLAN_UID_COUNT;
        if (map_get(r->ranges, at))
            continue;
        *base = at;
        map_put(r->ranges, at, owner);
        return true;
    }
    return false;
}

/* --- what a start may have to wait for */

/* A disk lies on the image that it was made of, whatever its name stands for by now. */
static void lies_on(struct attempt *a)
{
    char name[ID_TEXT], path[RUNTIME_PATH];
    struct order *o = a->order;
    struct slice text;
    struct err ignored;
    if (!o->disk)
        return;
    in_data(a->r, path, "volumes", id_text(name, PREFIX_VOLUME, o->disk));
    if (!file_read(a->r->os, arena_printf(a->mem, "%s/" DISK_IMAGE, path), DISK_IMAGE_BYTES, a->mem, &text, &ignored))
        return;
    const char *known = arena_bytes(a->mem, text.at, text.len), archive[] = "archive-";
    bool own = strncmp(known, archive, sizeof archive - 1) == 0;
    const char *digest = arena_printf(a->mem, "sha256:%s", own ? known + sizeof archive - 1 : known);
    if (!image_digest_ok(digest))
        return; /* the supervisor compares, too */
    a->lies_on_own = own;
    o->image_blob = own ? digest : NULL;
    o->image = own ? o->image : image_exact(o->image, digest, a->mem);
}

static void on_image(void *arg, const struct image *image, const struct err *err)
{
    struct attempt *a = arg;
    a->awaited--;
    if (a->stage != STAGE_WAITS)
        return;
    if (!image) {
        bool ours
            = err->rc == RC_INTERNAL || err->rc == RC_OVER_QUOTA
              || (a->order->image_blob && (err->rc == RC_UNAVAILABLE || err->rc == RC_TIMEOUT));
        if (!ours && a->lies_on_own) {
            struct err why; /* what is in its arena goes before this is told */
            err_set(&why, RC_BAD_INPUT, "its disk lies on the image %s, which cannot be had any more (%s); import that archive again as %s", a->order->image_blob, err->text, a->order->image);
            attempt_end(a, OUTCOME_START_FAILED, why.text);
            return;
        }
        attempt_end(a, ours ? OUTCOME_NODE_FAULT : OUTCOME_IMAGE_NOT_FOUND, err->text);
        return;
    }
    a->image = image;
    start_advance(a);
}

static void on_workdir(void *arg, const char *path, const struct err *err)
{
    struct attempt *a = arg;
    a->awaited--;
    if (a->stage != STAGE_WAITS)
        return;
    if (!path) {
        attempt_end(a,
                    err->rc == RC_NOT_FOUND || err->rc == RC_BAD_INPUT ? OUTCOME_START_FAILED
                                                                       : OUTCOME_NODE_FAULT,
                    err->text);
        return;
    }
    a->workdir = arena_text(a->mem, path);
    start_advance(a);
}

static void on_net(void *arg, const struct err *err)
{
    struct attempt *a = arg;
    a->awaited--;
    if (a->stage != STAGE_WAITS)
        return;
    if (err) {
        attempt_end(a, OUTCOME_NODE_FAULT, err->text);
        return;
    }
    a->has_net = true;
    start_advance(a);
}

/* It has an address, so it does not begin without a network. */
static bool has_network(struct attempt *a)
{
    struct runtime *r = a->r;
    if (!r->real || !a->order->net || a->has_net)
        return true;
    if (!net_works(r->net)) {
        attempt_end(a, OUTCOME_NODE_FAULT, "this node has no networks (any more)");
        return false;
    }
    if (!a->asked_net) {
        a->asked_net = true;
        a->awaited++;
        text_copy(a->address, sizeof a->address, a->order->address ? a->order->address : "");
        net_want(r->net, a->order, on_net, a);
    }
    return false;
}

/* Sizes are rounded up, so that few templates serve all. */
static int64_t scratch_mib(const struct order *o)
{
    return disk_rounded(o->disk_mib > 0 ? o->disk_mib : DISK_MIB);
}

static void template_path(struct attempt *a, char out[static RUNTIME_PATH])
{
    char name[32];
    snprintf(name, sizeof name, "%lld.%s", (long long)scratch_mib(a->order), a->order->disk ? "disk" : "img");
    in_data(a->r, out, "scratch", name);
}

struct template
{
    struct work work;
    struct attempt *a;
    struct os *os;
    char path[RUNTIME_PATH];
    int64_t mib;
    bool disk;
    struct err err;
};

static void template_run(struct work *w)
{
    struct template *t = CONTAINER(w, struct template, work);
    if (access(t->path, R_OK) == 0)
        return; /* another start was here first */
    if (!template_make(t->os, t->path, t->mib, t->disk, &t->err))
        return;
}

static void template_done(struct work *w)
{
    struct template *t = CONTAINER(w, struct template, work);
    struct attempt *a = t->a;
    struct err err = t->err;
    free(t);
    a->awaited--;
    if (a->stage != STAGE_WAITS)
        return;
    if (err.rc)
        attempt_end(a, OUTCOME_NODE_FAULT, err.text);
    else
        start_advance(a);
}

static bool has_template(struct attempt *a)
{
    char path[RUNTIME_PATH];
    template_path(a, path);
    if (a->r->means.scratch != SCRATCH_LOOP || access(path, R_OK) == 0)
        return true;
    if (a->asked_template)
        return false;
    struct template *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->work = (struct work){ .run = template_run, .done = template_done };
    t->a = a;
    t->os = a->r->os;
    t->mib = scratch_mib(a->order);
    t->disk = a->order->disk != 0;
    memcpy(t->path, path, sizeof path);
    a->asked_template = true;
    a->awaited++;
    workshop_do(a->r->shop, &t->work);
    return false;
}

/* --- the plan and the bundle */

static bool is_host(const struct order *o)
{
    return !text_given(o->image_blob) && text_is(o->image, "host");
}

static bool make_dir(struct runtime *r, const char *path, unsigned mode, int64_t uid, int64_t gid,
                     struct err *err)
{
    if (!r->real)
        return dir_make(r->os, path, mode, err);
    if (mkdir(path, mode) == -1 && errno != EEXIST)
        return err_errno(err, "cannot make %s", path);
    bool as_made = (mode & 077) == 0; /* nothing that a umask could have taken away */
    return ((as_made || chmod(path, mode) == 0) && ((!uid && !gid) || chown(path, (uid_t)uid, (gid_t)gid) == 0))
           || err_errno(err, "cannot own %s", path);
}

static bool find_user(struct attempt *a, struct bundle_user *out, struct err *err)
{
    const struct order *o = a->order;
    struct slice passwd = { "", 0 }, group = { "", 0 };
    const char *user = text_given(o->user) ? o->user : a->image ? a->image->config.user : NULL;
    if (a->image) {
        passwd = a->image->passwd;
        group = a->image->group;
    } else if (user && a->r->real
               && (!file_read(a->r->os, "/etc/passwd", PASSWD_BYTES, a->mem, &passwd, err)
                   || !file_read(a->r->os, "/etc/group", PASSWD_BYTES, a->mem, &group, err))) {
        return false;
    }
    return bundle_user_find(user, passwd, group, a->mem, out, err);
}

/* What the node gives: /outputs of this attempt, and the volumes. The files in them belong to
 * ids of the container. */
static bool plan_folders(struct attempt *a, const struct bundle_user *user, struct plan *p,
                         struct err *err)
{
    struct runtime *r = a->r;
    const struct order_mount *m = a->order->mounts.at;
    struct plan_mount *to = ARENA_ARRAY(a->mem, struct plan_mount, a->order->mounts.count + 4);
    char path[RUNTIME_PATH], name[ID_TEXT];
    p->mounts = (struct objects){ to, a->order->mounts.count + 1 };
    if (!make_dir(r, in_data(r, path, "outputs", a->name), 0755, user->uid, user->gid, err))
        return false;
    to[0] = (struct plan_mount){ arena_text(a->mem, path), "outputs", false };
    for (size_t i = 0; i < a->order->mounts.count; i++, m++) {
        in_data(r, path, "volumes", id_text(name, PREFIX_VOLUME, m->volume));
        struct stat st;
        if ((!r->real || stat(path, &st) == -1) && !make_dir(r, path, 0777, 0, 0, err))
            return false;
        to[i + 1] = (struct plan_mount){ arena_text(a->mem, path),
                                         arena_printf(a->mem, "vol-%zu", i), m->read_only };
    }
    if (a->has_share)
        to[p->mounts.count++] = (struct plan_mount){ mps_door(r->mps, a->shares.at[0].uuid, a->mem), "mps", .read_only = true, .plain = true };
    if (r->real && a->order->host_network)
        to[p->mounts.count++] = (struct plan_mount){ "/sys", "sys", .read_only = true, .plain = true };
    if (p->hostfile)
        to[p->mounts.count++] = (struct plan_mount){ arena_printf(a->mem, "%s/launch", r->config.run), "launch", .read_only = true, .plain = true };
    return true;
}

/* The node's own root cannot be written: what is to be covered there must be there, and no link to somewhere. */
static bool names_can_be_told(const struct attempt *a)
{
    struct stat st;
    return a->image || (lstat("/etc/resolv.conf", &st) == 0 && S_ISREG(st.st_mode));
}

/* Of a task that is in the node's own network: whom the node asks, itself too. */
static const char *node_resolver(struct attempt *a)
{
    struct slice text;
    struct err ignored;
    char word[64];
    uint32_t address;
    if (!file_read(a->r->os, "/etc/resolv.conf", PASSWD_BYTES, a->mem, &text, &ignored))
        return NULL;
    for (const char *at = arena_bytes(a->mem, text.at, text.len); at && *at; at = strchr(at, '\n'), at += at != NULL)
        if (sscanf(at, "nameserver %63s", word) == 1 && ipv4_parse(word, &address))
            return arena_text(a->mem, word);
    return NULL;
}

static void plan_fill(struct attempt *a, const struct bundle_user *user, const char *hostname,
                      struct plan *p)
{
    struct runtime *r = a->r;
    const struct order *o = a->order;
    const struct order_secret *s = o->secrets.at;
    struct arena *mem = a->mem;
    char template[RUNTIME_PATH], disk[ID_TEXT];
    template_path(a, template);
    *p = (struct plan){
        .attempt = a->id,
        .id = a->name,
        .runtime = r->means.runtime ? r->means.runtime : "/simulated",
        .folder = arena_printf(mem, "%s/tasks/%s", r->config.data, a->name),
        .run = arena_printf(mem, "%s/tasks/%s", r->config.run, a->name),
        .status = arena_printf(mem, "%s/status/%s", r->config.data, a->name),
        .logs = arena_printf(mem, "%s/logs/%s", r->config.data, a->name),
        .lease = arena_printf(mem, "%s/lease", r->config.run),
        .cgroup = arena_printf(mem, "arcus/%s", a->name),
        .uid = user->uid,
        .gid = user->gid,
        .hostname = hostname,
        .root = a->image ? ROOT_IMAGE : ROOT_HOST,
        .lower = a->image ? a->image->root : NULL,
        .hide = r->hide,
        .scratch = r->means.scratch,
        .scratch_template = arena_text(mem, template),
        .scratch_mib = scratch_mib(o),
        .disk = o->disk && r->real ? arena_printf(mem, "%s/volumes/%s", r->config.data, id_text(disk, PREFIX_VOLUME, o->disk)) : NULL,
        .disk_used = o->disk_used,
        .workdir = a->workdir,
        .mem_mib = o->mem_mib,
        .log_mib = o->log_mib > 0 ? o->log_mib : LOG_MIB,
        .max_duration_s = o->max_duration_s,
        .grace_s = o->grace_s,
        .run_for_s = o->run_for_s,
    };
    p->fabric = net_fabric(r->net);
    p->hostfile = r->real && text_given(o->hostfile) ? o->hostfile : NULL;
    if (r->real && o->host_network && a->image)
        p->resolver = node_resolver(a);
    if (a->has_net) {
        struct net_place n = net_place(r->net, o);
        p->net = o->net;
        p->address = o->address;
        p->mbit = n.capped ? o->mbit : 0;
        p->mtu = n.mtu;
        p->bridge = arena_text(mem, n.bridge);
        p->link = arena_text(mem, n.link);
        p->resolver = *n.resolver && names_can_be_told(a) ? arena_text(mem, n.resolver) : NULL;
    }
    p->secrets.at = ARENA_ARRAY(mem, const char *, o->secrets.count);
    for (; p->secrets.count < o->secrets.count; p->secrets.count++)
        p->secrets.at[p->secrets.count] = s[p->secrets.count].name;
}

static const char *env_value(struct attempt *a, const char *name)
{
    const struct order *o = a->order;
    size_t n = strlen(name);
    for (size_t i = o->env.count; i-- > 0;)
        if (text_is(o->env.at[i].key, name))
            return o->env.at[i].value;
    for (size_t i = 0; a->image && i < a->image->config.env.count; i++)
        if (strncmp(a->image->config.env.at[i], name, n) == 0 && a->image->config.env.at[i][n] == '=')
            return a->image->config.env.at[i] + n + 1;
    return NULL;
}

static bool plan_devices(struct attempt *a, struct plan *p, struct injection *give, struct err *err)
{
    *give = (struct injection){ 0 };
    if (a->r->real && !inject_for(a->r->inject, &a->order->gpus, !a->image, env_value(a, "NVIDIA_DRIVER_CAPABILITIES"), a->mem, give, err))
        return false;
    p->nodes = give->nodes;
    p->files = give->files;
    p->links = give->links;
    p->driver = give->driver;
    p->shares = shares_plan(&a->shares, a->mem);
    p->gpus = gpus_plan(a, a->mem);
    p->slices = slices_plan(a, a->mem);
    p->project = p->gpus.count ? a->order->project : 0;
    return true;
}

static bool bundle_fill(struct attempt *a, const struct bundle_user *user, const struct plan *p,
                        const struct injection *give, struct str *out, struct err *err)
{
    static const char *simulated[] = { "simulated" };
    const struct image_config none = { .cmd = { simulated, a->r->real ? 0 : 1 } };
    struct rlimit files = { 0, 0 };
    if (getrlimit(RLIMIT_NOFILE, &files) == -1)
        return err_errno(err, "cannot ask for limits");
    const struct bundle_place place = {
        .run = p->run,
        .cgroup = arena_printf(a->mem, "/%s", p->cgroup),
        .hostname = p->hostname,
        .uid_base = p->uid_base,
        .host = !a->image,
        .new_privileges = a->image && a->image->sudo && user->uid != 0,
        .cgroup_v2 = a->r->cgroups.unified,
        .limit_swap = a->r->limit_swap,
        .io = &a->r->io,
        .mps = a->has_share,
        .names = p->resolver != NULL,
        .filter = *a->r->means.filter ? a->r->means.filter : NULL,
        .give = give,
        .open_files = (int64_t)MIN(files.rlim_max, (rlim_t)INT32_MAX),
    };
    return bundle_write(out, a->order, a->image ? &a->image->config : &none, user, &place, err);
}

/* Nobody reads it before it is whole, since nobody was told of it. There may be an old one: to cut it before it is written over would make
 * the disk do what that is to save. */
static bool new_file(struct attempt *a, const char *folder, const char *name, const struct str *text, struct err *err)
{
    const char *path = arena_printf(a->mem, "%s/%s", folder, name);
    struct slice bytes = { text->at, text->len };
    if (!a->r->real)
        return file_replace(a->r->os, path, bytes, 0600, err);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = (fd != -1 && write(fd, bytes.at, bytes.len) == (ssize_t)bytes.len && ftruncate(fd, (off_t)bytes.len) == 0)
              || err_errno(err, "cannot write %s", path);
    if (fd != -1)
        close(fd);
    return ok;
}

static bool write_files(struct attempt *a, struct plan *p, struct slot **out, struct err *err)
{
    struct runtime *r = a->r;
    struct bundle_user user = { 0 };
    struct injection give;
    char hostname[64];
    AUTO(str_done) struct str bundle = { 0 };
    bundle_hostname(a->order, hostname);
    if (!find_user(a, &user, err))
        return false;
    plan_fill(a, &user, arena_text(a->mem, hostname), p);
    if (!plan_devices(a, p, &give, err))
        return false;
    struct slot *slot = r->real && !p->secrets.count && !p->hostfile && !p->disk && !a->order->host_network ? slot_take(r->slots, p) : NULL;
    if (slot)
        slot_fill(slot, a->mem, p);
    else if (take_range(r, &a->uid_base, a))
        p->uid_base = a->uid_base;
    else
        return err_set(err, RC_UNAVAILABLE, "all ranges of ids are in use on this node");
    *out = slot;
    p->runtime_root = arena_printf(a->mem, "%s/state", p->run);
    AUTO(str_done) struct str plan = { 0 };
    return bundle_fill(a, &user, p, &give, &bundle, err)
           && (slot || make_dir(r, p->run, 0711, 0, 0, err)) && (!p->disk || make_dir(r, p->disk, 0700, 0, 0, err))
           && plan_folders(a, &user, p, err) && new_file(a, p->folder, "config.json", &bundle, err)
           && (write_object(&plan, &plan_fields, p), true) && new_file(a, p->folder, "plan.json", &plan, err);
}

/* Each value behind four bytes of its length, in memory that no disk ever sees. */
static int secrets_file(const struct order *o)
{
    const struct order_secret *s = o->secrets.at;
    int fd = memfd_create("secrets", MFD_CLOEXEC);
    for (size_t i = 0; fd != -1 && i < o->secrets.count; i++) {
        size_t n = strlen(s[i].value);
        unsigned char head[4] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                  (unsigned char)(n >> 8), (unsigned char)n };
        if (write(fd, head, sizeof head) != sizeof head || write(fd, s[i].value, n) != (ssize_t)n) {
            close(fd);
            return -1;
        }
    }
    if (fd != -1)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

/* What we started leaves as soon as the supervisor proper runs, in a pid namespace of its own; that one is watched from its
 * first status on. */
static void on_exit_of(void *arg, int wait_status)
{
    (void)wait_status;
    struct attempt *a = arg;
    proc_forget(TAKE(a->proc));
    attempt_look(a);
    if (a->stage != STAGE_ENDED && !a->again && !a->proc && !attempt_comes(a))
        clean_dead(a);
}

static bool spawn(struct attempt *a, const struct plan *p, struct err *err)
{
    const char *const argv[] = { a->r->supervisor, p->folder, NULL };
    int in = a->r->real && a->order->secrets.count ? secrets_file(a->order) : -1;
    if (a->r->real && a->order->secrets.count && in == -1)
        return err_errno(err, "cannot pass the secrets on");
    struct proc_spec spec = { .argv = argv, .in = in, .out = -1, .err = -1, .own_session = true };
    bool ok = proc_spawn(a->r->os, &spec, on_exit_of, a, &a->proc, err);
    if (in != -1)
        close(in);
    return ok;
}

void start_advance(struct attempt *a)
{
    struct runtime *r = a->r;
    struct err err = { 0 };
    struct plan p = { 0 };
    struct slot *slot = NULL;
    if (a->stage != STAGE_WAITS || !r->means.known)
        return;
    if (r->real && !r->means.runtime) {
        attempt_end(a, OUTCOME_NODE_FAULT, r->means.why);
        return;
    }
    if (is_host(a->order) && !r->config.host_image) {
        attempt_end(a, OUTCOME_START_FAILED, "this node does not allow the image 'host'");
        return;
    }
    if (r->real && a->order->disk && r->means.scratch != SCRATCH_LOOP) {
        attempt_end(a, OUTCOME_NODE_FAULT, "this node has no loop devices any more, so its disk cannot be mounted");
        return;
    }
    if (r->real && !is_host(a->order) && !a->image) {
        if (!a->asked_image) {
            a->asked_image = true;
            a->awaited++;
            lies_on(a);
            images_want(r->images, a->order->image, a->order->image_blob, on_image,
                        a); /* may come back here at once */
        }
        return;
    }
    if (r->real && text_given(a->order->workdir) && !a->workdir) {
        if (!a->asked_workdir) {
            a->asked_workdir = true;
            a->awaited++;
            blobs_want(r->blobs, a->order->workdir, on_workdir, a);
        }
        return;
    }
    if (r->real && !has_template(a))
        return;
    if (!has_network(a) || !has_whole(a) || !has_slices(a) || !gpus_ready_for(a) || !has_shares(a))
        return;
    bool ok = write_files(a, &p, &slot, &err);
    if (ok && slot)
        slot_start(slot, a, p.folder);
    if (!ok && slot)
        slot_give(slot);
    if (!ok || (!slot && !spawn(a, &p, &err))) {
        attempt_end(a, err.rc == RC_BAD_INPUT ? OUTCOME_START_FAILED : OUTCOME_NODE_FAULT,
                    err.text);
        return;
    }
    a->stage = STAGE_SPAWNED;
    a->order = NULL;
    arena_free(TAKE(a->mem));
}

void runtime_start(struct runtime *r, const struct order *o)
{
    char path[RUNTIME_PATH];
    struct err err = { 0 };
    if (map_get(r->attempts, o->attempt))
        return;
    struct attempt *a = attempt_new(r, o->attempt);
    use_watch(a, o->watch);
    a->mem = arena_new();
    a->order = ARENA_NEW(a->mem, struct order);
    if (r->real)
        shares_begin(a, shares_of_order(&o->gpus));
    bind_copy(&order_fields, o, a->mem, a->order); /* the caller's lives as long as its message; ours until the supervisor has it */
    in_data(r, path, "tasks", a->name);
    if (spare_take(r, path) || make_dir(r, path, 0700, 0, 0, &err))
        start_advance(a);
    else
        attempt_end(a, OUTCOME_NODE_FAULT, err.text);
}
