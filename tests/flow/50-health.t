#!/usr/bin/env bash
# 50-health.t - GPUs that break, and GPUs that change hands: a fault takes one out and its task with it, a test brings it back; between two projects its
# memory is overwritten before anything of the next one runs. The driver and CUDA are made up; a GPU's memory is a file.
. "$(dirname "$0")/lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$(dirname "$ARCUS")/fake/libcuda-work.so.1" "$LIB/" || give_up "the made-up libraries are not built"
driver() { printf '%s\n' 'gpus 2' "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }      # driver LINE...: what NVML tells from now on
cuda() { printf '%s\n' 'mem 16' "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/cuda.conf"; }        # cuda LINE...: what CUDA does
driver
cuda
mkdir -m 755 "$BASE/cdi"
uuid() { echo "GPU-fa4e0000-0000-0000-0000-00000000000$1"; }
for i in 0 1; do
    jq -n --arg name "$(uuid $i)" --arg node "/dev/nvidia$i" \
        '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $name, containerEdits: {deviceNodes: [{path: $node, hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu$i.json"
done
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cuda "$LIB/libcuda-work.so.1" --cdi "$BASE/cdi"
state() { [ "$(get /v1/gpus | jq -r ".items[$1].state")" = "$2" ]; }
events() { get '/v1/events?limit=1000' | jq -c ".items[] | select(.name == \"$1\") | .data"; }
did() { grep -c "^$1 $(uuid "$2") 0" "$LIB/cuda.conf.log" 2>/dev/null; }                     # did CALL GPU: how often

# --- a fault
job=$(submit '{"name":"holds","command":["sleep","600"],"gpus":1,"image":"host"}')
wait_for "$job" running 60
first() { get "/v1/jobs/$job/attempts" | jq -r '.items[-1]'; }
index=$(sql "SELECT lease FROM attempt" | jq -r '.gpus[0].index' 2>/dev/null)
index=${index:-0} other=$((1 - index))
is "the first project on a new node waits for nothing" "$(did init "$index")" ""
cuda "wrong 0 $(uuid "$index") 1"
echo "xid $index 79" >>"$LIB/nvml.conf"
ok "a bad error takes the GPU out" until_ok 60 state "$index" unhealthy
moved() { get "/v1/jobs/$job/attempts" | jq -e '.items | length == 2 and any(.outcome == "node_fault" and (.detail | test("fallen off the bus")))'; }
ok "its task is ended for that reason, and tried again" until_ok 60 moved
wait_for "$job" running 60
is "... on the other GPU" "$(sql "SELECT lease FROM attempt WHERE ended_ms = 0" | jq -r '.gpus[0].uuid')" "$(uuid "$other")"
tested() { events gpu.tested | grep -q "\"gpu\":$index.*$1"; }
ok "a test that fails is an event" until_ok 60 tested 'failed: a matrix product came out wrong'
ok "... and the GPU stays out" state "$index" unhealthy
like "... which a person can read" "$(arcus describe node "$NODE")" 'fallen off the bus'
cuda
ok "when it passes the GPU comes back by itself" until_ok 60 state "$index" free
ok "... which is an event, too" tested 'passed: '
like "... with what it was out for" "$(events gpu.unhealthy)" "\"gpu\":$index,\"why\":\"it has fallen off the bus"

# --- from one project to another
call POST "/v1/jobs/$job/cancel" '{"grace":"0s"}'
wait_end "$job" 60
arcus projects create other >/dev/null
soil() { head -c $((16 << 20)) /dev/zero | tr '\0' 'S' | dd of="$LIB/cuda.conf.$(uuid "$1").mem" conv=notrunc status=none; }
dirty() { tr -d '\0' <"$LIB/cuda.conf.$(uuid "$1").mem" | wc -c; }
soil 0; soil 1
before=$(($(did init 0) + $(did init 1)))
own=$(submit '{"name":"own","command":["true"],"gpus":1,"image":"host"}')
is "the same project gets it back as it is" "$(how "$own" 60)|$(($(did init 0) + $(did init 1)))" "done succeeded 0|$before"
cuda 'fail set * 719'
call POST '/v1/jobs?project=other' '{"name":"next","command":["true"],"gpus":2,"image":"host"}'
next=$(field .id)
out() { state 0 unhealthy && state 1 unhealthy; }
ok "what cannot be overwritten for another project is kept away" until_ok 60 out
like "... for that reason" "$(get /v1/gpus | jq -r '.items[].health')" 'its memory could not be overwritten after another project'
is "... and nothing of it began" "$(get "/v1/jobs/$next/attempts?project=other" | jq -r '[.items[] | select(.started_at)] | length')" 0
cuda
done_() { [ "$(get "/v1/jobs/$next?project=other" | jq -r .state)" = "done" ]; }
ok "when it can be, the task runs" until_ok 90 done_
is "... and found nothing of the other project" "$(dirty 0) $(dirty 1)" "0 0"
like "the result is an event" "$(events gpu.scrubbed)" 'result":"16 of 16 MiB overwritten in [0-9]+ ms, for prj-[^,]*, after prj-'
like "... the failure, too" "$(events gpu.scrubbed)" 'failed: its memory could not be overwritten'

# --- who had it last outlives the agent
soil 0; soil 1
kill -9 "$(agent_pid)"
until_ok 60 eval '[ -n "$(agent_pid)" ]'
before=$(($(did init 0) + $(did init 1)))
call POST '/v1/jobs?project=other' '{"name":"same","command":["true"],"gpus":2,"image":"host"}'
next=$(field .id)
until_ok 90 done_
is "an agent that was killed knows who had it last, and gives it back to him as it is" "$(($(did init 0) + $(did init 1)))" "$before"
last=$(submit '{"name":"last","command":["true"],"gpus":2,"image":"host"}')
is "... and whose memory it is before another gets it" "$(how "$last" 90)|$(dirty 0) $(dirty 1)" "done succeeded 0|0 0"
finish
