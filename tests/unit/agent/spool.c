#include "agent/spool.h"
#include "base/fault.h"
#include "base/rand.h"
#include "os/sim.h"
#include "tap.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a folder of its own on the real machine */

struct place { struct os *os; struct arena *mem; char folder[64], path[96]; };

static struct place place_make(void)
{
    struct err err = { 0 };
    struct place p = { .os = os_real_new(&err), .mem = arena_new(), .folder = "/tmp/arcus-spool-XXXXXX" };
    CHECK(p.os && mkdtemp(p.folder));
    snprintf(p.path, sizeof p.path, "%s/spool", p.folder);
    return p;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void place_drop(struct place p)
{
    nftw(p.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    os_free(p.os);
    arena_free(p.mem);
}
AUTO_FN(struct place, place_drop)

static struct spool *opened(struct place *p)
{
    struct err err = { 0 };
    struct spool *s = NULL;
    CHECK(spool_open(p->os, p->path, &s, &err));
    return s;
}

static struct spool *met(struct place *p)      /* by a server that has nothing of it */
{
    struct err err = { 0 };
    struct spool *s = opened(p);
    CHECK(spool_align(s, 0, &err));
    return s;
}

static struct slice content(struct place *p)
{
    struct err err = { 0 };
    struct slice out = { "", 0 };
    CHECK(file_read(p->os, p->path, 1 << 24, p->mem, &out, &err));
    return out;
}

static void put_content(struct place *p, const char *at, size_t n)
{
    struct err err = { 0 };
    CHECK(file_replace(p->os, p->path, (struct slice){ at, n }, 0600, &err));
}

static bool started(struct spool *s, int64_t attempt)
{
    struct err err = { 0 };
    return spool_add(s, &(struct report_item){ .attempt = attempt, .news = TASK_STARTED, .at_ms = 1000 + attempt }, &err);
}

static bool ended(struct spool *s, int64_t attempt)
{
    struct err err = { 0 };
    return spool_add(s, &(struct report_item){ .attempt = attempt, .news = TASK_ENDED, .at_ms = 2000 + attempt, .started_ms = 1000 + attempt,
                                               .outcome = OUTCOME_EXITED, .exit_code = 3, .detail = "it \"failed\"" }, &err);
}

static bool numbers_run(struct spool *s, int64_t first)    /* without gaps up to next */
{
    struct objects all = spool_items(s, 0, 1000000);
    const struct report_item *i = all.at;
    for (size_t k = 0; k < all.count; k++)
        if (i[k].n != first + (int64_t)k)
            return false;
    return spool_next(s) == first + (int64_t)all.count;
}

TEST(items_are_numbered_from_one_and_found_again)
{
    AUTO(place_drop) struct place p = place_make();
    AUTO(spool_free) struct spool *s = met(&p);
    CHECK(spool_next(s) == 1 && spool_waiting(s) == 0);
    CHECK(started(s, 5) && ended(s, 5) && started(s, 6));
    CHECK(numbers_run(s, 1) && spool_next(s) == 4);
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(numbers_run(again, 1) && spool_next(again) == 4 && spool_damaged(again) == 0);
    const struct report_item *i = spool_items(again, 1, 1).at;
    CHECK(i->n == 2 && i->news == TASK_ENDED && i->exit_code == 3 && i->outcome == OUTCOME_EXITED && i->started_ms == 1005 && text_is(i->detail, "it \"failed\""));
}

TEST(a_start_and_an_end_are_told_once)
{
    AUTO(place_drop) struct place p = place_make();
    {
        AUTO(spool_free) struct spool *s = met(&p);
        CHECK(started(s, 5) && started(s, 5) && ended(s, 5) && ended(s, 5));
        CHECK(started(s, 5) && spool_next(s) == 3);
        CHECK(ended(s, 9) && started(s, 9) && spool_next(s) == 4);      /* never a start behind an end */
    }
    AUTO(spool_free) struct spool *s = opened(&p);
    struct err err = { 0 };
    CHECK(started(s, 5) && ended(s, 5) && spool_next(s) == 4);
    CHECK(spool_kept(s, 3, &err) && spool_waiting(s) == 0);
    AUTO(spool_free) struct spool *later = opened(&p);
    CHECK(ended(later, 5) && spool_next(later) == 4);                   /* also after they were delivered */
    const struct spool_told *t = spool_told(later, 5);
    CHECK(t && t->started_n == 1 && t->ended_n == 2);
}

TEST(what_the_server_kept_is_dropped_and_never_comes_back)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = met(&p);
    for (int64_t a = 1; a <= 1000; a++)
        CHECK(ended(s, a));
    CHECK(spool_items(s, 0, 1000000).count == 1000);                   /* sent */
    CHECK(spool_kept(s, 990, &err) && spool_waiting(s) == 10 && numbers_run(s, 991));
    CHECK(spool_kept(s, 500, &err) && spool_waiting(s) == 10);          /* an old answer changes nothing */
    for (int64_t a = 1; a <= 990; a++)
        spool_forget(s, a);
    for (int64_t a = 1001; a <= 1600; a++)                              /* enough for the file to be written anew */
        CHECK(ended(s, a) && spool_items(s, 0, 1000000).count && spool_kept(s, spool_next(s) - 5, &err));
    CHECK(content(&p).len < 300000);
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(spool_next(again) == 1601 && spool_told(again, 1) == NULL && spool_told(again, 1600) != NULL);
}

TEST(what_is_forgotten_stays_forgotten)
{
    AUTO(place_drop) struct place p = place_make();
    AUTO(spool_free) struct spool *s = opened(&p);
    CHECK(ended(s, 5) && ended(s, 6));
    spool_forget(s, 5);
    spool_forget(s, 77);
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(!spool_told(again, 5) && spool_told(again, 6) && spool_waiting(again) == 2);
    struct err err = { 0 };
    CHECK(file_append(p.os, p.path, SLICE("half a li"), false, &err));          /* so it is written anew when it is opened */
    AUTO(spool_free) struct spool *mended = opened(&p);
    AUTO(spool_free) struct spool *later = opened(&p);
    CHECK(!spool_told(mended, 5) && !spool_told(later, 5) && spool_told(later, 6) && spool_waiting(later) == 2);
}

TEST(a_file_cut_at_any_byte_loses_only_what_was_not_whole)
{
    AUTO(place_drop) struct place p = place_make();
    {
        AUTO(spool_free) struct spool *s = met(&p);
        CHECK(started(s, 5) && ended(s, 5) && started(s, 6) && ended(s, 6));
    }
    struct slice whole = content(&p);
    size_t lines = 0;
    for (size_t n = 0; n <= whole.len; n++) {
        put_content(&p, whole.at, n);
        lines += n && whole.at[n - 1] == '\n';
        AUTO(spool_free) struct spool *s = opened(&p);
        CHECK(spool_damaged(s) == 0);
        CHECK(spool_waiting(s) == (lines > 0 ? lines - 1 : 0) && numbers_run(s, 1));
        struct err err = { 0 };
        CHECK(spool_align(s, 0, &err));
        CHECK(started(s, 5) && ended(s, 5) && started(s, 6) && ended(s, 6) && ended(s, 7));
        CHECK(numbers_run(s, 1) && spool_next(s) == 6);
        AUTO(spool_free) struct spool *again = opened(&p);
        CHECK(numbers_run(again, 1) && spool_next(again) == 6 && spool_damaged(again) == 0);
    }
}

TEST(a_damaged_line_in_the_middle_is_left_out_and_counted)
{
    AUTO(place_drop) struct place p = place_make();
    {
        AUTO(spool_free) struct spool *s = met(&p);
        CHECK(ended(s, 5) && ended(s, 6) && ended(s, 7));
    }
    struct slice whole = content(&p);
    char *copy = arena_bytes(p.mem, whole.at, whole.len), *at = strstr(copy, "att-");
    at = at ? strstr(at + 1, "att-") : NULL;
    CHECK(at);
    if (!at)
        return;
    at[5] ^= 1;
    put_content(&p, copy, whole.len);
    AUTO(spool_free) struct spool *s = opened(&p);
    CHECK(spool_damaged(s) == 1 && spool_waiting(s) == 2 && spool_next(s) == 4 && !spool_told(s, 6));
    CHECK(ended(s, 6) && spool_waiting(s) == 3);        /* it is told again */
    struct err err = { 0 };
    CHECK(spool_align(s, 1, &err) && numbers_run(s, 2) && spool_next(s) == 4);     /* and the hole is closed */
}

TEST(rubbish_is_not_obeyed)
{
    struct rng rng = { 42 };
    AUTO(place_drop) struct place p = place_make();
    for (int round = 0; round < 200; round++) {
        char junk[300];
        size_t n = rng_below(&rng, sizeof junk);
        for (size_t i = 0; i < n; i++)
            junk[i] = "0123456789abcdef ntfi{}\n\"\0\xff"[rng_below(&rng, 28)];
        put_content(&p, junk, n);
        AUTO(spool_free) struct spool *s = opened(&p);
        CHECK(spool_next(s) == 1 && spool_waiting(s) == 0 && ended(s, 1) && spool_waiting(s) == 1);
    }
}

TEST(a_lost_spool_goes_on_behind_what_the_server_has)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = opened(&p);
    CHECK(started(s, 5) && ended(s, 5));                /* not sent */
    CHECK(spool_align(s, 40, &err));
    CHECK(spool_waiting(s) == 2 && numbers_run(s, 41) && spool_told(s, 5)->ended_n == 42);
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(spool_waiting(again) == 2 && numbers_run(again, 41) && spool_last_kept(again) == 40);
}

