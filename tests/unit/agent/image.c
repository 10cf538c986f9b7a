#include "containers.h"
#include "agent/image.h"
#include "agent/tree.h"
#include "wire/digest.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has(const char *text, const char *part)
{
    if (text && strstr(text, part))
        return true;
    printf("# in: %s\n", text ? text : "(nothing)");
    return false;
}

static bool sh(struct containers *c, const char *fmt, ...) PRINTF(2, 3);
static bool sh(struct containers *c, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool ok = system(containers_path(c, "exec >%s/sh.log 2>&1; %s", c->top, text)) == 0;
    if (!ok) {
        printf("# failed: %s\n", text);
        (void)!system(containers_path(c, "sed 's/^/# /' %s/sh.log", c->top));
    }
    return ok;
}

/* The archive as the server would have it: in DATA/blobs under its digest. */
static const char *as_blob(struct containers *c, const char *archive)
{
    struct slice bytes;
    struct err err = {0};
    char hex[DIGEST_HEX];
    if (!file_read(c->os, archive, 512 << 20, c->mem, &bytes, &err))
        return NULL;
    digest_sha256(bytes.at, bytes.len, hex);
    const char *digest = containers_path(c, "sha256:%s", hex);
    return sh(c, "cp %s %s/blobs/%s", archive, c->data, hex) ? digest : NULL;
}

static bool tools(void)
{
    bool here = access("/usr/bin/skopeo", X_OK) == 0 && access("/usr/bin/umoci", X_OK) == 0 && access("/bin/busybox", X_OK) == 0;
    if (!here)
        test_skip("skopeo, umoci and busybox are needed");
    return here;
}

/* A small image of busybox with a user of its own, as an OCI layout in TOP/layout and as both kinds of archive. */
static bool make_image(struct containers *c)
{
    return sh(c, "cd %s && mkdir -p root/bin root/etc && cp /bin/busybox root/bin/ && for a in sh id cat ls chown su touch stat mkdir grep setpriv; do ln -s busybox root/bin/$a; done"
                 " && printf 'root:x:0:0::/root:/bin/sh\\napp:x:1000:100::/home/app:/bin/sh\\n' > root/etc/passwd && printf 'users:x:100:\\nextra:x:200:app\\n' > root/etc/group && chown 1000:100 root/etc/group", c->top)
        && sh(c, "cd %s && umoci init --layout layout && umoci new --image layout:image && umoci unpack --image layout:image bundle && cp -a root/. bundle/rootfs/"
                 " && umoci repack --image layout:image bundle && umoci config --image layout:image --config.user app --config.env FROM=image --config.workingdir /home/app"
                 " --config.entrypoint sh --config.entrypoint -c --config.cmd 'id; pwd; echo $FROM $HOME; ls -ln /etc/group' && tar -C layout -cf oci.tar . && skopeo --insecure-policy copy oci:layout:image docker-archive:docker.tar:test:1", c->top);
}

TEST(an_imported_image_runs_as_its_config_says)
{
    struct containers c = {0};
    if (!tools() || !containers_open(&c))
        return;
    CHECK(make_image(&c));
    struct order *o = containers_order(&c, "mine", "");
    o->argv.count = 0;
    o->image_blob = as_blob(&c, containers_path(&c, "%s/oci.tar", c.top));
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_SUCCEEDED);
    CHECK(has(containers_log(&c, o->attempt, 'o'), "uid=1000(app) gid=100(users) groups=100(users),200(extra)\n/home/app\nimage /home/app\n-rw-r--r--    1 1000     100"));
    struct order *d = containers_order(&c, "docker", "echo from docker; id -u; touch /x || echo not root; touch /tmp/y && echo tmp");
    d->image_blob = as_blob(&c, containers_path(&c, "%s/docker.tar", c.top));
    s = containers_run(&c, d);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(containers_log(&c, d->attempt, 'o'), "from docker\n1000\nnot root\ntmp\n"));
    /* An entrypoint that owns its folder and then drops its user, as public images do. */
    struct order *drop = containers_order(&c, "docker", "mkdir -p /var/app && chown app:users /var/app && exec su app -c 'id -u; touch /var/app/f && stat -c %u /var/app/f'");
    drop->user = "root";
    drop->image_blob = d->image_blob;
    s = containers_run(&c, drop);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(containers_log(&c, drop->attempt, 0), "1000\n1000\n"));
    containers_close(&c);
}

TEST(what_is_not_an_image_is_told_as_such)
{
    struct containers c = {0};
    if (!tools() || !containers_open(&c))
        return;
    CHECK(sh(&c, "echo this is no image > %s/junk", c.top));
    struct order *o = containers_order(&c, "mine", "true");
    o->image_blob = as_blob(&c, containers_path(&c, "%s/junk", c.top));
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_IMAGE_NOT_FOUND && has(s->detail, "neither an OCI layout nor a docker archive"));
    s = containers_run(&c, containers_order(&c, "127.0.0.1:1/no/where:1", "true"));
    CHECK(s->outcome == OUTCOME_IMAGE_NOT_FOUND && has(s->detail, "does not answer"));
    s = containers_run(&c, containers_order(&c, "--version", "true"));
    CHECK(s->outcome == OUTCOME_IMAGE_NOT_FOUND && has(s->detail, "not a name of an image"));
    o = containers_order(&c, "gone", "true");
    o->image_blob = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    s = containers_run(&c, o);                  /* no server to fetch it from */
    CHECK(s->outcome == OUTCOME_NODE_FAULT);
    containers_close(&c);
}

