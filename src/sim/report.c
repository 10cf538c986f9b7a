/* report.c - what came of it, for programs and for people. Shares are percent with two decimals. */
#include "sim/sim.h"
#include "wire/json.h"

static const int marks[] = { 95, 100, 110, 130 };

static int64_t mean_of(const struct sim_report *r, size_t offset)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->count; i++)
        sum += *(const int64_t *)((const char *)&r->runs[i] + offset);
    return sum / (int64_t)r->count;
}
#define MEAN(r, member) mean_of(r, offsetof(struct sim_result, member))

static double curve_mean(const struct sim_report *r, int percent) /* below 0: not reached */
{
    double sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->runs[i].curve[percent] < 0)
            return -1;
        sum += r->runs[i].curve[percent];
    }
    return sum / (double)r->count / 100;
}

static struct sim_report one_of(const struct sim_report *r, size_t i)
{
    return (struct sim_report){ r->policy, r->runs + i, 1, r->first_seed + i, r->leave };
}

static double stuck_percent(const struct sim_report *r)
{
    int64_t capacity = r->runs[0].capacity_milli;
    return capacity ? 100.0 * (double)MEAN(r, stuck_milli) / (double)capacity : 0;
}

static int64_t speed(const struct sim_report *r)
{
    int64_t us = MEAN(r, busy_us);
    return us ? MEAN(r, decisions) * 1000000 / us : 0;
}

static size_t sum_of(const struct sim_report *r, size_t offset)
{
    size_t sum = 0;
    for (size_t i = 0; i < r->count; i++)
        sum += *(const size_t *)((const char *)&r->runs[i] + offset);
    return sum;
}
#define SUM(r, member) sum_of(r, offsetof(struct sim_result, member))

static void put_number(struct json_out *o, double value, int decimals)
{
    AUTO(str_done) struct str text = { 0 };
    str_printf(&text, "%.*f", decimals, value);
    json_put_raw(o, value < 0 ? NULL : text.at);
}

static void put_percent(struct json_out *o, double value)
{
    put_number(o, value, 2);
}

static void put_run(struct json_out *o, const struct sim_report *r)
{
    static const struct {
        const char *name;
        size_t offset;
    } counts[] = {
        { "tasks", offsetof(struct sim_result, tasks) },
        { "placed", offsetof(struct sim_result, placed) },
        { "refused", offsetof(struct sim_result, refused) },
        { "refused_feasible", offsetof(struct sim_result, refused_feasible) },
        { "wrong", offsetof(struct sim_result, wrong) },
        { "waiting", offsetof(struct sim_result, waiting) },
        { "node_failures", offsetof(struct sim_result, failures) },
    };
    static const struct {
        const char *name;
        size_t offset;
    } times[] = {
        { "mean_s", offsetof(struct sim_result, wait_mean_s) },
        { "median_s", offsetof(struct sim_result, wait_median_s) },
        { "p95_s", offsetof(struct sim_result, wait_95_s) },
        { "max_s", offsetof(struct sim_result, wait_max_s) },
        { "several_gpus_mean_s", offsetof(struct sim_result, wait_several_s) },
    };
    for (size_t i = 0; i < COUNT(counts); i++) {
        json_key(o, counts[i].name);
        json_put_int(o, (int64_t)(sum_of(r, counts[i].offset) / r->count));
    }
    json_key(o, "allocation");
    json_open(o, '{');
    for (size_t i = 0; !r->leave && i < COUNT(marks); i++) {
        AUTO(str_done) struct str name = { 0 };
        str_printf(&name, "%d", marks[i]);
        json_key(o, name.at);
        put_percent(o, curve_mean(r, marks[i]));
    }
    json_close(o, '}');
    json_key(o, "fragmentation");
    put_percent(o, stuck_percent(r));
    if (r->leave) {
        json_key(o, "used");
        put_percent(o, (double)MEAN(r, used_mean) / 100);
        json_key(o, "waited");
        json_open(o, '{');
        for (size_t i = 0; i < COUNT(times); i++) {
            json_key(o, times[i].name);
            json_put_int(o, mean_of(r, times[i].offset));
        }
        json_close(o, '}');
    }
    json_key(o, "fairness");
    put_number(o, (double)MEAN(r, fairness) / 10000, 4);
    json_key(o, "decisions_per_second");
    json_put_int(o, speed(r));
}

void report_json(struct str *out, const struct sim_report *r)
{
    struct json_out o = { .to = out };
    json_open(&o, '{');
    json_key(&o, "policy");
    json_put_text(&o, r->policy);
    json_key(&o, "seed");
    json_put_int(&o, (int64_t)r->first_seed);
    if (r->count > 1) {
        json_key(&o, "seeds");
        json_put_int(&o, (int64_t)r->count);
    }
    put_run(&o, r);
    if (r->count > 1) {
        json_key(&o, "runs");
        json_open(&o, '[');
        for (size_t i = 0; i < r->count; i++) {
            struct sim_report one = one_of(r, i);
            report_json(o.to, &one);
            str_text(o.to, i + 1 < r->count ? "," : "");
        }
        json_close(&o, ']');
    }
    json_close(&o, '}');
}

