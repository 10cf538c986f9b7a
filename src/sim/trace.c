/* trace.c - CSV to nodes and tasks, by two tables of columns. Strict about what it uses: a value that is not understood ends the
 * reading with its place, since a trace that is half right gives figures that are all wrong. */
#include "sim/trace.h"
#include "base/map.h"
#include <stdio.h>

enum { COLUMNS_MAX = 64, CELL_MAX = 256 };

struct column {
    const char *name, *also, *like;     /* like: an example of a good value */
    size_t offset;
    int64_t min, max, otherwise;
    bool required, text;
};
#define NUMBER(T, member, column, ...) { .name = column, .offset = offsetof(struct T, member), __VA_ARGS__ }
#define MAX_AMOUNT ((int64_t)1 << 40)

static const struct column node_columns[] = {
    NUMBER(trace_node, name, "sn", .also = "name", .text = true),
    NUMBER(trace_node, cpu_milli, "cpu_milli", .max = MAX_AMOUNT, .required = true, .like = "thousandths of a CPU, such as 96000"),
    NUMBER(trace_node, mem_mib, "memory_mib", .max = MAX_AMOUNT, .required = true, .like = "MiB, such as 393216"),
    NUMBER(trace_node, gpus, "gpu", .max = TRACE_GPUS_MAX, .required = true, .like = "a number of GPUs from 0 to 16"),
    NUMBER(trace_node, model, "model", .text = true),
    NUMBER(trace_node, gpu_mib, "gpu_mib", .min = 1, .max = 1 << 24, .otherwise = 16384, .like = "MiB of one GPU, such as 81920"),
};
static const struct column task_columns[] = {
    NUMBER(trace_task, cpu_milli, "cpu_milli", .max = MAX_AMOUNT, .required = true, .like = "thousandths of a CPU, such as 4000"),
    NUMBER(trace_task, mem_mib, "memory_mib", .max = MAX_AMOUNT, .required = true, .like = "MiB, such as 16384"),
    NUMBER(trace_task, gpus, "num_gpu", .max = TRACE_GPUS_MAX, .required = true, .like = "a number of GPUs from 0 to 16"),
    NUMBER(trace_task, milli, "gpu_milli", .max = 1000, .otherwise = 1000, .like = "thousandths of one GPU, from 1 to 1000"),
    NUMBER(trace_task, spec, "gpu_spec", .text = true),
    NUMBER(trace_task, nodes, "nodes", .also = "num_nodes", .min = 1, .max = TRACE_NODES_MAX, .otherwise = 1, .like = "a number of nodes from 1 to 1024"),
    NUMBER(trace_task, project, "project", .text = true),
    NUMBER(trace_task, priority, "priority", .max = 100, .otherwise = 50, .like = "0 to 100"),
    NUMBER(trace_task, created_s, "creation_time", .max = MAX_AMOUNT, .otherwise = -1, .like = "seconds"),
    NUMBER(trace_task, scheduled_s, "scheduled_time", .max = MAX_AMOUNT, .otherwise = -1, .like = "seconds"),
    NUMBER(trace_task, deleted_s, "deletion_time", .max = MAX_AMOUNT, .otherwise = -1, .like = "seconds"),
};

struct reader {
    const char *file;
    const struct column *columns;
    size_t column_count, row_size;
    struct arena *mem;
    struct map *texts;          /* those that were seen, once each */
    const char *at, *end;
    size_t line;
    int map[COLUMNS_MAX];       /* column of the file -> of ours, or -1 */
    size_t width;
};

