/* blob_file.h - inside api/: the disk's side of blobs, on threads of its own.
 *
 * An upload is written beside its place under a name of its own and hashed on the way; it gets its
 * place only when it is synced and its hash is the one promised. So what is found in its place is
 * whole, whatever was killed. */
#pragma once
#include "os/os.h"
#include "wire/digest.h"

enum { BLOB_PATH = 512 };

struct blob_file {                  /* belongs to the thread that runs its steps */
    struct os *os;
    char folder[BLOB_PATH - 128], path[BLOB_PATH], temp[BLOB_PATH];
    char hex[DIGEST_HEX];
    struct disk_file *file;
    struct sha256 *hash;
    int64_t at, size;
    bool failed;
    struct err err;                 /* the first that went wrong; later steps do nothing */
};
/* digest: "sha256:" and 64 letters of hex, checked by its table. unique makes the name of this
 * upload. */
MUST_CHECK bool blob_file_name(struct blob_file *f, struct os *os, const char *folder,
                               int64_t project, const char *digest, uint64_t unique,
                               struct err *err);
void blob_file_create(struct blob_file *f);
void blob_file_add(struct blob_file *f, struct slice bytes);
void blob_file_finish(struct blob_file *f);         /* checks, syncs, renames */
void blob_file_drop(struct blob_file *f);           /* closes; removes what has no place */
bool blob_file_missing(const struct blob_file *f);
void blob_file_remove(struct blob_file *f);         /* from its place; what cannot be removed stays, and is found again by who uploads it */
void blob_file_open(struct blob_file *f);           /* to be read; fills size */
void blob_file_read(struct blob_file *f, struct str *out, size_t most); /* appends what comes next */
/* Removes what broken uploads left. */
MUST_CHECK bool blob_file_sweep(struct os *os, const char *folder, struct err *err);
