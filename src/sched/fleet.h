/* fleet.h - the nodes with what is taken of them, and the lots: all nodes in the same state stand in one lot, so that whatever is
 * worked out about a state is worked out once.
 *
 * A state is what placement can see of a node: its size, what is free, and its GPUs in groups of equals. Full GPUs are in no group.
 * fleet_take() and fleet_give() are exact inverses, and lots follow late (fleet_settle): taking tentatively and giving back costs
 * nothing that lasts. That is what gangs ("place n, then keep or undo") and preemption ("as if these were gone") stand on. */
#pragma once
#include "base/map.h"
#include "base/must.h"
#include "sched/sched.h"

/* Where nodes are: the parts of their topology addresses, each part once, so that two nodes of one rack have the same. */
struct place {
    struct place *up, *next;        /* next: of the same hash */
    uint32_t id, users;             /* users: nodes and places right below it */
    uint8_t level;                  /* enum place_level; the only one of PLACE_ANY is above all */
    uint64_t search;                /* of the last search of gang.c that came by: nodes with room in it, and the first of them */
    int64_t seats, first;
    char name[PLACE_NAME];
};
/* GPUs that are alike in what may come to them. whole_only: no shares, as without ECC. mig: slices only. */
struct gpu_kind { char model[48]; int64_t mem_mib; bool whole_only; struct mig_layout mig; const struct mig_part *part; };
/* Nodes of one build. Where there are more builds than FLEET_MAKES, the last stands for all others. */
struct make { int64_t cpu_milli, mem_mib, nodes; uint16_t kind; uint8_t gpu_count; };     /* nodes: usable ones; kind: of its first GPU */
enum { FLEET_MAKES = 256 };

struct gpu {
    uint64_t projects, projects2;   /* of its holders, summed up, and their squares: they tell whether it is one, whoever came or went first */
    int32_t used_milli, used_mib;
    int32_t squares;                /* of the thousandths of its holders without slots, summed up: tells whether they are equal */
    uint16_t kind, holders, slots;  /* slots: of MIG slices */
    uint8_t index;
    uint8_t closed;                 /* so many claims keep it for somebody: it is in no group */
    bool healthy : 1, simulated : 1, mixes : 1, equal : 1;
};
struct node {
    int64_t id;
    int64_t cpu_milli, mem_mib, cpu_used, mem_used;
    int64_t kept_mib;               /* of mem_used: by suspended tasks */
    struct lot *lot;                /* NULL: not usable */
    struct place *place;            /* the nearest that is known */
    uint32_t at;                    /* its place in the lot */
    int32_t cpu_claimed, mem_claimed;   /* kept for somebody: not free, and not used (claim.c) */
    bool usable, host_image, moved;
    uint8_t gpu_count;
    uint16_t make, house;           /* house: who may come, see fleet.houses */
    uint8_t shut;                   /* enum filter: why it is not usable */
    struct gpu gpus[];
};
enum { OWNER_UNKNOWN = -1, OWNER_ANY = -2, OWNER_SEVERAL = -3 };
/* Whose shares may come to it: 0 where nobody is on it. */
static inline int64_t gpu_owner(const struct gpu *g)
{
    if (!g->holders || g->mixes)
        return g->holders ? OWNER_ANY : 0;
    if (g->projects2 * g->holders != g->projects * g->projects)
        return OWNER_SEVERAL;
    return g->projects ? (int64_t)(g->projects / g->holders) : OWNER_UNKNOWN;
}
struct held_gpu { int64_t index, milli, mem_mib; uint16_t slots; };         /* slots: of a MIG slice */

/* GPUs of a node in the same state. Of those in MIG mode only the slots tell what is free; no thousandths of them are. */
struct group {
    int64_t project;                /* whose shares may come: 0 where nobody is on them, else as gpu_owner says */
    uint32_t free_mib;
    uint16_t kind, free_milli, count;
    uint16_t each;                  /* the only size of shares; or: */
    uint16_t slots;                 /* taken ones */
};
enum { EACH_ANY = 0, EACH_EVEN = 1, EACH_NONE = UINT16_MAX };       /* any; any that divides 1000; none until some have gone */
enum { MICRO = 1000 };              /* scores count in millionths of a GPU */
struct worth { int32_t stuck, unfed, sliver, needed; };         /* of a state, see score.c; in millionths of a GPU */
struct lot {
    struct lot *next;               /* of the same hash */
    const struct place *site;       /* zone, or region, of its nodes: what filters look at. Racks would make ten thousand lots of idle nodes */
    uint64_t hash;
    int64_t first;                  /* the lowest id of its nodes */
    struct node **nodes, *only;     /* a heap by id; nodes == &only where there was never a second */
    uint32_t id, birth, count, room;
    int64_t cpu_milli, mem_mib, cpu_free, mem_free, kept_mib;
    int32_t free_milli;             /* of all its GPUs */
    uint8_t gpu_count, whole, groups;
    bool host_image;
    uint16_t make, house;
    uint32_t worth_of;              /* the mix that `worth` was worked out with; 0: none */
    struct worth worth;
    struct group group[];
};
/* Of a lot, what most questions can be answered with; they stand close together. largest: the most free of one GPU that everybody may come to; rest: of
 * one that belongs to a project. owners: whose those are, as bits of owner_bit. birth 0: no lot. logged: where it was last written in the log of changes. */
