#include "pair.h"
#include "base/fault.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct calls { struct os *os; int count, want; char last[64]; };
static void on_sig(void *arg)
{
    struct calls *c = arg;
    if (++c->count == c->want)
        os_stop(c->os);
}

TEST(a_signal_is_a_callback_of_the_loop)
{
    struct err err = { 0 };
    struct calls hup = { .os = os_real_new(&err), .want = 1 }, usr = { .os = hup.os, .want = 2 };
    os_on_signal(hup.os, SIGHUP, on_sig, &hup);
    os_on_signal(hup.os, SIGUSR1, on_sig, &usr);
    os_on_signal(hup.os, 4711, on_sig, &usr);
    kill(getpid(), SIGHUP);
    CHECK(hup.count == 0);
    run_for(hup.os);
    CHECK(hup.count == 1 && usr.count == 0);
    kill(getpid(), SIGUSR1);
    run_ms(hup.os, 5);
    kill(getpid(), SIGUSR1);
    run_for(hup.os);
    CHECK(usr.count == 2 && hup.count == 1);
    os_free(hup.os);
}

static void on_change(void *arg, const char *name)
{
    struct calls *c = arg;
    snprintf(c->last, sizeof c->last, "%s", name ? name : "(all)");
    on_sig(c);
}

TEST(a_name_renamed_into_a_watched_folder_or_written_to_is_told)
{
    struct err err = { 0 };
    struct calls c = { .os = os_real_new(&err), .want = 2 };
    char dir[] = "/tmp/arcus-watch-XXXXXX", path[64], temp[64];
    CHECK(mkdtemp(dir));
    CHECK(!dir_watch(c.os, "/no/such/folder", on_change, &c));
    struct watch *w = dir_watch(c.os, dir, on_change, &c);
    CHECK(w);
    snprintf(path, sizeof path, "%s/exit", dir);
    snprintf(temp, sizeof temp, "%s/other", dir);
    CHECK(file_append(c.os, temp, SLICE("x"), false, &err));
    CHECK(file_replace(c.os, path, SLICE("0"), 0600, &err));
    CHECK(c.count == 0);
    run_for(c.os);
    int told = c.count;
    CHECK(told >= 2 && text_is(c.last, "exit"));    /* never the name that it had before */
    watch_stop(w);
    watch_stop(NULL);
    CHECK(file_replace(c.os, path, SLICE("1"), 0600, &err));
    run_ms(c.os, 10);
    CHECK(c.count == told);
    CHECK(file_remove(c.os, path, &err) && file_remove(c.os, temp, &err)
          && file_remove(c.os, dir, &err));
    os_free(c.os);
}

/* Where no instance of inotify is to be had (containers use up root's) the folder is looked at. */
struct looks { struct os *os; int all; };

static void looked(void *arg, const char *name)
{
    struct looks *l = arg;
    l->all += !name;
    os_stop(l->os);
}

TEST(a_folder_that_cannot_be_watched_is_looked_at)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct looks seen = { os, 0 };
    char top[] = "/tmp/arcus-look-XXXXXX";
    CHECK(mkdtemp(top) != NULL);
    CHECK(!dir_watch(os, "/no/such/folder", looked, &seen));
    fault_arm(1);
    struct watch *w = dir_watch(os, top, looked, &seen);
    CHECK(fault_fired() && w);
    fault_arm(0);
    os_run(os);
    CHECK(seen.all == 1);
    watch_stop(w);
    rmdir(top);
    os_free(os);
}
