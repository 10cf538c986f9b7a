/* stream_logs.c - what a task printed, from its segments on disk (log_format.h), from the last lines on, and live if asked.
 *
 * Reads a piece at a time, so that a long log does not hold up the loop. To find the last n lines it counts backwards,
 * segment by segment. Following ends when the attempt had ended before everything was read. */
#include "agent/log_format.h"
#include "agent/streams_internal.h"
#include "agent/task_proto.h"
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 64 << 10, TURN_BYTES = 256 << 10, POLL_MS = 1000 };

struct logs;
struct news {
    struct logs *logs;
    struct stream *socket;
}; /* word from the supervisor; lives until its socket has closed */

struct logs {
    struct serve *serve;
    char folder[256];
    int64_t segment; /* 0: none open */
    struct disk_file *file;
    int64_t offset;
    struct str in;
    size_t used;    /* of in */
    int64_t begins; /* where in the segment the record does */
    int64_t told;   /* how many of its bytes are not told again: of the first one, after a mark */
    bool last_look; /* a later segment is there: what this one still has is all it will ever have */
    bool counting;  /* from the last segment backwards */
    bool counted_last, partial; /* partial: the last line has no end yet */
    int64_t lines, skip;
    bool placed;    /* whoever asked has a place to go on from */
    struct timer *turn;
    struct news *news;
};

static void turn(void *arg);

static void turn_in(struct logs *l, int64_t ms)
{
    timer_cancel(l->turn);
    l->turn = timer_start(serve_os(l->serve), ms, turn, l);
}

/* --- segments */

/* The nearest one above (or below) `from`; 0: none. */
static int64_t neighbour(const struct logs *l, int64_t from, bool above)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct texts names = { 0 };
    int64_t best = 0, n;
    if (!dir_list(serve_os(l->serve), l->folder, mem, &names, &err))
        return 0; /* nothing was printed yet */
    for (size_t i = 0; i < names.count; i++)
        if (log_is_segment(names.at[i], &n)
            && (above ? n > from && (!best || n < best) : n < from && n > best))
            best = n;
    return best;
}

static void segment_close(struct logs *l)
{
    if (l->file)
        disk_close(TAKE(l->file));
    str_clear(&l->in);
    l->used = 0;
    l->offset = 0;
    l->last_look = false;
}

static void segment_open(struct logs *l, int64_t number)
{
    char name[LOG_SEGMENT_NAME + 1], path[sizeof l->folder + LOG_SEGMENT_NAME + 2];
    struct err err = { 0 };
    segment_close(l);
    l->segment = number;
    log_segment_name(name, number);
    snprintf(path, sizeof path, "%s/%s", l->folder, name);
    l->file = disk_open(serve_os(l->serve), path, false,
                        &err); /* NULL: dropped just now; it counts as empty */
}

static enum log_found segment_next(struct logs *l, struct log_record *r)
{
    while (l->file) {
        struct slice left = { l->used ? l->in.at + l->used : l->in.at, l->in.len - l->used };
        size_t before = left.len, got = 0;
        enum log_found found = before ? log_next(&left, r) : LOG_MORE;
        l->begins = l->offset - (int64_t)before;
        if (found != LOG_MORE)
            return l->used += before - left.len, found;
        str_drop(&l->in, l->used);
        l->used = 0;
        char *to = str_grow(&l->in, PIECE);
        if (!disk_read(l->file, l->offset, to, PIECE, &got) || got == 0)
            return LOG_MORE;
        l->in.len += got;
        l->in.at[l->in.len] = 0;
        l->offset += (int64_t)got;
    }
    return LOG_MORE;
}

static bool is_asked(const struct logs *l, const struct log_record *r)
{
    const char *source = l->serve->ask.source;
    return !text_given(source) || text_is(source, r->stream == 'o' ? "stdout" : "stderr");
}

/* --- one turn */

static void count_record(struct logs *l, const struct log_record *r)
{
    const char *at = r->bytes.at, *end = at + r->bytes.len;
    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        l->lines++;
    if (r->bytes.len)
        l->partial = end[-1] != '\n';
}

static void send_record(struct logs *l, const struct log_record *r)
{
    const char *at = r->bytes.at + MIN((size_t)l->told, r->bytes.len), *end = r->bytes.at + r->bytes.len, *nl;
    l->told = 0;
    for (; l->skip && at < end; at = nl + 1) {
        if (!(nl = memchr(at, '\n', (size_t)(end - at))))
            return;
        l->skip--;
    }
    for (size_t n; at < end; at += n) {
        char place[LOG_PLACE + 16];
        n = MIN((size_t)(end - at), (size_t)SERVE_PIECE);
        if (l->serve->ask.follow) {
            snprintf(place, sizeof place, "{\"at\":\"%lld.%lld.%lld\"}", (long long)l->segment, (long long)l->begins, (long long)(at + n - r->bytes.at));
            serve_send(l->serve, CHANNEL_CONTROL, place, strlen(place));
            l->placed = true;
        }
        serve_send(l->serve, r->stream == 'o' ? CHANNEL_OUT : CHANNEL_ERR, at, n);
    }
}


