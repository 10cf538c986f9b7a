#!/usr/bin/env bash
# 41-gangs.t - four nodes in two racks: a gang of three starts on three of them at once or not at all, knows its ranks, and starts again as a whole when one
# of its tasks is killed; one that must be in a rack that is too small says so and waits; regions and zones are kept to.
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
at=(eu/a/s1/r1 eu/a/s1/r1 eu/a/s1/r2 us/b/s1/r1)
for i in 0 1 2 3; do
    N[i]=$NODE-$i
    agent_start "${N[i]}" --sim-gpus 1 --beat-ms 500 --topology "${at[i]}" --token "$(arcus nodes token -o json | jq -r .token)"
done
for i in 0 1 2 3; do until_ok 60 node_ready "${N[i]}"; done
is "nodes tell where they are" "$(arcus nodes -o json | jq -rc '[.items | sort_by(.name)[].topology]')" '["eu/a/s1/r1","eu/a/s1/r1","eu/a/s1/r2","us/b/s1/r1"]'
like "... in the listing too" "$(arcus nodes -o wide)" 'eu/a/s1/r2'
"$ARCUS" agent --server "$URL" --topology 'eu/a/s 1' >"$BASE/out" 2>&1
like "what is no address is refused" "$?$(cat "$BASE/out")" '^2.*topology'
arcus nodes set "${N[3]}" --zone c >/dev/null
is "the operator's word counts before the agent's" "$(get "/v1/nodes/${N[3]}" | jq -r .topology)" us/c/s1/r1
node_of() { get "/v1/jobs/$1/attempts" | jq -r ".items | map(select(.task == ${2:-0})) | sort_by(.id) | .[-1].node"; }
THERE=$(submit "$(sh_job true '{"zone":"c"}')")
is "a job can ask for a zone" "$(how "$THERE") $(node_of "$THERE")" "done succeeded 0 ${N[3]}"
NOWHERE=$(submit "$(sh_job true '{"region":"asia"}')")
until_ok 60 eval '[ "$(job $NOWHERE .reason)" = NoSuitableNode ]'
is "... and waits where there is none" "$(job "$NOWHERE" '.state + " " + .reason')" "queued NoSuitableNode"
call POST "/v1/jobs/$NOWHERE/cancel" '{}'

# --- an array that is spread: a node each, though all would fit on one
SPREAD=$(submit "$(sh_job true '{"count":4,"cpus":0.1,"memory":"64MB","spread":"node"}')")
is "tasks of an array that is spread are on four nodes" "$(wait_end "$SPREAD"; get "/v1/jobs/$SPREAD/attempts" | jq -r '[.items[].node] | unique | length')" 4
like "weights are shown with what they are for" "$(arcus rules weights)" 'spread .*4000 .*a task of the same job'
arcus rules set --weights spread=0 >/dev/null
like "... and can be set" "$(arcus rules weights -o json | jq -c '.[] | select(.name == "spread") | [.weight, .usual]')" '^\[0,4000\]$'
arcus rules set --weights spread=usual >/dev/null
call PATCH /v1/rules '{"weights":"luck=1"}'
refused "a weight that does not exist is refused" 400 bad_input 'luck'

# --- all of it starts, or nothing
BUSY=$(submit "$(sh_job 'sleep 600' "{\"gpus\":1,\"node\":\"${N[2]}\"}")")
wait_for "$BUSY" running
GANG=$(submit "$(sh_job 'echo "rank $ARCUS_NODE_RANK of $NUM_NODES, $SLURM_NODEID, $MASTER_ADDR"; sleep 600' '{"gpus":1,"nodes":3,"retries":3,"retry_delay":"0s","grace":"1s"}')")
until_ok 60 eval '[ "$(job $GANG .reason)" = Resources ]'
is "three nodes of one region are not free: none of it starts" "$(job "$GANG" '.state + " " + .reason') $(get "/v1/jobs/$GANG/attempts" | jq '.items | length')" "queued Resources 0"
like "describe of a gang tells how many nodes would do" "$(arcus describe "$GANG")" 'Resources: .*ask for at most 2 nodes'
like "... and a plan says it before" "$(arcus plan --gpus 1 -N 3 -- true)" 'would wait.*ask for at most 2 nodes'
like "a plan of one that fits tells its first node" "$(arcus plan --gpus 1 -N 2 -- true)" 'would start'
RACK=$(submit "$(sh_job true '{"gpus":1,"nodes":2,"topology":{"within":"nvlink"}}')")
until_ok 60 eval '[ -n "$(job $RACK .reason)" ] && [ "$(job $RACK .reason)" != Priority ]'
is "what could never be as close together says so" "$(job "$RACK" .reason)" NoSuitableNode
call POST "/v1/jobs/$RACK/cancel" '{}'
call POST "/v1/jobs/$BUSY/cancel" '{"grace":"0s"}'
wait_end "$BUSY"
running() { [ "$(job "$1" .running)" = "$2" ]; }
until_ok 60 running "$GANG" 3
is "with the third they all start" "$(job "$GANG" '"\(.state) \(.running)"')" "running 3"
is "... each on a node of its own, of one region" "$(for t in 0 1 2; do node_of "$GANG" $t; done | sort | tr '\n' ' ')" "${N[0]} ${N[1]} ${N[2]} "
said() { logs "$GANG" "task=$1" | grep -q "^rank $1 of 3, $1, ."; }
ok "each knows its rank" until_ok 60 eval 'said 0 && said 1 && said 2'
call POST "/v1/jobs/$GANG/cancel" '{"task":1}'
refused "one of them cannot be cancelled alone" 400 bad_input 'gang'

# --- one dies: all start again
A=$(get "/v1/jobs/$GANG/attempts" | jq -r '.items[] | select(.task == 1) | .id')
kill -9 "$(first_pid "$A")"
again() { [ "$(get "/v1/jobs/$GANG/tasks" | jq -rc '[.items[].tries]')" = '[2,2,2]' ] && running "$GANG" 3; }
until_ok 60 again || note "its attempts: $(get "/v1/jobs/$GANG/attempts" | jq -rc '[.items | sort_by(.task, .id)[] | [.task, .outcome, .detail]]')"
is "one is killed, and all of them start again" "$(get "/v1/jobs/$GANG/tasks" | jq -rc '[.items[] | "\(.state) \(.tries)"]')" '["running 2","running 2","running 2"]'
is "... the others were told to end" "$(get "/v1/jobs/$GANG/attempts" | jq -rc '[.items | sort_by(.task, .id)[] | select(.state != "running") | .outcome]')" '["cancelled","signaled","cancelled"]'
ok "... which an event says" eval 'arcus events -o json | grep -q job.restarted'
call POST "/v1/jobs/$GANG/cancel" '{"grace":"0s"}'
is "a gang is cancelled as a whole" "$(wait_end "$GANG"; job "$GANG" '"\(.state) \(.cancelled)"')" "cancelled 3"
END=$(submit "$(sh_job 'exit $NODE_RANK' '{"nodes":2,"gpus":1,"within":"rack"}')")
is "without a retry left it fails as a whole" "$(wait_end "$END"; job "$END" '"\(.state) \(.exit_code)"')" "failed 1"
is "... and was in one rack" "$(for t in 0 1; do node_of "$END" $t; done | sort | tr '\n' ' ')" "${N[0]} ${N[1]} "
finish
