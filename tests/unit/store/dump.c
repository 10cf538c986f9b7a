/* dump.c - everything out of one store and into another, of either kind, whatever fails on the way. */
#include "base/fault.h"
#include "place.h"
#include <stdlib.h>

/* --- a store with something of everything in it */

static bool fill(struct place *p)
{
    bool unknown;
    const char *odd = "it's \"odd\": ?1 $1 \\ \n\t\xc3\xa9\xf0\x9f\x98\x80";
    struct value org[] = { V_INT(7), V_TEXT(odd), V_INT(-1) };
    struct value person[] = { V_INT(INT64_MAX), V_TEXT("ada"), V_TEXT(""), V_INT(3), V_INT(4) };
    struct value member[] = { V_INT(1), V_INT(2), V_INT(INT64_MIN) };
    struct value blob[] = { V_INT(1), V_TEXT("sha256:00"), V_INT(5), V_INT(6) };
    struct value event[16] = { V_INT(1), V_INT(2), V_INT(3), V_TEXT("k"), V_TEXT("s"), V_TEXT("a"), V_INT(4),
                               V_INT(5), V_TEXT("addr"), V_TEXT("req"), V_TEXT(NULL), V_TEXT("{}") };
    struct write writes[] = { { ST_ORG_ADD, 3, org }, { ST_PERSON_ADD, 5, person }, { ST_MEMBER_SET, 3, member },
                              { ST_BLOB_ADD, 4, blob }, { ST_EVENT_ADD, 16, event } };
    return store_open(p->os, p->where, &p->store, &p->err) && conn_open(p->store, true, &p->writer, &p->err)
           && store_commit(p->writer, writes, COUNT(writes), &unknown, &p->err);
}

static bool add_org(struct place *p, int64_t id)
{
    bool unknown;
    char name[32];
    snprintf(name, sizeof name, "org %lld", (long long)id);
    struct value org[] = { V_INT(id), V_TEXT(name), V_INT(1) };
    return store_commit(p->writer, &(struct write){ ST_ORG_ADD, 3, org }, 1, &unknown, &p->err);
}

static bool set_member(struct place *p)
{
    bool unknown;
    struct value member[] = { V_INT(1), V_INT(2), V_INT(8) };
    return store_commit(p->writer, &(struct write){ ST_MEMBER_SET, 3, member }, 1, &unknown, &p->err);
}

static void drop(const char *where)
{
    static const char *const ends[] = { "", "-wal", "-shm" };
    char path[512];
    for (size_t i = 0; i < COUNT(ends); i++) {
        snprintf(path, sizeof path, "%s%s", where, ends[i]);
        remove(path);
    }
}

/* --- out, as text */

struct out { struct str text; struct place *busy; int64_t rows; };

static bool on_table(void *arg, const struct store_table *t, struct err *err)
{
    struct out *o = arg;
    (void)err;
    str_printf(&o->text, "%s ", t->name);
    table_print(&o->text, t);
    str_char(&o->text, '\n');
    return true;
}
static bool on_row(void *arg, const struct store_table *t, const struct value *values, struct err *err)
{
    struct out *o = arg;
    row_print(&o->text, t, values);
    str_char(&o->text, '\n');
    o->rows++;
    return !o->busy || add_org(o->busy, 1000 + o->rows) || (*err = o->busy->err, false);
}
static const struct dump_events events = { on_table, on_row };

/* --- in again, from that text */

static bool in(struct os *os, const char *where, const struct str *text, int64_t steps, struct err *err)
{
    AUTO(load_free) struct load *l = NULL;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct store_table t = { 0 };
    if (!load_begin(os, where, steps, &l, err))
        return false;
    for (const char *at = text->at, *end; (end = strchr(at, '\n')); at = end + 1) {
        struct slice line = { at, (size_t)(end - at) };
        struct value values[TABLE_COLUMNS];
        if (*at != '[') {
            size_t n = strcspn(at, " ");
            if (!table_read((struct slice){ at + n + 1, line.len - n - 1 }, arena_bytes(mem, at, n), mem, &t, err))
                return false;
        } else if (!row_read(line, &t, mem, values, err) || !load_row(l, &t, values, err)) {
            return false;
        }
    }
    return load_commit(l, 12345, err);
}

static void check_same(struct place *p, const char *where, const struct str *text)
{
    AUTO(store_close) struct store *s = NULL;
    struct out o = { 0 };
    int64_t steps = 0;
    CHECK(store_open(p->os, where, &s, &p->err) && store_dump(s, &events, &o, &steps, &p->err));
    CHECK(text_is(o.text.at, text->at));
    AUTO(conn_close) struct conn *c = NULL;
    CHECK(s && conn_open(s, false, &c, &p->err) && store_count(c, "restored") == 1);
    str_done(&o.text);
}

