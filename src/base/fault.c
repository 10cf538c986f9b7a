/* fault.c - the n-th-failure counter behind fault.h. Per thread, so that a test arms only itself. */
#include "base/fault.h"
#ifdef FAULTS
static _Thread_local int countdown;
static _Thread_local bool fired, stays, on_hold;
bool fault(const char *point)
{
    (void)point;
    if (on_hold)
        return false;
    if (stays && fired)
        return true;
    return countdown && --countdown == 0 && (fired = true);
}
void fault_arm(int nth)
{
    countdown = nth;
    fired = stays = false;
}
void fault_arm_from(int nth)
{
    fault_arm(nth);
    stays = true;
}
bool fault_fired(void) { return fired; }
void fault_hold(bool held) { on_hold = held; }
#endif
