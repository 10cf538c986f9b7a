/* sim_main.c - the word `arcus sim`: flags, files, progress. */
#include "base/when.h"
#include "sim/sim.h"
#include "sched/score.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POLICIES_MAX = 8, SEEDS_MAX = 1000 };
static const size_t file_max = (size_t)2 << 30;

static const char help[]
    = "usage: arcus sim --nodes FILE --tasks FILE [--policy P] [--seed N] [--inflate X] [-o "
      "json]\n\n"
      "Lets the scheduler of this program place the tasks of a trace on a fleet, in virtual time, "
      "and tells how well it went. The files are\n"
      "CSV whose first line names the columns; nodes: sn, cpu_milli, memory_mib, gpu, model; "
      "tasks: cpu_milli, memory_mib, num_gpu, gpu_milli,\n"
      "gpu_spec (models allowed, | between them), nodes (a gang: as much on each of so many nodes, all or nothing), and project, priority,\n"
      "creation_time, scheduled_time, deletion_time where they are known. Other columns are passed over.\n\n"
      "  --nodes FILE        the fleet\n"
      "  --tasks FILE        what is asked for\n"
      "  --policy P          arcus (what the server does), fgd, bestfit, packing, random; several "
      "with commas between them\n"
      "  --seed N            shuffles the arrivals and breaks ties (1)\n"
      "  --seeds N           so many runs with seeds from --seed on, and their mean (1)\n"
      "  --in-order          tasks arrive in the order of the file\n"
      "  --inflate X         adds clones of tasks until X times the GPUs of the fleet are asked "
      "for (with --leave: X times the trace)\n"
      "  --leave             tasks come at their creation_time, wait until there is room, and "
      "leave when they have run; else they stay,\n"
      "                      and what does not fit is refused\n"
      "  --no-backfill       no start is held for the first in line (with --leave): whatever fits runs\n"
      "  --fail-every TIME   a node fails once in that time, in the mean, and its tasks start "
      "again elsewhere (with --leave), e.g. 30d\n"
      "  --repair TIME       and is back after that time (4h)\n"
      "  --add-nodes SPEC    what if there were more: 10xH200:8 is ten nodes with eight H200, as "
      "large as the largest of the file; may be repeated\n"
      "  --weight NAME=N     another weight of the policy, in thousandths; may be repeated "
      "(doc/scheduling.md tells what each is for)\n"
      "  -o FORMAT           table, json or csv\n"
      "  --svg FILE          draws how much of the GPUs is in use against how much was asked for\n"
      "  -q                  no progress bar\n\n"
      "examples:\n"
      "  arcus sim --nodes nodes.csv --tasks tasks.csv --seed 1 --inflate 1.3 -o json\n"
      "  arcus sim --nodes nodes.csv --tasks tasks.csv --policy arcus,fgd,random --seeds 10 "
      "--inflate 1.3 --svg curves.svg\n"
      "  arcus sim --nodes nodes.csv --tasks last-month.csv --leave --add-nodes 10xH200:8\n";

/* The table of weights as an operator may read it: what counts, by how much, and what for. */
static void print_help(void)
{
    const struct policy *p = policy_at(0);
    fputs(help, stdout);
    printf("\nweights of %s, in thousandths (a term is a cost in GPUs; the least sum wins; of those within %lld.%03lld GPU a lit node):\n", p->name,
           (long long)(p->grain / (1000 * MICRO)), (long long)(p->grain / MICRO % 1000));
    for (size_t i = 0; i < TERM_COUNT; i++)
        printf("  %-8s %5lld  %s\n", terms[i].name, (long long)p->weight[i], terms[i].what);
}

