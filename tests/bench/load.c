/* load.c - a load generator: many kept-alive connections to one server, and how long the replies took.
 *
 *   bench-load URL [-c CONNECTIONS] [-t SECONDS] [-r RATE] [-k KEY] [-m METHOD] [-b BODY] [-w SECONDS] [-n COUNT] [-g PATH]
 *              [-p PID -o ROUNDS]
 *
 * URL is http://ADDRESS:PORT/PATH or https://.. (no certificate is checked). Without -r each connection asks again as soon as it
 * has its reply; with it RATE requests a second are due in all, and a request's time counts from when it was due, so that a
 * server that stands still is not flattered. -w: a while at the start that is not counted. -n: each connection
 * asks only so often and is then held, to weigh it. -g: every second request is a GET of that path. -p: the process PID, another
 * load, is stopped and let go on in turn, ROUNDS times each for SECONDS after a while of -w, and both are told apart: alone and beside
 * it, and the median of the rounds' ratios. So whatever else the machine does is the same for both.
 * One line comes out: name=value pairs, times in microseconds. A connection that the server closes is made anew. */
#include "base/base.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { FINE = 64, POWERS = 27, REPLY_HEAD = 4096, READ = 65536, AT_ONCE = 256, ROUNDS_MOST = 100 };

struct histogram { uint64_t count, at[POWERS * FINE], most; };
struct wish { char *at; size_t len; };
struct client {
    int fd;
    SSL *ssl;
    bool connected, busy, listed;   /* listed: among the idle ones */
    size_t sent;
    int64_t due_us, again_us;       /* again: closed or refused, and not to be hurried */
    char head[REPLY_HEAD];
    size_t head_len;
    int64_t body_left;              /* -1: the head is not whole yet */
    int status, asked;
    bool closes;
    const struct wish *wish;
};
/* Alone and beside another, in turn: even turns are alone. */
struct turns { int other, rounds, now; int64_t until_us, settle_us, span_us; struct histogram round, all[2]; uint64_t p99[2][ROUNDS_MOST]; };
struct load {
    struct sockaddr_in to;
    char host[64], path[512];
    const char *key, *method, *body;
    bool tls;
    int most;                       /* requests of each connection; -1: any number */
    int count;
    double rate;
    int64_t begin_us, end_us, next_us;
    struct client *clients, **idle;
    int idle_count, epoll, open;
    SSL_CTX *ctx;
    struct wish wishes[2];
    int wish_count, wished;
    struct turns turns;
    struct histogram times;
    uint64_t good, limited, busy, other, failed, due;
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* --- the histogram: exact to one part in 32 */

static void count_time(struct histogram *h, uint64_t us)
{
    unsigned power = us < FINE ? 0 : 64u - (unsigned)__builtin_clzll(us) - 6;
    size_t at = us < FINE ? us : (size_t)power * FINE + (us >> power) - FINE / 2;
    h->at[MIN(at, COUNT(h->at) - 1)]++;
    h->count++;
    h->most = MAX(h->most, us);
}

static uint64_t time_of(size_t at)
{
    if (at < FINE)
        return at;
    return (uint64_t)(at % FINE + FINE / 2) << (at / FINE);
}

static uint64_t quantile(const struct histogram *h, double q)
{
    uint64_t before = 0, wanted = (uint64_t)((double)h->count * q);
    for (size_t i = 0; i < COUNT(h->at); i++)
        if ((before += h->at[i]) > wanted)
            return MIN(time_of(i), h->most);
    return h->most;
}

/* --- one connection */

static void client_close(struct load *l, struct client *c)
{
    l->open -= c->connected;
    SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    *c = (struct client){ .fd = -1, .listed = c->listed, .again_us = now_us() + 20000 };
}

static bool client_dial(struct load *l, struct client *c)
{
    int on = 1;
    *c = (struct client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .listed = c->listed, .body_left = -1 };
    if (c->fd == -1 || (connect(c->fd, (struct sockaddr *)&l->to, sizeof l->to) == -1 && errno != EINPROGRESS)) {
        client_close(l, c);
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (l->tls) {
        c->ssl = SSL_new(l->ctx);
        SSL_set_fd(c->ssl, c->fd);
        SSL_set_connect_state(c->ssl);
    }
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.ptr = c };
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

static void give_up(struct load *l, struct client *c)
{
    if (c->busy || !c->connected)
        l->failed++;
    client_close(l, c);
}

static ssize_t put(struct client *c, const char *at, size_t n)
{
    if (!c->ssl)
        return send(c->fd, at, n, MSG_NOSIGNAL);
    int done = SSL_write(c->ssl, at, (int)n);
    if (done <= 0)
        errno = SSL_get_error(c->ssl, done) == SSL_ERROR_SSL ? EPROTO : EAGAIN;
    return done > 0 ? done : -1;
}

static ssize_t get(struct client *c, char *to, size_t n)
{
    if (!c->ssl)
        return recv(c->fd, to, n, 0);
    int done = SSL_read(c->ssl, to, (int)n);
    int why = done > 0 ? 0 : SSL_get_error(c->ssl, done);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return done > 0 ? done : why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static void push(struct load *l, struct client *c)
{
    while (c->busy && c->sent < c->wish->len) {
        ssize_t n = put(c, c->wish->at + c->sent, c->wish->len - c->sent);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                give_up(l, c);
            return;
        }
        c->sent += (size_t)n;
    }
}

static void ask(struct load *l, struct client *c, int64_t due_us)
{
    c->busy = true;
    c->asked++;
    c->wish = &l->wishes[l->wished++ % l->wish_count];
    c->sent = c->head_len = 0;
    c->body_left = -1;
    c->due_us = due_us;
    push(l, c);
}

static void free_again(struct load *l, struct client *c, int64_t now)
{
    c->busy = false;
    if (c->asked == l->most || now >= l->end_us)
        return;
    if (l->rate > 0 && !c->listed) {
        c->listed = true;
        l->idle[l->idle_count++] = c;
    } else if (l->rate <= 0) {
        ask(l, c, now);
    }
}

static void replied(struct load *l, struct client *c)
{
    int64_t now = now_us();
    if (c->due_us >= l->begin_us && now < l->end_us) {
        bool good = c->status >= 200 && c->status < 300;
        l->good += good;
        l->limited += c->status == 429;
        l->busy += c->status == 503;
        l->other += !good && c->status != 429 && c->status != 503;
        if (good)
            count_time(l->turns.other ? &l->turns.round : &l->times, (uint64_t)(now - c->due_us));
    }
    if (c->closes) {
        c->busy = false;
        client_close(l, c);
    } else {
        free_again(l, c, now);
    }
}

/* The head of a reply: its status, its length, and whether the connection ends behind it. Ours are never chunked here. */
static bool head_read(struct client *c, const char *end)
{
    *(char *)end = 0;
    c->status = atoi(c->head + 9);
    c->body_left = 0;
    c->closes = false;
    for (const char *line = c->head; (line = strchr(line, '\n'));) {
        if (strncasecmp(++line, "content-length:", 15) == 0)
            c->body_left = atoll(line + 15);
        c->closes |= strncasecmp(line, "connection: close", 17) == 0;
    }
    return c->status >= 100;
}

static bool take(struct load *l, struct client *c, const char *at, size_t n)
{
    while (n && c->fd >= 0) {
        if (!c->busy)
            return false;
        if (c->body_left < 0) {
            size_t part = MIN(n, sizeof c->head - 1 - c->head_len), before = c->head_len;
            memcpy(c->head + before, at, part);
            c->head_len += part;
            c->head[c->head_len] = 0;
            char *end = strstr(c->head, "\r\n\r\n");
            if (!end && c->head_len == sizeof c->head - 1)
                return false;
            size_t used = end ? (size_t)(end + 4 - c->head) - before : part;
            at += used;
            n -= used;
            if (!end)
                continue;
            if (!head_read(c, end))
                return false;
        }
        size_t part = MIN(n, (size_t)c->body_left);
        c->body_left -= (int64_t)part;
        at += part;
        n -= part;
        if (c->body_left == 0)
            replied(l, c);
    }
    return true;
}

/* ends: the server has closed its side, or soon will; else a read that did not fill the buffer has emptied the socket. */
static void client_ready(struct load *l, struct client *c, bool ends)
{
    static char bytes[READ];
    if (!c->connected) {
        int bad = 0;
        socklen_t len = sizeof bad;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &bad, &len);
        int done = bad ? -1 : c->ssl ? SSL_do_handshake(c->ssl) : 1;
        if (!bad && c->ssl && done != 1 && SSL_get_error(c->ssl, done) != SSL_ERROR_SSL
            && SSL_get_error(c->ssl, done) != SSL_ERROR_SYSCALL)
            return;
        if (bad || done != 1) {
            give_up(l, c);
            return;
        }
        c->connected = true;
        l->open++;
        free_again(l, c, now_us());
    }
    if (c->fd >= 0)
        push(l, c);
    while (c->fd >= 0) {
        ssize_t n = get(c, bytes, sizeof bytes);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || !take(l, c, bytes, (size_t)n)) {
            if (c->fd >= 0)
                give_up(l, c);
            return;
        }
        if (!c->ssl && !ends && (size_t)n < sizeof bytes)
            return;
    }
}

