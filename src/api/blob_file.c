#include "api/blob_file.h"
#include "base/fault.h"
#include "base/id.h"
#include "model/prefix.h"
#include <stdio.h>

static const char part[] = ".part-";
/* What is left of the disk belongs to the store: an upload must not be what stops the cloud. */
static const int64_t reserve = INT64_C(1) << 30, look_every = INT64_C(64) << 20;

bool blob_file_name(struct blob_file *f, struct os *os, const char *folder, int64_t project,
                    const char *digest, uint64_t unique, struct err *err)
{
    char id[ID_TEXT];
    unsigned char raw[DIGEST_BYTES];
    *f = (struct blob_file){ .os = os };
    const char *hex = text_starts(digest, "sha256:") ? digest + 7 : "";
    if (strlen(hex) != DIGEST_HEX - 1 || !hex_parse(hex, raw, sizeof raw))
        return err_field(err, "digest", "must be sha256: and 64 letters of hex");
    hex_text(raw, sizeof raw, f->hex); /* one spelling */
    int n = snprintf(f->folder, sizeof f->folder, "%s/%s", folder,
                     id_text(id, PREFIX_PROJECT, project));
    if (n < 0 || (size_t)n >= sizeof f->folder)
        return err_set(err, RC_INTERNAL, "the path of the data folder is too long");
    snprintf(f->path, sizeof f->path, "%s/%s", f->folder, f->hex);
    snprintf(f->temp, sizeof f->temp, "%s%s%016llx", f->path, part, (unsigned long long)unique);
    return true;
}

static void fail(struct blob_file *f, enum rc rc, const char *what)
{
    f->failed = true;
    err_set(&f->err, rc, "%s", what);
}

static bool has_room(struct blob_file *f)
{
    if (disk_free(f->os, f->folder) > reserve)
        return true;
    fail(f, RC_OVER_QUOTA, "the server's disk is nearly full; its operator can make room");
    return false;
}

void blob_file_create(struct blob_file *f)
{
    if (f->failed)
        return;
    f->failed = !dir_make(f->os, f->folder, 0700, &f->err);
    if (!f->failed && !has_room(f))
        return;
    f->failed = f->failed || !(f->file = disk_open(f->os, f->temp, true, &f->err));
    if (f->failed)
        f->err.rc = RC_INTERNAL;
    else
        f->hash = sha256_new();
}

void blob_file_add(struct blob_file *f, struct slice bytes)
{
    if (f->failed)
        return;
    if (f->at / look_every != (f->at + (int64_t)bytes.len) / look_every && !has_room(f)) {
        blob_file_drop(f);
        return;
    }
    if (!disk_write(f->file, f->at, bytes.at, bytes.len)) {
        fail(f, RC_UNAVAILABLE, "the blob could not be written; the disk may be full");
        blob_file_drop(f);
        return;
    }
    sha256_add(f->hash, bytes.at, bytes.len);
    f->at += (int64_t)bytes.len;
}

void blob_file_finish(struct blob_file *f)
{
    char hex[DIGEST_HEX];
    if (f->failed)
        return;
    sha256_end(TAKE(f->hash), hex);
    f->size = f->at;
    if (strcmp(hex, f->hex) != 0) {
        f->failed
            = !err_field(&f->err, "digest", "the bytes that came have the digest sha256:%s", hex);
    } else if (fault("blob.finish") || !disk_sync(f->file)) {
        fail(f, RC_UNAVAILABLE, "the blob could not be synced to the disk");
    } else {
        disk_close(TAKE(f->file));
        if (!disk_rename(f->os, f->temp, f->path))
            fail(f, RC_UNAVAILABLE, "the blob could not be put in its place");
    }
    blob_file_drop(f);
}

void blob_file_drop(struct blob_file *f)
{
    char hex[DIGEST_HEX];
    struct err err;
    if (f->hash)
        sha256_end(TAKE(f->hash), hex);
    if (f->file)
        disk_close(TAKE(f->file));
    if (f->temp[0] && disk_exists(f->os, f->temp) && !file_remove(f->os, f->temp, &err))
        return; /* the next start sweeps it */
    f->temp[0] = 0;
}

void blob_file_remove(struct blob_file *f)
{
    if (disk_exists(f->os, f->path) && !disk_remove(f->os, f->path))
        fail(f, RC_UNAVAILABLE, "the blob's file could not be removed");
}

bool blob_file_missing(const struct blob_file *f) { return !disk_exists(f->os, f->path); }

void blob_file_open(struct blob_file *f)
{
    f->temp[0] = 0;
    f->at = 0;
    f->file = disk_open(f->os, f->path, false, &f->err);
    f->failed = !f->file;
    if (f->failed)
        f->err.rc = RC_INTERNAL;
    else
        f->size = disk_size(f->file);
}

void blob_file_read(struct blob_file *f, struct str *out, size_t most)
{
    size_t got = 0, want = (size_t)MIN((int64_t)most, f->size - f->at);
    if (f->failed)
        return;
    if (!disk_read(f->file, f->at, str_grow(out, want), want, &got) || got != want) {
        fail(f, RC_INTERNAL, "the blob could not be read");
        return;
    }
    out->len += got;
    out->at[out->len] = 0;
    f->at += (int64_t)got;
}

static bool sweep_folder(struct os *os, const char *folder, struct arena *mem, struct err *err)
{
    struct texts names;
    if (!dir_list(os, folder, mem, &names, err))
        return false;
    for (size_t i = 0; i < names.count; i++)
        if (strstr(names.at[i], part)
            && !file_remove(os, arena_printf(mem, "%s/%s", folder, names.at[i]), err))
            return false;
    return true;
}

bool blob_file_sweep(struct os *os, const char *folder, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts projects;
    if (!dir_make(os, folder, 0700, err) || !dir_list(os, folder, mem, &projects, err))
        return false;
    for (size_t i = 0; i < projects.count; i++)
        if (text_starts(projects.at[i], PREFIX_PROJECT "-")
            && !sweep_folder(os, arena_printf(mem, "%s/%s", folder, projects.at[i]), mem, err))
            return false;
    return true;
}