struct words {
    const char *nodes, *tasks, *policy, *seed, *seeds, *inflate, *fail_every, *repair, *output,
        *svg;
    bool in_order, leave, no_backfill, quiet, help;
    const char *add_nodes[16], *weights[SIM_WEIGHTS];
    size_t add_count, weight_count;
};
static const struct {
    const char *flag;
    size_t offset;
    bool is_switch;
} flags[] = {
    { "--nodes", offsetof(struct words, nodes), false },
    { "--tasks", offsetof(struct words, tasks), false },
    { "--policy", offsetof(struct words, policy), false },
    { "--seed", offsetof(struct words, seed), false },
    { "--seeds", offsetof(struct words, seeds), false },
    { "--inflate", offsetof(struct words, inflate), false },
    { "--fail-every", offsetof(struct words, fail_every), false },
    { "--repair", offsetof(struct words, repair), false },
    { "--svg", offsetof(struct words, svg), false },
    { "-o", offsetof(struct words, output), false },
    { "--output", offsetof(struct words, output), false },
    { "--in-order", offsetof(struct words, in_order), true },
    { "--leave", offsetof(struct words, leave), true },
    { "--no-backfill", offsetof(struct words, no_backfill), true },
    { "-q", offsetof(struct words, quiet), true },
    { "--quiet", offsetof(struct words, quiet), true },
    { "--help", offsetof(struct words, help), true },
    { "-h", offsetof(struct words, help), true },
};

static bool one_more(const char **list, size_t *count, size_t most, const char *flag,
                     const char *value, struct err *err)
{
    if (*count == most)
        return err_set(err, RC_BAD_INPUT, "%s: at most %zu of them", flag, most);
    list[(*count)++] = value;
    return true;
}

static bool words_read(int argc, char **argv, struct words *w, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "="), k = 0;
        while (k < COUNT(flags)
               && (strlen(flags[k].flag) != n || strncmp(flags[k].flag, argv[i], n) != 0))
            k++;
        bool add = n == 11 && text_starts(argv[i], "--add-nodes"),
             weight = n == 8 && text_starts(argv[i], "--weight");
        if (k == COUNT(flags) && !add && !weight)
            return err_set(err, RC_BAD_INPUT,
                           argv[i][0] == '-' ? "unknown flag '%s' (--help shows all)"
                                             : "'%s' is not understood (--help shows all)",
                           argv[i]);
        if (!add && !weight && flags[k].is_switch) {
            *(bool *)((char *)w + flags[k].offset) = true;
            continue;
        }
        const char *flag = argv[i], *value = argv[i][n]     ? argv[i] + n + 1
                                             : i + 1 < argc ? argv[++i]
                                                            : NULL;
        if (!text_given(value))
            return err_set(err, RC_BAD_INPUT, "%.*s needs a value", (int)n, flag);
        if (add
            && !one_more(w->add_nodes, &w->add_count, COUNT(w->add_nodes), "--add-nodes", value,
                         err))
            return false;
        if (weight
            && !one_more(w->weights, &w->weight_count, COUNT(w->weights), "--weight", value, err))
            return false;
        if (!add && !weight)
            *(const char **)((char *)w + flags[k].offset) = value;
    }
    if (!w->help && (!w->nodes || !w->tasks))
        return err_set(err, RC_BAD_INPUT, "name the %s (--help shows all)",
                       w->nodes ? "tasks: --tasks FILE" : "fleet: --nodes FILE");
    return true;
}

static bool number(const char *flag, const char *text, int64_t min, int64_t max, int64_t otherwise,
                   int64_t *out, struct err *err)
{
    char *end = NULL;
    errno = 0;
    long long n = text ? strtoll(text, &end, 10) : otherwise;
    if (text && (errno || !*text || *end || n < min || n > max))
        return err_set(err, RC_BAD_INPUT, "%s: '%s' is not a number from %lld to %lld", flag, text,
                       (long long)min, (long long)max);
    *out = n;
    return true;
}

static bool file_read(const char *path, struct str *out, struct err *err)
{
    FILE *f = text_is(path, "-") ? stdin : fopen(path, "re");
    size_t n = 0;
    if (!f)
        return err_errno(err, "%s", path);
    do {
        out->len += n;
        n = fread(str_grow(out, 1 << 20), 1, 1 << 20, f);
    } while (n && out->len + n <= file_max);
    bool ok = !ferror(f) || err_errno(err, "%s", path);
    if (ok && !n && !out->len)
        ok = err_set(err, RC_BAD_INPUT, "%s is empty; its first line names the columns", path);
    if (f != stdin)
        fclose(f);
    if (ok && n)
        return err_set(err, RC_BAD_INPUT, "%s is larger than %zu MiB", path, file_max >> 20);
    return ok;
}

