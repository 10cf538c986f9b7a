#include "sim_pair.h"
#include "base/fault.h"

static bool holds(struct os *os, const char *path, const char *text)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct slice s;
    return file_read(os, path, 1 << 20, mem, &s, &err) && s.len == strlen(text)
        && memcmp(s.at, text, s.len) == 0;
}

TEST(simulated_files_behave_like_real_ones)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    AUTO(arena_free) struct arena *mem = arena_new();
    struct os *os = sim_machine(w, "m"), *other = sim_machine(w, "n");
    struct err err = { 0 };
    struct texts names;
    struct slice s;
    CHECK(!file_replace(os, "/a/b/x", SLICE("1"), 0600, &err) && err.rc == RC_NOT_FOUND);
    CHECK(dir_make(os, "/a/b", 0700, &err) && dir_make(os, "/a/b", 0700, &err));
    CHECK(file_replace(os, "/a/b/x", SLICE("1"), 0600, &err) && holds(os, "/a/b/x", "1"));
    CHECK(!dir_make(os, "/a/b/x", 0700, &err) && err.rc == RC_CONFLICT);
    CHECK(file_append(os, "/a/b/log", SLICE("one\n"), false, &err));
    CHECK(file_append(os, "/a/b/log", SLICE("two\n"), true, &err)
          && holds(os, "/a/b/log", "one\ntwo\n"));
    CHECK(!file_read(os, "/a/b/log", 3, mem, &s, &err) && err.rc == RC_TOO_LARGE);
    CHECK(dir_list(os, "/a/b", mem, &names, &err) && names.count == 2
          && text_is(names.at[0], "log"));
    CHECK(dir_list(os, "/a", mem, &names, &err) && names.count == 1 && text_is(names.at[0], "b"));
    CHECK(dir_list(os, "/", mem, &names, &err) && names.count == 1 && text_is(names.at[0], "a"));
    CHECK(!dir_list(os, "/none", mem, &names, &err) && err.rc == RC_NOT_FOUND);
    CHECK(!file_remove(os, "/a/b", &err) && file_remove(os, "/a/b/x", &err));
    CHECK(file_remove(os, "/a/b/x", &err) && !file_read(os, "/a/b/x", 9, mem, &s, &err));
    /* each machine has its own tree */
    CHECK(!file_read(other, "/a/b/log", 100, mem, &s, &err));
    CHECK(!file_read(os, "/a/b", 100, mem, &s, &err));
}

TEST(whatever_step_of_a_simulated_replace_fails_the_file_is_old_or_new)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    struct os *os = sim_machine(w, "m");
    struct err err = { 0 };
    int nth = 1;
    for (;; nth++) {
        CHECK(file_replace(os, "/f", SLICE("old"), 0600, &err));
        fault_arm(nth);
        bool ok = file_replace(os, "/f", SLICE("new"), 0600, &err), fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && (holds(os, "/f", "new") || (!ok && holds(os, "/f", "old"))));
        if (!fired)
            break;
    }
    CHECK(nth == 6);        /* the same steps as on a real disk */
}

