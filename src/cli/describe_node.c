/* describe_node.c - a node as a person reads it: what it is, its processors and NUMA nodes, each GPU with its health and what it does now,
 * how near GPUs and network ports are to each other. As data it is the same in one piece. */
#include "cli/cli.h"
#include <stdio.h>

enum { AGAIN = 3, AGAIN_MS = 1000 };

/* clang-format off */
static const struct column gpu_columns[] = {
    { "GPU", "index", .right = true }, { "MODEL", "gpus:model" }, { "MEMORY", "mib:mem_mib", .right = true }, { "HEALTH", "word" }, { "NOTE", "some:note" }, { "TEST", "some:test" }, { "SCRUB", "some:scrub" }, { "ECC", "ecc" },
    { "MIG", "some:mig" }, { "MODE", "some:mode" }, { "POWER CAP", "watts:power_cap_mw", .right = true }, { "NUMA", "figure:numa", .right = true }, { "PCI", "some:pci" },
    { "DEVICE", "some:device" }, { "DRIVER", "some:driver" }, { "CUDA", "some:cuda" }, { "ID", "uuid" },
};
static const struct column live_columns[] = {
    { "GPU", "index", .right = true }, { "STATE", "state:state" }, { "UTIL %", "figure:utilization", .right = true }, { "MEM BW %", "figure:memory_utilization", .right = true },
    { "MEMORY USED", "some_mib:memory_used_mib", .right = true }, { "POWER", "watts:power_mw", .right = true }, { "ENERGY kJ", "kilo:energy_mj", .right = true },
    { "TEMP C", "figure:temperature_c", .right = true }, { "MEM TEMP C", "figure:memory_temperature_c", .right = true }, { "CLOCK MHz", "figure:clock_mhz", .right = true },
    { "MEM MHz", "figure:memory_clock_mhz", .right = true }, { "THROTTLE", "some:throttle" }, { "ECC ERRORS", "errors" }, { "REMAPPED ROWS", "figure:rows", .right = true },
    { "XID", "figure:xid", .right = true }, { "TASKS", "held", .right = true }, { "AT", "age:at" },
};
static const struct column nic_columns[] = {
    { "NETWORK", "name" }, { "KIND", "kind" }, { "STATE", "state:state" }, { "GBIT/S", "gbits", .right = true }, { "NUMA", "figure:numa", .right = true }, { "PCI", "some:pci" },
};
static const struct column numa_columns[] = {
    { "NUMA", "node", .right = true }, { "CPUS", "cpus" }, { "MEMORY", "mib:mem_mib", .right = true },
};
/* clang-format on */

static void put(struct cli *c, struct json *thing, const char *name, const char *text)
{
    doc_set(c, thing, name, text);
}

static bool flag(const struct json *thing, const char *name)
{
    const struct json *m = json_get(thing, name);
    return m && m->flag;
}

static void section(struct cli *c, const char *title, const struct column *columns, size_t count,
                    const struct json *items)
{
    AUTO(str_done) struct str out = { 0 };
    if (!items || !items->first)
        return;
    str_printf(&out, "\n%s:\n", title);
    table_text(&out, columns, count, items, true, c->colour, os_wall_ms(c->os));
    out_write(out.at, out.len);
}

static void gpu_words(struct cli *c, struct json *gpus)
{
    for (struct json *g = gpus ? gpus->first : NULL; g; g = g->next) {
        const char *health = json_text(g, "health");
        put(c, g, "word", health ? health : "good");
        put(c, g, "ecc", flag(g, "ecc_off") ? "off" : "on");
    }
}

static void live_words(struct cli *c, struct json *live)
{
    for (struct json *g = live ? live->first : NULL; g; g = g->next) {
        int64_t corrected = json_int(g, "ecc_corrected", -1),
                not = json_int(g, "ecc_uncorrected", -1), rows = json_int(g, "rows_corrected", -1);
        const struct json *tasks = json_get(g, "tasks");
        size_t held = 0;
        for (const struct json *t = tasks ? tasks->first : NULL; t; t = t->next)
            held += json_text(t, "job") != NULL;
        put(c, g, "held", arena_printf(c->mem, "%zu", held));
        put(c, g, "errors",
            corrected < 0 && not < 0
                ? ""
                : arena_printf(c->mem, "%lld corrected, %lld not", (long long)MAX(corrected, 0),
                               (long long)MAX(not, 0)));
        put(c, g, "rows",
            rows < 0
                ? ""
                : arena_printf(c->mem, "%lld",
                               (long long)(rows + MAX(json_int(g, "rows_uncorrected", 0), 0))));
    }
}

static void nic_words(struct cli *c, struct json *nics)
{
    for (struct json *n = nics ? nics->first : NULL; n; n = n->next) {
        int64_t mbps = json_int(n, "mbps", 0);
        put(c, n, "gbits",
            !mbps         ? ""
            : mbps % 1000 ? arena_printf(c->mem, "%lld.%lld", (long long)(mbps / 1000),
                                         (long long)(mbps % 1000 / 100))
                          : arena_printf(c->mem, "%lld", (long long)(mbps / 1000)));
    }
}