/* "10xH200:8" */
static bool add_nodes(const char *spec, struct arena *mem, struct trace *t, struct err *err)
{
    char model[48];
    long long count = 0, gpus = 0;
    int used = 0;
    if (sscanf(spec, "%6lldx%47[^:]:%2lld%n", &count, model, &gpus, &used) != 3 || spec[used]
        || count < 1 || gpus < 0 || gpus > TRACE_GPUS_MAX)
        return err_set(
            err, RC_BAD_INPUT,
            "--add-nodes: '%s' is not understood; ten nodes with eight H200 each are 10xH200:8",
            spec);
    struct trace_node like
        = { .gpu_mib = 16384, .gpus = gpus, .name = "added", .model = arena_text(mem, model) };
    for (size_t i = 0; i < t->node_count; i++) {
        like.cpu_milli = MAX(like.cpu_milli, t->nodes[i].cpu_milli);
        like.mem_mib = MAX(like.mem_mib, t->nodes[i].mem_mib);
        if (text_is(t->nodes[i].model, model))
            like.gpu_mib = t->nodes[i].gpu_mib;
    }
    struct trace_node *more = ARENA_ARRAY(mem, struct trace_node, t->node_count + (size_t)count);
    memcpy(more, t->nodes, t->node_count * sizeof *more);
    for (long long i = 0; i < count; i++)
        more[t->node_count + (size_t)i] = like;
    t->nodes = more;
    t->node_count += (size_t)count;
    return true;
}

static bool trace_load(const struct words *w, struct arena *mem, struct trace *t, struct err *err)
{
    AUTO(str_done) struct str nodes = { 0 }, tasks = { 0 };
    if (!file_read(w->nodes, &nodes, err)
        || !trace_nodes((struct slice){ nodes.at, nodes.len }, w->nodes, mem, t, err)
        || !file_read(w->tasks, &tasks, err)
        || !trace_tasks((struct slice){ tasks.at, tasks.len }, w->tasks, mem, t, err))
        return false;
    for (size_t i = 0; i < w->add_count; i++)
        if (!add_nodes(w->add_nodes[i], mem, t, err))
            return false;
    return true;
}

static bool weights_of(const struct words *w, struct arena *mem, struct sim_ask *ask,
                         struct err *err)
{
    for (size_t i = 0; i < w->weight_count; i++) {
        char *name = arena_text(mem, w->weights[i]), *value = strchr(name, '=');
        if (!value)
            return err_set(err, RC_BAD_INPUT, "--weight: '%s' is not NAME=N", name);
        *value++ = 0;
        ask->weights[i].term = name;
        if (!number("--weight", value, -1000000, 1000000, 0, &ask->weights[i].thousandths, err))
            return false;
    }
    ask->weight_count = w->weight_count;
    return true;
}

static bool ask_read(const struct words *w, struct arena *mem, const struct trace *t,
                     struct sim_ask *ask, int64_t *seeds, struct err *err)
{
    int64_t seed = 1;
    *ask = (struct sim_ask){
        .trace = t, .in_order = w->in_order, .leave = w->leave, .no_backfill = w->no_backfill, .repair_s = 4 * 3600
    };
    if (!number("--seed", w->seed, 0, INT64_MAX, 1, &seed, err)
        || !number("--seeds", w->seeds, 1, SEEDS_MAX, 1, seeds, err)
        || !weights_of(w, mem, ask, err))
        return false;
    ask->seed = (uint64_t)seed;
    if (w->inflate
        && (!milli_parse(w->inflate, &ask->inflate_milli) || ask->inflate_milli < 1
            || ask->inflate_milli > 100000))
        return err_set(err, RC_BAD_INPUT,
                       "--inflate: '%s' is not a number above 0, at most 100, such as 1.3",
                       w->inflate);
    if ((w->fail_every && (!span_parse(w->fail_every, &ask->fail_every_s) || ask->fail_every_s < 1))
        || (w->repair && (!span_parse(w->repair, &ask->repair_s) || ask->repair_s < 1)))
        return err_set(err, RC_BAD_INPUT,
                       "--fail-every and --repair take times such as 30d, 4h or 90m");
    if (w->fail_every && !w->leave)
        return err_set(err, RC_BAD_INPUT,
                       "--fail-every needs --leave: where tasks stay for ever there is no time");
    return true;
}

