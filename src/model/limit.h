/* limit.h - what a project, one of its users, or either of one model of GPU may hold at once and use in a day, week or month; and the
 * books that know what they do hold. The writer has one set of books for the door, the planner one for its picture: the same code.
 *
 * Nothing is ever exceeded, at no instant: a task is counted with all it could use before it is placed. For hours of GPUs that is what
 * it asked for times its longest time (max_duration and the grace after it), at most a whole period; when it ends, what it did use
 * takes the place of that. Periods are of UTC; a week begins on Monday. Integers only. */
#pragma once
#include "base/arena.h"
#include "base/str.h"
#include "base/err.h"
#include "model/job.h"

enum limit_kind { LIMIT_TASKS, LIMIT_GPUS, LIMIT_DAY, LIMIT_WEEK, LIMIT_MONTH, LIMIT_KINDS,
                  LIMIT_PROJECT_GPUS = LIMIT_KINDS, LIMIT_PROJECT_CPUS, LIMIT_PROJECT_MEMORY, LIMIT_ANY };   /* the latter: of struct quota */
enum { PERIODS = LIMIT_MONTH - LIMIT_DAY + 1, MODEL_NAME = 20, LIMIT_STOP_S = 30 };    /* LIMIT_STOP_S: until what was killed is gone */

/* tasks; thousandths of a GPU; thousandths of a GPU for an hour. Below 0: no limit. */
struct limit { int64_t most[LIMIT_KINDS]; };
#define LIMIT_NONE ((struct limit){ { -1, -1000, -1000, -1000, -1000 } })
const char *limit_name(enum limit_kind k);              /* as a person sets it: "gpus", "gpu_hours_day" */
bool limit_is_none(const struct limit *l);
void model_name(const char *model, char out[static MODEL_NAME]);        /* "NVIDIA H200" -> "h200": what a limit and a flavor call it */

struct limit_row {
    int64_t owner;              /* 0: of the whole project */
    char model[MODEL_NAME];     /* "": of any */
    struct limit limit;
    int64_t tasks, gpu_milli, reserved[PERIODS], used[PERIODS];     /* the latter two in thousandths of a GPU times ms */
};
struct books {
    struct limit_row *at;
    size_t count, room;
    int64_t begins_ms[PERIODS]; /* of the periods that `used` is about */
};
/* What a task holds, or would. */
struct limit_part { char model[MODEL_NAME]; int64_t milli; };
struct limit_ask { int64_t owner, bound_ms, tasks; int count; struct limit_part parts[8]; };    /* bound_ms: how long at most; 0: nobody knows. tasks: of a gang; 0 is 1 */
void limit_ask_add(struct limit_ask *a, const char *model, int64_t milli);      /* model as the device tells it; NULL: not known yet */
int64_t limit_bound_ms(const struct job_spec *spec);

void books_done(struct books *l);
struct limit_row *books_row(struct books *l, int64_t owner, const char *model);       /* NULL: none */
/* A row begins with nothing held and nothing used: count it. NULL: it is gone, since it limits nothing. */
struct limit_row *books_set(struct books *l, int64_t owner, const char *model, const struct limit *limit);
bool books_have_hours(const struct books *l);
int64_t period_begin(int period, int64_t now_ms);
int64_t books_next_ms(const struct books *l, int64_t now_ms);        /* when a period of hours begins anew; INT64_MAX: no hours are limited */
bool books_roll(struct books *l, int64_t now_ms);                    /* before anything else is asked or told; true: something was set to nothing */
void limit_row_hold(struct limit_row *r, const struct limit_ask *a, int sign);
void books_hold(struct books *l, const struct limit_ask *a, int sign);
void limit_row_use(struct limit_row *r, const struct books *l, const struct limit_ask *a, int64_t from_ms, int64_t to_ms);
void books_use(struct books *l, const struct limit_ask *a, int64_t from_ms, int64_t to_ms);
void books_used_day(struct books *l, int64_t owner, const char *flavor, int64_t day_ms, int64_t milli_ms);    /* from sums of whole days */
/* Which row would be exceeded; NULL: none. ever: even if nothing were held. */
const struct limit_row *books_refuse(const struct books *l, const struct limit_ask *a, bool ever, enum limit_kind *kind);
int64_t limit_needs(const struct limit_ask *a, const struct limit_row *r, enum limit_kind k);  /* what one task takes of it, in the limit's unit; -1: nobody knows */
/* "ada may hold 2 GPUs at once in project vision, and a task needs 4" */
void limit_sentence(struct str *out, enum limit_kind k, const char *whose, const char *model, int64_t most, int64_t needs);
