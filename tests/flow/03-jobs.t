#!/usr/bin/env bash
# 03-jobs.t - the life of jobs: every way in which one can end is told apart, one named reason for every one that waits, and bad wishes change nothing.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
attempts() { get "/v1/jobs/$1/attempts" | jq -r "${2:-.items | length}"; }

# --- these run while the rest is tested: what takes time is begun first
DEADLINE=$(submit "$(sh_job 'sleep 60' '{"max_duration":"1s","grace":"1s","name":"deadline"}')")
RETRIED=$(submit "$(sh_job 'exit 7' '{"retries":2,"retry_delay":"0s","name":"retried"}')")
STUBBORN=$(submit "$(sh_job 'trap "" TERM; echo ready; while :; do sleep 1; done' '{"name":"stubborn"}')")

# --- ends
run_sh 'echo out; echo err >&2; exit 0'
is "a job that ends well" "$HOW" "done succeeded 0"
run_sh 'exit 42'
is "an exit code is told" "$HOW" "failed exited 42"
run_sh 'exec perl -e "unpack q(p), pack q(L!), 1"'
is "a signal is told apart" "${HOW% *} $(attempts "$JOB" '.items[0].signal')" "failed signaled 11"
run_sh 'exec tail /dev/zero' '{"memory":"64MB"}'
is "out of memory is told apart" "${HOW% *}" "failed out_of_memory"
run_sh 'tail /dev/zero; exit $?' '{"memory":"64MB"}'
is "... also when it was a child that was killed" "${HOW% *}" "failed out_of_memory"
JOB=$(submit '{"command":["/no/such/program"],"cpus":0.1,"memory":"64MB"}')
is "a command that is not there" "$(how "$JOB" | cut -d' ' -f1,2)" "failed start_failed"
like "... is named in the detail" "$(job "$JOB" .detail)" '/no/such/program'
JOB=$(submit '{"command":["/etc/passwd"],"cpus":0.1,"memory":"64MB"}')
is "a command that is no program" "$(how "$JOB" | cut -d' ' -f1,2)" "failed start_failed"
JOB=$(submit '{"command":["true"],"image":"127.0.0.1:1/nothing:here","cpus":0.1,"memory":"64MB"}')
is "an image that is not there" "$(how "$JOB" 30 | cut -d' ' -f1,2)" "failed image_not_found"
like "... is named in the detail" "$(job "$JOB" .detail)" 'nothing:here'

# --- arrays
ARRAY=$(submit "$(sh_job 'echo I am $ARCUS_ARRAY_INDEX of $ARCUS_ARRAY_COUNT, $SLURM_ARRAY_TASK_ID; [ $ARCUS_ARRAY_INDEX != 2 ]' '{"count":4}')")
is "an array fails when one task does" "$(how "$ARRAY")" "failed exited 1"
is "its tasks are counted" "$(job "$ARRAY" '"\(.count) \(.done) \(.failed) \(.running) \(.queued)"')" "4 3 1 0 0"
is "every task is listed once" "$(get "/v1/jobs/$ARRAY/tasks" | jq -c '[.items[].task] | sort')" "[0,1,2,3]"
is "a task's own log" "$(logs "$ARRAY" task=3)" "I am 3 of 4, 3"
JOB=$(submit "$(sh_job 'echo $ARCUS_ARRAY_INDEX' '{"array":"0-2"}')")
is "an array the way Slurm spells it" "$(how "$JOB") $(job "$JOB" .count)" "done succeeded 0 3"
BIG=$(submit '{"command":["sleep","600"],"count":10000,"cpus":1,"memory":"64MB","node":"'"$NODE"'","gpus":4}')
wait_for "$BIG" running
is "an array of ten thousand is one row until its tasks are placed" "$(sql "SELECT count(*) FROM task WHERE job = (SELECT id FROM job WHERE count = 10000)" | awk '{print ($1 < 100)}')" 1
call POST "/v1/jobs/$BIG/cancel" '{"grace":"0s"}'
is "... and can be cancelled whole" "$(how "$BIG" | cut -d' ' -f1)" cancelled

# --- environment, labels, secrets
call PUT /v1/secrets/TOKEN '{"value":"s3cret-value-of-the-flow"}'
is "a secret is stored" "$STATUS" 200
unlike "... and not shown" "$BODY" s3cret
run_sh 'echo "$GREETING $ARCUS_JOB_ID $ARCUS_PROJECT $ARCUS_NODE [$CUDA_VISIBLE_DEVICES] $ARCUS_TRY"; cat /run/secrets/TOKEN; echo; stat -f -c %T /run/secrets; stat -c %a /run/secrets/TOKEN; touch /run/secrets/x 2>&1 | grep -o Read-only; env | grep -c s3.ret' \
    '{"env":{"GREETING":"plain-value-of-the-flow"},"labels":{"team":"vision"},"secrets":["TOKEN"],"gpus":1,"cpus":0.2}'
