/* scratch_file.h - a filesystem of a fixed size in a file without a name, behind a loop device. libc only: the supervisor
 * links it too. */
#pragma once
#include "base/err.h"

enum { SCRATCH_DEVICE = 32 };
extern const char scratch_options[];    /* of mount(2), the same for everybody who mounts one */
/* Copies the few blocks of the template into a new file in `folder`. The device lets go of it by itself when `loop` is closed
 * and the last mount of it has gone, also after a crash. */
MUST_CHECK bool scratch_attach(const char *template, const char *folder, char device[static SCRATCH_DEVICE], int *loop, struct err *err);
