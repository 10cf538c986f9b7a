/* bootstrap.c - the first start: an organisation, a project, one person who may do everything,
 * and that person's key. The key's file is written before the rows, so that a crash between the
 * two only means that it is made again.
 *
 * Every later start checks that the master keys are those of the store: a server that joined with
 * keys of its own would know nobody, and seal secrets that no other can open; with an authority of
 * its own nobody would know it. */
#include "control/control_internal.h"
#include <stdio.h>

/* Tells one keyring from another, and nothing about either. */
static void keyring_name(const struct keyring *ring, char out[static DIGEST_HEX])
{
    char seal[DIGEST_HEX], both[DIGEST_HEX + 16];
    digest_keyed(ring->seal, "the keys of a cloud", seal);
    snprintf(both, sizeof both, "keyring\n%s", seal);
    digest_keyed(ring->hash, both, out);
}

static bool setting(struct conn *conn, const char *name, struct arena *mem, const char **out, struct err *err)
{
    struct rows r;
    if (!store_query(conn, ST_SETTING_GET, (struct value[]){ V_TEXT(name) }, 1, mem, &r, err))
        return false;
    return *out = r.count ? row_text(&r, 0, 0) : NULL, true;
}

static bool wrong_keys(const char *keys, struct err *err)
{
    return err_set(err, RC_CONFLICT, "the keys in %s are not those of this store: copy the folder of keys from a "
                   "server of this cloud, or from its backup, and name it with --keys", keys);
}

/* A store that knows none gets ours; whoever was faster is believed. */
static bool settle(struct conn *conn, const char *name, const char *ours, struct arena *mem, const char **known,
                   struct err *err)
{
    struct value args[] = { V_TEXT(name), V_TEXT(ours) };
    bool unknown;
    return setting(conn, name, mem, known, err)
        && (*known || (store_commit(conn, &(struct write){ ST_SETTING_SET, 2, args }, 1, &unknown, err)
                       && setting(conn, name, mem, known, err)));
}

static bool keys_fit(struct conn *conn, const struct keyring *ring, const char *keys, struct arena *mem,
                     struct err *err)
{
    char name[DIGEST_HEX];
    const char *known;
    keyring_name(ring, name);
    return settle(conn, "keyring", name, mem, &known, err) && (text_is(known, name) || wrong_keys(keys, err));
}

bool control_authority(struct store *store, const char *keys, const char *pin, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(conn_close) struct conn *conn = NULL;
    const char *known;
    if (!conn_open(store, true, &conn, err)
        || !(pin ? settle(conn, "authority", pin, mem, &known, err) : setting(conn, "authority", mem, &known, err)))
        return false;
    if (pin ? text_is(known, pin) : !known)
        return true;
    return err_set(err, RC_CONFLICT, "the authority in %s (ca.pem, ca.key) %s: copy both from a server of this cloud, for its "
                   "nodes and clients know it by them", keys, pin ? "is not that of this store" : "is missing, and this store has one");
}

bool control_bootstrap(struct os *os, struct store *store, const char *keys, const char *key_file,
                       bool *made, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(conn_close) struct conn *conn = NULL;
    struct keyring ring;
    struct rows r;
    const char *known;
    *made = false;
    if (!digest_start() || !conn_open(store, true, &conn, err) || !setting(conn, "keyring", mem, &known, err))
        return false;
    if (known && !disk_exists(os, arena_printf(mem, "%s/hash.key", keys))) /* and none are made for it */
        return wrong_keys(keys, err);
    if (!keyring_open(os, keys, &ring, err) || !keys_fit(conn, &ring, keys, mem, err)
        || !store_query(conn, ST_LOAD_PERSON, NULL, 0, mem, &r, err))
        return false;
    if (r.count > 0)
        return true;
    struct id_maker ids = { 0 };
    unsigned char random[32];
    char secret[SECRET_TEXT], hash[DIGEST_HEX], hint[16], line[SECRET_TEXT + 1];
    os_random(os, &ids.rng.s, sizeof ids.rng.s);
    os_random(os, random, sizeof random);
    secret_make(random, "ak_", secret);
    digest_keyed(ring.hash, secret, hash);
    snprintf(hint, sizeof hint, "%.7s...", secret);
    snprintf(line, sizeof line, "%s\n", secret);
    if (!file_replace(os, key_file, SLICE(line), 0600, err))
        return err_wrap(err, "the admin's key");
    int64_t now = os_wall_ms(os), org = id_make(&ids, now), project = id_make(&ids, now),
            person = id_make(&ids, now), key = id_make(&ids, now);
    char subject[ID_TEXT];
    struct value orgs[] = { V_INT(org), V_TEXT("default"), V_INT(now) };
    struct value projects[]
        = { V_INT(project), V_INT(org), V_TEXT("default"), V_INT(0), V_TEXT("{}"), V_INT(now) };
    struct value persons[]
        = { V_INT(person), V_TEXT("admin"), V_TEXT(""), V_INT(ROLE_OPERATOR), V_INT(now) };
    struct value members[] = { V_INT(project), V_INT(person), V_INT(ROLE_ADMIN) };
    struct value apikeys[]
        = { V_INT(key),          V_INT(PRINCIPAL_USER), V_INT(person), V_INT(0),   V_INT(0),
            V_TEXT("first key"), V_TEXT(hint),          V_TEXT(hash),  V_INT(now), V_INT(0) };
    struct value events[] = { V_INT(1),
                              V_INT(now),
                              V_INT(0),
                              V_TEXT("cloud.started"),
                              V_TEXT(id_text(subject, PREFIX_USER, person)),
                              V_TEXT("arcus"),
                              V_INT(0),
                              V_INT(0),
                              V_TEXT(""),
                              V_TEXT(""),
                              V_TEXT(NULL),
                              V_TEXT("{}"),
                              V_NULL,
                              V_NULL,
                              V_NULL,
                              V_NULL };
    struct write writes[] = {
        { ST_ORG_ADD, (int)COUNT(orgs), orgs },
        { ST_PROJECT_ADD, (int)COUNT(projects), projects },
        { ST_PERSON_ADD, (int)COUNT(persons), persons },
        { ST_MEMBER_SET, (int)COUNT(members), members },
        { ST_KEY_ADD, (int)COUNT(apikeys), apikeys },
        { ST_EVENT_ADD, (int)COUNT(events), events },
    };
    bool unknown;
    if (!store_commit(conn, writes, COUNT(writes), &unknown, err)) {
        struct err ignored;             /* another server may have made them at the same moment */
        if (err->rc != RC_CONFLICT || !store_query(conn, ST_LOAD_PERSON, NULL, 0, mem, &r, &ignored) || !r.count)
            return err_wrap(err, "the first rows");
        return file_remove(os, key_file, err);
    }
    return *made = true, true;
}
