/* why_words.c - what the planner found out, in sentences: the same for `arcus describe` and `arcus plan`.
 *
 * Law: nothing is guessed. Each advice was tried by the planner, or follows from a limit, a dependency or a time that is known. Nodes are
 * named as `arcus gpus` names them to everybody; jobs are named only to their own project. */
#include "control/call.h"
#include "base/when.h"
#include "model/priority.h"

enum { ADVICE_MOST = 12, AFTER_SHOWN = 5 };

struct words { struct call *c; const struct question *q; const struct why *w; const struct job *j; struct why_view *v; };

static void advise(struct words *x, const char *text)
{
    struct texts *list = &x->v->advice;
    if (!list->at)
        list->at = ARENA_ARRAY(x->c->mem, const char *, ADVICE_MOST);
    if (list->count < ADVICE_MOST)
        list->at[list->count++] = text;
}
#define ADVISE(x, ...) advise(x, arena_printf((x)->c->mem, __VA_ARGS__))

static const char *node_name(struct words *x, int64_t id)
{
    const struct node *n = map_get(x->c->s->nodes, id);
    return n ? n->name : "a node";
}

/* --- amounts */

static const char *milli(struct call *c, int64_t n)
{
    char *text = arena_printf(c->mem, "%lld.%03lld", (long long)n / 1000, (long long)n % 1000);
    size_t len = strlen(text);
    while (text[len - 1] == '0')
        text[--len] = 0;
    if (text[len - 1] == '.')
        text[len - 1] = 0;
    return text;
}

static const char *mib(struct call *c, int64_t n)
{
    return n && n % 1024 == 0 ? arena_printf(c->mem, "%lldGB", (long long)n / 1024) : arena_printf(c->mem, "%lldMB", (long long)n);
}

static const char *gpus(struct call *c, int64_t n)
{
    return n < 1000 ? arena_printf(c->mem, "%s of a GPU", milli(c, n)) : arena_printf(c->mem, "%s GPU%s", milli(c, n), n == 1000 ? "" : "s");
}

/* --- what nodes lack */

static void lack(struct str *out, const char *text)
{
    str_printf(out, "%s%s", out->len ? "; " : "", text);
}

static void lacks_gpus(struct words *x, const struct why_near *n, enum filter f, struct str *out)
{
    struct call *c = x->c;
    int64_t asked = x->j->shape.gpu.milli;
    if (f == FILTER_GPUS_TAKEN && asked >= 1000)
        lack(out, arena_printf(c->mem, "%d of %d GPU%s free, %s asked for", n->gpus_free, n->gpus, n->gpus == 1 ? " is" : "s are", milli(c, asked)));
    else if (f == FILTER_GPUS_TAKEN)
        lack(out, arena_printf(c->mem, "at most %s of a GPU is left, %s asked for", milli(c, n->largest), milli(c, asked)));
    else if (f == FILTER_NEIGHBOURS)
        lack(out, "the GPUs with room are shared by others, or in other parts");
    else if (f == FILTER_HEALTH || f == FILTER_GPUS)
        lack(out, arena_printf(c->mem, "it has %d such GPU%s, %s asked for", n->gpus, n->gpus == 1 ? "" : "s", milli(c, asked)));
    else if (f == FILTER_MODEL)
        lack(out, "its GPUs are of another model");
    else
        lack(out, "its GPUs have another size of memory");
}

