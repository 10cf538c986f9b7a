#include "base/slab.h"
#include "tap.h"
#include <stdlib.h>

enum { PIECES = 2000 };

static bool holds(const unsigned char *p, size_t n, unsigned char what)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != what)
            return false;
    return true;
}

TEST(pieces_of_any_size_do_not_touch_each_other)
{
    AUTO(slabs_free) struct slabs *s = slabs_new_plain(false);
    static struct { unsigned char *at; size_t size; } piece[PIECES];
    uint64_t seed = 7;
    bool whole = true, aligned = true;
    for (int round = 0; round < 20 * PIECES; round++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t n = (seed >> 33) % PIECES;
        if (piece[n].at) {
            whole = whole && holds(piece[n].at, piece[n].size, (unsigned char)n);
            slabs_give(s, piece[n].at);
            piece[n].at = NULL;
            continue;
        }
        piece[n].size = (seed >> 20) % (round % 2 ? SLAB_PIECE + 100 : 300);
        piece[n].at = slabs_take(s, piece[n].size);
        aligned = aligned && piece[n].at && (uintptr_t)piece[n].at % 16 == 0;
        memset(piece[n].at, (int)(unsigned char)n, piece[n].size);
    }
    CHECK(aligned);
    for (size_t n = 0; n < PIECES; n++) {
        whole = whole && (!piece[n].at || holds(piece[n].at, piece[n].size, (unsigned char)n));
        slabs_give(s, piece[n].at);
    }
    CHECK(whole);
}

TEST(slabs_that_are_empty_go_back_and_pieces_are_used_again)
{
    AUTO(slabs_free) struct slabs *s = slabs_new_plain(false);
    static void *at[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        at[i] = slabs_take(s, 1000);
    size_t full = slabs_idle(s);
    CHECK(full < 2 * SLAB_BYTES);
    for (size_t i = 0; i < PIECES; i++)
        slabs_give(s, at[i]);
    CHECK(slabs_idle(s) == SLAB_BYTES);         /* one is kept for the next */
    void *one = slabs_zeroed(s, 1000);
    CHECK(slabs_room(s, one) == 1008 && slabs_idle(s) == SLAB_BYTES - 1008);
    CHECK(holds(one, 1000, 0));
    slabs_give(s, one);
}

TEST(what_is_large_or_watched_is_the_c_librarys)
{
    AUTO(slabs_free) struct slabs *s = slabs_new_plain(false);
    AUTO(slabs_free) struct slabs *plain = slabs_new_plain(true);
    void *large = slabs_take(s, SLAB_PIECE + 1), *small = slabs_take(plain, 8);
    CHECK(slabs_room(s, large) == 0 && slabs_idle(s) == 0);
    CHECK(slabs_room(plain, small) == 0 && slabs_idle(plain) == 0);
    slabs_give(s, large);
    slabs_give(plain, small);
    slabs_give(s, NULL);
}
