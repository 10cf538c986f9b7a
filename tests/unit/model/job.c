/* Workloads as people write them, through YAML, the table and the rules. */
#include "model/job.h"
#include "base/str.h"
#include "tap.h"
#include "wire/bind.h"
#include "wire/yaml.h"

struct read { struct arena *mem; struct job_spec spec; struct shape shape; struct err err; bool ok; };

static struct read spec_read(const char *yaml)
{
    struct read r = { .mem = arena_new() };
    struct json *doc;
    r.ok = yaml_parse(SLICE(yaml), r.mem, &doc, &r.err) && bind_read(doc, &job_spec_fields, r.mem, &r.spec, NULL, &r.err)
        && job_spec_settle(&r.spec, r.mem, &r.shape, &r.err);
    return r;
}
static void read_done_auto(struct read *r) { arena_free(r->mem); }

TEST(a_plain_job_gets_its_defaults)
{
    AUTO(read_done) struct read r = spec_read("command: [/usr/bin/Python3.11, train.py]\n");
    CHECK(r.ok && text_is(r.spec.type, "job") && text_is(r.spec.name, "python3.11") && !r.spec.image);
    CHECK(r.spec.count == 1 && r.spec.priority == 50 && r.spec.grace_s == 30 && r.spec.log_mib == 100 && r.spec.shm_mib == 64);
    CHECK(r.spec.cpu_milli == 1000 && r.spec.mem_mib == 1024 && r.spec.disk_mib == 10240 && r.spec.on_lost == ON_LOST_REQUEUE);
    CHECK(r.spec.retry.limit == 0 && r.spec.retry.delay_s == 10 && r.spec.max_duration_s == 0);
    CHECK(r.shape.gpu.milli == 0 && r.shape.cpu_milli == 1000 && r.shape.mem_mib == 1024 && r.shape.disk_mib == 10240);
}

TEST(what_is_left_out_is_the_same_part_of_a_node_as_the_gpus_are)
{
    int64_t cpu, mem;
    struct shape two = { .gpu.milli = 2000 }, half = { .gpu.milli = 500, .cpu_milli = 3000 }, none = { .cpu_milli = 1000, .mem_mib = 1024 };
    shape_on(&two, 64000, 262144, 0, 8, &cpu, &mem);
    CHECK(cpu == 16000 && mem == 65536);
    shape_on(&half, 64000, 262144, 0, 8, &cpu, &mem);
    CHECK(cpu == 3000 && mem == 16384);
    shape_on(&none, 64000, 262144, 0, 0, &cpu, &mem);
    CHECK(cpu == 1000 && mem == 1024);
}

TEST(gpus_bring_cpus_and_memory)
{
    AUTO(read_done) struct read r = spec_read("run: nvidia-smi\ngpus: H200:8\n");
    CHECK(r.ok && r.shape.gpu.milli == 8000 && r.shape.cpu_milli == 0 && r.shape.mem_mib == 0);
    AUTO(read_done) struct read half = spec_read("run: nvidia-smi\ngpus: 0.5\n");
    CHECK(half.ok && half.shape.gpu.milli == 500 && half.shape.cpu_milli == 0 && half.shape.mem_mib == 0);
}

TEST(names_of_other_systems_mean_the_same)
{
    static const char *const files[] = {
        "type: job\nname: t\nimage: debian:12\nrun: [a, b]\ngpus: H100:2\ncpus: 4\nmemory: 32\nenv: {A: 1}\nmax_duration: 1h\nvolumes: [d:/d]\n",
        "kind: batch\nname: t\nimage_id: docker:debian:12\nrun: [a, b]\nresources: {accelerators: \"H100:2\", cpus: 4, memory: 32}\nenvs: {A: 1}\ntime: 1:00:00\nvolumes: [d:/d]\n",
        "type: task\nname: t\ncontainer_image: debian:12\ncommands:\n  - a\n  - b\nresources:\n  gpu: H100:2\n  cpu: 4\n  mem: 32GB\nenv:\n  - A=1\ntime_limit: 60m\nmounts: [d:/d]\n",
        "job_name: t\nimage: docker://debian:12\nrun: [a, b]\nnum_gpus: H100:2\ncpus_per_task: 4\nmem: 32768MB\nenvironment: {A: '1'}\ntimeout: 3600\nfile_mounts: [d:/d]\n",
    };
    AUTO(str_done) struct str first = { 0 };
    for (size_t i = 0; i < COUNT(files); i++) {
        AUTO(read_done) struct read r = spec_read(files[i]);
        AUTO(str_done) struct str text = { 0 };
        if (!r.ok)
            printf("# %zu: %s\n", i, r.err.text);
        CHECK(r.ok && r.shape.gpu.milli == 2000 && r.shape.cpu_milli == 4000 && r.shape.mem_mib == 32768 && r.spec.max_duration_s == 3600);
        r.spec.gpus = "H100:2";
        bind_write(&(struct json_out){ .to = &text }, &job_spec_fields, &r.spec);
        if (!i)
            str_text(&first, text.at);
        CHECK(text_is(first.at, text.at));
    }
}

