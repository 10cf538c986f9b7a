/* store_rows.c - how many rows a second a store takes, durably, in transactions of 1, 10, 100
 * and 1000.
 *
 *   store_rows [-r] [SECONDS] PLACE...     a PLACE is what store_open takes; give it a fresh one
 *
 * The rows are those of a submit: an event of about 300 bytes each. With -r it also reads while
 * it writes. */
#include "store/store.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 1000 };
static const int batches[] = { 1, 10, 100, 1000 };

struct rows_of_event { struct value args[MOST][12]; struct write writes[MOST]; };
struct reading { struct store *store; atomic_bool stop; int64_t reads; };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill(struct rows_of_event *e, int count, int64_t seq)
{
    static const char data[]
        = "{\"name\":\"train\",\"image\":\"registry.example/team/"
          "train:7\",\"gpus\":1,\"cpu\":4000,\"mem_mib\":16384,"
          "\"argv\":[\"python\",\"train.py\",\"--epochs\",\"3\"],\"state\":\"queued\"}";
    for (int i = 0; i < count; i++) {
        struct value args[] = { V_INT(seq + i),
                                V_INT(1790000000000 + seq),
                                V_INT(7),
                                V_TEXT("job.queued"),
                                V_TEXT("job-0d3kq8zj2m4xa"),
                                V_TEXT("user-0d3kq8zj2m4xb"),
                                V_INT(11),
                                V_INT(12),
                                V_TEXT("10.0.0.1"),
                                V_TEXT("req-0d3kq8zj2m4xc"),
                                V_TEXT(NULL),
                                V_TEXT(data) };
        _Static_assert(COUNT(args) == COUNT(e->args[0]), "a value for each parameter");
        memcpy(e->args[i], args, sizeof args);
        e->writes[i] = (struct write){ ST_EVENT_ADD, COUNT(args), e->args[i] };
    }
}

static bool measure(struct conn *c, struct rows_of_event *e, int batch, double seconds,
                    int64_t *seq, struct err *err)
{
    double start = now(), worst = 0, last = start;
    int64_t rows = 0;
    bool unknown;
    while (last - start < seconds) {
        fill(e, batch, *seq + 1);
        if (!store_commit(c, e->writes, (size_t)batch, &unknown, err))
            return false;
        double at = now();
        worst = MAX(worst, at - last);
        last = at;
        *seq += batch;
        rows += batch;
    }
    printf("  %5d rows a commit: %8.0f rows/s  %8.0f commits/s  mean %7.3f ms  worst %8.3f ms\n",
           batch, (double)rows / (last - start), (double)(rows / batch) / (last - start),
           1e3 * (last - start) / (double)(rows / batch), 1e3 * worst);
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

static bool bench(struct os *os, const char *where, double seconds, bool reads, struct err *err)
{
    AUTO(store_close) struct store *s = NULL;
    AUTO(conn_close) struct conn *c = NULL;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows_of_event *e = ARENA_NEW(mem, struct rows_of_event);
    struct rows last;
    if (!store_open(os, where, &s, err) || !conn_open(s, true, &c, err)
        || !store_query(c, ST_LAST_EVENT, NULL, 0, mem, &last, err))
        return false;
    int64_t seq = row_int(&last, 0, 0);
    struct reading reading = { .store = s };
    pthread_t thread;
    bool reader = reads && pthread_create(&thread, NULL, read_on, &reading) == 0, ok = true;
    printf("%s%s\n", store_kind(s), reader ? ", with a reader beside" : "");
    double start = now();
    for (size_t i = 0; i < COUNT(batches) && ok; i++)
        ok = measure(c, e, batches[i], seconds, &seq, err);
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
    for (int i = 1; os && i < argc; i++)
        if (text_is(argv[i], "-r"))
            reads = true;
        else if (argv[i][0] >= '0' && argv[i][0] <= '9')
            seconds = atof(argv[i]);
        else if (!bench(os, argv[i], seconds, reads, &err))
            break;
    os_free(os);
    if (err.rc)
        fprintf(stderr, "store_rows: %s\n", err.text);
    return err.rc != RC_OK;
}