struct brief { int32_t cpu_free, mem_free; uint32_t birth; uint16_t largest : 11, whole : 5, rest; uint64_t logged, owners; };
_Static_assert(SCHED_GPUS < 32, "they can be counted in a brief");
struct lot_ref { uint32_t id, birth; };     /* a lot that may be gone: its number is used again, its birth is not */
enum { OWNERS = 64 };
static inline int owner_bit(int64_t project) { return (int)((uint64_t)project * 0x9e3779b97f4a7c15ULL >> 58); }
/* Lots that are new, or have a node before their first: what rankings must look at. from: number of the first entry that is still there. */
struct log { struct lot_ref *at; size_t count, room, live; uint64_t from; };    /* live: lots that it is about */

struct fleet {
    struct node **nodes;            /* by id: the order in which they joined */
    int64_t *ids;                   /* the same order: who looks for one does not touch the others */
    size_t count, room;
    struct map *places;             /* by hash */
    struct place *anywhere;
    uint32_t place_ids;
    struct gpu_kind *kinds;
    size_t kind_count, kind_room;
    char **houses;                  /* texts of house.h by number; the first is NULL: everybody's */
    size_t house_count, house_room;
    struct map *house_numbers;      /* text -> number */
    struct map *named;              /* projects that some house belongs to; they are few */
    struct make makes[FLEET_MAKES];
    size_t make_count;
    uint64_t changes;               /* of nodes, not of what is taken */
    size_t shut[FILTER_COUNT];      /* nodes that are not usable, by why */
    struct node **moved;            /* their lot is to be found again */
    size_t moved_count, moved_room;
    struct lot **lots, **table;     /* by number; by hash */
    struct brief *briefs;           /* by number */
    size_t lot_count, lot_room, table_size;
    uint32_t *unused;               /* numbers of lots */
    size_t unused_count, unused_room, live;
    uint32_t births;
    struct log log, logs[OWNERS];   /* of all lots; of those where a project with that bit has a rest, for who asks for these alone */
};

struct place *place_enter(struct fleet *f, const char *address);    /* the nearest one of it, for a node; NULL is "" */
void place_leave(struct fleet *f, struct place *p);
bool place_is(const struct place *p, const char *region, const char *zone);     /* or in it; "": any */
const struct place *place_site(const struct place *p);              /* its zone, or its region */

void fleet_done(struct fleet *f);
void fleet_set(struct fleet *f, const struct sched_event *e);       /* new or changed; what was taken of it is forgotten */
bool fleet_drop(struct fleet *f, int64_t id);
struct node *fleet_node(const struct fleet *f, int64_t id);
bool gpu_group(const struct fleet *f, const struct gpu *g, struct group *out);      /* its state; false: nothing can come to it */
const char *fleet_house(const struct fleet *f, uint16_t house);
const struct gpu *node_gpu(const struct node *n, int64_t index);    /* NULL: it has none of that number */

void fleet_take(struct fleet *f, struct node *n, int64_t project, int64_t cpu_milli, int64_t mem_mib, const struct held_gpu *gpus, int count);
void fleet_give(struct fleet *f, struct node *n, int64_t project, int64_t cpu_milli, int64_t mem_mib, const struct held_gpu *gpus, int count);

/* The numbers alone, for a moment: whoever counts something in so counts it back before a lot is looked at. */
void node_count(struct node *n, int64_t project, int64_t cpu_milli, int64_t mem_mib, const struct held_gpu *gpus, int count, int sign);
struct state {
    union {
        struct lot lot;
        char bytes[sizeof(struct lot) + (SCHED_GPUS + 1) * sizeof(struct group)];
    };
};
void node_state(const struct fleet *f, const struct node *n, struct state *out);    /* as the numbers stand: a lot without nodes */
void fleet_touch(struct fleet *f, struct node *n);                  /* its numbers have changed: its lot is to be found again */

void fleet_settle(struct fleet *f);                                 /* every node in its lot */
struct lot *fleet_lot(const struct fleet *f, struct lot_ref ref);   /* NULL: gone */
bool lot_dark(const struct lot *l);                                 /* nothing runs on its nodes */
