#include "auth/auth.h"
#include "base/id.h"
#include "model/verb.h"
#include "tap.h"

enum { NOW = 1000000 };

static struct auth_facts member(unsigned roles)
{
    return (struct auth_facts){ .found = true,
                                .key = 7,
                                .owner = 5,
                                .owner_kind = PRINCIPAL_USER,
                                .owner_name = "ada",
                                .project_found = true,
                                .project = 11,
                                .org = 3,
                                .member_roles = roles };
}

TEST(a_member_speaks_for_the_project_with_the_roles_given_there)
{
    struct auth_facts f = member(ROLE_DEVELOPER);
    struct caller c;
    struct err err;
    CHECK(auth_decide(&f, "vision", NOW, &c, &err));
    CHECK(c.kind == PRINCIPAL_USER && c.id == 5 && c.key == 7 && c.project == 11 && c.org == 3
          && text_is(c.name, "ada"));
    CHECK(c.roles == (ROLE_DEVELOPER | ROLE_PERSON));
}

TEST(a_key_that_is_unknown_expired_or_disabled_gets_one_answer)
{
    struct auth_facts good = member(ROLE_ADMIN), bad[5];
    struct caller c = { .id = 99 };
    struct err first = { 0 };
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].found = false;
    bad[1].key_state = 1;
    bad[2].owner_state = 1;
    bad[3].expires_ms = NOW; /* not one millisecond longer */
    bad[4] = (struct auth_facts){ 0 };
    CHECK(!auth_decide(&bad[0], "", NOW, &c, &first) && first.rc == RC_UNAUTHENTICATED);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err err = { 0 };
        CHECK(!auth_decide(&bad[i], "", NOW, &c, &err) && err.rc == first.rc
              && text_is(err.text, first.text) && c.id == 99);
    }
    good.expires_ms = NOW + 1;
    CHECK(auth_decide(&good, "", NOW, &c, &first));
}

TEST(a_project_that_is_not_there_and_one_that_is_not_yours_get_the_same_words)
{
    struct auth_facts none = member(0), other = member(0), scoped = member(ROLE_ADMIN);
    struct caller c;
    struct err a = { 0 }, b = { 0 }, s = { 0 };
    none.project_found = false;
    scoped.key_project = 12; /* a key for another project of the same person */
    CHECK(!auth_decide(&none, "vision", NOW, &c, &a) && !auth_decide(&other, "vision", NOW, &c, &b)
          && !auth_decide(&scoped, "vision", NOW, &c, &s));
    CHECK(a.rc == RC_NOT_FOUND && b.rc == a.rc && s.rc == a.rc && text_is(a.text, b.text)
          && text_is(a.text, s.text));
    CHECK(auth_decide(&other, "", NOW, &c, &a) && c.project == 0
          && c.roles == ROLE_PERSON); /* unasked, it is nobody in particular */
}

TEST(a_scoped_key_does_less_than_its_owner_and_never_more)
{
    for (unsigned owner = 0; owner < 32; owner++)
        for (unsigned scope = 1; scope < 32; scope++) {
            struct auth_facts f = member(owner & PROJECT_ROLES);
            struct caller c;
            struct err err;
            f.owner_roles = owner & PLATFORM_ROLES;
            f.key_roles = scope;
            CHECK(auth_decide(&f, "", NOW, &c, &err));
            CHECK(!(c.roles & ~(scope | ROLE_PERSON))
                  && !(c.roles & ~(role_reach(owner) | ROLE_PERSON)));
            for (int v = 0; v < VERB_COUNT; v++) /* whatever the scoped key may, its owner may */
                CHECK(!(verbs[v].roles & c.roles) || (verbs[v].roles & (owner | ROLE_PERSON)));
        }
}

TEST(the_reach_of_a_role_is_what_the_table_of_verbs_says)
{
    static const struct {
        unsigned role, less;
    } rows[] = { { ROLE_ADMIN, ROLE_DEVELOPER },
                 { ROLE_DEVELOPER, ROLE_VIEWER },
                 { ROLE_OPERATOR, ROLE_AUDITOR } };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int v = 0; v < VERB_COUNT; v++)
            CHECK(!(verbs[v].roles & rows[i].less) || (verbs[v].roles & rows[i].role));
    CHECK(role_reach(ROLE_VIEWER) == ROLE_VIEWER && role_reach(ROLE_NODE) == ROLE_NODE
          && role_reach(0) == 0);
    CHECK(role_reach(ROLE_ADMIN) == PROJECT_ROLES);
}

TEST(nobody_becomes_a_node_or_the_planner_by_roles)
{
    struct auth_facts f = member(ROLE_NODE | ROLE_PLANNER | ROLE_VIEWER);
    struct caller c;
    struct err err;
    f.owner_roles = ROLE_NODE | ROLE_PLANNER;
    CHECK(auth_decide(&f, "", NOW, &c, &err) && c.roles == (ROLE_VIEWER | ROLE_PERSON));
    struct auth_facts node = { .found = true,
                               .owner_kind = PRINCIPAL_NODE,
                               .owner = 9,
                               .owner_name = "n1",
                               .owner_roles = ROLE_OPERATOR,
                               .member_roles = ROLE_ADMIN,
                               .project_found = true,
                               .project = 11 };
    CHECK(auth_decide(&node, "", NOW, &c, &err) && c.roles == ROLE_NODE && c.project == 0
          && c.kind == PRINCIPAL_NODE);
}

TEST(a_service_account_has_its_roles_only_in_its_own_project)
{
    struct auth_facts f = { .found = true,
                            .owner_kind = PRINCIPAL_ACCOUNT,
                            .owner = 4,
                            .owner_roles = ROLE_DEVELOPER,
                            .key_project = 11,
                            .project_found = true,
                            .project = 11,
                            .member_roles = ROLE_ADMIN };
    struct caller c;
    struct err err;
    CHECK(auth_decide(&f, "", NOW, &c, &err) && c.roles == (ROLE_DEVELOPER | ROLE_PERSON)
          && c.project == 11); /* it is no member of anything */
    f.project = 12;
    CHECK(!auth_decide(&f, "other", NOW, &c, &err) && err.rc == RC_NOT_FOUND);
}
