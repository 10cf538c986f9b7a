#include "place.h"
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ST(x) ((enum statement)(x))

static const char backend_pid[] = "SELECT pg_backend_pid()";

static int64_t ask(PGconn *db, const char *text)
{
    PGresult *r = PQexec(db, text);
    int64_t n
        = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) ? atoll(PQgetvalue(r, 0, 0)) : -1;
    PQclear(r);
    return n;
}

/* Waits until `text` answers `wanted`; a minute is far too long. */
static bool comes_to(PGconn *db, const char *text, int64_t wanted)
{
    for (int i = 0; i < 12000; i++) {
        if (ask(db, text) == wanted)
            return true;
        usleep(5000);
    }
    return false;
}

/* Ends the backend; with asleep, as soon as it is found in pg_sleep. */
static bool end_backend(int64_t pid, bool asleep)
{
    char text[200];
    PGconn *db = PQconnectdb(getenv("ARCUS_TEST_POSTGRES"));
    snprintf(text, sizeof text,
             "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %ld AND wait_event = 'PgSleep'",
             (long)pid);
    bool ok = !asleep || comes_to(db, text, 1);
    snprintf(text, sizeof text, "SELECT pg_terminate_backend(%ld)::int", (long)pid);
    ok = ok && ask(db, text) >= 0;
    snprintf(text, sizeof text, "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %ld", (long)pid);
    ok = ok && comes_to(db, text, 0);
    PQfinish(db);
    for (int i = 0; i < 12000 && kill((pid_t)pid, 0) == 0; i++)  /* its socket is open a moment longer */
        usleep(5000);
    return ok;
}

static void *end_sleeper(void *arg) { return end_backend(*(int64_t *)arg, true) ? arg : NULL; }

ON("postgres", a_lost_connection_comes_back_by_itself)
{
    CHECK(thing_add(p, 1, "one"));
    int64_t writer = number(p, p->writer, backend_pid), reader = number(p, p->reader, backend_pid);
    CHECK(end_backend(writer, false) && end_backend(reader, false));
    CHECK(thing_add(p, 2, "two"));
    CHECK(things(p, p->reader).count == 2);
    CHECK(number(p, p->writer, backend_pid) != writer
          && number(p, p->reader, backend_pid) != reader);
    CHECK(!run(p, p->reader, "DELETE FROM thing"));     /* still a reader */
    CHECK(number(p, p->writer, "SELECT COUNT(*) FROM pg_prepared_statements")
          == thing_statements.count + 2);
    p->err = (struct err){ 0 };
}

/* As long as the connection is told: one that takes its place knows nothing of that. */
#define NAP "pg_sleep(COALESCE(NULLIF(current_setting('test.nap', true), ''), '0')::float8) IS NOT NULL"
#define A_MINUTE "SET test.nap = '60'"
enum { SLOW_WRITE, SLOW_READ };
static const struct sql slow_rows[] = {
    [SLOW_WRITE] = { "SLOW_WRITE", "i", "UPDATE thing SET n = ?1 WHERE " NAP },
    [SLOW_READ] = { "SLOW_READ", "", "SELECT id FROM thing WHERE " NAP },
};

static bool slow_open(struct place *p)
{
    CHECK(thing_add(p, 1, "one"));
    conn_close(TAKE(p->writer));
    conn_close(TAKE(p->reader));
    store_close(TAKE(p->store));
    return store_open_with(p->os, p->where, thing_steps,
                           (struct sql_list){ slow_rows, COUNT(slow_rows) }, &p->store, &p->err)
           && conn_open(p->store, true, &p->writer, &p->err)
           && conn_open(p->store, false, &p->reader, &p->err);
}

ON("postgres", a_connection_lost_amid_a_statement_undoes_the_commit_and_repeats_the_read)
{
    pthread_t killer;
    void *killed = NULL;
    bool unknown = true;
    struct write w = { ST(SLOW_WRITE), 1, (struct value[]){ V_INT(77) } };
    CHECK(slow_open(p));
    int64_t pid = number(p, p->writer, backend_pid);
    CHECK(run(p, p->writer, A_MINUTE) && pthread_create(&killer, NULL, end_sleeper, &pid) == 0);
    CHECK(!store_commit(p->writer, &w, 1, &unknown, &p->err) && p->err.rc == RC_UNAVAILABLE);
    CHECK(!unknown); /* it was told to stop before it came to COMMIT, so this is certain */
    CHECK(pthread_join(killer, &killed) == 0 && killed);
    CHECK(number(p, p->reader, "SELECT n FROM thing WHERE id = 1") == 10);
    CHECK(store_commit(p->writer, &w, 1, &unknown, &p->err)
          && number(p, p->reader, "SELECT n FROM thing") == 77);

    struct rows r = { 0 };
    pid = number(p, p->reader, backend_pid);
    CHECK(run(p, p->reader, A_MINUTE) && pthread_create(&killer, NULL, end_sleeper, &pid) == 0);
    CHECK(store_query(p->reader, ST(SLOW_READ), NULL, 0, p->mem, &r, &p->err) && r.count == 1);
    CHECK(pthread_join(killer, &killed) == 0 && killed);
    p->err = (struct err){ 0 };
}

ON("postgres", a_statement_that_takes_too_long_is_undone)
{
    bool unknown = true;
    CHECK(number(p, p->writer,
                 "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'")
          == 30000);
    CHECK(slow_open(p));
    int64_t pid = number(p, p->writer, backend_pid);
    CHECK(run(p, p->writer, A_MINUTE) && run(p, p->writer, "SET statement_timeout = '1s'"));
    CHECK(!store_commit(p->writer,
                        &(struct write){ ST(SLOW_WRITE), 1, (struct value[]){ V_INT(77) } }, 1,
                        &unknown, &p->err));
    CHECK(p->err.rc == RC_UNAVAILABLE && !unknown && strstr(p->err.text, "took too long"));
    CHECK(number(p, p->writer, backend_pid) == pid
          && number(p, p->writer, "SELECT n FROM thing") == 10);
    p->err = (struct err){ 0 };
}

