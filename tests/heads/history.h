/* history.h - what clients of a cloud asked, when, and what they were told; and whether one register could have answered so. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

enum { REGISTERS = 4 };
enum answer { ANSWER_OK, ANSWER_UNKNOWN };  /* unknown: it may have happened, at any later time */
struct op {
    int reg;
    bool write;
    int64_t value;              /* written, or read; every write has its own */
    int64_t start_us, end_us;
    enum answer answer;
};

/* One register whose writes are all different, as Gibbons and Korach check it: a value's zone lies between the first end and the last
 * start of the operations on it. Where that is a span in which the register must have held it, no two may overlap; where it is a
 * span in which it must have held it at some moment, it may not lie inside such a span of another. Reads that were not answered say
 * nothing; writes that were not answered count only where somebody saw them. `initial` was there before everything. */
MUST_CHECK bool history_check(const struct op *ops, size_t count, int reg, int64_t initial, struct err *err);