/* --- alone and beside */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void count_all(struct histogram *to, const struct histogram *from)
{
    for (size_t i = 0; i < COUNT(to->at); i++)
        to->at[i] += from->at[i];
    to->count += from->count;
    to->most = MAX(to->most, from->most);
}

/* What is asked from begin_us on is counted, until the turn ends. */
static void turn_begin(struct load *l, int64_t now)
{
    struct turns *t = &l->turns;
    kill(t->other, t->now % 2 ? SIGCONT : SIGSTOP);
    l->begin_us = now + t->settle_us;
    t->until_us = l->begin_us + t->span_us;
    t->round = (struct histogram){ 0 };
}

static void turn_watch(struct load *l, int64_t now)
{
    struct turns *t = &l->turns;
    if (!t->other || now < t->until_us)
        return;
    t->p99[t->now % 2][t->now / 2] = quantile(&t->round, 0.99);
    count_all(&t->all[t->now % 2], &t->round);
    if (++t->now < 2 * t->rounds)
        turn_begin(l, now);
    else
        l->end_us = now;
}

static void turns_report(const struct turns *t)
{
    double ratio[ROUNDS_MOST];
    for (int i = 0; i < t->rounds; i++)
        ratio[i] = (double)t->p99[1][i] / (double)MAX(t->p99[0][i], 1u);
    qsort(ratio, (size_t)t->rounds, sizeof *ratio, by_size);
    for (int i = 0; i < 2; i++)
        printf("%s_count=%llu %s_p50=%llu %s_p99=%llu ", i ? "beside" : "alone", (unsigned long long)t->all[i].count, i ? "beside" : "alone",
               (unsigned long long)quantile(&t->all[i], 0.5), i ? "beside" : "alone", (unsigned long long)quantile(&t->all[i], 0.99));
    printf("ratio=%.2f least=%.2f most=%.2f pooled=%.2f\n", ratio[t->rounds / 2], ratio[0], ratio[t->rounds - 1],
           (double)quantile(&t->all[1], 0.99) / (double)MAX(quantile(&t->all[0], 0.99), 1u));
}