/* --- progress */

struct bar {
    const char *policy;
    size_t run, runs;
    bool shown;
};

static void bar_show(void *arg, size_t done, size_t all)
{
    struct bar *b = arg;
    size_t percent = ((b->run * 100) + done * 100 / MAX(all, 1)) / b->runs, full = percent / 4;
    fprintf(stderr, "\r%-8s [%.*s%.*s] %3zu %%", b->policy, (int)full, "#########################",
            (int)(25 - full), ".........................", percent);
    b->shown = true;
}

static void bar_end(const struct bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
}

/* --- the runs */

static bool run_policies(const struct words *w, struct arena *mem, struct sim_ask *ask,
                         int64_t seeds, struct sim_report *reports, size_t *count, struct err *err)
{
    char *names = arena_text(mem, w->policy ? w->policy : "arcus");
    for (char *next, *name = names; name; name = next) {
        next = strchr(name, ',');
        if (next)
            *next++ = 0;
        if (*count == POLICIES_MAX)
            return err_set(err, RC_BAD_INPUT, "--policy: at most %d at once", POLICIES_MAX);
        struct sim_result *runs = ARENA_ARRAY(mem, struct sim_result, (size_t)seeds);
        struct bar bar = { .policy = name, .runs = (size_t)seeds };
        struct sim_ask one = *ask;
        one.policy = name;
        one.on_progress = !w->quiet && isatty(2) ? bar_show : NULL;
        one.arg = &bar;
        for (; bar.run < bar.runs; bar.run++, one.seed++)
            if (!sim_run(&one, &runs[bar.run], err))
                return bar_end(&bar), false;
        bar_end(&bar);
        reports[(*count)++]
            = (struct sim_report){ name, runs, (size_t)seeds, ask->seed, ask->leave };
    }
    return true;
}

static bool print(const struct words *w, const struct sim_report *r, size_t count, struct err *err)
{
    AUTO(str_done) struct str out = { 0 }, svg = { 0 };
    if (text_is(w->output, "json")) {
        str_text(&out, count > 1 ? "[" : "");
        for (size_t i = 0; i < count; i++) {
            str_text(&out, i ? "," : "");
            report_json(&out, &r[i]);
        }
        str_text(&out, count > 1 ? "]\n" : "\n");
    } else if (text_is(w->output, "csv")) {
        report_csv(&out, r, count);
    } else {
        report_table(&out, r, count);
    }
    if (w->svg) {
        report_svg(&svg, r, count);
        FILE *f = fopen(w->svg, "we");
        bool ok = f && fwrite(svg.at, 1, svg.len, f) == svg.len;
        if ((f && fclose(f) != 0) || !ok)
            return err_errno(err, "%s", w->svg);
    }
    fwrite(out.at, 1, out.len, stdout);
    return fflush(stdout) == 0 || err_errno(err, "standard output");
}

int sim_main(int argc, char **argv)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct words w = { 0 };
    struct trace trace = { 0 };
    struct sim_ask ask;
    struct sim_report reports[POLICIES_MAX];
    struct err err = { 0 };
    size_t count = 0;
    int64_t seeds = 1;
    bool ok = words_read(argc, argv, &w, &err);
    if (ok && w.help)
        return print_help(), 0;
    if (ok && w.output && !text_is(w.output, "json") && !text_is(w.output, "csv")
        && !text_is(w.output, "table"))
        ok = err_set(&err, RC_BAD_INPUT, "-o: '%s' is not json, csv or table", w.output);
    ok = ok && trace_load(&w, mem, &trace, &err) && ask_read(&w, mem, &trace, &ask, &seeds, &err)
         && run_policies(&w, mem, &ask, seeds, reports, &count, &err)
         && print(&w, reports, count, &err);
    if (!ok)
        fprintf(stderr, "arcus sim: %s\n", err.text);
    return ok ? 0 : rc_exit(err.rc);
}
