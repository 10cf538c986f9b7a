#include "agent/xid.h"
#include "tap.h"
#include <string.h>

TEST(what_a_program_can_cause_by_itself_takes_no_gpu_away)
{
    static const int64_t of_programs[] = { 0, 13, 31, 43, 45, 68, 94, 109 };
    for (size_t i = 0; i < COUNT(of_programs); i++)
        CHECK(xid_bad(of_programs[i]) == NULL);
    CHECK(strstr(xid_bad(79), "fallen off the bus") && strstr(xid_bad(48), "memory") && strstr(xid_bad(95), "XID 95"));
    CHECK(xid_bad(99999) == NULL);
}

TEST(a_test_takes_back_what_it_can_see_and_no_more)
{
    CHECK(xid_tested(79) && xid_tested(48) && xid_tested(95) && xid_tested(119));
    CHECK(!xid_tested(74) && !xid_tested(64) && !xid_tested(54) && !xid_tested(110)); /* links, rows, power, keys */
    CHECK(!xid_tested(13) && !xid_tested(0));
}
