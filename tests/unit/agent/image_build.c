/* What goes to helpers, without any: names and digests. Building itself is in image.c and nth.c. */
#include "agent/image.h"
#include "os/sim.h"
#include "tap.h"
#include <string.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(only_a_name_that_cannot_be_a_flag_or_a_path_upwards_is_given_to_a_helper)
{
    static const struct { const char *name; bool good; } rows[] = {
        { "debian", true }, { "registry.example.org:5000/team/app:1.2-rc_3", true }, { "app@sha256:" HEX, true }, { "A/b", true },
        { "", false }, { "-v", false }, { "--version", false }, { "a b", false }, { "a\nb", false }, { "a;b", false }, { "$(x)", false },
        { "a/../b", false }, { "..", false }, { "a'b", false }, { "caf\xc3\xa9", false },
    };
    char large[600];
    struct err err = { 0 };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CHECK(image_reference_ok(rows[i].name, &err) == rows[i].good);
        CHECK(rows[i].good || text_is(err.field, "image"));
    }
    CHECK(!image_reference_ok(NULL, &err));
    memset(large, 'a', sizeof large);
    large[512] = 0;
    CHECK(image_reference_ok(large, &err));
    large[512] = 'a', large[513] = 0;
    CHECK(!image_reference_ok(large, &err));
}

TEST(an_image_is_pulled_by_its_digest_and_a_port_is_no_tag)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const struct { const char *name, *exact; } rows[] = {
        { "debian", "debian@sha256:" HEX },
        { "debian:12", "debian@sha256:" HEX },
        { "host:5000/app", "host:5000/app@sha256:" HEX },
        { "host:5000/team/app:1", "host:5000/team/app@sha256:" HEX },
        { "host:5000/app@sha256:ff", "host:5000/app@sha256:" HEX },
        { "app:1@sha256:ff", "app@sha256:" HEX },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(text_is(image_exact(rows[i].name, "sha256:" HEX, mem), rows[i].exact));
}

TEST(a_name_with_a_digest_asks_nobody_what_it_stands_for)
{
    AUTO(sim_free) struct sim *sim = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    const char *digest = NULL;
    struct os *os = sim_machine(sim, "n1");     /* which has no skopeo */
    CHECK(image_resolve(os, "host:1/app@sha256:" HEX, mem, &digest, &err) && text_is(digest, "sha256:" HEX));
    CHECK(!image_resolve(os, "app@sha256:12", mem, &digest, &err) && !image_resolve(os, "app@md5:" HEX, mem, &digest, &err));
    CHECK(!image_resolve(os, "app:1", mem, &digest, &err) && err.text[0]);
}
