/* hello.c - the field tables of the first message on the agent's connection. */
#include "model/hello.h"
#include "model/order.h"

static const struct field hello_rows[] = {
    FIELD(struct hello, kind, TEXT, .required = true, .max = 16),
    FIELD(struct hello, info, OBJECT, .sub = &node_info_fields, .required = true),
    FIELD(struct hello, running, TEXTS, .max = ORDERS_MOST),
    FIELD(struct hello, has, TEXTS, .max = 1024, .when_set = true),
    FIELD(struct hello, generation, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct hello, beat, INT, .min = 0, .max = INT64_MAX, .when_set = true),
    FIELD(struct hello, next, INT, .required = true, .min = 1, .max = INT64_MAX),
};
const struct fields hello_fields = FIELDS(hello, hello_rows);
