#include "wire/tar.h"
#include "base/rand.h"
#include "tap.h"
#include <stdlib.h>

struct seen { struct str log; int fail_at, count; };

static bool told(struct seen *s, struct err *err)
{
    return ++s->count != s->fail_at || err_set(err, RC_UNAVAILABLE, "no room");
}
static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct seen *s = arg;
    str_printf(&s->log, "%d %s%s%s %o %lld %lld{", e->type, e->name, e->target ? " -> " : "", e->target ? e->target : "", e->mode, (long long)e->size, (long long)e->mtime_s);
    return told(s, err);
}
static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct seen *s = arg;
    str_put(&s->log, at, n);
    return told(s, err);
}
static bool on_entry_end(void *arg, struct err *err)
{
    str_text(&((struct seen *)arg)->log, "}");
    return told(arg, err);
}
static const struct tar_events events = { on_entry, on_data, on_entry_end };

static bool read_tar(const struct str *tar, size_t step, struct seen *s, bool *complete, struct err *err)
{
    AUTO(tar_reader_free) struct tar_reader *r = tar_reader_new(&events, s);
    bool good = true;
    for (size_t at = 0; good && at < tar->len; at += step) {
        size_t n = MIN(step, tar->len - at);
        char *copy = malloc(n);
        memcpy(copy, tar->at + at, n);
        good = tar_feed(r, copy, n, err);
        free(copy);
    }
    *complete = tar_complete(r);
    return good;
}

static void put_file(struct str *tar, const char *name, const char *data)
{
    tar_header(tar, &(struct tar_entry){ TAR_FILE, name, NULL, 0644, (int64_t)strlen(data), 1700000000 });
    str_text(tar, data);
    tar_pad(tar, (int64_t)strlen(data));
}

static const char *long_name(struct arena *mem, size_t n)
{
    char *name = arena_take(mem, n + 1, 1);
    memset(name, 'x', n);
    for (size_t i = 50; i < n; i += 51)
        name[i] = '/';
    return name;
}

static void sample_tar(struct arena *mem, struct str *tar)
{
    tar_header(tar, &(struct tar_entry){ TAR_DIR, "sub", NULL, 0755, 0, 5 });
    put_file(tar, "sub/a", "hello");
    put_file(tar, long_name(mem, 300), "long");
    tar_header(tar, &(struct tar_entry){ TAR_SYMLINK, "s", "../../etc/passwd", 0777, 0, 0 });
    tar_header(tar, &(struct tar_entry){ TAR_SYMLINK, "t", long_name(mem, 150), 0777, 99, 0 });
    tar_header(tar, &(struct tar_entry){ TAR_HARDLINK, "h", "sub/a", 0644, 0, 0 });
    put_file(tar, "empty", "");
    tar_end(tar);
}

TEST(what_is_packed_is_unpacked_the_same_however_it_is_cut)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str tar = { 0 }, want = { 0 };
    sample_tar(mem, &tar);
    str_printf(&want, "1 sub 755 0 5{}0 sub/a 644 5 1700000000{hello}0 %s 644 4 1700000000{long}2 s -> ../../etc/passwd 777 0 0{}2 t -> %s 777 0 0{}"
                      "3 h -> sub/a 644 0 0{}0 empty 644 0 1700000000{}", long_name(mem, 300), long_name(mem, 150));
    static const size_t steps[] = { 1, 2, 7, 511, 512, 513, 1024, 1 << 20 };
    CHECK(tar.len % TAR_BLOCK == 0);
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct seen s = { 0 };
        struct err err = { 0 };
        bool complete;
        CHECK(read_tar(&tar, steps[i], &s, &complete, &err) && complete);
        CHECK(text_is(s.log.at, want.at));
        str_done(&s.log);
    }
}

TEST(a_tar_cut_anywhere_is_not_complete)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str tar = { 0 };
    sample_tar(mem, &tar);
    for (size_t n = 0; n < tar.len; n += 101) {
        struct seen s = { 0 };
        struct err err;
        bool complete;
        struct str part = { tar.at, n, 0 };
        CHECK(read_tar(&part, 1 << 20, &s, &complete, &err) && !complete);
        str_done(&s.log);
    }
}

TEST(a_caller_that_fails_stops_the_reader_with_its_own_reason)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str tar = { 0 };
    sample_tar(mem, &tar);
    for (int nth = 1;; nth++) {
        struct seen s = { .fail_at = nth };
        struct err err = { 0 };
        bool complete, good = read_tar(&tar, 100, &s, &complete, &err);
        str_done(&s.log);
        CHECK(good == (s.count < nth) && (good || (err.rc == RC_UNAVAILABLE && !complete && s.count == nth)));
        if (good)
            break;
    }
}