/* --- who is near whom */

static const char *path_between(struct cli *c, const struct json *gpu, int64_t other)
{
    const struct json *peers = json_get(gpu, "peers");
    for (const struct json *p = peers ? peers->first : NULL; p; p = p->next)
        if (json_int(p, "index", -1) == other) {
            int64_t links = json_int(p, "links", 0);
            const char *path = json_text(p, "path");
            return links  ? arena_printf(c->mem, "nvlink x%lld", (long long)links)
                   : path ? path
                          : "";
        }
    return json_int(gpu, "index", -1) == other ? "self" : "";
}

static void print_near(struct cli *c, const struct json *gpus, const struct json *nics)
{
    AUTO(str_done) struct str out = { 0 };
    size_t gpu_count = 0, nic_count = 0;
    char key[24];
    for (const struct json *g = gpus ? gpus->first : NULL; g; g = g->next)
        gpu_count++;
    for (const struct json *n = nics ? nics->first : NULL; n; n = n->next)
        nic_count++;
    if (!gpu_count || gpu_count + nic_count < 2)
        return;
    str_printf(&out,
               "\nhow near (nvlink; one PCIe switch, one host bridge, one NUMA node, or across the "
               "system):\n%-16s",
               "");
    for (const struct json *g = gpus->first; g; g = g->next)
        str_printf(&out, "  GPU %-8lld", (long long)json_int(g, "index", 0));
    str_char(&out, '\n');
    for (const struct json *r = gpus->first; r; r = r->next) {
        str_printf(&out, "GPU %-12lld", (long long)json_int(r, "index", 0));
        for (const struct json *g = gpus->first; g; g = g->next)
            str_printf(&out, "  %-12.12s", path_between(c, r, json_int(g, "index", 0)));
        str_char(&out, '\n');
    }
    for (const struct json *n = nics ? nics->first : NULL; n; n = n->next) {
        AUTO(str_done) struct str name = { 0 };
        clean_text(&name, json_text(n, "name") ? json_text(n, "name") : "");
        str_printf(&out, "%-16.16s", name.at ? name.at : "");
        for (const struct json *g = gpus->first; g; g = g->next) {
            snprintf(key, sizeof key, "%lld", (long long)json_int(g, "index", 0));
            const char *path = json_text(json_get(n, "near"), key);
            str_printf(&out, "  %-12.12s", path ? path : "");
        }
        str_char(&out, '\n');
    }
    out_write(out.at, out.len);
}

/* --- the node */

/* Agents send figures more often once somebody looks; the first may be on their way. */
static bool waits_for_figures(const struct json *live)
{
    const struct json *items = json_get(live, "items");
    for (const struct json *g = items ? items->first : NULL; g; g = g->next)
        if (!json_text(g, "at") && !flag(g, "simulated")
            && (text_is(json_text(g, "state"), "free") || text_is(json_text(g, "state"), "in use")))
            return true;
    return false;
}

bool describe_node(struct cli *c, const char *name, struct json **thing)
{
    struct json *ask = json_new(c->mem, JSON_OBJECT), *node, *live;
    struct err
        ignored; /* the rest is worth showing, also where no server has figures at the moment */
    doc_set(c, ask, "node", name);
    if (!cli_call(c, VERB_NODE_GET, ask, &node, &c->err))
        return false;
    bool told = cli_call(c, VERB_GPU_LIVE, ask, &live, &ignored);
    for (int i = 0; told && i < AGAIN && waits_for_figures(live); i++) {
        cli_sleep(c, AGAIN_MS);
        told = cli_call(c, VERB_GPU_LIVE, ask, &live, &ignored);
    }
    if (told)
        json_add(node, "live", json_get(live, "items"));
    *thing = node;
    return true;
}

void print_node(struct cli *c, struct json *node)
{
    struct json *info = json_get(node, "info"), *live = json_get(node, "live");
    struct json *gpus = json_get(info, "gpus"), *nics = json_get(info, "nics"),
                *numas = json_get(info, "numas");
    bool known = info && info->type == JSON_OBJECT;
    doc_drop(node, "live");
    if (known) {
        doc_drop(info, "gpus");
        doc_drop(info, "nics");
        doc_drop(info, "numas");
    }
    print_described(c, for_people(c, node, &node_view_fields));
    gpu_words(c, gpus);
    live_words(c, live);
    nic_words(c, nics);
    section(c, "gpus", gpu_columns, COUNT(gpu_columns), gpus);
    section(c, "what they do", live_columns, COUNT(live_columns), live);
    section(c, "numa nodes", numa_columns, COUNT(numa_columns), numas);
    section(c, "network", nic_columns, COUNT(nic_columns), nics);
    print_near(c, gpus, nics);
}
