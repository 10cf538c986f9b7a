/* image.c - what is no image is refused before a byte is sent. */
#include "cli_test.h"
#include "wire/tar.h"
#include <sys/stat.h>
#include <unistd.h>

static const struct answer answers[] = {
    { "HEAD", "/v1/blobs/", 0, 404, "" },
    { "PUT", "/v1/blobs/", 0, 201, "{}" },
    { "POST", "/v1/images", 0, 201, "{\"id\":\"img-1\",\"name\":\"bb\",\"state\":\"active\"}" },
};

static void write_tar(struct stage *s, const char *file, const char *entry, bool whole)
{
    AUTO(str_done) struct str tar = { 0 };
    struct err err;
    tar_header(&tar,
               &(struct tar_entry){ .type = TAR_FILE, .name = entry, .mode = 0644, .size = 2 });
    str_text(&tar, "{}");
    tar_pad(&tar, 2);
    if (whole)
        tar_end(&tar);
    CHECK(
        file_replace(s->c->os, stage_path(s, file), (struct slice){ tar.at, tar.len }, 0600, &err));
}

TEST(an_archive_and_a_layout_are_imported)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    write_tar(&s, "a.tar", "./oci-layout", true);
    CHECK(PLAY(&s, "image", "import", stage_path(&s, "a.tar"), "--name", "bb") == 0
          && strstr(s.out.at, "img-1"));
    CHECK(strstr(straw_seen(&s), "{\"name\":\"bb\",\"digest\":\"sha256:"));
    mkdir(stage_path(&s, "layout"), 0755), stage_write(&s, "layout/oci-layout", "{}"),
        stage_write(&s, "layout/.arcusignore", "*\n");
    CHECK(PLAY(&s, "images", "import", stage_path(&s, "layout"), "--name", "bb") == 0
          && straw_count(&s, "POST", "/v1/images") == 2);
}

TEST(what_is_no_image_is_not_uploaded)
{
    AUTO(stage_down) struct stage s = stage_up();
    straw_answers(&s, answers, COUNT(answers));
    write_tar(&s, "other.tar", "hello", true);
    write_tar(&s, "cut.tar", "manifest.json", false);
    stage_write(&s, "text", "this is no archive at all, but it is long enough to be looked at");
    stage_write(&s, "gz", "\x1f\x8b\x08 and so on");
    mkdir(stage_path(&s, "folder"), 0755);
    static const char *const bad[][2] = {
        { "other.tar", "neither oci-layout nor manifest.json" },
        { "cut.tar", "cut short" },
        { "text", "not an image" },
        { "gz", "gunzip" },
        { "folder", "neither oci-layout" },
        { "none", "none" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(PLAY(&s, "image", "import", stage_path(&s, bad[i][0]), "--name", "bb") != 0);
        CHECK(strstr(s.errors.at, bad[i][1]) && strstr(s.errors.at, bad[i][0]));
    }
    CHECK(PLAY(&s, "image", "import", stage_path(&s, "cut.tar")) == 2
          && strstr(s.errors.at, "--name is missing"));
    CHECK(!*straw_seen(&s));
}
