/* auth.h - credential -> caller. The decision is a pure function of facts; the facts come from the writer's memory or, for a
 * reader, from the store, so both doors decide alike.
 *
 * A key is known by a keyed hash alone. A wrong, expired or disabled key gets one and the same answer. */
#pragma once
#include "model/role.h"
#include "store/store.h"
#include "wire/digest.h"

struct keyring { unsigned char hash[32], seal[32]; };           /* kept in files outside the store and its backups */
MUST_CHECK bool keyring_open(struct os *os, const char *folder, struct keyring *out, struct err *err);     /* made at first start, mode 0600 */

struct auth_facts {
    bool found;                         /* there is a key of that hash */
    int64_t key, owner, key_project, expires_ms;
    enum principal owner_kind;
    unsigned key_roles;                 /* what the key is scoped to */
    int key_state, owner_state;         /* 0: active */
    const char *owner_name;
    unsigned owner_roles;               /* platform roles of a user, project roles of a service account */
    bool project_found;                 /* the project it speaks for, if one was asked for or is implied */
    int64_t project, org;
    unsigned member_roles;              /* of the user in that project */
};
/* What these roles may do is what all of the answer may do: an admin can make a key for a viewer. Verbs ask for sets; this is only for scopes. */
unsigned role_reach(unsigned roles);
MUST_CHECK bool auth_decide(const struct auth_facts *f, const char *project_asked, int64_t now_ms, struct caller *out, struct err *err);
/* The facts by the store: for readers, and for servers that do not write. */
MUST_CHECK bool auth_facts_read(struct conn *conn, const char *hash, const char *project, struct arena *mem, struct auth_facts *out, struct err *err);
