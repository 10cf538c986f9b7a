#include "place.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_again(struct place *p, struct store **out)
{
    return store_open_with(p->os, p->where, thing_steps, thing_statements, out, &p->err);
}

static void all_closed(struct place *p)
{
    conn_close(TAKE(p->reader));
    conn_close(TAKE(p->writer));
    store_close(TAKE(p->store));
}

static int64_t size_of(struct place *p, const char *suffix)
{
    struct stat st;
    return stat(arena_printf(p->mem, "%s%s", p->where, suffix), &st) ? -1 : st.st_size;
}

static void scribble(struct place *p, int64_t at, const char *bytes, size_t n)
{
    int fd = open(p->where, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n);
    close(fd);
}

ON("sqlite", a_store_is_readable_by_its_owner_alone)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    CHECK(thing_add(p, 1, "one"));
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        struct stat st;
        CHECK(stat(arena_printf(p->mem, "%s%s", p->where, suffixes[i]), &st) == 0
              && (st.st_mode & 0777) == 0600);
    }
}

ON("sqlite", a_path_may_have_any_letters)
{
    AUTO(store_close) struct store *s = NULL;
    const char *path = arena_printf(p->mem, "sqlite:%s/s p?c#l%%.db", p->folder);
    CHECK(store_open_with(p->os, path, thing_steps, thing_statements, &s, &p->err));
    CHECK(access(path + strlen("sqlite:"), F_OK) == 0);
}

ON("sqlite", a_store_that_cannot_be_there_is_told_with_its_path)
{
    struct store *s = NULL;
    CHECK(!store_open(p->os, "/nowhere/at/all/store.db", &s, &p->err) && !s);
    CHECK(strstr(p->err.text, "/nowhere/at/all/store.db") && strstr(p->err.text, "No such file"));
    CHECK(!store_open(p->os, p->folder, &s, &p->err) && !s);
    p->err = (struct err){ 0 };
}

ON("sqlite", a_commit_is_synced_and_the_settings_hold)
{
    CHECK(number(p, p->writer, "PRAGMA synchronous") == 2
          && number(p, p->writer, "PRAGMA foreign_keys") == 0);
    CHECK(number(p, p->reader, "PRAGMA query_only") == 1
          && number(p, p->reader, "PRAGMA busy_timeout") == STORE_WAIT_MS);
}

ON("sqlite", a_damaged_store_is_refused_with_what_to_do)
{
    char junk[3000], blank[100] = "";
    memset(junk, 0xa5, sizeof junk);
    CHECK(run(p, p->writer,
              "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 400)"
              "INSERT INTO thing (id, name) SELECT i, 'words to fill pages with' FROM g"));
    all_closed(p);
    int64_t size = size_of(p, "");
    CHECK(size > 5 * 4096);
    for (int64_t page = 0; page < 4; page++) {          /* each alone, the others mended again */
        char before[sizeof junk];
        int fd = open(p->where, O_RDONLY);
        CHECK(pread(fd, before, sizeof before, page * 4096) == sizeof before);
        close(fd);
        scribble(p, page * 4096, junk, sizeof junk);
        struct store *s = NULL;
        CHECK(!open_again(p, &s) && !s && p->err.rc == RC_INTERNAL);
        CHECK(strstr(p->err.text, "damaged") && strstr(p->err.text, "backup")
              && strstr(p->err.text, p->where));
        struct err found = { 0 };                       /* whoever looks at it beside those who use it finds the same */
        CHECK(!store_check(p->where, &found) && found.rc == RC_INTERNAL && strstr(found.text, "damaged") && strstr(found.text, p->where));
        scribble(p, page * 4096, before, sizeof before);
    }
    CHECK(store_check(p->where, &p->err) && !store_is_large(p->where) && !store_is_large("postgres://host/db"));
    struct store *s = NULL;
    CHECK(open_again(p, &s));                           /* so it was the damage */
    store_close(TAKE(s));
    CHECK(truncate(p->where, size / 2) == 0);
    CHECK(!open_again(p, &s) && !s && strstr(p->err.text, "damaged"));
    scribble(p, 0, blank, sizeof blank);
    CHECK(!open_again(p, &s) && !s && strstr(p->err.text, "damaged"));
    p->err = (struct err){ 0 };
}

ON("sqlite", a_full_disk_is_told_and_undone)
{
    CHECK(thing_add(p, 1, "one"));
    char *big = arena_take(p->mem, 100001, 1);
    memset(big, 'x', 100000);
    CHECK(run(p, p->writer, "PRAGMA max_page_count = 10"));
    CHECK(!thing_add(p, 2, big) && p->err.rc == RC_UNAVAILABLE
          && strstr(p->err.text, "the disk is full"));
    CHECK(things(p, p->reader).count == 1);
    CHECK(run(p, p->writer, "PRAGMA max_page_count = 1000000"));
    CHECK(thing_add(p, 2, big) && things(p, p->reader).count == 2);
    p->err = (struct err){ 0 };
}

ON("sqlite", a_store_held_by_another_is_told)
{
    AUTO(conn_close) struct conn *other = NULL;
    CHECK(conn_open(p->store, true, &other, &p->err) && run(p, other, "BEGIN IMMEDIATE"));
    CHECK(run(p, p->writer, "PRAGMA busy_timeout = 30"));
    CHECK(!thing_add(p, 1, "one") && p->err.rc == RC_UNAVAILABLE
          && strstr(p->err.text, "another process"));
    CHECK(run(p, other, "COMMIT") && thing_add(p, 1, "one"));
    p->err = (struct err){ 0 };
}

static bool fill(struct place *p, int from, int count)
{
    static struct value args[500][4];
    static struct write writes[500];
    static char text[3000];
    bool unknown;
    memset(text, 'w', sizeof text - 1);
    for (int i = 0; i < count; i++) {
        args[i][0] = V_INT(from + i), args[i][1] = V_TEXT(text), args[i][2] = (struct value){ 0 },
        args[i][3] = V_INT(i);
        writes[i] = (struct write){ (enum statement)THING_ADD, 4, args[i] };
    }
    return store_commit(p->writer, writes, (size_t)count, &unknown, &p->err);
}

/* Its bound is some 64 MB however much is written; one that reads on and on makes it grow, until
 * it lets go. */
ON("sqlite", the_write_ahead_log_stays_bounded)
{
    const int64_t bound = 80 << 20;
    int next = 0;
    for (; next < 30000 && size_of(p, "") < bound; next += 500)
        CHECK(fill(p, next, 500));
    CHECK(size_of(p, "") > 15 << 20 && size_of(p, "-wal") < bound);
    CHECK(run(p, p->reader, "BEGIN; SELECT COUNT(*) FROM thing"));
    for (int until = next + 6000; next < until; next += 500)
        CHECK(fill(p, next, 500));
    CHECK(size_of(p, "-wal") > 15 << 20);
    CHECK(run(p, p->reader, "COMMIT"));
    for (int until = next + 1000; next < until; next += 500)
        CHECK(fill(p, next, 500));
    int64_t used = MAX(size_of(p, "-wal"), bound);
    for (int until = next + 30000; next < until; next += 500)
        CHECK(fill(p, next, 500));
    CHECK(size_of(p, "-wal") <= used);
    CHECK(number(p, p->reader, "SELECT COUNT(*) FROM thing") == next);
}
