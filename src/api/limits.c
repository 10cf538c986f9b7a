/* limits.c - buckets in two tables of fixed size.
 *
 * A bucket is one number: the time at which it would be full again (GCRA). Each place in a table has eight seats; a new name takes
 * the seat that was silent for longest. An IPv6 address counts by its /64, which is what one customer of a network has. */
#include "api/limits.h"
#include "base/log.h"
#include "base/rand.h"
#include <arpa/inet.h>
#include <stdlib.h>

enum { PLACES = 1024, SEATS = 8, NS_A_MS = 1000000, TELL_MS = 1000 };

const struct api_limits api_limits_default = { .key_rate = 50000, .address_rate = 100000, .failure_rate = 10 };
static const int64_t burst_s[] = { 2, 2, 20 };      /* of each rate, in this order */

struct seat { uint64_t id; int64_t seen_ms, full_ns, failures_full_ns; struct standing standing; };
struct table { struct seat seats[PLACES][SEATS]; };
struct limits {
    struct os *os;
    struct api_limits config;
    uint64_t salt;
    struct table keys, addresses;
    uint64_t refused[REFUSALS];
    int64_t told_ms;
};

struct limits *limits_new(struct os *os, const struct api_limits *config)
{
    struct limits *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    l->os = os;
    l->config = config ? *config : api_limits_default;
    os_random(os, &l->salt, sizeof l->salt);
    return l;
}

void limits_free(struct limits *l) { free(l); }

/* --- names */

static uint64_t number_of(const struct limits *l, const void *at, size_t n)
{
    uint64_t h = l->salt;
    for (size_t i = 0; i < n; i++)
        h = rng_next(&(struct rng){ h ^ ((const unsigned char *)at)[i] });
    return h ? h : 1;
}

static uint64_t address_id(const struct limits *l, const char *address)
{
    struct in6_addr v6;
    if (strchr(address, ':') && inet_pton(AF_INET6, address, &v6) == 1)
        return number_of(l, &v6, 8);
    return number_of(l, address, strlen(address));
}

static uint64_t key_id(const struct limits *l, const struct credential *from)
{
    uint64_t part[2];                   /* of a keyed hash: nobody chooses what falls together */
    memcpy(part, from->hash, sizeof part);
    return rng_next(&(struct rng){ rng_next(&(struct rng){ part[0] ^ l->salt }) ^ part[1] }) | 1;
}

/* --- seats */

static struct seat *seat_find(struct table *t, uint64_t id)
{
    struct seat *row = t->seats[id % PLACES];
    for (int i = 0; i < SEATS; i++)
        if (row[i].id == id)
            return &row[i];
    return NULL;
}

static struct seat *seat_take(struct limits *l, struct table *t, uint64_t id)
{
    struct seat *s = seat_find(t, id), *row = t->seats[id % PLACES];
    if (!s) {
        s = &row[0];
        for (int i = 1; i < SEATS; i++)
            if (row[i].seen_ms < s->seen_ms)
                s = &row[i];
        *s = (struct seat){ .id = id };
    }
    s->seen_ms = os_boot_ms(l->os);
    return s;
}

/* --- buckets */

static bool has_room(int64_t full_ns, int64_t rate, int64_t burst, int64_t now_ns)
{
    return rate == 0 || full_ns - now_ns <= burst * 1000 * NS_A_MS - 1000LL * NS_A_MS / rate;
}

static void pour(int64_t *full_ns, int64_t rate, int64_t now_ns)
{
    if (rate)
        *full_ns = MAX(*full_ns, now_ns) + 1000LL * NS_A_MS / rate;
}

bool limits_address(struct limits *l, const char *address, struct err *err)
{
    if (!l->config.address_rate || text_is(address, "unix"))
        return true;
    struct seat *s = seat_take(l, &l->addresses, address_id(l, address));
    int64_t now_ns = s->seen_ms * NS_A_MS;
    if (!has_room(s->full_ns, l->config.address_rate, burst_s[1], now_ns)) {
        limits_refused(l, REFUSED_ADDRESS, address);
        return err_set(err, RC_TOO_MANY, "too many requests from your address: at most %lld a second",
                       (long long)l->config.address_rate);
    }
    pour(&s->full_ns, l->config.address_rate, now_ns);
    return true;
}

