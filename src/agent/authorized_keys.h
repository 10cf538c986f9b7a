/* authorized_keys.h - the keys that an SSH session lets in, put into ~/.ssh of the user that it logs in as. libc only: the supervisor does it, inside
 * the container and as that user. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/field.h"

/* Lines of ours are replaced, those of five minutes ago and those of `barred` go; whatever else is there stays as it is, or nothing is changed at all. */
MUST_CHECK bool authorized_keys_put(const char *folder, const struct texts *keys, const struct texts *barred, int64_t now_s, struct arena *mem, struct err *err);
