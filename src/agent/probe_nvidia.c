/* probe_nvidia.c - NVIDIA's GPUs through their management library, in the device helper. One session stays open: what changes is asked for
 * with the fewest and cheapest calls once a look, error counters every few seconds, and what is dear (on an H200 energy takes 4 ms of CPU, the
 * counter of PCIe replays 0.2, all others together 0.3) once a minute.
 *
 * It reads and never sets: modes, clocks and power of a card are its operator's. */
#include "agent/helper.h"
#include "agent/nvidia_proc.h"
#include "agent/nvml.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLOW_MS = 10000, DEAR_MS = 60000, PROCESSES_MOST = 4096, CLIENTS_MOST = 512, WAIT_MS = 2000 };

struct card {
    struct nvml_device *handle;
    char uuid[NVML_UUID];
    int rc;                     /* of the last call that needed the device itself */
    int64_t slow_ms, dear_ms;   /* when these figures were read; 0: never */
    struct gpu_live slow;
    bool pending;               /* rows are to be remapped */
    _Atomic int64_t xid;        /* the last one: the thread that waits for them sets it */
};
struct nvidia {
    struct nvml n;
    const char *proc;
    bool begun;
    unsigned count;
    struct card cards[NODE_GPUS];
    struct nvml_event_set *events;
    pthread_t thread;
    bool waits;
    _Atomic bool stop;
    struct nvml_process *processes;
};

static bool failed(struct err *err, int rc, const char *what)
{
    return err_set(err, RC_UNAVAILABLE, "%s: %s (NVML %d)", what, nvml_words(rc), rc);
}

/* --- errors that the driver tells by itself */

static void *wait_for_events(void *arg)
{
    struct nvidia *v = arg;
    while (!v->stop) {
        struct nvml_event e = { 0 };
        int rc = v->n.event_wait(v->events, &e, WAIT_MS);
        if (rc != NVML_OK && rc != NVML_TIMEOUT)
            sleep(1);           /* a device that is lost may answer at once, again and again */
        for (unsigned i = 0; rc == NVML_OK && e.type == NVML_EVENT_XID && i < v->count; i++)
            if (v->cards[i].handle == e.device) {
                v->cards[i].xid = (int64_t)(e.data & 0xfffff);
                helper_xid(v->cards[i].uuid, v->cards[i].xid);
            }
    }
    return NULL;
}

static void begin_events(struct nvidia *v)
{
    bool any = false;
    if (!v->n.event_set || !v->n.event_register || !v->n.event_wait || v->n.event_set(&v->events) != NVML_OK)
        return;
    for (unsigned i = 0; i < v->count; i++)
        any |= v->cards[i].handle && v->n.event_register(v->cards[i].handle, NVML_EVENT_XID, v->events) == NVML_OK;
    v->waits = any && pthread_create(&v->thread, NULL, wait_for_events, v) == 0;
}

/* --- a session */

static bool nvidia_open(const struct helper_config *config, void **state, struct err *err)
{
    struct nvml n;
    if (!nvml_load(config->nvml, &n, err))
        return false;
    struct nvidia *v = calloc(1, sizeof *v);
    if (!v || !(v->processes = calloc(PROCESSES_MOST, sizeof *v->processes)))
        abort();
    v->n = n;
    v->proc = config->proc ? config->proc : "/proc/driver/nvidia/gpus";
    *state = v;
    return true;
}

static bool begin(struct nvidia *v, struct err *err)
{
    int rc = v->begun ? NVML_OK : v->n.init();
    if (rc != NVML_OK)
        return failed(err, rc, "NVML does not start");
    if (v->begun)
        return true;
    if ((rc = v->n.count(&v->count)) != NVML_OK) {
        NVML_CALL(&v->n, shutdown);
        return failed(err, rc, "GPUs cannot be counted");
    }
    v->begun = true;
    v->count = MIN(v->count, (unsigned)NODE_GPUS);
    for (unsigned i = 0; i < v->count; i++) {
        struct card *c = &v->cards[i];
        c->slow = gpu_live_unknown(c->uuid);
        c->rc = v->n.handle(i, &c->handle);
        if (c->rc == NVML_OK)
            c->rc = v->n.uuid(c->handle, c->uuid, sizeof c->uuid);
    }
    begin_events(v);
    return true;
}

static void nvidia_close(void *state)
{
    struct nvidia *v = state;
    v->stop = true;
    if (v->waits)
        pthread_join(v->thread, NULL);
    if (v->events)
        NVML_CALL(&v->n, event_free, v->events);
    if (v->begun)
        NVML_CALL(&v->n, shutdown);
    free(v->processes);
    free(v);
}

