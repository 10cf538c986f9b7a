/* care_scrub.c - see care.h: who had which GPU last, and who waits until it is overwritten. The law: a task begins only where nothing of another
 * project is left in memory, and the note of who begins there is on the disk before. A GPU of which nothing is known is another's.
 *
 * Beside neighbours who run (shares of several projects, which an operator must allow) what they were promised and have not taken yet is left
 * alone: an allocation of theirs must not fail for our sake. */
#include "agent/care_internal.h"
#include "base/id.h"
#include "base/log.h"
#include "model/gpu_live.h"
#include "model/prefix.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_MOST = 64 << 10 };

/* --- what an attempt holds */

struct care_leases care_leases_of(const struct objects *gpus)
{
    const struct order_gpu *o = gpus->at;
    struct care_leases l = { .at = calloc(gpus->count + 1, sizeof *l.at) };
    if (!l.at)
        abort();
    for (size_t i = 0; i < gpus->count; i++) {
        if (o[i].simulated)
            continue;
        struct care_lease *to = &l.at[l.count++];
        *to = (struct care_lease){ .slots = CARE_SLOTS, .mem_mib = o[i].milli < 1000 ? o[i].mem_mib : 0 };
        text_cut(to->uuid, sizeof to->uuid, o[i].uuid);
        if (text_given(o[i].mig))
            to->first = o[i].slot, to->slots = MIN(MAX(o[i].size, 1), CARE_SLOTS - o[i].slot);
    }
    return l;
}

void care_leases_free(struct care_leases *l)
{
    free(l->at);
    *l = (struct care_leases){ 0 };
}

static bool meets(const struct care_lease *a, const struct care_lease *b)
{
    return text_is(a->uuid, b->uuid) && a->first < b->first + b->slots && b->first < a->first + a->slots;
}

bool care_is_used(const struct care *c, const char *uuid)
{
    for (size_t i = 0; i < c->holder_count; i++)
        if (text_is(c->holders[i].lease.uuid, uuid))
            return true;
    return false;
}

/* --- the note: "UUID OWNER OWNER ...", one for each slot */

static const char *file_of(struct care *c, struct arena *mem) { return arena_printf(mem, "%s/gpu-owners", c->config.data); }

void care_owners_load(struct care *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err err = { 0 };
    if (!file_read(c->os, file_of(c, mem), FILE_MOST, mem, &text, &err)) {
        c->owners_lost = err.rc != RC_NOT_FOUND || disk_exists(c->os, arena_printf(mem, "%s/gpus", c->config.data));
        return;
    }
    for (char *at = arena_bytes(mem, text.at, text.len), *line; (line = strsep(&at, "\n")) && c->count < CARE_GPUS;) {
        const char *uuid = strsep(&line, " ");
        if (!text_given(uuid))
            continue;
        struct care_gpu *g = care_gpu_of(c, uuid);
        g = g ? g : care_gpu_new(c, uuid);
        for (int i = 0; i < CARE_SLOTS; i++) {
            const char *word = strsep(&line, " ");
            char *end = NULL;
            long long n = word ? strtoll(word, &end, 10) : 0;
            g->owner[i] = word && end != word && !*end ? n : OWNER_MIXED;
        }
    }
}

static bool owners_store(struct care *c, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    for (size_t i = 0; i < c->count; i++) {
        str_text(&text, c->gpus[i]->uuid);
        for (int s = 0; s < CARE_SLOTS; s++)
            str_printf(&text, " %" PRId64, c->gpus[i]->owner[s]);
        str_char(&text, '\n');
    }
    return file_replace(c->os, file_of(c, mem), (struct slice){ text.at, text.len }, 0644, err);
}

/* --- taking */

static void hold(struct care *c, int64_t attempt, int64_t project, const struct care_lease *lease)
{
    if (c->holder_count == c->holder_room) {
        c->holder_room = c->holder_room ? c->holder_room * 2 : 16;
        c->holders = realloc(c->holders, c->holder_room * sizeof *c->holders);
        if (!c->holders)
            abort();
    }
    c->holders[c->holder_count++] = (struct care_holder){ .attempt = attempt, .project = project, .lease = *lease };
}

static bool has_others(const struct care *c, const struct care_lease *l, int64_t project)
{
    for (size_t i = 0; i < c->holder_count; i++)
        if (meets(&c->holders[i].lease, l) && c->holders[i].project != project)
            return true;
    return false;
}

/* True: the note must be written. */
static bool own(struct care *c, const struct care_lease *l, int64_t project)
{
    struct care_gpu *g = care_gpu_of(c, l->uuid);
    int64_t owner = has_others(c, l, project) ? OWNER_MIXED : project;
    bool changed = false;
    for (int64_t s = l->first; g && s < l->first + l->slots && s < CARE_SLOTS; s++) {
        changed |= g->owner[s] != owner;
        g->owner[s] = owner;
    }
    return changed;
}

