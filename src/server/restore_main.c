/* restore_main.c - `arcus restore`, and `arcus backup` on a data folder whose server need not run: flags, the lock, and
 * what to do next. */
#include "api/backup_make.h"
#include "base/when.h"
#include "server/restore.h"
#include "server/server.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct words { const char *file, *data, *store, *store_tls; bool help; };
static const struct { const char *flag; size_t offset; } flags[] = {
    { "--data", offsetof(struct words, data) },
    { "--store", offsetof(struct words, store) },
    { "--store-tls", offsetof(struct words, store_tls) },
};
static const char backup_help[] =
    "usage: arcus backup FILE --data DIR [--store PLACE]\n\n"
    "Writes a consistent copy of the cloud in that data folder to FILE, whether its server runs or not. (Without --data the server is\n"
    "asked for one; see `arcus help backup`.)\n\n";
static const char restore_help[] =
    "usage: arcus restore FILE --data DIR [--store PLACE]\n\n"
    "Makes a cloud from a backup: FILE is checked to its end first, then all of it goes into an empty store or nothing does.\n\n"
    "  --data DIR      the data folder of the server that will use it\n"
    "  --store PLACE   a file for SQLite (DIR/arcus.db), or postgres://USER@HOST/NAME: not necessarily the kind that it came from\n\n"
    "The keys are in no backup. They are in DIR/keys (and DIR/tls) of the cloud that was backed up: keep a copy of both elsewhere,\n"
    "and put it back before the server starts. Without them no API key works and no secret can be opened.\n\n"
    "After its start the server places nothing for as long as a task may run unseen (--lease, 300 s), so that what was started after\n"
    "the backup was made has ended before anything takes its place. Nodes come back by themselves, and tell how tasks ended.\n\n"
    "examples:\n  arcus restore cloud.backup --data /var/lib/arcus\n"
    "  arcus restore cloud.backup --data /var/lib/arcus --store 'postgres://arcus@db/arcus?sslmode=require'\n";

static const char *absolute(struct arena *mem, const char *path)
{
    char here[4096];
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return path;
    return arena_printf(mem, "%s/%s", here, path);
}

static bool words_read(int argc, char **argv, struct arena *mem, struct words *w, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "="), k = 0;
        if (text_is(argv[i], "--help") || text_is(argv[i], "-h"))
            return w->help = true;
        if (argv[i][0] != '-') {
            if (w->file)
                return err_set(err, RC_BAD_INPUT, "one file is enough, '%s' is a second", argv[i]);
            w->file = absolute(mem, argv[i]);
            continue;
        }
        while (k < COUNT(flags) && (strlen(flags[k].flag) != n || strncmp(flags[k].flag, argv[i], n) != 0))
            k++;
        if (k == COUNT(flags))
            return err_set(err, RC_BAD_INPUT, "unknown flag '%s' (--help shows all)", argv[i]);
        const char *value = argv[i][n] ? argv[i] + n + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!text_given(value))
            return err_set(err, RC_BAD_INPUT, "%s needs a value", flags[k].flag);
        *(const char **)((char *)w + flags[k].offset) = value;
    }
    if (!w->file || !w->data)
        return err_set(err, RC_BAD_INPUT, "%s (--help shows all)",
                       w->file ? "name the data folder: --data DIR" : "name the file of the backup");
    if (w->store && !store_place_check(w->store, text_is(w->store_tls, "off"), err))
        return false;
    w->data = absolute(mem, w->data);
    if (w->store && !strstr(w->store, ":"))
        w->store = absolute(mem, w->store);
    return true;
}

/* --- restore */

static bool keys_there(struct os *os, const char *data, struct arena *mem)
{
    return disk_exists(os, arena_printf(mem, "%s/keys", data));
}

static bool restore_words(struct os *os, const struct words *w, struct arena *mem, struct err *err)
{
    int lock = -1;
    struct restore_told told;
    char made[WHEN_TEXT];
    struct restore how = { .file = w->file, .data = w->data, .store = w->store };
    if (!server_lock(os, w->data, &lock, err) || !restore_run(os, &how, &told, err))
        return false;
    printf("restored: %lld rows and %lld uploads, as of %s (arcus %s)\n", (long long)told.rows,
           (long long)told.uploads, when_text(made, told.made_ms), told.arcus);
    if (told.missing)
        printf("%lld uploads were gone already when the backup was made; jobs that need them fail until they are uploaded again\n",
               (long long)told.missing);
    printf("next: %sarcus server --data %s%s%s\n",
           keys_there(os, w->data, mem) ? "" : arena_printf(mem, "put the keys of that cloud into %s/keys, then ", w->data),
           w->data, w->store ? " --store " : "", w->store ? "..." : "");
    return true;
}

/* --- backup */

static bool write_all(int fd, struct backup *b, struct err *err)
{
    AUTO(str_done) struct str bytes = { 0 };
    do {
        str_clear(&bytes);
        if (!backup_piece(b, 1 << 20, &bytes, err))
            return false;
        for (size_t at = 0; at < bytes.len;) {
            ssize_t n = write(fd, bytes.at + at, bytes.len - at);
            if (n == -1 && errno != EINTR)
                return err_errno(err, "write the backup");
            at += n > 0 ? (size_t)n : 0;
        }
    } while (bytes.len);
    return fsync(fd) == 0 || err_errno(err, "write the backup");
}

static bool backup_words(struct os *os, const struct words *w, struct arena *mem, struct err *err)
{
    AUTO(store_close) struct store *store = NULL;
    const char *where = w->store ? w->store : arena_printf(mem, "%s/arcus.db", w->data),
               *part = arena_printf(mem, "%s.part", w->file);
    if (!strstr(where, ":") && !disk_exists(os, where))
        return err_set(err, RC_NOT_FOUND, "there is no store %s", where);
    if (disk_exists(os, w->file))
        return err_set(err, RC_CONFLICT, "%s is there already; choose another name", w->file);
    if (!store_open_as_is(os, where, &store, err))
        return false;
    AUTO(backup_free) struct backup *b
        = backup_new(os, store, w->data, arena_printf(mem, "%s.rows.part", w->file), ARCUS_VERSION);
    if (!backup_rows(b, err))
        return false;
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd == -1)
        return err_errno(err, "%s", part);
    bool ok = write_all(fd, b, err);
    close(fd);
    if (ok && !disk_rename(os, part, w->file))
        ok = err_set(err, RC_UNAVAILABLE, "%s cannot be put in its place", w->file);
    if (!ok)
        unlink(part);
    if (ok && backup_missing(b))
        fprintf(stderr, "arcus backup: the files of %zu uploads are gone from %s and so not in it\n", backup_missing(b), w->data);
    return ok;
}

/* --- both */

static int run(int argc, char **argv, const char *help,
               bool (*work)(struct os *os, const struct words *w, struct arena *mem, struct err *err))
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct words w = { 0 };
    struct err err = { 0 };
    struct os *os = NULL;
    bool ok = words_read(argc, argv, mem, &w, &err);
    if (w.help)
        return fputs(help, stdout), 0;
    ok = ok && (os = os_real_new(&err)) && work(os, &w, mem, &err);
    if (os)
        os_free(os);
    if (!ok)
        fprintf(stderr, "arcus %s: %s\n", argv[0], err.text);
    return ok ? 0 : rc_exit(err.rc);
}

int restore_main(int argc, char **argv) { return run(argc, argv, restore_help, restore_words); }
int backup_main(int argc, char **argv) { return run(argc, argv, backup_help, backup_words); }
