#include "cli_test.h"

#define RULES "{\"id\":\"rules\",\"name\":\"rules\",\"state\":\"active\",\"preempt\":\"high:spot\",\"brake\":10,\"weights\":[{\"name\":\"stuck\",\"weight\":17,\"usual\":300,\"what\":\"idle GPU\"}]}"

TEST(rules_are_for_people_and_weights_a_table_of_their_own)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/rules", 0, 200, RULES },
        { "PATCH", "/v1/rules", 0, 200, RULES },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "rules") == 0 && strstr(s.out.at, "brake:") && !strstr(s.out.at, "stuck"));
    CHECK(PLAY(&s, "rules", "-o", "json") == 0 && strstr(s.out.at, "\"weights\"") && strstr(s.out.at, "\"brake\""));
    CHECK(PLAY(&s, "rules", "weights") == 0 && text_starts(s.out.at, "NAME") && strstr(s.out.at, "stuck") && strstr(s.out.at, "300") && strstr(s.out.at, "idle GPU"));
    CHECK(PLAY(&s, "rules", "weights", "-o", "json") == 0 && text_starts(s.out.at, "["));
    CHECK(PLAY(&s, "rules", "set", "--weights", "stuck=17 fetch=usual") == 0 && text_starts(s.out.at, "NAME") && strstr(straw_seen(&s), "stuck=17 fetch=usual"));
    CHECK(PLAY(&s, "rules", "set", "--brake", "10%") == 0 && strstr(s.out.at, "brake:"));
}