/* A few kilobytes that unpack to many megabytes, and a layer that does not unpack: neither is the node's fault, and nothing stays. */
TEST(an_image_that_grows_too_large_or_does_not_unpack_leaves_nothing)
{
    struct containers c = {0};
    struct err err = {0};
    if (!tools() || !containers_open(&c))
        return;
    CHECK(make_image(&c));
    const char *folder = containers_path(&c, "%s/unpacked", c.top), *archive = containers_path(&c, "%s/bomb.tar", c.top);
    CHECK(sh(&c, "cd %s && umoci unpack --image layout:image bomb && head -c 200000000 /dev/zero > bomb/rootfs/zeros && umoci repack --image layout:bomb bomb"
                 " && mkdir only && skopeo --insecure-policy copy oci:layout:bomb oci:only:image && tar -C only -cf bomb.tar . && rm -rf bomb", c.top));
    CHECK(!image_build(c.os, archive, NULL, folder, 50 << 20, &err) && err.rc == RC_TOO_LARGE && has(err.text, "more than 50 MiB"));
    CHECK(sh(&c, "test ! -e %s && test ! -e %s.part", folder, folder));
    err = (struct err){0};
    CHECK(image_build(c.os, archive, NULL, folder, 500 << 20, &err));
    CHECK(sh(&c, "cd %s && echo x > x && ln x y && tar -cf layer.tar x y && tar --delete -f layer.tar x && umoci raw add-layer --image layout:image --tag broken layer.tar"
                 " && mkdir broken && skopeo --insecure-policy copy oci:layout:broken oci:broken:image && tar -C broken -cf broken.tar .", c.top));
    struct order *o = containers_order(&c, "mine", "true");
    o->image_blob = as_blob(&c, containers_path(&c, "%s/broken.tar", c.top));
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_IMAGE_NOT_FOUND && has(s->detail, "cannot be unpacked"));
    CHECK(sh(&c, "! ls -d %s/images/*.part", c.data));
    containers_close(&c);
}

/* ARCUS_TEST_CACHE is the folder that tests/flow/containers/debian-image filled. */
TEST(a_package_with_users_and_scripts_installs_in_a_debian_image)
{
    struct containers c = {0};
    const char *cache = getenv("ARCUS_TEST_CACHE");
    if (!cache) {
        test_skip("ARCUS_TEST_CACHE has no Debian image");
        return;
    }
    if (!tools() || !containers_open(&c))
        return;
    CHECK(sh(&c, "mkdir %s/work && cp %s/demo.deb %s/work/ && tar -C %s/work --format=ustar -cf %s/work.tar .", c.top, cache, c.top, c.top, c.top));
    struct order *o = containers_order(&c, "debian", "set -e; pwd; ls -ln demo.deb; dpkg -i demo.deb; cat /var/lib/demo/note; stat -c '%U %a' /var/lib/demo /usr/lib/demo/suid;"
                                                     "su demo -c /usr/lib/demo/who; id demo; dpkg -r demo; setpriv --reuid=demo --clear-groups --regid=demo id -un; touch here && echo workdir is writable");
    o->image_blob = as_blob(&c, containers_path(&c, "%s/debian.tar", cache));
    o->workdir = as_blob(&c, containers_path(&c, "%s/work.tar", c.top));
    o->disk_mib = 512;
    const struct task_status *s = containers_run(&c, o);
    const char *out = containers_log(&c, o->attempt, 0);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(out, "/workdir\n") && has(out, "made by demo\ndemo 2750\ndemo 4755\ndemo\n") && has(out, "workdir is writable"));
    containers_close(&c);
}

/* --- a registry */

static int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd != -1 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0;
    close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

TEST(images_come_from_a_registry_and_stay_when_it_goes)
{
    struct containers c = {0};
    if (access("/usr/bin/docker-registry", X_OK) != 0) {
        test_skip("docker-registry is needed");
        return;
    }
    if (!tools() || !containers_open(&c))
        return;
    int port = free_port();
    CHECK(make_image(&c));
    CHECK(sh(&c, "cd %s && printf 'version: 0.1\\nlog: {level: error}\\nstorage: {filesystem: {rootdirectory: %s/registry}}\\nhttp: {addr: \"127.0.0.1:%d\"}\\n' > registry.yml"
                 " && { /usr/bin/docker-registry serve registry.yml > registry.log 2>&1 & echo $! > registry.pid; }"
                 " && for i in 1 2 3 4 5 6 7 8 9; do skopeo --insecure-policy copy --dest-tls-verify=false oci:layout:image docker://127.0.0.1:%d/mine/app:1 && break; sleep 0.3; done",
             c.top, c.top, port, port));
    const char *image = containers_path(&c, "127.0.0.1:%d/mine/app:1", port);
    struct order *o = containers_order(&c, image, "echo pulled; id -u");
    const struct task_status *s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(containers_log(&c, o->attempt, 'o'), "pulled\n1000\n"));
    s = containers_run(&c, containers_order(&c, containers_path(&c, "127.0.0.1:%d/mine/app:2", port), "true"));
    CHECK(s->outcome == OUTCOME_IMAGE_NOT_FOUND && has(s->detail, "no such image"));
    CHECK(sh(&c, "kill $(cat %s/registry.pid)", c.top));
    CHECK(containers_reopen(&c));               /* what was in memory is gone; the registry too */
    o = containers_order(&c, image, "echo still here");
    s = containers_run(&c, o);
    CHECK(s->outcome == OUTCOME_SUCCEEDED && has(containers_log(&c, o->attempt, 'o'), "still here"));
    containers_close(&c);
}