static void lacks_one(struct words *x, const struct why_near *n, enum filter f, struct str *out)
{
    struct call *c = x->c;
    switch (f) {
    case FILTER_GPUS: case FILTER_MODEL: case FILTER_GPU_MEMORY: case FILTER_HEALTH: case FILTER_GPUS_TAKEN: case FILTER_NEIGHBOURS:
        lacks_gpus(x, n, f, out);
        break;
    case FILTER_CPUS: case FILTER_CPUS_TAKEN:
        lack(out, arena_printf(c->mem, "%s CPUs are free, %s asked for", milli(c, MAX(n->cpu_free, 0)), milli(c, n->cpu_needs)));
        break;
    case FILTER_MEMORY: case FILTER_MEMORY_TAKEN:
        lack(out, arena_printf(c->mem, "%s of memory are free, %s asked for", mib(c, MAX(n->mem_free, 0)), mib(c, n->mem_needs)));
        break;
    case FILTER_AWAY: lack(out, "it is not connected"); break;
    case FILTER_CORDONED: lack(out, "it is cordoned"); break;
    case FILTER_DRAINING: lack(out, "it is being drained"); break;
    case FILTER_CLAIMED: lack(out, "its room is kept for a job before it, or for a reservation"); break;
    case FILTER_REGION: lack(out, "it is in another region"); break;
    case FILTER_ZONE: lack(out, "it is in another zone"); break;
    case FILTER_IMAGE: lack(out, "it does not allow image: host"); break;
    case FILTER_MIG: lack(out, "its GPUs are cut into other slices, or into none"); break;
    case FILTER_ECC: lack(out, "its GPUs have no error correction, and are not shared"); break;
    case FILTER_TAINT: lack(out, "it has a taint that the job does not tolerate"); break;
    case FILTER_EXCLUSIVE: lack(out, "it is for another project alone"); break;
    case FILTER_SHARED: lack(out, "not the project's alone, as network: host must have it"); break;
    case FILTER_RESIDENCY: lack(out, "the project must stay elsewhere"); break;
    default: lack(out, arena_printf(c->mem, "such nodes %s", filters[f].text)); break;
    }
}

static void tell_nodes(struct words *x)
{
    const struct why *w = x->w;
    struct refused_view *refused = ARENA_ARRAY(x->c->mem, struct refused_view, FILTER_COUNT);
    struct near_view *near = ARENA_ARRAY(x->c->mem, struct near_view, WHY_NEAR);
    x->v->nodes = w->nodes;
    x->v->fits = w->fits;
    x->v->refused.at = refused;
    x->v->nearest.at = near;
    for (int i = 0; i < FILTER_COUNT; i++)
        if (w->refused[i])
            refused[x->v->refused.count++] = (struct refused_view){ filters[i].name, w->refused[i], filters[i].text };
    for (int i = 0; i < w->near_count; i++) {
        AUTO(str_done) struct str out = { 0 };
        for (int f = 0; f < FILTER_COUNT; f++)
            if (w->near[i].refused & FILTER_BIT(f))
                lacks_one(x, &w->near[i], (enum filter)f, &out);
        near[x->v->nearest.count++] = (struct near_view){ node_name(x, w->near[i].node), arena_text(x->c->mem, out.at ? out.at : "") };
    }
}

/* --- what would help */

static const char *list_of(struct words *x)
{
    AUTO(str_done) struct str out = { 0 };
    for (int i = 0; i < x->w->model_count; i++)
        str_printf(&out, "%s%s", i ? ", " : "", x->w->models[i]);
    return arena_text(x->c->mem, out.at);
}

static void advise_less(struct words *x)
{
    const struct why *w = x->w;
    struct call *c = x->c;
    bool never = w->reason == REASON_NO_NODE;
    const char *then = never ? "could run it" : "would start it now";
    if (x->q->job->gang > 1 && !never)
        ADVISE(x, "wait until %lld nodes have room for it at once: %lld have", (long long)x->q->job->gang, (long long)w->fits);
    if (w->gang_most)
        ADVISE(x, "ask for at most %lld nodes: they would start now", (long long)w->gang_most);
    if (w->gpus.most)
        ADVISE(x, "ask for at most %s: %s %s", gpus(c, w->gpus.most), node_name(x, w->gpus.node), then);
    if (w->cpus.most)
        ADVISE(x, "ask for at most %s CPUs: %s %s", milli(c, w->cpus.most), node_name(x, w->cpus.node), then);
    if (w->memory.most)
        ADVISE(x, "ask for at most %s of memory: %s %s", mib(c, w->memory.most), node_name(x, w->memory.node), then);
    if (w->model_count)
        ADVISE(x, "take GPUs of another model: %s %s", list_of(x), then);
    if (w->without_host)
        ADVISE(x, "use another image than the host's: %lld node%s %s", (long long)w->without_host, w->without_host == 1 ? "" : "s", then);
    if (w->away)
        ADVISE(x, "let it run in any region and zone: %lld node%s %s", (long long)w->away, w->away == 1 ? "" : "s", then);
    if (w->elsewhere && text_given(x->j->spec.node))
        ADVISE(x, "do not ask for node %s: %lld other%s %s", x->j->spec.node, (long long)w->elsewhere, w->elsewhere == 1 ? "" : "s", then);
    else if (w->elsewhere)
        ADVISE(x, "only the node of its volumes counts; without them %lld other%s %s", (long long)w->elsewhere, w->elsewhere == 1 ? "" : "s", then);
    if (never)
        ADVISE(x, "add a node that has all of it (operators: arcus nodes token)");
}

