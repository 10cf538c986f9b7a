/* care.c - see care.h: faults and tests. A GPU is out from the moment the driver tells a fault until a test has passed after it. What no test can take
 * back (the driver still says that the card is lost, or asks for a repair) is waited out first. Each test that fails doubles the time to the next. */
#include "agent/care_internal.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_MS = 2000, AGAIN_MOST_MS = 600000, USED_AGAIN_MS = 500, HOUR_MS = 3600000, IDLE_LOOK_MS = 60000, IDLE_TEST_MIB = 16 << 10, FILE_MOST = 64 << 10 };

struct care_gpu *care_gpu_of(struct care *c, const char *uuid)
{
    for (size_t i = 0; i < c->count; i++)
        if (text_is(c->gpus[i]->uuid, uuid))
            return c->gpus[i];
    return NULL;
}

static int64_t first_ms(const struct care *c) { return c->config.first_ms ? c->config.first_ms : FIRST_MS; }

static void gpu_clear(struct care_gpu *g)
{
    timer_cancel(g->next);
    check_free(g->check);
}

/* With no room left one that is not here makes room. */
struct care_gpu *care_gpu_new(struct care *c, const char *uuid)
{
    struct care_gpu *g = NULL;
    for (size_t i = 0; c->count == CARE_GPUS && !g && i < c->count; i++)
        if (!c->gpus[i]->seen && !care_is_used(c, c->gpus[i]->uuid))
            g = c->gpus[i];
    if (g)
        gpu_clear(g);
    else if (c->count < CARE_GPUS && (g = calloc(1, sizeof *g)))
        c->gpus[c->count++] = g;
    if (!g)
        abort();
    *g = (struct care_gpu){ .care = c, .again_ms = first_ms(c), .tested_ms = os_boot_ms(c->os) };
    text_cut(g->uuid, sizeof g->uuid, uuid);
    for (int i = 0; i < CARE_SLOTS; i++)
        g->owner[i] = c->owners_lost ? OWNER_MIXED : OWNER_NOBODY;
    return g;
}

const char *care_is_out(const struct care_gpu *g) { return g->suspect ? g->why : *g->unclean ? g->unclean : NULL; }

/* --- the file: "UUID BOOT PASSED OUT WHY" */

static const char *file_of(struct care *c, struct arena *mem) { return arena_printf(mem, "%s/gpu-care", c->config.data); }

static void boot_load(struct care *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err ignored;
    bool told = file_read(c->os, "/proc/sys/kernel/random/boot_id", 64, mem, &text, &ignored);
    if (!told || sscanf(arena_bytes(mem, text.at, text.len), "%63s", c->boot) != 1)
        text_cut(c->boot, sizeof c->boot, "unknown");
}

static void load(struct care *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err ignored;
    if (!file_read(c->os, file_of(c, mem), FILE_MOST, mem, &text, &ignored))
        return;
    for (const char *at = arena_bytes(mem, text.at, text.len); *at && c->count < CARE_GPUS; at += strcspn(at, "\n"), at += *at == '\n') {
        char uuid[96], boot[64], why[240] = "";
        int64_t passed;
        int out;
        const char *line = arena_bytes(mem, at, strcspn(at, "\n"));
        if (sscanf(line, "%95s %63s %" SCNd64 " %d %239[^\n]", uuid, boot, &passed, &out, why) < 4 || !text_is(boot, c->boot))
            continue;
        struct care_gpu *g = care_gpu_of(c, uuid);
        g = g ? g : care_gpu_new(c, uuid);
        g->errors_passed = passed;
        g->suspect = out && c->config.when != CARE_OFF;
        text_cut(g->why, sizeof g->why, why);
    }
}

static void store(struct care *c)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct err err = { 0 };
    for (size_t i = 0; i < c->count; i++)
        if (c->gpus[i]->suspect || c->gpus[i]->errors_passed)
            str_printf(&text, "%s %s %" PRId64 " %d %s\n", c->gpus[i]->uuid, c->boot, c->gpus[i]->errors_passed, c->gpus[i]->suspect, c->gpus[i]->why);
    if (!file_replace(c->os, file_of(c, mem), (struct slice){ text.at ? text.at : "", text.len }, 0644, &err))
        log_line(LOG_WARN, "gpus", "%s; what GPUs were out may be forgotten", err.text);
}

/* --- tests */

static void on_done(void *arg, const struct check_said *said);

