/* scratch_file.h - a filesystem of a fixed size in a file without a name, behind a loop device. libc only: the supervisor
 * links it too. */
#pragma once
#include "base/err.h"

enum { SCRATCH_DEVICE = 32 };
extern const char scratch_options[];    /* of mount(2), the same for everybody who mounts one */
/* A copy of the template in a new file of that folder, which has no name yet; *out is the caller's to close, also on failure (-1: there is none). */
MUST_CHECK bool scratch_copy(const char *template, const char *folder, int *out, struct err *err);
/* A loop device for that file, which holds the file's own open description: a flock of it lasts as long as anything of it is mounted. */
MUST_CHECK bool scratch_loop(int file, char device[static SCRATCH_DEVICE], int *out, struct err *err);
/* Copies the few blocks of the template into a new file in `folder`. The device lets go of it by itself when `loop` is closed
 * and the last mount of it has gone, also after a crash. */
MUST_CHECK bool scratch_attach(const char *template, const char *folder, char device[static SCRATCH_DEVICE], int *loop, struct err *err);