static const char *limit_flag(int kind)
{
    return kind == LIMIT_PROJECT_GPUS || kind == LIMIT_GPUS ? "gpus"
           : kind == LIMIT_PROJECT_CPUS                     ? "cpus"
           : kind == LIMIT_PROJECT_MEMORY                   ? "memory-mib"
           : kind == LIMIT_TASKS                            ? "tasks"
           : kind == LIMIT_DAY                              ? "gpu-hours-day"
           : kind == LIMIT_WEEK                             ? "gpu-hours-week"
                                                            : "gpu-hours-month";
}

static void advise_raise(struct words *x, const char *amount)
{
    const struct wait *h = &x->w->held_by;
    struct call *c = x->c;
    const struct project *p = x->j->project;
    const struct person *u = map_get(c->s->persons, h->owner);
    const struct account *a = map_get(c->s->accounts, h->owner);
    if (h->limit >= LIMIT_KINDS)
        ADVISE(x, "have an operator raise the quota: arcus projects quota %s --%s %s", p->name, limit_flag(h->limit), amount);
    else
        ADVISE(x, "have an operator raise the limit: arcus quota set %s%s%s%s%s --%s %s", p->name, h->owner ? " --user " : "",
               u ? u->name : a ? a->name : "", h->model[0] ? " --model " : "", h->model, limit_flag(h->limit), amount);
}

static void advise_quota(struct words *x)
{
    const struct why *w = x->w;
    const struct wait *h = &w->held_by;
    struct call *c = x->c;
    bool whole = h->limit == LIMIT_TASKS || h->limit == LIMIT_PROJECT_MEMORY;
    if (h->needs < 0) {
        ADVISE(x, "submit it with a max_duration (-t 2h): hours are counted before it starts");
        return;
    }
    if (w->held < 0) {
        ADVISE(x, "wait: what tasks that end have not used of their time is free again, and a new day, week or month begins with nothing used");
        return;
    }
    const char *held = whole ? arena_printf(c->mem, "%lld", (long long)w->held) : milli(c, w->held);
    const char *most = whole ? arena_printf(c->mem, "%lld", (long long)h->most) : milli(c, h->most);
    const char *both = whole ? arena_printf(c->mem, "%lld", (long long)(w->held + h->needs)) : milli(c, w->held + h->needs);
    ADVISE(x, "wait until tasks under this limit end: %s of %s %s are held", held, most, limit_flag(h->limit));
    if ((h->limit == LIMIT_GPUS || h->limit == LIMIT_PROJECT_GPUS) && h->most - w->held >= 1000)
        ADVISE(x, "ask for at most %s", gpus(c, (h->most - w->held) / 1000 * 1000));
    advise_raise(x, both);
}

static void advise_after(struct words *x)
{
    static const char *const when[] = { [AFTER_OK] = "succeed", [AFTER_ANY] = "end", [AFTER_FAIL] = "fail" };
    const struct job_after *after = x->j->spec.after.at;
    size_t told = 0, more = 0;
    for (size_t i = 0; i < x->j->spec.after.count; i++) {
        int64_t id;
        const struct job *first = id_parse(after[i].job, PREFIX_JOB, &id) ? map_get(x->c->s->jobs, id) : NULL;
        if (!first || first->project != x->j->project)
            continue;
        if (told++ < AFTER_SHOWN)
            ADVISE(x, "wait for %s (%s, %s) to %s", id_of(x->c, PREFIX_JOB, first->id), text_given(first->name) ? first->name : "no name",
                   job_state_name(first->state), when[after[i].when]);
        else
            more++;
    }
    if (more)
        ADVISE(x, "and for %zu more", more);
}