/* What is stored is read again at every start of the server. */
TEST(a_settled_spec_that_was_stored_settles_to_the_same)
{
    static const char *const files[] = {
        "command: python train.py\n",
        "command: [sleep, 5]\narray: 0-9\nretry: {limit: 3, delay: 1m, on: [exited, out_of_memory]}\nafter: [{job: a, when: any}]\ndependency: [b, 'fail:c']\n",
        "run: x\nflavor: cpu.4x16\npriority: 0\ngrace: 0\nretry_delay: 0\n",
        "run: x\nflavor: h200.share-250\ngpu_memory: 10GB\nuser: 1000:1000\nsecrets: [HF_TOKEN]\nvolumes: ['d:/d:ro']\nlabels: {team: a}\non_lost: wait\n",
        "run: x\nmig: 1g.18gb\nmemory: 32MB\n",
        "image: debian:12\n",
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        AUTO(read_done) struct read a = spec_read(files[i]);
        AUTO(str_done) struct str stored = { 0 }, again = { 0 };
        CHECK(a.ok);
        bind_write(&(struct json_out){ .to = &stored }, &job_spec_fields, &a.spec);
        AUTO(read_done) struct read b = spec_read(stored.at);
        if (!b.ok)
            printf("# %s: %s\n", stored.at, b.err.text);
        bind_write(&(struct json_out){ .to = &again }, &job_spec_fields, &b.spec);
        CHECK(b.ok && text_is(stored.at, again.at) && memcmp(&a.shape, &b.shape, sizeof a.shape) == 0);
    }
}

TEST(settling_reads_every_short_form)
{
    AUTO(read_done) struct read r = spec_read("command: [sleep, 5]\narray: 0-9\ndependency: [a, 'any:b', 'afternotok:c:d']\nretry: {limit: 3, delay: 1m, on: exited}\n"
                                              "resources: {gpu: 0.25, gpu_memory: 10GB}\nuser: nobody\n");
    const struct job_after *after = r.spec.after.at;
    CHECK(r.ok && r.spec.count == 10 && !r.spec.array && r.spec.dependency.count == 0 && r.spec.after.count == 4);
    CHECK(r.ok && text_is(after[0].job, "a") && after[0].when == AFTER_OK && text_is(after[1].job, "b") && after[1].when == AFTER_ANY);
    CHECK(r.ok && text_is(after[3].job, "d") && after[3].when == AFTER_FAIL);
    CHECK(r.spec.retry.limit == 3 && r.spec.retry.delay_s == 60 && r.spec.retry.on.count == 1);
    CHECK(r.shape.gpu.milli == 250 && r.shape.gpu.share_mib == 10240);
    AUTO(read_done) struct read whole = spec_read("run: x\ngpus: 2\ngpu_memory: 40GB\narray: 10\n");
    CHECK(whole.ok && whole.shape.gpu.share_mib == 0 && whole.shape.gpu.mem_min_mib == 40960 && whole.spec.count == 10);
    AUTO(read_done) struct read mig = spec_read("run: x\ngpus: H200\nmig: 1g.18gb\n");
    CHECK(mig.ok && text_is(mig.shape.gpu.mig, "1g.18gb") && text_is(mig.shape.gpu.model, "H200") && mig.shape.gpu.milli == 142);
}