TEST(a_crash_loses_only_what_was_not_synced)
{
    int lost = 0, kept = 0, torn = 0, gone = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        AUTO(sim_free) struct sim *w = sim_new(seed);
        struct os *os = sim_machine(w, "m");
        struct err err = { 0 };
        char page[4096], back[8192];
        size_t got = 0;
        struct disk_file *f = disk_open(os, "/db", true, &err);
        memset(page, 'a', sizeof page);
        CHECK(disk_write(f, 0, page, sizeof page) && disk_sync(f));
        memset(page, 'b', sizeof page);
        CHECK(disk_write(f, 0, page, sizeof page) && disk_write(f, 4096, page, sizeof page));
        CHECK(file_replace(os, "/durable", SLICE("yes"), 0600, &err));
        CHECK(file_append(os, "/log", SLICE("synced\n"), true, &err));
        CHECK(file_append(os, "/log", SLICE("maybe\n"), false, &err));
        CHECK(file_append(os, "/new", SLICE("maybe\n"), false, &err));
        sim_crash(w, os);
        os = sim_machine(w, "m");
        CHECK(holds(os, "/durable", "yes"));
        f = disk_open(os, "/db", false, &err);
        CHECK(f && disk_size(f) >= 4096 && disk_size(f) <= 8192
              && disk_read(f, 0, back, 8192, &got));
        int b = 0;
        for (size_t at = 0; at < 4096; at += 512) {
            bool whole = true;
            for (size_t i = 1; i < 512; i++)
                whole &= back[at + i] == back[at];
            CHECK(whole && (back[at] == 'a' || back[at] == 'b'));   /* a sector is old or new */
            b += back[at] == 'b';
        }
        lost += b == 0;
        kept += b == 8 && got == 8192;
        torn += b > 0 && b < 8;
        gone += !disk_exists(os, "/new");
        AUTO(arena_free) struct arena *mem = arena_new();
        struct slice s;
        CHECK(file_read(os, "/log", 100, mem, &s, &err) && s.len >= 7 && s.len <= 13);
        CHECK(memcmp(s.at, "synced\n", 7) == 0);
    }
    CHECK(lost > 20 && kept > 20 && torn > 20 && gone > 20);
}

TEST(what_was_synced_survives_any_number_of_writes_cuts_and_syncs)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        AUTO(sim_free) struct sim *w = sim_new(seed);
        struct os *os = sim_machine(w, "m");
        struct err err = { 0 };
        struct disk_file *f = disk_open(os, "/db", true, &err);
        char model[20000] = { 0 }, back[20000];
        size_t size = 0, got = 0;
        for (int i = 0; i < 40; i++) {
            size_t at = sim_chance(w, 10000), n = sim_chance(w, 3000) + 1;
            if (sim_chance(w, 4) == 0) {
                CHECK(disk_truncate(f, (int64_t)at));
                if (at < size)
                    memset(model + at, 0, size - at);
                size = at;
                continue;
            }
            memset(back, (int)('a' + i % 26), n);
            CHECK(disk_write(f, (int64_t)at, back, n));
            memcpy(model + at, back, n);
            size = MAX(size, at + n);
            if (sim_chance(w, 3) == 0)
                CHECK(disk_sync(f));
        }
        CHECK(disk_sync(f) && disk_size(f) == (int64_t)size);
        sim_crash(w, os);
        f = disk_open(sim_machine(w, "m"), "/db", false, &err);
        CHECK(f && disk_size(f) == (int64_t)size && disk_read(f, 0, back, sizeof back, &got));
        CHECK(got == size && memcmp(back, model, size) == 0);
    }
}

TEST(an_open_file_outlives_its_name_and_two_handles_see_the_same_bytes)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    struct os *os = sim_machine(w, "m");
    struct err err = { 0 };
    struct disk_file *f = disk_open(os, "/db", true, &err), *g = disk_open(os, "/db", false, &err);
    char c = 0;
    size_t got;
    CHECK(disk_write(f, 0, "x", 1) && disk_read(g, 0, &c, 1, &got) && got == 1 && c == 'x');
    CHECK(disk_remove(os, "/db") && !disk_exists(os, "/db") && disk_remove(os, "/db"));
    CHECK(disk_read(g, 0, &c, 1, &got) && got == 1 && disk_size(f) == 1);
    disk_close(f);
    disk_close(g);
    CHECK(!disk_open(os, "/db", false, &err) && err.rc == RC_NOT_FOUND);
    CHECK(!disk_open(os, "/none/db", true, &err));
    f = disk_open(os, "/db", true, &err);
    CHECK(!disk_write(f, -1, "x", 1) && !disk_truncate(f, -1) && disk_size(f) == 0);
    for (int nth = 1; nth <= 4; nth++) {
        fault_arm(nth);
        bool ok = disk_write(f, 0, "y", 1) && disk_sync(f) && disk_read(f, 0, &c, 1, &got)
            && disk_truncate(f, 1);
        CHECK(!ok && fault_fired());
    }
    fault_arm(0);
    disk_close(f);
}

