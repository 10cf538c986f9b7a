/* ssh_keys.c - public keys of people's profiles, and which of them let a session in.
 *
 * They are their owner's alone: nobody else lists, adds or removes them, and they open nothing by themselves, since a session must be let in by the door
 * first (job.ssh). What was removed is remembered, so that it does not come in when a client brings it along either; it may be added again. Memory
 * holds none of them: they are asked for when somebody changes them or uses SSH, and what the same commit is about to change is put on top. */
#include "control/call.h"
#include "model/ssh_key.h"

enum { REMEMBERED_MOST = 256, BARRED_MS = 10 * 60 * 1000, BARRED_BYTES = 16 << 10 };

struct own { int64_t id; const char *name, *bare, *comment; int64_t created_ms, removed_ms; };
struct profile { struct own *at; size_t count, room, active, bytes; };

static const char *line_of(struct call *c, const struct own *k)
{
    return arena_printf(c->mem, "%s%s%s", k->bare, *k->comment ? " " : "", k->comment);
}

static bool is_whose(const struct call *c, const struct value *kind_owner)
{
    return kind_owner[0].n == (int64_t)c->who->kind && kind_owner[1].n == c->who->id;
}

static void profile_add(struct call *c, struct profile *p, struct own k)
{
    p->at = arena_more(c->mem, p->at, p->count, &p->room, sizeof *p->at);
    p->at[p->count++] = k;
}

static struct own *find_id(struct profile *p, int64_t id)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].id == id)
            return &p->at[i];
    return NULL;
}

static void strike(struct profile *p, const char *bare, int64_t at_ms)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->at[i].removed_ms && text_is(p->at[i].bare, bare))
            p->at[i].removed_ms = at_ms;
}

/* A verb before this one, of the same commit, whose rows cannot be read yet. */
static void profile_write(struct call *c, struct profile *p, const struct write *w)
{
    const struct value *v = w->args;
    struct own *k;
    if (w->st == ST_SSH_KEY_ADD && is_whose(c, v + 1))
        profile_add(c, p, (struct own){ v[0].n, v[3].text, v[4].text, v[5].text, v[6].n, 0 });
    else if (w->st == ST_SSH_KEY_REMOVE && is_whose(c, v))
        strike(p, v[2].text, v[3].n);
    else if (w->st == ST_SSH_KEY_BACK && (k = find_id(p, v[0].n)))
        *k = (struct own){ k->id, v[1].text, k->bare, v[2].text, v[3].n, 0 };
    else if (w->st == ST_SSH_KEY_FORGET && (k = find_id(p, v[0].n)))
        memmove(k, k + 1, (size_t)(p->at + --p->count - k) * sizeof *k);
}

static bool profile_read(struct call *c, struct profile *p, struct err *err)
{
    struct rows r;
    if (!ROWS(c, SSH_KEY_ALL, &r, err, V_INT(c->who->kind), V_INT(c->who->id), V_INT(REMEMBERED_MOST + 1)))
        return false;
    *p = (struct profile){ .room = r.count + 1, .at = ARENA_ARRAY(c->mem, struct own, r.count + 1) };
    for (size_t i = 0; i < r.count; i++)
        profile_add(c, p, (struct own){ row_int(&r, i, 0), row_text(&r, i, 1), row_text(&r, i, 2), row_text(&r, i, 3), row_int(&r, i, 4), row_int(&r, i, 5) });
    for (size_t i = 0; c->batch && i < c->batch->write_count; i++)
        profile_write(c, p, &c->batch->writes[i]);
    for (size_t i = 0; i < p->count; i++)
        if (!p->at[i].removed_ms) {
            p->active++;
            p->bytes += strlen(line_of(c, &p->at[i])) + 1;
        }
    return true;
}

/* One that lets in, if there is one: an older program may have written a key several times. */
static struct own *find_bare(struct profile *p, const char *bare)
{
    struct own *found = NULL;
    for (size_t i = 0; i < p->count; i++)
        if ((!found || (found->removed_ms && !p->at[i].removed_ms)) && text_is(p->at[i].bare, bare))
            found = &p->at[i];
    return found;
}

static bool name_taken(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->at[i].removed_ms && text_is(p->at[i].name, name))
            return true;
    return false;
}

static void reply(struct call *c, const struct own *k, const char *state)
{
    reply_view(c, &ssh_key_view_fields,
               &(struct ssh_key_view){ k->id, k->name, state, ssh_key_fingerprint(k->bare, c->mem), line_of(c, k), k->created_ms });
}

