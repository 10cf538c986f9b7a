/* call.h - what a verb has in its hands while it runs, and the words it says its changes with.
 *
 * A write verb checks everything first, then changes the memory and emits the same change as rows and one event or more; after its
 * first change it cannot fail. A read verb has a connection and no memory. Nothing here locks or waits. */
#pragma once
#include "control/state.h"
#include "model/view.h"
#include "sched/why.h"
#include "wire/bind.h"

struct batch {                  /* what all verbs of one commit want written; lives in its own arena */
    struct arena *mem;
    struct write *writes;
    size_t write_count, write_room;
    struct event *events;
    size_t event_count, event_room;
    struct sched_event *news;   /* for the planner */
    size_t news_count, news_room, news_first;   /* news_first: room that is made for them at first; 0: as usual */
    struct arena *news_mem;     /* where they are; NULL: in mem */
    int64_t *nodes;             /* that have something to be pushed */
    size_t node_count, node_room;
    bool asked;                 /* by somebody outside: the answer counts even if nothing is written */
    bool light, later;          /* it is decided on the loop, where nobody waits for the store; a verb would have had to, and did nothing */
};

struct call {
    struct control *control;
    struct state *s;            /* NULL in a read */
    struct conn *conn;          /* a reader's; in a write the writer's own, for what memory does not hold: see call_conn */
    struct batch *batch;        /* NULL in a read */
    struct request *r;
    const struct caller *who;
    struct arena *mem;          /* the request's */
    int64_t now_ms, boot_ms;
    size_t first_event;         /* 1 + the number of the write that is this request's first event; 0: none */
    size_t idem_write, idem_event;  /* 1 + the number of the write and the event that carry this request's Idempotency-Key; 0: none */
};

/* Was this asked to be written about a blob, by a verb of the same commit? Its rows cannot be read yet. */
bool emitted_blob(const struct call *c, enum statement st, int64_t project, const char *digest);
void emit(struct call *c, enum statement st, const struct value *args, int count);
#define EMIT(c, st, ...) emit((c), ST_##st, (struct value[]){ __VA_ARGS__ }, (int)COUNT(((struct value[]){ __VA_ARGS__ })))
/* An event of this commit. `data` is JSON, or NULL for {}. The number and the audit fields are put here. */
void emit_event(struct call *c, int64_t project, const char *kind, const char *subject, const char *data);
struct sched_event *emit_news(struct call *c, enum sched_kind kind);
void mesh_tell(struct call *c, const struct project *p, const struct node *but);    /* mesh.c: where its addresses are has changed; `but` is told anyway */
void mesh_move(struct call *c, struct node *n, bool held);
struct objects mesh_of(struct call *c, struct node *n, bool full);              /* struct net_part: what n does not know yet */
uint32_t addresses_next(struct call *c, const struct job *j, const struct node *n);     /* addresses.c: for one that is placed now; 0: none */
void node_changed(struct call *c, struct node *n, struct attempt *a);           /* the node gets this order again */
void order_shorten(struct call *c, struct attempt *a);                          /* nobody begins it any more: its node may have room again */
void node_tell(struct call *c, struct node *n);                                 /* something else of its desired set has changed */
void node_gone(struct call *c, struct node *n, int64_t attempt);                /* the node may forget it */
const char *id_of(struct call *c, const char *prefix, int64_t id);              /* text in the request's arena */
int64_t new_id(struct call *c);
MUST_CHECK bool name_check(const char *name, const char *prefix, struct err *err);     /* a name must not read as an id of its kind */
bool was_given(const struct call *c, const char *field);                         /* the caller named this field of the verb */

void reply_view(struct call *c, const struct fields *fields, const void *view);
/* A list is opened, filled and closed; next NULL: there is no further page. */
struct list { struct json_out out; };
struct list list_open(struct call *c);
void list_add(struct list *l, const struct fields *fields, const void *view);
void list_close(struct list *l, const char *next);
/* To read with: in a write, all that was decided before it is in the store then. False: it is decided where nobody may wait for that, and will be again
 * where it may. */
MUST_CHECK bool call_conn(const struct call *c, struct conn **out, struct err *err);
bool rows_of(struct call *c, enum statement st, const struct value *args, int count, struct rows *out, struct err *err);
#define ROWS(c, st, out, err, ...) rows_of((c), ST_##st, (struct value[]){ __VA_ARGS__ }, (int)COUNT(((struct value[]){ __VA_ARGS__ })), (out), (err))