static bool take(struct care *c, int64_t attempt, int64_t project, const struct care_leases *leases, struct err *err)
{
    bool changed = false;
    for (size_t i = 0; i < leases->count; i++)
        changed |= own(c, &leases->at[i], project);
    if (changed && !owners_store(c, err))
        return false;
    for (size_t i = 0; i < leases->count; i++)
        hold(c, attempt, project, &leases->at[i]);
    return true;
}

void care_hold(struct care *c, int64_t attempt, int64_t project, const struct care_leases *leases)
{
    for (size_t i = 0; c && i < leases->count; i++)
        hold(c, attempt, project, &leases->at[i]);
}

/* --- scrubbing */

static int64_t foreign_owner(const struct care_gpu *g, const struct care_lease *l, int64_t project)
{
    for (int64_t s = l->first; s < l->first + l->slots && s < CARE_SLOTS; s++)
        if (g->owner[s] != OWNER_NOBODY && g->owner[s] != project)
            return g->owner[s];
    return OWNER_NOBODY;
}

static int64_t promised_mib(const struct care *c, const struct care_lease *l)
{
    int64_t mib = 0;
    for (size_t i = 0; i < c->holder_count; i++)
        if (meets(&c->holders[i].lease, l))
            mib += MAX(c->holders[i].lease.mem_mib - c->holders[i].held_mib, 0);
    return mib;
}

static void scrub(struct care_gpu *g)
{
    const struct care_lease *l = &g->scrubbing;
    bool instance = l->slots < CARE_SLOTS;
    g->was_project = foreign_owner(g, l, g->for_project);
    care_check(g, CHECK_SCRUB, instance ? g->instances[l->first] : g->uuid, 0, promised_mib(g->care, l));
}

void care_scrub_again(struct care_gpu *g) { scrub(g); }

static const char *project_words(int64_t project, char id[static ID_TEXT])
{
    return project > 0 ? id_text(id, PREFIX_PROJECT, project) : "nobody knows whom";
}

void care_scrubbed(struct care_gpu *g, const struct check_said *said)
{
    struct care *c = g->care;
    char before[ID_TEXT], next[ID_TEXT];
    g->scrub_ms = os_wall_ms(c->os);
    if (!said->ok) {
        snprintf(g->scrub, sizeof g->scrub, "failed: %.150s, after %s", said->why, project_words(g->was_project, before));
        snprintf(g->unclean, sizeof g->unclean, "its memory could not be overwritten after another project: %.160s", said->why);
        log_line(LOG_ERROR, "gpus", "%s: %s", g->uuid, g->unclean);
        return;
    }
    snprintf(g->scrub, sizeof g->scrub, "%" PRId64 " of %" PRId64 " MiB overwritten in %" PRId64 " ms, for %s, after %s", said->mib, said->of_mib, said->ms,
             project_words(g->for_project, next), project_words(g->was_project, before));
    *g->unclean = 0;
    for (struct care_want *w = c->wants; w; w = w->next)
        for (size_t i = 0; i < w->leases.count && i < 64; i++)
            if (w->project == g->for_project && text_is(w->leases.at[i].uuid, g->uuid) && w->leases.at[i].first == g->scrubbing.first
                && w->leases.at[i].slots == g->scrubbing.slots)
                w->clean |= UINT64_C(1) << i;
    for (int64_t s = g->scrubbing.first; s < g->scrubbing.first + g->scrubbing.slots; s++)
        if (!has_others(c, &g->scrubbing, OWNER_NOBODY))
            g->owner[s] = OWNER_NOBODY; /* the note follows when somebody takes it */
}

/* --- waiting */

enum verdict { VERDICT_READY, VERDICT_WAITS, VERDICT_NEVER };

/* Nothing here can overwrite it: then that is the result that is told. */
static void tell_unscrubbed(struct care_gpu *g, struct care_want *w, size_t i)
{
    char before[ID_TEXT], next[ID_TEXT];
    int64_t was = foreign_owner(g, &w->leases.at[i], w->project);
    if (i >= 64 || w->clean >> i & 1 || was == OWNER_NOBODY)
        return;
    w->clean |= UINT64_C(1) << i;
    g->scrub_ms = os_wall_ms(g->care->os);
    snprintf(g->scrub, sizeof g->scrub, "not overwritten: that is done with NVIDIA's GPUs alone; for %s, after %s", project_words(w->project, next), project_words(was, before));
    log_line(LOG_WARN, "gpus", "%s: %s", g->uuid, g->scrub);
}