void care_check(struct care_gpu *g, enum check_kind kind, const char *uuid, int64_t most_mib, int64_t keep_mib)
{
    struct care *c = g->care;
    struct check_ask ask = { .kind = kind, .uuid = uuid, .most_mib = most_mib, .keep_mib = keep_mib };
    check_free(g->check);
    g->doing = kind;
    g->busy = true;
    g->check = check_start(c->os, &c->config.check, &ask, on_done, g);
}

static void on_next(void *arg);

static void later(struct care_gpu *g, int64_t after_ms)
{
    if (!g->next)
        g->next = timer_start(g->care->os, after_ms, on_next, g);
}

static void again(struct care_gpu *g)
{
    later(g, g->again_ms);
    g->again_ms = MIN(g->again_ms * 2, (int64_t)AGAIN_MOST_MS);
}

/* Of a GPU in MIG mode each instance has a test of its own. */
static const char *instance_from(struct care_gpu *g, int64_t slot)
{
    for (g->slot = slot; g->slot < CARE_SLOTS; g->slot++)
        if (*g->instances[g->slot])
            return g->instances[g->slot];
    return NULL;
}

static void test(struct care_gpu *g)
{
    const char *instance = instance_from(g, 0);
    g->tested_ms = os_boot_ms(g->care->os);
    care_check(g, CHECK_TEST, instance ? instance : g->uuid, g->suspect ? 0 : IDLE_TEST_MIB, 0);
}

/* One that hangs from before is in the driver's hands: another one would hang beside it. */
static void on_next(void *arg)
{
    struct care_gpu *g = arg;
    g->next = NULL;
    if (g->busy || !g->nvidia)
        return;
    if (g->check && !check_gone(g->check))
        again(g);
    else if (g->suspect && !g->standing)
        care_is_used(g->care, g->uuid) ? later(g, USED_AGAIN_MS) : test(g);
    else if (!g->suspect && *g->unclean)
        care_scrub_again(g);
}

static void go_out(struct care_gpu *g, const char *why)
{
    g->suspect = true;
    g->again_ms = first_ms(g->care);
    text_cut(g->why, sizeof g->why, why);
    for (char *at = g->why; *at; at++)
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    store(g->care);
}

static void passed(struct care_gpu *g)
{
    struct care *c = g->care;
    bool was_out = g->suspect;
    g->suspect = false;
    g->errors_passed = g->errors;
    g->again_ms = first_ms(c);
    if (!was_out)
        return;
    log_line(LOG_INFO, "gpus", "%s: it has passed its test, and is used again", g->uuid);
    store(c);
    c->events->on_passed(c->arg, g->uuid);
}

static void failed(struct care_gpu *g, const char *why)
{
    char text[240];
    log_line(LOG_ERROR, "gpus", "%s: it failed its test: %s", g->uuid, why);
    if (!g->suspect) {
        snprintf(text, sizeof text, "it failed its test: %.200s", why);
        go_out(g, text);
    }
    again(g);
}

static void tested(struct care_gpu *g, const struct check_said *said)
{
    const char *next = said->ok ? instance_from(g, g->slot + 1) : NULL;
    if (next) {
        care_check(g, CHECK_TEST, next, g->suspect ? 0 : IDLE_TEST_MIB, 0);
        return;
    }
    g->test_ms = os_wall_ms(g->care->os);
    if (said->ok)
        snprintf(g->test, sizeof g->test, "passed: %" PRId64 " of %" PRId64 " MiB and the matrix products were right, in %" PRId64 " ms", said->mib, said->of_mib, said->ms);
    else
        snprintf(g->test, sizeof g->test, "failed: %.200s", said->why);
    if (said->ok)
        passed(g);
    else
        failed(g, said->why);
}

static void on_done(void *arg, const struct check_said *said)
{
    struct care_gpu *g = arg;
    struct care *c = g->care;
    g->busy = false;
    (g->doing == CHECK_TEST ? tested : care_scrubbed)(g, said);
    if (g->doing == CHECK_SCRUB && *g->unclean)
        again(g);
    c->events->on_change(c->arg);
    care_step(c);
}

/* --- what the driver says */