struct changes { int count; char last[64]; };
static void on_change(void *arg, const char *name)
{
    struct changes *n = arg;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", name);
}

TEST(a_simulated_folder_tells_what_was_replaced_in_it)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    struct os *os = sim_machine(w, "m");
    struct err err = { 0 };
    struct changes n = { 0 };
    CHECK(!dir_watch(os, "/d", on_change, &n) && dir_make(os, "/d", 0700, &err));
    struct watch *watch = dir_watch(os, "/d", on_change, &n);
    CHECK(file_replace(os, "/d/exit", SLICE("0"), 0600, &err) && n.count == 0);
    CHECK(file_replace(os, "/elsewhere", SLICE("0"), 0600, &err));
    while (sim_step(w))
        ;
    CHECK(n.count == 1 && text_is(n.last, "exit"));
    CHECK(file_replace(os, "/d/exit", SLICE("1"), 0600, &err));
    watch_stop(watch);
    while (sim_step(w))
        ;
    CHECK(n.count == 1);
}

TEST(a_simulated_file_is_renamed_over_another_and_stays_so)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    struct os *os = sim_machine(w, "m");
    struct err err = { 0 };
    CHECK(file_replace(os, "/a", SLICE("new"), 0600, &err));
    CHECK(file_replace(os, "/b", SLICE("old"), 0600, &err));
    CHECK(!disk_rename(os, "/none", "/b") && !disk_rename(os, "/a", "/none/b"));
    fault_arm(1);
    CHECK(!disk_rename(os, "/a", "/b") && holds(os, "/b", "old"));
    fault_arm(0);
    CHECK(disk_rename(os, "/a", "/b") && disk_rename(os, "/b", "/b"));
    sim_crash(w, os);
    os = sim_machine(w, "m");
    CHECK(holds(os, "/b", "new") && !disk_exists(os, "/a"));
}

TEST(on_a_full_disk_nothing_grows_and_what_is_there_stays)
{
    AUTO(sim_free) struct sim *w = sim_new(1);
    struct os *os = sim_machine(w, "m");
    struct err err = { 0 };
    struct disk_file *f = disk_open(os, "/db", true, &err);
    CHECK(file_replace(os, "/a", SLICE("old"), 0600, &err) && disk_write(f, 0, "12", 2));
    sim_disk_full(w, "m", true);
    CHECK(!file_replace(os, "/a", SLICE("new"), 0600, &err) && err.rc == RC_UNAVAILABLE);
    CHECK(!file_append(os, "/a", SLICE("more"), true, &err) && holds(os, "/a", "old"));
    CHECK(disk_write(f, 0, "34", 2) && !disk_write(f, 1, "56", 2) && disk_size(f) == 2);
    CHECK(disk_free(os, "/") < 1 << 20 && file_remove(os, "/a", &err));
    sim_disk_full(w, "m", false);
    CHECK(file_replace(os, "/a", SLICE("new"), 0600, &err) && disk_free(os, "/") > 1 << 20);
    disk_close(f);
}

static void note_time(void *arg) { *(int64_t *)arg = -*(int64_t *)arg; }

TEST(who_syncs_on_a_slow_disk_stands_still_and_others_do_not)
{
    AUTO(sim_free) struct sim *w = sim_new(3);
    struct os *slow = sim_machine(w, "m"), *other = sim_machine(w, "n");
    struct err err = { 0 };
    int64_t mine = -1, yours = -1;
    sim_disk_slow(w, "m", 100000);
    CHECK(file_replace(slow, "/a", SLICE("x"), 0600, &err));
    timer_start(slow, 10, note_time, &mine);
    timer_start(other, 10, note_time, &yours);
    sim_until(w, sim_now_ms(w) + 10, NULL, NULL);
    CHECK(mine == -1 && yours == 1);
    sim_until(w, sim_now_ms(w) + 100000, NULL, NULL);
    CHECK(mine == 1);
}
