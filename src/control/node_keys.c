/* node_keys.c - how a machine becomes a node, and how its key is replaced while it works.
 *
 * A token is good for one machine and a short time. The machine makes its key itself and keeps it before it asks, so whoever asks
 * again with the same key is the same machine whose answer was lost; anybody else with that token is a stranger. A node has one key
 * in use and at most one that waits: the old one stays good until the new one was used, so that no crash between the two locks a
 * node out. */
#include "control/call.h"
#include <ctype.h>

enum { TOKEN_S = 3600, KEY_DAYS = 7 };
static const int64_t hour_ms = 3600 * 1000, key_ms = INT64_C(86400) * 1000 * KEY_DAYS;

bool node_token(struct call *c, const void *body, struct err *err)
{
    (void)err;
    const struct node_token_ask *ask = body;
    struct token *t = ARENA_NEW(c->s->mem, struct token);
    unsigned char random[32];
    char secret[SECRET_TEXT];
    const char *pin = control_settings(c->control)->ca_pin;
    control_random(c->control, random, sizeof random);
    secret_make(random, "jt_", secret);
    t->id = new_id(c);
    int64_t good_ms = (ask->expires_in_s > 0 ? ask->expires_in_s : TOKEN_S) * 1000;
    t->expires_ms = c->now_ms + good_ms;
    t->expires_boot_ms = c->boot_ms + good_ms;      /* a wall clock that is set back makes it no better */
    digest_keyed(control_keys(c->control)->hash, secret, t->hash);
    map_put_text(c->s->tokens, t->hash, t);
    EMIT(c, TOKEN_ADD, V_INT(t->id), V_TEXT(t->hash), V_INT(c->now_ms), V_INT(t->expires_ms));
    emit_event(c, 0, "node.token", id_of(c, "tok", t->id), NULL);
    struct token_view view = { .id = t->id,
                               .name = "join",
                               .state = "active",
                               .token = text_given(pin) ? arena_printf(c->mem, "%s.%s", secret, pin)
                                                        : secret,
                               .expires_ms = t->expires_ms };
    reply_view(c, &token_view_fields, &view);
    return true;
}

/* One that was made as we make them: nobody can guess it. */
static bool key_check(const char *key, struct err *err)
{
    size_t n = 0;
    while (text_starts(key, "nk_") && isalnum((unsigned char)key[3 + n]))
        n++;
    return (n == 43 && !key[3 + n])
           || err_field(err, "key", "a node's key is nk_ and 43 letters and digits by chance");
}

static void key_hash(struct call *c, const char *key, char hash[static DIGEST_HEX])
{
    digest_keyed(control_keys(c->control)->hash, key, hash);
}

static struct node *node_with(struct call *c, const char *key)
{
    char hash[DIGEST_HEX];
    if (!text_given(key))
        return NULL;
    key_hash(c, key, hash);
    const struct apikey *k = map_get_text(c->s->key_hashes, hash);
    return k && k->owner_kind == PRINCIPAL_NODE && !k->state ? map_get(c->s->nodes, k->owner) : NULL;
}

static void joined_reply(struct call *c, const struct node *n, const char *key)
{
    struct join_view view = { .id = n->id, .name = n->name, .state = "joined", .key = key };
    reply_view(c, &join_view_fields, &view);
}

