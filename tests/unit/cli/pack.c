/* pack.c - local trees as tar: the same bytes for the same tree, no link followed, what is to be
 * left out left out. */
#include "cli_test.h"
#include "base/fault.h"
#include "cli/pack.h"
#include "wire/digest.h"
#include "wire/tar.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool add(void *arg, const char *at, size_t n, struct err *err)
{
    (void)err;
    str_put(arg, at, n);
    return true;
}

static bool packed(const char *path, const struct pack_how *how, struct str *out, struct err *err)
{
    str_clear(out);
    return pack(path, how, &(struct sink){ add, out }, err);
}

static bool list_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    static const char kinds[]
        = { [TAR_FILE] = 'f', [TAR_DIR] = 'd', [TAR_SYMLINK] = 'l', [TAR_HARDLINK] = 'h' };
    (void)err;
    str_printf(arg, "%c %s%s%s %o %lld\n", kinds[e->type], e->name,
               e->type == TAR_SYMLINK ? " > " : "", e->type == TAR_SYMLINK ? e->target : "",
               e->mode, (long long)e->mtime_s);
    return true;
}
static bool no_data(void *arg, const char *at, size_t n, struct err *err)
{
    return (void)arg, (void)at, (void)n, (void)err, true;
}
static bool no_end(void *arg, struct err *err) { return (void)arg, (void)err, true; }

static bool listed(const struct str *tar, struct str *out)
{
    static const struct tar_events events = { list_entry, no_data, no_end };
    AUTO(tar_reader_free) struct tar_reader *r = tar_reader_new(&events, out);
    struct err err;
    str_clear(out);
    return tar_feed(r, tar->at, tar->len, &err) && tar_complete(r);
}

static void folder(struct stage *s, const char *name)
{
    if (mkdir(stage_path(s, name), 0755) != 0)
        abort();
}

TEST(equal_trees_give_equal_bytes)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str one = { 0 }, two = { 0 }, list = { 0 };
    struct err err = { 0 };
    static const struct pack_how how = { .same = true, .ignore = true };
    folder(&s, "a"), folder(&s, "a/sub"), stage_write(&s, "a/z", "zz"),
        stage_write(&s, "a/sub/x", "xx"), stage_write(&s, "a/b", "bb");
    folder(&s, "c"), stage_write(&s, "c/b", "bb"), folder(&s, "c/sub"),
        stage_write(&s, "c/sub/x", "xx"), stage_write(&s, "c/z", "zz");
    chmod(stage_path(&s, "a/z"), 0640), chmod(stage_path(&s, "a/b"), 0700),
        chmod(stage_path(&s, "c/b"), 0755);
    CHECK(packed(stage_path(&s, "a"), &how, &one, &err)
          && packed(stage_path(&s, "c"), &how, &two, &err));
    CHECK(one.len == two.len && memcmp(one.at, two.at, one.len) == 0);
    CHECK(listed(&one, &list)
          && text_is(list.at, "f b 755 0\nd sub 755 0\nf sub/x 644 0\nf z 644 0\n"));
    stage_write(&s, "c/z", "zy");
    CHECK(packed(stage_path(&s, "c"), &how, &two, &err) && memcmp(one.at, two.at, one.len) != 0);
}

TEST(the_size_is_told_before_a_byte_is_read)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 };
    struct err err = { 0 };
    int64_t size = 0;
    static const struct pack_how how = { .top = "t" };
    folder(&s, "a"), stage_write(&s, "a/one", "1"), stage_write(&s, "a/block", "x");
    CHECK(truncate(stage_path(&s, "a/block"), 512 * 7) == 0);
    CHECK(pack_size(stage_path(&s, "a"), &how, &size, &err)
          && packed(stage_path(&s, "a"), &how, &out, &err) && size == (int64_t)out.len);
}

TEST(links_are_sent_as_links_so_a_loop_is_no_trap)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 }, list = { 0 };
    struct err err = { 0 };
    static const struct pack_how how = { .same = true };
    folder(&s, "a"), folder(&s, "a/d");
    CHECK(symlink("..", stage_path(&s, "a/d/up")) == 0
          && symlink("/etc/passwd", stage_path(&s, "a/out")) == 0
          && symlink("self", stage_path(&s, "a/self")) == 0);
    CHECK(mkfifo(stage_path(&s, "a/pipe"), 0600) == 0);        /* left out, and not waited for */
    CHECK(packed(stage_path(&s, "a"), &how, &out, &err) && listed(&out, &list));
    CHECK(strstr(list.at, "d d ") && strstr(list.at, "l d/up > .. ")
          && strstr(list.at, "l out > /etc/passwd ") && strstr(list.at, "l self > self "));
    CHECK(!strstr(list.at, "pipe"));
    /* but the top is what the user named */
    CHECK(symlink("a", stage_path(&s, "door")) == 0);
    CHECK(packed(stage_path(&s, "door"), &how, &out, &err) && listed(&out, &list)
          && strstr(list.at, "d d "));
}

