/* fault.c - the n-th-failure counter behind fault.h. Per thread, so that a test arms only itself. */
#include "base/fault.h"
#ifdef FAULTS
static _Thread_local int countdown;
static _Thread_local bool fired;
bool fault(const char *point)
{
    (void)point;
    return countdown && --countdown == 0 && (fired = true);
}
void fault_arm(int nth)
{
    countdown = nth;
    fired = false;
}
bool fault_fired(void) { return fired; }
#endif