TEST(bad_input_names_the_field)
{
    static const struct { const char *yaml, *field, *says; } rows[] = {
        { "name: x\n", "command", "say what to run" },
        { "image: host\n", "command", "say what to run" },
        { "setup: pip install x\nimage: debian\n", "run", "say what to run" },
        { "command: [a]\nrun: b\n", "run", "one of them" },
        { "command: a b\nrun: b\n", "run", "one of them" },
        { "command: ['']\n", "command", "empty" },
        { "type: service\nrun: x\n", "type", "what exists is job" },
        { "run: x\ngpuz: 1\n", "gpuz", "did you mean" },
        { "run: x\nautostop: 5\n", "autostop", "only an instance" },
        { "run: x\ngpus: 1.5\n", "gpus", "share" },
        { "run: x\nresources: {gpu: 1.5}\n", "gpus", "share" },
        { "run: x\ngpus: 1\nresources: {gpu: 1}\n", "resources.gpu", "one of them" },
        { "run: x\ngpus: 1\nflavor: h200.1x\n", "flavor", "one of them" },
        { "run: x\nflavor: huge\n", "flavor", "look like" },
        { "run: x\nflavor: cpu.4x16\ncpus: 2\n", "flavor", "leave cpus" },
        { "run: x\ngpu_memory: 10GB\n", "gpu_memory", "how much of a GPU" },
        { "run: x\ngpus: 0.5\ngpu_memory: lots\n", "gpu_memory", "size" },
        { "run: x\ngpus: 0.5\ngpu_memory: 10240\n", "gpu_memory", "number alone is GB" },
        { "run: x\nmig: 9g\n", "mig", "profile" },
        { "run: x\nmig: 1g.18gb\ngpus: 2\n", "mig", "one slice" },
        { "run: x\ncpus: 0\n", "cpus", "between" },
        { "run: x\ncpus: 1e9\n", "cpus", "decimals" },
        { "run: x\nmemory: 1MB\n", "memory", "between" },
        { "run: x\nmemory: 99999TB\n", "memory", "between" },
        { "run: x\nmemory: 1GB\nshm_size: 2GB\n", "shm_size", "part of the memory" },
        { "run: x\ncount: 0\n", "count", "between" },
        { "run: x\ncount: 1000001\n", "count", "between" },
        { "run: x\narray: 1-9\n", "array", "from 0" },
        { "run: x\narray: 0-9%4\n", "array", "not understood" },
        { "run: x\narray: 0-1000000\n", "array", "between" },
        { "run: x\narray: 0-99999999999999999999\n", "array", "between" },
        { "run: x\narray: -5\n", "array", "not understood" },
        { "run: x\narray: 0-9\ncount: 5\n", "array", "one of them" },
        { "run: x\npriority: 101\n", "priority", "between" },
        { "run: x\ngrace: 2h\n", "grace", "between" },
        { "run: x\nmax_duration: soon\n", "max_duration", "duration" },
        { "run: x\nname: Train It\n", "name", "a-z" },
        { "run: x\nimage: '-v'\n", "image", "not an image" },
        { "run: x\nimage: 'a b'\n", "image", "not an image" },
        { "run: x\nimage: ../../etc\n", "image", "not an image" },
        { "run: x\nenv: {1A: x}\n", "env", "name of a variable" },
        { "run: x\nenv: {ARCUS_JOB_ID: x}\n", "env", "kept for" },
        { "run: x\nenv: [A]\n", "env[0]", "KEY=VALUE" },
        { "run: x\nsecrets: [a/b]\n", "secrets", "name of a secret" },
        { "run: x\nsecrets: [..]\n", "secrets", "name of a secret" },
        { "run: x\nsecrets: [A, A]\n", "secrets", "twice" },
        { "run: x\nvolumes: [/home/me:/data]\n", "volumes", "make a volume" },
        { "run: x\nvolumes: [data]\n", "volumes", "NAME:/path" },
        { "run: x\nvolumes: ['data:rel']\n", "volumes", "begins with /" },
        { "run: x\nvolumes: ['data:/']\n", "volumes", "begins with /" },
        { "run: x\nvolumes: ['data:/a/../b']\n", "volumes", "'..'" },
        { "run: x\nvolumes: ['data:/a//b']\n", "volumes", "empty part" },
        { "run: x\nvolumes: ['data:/a/']\n", "volumes", "empty part" },
        { "run: x\nvolumes: ['data:/proc/1']\n", "volumes", "nothing can be mounted" },
        { "run: x\nvolumes: ['data:/a:rx']\n", "volumes", "only :ro" },
        { "run: x\nvolumes: ['a:/d', 'b:/d']\n", "volumes", "two of them" },
        { "run: x\nretry: {limit: -1}\n", "retry.limit", "between" },
        { "run: x\nretry: {lmit: 1}\n", "retry.lmit", "did you mean" },
        { "run: x\nretry_on: [succeeded]\n", "retry_on", "outcome" },
        { "run: x\nretry_on: [cancelled]\n", "retry_on", "outcome" },
        { "run: x\nafter: [{when: ok}]\n", "after[0].job", "required" },
        { "run: x\nafter: [{job: a, when: soon}]\n", "after[0].when", "none of" },
        { "run: x\ndependency: ['soon:a']\n", "dependency", "not understood" },
        { "run: x\ndependency: ['ok:']\n", "dependency", "names no job" },
        { "run: x\nuser: '-1'\n", "user", "not uid" },
        { "run: x\nuser: '70000'\n", "user", "65535" },
        { "run: x\nuser: '1:2:3'\n", "user", "not uid" },
        { "run: x\nuser: 'a b'\n", "user", "not uid" },
        { "run: x\nuser: ''\n", "user", "not uid" },
        { "run: x\nworkdir: .\n", "workdir", "upload" },
        { "run: x\non_lost: panic\n", "on_lost", "none of" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(read_done) struct read r = spec_read(rows[i].yaml);
        bool good = !r.ok && r.err.rc == RC_BAD_INPUT && text_is(r.err.field, rows[i].field) && strstr(r.err.text, rows[i].says);
        if (!good)
            printf("# %s# -> %d, field '%s': %s\n", rows[i].yaml, r.ok, r.err.field, r.err.text);
        CHECK(good);
    }
}

TEST(a_refused_spec_is_left_as_it_was)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct shape shape = { .cpu_milli = 7 };
    struct job_spec spec = { .type = "batch", .array = "0-9", .workdir = ".", .count = 1, .run = { (const char *[]){ "x" }, 1 } }, before = spec;
    CHECK(!job_spec_settle(&spec, mem, &shape, &err) && memcmp(&spec, &before, sizeof spec) == 0 && shape.cpu_milli == 7);
}