TEST(a_file_that_cannot_be_read_is_named)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 };
    struct err err = { 0 };
    static const struct pack_how how = { .same = true, .ignore = true };
    folder(&s, "a"), stage_write(&s, "a/private", "x"), chmod(s.folder, 0755),
        chmod(stage_path(&s, "a/private"), 0);
    bool root = geteuid() == 0;
    CHECK(!root || seteuid(65534) == 0);
    bool ok = packed(stage_path(&s, "a"), &how, &out, &err);
    CHECK(!root || seteuid(0) == 0);
    CHECK(!ok && strstr(err.text, "cannot read private") && strstr(err.text, ".arcusignore"));
    stage_write(&s, "a/.arcusignore", "private\n");
    CHECK(!root || seteuid(65534) == 0);
    ok = packed(stage_path(&s, "a"), &how, &out, &err);
    CHECK(!root || seteuid(0) == 0);
    CHECK(ok);
    CHECK(!packed(stage_path(&s, "none"), &how, &out, &err) && strstr(err.text, "none"));
    CHECK(!packed(stage_path(&s, "a/.arcusignore"), &how, &out, &err)
          && strstr(err.text, "is not a folder"));
    for (int nth = 1; nth < 3; nth++) {
        fault_arm(nth);
        stage_write(&s, "a/two", "x");
        CHECK(packed(stage_path(&s, "a"), &how, &out, &err) == !fault_fired());
        fault_arm(0);
    }
}

TEST(rules_of_what_is_left_out)
{
    static const char rules[]
        = "# comment\n*.log\nbuild/\n/top\ndata/*.bin\n!keep.log  \n\nx[ab]\n";
    CHECK(ignored(rules, "a.log", false) && ignored(rules, "deep/er/a.log", false)
          && !ignored(rules, "keep.log", false) && !ignored(rules, "deep/keep.log", false));
    CHECK(ignored(rules, "build", true) && ignored(rules, "x/build", true)
          && !ignored(rules, "build", false));
    CHECK(ignored(rules, "top", false) && !ignored(rules, "sub/top", false));
    CHECK(ignored(rules, "data/a.bin", false) && !ignored(rules, "data/sub/a.bin", false)
          && !ignored(rules, "other/data/a.bin", false));
    CHECK(ignored(rules, "xa", false) && !ignored(rules, "xc", false)
          && !ignored(rules, "# comment", false));
    CHECK(ignored(rules, ".git", true) && ignored(NULL, "sub/.git", true)
          && !ignored("", ".gitignore", false) && !ignored("!.git", ".git", true));
}

TEST(what_is_left_out_is_not_walked_into)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 }, list = { 0 };
    struct err err = { 0 };
    folder(&s, "a"), folder(&s, "a/.git"), stage_write(&s, "a/.git/HEAD", "x"), folder(&s, "a/out"),
        stage_write(&s, "a/out/big", "x");
    stage_write(&s, "a/main.py", "x"), stage_write(&s, "a/.arcusignore", "out/\n");
    CHECK(
        packed(stage_path(&s, "a"), &(struct pack_how){ .same = true, .ignore = true }, &out, &err)
        && listed(&out, &list));
    CHECK(text_is(list.at, "f .arcusignore 644 0\nf main.py 644 0\n"));
    CHECK(packed(stage_path(&s, "a"), &(struct pack_how){ .top = "n", .ignore = true }, &out, &err)
          && listed(&out, &list));
    CHECK(strstr(list.at, "d n 755") && strstr(list.at, "f n/main.py") && !strstr(list.at, "n/out")
          && !strstr(list.at, "n/.git/"));
    CHECK(packed(stage_path(&s, "a"), &(struct pack_how){ .top = "n" }, &out, &err)
          && listed(&out, &list) && strstr(list.at, "n/.git/HEAD"));
}

TEST(folders_nested_too_deep_are_refused)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str out = { 0 }, path = { 0 };
    struct err err = { 0 };
    str_text(&path, stage_path(&s, "a"));
    for (int i = 0; i < 210; i++) {
        mkdir(path.at, 0755);
        str_text(&path, "/d");
    }
    CHECK(!packed(stage_path(&s, "a"), &(struct pack_how){ .same = true }, &out, &err)
          && strstr(err.text, "nested deeper"));
}
