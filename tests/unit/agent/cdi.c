#include "agent/cdi.h"
#include "tap.h"
#include <stdlib.h>

static const char good_json[]
    = "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia0\","
      "\"hostPath\":\"/dev/nvidia3\",\"type\":\"c\",\"major\":195,\"minor\":3,\"fileMode\":438,\"permissions\":\"rw\",\"uid\":0,\"gid\":44}]}},{\"name\":\"all\"}],"
      "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"],\"mounts\":[{\"hostPath\":\"/usr/bin/nvidia-smi\",\"containerPath\":\"/usr/bin/nvidia-smi\","
      "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}],\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-cdi-hook\",\"args\":[\"nvidia-cdi-hook\","
      "\"create-symlinks\",\"--link\",\"libcuda.so.1::/usr/lib/libcuda.so\"]}],\"additionalGids\":[44]}}";

static bool parse(const char *file, const char *text, struct arena *mem, struct cdi_spec *out, struct err *err)
{
    *err = (struct err){ 0 };
    return cdi_parse(file, SLICE(text), mem, out, err);
}

TEST(a_spec_is_read_as_json_and_as_yaml)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct cdi_spec s = { 0 };
    struct err err;
    CHECK(parse("/etc/cdi/n.json", good_json, mem, &s, &err));
    const struct cdi_node *n = cdi_find(&s, "0")->edits.nodes.at;
    const struct cdi_mount *m = s.edits.mounts.at;
    CHECK(text_is(s.kind, "nvidia.com/gpu") && s.devices.count == 2 && text_is(n->host, "/dev/nvidia3") && n->major == 195 && n->minor == 3 && n->mode == 0666);
    CHECK(text_is(m->path, "/usr/bin/nvidia-smi") && s.edits.env.count == 1 && s.edits.hooks.count == 1 && !cdi_find(&s, "1"));
    CHECK(parse("n.yaml",
                "---\ncdiVersion: 0.3.0\nkind: amd.com/gpu\ndevices:\n- name: \"0\"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/kfd\n    - path: /dev/dri/renderD128\n",
                mem, &s, &err));
    CHECK(cdi_find(&s, "0")->edits.nodes.count == 2 && text_is(s.file, "n.yaml"));
}

TEST(what_is_not_known_is_refused_with_file_and_field)
{
    static const struct { const char *text, *says; } bad[] = {
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/x\",\"colour\":1}]}}]}", "colour" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\"}],\"netDevices\":[]}", "netDevices" },
        { "{\"cdiVersion\":\"0.2.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\"}]}", "cdiVersion" },
        { "{\"cdiVersion\":\"0.9.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\"}]}", "cdiVersion" },
        { "{\"cdiVersion\":\"0.5.0x\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\"}]}", "cdiVersion" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"abc\",\"devices\":[{\"name\":\"0\"}]}", "kind" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[]}", "devices" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\"},{\"name\":\"0\"}]}", "twice" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"a b\"}]}", "name" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/etc/x\"}]}}]}", "deviceNodes.path" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/../etc\"}]}}]}", "deviceNodes.path" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/x\",\"type\":\"p\"}]}}]}", "type" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"mounts\":[{\"hostPath\":\"x\",\"containerPath\":\"/y\"}]}}]}", "hostPath" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"mounts\":[{\"hostPath\":\"/x\",\"containerPath\":\"/y/../z\"}]}}]}", "containerPath" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"mounts\":[{\"hostPath\":\"/x\",\"containerPath\":\"/y\",\"type\":\"tmpfs\"}]}}]}", "mounts.type" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"mounts\":[{\"hostPath\":\"/x\",\"containerPath\":\"/y\",\"options\":[\"upperdir=/\"]}]}}]}", "options" },
        { "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[{\"name\":\"0\",\"containerEdits\":{\"env\":[\"no equals\"]}}]}", "env" },
        { "[1]", "" },
        { "", "" },
    };
    AUTO(arena_free) struct arena *mem = arena_new();
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct cdi_spec s = { 0 };
        struct err err;
        bool refused = !parse("/etc/cdi/bad.json", bad[i].text, mem, &s, &err) && text_starts(err.text, "/etc/cdi/bad.json") && strstr(err.text, bad[i].says) && !s.kind;
        CHECK(refused);
        if (!refused)
            printf("# %s: %s\n", bad[i].text, err.text);
    }
}

