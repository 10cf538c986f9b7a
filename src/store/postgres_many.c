/* postgres_many.c - the rows of a commit put together, so that many of one kind are one message.
 *
 * A statement that inserts plain values, updates what has a key or deletes has a twin that takes an array for each
 * value. The order of what touches one table is kept; between tables it does not matter, for the
 * schema has neither triggers nor foreign keys. Of two updates of one row by one statement, with
 * nothing of that table between them, the later alone is sent: it sets all that the earlier does.
 * A statement that looks at more than its table stands alone and lets nothing past it. */
#include "store/postgres_internal.h"
#include "base/map.h"
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART_BYTES = 16 * 1024 * 1024, PART_ROWS = 20 * 1000 };

/* --- which statements have a twin */
static const char values[] = " VALUES (", where[] = " WHERE ";

static bool is_plain_insert(const struct sql *q)
{
    size_t n = strlen(q->text);
    return text_starts(q->text, "INSERT INTO ") && strstr(q->text, values) && q->types[0]
        && !strstr(q->text, " ON CONFLICT") && !strstr(q->text, "SELECT") && q->text[n - 1] == ')';
}

static bool is_delete(const struct sql *q)
{
    return text_starts(q->text, "DELETE FROM ") && strstr(q->text, where) && q->types[0]
        && !strstr(q->text, "SELECT");
}

/* "name = ?1" or "name = 7", from `at` on: behind it, or NULL. *parameter: 0 for a number. */
static const char *equation(const char *at, int *parameter)
{
    at += strspn(at, "abcdefghijklmnopqrstuvwxyz_");
    if (!text_starts(at, " = "))
        return NULL;
    at += strlen(" = ");
    bool given = *at == '?';
    size_t digits = strspn(at + given, "0123456789");
    *parameter = given ? atoi(at + 1) : 0;
    return digits ? at + given + digits : NULL;
}

/* Sets parameters and numbers where some parameters are equal to columns, and nothing else. Its keys: those parameters. */
static bool is_plain_update(const struct sql *q, struct pg_kind *k)
{
    static const char begin[] = " SET ";
    const char *at = text_starts(q->text, "UPDATE ") ? strstr(q->text, begin) : NULL;
    int parameter;
    k->key_count = 0;
    if (!at || !strstr(q->text, where))
        return false;
    for (at += strlen(begin); (at = equation(at, &parameter)) && text_starts(at, ", "); at += 2)
        ;
    if (!at || !text_starts(at, where))
        return false;
    for (at += strlen(where); (at = equation(at, &parameter)); at += strlen(" AND ")) {
        if (!parameter || q->types[parameter - 1] != 'i' || k->key_count == PG_KEYS)
            return false;
        k->keys[k->key_count++] = parameter - 1;
        if (!text_starts(at, " AND "))
            return !*at;
    }
    return false;
}

static struct slice table_of(const struct sql *q)
{
    static const char *const words[] = { "INSERT INTO ", "UPDATE ", "DELETE FROM " };
    for (size_t i = 0; i < COUNT(words); i++)
        if (text_starts(q->text, words[i]) && !strstr(q->text, "SELECT")) {
            const char *at = q->text + strlen(words[i]);
            return (struct slice){ at, strcspn(at, " ") };
        }
    return (struct slice){ 0 };
}

static struct pg_kind kind_of(const struct sql *q)
{
    struct pg_kind k = { 0 };
    bool update = is_plain_update(q, &k);
    k.many = update || is_plain_insert(q) || is_delete(q);
    k.key_count = update ? k.key_count : 0;
    return k;
}

struct pg_kind *many_kinds(struct sql_list list)
{
    struct pg_kind *kinds = calloc((size_t)list.count + 1, sizeof *kinds);
    if (!kinds)
        abort();
    for (int i = 0; i < list.count; i++) {
        struct slice table = table_of(&list.at[i]);
        kinds[i] = kind_of(&list.at[i]);
        kinds[i].table = table.at ? i : -1;
        for (int k = 0; k < i && table.at; k++) {
            struct slice other = table_of(&list.at[k]);
            if (other.len == table.len && memcmp(other.at, table.at, table.len) == 0) {
                kinds[i].table = k;
                break;
            }
        }
    }
    return kinds;
}

/* From `from` up to `to`, where ?1 becomes u.c1. */
static void put_columns(struct str *out, const char *from, const char *to)
{
    bool quoted = false;
    for (const char *p = from; p < to; p++) {
        quoted ^= *p == '\'';
        str_text(out, *p == '?' && !quoted ? "u.c" : "");
        if (*p != '?' || quoted)
            str_char(out, *p);
    }
}

static void put_unnest(struct str *out, const char *word, size_t types)
{
    str_text(out, word);
    for (size_t i = 1; i <= types; i++)
        str_printf(out, "%s$%zu", i == 1 ? " unnest(" : ", ", i);
    for (size_t i = 1; i <= types; i++)
        str_printf(out, "%sc%zu", i == 1 ? ") AS u(" : ", ", i);
    str_char(out, ')');
}