static void take_instances(struct care_gpu *g, const struct gpu_info *info)
{
    size_t n = 0;
    memset(g->instances, 0, sizeof g->instances);
    for (const char *at = info->mig; text_given(at) && n < info->mig_uuids.count; n++) {
        const char *slot = strchr(at, '@');
        long first = slot ? strtol(slot + 1, NULL, 10) : -1;
        if (first >= 0 && first < CARE_SLOTS)
            text_cut(g->instances[first], sizeof g->instances[first], info->mig_uuids.at[n]);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
}

/* Errors that it had before it passed a test count no more. */
static bool is_old(const struct care_gpu *g, const struct gpu_info *info)
{
    return text_is(info->fault, "memory") && info->ecc_errors <= g->errors_passed;
}

static void look_at(struct care *c, const struct gpu_info *info)
{
    struct care_gpu *g = care_gpu_of(c, info->uuid);
    g = g ? g : care_gpu_new(c, info->uuid);
    bool bad = text_given(info->fault) && !is_old(g, info);
    g->seen = true;
    g->index = info->index;
    g->nvidia = text_is(info->vendor, "nvidia");
    g->standing = text_is(info->fault, "held");
    g->errors = info->ecc_errors;
    take_instances(g, info);
    if (bad && g->nvidia && c->config.when != CARE_OFF && !g->suspect)
        go_out(g, info->health);
    if (bad)
        c->events->on_fault(c->arg, g->uuid, info->health);
    if (g->nvidia && g->suspect && !g->standing && !g->busy && !g->next)
        again(g);
}

void care_look(struct care *c, const struct node_info *info)
{
    const struct gpu_info *gpus = info->gpus.at;
    for (size_t i = 0; c && i < info->gpus.count; i++)
        if (!gpus[i].simulated)
            look_at(c, &gpus[i]);
    if (c)
        care_step(c);
}

void care_describe(struct care *c, struct arena *mem, struct node_info *info)
{
    struct gpu_info *gpus = info->gpus.at;
    for (size_t i = 0; c && i < info->gpus.count; i++) {
        struct care_gpu *g = gpus[i].simulated ? NULL : care_gpu_of(c, gpus[i].uuid);
        if (!g)
            continue;
        if (is_old(g, &gpus[i]) && !g->suspect) {
            gpus[i].note = arena_printf(mem, "%.180s; it has passed its test since", gpus[i].health);
            gpus[i].health = gpus[i].fault = NULL;
        }
        if (!text_given(gpus[i].health) && g->suspect)
            gpus[i].health = arena_printf(mem, "out until it has passed a test: %.200s", g->why);
        else if (!text_given(gpus[i].health) && *g->unclean)
            gpus[i].health = arena_text(mem, g->unclean);
        gpus[i].healthy = !text_given(gpus[i].health);
        gpus[i].test = *g->test ? arena_text(mem, g->test) : NULL;
        gpus[i].test_ms = g->test_ms;
        gpus[i].scrub = *g->scrub ? arena_text(mem, g->scrub) : NULL;
        gpus[i].scrub_ms = g->scrub_ms;
    }
}

/* --- idle tests */

static void on_hour(void *arg)
{
    struct care *c = arg;
    int64_t every = c->config.hour_ms ? c->config.hour_ms : HOUR_MS;
    c->hour = timer_start(c->os, MIN((int64_t)IDLE_LOOK_MS, every), on_hour, c);
    for (size_t i = 0; i < c->count; i++) {
        struct care_gpu *g = c->gpus[i];
        if (g->nvidia && !g->busy && !g->next && !care_is_out(g) && !g->standing && !care_is_used(c, g->uuid) && (!g->check || check_gone(g->check))
            && os_boot_ms(c->os) - g->tested_ms >= every)
            test(g);
    }
}

/* --- life */

struct care *care_new(struct os *os, const struct care_config *config, const struct care_events *events, void *arg)
{
    if (os_is_simulated(os) || !text_given(config->check.self))
        return NULL;
    struct care *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct care){ .os = os, .mem = arena_new(), .config = *config, .events = events, .arg = arg };
    c->config.data = arena_text(c->mem, config->data);
    c->config.check.self = arena_text(c->mem, config->check.self);
    c->config.check.libcuda = arena_text(c->mem, config->check.libcuda);
    boot_load(c);
    care_owners_load(c);
    load(c);
    if (config->when == CARE_HOURLY)
        on_hour(c);
    return c;
}

void care_free(struct care *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        gpu_clear(c->gpus[i]);
        free(c->gpus[i]);
    }
    timer_cancel(c->hour);
    care_scrub_free(c);
    arena_free(c->mem);
    free(c);
}