/* One cell, without its quotes. *last: the line ends behind it. */
static bool cell_next(struct reader *r, char out[static CELL_MAX], bool *last, struct err *err)
{
    size_t n = 0;
    bool quoted = r->at < r->end && *r->at == '"';
    r->at += quoted;
    while (r->at < r->end && (quoted || (*r->at != ',' && *r->at != '\n'))) {
        char c = *r->at++;
        if (quoted && c == '"') {
            if (r->at == r->end || *r->at != '"')
                break;
            r->at++;
        }
        if (n + 1 == CELL_MAX || !c || (quoted && c == '\n'))
            return err_set(err, RC_BAD_INPUT, "%s line %zu: %s", r->file, r->line,
                           !c ? "there is a zero byte; is this CSV?" : c == '\n' ? "a quote is not closed" : "a value of more than 255 letters");
        out[n++] = c;
    }
    if (r->at < r->end && *r->at == '\r' && quoted)
        r->at++;
    if (r->at < r->end && *r->at != ',' && *r->at != '\n')
        return err_set(err, RC_BAD_INPUT, "%s line %zu: there is something behind a closing quote; put a comma there", r->file, r->line);
    *last = r->at == r->end || *r->at == '\n';
    r->at += r->at < r->end;
    n -= !quoted && *last && n && out[n - 1] == '\r';
    out[n] = 0;
    return true;
}

static bool header_read(struct reader *r, struct err *err)
{
    char cell[CELL_MAX];
    bool last = false;
    r->line = 1;
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0)
        r->at += 3;
    while (!last) {
        if (!cell_next(r, cell, &last, err))
            return false;
        if (r->width == COLUMNS_MAX)
            return err_set(err, RC_BAD_INPUT, "%s: more than %d columns", r->file, COLUMNS_MAX);
        r->map[r->width] = -1;
        for (size_t i = 0; i < r->column_count; i++)
            if (text_is(cell, r->columns[i].name) || text_is(cell, r->columns[i].also))
                r->map[r->width] = (int)i;
        for (size_t i = 0; i < r->width; i++)
            if (r->map[i] >= 0 && r->map[i] == r->map[r->width])
                return err_set(err, RC_BAD_INPUT, "%s: column %s is there twice", r->file, cell);
        r->width++;
    }
    for (size_t i = 0; i < r->column_count; i++) {
        bool there = !r->columns[i].required;
        for (size_t k = 0; k < r->width; k++)
            there = there || r->map[k] == (int)i;
        if (!there)
            return err_set(err, RC_BAD_INPUT, "%s: there is no column %s; the first line names the columns", r->file, r->columns[i].name);
    }
    return true;
}

static bool number_read(const struct reader *r, const struct column *c, const char *cell, int64_t *out, struct err *err)
{
    int64_t n = 0;
    const char *p = cell;
    for (; *p >= '0' && *p <= '9' && n <= MAX_AMOUNT; p++)
        n = n * 10 + (*p - '0');
    if (p[0] == '.' && p[1 + strspn(p + 1, "0")] == 0)      /* some programs write 4000.0 */
        p += strlen(p);
    if (*cell && !*p && p != cell && n >= c->min && n <= c->max)
        return *out = n, true;
    return err_set(err, RC_BAD_INPUT, "%s line %zu, column %s: '%.40s' is not right; write %s", r->file, r->line, c->name, cell, c->like);
}

static const char *text_once(struct reader *r, const char *cell)
{
    const char *known = map_get_text(r->texts, cell);
    if (!known) {
        char *copy = arena_text(r->mem, cell);
        map_put_text(r->texts, copy, copy);
        known = copy;
    }
    return known;
}

