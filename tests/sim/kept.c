/* kept.c - the runs in which the simulation found something, as lines of what was done (acts.c), shortened as far as they still showed it.
 * Each is played in several worlds, since what follows from the same acts is chance as well.
 *
 *   ARCUS_SIM_SEED=N ARCUS_SIM_KEEP=FILE   writes down what is done in a seed
 *   ARCUS_SIM_ACTS=FILE                    does it again, in this process, and tells what happens
 *   ARCUS_SIM_ACTS=FILE ARCUS_SIM_WORLDS=N the same quietly, in N worlds
 *   ARCUS_SIM_ACTS=FILE ARCUS_SIM_SHRINK=1 leaves out of the file whatever it fails without, too */
#include "cloud.h"
#include "kept.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

enum { WORLDS = 12, LINES_MOST = 1024 };

static bool take_file(const char *path, struct str *out)
{
    char part[4096];
    FILE *f = fopen(path, "r");
    for (size_t n; f && (n = fread(part, 1, sizeof part, f));)
        str_put(out, part, n);
    if (f)
        fclose(f);
    return f && out->len;
}

struct script { const char *lines[LINES_MOST]; size_t count; };

static void script_print(const struct script *s, size_t from, size_t to, struct str *out) /* without those */
{
    str_clear(out);
    for (size_t i = 0; i < s->count; i++)
        if (i < from || i >= to)
            str_printf(out, "%s\n", s->lines[i]);
}

static size_t failures(const struct script *s, size_t from, size_t to)
{
    AUTO(str_done) struct str text = { 0 };
    script_print(s, from, to, &text);
    return run_acts(text.at, 0, WORLDS).failed;
}

/* Halves, quarters and so on down to single lines, until none can go. */
static void shrink(struct script *s, size_t enough)
{
    for (size_t part = s->count / 2; part; part = part > 1 ? part / 2 : 0)
        for (size_t at = 1; at < s->count;) {
            size_t end = MIN(at + part, s->count);
            if (failures(s, at, end) < enough) {
                at = end;
                continue;
            }
            memmove(&s->lines[at], &s->lines[end], (s->count - end) * sizeof *s->lines);
            s->count -= end - at;
        }
}

static void shrink_file(const char *path, char *text)
{
    enum { ROUNDS = 3, ENOUGH = 3 };
    AUTO(str_done) struct str out = { 0 };
    struct script s = { 0 };
    for (char *line = strtok(text, "\n"); line && s.count < LINES_MOST; line = strtok(NULL, "\n"))
        s.lines[s.count++] = line;
    size_t first = failures(&s, 0, 0);
    printf("# %zu of %d worlds fail\n", first, WORLDS);
    CHECK(first > 0);
    for (int i = 0; first && i < ROUNDS; i++)
        shrink(&s, MIN(first, (size_t)ENOUGH));
    printf("# %zu lines, which fail in %zu of %d worlds\n", s.count, failures(&s, 0, 0), WORLDS);
    script_print(&s, 0, 0, &out);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(out.at, 1, out.len, f) == out.len && fclose(f) == 0);
}

TEST(what_was_kept_in_a_file_holds)
{
    const char *path = getenv("ARCUS_SIM_ACTS");
    AUTO(str_done) struct str text = { 0 };
    if (!path)
        test_skip("ARCUS_SIM_ACTS names no file");
    else if (!take_file(path, &text))
        CHECK(!"the file can be read");
    else if (asked_for("ARCUS_SIM_SHRINK", 0))
        shrink_file(path, text.at);
    else if (asked_for("ARCUS_SIM_WORLDS", 0))
        CHECK(run_acts(text.at, 0, asked_for("ARCUS_SIM_WORLDS", 1)).ok);
    else
        CHECK(run_acts_loud(text.at).ok);
}

TEST(what_the_simulation_found_stays_mended)
{
    uint64_t worlds = asked_for("ARCUS_SOAK", 0) ? WORLDS * 20 : WORLDS;
    if (one_seed_only()) {
        test_skip("one seed was asked for");
        return;
    }
    for (size_t i = 0; i < kept_count; i++) {
        struct start s;
        CHECK(start_read(kept[i].acts, &s));
        bool ok = run_acts(kept[i].acts, 0, worlds).ok;
        CHECK(ok);
        if (!ok)
            printf("# kept run %zu: %s\n", i, kept[i].what);
    }
}
