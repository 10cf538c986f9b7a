/* image.c - `arcus images import`: an OCI layout (a folder, or a tar of one) or a docker archive,
 * looked at before it is uploaded. */
#include "cli/blob.h"
#include "wire/tar.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct import_own { const char *file; };
static const struct field import_rows[] = {
    FIELD(struct import_own, file, TEXT, .required = true, .in_path = true, .max = 4096,
          .help = "a tar of an OCI layout or of docker save, or a folder with an OCI layout"),
};
const struct fields import_fields = FIELDS(import_own, import_rows);

/* --- is it one? */

struct check { struct tar_reader *tar; bool begun, found; };

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct check *k = arg;
    const char *name = text_starts(e->name, "./") ? e->name + 2 : e->name;
    (void)err;
    k->found |= text_is(name, "oci-layout") || text_is(name, "manifest.json");
    return true;
}
static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    return (void)arg, (void)at, (void)n, (void)err, true;
}
static bool on_entry_end(void *arg, struct err *err) { return (void)arg, (void)err, true; }

static bool check_put(void *arg, const char *at, size_t n, struct err *err)
{
    static const struct { const char *magic; size_t len; const char *how;
    } packed[] = {
        { "\x1f\x8b", 2, "gunzip" },
        { "\x28\xb5\x2f\xfd", 4, "unzstd" },
        { "\xfd"
          "7zXZ",
          5, "unxz" },
    };
    struct check *k = arg;
    for (size_t i = 0; !k->begun && i < COUNT(packed); i++)
        if (n > packed[i].len && memcmp(at, packed[i].magic, packed[i].len) == 0)
            return err_set(err, RC_BAD_INPUT, "it is compressed; unpack it first with %s",
                           packed[i].how);
    k->begun = true;
    return tar_feed(k->tar, at, n, err)
           || err_set(err, RC_BAD_INPUT, "it is not an image: it is not a tar archive (%.120s)",
                      err->text);
}

static bool check_end(void *arg, struct err *err)
{
    const struct check *k = arg;
    if (!tar_complete(k->tar))
        return err_set(err, RC_BAD_INPUT, "it is not an image: the tar archive is cut short");
    return k->found
           || err_set(err, RC_BAD_INPUT,
                      "it is not an image: it has neither oci-layout nor manifest.json in it");
}

static bool import_file(struct cli *c, const char *path, const char **digest, struct err *err)
{
    static const struct tar_events events = { on_entry, on_data, on_entry_end };
    struct check k = { 0 };
    AUTO(tar_reader_free) struct tar_reader *tar = k.tar = tar_reader_new(&events, &k);
    return file_upload(c, path, &(struct blob_check){ check_put, check_end, &k }, digest, err);
}

static bool import_folder(struct cli *c, const char *path, const char **digest, struct err *err)
{
    struct stat st;
    const char *oci = arena_printf(c->mem, "%s/oci-layout", path),
               *docker = arena_printf(c->mem, "%s/manifest.json", path);
    if (stat(oci, &st) == -1 && stat(docker, &st) == -1)
        return err_set(
            err, RC_BAD_INPUT,
            "it is not an image: the folder has neither oci-layout nor manifest.json in it");
    return folder_upload(c, path, false, digest, err);
}

int word_image_import(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct stat st;
    struct json *reply;
    const char *digest;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct import_own *own = f.own;
    bool ok = json_text(f.doc, "name")
              || err_set(&c->err, RC_BAD_INPUT,
                         "--name is missing: what jobs are to call it, such as busybox:1.36");
    ok = ok && (stat(own->file, &st) == 0 || err_errno(&c->err, "%s", own->file));
    if (ok && !(S_ISDIR(st.st_mode) ? import_folder : import_file)(c, own->file, &digest, &c->err))
        ok = strstr(c->err.text, "it is not an image") || strstr(c->err.text, "it is compressed")
                 ? err_wrap(&c->err, "%s", own->file)
                 : false;
    if (ok)
        doc_set(c, f.doc, "digest", digest);
    if (!ok || !cli_call(c, VERB_IMAGE_ADD, f.doc, &reply, &c->err))
        return print_error(c, &c->err);
    print_reply(c, w, reply);
    return 0;
}
