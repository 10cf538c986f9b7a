/* gpu_check.c - the check helper as a process of its own, started as the agent does, with a made-up libcuda whose memory is a file. */
#include "agent/gpu_check.h"
#include "tap.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID "GPU-fa4e0000-0000-0000-0000-0000000000ab"
enum { LIMIT_MS = 60000, MIB = 1 << 20 };
struct try {
    struct os *os;
    char top[64], lib[96], self[640], why[240];
    int64_t limit_ms, mib, of_mib;
    int told;
    bool ok, over;
    struct check *check;
};

static void put(struct try *t, const char *name, const char *text)
{
    char path[160], fresh[176];
    snprintf(path, sizeof path, "%s/%s", t->top, name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *f = fopen(fresh, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(fresh, path) == 0);
}

static void try_open(struct try *t)
{
    char folder[512], command[1400];
    struct err err = { 0 };
    *t = (struct try){ .os = os_real_new(&err) };
    snprintf(t->top, sizeof t->top, "/tmp/arcus-test-XXXXXX");
    CHECK(t->os && mkdtemp(t->top));
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[MAX(n, 0)] = 0;
    *strrchr(folder, '/') = 0;
    snprintf(t->lib, sizeof t->lib, "%s/libcuda.so.1", t->top);
    snprintf(t->self, sizeof t->self, "%s/arcus", folder);
    snprintf(command, sizeof command, "cp '%s/fake/libcuda-work.so.1' '%s'", folder, t->lib);
    CHECK(system(command) == 0);
    put(t, "cuda.conf", "mem 24\n");
}

static void on_end(void *arg) { ((struct try *)arg)->over = true, os_stop(((struct try *)arg)->os); }

static void try_done_auto(struct try *t)
{
    char line[128];
    check_free(t->check);
    struct timer *soon = timer_start(t->os, 1, on_end, t);
    (void)soon;
    os_run(t->os);
    os_free(t->os);
    snprintf(line, sizeof line, "rm -rf '%s'", t->top);
    CHECK(system(line) == 0);
}

static void on_done(void *arg, const struct check_said *said)
{
    struct try *t = arg;
    t->told++;
    t->ok = said->ok;
    t->mib = said->mib, t->of_mib = said->of_mib;
    snprintf(t->why, sizeof t->why, "%s", said->why ? said->why : "");
    os_stop(t->os);
}

static void check_it(struct try *t, struct check_ask ask)
{
    struct check_config config = { .self = t->self, .libcuda = t->lib, .limit_ms = t->limit_ms };
    check_free(t->check);
    t->told = 0;
    ask.uuid = ask.uuid ? ask.uuid : UUID;
    t->check = check_start(t->os, &config, &ask, on_done, t);
    struct timer *limit = timer_start(t->os, LIMIT_MS, on_end, t);
    os_run(t->os);
    CHECK(t->told == 1 && !t->over);
    if (!t->over)
        timer_cancel(limit);
}

/* How much of the device's memory is not zero, of its last `mib`. */
static size_t left(struct try *t, size_t mib)
{
    static unsigned char bytes[24 * MIB];
    char path[200];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/cuda.conf." UUID ".mem", t->top);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd != -1 && read(fd, bytes, sizeof bytes) == sizeof bytes);
    close(fd);
    for (size_t i = sizeof bytes - mib * MIB; i < sizeof bytes; i++)
        n += bytes[i] != 0;
    return n;
}

static void soil(struct try *t)
{
    static unsigned char bytes[24 * MIB];
    char path[200];
    memset(bytes, 0xa5, sizeof bytes);
    snprintf(path, sizeof path, "%s/cuda.conf." UUID ".mem", t->top);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd != -1 && write(fd, bytes, sizeof bytes) == sizeof bytes);
    close(fd);
}

