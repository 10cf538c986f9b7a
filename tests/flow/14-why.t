#!/usr/bin/env bash
# 14-why.t - why a job waits, what would make it run, and what would become of one that is not there: arcus describe and arcus plan for each kind
# of waiting; and a trace of what ran, which arcus sim replays. WHY_DOC=FILE keeps what was shown: doc/scheduling.md has it.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
GPUS=$(get /v1/gpus | jq '.items | length')
: >"$BASE/doc"
shown() { # shown TITLE COMMAND...: runs it; OUT is what it said, and the document gets the part about waiting
    local title=$1
    shift
    OUT=$("$@" 2>&1)
    { echo "### $title"; echo; echo "    \$ arcus ${*:2}"; { awk '/^why it waits/ { on = 1; next } on && !NF { exit } on' <<<"$OUT" | grep . || echo "$OUT"; } | sed 's/^/    /'; echo; } >>"$BASE/doc"
}
reason_is() { [ "$(job "$1" .reason)" = "$2" ]; }

like "a plan tells where a job would run" "$(arcus plan --gpus 2 --cpus 0.1 --memory 128MB --name early -- true)" "^early would start now on $NODE, GPUs 0,1$"
is "... for programs too" "$(arcus plan --gpus 2 --cpus 0.1 --memory 128MB -o json -- true | jq -c '[.starts, .node, .gpus, .tasks, .count]')" "[\"now\",\"$NODE\",\"0,1\",1,1]"
is "... and queues nothing" "$(get '/v1/jobs?all=true' | jq '.items | length')" 0
printf 'name: sweep\ncount: 10\nresources:\n  gpu: 1\n  cpus: 0.1\n  memory: 128MB\nrun: "true"\n' >"$BASE/sweep.yaml"
shown "It would start" arcus plan -f "$BASE/sweep.yaml"
sed -i "s|$BASE/||" "$BASE/doc"
like "a file is planned like it would be submitted" "$OUT" "sweep would start $GPUS of 10 tasks now, the first on $NODE"
like "what submit would refuse is refused" "$(arcus plan --gpus 2 --secret nonesuch -- true 2>&1)" "there is no secret 'nonesuch'"

HOLD=$(submit "$(sh_job 'sleep 600' '{"gpus":2,"name":"holds","max_duration":"1h"}')")
wait_for "$HOLD" running
BIG=$(submit "$(sh_job true '{"gpus":4,"name":"big"}')")
until_ok 10 reason_is "$BIG" Resources
shown "Resources" arcus describe big
like "a job that waits for room: what would start now" "$OUT" "ask for at most 2 GPUs: $NODE would start it now"
like "... and which nodes came nearest" "$OUT" "$NODE: 2 of 4 GPUs are free, 4 asked for"
like "... with counts" "$OUT" '1 have too few GPUs free'
LOW=$(submit "$(sh_job true '{"gpus":4,"name":"low","priority":"low"}')")
until_ok 10 reason_is "$LOW" Priority
shown "Priority" arcus describe low
like "a job whose turn has not come" "$OUT" 'Priority: .*what would make it run:.*--priority normal'
NEVER=$(submit "$(sh_job true '{"gpus":"B200:1","name":"never"}')")
until_ok 10 reason_is "$NEVER" NoSuitableNode
shown "Never possible" arcus describe never
like "a job that no node could run" "$OUT" 'never, as things stand.*take GPUs of another model: .*could run it'
shown "Never possible, asked before" arcus plan --gpus 64 -- true
like "... is known before" "$OUT" "could never run.*ask for at most 4 GPUs: $NODE could run it"
AFTER=$(submit "$(sh_job true "{\"after\":[{\"job\":\"$HOLD\"}],\"name\":\"after\"}")")
until_ok 10 reason_is "$AFTER" Dependency
shown "Dependency" arcus describe after
like "a job that comes after another" "$OUT" "wait for $HOLD \(holds, running\) to succeed"
RETRY=$(submit "$(sh_job 'exit 1' '{"retries":1,"retry_delay":"1h","name":"retry"}')")
until_ok 20 reason_is "$RETRY" RetryDelay
shown "A pause before the next try" arcus describe retry
like "a job that is tried again" "$OUT" 'wait until .*: the pause before its next try'
call PATCH /v1/projects/default '{"gpus":3}'
QUOTA=$(submit "$(sh_job true '{"gpus":2,"name":"quota"}')")
until_ok 10 reason_is "$QUOTA" Quota
shown "Quota" arcus describe quota
like "a job over its quota" "$OUT" 'may hold 3 GPUs at once, and a task needs 2.*2 of 3 gpus are held.*ask for at most 1 GPU.*arcus projects quota default --gpus 4'
shown "Quota, asked before" arcus plan --gpus 2 --cpus 0.1 --memory 128MB --name other -- true
like "... is told the same before" "$OUT" 'other would wait.*may hold 3 GPUs'
like "more than a quota is never" "$(arcus plan --gpus 4 -- true)" 'could never run'
is "describe has it for programs" "$(arcus describe quota -o json | jq -r '.why.reason, (.why.refused | type)' | tr '\n' ' ')" "Quota array "
call PATCH /v1/projects/default '{"gpus":-1}'
arcus nodes cordon $NODE >/dev/null
like "a cordoned node is counted as such" "$(arcus plan --gpus 1 -- true)" '1 are cordoned'
arcus nodes uncordon $NODE >/dev/null
# --- a trace, and its replay
run_sh true '{"gpus":1,"name":"first","max_duration":"1m"}'
run_sh true '{"gpus":0.5,"name":"half","max_duration":"1m"}'
arcus export nodes >"$BASE/nodes.csv"
arcus export trace >"$BASE/tasks.csv"
is "the fleet is exported" "$(wc -l <"$BASE/nodes.csv") $(head -n 1 "$BASE/nodes.csv")" "2 sn,cpu_milli,memory_mib,gpu,model,gpu_mib"
is "what ran and what runs is exported, without names" "$(cut -d, -f2,3,7,8 "$BASE/tasks.csv" | sort | uniq -c | awk '{print $1, $2}' | tr '\n' ';')" "1 ended,p1,0,0;1 ended,p1,1,1000;1 ended,p1,1,500;1 running,p1,2,1000;1 state,project,num_gpu,gpu_milli;"
like "... with them if asked" "$(arcus export trace --names | cut -d, -f1,3 | tr '\n' ' ')" 'name,project .*half,default.*holds,default'
is "... and no more than that" "$(arcus export trace --limit 1 | wc -l)" 2
is "arcus sim replays it: all of it finds its place" "$("$ARCUS" sim -q --nodes "$BASE/nodes.csv" --tasks "$BASE/tasks.csv" --in-order -o json | jq -c '[.tasks, .placed, .refused, .refused_feasible]')" "[4,4,0,0]"
is "... in its own time, too" "$("$ARCUS" sim -q --nodes "$BASE/nodes.csv" --tasks "$BASE/tasks.csv" --leave -o json | jq -c '[.tasks, .waiting]')" "[4,0]"
like "a time before all has nothing" "$(arcus export trace --to 2020-01-01 | wc -l)" '^1$'
[ -n "${WHY_DOC:-}" ] && sed "s/$NODE/node-a/g" "$BASE/doc" >"$WHY_DOC"
finish
