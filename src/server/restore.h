/* restore.h - a backup becomes a cloud again: its file is read to the end and checked first, then a second time into an empty store.
 *
 * All or nothing: the rows are one transaction, and uploads lie unknown until it lands. Killed at any moment, it can be run again. */
#pragma once
#include "os/os.h"

struct restore { const char *file, *data, *store; };    /* absolute paths; the data folder is locked by the caller */
struct restore_told { int64_t made_ms, rows, uploads, missing; char arcus[64]; };
MUST_CHECK bool restore_run(struct os *os, const struct restore *how, struct restore_told *out, struct err *err);
