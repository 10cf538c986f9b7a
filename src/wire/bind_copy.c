/* bind_copy.c - a struct that was bound into one document's memory, copied into memory of its own: what printing and reading
 * it back would give, without the printing and the reading. */
#include "wire/bind.h"
#include "wire/bind_value.h"

static void copy_rows(const struct fields *fields, const char *from, struct arena *mem, char *to);

static void copy_texts(struct texts *t, struct arena *mem)
{
    const char **at = ARENA_ARRAY(mem, const char *, t->count);
    for (size_t i = 0; i < t->count; i++)
        at[i] = arena_text(mem, t->at[i]);
    t->at = at;
}

static void copy_pairs(struct pairs *p, struct arena *mem)
{
    struct pair *at = ARENA_ARRAY(mem, struct pair, p->count);
    for (size_t i = 0; i < p->count; i++)
        at[i] = (struct pair){ arena_text(mem, p->at[i].key), arena_text(mem, p->at[i].value) };
    p->at = at;
}

static void copy_objects(const struct fields *sub, struct objects *o, struct arena *mem)
{
    char *at = arena_take(mem, o->count, sub->size);
    for (size_t i = 0; i < o->count; i++)
        bind_copy(sub, (const char *)o->at + i * sub->size, mem, at + i * sub->size);
    o->at = at;
}

/* `to` holds the bytes of `from` already. Two rows may lead to one member: what is no longer the pointer of `from` was copied. */
static void copy_member(const struct field *f, const char *from, struct arena *mem, char *to)
{
    bool points = f->type == F_TEXT || f->type == F_JSON || f->type == F_TEXTS || f->type == F_PAIRS
               || f->type == F_OBJECTS;
    void *before, *now;
    if (f->type == F_OBJECT)
        copy_rows(f->sub, from, mem, to);
    if (!points)
        return;
    memcpy(&before, from, sizeof before);
    memcpy(&now, to, sizeof now);
    if (!before || before != now)
        return;
    if (f->type == F_TEXTS)
        copy_texts((struct texts *)to, mem);
    else if (f->type == F_PAIRS)
        copy_pairs((struct pairs *)to, mem);
    else if (f->type == F_OBJECTS)
        copy_objects(f->sub, (struct objects *)to, mem);
    else
        *(const char **)to = arena_text(mem, before);
}

static void copy_rows(const struct fields *fields, const char *from, struct arena *mem, char *to)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *f = &fields->rows[i];
        if (f->type == F_INLINE)
            copy_rows(f->sub, from, mem, to);
        else
            copy_member(f, from + f->offset, mem, to + f->offset);
    }
}

void bind_copy(const struct fields *fields, const void *from, struct arena *mem, void *to)
{
    memcpy(to, from, fields->size);
    copy_rows(fields, from, mem, to);
}
