#include "model/weights.h"
#include "base/str.h"
#include "tap.h"

TEST(every_term_has_a_name_a_rule_a_reason_and_a_weight_within_bounds)
{
    for (int i = 0; i < TERM_COUNT; i++) {
        enum term back = TERM_COUNT;
        CHECK(text_given(terms[i].name) && text_given(terms[i].what) && text_starts(terms[i].rule, "weight_") && text_is(terms[i].rule + 7, terms[i].name));
        CHECK(term_named(terms[i].name, &back) && back == (enum term)i);
        CHECK(weights_usual[i] >= 0 && weights_usual[i] <= WEIGHT_MOST);
    }
    enum term none;
    CHECK(!term_named("", &none) && !term_named("weight_stuck", &none));
}

TEST(weights_are_read_each_by_its_name_and_nothing_changes_when_one_is_wrong)
{
    int64_t w[TERM_COUNT], before[TERM_COUNT];
    struct err err = { 0 };
    memcpy(w, weights_usual, sizeof w);
    CHECK(weights_read("stuck=250, fetch=0;spread=100000", w, &err) && w[TERM_STUCK] == 250 && w[TERM_FETCH] == 0 && w[TERM_SPREAD] == 100000);
    CHECK(w[TERM_FEED] == weights_usual[TERM_FEED]);
    CHECK(weights_read("fetch=usual", w, &err) && w[TERM_FETCH] == weights_usual[TERM_FETCH] && w[TERM_STUCK] == 250);
    memcpy(before, w, sizeof w);
    static const char *const bad[] = { "stuck", "stuck=", "=3", "stuck=-1", "stuck=100001", "stuck=1.5", "stuck=1 x=2", "nothing=1", "stuck=99999999999999999999",
                                       "feed=3 stuck=usually", "averyveryverylongnameofaweight=1", "stuck==1", "stuck= 1" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(!weights_read(bad[i], w, &err) && text_is(err.field, "weights"));
        CHECK(memcmp(w, before, sizeof w) == 0);
    }
    CHECK(weights_read("", w, &err) && memcmp(w, before, sizeof w) == 0);
}
