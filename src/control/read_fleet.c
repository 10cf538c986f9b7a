/* read_fleet.c - looking at nodes, GPUs and flavors, from what is committed: inventories and the
 * leases of live attempts. */
#include "control/read_fleet.h"
#include <stdio.h>

static uint16_t slots_of(const struct json *gpu)
{
    const char *mig = json_text(gpu, "mig");
    int64_t slot = json_int(gpu, "slot", 0), size = json_int(gpu, "size", 0);
    return mig && slot >= 0 && size > 0 && slot + size <= MIG_SLOTS ? mig_slots((int)slot, (int)size, strstr(mig, "+me")) : 0;
}

bool sum_leases(struct call *c, int64_t node, struct map *sums, struct err *err)
{
    struct rows r;
    if (!ROWS(c, LEASE_LIST, &r, err, V_INT(node)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        struct json *doc;
        struct err ignored;
        struct held *h = map_get(sums, row_int(&r, i, 0));
        if (!h)
            map_put(sums, row_int(&r, i, 0), h = ARENA_NEW(c->mem, struct held));
        if (!json_parse(SLICE(row_text(&r, i, 1)), c->mem, &doc, &ignored))
            continue;
        h->tasks++;
        h->cpu += json_int(doc, "cpu", 0);
        h->mem += json_int(doc, "mem", 0);
        struct json *gpus = json_get(doc, "gpus");
        for (struct json *g = gpus ? gpus->first : NULL; g; g = g->next) {
            int64_t at = json_int(g, "index", 0);
            if (at < 0 || at >= SCHED_GPUS)
                continue;
            h->gpu_milli[at] += json_int(g, "milli", 0);
            h->gpu_mib[at] += json_int(g, "mem_mib", 0);
            h->gpu_tasks[at]++;
            h->gpu_shared[at] |= json_int(g, "milli", 0) < 1000;
            h->gpu_slots[at] |= slots_of(g);
        }
    }
    return true;
}

bool info_of(struct call *c, const char *text, struct node_info *info)
{
    struct json *doc;
    struct err ignored;
    *info = (struct node_info){ 0 };
    return json_parse(SLICE(text), c->mem, &doc, &ignored) && doc->first
           && bind_read_ours(doc, &node_info_fields, c->mem, info, NULL, &ignored);
}

struct node_settings settings_of(struct call *c, const char *text)
{
    struct json *doc;
    struct err ignored;
    struct node_settings s = { 0 };
    if (!json_parse(SLICE(text), c->mem, &doc, &ignored) || !bind_read_ours(doc, &node_settings_fields, c->mem, &s, NULL, &ignored))
        s = (struct node_settings){ 0 };
    return s;
}

static const char *project_name(struct call *c, int64_t id)
{
    struct rows r;
    struct err ignored;
    return id && ROWS(c, PROJECT_NAME, &r, &ignored, V_INT(id)) && r.count ? row_text(&r, 0, 0) : "";
}

static void node_view(struct call *c, const struct rows *r, size_t i, struct map *sums,
                      const struct rules *rules, struct node_view *v)
{
    static const struct held nothing;
    const struct held *h = map_get(sums, row_int(r, i, 0));
    struct node_info info;
    h = h ? h : &nothing;
    *v = (struct node_view){ .id = row_int(r, i, 0),
                             .name = row_text(r, i, 1),
                             .state = node_state_word((enum node_state)row_int(r, i, 2), (enum node_drain)row_int(r, i, 6)),
                             .gpu_model = "",
                             .info = row_text(r, i, 3),
                             .settings = row_text(r, i, 9),
                             .joined_ms = row_int(r, i, 4),
                             .version = row_int(r, i, 5),
                             .drain_until_ms = row_int(r, i, 7),
                             .note = node_note(rules, (enum node_state)row_int(r, i, 2), (int)row_int(r, i, 8), (enum node_drain)row_int(r, i, 6)),
                             .tasks = h->tasks };
    bool told = info_of(c, v->info, &info);
    struct node_settings settings = settings_of(c, v->settings);
    struct topology where = where_over(&settings.where, &info.where);
    v->region = where.at[PLACE_REGION] ? where.at[PLACE_REGION] : "";
    v->zone = where.at[PLACE_ZONE] ? where.at[PLACE_ZONE] : "";
    v->topology = where_text(&where, arena_take(c->mem, PLACE_ADDRESS, 1));
    v->taints = house_taints(c->mem, &settings);
    v->exclusive = project_name(c, settings.exclusive);
    if (!told)
        return;
    v->cpu_milli = info.cpu_milli, v->cpu_free_milli = info.cpu_milli - h->cpu;
    v->mem_mib = info.mem_mib, v->mem_free_mib = info.mem_mib - h->mem;
    const struct gpu_info *gpus = info.gpus.at;
    for (size_t g = 0; g < info.gpus.count; g++) {
        v->gpus++;
        v->gpu_model = gpus[g].model;
        v->gpu_mib = gpus[g].mem_mib;
        v->simulated |= gpus[g].simulated;
        if (gpus[g].index >= 0 && gpus[g].index < SCHED_GPUS)
            v->gpus_free_milli += 1000 - h->gpu_milli[gpus[g].index];
    }
}

bool node_list(struct call *c, const void *body, struct err *err)
{
    const struct page_ask *ask = body;
    int64_t after = 0;
    struct rows r;
    AUTO(map_free) struct map *sums = map_new();
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_NODE, &after))
        return err_field(err, "page", "this is not the `next` of a page before");
    struct rules rules;
    if (!sum_leases(c, 0, sums, err) || !rules_read(c, &rules, err)
        || !ROWS(c, NODE_LIST, &r, err, V_INT(after), V_INT(ask->limit + 1)))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        struct node_view v;
        node_view(c, &r, i, sums, &rules, &v);
        list_add(&l, &node_brief_fields, &v);
    }
    list_close(&l, r.count > n ? id_of(c, PREFIX_NODE, row_int(&r, n - 1, 0)) : NULL);
    return true;
}

