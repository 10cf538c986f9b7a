#include "pair.h"
#include "base/fault.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct place { struct os *os; struct arena *mem; char dir[64], file[96]; };
static struct place *place_new(void)
{
    struct err err = { 0 };
    struct place *p = calloc(1, sizeof *p);
    p->os = os_real_new(&err);
    p->mem = arena_new();
    snprintf(p->dir, sizeof p->dir, "/tmp/arcus-file-XXXXXX");
    CHECK(mkdtemp(p->dir));
    snprintf(p->file, sizeof p->file, "%s/it", p->dir);
    return p;
}
static void place_done(struct place *p)
{
    struct err err = { 0 };
    /* nothing else was left in it */
    CHECK(file_remove(p->os, p->file, &err) && rmdir(p->dir) == 0);
    os_free(p->os);
    arena_free(p->mem);
    free(p);
}
static bool holds(struct place *p, const char *text)
{
    struct err err = { 0 };
    struct slice s;
    return file_read(p->os, p->file, 1 << 20, p->mem, &s, &err) && s.len == strlen(text)
        && memcmp(s.at, text, s.len) == 0;
}

TEST(what_a_killed_replacement_left_is_tidied_away_and_nothing_else)
{
    struct place *p = place_new();
    struct err err = { 0 };
    char left[128];
    snprintf(left, sizeof left, "%s/.tmp-0123456789abcdef", p->dir);
    CHECK(file_replace(p->os, p->file, SLICE("kept"), 0600, &err));
    CHECK(file_append(p->os, left, SLICE("half"), false, &err) && access(left, F_OK) == 0);
    dir_tidy(p->os, p->dir);
    CHECK(access(left, F_OK) == -1 && holds(p, "kept"));
    dir_tidy(p->os, "/no/such/dir");
    place_done(p);
}