/* ada@desk becomes ada-desk; what leaves nothing, or a name that is taken, becomes key-1f0c39d2. */
static const char *name_from(struct call *c, const struct profile *p, const char *comment, const char *bare)
{
    char out[64], hex[DIGEST_HEX];
    size_t n = 0;
    for (const char *at = comment; *at && n + 1 < sizeof out; at++) {
        char l = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        bool good = (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9');
        if (good || (n && out[n - 1] != '-'))
            out[n++] = good ? l : '-';
    }
    while (n && out[n - 1] == '-')
        n--;
    const char *name = arena_bytes(c->mem, out, n);
    struct err ignored;
    if (n && name_check(name, PREFIX_SSH_KEY, &ignored) && !name_taken(p, name))
        return name;
    digest_sha256(bare, strlen(bare), hex);
    return arena_printf(c->mem, "key-%.8s", hex);
}

static bool room_for(const struct profile *p, size_t bytes, struct err *err)
{
    if (p->active >= SSH_KEYS_MOST)
        return err_set(err, RC_OVER_QUOTA, "your profile has %d public keys, and may have no more; remove one first", SSH_KEYS_MOST);
    return p->bytes + bytes <= SSH_KEYS_BYTES
           || err_set(err, RC_OVER_QUOTA, "the public keys of your profile would be longer than %d KB together; remove one first", SSH_KEYS_BYTES >> 10);
}

/* Of those that were removed the one that was so longest ago. */
static void forget_oldest(struct call *c, const struct profile *p)
{
    const struct own *oldest = NULL;
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].removed_ms && (!oldest || p->at[i].removed_ms < oldest->removed_ms))
            oldest = &p->at[i];
    if (oldest)
        EMIT(c, SSH_KEY_FORGET, V_INT(oldest->id));
}

/* A profile is of no project: those who look at one are told nothing. */
static void tell(struct call *c, const char *kind, const struct own *k)
{
    emit_event(c, 0, kind, id_of(c, PREFIX_SSH_KEY, k->id),
               arena_printf(c->mem, "{\"name\":\"%s\",\"fingerprint\":\"%s\"}", k->name, ssh_key_fingerprint(k->bare, c->mem)));
}

bool ssh_key_add(struct call *c, const void *body, struct err *err)
{
    const struct ssh_key_ask *ask = body;
    const char *line, *comment;
    struct profile p;
    if (!ssh_key_parse(ask->key, c->mem, &line, err)) {
        struct err why = *err;
        return err_field(err, "key", "%s", why.text);
    }
    if (!key_is_owners(c, "add public keys to", err) || !key_stays(c, "add public keys to", err))
        return false;
    if ((text_given(ask->name) && !name_check(ask->name, PREFIX_SSH_KEY, err)) || !profile_read(c, &p, err))
        return false;
    const char *bare = ssh_key_bare(line, c->mem, &comment);
    struct own *k = find_bare(&p, bare);
    if (k && !k->removed_ms) {
        if (text_given(ask->name) && !text_is(ask->name, k->name))
            return err_set(err, RC_CONFLICT, "this key is in your profile already, as '%s'", k->name);
        reply(c, k, "active");
        return true;
    }
    const char *name = text_given(ask->name) ? ask->name : name_from(c, &p, comment, bare);
    if (!room_for(&p, strlen(line) + 1, err))
        return false;
    if (name_taken(&p, name))
        return err_set(err, RC_CONFLICT, "the name '%s' is taken by another key of your profile", name);
    if (!k && p.count >= REMEMBERED_MOST)
        forget_oldest(c, &p);
    struct own fresh = { k ? k->id : new_id(c), name, bare, comment, c->now_ms, 0 };
    if (k)
        EMIT(c, SSH_KEY_BACK, V_INT(k->id), V_TEXT(name), V_TEXT(comment), V_INT(c->now_ms));
    else
        EMIT(c, SSH_KEY_ADD, V_INT(fresh.id), V_INT(c->who->kind), V_INT(c->who->id), V_TEXT(name), V_TEXT(bare), V_TEXT(comment), V_INT(c->now_ms));
    tell(c, "ssh_key.added", &fresh);
    reply(c, &fresh, "active");
    return true;
}

static bool is_named(struct call *c, const struct own *k, const char *ref)
{
    int64_t id;
    return id_parse(ref, PREFIX_SSH_KEY, &id) ? k->id == id : text_is(k->name, ref) || text_is(ssh_key_fingerprint(k->bare, c->mem), ref);
}