/* --- figures that are not read every time */

static void take_field(struct gpu_live *l, bool *pending, const struct nvml_field *f)
{
    static const struct { unsigned id; size_t at; } all[] = {
        { NVML_FIELD_ECC_CORRECTED, offsetof(struct gpu_live, ecc_corrected) },
        { NVML_FIELD_ECC_UNCORRECTED, offsetof(struct gpu_live, ecc_uncorrected) },
        { NVML_FIELD_MEM_TEMP, offsetof(struct gpu_live, mem_temp_c) },
        { NVML_FIELD_ROWS_CORRECTED, offsetof(struct gpu_live, rows_corrected) },
        { NVML_FIELD_ROWS_UNCORRECTED, offsetof(struct gpu_live, rows_uncorrected) },
        { NVML_FIELD_ROWS_FAILURE, offsetof(struct gpu_live, row_failure) },
        { NVML_FIELD_REPLAYS, offsetof(struct gpu_live, replays) },
    };
    enum { TYPE_UNSIGNED = 1, TYPE_INT = 5 };   /* these two have 32 bits, the others that come here 64 */
    if (f->rc != NVML_OK)
        return;
    int64_t n = f->type == TYPE_UNSIGNED || f->type == TYPE_INT ? (int64_t)f->value.u : (int64_t)f->value.ull;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].id == f->id && n >= 0 && n < INT64_C(1) << 52)
            *(int64_t *)((char *)l + all[i].at) = n;
    if (f->id == NVML_FIELD_ROWS_PENDING)
        *pending = n != 0;
}

static void read_slow(struct nvidia *v, struct card *c)
{
    static const unsigned ids[] = { NVML_FIELD_ECC_CORRECTED, NVML_FIELD_ECC_UNCORRECTED, NVML_FIELD_MEM_TEMP, NVML_FIELD_ROWS_CORRECTED,
                                    NVML_FIELD_ROWS_UNCORRECTED, NVML_FIELD_ROWS_PENDING, NVML_FIELD_ROWS_FAILURE };
    struct nvml_field fields[COUNT(ids)];
    unsigned util, period;
    memset(fields, 0, sizeof fields);
    for (size_t i = 0; i < COUNT(ids); i++)
        fields[i].id = ids[i];
    if (NVML_CALL(&v->n, fields, c->handle, (int)COUNT(ids), fields) == NVML_OK)
        for (size_t i = 0; i < COUNT(ids); i++)
            take_field(&c->slow, &c->pending, &fields[i]);
    if (NVML_CALL(&v->n, encoder, c->handle, &util, &period) == NVML_OK)
        c->slow.encoder = MIN(util, 100u);
    if (NVML_CALL(&v->n, decoder, c->handle, &util, &period) == NVML_OK)
        c->slow.decoder = MIN(util, 100u);
}

static void read_dear(struct nvidia *v, struct card *c)
{
    struct nvml_field replays = { .id = NVML_FIELD_REPLAYS };
    unsigned long long mj;
    if (NVML_CALL(&v->n, energy, c->handle, &mj) == NVML_OK)
        c->slow.energy_mj = (int64_t)(mj & ((1ULL << 52) - 1));
    if (NVML_CALL(&v->n, fields, c->handle, 1, &replays) == NVML_OK)
        take_field(&c->slow, &c->pending, &replays);
}

static bool is_time(int64_t *last_ms, int64_t now_ms, int64_t every_ms)
{
    bool yes = !*last_ms || now_ms - *last_ms >= every_ms;
    if (yes)
        *last_ms = now_ms;
    return yes;
}

/* --- what there is */

/* A card that is beyond use, in words; NULL: it is not. *fault: of what kind (struct gpu_info). */
static const char *health_of(const struct card *c, struct arena *mem, const char **fault)
{
    *fault = "held";
    if (c->rc == NVML_LOST || c->rc == NVML_NEEDS_RESET)
        return nvml_words(c->rc);
    if (c->slow.row_failure > 0)
        return "a row of its memory could not be remapped: it must be replaced";
    *fault = c->slow.ecc_uncorrected > 0 ? "memory" : NULL;
    if (*fault)
        return arena_printf(mem, "%lld uncorrectable memory errors since its driver was loaded", (long long)c->slow.ecc_uncorrected);
    return NULL;
}

