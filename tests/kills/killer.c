/* killer.c - whom it hits and when: all of it drawn from the seed, in one order, whatever the machine does. */
#include "kills.h"
#include <signal.h>
#include <stdio.h>

enum {
    PAUSE_MIN_MS = 60,
    PAUSE_MORE_MS = 700,
    DOWN_MORE_MS = 500,
    HUNT_MS = 1500,
    RUNTIME_US = 12000,
    PROCESSES = 512,
    LONG_DOWN_MS = 28000,
    LONG_IN = 12
};

static size_t kill_some(struct cloud *c, bool runtimes, uint64_t which, unsigned share)
{
    pid_t list[PROCESSES];
    size_t n = find_processes(c->base, runtimes, list, PROCESSES), hit = 0;
    struct rng rng = { which };
    for (size_t i = 0; i < n; i++)
        if (share ? rng_below(&rng, 4) < share : i == which % n)
            hit += kill(list[i], SIGKILL) == 0;
    return hit;
}

struct draw { /* drawn before anything is looked at, so that one seed is one sequence */
    uint64_t what, which, down, more;
    struct rng rest;
};

static size_t hit_server(struct cloud *c, struct draw *d)
{
    bool up = part_up(c, SERVER);
    part_kill(c, &c->parts[SERVER], (int64_t)(d->down % DOWN_MORE_MS));
    return up;
}

static bool another_is_up(struct cloud *c, int but)
{
    int n = 0;
    for (int i = FIRST_AGENT; i < FIRST_GUEST; i++)
        n += i != but && (part_up(c, i) || c->parts[i].start_at < now_ms() + 5000);
    return n == AGENTS - 1;
}

/* Now and then one stays away for so long that its tasks are given to others. */
static size_t hit_agent(struct cloud *c, struct draw *d)
{
    int i = FIRST_AGENT + (int)(d->which % AGENTS), guests = 0;
    for (int g = FIRST_GUEST; g < PARTS && d->more % 4 == 0; g++)
        if (part_up(c, g))
            i = g, guests++;
    int64_t down = (int64_t)(d->down % DOWN_MORE_MS);
    if (!guests && c->long_down && d->more % LONG_IN == 1 && another_is_up(c, i))
        down = LONG_DOWN_MS;
    bool up = part_up(c, i);
    if (up)
        say(c, "  agent %s for %lld ms", c->parts[i].name, (long long)down);
    part_kill(c, &c->parts[i], down);
    return up;
}

static size_t hit_supervisors(struct cloud *c, struct draw *d)
{
    return kill_some(c, false, d->which, d->more % 3 == 0 ? 2 : 0);
}

/* It lives for some milliseconds: waited for, and hit somewhere in them. */
static size_t hit_runtime(struct cloud *c, struct draw *d)
{
    pid_t list[8];
    for (int64_t until = now_ms() + HUNT_MS; now_ms() < until; parts_tick(c)) {
        size_t n = find_processes(c->base, true, list, COUNT(list));
        if (!n)
            continue;
        struct timespec t = { .tv_nsec = (long)(d->down % RUNTIME_US) * 1000 };
        nanosleep(&t, NULL);
        return kill(list[d->which % n], SIGKILL) == 0;
    }
    return 0;
}

static size_t hit_database(struct cloud *c, struct draw *d)
{
    if (!c->pg)
        return hit_server(c, d); /* SQLite is in it */
    if (c->db_down)
        return 0;
    db_kill(c, &d->rest, (int64_t)(d->down % DOWN_MORE_MS));
    return 1;
}

static size_t hit_all(struct cloud *c, struct draw *d)
{
    size_t n = kill_some(c, true, d->which, 4) + hit_server(c, d);
    if (c->pg && d->more % 2)
        n += hit_database(c, d);
    for (int i = FIRST_AGENT; i < PARTS; i++)
        if (part_up(c, i)) {
            n++;
            part_kill(c, &c->parts[i], (int64_t)(rng_next(&d->rest) % DOWN_MORE_MS));
        }
    return n + kill_some(c, false, d->which, 1 + d->more % 4);
}

static const struct {
    const char *name;
    unsigned weight;
    size_t (*hit)(struct cloud *c, struct draw *d); /* how many died */
} kinds[] = {
    { "server", 22, hit_server },           { "agent", 22, hit_agent },
    { "supervisors", 22, hit_supervisors }, { "runtime", 14, hit_runtime },
    { "database", 12, hit_database },       { "all", 8, hit_all },
};
_Static_assert(COUNT(kinds) <= 8, "by_kind has room");

void kill_for_a_while(struct cloud *c)
{
    struct rng rng = { c->seed * 1000003 };
    unsigned all = 0;
    for (size_t i = 0; i < COUNT(kinds); i++)
        all += kinds[i].weight;
    int64_t end = c->began + c->seconds * 1000;
    for (int k = 1; c->kills ? c->made < c->kills : now_ms() < end; k++) {
        int64_t pause = PAUSE_MIN_MS + (int64_t)rng_below(&rng, PAUSE_MORE_MS);
        struct draw d = {
            rng_below(&rng, all), rng_next(&rng), rng_next(&rng), rng_next(&rng), { rng_next(&rng) }
        };
        size_t i = 0;
        for (unsigned sum = kinds[0].weight; d.what >= sum; sum += kinds[i].weight)
            i++;
        parts_run(c, pause);
        c->long_down = (c->kills && c->kills - c->made > 60) || end - now_ms() > 2 * LONG_DOWN_MS;
        say(c, "%d: %s", k, kinds[i].name);
        size_t hit = kinds[i].hit(c, &d);
        c->made += hit > 0;
        c->by_kind[i] += hit > 0;
        say(c, "%d: %s hit %zu", k, kinds[i].name, hit);
    }
    printf("# %d kills:", c->made);
    for (size_t i = 0; i < COUNT(kinds); i++)
        printf(" %s %d%s", kinds[i].name, c->by_kind[i], i + 1 < COUNT(kinds) ? "," : "\n");
}
