/* disk_room.c - where an instance goes whose first node has no room for its disk. */
#include "door.h"

struct fleet { struct door *d; char key[3][SECRET_TEXT]; };
#define IS(job, what) text_is(job_word(d, job, "state"), what)

static void pass(struct fleet *f, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 5000) {
        for (int i = 0; i < 3; i++)
            CHECK(door_ask(f->d, f->key[i], VERB_NODE_REPORT, "{\"kind\":\"report\",\"items\":[]}").ok);
        door_run(f->d, 5000);
    }
}

/* n2 has the most room, and its GPUs are taken; one of the others has none for `lab`, the other has it. */
static struct fleet fleet_new(const char *full, const char *roomy)
{
    struct fleet f = { .d = door_new(true) };
    struct door *d = f.d;
    for (int i = 0; i < 3; i++)
        door_node(d, FMT(d, "n%d", i + 1), 2, f.key[i]);
    CHECK(text_given(door_submit(d, d->admin, FMT(d, "{\"name\":\"fat\",\"type\":\"instance\",\"node\":\"%s\",\"cpus\":1,\"disk_size\":\"500GiB\"}", full))));
    CHECK(text_given(door_submit(d, d->admin, FMT(d, "{\"name\":\"small\",\"type\":\"instance\",\"node\":\"%s\",\"cpus\":1,\"disk_size\":\"100GiB\"}", roomy))));
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"busy\",\"command\":[\"true\"],\"node\":\"n2\",\"gpus\":2,\"cpus\":1,\"memory\":\"1GiB\"}")));
    door_run(d, 1000);
    return f;
}

static const char *lab(struct door *d) { return door_submit(d, d->admin, "{\"name\":\"lab\",\"type\":\"instance\",\"gpus\":2,\"cpus\":1,\"memory\":\"1GiB\",\"disk_size\":\"200GiB\"}"); }

static void goes_to(const char *full, const char *roomy)
{
    struct fleet f = fleet_new(full, roomy);
    AUTO(door_free) struct door *d = f.d;
    const char *l = lab(d);
    door_run(d, 8000);
    CHECK(IS(l, "placed") && text_is(job_word(d, l, "node"), roomy));
    check_books(d, "it went");
    check_picture(d, "it went");
}
TEST(an_instance_goes_where_there_is_room_for_its_disk_and_a_gpu_rather_than_where_there_is_most_room) { goes_to("n1", "n3"), goes_to("n3", "n1"); }

static void looks_again(const char *full, const char *roomy)
{
    struct fleet f = fleet_new(full, roomy);
    AUTO(door_free) struct door *d = f.d;
    int64_t node = text_is(roomy, "n1") ? 0 : 2;
    const char *more = door_submit(d, d->admin, FMT(d, "{\"name\":\"more\",\"command\":[\"true\"],\"node\":\"%s\",\"gpus\":2,\"cpus\":1,\"memory\":\"1GiB\"}", roomy));
    door_run(d, 1000);
    const char *l = lab(d);
    CHECK(IS(more, "placed"));
    pass(&f, 10 * 1000);
    CHECK(IS(l, "queued") && text_is(job_word(d, l, "reason"), "Resources"));
    CHECK(door_report(d, f.key[node], 1, door_attempt(d, more, 0), "started", NULL).ok);
    CHECK(door_report(d, f.key[node], 2, door_attempt(d, more, 0), "ended", ",\"outcome\":\"succeeded\"").ok);
    pass(&f, 30 * 1000);
    CHECK(IS(l, "placed") && text_is(job_word(d, l, "node"), roomy));
    check_books(d, "it moved");
    check_picture(d, "it moved");
}
TEST(an_instance_that_waits_for_the_room_of_one_node_goes_to_another_that_has_become_free) { looks_again("n1", "n3"), looks_again("n3", "n1"); }
