#include "agent/suspend.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(a_note_is_there_as_it_was_written_or_as_it_was_before)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char folder[] = "/tmp/suspend-note.XXXXXX", path[64];
    struct suspend_note note = { .attempt = 7, .n = 1, .want = SUSPEND_SUSPENDED, .state = SUSPEND_MOVING, .limit_bytes = 1 << 20, .gpu_mib = 9, .at_ms = 5 }, read = { 0 };
    struct err err = { 0 };
    CHECK(mkdtemp(folder) && !suspend_note_read(folder, 7, mem, &read));
    CHECK(suspend_note_write(folder, &note, &err) && suspend_note_read(folder, 7, mem, &read));
    CHECK(read.n == 1 && read.want == SUSPEND_SUSPENDED && read.state == SUSPEND_MOVING && read.limit_bytes == 1 << 20 && read.gpu_mib == 9 && read.at_ms == 5 && !read.why);
    CHECK(!suspend_note_read(folder, 8, mem, &read) && suspend_note_read(folder, 0, mem, &read));
    note.state = SUSPEND_RUNNING, note.why = "a \"reason\"";
    CHECK(suspend_note_write(folder, &note, &err) && suspend_note_read(folder, 7, mem, &read) && read.state == SUSPEND_RUNNING && text_is(read.why, "a \"reason\""));
    snprintf(path, sizeof path, "%s/suspend.json", folder);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs("{\"attempt\":7,\"state\":\"mov", f) >= 0 && fclose(f) == 0);
    CHECK(!suspend_note_read(folder, 7, mem, &read));
    unlink(path);
    CHECK(rmdir(folder) == 0 && !suspend_note_write(folder, &note, &err));
}