bool node_join(struct call *c, const void *body, struct err *err)
{
    const struct node_join_ask *ask = body;
    char hash[DIGEST_HEX];
    size_t length = strcspn(ask->token, "."); /* the authority's hash is for the agent */
    digest_keyed(control_keys(c->control)->hash, arena_bytes(c->mem, ask->token, length), hash);
    if (text_given(ask->key) && !key_check(ask->key, err))
        return false;
    struct node *n = node_with(c, ask->key);
    if (n)
        return joined_reply(c, n, NULL), true;
    struct token *t = map_get_text(c->s->tokens, hash);
    if (!t || t->expires_ms <= c->now_ms || t->expires_boot_ms <= c->boot_ms)
        return err_set(err, RC_UNAUTHENTICATED,
                       "this join token is not valid: it was used, has expired or never was; make "
                       "one: arcus nodes token");
    if (!name_check(ask->name, PREFIX_NODE, err))
        return false;
    if (map_get_text(c->s->node_names, ask->name))
        return err_set(
            err, RC_CONFLICT,
            "there is a node '%s' already; choose another name, or remove that one first",
            ask->name);
    n = state_add_node(c->s, new_id(c), ask->name, c->now_ms);
    n->heard_boot_ms = c->boot_ms;
    (void)!state_node_info(n, "{}", err);
    map_take_text(c->s->tokens, hash);
    EMIT(c, NODE_ADD, V_INT(n->id), V_TEXT(n->name), V_TEXT("{}"), V_INT(c->now_ms));
    EMIT(c, TOKEN_USE, V_INT(t->id), V_INT(c->now_ms), V_INT(n->id));
    struct key_view key;
    key_keep(c, PRINCIPAL_NODE, n->id, 0, ROLE_NODE, n->name, "nk_", 0, ask->key, &key);
    emit_event(c, 0, "node.joined", id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
    joined_reply(c, n, text_given(ask->key) ? NULL : key.key);
    return true;
}

static void key_drop(struct call *c, struct apikey *k)
{
    EMIT(c, KEY_STATE, V_INT(k->id), V_INT(1));
    state_drop_key(c->s, k);
}

/* A node brings its next key. Asked again with the same one it is the same; another one takes the place of one that waits. */
bool node_rekey(struct call *c, const void *body, struct err *err)
{
    const struct node_key_ask *ask = body;
    struct node *n = map_get(c->s->nodes, c->who->id);
    char hash[DIGEST_HEX];
    if (!n || !n->key)
        return err_set(err, RC_DENIED, "this node was removed");
    if (!key_check(ask->key, err))
        return false;
    key_hash(c, ask->key, hash);
    struct apikey *known = map_get_text(c->s->key_hashes, hash);
    if (known && known == n->next_key)
        return joined_reply(c, n, NULL), true;
    if (known)
        return err_field(err, "key", "this key is in use; make a new one");
    if (c->who->key != n->key->id) /* with the next key: that one is in use now */
        node_key_used(c, n);
    if (n->next_key)
        key_drop(c, n->next_key);
    struct key_view key;
    key_keep(c, PRINCIPAL_NODE, n->id, 0, ROLE_NODE, n->name, "nk_", 0, ask->key, &key);
    emit_event(c, 0, "node.rekeyed", id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
    joined_reply(c, n, NULL);
    return true;
}

void node_key_used(struct call *c, struct node *n)
{
    if (!n->next_key || c->who->key != n->next_key->id)
        return;
    key_drop(c, n->key);
    emit_event(c, 0, "node.key-dropped", id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
}

/* It is told with every answer until it has done so. One that waits for long was lost by its node: it may bring another. */
bool node_key_is_old(const struct node *n, int64_t now_ms)
{
    return n->key && (n->key->created_ms <= n->rotate_ms || now_ms - n->key->created_ms > key_ms)
           && (!n->next_key || now_ms - n->next_key->created_ms > hour_ms);
}

bool node_rotate(struct call *c, const void *body, struct err *err)
{
    const struct node_ask *ask = body;
    struct node *n = state_node(c->s, ask->node);
    if (!n)
        return err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
    n->rotate_ms = c->now_ms;
    n->version++;
    EMIT(c, NODE_ROTATE, V_INT(n->id), V_INT(n->rotate_ms), V_INT(n->version));
    emit_event(c, 0, "node.rotate", id_of(c, PREFIX_NODE, n->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", n->name));
    node_tell(c, n);
    node_reply(c, n);
    return true;
}