/* The machine lost its power before the last items were synced; the server has them, or others of them. */
TEST(no_number_of_an_item_that_was_lost_is_given_to_another)
{
    for (int64_t has = 0; has <= 6; has++)
        for (int killed = 0; killed < 3; killed++) {
            AUTO(place_drop) struct place p = place_make();
            struct err err = { 0 };
            { AUTO(spool_free) struct spool *s = met(&p); CHECK(ended(s, 1) && ended(s, 2) && spool_items(s, 0, 9).count == 2); }
            for (int i = 0; i < killed; i++) {          /* ... before it heard of the server */
                AUTO(spool_free) struct spool *s = opened(&p);
                CHECK(ended(s, 7 + i) && spool_next(s) == 3);
            }
            AUTO(spool_free) struct spool *s = opened(&p);
            CHECK(ended(s, 9) && spool_align(s, has, &err));
            size_t old = (size_t)(2 - MIN(has, 2)), new = (size_t)killed + 1;
            CHECK(spool_waiting(s) == old + new && numbers_run(s, has + 1) && spool_told(s, 9)->ended_n == has + (int64_t)(old + new));
            AUTO(spool_free) struct spool *again = opened(&p);
            CHECK(spool_align(again, has, &err) && spool_waiting(again) == old + new && numbers_run(again, has + 1));
        }
}