void many_text(const struct sql *q, struct str *out)
{
    size_t types = strlen(q->types);
    const char *end = q->text + strlen(q->text);
    bool insert = text_starts(q->text, "INSERT");
    const char *cut = strstr(q->text, insert ? values : where);
    put_columns(out, q->text, cut);
    if (insert) {
        str_text(out, " SELECT ");
        put_columns(out, cut + strlen(values), end - 1);
        put_unnest(out, " FROM", types);
        return;
    }
    put_unnest(out, text_starts(q->text, "UPDATE") ? " FROM" : " USING", types);
    put_columns(out, cut, end);
}

/* --- the parts of a commit */
static size_t bytes_of(const struct write *w)
{
    size_t n = 0;
    for (int i = 0; i < w->count; i++)
        n += w->args[i].len + sizeof(int64_t);
    return n;
}

static struct pg_part *part_new(struct pg_parts *p, struct arena *mem)
{
    if (p->count == p->room) {
        p->room = p->room ? p->room * 2 : 32;
        struct pg_part *more = ARENA_ARRAY(mem, struct pg_part, p->room);
        if (p->count)
            memcpy(more, p->at, p->count * sizeof *more);
        p->at = more;
    }
    p->at[p->count] = (struct pg_part){ 0 };
    return &p->at[p->count++];
}

static void part_add(struct pg_part *p, struct pg_row *row, const struct write *w)
{
    row->write = w;
    *(p->last ? &p->last->next : &p->first) = row;
    p->last = row;
    p->count++;
    p->bytes += bytes_of(w);
}

/* Updates of one commit by what they update, so that a second one of the same row is found. */
static int64_t key_of(const struct pg_kind *k, const struct write *w, size_t part)
{
    uint64_t h = part * 0xff51afd7ed558ccdULL;
    for (int i = 0; i < k->key_count; i++)
        h = (h ^ h >> 32 ^ (uint64_t)w->args[k->keys[i]].n) * 0x9e3779b97f4a7c15ULL;
    return (int64_t)h;
}

static bool same_row(const struct pg_kind *k, const struct write *a, const struct write *b)
{
    for (int i = 0; i < k->key_count; i++)
        if (a->args[k->keys[i]].n != b->args[k->keys[i]].n)
            return false;
    return true;
}

struct pg_parts many_parts(const struct store *s, const struct write *writes, size_t count,
                           struct arena *mem)
{
    const struct pg_kind *kinds = s->inside;
    size_t total = (size_t)s->statements.count, fence = 0;
    /* 1 + the last part of each statement and of each table; up to the fence nothing is added. */
    size_t *of_statement = ARENA_ARRAY(mem, size_t, total);
    size_t *of_table = ARENA_ARRAY(mem, size_t, total);
    struct pg_row *rows = ARENA_ARRAY(mem, struct pg_row, count);
    struct pg_parts parts = { 0 };
    AUTO(map_free) struct map *updates = map_new();
    for (size_t i = 0; i < count; i++) {
        const struct write *w = &writes[i];
        const struct pg_kind *k = &kinds[w->st];
        size_t open = of_statement[w->st];
        struct pg_part *p = open > fence ? &parts.at[open - 1] : NULL;
        bool fits = p && k->many && open == of_table[k->table] && p->bytes <= PART_BYTES
                 && p->count < PART_ROWS;
        struct pg_row *before
            = fits && k->key_count ? map_get(updates, key_of(k, w, open)) : NULL;
        if (before && same_row(k, before->write, w)) {
            before->write = w;
            continue;
        }
        if (!fits || before) {          /* before: two rows whose keys look alike */
            p = part_new(&parts, mem);
            of_statement[w->st] = parts.count;
            if (k->table >= 0)
                of_table[k->table] = parts.count;
            else
                fence = parts.count;
        }
        part_add(p, &rows[i], w);
        if (k->key_count)
            map_put(updates, key_of(k, w, of_statement[w->st]), &rows[i]);
    }
    return parts;
}

/* --- one array, as PostgreSQL sends it: its shape, then each value behind its length */
enum { ARRAY_HEAD = 5 * sizeof(uint32_t) };     /* dimensions, has nulls, type, how many, from */

static char *put_word(char *to, uint32_t n)
{
    n = htobe32(n);
    return memcpy(to, &n, sizeof n), to + sizeof n;
}

static char *put_value(char *to, const struct value *v)
{
    uint64_t n = htobe64((uint64_t)v->n);
    bool is_int = v->type == VALUE_INT;
    if (v->type == VALUE_NULL)
        return put_word(to, UINT32_MAX);
    to = put_word(to, is_int ? sizeof n : (uint32_t)v->len);
    if (is_int || v->len)
        memcpy(to, is_int ? (const char *)&n : v->text, is_int ? sizeof n : v->len);
    return to + (is_int ? sizeof n : v->len);
}

char *many_array(const struct pg_part *p, int column, unsigned type, struct arena *mem, int *len)
{
    size_t room = ARRAY_HEAD;
    for (const struct pg_row *r = p->first; r; r = r->next)
        room += sizeof(uint32_t) + MAX(r->write->args[column].len, sizeof(uint64_t));
    char *at = arena_take(mem, room, 1), *to = at;
    const uint32_t head[] = { 1, 1, type, (uint32_t)p->count, 1 };
    for (size_t i = 0; i < COUNT(head); i++)
        to = put_word(to, head[i]);
    for (const struct pg_row *r = p->first; r; r = r->next)
        to = put_value(to, &r->write->args[column]);
    *len = (int)(to - at);
    return at;
}
