#include "model/priority.h"
#include "base/str.h"
#include "tap.h"

TEST(every_number_has_one_class_and_every_class_is_a_name_for_one_of_its_numbers)
{
    int64_t n;
    for (int64_t i = 0; i <= 100; i++) {
        const struct priority *p = &priorities[priority_of(i)];
        CHECK(p->from <= i && i <= p->to);
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        CHECK(priority_named(priorities[i].name, &n) && (int)priority_of(n) == i);
        CHECK(i == 0 || priorities[i].from == priorities[i - 1].to + 1);
        CHECK(priorities[i].starved_s > 0 && (i == 0 || priorities[i].starved_s < priorities[i - 1].starved_s));
    }
    CHECK(!priority_named("", &n) && !priority_named(NULL, &n) && !priority_named("Urgent!", &n));
    CHECK(priority_of(-5) == CLASS_SPOT && priority_of(1000) == CLASS_URGENT && priority_of(50) == CLASS_NORMAL);
}

TEST(the_words_that_people_are_told_are_all_of_them)
{
    AUTO(str_done) struct str all = { 0 };
    for (size_t i = 0; i < CLASS_COUNT; i++)
        str_printf(&all, "%s%s", i ? ", " : "", priorities[i].name);
    CHECK(text_is(all.at, PRIORITY_WORDS));
}
