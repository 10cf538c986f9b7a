#include "agent/io.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A small /sys and a small control group tree. */
struct tree { char top[64]; struct cgroups c; struct io_means m; };

static void file(struct tree *t, const char *name, const char *text)
{
    char path[256];
    for (const char *p = name; (p = strchr(p, '/')); p++) {
        snprintf(path, sizeof path, "%s/%.*s", t->top, (int)(p - name), name);
        mkdir(path, 0755);
    }
    snprintf(path, sizeof path, "%s/%s", t->top, name);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void tree_open(struct tree *t, bool unified)
{
    char path[128];
    *t = (struct tree){ .c = { .unified = unified, .count = 1 } };
    snprintf(t->top, sizeof t->top, "/tmp/arcus-io.XXXXXX");
    CHECK(mkdtemp(t->top));
    snprintf(t->c.mounts[0].path, sizeof t->c.mounts[0].path, "%s/group", t->top);
    file(t, "devices/vda/dev", "254:0\n");
    file(t, "devices/vda/queue/scheduler", "none [mq-deadline] kyber bfq\n");
    file(t, "devices/vda/vda1/dev", "254:1\n");
    file(t, "devices/vda/vda1/partition", "1\n");
    file(t, "dev/block/x", "");
    snprintf(path, sizeof path, "%s/dev/block/254:0", t->top);
    CHECK(symlink("../../devices/vda", path) == 0);
    snprintf(path, sizeof path, "%s/dev/block/254:1", t->top);
    CHECK(symlink("../../devices/vda/vda1", path) == 0);
    file(t, "group/cgroup.controllers", "cpuset cpu io memory pids\n");
}

static void tree_done_auto(struct tree *t)
{
    char words[96];
    snprintf(words, sizeof words, "rm -rf %s", t->top);
    CHECK(system(words) == 0);
}

static const struct io_means *look(struct tree *t, unsigned minor)
{
    io_find(&t->c, t->top, 254, minor, &t->m);
    return &t->m;
}

TEST(a_limit_is_of_the_disk_and_not_of_a_partition)
{
    AUTO(tree_done) struct tree t;
    tree_open(&t, true);
    CHECK(look(&t, 1)->limits && t.m.major == 254 && t.m.minor == 0 && text_is(t.m.disk, "vda") && !t.m.weight);
    CHECK(!look(&t, 7)->limits && !*t.m.disk);      /* it is on none */
    file(&t, "group/cgroup.controllers", "cpu memory ioctl pids\n");
    CHECK(!look(&t, 0)->limits && !t.m.weight);
}

TEST(a_weight_counts_where_something_looks_at_it)
{
    AUTO(tree_done) struct tree t;
    tree_open(&t, true);
    file(&t, "group/io.cost.qos", "254:16 enable=1 ctrl=auto\n254:0 enable=0 ctrl=auto\n");
    CHECK(!look(&t, 0)->weight);
    file(&t, "group/io.cost.qos", "254:16 enable=0 ctrl=auto\n254:0 enable=1 ctrl=auto\n");
    CHECK(text_is(look(&t, 0)->weight, "io.weight"));
    file(&t, "devices/vda/queue/scheduler", "none mq-deadline [bfq]\n");
    CHECK(text_is(look(&t, 1)->weight, "io.bfq.weight"));
}

TEST(on_v1_the_throttle_is_looked_for_and_no_weight_is_promised)
{
    AUTO(tree_done) struct tree t;
    tree_open(&t, false);
    CHECK(!look(&t, 0)->limits);
    file(&t, "group/blkio.throttle.write_bps_device", "");
    CHECK(look(&t, 0)->limits && !t.m.weight);
}
