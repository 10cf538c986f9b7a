/* blob.h - folders and files as blobs of the project, by their SHA-256. */
#pragma once
#include "cli/cli.h"
#include "cli/pack.h"

struct blob_check {                 /* sees every byte before one is sent, and may refuse them */
    bool (*put)(void *arg, const char *at, size_t n, struct err *err);
    bool (*end)(void *arg, struct err *err);
    void *arg;
};
struct blob_source {
    const char *what;               /* for the progress bar */
    int64_t size;                   /* about; 0: not known */
    /* all its bytes; is called twice */
    bool (*walk)(void *arg, const struct sink *sink, struct err *err);
    void *arg;
    const struct blob_check *check; /* of the first walk; may be NULL */
};
MUST_CHECK bool blob_upload(struct cli *c, const struct blob_source *s, const char **digest,
                            struct err *err);
MUST_CHECK bool folder_upload(struct cli *c, const char *path, bool ignore, const char **digest,
                              struct err *err);
MUST_CHECK bool file_upload(struct cli *c, const char *path, const struct blob_check *check,
                            const char **digest, struct err *err);
