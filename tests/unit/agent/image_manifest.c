#include "agent/image_manifest.h"
#include "tap.h"
#include <stdio.h>

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"

TEST(an_index_names_the_manifest_of_this_machine)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = {0};
    const char *m = NULL;
    CHECK(image_index_parse(SLICE("{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"" D1 "\",\"size\":3}]}"), "amd64", mem, &m, &err) && text_is(m, D1));
    CHECK(image_index_parse(SLICE("{\"manifests\":[{\"digest\":\"" D1 "\",\"platform\":{\"architecture\":\"arm64\"}},{\"digest\":\"" D2 "\",\"platform\":{\"architecture\":\"amd64\"}}]}"),
                            "amd64", mem, &m, &err) && text_is(m, D2));
}

TEST(a_manifest_tells_its_config_and_layers)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = {0};
    struct image_manifest m;
    CHECK(image_manifest_parse(SLICE("{\"config\":{\"digest\":\"" D1 "\",\"size\":77,\"x\":1},\"layers\":[{\"digest\":\"" D2 "\"},{\"digest\":\"" D1 "\"}]}"), mem, &m, &err));
    CHECK(text_is(m.config, D1) && m.config_bytes == 77 && m.layers.count == 2 && text_is(m.layers.at[0], D2));
}

TEST(a_config_tells_what_to_run)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = {0};
    struct image_config c;
    CHECK(image_config_parse(SLICE("{\"architecture\":\"amd64\",\"config\":{\"Entrypoint\":[\"/go\"],\"Cmd\":null,\"Env\":[\"A=1\",\"B=\"],\"WorkingDir\":\"/w\",\"User\":\"\",\"Volumes\":{}}}"), mem, &c, &err));
    CHECK(c.entrypoint.count == 1 && c.cmd.count == 0 && c.env.count == 2 && text_is(c.workdir, "/w") && c.user == NULL);
    CHECK(image_config_parse(SLICE("{}"), mem, &c, &err) && c.entrypoint.count == 0 && c.workdir == NULL);
}

TEST(what_is_not_an_image_is_refused_with_a_sentence)
{
    static const struct { int what; const char *text, *says; } bad[] = {
        { 0, "", "index" }, { 0, "[]", "not an object" }, { 0, "{}", "no manifest" }, { 0, "{\"manifests\":[{\"digest\":\"sha256:../../etc/passwd\"}]}", "sha256" },
        { 0, "{\"manifests\":[7]}", "sha256" }, { 0, "{\"manifests\":[]}", "no manifest" },
        { 1, "{}", "no config" }, { 1, "{\"config\":{\"digest\":\"" D1 "\",\"size\":-1},\"layers\":[]}", "size" },
        { 1, "{\"config\":{\"digest\":\"" D1 "\",\"size\":99999999999},\"layers\":[]}", "size" },
        { 1, "{\"config\":{\"digest\":\"" D1 "\",\"size\":1}}", "layers" }, { 1, "{\"config\":{\"digest\":\"" D1 "\",\"size\":1},\"layers\":[{}]}", "layer" },
        { 2, "{\"config\":{\"Cmd\":\"sh\"}}", "Cmd" }, { 2, "{\"config\":{\"Cmd\":[1]}}", "Cmd" }, { 2, "{\"config\":{\"Env\":[\"NOEQUALS\"]}}", "Env" },
        { 2, "{\"config\":{\"Env\":[\"=x\"]}}", "Env" }, { 2, "{\"config\":{\"WorkingDir\":\"rel\"}}", "WorkingDir" }, { 2, "nonsense", "config" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct err err = {0};
        const char *m = NULL;
        struct image_manifest manifest;
        struct image_config config;
        bool ok = bad[i].what == 0 ? image_index_parse(SLICE(bad[i].text), "amd64", mem, &m, &err)
                : bad[i].what == 1 ? image_manifest_parse(SLICE(bad[i].text), mem, &manifest, &err) : image_config_parse(SLICE(bad[i].text), mem, &config, &err);
        CHECK(!ok && err.rc != RC_OK && strstr(err.text, bad[i].says));
        if (!strstr(err.text, bad[i].says))
            printf("# %zu: %s\n", i, err.text);
    }
}

TEST(a_config_with_too_many_words_is_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str s = {0};
    struct err err = {0};
    struct image_config c;
    str_text(&s, "{\"config\":{\"Cmd\":[\"a\"");
    for (int i = 0; i < IMAGE_WORDS_MAX; i++)
        str_text(&s, ",\"a\"");
    str_text(&s, "]}}");
    CHECK(!image_config_parse((struct slice){ s.at, s.len }, mem, &c, &err) && err.rc == RC_TOO_LARGE);
}
