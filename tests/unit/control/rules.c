#include "door.h"

TEST(rules_are_kept_and_what_is_not_given_stays)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_RULES_GET, NULL);
    CHECK(a.ok && get_int(&a, "brake") == 10 && get_int(&a, "window") == 3600 && get_int(&a, "silent") == 30 && text_is(get(&a, "state"), "active"));
    a = door_ask(d, d->admin, VERB_RULES_SET, "{\"brake\":25,\"preempt\":\"high:low,spot\"}");
    CHECK(a.ok && get_int(&a, "brake") == 25 && get_int(&a, "window") == 3600 && strstr(get(&a, "preempt"), "high:low,spot"));
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"window\":\"2h\"}").ok && door_crash(d));
    a = door_ask(d, d->admin, VERB_RULES_GET, NULL);
    CHECK(get_int(&a, "brake") == 25 && get_int(&a, "window") == 7200 && strstr(get(&a, "preempt"), "high:low,spot"));
    check_books(d, "rules");
    static const char *const bad[] = { "{\"brake\":101}", "{\"brake\":-1}", "{\"window\":\"1s\"}", "{\"preempt\":\"low:high\"}", "{\"silent\":\"many\"}" };
    const char *memory = memory_text(d, memory_of(d), 0);
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!door_ask(d, d->admin, VERB_RULES_SET, bad[i]).ok);
    CHECK(text_is(memory, memory_text(d, memory_of(d), 0)));
}

TEST(weights_are_shown_with_what_they_are_for_and_the_planner_takes_new_ones)
{
    AUTO(door_free) struct door *d = door_new(true);
    struct answer a = door_ask(d, d->admin, VERB_RULES_GET, NULL);
    const struct json *list = json_get(a.json, "weights"), *first = list ? list->first : NULL;
    CHECK(a.ok && first && text_is(json_text(first, "name"), "stuck") && json_int(first, "weight", -1) == weights_usual[TERM_STUCK]
          && json_int(first, "usual", -1) == weights_usual[TERM_STUCK] && text_given(json_text(first, "what")));
    a = door_ask(d, d->admin, VERB_RULES_SET, "{\"weights\":\"stuck=17 fetch=0\"}");
    CHECK(a.ok && json_int(json_get(a.json, "weights")->first, "weight", 0) == 17);
    check_picture(d, "weights");
    CHECK(door_crash(d));
    a = door_ask(d, d->admin, VERB_RULES_GET, NULL);
    CHECK(json_int(json_get(a.json, "weights")->first, "weight", 0) == 17);
    check_books(d, "weights");
    check_picture(d, "weights after a crash");
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"weights\":\"stuck=usual\"}").ok && memory_of(d)->rules.at[RULE_WEIGHT + TERM_STUCK] == weights_usual[TERM_STUCK]);
    CHECK(!door_ask(d, d->admin, VERB_RULES_SET, "{\"weights\":\"stuck=100001\"}").ok && !door_ask(d, d->admin, VERB_RULES_SET, "{\"weights\":\"luck=1\"}").ok);
}

TEST(the_brake_is_lifted_for_a_time)
{
    AUTO(door_free) struct door *d = door_new(false);
    struct answer a = door_ask(d, d->admin, VERB_RULES_SET, "{\"lift\":\"10m\"}");
    CHECK(a.ok && text_is(get(&a, "state"), "lifted") && text_given(get(&a, "lifted_until")));
    CHECK(brake_lifted(&memory_of(d)->rules, os_wall_ms(d->os)) && door_crash(d));
    CHECK(brake_lifted(&memory_of(d)->rules, os_wall_ms(d->os)));
    door_run(d, 600 * 1000);
    a = door_ask(d, d->admin, VERB_RULES_GET, NULL);
    CHECK(text_is(get(&a, "state"), "active") && !text_given(get(&a, "lifted_until")));
    CHECK(door_ask(d, d->admin, VERB_RULES_SET, "{\"lift\":\"10m\"}").ok);
    a = door_ask(d, d->admin, VERB_RULES_SET, "{\"lift\":0}");
    CHECK(a.ok && text_is(get(&a, "state"), "active") && !brake_lifted(&memory_of(d)->rules, os_wall_ms(d->os)));
    sim_wall_jump(d->sim, -INT64_C(30) * 86400 * 1000);
    CHECK(!brake_lifted(&(struct rules){ .at[RULE_LIFTED_UNTIL_MS] = os_wall_ms(d->os) + INT64_C(30) * 86400 * 1000 }, os_wall_ms(d->os)));
}
