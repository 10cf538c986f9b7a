#include "base/rand.h"
#include "sched/packs.h"
#include "tap.h"
#include <string.h>

enum { GPU = 1000 * 1000 };

TEST(without_shares_no_rest_is_worth_anything)
{
    int64_t asked[1001] = { 0 }, worth[1001];
    packs_worth(asked, worth);
    CHECK(worth[1] == 0 && worth[999] == 0 && worth[1000] == 0);
}

TEST(a_rest_that_nothing_fits_into_is_worth_nothing_and_halves_are_worth_a_half)
{
    int64_t asked[1001] = { [500] = 7 }, worth[1001];
    packs_worth(asked, worth);
    CHECK(worth[499] == 0 && worth[500] == GPU / 2 && worth[999] == GPU / 2 && worth[1000] == GPU);
    asked[500] = 0;
    asked[810] = 5;
    packs_worth(asked, worth);
    CHECK(worth[190] == 0 && worth[809] == 0 && worth[810] == GPU);
}

/* Of 700 and 300 the one of which fewer come is dear: who breaks a GPU for the other will wait for its company in vain. */
TEST(the_size_that_completes_a_gpu_is_dear_when_few_come_and_cheap_when_many_do)
{
    int64_t asked[1001] = { [300] = 10, [700] = 100 }, worth[1001];
    packs_worth(asked, worth);
    CHECK(worth[300] == 0 && worth[700] == GPU);
    asked[300] = 1000;
    packs_worth(asked, worth);
    CHECK(worth[300] > GPU * 33LL / 100 && worth[300] < GPU * 34LL / 100 && worth[700] > GPU * 66LL / 100 && worth[700] < GPU * 67LL / 100);
}

/* As many GPUs as it takes if they are filled one after the other, the largest shares first. */
static int64_t by_hand(const int64_t asked[static 1001])
{
    int64_t rests[1001] = { 0 }, gpus = 0;
    for (int s = 999; s > 0; s--)
        for (int64_t i = 0; i < asked[s]; i++) {
            int rest = s;
            while (rest < 1000 && !rests[rest])
                rest++;
            gpus += rest == 1000;
            rests[rest] -= rest < 1000;
            rests[rest - s]++;
        }
    return gpus;
}

TEST(prices_of_random_sizes_pay_for_no_more_than_the_gpus_that_are_needed_and_for_all_that_is_used)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng r = { seed };
        int64_t asked[1001] = { 0 }, worth[1001], used = 0, paid = 0;
        int sizes = 1 + (int)rng_below(&r, seed % 3 ? 30 : 200), step = seed % 2 ? 10 : 1;
        for (int i = 0; i < sizes; i++)
            asked[step * (1 + (int)rng_below(&r, (uint64_t)(999 / step)))] += 1 + (int64_t)rng_below(&r, 50);
        packs_worth(asked, worth);
        int64_t gpus = by_hand(asked);
        for (int s = 1; s < 1000; s++) {
            used += asked[s] * s;
            paid += asked[s] * worth[s];
            CHECK(worth[s] >= worth[s - 1] && worth[s] + worth[1000 - s] <= GPU);
        }
        if (paid < used * 990 || paid > gpus * (GPU + GPU / 100))
            printf("# seed %llu: %lld for %lld on %lld\n", (unsigned long long)seed, (long long)paid, (long long)used, (long long)gpus);
        CHECK(paid >= used * 990 && (sizes > 48 || paid <= gpus * (GPU + GPU / 100)));
    }
}