void limits_standing(struct limits *l, const struct credential *from, struct standing *out)
{
    struct seat *s = from->hash[0] ? seat_find(&l->keys, key_id(l, from)) : NULL;
    *out = s ? s->standing : (struct standing){ RANK_STRANGER, address_id(l, from->address) };
}

static bool enter_unknown(struct limits *l, const struct credential *from, struct err *err)
{
    struct seat *s = seat_find(&l->addresses, address_id(l, from->address));
    int64_t now_ns = os_boot_ms(l->os) * NS_A_MS;
    if (!s || has_room(s->failures_full_ns, l->config.failure_rate, burst_s[2], now_ns))
        return true;
    limits_refused(l, REFUSED_STRANGER, from->address);
    return err_set(err, RC_TOO_MANY, "too many attempts without a good key from your address: at most %lld a second",
                   (long long)l->config.failure_rate);
}

bool limits_enter(struct limits *l, const struct credential *from, struct standing *out, struct err *err)
{
    struct seat *s = from->hash[0] ? seat_find(&l->keys, key_id(l, from)) : NULL;
    limits_standing(l, from, out);
    if (!s)
        return enter_unknown(l, from, err);
    s->seen_ms = os_boot_ms(l->os);
    int64_t now_ns = s->seen_ms * NS_A_MS;
    if (!has_room(s->full_ns, l->config.key_rate, burst_s[0], now_ns)) {
        limits_refused(l, REFUSED_KEY, from->address);
        return err_set(err, RC_TOO_MANY, "too many requests with this key: at most %lld a second", (long long)l->config.key_rate);
    }
    pour(&s->full_ns, l->config.key_rate, now_ns);
    return true;
}

static struct standing standing_of(const struct caller *who)
{
    if (who->kind == PRINCIPAL_NODE || (who->roles & PLATFORM_ROLES))
        return (struct standing){ RANK_PLATFORM, (uint64_t)who->id };
    return (struct standing){ RANK_TENANT, (uint64_t)(who->project ? who->project : who->id) };
}

void limits_learn(struct limits *l, const struct credential *from, bool carried, bool ok, enum rc rc, const struct caller *who)
{
    if (ok && !carried && from->hash[0]) {
        seat_take(l, &l->keys, key_id(l, from))->standing = standing_of(who);
        return;
    }
    if (ok || (rc != RC_UNAUTHENTICATED && !(carried && rc == RC_DENIED)))
        return;
    struct seat *s = from->hash[0] ? seat_find(&l->keys, key_id(l, from)) : NULL;
    if (s)
        *s = (struct seat){ 0 };    /* it was good once and is no more */
    s = seat_take(l, &l->addresses, address_id(l, from->address));
    pour(&s->failures_full_ns, l->config.failure_rate, s->seen_ms * NS_A_MS);
}

/* --- what was refused */

uint64_t limits_refused(struct limits *l, enum refusal why, const char *address)
{
    static const char *const names[REFUSALS] = {
        [REFUSED_ADDRESS] = "its address asks too often",
        [REFUSED_KEY] = "its key asks too often",
        [REFUSED_STRANGER] = "its address sent too many bad keys",
        [REFUSED_TURN] = "too many of its requests wait",
        [REFUSED_ROOM] = "no connection or memory is left for it",
        [REFUSED_MANY] = "too many of its kind are under way",
        [REFUSED_AWAY] = "what it needs is not there at the moment",
    };
    int64_t now_ms = os_boot_ms(l->os);
    l->refused[why]++;
    if (now_ms - l->told_ms >= TELL_MS || !l->told_ms) {     /* a flood must not become one of the log */
        log_line(LOG_INFO, "api", "limit: refused %s: %s (%llu of these so far)", address, names[why],
                 (unsigned long long)l->refused[why]);
        l->told_ms = now_ms;
    }
    return l->refused[why];
}

uint64_t limits_count(const struct limits *l, enum refusal why) { return l->refused[why]; }
