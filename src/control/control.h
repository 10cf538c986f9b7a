/* control.h - the one door through which the cloud changes, and is looked at.
 *
 * A request goes in with a credential and a bound body, and comes back on the loop with a reply. Writes are decided by the one writer
 * on its memory and land together (group commit): a good reply means durable. Reads run beside it on connections of their
 * own. Followers get every commit, in order, on the loop, before the replies of that commit. */
#pragma once
#include "model/order.h"
#include "model/role.h"
#include "model/verb.h"
#include "os/os.h"
#include "sched/sched.h"
#include "store/store.h"
#include "wire/digest.h"

struct control;
struct control_config {
    const char *keys;           /* folder of the hashing and sealing keys: outside the store and its backups; made at first start */
    int64_t run_for_s;          /* how long a task may run unseen (on_lost: requeue); 300 */
    int64_t margin_s;           /* after that, before another node gets it; 15 */
    const char *default_image;  /* "host" under `arcus up`; "" : a job must name one */
    const char *ca_pin;         /* SHA-256 of the cloud's authority, for join tokens; "" or NULL: clients know it otherwise */
    int64_t keep_jobs_s, keep_events_s, keep_usage_s;   /* finished jobs; events; usage before it goes to the archive. 0: for ever */
    bool plan;                  /* run the planner (false in tests of verbs) */
    bool shared;                /* other servers may be on this store: the lease is renewed, watched and taken over */
    const char *version;        /* for server.list; may be NULL */
};
/* In an empty store: organisation, project and user `default` and `admin`, with a key written to key_file (mode 0600). */
MUST_CHECK bool control_bootstrap(struct os *os, struct store *store, const char *keys, const char *key_file, bool *made, struct err *err);
/* The authority of the cloud is the store's: the first one that is told stays. pin NULL: there is none yet, and there must not be one in the store. */
MUST_CHECK bool control_authority(struct store *store, const char *keys, const char *pin, struct err *err);
MUST_CHECK bool control_open(struct os *os, struct store *store, const struct control_config *config, struct control **out, struct err *err);
void control_close(struct control *c);          /* after what was asked is done; the loop has stopped and does not run again */

/* What a credential is, before anything is looked up. The loop hashes, so that a secret goes no further. */
struct credential {
    char hash[DIGEST_HEX];      /* keyed hash of the bearer; "" none */
    char project[64];           /* the project asked for, by name or id; "" the key's own, or the only one */
    char address[46], request[24];
};
void control_credential(const struct control *c, const char *bearer, const char *project, const char *address, struct credential *out);

struct request {
    struct post post;           /* the door's, as the next */
    struct reader *reader;
    enum verb_id verb;
    struct credential from;
    struct caller who;          /* filled by the door; a caller inside (planner, link) sets it and leaves from.hash empty */
    const void *body;           /* as verbs[verb].takes says; lives in mem */
    uint64_t given;             /* the rows of the table that were given */
    struct arena *mem;          /* the request's; the door allocates here too */
    const char *idem;           /* Idempotency-Key, or NULL */
    char body_hash[DIGEST_HEX]; /* of the body, to refuse the same key for another wish */
    int64_t if_match;           /* version asked for; 0: none */
    struct rows looked;         /* the door's: what the store has of that key, as of event looked_seq; 0: nobody has looked */
    int64_t looked_seq;
    const struct verb *about;   /* what the caller really asked for, if this is only a step of it; for the audit */
    const char *subject;        /* what a refusal was about, where the body does not say; for the audit */
    struct question *question;  /* the door's: what the planner is asked for it */
    bool again;                 /* somebody who was let in is looked at again: no new act */
    /* --- the answer */
    bool ok, replayed;
    bool audited;               /* its event carries it in the audit chain, or a note of it is on its way there */
    struct err err;
    struct str reply;           /* JSON; the owner of the request frees it */
    int64_t version;            /* for ETag; 0: none */
    void (*on_reply)(void *arg, struct request *r);     /* on the loop */
    void *arg;
};
void control_ask(struct control *c, struct request *r);
/* Something was refused before the door was asked, or after it had let it in: for the audit. who may be nobody. Never waits. */
void control_refused(struct control *c, const char *verb, const struct credential *from, const struct caller *who, enum rc rc);

/* --- followers: what a commit brought, in order */
struct event {
    int64_t seq, at_ms, project;
    const char *kind, *subject, *actor, *data;  /* data: JSON object */
};
struct node_push { int64_t node; struct slice json; };  /* a `desired` message: what changed for that node */
struct commit {
    struct post post;
    const struct event *events;
    size_t event_count;
    const struct node_push *pushes; /* send it if the node's link is up; during its hello keep it until the answer, and drop it then if its generation is not above the answer's */
    size_t push_count;
    struct arena *mem;              /* all of it lives until on_commit returns */
};
void control_follow(struct control *c, void (*on_commit)(void *arg, const struct commit *k), void *arg);   /* before os_run */
void control_unfollow(struct control *c, void *arg);   /* what followed with this arg goes away before control does */
int64_t control_last_event(struct control *c);  /* newest committed number, as of the last commit the loop has seen */

/* Verbs of the agents' connection answer with the message to send down: node.hello (body: struct hello of model/hello.h) with a full
 * `desired`, node.report (body: struct report) with one that has `kept` and `beat`. STREAM verbs check the caller and answer with where
 * the bytes are: {"node":"node-..","attempt":"att-..","volume":"vol-..","state":"running","project":"prj-.."}; attempt is
 * null while nothing was placed. blob.get of a node is allowed only for a blob that a task on it names. */
bool control_ready(const struct control *c, struct err *why);   /* for /readyz: the store answers */

/* --- several servers on one store: one writes, the others stand by and follow. All of this is on the loop. A write that is asked of
 * a server without the lease is answered with RC_NOT_WRITER: nothing was done, and it may be asked of the one that has it. */
bool control_writes(const struct control *c);
bool control_coming(const struct control *c);   /* somebody has the lease and is reading what is there: it will write, nobody knows yet where */
bool control_shared(const struct control *c);
const char *control_writer(const struct control *c);            /* the URL of who writes, if it is another; "": not known */
void control_advertise(struct control *c, const char *url);     /* where others reach this server; until then nobody is told */
const char *control_address(const struct control *c);           /* that; "" not told yet */
void control_watch(struct control *c, void (*on_turn)(void *arg), void *arg);   /* after either of the two has changed; NULL: no more */
/* Gives the lease up once what was asked is done, and takes it no more; done follows when another server writes, or does not in time: until then
 * what is asked is to be passed on. False: nobody else could take it; nothing follows. */
bool control_resign(struct control *c, void (*done)(void *arg), void *arg);
void control_usurp(struct control *c, bool idle);               /* who writes is out of reach: take the lease from it; idle: if it writes nothing */
void control_mac(const struct control *c, const char *text, char out[static DIGEST_HEX]);   /* made with a key that all servers of the cloud have */
