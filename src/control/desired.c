/* desired.c - what a node is told: its orders as the memory has them now. Secrets are opened
 * here and nowhere else, for the node that runs the task, and go into no row, event or log. */
#include "control/call.h"
#include "model/hold.h"
#include <stdio.h>
#include <stdlib.h>

struct env {
    struct arena *mem;
    struct pair *at;
    size_t count, room;
};

static void put(struct env *e, const char *key, const char *value)
{
    if (e->count == e->room) {
        struct pair *more = ARENA_ARRAY(e->mem, struct pair, e->room * 2);
        memcpy(more, e->at, e->count * sizeof *more);
        e->at = more;
        e->room *= 2;
    }
    e->at[e->count++] = (struct pair){ key, value };
}
/* The user's own word for a name wins; a name that came twice would make the whole message
 * unreadable for the node. */
static void put_own(struct env *e, const struct pair *own)
{
    for (size_t i = 0; i < e->count; i++)
        if (text_is(e->at[i].key, own->key)) {
            e->at[i].value = own->value;
            return;
        }
    put(e, own->key, own->value);
}
static void put_int(struct env *e, const char *key, int64_t n)
{
    put(e, key, arena_printf(e->mem, "%lld", (long long)n));
}

/* A process that sees its own GPUs and no others numbers them from 0, whatever numbers they have on the node. */
static const char *own_numbers(struct arena *mem, const struct attempt *a)
{
    AUTO(str_done) struct str s = { 0 };
    for (int g = 0; g < a->gpu_count; g++)
        str_printf(&s, "%s%d", g ? "," : "", g);
    return arena_text(mem, s.at ? s.at : "");
}

static const char *device_list(struct arena *mem, const struct attempt *a, bool uuids)
{
    AUTO(str_done) struct str s = { 0 };
    for (int g = 0; g < a->gpu_count; g++)
        if (uuids)
            str_printf(&s, "%s%s", g ? "," : "", a->gpus[g].uuid);
        else
            str_printf(&s, "%s%lld", g ? "," : "", (long long)a->gpus[g].index);
    return arena_text(mem, s.at ? s.at : "");
}

/* Of a gang, by rank. All of it was placed together, so all have a node; one that has ended meanwhile has none any more. */
static const char *node_names(struct arena *mem, struct job *j)
{
    AUTO(str_done) struct str s = { 0 };
    for (int64_t i = 0; i < j->count; i++) {
        const struct task *t = job_task(j, i);
        str_printf(&s, "%s%s", i ? "," : "", t && t->attempt ? t->attempt->node->name : "");
    }
    return arena_text(mem, s.at);
}

static const char *first_host(const struct job *j)
{
    const struct task *t = map_get(j->tasks, 0);
    return t && t->attempt && text_given(t->attempt->node->info.hostname) ? t->attempt->node->info.hostname : "";
}

/* Of a gang, by rank, with something between; NULL: not all of it is in one network that reaches from node to node. */
static const char *addresses_of(struct arena *mem, struct job *j, const char *between)
{
    AUTO(str_done) struct str s = { 0 };
    char four[IPV4_TEXT];
    for (int64_t i = 0; i < j->count; i++) {
        const struct task *t = job_task(j, i);
        const struct attempt *a = t ? t->attempt : NULL;
        if (!a || !a->address || !text_given(a->node->info.underlay))
            return NULL;
        str_printf(&s, "%s%s", i ? between : "", ipv4_text(a->address, four));
    }
    return arena_text(mem, s.at);
}

/* Where one process runs on each node it is a rank. Where there are several, a launcher makes them and says which is which. */
static void put_ranks(struct env *e, int64_t rank, int64_t nodes, int64_t processes)
{
    put_int(e, "SLURM_NTASKS", nodes * processes);
    put_int(e, "SLURM_NPROCS", nodes * processes);
    put(e, "SLURM_TASKS_PER_NODE",
        arena_printf(e->mem, nodes > 1 ? "%lld(x%lld)" : "%lld", (long long)processes, (long long)nodes));
    if (processes > 1)
        return;
    put_int(e, "WORLD_SIZE", nodes);
    put_int(e, "RANK", rank);
    put(e, "LOCAL_RANK", "0");
    put_int(e, "SLURM_PROCID", rank);
    put(e, "SLURM_LOCALID", "0");
}