is "environment and secrets reach the task" "$(sed -n 1,2p <<<"$OUT" | sed -E 's/\[[0-9]\]/[n]/')" "plain-value-of-the-flow $JOB default $NODE [n] 1
s3cret-value-of-the-flow"
like "a secret is a file in memory that only its owner reads" "$(sed -n 3,4p <<<"$OUT" | tr '\n' ' ')" '^(tmpfs|ramfs) 4?00 $|^(tmpfs|ramfs) 400 $'
is "... on a folder that cannot be written, and not in the environment" "$(sed -n '5,$p' <<<"$OUT" | tr '\n' ' ')" "Read-only 0 "
is "labels are kept" "$(job "$JOB" .spec.labels.team)" vision
is "the secret is nowhere in our files" "$(grep -rlF s3cret-value-of-the-flow "$DATA" "$RUN" "$BASE/server.log" 2>/dev/null | grep -v '/logs/')" ""
ok "... though a plain value is: the check can fail" grep -rqF plain-value-of-the-flow "$DATA"
unlike "... nor in events and listings" "$(get '/v1/events?limit=1000'; get "/v1/jobs/$JOB"; get /v1/secrets)" s3cret
call POST /v1/jobs "$(sh_job true '{"secrets":["NOT_THERE"]}')"
like "a secret that is not there is refused by name" "$STATUS $BODY" '^4.*NOT_THERE'
call POST /v1/jobs "$(sh_job true '{"env":{"ARCUS_JOB_ID":"x"}}')"
is "what the cloud tells a task cannot be forged" "$STATUS $(field .field)" "400 env"
run_sh 'id -u; id -g; touch /tmp/mine && echo wrote' '{"user":"1234:5678"}'
is "a user by number" "$OUT" "1234
5678
wrote"