bool node_get(struct call *c, const void *body, struct err *err)
{
    const struct node_ask *ask = body;
    int64_t id = 0;
    struct rows r;
    struct node_view v;
    AUTO(map_free) struct map *sums = map_new();
    (void)id_parse(ask->node, PREFIX_NODE, &id);
    if (!ROWS(c, NODE_FIND, &r, err, V_TEXT(ask->node), V_INT(id)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    struct rules rules;
    if (!sum_leases(c, row_int(&r, 0, 0), sums, err) || !rules_read(c, &rules, err))
        return false;
    node_view(c, &r, 0, sums, &rules, &v);
    c->r->version = v.version;
    reply_view(c, &node_view_fields, &v);
    return true;
}

/* Everybody may see what there is and what is free; how many share it is the operators'
 * business. */
bool gpu_list(struct call *c, const void *body, struct err *err)
{
    (void)body;
    struct rows r;
    static const struct held nothing;
    bool operator= c->who->roles & PLATFORM_ROLES;
    AUTO(map_free) struct map *sums = map_new();
    if (!sum_leases(c, 0, sums, err) || !ROWS(c, NODE_LIST, &r, err, V_INT(0), V_INT(NODES_MOST)))
        return false;
    struct list l = list_open(c);
    for (size_t i = 0; i < r.count; i++) {
        struct node_info info;
        const struct held *h = map_get(sums, row_int(&r, i, 0));
        enum node_state state = (enum node_state)row_int(&r, i, 2);
        h = h ? h : &nothing;
        if (!info_of(c, row_text(&r, i, 3), &info))
            continue;
        const struct gpu_info *gpus = info.gpus.at;
        struct node_settings settings = settings_of(c, row_text(&r, i, 9));
        for (size_t g = 0; g < info.gpus.count && g < SCHED_GPUS; g++) {
            int64_t at = MIN(MAX(gpus[g].index, 0), SCHED_GPUS - 1);
            struct gpu_view v = { .id = gpus[g].uuid,
                                  .name = arena_printf(c->mem, "%s/%lld", row_text(&r, i, 1),
                                                       (long long)gpus[g].index),
                                  .node = row_text(&r, i, 1),
                                  .model = gpus[g].model,
                                  .index = gpus[g].index,
                                  .mem_mib = gpus[g].mem_mib,
                                  .free_milli = 1000 - h->gpu_milli[at],
                                  .free_mib = gpus[g].mem_mib - h->gpu_mib[at],
                                  .tasks = h->gpu_tasks[at],
                                  .simulated = gpus[g].simulated,
                                  .health = gpus[g].health,
                                  .note = gpus[g].note,
                                  .wall = text_given(gpus[g].mig) ? "mig" : h->gpu_shared[at] ? "process" : "device",
                                  .mig = gpus[g].mig,
                                  .vendor = gpus[g].vendor,
                                  .driver = gpus[g].driver,
                                  .pci = gpus[g].pci,
                                  .numa = gpus[g].numa,
                                  .nvlinks = gpus[g].nvlinks,
                                  .power_cap_mw = gpus[g].power_cap_mw };
            struct mig_now mig;
            if (mig_now(&gpus[g], &settings, h->gpu_slots[at], &mig)) {
                v.mig_free = mig_now_text(&mig, c->mem);
                v.free_milli = mig_now_free_milli(&mig);
                v.free_mib = MAX(v.free_mib, 0);
            }
            v.state = !gpus[g].healthy      ? "unhealthy"
                      : state != NODE_READY ? node_state_names.at[state]
                      : h->gpu_milli[at]    ? "in use"
                                            : "free";
            if (!operator)
                v.tasks = 0;
            list_add(&l, &gpu_view_fields, &v);
        }
    }
    list_close(&l, NULL);
    return true;
}

/* Rows of servers that went without a word stay for a minute; the writer drops them. */
bool server_list(struct call *c, const void *body, struct err *err)
{
    struct lease lease;
    struct rows r;
    (void)body;
    if (!store_lease_look(c->conn, &lease, err)
        || !rows_of(c, ST_SERVER_LIST, NULL, 0, &r, err))
        return false;
    struct list l = list_open(c);
    for (size_t i = 0; i < r.count; i++) {
        int64_t id = row_int(&r, i, 0);
        struct server_view v = { .id = id_of(c, PREFIX_SERVER, id),
                                 .name = row_text(&r, i, 1),
                                 .address = row_text(&r, i, 1),
                                 .version = row_text(&r, i, 2),
                                 .state = id == lease.server ? "writer" : "standby",
                                 .seen_ms = control_settings(c->control)->shared
                                                ? row_int(&r, i, 3) : c->now_ms };
        list_add(&l, &server_view_fields, &v);
    }
    list_close(&l, NULL);
    return true;
}
