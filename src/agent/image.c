/* image.c - who wants which image, and who is building it. The loop's side; image_build.c does
 * the work.
 *
 * A tag is asked about again after a while; a registry that is away then does not matter as long
 * as the image is here. */
#include "agent/image.h"
#include "agent/tree.h"
#include "agent/workshop.h"
#include "base/log.h"
#include "base/map.h"
#include "os/os.h"
#include "wire/digest.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAG_FRESH_MS = 5 * 60 * 1000, REF_BYTES = 128 };

struct waiter {
    struct waiter *next;
    image_fn *fn;
    void *arg;
};
struct entry { /* one image that somebody asked for, by reference or by blob */
    char *key;
    bool ready, tag;
    int64_t checked_ms; /* boot clock; of a tag */
    struct image image;
    struct arena *mem;   /* of `image` */
    struct entry *older; /* the one a tag stood for before: tasks may still be starting from it */
};
struct build {
    struct work work;
    struct images *im;
    struct waiter *waiters;
    char *key, *reference, *blob, *archive;
    /* the workshop's */
    char *data;
    struct os *os;
    struct arena *mem;
    struct image image;
    struct err err;
};
struct images {
    struct os *os;
    struct blobs *blobs;
    struct workshop *shop;
    char *data;
    struct map *entries, *builds; /* by key */
};

bool images_open(struct os *os, const char *data, struct blobs *blobs, struct images **out,
                 struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts names = { 0 };
    const char *folder = arena_printf(mem, "%s/images", data);
    if (!dir_make(os, arena_printf(mem, "%s/refs", folder), 0700, err)
        || !dir_list(os, folder, mem, &names, err))
        return false;
    struct err left
        = { 0 }; /* builds that a crash cut short; one that stays must not stop the node */
    for (size_t i = 0; i < names.count; i++)
        if (strstr(names.at[i], ".part")
            && !tree_remove(arena_printf(mem, "%s/%s", folder, names.at[i]), &left))
            log_line(LOG_WARN, "agent", "%s", left.text);
    struct images *im = calloc(1, sizeof *im);
    if (!im)
        abort();
    *im = (struct images){ .os = os,
                           .blobs = blobs,
                           .shop = workshop_new(os, "images"),
                           .data = strdup(data),
                           .entries = map_new(),
                           .builds = map_new() };
    *out = im;
    return true;
}

static void build_free(struct build *b)
{
    for (struct waiter *w = b->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    arena_free(b->mem);
    free(b->key);
    free(b->reference);
    free(b->blob);
    free(b->archive);
    free(b->data);
    free(b);
}

static void entry_free(struct entry *e)
{
    for (struct entry *older; e; e = older) {
        older = e->older;
        arena_free(e->mem);
        free(e->key);
        free(e);
    }
}

void images_close(struct images *im)
{
    if (!im)
        return;
    struct build *b;
    struct entry *e;
    workshop_close(im->shop);
    for (size_t at = 0; (b = map_next(im->builds, &at));)
        if (!b->work.shop) /* one at the workshop is dropped when it comes home */
            build_free(b);
    for (size_t at = 0; (e = map_next(im->entries, &at));)
        entry_free(e);
    map_free(im->builds);
    map_free(im->entries);
    free(im->data);
    free(im);
}

/* A project's own: apart from what registries have, so that naming its digest there does not
 * lead to it. */
static const char *archive_folder(const char *data, const char *blob, struct arena *mem)
{
    return arena_printf(mem, "%s/images/archive-%s", data, blob + 7);
}

/* --- on the workshop's thread */

static const char *ref_path(struct build *b)
{
    char hex[DIGEST_HEX];
    digest_sha256(b->reference, strlen(b->reference), hex);
    return arena_printf(b->mem, "%s/images/refs/%s", b->data, hex);
}

/* The digest that a tag stands for: the registry's word, else what it stood for when it was last
 * asked. */
static bool digest_of(struct build *b, const char **digest)
{
    struct slice before = { 0 };
    struct err err = { 0 }, ignored = { 0 };
    const char *path = ref_path(b);
    if (image_resolve(b->os, b->reference, b->mem, digest, &err))
        return file_replace(b->os, path, SLICE(*digest), 0600, &b->err);
    b->err = err;
    if (err.rc == RC_NOT_FOUND || err.rc == RC_BAD_INPUT
        || !file_read(b->os, path, REF_BYTES, b->mem, &before, &ignored))
        return false;
    *digest = arena_bytes(b->mem, before.at, before.len);
    if (!image_digest_ok(*digest))
        return false;
    b->err = (struct err){ 0 };
    return true;
}

static void build_run(struct work *w)
{
    struct build *b = CONTAINER(w, struct build, work);
    const char *digest = b->blob;
    struct stat st;
    if (!digest && !digest_of(b, &digest))
        return;
    const char *folder = b->blob ? archive_folder(b->data, digest, b->mem)
                                 : arena_printf(b->mem, "%s/images/%s", b->data, digest + 7);
    if (stat(folder, &st) == -1
        && !image_build(b->os, b->archive,
                        b->blob ? NULL : image_exact(b->reference, digest, b->mem), folder,
                        IMAGE_MOST, &b->err))
        return;
    if (!image_load(folder, b->mem, &b->image, &b->err))
        return;
}

/* --- on the loop */

static void keep(struct images *im, struct build *b)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        abort();
    *e = (struct entry){ .key = strdup(b->key),
                         .ready = true,
                         .tag = !b->blob && !strchr(b->key, '@'),
                         .checked_ms = os_boot_ms(im->os),
                         .image = b->image,
                         .mem = TAKE(b->mem),
                         .older = map_take_text(im->entries, b->key) };
    map_put_text(im->entries, e->key, e);
}

