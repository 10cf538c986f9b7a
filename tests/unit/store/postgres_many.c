#include "place.h"
#include "store/postgres_internal.h"
#include <stdio.h>
#include <stdlib.h>

static const struct sql statements[] = {
    { "A_ADD", "it", "INSERT INTO a (id, name, kind, n) VALUES (?1, ?2, '?2', 7)" },
    { "A_SET", "ii", "UPDATE a SET n = ?2, kind = 1 WHERE id = ?1" },
    { "B_ADD", "i", "INSERT INTO b (id) VALUES (?1)" },
    { "B_PUT", "i", "INSERT INTO b (id) VALUES (?1) ON CONFLICT (id) DO NOTHING" },
    { "C_DROP", "i", "DELETE FROM c WHERE id IN (SELECT id FROM a WHERE n = ?1)" },
    { "A_MORE", "i", "UPDATE a SET n = n + 1 WHERE id = ?1" },
    { "B_DROP", "i", "DELETE FROM b WHERE id = ?1 AND n >= 4" },
};
enum { A_ADD, A_SET, B_ADD, B_PUT, C_DROP, A_MORE, B_DROP };

TEST(what_writes_plain_values_has_a_twin_for_many_rows)
{
    AUTO(str_done) struct str text = { 0 };
    struct pg_kind *kinds = many_kinds((struct sql_list){ statements, COUNT(statements) });
    CHECK(kinds[A_ADD].many && kinds[A_SET].many && kinds[B_ADD].many && !kinds[B_PUT].many && !kinds[C_DROP].many);
    CHECK(!kinds[A_MORE].many && kinds[B_DROP].many && kinds[A_SET].key_count == 1 && kinds[A_SET].keys[0] == 0);
    CHECK(kinds[A_SET].table == A_ADD && kinds[B_PUT].table == B_ADD && kinds[C_DROP].table == -1);
    free(kinds);
    many_text(&statements[A_ADD], &text);
    CHECK(text_is(text.at, "INSERT INTO a (id, name, kind, n) SELECT u.c1, u.c2, '?2', 7 FROM unnest($1, $2) AS u(c1, c2)"));
    str_clear(&text);
    many_text(&statements[A_SET], &text);
    CHECK(text_is(text.at, "UPDATE a SET n = u.c2, kind = 1 FROM unnest($1, $2) AS u(c1, c2) WHERE id = u.c1"));
    str_clear(&text);
    many_text(&statements[B_DROP], &text);
    CHECK(text_is(text.at, "DELETE FROM b USING unnest($1) AS u(c1) WHERE id = u.c1 AND n >= 4"));
}

/* "ab" : two statements; the parts are printed as the letters of their rows. A digit is the id that those behind it have. */
static const char *parts_of(struct arena *mem, const char *order)
{
    static const char letters[] = { 'a', 's', 'b', 'p', 'c', 'm', 'd' };
    struct value args[10][2] = { 0 };
    int id = 0;
    struct store s = { .statements = { statements, COUNT(statements) } };
    struct write writes[32];
    size_t n = 0;
    for (const char *at = order; *at; at++) {
        id = *at >= '0' && *at <= '9' ? *at - '0' : id;
        args[id][0] = V_INT(id);
        for (size_t k = 0; k < COUNT(letters); k++)
            if (letters[k] == *at)
                writes[n++] = (struct write){ (enum statement)k, 1, args[id] };
    }
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
    CHECK(text_is(parts_of(mem, "1s2saa"), "ss aa"));
    CHECK(text_is(parts_of(mem, "mm"), "m m"));
    CHECK(text_is(parts_of(mem, "bbddb"), "bb dd b"));
    CHECK(text_is(parts_of(mem, "bbpb"), "bb p b"));
    CHECK(text_is(parts_of(mem, "abcab"), "a b c a b"));
}

TEST(of_two_updates_of_one_row_with_nothing_between_them_the_later_is_sent)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    CHECK(text_is(parts_of(mem, "1s2s1s3s"), "sss"));
    CHECK(text_is(parts_of(mem, "1sa1s"), "s a s"));
    CHECK(text_is(parts_of(mem, "1smm1s"), "s m m s"));
}

/* What a busy server commits: submits, what was placed, what began and what ended. Each kind of row is one message. */
TEST(a_commit_has_as_many_messages_as_kinds_of_rows)
{
    static const enum statement submit[] = { ST_JOB_ADD, ST_EVENT_ADD },
                                placed[] = { ST_TASK_ADD, ST_ATTEMPT_ADD, ST_JOB_SET, ST_EVENT_ADD },
                                began[] = { ST_ATTEMPT_SET, ST_TASK_SET, ST_JOB_SET, ST_EVENT_ADD },
                                dropped[] = { ST_TASK_DROP, ST_ATTEMPT_DROP, ST_JOB_DROP };
    static const struct { const enum statement *at; size_t count, messages; } kinds[]
        = { { submit, COUNT(submit), 2 }, { placed, COUNT(placed), 4 }, { began, COUNT(began), 4 }, { dropped, COUNT(dropped), 3 } };
    enum { MANY = 64 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct store s = { .statements = store_statements() };
    s.inside = many_kinds(s.statements);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct write writes[MANY * 4];
        size_t n = 0;
        for (int i = 0; i < MANY; i++)
            for (size_t w = 0; w < kinds[k].count; w++) {
                struct value *args = ARENA_ARRAY(mem, struct value, STORE_ARGS);
                for (int a = 0; a < STORE_ARGS; a++)
                    args[a] = V_INT(i);
                writes[n++] = (struct write){ kinds[k].at[w], (int)strlen(s.statements.at[kinds[k].at[w]].types), args };
            }
        struct pg_parts parts = many_parts(&s, writes, n, mem);
        CHECK(parts.count == kinds[k].messages);
        for (size_t i = 0; i < parts.count; i++)
            CHECK(parts.at[i].count == MANY);
    }
    free(s.inside);
}

BOTH(many_updates_of_one_commit_are_as_good_as_one_after_the_other)
{
    enum { MANY = 300 };
    struct value args[2 * MANY][4];
    struct write writes[2 * MANY];
    char names[2 * MANY][24];
    bool unknown;
    for (int i = 0; i < 2 * MANY; i++) {
        int id = i % MANY;
        snprintf(names[i], sizeof names[i], "name %d", i);
        args[i][0] = i < MANY ? V_INT(id) : V_TEXT(names[i]);
        args[i][1] = i < MANY ? V_TEXT("new") : V_INT(id % 7 ? id : 3);
        args[i][2] = args[i][3] = V_NULL;
        writes[i] = (struct write){ (enum statement)(i < MANY ? THING_ADD : THING_NAME), i < MANY ? 4 : 2, args[i] };
    }
    CHECK(store_commit(p->writer, writes, COUNT(writes), &unknown, &p->err));
    struct rows r = things(p, p->reader);
    CHECK(r.count == MANY);
    for (size_t i = 0; i < r.count; i++) {
        size_t last = i == 3 ? 2 * MANY - 6 : i + MANY;         /* 594: the last whose id is divided by 7 */
        CHECK(text_is(r.at[i * 4 + 1].text, i % 7 || i == 3 ? names[last] : "new"));
    }
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
