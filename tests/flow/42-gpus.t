#!/usr/bin/env bash
# 42-gpus.t - GPUs of a made-up driver: an agent offers what it finds, tells what they do and what is wrong with them, and a tenant sees its own.
. "$(dirname "$0")/lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$LIB/" || give_up "the made-up library is not built"
driver() { printf '%s\n' "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }     # driver LINE...: what it tells from now on

two=('gpus 2' 'gpu * util 37' 'gpu * mem_used 2048' 'gpu * power 345000' 'gpu 0 link 1' 'gpu 1 link 0')
driver "${two[@]}"
mkdir -m 755 "$BASE/cdi"                # devices that are another's: what is shown here needs none of their own
for i in 0 1; do
    jq -n --arg name "GPU-fa4e0000-0000-0000-0000-00000000000$i" --arg node "/dev/nvidia$i" \
        '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $name, containerEdits: {deviceNodes: [{path: $node, hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu$i.json"
done
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi" --mps off --gpu-test off         # what tests do is flow 46's

# --- what there is
gpus() { get /v1/gpus | jq -c "$1"; }
is "the node offers what its driver has" "$(gpus '[.items[] | [.model, .memory_mib, .state, .simulated, .vendor, .wall]]')" \
    '[["NVIDIA H200",143771,"free",false,"nvidia","device"],["NVIDIA H200",143771,"free",false,"nvidia","device"]]'
like "arcus gpus lists them" "$(arcus gpus -o wide)" "$NODE +1 +NVIDIA H200 +free .*580.159.03 +0000:19:00.0"
like "a node is described with its GPUs" "$(arcus describe node "$NODE")" 'nvlink'

# --- what they do
live() { get /v1/gpus/live | jq -e "$1"; }
ok "figures come up" until_ok 60 live '.items | length == 2 and all(.utilization == 37 and .memory_used_mib == 2048 and .power_mw == 345000)'
top=$(arcus top -n 1)
like "top shows every GPU of the cloud" "$top" "$NODE +0 NVIDIA H200 +free .* 37% .*2.0/ *140 GB .*345/700"
unlike "nothing of it is simulated" "$top" simulated
is "top as data is the listing" "$(arcus top -o json | jq -c '[.items[].utilization]')" '[37,37]'
mkfifo "$BASE/keys"
script -qfec "stty rows 20 cols 100; '$ARCUS' top" "$BASE/screen" <"$BASE/keys" >/dev/null 2>&1 &
screen=$!
exec 9>"$BASE/keys"
drawn() { [ "$(grep -c 'arcus top: 2 GPUs' "$BASE/screen")" -ge "$1" ]; }
ok "on a terminal it is drawn again and again" until_ok 60 drawn 2
printf q >&9
ok "until q is pressed" wait "$screen"
exec 9>&-
like "and leaves the terminal as it was" "$(tail -c 300 "$BASE/screen" | cat -v)" '1049l'

# --- a tenant's own
job=$(submit '{"name":"holds","command":["sleep","600"],"gpus":1,"image":"host"}')
runs() { [ "$(get "/v1/jobs/$job" | jq -r .state)" = running ]; }
ok "a job gets one" until_ok 60 runs
ok "it is in use" until_ok 60 live '[.items[].state] | sort == ["free","in use"]'
attempt=$(get "/v1/jobs/$job/attempts" | jq -r '.items[0].id')
index=$(get /v1/gpus/live | jq '.items[] | select(.state == "in use") | .index')
driver "${two[@]}" "gpu $index process $(first_pid "$attempt") 512"
ok "what a task's processes hold of it is the task's" until_ok 60 live '.items[] | select(.state == "in use") | .tasks == [.tasks[0]] and .tasks[0].name == "holds" and .tasks[0].memory_used_mib == 512'
arcus projects create other >/dev/null
arcus users create eve --password-stdin <<<'a password' >/dev/null
arcus members set eve viewer --project other >/dev/null
EVE=$(curl -sk -X POST -H 'Content-Type: application/json' -d '{"user":"eve","password":"a password"}' "$URL/v1/login" | jq -r .key)
is "a stranger sees none of them" "$(AS=$EVE get '/v1/gpus/live?project=other' | jq '.items | length')" 0
like "Prometheus gets them under the names of the DCGM exporter" "$(get /metrics)" 'DCGM_FI_DEV_GPU_UTIL\{gpu="0",UUID="GPU-fa4e0000[^}]*device="nvidia0",modelName="NVIDIA H200",Hostname="[^"]+"[^}]*\} 37'
is "and nobody without a key" "$(curl -sk -o /dev/null -w '%{http_code}' "$URL/metrics")" 401

# --- what goes wrong
free=$((1 - index))
state() { [ "$(gpus ".items[$1].state")" = "\"$2\"" ]; }
echo "xid $free 79" >>"$LIB/nvml.conf"
ok "a bad error takes a GPU out" until_ok 60 state "$free" unhealthy
like "and is told in words" "$(gpus ".items[$free].health")" 'fallen off the bus'
like "and as an event" "$(get '/v1/events?limit=1000' | jq -c '.items[] | select(.name == "gpu.unhealthy") | .data')" "\"gpu\":$free,\"why\":\"it has fallen off the bus"
late=$(submit '{"name":"late","command":["true"],"gpus":1,"image":"host"}')
waits() { [ "$(get "/v1/jobs/$late" | jq -r .state)" = queued ] && get "/v1/jobs/$late/why" | jq -e '.nodes_with_room == 0'; }
ok "nothing is placed there" until_ok 60 waits
driver "${two[@]}" "gpu $index ecc_uncorrected 4"
ok "memory errors take the other out" until_ok 60 state "$index" unhealthy
like "and say so" "$(gpus ".items[$index].health")" '4 uncorrectable memory errors'
left() { [ "$(get "/v1/jobs/$job/attempts" | jq -r '[.items[] | select(.outcome == "node_fault" and (.detail | test("4 uncorrectable"))) | .id] | length')" = 1 ]; }
ok "and its task has to leave it, for that reason" until_ok 60 left
driver "${two[@]}"
ok "and runs again when they are gone" until_ok 60 runs
driver "${two[@]}" 'hang 1'
hangs() { [ "$(gpus "[.items[].health] | all(. == \"its driver does not answer\")")" = true ]; }
ok "a driver that hangs makes them unhealthy" until_ok 60 hangs
ok "and the agent lives: the job still runs, and is heard" runs
driver "${two[@]}"
ok "and it is well again when its driver answers" until_ok 60 state "$index" 'in use'
is "the node was there all the time" "$(get /v1/nodes/$NODE | jq -r .state)" ready
arcus cancel "$job" "$late" >/dev/null
ended() { [ "$(get "/v1/jobs/$job" | jq -r .state)" = cancelled ]; }
ok "the job ends" until_ok 60 ended

# --- a part of one: whoever holds more than that is ended
part=$(submit '{"name":"part","command":["sleep","600"],"gpus":"0.25","image":"host"}')
part_is() { [ "$(get "/v1/jobs/$part" | jq -r .state)" = "$1" ]; }
ok "a job gets a quarter" until_ok 60 part_is running
ok "and the listing says what is between it and its neighbours" until_ok 60 live '[.items[] | .tasks[]?.wall] == ["process"]'
attempt=$(get "/v1/jobs/$part/attempts" | jq -r '.items[0].id')
index=$(get /v1/gpus/live | jq '.items[] | select(.tasks | length > 0) | .index')
driver "${two[@]}" "gpu $index process $(first_pid "$attempt") 20000" "gpu $index process $$ 100000"
ok "it may hold what is its own, whatever others do" until_ok 60 live '[.items[] | .tasks[]? | select(.name == "part") | .memory_used_mib] == [20000]'
driver "${two[@]}" "gpu $index process $(first_pid "$attempt") 20000" "gpu $index process $(first_pid "$attempt") 20000"
ok "more than that, in all its processes together, ends it" until_ok 60 part_is failed
like "with that as its reason" "$(get "/v1/jobs/$part/attempts" | jq -c '.items[0] | [.outcome, .detail]')" 'out_of_memory.*held 40000 MiB.*share of it is 3594[0-9] MiB'
finish