static enum verdict judge_one(struct care *c, struct care_want *w, size_t i, char why[static 240])
{
    const struct care_lease *l = &w->leases.at[i];
    struct care_gpu *g = care_gpu_of(c, l->uuid);
    if (!g || !g->seen) /* what it is and who had it is not known */
        return snprintf(why, 240, "the driver has not told of %s yet", l->uuid), VERDICT_NEVER;
    if (!g->nvidia) {
        tell_unscrubbed(g, w, i);
        return VERDICT_READY;
    }
    if (care_is_out(g))
        return snprintf(why, 240, "GPU %" PRId64 ": %.200s", g->index, care_is_out(g)), VERDICT_NEVER;
    if (g->busy)
        return VERDICT_WAITS;
    if ((i < 64 && w->clean >> i & 1) || !foreign_owner(g, l, w->project))
        return VERDICT_READY;
    if (l->slots < CARE_SLOTS && !*g->instances[l->first])
        return VERDICT_WAITS; /* it was just made: the next look tells its name */
    g->scrubbing = *l;
    g->for_project = w->project;
    scrub(g);
    return VERDICT_WAITS;
}

static enum verdict judge(struct care *c, struct care_want *w, char why[static 240])
{
    enum verdict all = VERDICT_READY;
    for (size_t i = 0; i < w->leases.count; i++) {
        enum verdict v = judge_one(c, w, i, why);
        if (v == VERDICT_NEVER)
            return v;
        all = v == VERDICT_WAITS ? v : all;
    }
    struct err err = { 0 };
    if (all == VERDICT_READY && !take(c, w->attempt, w->project, &w->leases, &err))
        return snprintf(why, 240, "%s", err.text), VERDICT_NEVER;
    return all;
}

static void want_free(struct care_want *w)
{
    care_leases_free(&w->leases);
    free(w);
}

static void on_soon(void *arg)
{
    struct care *c = arg;
    c->soon = NULL;
    care_step(c);
}

/* A callback may ask for more, or leave: so the walk begins anew after each. */
void care_step(struct care *c)
{
    for (struct care_want **at = &c->wants; *at;) {
        struct care_want *w = *at;
        char why[240] = "";
        enum verdict v = judge(c, w, why);
        if (v == VERDICT_WAITS) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        void (*done)(void *arg, const char *why) = w->done;
        void *arg = w->arg;
        want_free(w);
        done(arg, v == VERDICT_NEVER ? why : NULL);
        at = &c->wants;
    }
}

bool care_want(struct care *c, int64_t attempt, int64_t project, const struct care_leases *leases, void (*done)(void *arg, const char *why), void *arg)
{
    char why[240] = "";
    if (!c || !leases->count)
        return true;
    struct care_want *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *w = (struct care_want){ .care = c, .attempt = attempt, .project = project, .done = done, .arg = arg };
    w->leases.at = calloc(leases->count, sizeof *w->leases.at);
    if (!w->leases.at)
        abort();
    memcpy(w->leases.at, leases->at, leases->count * sizeof *w->leases.at);
    w->leases.count = leases->count;
    enum verdict v = judge(c, w, why);
    if (v == VERDICT_READY)
        return want_free(w), true;
    struct care_want **at = &c->wants; /* who came first is first */
    while (*at)
        at = &(*at)->next;
    *at = w;
    if (v == VERDICT_NEVER && !c->soon)
        c->soon = timer_start(c->os, 0, on_soon, c);
    return false;
}

/* --- leaving */

/* What it wrote last may lie where was overwritten for one that still waits. */
static void soil(struct care *c, const struct care_holder *h)
{
    for (struct care_want *w = c->wants; w; w = w->next)
        for (size_t i = 0; i < w->leases.count && i < 64; i++)
            if (w->project != h->project && meets(&w->leases.at[i], &h->lease))
                w->clean &= ~(UINT64_C(1) << i);
}

void care_leave(struct care *c, int64_t attempt)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->holder_count;)
        if (c->holders[i].attempt == attempt) {
            soil(c, &c->holders[i]);
            c->holders[i] = c->holders[--c->holder_count];
        } else {
            i++;
        }
    for (struct care_want **at = &c->wants; *at;) {
        struct care_want *w = *at;
        if (w->attempt != attempt) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        want_free(w);
    }
}

void care_held(struct care *c, const struct objects *held)
{
    const struct gpu_live *gpus = held->at;
    for (size_t i = 0; c && i < c->holder_count; i++)
        for (size_t g = 0; g < held->count; g++) {
            const struct live_task *t = gpus[g].tasks.at;
            for (size_t k = 0; text_is(gpus[g].uuid, c->holders[i].lease.uuid) && k < gpus[g].tasks.count; k++)
                if (t[k].attempt == c->holders[i].attempt)
                    c->holders[i].held_mib = t[k].mem_mib;
        }
}

void care_scrub_free(struct care *c)
{
    while (c->wants) {
        struct care_want *w = c->wants;
        c->wants = w->next;
        want_free(w);
    }
    timer_cancel(c->soon);
    free(c->holders);
}