TEST(a_spool_that_never_met_a_server_says_so_however_often_its_owner_was_killed)
{
    AUTO(place_drop) struct place p = place_make();
    for (int i = 1; i < 4; i++) {
        AUTO(spool_free) struct spool *s = opened(&p);
        CHECK(ended(s, i) && spool_next(s) == 1 && spool_waiting(s) == (size_t)i);
    }
}

/* --- power cuts */

static size_t left_after_a_power_cut(uint64_t seed, bool sync)
{
    struct err err = { 0 };
    struct sim *sim = sim_new(seed);
    struct os *os = sim_machine(sim, "n1");
    struct spool *s = NULL, *later = NULL;
    CHECK(dir_make(os, "/data", 0700, &err) && spool_open(os, "/data/spool", &s, &err) && spool_align(s, 0, &err));
    CHECK(!spool_unsynced(s) && spool_sync(s, &err));
    CHECK(ended(s, 1) && ended(s, 2) && ended(s, 3) && spool_unsynced(s));
    CHECK(spool_items(s, 0, 1).count == 1 && spool_kept(s, 1, &err));
    CHECK(!sync || (spool_sync(s, &err) && !spool_unsynced(s)));
    sim_crash(sim, os);
    spool_free(s);
    CHECK(spool_open(sim_machine(sim, "n1"), "/data/spool", &later, &err) && spool_align(later, 1, &err));
    size_t left = spool_waiting(later);
    CHECK(numbers_run(later, 2) && (!spool_told(later, 3) || spool_told(later, 3)->ended_n == spool_next(later) - 1));
    spool_free(later);
    sim_free(sim);
    return left;
}

