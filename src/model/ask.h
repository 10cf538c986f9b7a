/* ask.h - what comes with each verb: one struct and one field table each. Path parameters, the query and the body of a request are
 * bound together, so a verb cannot tell (and need not) where a member came from. job_spec is in job.h. */
#pragma once
#include "model/limit.h"
#include "model/node.h"

struct nothing { char unused; };
struct page_ask { const char *page; int64_t limit; };           /* every list: `page` is the `next` of the page before */
struct login_ask { const char *user, *password; int64_t expires_in_s; };
struct password_ask { const char *password, *new_password; };
struct org_ask { const char *name; };
struct quota { int64_t gpu_milli, cpu_milli, mem_mib, jobs, disk_mib; };  /* held at once; jobs: queued and running; disk_mib: of instances, whether they run or not; below 0: no limit */
#define QUOTA_NONE ((struct quota){ -1000, -1000, -1, -1, -1 })     /* prints as -1 each */
struct project_ask { const char *project, *name, *org, *residency, *egress; struct quota quota; int64_t weight_milli, mbit; };
struct limit_set { const char *project, *user, *model; struct limit limit; };
struct project_ref { const char *project; };
struct member_ask { const char *user; const char *roles; };
struct user_ask { const char *user, *name, *password, *roles; bool disabled; };
struct account_ask { const char *account, *name, *roles; };
struct key_ask { const char *key, *name, *account, *roles; int64_t expires_in_s; };
struct ssh_key_ask { const char *ssh_key, *name, *key; };
struct secret_ask { const char *name, *value; };
struct volume_ask { const char *volume, *name; };
struct image_ask { const char *image, *name, *digest; };
struct blob_ask { const char *digest; };
struct job_list_ask { const char *page; int64_t limit; const char *state, *name; bool all; };
struct job_ref { const char *job; const char *page; int64_t limit; };        /* page and limit: of its lists (job_ref_fields); job_name_fields means the job alone */
struct job_update_ask { const char *job; int64_t priority; };
struct job_batch_ask { struct objects jobs; };                  /* of struct job_spec */
struct job_hold_ask { const char *job; int64_t task; };                 /* task -1: all of them */
struct job_cancel_ask { const char *job; int64_t task, grace_s; };      /* task -1: all of them */
struct job_logs_ask { const char *job; int64_t task, tail; bool follow; const char *source; int64_t attempt_number; bool marks; const char *from; };
struct job_dial_ask { const char *job; int64_t task, port; };
struct job_ssh_ask { const char *job; int64_t task; struct texts keys; };
struct job_exec_ask { const char *job; int64_t task; struct texts argv; bool tty; int64_t rows, cols; };
struct files_ask { const char *job, *volume; int64_t task; const char *path; bool put; };
struct node_token_ask { int64_t expires_in_s; };
struct node_join_ask { const char *token, *name, *key; };
struct node_key_ask { const char *key; };
struct node_ask { const char *node; int state; struct node_settings settings; struct texts taint; const char *exclusive; };    /* state: enum node_state; ready or cordoned */
struct node_drain_ask { const char *node; int64_t deadline_s; bool wait, requeue; };
struct rules_ask { int spot_suspend; int64_t brake, window_s, spot_notice_s, backfill_depth, silent, lift_s; const char *preempt, *weights; };    /* brake, silent: per cent */
struct reserve_ask { const char *reservation, *project, *name, *gpus; int64_t count, from_ms, until_ms, duration_s; };
struct reserve_list_ask { const char *page; int64_t limit; bool all; };
struct gpu_live_ask { const char *page; int64_t limit; const char *node; };
struct stream_ask { const char *stream; };
struct event_ask { int64_t since, limit; bool follow; };
struct audit_ask { const char *page; int64_t limit, since; const char *verb, *actor, *result; int64_t from_ms, to_ms; };
struct audit_verify_ask { const char *page; };
struct trace_ask { const char *page; int64_t limit, from_ms, to_ms; bool names; };
struct usage_ask { const char *by; int64_t from_ms, to_ms; };
/* The planner's verbs; no route leads to them. */
struct placement { int64_t job, task, node; struct objects gpus; };     /* gpus: of struct order_gpu, without uuid */
struct place_ask { struct objects placements, waits, evictions, resumes; };     /* of struct placement, of struct wait, of struct eviction, of struct resume */
struct resume { int64_t job, task, node; };
/* A task that yields its place on a node to a job: work of class spot, of a lower class where the rules say so, or what was lent a reserved place. */
enum evict_why { EVICT_SPOT, EVICT_CLASS, EVICT_RESERVATION, EVICT_WHY_COUNT };
struct eviction { int64_t job, task, node, for_job; int why; };
/* Why a job that was looked at does not start. With REASON_QUOTA also which limit holds it (enum limit_kind), whose (0: the project's), of
 * which model (or ""), how much that is and what one task needs. */
struct wait { int64_t job; int reason, limit; int64_t owner, most, needs; char model[MODEL_NAME]; };

extern const struct fields nothing_fields, page_ask_fields, login_ask_fields, password_ask_fields, org_ask_fields, project_ask_fields,
    project_ref_fields, project_set_fields, limit_set_fields, member_ask_fields, member_ref_fields, user_ask_fields, user_set_fields, account_ask_fields,
    account_ref_fields, key_ask_fields, key_ref_fields, ssh_key_ask_fields, ssh_key_ref_fields, secret_ask_fields, secret_ref_fields, volume_ask_fields, volume_ref_fields,
    image_ask_fields, image_ref_fields, blob_ask_fields, job_list_ask_fields, job_ref_fields, job_name_fields, job_update_ask_fields, job_batch_ask_fields, job_cancel_ask_fields, job_hold_ask_fields,
    job_logs_ask_fields, job_exec_ask_fields, job_dial_ask_fields, job_ssh_ask_fields, job_files_fields, volume_files_fields, node_token_ask_fields, node_join_ask_fields, node_key_ask_fields,
    node_ref_fields, node_set_fields, node_drain_ask_fields, rules_ask_fields, reserve_ask_fields, reserve_ref_fields, reserve_list_ask_fields, gpu_live_ask_fields, metrics_ask_fields, stream_ask_fields, event_ask_fields, audit_ask_fields, audit_verify_ask_fields, usage_ask_fields, trace_ask_fields, quota_fields;