/* What starts a program on all nodes of a gang: mpirun finds them, and reaches them without sshd. */
static void put_launcher(struct env *e, const struct attempt *a, const char *lines, int64_t rank, int64_t nodes, const char *master)
{
    put(e, "ARCUS_HOSTFILE", HOSTFILE_PATH);
    put(e, "ARCUS_LAUNCH", LAUNCH_PATH "/arcus-launch");
    put(e, "OMPI_MCA_orte_default_hostfile", HOSTFILE_PATH);
    put(e, "OMPI_MCA_plm_rsh_agent", LAUNCH_PATH "/arcus-launch");
    put(e, "OMPI_ALLOW_RUN_AS_ROOT", "1"); /* root of a container, that is */
    put(e, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    put(e, "DSTACK_MPI_HOSTFILE", HOSTFILE_PATH);
    put(e, "DSTACK_NODES_IPS", lines);
    put(e, "DSTACK_MASTER_NODE_IP", master);
    put_int(e, "DSTACK_NODE_RANK", rank);
    put_int(e, "DSTACK_NODES_NUM", nodes);
    put_int(e, "DSTACK_GPUS_PER_NODE", a->gpu_count);
    put_int(e, "DSTACK_GPUS_NUM", nodes * a->gpu_count);
}

static const char *hostfile_of(struct call *c, const struct attempt *a)
{
    AUTO(str_done) struct str s = { 0 };
    const char *at = job_gang(a->task->job) ? addresses_of(c->mem, a->task->job, ",") : NULL;
    for (size_t n; at && (n = strcspn(at, ",")); at += n + (at[n] == ','))
        str_printf(&s, "%.*s slots=%d\n", (int)n, at, MAX(a->gpu_count, 1));
    return arena_text(c->mem, s.at);
}

/* The names that tasks of this field expect. */
static struct pairs env_of(struct call *c, const struct attempt *a)
{
    const struct task *t = a->task;
    const struct job *j = t->job;
    struct env e = { .mem = c->mem, .room = 64 };
    int64_t rank = job_gang(j) ? t->index : 0, nodes = job_gang(j) ? j->count : 1;
    const char *names = job_gang(j) ? node_names(c->mem, t->job) : a->node->name;
    e.at = ARENA_ARRAY(c->mem, struct pair, e.room);
    const char *id = id_of(c, PREFIX_JOB, j->id), *devices = device_list(c->mem, a, false);
    const char *addresses = job_gang(j) ? addresses_of(c->mem, t->job, ",") : "127.0.0.1";
    const char *lines = job_gang(j) ? addresses_of(c->mem, t->job, "\n") : "127.0.0.1";
    const char *master = !job_gang(j) ? "127.0.0.1" : addresses ? arena_bytes(c->mem, addresses, strcspn(addresses, ",")) : first_host(j);
    put(&e, "ARCUS_JOB_ID", id);
    put(&e, "ARCUS_JOB_NAME", j->name);
    put(&e, "ARCUS_TASK_ID", arena_printf(c->mem, "%s.%lld", id, (long long)t->index));
    put(&e, "ARCUS_ATTEMPT_ID", id_of(c, PREFIX_ATTEMPT, a->id));
    put(&e, "ARCUS_PROJECT", j->project->name);
    put(&e, "ARCUS_NODE", a->node->name);
    put(&e, "ARCUS_NODES", names);
    put_int(&e, "ARCUS_NODE_RANK", rank);
    put_int(&e, "ARCUS_NUM_NODES", nodes);
    put_int(&e, "ARCUS_ARRAY_INDEX", job_gang(j) ? 0 : t->index);
    put_int(&e, "ARCUS_ARRAY_COUNT", job_gang(j) ? 1 : j->count);
    put_int(&e, "ARCUS_TRY", t->tries);
    put(&e, "CUDA_VISIBLE_DEVICES", own_numbers(c->mem, a));
    put(&e, "NVIDIA_VISIBLE_DEVICES", a->gpu_count ? device_list(c->mem, a, true) : "void");
    put(&e, "MASTER_ADDR", master);
    put(&e, "MASTER_PORT", "29500");
    put_int(&e, "NODE_RANK", rank);
    put_int(&e, "NUM_NODES", nodes);
    put_int(&e, "NPROC_PER_NODE", MAX(a->gpu_count, 1));
    put_int(&e, "SKYPILOT_NODE_RANK", rank);
    put_int(&e, "SKYPILOT_NUM_NODES", nodes);
    if (addresses) { /* a gang without a network between its nodes has none to tell */
        put(&e, "ARCUS_NODE_IPS", addresses);
        put(&e, "SKYPILOT_NODE_IPS", lines);
    }
    if (job_gang(j))
        put_ranks(&e, rank, nodes, MAX(a->gpu_count, 1));
    if (job_gang(j) && addresses)
        put_launcher(&e, a, lines, rank, nodes, master);
    put(&e, "SLURM_LAUNCH_NODE_IPADDR", master);
    put_int(&e, "SKYPILOT_NUM_GPUS_PER_NODE", a->gpu_count);
    put(&e, "SKYPILOT_TASK_ID", id);
    put(&e, "SLURM_JOB_ID", id);
    put(&e, "SLURM_JOB_NAME", j->name);
    put(&e, "SLURM_JOB_NODELIST", names);
    put_int(&e, "SLURM_JOB_NUM_NODES", nodes);
    put_int(&e, "SLURM_NNODES", nodes);
    put_int(&e, "SLURM_NODEID", rank);
    put(&e, "SLURM_CLUSTER_NAME", "arcus");
    put_int(&e, "SLURM_CPUS_PER_TASK", MAX(a->cpu_milli / 1000, 1));
    put_int(&e, "SLURM_MEM_PER_NODE", a->mem_mib);
    put_int(&e, "SLURM_GPUS_ON_NODE", a->gpu_count);
    put(&e, "SLURM_JOB_GPUS", devices);
    put_int(&e, "SLURM_RESTART_COUNT", t->tries - 1);
    if (!job_gang(j) && (j->count > 1 || text_given(j->spec.array))) {
        put(&e, "SLURM_ARRAY_JOB_ID", id);
        put_int(&e, "SLURM_ARRAY_TASK_ID", t->index);
    }
    for (size_t i = 0; i < j->spec.env.count; i++)
        put_own(&e, &j->spec.env.at[i]);
    return (struct pairs){ e.at, e.count };
}

static struct objects secrets_of(struct call *c, const struct job *j)
{
    struct order_secret *list = ARENA_ARRAY(c->mem, struct order_secret, j->spec.secrets.count);
    size_t n = 0;
    for (size_t i = 0; i < j->spec.secrets.count; i++) {
        struct secret *s = state_secret(c->s, j->project->id, j->spec.secrets.at[i]);
        struct slice sealed, plain;
        const char *context
            = arena_printf(c->mem, "%lld/%s", (long long)j->project->id, j->spec.secrets.at[i]);
        if (s && base64_parse(SLICE(s->sealed), c->mem, &sealed)
            && unseal(control_keys(c->control)->seal, context, sealed, c->mem, &plain))
            list[n++] = (struct order_secret){ s->name, arena_bytes(c->mem, plain.at, plain.len) };
    }
    return (struct objects){ list, n };
}

static struct objects mounts_of(struct call *c, const struct job *j)
{
    struct order_mount *list = ARENA_ARRAY(c->mem, struct order_mount, j->spec.volumes.count);
    size_t n = 0;
    for (size_t i = 0; i < j->spec.volumes.count; i++) {
        struct job_mount m;
        struct err ignored;
        struct volume *v = job_mount_parse(j->spec.volumes.at[i], c->mem, &m, &ignored)
                               ? state_volume(c->s, j->project->id, m.volume)
                               : NULL;
        if (v)
            list[n++] = (struct order_mount){
                .volume = v->id, .name = v->name, .path = m.path, .read_only = m.read_only
            };
    }
    return (struct objects){ list, n };
}

static void order_of(struct call *c, struct attempt *a, struct order *o)
{
    const struct job *j = a->task->job;
    const struct image *image = state_image(c->s, j->project->id, j->spec.image);
    *o = (struct order){ .attempt = a->id,
                         .job = j->id,
                         .project = j->project->id,
                         .task = a->task->index,
                         .count = j->count,
                         .try_number = a->task->tries,
                         .stop = a->stop,
                         .stop_as = (int)a->stop_as,
                         .name = j->name,
                         .image = j->spec.image,
                         .image_blob = image ? image->digest : NULL,
                         .cpu_milli = a->cpu_milli,
                         .mem_mib = a->mem_mib,
                         .shm_mib = j->spec.shm_mib,
                         .disk_mib = j->spec.disk_mib,
                         .disk_mibs = j->spec.disk_mibs,
                         .log_mib = j->spec.log_mib,
                         .workdir = j->spec.workdir,
                         .user = j->spec.user,
                         .max_duration_s = j->spec.max_duration_s,
                         .grace_s = a->grace_s,
                         .run_for_s = a->run_for_s };
    o->watch = autostop_watches(a);
    o->hold_n = a->hold_n;
    o->hold_mib = a->hold == STEP_SUSPENDING ? a->parked_mib : 0;
    o->hold = a->hold == STEP_SUSPENDING || hold_is_away((enum hold_step)a->hold);
    o->gpus = (struct objects){ a->gpus, (size_t)a->gpu_count };
    if (a->address) { /* where it may go can change while it runs */
        o->net = j->project->net;
        o->address = ipv4_text(a->address, arena_take(c->mem, IPV4_TEXT, 1));
        o->egress = j->project->egress;
        o->mbit = j->project->mbit;
    }
    if (a->state != JOB_PLACED || a->stop)
        return; /* nobody begins it any more, so the rest is nobody's business */
    o->argv = job_argv(&j->spec, c->mem);
    o->env = env_of(c, a);
    o->host_network = j->spec.network == NETWORK_HOST;
    o->hostfile = hostfile_of(c, a);
    o->mounts = mounts_of(c, j);
    o->disk = j->disk && j->disk->node == a->node->id ? j->disk->id : 0;
    o->disk_used = o->disk && disk_is_used(j);
    o->secrets = secrets_of(c, j);
}

const char *desired_json(struct call *c, struct node *n, bool full, int64_t beat)
{
    const struct map *which = full ? n->attempts : n->changed;
    struct order *orders = ARENA_ARRAY(c->mem, struct order, map_count(which));
    struct desired d = { .kind = "desired",
                         .generation = ++n->generation,
                         .full = full,
                         .kept = n->kept,
                         .now_ms = c->now_ms,
                         .look_ms = live_look_ms(c, n),
                         .rotate = node_key_is_old(n, c->now_ms),
                         .beat = beat };
    struct attempt *a;
    size_t count = 0;
    for (size_t i = 0; (a = map_next(which, &i));)
        order_of(c, a, &orders[count++]);
    d.orders = (struct objects){ orders, count };
    d.nets = mesh_of(c, n, full);
    const char **gone = ARENA_ARRAY(c->mem, const char *, n->gone_count);
    for (size_t i = 0; i < n->gone_count; i++)
        gone[i] = id_text(arena_take(c->mem, ID_TEXT, 1), PREFIX_ATTEMPT, n->gone[i]);
    d.gone = (struct texts){ gone, n->gone_count };
    d.volumes_gone.at = ARENA_ARRAY(c->mem, const char *, map_count(n->goners));
    const char *volume;
    for (size_t i = 0; (volume = map_next(n->goners, &i));)
        d.volumes_gone.at[d.volumes_gone.count++] = volume;
    int64_t version;
    struct texts servers = { 0 };
    servers.count = lease_servers(c->control, c->mem, (const char ***)&servers.at, &version);
    if (full || n->servers_told != version)
        d.servers = servers;
    n->servers_told = version;
    n->tell = false;
    map_free(n->changed);
    n->changed = map_new();
    n->gone_count = 0;
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    bind_write(&o, &desired_fields, &d);
    return arena_text(c->mem, text.at);
}