TEST(what_was_synced_outlives_a_power_cut)
{
    size_t lost = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        CHECK(left_after_a_power_cut(seed, true) == 2);
        lost += left_after_a_power_cut(seed, false) < 2;
    }
    CHECK(lost > 0);        /* else this would tell nothing */
}

TEST(a_power_cut_does_not_look_like_a_lost_disk)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct err err = { 0 };
        struct sim *sim = sim_new(seed);
        struct os *os = sim_machine(sim, "n1");
        struct spool *s = NULL, *later = NULL;
        CHECK(dir_make(os, "/data", 0700, &err) && spool_open(os, "/data/spool", &s, &err) && spool_align(s, 0, &err));
        CHECK(ended(s, 1) && spool_items(s, 0, 9).count == 1 && spool_kept(s, 1, &err));     /* the server has it, and no sync followed */
        sim_crash(sim, os);
        spool_free(s);
        CHECK(spool_open(sim_machine(sim, "n1"), "/data/spool", &later, &err) && spool_next(later) == 2);
        spool_free(later);
        sim_free(sim);
    }
}

TEST(what_the_server_has_need_not_be_synced)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = met(&p);
    CHECK(ended(s, 1) && ended(s, 2) && spool_unsynced(s) && spool_items(s, 0, 9).count == 2);
    CHECK(spool_kept(s, 2, &err) && !spool_unsynced(s));
    fault_arm(1);
    CHECK(spool_sync(s, &err) && !fault_fired());       /* nothing was done */
    fault_arm(0);
    CHECK(ended(s, 3) && spool_unsynced(s));
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(spool_unsynced(again));                       /* whoever wrote it may not have */
}

TEST(a_sync_that_failed_is_made_up_for)
{
    for (int nth = 1;; nth++) {
        AUTO(place_drop) struct place p = place_make();
        struct err err = { 0 };
        AUTO(spool_free) struct spool *s = met(&p);
        CHECK(ended(s, 1));
        fault_arm(nth);
        bool ok = spool_sync(s, &err), fired = fault_fired();
        fault_arm(0);
        CHECK((ok || fired) && spool_unsynced(s) == !ok);
        CHECK(spool_sync(s, &err) && !spool_unsynced(s) && ended(s, 2) && numbers_run(s, 1));
        AUTO(spool_free) struct spool *again = opened(&p);
        CHECK(numbers_run(again, 1) && spool_waiting(again) == 2 && spool_damaged(again) == 0);
        if (!fired)
            break;
    }
}

TEST(a_server_that_came_back_from_a_backup_gets_numbers_that_follow_its_own)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = met(&p);
    for (int64_t a = 1; a <= 10; a++)
        CHECK(ended(s, a));
    CHECK(spool_items(s, 0, 100).count == 10 && spool_kept(s, 8, &err));
    CHECK(spool_align(s, 3, &err) && numbers_run(s, 4) && spool_waiting(s) == 2 && spool_next(s) == 6);
    CHECK(spool_align(s, 5, &err) && spool_waiting(s) == 0 && spool_next(s) == 6);
    CHECK(spool_align(s, 2, &err) && spool_next(s) == 3);
    CHECK(ended(s, 77) && numbers_run(s, 3));
}