ON("postgres", acknowledged_means_durable_whatever_the_server_was_told)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    const char *url = arena_printf(p->mem, "%s%%20-csynchronous_commit%%3Doff", p->where);
    CHECK(store_open_with(p->os, url, thing_steps, thing_statements, &s, &p->err)
          && conn_open(s, true, &c, &p->err));
    CHECK(
        number(
            p, c,
            "SELECT COUNT(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'on'")
        == 1);
    CHECK(number(p, p->writer, "SELECT COUNT(*) FROM thing")
          == 0); /* so the schema of the URL was kept */
}

ON("postgres", a_type_that_both_stores_do_not_share_stops_the_opening)
{
    static const struct sql bad[] = {
        { "SUM", "", "SELECT SUM(n) FROM thing" }, /* a numeric: SQLite would give an integer */
        { "MISTYPED", "t", "SELECT id FROM thing WHERE id = ?1" },
        { "MISTYPED_WRITE", "itbt",
          "INSERT INTO thing (id, name, data, n) VALUES (?1, ?2, ?3, ?4)" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(store_close) struct store *s = NULL;
        struct conn *c = NULL;
        CHECK(store_open_with(p->os, p->where, thing_steps, (struct sql_list){ &bad[i], 1 }, &s,
                              &p->err));
        CHECK(!conn_open(s, true, &c, &p->err) && !c && strstr(p->err.text, bad[i].name));
    }
    p->err = (struct err){ 0 };
}

/* --- a proxy that loses the answer to COMMIT, before or after PostgreSQL heard of it */
enum { PASS, CUT_BEFORE, CUT_AFTER };
struct proxy { int listener; struct sockaddr_un to; atomic_int mode; pthread_t thread; };

static bool pass_on(int from, int to, struct proxy *w, bool watch)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);
    if (n <= 0)
        return false;
    bool cut = watch && memmem(bytes, (size_t)n, "COMMIT", 6) && w->mode != PASS;
    if (cut && w->mode == CUT_BEFORE)
        return false;
    if (write(to, bytes, (size_t)n) != n)
        return false;
    return !cut
           || (read(to, bytes, sizeof bytes), false); /* PostgreSQL has answered, so it is done */
}

static void *proxy_run(void *arg)
{
    struct proxy *w = arg;
    for (int a; (a = accept(w->listener, NULL, NULL)) >= 0; ) {
        int b = socket(AF_UNIX, SOCK_STREAM, 0);
        bool on = connect(b, (struct sockaddr *)&w->to, sizeof w->to) == 0;
        while (on) {
            struct pollfd fds[] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
            poll(fds, 2, -1);
            on = (!fds[0].revents || pass_on(a, b, w, true))
                 && (!fds[1].revents || pass_on(b, a, w, false));
        }
        close(a);
        close(b);
    }
    return NULL;
}

static void proxy_start(struct proxy *w, const char *folder)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    PGconn *db = PQconnectdb(getenv("ARCUS_TEST_POSTGRES"));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/.s.PGSQL.5432", folder);
    w->to.sun_family = AF_UNIX;
    snprintf(w->to.sun_path, sizeof w->to.sun_path, "%s/.s.PGSQL.%s", PQhost(db), PQport(db));
    PQfinish(db);
    w->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(w->listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(w->listener, 4) == 0);
    CHECK(pthread_create(&w->thread, NULL, proxy_run, w) == 0);
}

ON("postgres", a_commit_whose_answer_is_lost_is_called_unknown)
{
    static struct proxy
        w; /* static: the thread outlives nothing, but ASan watches stacks closely */
    bool unknown = false;
    conn_close(TAKE(p->writer));
    proxy_start(&w, p->folder);
    struct store *direct = p->store;
    p->store = NULL;
    CHECK(store_open_with(p->os, arena_printf(p->mem, "%s&host=%s&port=5432", p->where, p->folder),
                          thing_steps, thing_statements, &p->store, &p->err)
          && conn_open(p->store, true, &p->writer, &p->err));
    struct write write
        = { ST(THING_ADD), 4, (struct value[]){ V_INT(1), V_TEXT("a"), { 0 }, V_INT(1) } };
    w.mode = CUT_BEFORE;
    CHECK(!store_commit(p->writer, &write, 1, &unknown, &p->err) && p->err.rc == RC_UNAVAILABLE
          && unknown);
    CHECK(store_count(p->reader, "thing") == 0);
    w.mode = CUT_AFTER;
    CHECK(!store_commit(p->writer, &write, 1, &unknown, &p->err) && p->err.rc == RC_UNAVAILABLE
          && unknown);
    CHECK(store_count(p->reader, "thing") == 1); /* and there it is: hence unknown, not failed */
    w.mode = PASS;
    CHECK(!store_commit(p->writer, &write, 1, &unknown, &p->err) && p->err.rc == RC_CONFLICT
          && !unknown);
    CHECK(thing_add(p, 2, "two") && store_count(p->reader, "thing") == 2);
    conn_close(TAKE(p->writer));
    store_close(TAKE(p->store));
    p->store = direct;
    shutdown(w.listener, SHUT_RDWR);
    pthread_join(w.thread, NULL);
    close(w.listener);
    p->err = (struct err){ 0 };
}
