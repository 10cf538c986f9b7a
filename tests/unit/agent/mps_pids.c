#include "agent/mps_internal.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

/* Numbers of processes that no kernel gives. */
enum { FIRST = 500000000 };

TEST(a_line_of_the_daemons_log_names_a_client_or_nobody)
{
    static const struct { const char *line; int pid; } rows[] = {
        { "[2026-11-16 03:25:00.001 Server   898] Client {PID: 1002, Context ID: 1} encountered a fatal exception", 1002 },
        { "[2026-11-16 03:25:00.001 Server   898] New client 1003 connected", 1003 },
        { "[2026-11-16 03:25:00.001 Control  897] NEW CLIENT 1004 from user 0: Server already exists", 1004 },
        { "[2026-11-16 03:25:00.001 Server   898] Client 1005 disconnected", 1005 },
        { "[2026-11-16 03:25:00.001 Server   898] Device 0 status is FAULT", 0 },
        { "[2026-11-16 client 17 Server   898] Client disconnected", 0 },
        { "Client {PID: 1006, Context ID: 1}", 1006 },
        { "[x] Client {PID: -5", 0 }, { "[x] Client {PID: 1", 0 }, { "[x] PID: ", 0 }, { "]", 0 }, { "", 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(mps_client_in(rows[i].line) == rows[i].pid);
}

static struct mps *world;
static struct daemon *fresh(void)
{
    struct err err = { 0 };
    struct daemon *d = calloc(1, sizeof *d);
    world = calloc(1, sizeof *world);
    CHECK(d && world);
    *world = (struct mps){ .os = os_real_new(&err), .first = d };
    d->m = world;
    return d;
}
static void done(struct daemon *d)
{
    daemon_unsee(d);
    os_free(world->os);
    free(world);
    free(d);
}

TEST(whoever_was_seen_is_known_when_it_is_gone_and_the_newest_of_a_number_counts)
{
    struct daemon *d = fresh();
    daemon_saw(d, FIRST, 7);
    daemon_saw(d, FIRST + 1, 8);
    daemon_saw(d, FIRST + 2, 0);
    daemon_saw(d, 0, 9);
    CHECK(daemon_whose(d, FIRST) == 7 && daemon_whose(d, FIRST + 1) == 8 && daemon_whose(d, FIRST + 2) == 0 && daemon_whose(d, 0) == 0);
    daemon_saw(d, FIRST, 9);
    CHECK(daemon_whose(d, FIRST) == 9);
    done(d);
}

TEST(one_task_that_makes_many_processes_pushes_out_none_of_anothers)
{
    struct daemon *d = fresh();
    daemon_saw(d, FIRST, 7);
    for (int i = 1; i <= 10 * MPS_SEEN; i++)
        daemon_saw(d, FIRST + i, 8);
    CHECK(daemon_whose(d, FIRST) == 7);
    CHECK(daemon_whose(d, FIRST + 10 * MPS_SEEN) == 8 && daemon_whose(d, FIRST + 10 * MPS_SEEN - MPS_SEEN_EACH + 1) == 8);
    CHECK(daemon_whose(d, FIRST + 10 * MPS_SEEN - MPS_SEEN_EACH) == 0);
    for (int i = 1; i <= MPS_SEEN; i++)         /* of many tasks the oldest goes */
        daemon_saw(d, FIRST - i, 100 + i);
    CHECK(daemon_whose(d, FIRST) == 0 && daemon_whose(d, FIRST - MPS_SEEN) == 100 + MPS_SEEN);
    done(d);
}

TEST(numbers_of_processes_are_read_as_far_as_they_are_numbers)
{
    struct daemon *d = fresh();
    snprintf(d->folder, sizeof d->folder, "/x/mps/7");
    mps_seen(world, "GPU-0-7", 5, "500000001 500000002  x 500000003");
    mps_seen(world, "GPU-0-8", 6, "500000004");
    mps_seen(world, "GPU-0-7", 6, NULL);
    mps_seen(NULL, "GPU-0-7", 6, "500000004");
    CHECK(daemon_whose(d, 500000001) == 5 && daemon_whose(d, 500000002) == 5 && daemon_whose(d, 500000003) == 0 && daemon_whose(d, 500000004) == 0);
    done(d);
}

TEST(who_is_named_is_a_suspect_unless_another_lost_a_process_in_the_moments_before)
{
    struct daemon *d = fresh();
    snprintf(d->folder, sizeof d->folder, "/x/mps/7");
    daemon_judge(d, 0, 100000);
    CHECK(mps_blame(world, 5, "GPU-0-7") == BLAME_NONE);
    static const struct { int64_t named, gone_ms; enum blame five, six, seven; } rows[] = {
        { 5, 0, BLAME_SUSPECT, BLAME_BYSTANDER, BLAME_BYSTANDER },      { 5, 99900, BLAME_NONE, BLAME_NONE, BLAME_BYSTANDER },
        { 5, 100000, BLAME_NONE, BLAME_NONE, BLAME_BYSTANDER },         { 5, 100001, BLAME_SUSPECT, BLAME_BYSTANDER, BLAME_BYSTANDER },
        { 5, 98001, BLAME_NONE, BLAME_NONE, BLAME_BYSTANDER },          { 5, 98000, BLAME_SUSPECT, BLAME_BYSTANDER, BLAME_BYSTANDER },
        { 6, 99900, BLAME_BYSTANDER, BLAME_SUSPECT, BLAME_BYSTANDER },  { 0, 99900, BLAME_BYSTANDER, BLAME_NONE, BLAME_BYSTANDER },
        { 0, 0, BLAME_NONE, BLAME_NONE, BLAME_NONE },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        d->seen[3] = (struct seen){ .pid = FIRST, .attempt = 6, .at = 1, .gone_ms = rows[i].gone_ms };
        daemon_judge(d, rows[i].named, 100000);
        CHECK(mps_blame(world, 5, "GPU-0-7") == rows[i].five && mps_blame(world, 6, "GPU-0-7") == rows[i].six && mps_blame(world, 7, "GPU-0-7") == rows[i].seven);
        CHECK(mps_blame(world, 5, "GPU-0-8") == BLAME_NONE);
    }
    daemon_acquit(d);
    CHECK(mps_blame(world, 5, "GPU-0-7") == BLAME_NONE);
    done(d);
}
