/* waiting.c - sorted ranges of task numbers. Tasks leave mostly at the front, so the front moves instead of the rest. Most jobs are one
 * range for as long as they wait, which takes no memory of its own. */
#include "sched/sched_internal.h"
#include <stdlib.h>

struct range *waiting_ranges(const struct waiting *w)
{
    return w->room ? w->more + w->head : (struct range *)&w->one;
}

static void make_room(struct waiting *w, size_t at)
{
    if (at == 0 && w->head) {
        w->head--;
        w->count++;
        return;
    }
    if (!w->room && !w->count) {
        w->count = 1;
        return;
    }
    if (!w->room || w->head + w->count == w->room) {
        size_t room = w->room - w->head < 4 ? 4 : (w->room - w->head) * 2;
        struct range *more = must(calloc(room, sizeof *more));
        memcpy(more, waiting_ranges(w), w->count * sizeof *more);
        if (w->room)
            free(w->more);
        *w = (struct waiting){ .more = more, .count = w->count, .room = (uint32_t)room };
    }
    struct range *r = waiting_ranges(w);
    memmove(r + at + 1, r + at, (w->count - at) * sizeof *r);
    w->count++;
}

static void remove_at(struct waiting *w, size_t at)
{
    struct range *r = waiting_ranges(w);
    w->count--;
    if (at == 0)
        w->head += w->room != 0;
    else
        memmove(r + at, r + at + 1, (w->count - at) * sizeof *r);
}

static size_t first_behind(const struct waiting *w,
                           int64_t task) /* the first range that ends at task or later */
{
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (waiting_ranges(w)[mid].last < task)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void waiting_add(struct waiting *w, int64_t first, int64_t last, int64_t not_before_ms)
{
    if (first > last)
        return;
    size_t at = first_behind(w, first);
    struct range *r = waiting_ranges(w);
    assert(at == w->count || r[at].first > last);
    bool left = at > 0 && r[at - 1].last + 1 == first && r[at - 1].not_before_ms == not_before_ms;
    bool right = at < w->count && r[at].first == last + 1 && r[at].not_before_ms == not_before_ms;
    if (left && right) {
        r[at - 1].last = r[at].last;
        remove_at(w, at);
    } else if (left) {
        r[at - 1].last = (int32_t)last;
    } else if (right) {
        r[at].first = (int32_t)first;
    } else {
        make_room(w, at);
        waiting_ranges(w)[at] = (struct range){ (int32_t)first, (int32_t)last, not_before_ms };
    }
}

bool waiting_take(struct waiting *w, int64_t task, int64_t *not_before_ms)
{
    size_t at = first_behind(w, task);
    struct range *r = at < w->count ? &waiting_ranges(w)[at] : NULL;
    if (!r || r->first > task)
        return false;
    *not_before_ms = r->not_before_ms;
    if (r->first == r->last) {
        remove_at(w, at);
    } else if (r->first == task) {
        r->first++;
    } else if (r->last == task) {
        r->last--;
    } else {
        struct range behind = { (int32_t)task + 1, r->last, r->not_before_ms };
        r->last = (int32_t)task - 1;
        make_room(w, at + 1);
        waiting_ranges(w)[at + 1] = behind;
    }
    return true;
}

bool waiting_ready(const struct waiting *w, int64_t now_ms, size_t *from, int64_t *wake_ms,
                   int64_t *task)
{
    for (; *from < w->count; (*from)++) {
        const struct range *r = &waiting_ranges(w)[*from];
        if (r->not_before_ms <= now_ms)
            return *task = r->first, true;
        *wake_ms = MIN(*wake_ms, r->not_before_ms);
    }
    return false;
}

void waiting_done(struct waiting *w)
{
    if (w->room)
        free(w->more);
    *w = (struct waiting){ 0 };
}
