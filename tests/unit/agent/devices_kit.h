/* devices_kit.h - a made-up driver and a made-up sysfs for the tests of probes, in a folder that goes with the test. */
#pragma once
#include "agent/helper.h"
#include "tap.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct kit { char top[64], sys[96], lib[PATH_MAX], conf[96]; };

static inline void kit_done_auto(struct kit *k)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", k->top);
    CHECK(system(line) == 0);
    unsetenv("FAKE_NVML");
}

static inline void kit_write(const char *path, const char *text)
{
    char folder[PATH_MAX], line[PATH_MAX + 16];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    snprintf(line, sizeof line, "mkdir -p '%s'", folder);
    CHECK(access(folder, F_OK) == 0 || system(line) == 0);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A file of the made-up sysfs. */
static inline void kit_sys(struct kit *k, const char *path, const char *text)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", k->sys, path);
    kit_write(whole, text);
}

static inline void kit_link(struct kit *k, const char *from, const char *to)
{
    char whole[PATH_MAX], line[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", k->sys, from);
    snprintf(line, sizeof line, "mkdir -p \"$(dirname '%s')\" && ln -sfn '%s/%s' '%s'", whole, k->sys, to, whole);
    CHECK(system(line) == 0);
}

/* What the made-up driver tells from now on. Its file is looked at by time of change, so each is a new file. */
static inline void kit_driver(struct kit *k, const char *lines)
{
    char fresh[112];
    snprintf(fresh, sizeof fresh, "%s.new", k->conf);
    kit_write(fresh, lines);
    CHECK(rename(fresh, k->conf) == 0);
}

/* False: the made-up library has not been built beside the tests. */
static inline bool kit_open(struct kit *k)
{
    ssize_t n = readlink("/proc/self/exe", k->lib, sizeof k->lib - 48);
    k->lib[n > 0 ? n : 0] = 0;
    snprintf(strrchr(k->lib, '/'), 48, "/fake/libnvidia-ml.so.1");
    snprintf(k->top, sizeof k->top, "/tmp/arcus-test-XXXXXX");
    CHECK(mkdtemp(k->top));
    snprintf(k->sys, sizeof k->sys, "%s/sys", k->top);
    snprintf(k->conf, sizeof k->conf, "%s/nvml.conf", k->top);
    setenv("FAKE_NVML", k->conf, 1);
    return access(k->lib, R_OK) == 0 || (test_skip("the made-up NVIDIA library is not here"), false);
}