/* Verbs, one function each; handlers.c has the table. */
struct handler {
    bool (*run)(struct call *c, const void *body, struct err *err);
    bool (*prepare)(struct call *c, const void *body, struct err *err);     /* slow work before the writer (passwords); a reader's hands */
    bool (*ask)(struct call *c, const void *body, struct err *err);         /* of a VERB_ASK: fills r->question before the planner is asked; run tells the answer */
    bool once;                  /* its reply shows a secret: it is not given again for the same Idempotency-Key */
};
extern const struct handler handlers[VERB_COUNT];
void control_random(struct control *c, void *out, size_t n);
const struct keyring *control_keys(const struct control *c);
const struct control_config *control_settings(const struct control *c);
size_t lease_servers(struct control *c, struct arena *mem, const char ***out, int64_t *version);   /* URLs of the servers that live; the writer's actor */
#define VERB(name) bool name(struct call *c, const void *body, struct err *err)
/* keys.c - who changes what its owner keeps for good must come with all of its owner's roles here; and who adds to it with a key that stays, or a session. */
MUST_CHECK bool key_is_owners(struct call *c, const char *what, struct err *err);
MUST_CHECK bool key_stays(struct call *c, const char *what, struct err *err);
VERB(login); VERB(login_prepare); VERB(whoami); VERB(password_change); VERB(password_prepare); VERB(org_create); VERB(org_list);
VERB(project_create); VERB(project_list); VERB(project_get); VERB(project_update); VERB(quota_list); VERB(quota_set); VERB(job_queue); VERB(job_why); VERB(job_why_ask); VERB(job_plan); VERB(job_plan_ask); VERB(member_list); VERB(member_set); VERB(member_remove);
VERB(user_create); VERB(user_prepare); VERB(user_list); VERB(user_update); VERB(account_create); VERB(account_list); VERB(account_disable);
VERB(key_create); VERB(key_list); VERB(key_disable); VERB(ssh_key_add); VERB(ssh_key_list); VERB(ssh_key_remove); VERB(secret_set); VERB(secret_list); VERB(secret_remove);
VERB(volume_create); VERB(volume_list); VERB(volume_remove); VERB(volume_files); VERB(image_add); VERB(image_list); VERB(image_remove);
VERB(blob_put); VERB(blob_head); VERB(blob_get); VERB(blob_add); VERB(job_submit); VERB(job_batch); VERB(job_list); VERB(job_get); VERB(job_update);
VERB(job_cancel); VERB(job_suspend); VERB(job_resume); VERB(job_stop); VERB(job_start); VERB(job_tasks); VERB(job_attempts); VERB(job_stream); VERB(job_exec); VERB(job_dial); VERB(job_ssh); VERB(job_files); VERB(job_place); VERB(job_tick);
VERB(node_token); VERB(node_join); VERB(node_rekey); VERB(node_rotate); VERB(node_list); VERB(node_get); VERB(node_update); VERB(node_drain); VERB(node_lost); VERB(node_remove); VERB(fleet_get); VERB(rules_get); VERB(rules_set); VERB(reserve_create); VERB(reserve_list); VERB(reserve_get); VERB(reserve_remove); VERB(node_link); VERB(node_stream);
VERB(node_hello); VERB(node_report); VERB(gpu_list); VERB(gpu_live); VERB(metrics); VERB(flavor_list); VERB(event_list); VERB(usage_sum); VERB(trace_list); VERB(backup); VERB(server_list);
VERB(data_drop); VERB(data_drop_prepare); VERB(audit_note); VERB(audit_list); VERB(audit_verify);

