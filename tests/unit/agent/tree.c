#include "agent/tree.h"
#include "wire/tar.h"
#include "tap.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct place { char top[40]; int fd; };

static struct place place_make(void)
{
    struct place p = { "/tmp/arcus-tree-XXXXXX", -1 };
    CHECK(mkdtemp(p.top) != NULL);
    p.fd = open(p.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return p;
}

static void place_drop(struct place *p)
{
    struct err err = {0};
    close(p->fd);
    CHECK(tree_remove(p->top, &err));
    CHECK(access(p->top, F_OK) == -1);
}

static bool sh(const struct place *p, const char *script)
{
    char text[1024];
    snprintf(text, sizeof text, "cd %s && { %s; } 2>/dev/null", p->top, script);
    return system(text) == 0;
}

static bool put(void *arg, const char *at, size_t n, struct err *err) { (void)err; str_put(arg, at, n); return true; }

static bool receive(const struct place *p, const char *path, const struct str *tar, struct err *err)
{
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    *err = (struct err){0};
    return tree_receive(p->fd, path, -1, -1, &r, err) && tree_receive_feed(r, tar->at, tar->len, err) && tree_receive_end(r, err);
}

TEST(a_tree_goes_and_comes_back_the_same)
{
    struct place p = place_make();
    AUTO(str_done) struct str tar = {0};
    struct err err = {0};
    CHECK(sh(&p, "mkdir -p a/b/c && printf hello > a/f && head -c 100000 /dev/zero > a/b/big && ln -s ../nowhere a/l && chmod 750 a/b && mkfifo a/pipe && : > a/b/c/empty"));
    CHECK(tree_send(p.fd, "a", &(struct tree_sink){ put, &tar }, &err) && tar.len % TAR_BLOCK == 0);
    CHECK(receive(&p, "back/here", &tar, &err));
    CHECK(sh(&p, "rm a/pipe && diff -r --no-dereference a back/here/a && test \"$(stat -c %a back/here/a/b)\" = 750 && test \"$(readlink back/here/a/l)\" = ../nowhere"));
    str_clear(&tar);
    CHECK(tree_send(p.fd, "/a/f", &(struct tree_sink){ put, &tar }, &err) && receive(&p, "one", &tar, &err) && sh(&p, "test \"$(cat one/f)\" = hello"));
    str_clear(&tar);
    CHECK(tree_send(p.fd, "", &(struct tree_sink){ put, &tar }, &err) && receive(&p, "all", &tar, &err) && sh(&p, "test -f all/a/f"));
    place_drop(&p);
}

TEST(a_link_is_never_followed_out)
{
    struct place p = place_make();
    AUTO(str_done) struct str tar = {0};
    struct err err = {0};
    struct tree_sink sink = { put, &tar };
    CHECK(sh(&p, "mkdir in out && echo secret > out/key && ln -s ../out in/link && ln -s ../out/key in/file"));
    static const char *const bad[] = { "in/link/key", "in/../out", "../etc/passwd", "no/such", "..", "in/.." };
    for (size_t i = 0; i < COUNT(bad); i++) {
        err = (struct err){0};
        CHECK(!tree_send(p.fd, bad[i], &sink, &err) && err.rc != RC_OK);
    }
    str_clear(&tar);
    CHECK(tree_send(p.fd, "in", &sink, &err) && !memmem(tar.at, tar.len, "secret", 6));   /* links go as links */
    place_drop(&p);
}

static void entry(struct str *tar, enum tar_type type, const char *name, const char *target, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    tar_header(tar, &(struct tar_entry){ .type = type, .name = name, .target = target, .mode = 06755, .size = (int64_t)n });
    if (n) {
        str_put(tar, text, n);
        tar_pad(tar, (int64_t)n);
    }
}

TEST(an_archive_cannot_write_outside_its_folder)
{
    struct place p = place_make();
    AUTO(str_done) struct str tar = {0};
    struct err err = {0};
    CHECK(sh(&p, "mkdir in out && echo old > out/victim && ln -s ../out in/was-here"));
    entry(&tar, TAR_SYMLINK, "link", "../out", NULL);
    entry(&tar, TAR_FILE, "link/victim", NULL, "new");
    tar_end(&tar);
    CHECK(!receive(&p, "in", &tar, &err));
    str_clear(&tar);
    entry(&tar, TAR_FILE, "was-here/victim", NULL, "new");
    tar_end(&tar);
    CHECK(!receive(&p, "in", &tar, &err));
    str_clear(&tar);
    entry(&tar, TAR_HARDLINK, "hard", "../out/victim", NULL);
    entry(&tar, TAR_FILE, "hard", NULL, "new");
    tar_end(&tar);
    CHECK(!receive(&p, "in", &tar, &err));
    CHECK(!receive(&p, "in/was-here", &tar, &err) && !receive(&p, "../out", &tar, &err));
    CHECK(sh(&p, "test \"$(cat out/victim)\" = old && test $(stat -c %h out/victim) = 1"));
    place_drop(&p);
}

TEST(files_are_replaced_not_written_through)
{
    struct place p = place_make();
    AUTO(str_done) struct str tar = {0};
    struct err err = {0};
    CHECK(sh(&p, "mkdir in && echo old > other && ln -s ../other in/f && ln other in/g"));
    entry(&tar, TAR_FILE, "f", NULL, "new");
    entry(&tar, TAR_FILE, "g", NULL, "new");
    entry(&tar, TAR_FILE, "h", NULL, "same");
    entry(&tar, TAR_HARDLINK, "i", "h", NULL);
    tar_end(&tar);
    CHECK(receive(&p, "in", &tar, &err));
    CHECK(sh(&p, "test \"$(cat other)\" = old && test \"$(cat in/f in/g)\" = newnew && test ! -L in/f && test in/h -ef in/i && test \"$(stat -c %a in/f)\" = 755"));
    place_drop(&p);
}

TEST(a_stream_cut_short_is_told)
{
    struct place p = place_make();
    AUTO(str_done) struct str tar = {0};
    struct err err = {0};
    entry(&tar, TAR_FILE, "f", NULL, "some words");
    tar_end(&tar);
    for (size_t cut = 0; cut < tar.len - TAR_BLOCK; cut += 128) {
        struct str part = { tar.at, cut, 0 };
        CHECK(!receive(&p, "in", &part, &err));
    }
    CHECK(receive(&p, "in", &tar, &err));
    place_drop(&p);
}

TEST(removing_a_tree_leaves_what_its_links_point_to)
{
    struct place p = place_make();
    struct err err = {0};
    char path[64];
    CHECK(sh(&p, "mkdir -p gone/deep/deeper keep && echo x > keep/f && ln -s ../../keep gone/deep/l && ln -s ../keep/f gone/m && chmod 0 gone/deep/deeper && mkfifo gone/p"));
    snprintf(path, sizeof path, "%s/gone", p.top);
    CHECK(tree_remove(path, &err) && tree_remove(path, &err));
    CHECK(sh(&p, "test -f keep/f && test ! -e gone"));
    snprintf(path, sizeof path, "%s/link", p.top);
    CHECK(sh(&p, "ln -s keep link") && tree_remove(path, &err) && sh(&p, "test -f keep/f && test ! -L link"));
    snprintf(path, sizeof path, "%s/keep", p.top);
    CHECK(tree_bytes(path, 1 << 30) >= 2 && tree_bytes("/no/such", 5) == 0);
    place_drop(&p);
}

/* A tenant chooses the depth: it must cost us neither descriptors nor the end of the removal, and hide nothing. */
TEST(a_tree_of_any_depth_is_removed_and_hides_nothing)
{
    char top[] = "/tmp/arcus-deep-XXXXXX", path[64];
    struct err err = { 0 };
    CHECK(mkdtemp(top) != NULL);
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000 && fd != -1; i++) {
        bool ok = mkdirat(fd, "a", 0755) == 0 && (i % 500 || mkdirat(fd, "b", 0700) == 0);
        int next = ok ? openat(fd, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        close(fd);
        fd = next;
    }
    CHECK(fd != -1);
    int file = openat(fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file != -1 && write(file, path, sizeof path) == (ssize_t)sizeof path);
    close(file);
    close(fd);
    snprintf(path, sizeof path, "%s/.removed-1", top);      /* a name that we would use */
    CHECK(mkdir(path, 0755) == 0);
    CHECK(tree_bytes(top, 1 << 20) >= 1 << 20);
    CHECK(tree_remove(top, &err) && access(top, F_OK) == -1);
}
