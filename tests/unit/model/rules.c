#include "model/rules.h"
#include "base/str.h"
#include "tap.h"

TEST(every_rule_has_a_name_that_finds_it)
{
    for (int i = 0; i < RULE_COUNT; i++) {
        enum rule back = RULE_COUNT;
        CHECK(text_given(rule_name((enum rule)i)) && rule_named(rule_name((enum rule)i), &back) && back == (enum rule)i);
    }
    enum rule none;
    CHECK(!rule_named("", &none) && !rule_named("brake", &none));
}

TEST(a_policy_of_preemption_is_read_and_printed_and_names_what_is_wrong)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rules r;
    struct err err = { 0 };
    rules_usual(&r);
    CHECK(text_is(preempt_text(&r, mem), "urgent:spot high:spot normal:spot low:spot"));
    CHECK(preempt_read("high:low,spot; urgent:none", &r, &err)
          && text_is(preempt_text(&r, mem), "urgent:none high:low,spot normal:spot low:spot"));
    CHECK(preempt_read(preempt_text(&r, mem), &r, &err) && r.at[RULE_PREEMPT + CLASS_HIGH] == 3);
    static const char *const bad[] = { "high", "high:", ":spot", "high:max", "max:spot", "low:low", "spot:spot", "low:high", "high:low,,spot", "high:low spot" };
    struct rules before = r;
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(!preempt_read(bad[i], &r, &err) && text_is(err.field, "preempt"));
        CHECK(memcmp(&before, &r, sizeof r) == 0);
    }
    CHECK(preempt_read("", &r, &err) && memcmp(&before, &r, sizeof r) == 0);
}

TEST(per_cent_is_a_number_and_a_sign)
{
    int64_t n = -1;
    CHECK(percent_named("30%", &n) && n == 30 && percent_named("0%", &n) && n == 0);
    static const char *const bad[] = { "", "%", "30", "101%", "-1%", "30%%", "x%" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!percent_named(bad[i], &n));
}
