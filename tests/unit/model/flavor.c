#include "base/err.h"
#include "model/job.h"
#include "tap.h"

TEST(a_shape_has_the_name_of_its_flavor)
{
    static const struct { struct shape shape; const char *model, *name; } rows[] = {
        { { .gpu.milli = 1000 }, "NVIDIA H200", "h200.1x" },
        { { .gpu.milli = 8000 }, "NVIDIA H100 80GB HBM3", "h100.8x" },
        { { .gpu.milli = 250 }, "NVIDIA H200", "h200.share-250" },
        { { .gpu.milli = 1000 }, "NVIDIA GeForce RTX 4090", "rtx4090.1x" },
        { { .gpu.milli = 2000 }, "NVIDIA A100-SXM4-80GB", "a100.2x" },
        { { .gpu.milli = 1000 }, "Simulated H200", "h200.1x" },
        { { .gpu = { .milli = 1000, .model = "L40S" } }, NULL, "l40s.1x" },
        { { .gpu.milli = 1000 }, NULL, "gpu.1x" },
        { { .gpu.milli = 1000 }, "", "gpu.1x" },
        { { .gpu = { .milli = 142, .mig = "1g.18gb" } }, "NVIDIA H200", "h200.mig-1g.18gb" },
        { { .cpu_milli = 4000, .mem_mib = 16384 }, NULL, "cpu.4x16" },
        { { .cpu_milli = 500, .mem_mib = 100 }, "NVIDIA H200", "cpu.1x1" },
        { { .cpu_milli = 1001, .mem_mib = 1025 }, NULL, "cpu.2x2" },
        { { .gpu.milli = 64000 }, "a-model-with-a-name-that-has-no-digit-and-does-not-end", "amodelwithanamethat.64x" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[48];
        flavor_of(&rows[i].shape, rows[i].model, out);
        if (!text_is(out, rows[i].name))
            printf("# %s, not %s\n", out, rows[i].name);
        CHECK(text_is(out, rows[i].name));
    }
}

TEST(a_flavor_is_read_as_it_is_written)
{
    static const char *const names[] = { "h200.1x", "h200.8x", "h200.share-250", "h200.mig-1g.18gb", "cpu.4x16", "gpu.2x", "rtx4090.share-10" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct shape s;
        struct err err = { 0 };
        char out[48];
        CHECK(flavor_parse(names[i], &s, &err) && text_is(flavor_of(&s, NULL, out), names[i]));
    }
    struct shape s;
    struct err err = { 0 };
    CHECK(flavor_parse("gpu.2x", &s, &err) && s.gpu.milli == 2000 && !s.gpu.model[0]);
    CHECK(flavor_parse("cpu.4x16", &s, &err) && s.cpu_milli == 4000 && s.mem_mib == 16384 && !s.gpu.milli);
}

TEST(what_is_not_a_flavor_is_refused)
{
    static const char *const names[] = { "", "h200", "h200.", ".1x", "h200.0x", "h200.65x", "h200.share-0", "h200.share-1000", "h200.x", "h200.1xx",
        "cpu.4", "cpu.0x1", "cpu.4x", "cpu.99999x1", "h 200.1x", "h200.mig-9g.1gb", "h200.mig-1g", "h200.99999999999999999999999x",
        "a-name-that-is-much-too-long-for-a-model.1x" };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct shape s = { .cpu_milli = 5 };
        struct err err = { 0 };
        CHECK(!flavor_parse(names[i], &s, &err) && text_is(err.field, "flavor") && s.cpu_milli == 5);
    }
}