/* "NVIDIA H200 MIG 1g.18gb" -> "1g.18gb@0". */
static bool mig_text(struct nvidia *v, struct card *c, struct nvml_device *mig, struct arena *mem, struct str *out, const char **ids)
{
    char name[NVML_NAME] = "";
    unsigned id, part;
    struct nvml_gpu_instance *gi;
    struct nvml_gi_info info;
    if (v->n.name(mig, name, sizeof name) != NVML_OK || NVML_CALL(&v->n, gi_id, mig, &id) != NVML_OK
        || NVML_CALL(&v->n, ci_id, mig, &part) != NVML_OK || NVML_CALL(&v->n, gi_by_id, c->handle, id, &gi) != NVML_OK || NVML_CALL(&v->n, gi_info, gi, &info) != NVML_OK)
        return false;
    const char *profile = strstr(name, "MIG ");
    if (!profile || info.placement.start > 7)
        return false;
    profile += 4;
    if (strchr(profile, 'c') && strchr(profile, 'c') < strchr(profile, 'g'))
        return false;           /* a part of an instance ("1c.3g.71gb"): it has no wall of its own, so it is not offered */
    str_printf(out, "%s%s@%u", out->len ? "," : "", profile, info.placement.start);
    *ids = arena_printf(mem, "%u/%u", id, part);
    return true;
}

static void find_mig(struct nvidia *v, struct card *c, struct arena *mem, struct gpu_info *g)
{
    unsigned now = 0, pending = 0, most = 0;
    char uuid[NVML_UUID];
    AUTO(str_done) struct str text = { 0 };
    if (NVML_CALL(&v->n, mig_mode, c->handle, &now, &pending) != NVML_OK || !now)
        return;
    if (NVML_CALL(&v->n, mig_count, c->handle, &most) != NVML_OK)
        most = 0;
    most = MIN(most, 8u);
    g->mig_uuids.at = ARENA_ARRAY(mem, const char *, most + 1);
    g->mig_ids.at = ARENA_ARRAY(mem, const char *, most + 1);
    for (unsigned i = 0; i < most; i++) {
        struct nvml_device *mig;
        if (NVML_CALL(&v->n, mig_handle, c->handle, i, &mig) == NVML_OK && v->n.uuid(mig, uuid, sizeof uuid) == NVML_OK
            && mig_text(v, c, mig, mem, &text, &g->mig_ids.at[g->mig_ids.count])) {
            g->mig_ids.count++;
            g->mig_uuids.at[g->mig_uuids.count++] = arena_text(mem, uuid);
        }
    }
    g->mig = text.len ? arena_text(mem, text.at) : "on";
}

/* Links straight to another card of this machine count for that one; those to a switch for all that have such. */
static void find_links(struct nvidia *v, struct card *c, struct arena *mem, struct gpu_info *g)
{
    unsigned active;
    int type;
    struct nvml_pci far;
    struct gpu_peer *peers = ARENA_ARRAY(mem, struct gpu_peer, NVML_LINKS);
    for (unsigned link = 0; link < NVML_LINKS; link++) {
        if (NVML_CALL(&v->n, link_state, c->handle, link, &active) != NVML_OK)
            break;
        if (!active)
            continue;
        g->nvlinks++;
        if (NVML_CALL(&v->n, link_type, c->handle, link, &type) != NVML_OK || type != NVML_REMOTE_GPU
            || NVML_CALL(&v->n, link_remote, c->handle, link, &far) != NVML_OK)
            continue;
        const char *pci = arena_printf(mem, "%04x:%02x:%02x.0", far.domain, far.bus, far.device);
        size_t k = 0;
        while (k < g->peers.count && !text_is(peers[k].path, pci))
            k++;
        if (k == g->peers.count)
            peers[g->peers.count++] = (struct gpu_peer){ .index = -1, .path = pci };    /* whose number that is comes later */
        peers[k].links++;
    }
    g->peers.at = peers;
}

static const char *mode_of(struct nvidia *v, struct card *c)
{
    int mode = NVML_MODE_DEFAULT;
    if (NVML_CALL(&v->n, compute_mode, c->handle, &mode) != NVML_OK)
        return NULL;
    return mode == NVML_MODE_EXCLUSIVE_PROCESS ? "exclusive_process" : mode == NVML_MODE_PROHIBITED ? "prohibited" : NULL;
}