/* --- all of them */

static void send_due(struct load *l, int64_t now)
{
    while (l->rate > 0 && l->next_us <= now && now < l->end_us && l->idle_count) {
        struct client *c = l->idle[--l->idle_count];
        c->listed = false;
        if (!c->connected || c->busy)
            continue;
        ask(l, c, l->next_us);
        l->due++;
        l->next_us += (int64_t)(1e6 / l->rate);
    }
}

static void run(struct load *l)
{
    struct epoll_event events[AT_ONCE];
    int dialled = 0;
    for (int64_t now = now_us(); now < l->end_us; now = now_us()) {
        for (int i = 0; i < 64 && dialled < l->count; i++)
            client_dial(l, &l->clients[dialled++]);
        for (int i = 0; i < l->count && dialled == l->count && l->open < l->count; i++)
            if (l->clients[i].fd < 0 && l->clients[i].again_us <= now)
                client_dial(l, &l->clients[i]);
        send_due(l, now);
        turn_watch(l, now);
        int64_t wait_us = l->rate > 0 && l->idle_count ? l->next_us - now : 10000;
        int n = epoll_wait(l->epoll, events, AT_ONCE, dialled < l->count ? 0 : (int)MAX(MIN(wait_us, 10000) / 1000, 0));
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (c->fd >= 0)
                client_ready(l, c, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
        }
    }
}

