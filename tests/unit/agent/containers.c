#include "containers.h"
#include "agent/log_format.h"
#include "agent/tree.h"
#include "base/id.h"
#include "model/prefix.h"
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LATE_MS = 60000 };

static void on_status(void *arg, const struct task_status *s)
{
    struct containers *c = arg;
    if (s->phase == PHASE_ENDED) {
        struct task_status *end = &c->ends[c->end_count++ % COUNT(c->ends)];
        *end = *s;
        end->detail = arena_text(c->mem, s->detail ? s->detail : "");
    }
    if (s->attempt != c->wanted)
        return;
    c->last = *s;
    c->last.detail = arena_text(c->mem, s->detail ? s->detail : "");
    if (s->phase >= c->phase_wanted) {
        c->reached = true;
        os_stop(c->os);
    }
}

static const struct runtime_events events = { .on_status = on_status };

bool containers_reopen(struct containers *c)
{
    char self[256];
    struct err err = {0};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (c->r)
        runtime_close(c->r);
    c->r = NULL;
    struct runtime_config config = { .data = c->data, .run = c->run, .self = c->self ? c->self : arena_text(c->mem, self), .host_image = true, .hide = c->hide, .cdi = c->cdi, .over_ms = c->over_ms };
    bool ok = runtime_open(c->os, &config, &events, c, &c->r, &err);
    if (!ok)
        printf("# %s\n", err.text);
    return ok;
}

bool containers_open(struct containers *c)
{
    struct err err = {0};
    if (geteuid() != 0 || (access("/usr/bin/crun", X_OK) != 0 && access("/usr/sbin/runc", X_OK) != 0)) {
        test_skip("containers need root and crun or runc");
        return false;
    }
    c->mem = arena_new();
    snprintf(c->top, sizeof c->top, "/tmp/arcus-test-XXXXXX");
    if (!mkdtemp(c->top) || chmod(c->top, 0711) != 0)
        return false;
    snprintf(c->data, sizeof c->data, "%s/data", c->top);
    snprintf(c->run, sizeof c->run, "%s/run", c->top);
    c->os = os_real_new(&err);
    if (containers_reopen(c))
        return true;
    test_skip("the runtime does not open here");
    containers_close(c);
    return false;
}

bool containers_device(struct containers *c)
{
    static const char spec[] = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: GPU-0\n  containerEdits:\n    deviceNodes:\n"
                               "    - {path: /dev/nvidia0, hostPath: /dev/null}\n    mounts:\n    - {hostPath: /etc/hostname, containerPath: /srv/driver/file}\n";
    struct err err = {0};
    c->cdi = containers_path(c, "%s/cdi", c->top);
    return mkdir(c->cdi, 0755) == 0 && file_replace(c->os, containers_path(c, "%s/x.yaml", c->cdi), SLICE(spec), 0644, &err);
}

static void on_idle(void *arg) { os_stop(((struct containers *)arg)->os); }

void containers_close(struct containers *c)
{
    struct err err = {0};
    if (c->r) {
        timer_start(c->os, 150, on_idle, c);        /* removals come home */
        os_run(c->os);
        CHECK(access(containers_path(c, "%s/crun/x", c->run), F_OK) != 0);
        runtime_close(c->r);
        timer_start(c->os, 20, on_idle, c);
        os_run(c->os);
    }
    os_free(c->os);
    bool gone = tree_remove(c->top, &err);
    for (int i = 0; i < 3000 && !gone; i++, usleep(20000))      /* supervisors that waited are still about to leave */
        gone = tree_remove(c->top, &err);
    CHECK(gone);
    arena_free(c->mem);
}

static void on_late(void *arg)
{
    struct containers *c = arg;
    c->late = true;
    os_stop(c->os);
}

const struct task_status *containers_wait(struct containers *c, int64_t attempt, int phase)
{
    if (c->wanted != attempt || c->last.phase < phase) {
        c->reached = c->late = false;
        c->wanted = attempt;
        c->phase_wanted = phase;
        struct timer *t = timer_start(c->os, LATE_MS, on_late, c);
        while (!c->reached && !c->late)
            os_run(c->os);
        if (!c->late)
            timer_cancel(t);
        CHECK(!c->late);
    }
    return &c->last;
}

const struct task_status *containers_run(struct containers *c, const struct order *o)
{
    c->wanted = 0;
    c->last = (struct task_status){ .detail = "" };
    c->wanted = o->attempt;
    c->phase_wanted = PHASE_ENDED;
    runtime_start(c->r, o);
    return containers_wait(c, o->attempt, PHASE_ENDED);
}

const struct task_status *containers_end(struct containers *c, int64_t attempt)
{
    for (size_t i = 0; i < MIN(c->end_count, COUNT(c->ends)); i++)
        if (c->ends[i].attempt == attempt)
            return &c->ends[i];
    c->last = (struct task_status){ .detail = "" };
    return containers_wait(c, attempt, PHASE_ENDED);
}

struct order *containers_order(struct containers *c, const char *image, const char *script)
{
    static int64_t count = 1000;
    struct order *o = ARENA_NEW(c->mem, struct order);
    const char **argv = ARENA_ARRAY(c->mem, const char *, 3);
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    *o = (struct order){ .attempt = (int64_t)getpid() << 32 | count++, .job = 1, .project = 1, .count = 1, .try_number = 1, .name = "test", .image = image,
                         .argv = { argv, 3 }, .cpu_milli = 1000, .mem_mib = 256, .disk_mib = 64, .grace_s = 5 };
    return o;
}

const char *containers_log(struct containers *c, int64_t attempt, char stream)
{
    char folder[256];
    struct texts names = {0};
    struct err err = {0};
    struct str out = {0};
    runtime_log_folder(c->r, attempt, folder);
    CHECK(dir_list(c->os, folder, c->mem, &names, &err) || err.rc == RC_NOT_FOUND);     /* it printed nothing */
    for (size_t i = 0; i < names.count; i++) {
        struct slice in;
        struct log_record rec;
        if (!file_read(c->os, containers_path(c, "%s/%s", folder, names.at[i]), 64 << 20, c->mem, &in, &err))
            continue;
        while (log_next(&in, &rec) == LOG_RECORD)
            if (!stream || rec.stream == stream)
                str_put(&out, rec.bytes.at, rec.bytes.len);
    }
    const char *text = arena_bytes(c->mem, out.at ? out.at : "", out.len);
    str_done(&out);
    return text;
}

const char *containers_path(struct containers *c, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return arena_text(c->mem, text);
}
