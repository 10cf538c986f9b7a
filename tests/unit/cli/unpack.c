/* unpack.c - a stream from a stranger writes where it was asked to, and nowhere else. */
#include "cli_test.h"
#include "base/fault.h"
#include "cli/pack.h"
#include "wire/tar.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void file_entry(struct str *tar, const char *name, unsigned mode, const char *text)
{
    struct tar_entry e = {
        .type = TAR_FILE, .name = name, .mode = mode, .size = (int64_t)strlen(text), .mtime_s = 1000
    };
    tar_header(tar, &e);
    str_text(tar, text);
    tar_pad(tar, e.size);
}

static void other_entry(struct str *tar, enum tar_type type, const char *name, const char *target)
{
    tar_header(tar,
               &(struct tar_entry){ .type = type, .name = name, .target = target, .mode = 0755 });
}

static bool unpacked(struct str *tar, const char *target, bool into, struct err *err)
{
    AUTO(unpack_free) struct unpack *u = NULL;
    tar_end(tar);
    if (!unpack_start(target, into, &u, err))
        return false;
    for (size_t i = 0; i < tar->len; i += 100)
        if (!unpack_feed(u, tar->at + i, MIN(100, tar->len - i), err))
            return false;
    return unpack_end(u, err);
}

static const char *text_at(struct stage *s, const char *name)
{
    struct slice text;
    struct err err;
    return file_read(s->c->os, stage_path(s, name), 1000, s->c->mem, &text, &err)
               ? arena_bytes(s->c->mem, text.at, text.len)
               : "";
}
static bool there(struct stage *s, const char *name)
{
    struct stat st;
    return lstat(stage_path(s, name), &st) == 0;
}

TEST(a_tree_arrives_under_the_name_it_was_asked_for)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str tar = { 0 };
    struct err err = { 0 };
    struct stat st;
    other_entry(&tar, TAR_DIR, "outputs", NULL);
    file_entry(&tar, "outputs/a/b", 04755, "hello");
    other_entry(&tar, TAR_SYMLINK, "outputs/link", "a/b");
    CHECK(unpacked(&tar, stage_path(&s, "mine"), false, &err));
    CHECK(text_is(text_at(&s, "mine/a/b"), "hello") && text_is(text_at(&s, "mine/link"), "hello")
          && !there(&s, "outputs"));
    /* no set-uid */
    CHECK(stat(stage_path(&s, "mine/a/b"), &st) == 0 && (st.st_mode & 07777) == 0755
          && st.st_mtim.tv_sec == 1000);
    AUTO(str_done) struct str bare = { 0 };
    file_entry(&bare, "./x", 0644, "1");
    file_entry(&bare, "d/y", 0644, "2");
    CHECK(unpacked(&bare, stage_path(&s, "all"), true, &err) && text_is(text_at(&s, "all/x"), "1")
          && text_is(text_at(&s, "all/d/y"), "2"));
}

TEST(a_single_file_takes_the_name_of_its_target_and_is_replaced)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str tar = { 0 };
    struct err err = { 0 };
    stage_write(&s, "here.txt", "much longer than what comes");
    file_entry(&tar, "there.txt", 0644, "new");
    CHECK(unpacked(&tar, stage_path(&s, "here.txt"), false, &err)
          && text_is(text_at(&s, "here.txt"), "new"));
}

TEST(nothing_is_written_outside)
{
    static const char *const bad[] = { "../up", "a/../../up", "/abs", "a//b", "..", "top/.." };
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int into = 0; into < 2; into++) {
            AUTO(stage_down) struct stage s = stage_up();
            AUTO(str_done) struct str tar = { 0 };
            struct err err = { 0 };
            mkdir(stage_path(&s, "in"), 0755);
            file_entry(&tar, bad[i], 0644, "x");
            bool ok = unpacked(&tar, stage_path(&s, into ? "in/all" : "in/top"), into, &err);
            if (ok)
                printf("# %s\n", bad[i]);
            CHECK(!ok && !there(&s, "up") && !there(&s, "in/up") && access("/abs", F_OK) != 0);
        }
}

TEST(a_link_is_never_written_through)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str tar = { 0 }, again = { 0 };
    struct err err = { 0 };
    mkdir(stage_path(&s, "outside"), 0755);
    other_entry(&tar, TAR_DIR, "top", NULL);
    other_entry(&tar, TAR_SYMLINK, "top/door", stage_path(&s, "outside"));
    file_entry(&tar, "top/door/evil", 0644, "x");
    CHECK(!unpacked(&tar, stage_path(&s, "in"), false, &err) && !there(&s, "outside/evil")
          && strstr(err.text, "not written through"));
    stage_write(&s, "precious", "mine");
    mkdir(stage_path(&s, "in2"), 0755);
    CHECK(symlink(stage_path(&s, "precious"), stage_path(&s, "in2/f")) == 0);
    file_entry(&again, "top/f", 0644, "theirs");
    CHECK(unpacked(&again, stage_path(&s, "in2"), false, &err)
          && text_is(text_at(&s, "precious"), "mine") && text_is(text_at(&s, "in2/f"), "theirs"));
}

TEST(hard_links_and_folders_in_the_place_of_files_are_refused)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str hard = { 0 }, clash = { 0 }, dir = { 0 };
    struct err err = { 0 };
    other_entry(&hard, TAR_HARDLINK, "top/h", "top/f");
    CHECK(!unpacked(&hard, stage_path(&s, "a"), false, &err) && strstr(err.text, "hard link"));
    mkdir(stage_path(&s, "b"), 0755), stage_write(&s, "b/x", "file");
    other_entry(&clash, TAR_DIR, "top/x", NULL);
    CHECK(!unpacked(&clash, stage_path(&s, "b"), false, &err)
          && text_is(text_at(&s, "b/x"), "file"));
    mkdir(stage_path(&s, "b/d"), 0755);
    file_entry(&dir, "top/d", 0644, "x");
    CHECK(!unpacked(&dir, stage_path(&s, "b"), false, &err) && there(&s, "b/d"));
}

TEST(half_a_stream_is_told_and_a_full_disk_too)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str tar = { 0 };
    struct err err = { 0 };
    struct unpack *u;
    file_entry(&tar, "f", 0644, "some bytes");
    CHECK(unpack_start(stage_path(&s, "f"), false, &u, &err)
          && unpack_feed(u, tar.at, tar.len, &err));
    CHECK(!unpack_end(u, &err) && strstr(err.text, "cut short"));
    unpack_free(u);
    fault_arm(1);
    bool ok = unpacked(&tar, stage_path(&s, "g"), false, &err);
    bool fired = fault_fired();
    fault_arm(0);
    CHECK(fired && !ok && strstr(err.text, "No space"));
    CHECK(!unpack_start("/nowhere/at/all", false, &u, &err));
}
