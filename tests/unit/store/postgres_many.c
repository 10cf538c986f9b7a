#include "place.h"
#include "store/postgres_internal.h"
#include <stdio.h>
#include <stdlib.h>

static const struct sql statements[] = {
    { "A_ADD", "it", "INSERT INTO a (id, name, kind, n) VALUES (?1, ?2, '?2', 7)" },
    { "A_SET", "i", "UPDATE a SET n = 1 WHERE id = ?1" },
    { "B_ADD", "i", "INSERT INTO b (id) VALUES (?1)" },
    { "B_PUT", "i", "INSERT INTO b (id) VALUES (?1) ON CONFLICT (id) DO NOTHING" },
    { "C_DROP", "i", "DELETE FROM c WHERE id IN (SELECT id FROM a WHERE n = ?1)" },
};
enum { A_ADD, A_SET, B_ADD, B_PUT, C_DROP };

TEST(a_plain_insert_has_a_twin_for_many_rows)
{
    AUTO(str_done) struct str text = { 0 };
    struct pg_kind *kinds = many_kinds((struct sql_list){ statements, COUNT(statements) });
    CHECK(kinds[A_ADD].many && !kinds[A_SET].many && kinds[B_ADD].many && !kinds[B_PUT].many && !kinds[C_DROP].many);
    CHECK(kinds[A_SET].table == A_ADD && kinds[B_PUT].table == B_ADD && kinds[C_DROP].table == -1);
    free(kinds);
    many_text(&statements[A_ADD], &text);
    CHECK(text_is(text.at, "INSERT INTO a (id, name, kind, n) SELECT u.c1, u.c2, '?2', 7 FROM unnest($1, $2) AS u(c1, c2)"));
}

/* "ab" : two statements; the parts are printed as the letters of their rows. */
static const char *parts_of(struct arena *mem, const char *order)
{
    static const char letters[] = { 'a', 's', 'b', 'p', 'c' };
    static const struct value args[2];
    struct store s = { .statements = { statements, COUNT(statements) } };
    struct write writes[32];
    size_t n = 0;
    for (const char *at = order; *at; at++)
        for (size_t k = 0; k < COUNT(letters); k++)
            if (letters[k] == *at)
                writes[n++] = (struct write){ (enum statement)k, 1, args };
    s.inside = many_kinds(s.statements);
    struct pg_parts parts = many_parts(&s, writes, n, mem);
    free(s.inside);
    struct str out = { 0 };
    for (size_t i = 0; i < parts.count; i++) {
        str_text(&out, i ? " " : "");
        for (struct pg_row *r = parts.at[i].first; r; r = r->next)
            str_char(&out, letters[r->write->st]);
    }
    char *text = arena_text(mem, out.at);
    str_done(&out);
    return text;
}

TEST(rows_of_one_kind_go_together_and_a_table_keeps_its_order)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    CHECK(text_is(parts_of(mem, "ababab"), "aaa bbb"));
    CHECK(text_is(parts_of(mem, "abasab"), "aa bb s a"));
    CHECK(text_is(parts_of(mem, "ssaa"), "s s aa"));
    CHECK(text_is(parts_of(mem, "bbpb"), "bb p b"));
    CHECK(text_is(parts_of(mem, "abcab"), "a b c a b"));
}

BOTH(many_rows_of_one_commit_are_kept_as_they_are)
{
    enum { MANY = 500 };
    struct value args[MANY][4];
    struct write writes[MANY];
    static const char data[] = "\0\1\377";
    bool unknown;
    for (int i = 0; i < MANY; i++) {
        args[i][0] = V_INT(i + 1);
        args[i][1] = i % 3 == 0 ? V_TEXT(NULL) : V_TEXT(i % 3 == 1 ? "" : "größer, \"{x}\" \\ NULL");
        args[i][2] = i % 2 ? value_blob(data, sizeof data) : i % 4 ? value_blob("", 0) : (struct value){ 0 };
        args[i][3] = i % 5 ? V_INT(i % 2 ? INT64_MIN : -1) : (struct value){ 0 };
        writes[i] = (struct write){ (enum statement)THING_ADD, 4, args[i] };
    }
    CHECK(store_commit(p->writer, writes, MANY, &unknown, &p->err));
    struct rows r = things(p, p->reader);
    CHECK(r.count == MANY);
    for (size_t i = 0; i < r.count; i++)
        for (int c = 0; c < 4; c++) {
            const struct value *want = &args[i][c], *got = &r.at[i * 4 + (size_t)c];
            bool same = got->type == want->type && got->n == want->n && got->len == want->len
                     && (!want->len || memcmp(got->text, want->text, want->len) == 0);
            if (!same)
                CHECK(same);
        }
    /* One that is there already undoes them all. */
    args[7][0] = V_INT(3);
    for (int i = 0; i < MANY; i++)
        args[i][0].n += i == 7 ? 0 : 10 * MANY;
    struct err err = { 0 };
    CHECK(!store_commit(p->writer, writes, MANY, &unknown, &err) && err.rc == RC_CONFLICT && !unknown);
    CHECK(things(p, p->reader).count == MANY);
}