TEST(a_file_is_replaced_whole_with_its_mode)
{
    struct place *p = place_new();
    struct err err = { 0 };
    struct stat st;
    mode_t before = umask(077);
    CHECK(file_replace(p->os, p->file, SLICE("old"), 0644, &err) && holds(p, "old"));
    umask(before);
    CHECK(stat(p->file, &st) == 0 && (st.st_mode & 07777) == 0644);
    CHECK(file_replace(p->os, p->file, SLICE("newer"), 0600, &err) && holds(p, "newer"));
    CHECK(stat(p->file, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(file_replace(p->os, p->file, (struct slice){ NULL, 0 }, 0600, &err) && holds(p, ""));
    CHECK(!file_replace(p->os, "/no/such/dir/x", SLICE("x"), 0600, &err) && err.rc == RC_NOT_FOUND);
    place_done(p);
}

TEST(whatever_step_of_replacing_fails_the_file_is_old_or_new)
{
    struct place *p = place_new();
    struct err err = { 0 };
    CHECK(file_replace(p->os, p->file, SLICE("old"), 0600, &err));
    int nth = 1;
    for (;; nth++) {
        fault_arm(nth);
        bool ok = file_replace(p->os, p->file, SLICE("new"), 0600, &err);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && (holds(p, "new") || (!ok && holds(p, "old"))));
        struct texts names;
        CHECK(dir_list(p->os, p->dir, p->mem, &names, &err) && names.count == 1);
        if (!fired)
            break;
        CHECK(file_replace(p->os, p->file, SLICE("old"), 0600, &err));
    }
    CHECK(nth == 6);
    place_done(p);
}

TEST(whatever_step_of_appending_fails_no_half_record_stays)
{
    struct place *p = place_new();
    struct err err = { 0 };
    CHECK(file_append(p->os, p->file, SLICE("a\n"), true, &err));
    for (int nth = 1;; nth++) {
        fault_arm(nth);
        bool ok = file_append(p->os, p->file, SLICE("b\n"), true, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && (holds(p, "a\nb\n") || (!ok && holds(p, "a\n"))));
        if (!fired)
            break;
        CHECK(file_replace(p->os, p->file, SLICE("a\n"), 0600, &err));
    }
    place_done(p);
}

TEST(reading_is_bounded_and_works_on_proc)
{
    struct place *p = place_new();
    struct err err = { 0 };
    struct slice s;
    CHECK(!file_read(p->os, p->file, 10, p->mem, &s, &err) && err.rc == RC_NOT_FOUND);
    CHECK(file_replace(p->os, p->file, SLICE("0123456789"), 0600, &err));
    CHECK(file_read(p->os, p->file, 10, p->mem, &s, &err) && s.len == 10 && s.at[10] == 0);
    CHECK(!file_read(p->os, p->file, 9, p->mem, &s, &err) && err.rc == RC_TOO_LARGE);
    CHECK(file_read(p->os, "/proc/self/status", 1 << 16, p->mem, &s, &err) && s.len > 100);
    CHECK(!file_read(p->os, "/proc/self/status", 100, p->mem, &s, &err) && err.rc == RC_TOO_LARGE);
    CHECK(!file_read(p->os, "/tmp", 100, p->mem, &s, &err));
    place_done(p);
}

TEST(folders_are_made_with_their_parents_and_listed_sorted)
{
    struct place *p = place_new();
    struct err err = { 0 };
    char deep[160];
    struct texts names;
    snprintf(deep, sizeof deep, "%s/a/b", p->dir);
    CHECK(dir_make(p->os, deep, 0700, &err) && dir_make(p->os, deep, 0700, &err));
    CHECK(file_replace(p->os, p->file, SLICE("x"), 0600, &err));
    CHECK(!dir_make(p->os, p->file, 0700, &err) && err.rc == RC_CONFLICT);
    char temp[160];
    snprintf(temp, sizeof temp, "%s/.tmp-0011", p->dir);
    CHECK(file_append(p->os, temp, SLICE("x"), false, &err));
    CHECK(dir_list(p->os, p->dir, p->mem, &names, &err) && names.count == 2);
    CHECK(text_is(names.at[0], "a") && text_is(names.at[1], "it"));
    CHECK(dir_list(p->os, deep, p->mem, &names, &err) && names.count == 0);
    CHECK(!dir_list(p->os, "/no/such", p->mem, &names, &err) && err.rc == RC_NOT_FOUND);
    CHECK(file_remove(p->os, temp, &err) && file_remove(p->os, temp, &err));
    CHECK(file_remove(p->os, deep, &err));
    snprintf(deep, sizeof deep, "%s/a", p->dir);
    CHECK(file_remove(p->os, deep, &err));
    place_done(p);
}

TEST(the_disk_reads_what_was_written_and_fails_when_told)
{
    struct place *p = place_new();
    struct err err = { 0 };
    CHECK(!disk_open(p->os, p->file, false, &err) && err.rc == RC_NOT_FOUND);
    CHECK(!disk_exists(p->os, p->file));
    struct disk_file *f = disk_open(p->os, p->file, true, &err);
    char buf[16] = "";
    size_t got = 99;
    CHECK(f && disk_exists(p->os, p->file) && disk_size(f) == 0);
    CHECK(disk_write(f, 5, "hello", 5) && disk_size(f) == 10 && disk_sync(f));
    CHECK(disk_read(f, 0, buf, 16, &got) && got == 10 && memcmp(buf, "\0\0\0\0\0hello", 10) == 0);
    CHECK(disk_read(f, 10, buf, 1, &got) && got == 0);
    CHECK(disk_truncate(f, 6) && disk_size(f) == 6);
    fault_arm(1);
    CHECK(!disk_write(f, 0, "x", 1));
    fault_arm(1);
    CHECK(!disk_read(f, 0, buf, 1, &got));
    fault_arm(1);
    CHECK(!disk_sync(f));
    fault_arm(1);
    CHECK(!disk_truncate(f, 0));
    fault_arm(1);
    CHECK(!disk_remove(p->os, p->file) && disk_exists(p->os, p->file) && disk_size(f) == 6);
    disk_close(f);
    disk_close(NULL);
    CHECK(disk_remove(p->os, p->file) && disk_remove(p->os, p->file)
          && !disk_exists(p->os, p->file));
    place_done(p);
}

TEST(a_file_is_renamed_over_another_or_stays)
{
    struct place *p = place_new();
    struct err err = { 0 };
    char other[128];
    snprintf(other, sizeof other, "%s/other", p->dir);
    CHECK(file_replace(p->os, p->file, SLICE("old"), 0600, &err));
    CHECK(file_replace(p->os, other, SLICE("new"), 0600, &err));
    fault_arm(1);
    CHECK(!disk_rename(p->os, other, p->file) && holds(p, "old"));
    fault_arm(0);
    CHECK(disk_rename(p->os, other, p->file) && holds(p, "new") && !disk_exists(p->os, other));
    CHECK(!disk_rename(p->os, other, p->file) && holds(p, "new"));
    place_done(p);
}
