#include "base/fault.h"
#include "tap.h"
#include <pthread.h>

TEST(only_the_call_that_was_told_to_fails)
{
#ifdef FAULTS
    fault_arm(3);
    CHECK(!fault("a") && !fault("b") && !fault_fired() && fault("c") && fault_fired() && !fault("d") && fault_fired());
    fault_arm(0);
    CHECK(!fault("a") && !fault_fired());
    fault_arm(2);
    fault_hold(true);
    CHECK(!fault("a") && !fault("a") && !fault("a"));
    fault_hold(false);
    CHECK(!fault("a") && fault("a"));
    fault_arm(0);
#else
    CHECK(!fault("a"));
#endif
}

static void *elsewhere(void *arg)
{
    *(bool *)arg = fault("other thread");
    return NULL;
}

TEST(a_thread_arms_only_itself)
{
    bool failed = true;
    pthread_t t;
#ifdef FAULTS
    fault_arm(1);
#endif
    CHECK(pthread_create(&t, NULL, elsewhere, &failed) == 0 && pthread_join(t, NULL) == 0 && !failed);
#ifdef FAULTS
    CHECK(fault("here"));
    fault_arm(0);
#endif
}

#ifdef FAULTS
static int told_of;
static void tell(const char *point) { told_of += *point == 'l'; }
#endif

TEST(every_place_is_listed_and_knows_whether_it_failed)
{
#ifdef FAULTS
    struct fault_point *p, *mine = NULL;
    fault_arm(1);
    fault_on(tell);
    CHECK(fault("listed here") && told_of == 1);
    fault_on(NULL);
    fault_arm(0);
    for (size_t at = 0; (p = fault_next(&at));)
        if (strcmp(p->name, "listed here") == 0)
            mine = p;
    CHECK(mine && mine->failed == 1 && strstr(mine->file, "fault.c"));
#else
    test_skip("this build has no fault points");
#endif
}
