#include "base/err.h"
#include "model/job.h"
#include "tap.h"

TEST(every_spelling_of_gpus_is_understood)
{
    static const struct { const char *text; const char *model; int64_t milli, min, max; } rows[] = {
        { "2", "", 2000, 0, 0 },
        { "0", "", 0, 0, 0 },
        { "0.5", "", 500, 0, 0 },
        { "1.0", "", 1000, 0, 0 },
        { "64", "", 64000, 0, 0 },
        { "H100:8", "H100", 8000, 0, 0 },
        { "H200:0.5", "H200", 500, 0, 0 },
        { "H200", "H200", 1000, 0, 0 },
        { "8:H100", "H100", 8000, 0, 0 },
        { "nvidia-h100:1", "nvidia-h100", 1000, 0, 0 },
        { "nvidia:H100:2", "H100", 2000, 0, 0 },
        { "gpu:h100:8", "h100", 8000, 0, 0 },
        { "gpu:2", "", 2000, 0, 0 },
        { "40GB", "", 1000, 40960, 0 },
        { "24GB:2", "", 2000, 24576, 0 },
        { "24GB..80GB:2", "", 2000, 24576, 81920 },
        { "24GB..", "", 1000, 24576, 0 },
        { "..80GB:4", "", 4000, 0, 81920 },
        { "A100:40GB:2", "A100", 2000, 40960, 0 },
        { "3090Ti", "3090Ti", 1000, 0, 0 },
        { " 1", "", 1000, 0, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_ask a;
        struct err err = { 0 };
        bool ok = gpu_ask_parse(rows[i].text, &a, &err);
        if (!ok)
            printf("# %s: %s\n", rows[i].text, err.text);
        CHECK(ok && text_is(a.model, rows[i].model) && a.milli == rows[i].milli);
        CHECK(ok && a.mem_min_mib == rows[i].min && a.mem_max_mib == rows[i].max && a.share_mib == 0 && !a.mig[0]);
    }
}

TEST(what_is_not_a_wish_for_gpus_is_refused_with_the_fix)
{
    static const struct { const char *text, *says; } rows[] = {
        { "1.5", "less than 1 GPU, or for 2" },
        { "H200:2.25", "less than 1 GPU" },
        { "0.001", "at least 0.01" },
        { "0.33333", "three decimals" },
        { "65", "at most 64" },
        { "999999999999999999999", "not a number" },
        { "-1", "not understood" },
        { "", "empty" },
        { "all", "say how many" },
        { "1..2", "one number" },
        { "..", "one number" },
        { "24GB..12GB", "wrong way round" },
        { "24GB..x", "range of memory" },
        { "H100:A100", "two models" },
        { "1:2", "second count" },
        { "24GB:40GB", "second amount" },
        { "H100:", "one side" },
        { ":8", "one side" },
        { "gpu", "how many" },
        { "99999GB", "that much memory" },
        { "H100;rm", "not understood" },
        { "a-model-with-a-name-that-is-far-too-long-even-for-a-list-of-several-models:1", "too long" },
        { "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", "too long" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_ask a = { .milli = 77 };
        struct err err = { 0 };
        CHECK(!gpu_ask_parse(rows[i].text, &a, &err));
        if (!strstr(err.text, rows[i].says))
            printf("# %s: %s\n", rows[i].text, err.text);
        CHECK(strstr(err.text, rows[i].says) && text_is(err.field, "gpus") && err.rc == RC_BAD_INPUT);
        CHECK(a.milli == 77);
    }
}

static bool fits(const char *ask, const char *model, int64_t mib)
{
    struct gpu_ask a;
    struct err err = { 0 };
    return gpu_ask_parse(ask, &a, &err) && gpu_ask_fits(&a, model, mib);
}

TEST(a_model_is_found_by_its_words_without_case)
{
    CHECK(fits("1", "NVIDIA H200", 143771) && fits("h200", "NVIDIA H200", 143771) && fits("nvidia-h200", "NVIDIA H200", 143771));
    CHECK(fits("RTX4090", "NVIDIA GeForce RTX 4090", 24564) && fits("A100-80GB:1", "NVIDIA A100-SXM4-80GB", 81920));
    CHECK(fits("nvidia", "NVIDIA L4", 23034));
    CHECK(!fits("A10", "NVIDIA A100-SXM4-80GB", 81920) && !fits("H20", "NVIDIA H200", 143771) && !fits("L40", "NVIDIA L40S", 46068));
    CHECK(!fits("H200", "NVIDIA GH200 480GB", 97871) && !fits("H100", "", 0) && !fits("amd", "NVIDIA H200", 143771));
}

TEST(a_card_fits_the_memory_that_its_name_promises)
{
    CHECK(fits("80GB", "NVIDIA H100 80GB HBM3", 81559) && fits("48GB", "NVIDIA L40S", 46068) && fits("16GB", "Tesla T4", 15360));
    CHECK(fits("24GB..80GB", "NVIDIA L4", 23034) && fits("24GB..80GB", "NVIDIA H100 80GB HBM3", 81559));
    CHECK(!fits("80GB", "NVIDIA A100-SXM4-40GB", 40960) && !fits("24GB..80GB", "NVIDIA H200", 143771) && !fits("..16GB", "NVIDIA L4", 23034));
}

TEST(a_share_has_memory_in_proportion_unless_it_says_how_much)
{
    struct gpu_ask a = { .milli = 250 };
    CHECK(gpu_ask_mib(&a, 143771) == 35942);
    a.share_mib = 10240;
    CHECK(gpu_ask_mib(&a, 143771) == 10240 && gpu_ask_fits(&a, "any", 143771) && !gpu_ask_fits(&a, "any", 8192));
    a = (struct gpu_ask){ .milli = 4000 };
    CHECK(gpu_ask_mib(&a, 143771) == 143771);
}