/* One header with its checksum mended after `change`. */
static void odd(struct str *tar, const char *name, char type, const char *link, const char *data, size_t n)
{
    size_t from = tar->len;
    tar_header(tar, &(struct tar_entry){ TAR_FILE, "placeholder", NULL, 0644, (int64_t)n, 0 });
    char *h = tar->at + from;
    memset(h, 0, 100);
    memcpy(h, name, strlen(name));
    h[156] = type;
    memcpy(h + 157, link, strlen(link));
    memset(h + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    str_put(tar, data, n);
    tar_pad(tar, (int64_t)n);
}

TEST(names_that_leave_the_tree_and_odd_entries_are_refused)
{
    static const struct { const char *name; char type; const char *link, *data; } rows[] = {
        { "/etc/passwd", '0', "", "" }, { "../x", '0', "", "" }, { "a/../b", '0', "", "" }, { "a/..", '5', "", "" }, { "..", '5', "", "" }, { "a//b", '0', "", "" }, { "a/./b", '0', "", "" },
        { "", '0', "", "" }, { ".", '0', "", "" }, { "dev", '3', "", "" }, { "dev", '4', "", "" }, { "fifo", '6', "", "" },
        { "sparse", 'S', "", "" }, { "h", '1', "/etc/shadow", "" }, { "h", '1', "../x", "" }, { "h", '1', "", "" }, { "s", '2', "", "" }, { "x", 'x', "", "11 path=../a\n" }, { "x", 'x', "", "6 path=\n" },
        { "x", 'x', "", "garbage" }, { "x", 'x', "", "9 size=-1\n" }, { "x", 'x', "", "0 a=b\n" }, { "x", 'x', "", "99999999999 a=b\n" }, { "x", 'x', "", "5 a=b" },
        { "x", 'x', "", "6 abc\n" }, { "x", 'x', "", " 6 a=b\n" }, { "x", 'L', "", "../x" }, { "x", 'L', "", "" }, { "x", 'x', "", "25 GNU.sparse.major=1.0\n" }, { "x", 'x', "", "15 size=9x9999\n" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t step = 1; step < 600; step += 511) {
            AUTO(str_done) struct str tar = { 0 };
            struct seen s = { 0 };
            struct err err = { 0 };
            bool complete;
            odd(&tar, rows[i].name, rows[i].type, rows[i].link, rows[i].data, strlen(rows[i].data));
            put_file(&tar, "next", "");
            tar_end(&tar);
            bool good = read_tar(&tar, step, &s, &complete, &err);
            if (good)
                printf("# taken: %s %c %s\n", rows[i].name, rows[i].type, rows[i].data);
            CHECK(!good && err.rc == RC_BAD_INPUT && !complete && (!s.log.at || !strstr(s.log.at, "..")));
            str_done(&s.log);
        }
}

TEST(other_writers_are_understood)
{
    AUTO(str_done) struct str tar = { 0 };
    struct seen s = { 0 };
    struct err err = { 0 };
    bool complete;
    odd(&tar, "./", '5', "", "", 0);
    odd(&tar, "./dir/", '5', "", "", 0);
    odd(&tar, "old/", 0, "", "", 0);
    odd(&tar, "pax_global_header", 'g', "", "12 comment=x\n", 13);
    odd(&tar, "././@LongLink", 'L', "", "very/long/name\0", 15);
    odd(&tar, "very/long", '0', "", "data", 4);
    odd(&tar, "./@PaxHeader", 'x', "", "26 path=from/a/pax/record\n20 atime=1700000000\n", 46);
    odd(&tar, "short", '0', "", "", 0);
    tar_end(&tar);
    str_text(&tar, "what follows the end is not looked at");
    CHECK(read_tar(&tar, 64, &s, &complete, &err) && complete);
    CHECK(text_is(s.log.at, "1 . 644 0 0{}1 dir 644 0 0{}1 old 644 0 0{}0 very/long/name 644 4 0{data}0 from/a/pax/record 644 0 0{}"));
    if (err.text[0] || !complete)
        printf("# %s %s\n", err.text, s.log.at);
    str_done(&s.log);
}

TEST(sizes_beyond_eight_gib_survive)
{
    AUTO(str_done) struct str tar = { 0 };
    struct seen s = { 0 };
    struct err err = { 0 };
    AUTO(tar_reader_free) struct tar_reader *r = tar_reader_new(&events, &s);
    tar_header(&tar, &(struct tar_entry){ TAR_FILE, "big", NULL, 0600, INT64_C(1) << 45, 0 });
    CHECK(tar_feed(r, tar.at, tar.len, &err) && text_is(s.log.at, "0 big 600 35184372088832 0{") && !tar_complete(r));
    str_done(&s.log);
}

TEST(a_header_that_was_changed_is_noticed)
{
    for (size_t at = 0; at < TAR_BLOCK; at++) {
        AUTO(str_done) struct str tar = { 0 };
        struct seen s = { 0 };
        struct err err = { 0 };
        bool complete;
        put_file(&tar, "a", "");
        tar_end(&tar);
        tar.at[at] ^= 1;
        bool good = read_tar(&tar, TAR_BLOCK, &s, &complete, &err);
        CHECK(!good || at == 154 || at == 155);     /* the end of the checksum itself has two spellings */
        str_done(&s.log);
    }
}

TEST(random_damage_never_harms)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str tar = { 0 };
    struct rng r = { 11 };
    sample_tar(mem, &tar);
    for (int i = 0; i < 3000; i++) {
        AUTO(str_done) struct str copy = { 0 };
        struct seen s = { 0 };
        struct err err = { 0 };
        bool complete;
        str_put(&copy, tar.at, tar.len);
        size_t block = rng_below(&r, tar.len / TAR_BLOCK) * TAR_BLOCK, at = block + rng_below(&r, TAR_BLOCK);
        copy.at[at] = (char)rng_next(&r);
        bool good = read_tar(&copy, 1 + rng_below(&r, 2000), &s, &complete, &err);
        CHECK(good || err.rc == RC_BAD_INPUT);
        str_done(&s.log);
    }
}
