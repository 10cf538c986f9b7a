/* What bundle.c does not try: files that a tenant made up to be in the way. */
#include "agent/bundle.h"
#include "agent/task_plan.h"
#include "tap.h"

static bool find(const char *user, const char *passwd, const char *group, struct bundle_user *out)
{
    static struct arena *mem;
    struct err err = { 0 };
    arena_free(mem);
    mem = arena_new();
    bool ok = bundle_user_find(user, SLICE(passwd), SLICE(group), mem, out, &err);
    CHECK(ok || text_is(err.field, "user"));
    return ok;
}

TEST(lines_that_make_no_sense_are_passed_over)
{
    struct bundle_user u = { 0 };
    CHECK(find("app", "\n:\n::::::\napp\napp:x\napp:x:1000\napp:x:many:100::/h:\napp:x:1000:100::/home/app:/bin/sh", "", &u) && u.uid == 1000 && text_is(u.home, "/home/app"));
    CHECK(find("app", "app:x:7:8::/a:/bin/sh\napp:x:9:10::/b:/bin/sh\n", "", &u) && u.uid == 7);    /* the first counts, as everywhere */
    CHECK(!find("app", "app:x:1000:100:", "", &u));             /* no home: the line is cut short */
    CHECK(!find("app", "app2:x:1:1::/:\nap:x:1:1::/:\n", "", &u));
}

TEST(ids_end_where_the_range_of_a_container_ends)
{
    struct bundle_user u = { 0 };
    CHECK(find("65535:65535", "", "", &u) && u.uid == PLAN_UID_COUNT - 1 && u.gid == PLAN_UID_COUNT - 1);
    CHECK(!find("65536", "", "", &u) && !find("0:65536", "", "", &u) && !find("99999999999999999999999999", "", "", &u));
    CHECK(!find("app", "app:x:65536:1::/:\n", "", &u) && !find("app", "app:x:1:65536::/:\n", "", &u));
    CHECK(!find("app:far", "app:x:1:1::/:\n", "far:x:65536:\n", &u));
}

TEST(a_member_is_a_whole_word_and_groups_are_no_more_than_there_is_room_for)
{
    struct bundle_user u = { 0 };
    AUTO(str_done) struct str many = { 0 };
    const char *passwd = "app:x:1000:100::/home/app:/bin/sh\n";
    CHECK(find("app", passwd, "a:x:1:ap,application\nb:x:2:app2,app\nc:x:3:\nd:x:4:,app,\ne:x:100:app\n", &u)
          && u.group_count == 3 && u.groups[0] == 100 && u.groups[1] == 2 && u.groups[2] == 4);
    for (int i = 0; i < 500; i++)
        str_printf(&many, "g%d:x:%d:app\n", i, 200 + i);
    CHECK(find("app", passwd, many.at, &u) && u.group_count == COUNT(u.groups) && u.groups[0] == 100 && u.groups[1] == 200);
}