/* What the planner is asked about, and its answer. Lives with the request. */
struct question {
    struct sched_event *job;
    bool waits;                 /* it is there; else it is only asked about */
    const char *refused;        /* the door would not take it: the planner is not asked */
    bool answered;
    struct why why;
};
/* Shared by several verbs. */
void why_words(struct call *c, const struct question *q, const struct job *j, struct why_view *v);   /* fills v from what the planner said; j may be one that is not there */
struct submission { struct project *project; int64_t jobs, disk_mib; size_t bytes; const char *workdir; };   /* what the jobs of one request take, so far as they were checked */
struct job_wish { struct job_spec spec; struct shape shape; const char *text; bool uses_workdir; };                   /* one that may be taken */
MUST_CHECK bool job_check(struct call *c, struct submission *s, const struct job_spec *ask, struct job_wish *out, struct err *err);
struct job *job_accept(struct call *c, struct project *p, const struct job_wish *wish, const char *idem);
const char *limit_whose(struct call *c, const struct project *p, int64_t owner);     /* "user ada of project vision" */
struct interval;
void usage_roll(struct call *c, const struct interval *i);                        /* into the sums of its days */
void usage_unroll(struct call *c, const struct interval *i);                      /* out of them again */
void attempt_part(struct attempt *a, int64_t id, const struct interval *i);       /* of its usage, written while it runs */
void attempt_parts_put(const struct attempt *a, struct json_out *o);              /* into its lease */
int64_t attempt_parts_cut(struct call *c, struct attempt *a, int64_t ended_ms);   /* it had ended by then: so none of them is longer; when it has, as far as that can be */
void attempt_parts_void(struct call *c, struct attempt *a);                       /* they are not billed after all */
void job_may_run(struct call *c, struct job *j);                                /* something that blocked it has gone: if it was the last, its age begins now */
void job_write(struct call *c, struct job *j);                                  /* its row as memory has it; version + 1 */
void task_write(struct call *c, struct task *t, const char *detail);
void job_settle(struct call *c, struct job *j);                                 /* are all its tasks over? then so is it */
void task_over(struct call *c, struct task *t, enum job_news news, enum outcome outcome, const char *detail);
void task_waits(struct call *c, struct task *t, const char *detail);             /* queued again: its row, its job's, and the planner is told */
void task_stop(struct call *c, struct task *t, int64_t grace_s);                /* what runs of it is cancelled; grace_s below 0: the job's own */
/* gang.c: of jobs that are no gang nothing happens. */
bool gang_gathers(struct job *j, int64_t *not_before_ms);                       /* some of its tasks wait for the others to end, and to start again with them */
void gang_gather(struct call *c, struct task *first, enum outcome how);         /* `first` has ended and waits: so must all others */
void gang_give_up(struct call *c, const struct task *first);                    /* it has ended for good: so must all others */
struct ending { enum outcome outcome; enum blame blame; int64_t started_ms, ended_ms, exit_code, signal, not_before_ms; const char *detail; };
void attempt_over(struct call *c, struct attempt *a, const struct ending *how); /* closes it, its usage, and moves its task on */
/* What is metered changes: an interval ends, and what of it counts is told to the planner by `freed`. */
void attempt_stretch(struct call *c, struct attempt *a, int64_t until_ms, struct sched_event *freed);
bool gpus_may_return(struct call *c, const struct attempt *a);                  /* the GPUs that a suspended one had are free for it */
void attempt_end_soon(struct call *c, struct attempt *a, enum outcome as, const char *why);     /* SIGTERM, then SIGKILL after its grace period, and its end is told as that */
bool disk_may(const struct state *s, const struct node *n, const struct job *j); /* disk_room.c: the node can keep one, or it is known that it keeps none */
MUST_CHECK bool disk_check(const struct call *c, const struct project *p, const struct job_spec *spec, int64_t others_mib, struct err *err);  /* of an instance; others_mib: of the same request */
void disk_refused(struct call *c, struct job *j, const struct node *n);         /* it was to run there: elsewhere, if that node has no room for its disk */
void disks_tick(struct call *c);                                                /* is there room for those that wait for it? */
bool node_could_run(struct call *c, const struct node *n, const struct job *j); /* if nothing else ran there */
bool node_could_start(struct call *c, const struct node *n, const struct job *j);   /* beside what runs there, if it were its turn */
void disk_settle(struct call *c, struct job *j, struct node *n);                /* disk.c: it is placed there; an instance gets its disk */
bool disk_is_used(const struct job *j);                                         /* it has one, and has run on it */
const struct job *disk_on_image(const struct state *s, const struct image *m);   /* some instance whose disk lies on that image; NULL: none */
void disk_drop(struct call *c, struct job *j);                                  /* it has ended: so has its disk */
bool disk_keeps(struct call *c, struct task *t, const struct ending *how);      /* it would be over, but its disk is worth more: it is stopped */
void instance_stop(struct call *c, struct job *j, const char *why);              /* what runs of it ends, and it waits until it is started */
bool autostop_watches(const struct attempt *a);                                 /* autostop.c: its node is to tell whether it is used */
void autostop_take(struct call *c, const struct node *n, const struct objects *uses);      /* of struct task_use; who was idle for long enough is stopped */
MUST_CHECK bool disks_leave(struct call *c, struct node *n, struct err *err);   /* the node is to be removed */
void attempt_evict_anyway(struct call *c, struct attempt *a, const char *why);    /* it was to be suspended, and could not be or come back */
void holds_return(struct call *c, const struct objects *list);                  /* of struct resume: as the planner says */
bool hold_instead(struct call *c, struct attempt *a);                           /* it is to yield: it is suspended rather than ended, if it can be */
void holds_take(struct call *c, struct node *n, const struct objects *list);    /* of struct hold_told */
MUST_CHECK bool ssh_keys_settle(struct call *c, const struct texts *brought, struct texts *let_in, struct texts *barred, struct err *err);     /* ssh_keys.c */
/* A job that may have left the memory, by id or as the newest of its name. RC_NOT_FOUND: there is none in the project. */
MUST_CHECK bool job_find_ended(struct call *c, int64_t project, const char *ref, int64_t *id, enum job_state *state, struct err *err);
MUST_CHECK bool job_deps_settle(struct call *c, int64_t project, struct job_spec *spec, struct err *err);   /* names in `after` become ids */
void job_deps_link(struct call *c, struct job *j);                              /* it waits for those of them that live */
const char *idem_key(struct call *c);                                           /* of this request in s->idems; NULL: it has none */
void idem_keep(struct call *c, const char *key, int64_t job, const char *reply);        /* it was done; reply may be NULL */
const char *desired_json(struct call *c, struct node *n, bool full, int64_t beat);      /* and nothing is pending for n any more */
bool key_make(struct call *c, enum principal kind, int64_t owner, int64_t project, unsigned roles, const char *name, const char *prefix,
              int64_t expires_ms, struct key_view *view);
