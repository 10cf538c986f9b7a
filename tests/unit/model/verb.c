#include "model/verb.h"
#include "tap.h"
#include "wire/bind.h"
#include <string.h>

static bool path_has(const char *path, const char *name)
{
    char want[80];
    snprintf(want, sizeof want, "{%s}", name);
    return strstr(path, want) != NULL;
}

TEST(every_verb_has_a_name_help_and_fields_and_is_found_by_name)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        const struct verb *v = &verbs[i];
        CHECK(text_given(v->name) && text_given(v->help) && v->takes);
        CHECK(v->gives || v->kind == VERB_STREAM || v == &verbs[VERB_METRICS]);      /* that one is a text */
        CHECK(verb_find(v->name) == v);
        CHECK((v->kind == VERB_INSIDE) == !v->path && (v->method == NULL) == (v->path == NULL));
        CHECK(v->status == 101 || v->status == 200 || v->status == 201);
    }
    CHECK(!verb_find("job.explode"));
}

TEST(what_is_in_the_path_is_in_the_table_and_the_other_way_round)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        const struct verb *v = &verbs[i];
        for (size_t k = 0; v->path && k < v->takes->count; k++)
            CHECK(v->takes->rows[k].in_path == path_has(v->path, v->takes->rows[k].name));
        for (const char *p = v->path; p && (p = strchr(p, '{')); p++) {
            char name[64] = "";
            sscanf(p, "{%63[^}]", name);
            const struct field *f = bind_find(v->takes, name);
            CHECK(f && f->in_path && f->type == F_TEXT);
        }
    }
}

TEST(no_two_verbs_share_a_route)
{
    for (int i = 0; i < VERB_COUNT; i++)
        for (int k = 0; k < i; k++)
            CHECK(!text_is(verbs[i].path, verbs[k].path) || !text_is(verbs[i].method, verbs[k].method));
}

TEST(reads_do_not_write_and_the_planner_stays_inside)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        const struct verb *v = &verbs[i];
        bool looks = text_is(v->method, "GET") || text_is(v->method, "HEAD");
        CHECK(v->kind != VERB_READ || looks);
        CHECK(v->kind != VERB_WRITE || !looks);
        CHECK(!v->list || v->kind == VERB_READ || v->kind == VERB_ASK);
        CHECK(!(v->roles & PLANNERS) || (v->kind == VERB_INSIDE && v->roles == PLANNERS));
        CHECK(v->roles || v->kind == VERB_WRITE);      /* only what carries its own credential */
    }
}

TEST(a_listing_takes_a_page_and_gives_things_with_id_name_and_state)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        const struct verb *v = &verbs[i];
        if (v->list)
            CHECK(bind_find(v->takes, "limit") || v == &verbs[VERB_USAGE_SUM]);
        if (v->path && v->gives && v->gives->count)
            CHECK(bind_find(v->gives, "id") && bind_find(v->gives, "name") && bind_find(v->gives, "state"));
    }
}

static void check_rows(const struct fields *f, int depth)
{
    CHECK(depth < 8 && (f->count == 0 || f->rows) && f->size > 0 && f->count <= 64);
    for (size_t i = 0; i < f->count; i++) {
        const struct field *r = &f->rows[i];
        CHECK(text_given(r->name) && r->offset < f->size && !r->name[strcspn(r->name, "\"\\\t\r\n")]);     /* they are printed as they are */
        CHECK((r->type == F_OBJECT || r->type == F_OBJECTS || r->type == F_INLINE) == (r->sub != NULL));
        CHECK((r->type == F_ENUM) == (r->names != NULL));
        CHECK(r->type != F_ID || r->prefix);
        for (size_t k = 0; k < i; k++)
            CHECK(!text_is(f->rows[k].name, r->name));
        if (r->sub)
            check_rows(r->sub, depth + 1);
    }
}

TEST(tables_are_sound)
{
    for (int i = 0; i < VERB_COUNT; i++) {
        check_rows(verbs[i].takes, 0);
        if (verbs[i].gives)
            check_rows(verbs[i].gives, 0);
    }
}

/* A default is in the spelling of a user and must be within the limits of its own row. */
TEST(every_default_and_every_simple_example_is_accepted_by_its_own_row)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    for (int i = 0; i < VERB_COUNT; i++)
        for (size_t k = 0; k < verbs[i].takes->count; k++) {
            const struct field *f = &verbs[i].takes->rows[k];
            struct err err = { 0 };
            void *out = arena_take(mem, 1, verbs[i].takes->size);
            if (f->def && !bind_text(f, f->def, mem, out, &err))
                printf("# %s %s: %s\n", verbs[i].name, f->name, err.text), CHECK(false);
            if (f->example && f->type != F_OBJECT && !bind_text(f, f->example, mem, out, &err))
                printf("# %s %s: %s\n", verbs[i].name, f->name, err.text), CHECK(false);
        }
}

static bool same_flag(const char *a, const char *b)
{
    char x[32], y[32];
    int n, m;
    for (const char *p = a; p && sscanf(p, "%31s%n", x, &n) == 1; p += n)
        for (const char *q = b; q && sscanf(q, "%31s%n", y, &m) == 1; q += m)
            if (strcmp(x, y) == 0)
                return true;
    return false;
}

TEST(no_two_fields_of_a_verb_share_a_flag)
{
    for (int i = 0; i < VERB_COUNT; i++)
        for (size_t k = 0; k < verbs[i].takes->count; k++)
            for (size_t j = 0; j < k; j++)
                CHECK(!same_flag(verbs[i].takes->rows[k].flag, verbs[i].takes->rows[j].flag));
}

TEST(nobody_prints_a_secret)
{
    AUTO(str_done) struct str out = { 0 };
    struct { const char *user, *password; int64_t expires; } login = { "ada", "hunter2hunter2", 0 };
    bind_write(&(struct json_out){ .to = &out }, verbs[VERB_LOGIN].takes, &login);
    CHECK(strstr(out.at, "ada") && !strstr(out.at, "hunter2"));
}