TEST(aligning_where_the_numbers_meet_changes_nothing)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = opened(&p);
    CHECK(spool_align(s, 0, &err) && spool_next(s) == 1);
    CHECK(ended(s, 1) && ended(s, 2) && ended(s, 3));
    CHECK(spool_align(s, 0, &err) && numbers_run(s, 1));                /* nothing was kept yet */
    CHECK(spool_items(s, 0, 2).count == 2 && spool_align(s, 2, &err) && numbers_run(s, 3) && spool_last_kept(s) == 2);
}

TEST(a_number_that_was_never_sent_is_not_taken_for_ours)
{
    AUTO(place_drop) struct place p = place_make();
    struct err err = { 0 };
    AUTO(spool_free) struct spool *s = met(&p);
    CHECK(ended(s, 1) && ended(s, 2) && spool_items(s, 0, 1).count == 1);
    CHECK(spool_kept(s, 2, &err) && spool_waiting(s) == 1 && spool_last_kept(s) == 1);
}

TEST(an_item_that_could_not_be_written_is_not_there_and_can_be_added_again)
{
    for (int nth = 1;; nth++) {
        AUTO(place_drop) struct place p = place_make();
        AUTO(spool_free) struct spool *s = met(&p);
        CHECK(started(s, 5));
        fault_arm(nth);
        bool ok = ended(s, 5);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && spool_waiting(s) == (ok ? 2 : 1) && spool_next(s) == (ok ? 3 : 2));
        {
            AUTO(spool_free) struct spool *killed = opened(&p);         /* killed right there: old or new, never half */
            CHECK(spool_damaged(killed) == 0 && numbers_run(killed, 1));
        }
        CHECK(ended(s, 5) && ended(s, 6) && numbers_run(s, 1) && spool_next(s) == 4);
        AUTO(spool_free) struct spool *again = opened(&p);
        CHECK(numbers_run(again, 1) && spool_next(again) == 4 && spool_damaged(again) == 0);
        if (!fired)
            break;
    }
}

TEST(opening_fails_cleanly_or_not_at_all)
{
    for (int nth = 1;; nth++) {
        AUTO(place_drop) struct place p = place_make();
        struct err err = { 0 };
        { AUTO(spool_free) struct spool *s = opened(&p); CHECK(ended(s, 5)); }
        struct slice whole = content(&p);
        put_content(&p, whole.at, whole.len - 3);       /* torn: opening writes it anew */
        AUTO(spool_free) struct spool *s = NULL;
        fault_arm(nth);
        bool ok = spool_open(p.os, p.path, &s, &err);
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(ok == !fired && (ok || (err.text[0] && !s)));
        if (!fired)
            break;
    }
}

TEST(a_detail_from_a_container_cannot_break_the_file)
{
    AUTO(place_drop) struct place p = place_make();
    AUTO(spool_free) struct spool *s = opened(&p);
    struct err err = { 0 };
    char longest[5000];
    memset(longest, 0xff, sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK(spool_add(s, &(struct report_item){ .attempt = 1, .news = TASK_ENDED, .at_ms = -5, .exit_code = 999, .signal = -3, .detail = longest }, &err));
    CHECK(spool_add(s, &(struct report_item){ .attempt = 2, .news = TASK_ENDED, .detail = "a\nb\x01 \xc3\xa9 \xc3" }, &err));
    AUTO(spool_free) struct spool *again = opened(&p);
    CHECK(spool_damaged(again) == 0 && spool_waiting(again) == 2);
    const struct report_item *i = spool_items(again, 0, 2).at;
    CHECK(i[0].exit_code == 255 && i[0].signal == 0 && i[0].at_ms == 0 && strlen(i[0].detail) == 1000);
    CHECK(text_is(i[1].detail, "a b  \xc3\xa9 ?"));
}
