#!/usr/bin/env bash
# 52-autostop.t - instances that nobody uses are stopped: of GPUs of a made-up driver one does nothing and another works; processors of those without; whoever is
# connected keeps his.
. "$(dirname "$0")/lib.sh"
LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$LIB/" || give_up "the made-up library is not built"
driver() { printf '%s\n' "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }
driver 'gpus 2' 'gpu * util 37'
mkdir -m 755 "$BASE/cdi"
for i in 0 1; do
    jq -n --arg name "GPU-fa4e0000-0000-0000-0000-00000000000$i" --arg node "/dev/nvidia$i" \
        '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $name, containerEdits: {deviceNodes: [{path: $node, hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu$i.json"
done
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi" --mps off --gpu-test off
tried() { get "/v1/nodes/$NODE" | jq -e '.info.runtime != "on trial"' >/dev/null; }
until_ok 60 tried
if ! get "/v1/nodes/$NODE" | jq -e .info.disks >/dev/null; then
    skip "instances that nobody uses" "this machine has no loop devices"
    finish
fi
machine() { local name=$1; shift; arcus run -d --type instance --name "$name" -i host -m 64MB --disk 64MB --grace 0s "$@" >/dev/null 2>&1; wait_for "$name" running; }
gpu_of() { get /v1/gpus/live | jq -r --arg n "$1" '.items[] | select(any(.tasks[]; .name == $n)) | .index'; }

machine rests -c 0.1 -g 1 --autostop 8s
machine works -c 0.1 -g 1 --autostop 8s
machine spins -c 1 --autostop 40s -- sh -c 'while :; do :; done'
idle=$(gpu_of rests)
is "both have a GPU" "$idle $(gpu_of works)" "$idle $((1 - idle))"
machine quiet -c 0.1 --autostop 15s
{ arcus exec quiet -- sleep 28 >"$BASE/out" 2>&1; echo "$? $(job quiet)" >"$BASE/kept"; } &
INSIDE=$!
driver 'gpus 2' 'gpu * util 37' "gpu $idle util 0"
wait_for rests stopped 120
is "one whose GPU does nothing is stopped, and its GPU is free" "$(job rests .reason) $(get "/v1/nodes/$NODE" | jq -r .gpus_free)" "Stopped 1"
like "it says why, and how to start it again" "$(arcus describe rests)" 'autostop: its GPUs were idle for 8 s, and nobody was connected; start it again with: arcus start rests'
like "so does its event" "$(get '/v1/events?limit=1000' | jq -r '.items[] | select(.name == "job.stop") | .data.why')" 'autostop: its GPUs were idle'
wait "$INSIDE"
is "whoever is connected keeps an idle one" "$(cat "$BASE/kept")" "0 running"
wait_for quiet stopped 120
like "without a GPU its processors count" "$(job quiet .reason_text)" 'autostop: it was idle for 15 s'
is "nothing of it runs meanwhile, so nothing is metered" "$(get /v1/jobs/rests/attempts | jq -r '[.items[] | "\(.state)/\(.outcome)"] | join(" ")')" failed/preempted
driver 'gpus 2' 'gpu * util 37'
work_again() { get /v1/gpus/live | jq -e 'all(.items[]; .utilization == 37)' >/dev/null; }
until_ok 60 work_again
arcus start rests >/dev/null
wait_for rests running
is "it is started again" "$(job rests)" running
is "those that work run on" "$(job works) $(job spins)" "running running"
for j in rests works quiet spins; do arcus cancel $j >/dev/null; wait_end $j; done
finish