static void find_card(struct nvidia *v, struct card *c, struct arena *mem, struct gpu_info *g)
{
    char name[NVML_NAME] = "NVIDIA GPU";
    struct nvml_memory m = { 0 };
    struct nvml_pci pci;
    unsigned n, now, pending;
    if (v->n.name(c->handle, name, sizeof name) == NVML_OK)
        g->model = arena_text(mem, name);
    int rc = NVML_CALL(&v->n, memory, c->handle, &m);
    c->rc = rc == NVML_LOST || rc == NVML_NEEDS_RESET ? rc : NVML_OK;
    g->mem_mib = (int64_t)(m.total >> 20);
    if (NVML_CALL(&v->n, pci, c->handle, &pci) == NVML_OK)
        g->pci = arena_printf(mem, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    if (NVML_CALL(&v->n, minor, c->handle, &n) == NVML_OK)
        g->device = arena_printf(mem, "/dev/nvidia%u", n);
    const char *told = g->device, *also = nvidia_proc_device(v->proc, g->uuid, g->pci, mem);
    bool agree = !told || !also || text_is(told, also);
    g->device = !agree ? NULL : told ? told : also;
    if (NVML_CALL(&v->n, power_cap, c->handle, &n) == NVML_OK)
        g->power_cap_mw = n;
    g->ecc_off = NVML_CALL(&v->n, ecc_mode, c->handle, &now, &pending) != NVML_OK || !now;
    g->mode = mode_of(v, c);
    find_mig(v, c, mem, g);
    find_links(v, c, mem, g);
    read_slow(v, c);            /* health as it is now */
    g->health = health_of(c, mem, &g->fault);
    g->ecc_errors = MAX(c->slow.ecc_uncorrected, 0);
    if (!agree && !g->health)
        g->health = arena_printf(mem, "it is %s by NVML and %s by the driver's /proc", told, also);
    g->note = c->pending ? "rows of its memory are to be remapped at the next reset" : NULL;
}

static bool nvidia_find(void *state, struct arena *mem, struct node_info *out, struct err *err)
{
    struct nvidia *v = state;
    char driver[80] = "";
    int cuda = 0;
    if (!begin(v, err))
        return false;
    if (NVML_CALL(&v->n, driver_version, driver, sizeof driver) != NVML_OK)
        *driver = 0;
    if (NVML_CALL(&v->n, cuda_version, &cuda) != NVML_OK)
        cuda = 0;
    for (unsigned i = 0; i < v->count; i++) {
        struct card *c = &v->cards[i];
        if (!*c->uuid) {        /* it never told who it is, so it cannot be a GPU that somebody knows */
            helper_cannot(out, mem, "nvidia: GPU %u: %s", i, nvml_words(c->rc));
            continue;
        }
        struct gpu_info g = { .uuid = arena_text(mem, c->uuid), .vendor = "nvidia", .model = "NVIDIA GPU", .numa = -1, .driver = arena_text(mem, driver),
                              .cuda = cuda ? arena_printf(mem, "%d.%d", cuda / 1000, cuda % 1000 / 10) : NULL };
        find_card(v, c, mem, &g);
        helper_add_gpu(out, mem, &g);
    }
    return true;
}

/* --- what they do */

static const char *throttle_of(unsigned long long bits, struct arena *mem)
{
    static const struct { unsigned long long bit; const char *word; } all[] = {
        { 0x4, "power cap" }, { 0x8, "hardware slowdown" }, { 0x20, "heat" }, { 0x40, "heat (hardware)" }, { 0x80, "power brake" }, { 0x10, "sync boost" },
    };
    AUTO(str_done) struct str text = { 0 };
    for (size_t i = 0; i < COUNT(all); i++)
        if (bits & all[i].bit)
            str_printf(&text, "%s%s", text.len ? ", " : "", all[i].word);
    return text.len ? arena_text(mem, text.at) : "";
}

/* All that have a context on it: clients of MPS, its server, and whoever came by himself. */
static void live_processes(struct nvidia *v, struct card *c, struct arena *mem, struct gpu_live *l)
{
    unsigned n = PROCESSES_MOST;
    if (NVML_CALL(&v->n, processes, c->handle, &n, v->processes) != NVML_OK)
        return;
    for (unsigned i = 0; i < MIN(n, (unsigned)PROCESSES_MOST); i++) {
        unsigned long long used = v->processes[i].used;
        helper_add_process(l, mem, helper_attempt_of((int)v->processes[i].pid), used >> 52 ? 0 : (int64_t)(used >> 20));
    }
}

/* A driver that cannot tell its clients has none outside, as far as anybody knows. */
static void held_processes(struct nvidia *v, struct card *c, struct arena *mem, struct gpu_live *l)
{
    unsigned n = PROCESSES_MOST, m = CLIENTS_MOST;
    struct nvml_process clients[CLIENTS_MOST];
    bool tells = NVML_CALL(&v->n, mps_clients, c->handle, &m, clients) == NVML_OK;
    if (NVML_CALL(&v->n, processes, c->handle, &n, v->processes) != NVML_OK)
        return;
    for (unsigned i = 0; i < MIN(n, (unsigned)PROCESSES_MOST); i++) {
        unsigned long long used = v->processes[i].used;
        int64_t attempt = helper_attempt_of((int)v->processes[i].pid);
        bool client = !tells;
        for (unsigned k = 0; !client && k < MIN(m, (unsigned)CLIENTS_MOST); k++)
            client = clients[k].pid == v->processes[i].pid;
        helper_add_process(l, mem, attempt, used >> 52 ? 0 : (int64_t)(used >> 20));
        helper_add_pid(l, mem, attempt, (int)v->processes[i].pid);
        if (!client)
            helper_add_outside(l, attempt);
    }
}

static void live_power(struct nvidia *v, struct card *c, struct gpu_live *l)
{
    struct nvml_field f = { .id = NVML_FIELD_POWER };
    unsigned n;
    if (NVML_CALL(&v->n, fields, c->handle, 1, &f) == NVML_OK && f.rc == NVML_OK)
        l->power_mw = (int64_t)f.value.u;
    else if (NVML_CALL(&v->n, power, c->handle, &n) == NVML_OK)
        l->power_mw = n;
}

static void live_memory(struct nvidia *v, struct card *c, struct gpu_live *l)
{
    struct nvml_memory2 m2 = { .version = NVML_MEMORY2 };
    struct nvml_memory m;
    if (NVML_CALL(&v->n, memory2, c->handle, &m2) == NVML_OK) {
        l->mem_used_mib = (int64_t)(m2.used >> 20);
        l->mem_free_mib = (int64_t)(m2.free >> 20);
    } else if (NVML_CALL(&v->n, memory, c->handle, &m) == NVML_OK) {
        l->mem_used_mib = (int64_t)(m.used >> 20);
        l->mem_free_mib = (int64_t)(m.free >> 20);
    }
}

static void nvidia_live(void *state, struct arena *mem, int64_t now_ms, struct objects *out)
{
    struct nvidia *v = state;
    for (unsigned i = 0; v->begun && i < v->count; i++) {
        struct card *c = &v->cards[i];
        struct nvml_utilization u;
        unsigned n;
        unsigned long long bits;
        if (!*c->uuid)
            continue;
        if (is_time(&c->slow_ms, now_ms, SLOW_MS))
            read_slow(v, c);
        if (is_time(&c->dear_ms, now_ms, DEAR_MS))
            read_dear(v, c);
        struct gpu_live l = c->slow;
        l.uuid = c->uuid;
        l.xid = c->xid;
        int rc = NVML_CALL(&v->n, utilization, c->handle, &u);
        if (rc == NVML_OK)
            l.util = MIN(u.gpu, 100u), l.mem_util = MIN(u.memory, 100u);
        live_memory(v, c, &l);
        live_power(v, c, &l);
        if (NVML_CALL(&v->n, temperature, c->handle, 0, &n) == NVML_OK)
            l.temp_c = MIN(n, 1000u);
        if (NVML_CALL(&v->n, clock, c->handle, NVML_CLOCK_SM, &n) == NVML_OK)
            l.sm_mhz = n;
        if (NVML_CALL(&v->n, clock, c->handle, NVML_CLOCK_MEM, &n) == NVML_OK)
            l.mem_mhz = n;
        if (NVML_CALL(&v->n, throttle, c->handle, &bits) == NVML_OK)
            l.throttle = throttle_of(bits, mem);
        live_processes(v, c, mem, &l);
        helper_add_live(out, mem, &l);
    }
}

static void nvidia_held(void *state, struct arena *mem, struct objects *out)
{
    struct nvidia *v = state;
    for (unsigned i = 0; v->begun && i < v->count; i++) {
        struct gpu_live l = gpu_live_unknown(v->cards[i].uuid);
        if (!*v->cards[i].uuid)
            continue;
        held_processes(v, &v->cards[i], mem, &l);
        helper_add_live(out, mem, &l);
    }
}

const struct device_probe device_nvidia = { "nvidia", nvidia_open, nvidia_find, nvidia_live, nvidia_held, nvidia_close };
