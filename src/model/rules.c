/* rules.c - the table of rules, and how a policy of preemption is spelled. */
#include "model/rules.h"
#include "base/str.h"
#include <stdlib.h>

enum { SPOT_YIELDS_ = 1 << CLASS_SPOT };
static const struct { const char *name; int64_t usual; } rows[RULE_WEIGHT] = {
    [RULE_PREEMPT + CLASS_SPOT] = { "preempt_spot", 0 },
    [RULE_PREEMPT + CLASS_LOW] = { "preempt_low", SPOT_YIELDS_ },
    [RULE_PREEMPT + CLASS_NORMAL] = { "preempt_normal", SPOT_YIELDS_ },
    [RULE_PREEMPT + CLASS_HIGH] = { "preempt_high", SPOT_YIELDS_ },
    [RULE_PREEMPT + CLASS_URGENT] = { "preempt_urgent", SPOT_YIELDS_ },
    [RULE_BRAKE_PERMILLE] = { "brake_permille", 100 },
    [RULE_BRAKE_WINDOW_S] = { "brake_window_s", 3600 },
    [RULE_SPOT_NOTICE_S] = { "spot_notice_s", -1 },
    [RULE_BACKFILL_DEPTH] = { "backfill_depth", 1 },
    [RULE_SILENT_PERMILLE] = { "silent_permille", 300 },
    [RULE_SPOT_SUSPEND] = { "spot_suspend", SUSPEND_REAL },
    [RULE_LIFTED_UNTIL_MS] = { "lifted_until_ms", 0 },
    [RULE_SILENT_SINCE_MS] = { "silent_since_ms", 0 },
};

static const char *const suspend_list[] = { [SUSPEND_NEVER] = "never", [SUSPEND_REAL] = "real", [SUSPEND_ALWAYS] = "always" };
_Static_assert(COUNT(suspend_list) == SPOT_SUSPEND_COUNT, "every word is there");
const struct names spot_suspend_names = NAMES(suspend_list);

const char *rule_name(enum rule r) { return r < RULE_WEIGHT ? rows[r].name : terms[r - RULE_WEIGHT].rule; }

bool rule_named(const char *name, enum rule *out)
{
    for (int i = 0; i < RULE_COUNT; i++)
        if (text_is(rule_name((enum rule)i), name))
            return *out = (enum rule)i, true;
    return false;
}

void rules_usual(struct rules *out)
{
    for (int i = 0; i < RULE_COUNT; i++)
        out->at[i] = i < RULE_WEIGHT ? rows[i].usual : weights_usual[i - RULE_WEIGHT];
}

static bool class_read(const char *text, size_t n, enum priority_class *out)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (strlen(priorities[i].name) == n && strncmp(priorities[i].name, text, n) == 0)
            return *out = (enum priority_class)i, true;
    return false;
}

static bool set_read(const char *text, size_t n, enum priority_class who, int64_t *set, struct err *err)
{
    enum priority_class whom;
    *set = 0;
    if (n == 4 && strncmp(text, "none", n) == 0)
        return true;
    for (size_t at = 0; at < n;) {
        size_t len = strcspn(text + at, ", ;");
        len = MIN(len, n - at);
        if (!class_read(text + at, len, &whom))
            return err_field(err, "preempt", "'%.*s' is no class; there are spot, low, normal, high and urgent", (int)MIN(len, 40), text + at);
        if (whom >= who)
            return err_field(err, "preempt", "%s cannot evict %s: only lower classes yield", priorities[who].name, priorities[whom].name);
        *set |= 1 << whom;
        at += len + 1;
    }
    return true;
}

bool preempt_read(const char *text, struct rules *out, struct err *err)
{
    struct rules fresh = *out;
    for (const char *p = text + strspn(text, " ;"); *p; p += strspn(p, " ;")) {
        enum priority_class who;
        size_t n = strcspn(p, " ;"), colon = strcspn(p, ": ;");
        if (p[colon] != ':' || colon + 1 >= n || !class_read(p, colon, &who))
            return err_field(err, "preempt", "'%.*s' is not like high:low,spot (a class, and those that it may evict, or none)", (int)MIN(n, 40), p);
        if (!set_read(p + colon + 1, n - colon - 1, who, &fresh.at[RULE_PREEMPT + who], err))
            return false;
        p += n;
    }
    return *out = fresh, true;
}

const char *preempt_text(const struct rules *r, struct arena *mem)
{
    AUTO(str_done) struct str out = { 0 };
    for (int who = CLASS_COUNT - 1; who > 0; who--) {
        int64_t set = r->at[RULE_PREEMPT + who];
        const char *between = "";
        str_printf(&out, "%s%s:", out.len ? " " : "", priorities[who].name);
        for (int whom = who - 1; whom >= 0; whom--)
            if (set >> whom & 1) {
                str_printf(&out, "%s%s", between, priorities[whom].name);
                between = ",";
            }
        if (!*between)
            str_text(&out, "none");
    }
    return arena_text(mem, out.at);
}

bool percent_named(const char *text, int64_t *number)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || !text_is(end, "%") || n < 0 || n > 100)
        return false;
    return *number = n, true;
}