static void build_request(struct load *l, const char *method, const char *path, const char *body)
{
    struct wish *w = &l->wishes[l->wish_count++];
    size_t n = body ? strlen(body) : 0;
    char *auth = NULL;
    if (l->key && asprintf(&auth, "Authorization: Bearer %s\r\n", l->key) < 0)
        abort();
    int len = asprintf(&w->at, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%sContent-Length: %zu\r\n\r\n%s", method, path, l->host,
                       auth ? auth : "", n ? "Content-Type: application/json\r\n" : "", n, n ? body : "");
    if (len < 0)
        abort();
    w->len = (size_t)len;
    free(auth);
}

static bool parse_url(struct load *l, const char *url)
{
    char port[8];
    l->tls = strncmp(url, "https://", 8) == 0;
    l->path[0] = '/';
    if (sscanf(url + 7 + l->tls, "%63[^:/]:%7[0-9]%511s", l->host, port, l->path) < 2)
        return false;
    l->to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
    return inet_pton(AF_INET, l->host, &l->to.sin_addr) == 1;
}

static void report(const struct load *l, double seconds)
{
    const struct histogram *h = &l->times;
    printf("connections=%d open=%d rate=%.0f good=%llu limited=%llu unavailable=%llu other=%llu failed=%llu p50=%llu p90=%llu p99=%llu p999=%llu most=%llu\n",
           l->count, l->open, (double)l->good / seconds, (unsigned long long)l->good, (unsigned long long)l->limited,
           (unsigned long long)l->busy, (unsigned long long)l->other, (unsigned long long)l->failed,
           (unsigned long long)quantile(h, 0.5), (unsigned long long)quantile(h, 0.9), (unsigned long long)quantile(h, 0.99),
           (unsigned long long)quantile(h, 0.999), (unsigned long long)h->most);
}

int main(int argc, char **argv)
{
    static struct load l = { .method = "GET", .count = 64, .most = -1, .turns.rounds = 5 };
    const char *second = NULL;
    double seconds = 5, warm = 0.5;
    for (int o; (o = getopt(argc, argv, "c:t:r:k:m:b:w:n:g:p:o:")) != -1;)
        switch (o) {
        case 'c': l.count = atoi(optarg); break;
        case 't': seconds = atof(optarg); break;
        case 'r': l.rate = atof(optarg); break;
        case 'k': l.key = optarg; break;
        case 'm': l.method = optarg; break;
        case 'b': l.body = optarg; break;
        case 'w': warm = atof(optarg); break;
        case 'n': l.most = atoi(optarg); break;
        case 'g': second = optarg; break;
        case 'p': l.turns.other = atoi(optarg); break;
        case 'o': l.turns.rounds = MIN(MAX(atoi(optarg), 1), (int)ROUNDS_MOST); break;
        default: return 2;
        }
    if (optind >= argc || !parse_url(&l, argv[optind]) || l.count < 1 || l.count > 100000) {
        fprintf(stderr, "usage: bench-load http://127.0.0.1:PORT/PATH [-c CONNECTIONS] [-t SECONDS] [-r RATE] [-k KEY] [-m METHOD] [-b BODY] [-w SECONDS] [-n COUNT] [-g PATH] [-p PID -o ROUNDS]\n");
        return 2;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
    l.ctx = l.tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    l.clients = calloc((size_t)l.count, sizeof *l.clients);
    l.idle = calloc((size_t)l.count, sizeof *l.idle);
    if (!l.clients || !l.idle || l.epoll == -1)
        abort();
    for (int i = 0; i < l.count; i++)
        l.clients[i].fd = -1;
    build_request(&l, l.method, l.path, l.body);
    if (second)
        build_request(&l, "GET", second, NULL);
    l.next_us = now_us();
    l.begin_us = l.next_us + (int64_t)(warm * 1e6);
    l.end_us = l.begin_us + (int64_t)(seconds * 1e6);
    if (l.turns.other) {
        l.turns.settle_us = (int64_t)(warm * 1e6);
        l.turns.span_us = (int64_t)(seconds * 1e6);
        l.end_us = INT64_MAX;
        turn_begin(&l, l.next_us);
    }
    run(&l);
    if (l.turns.other)
        turns_report(&l.turns);
    else
        report(&l, seconds);
    return 0;
}