TEST(texts_that_no_kernel_would_take_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct shape shape;
    char *big = arena_take(mem, 1, (64 << 10) + 2);
    memset(big, 'x', (64 << 10) + 1);
    struct job_spec spec = { .count = 1, .run = { (const char *[]){ big }, 1 } };
    CHECK(!job_spec_settle(&spec, mem, &shape, &err) && text_is(err.field, "run"));
    spec = (struct job_spec){ .count = 1, .command = { (const char *[]){ "a", big }, 2 } };
    CHECK(!job_spec_settle(&spec, mem, &shape, &err) && text_is(err.field, "command"));
    spec = (struct job_spec){ .count = 1, .run = { (const char *[]){ "x" }, 1 }, .env = { (struct pair[]){ { "A", big } }, 1 } };
    CHECK(!job_spec_settle(&spec, mem, &shape, &err) && text_is(err.field, "env"));
}

static bool argv_is(const char *yaml, const char *want)
{
    AUTO(read_done) struct read r = spec_read(yaml);
    AUTO(str_done) struct str got = { 0 };
    struct texts argv = job_argv(&r.spec, r.mem);
    str_text(&got, "");
    for (size_t i = 0; i < argv.count; i++)
        str_printf(&got, "%s%s", i ? "|" : "", argv.at[i]);
    if (!r.ok || !text_is(got.at, want))
        printf("# %s -> %s %s\n", yaml, got.at, r.err.text);
    return r.ok && text_is(got.at, want);
}

TEST(what_is_executed_follows_from_command_run_and_setup)
{
    CHECK(argv_is("command: [echo, hi]\n", "echo|hi"));
    CHECK(argv_is("command: echo hi\n", "/bin/sh|-c|echo hi\n"));
    CHECK(argv_is("run: |\n  a\n  b\n", "/bin/sh|-c|a\nb\n\n"));
    CHECK(argv_is("run: [a, b]\n", "/bin/sh|-c|set -e\na\nb\n"));
    CHECK(argv_is("setup: s\nrun: a\n", "/bin/sh|-c|set -e\ns\nset +e\na\n"));
    CHECK(argv_is("setup: s\nrun: [a, b]\n", "/bin/sh|-c|set -e\ns\na\nb\n"));
    CHECK(argv_is("setup: s\ncommand: [echo, hi]\n", "/bin/sh|-c|set -e\ns\nset +e\nexec \"$@\"\n|sh|echo|hi"));
    CHECK(argv_is("image: debian:12\n", ""));
}

TEST(an_instance_waits_without_a_command_and_is_one_machine)
{
    AUTO(read_done) struct read r = spec_read("type: instance\nname: lab\n"), own = spec_read("kind: dev-environment\nrun: ./serve\nretries: 2\n"),
                                 notes = spec_read("jupyter: true\nname: notes\n"), two = spec_read("type: instance\ncount: 2\n"),
                                 gang = spec_read("type: instance\nnodes: 2\n"), both = spec_read("jupyter: true\nrun: x\n"), job = spec_read("type: job\n");
    struct shape shape;
    struct err err = { 0 };
    CHECK(r.ok && text_is(r.spec.type, "instance") && r.spec.run.count == 1 && r.spec.retry.limit == 1000);
    CHECK(own.ok && text_is(own.spec.type, "instance") && text_is(own.spec.run.at[0], "./serve") && own.spec.retry.limit == 2);
    CHECK(notes.ok && text_is(notes.spec.type, "instance") && strstr(notes.spec.run.at[0], "jupyter lab") && !notes.spec.jupyter);
    CHECK(job_spec_settle(&notes.spec, notes.mem, &shape, &err) && strstr(notes.spec.run.at[0], "jupyter lab"));
    CHECK(!two.ok && strstr(two.err.text, "one machine") && !gang.ok && strstr(gang.err.text, "one machine"));
    CHECK(!both.ok && strstr(both.err.text, "a command is given too") && !job.ok);
}