/* The segment is counted: is it the one to begin with? */
static void counted(struct logs *l)
{
    int64_t before = neighbour(l, l->segment, false), tail = l->serve->ask.tail;
    if (!l->counted_last && l->partial)
        l->lines++;
    l->counted_last = true;
    if (l->lines < tail && before) {
        segment_open(l, before);
        return;
    }
    l->counting = false;
    l->skip = MAX(l->lines - tail, 0);
    segment_open(l, l->segment);
}

/* True: there is another segment, or another look, to take. */
static bool go_on(struct logs *l)
{
    int64_t next = neighbour(l, l->segment, true);
    if (!next)
        return false;
    if (l->last_look || !l->file)
        segment_open(l, next);
    else
        l->last_look = true;
    return true;
}

/* Who follows from the last lines on and has heard nothing yet would ask for other last lines when its connection breaks: it is told from where on. */
static void tell_begin(struct logs *l)
{
    char place[LOG_PLACE + 16];
    if (!l->serve->ask.follow || l->serve->ask.tail < 0 || l->placed)
        return;
    l->placed = true;
    snprintf(place, sizeof place, "{\"begins\":\"%lld.%lld.0\"}", (long long)l->segment, (long long)(l->file ? l->begins : 0));
    serve_send(l->serve, CHANNEL_CONTROL, place, strlen(place));
}

static void at_end(struct logs *l, bool alive)
{
    tell_begin(l);
    if (!l->serve->ask.follow || !alive)
        serve_done(l->serve);
    else
        turn_in(l, POLL_MS);
}

static void turn(void *arg)
{
    struct logs *l = arg;
    bool alive = serve_alive(
        l->serve); /* before reading: what it wrote until its end is on disk by then */
    struct log_record r;
    l->turn = NULL;
    for (size_t bytes = 0; bytes < TURN_BYTES;) {
        if (!l->counting && !serve_room(l->serve))
            return; /* on_room goes on */
        enum log_found found = segment_next(l, &r);
        if (found == LOG_RECORD) {
            bytes += r.bytes.len + 1;
            if (is_asked(l, &r))
                (l->counting ? count_record : send_record)(l, &r);
        } else if (l->counting) {
            counted(l);
            break;
        } else if (found == LOG_BROKEN) { /* the rest of this segment is lost */
            segment_close(l);
        } else if (!go_on(l)) {
            at_end(l, alive);
            return;
        }
    }
    turn_in(l, 0);
}

/* --- word from the supervisor that there is more */

static size_t news_data(void *arg, const char *at, size_t n)
{
    struct news *w = arg;
    (void)at;
    if (w->logs && !w->logs->counting && serve_room(w->logs->serve))
        turn_in(w->logs, 0);
    return n;
}

static void news_close(void *arg, const struct err *why)
{
    struct news *w = arg;
    (void)why;
    if (w->logs)
        w->logs->news = NULL; /* the slow look goes on */
    free(w);
}

static void news_ask(struct logs *l)
{
    static const struct stream_events events = { .on_data = news_data, .on_close = news_close };
    static const char request[] = "{\"op\":\"follow\"}";
    unsigned char head[FRAME_HEAD];
    char address[128];
    if (!serve_socket(l->serve, address))
        return;
    struct news *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->logs = l;
    l->news = w;
    w->socket = stream_dial(serve_os(l->serve), address, NULL, NULL, &events, w);
    frame_head(head, FRAME_REQUEST, sizeof request - 1);
    stream_write(w->socket, head, sizeof head);
    stream_write(w->socket, request, sizeof request - 1);
}

/* --- */

/* A segment that was dropped since counts as told: it goes on with the next that is there. */
static void begin_behind(struct logs *l, const char *place)
{
    char *end;
    int64_t segment = strtoll(place, &end, 10), offset = strtoll(end + 1, &end, 10), told = strtoll(end + 1, NULL, 10);
    if (segment < 1 || neighbour(l, segment - 1, true) != segment) {
        l->segment = MAX(segment - 1, 0);
        return;
    }
    segment_open(l, segment);
    l->offset = offset;
    l->told = told;
}

static bool start(struct serve *s, struct err *err)
{
    const char *from = s->ask.from;
    struct logs *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->serve = s;
    s->state = l;
    if (text_given(from) && !log_place_good(from))
        return err_set(err, RC_BAD_INPUT, "this is not a mark of a log");
    serve_log_folder(s, l->folder);
    int64_t last = neighbour(l, INT64_MAX, false);
    l->counting = s->ask.tail >= 0 && last && !text_given(from);
    l->placed = text_given(from);
    if (l->counting)
        segment_open(l, last);
    else if (text_given(from))
        begin_behind(l, from);
    if (s->ask.follow && serve_alive(s))
        news_ask(l);
    turn_in(l, 0);
    return true;
}

static void on_room(struct serve *s)
{
    struct logs *l = s->state;
    if (!l->counting)
        turn_in(l, 0);
}

static void on_change(struct serve *s)
{
    struct logs *l = s->state;
    if (!l->news && s->ask.follow && serve_alive(s))
        news_ask(l);
    if (!l->counting && serve_room(s))
        turn_in(l, 0);
}

static void stop(struct serve *s)
{
    struct logs *l = TAKE(s->state);
    if (l->news) {
        l->news->logs = NULL;
        stream_close(l->news->socket);
    }
    timer_cancel(l->turn);
    segment_close(l);
    str_done(&l->in);
    free(l);
}

const struct serve_ops serve_logs
    = { .start = start, .on_room = on_room, .on_change = on_change, .stop = stop };
