/* cp.h - how `arcus cp` reads its two places. */
#pragma once
#include "cli/cli.h"

struct place { const char *job, *volume, *path; };      /* neither job nor volume: a local path */
MUST_CHECK bool place_parse(struct cli *c, const char *text, struct place *out, struct err *err);
