/* house.c - what the operator allows on a node: taints, the project it belongs to, whose shares may be together, MIG. How that is
 * changed, told to the planner, and asked again at the door when a task is placed. Nothing overrides it. */
#include "control/call.h"
#include <stdio.h>

/* --- changing it */

/* One of the list: the same key is taken over; with a - behind it, it goes. */
static bool taint_change(const char *text, const char **list, size_t *count, struct arena *mem, struct err *err)
{
    size_t len = strlen(text), key, kept = 0;
    bool gone = len && text[len - 1] == '-';
    char taint[TAINT_TEXT];
    if (!taint_parse(gone ? arena_bytes(mem, text, len - 1) : text, "taint", taint, err))
        return false;
    key = strcspn(taint, "=");
    for (size_t i = 0; i < *count; i++)
        if (strcspn(list[i], "=") != key || memcmp(list[i], taint, key) != 0)
            list[kept++] = list[i];
    if (gone && kept == *count)
        return err_field(err, "taint", "taint: the node has none of key '%.*s'", (int)key, taint);
    if (!gone && kept == TAINTS_MOST)
        return err_field(err, "taint", "taint: a node has at most %d", TAINTS_MOST);
    if (!gone)
        list[kept++] = arena_text(mem, taint);
    *count = kept;
    return true;
}

static bool exclusive_change(struct call *c, const char *ref, int64_t *project, struct err *err)
{
    struct project *p = text_given(ref) ? state_project(c->s, ref) : NULL;
    if (text_given(ref) && !p)
        return err_field(err, "exclusive", "there is no project '%s'", ref);
    return *project = p ? p->id : 0, true;
}

bool house_change(struct call *c, const struct node_ask *ask, struct node_settings *s, struct err *err)
{
    const char **list = ARENA_ARRAY(c->mem, const char *, TAINTS_MOST + 1);
    size_t count = MIN(s->taints.count, (size_t)TAINTS_MOST);
    for (size_t i = 0; i < count; i++)
        list[i] = s->taints.at[i];
    for (size_t i = 0; i < ask->taint.count; i++)
        if (!taint_change(ask->taint.at[i], list, &count, c->mem, err))
            return false;
    s->taints = (struct texts){ list, count };
    if (was_given(c, "exclusive") && !exclusive_change(c, ask->exclusive, &s->exclusive, err))
        return false;
    s->share = was_given(c, "share") ? ask->settings.share : s->share;
    s->equal_shares = was_given(c, "equal_shares") ? ask->settings.equal_shares : s->equal_shares;
    s->mig = was_given(c, "mig") ? ask->settings.mig : s->mig;
    return true;
}

const char *house_taints(struct arena *mem, const struct node_settings *s)
{
    AUTO(str_done) struct str out = { 0 };
    for (size_t i = 0; i < s->taints.count; i++)
        str_printf(&out, "%s%s:NoSchedule", i ? "," : "", s->taints.at[i]);
    return out.len ? arena_text(mem, out.at) : "";
}

/* --- the planner's picture of it */

/* A node counts as its region, its zone, and what its label `residency` says. */
void house_settle(struct state *s, struct node *n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct topology where = node_where(n);
    const char *words[3] = { where.at[PLACE_REGION], where.at[PLACE_ZONE], NULL };
    for (size_t i = 0; i < n->info.labels.count; i++)
        if (text_is(n->info.labels.at[i].key, "residency"))
            words[2] = n->info.labels.at[i].value;
    const char *given[3];
    struct texts places = { given, 0 };
    for (size_t i = 0; i < COUNT(words); i++)
        if (text_given(words[i]))
            given[places.count++] = words[i];
    const char *house = house_text(&n->settings.taints, n->settings.exclusive, &places, mem);
    const char *known = house ? map_get_text(s->houses, house) : NULL;
    if (house && !known) {
        known = arena_text(s->mem, house); /* few differ, and news may still point to the one before */
        map_put_text(s->houses, known, (void *)known);
    }
    n->house = known;
}

void house_of_gpu(const struct node *n, const struct gpu_info *g, struct sched_gpu *out)
{
    struct err ignored;
    out->whole_only = g->ecc_off || n->settings.share == SHARE_NONE;
    out->mixes = n->settings.share == SHARE_ANY;
    out->equal = n->settings.equal_shares || text_is(g->vendor, "nvidia"); /* MPS divides it so; a simulated one has no vendor */
    if (!mig_layout_parse(g->mig ? g->mig : "", g->model, g->mem_mib, n->settings.mig == MIG_DYNAMIC, &out->mig, &ignored))
        out->mig = (struct mig_layout){ .on = true }; /* in a mode that we do not understand: nothing goes there */
}

/* --- at the door */

struct guest house_guest(const struct job *j)
{
    return (struct guest){ j->tolerates, j->project->residency, j->project->id };
}

uint16_t house_slots(const struct order_gpu *g)
{
    return g->size ? mig_slots((int)g->slot, (int)g->size, g->mig && strstr(g->mig, "+me")) : 0;
}

static bool slice_allowed(const struct gpu_info *info, const struct sched_gpu *rules, const struct job *j, const struct order_gpu *gpu)
{
    const struct mig_part *part = mig_part_of(info->model, info->mem_mib);
    int p = mig_find(part, j->shape.gpu.mig);
    return p >= 0 && gpu->slot >= 0 && gpu->slot < MIG_SLOTS && (rules->mig.starts[p] >> gpu->slot & 1) && gpu->size == part->profiles[p].size
           && gpu->mem_mib == mig_mib(part, p, info->mem_mib);
}

/* Who is on that GPU already: none for a whole one, of which policy for a share, on other slots for a slice. */
static bool company_allowed(const struct node *n, const struct job *j, const struct sched_gpu *rules, const struct order_gpu *gpu)
{
    bool slice = j->shape.gpu.mig[0];
    uint16_t slots = house_slots(gpu);
    struct attempt *a;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        for (int k = 0; k < a->gpu_count; k++) {
            const struct order_gpu *other = &a->gpus[k];
            if (other->index != gpu->index)
                continue;
            if (slice ? !other->size || (house_slots(other) & slots)
                      : (!rules->mixes && a->task->job->project != j->project) || (rules->equal && other->milli != gpu->milli))
                return false;
        }
    return true;
}

bool house_allows_gpu(const struct node *n, const struct job *j, const struct gpu_info *info, const struct order_gpu *gpu)
{
    struct sched_gpu rules = { 0 };
    bool slice = j->shape.gpu.mig[0], share = !slice && j->shape.gpu.milli % 1000;
    house_of_gpu(n, info, &rules);
    if (rules.mig.on != slice || (slice && !slice_allowed(info, &rules, j, gpu)))
        return false;
    if (share && (rules.whole_only || (rules.equal && 1000 % gpu->milli)))
        return false;
    return company_allowed(n, j, &rules, gpu);
}

bool house_allows(const struct node *n, const struct job *j)
{
    struct guest guest = house_guest(j);
    return house_admits(n->house, &guest) == HOUSE_YES;
}
