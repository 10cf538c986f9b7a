#include "model/role.h"
#include "tap.h"

TEST(roles_are_read_as_they_are_written)
{
    char text[96];
    for (unsigned r = 1; r < ROLE_PLANNER; r++)
        CHECK(role_parse(role_text(text, r)) == r);
    CHECK(role_parse("viewer, admin") == (ROLE_VIEWER | ROLE_ADMIN));
    CHECK(text_is(role_text(text, 0), ""));
}

TEST(an_unknown_role_spoils_the_whole_list)
{
    CHECK(role_parse("root") == 0 && role_parse("viewer,root") == 0 && role_parse("") == 0 && role_parse("view") == 0);
    CHECK(role_parse("VIEWER") == 0);
}

TEST(nobody_can_be_given_the_planners_role_or_that_of_anybody)
{
    char text[96];
    CHECK(role_parse("planner") == 0 && role_parse("person") == 0);
    CHECK(text_is(role_text(text, ROLE_PLANNER | ROLE_PERSON), ""));
}

TEST(roles_are_sets_and_not_ranks)
{
    CHECK(!(OPERATORS & VIEWERS) && !(NODES & (PROJECT_ROLES | PLATFORM_ROLES)) && !(ANYBODY & NODES));
    CHECK(!(PLANNERS & (PROJECT_ROLES | PLATFORM_ROLES | NODES | ANYBODY)));
}
