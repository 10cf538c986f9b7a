/* blob.c - uploads by hash: only what is not there, and what it was hashed as. */
#include "cli_test.h"
#include "cli/blob.h"
#include "wire/digest.h"
#include <sys/stat.h>

static const struct answer absent[]
    = { { "HEAD", "/v1/blobs/", 0, 404, "" }, { "PUT", "/v1/blobs/", 0, 201, "{\"id\":\"x\"}" } };

TEST(a_file_is_uploaded_under_its_hash_once)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    const char *digest;
    char hex[DIGEST_HEX];
    static const struct answer present[] = { { "HEAD", "/v1/blobs/", 0, 200, "" } };
    stage_write(&s, "f", "some bytes");
    digest_sha256("some bytes", 10, hex);
    straw_answers(&s, absent, COUNT(absent));
    CHECK(file_upload(s.c, stage_path(&s, "f"), NULL, &digest, &err)
          && text_starts(digest, "sha256:") && text_is(digest + 7, hex));
    CHECK(strstr(straw_seen(&s), "\nsome bytes\n")
          && straw_count(&s, "PUT", "/v1/blobs/sha256:") == 1);
    straw_answers(&s, present, COUNT(present));
    CHECK(file_upload(s.c, stage_path(&s, "f"), NULL, &digest, &err)
          && straw_count(&s, "PUT", "/v1/blobs") == 0);
}

TEST(a_large_file_goes_in_pieces_and_comes_whole)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str big = { 0 };
    struct err err = { 0 };
    const char *digest;
    for (int i = 0; i < 400000; i++)
        str_printf(&big, "%d,", i);
    stage_write(&s, "f", big.at);
    straw_answers(&s, absent, COUNT(absent));
    CHECK(file_upload(s.c, stage_path(&s, "f"), NULL, &digest, &err));
    CHECK(big.len > 2 << 20 && strstr(straw_seen(&s), big.at));
}

TEST(a_refused_upload_says_why)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    const char *digest;
    static const struct answer full[]
        = { { "HEAD", "/v1/blobs/", 0, 404, "" },
            { "PUT", "/v1/blobs/", 0, 403,
              "{\"type\":\"/problems/over_quota\",\"detail\":\"the disk is full\"}" } };
    static const struct answer denied[] = { { "HEAD", "/v1/blobs/", 0, 403, "" } };
    stage_write(&s, "f", "x");
    straw_answers(&s, full, COUNT(full));
    CHECK(!file_upload(s.c, stage_path(&s, "f"), NULL, &digest, &err) && err.rc == RC_OVER_QUOTA
          && text_is(err.text, "the disk is full"));
    straw_answers(&s, denied, COUNT(denied));
    CHECK(!file_upload(s.c, stage_path(&s, "f"), NULL, &digest, &err) && err.rc == RC_DENIED
          && straw_count(&s, "PUT", "/v1") == 0);
    CHECK(!file_upload(s.c, stage_path(&s, "none"), NULL, &digest, &err)
          && strstr(err.text, "none"));
}

/* A source that is another one the second time. */
static bool walk_changing(void *arg, const struct sink *sink, struct err *err)
{
    static const char text[] = "abcdefgh";
    int *times = arg;
    return sink->put(sink->arg, text, ++*times == 1 ? 4 : *times == 2 ? 8 : 2, err);
}

TEST(what_changes_while_it_is_uploaded_is_refused)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct err err = { 0 };
    const char *digest;
    int times = 0;
    straw_answers(&s, absent, COUNT(absent));
    struct blob_source source = { .what = "it", .walk = walk_changing, .arg = &times };
    CHECK(!blob_upload(s.c, &source, &digest, &err)
          && strstr(err.text, "changed while it was uploaded"));
    CHECK(straw_count(&s, "PUT", "/v1") <= 1);
}