bool ssh_key_remove(struct call *c, const void *body, struct err *err)
{
    const struct ssh_key_ask *ask = body;
    struct profile p;
    if (!key_is_owners(c, "remove public keys of", err) || !profile_read(c, &p, err))
        return false;
    for (size_t i = 0; i < p.count; i++) {
        struct own *k = &p.at[i];
        if (k->removed_ms || !is_named(c, k, ask->ssh_key))
            continue;
        EMIT(c, SSH_KEY_REMOVE, V_INT(c->who->kind), V_INT(c->who->id), V_TEXT(k->bare), V_INT(c->now_ms));
        tell(c, "ssh_key.removed", k);
        reply(c, k, "removed");
        return true;
    }
    return err_set(err, RC_NOT_FOUND, "there is no public key '%s' in your profile", ask->ssh_key);
}

bool ssh_key_list(struct call *c, const void *body, struct err *err)
{
    const struct page_ask *ask = body;
    int64_t after = 0;
    struct rows r;
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_SSH_KEY, &after))
        return err_field(err, "page", "this is not the `next` of a page before");
    if (!ROWS(c, SSH_KEY_LIST, &r, err, V_INT(c->who->kind), V_INT(c->who->id), V_INT(after), V_INT(ask->limit + 1)))
        return false;
    struct list l = list_open(c);
    size_t n = MIN(r.count, (size_t)ask->limit);
    for (size_t i = 0; i < n; i++) {
        struct own k = { row_int(&r, i, 0), row_text(&r, i, 1), row_text(&r, i, 2), row_text(&r, i, 3), row_int(&r, i, 4), 0 };
        list_add(&l, &ssh_key_view_fields,
                 &(struct ssh_key_view){ k.id, k.name, "active", ssh_key_fingerprint(k.bare, c->mem), line_of(c, &k), k.created_ms });
    }
    list_close(&l, r.count > n ? id_of(c, PREFIX_SSH_KEY, row_int(&r, n - 1, 0)) : NULL);
    return true;
}

/* --- of a session */

static bool among(struct call *c, const struct texts *lines, const char *bare)
{
    const char *ignored;
    for (size_t i = 0; i < lines->count; i++)
        if (text_is(ssh_key_bare(lines->at[i], c->mem, &ignored), bare))
            return true;
    return false;
}

static bool add_brought(struct call *c, struct profile *p, const char *text, struct texts *let_in, bool *removed, struct err *err)
{
    const char *line, *comment;
    if (!ssh_key_parse(text, c->mem, &line, err)) {
        struct err why = *err;
        return err_field(err, "keys", "%s", why.text);
    }
    const char *bare = ssh_key_bare(line, c->mem, &comment);
    const struct own *k = find_bare(p, bare);
    *removed |= k && k->removed_ms;
    if (!(k && k->removed_ms) && !among(c, let_in, bare))
        let_in->at[let_in->count++] = line;
    return true;
}

/* let_in: the profile's, and what was brought and not removed from it. barred: what was removed so lately that an earlier session may have left it where
 * it would still let this one in (agent/authorized_keys.c strikes its own lines when a session begins after five minutes). */
bool ssh_keys_settle(struct call *c, const struct texts *brought, struct texts *let_in, struct texts *barred, struct err *err)
{
    struct profile p;
    bool removed = false;
    if (!profile_read(c, &p, err))
        return false;
    *let_in = (struct texts){ ARENA_ARRAY(c->mem, const char *, p.count + brought->count + 1), 0 };
    *barred = (struct texts){ ARENA_ARRAY(c->mem, const char *, p.count + 1), 0 };
    size_t bytes = 0;
    for (size_t i = 0; i < p.count; i++)
        if (!p.at[i].removed_ms && !among(c, let_in, p.at[i].bare))
            let_in->at[let_in->count++] = line_of(c, &p.at[i]);
    for (size_t i = p.count; i-- > 0;)
        if (p.at[i].removed_ms > c->now_ms - BARRED_MS && find_bare(&p, p.at[i].bare)->removed_ms && (bytes += strlen(p.at[i].bare) + 1) <= BARRED_BYTES)
            barred->at[barred->count++] = p.at[i].bare;
    for (size_t i = 0; i < brought->count; i++)
        if (!add_brought(c, &p, brought->at[i], let_in, &removed, err))
            return false;
    return let_in->count
           || err_field(err, "keys", removed ? "the key was removed from your profile; add it again (`arcus ssh-keys add FILE`), or bring another"
                                             : "which public key may come in? There is none in your profile (`arcus ssh-keys add FILE`), and none was brought");
}
