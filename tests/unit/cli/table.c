/* table.c - tables line up, whatever is in them. */
#include "cli_test.h"

static struct json *parse(struct arena *mem, const char *text)
{
    struct json *doc = NULL;
    struct err err;
    CHECK(json_parse(SLICE(text), mem, &doc, &err));
    return doc;
}

/* The place of the nth column in a line, in columns of the terminal. */
static size_t place(const char *line, const char *word)
{
    char before[512];
    const char *at = strstr(line, word);
    snprintf(before, sizeof before, "%.*s", at ? (int)(at - line) : 0, line);
    return at ? text_width(before) : SIZE_MAX;
}

TEST(columns_line_up_also_with_letters_of_other_widths)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    static const struct column columns[] = { { "NAME", "name" },
                                             { "STATE", "state:state" },
                                             { "N", "n", .right = true },
                                             { "LAST", "last" } };
    struct json *items = parse(
        mem, "[{\"name\":\"zoë\",\"state\":\"ready\",\"n\":7,\"last\":\"x1\"},{\"name\":\"日本\","
             "\"state\":\"lost\",\"n\":12345,\"last\":\"x2\"},"
             "{\"name\":\"a\\u0301\\u001b[31m\",\"state\":null,\"n\":null,\"last\":\"x3\"}]");
    table_text(&out, columns, COUNT(columns), items, false, false, 0);
    char *save = NULL, *lines[5] = { 0 };
    size_t n = 0;
    for (char *l = strtok_r(out.at, "\n", &save); l && n < 5; l = strtok_r(NULL, "\n", &save))
        lines[n++] = l;
    CHECK(n == 4 && text_starts(lines[0], "NAME"));
    CHECK(place(lines[0], "STATE") == place(lines[1], "ready")
          && place(lines[0], "STATE") == place(lines[2], "lost"));
    CHECK(place(lines[0], "LAST") == place(lines[1], "x1")
          && place(lines[1], "x1") == place(lines[2], "x2")
          && place(lines[2], "x2") == place(lines[3], "x3"));
    CHECK(place(lines[1], "7") == place(lines[2], "12345") + 4);
    CHECK(!strchr(lines[3], 033));
}

TEST(kinds_of_cells)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    static const struct column columns[] = {
        { "AGE", "age:at" },         { "SOON", "age:soon" },      { "NEVER", "age:never" },
        { "MEM", "mib:mem" },        { "SIZE", "bytes:size" },    { "H", "hours:seconds" },
        { "GH", "hours:gpu" },       { "Q", "limit:quota.gpus" }, { "G", "gpus:gpus" },
        { "GBH", "gib_hours:held" }, { "FEW", "hours:few" },      { "NO", "hours:none" },
    };
    struct json *items
        = parse(mem, "[{\"at\":\"2026-11-15T13:00:00Z\",\"soon\":\"2026-11-15T15:00:00Z\","
                     "\"never\":null,\"mem\":1536,\"size\":1023,\"seconds\":5400,"
                     "\"gpu\":1800.5,\"quota\":{\"gpus\":-1},\"gpus\":\"2\",\"simulated\":true,"
                     "\"held\":7372800,\"few\":3,\"none\":0}]");
    /* 13:03 */
    table_text(&out, columns, COUNT(columns), items, false, false, INT64_C(1794747780000));
    const char *row = strchr(out.at, '\n') + 1;
    CHECK(text_starts(row, "3m ago  in 1h  -      1.5 GB  1023 B  1.50  0.5001  no limit  2 "
                           "(simulated)  2.00  0.0008  0.00\n"));
}

TEST(a_column_of_marks_that_marks_nothing_is_left_out)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 }, all = { 0 };
    static const struct column columns[]
        = { { "NAME", "name" }, { "NOTE", "mark:simulated" }, { "ID", "id", .wide = true } };
    struct json *items = parse(mem, "[{\"name\":\"a\",\"simulated\":false,\"id\":\"i\"}]");
    table_text(&out, columns, COUNT(columns), items, false, false, 0);
    CHECK(text_is(out.at, "NAME\na\n"));
    items->first->first->next->flag = true;
    table_text(&all, columns, COUNT(columns), items, true, false, 0);
    CHECK(text_is(all.at, "NAME  NOTE       ID\na     simulated  i\n"));
}

TEST(colours_come_only_when_asked_for_and_do_not_move_columns)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str plain = { 0 }, colour = { 0 }, stripped = { 0 };
    static const struct column columns[] = { { "STATE", "state:state" }, { "NAME", "name" } };
    struct json *items
        = parse(mem, "[{\"name\":\"a\",\"state\":\"running\"},{\"name\":\"b\",\"state\":\"odd\"}]");
    table_text(&plain, columns, COUNT(columns), items, false, false, 0);
    table_text(&colour, columns, COUNT(columns), items, false, true, 0);
    CHECK(!strchr(plain.at, 033) && strstr(colour.at, "\033[32mrunning\033[0m"));
    for (const char *p = colour.at; *p; p++) {
        if (*p == 033)
            p += strcspn(p, "m");
        else
            str_char(&stripped, *p);
    }
    CHECK(text_is(stripped.at, plain.at));
}
