/* The walk: every verb of the table as everybody. A verb without a body in world.c fails here,
 * so none can be forgotten. */
#include "world.h"
#include <stdio.h>
#include <stdlib.h>

static bool may(const struct wish *x, enum who who)
{
    return people[who].good && (verbs[x->verb].roles & people[who].roles);
}
static bool own_credential(const struct wish *x)
{
    return verbs[x->verb].roles == 0;
}

static void show(bool ok, const struct wish *x, enum who who, const struct answer *a)
{
    CHECK(ok);
    if (!ok)
        printf("# %s as %s: %s, %s %s: %s\n", verbs[x->verb].name, people[who].name,
               a->ok ? "taken" : "refused", rc_name(a->err.rc), a->err.field, a->err.text);
}

TEST(every_verb_has_a_handler_and_a_body_in_the_walk)
{
    for (int v = 0; v < VERB_COUNT; v++) {
        bool found = false;
        for (size_t i = 0; i < wish_count; i++)
            found |= (int)wishes[i].verb == v;
        CHECK(found && verbs[v].name && handlers[v].run);
        if (!found)
            printf("# %s has no body in world.c\n", verbs[v].name);
    }
}

TEST(every_verb_is_refused_to_everybody_the_table_does_not_name_and_nothing_changes)
{
    struct world w;
    world_make(&w, true);
    AUTO(door_free) struct door *d = w.d;
    const char *rows = store_text(d), *memory = memory_text(d, memory_of(d), 0);
    for (size_t i = 0; i < wish_count; i++)
        for (enum who who = 0; who < WHO_COUNT; who++) {
            const struct wish *x = &wishes[i];
            if (may(x, who) || own_credential(x))
                continue;
            struct answer a = world_ask(&w, who, NULL, x, BY_ID);
            show(!a.ok && a.err.rc == (people[who].good ? RC_DENIED : RC_UNAUTHENTICATED)
                     && !*a.text,
                 x, who, &a);
            if (text_is(rows, store_text(d)) && text_is(memory, memory_text(d, memory_of(d), 0)))
                continue;
            show(false, x, who, &a);
            printf("# and it changed something\n");
        }
    check_books(d, "after the walk");
    check_picture(d, "after the walk");
}

TEST(all_keys_that_are_not_good_get_the_same_words)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    static const enum verb_id both_doors[]
        = { VERB_JOB_LIST, VERB_VOLUME_CREATE }; /* a reader decides, the writer decides */
    for (size_t i = 0; i < COUNT(both_doors); i++) {
        const char *body = i ? "{\"name\":\"x\"}" : "{}";
        struct answer first = door_ask(d, w.keys[BAD_KEY], both_doors[i], body);
        for (enum who who = BAD_KEY; who < WHO_COUNT; who++) {
            struct answer a = door_ask(d, w.keys[who], both_doors[i], body);
            CHECK(!a.ok && a.err.rc == RC_UNAUTHENTICATED && text_is(a.err.text, first.err.text));
        }
    }
}

/* What the table (and so /openapi.json) promises of a reply is in it, and nothing else. */
static void check_reply(const struct wish *x, const struct answer *a)
{
    const struct verb *v = &verbs[x->verb];
    const struct json *doc = a->json;
    if (v->kind == VERB_STREAM || v->kind == VERB_INSIDE || !v->gives || !a->ok)
        return;
    if (v->list) {
        struct json *list = doc ? json_get(doc, "items") : NULL;
        CHECK(list && json_get(doc, "next"));
        doc = list ? list->first : NULL;
        if (!doc)
            return;
    }
    CHECK(doc != NULL);
    for (size_t i = 0; doc && i < v->gives->count; i++) {
        const struct field *f = &v->gives->rows[i];
        bool there = json_get(doc, f->name) != NULL;
        CHECK(there || f->when_set || f->hidden);
        if (!there && !f->when_set && !f->hidden)
            printf("# the reply of %s has no %s\n", v->name, f->name);
    }
    for (const struct json *m = doc ? doc->first : NULL; m; m = m->next) {
        bool known = bind_find(v->gives, m->name) || text_is(m->name, "project");
        CHECK(known);
        if (!known)
            printf("# the reply of %s has %s, of which the table knows nothing\n", v->name,
                   m->name);
    }
}

TEST(every_verb_is_open_to_everybody_the_table_names)
{
    struct world w;
    world_make(&w, true);
    AUTO(door_free) struct door *d = w.d;
    for (size_t i = 0; i < wish_count; i++) {
        const struct wish *x = &wishes[i];
        bool first = true;
        for (enum who who = 0; who < STRANGER + 2; who++) {
            if (!may(x, who) || who == STRANGER || own_credential(x))
                continue;
            struct answer a = world_ask(&w, who, NULL, x, BY_ID);
            show(a.ok || (a.err.rc != RC_DENIED && a.err.rc != RC_UNAUTHENTICATED), x, who, &a);
            check_reply(x, &a);
            bool stumbles = x->expect && (text_is(a.err.field, x->expect) || !*x->expect);
            if (first && !text_is(verbs[x->verb].name, "password"))
                show(a.ok || stumbles, x, who, &a);
            first = false;
        }
    }
    check_books(d, "after all was allowed");
}

