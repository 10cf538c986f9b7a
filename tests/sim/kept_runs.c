/* kept_runs.c - the runs themselves. Each was recorded with the change that is named with it taken out, and failed until it was back. */
#include "kept.h"

/* clang-format off */
const struct kept kept[] = {
    { "A server that took the lease and then could not read the event log gave it back and kept its memory: it neither wrote nor stood by, and its event streams were silent for good (seed 40 of several servers; lease.c, take).",
      "cloud 387 2 2 1 0\n"
      "still writer 5450\n"
      "wait 700\n"
      "arm 38\n"
      "wait 2000\n" },
    { "With retries left, an attempt that had succeeded was followed by another (seed 1; job_life.c, wants_retry).",
      "cloud 2 1 3 1 0\n"
      "submit w30 0 1 2851 0 1 2 0 0 0 0 - 1 \"command\":[\"work\",\"2851\",\"0\",\"stubborn\"],\"count\":1,\"cpus\":3,\"memory\":\"7GB\",\"priority\":94,\"retries\":2,\"retry_delay\":\"4s\",\"grace\":\"3s\",\"gpus\":\"1\"\n" },
    { "A folder that could not be removed once stayed for good (seed 109; runtime.c, runtime_forget).",
      "cloud 3 1 2 0 0\n"
      "submit w1 1 0 26306 0 1 1 0 1 0 0 - 0 \"command\":[\"work\",\"26306\",\"0\",\"stubborn\"],\"count\":1,\"cpus\":3,\"memory\":\"8GB\",\"priority\":4,\"retries\":1,\"retry_delay\":\"4s\",\"grace\":\"0s\",\"on_lost\":\"wait\"\n"
      "submit w2 0 0 2398 0 1 0 0 0 0 0 - 1 \"command\":[\"work\",\"2398\",\"0\",\"stubborn\"],\"count\":1,\"cpus\":2,\"memory\":\"7GB\",\"priority\":30,\"retries\":0,\"retry_delay\":\"5s\",\"grace\":\"8s\",\"volumes\":[\"vol1:/data\"]\n"
      "wait 1464\n"
      "submit w3 0 0 3007 0 1 1 0 1 0 0 - 1 \"command\":[\"work\",\"3007\",\"0\",\"obeys\"],\"count\":1,\"cpus\":3,\"memory\":\"11GB\",\"priority\":19,\"retries\":1,\"retry_delay\":\"0s\",\"grace\":\"2s\",\"on_lost\":\"wait\",\"gpus\":\"0.5\"\n"
      "wait 1028\n"
      "arm 124\n"
      "wait 1151\n" },
    { "A job that had ended was a stranger to job.update: 404 for what was acknowledged (things.c, job_gone).",
      "cloud 2 1 3 1 0\n"
      "submit w3 0 1 2763 0 2 0 10 1 0 1 - 1 \"command\":[\"work\",\"2763\",\"0\",\"obeys\"],\"count\":2,\"cpus\":2,\"memory\":\"12GB\",\"priority\":58,\"retries\":0,\"retry_delay\":\"4s\",\"grace\":\"8s\",\"max_duration\":\"10s\",\"on_lost\":\"wait\",\"secrets\":[\"TOKEN\"]\n"
      "wait 2059\n"
      "wait 245\n"
      "wait 908\n"
      "priority w3 56\n" },
    { "A machine whose name could not be read once joined as localhost, for good (agent.c, join_or_link).",
      "cloud 2 1 2 0 0\n"
      "arm 117\n"
      "wait 6000\n"
      "submit w2 0 0 300 0 1 0 0 0 0 0 - 0 \"command\":[\"work\",\"300\",\"0\",\"obeys\"],\"retries\":0,\"retry_delay\":\"1s\"\n" },
    { "A status that a power cut had torn was read again for half a minute before its task was given up (seed 46, once supervisors left the disk to the agent; runtime.c, find_one).",
      "cloud 46 1 2 1 0\n"
      "submit w20 0 0 16657 0 1 2 0 0 0 0 w11 0 \"command\":[\"work\",\"16657\",\"0\",\"obeys\"],\"count\":1,\"cpus\":3,\"memory\":\"9GB\",\"priority\":11,\"retries\":2,\"retry_delay\":\"3s\",\"grace\":\"2s\",\"gpus\":\"0.25\"\n"
      "submit w24 0 0 16648 0 1 0 0 0 0 0 - 0 \"command\":[\"work\",\"16648\",\"0\",\"obeys\"],\"count\":1,\"cpus\":1,\"memory\":\"9GB\",\"priority\":82,\"retries\":0,\"retry_delay\":\"2s\",\"grace\":\"2s\"\n"
      "wait 2271\n"
      "crash n1 60380\n" },
    { "A node that had lost its power and every trace of a task that was to be cancelled told it as cancelled, and it was billed until then (seeds 40242, 40652, 40194 and 40203 of several servers; node_report.c, take_item).",
      "cloud 40242 1 3 1 0\n"
      "wait 849\n"
      "wait 2044\n"
      "submit w15 0 0 215 0 5 2 0 0 0 0 w2 2 \"command\":[\"work\",\"215\",\"0\",\"stubborn\"],\"count\":5,\"cpus\":4,\"memory\":\"12GB\",\"priority\":10,\"retries\":2,\"retry_delay\":\"4s\",\"grace\":\"0s\",\"gpus\":\"0.5\"\n"
      "submit w16 0 1 27914 0 1 0 0 0 0 0 - 1 \"command\":[\"work\",\"27914\",\"0\",\"obeys\"],\"count\":1,\"cpus\":4,\"memory\":\"7GB\",\"priority\":95,\"retries\":0,\"retry_delay\":\"5s\",\"grace\":\"3s\",\"gpus\":\"0.5\"\n"
      "wait 2151\n"
      "wait 2245\n"
      "submit w20 0 0 2294 189 3 0 0 0 0 0 - 0 \"command\":[\"work\",\"2294\",\"189\",\"obeys\"],\"count\":3,\"cpus\":2,\"memory\":\"10GB\",\"priority\":5,\"retries\":0,\"retry_delay\":\"1s\",\"grace\":\"7s\",\"gpus\":\"1\"\n"
      "arm 13\n"
      "wait 484\n"
      "crash n3 16005\n"
      "cancel w20 -1 0\n" },
};
const size_t kept_count = sizeof kept / sizeof kept[0];