# --- dependencies
GATE=$(submit "$(sh_job 'while [ ! -e /tmp/go ]; do sleep 0.1; done; exit $(cat /tmp/go)' '{"name":"gate"}')")
OKDEP=$(submit "$(sh_job true '{"name":"wants-ok"}' | jq -c ". + {after: [{job: \"$GATE\"}]}")")
FAILDEP=$(submit "$(sh_job true '{"dependency":["fail:gate"]}')")
ANYDEP=$(submit "$(sh_job true '{"dependency":["any:gate"]}')")
CHAIN=$(submit "$(sh_job true '{"dependency":["ok:wants-ok"]}')")
wait_for "$GATE" running
is "a job that comes after another waits by that name" "$(job "$OKDEP" '.state + " " + .reason') $(job "$ANYDEP" .reason)" "queued Dependency Dependency"
like "... with a sentence" "$(job "$OKDEP" .reason_text)" 'waits for'
until_ok 20 has_said "$STUBBORN" ready
is "the stubborn one runs" "$(job "$STUBBORN")" running
began=$(date +%s%N)
call POST "/v1/jobs/$STUBBORN/cancel" '{"grace":"1s"}'
is "it is asked to end" "$STATUS" 200
arcus exec "$GATE" -- sh -c 'echo 5 >/tmp/go' </dev/null >/dev/null 2>&1
is "the gate fails" "$(how "$GATE")" "failed exited 5"
is "... so the one after ok never runs" "$(how "$OKDEP" | cut -d' ' -f1,2) $(attempts "$OKDEP")" "failed dependency_failed 0"
is "... nor the one after that" "$(how "$CHAIN" | cut -d' ' -f1,2)" "failed dependency_failed"
is "... the one after fail runs" "$(how "$FAILDEP")" "done succeeded 0"
is "... and the one after any" "$(how "$ANYDEP")" "done succeeded 0"
call POST /v1/jobs "$(sh_job true '{"dependency":["ok:gate"]}')"
is "a job after one that failed already is refused" "$STATUS $(field .field)" "400 after"

# --- ends that took their time
is "a task that ignores SIGTERM is killed after the grace period" "$(how "$STUBBORN" | cut -d' ' -f1)" cancelled
within "... not before it was over, and soon after (ms)" "$(get "/v1/jobs/$STUBBORN/attempts" | jq -r '.items[0].ended' | { read -r t; echo $((($(date -d "$t" +%s%N) - began) / 1000000)); })" 1000 60000
is "... by SIGKILL" "$(attempts "$STUBBORN" '.items[0].signal')" 9
call POST "/v1/jobs/$STUBBORN/cancel" '{}'
refused "a cancelled job cannot be cancelled again" 409 conflict
is "max_duration ends a job" "$(how "$DEADLINE" | cut -d' ' -f1,2)" "failed deadline"
is "a job that fails is tried as often as it asked" "$(how "$RETRIED") $(attempts "$RETRIED")" "failed exited 7 3"
is "... each attempt has its own id and end" "$(attempts "$RETRIED" '[.items[] | .id] | unique | length') $(attempts "$RETRIED" '[.items[].outcome] | unique | join(",")')" "3 exited"
JOB=$(submit "$(sh_job 'echo try $ARCUS_TRY; [ $ARCUS_TRY = 2 ]' '{"retry":{"limit":5,"delay":"0s"}}')")
is "a retry that goes well ends it" "$(how "$JOB") $(attempts "$JOB")" "done succeeded 0 2"
is "... the log of each try is kept" "$(logs "$JOB" attempt=1) $(logs "$JOB")" "try 1 try 2"
JOB=$(submit "$(sh_job 'exit 1' '{"retries":5,"retry_delay":"0s","retry_on":["out_of_memory"]}')")
is "only the outcomes that were named are tried again" "$(how "$JOB") $(attempts "$JOB")" "failed exited 1 1"
GENTLE=$(submit "$(sh_job 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.1; done' '{"name":"gentle"}')")
until_ok 10 has_said "$GENTLE" ready
call POST "/v1/jobs/$GENTLE/cancel" '{}'
is "a task that hears SIGTERM ends in its own time" "$(how "$GENTLE" | cut -d' ' -f1) $(logs "$GENTLE" | grep -x bye)" "cancelled bye"

# --- waiting: one reason, and the order of the queue
HOLD=$(submit "$(sh_job 'sleep 600' '{"gpus":4,"cpus":0.1,"name":"hold"}')")
wait_for "$HOLD" running
HUGE=$(submit "$(sh_job true '{"gpus":64}')")
MODEL=$(submit "$(sh_job true '{"gpus":"A100:1"}')")
FIRST=$(submit "$(sh_job 'echo low' '{"gpus":4,"priority":10,"name":"low"}')")
SECOND=$(submit "$(sh_job 'echo high' '{"gpus":4,"priority":90,"name":"high"}')")
PAUSED=$(submit "$(sh_job 'exit 1' '{"retries":1,"retry_delay":"1h"}')")
reason_is() { [ "$(job "$1" .reason)" = "$2" ]; }
for w in "$HUGE NoSuitableNode" "$MODEL NoSuitableNode" "$SECOND Resources" "$FIRST Priority" "$PAUSED RetryDelay"; do
    until_ok 10 reason_is ${w}
    is "it waits because of ${w#* }" "$(job "${w% *}" '.state + " " + .reason')" "queued ${w#* }"
done
for j in $HUGE $MODEL $PAUSED; do call POST "/v1/jobs/$j/cancel" '{}'; done
is "a queued job is cancelled at once" "$(job "$PAUSED") $(job "$HUGE")" "cancelled cancelled"
call PATCH "/v1/jobs/$FIRST" '{"priority":95}'
until_ok 10 reason_is "$FIRST" Resources
until_ok 10 reason_is "$SECOND" Priority
is "a priority can be changed while it waits" "$(job "$SECOND" .reason)" Priority
call PATCH "/v1/jobs/$FIRST" '{"priority":"high"}'
is "a class is a word for a number" "$STATUS $(field .priority)" "200 70"
is "... on the command line too" "$(arcus update "$FIRST" --priority spot -o json | jq .priority)" 10
is "... and one that is none is refused" "$(arcus update "$FIRST" --priority tall 2>&1)" "arcus: --priority: 'tall' is not a whole number, nor one of spot, low, normal, high, urgent"
call POST "/v1/jobs/$HOLD/cancel" '{"grace":"0s"}'
wait_end "$FIRST"
ok "the higher priority started first" test "$(date -d "$(job "$SECOND" .started)" +%s%N)" -lt "$(date -d "$(job "$FIRST" .started)" +%s%N)"
call PATCH /v1/projects/default '{"gpus":1}'
Q1=$(submit "$(sh_job 'sleep 600' '{"gpus":1}')")
wait_for "$Q1" running
Q2=$(submit "$(sh_job true '{"gpus":1}')")
until_ok 10 reason_is "$Q2" Quota
is "it waits because of its project's quota" "$(job "$Q2" .reason)" Quota
like "... and says which limit, whose and how much" "$(job "$Q2" .reason_text)" "project default may hold 1 GPUs at once, and a task needs 1"
call PATCH /v1/projects/default '{"gpus":-1}'
is "... and starts when that is raised" "$(how "$Q2")" "done succeeded 0"
call POST "/v1/jobs/$Q1/cancel" '{"grace":"0s"}'
wait_end "$Q1"

# --- shares of a GPU: thousandths, exactly
for i in 1 2 3; do S[$i]=$(submit "$(sh_job 'while [ ! -e /tmp/go ]; do sleep 0.2; done' '{"gpus":0.3}')"); done
for i in 1 2 3; do wait_for "${S[$i]}" running; done
is "three shares of 0.3 leave 0.1 of one GPU" "$(get /v1/gpus | jq -c '[.items[].free] | sort')" "[0.1,1,1,1]"
S[4]=$(submit "$(sh_job true '{"gpus":0.1}')")
is "... which fits one of 0.1" "$(how "${S[4]}")" "done succeeded 0"
for i in 1 2 3; do call POST "/v1/jobs/${S[$i]}/cancel" '{"grace":"0s"}'; done
is "the list filters by state" "$(get '/v1/jobs?state=failed&all=true&limit=1000' | jq -c '[.items[].state] | unique')" '["failed"]'
is "the list filters by name" "$(get '/v1/jobs?name=retried&all=true' | jq -r '.items[].id')" "$RETRIED"

finish
