/* store_rows.c - how many rows a second a store takes, durably.
 *
 *   store_rows [-r] [-s N] [SECONDS] PLACE...     a PLACE is what store_open takes; give it a fresh one
 *
 * Events of about 300 bytes in transactions of 1, 10, 100 and 1000; with -s the two rows of a
 * submit (its job and its event), N submits a transaction, and only the submits a second are
 * printed: the floor of what a server can take. With -r it also reads while it writes. */
#include "store/store.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 20000, ARGS = 16 };
static const int batches[] = { 1, 10, 100, 1000 };

struct rows_of { struct value args[MOST][ARGS]; struct write writes[MOST]; };
struct reading { struct store *store; atomic_bool stop; int64_t reads; };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void put(struct rows_of *e, int at, enum statement st, const struct value *args, int count)
{
    memcpy(e->args[at], args, (size_t)count * sizeof *args);
    e->writes[at] = (struct write){ st, count, e->args[at] };
}

static void put_event(struct rows_of *e, int at, int64_t seq, const char *data)
{
    struct value args[] = { V_INT(seq),
                            V_INT(1790000000000 + seq / 64),
                            V_INT(909845196456368779),
                            V_TEXT("job.queued"),
                            V_TEXT("job-0d3kq8zj2m4xa"),
                            V_TEXT("admin"),
                            V_INT(909845196456368863),
                            V_INT(909845196456369049),
                            V_TEXT("127.0.0.1"),
                            V_TEXT("req-a270b8a857866972"),
                            V_TEXT(NULL),
                            V_TEXT(data),
                            V_INT(seq),
                            V_TEXT("job.submit"),
                            V_TEXT("00112233445566778899aabbccddeeff"),
                            V_NULL };
    _Static_assert(COUNT(args) == ARGS, "a value for each parameter");
    put(e, at, ST_EVENT_ADD, args, COUNT(args));
}

static void put_job(struct rows_of *e, int at, int64_t id)
{
    static const char spec[]
        = "{\"type\":\"job\",\"name\":\"true\",\"image\":\"host\",\"command\":[\"true\"],\"cpus\":1,"
          "\"memory\":\"1024MB\",\"shm_size\":\"64MB\",\"disk_size\":\"10240MB\",\"count\":1,"
          "\"priority\":50,\"grace\":30,\"retry_delay\":10,\"on_lost\":\"requeue\","
          "\"log_size\":\"100MB\"}";
    struct value args[] = { V_INT(909845196456369049 + id * 7919),
                            V_INT(909845196456368779),
                            V_INT(1),
                            V_INT(909845196456368863),
                            V_TEXT("true"),
                            V_INT(0),
                            V_INT(1),
                            V_INT(50),
                            V_INT(1),
                            V_TEXT(spec),
                            V_TEXT("cpu.1x1"),
                            V_TEXT(NULL),
                            V_INT(1790000000000 + id / 64),
                            V_NULL };
    put(e, at, ST_JOB_ADD, args, COUNT(args));
}

static void fill(struct rows_of *e, int count, int64_t seq, bool submits)
{
    static const char data[]
        = "{\"name\":\"train\",\"image\":\"registry.example/team/"
          "train:7\",\"gpus\":1,\"cpu\":4000,\"mem_mib\":16384,"
          "\"argv\":[\"python\",\"train.py\",\"--epochs\",\"3\"],\"state\":\"queued\"}";
    for (int i = 0; i < count; i++)
        if (submits) {
            put_job(e, 2 * i, seq + i);
            put_event(e, 2 * i + 1, seq + i, "{}");
        } else {
            put_event(e, i, seq + i, data);
        }
}

static bool measure(struct conn *c, struct rows_of *e, int batch, bool submits, double seconds,
                    int64_t *seq, struct err *err)
{
    double start = now(), worst = 0, last = start;
    int64_t rows = 0;
    bool unknown;
    while (last - start < seconds) {
        fill(e, batch, *seq + 1, submits);
        if (!store_commit(c, e->writes, (size_t)batch * (submits ? 2 : 1), &unknown, err))
            return false;
        double at = now();
        worst = MAX(worst, at - last);
        last = at;
        *seq += batch;
        rows += batch;
    }
    double took = last - start, commits = (double)(rows / batch);
    if (submits)
        printf("%.0f\n", (double)rows / took);
    else
        printf("  %5d rows a commit: %8.0f rows/s  %8.0f commits/s  mean %7.3f ms  worst %8.3f ms\n",
               batch, (double)rows / took, commits / took, 1e3 * took / commits, 1e3 * worst);
    fflush(stdout);
    return true;
}

static void *read_on(void *arg)
{
    struct reading *r = arg;
    struct err err = { 0 };
    AUTO(conn_close) struct conn *c = NULL;
    if (!conn_open(r->store, false, &c, &err))
        return NULL;
    for (int64_t from = 0; !r->stop; from += 50, r->reads++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct value args[] = { V_INT(from % 5000), V_INT(7), V_INT(INT64_MAX), V_INT(50) };
        struct rows rows;
        if (!store_query(c, ST_EVENT_LIST, args, 4, mem, &rows, &err))
            return NULL;
    }
    return NULL;
}

static bool bench(struct os *os, const char *where, double seconds, bool reads, int submits,
                  struct err *err)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows_of *e = ARENA_NEW(mem, struct rows_of);
    struct rows last;
    if (!store_open(os, where, &s, err) || !conn_open(s, true, &c, err)
        || !store_query(c, ST_LAST_EVENT, NULL, 0, mem, &last, err))
        return false;
    int64_t seq = row_int(&last, 0, 0);
    if (submits > 0)
        return measure(c, e, MIN(submits, MOST / 2), true, seconds, &seq, err);
    struct reading reading = { .store = s };
    pthread_t thread;
    bool reader = reads && pthread_create(&thread, NULL, read_on, &reading) == 0, ok = true;
    printf("%s%s\n", store_kind(s), reader ? ", with a reader beside" : "");
    double start = now();
    for (size_t i = 0; i < COUNT(batches) && ok; i++)
        ok = measure(c, e, batches[i], false, seconds, &seq, err);
    if (reader) {
        reading.stop = true;
        pthread_join(thread, NULL);
        printf("  pages of 50 rows read beside it: %.0f a second\n",
               (double)reading.reads / (now() - start));
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    double seconds = 2;
    bool reads = false;
    int submits = 0;
    for (int i = 1; os && i < argc; i++)
        if (text_is(argv[i], "-r"))
            reads = true;
        else if (text_is(argv[i], "-s") && i + 1 < argc)
            submits = atoi(argv[++i]);
        else if (argv[i][0] >= '0' && argv[i][0] <= '9')
            seconds = atof(argv[i]);
        else if (!bench(os, argv[i], seconds, reads, submits, &err))
            break;
    os_free(os);
    if (err.rc)
        fprintf(stderr, "store_rows: %s\n", err.text);
    return err.rc != RC_OK;
}
