/* view.h - what goes out: one struct and one field table for each thing that people and programs see. Every one has id, name and state. */
#pragma once
#include "model/ask.h"
#include "model/gpu_live.h"
#include "model/node.h"

struct simple_view { int64_t id; const char *name, *state; int64_t created_ms; };       /* orgs, volumes without more */
struct project_view { int64_t id; const char *name, *state, *org; struct quota quota; const char *roles, *residency, *range, *egress; int64_t weight_milli, mbit, created_ms, version; };
struct limit_view { const char *id, *name, *state, *project, *user, *model; int64_t limit_milli, used_milli, reserved_milli; };    /* name: what is limited */
struct limits_view { const char *id, *name, *state, *project, *user, *model; struct limit limit; };
struct queue_view {
    int64_t id;
    const char *name, *state, *reason, *reason_text, *class;
    int64_t priority, ahead, project_ahead, starved_ms;     /* of the project: in the same class, and in all */
    int64_t share_ppm, part_ppm, weight_milli, projects;
};
struct refused_view { const char *filter; int64_t nodes; const char *text; };
struct near_view { const char *node, *lacks; };
struct why_view {
    int64_t id;
    const char *name, *state, *starts, *reason, *reason_text;
    int64_t start_ms;
    bool earliest;
    struct texts advice;
    int64_t nodes, fits;
    struct objects refused, nearest;    /* of struct refused_view, of struct near_view */
    const char *node, *gpus;            /* of job.plan, as the rest */
    int64_t tasks, count;
};
struct member_view { int64_t id; const char *name, *state, *roles; };
struct user_view { int64_t id; const char *name, *state, *roles; int64_t created_ms, version; };
struct key_view { int64_t id; const char *name, *state, *owner, *hint, *roles, *project; int64_t created_ms, expires_ms; const char *key; };   /* key: only in the reply that makes it */
struct ssh_key_view { int64_t id; const char *name, *state, *fingerprint, *key; int64_t created_ms; };
struct secret_view { int64_t id; const char *name, *state; int64_t created_ms, updated_ms, version; };
struct volume_view { int64_t id; const char *name, *state, *node; int64_t created_ms; };
struct image_view { int64_t id; const char *name, *state, *digest, *format; int64_t size, created_ms; };
struct blob_view { const char *id, *name, *state; int64_t size; };
struct job_view {
    int64_t id;
    const char *name, *state, *reason, *reason_text, *outcome, *project, *owner, *image, *flavor, *gpus, *node;
    int64_t cpu_milli, mem_mib, priority, count, queued, running, done, failed, cancelled, exit_code;
    bool simulated;
    int64_t created_ms, started_ms, ended_ms, version;
    const char *detail;
    const char *spec;           /* JSON: what was asked; only in job.get */
};
struct task_view { int64_t id, task; const char *name, *state, *outcome, *detail; int64_t tries, exit_code, signal, started_ms, ended_ms; };
struct attempt_view {
    int64_t id, task;
    const char *name, *state, *outcome, *node, *detail, *gpus, *suspendable;
    int64_t exit_code, signal, run_until_ms, placed_ms, started_ms, ended_ms;
};
struct node_view {
    int64_t id;
    const char *name, *state;
    int64_t gpus, gpus_free_milli, cpu_milli, cpu_free_milli, mem_mib, mem_free_mib, tasks;
    int64_t gpu_mib;            /* of the last of its GPUs, as the model */
    const char *gpu_model, *region, *zone, *topology, *taints, *exclusive;
    bool simulated;
    const char *note;
    int64_t drain_until_ms, joined_ms, version;
    const char *info, *settings;    /* JSON: struct node_info and node_settings; only in node.get */
};
struct reserve_view { int64_t id; const char *name, *state, *project, *gpus; int64_t count, from_ms, until_ms, created_ms; };
struct weight_view { const char *name; int64_t weight, usual; const char *what; };      /* of a term, thousandths */
struct rules_view { const char *id, *name, *state, *preempt, *spot_suspend; int64_t brake, window_s, lifted_until_ms, spot_notice_s, backfill_depth, silent; struct objects weights; };   /* weights: of struct weight_view */
struct fleet_view { const char *id, *name, *state, *note; int64_t nodes, ready, cordoned, draining, drained, down, lost, silent_since_ms, jobs_queued, jobs_running; };
struct gpu_view {
    const char *id, *name, *state, *node, *model, *mig_free;
    int64_t index, mem_mib, free_milli, free_mib, tasks;
    bool simulated;
    const char *health, *note, *wall, *mig, *pci, *driver, *vendor;
    int64_t numa, power_cap_mw, nvlinks;
};
struct live_task_view { int64_t job, attempt, task; const char *name, *project, *wall; int64_t gpu_milli, mem_mib, mem_used_mib, processes; };
struct live_view {              /* of gpu.live: what a GPU does now; -1: not told */
    const char *id, *name, *state, *node, *model, *health;
    int64_t index, mem_mib, power_cap_mw, at_ms;
    bool simulated;
    struct gpu_live live;
    struct objects tasks;       /* of struct live_task_view: all of them for operators, else those of the caller's project */
};
struct flavor_view { const char *id, *name, *state, *gpu; int64_t gpu_milli, gpu_mib, cpu_milli, mem_mib, nodes, free; bool simulated; };
struct event_view { int64_t id, at_ms; const char *name, *state, *project, *subject, *actor, *data; };     /* name is its kind */
struct server_view { const char *id, *name, *state, *address, *version; int64_t seen_ms; };     /* state: writer or standby */
struct audit_view {
    int64_t id, at_ms, times, event;
    const char *name, *state, *kind, *subject, *actor, *key, *project, *address, *request, *chain;
    const char *data;
};
struct audit_proof { int64_t id, checked, last; const char *name, *state, *next, *chain, *problems; };
struct trace_view {             /* the columns of sim/trace.h */
    int64_t id;
    const char *name, *state, *project, *gpu_spec;
    int64_t priority, cpu_milli, mem_mib, gpus, gpu_milli, created_s, scheduled_s, deleted_s;
};
struct usage_view {
    const char *id, *name, *state, *project, *user, *flavor, *day;
    int64_t tasks, seconds, gpu_milli_s, gpu_mib_s, cpu_milli_s, mem_mib_s;
    bool simulated;
};
struct whoami_view { int64_t id; const char *name, *state, *kind, *project, *roles; int64_t key_id, key_expires_ms; };
struct token_view { int64_t id; const char *name, *state, *token; int64_t expires_ms; };
struct join_view { int64_t id; const char *name, *state, *key; };
struct batch_view { int64_t id; const char *name, *state; int64_t count; struct texts jobs; };   /* id, name: of the project */
struct cancel_view { int64_t id; const char *name, *state; int64_t tasks; };

extern const struct fields simple_view_fields, project_view_fields, limit_view_fields, limits_view_fields, queue_view_fields, why_view_fields, plan_view_fields, refused_view_fields, near_view_fields, member_view_fields, user_view_fields, key_view_fields, ssh_key_view_fields, secret_view_fields,
    volume_view_fields, image_view_fields, blob_view_fields, job_view_fields, job_brief_fields, task_view_fields, attempt_view_fields, node_view_fields,
    node_brief_fields, rules_view_fields, reserve_view_fields, fleet_view_fields, gpu_view_fields, live_view_fields, live_task_view_fields, flavor_view_fields, event_view_fields, audit_view_fields, audit_proof_fields, usage_view_fields, trace_view_fields, server_view_fields, whoami_view_fields, token_view_fields,
    join_view_fields, cancel_view_fields, hold_view_fields, batch_view_fields;
/* The same structs where they stand for another kind of thing, so that its id begins as it should. */
extern const struct fields account_view_fields;         /* of struct member_view */
extern const struct fields gone_node_fields;            /* of struct simple_view */
