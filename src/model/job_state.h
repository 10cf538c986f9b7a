/* job_state.h - the life of a task: which state may follow which, and on what news. A job's state follows from its tasks'.
 *
 * Pure: no clock, no store, no log. The table in job_state.c is the whole truth. */
#pragma once
#include "base/err.h"
#include "base/field.h"

/* Of a task, and of a whole job: a job is queued until its first task runs, running until its last one has ended. */
enum job_state {
    JOB_QUEUED,     /* waits; `reason` says for what */
    JOB_PLACED,     /* has a node and slices; the order is on its way */
    JOB_RUNNING,    /* the container is up */
    JOB_STOPPING,   /* asked to end; the grace period runs */
    JOB_DONE,       /* ended by itself with exit code 0 */
    JOB_FAILED,     /* ended, and no retry is left; `outcome` says how */
    JOB_CANCELLED,  /* ended because somebody asked */
    JOB_STATE_COUNT
};
enum job_news { NEWS_PLACED, NEWS_STARTED, NEWS_CANCEL, NEWS_SUCCEEDED, NEWS_FAILED, NEWS_RETRY, JOB_NEWS_COUNT };

/* How an attempt ended. Told apart because a user's next step differs. */
enum outcome {
    OUTCOME_NONE,           /* not yet */
    OUTCOME_SUCCEEDED,      /* exit code 0 */
    OUTCOME_EXITED,         /* exit code other than 0 */
    OUTCOME_SIGNALED,       /* killed by a signal that we did not send */
    OUTCOME_OUT_OF_MEMORY,
    OUTCOME_DEADLINE,       /* max_duration passed */
    OUTCOME_CANCELLED,
    OUTCOME_IMAGE_NOT_FOUND,
    OUTCOME_START_FAILED,   /* the container could not be made: command not found, bad mount */
    OUTCOME_NODE_LOST,      /* the node went silent for longer than the run-until time */
    OUTCOME_NODE_FAULT,     /* the node failed the task: supervisor killed, disk full, reboot */
    OUTCOME_PREEMPTED,      /* it had to yield its place: billed, and tried again without counting as a try */
    OUTCOME_DEPENDENCY,     /* never ran: what it comes after ended the wrong way */
    OUTCOME_OUT_OF_DISK,    /* an instance whose disk is kept: it held too much of what its node has; another try would find the same */
    OUTCOME_COUNT
};

/* What a task has to do with a fault that hit it and others: it may have caused it; it did not, since others may have. */
enum blame { BLAME_NONE, BLAME_SUSPECT, BLAME_BYSTANDER, BLAME_COUNT };

/* Why a queued job waits: exactly one. */
enum reason {
    REASON_NONE,
    REASON_PRIORITY,        /* others are before it */
    REASON_RESOURCES,       /* it is its turn, but no node has room */
    REASON_DEPENDENCY,      /* waits for the jobs it comes after */
    REASON_QUOTA,
    REASON_NO_NODE,         /* no node could ever run it as things stand */
    REASON_VOLUME,          /* its volume's node is away or full */
    REASON_RETRY,           /* waits out the pause before the next attempt */
    REASON_BEGIN,           /* its start time has not come */
    REASON_TOPOLOGY,        /* a gang: enough nodes have room, but not as close together as it must be */
    REASON_SUSPENDED,       /* it runs no more for now: somebody has suspended it */
    REASON_RESUME,          /* ... and wants it to go on, but its GPUs are taken */
    REASON_STOPPED,         /* an instance that somebody has stopped: it keeps its disk, and holds nothing else */
    REASON_DISK,            /* an instance: no node has room for the disk that it would keep */
    REASON_COUNT
};

extern const struct names job_state_names, outcome_names, blame_names, reason_names;
const char *job_state_name(enum job_state s);
const char *job_state_word(enum job_state s, enum reason r);     /* as it is shown: a job that runs for this reason no more is "suspended", an instance "stopping" or "stopped" */
const char *outcome_name(enum outcome o);
const char *reason_name(enum reason r);
static inline bool reason_blocks(enum reason r) { return r == REASON_STOPPED || r == REASON_DISK; }    /* of an instance: it is no place that it waits for */
const char *reason_text(enum reason r);             /* one sentence for a person, with what would help */

/* Moves *state on news. A step that the table does not hold is refused with RC_CONFLICT and *state keeps its value. */
MUST_CHECK bool job_step(enum job_state *state, enum job_news news, struct err *err);
static inline bool job_ended(enum job_state s) { return s >= JOB_DONE; }
bool outcome_is_our_fault(enum outcome o);          /* not billed, and retried without counting against the limit */