BOTH_CLOSED(what_is_dumped_is_loaded_into_another_store_as_it_was)
{
    struct out o = { 0 };
    int64_t steps = 0;
    CHECK(fill(p));
    CHECK(store_dump(p->store, &events, &o, &steps, &p->err) && steps == store_steps().count);
    CHECK(o.rows == 6 && strstr(o.text.at, "9223372036854775807") && strstr(o.text.at, "-9223372036854775808"));
    CHECK(!strstr(o.text.at, "migration"));
    const char *there = arena_printf(p->mem, "%s/other.db", p->folder);
    CHECK(in(p->os, there, &o.text, steps, &p->err));
    check_same(p, there, &o.text);
    CHECK(!in(p->os, there, &o.text, steps, &p->err) && p->err.rc == RC_CONFLICT
          && strstr(p->err.text, "not empty"));
    drop(there);
    str_done(&o.text);
}

BOTH_CLOSED(a_store_of_this_kind_is_filled_from_another)
{
    struct place other = { .os = p->os, .where = arena_printf(p->mem, "%s/from.db", p->folder) };
    struct out o = { 0 };
    int64_t steps = 0;
    CHECK(fill(&other) && store_dump(other.store, &events, &o, &steps, &p->err));
    conn_close(other.writer);
    store_close(other.store);
    drop(other.where);
    CHECK(in(p->os, p->where, &o.text, steps, &p->err));
    if (p->err.rc)
        printf("# %s\n", p->err.text);
    check_same(p, p->where, &o.text);
    str_done(&o.text);
}

BOTH_CLOSED(a_dump_is_of_one_moment_and_keeps_nobody_from_writing)
{
    struct out o = { .busy = p };
    int64_t steps = 0;
    CHECK(fill(p) && add_org(p, 900) && add_org(p, 901));
    CHECK(store_dump(p->store, &events, &o, &steps, &p->err));
    CHECK(o.rows == 8 && !strstr(o.text.at, "org 1001"));
    CHECK(store_count(p->writer, "org") == 3 + 8);
    str_done(&o.text);
}

BOTH_CLOSED(a_dump_that_fails_at_any_point_leaves_nothing_open)
{
    int n = 1;
    CHECK(fill(p));
    for (bool failed = true; failed; n++) {
        struct out o = { 0 };
        int64_t steps;
        fault_arm(n);
        bool ok = store_dump(p->store, &events, &o, &steps, &p->err);
        failed = fault_fired();
        fault_arm(0);
        CHECK(ok == !failed);
        CHECK(set_member(p));
        str_done(&o.text);
    }
    CHECK(n > 10);
}

BOTH_CLOSED(a_load_that_fails_at_any_point_has_not_happened)
{
    struct place other = { .os = p->os, .where = arena_printf(p->mem, "%s/from.db", p->folder) };
    struct out o = { 0 };
    int64_t steps = 0;
    int n = 1;
    CHECK(fill(&other) && store_dump(other.store, &events, &o, &steps, &p->err));
    conn_close(other.writer);
    store_close(other.store);
    drop(other.where);
    for (bool failed = true; failed; n++) {
        fault_arm(n);
        bool ok = in(p->os, p->where, &o.text, steps, &p->err);
        failed = fault_fired();
        fault_arm(0);
        CHECK(ok || failed);
        if (ok)
            break;
    }
    CHECK(n > 10);
    check_same(p, p->where, &o.text);
    str_done(&o.text);
}

BOTH_CLOSED(what_does_not_fit_the_schema_is_refused_and_nothing_stays)
{
    static const char *const bad[] = {
        "org [[\"id\",\"i\"],[\"name\",\"t\"],[\"created_ms\",\"i\"]]\n[1,\"a\"]\n",
        "org [[\"id\",\"i\"],[\"name\",\"t\"],[\"created_ms\",\"i\"]]\n[1,2,3]\n",
        "org [[\"id\",\"i\"],[\"name\",\"t\"],[\"created_ms\",\"i\"]]\n[1,\"a\",3]\n[1,\"b\",3]\n",
        "org [[\"id\",\"i\"],[\"name\",\"t\"],[\"x) VALUES (1); --\",\"i\"]]\n[1,\"a\",3]\n",
        "sqlite_master [[\"id\",\"i\"]]\n[1]\n",
        "migration [[\"n\",\"i\"],[\"at_ms\",\"i\"]]\n[99,1]\n",
        "org [[\"id\",\"z\"]]\n[1]\n",
        "org {}\n[1]\n",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct str text = { 0 };
        str_text(&text, bad[i]);
        if (in(p->os, p->where, &text, store_steps().count, &p->err)) {
            printf("# %s\n", bad[i]);
            CHECK(!"it was taken");
        }
        str_done(&text);
    }
    CHECK(!in(p->os, p->where, &(struct str){ 0 }, store_steps().count + 1, &p->err)
          && strstr(p->err.text, "newer arcus"));
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    CHECK(store_open(p->os, p->where, &s, &p->err) && conn_open(s, false, &c, &p->err)
          && store_count(c, "org") == 0);
}
