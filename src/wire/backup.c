/* backup.c - the frame of a backup's file: head, entries, checksum. What the rows mean is store/'s. */
#include "wire/backup.h"
#include "wire/json.h"
#include <stdio.h>
#include <stdlib.h>

/* --- the head */

void backup_head_print(struct str *out, const struct backup_head *h)
{
    struct json_out o = { .to = out };
    json_open(&o, '{');
    json_key(&o, "format");
    json_put_int(&o, h->format);
    json_key(&o, "arcus");
    json_put_text(&o, h->arcus);
    json_key(&o, "steps");
    json_put_int(&o, h->steps);
    json_key(&o, "made_ms");
    json_put_int(&o, h->made_ms);
    json_key(&o, "store");
    json_put_text(&o, h->store);
    json_close(&o, '}');
    str_char(out, '\n');
}

bool backup_head_read(struct slice text, struct arena *mem, struct backup_head *out,
                      struct err *err)
{
    struct json *doc;
    if (!json_parse(text, mem, &doc, err))
        return err_wrap(err, BACKUP_HEAD);
    struct backup_head h = { .format = json_int(doc, "format", 0),
                             .steps = json_int(doc, "steps", 0),
                             .made_ms = json_int(doc, "made_ms", 0),
                             .arcus = json_text(doc, "arcus"),
                             .store = json_text(doc, "store") };
    if (h.format < 1 || h.steps < 1 || !h.arcus || !h.store)
        return err_set(err, RC_BAD_INPUT, BACKUP_HEAD " does not say what the backup is");
    if (h.format > BACKUP_FORMAT)
        return err_set(err, RC_BAD_INPUT,
                       "the backup was made by a newer arcus (%.40s): restore it with that version",
                       h.arcus);
    *out = h;
    return true;
}

/* --- writing */

void backup_entry(struct str *out, const char *name, int64_t size, int64_t made_ms)
{
    tar_header(out, &(struct tar_entry){ .type = TAR_FILE,
                                         .name = name,
                                         .mode = 0600,
                                         .size = size,
                                         .mtime_s = made_ms / 1000 });
}

void backup_end(struct str *out, const char hex[static DIGEST_HEX], int64_t made_ms)
{
    backup_entry(out, BACKUP_SUM, DIGEST_HEX, made_ms);
    str_printf(out, "%s\n", hex);
    tar_pad(out, DIGEST_HEX);
    tar_end(out);
}

/* --- reading */

struct backup_reader {
    const struct tar_events *events;
    void *arg;
    struct tar_reader *tar;
    struct sha256 *hash;                /* NULL: the checksum's entry has been reached */
    char hex[DIGEST_HEX], told[DIGEST_HEX + 1];
    size_t told_len;
    bool begun;
    struct str header;                  /* of the checksum's entry, as we write it */
    char block[TAR_BLOCK];              /* bytes that are no whole block yet */
    size_t have;
    int64_t bytes;
};

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct backup_reader *r = arg;
    if (!r->begun && !text_is(e->name, BACKUP_HEAD))
        return err_set(err, RC_BAD_INPUT, "it is no backup of arcus");
    r->begun = true;
    if (!r->hash)
        return err_set(err, RC_BAD_INPUT, "something follows its checksum");
    if (e->type != TAR_FILE)
        return err_set(err, RC_BAD_INPUT, "%.80s is no file", e->name);
    if (!text_is(e->name, BACKUP_SUM))
        return r->events->on_entry(r->arg, e, err);
    sha256_end(TAKE(r->hash), r->hex);  /* this block has not been added yet */
    backup_entry(&r->header, BACKUP_SUM, DIGEST_HEX, e->mtime_s * 1000);
    return true;
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct backup_reader *r = arg;
    if (r->hash)
        return r->events->on_data(r->arg, at, n, err);
    if (n > sizeof r->told - r->told_len)
        return err_set(err, RC_BAD_INPUT, "its checksum is too long");
    memcpy(r->told + r->told_len, at, n);
    r->told_len += n;
    return true;
}

static bool on_entry_end(void *arg, struct err *err)
{
    struct backup_reader *r = arg;
    return !r->hash || r->events->on_entry_end(r->arg, err);
}

struct backup_reader *backup_reader_new(const struct tar_events *events, void *arg)
{
    static const struct tar_events own = { on_entry, on_data, on_entry_end };
    struct backup_reader *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->events = events;
    r->arg = arg;
    r->tar = tar_reader_new(&own, r);
    r->hash = sha256_new();
    return r;
}

void backup_reader_free(struct backup_reader *r)
{
    char hex[DIGEST_HEX];
    if (!r)
        return;
    if (r->hash)
        sha256_end(r->hash, hex);
    tar_reader_free(r->tar);
    str_done(&r->header);
    free(r);
}

static bool take_block(struct backup_reader *r, const char *block, struct err *err)
{
    bool told = r->told_len, summing = r->hash;
    if (tar_complete(r->tar))
        return err_set(err, RC_BAD_INPUT, "it is damaged: something follows its end");
    if (!tar_feed(r->tar, block, TAR_BLOCK, err)) {
        if (!r->begun)
            return err_set(err, RC_BAD_INPUT, "it is no backup of arcus");
        return text_starts(err->text, "tar:") ? err_wrap(err, "it is damaged") : false;
    }
    if (r->hash)
        sha256_add(r->hash, block, TAR_BLOCK);
    else if (summing && (r->header.len != TAR_BLOCK || memcmp(block, r->header.at, TAR_BLOCK) != 0))
        return err_set(err, RC_BAD_INPUT, "it is damaged: so is the header of its checksum");
    for (size_t i = r->told_len; !told && i && i < TAR_BLOCK; i++)
        if (block[i])                   /* behind the checksum, where no checksum looks */
            return err_set(err, RC_BAD_INPUT, "it is damaged: its checksum is followed by more");
    return true;
}

/* Block by block, so that it is known which the checksum's entry begins with. */
bool backup_feed(struct backup_reader *r, const char *at, size_t n, struct err *err)
{
    r->bytes += (int64_t)n;
    while (n) {
        if (r->have == 0 && n >= TAR_BLOCK) {
            if (!take_block(r, at, err))
                return false;
            at += TAR_BLOCK, n -= TAR_BLOCK;
            continue;
        }
        size_t some = MIN(n, TAR_BLOCK - r->have);
        memcpy(r->block + r->have, at, some);
        at += some, n -= some, r->have += some;
        if (r->have < TAR_BLOCK)
            break;
        r->have = 0;
        if (!take_block(r, r->block, err))
            return false;
    }
    return true;
}

bool backup_whole(const struct backup_reader *r, struct err *err)
{
    if (!tar_complete(r->tar) || r->have)
        return err_set(err, RC_BAD_INPUT, "it is cut off after %lld bytes: its end is missing",
                       (long long)r->bytes);
    if (r->hash)
        return err_set(err, RC_BAD_INPUT, "it is damaged: its checksum is missing");
    if (r->told_len != DIGEST_HEX || r->told[DIGEST_HEX - 1] != '\n'
        || memcmp(r->told, r->hex, DIGEST_HEX - 1) != 0)
        return err_set(err, RC_BAD_INPUT, "it is damaged: its checksum does not fit its bytes");
    return true;
}
