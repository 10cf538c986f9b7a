/* forward.h - ports of this machine that lead into a task; for `arcus port-forward` and for words that open one for something they know. */
#pragma once
#include "cli/cli.h"

enum { FORWARD_WAYS = 16 };
MUST_CHECK bool forward_parse(const char *text, int64_t *local, int64_t *remote, struct err *err);     /* "8888", "8080:80", ":80" */
/* Until interrupted; its exit code. doc: of job.dial, less its port. on_ready is called once for each port, in order. */
int forward_run(struct cli *c, struct json *doc, const struct texts *ports, void (*on_ready)(void *arg, int64_t local, int64_t remote), void *arg);