TEST(a_gpu_that_keeps_what_is_written_and_computes_right_passes)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(t.ok && t.mib >= 8 && t.of_mib == 24 && check_gone(t.check));
    check_it(&t, (struct check_ask){ CHECK_TEST, .most_mib = 4 });
    CHECK(t.ok && t.mib == 4);
}

TEST(a_word_that_is_not_kept_and_a_product_that_is_wrong_fail_the_test)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "cuda.conf", "mem 24\nflip 0 * 3\n");
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok && strstr(t.why, "3 words of its memory"));
    put(&t, "cuda.conf", "mem 24\nwrong 0 " UUID " 1\n");
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok && strstr(t.why, "matrix product"));
    put(&t, "cuda.conf", "mem 24\nfail sync * 214\n");
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok && strstr(t.why, "uncorrectable memory error (CUDA 214)"));
}

TEST(every_call_that_fails_is_told_by_name_and_none_passes)
{
    static const char *const calls[] = { "init", "device", "retain", "alloc", "set", "sync", "read", "module", "launch" };
    AUTO(try_done) struct try t;
    try_open(&t);
    for (size_t i = 0; i < COUNT(calls); i++) {
        char line[64];
        snprintf(line, sizeof line, "mem 24\nfail %s * 719\n", calls[i]);
        put(&t, "cuda.conf", line);
        check_it(&t, (struct check_ask){ CHECK_TEST });
        CHECK(!t.ok && strstr(t.why, "CUDA 719"));
        bool scrubs = i < 7; /* a scrub has no program of its own */
        check_it(&t, (struct check_ask){ CHECK_SCRUB });
        CHECK(t.ok == !scrubs);
    }
}

TEST(a_scrub_leaves_nothing_of_what_was_there)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    soil(&t);
    CHECK(left(&t, 24) == 24 * MIB);
    check_it(&t, (struct check_ask){ CHECK_SCRUB });
    CHECK(t.ok && t.mib == 24 && left(&t, 24) == 0);
}

TEST(a_scrub_leaves_alone_what_neighbours_hold_and_what_they_were_promised)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    soil(&t);
    put(&t, "cuda.conf", "mem 24\nused 4\n");
    check_it(&t, (struct check_ask){ CHECK_SCRUB, .keep_mib = 6 });
    CHECK(t.ok && t.mib == 14 && left(&t, 24) == 10 * MIB);
    check_it(&t, (struct check_ask){ CHECK_SCRUB, .keep_mib = 500 });
    CHECK(t.ok && t.mib == 0);
}

TEST(memory_that_cannot_be_had_is_not_called_overwritten)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "cuda.conf", "mem 2048\nmost 16\n");
    check_it(&t, (struct check_ask){ CHECK_SCRUB });
    CHECK(!t.ok && strstr(t.why, "only 16 of 2048 MiB"));
}

TEST(another_gpu_than_the_one_that_was_asked_for_is_never_touched)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "cuda.conf", "mem 24\ngone 0 *\n");
    check_it(&t, (struct check_ask){ CHECK_SCRUB });
    CHECK(!t.ok && strstr(t.why, "does not find"));
    t.lib[strlen(t.lib) - 1] = '9';
    check_it(&t, (struct check_ask){ CHECK_SCRUB });
    CHECK(!t.ok && strstr(t.why, "no CUDA driver library"));
}

TEST(a_driver_that_hangs_fails_the_check_in_time_and_a_helper_that_dies_does_too)
{
    AUTO(try_done) struct try t;
    try_open(&t);
    put(&t, "cuda.conf", "mem 24\nhang retain *\n");
    t.limit_ms = 300;
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok && strstr(t.why, "did not come to an end within 1 s"));
    t.limit_ms = 0;
    snprintf(t.self, sizeof t.self, "/bin/false");
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok && strstr(t.why, "without a word (exit code 1)"));
    snprintf(t.self, sizeof t.self, "/nonexistent");
    check_it(&t, (struct check_ask){ CHECK_TEST });
    CHECK(!t.ok);
}