void report_csv(struct str *out, const struct sim_report *r, size_t count)
{
    str_text(
        out,
        "policy,seed,tasks,placed,refused,refused_feasible,allocation_95,allocation_100,allocation_"
        "110,allocation_130,fragmentation,"
        "used,wait_mean_s,wait_median_s,wait_p95_s,wait_max_s,wait_several_gpus_mean_s,waiting,node_failures,fairness,decisions_per_second\n");
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < r[k].count; i++) {
            const struct sim_result *x = &r[k].runs[i];
            struct sim_report one = one_of(&r[k], i);
            str_printf(out, "%s,%llu,%zu,%zu,%zu,%zu", one.policy,
                       (unsigned long long)one.first_seed, x->tasks, x->placed, x->refused,
                       x->refused_feasible);
            for (size_t m = 0; m < COUNT(marks); m++)
                if (x->curve[marks[m]] < 0)
                    str_text(out, ",");
                else
                    str_printf(out, ",%.2f", x->curve[marks[m]] / 100.0);
            str_printf(out, ",%.2f,", stuck_percent(&one));
            if (r[k].leave) /* nobody waits where nobody leaves */
                str_printf(out, "%.2f,%lld,%lld,%lld,%lld,%lld,%zu,%zu", (double)x->used_mean / 100, (long long)x->wait_mean_s,
                           (long long)x->wait_median_s, (long long)x->wait_95_s, (long long)x->wait_max_s, (long long)x->wait_several_s,
                           x->waiting, x->failures);
            else
                str_text(out, ",,,,,,,");
            str_printf(out, ",%.4f,%lld\n", (double)x->fairness / 10000, (long long)speed(&one));
        }
}

static void table_live(struct str *out, const struct sim_report *r)
{
    str_printf(out, "%-10s %8zu %8zu %7.2f %10lld %10lld %10lld %9.4f %12lld\n", r->policy,
               r->runs[0].tasks, SUM(r, waiting) / r->count, (double)MEAN(r, used_mean) / 100,
               (long long)MEAN(r, wait_mean_s), (long long)MEAN(r, wait_95_s),
               (long long)MEAN(r, wait_max_s), (double)MEAN(r, fairness) / 10000,
               (long long)speed(r));
}

void report_table(struct str *out, const struct sim_report *r, size_t count)
{
    if (r->leave)
        str_printf(out, "%-10s %8s %8s %7s %10s %10s %10s %9s %12s\n", "POLICY", "TASKS", "LEFT",
                   "USED %", "WAIT MEAN", "95 %", "MAX s", "FAIRNESS", "DECISIONS/s");
    else
        str_printf(out, "%-10s %8s %8s %9s %7s %7s %7s %7s %7s %12s\n", "POLICY", "TASKS",
                   "REFUSED", "FEASIBLE", "95 %", "100 %", "110 %", "130 %", "STUCK %",
                   "DECISIONS/s");
    for (size_t k = 0; k < count; k++) {
        if (r->leave) {
            table_live(out, &r[k]);
            continue;
        }
        str_printf(out, "%-10s %8zu %8zu %9zu", r[k].policy, SUM(&r[k], tasks) / r[k].count,
                   SUM(&r[k], refused) / r[k].count, SUM(&r[k], refused_feasible));
        for (size_t m = 0; m < COUNT(marks); m++) {
            double x = curve_mean(&r[k], marks[m]);
            if (x < 0)
                str_text(out, "       -");
            else
                str_printf(out, " %7.2f", x);
        }
        str_printf(out, " %7.2f %12lld\n", stuck_percent(&r[k]), (long long)speed(&r[k]));
    }
    for (size_t k = 0; k < count; k++)
        if (SUM(&r[k], wrong))
            str_printf(out, "%s: %zu placements were wrong: this is a bug\n", r[k].policy,
                       SUM(&r[k], wrong));
}

/* --- curves */

enum { WIDTH = 720, HEIGHT = 420, LEFT = 60, RIGHT = 110, TOP = 20, BOTTOM = 50 };

void report_svg(struct str *out, const struct sim_report *r, size_t count)
{
    static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00" };
    int last = 100;
    for (size_t k = 0; k < count; k++)
        for (int x = 100; x < SIM_CURVE && curve_mean(&r[k], x) >= 0; x++)
            last = MAX(last, x);
    double w = WIDTH - LEFT - RIGHT, h = HEIGHT - TOP - BOTTOM;
    str_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
               WIDTH, HEIGHT);
    for (int y = 0; y <= 100; y += 20)
        str_printf(out,
                   "<path d=\"M%d %.1fh%.0f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
                   "text-anchor=\"end\">%d %%</text>\n",
                   LEFT, TOP + h - h * y / 100, w, LEFT - 6, TOP + h - h * y / 100 + 4, y);
    for (int x = 0; x <= last; x += 10)
        str_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                   LEFT + w * x / last, HEIGHT - BOTTOM + 18, x);
    str_printf(
        out,
        "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">asked for, percent of all GPUs</text>\n",
        LEFT + w / 2, HEIGHT - 10);
    for (size_t k = 0; k < count; k++) {
        str_printf(out, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"",
                   colours[k % COUNT(colours)]);
        double y = 0;
        for (int x = 0; x <= last; x++)
            if (curve_mean(&r[k], x) >= 0) {
                y = curve_mean(&r[k], x);
                str_printf(out, "%.1f,%.1f ", LEFT + w * x / last, TOP + h - h * y / 100);
            }
        str_printf(out, "\"/>\n<text x=\"%d\" y=\"%zu\" fill=\"%s\">%s %.1f %%</text>\n",
                   WIDTH - RIGHT + 6, TOP + 14 + 18 * k, colours[k % COUNT(colours)], r[k].policy,
                   y);
    }
    str_text(out, "</svg>\n");
}