/* By when those that run may run at most: a lower bound for who is not the first. */
static void advise_wait(struct words *x)
{
    char when[WHEN_TEXT];
    if (x->w->start_ms)
        ADVISE(x, "wait: %s is expected to have room at %s, when what runs there has reached its max_duration%s", node_name(x, x->w->start_node),
               when_text(when, x->w->start_ms), x->w->earliest ? "; those before it may take it first" : "");
}

static void advise_turn(struct words *x)
{
    enum priority_class class = priority_of(x->j->priority);
    if (x->j->id && class + 1 < CLASS_COUNT)
        ADVISE(x, "give it a higher priority: arcus update %s --priority %s", id_of(x->c, PREFIX_JOB, x->j->id), priorities[class + 1].name);
}

/* --- the whole */

static const char *reason_words(struct words *x, enum reason reason)
{
    const struct wait *h = &x->w->held_by;
    if (reason != REASON_QUOTA || !h->reason || h->limit == LIMIT_ANY)
        return reason_text(reason);
    AUTO(str_done) struct str out = { 0 };
    limit_sentence(&out, (enum limit_kind)h->limit, limit_whose(x->c, x->j->project, h->owner), h->model, h->most, h->needs);
    return arena_text(x->c->mem, out.at);
}

static void tell_place(struct words *x)
{
    const struct why *w = x->w;
    AUTO(str_done) struct str out = { 0 };
    for (int i = 0; i < w->gpu_count; i++)
        str_printf(&out, "%s%lld%s%s", i ? "," : "", (long long)w->gpus_at[i].index, w->gpus_at[i].milli < 1000 ? ":" : "",
                   w->gpus_at[i].milli < 1000 ? milli(x->c, w->gpus_at[i].milli) : "");
    x->v->node = w->tasks ? node_name(x, w->node) : "";
    x->v->gpus = arena_text(x->c->mem, out.at ? out.at : "");
    x->v->tasks = w->tasks;
}

/* The planner said it, so as far as it goes that is what listings show; it may have looked again since. */
static enum reason shown(const struct why *w, const struct job *j)
{
    return w->reason == REASON_RESOURCES && j->id && j->reason == REASON_PRIORITY ? REASON_PRIORITY : w->reason;
}

void why_words(struct call *c, const struct question *q, const struct job *j, struct why_view *v)
{
    const struct why *w = &q->why;
    struct words x = { c, q, w, j, v };
    char when[WHEN_TEXT];
    if (!w->known) {
        bool waits = job_waits(j) || !j->id;
        v->starts = waits ? "later" : "now";
        v->reason = reason_name(j->reason);
        v->reason_text = !waits ? "" : text_given(reason_text(j->reason)) ? reason_text(j->reason) : "the planner has not looked at it yet; ask again in a moment";
        return;
    }
    enum reason reason = shown(w, j);
    v->starts = reason == REASON_NONE ? "now" : reason == REASON_NO_NODE ? "never" : "later";
    v->start_ms = w->start_ms;
    v->earliest = w->earliest;
    v->reason = reason_name(reason);
    v->reason_text = reason == REASON_NONE ? "" : reason_words(&x, reason);
    tell_place(&x);
    tell_nodes(&x);
    if (reason == REASON_QUOTA)
        advise_quota(&x);
    else if (reason == REASON_DEPENDENCY)
        advise_after(&x);
    else if (reason == REASON_STOPPED)
        ADVISE(&x, "start it: arcus start %s", id_of(c, PREFIX_JOB, j->id));
    else if (reason == REASON_DISK)
        ADVISE(&x, "ask for a smaller disk than %s (--disk), or cancel instances that are stopped: at most half of a node's disk is kept for them", mib(c, j->spec.disk_mib));
    else if (reason == REASON_RETRY)
        ADVISE(&x, "wait until %s: the pause before its next try", when_text(when, w->pause_ms));
    else if (reason != REASON_NONE) {
        advise_wait(&x);
        advise_less(&x);
    }
    if (reason == REASON_PRIORITY)
        advise_turn(&x);
}
