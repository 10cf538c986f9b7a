#include "model/job_state.h"

static const char *const state_names[] = {
    [JOB_QUEUED] = "queued", [JOB_PLACED] = "placed", [JOB_RUNNING] = "running", [JOB_STOPPING] = "stopping",
    [JOB_DONE] = "done",     [JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled",
};
static const char *const news_names[] = {
    [NEWS_PLACED] = "placed",       [NEWS_STARTED] = "started", [NEWS_CANCEL] = "cancel",
    [NEWS_SUCCEEDED] = "succeeded", [NEWS_FAILED] = "failed",   [NEWS_RETRY] = "retry",
};
static const char *const outcome_list[] = {
    [OUTCOME_NONE] = "none",
    [OUTCOME_SUCCEEDED] = "succeeded",
    [OUTCOME_EXITED] = "exited",
    [OUTCOME_SIGNALED] = "signaled",
    [OUTCOME_OUT_OF_MEMORY] = "out_of_memory",
    [OUTCOME_DEADLINE] = "deadline",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_IMAGE_NOT_FOUND] = "image_not_found",
    [OUTCOME_START_FAILED] = "start_failed",
    [OUTCOME_NODE_LOST] = "node_lost",
    [OUTCOME_NODE_FAULT] = "node_fault",
    [OUTCOME_PREEMPTED] = "preempted",
    [OUTCOME_DEPENDENCY] = "dependency_failed",
    [OUTCOME_OUT_OF_DISK] = "out_of_disk",
};
static const char *const blame_list[] = { [BLAME_NONE] = "none", [BLAME_SUSPECT] = "suspect", [BLAME_BYSTANDER] = "bystander" };
static const char *const reason_list[] = {
    [REASON_NONE] = "",
    [REASON_PRIORITY] = "Priority",
    [REASON_RESOURCES] = "Resources",
    [REASON_DEPENDENCY] = "Dependency",
    [REASON_QUOTA] = "Quota",
    [REASON_NO_NODE] = "NoSuitableNode",
    [REASON_VOLUME] = "VolumeNode",
    [REASON_RETRY] = "RetryDelay",
    [REASON_BEGIN] = "BeginTime",
    [REASON_TOPOLOGY] = "Topology",
    [REASON_SUSPENDED] = "Suspended",
    [REASON_RESUME] = "ResumeGPUs",
    [REASON_STOPPED] = "Stopped",
    [REASON_DISK] = "Disk",
};
static const char *const reason_texts[] = {
    [REASON_NONE] = "",
    [REASON_PRIORITY] = "other jobs are before it in the queue",
    [REASON_RESOURCES] = "it is next, and starts as soon as a node has enough free GPUs, CPUs and memory",
    [REASON_DEPENDENCY] = "it waits for the jobs that it comes after",
    [REASON_QUOTA] = "its project holds as much as its quota allows; it starts when something of the project ends",
    [REASON_NO_NODE] = "no node of this cloud could run it; ask for less, or add a node that can",
    [REASON_VOLUME] = "its volume, or an instance's disk, is on a node that is away or has no room",
    [REASON_RETRY] = "it waits for a moment before it is tried again",
    [REASON_BEGIN] = "its begin time has not come",
    [REASON_SUSPENDED] = "it is suspended, and goes on when somebody resumes it",
    [REASON_RESUME] = "it is to go on, as soon as the GPUs that it had are free and its project may hold them",
    [REASON_STOPPED] = "it is stopped and keeps its disk, and nothing else, until somebody starts it",
    [REASON_DISK] = "no node has room for the disk that is kept for it; ask for less (--disk), cancel an instance that is stopped, or add a node",
    [REASON_TOPOLOGY] = "enough nodes have room for it, but not as close together as it must be (within)",
};
_Static_assert(COUNT(state_names) == JOB_STATE_COUNT && COUNT(news_names) == JOB_NEWS_COUNT, "every name is spelled");
_Static_assert(COUNT(outcome_list) == OUTCOME_COUNT && COUNT(blame_list) == BLAME_COUNT, "every outcome has a row");
_Static_assert(COUNT(reason_list) == REASON_COUNT && COUNT(reason_texts) == REASON_COUNT, "every reason has a row");

const struct names job_state_names = NAMES(state_names);
const struct names outcome_names = NAMES(outcome_list);
const struct names blame_names = NAMES(blame_list);
const struct names reason_names = NAMES(reason_list);

const char *job_state_name(enum job_state s) { return state_names[s]; }
const char *job_state_word(enum job_state s, enum reason r)
{
    if (r == REASON_STOPPED && s <= JOB_RUNNING)
        return s == JOB_QUEUED ? "stopped" : state_names[JOB_STOPPING];
    return s == JOB_RUNNING && (r == REASON_SUSPENDED || r == REASON_RESUME) ? "suspended" : state_names[s];
}
const char *outcome_name(enum outcome o) { return outcome_list[o]; }
const char *reason_name(enum reason r) { return reason_list[r]; }
const char *reason_text(enum reason r) { return reason_texts[r]; }
bool outcome_is_our_fault(enum outcome o)
{
    return o == OUTCOME_NODE_LOST || o == OUTCOME_NODE_FAULT;
}

static const struct { enum job_state from; enum job_news on; enum job_state to; } steps[] = {
    { JOB_QUEUED,   NEWS_PLACED,    JOB_PLACED    },
    { JOB_QUEUED,   NEWS_CANCEL,    JOB_CANCELLED },
    { JOB_QUEUED,   NEWS_FAILED,    JOB_FAILED    },   /* what it comes after ended the wrong way */
    { JOB_PLACED,   NEWS_STARTED,   JOB_RUNNING   },
    { JOB_PLACED,   NEWS_CANCEL,    JOB_STOPPING  },
    { JOB_PLACED,   NEWS_SUCCEEDED, JOB_DONE      },   /* so short that its start was never seen */
    { JOB_PLACED,   NEWS_FAILED,    JOB_FAILED    },
    { JOB_PLACED,   NEWS_RETRY,     JOB_QUEUED    },
    { JOB_RUNNING,  NEWS_CANCEL,    JOB_STOPPING  },
    { JOB_RUNNING,  NEWS_SUCCEEDED, JOB_DONE      },
    { JOB_RUNNING,  NEWS_FAILED,    JOB_FAILED    },
    { JOB_RUNNING,  NEWS_RETRY,     JOB_QUEUED    },
    { JOB_STOPPING, NEWS_SUCCEEDED, JOB_CANCELLED },   /* it was quicker than the signal; the wish still stands */
    { JOB_STOPPING, NEWS_FAILED,    JOB_CANCELLED },
    { JOB_STOPPING, NEWS_RETRY,     JOB_CANCELLED },   /* never again: somebody asked it to end */
};

bool job_step(enum job_state *state, enum job_news news, struct err *err)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps[i].from == *state && steps[i].on == news)
            return *state = steps[i].to, true;
    return err_set(err, RC_CONFLICT, "a %s task cannot take '%s'", state_names[*state], news_names[news]);
}