static bool row_read(struct reader *r, char *row, struct err *err)
{
    char cell[CELL_MAX];
    bool last = false;
    size_t at = 0;
    for (size_t i = 0; i < r->column_count; i++) {
        const struct column *c = &r->columns[i];
        if (c->text)
            *(const char **)(row + c->offset) = "";
        else
            *(int64_t *)(row + c->offset) = c->otherwise;
    }
    for (; !last; at++) {
        if (!cell_next(r, cell, &last, err))
            return false;
        if (at >= r->width)
            return err_set(err, RC_BAD_INPUT, "%s line %zu: more values than the first line has names (%zu)", r->file, r->line, r->width);
        const struct column *c = r->map[at] < 0 ? NULL : &r->columns[r->map[at]];
        if (c && c->text)
            *(const char **)(row + c->offset) = text_once(r, cell);
        else if (c && (*cell || c->required) && !number_read(r, c, cell, (int64_t *)(row + c->offset), err))
            return false;
    }
    if (at < r->width)
        return err_set(err, RC_BAD_INPUT, "%s line %zu: %zu values where the first line has %zu names", r->file, r->line, at, r->width);
    return true;
}

static bool rows_read(struct reader *r, size_t *count, char **rows, struct err *err)
{
    size_t lines = 0, n = 0;
    for (const char *p = r->at; p < r->end && (p = memchr(p, '\n', (size_t)(r->end - p))); p++)
        lines++;
    if (lines > TRACE_ROWS_MAX)
        return err_set(err, RC_BAD_INPUT, "%s has more than %d lines", r->file, TRACE_ROWS_MAX);
    if (!header_read(r, err))
        return false;
    char *list = arena_take(r->mem, lines + 1, r->row_size);
    while (r->at < r->end) {
        r->line++;
        if (*r->at == '\n' || (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')) {
            r->at += 1 + (*r->at == '\r');
            continue;
        }
        if (!row_read(r, list + n * r->row_size, err))
            return false;
        n++;
    }
    if (!n)
        return err_set(err, RC_BAD_INPUT, "%s has no rows below the names of its columns", r->file);
    *count = n;
    *rows = list;
    return true;
}

bool trace_nodes(struct slice csv, const char *file, struct arena *mem, struct trace *out, struct err *err)
{
    AUTO(map_free) struct map *texts = map_new();
    struct reader r = { .file = file, .columns = node_columns, .column_count = COUNT(node_columns), .row_size = sizeof(struct trace_node),
                        .mem = mem, .texts = texts, .at = csv.at, .end = csv.at + csv.len };
    char *rows = NULL;
    size_t count = 0;
    if (!rows_read(&r, &count, &rows, err))
        return false;
    struct trace_node *nodes = (struct trace_node *)rows;
    for (size_t i = 0; i < count; i++)
        if (strlen(nodes[i].model) > 47)
            return err_set(err, RC_BAD_INPUT, "%s: '%.60s...' is too long for a model, at most 47 letters", file, nodes[i].model);
    out->nodes = nodes;
    out->node_count = count;
    return true;
}

bool trace_tasks(struct slice csv, const char *file, struct arena *mem, struct trace *out, struct err *err)
{
    AUTO(map_free) struct map *texts = map_new();
    struct reader r = { .file = file, .columns = task_columns, .column_count = COUNT(task_columns), .row_size = sizeof(struct trace_task),
                        .mem = mem, .texts = texts, .at = csv.at, .end = csv.at + csv.len };
    char *rows = NULL;
    size_t count = 0;
    if (!rows_read(&r, &count, &rows, err))
        return false;
    struct trace_task *tasks = (struct trace_task *)rows;
    for (size_t i = 0; i < count; i++) {
        tasks[i].cpu_milli = MAX(tasks[i].cpu_milli, 1); /* to the scheduler, 0 beside GPUs is "in proportion to them" */
        tasks[i].mem_mib = MAX(tasks[i].mem_mib, 1);
        if (tasks[i].gpus == 1 && !tasks[i].milli)
            return err_set(err, RC_BAD_INPUT, "%s: task %zu has one GPU and a gpu_milli of 0; write 1 to 1000", file, i + 1);
        if (strlen(tasks[i].spec) > 63)
            return err_set(err, RC_BAD_INPUT, "%s: the gpu_spec '%.40s...' is too long, at most 63 letters", file, tasks[i].spec);
    }
    out->tasks = tasks;
    out->task_count = count;
    return true;
}
