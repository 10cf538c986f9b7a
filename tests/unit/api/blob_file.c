#include "api/blob_file.h"
#include "base/fault.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char hello_digest[]
    = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
static const char other_digest[]
    = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

struct place { struct os *os; char folder[64]; };

static void place_open(struct place *p)
{
    struct err err = { 0 };
    snprintf(p->folder, sizeof p->folder, "/tmp/arcus-blob-XXXXXX");
    CHECK(digest_start() && mkdtemp(p->folder));
    p->os = os_real_new(&err);
}

static void place_close(struct place *p)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    CHECK(system(command) == 0);
    os_free(p->os);
}

static size_t file_count(struct place *p, const char *folder)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    struct err err;
    return disk_exists(p->os, folder) && dir_list(p->os, folder, mem, &names, &err) ? names.count
                                                                                    : 0;
}

static void upload(struct blob_file *f, struct place *p, const char *digest, const char *bytes)
{
    struct err err = { 0 };
    CHECK(blob_file_name(f, p->os, p->folder, 500, digest, 7, &err));
    blob_file_create(f);
    for (const char *at = bytes; *at; at++)
        blob_file_add(f, (struct slice){ at, 1 });
    blob_file_finish(f);
}

TEST(a_blob_gets_its_place_only_when_its_digest_fits)
{
    struct place p;
    struct blob_file f;
    AUTO(str_done) struct str back = { 0 };
    place_open(&p);
    upload(&f, &p, other_digest, "hello");
    CHECK(f.failed && f.err.rc == RC_BAD_INPUT && strstr(f.err.text, "2cf24dba")
          && file_count(&p, f.folder) == 0);
    upload(&f, &p, hello_digest, "hello");
    CHECK(!f.failed && f.size == 5 && file_count(&p, f.folder) == 1 && disk_exists(p.os, f.path));
    blob_file_open(&f);
    f.at = 0;
    blob_file_read(&f, &back, 3);
    blob_file_read(&f, &back, 3);
    CHECK(!f.failed && text_is(back.at, "hello"));
    blob_file_drop(&f);
    CHECK(disk_exists(p.os, f.path));
    place_close(&p);
}

TEST(a_broken_upload_leaves_nothing_and_what_a_crash_leaves_is_swept)
{
    struct place p;
    struct blob_file f;
    struct err err = { 0 };
    place_open(&p);
    CHECK(blob_file_name(&f, p.os, p.folder, 500, hello_digest, 7, &err));
    blob_file_create(&f);
    blob_file_add(&f, SLICE("hel"));
    CHECK(file_count(&p, f.folder) == 1 && !disk_exists(p.os, f.path));
    struct blob_file left = f;
    left.hash = NULL; /* as if the process were killed here, its file stays */
    left.file = NULL;
    f.temp[0] = 0;
    blob_file_drop(&f);
    CHECK(file_count(&p, f.folder) == 1);
    upload(&f, &p, hello_digest, "hello");
    f = left;
    CHECK(blob_file_sweep(p.os, p.folder, &err) && file_count(&p, f.folder) == 1
          && disk_exists(p.os, f.path));
    upload(&f, &p, other_digest, "hel");
    CHECK(file_count(&p, f.folder) == 1);
    place_close(&p);
}

TEST(whatever_fails_a_blob_is_whole_or_not_there)
{
    struct place p;
    bool full = false;
    place_open(&p);
    for (int nth = 1, done = 0; !done; nth++) {
        struct blob_file f;
        struct err err = { 0 };
        fault_arm(nth);
        upload(&f, &p, hello_digest, "hello");
        bool fired = fault_fired();
        fault_arm(0);
        CHECK(!f.failed == !fired || disk_exists(p.os, f.path));
        full |= f.failed && f.err.rc == RC_OVER_QUOTA;
        bool there = disk_exists(p.os, f.path);
        CHECK(f.failed ? f.err.rc != RC_OK && f.err.text[0] : there);
        CHECK(blob_file_sweep(p.os, p.folder, &err));
        CHECK(file_count(&p, f.folder) == (size_t)there);
        if (there) {
            AUTO(str_done) struct str back = { 0 };
            blob_file_open(&f);
            f.failed = false;
            f.at = 0;
            blob_file_read(&f, &back, 100);
            CHECK(text_is(back.at, "hello"));
            blob_file_drop(&f);
            CHECK(file_remove(p.os, f.path, &err));
        }
        done = !fired;
        CHECK(nth < 100);
    }
    CHECK(full);        /* a disk with too little left: the rest of it is the store's */
    place_close(&p);
}

TEST(a_blob_that_cannot_be_read_says_so)
{
    struct place p;
    struct blob_file f;
    struct err err;
    AUTO(str_done) struct str back = { 0 };
    place_open(&p);
    CHECK(blob_file_name(&f, p.os, p.folder, 500, hello_digest, 7, &err));
    blob_file_open(&f);
    CHECK(f.failed && f.err.rc == RC_INTERNAL);
    blob_file_drop(&f);
    upload(&f, &p, hello_digest, "hello");
    blob_file_open(&f);
    f.at = 0;
    fault_arm(1);
    blob_file_read(&f, &back, 100);
    fault_arm(0);
    CHECK(f.failed && back.len == 0);
    blob_file_drop(&f);
    CHECK(!blob_file_name(&f, p.os, p.folder, 500, "md5:12", 7, &err)
          && text_is(err.field, "digest"));
    CHECK(!blob_file_name(
        &f, p.os, p.folder, 500,
        "sha256:../../../../../../../../../../../../../../../../../../../etc/passwd00", 7, &err));
    place_close(&p);
}
