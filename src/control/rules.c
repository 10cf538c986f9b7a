/* rules.c - the operator's rules for the whole cloud: who yields to whom, the brake, from when on silence is ours and not the
 * nodes', and the weights of places. What is not given stays. */
#include "control/call.h"

static const int64_t longest_ms = INT64_C(7) * 86400 * 1000;

void rule_set(struct call *c, enum rule r, int64_t value)
{
    c->s->rules.at[r] = value;
    EMIT(c, RULE_SET, V_TEXT(rule_name(r)), V_INT(value));
}

/* The clock may have gone back since it was lifted. */
bool brake_lifted(const struct rules *r, int64_t now_ms)
{
    int64_t left = r->at[RULE_LIFTED_UNTIL_MS] - now_ms;
    return left > 0 && left <= longest_ms;
}

static void tell(struct call *c)
{
    c->s->lifted = brake_lifted(&c->s->rules, c->now_ms);
    sched_of_rules(c->s, c->now_ms, emit_news(c, SCHED_RULES));
}

void rules_tick(struct call *c)
{
    if (c->s->lifted != brake_lifted(&c->s->rules, c->now_ms))
        tell(c);
}

static struct objects weights_of(struct call *c, const struct rules *r)
{
    struct weight_view *list = ARENA_ARRAY(c->mem, struct weight_view, TERM_COUNT);
    for (int i = 0; i < TERM_COUNT; i++)
        list[i] = (struct weight_view){ terms[i].name, r->at[RULE_WEIGHT + i], weights_usual[i], terms[i].what };
    return (struct objects){ list, TERM_COUNT };
}

static void view_of(struct call *c, const struct rules *r, struct rules_view *v)
{
    bool lifted = brake_lifted(r, c->now_ms);
    *v = (struct rules_view){ .id = "rules",
                              .name = "rules",
                              .state = lifted ? "lifted" : "active",
                              .preempt = preempt_text(r, c->mem),
                              .brake = r->at[RULE_BRAKE_PERMILLE] / 10,
                              .window_s = r->at[RULE_BRAKE_WINDOW_S],
                              .lifted_until_ms = lifted ? r->at[RULE_LIFTED_UNTIL_MS] : 0,
                              .spot_notice_s = r->at[RULE_SPOT_NOTICE_S],
                              .spot_suspend = spot_suspend_names.at[MIN(MAX(r->at[RULE_SPOT_SUSPEND], 0), SPOT_SUSPEND_COUNT - 1)],
                              .backfill_depth = r->at[RULE_BACKFILL_DEPTH],
                              .silent = r->at[RULE_SILENT_PERMILLE] / 10,
                              .weights = weights_of(c, r) };
}

bool rules_read(struct call *c, struct rules *out, struct err *err)
{
    struct rows r;
    enum rule which;
    rules_usual(out);
    if (!rows_of(c, ST_LOAD_RULE, NULL, 0, &r, err))
        return false;
    for (size_t i = 0; i < r.count; i++)
        if (rule_named(row_text(&r, i, 0), &which))
            out->at[which] = row_int(&r, i, 1);
    return true;
}

bool rules_get(struct call *c, const void *body, struct err *err)
{
    (void)body;
    struct rules rules;
    struct rules_view view;
    if (!rules_read(c, &rules, err))
        return false;
    view_of(c, &rules, &view);
    reply_view(c, &rules_view_fields, &view);
    return true;
}

bool rules_set(struct call *c, const void *body, struct err *err)
{
    const struct rules_ask *ask = body;
    const struct { const char *field; enum rule rule; int64_t value; } given[] = {
        { "brake", RULE_BRAKE_PERMILLE, ask->brake * 10 },
        { "window", RULE_BRAKE_WINDOW_S, ask->window_s },
        { "spot_notice", RULE_SPOT_NOTICE_S, ask->spot_notice_s },
        { "spot_suspend", RULE_SPOT_SUSPEND, ask->spot_suspend },
        { "backfill_depth", RULE_BACKFILL_DEPTH, ask->backfill_depth },
        { "silent", RULE_SILENT_PERMILLE, ask->silent * 10 },
        { "lift", RULE_LIFTED_UNTIL_MS, ask->lift_s ? c->now_ms + ask->lift_s * 1000 : 0 },
    };
    struct rules want = c->s->rules;
    if (was_given(c, "preempt") && !preempt_read(ask->preempt, &want, err))
        return false;
    if (was_given(c, "weights") && !weights_read(ask->weights, &want.at[RULE_WEIGHT], err))
        return false;
    for (size_t i = 0; i < COUNT(given); i++)
        if (was_given(c, given[i].field))
            want.at[given[i].rule] = given[i].value;
    AUTO(str_done) struct str data = { 0 };
    struct json_out o = { .to = &data };
    json_open(&o, '{');
    for (int r = 0; r < RULE_COUNT; r++) {
        if (want.at[r] == c->s->rules.at[r])
            continue;
        rule_set(c, (enum rule)r, want.at[r]);
        json_key(&o, rule_name((enum rule)r)), json_put_int(&o, want.at[r]);
    }
    json_close(&o, '}');
    tell(c);
    emit_event(c, 0, "rules.set", "rules", arena_text(c->mem, data.at));
    struct rules_view view;
    view_of(c, &c->s->rules, &view);
    reply_view(c, &rules_view_fields, &view);
    return true;
}