TEST(sizes_of_a_spec_are_bounded)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct cdi_spec s = { 0 };
    struct err err = { 0 };
    str_text(&text, "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"devices\":[");
    for (int i = 0; i <= CDI_DEVICES; i++)
        str_printf(&text, "%s{\"name\":\"%d\"}", i ? "," : "", i);
    str_text(&text, "]}");
    CHECK(!cdi_parse("x.json", (struct slice){ text.at, text.len }, mem, &s, &err) && strstr(err.text, "devices"));
    while (text.len <= CDI_BYTES)
        str_text(&text, "                                                                ");
    CHECK(!cdi_parse("x.json", (struct slice){ text.at, text.len }, mem, &s, &err) && err.rc == RC_TOO_LARGE);
}

static bool effect_of(const char *path, const char **args, size_t count, struct arena *mem, struct cdi_effect *e, struct err *err)
{
    *err = (struct err){ 0 };
    return cdi_hook_effect(&(struct cdi_hook){ .path = path, .args = { args, count } }, mem, e, err);
}

TEST(the_effect_of_well_known_hooks_is_known_and_no_other_hook_is_let_pass)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct cdi_effect e = { 0 };
    struct err err;
    const char *links[] = { "nvidia-ctk", "hook", "create-symlinks", "--link", "libcuda.so.1::/usr/lib/libcuda.so", "--link=a::/b" };
    CHECK(effect_of("/usr/bin/nvidia-ctk", links, 6, mem, &e, &err) && e.links.count == 2 && text_is(e.links.at[0].key, "/usr/lib/libcuda.so")
          && text_is(e.links.at[0].value, "libcuda.so.1"));
    const char *cache[] = { "nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64", "--folder", "/usr/lib64/vdpau" };
    CHECK(effect_of("/usr/bin/nvidia-cdi-hook", cache, 6, mem, &e, &err) && e.folders.count == 2 && text_is(e.folders.at[1], "/usr/lib64/vdpau"));
    const char *compat[] = { "nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=580.1" };
    CHECK(effect_of("/usr/bin/nvidia-cdi-hook", compat, 3, mem, &e, &err) && !e.links.count && !e.folders.count);
    const char *other[] = { "nvidia-cdi-hook", "run-this", "/bin/sh" };
    CHECK(!effect_of("/usr/bin/nvidia-cdi-hook", other, 3, mem, &e, &err) && strstr(err.text, "run-this") && strstr(err.text, "hooks are not run"));
    CHECK(!effect_of("/usr/bin/sh", cache, 6, mem, &e, &err) && strstr(err.text, "/usr/bin/sh"));
    CHECK(!effect_of("/usr/bin/nvidia-cdi-hook", other, 0, mem, &e, &err) && !effect_of("/usr/bin/nvidia-ctk", cache, 2, mem, &e, &err));
    const char *odd[] = { "nvidia-cdi-hook", "create-symlinks", "--link", "x::../../etc/passwd" };
    CHECK(!effect_of("/usr/bin/nvidia-cdi-hook", odd, 4, mem, &e, &err) && strstr(err.text, "makes no sense"));
}

TEST(a_plain_path_leads_nowhere_else)
{
    static const char *const good[] = { "/dev/nvidia0", "/a", "/a/.b/c..d" }, *const bad[] = { "", "/", "a", "/a/", "/a//b", "/a/../b", "/..", "/.", "/a/./b", "/a\nb" };
    for (size_t i = 0; i < COUNT(good); i++)
        CHECK(path_is_plain(good[i]));
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!path_is_plain(bad[i]));
    CHECK(!path_is_plain(NULL));
}
