#include "base/heap.h"
#include "base/rand.h"
#include "tap.h"

struct item { int64_t key; size_t pos; };
static bool smaller(const void *a, const void *b) { return ((const struct item *)a)->key < ((const struct item *)b)->key; }

TEST(a_heap_gives_the_least_whatever_was_added_moved_and_taken_out)
{
    enum { ITEMS = 60 };
    struct item items[ITEMS] = { 0 };
    struct heap h = HEAP(struct item, pos, smaller);
    struct rng r = { 5 };
    for (int step = 0; step < 20000; step++) {
        struct item *x = &items[rng_below(&r, ITEMS)];
        if (!heap_has(&h, x)) {
            x->key = (int64_t)rng_below(&r, 1000);
            heap_add(&h, x);
        } else if (rng_below(&r, 2)) {
            x->key = (int64_t)rng_below(&r, 1000);
            heap_fix(&h, x);
        } else {
            heap_drop(&h, x);
        }
        if (step % 500 == 0) {
            for (int i = 0; i < ITEMS; i++)
                items[i].key = (int64_t)rng_below(&r, 1000);
            heap_all(&h);
        }
        const struct item *least = NULL, *top = heap_top(&h);
        size_t in = 0;
        for (int i = 0; i < ITEMS; i++)
            if (items[i].pos) {
                in++;
                CHECK(h.at[items[i].pos - 1] == &items[i]);
                least = !least || items[i].key < least->key ? &items[i] : least;
            }
        CHECK(in == h.count && (least ? top && top->key == least->key : !top));
    }
    heap_done(&h);
    CHECK(!heap_top(&h));
}
