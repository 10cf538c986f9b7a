/* place.h - a fresh store for one test: a file in a temporary folder, or a schema of its own in
 * the PostgreSQL of ARCUS_TEST_POSTGRES (without it, the PostgreSQL half is skipped). BOTH(name)
 * makes two tests of one body. */
#pragma once
#include "store/store_internal.h"
#include "tap.h"

struct place {
    struct os *os;
    const char *kind, *folder, *where;
    struct arena *mem;
    struct store *store;                /* opened with things and thing_statements */
    struct conn *writer, *reader;
    struct err err;
};

void place_run(const char *kind, bool opened, void (*test)(struct place *p));
#define PLACES(name_, opened)                                                               \
    static void name_(struct place *p);                                                     \
    TEST(name_##_on_sqlite) { place_run("sqlite", opened, name_); }                         \
    TEST(name_##_on_postgres) { place_run("postgres", opened, name_); }                     \
    static void name_(struct place *p)
#define BOTH(name_) PLACES(name_, true)                 /* with store, writer and reader open */
#define BOTH_CLOSED(name_) PLACES(name_, false)         /* nothing is there yet */
#define ON_PLACE(kind_, name_, opened)                                                      \
    static void name_##_body(struct place *p);                                              \
    TEST(name_) { place_run(kind_, opened, name_##_body); }                                 \
    static void name_##_body(struct place *p)
#define ON(kind_, name_) ON_PLACE(kind_, name_, true)
#define ON_CLOSED(kind_, name_) ON_PLACE(kind_, name_, false)

/* A table that the program does not have, so that these tests do not change with its schema. */
enum { THING_ADD, THING_NAME, THING_ALL, THING_GET, THING_PAIRS };
extern const struct sql_list thing_statements;
extern const struct steps thing_steps;

bool thing_add(struct place *p, int64_t id, const char *name);
struct rows things(struct place *p, struct conn *c);
bool run(struct place *p, struct conn *c, const char *text);    /* any SQL */
int64_t number(struct place *p, struct conn *c, const char *text);  /* -1 when it fails */
