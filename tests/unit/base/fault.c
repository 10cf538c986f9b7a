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
