#include "model/mig.h"
#include "base/rand.h"
#include "base/str.h"
#include "tap.h"

/* Puts profiles one after the other where mig_start says; how many of them came in. */
static int put_all(const struct mig_part *part, const char *const *names, int count, uint16_t *taken)
{
    int in = 0;
    for (int i = 0; i < count; i++) {
        int p = mig_find(part, names[i]), s = p < 0 ? -1 : mig_start(part, p, part->profiles[p].starts, *taken);
        if (s < 0)
            continue;
        uint16_t slots = mig_slots(s, part->profiles[p].size, part->profiles[p].media);
        CHECK(!(*taken & slots) && (part->profiles[p].starts >> s & 1));
        *taken |= slots;
        in++;
    }
    return in;
}
#define FITS(part, ...) ({ uint16_t t_ = 0; const char *const n_[] = { __VA_ARGS__ }; put_all(part, n_, COUNT(n_), &t_) == COUNT(n_); })

TEST(a_part_is_found_by_model_and_memory)
{
    static const struct { const char *model; int64_t mib; const char *profile; } rows[] = {
        { "NVIDIA A100-SXM4-40GB", 40960, "1g.5gb" }, { "NVIDIA A100-SXM4-80GB", 81920, "1g.10gb" }, { "NVIDIA H100 80GB HBM3", 81559, "3g.40gb" },
        { "NVIDIA H100 NVL", 95830, "3g.47gb" }, { "NVIDIA GH200 480GB", 97871, "3g.48gb" }, { "NVIDIA H200", 143771, "1g.18gb" },
        { "NVIDIA B200", 183359, "1g.23gb" }, { "NVIDIA A30", 24576, "4g.24gb" }, { "NVIDIA H20", 97871, "1g.12gb" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(mig_find(mig_part_of(rows[i].model, rows[i].mib), rows[i].profile) >= 0);
    CHECK(!mig_part_of("NVIDIA L4", 23034) && !mig_part_of("NVIDIA A10", 23028) && mig_find(NULL, "1g.5gb") == -1);
}

TEST(a_name_may_be_of_one_slot_on_one_part_and_of_two_on_another)
{
    const struct mig_part *small = mig_part_of("A100", 40960), *large = mig_part_of("A100", 81920);
    CHECK(small->profiles[mig_find(small, "1g.10gb")].size == 2 && large->profiles[mig_find(large, "1g.10gb")].size == 1);
    CHECK(mig_mib(small, mig_find(small, "1g.10gb"), 40960) == 10240 && mig_mib(large, mig_find(large, "7g.80gb"), 81920) == 81920);
    CHECK(mig_milli("7g.40gb") == 1000 && mig_milli("1g.18gb") == 142 && mig_milli("1g.6gb") == 250 && mig_milli("1g.7gb") == 0);
}

TEST(what_the_hardware_can_hold_beside_each_other_fits_and_nothing_else)
{
    const struct mig_part *p = mig_part_of("NVIDIA H200", 143771);
    CHECK(FITS(p, "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb"));
    CHECK(!FITS(p, "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb", "1g.18gb"));
    CHECK(FITS(p, "3g.71gb", "3g.71gb") && FITS(p, "4g.71gb", "3g.71gb") && FITS(p, "3g.71gb", "4g.71gb") && !FITS(p, "4g.71gb", "4g.71gb"));
    CHECK(FITS(p, "2g.35gb", "2g.35gb", "2g.35gb", "1g.18gb") && !FITS(p, "2g.35gb", "2g.35gb", "2g.35gb", "2g.35gb"));
    CHECK(FITS(p, "1g.35gb", "1g.35gb", "1g.35gb", "1g.35gb") && FITS(p, "7g.141gb") && !FITS(p, "1g.18gb", "7g.141gb"));
    CHECK(!FITS(p, "1g.18gb+me", "1g.18gb+me") && FITS(p, "1g.18gb+me", "1g.18gb"));
    const struct mig_part *a30 = mig_part_of("NVIDIA A30", 24576);
    CHECK(FITS(a30, "2g.12gb", "1g.6gb", "1g.6gb") && FITS(a30, "1g.6gb", "2g.12gb", "1g.6gb") && !FITS(a30, "2g.12gb", "2g.12gb", "1g.6gb"));
}

TEST(small_ones_leave_the_room_for_large_ones)
{
    const struct mig_part *p = mig_part_of("NVIDIA H200", 143771);
    CHECK(FITS(p, "1g.18gb", "4g.71gb", "2g.35gb") && FITS(p, "1g.18gb", "1g.18gb", "1g.18gb", "4g.71gb") && FITS(p, "2g.35gb", "4g.71gb", "1g.18gb"));
    CHECK(FITS(p, "1g.35gb", "1g.18gb", "4g.71gb") && FITS(p, "1g.18gb", "2g.35gb", "3g.71gb"));
    uint16_t taken = 0;
    for (int s = 0; s < 8; s++) {
        CHECK(mig_room(p, taken) > mig_room(p, taken | mig_slots(s, 1, false)) || s == 7);
        taken |= mig_slots(s, 1, false);
    }
    CHECK(mig_room(p, taken) == 0);
}

TEST(a_layout_is_what_is_there_or_all_that_could_be)
{
    struct mig_layout l;
    struct err err = { 0 };
    CHECK(mig_layout_parse("", "NVIDIA L4", 23034, true, &l, &err) && !l.on);
    CHECK(mig_layout_parse("on", "NVIDIA H200", 143771, false, &l, &err) && l.on && !l.starts[0]);
    CHECK(mig_layout_parse("on", "NVIDIA H200", 143771, true, &l, &err) && l.on && l.starts[0] == 0x7f);
    CHECK(mig_layout_parse("1g.18gb@0,3g.71gb@4", "NVIDIA H200", 143771, false, &l, &err) && l.starts[0] == 1 && l.starts[4] == 0x10 && !l.starts[3]);
    static const char *const bad[] = { "yes", "1g.18gb", "1g.18gb@7", "1g.18gb@0,2g.35gb@0", "4g.71gb@4", "1g.18gb@0,,", "1g.18gb@00", "1g.5gb@0", ",", "@0" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!mig_layout_parse(bad[i], "NVIDIA H200", 143771, false, &l, &err) && text_given(err.text));
    CHECK(!mig_layout_parse("on", "NVIDIA L4", 23034, true, &l, &err));
}

TEST(whatever_comes_and_goes_no_two_slices_share_a_slot)
{
    struct rng r = { 4 };
    const struct mig_part *parts[] = { mig_part_of("NVIDIA H200", 143771), mig_part_of("NVIDIA A30", 24576), mig_part_of("NVIDIA A100", 40960) };
    for (int round = 0; round < 300; round++) {
        const struct mig_part *part = parts[round % 3];
        uint16_t held[16] = { 0 }, taken = 0;
        for (int i = 0; i < 60; i++) {
            uint64_t at = rng_below(&r, 16);
            int p = (int)rng_below(&r, MIG_PROFILES), slices = 0;
            taken &= (uint16_t)~held[at];
            held[at] = 0;
            int s = part->profiles[p].name ? mig_start(part, p, part->profiles[p].starts, taken) : -1;
            if (s >= 0)
                held[at] = mig_slots(s, part->profiles[p].size, part->profiles[p].media);
            CHECK(!(held[at] & taken) && (held[at] & (MIG_MEDIA - 1)) < 1 << part->slots);
            taken |= held[at];
            for (int k = 0; k < 16; k++)
                slices += __builtin_popcount(held[k] & (MIG_MEDIA - 1));
            CHECK(slices == __builtin_popcount(taken & (MIG_MEDIA - 1)));
        }
    }
}
