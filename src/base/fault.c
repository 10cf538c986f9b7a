/* fault.c - the n-th-failure counter behind fault.h. Per thread, so that a test arms only itself. */
#include "base/fault.h"
#ifdef FAULTS
static _Thread_local int countdown;
static _Thread_local bool fired, stays, on_hold;
static _Thread_local const char *only;
static _Thread_local void (*told)(const char *point);

extern struct fault_point *const __start_fault_points[] __attribute__((weak));
extern struct fault_point *const __stop_fault_points[] __attribute__((weak));

bool fault_named(const char *point)
{
    bool fails = !on_hold && (!only || text_is(only, point)) && ((stays && fired) || (countdown && --countdown == 0));
    fired |= fails;
    if (fails && told)
        told(point);
    return fails;
}
bool fault_at(struct fault_point *p)
{
    bool fails = fault_named(p->name);
    if (fails)
        __atomic_add_fetch(&p->failed, 1, __ATOMIC_RELAXED);
    return fails;
}
struct fault_point *fault_next(size_t *at)
{
    size_t count = (size_t)(__stop_fault_points - __start_fault_points);
    return *at < count ? __start_fault_points[(*at)++] : NULL;
}
void fault_arm(int nth)
{
    countdown = nth;
    fired = stays = false;
    only = NULL;
}
void fault_arm_at(const char *point, int nth)
{
    fault_arm(nth);
    only = point;
}
void fault_arm_from(int nth)
{
    fault_arm(nth);
    stays = true;
}
bool fault_fired(void) { return fired; }
void fault_on(void (*fn)(const char *point)) { told = fn; }
void fault_hold(bool held) { on_hold = held; }
#endif