/* The same with a secret that its owner has made (NULL: one is made). */
bool key_keep(struct call *c, enum principal kind, int64_t owner, int64_t project, unsigned roles, const char *name, const char *prefix,
              int64_t expires_ms, const char *own, struct key_view *view);
MUST_CHECK bool house_change(struct call *c, const struct node_ask *ask, struct node_settings *s, struct err *err);     /* what was given of it */
void node_reply(struct call *c, const struct node *n);
void node_write(struct call *c, struct node *n, enum node_state state, const char *kind);  /* its row, its event, and the planner is told */
enum { NODE_SILENT_MS = 20000 };                                                     /* four beats missed: nothing new is placed there */
bool fleet_holds(struct call *c);                                               /* so much is silent at once that nothing is taken from silent nodes; raises and ends the alarm */
void node_lost_set(struct call *c, struct node *n, int lost);
void node_lose_tick(struct call *c, struct node *n);                            /* what of a silent node can run there no more waits again */
const char *node_note(const struct rules *r, enum node_state state, int lost, enum node_drain drain);
struct objects gpus_turned(struct call *c, const struct node *n, const struct objects *now);     /* what is another about GPUs than the node told before, as events */
void gpus_tell_turned(struct call *c, const struct node *n, const struct objects *turned);
void node_take_live(struct call *c, struct node *n, const struct objects *live); /* figures of a report; a list without any changes nothing */
int64_t live_look_ms(const struct call *c, const struct node *n);               /* how often figures of it are wanted; 0: nobody looks */
void live_tick(struct call *c);                                                 /* somebody has begun to look: the nodes are told */
void rule_set(struct call *c, enum rule r, int64_t value);
MUST_CHECK bool rules_read(struct call *c, struct rules *out, struct err *err); /* in a read */
void reservations_tick(struct call *c);                                         /* which begin, and which are over? */
void goods_take(struct call *c, struct node *n, const struct texts *has);       /* what a node says that it has */
void goods_tell(struct call *c, const struct node *n);                          /* the planner */
void rules_tick(struct call *c);                                                /* is the brake lifted no more? */
void job_evictions(struct call *c, const struct objects *list);                 /* of struct eviction: what the planner wants to yield */
void node_drain_end(struct call *c, struct node *n);                            /* it is used again, or only cordoned */
void node_drain_tick(struct call *c, struct node *n);                           /* is its deadline over? */
void node_emptied(struct call *c, struct node *n);                              /* maybe: if it holds nothing and was to be emptied, it is drained */
/* It is told to end, as this outcome, and waits again then. why: for its owner; word: the same for programs. */
void attempt_yield(struct call *c, struct attempt *a, enum outcome as, const char *why, const char *word);
void node_key_used(struct call *c, struct node *n);                             /* the caller has come with it: the one before is good no more */
bool node_key_is_old(const struct node *n, int64_t now_ms);                     /* it is to bring a new one */
bool job_locate(struct call *c, const char *ref, int64_t *id, struct err *err); /* in a read: a job of the caller's project, by id or name */
const char *reason_told(struct call *c, enum reason reason, const char *why);    /* for its owner; why: as its row has it */
bool job_gone(struct call *c, const char *ref, struct err *err);   /* why a job is not live: it has ended, or never was; always false */
void job_reply(struct call *c, const struct job *j);