TEST(login_and_join_carry_their_own_credential_and_answer_no_other)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    const char *rows = store_text(d);
    for (size_t i = 0; i < wish_count; i++)
        for (enum who who = 0; who < WHO_COUNT; who += 5) /* what key comes along means nothing */
            if (own_credential(&wishes[i])) {
                struct answer a = world_ask(&w, who, NULL, &wishes[i], BY_ID);
                show(!a.ok && a.err.rc == RC_UNAUTHENTICATED, &wishes[i], who, &a);
            }
    CHECK(text_is(rows, store_text(d)));
}

/* An error, with what was sent taken out of it. */
static const char *words_of(struct world *w, const struct answer *a, const char *token_words[4])
{
    AUTO(str_done) struct str out = { 0 };
    str_printf(&out, "%s %s %s ", a->ok ? "taken" : "refused", rc_name(a->err.rc), a->err.field);
    for (const char *p = a->err.text; *p;) {
        size_t n = 0;
        for (int k = 0; k < 4 && !n; k++)
            if (text_given(token_words[k]) && text_starts(p, token_words[k]))
                n = strlen(token_words[k]);
        str_put(&out, n ? "*" : p, 1);
        p += n ? n : 1;
    }
    return arena_text(w->d->mem, out.at);
}

static const struct thing *first_thing(struct world *w, const char *body)
{
    for (const char *p = body; (p = strchr(p, '{')); p++)
        for (size_t i = 0; i < w->thing_count; i++) {
            size_t n = strlen(w->things[i].token);
            if (strncmp(p + 1, w->things[i].token, n) == 0 && p[n + 1] == '}')
                return &w->things[i];
        }
    return NULL;
}

TEST(a_stranger_cannot_tell_what_exists_in_another_project)
{
    struct world w;
    world_make(&w, true);
    AUTO(door_free) struct door *d = w.d;
    const char *rows = store_text(d), *memory = memory_text(d, memory_of(d), 0);
    size_t tried = 0;
    for (size_t i = 0; i < wish_count; i++) {
        const struct wish *x = &wishes[i];
        if (!x->refers || !may(x, STRANGER))
            continue;
        const struct thing *t = first_thing(&w, x->body);
        CHECK(t != NULL);
        if (!t)
            continue;
        const char *words[4] = { t->id, t->name, t->ghost_id, t->ghost_name };
        for (int named = 0; named < 2; named++) {
            struct answer real = world_ask(&w, STRANGER, NULL, x, named ? BY_NAME : BY_ID);
            struct answer ghost = world_ask(&w, STRANGER, NULL, x, named ? GHOST_NAME : GHOST_ID);
            const char *a = words_of(&w, &real, words), *b = words_of(&w, &ghost, words);
            show(!real.ok && text_is(a, b), x, STRANGER, &real);
            if (!text_is(a, b))
                printf("# there: %s\n# not there: %s\n", a, b);
            tried++;
        }
        CHECK(text_is(rows, store_text(d)) && text_is(memory, memory_text(d, memory_of(d), 0)));
    }
    CHECK(tried > 30);
}

TEST(a_stranger_who_names_the_project_is_told_that_there_is_none)
{
    struct world w;
    world_make(&w, false);
    AUTO(door_free) struct door *d = w.d;
    const char *rows = store_text(d);
    for (enum who who = STRANGER; who <= REMOVED; who++) {
        if (who == NODE_ONE)
            continue;
        for (size_t i = 0; i < wish_count; i++) {
            const struct wish *x = &wishes[i];
            const char *words[4] = { "default", "ghost" };
            if (own_credential(x))
                continue;
            struct answer real = world_ask(&w, who, "default", x, BY_ID),
                          ghost = world_ask(&w, who, "ghost", x, BY_ID);
            show(!real.ok && real.err.rc == RC_NOT_FOUND
                     && text_is(words_of(&w, &real, words), words_of(&w, &ghost, words)),
                 x, who, &real);
        }
    }
    CHECK(text_is(rows, store_text(d)));
}

TEST(what_a_stranger_is_shown_or_makes_has_nothing_of_another_project)
{
    struct world w;
    world_make(&w, true);
    AUTO(door_free) struct door *d = w.d;
    int64_t project = state_project(memory_of(d), "default")->id;
    const char *before = memory_text(d, memory_of(d), project);
    for (size_t i = 0; i < wish_count; i++) {
        const struct wish *x = &wishes[i];
        if (x->refers || !may(x, STRANGER) || verbs[x->verb].kind == VERB_INSIDE)
            continue;
        struct answer a = world_ask(&w, STRANGER, NULL, x, BY_ID);
        for (size_t k = 0; k < w.thing_count; k++)
            if (w.things[k].of_project) {
                const char *name = w.things[k].name;
                bool leaks = strstr(a.text, w.things[k].id)
                             || (!text_is(name, "default")
                                 && strstr(a.text, name)); /* an organisation is called so too */
                show(!leaks, x, STRANGER, &a);
                if (leaks)
                    printf("# it shows %s %s\n", w.things[k].id, w.things[k].name);
            }
        show(a.ok || x->expect, x, STRANGER, &a);
    }
    CHECK(text_is(before, memory_text(d, memory_of(d), project)));
}
