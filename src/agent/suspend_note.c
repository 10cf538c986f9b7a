/* suspend_note.c - what is known of a suspended task, in a file of its folder. Written by the helper alone, under its lock; read by the agent
 * when a helper has ended, and when it starts. Nothing here uses os/: the helper blocks. */
#include "agent/suspend.h"
#include "base/fault.h"
#include "base/str.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { NOTE_BYTES = 4096, NOTE_PATH = 1024 };

/* clang-format off */
static const char *const state_list[] = {
    [SUSPEND_RUNNING] = "running", [SUSPEND_SUSPENDED] = "suspended", [SUSPEND_BROKEN] = "broken", [SUSPEND_MOVING] = "moving",
};
static const struct names states = NAMES(state_list);
static const struct field note_rows[] = {
    FIELD(struct suspend_note, attempt, INT, .required = true, .min = 1, .max = INT64_MAX),
    FIELD(struct suspend_note, n, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct suspend_note, want, ENUM, .names = &states),
    FIELD(struct suspend_note, state, ENUM, .names = &states),
    FIELD(struct suspend_note, limit_bytes, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct suspend_note, gpu_mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct suspend_note, mem_mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct suspend_note, room_mib, INT, .min = 0, .max = INT64_C(1) << 40),
    FIELD(struct suspend_note, at_ms, INT, .min = 0, .max = INT64_MAX),
    FIELD(struct suspend_note, why, TEXT, .max = 512, .when_set = true),
};
const struct fields suspend_note_fields = FIELDS(suspend_note, note_rows);
/* clang-format on */

static const char *path_of(const char *folder, const char *name, char out[static NOTE_PATH])
{
    snprintf(out, NOTE_PATH, "%s/%s", folder, name);
    return out;
}

bool suspend_note_read(const char *folder, int64_t attempt, struct arena *mem, struct suspend_note *out)
{
    char path[NOTE_PATH], text[NOTE_BYTES];
    struct suspend_note note = { 0 };
    struct json *doc;
    struct err ignored;
    int fd = open(path_of(folder, "suspend.json", path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text);
    if (fd != -1)
        close(fd);
    if (n <= 0 || n == sizeof text || !json_parse((struct slice){ text, (size_t)n }, mem, &doc, &ignored)
        || !bind_read_ours(doc, &suspend_note_fields, mem, &note, NULL, &ignored) || (attempt && note.attempt != attempt))
        return false;
    note.why = note.why ? arena_text(mem, note.why) : NULL; /* what was read lies on the stack */
    return *out = note, true;
}

bool suspend_note_write(const char *folder, const struct suspend_note *note, struct err *err)
{
    char path[NOTE_PATH], temp[NOTE_PATH];
    AUTO(str_done) struct str text = { 0 };
    bind_write(&(struct json_out){ .to = &text }, &suspend_note_fields, note);
    path_of(folder, "suspend.json", path);
    int fd = broken("suspend.note") ? -1
                                    : open(path_of(folder, "suspend.new", temp), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd != -1 && write(fd, text.at, text.len) == (ssize_t)text.len && fsync(fd) == 0 && rename(temp, path) == 0;
    if (!ok)
        err_errno(err, "cannot write %s", path);
    if (fd != -1)
        close(fd);
    int dir = ok ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir != -1) {
        ok = fsync(dir) == 0 || err_errno(err, "cannot sync %s", folder);
        close(dir);
    }
    return ok;
}
