#include "wire/backup.h"
#include "tap.h"
#include <stdlib.h>

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    return (void)err, str_printf(arg, "%s:", e->name), true;
}
static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    return (void)err, str_put(arg, at, n), true;
}
static bool on_entry_end(void *arg, struct err *err) { return (void)err, str_char(arg, ';'), true; }
static const struct tar_events events = { on_entry, on_data, on_entry_end };

static void put(struct str *out, const char *name, const char *data)
{
    backup_entry(out, name, (int64_t)strlen(data), 1700000000000);
    str_text(out, data);
    tar_pad(out, (int64_t)strlen(data));
}

static void make(struct str *out, const char *first)
{
    char hex[DIGEST_HEX];
    put(out, first, "{\"format\":1}");
    put(out, "tables/org/000001.jsonl", "[[\"id\",\"i\"]]\n[1]\n");
    put(out, "blobs/prj-1/ab", "some bytes of an upload");
    digest_sha256(out->at, out->len, hex);
    backup_end(out, hex, 1700000000000);
}

static bool reads(const struct str *file, size_t size, size_t step, struct str *seen, struct err *err)
{
    AUTO(backup_reader_free) struct backup_reader *r = backup_reader_new(&events, seen);
    for (size_t at = 0; at < size; at += step)
        if (!backup_feed(r, file->at + at, MIN(step, size - at), err))
            return false;
    return backup_whole(r, err);
}

TEST(a_backup_is_read_as_it_was_written_in_pieces_of_any_size)
{
    AUTO(str_done) struct str file = { 0 };
    CHECK(digest_start());
    make(&file, BACKUP_HEAD);
    for (size_t step = 1; step <= file.len; step = step < 700 ? step + 97 : step * 2) {
        AUTO(str_done) struct str seen = { 0 };
        struct err err = { 0 };
        CHECK(reads(&file, file.len, step, &seen, &err));
        CHECK(text_is(seen.at, "arcus-backup.json:{\"format\":1};tables/org/000001.jsonl:[[\"id\",\"i\"]]\n[1]\n;"
                               "blobs/prj-1/ab:some bytes of an upload;"));
    }
}

TEST(a_backup_that_is_cut_off_anywhere_is_refused)
{
    AUTO(str_done) struct str file = { 0 };
    make(&file, BACKUP_HEAD);
    for (size_t n = 0; n < file.len; n++) {
        AUTO(str_done) struct str seen = { 0 };
        struct err err = { 0 };
        bool ok = reads(&file, n, 4096, &seen, &err);
        if (ok || !strstr(err.text, "cut off"))
            CHECK(!"cut off, and not noticed");
    }
    CHECK(file.len > 3000);
}

TEST(a_backup_with_one_flipped_bit_is_refused_wherever_it_is)
{
    AUTO(str_done) struct str file = { 0 };
    make(&file, BACKUP_HEAD);
    for (size_t i = 0; i < file.len; i++) {
        AUTO(str_done) struct str seen = { 0 };
        struct err err = { 0 };
        file.at[i] = (char)(file.at[i] ^ (1 << i % 8));
        if (reads(&file, file.len, 4096, &seen, &err)) {
            printf("# byte %zu\n", i);
            CHECK(!"flipped, and not noticed");
        }
        file.at[i] = (char)(file.at[i] ^ (1 << i % 8));
    }
    struct err err = { 0 };
    AUTO(str_done) struct str seen = { 0 };
    CHECK(reads(&file, file.len, 4096, &seen, &err));
    str_char(&file, 'x');
    CHECK(!reads(&file, file.len, 4096, &seen, &err));
}

TEST(another_tar_is_no_backup)
{
    AUTO(str_done) struct str file = { 0 }, seen = { 0 };
    struct err err = { 0 };
    make(&file, "oci-layout");
    CHECK(!reads(&file, file.len, 512, &seen, &err) && strstr(err.text, "no backup of arcus"));
    CHECK(seen.len == 0);
    str_clear(&file);
    for (int i = 0; i < 2000; i++)
        str_text(&file, "this is no tar");
    CHECK(!reads(&file, file.len, 512, &seen, &err) && strstr(err.text, "no backup of arcus"));
}

TEST(the_head_says_what_it_is_and_a_newer_format_is_refused_with_what_to_do)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct backup_head in = { 1, 30, 1700000000123, "0.9", "sqlite" }, out;
    struct err err = { 0 };
    backup_head_print(&text, &in);
    CHECK(backup_head_read((struct slice){ text.at, text.len }, mem, &out, &err));
    CHECK(out.format == 1 && out.steps == 30 && out.made_ms == 1700000000123 && text_is(out.arcus, "0.9")
          && text_is(out.store, "sqlite"));
    in.format = 2;
    str_clear(&text);
    backup_head_print(&text, &in);
    CHECK(!backup_head_read((struct slice){ text.at, text.len }, mem, &out, &err)
          && strstr(err.text, "with that version"));
    CHECK(!backup_head_read(SLICE("{}"), mem, &out, &err) && !backup_head_read(SLICE("x"), mem, &out, &err));
}