static void tell(struct images *im, struct build *b)
{
    map_take_text(im->builds, b->key);
    struct err err = b->err;
    if (!err.rc)
        keep(im, b);
    struct entry *e = err.rc ? NULL : map_get_text(im->entries, b->key);
    for (struct waiter *w = b->waiters; w; w = w->next)
        w->fn(w->arg, e ? &e->image : NULL, &err);
    build_free(b);
}

static void build_done(struct work *w)
{
    struct build *b = CONTAINER(w, struct build, work);
    if (b->blob && !b->err.rc)
        blobs_drop(b->im->blobs, b->blob); /* unpacked: the archive would only take space */
    tell(b->im, b);
}

static void build_drop(struct work *w)
{
    build_free(CONTAINER(w, struct build, work));
}

static void on_archive(void *arg, const char *path, const struct err *err)
{
    struct build *b = arg;
    if (!path) {
        b->err = *err;
        tell(b->im, b);
        return;
    }
    b->archive = strdup(path);
    workshop_do(b->im->shop, &b->work);
}

static bool is_here(struct images *im, const char *blob)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    return access(archive_folder(im->data, blob, mem), F_OK) == 0;
}

void images_want(struct images *im, const char *reference, const char *blob, image_fn *fn,
                 void *arg)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *key = text_given(blob) ? arena_printf(mem, "archive %s", blob)
                                       : reference; /* no reference has a blank */
    struct err err = { 0 };
    if (text_given(blob)
            ? !image_digest_ok(blob) && !err_field(&err, "image", "'%.80s' is not a digest", blob)
            : !image_reference_ok(reference, &err)) {
        fn(arg, NULL, &err);
        return;
    }
    struct entry *e = map_get_text(im->entries, key);
    if (e && !image_used(e->image.root)) /* swept away after a long time without use */
        e = NULL;
    if (e && (!e->tag || os_boot_ms(im->os) - e->checked_ms < TAG_FRESH_MS)) {
        fn(arg, &e->image, &err);
        return;
    }
    struct build *b = map_get_text(im->builds, key);
    struct waiter *w = calloc(1, sizeof *w);
    bool fresh = !b;
    if (fresh)
        b = calloc(1, sizeof *b);
    if (!w || !b)
        abort();
    *w = (struct waiter){ b->waiters, fn, arg };
    b->waiters = w;
    if (!fresh)
        return;
    b->work = (struct work){ .run = build_run, .done = build_done, .drop = build_drop };
    b->im = im;
    b->os = im->os;
    b->data = strdup(im->data);
    b->mem = arena_new();
    b->key = strdup(key);
    b->reference = reference ? strdup(reference) : NULL;
    b->blob = text_given(blob) ? strdup(blob) : NULL;
    map_put_text(im->builds, b->key, b);
    if (b->blob && !is_here(im, b->blob))
        blobs_want(im->blobs, b->blob, on_archive, b);
    else
        workshop_do(im->shop, &b->work);
}
