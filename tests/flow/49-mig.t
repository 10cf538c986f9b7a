#!/usr/bin/env bash
# 49-mig.t - MIG instances that the agent makes and destroys for the tasks that wait, with a made-up driver: the operator gave it the devices, and said that slices may be made
# (nodes set --mig dynamic).
. "$(dirname "$0")/lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$LIB/" || give_up "the made-up library is not built"
UUID=GPU-fa4e0000-0000-0000-0000-000000000000
printf '%s\n' 'gpus 1' 'gpu 0 mig 1' 'gpu 0 instance 1g.18gb 0 MIG-old' >"$LIB/nvml.conf"
mkdir -m 755 "$BASE/cdi"                # devices that are another's: what is shown here needs none of its own
jq -n --arg gpu "$UUID" '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [$gpu, "MIG-old", "MIG-made-0-\(range(0; 8))" | {name: ., containerEdits: {deviceNodes: [{path: "/dev/nvidia0", hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu.json"
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi" --mps off --own-devices yes
slice() { submit "{\"command\":[\"sh\",\"-c\",\"echo saw \$NVIDIA_VISIBLE_DEVICES \$CUDA_VISIBLE_DEVICES; exec sleep 600\"],\"mig\":\"$1\",\"image\":\"host\"}"; }
made() { grep -c '^gi_create' "$LIB/nvml.conf.log" 2>/dev/null; }

small=$(slice 1g.18gb)
wait_for "$small" running 60
ok "an instance that is there is used" until_ok 60 has_said "$small" '^saw MIG-old 0$'
is "and none is made" "$(made)" ""
big=$(slice 3g.71gb)
arcus nodes set "$NODE" --mig dynamic >/dev/null
wait_for "$big" running 60
ok "where the operator allows it, one is made for a task that waits, and told by its own name" until_ok 60 has_said "$big" '^saw MIG-made-0-4 0$'
like "at the slot that it was given" "$(cat "$LIB/nvml.conf")" $'\ngpu 0 instance 3g.71gb 4 MIG-made-0-4(\n|$)'
is "the wall of it is told" "$(get /v1/gpus | jq -c '[.items[].wall]')" '["mig"]'
kill -9 "$(agent_pid)"
for one in "$small" "$big"; do wait_for "$one" running 60; done
middle=$(slice 1g.18gb)
wait_for "$middle" running 120
like "an agent that was killed knows what its tasks hold when it makes the next" "$(grep 'makes 1g.18gb' "$BASE/server.log" | tail -n 1)" 'keeps (1g.18gb@0,3g.71gb@4|3g.71gb@4,1g.18gb@0)$'
arcus cancel "$middle" >/dev/null
wait_for "$middle" cancelled 60
all=$(slice 7g.141gb)
arcus cancel "$big" >/dev/null
wait_for "$big" cancelled 60
is "what is held is not destroyed for one that wants all" "$(job "$all") $(grep -c destroy "$LIB/nvml.conf.log")" "queued 0"
arcus cancel "$small" >/dev/null
wait_for "$all" running 60
ok "when nobody is left, what is in its way is" until_ok 60 has_said "$all" '^saw MIG-made-0-0 0$'
is "and it is alone there" "$(grep ' instance ' "$LIB/nvml.conf")" 'gpu 0 instance 7g.141gb 0 MIG-made-0-0'
arcus cancel "$all" >/dev/null
wait_for "$all" cancelled 60
sed -i 's/^gpu 0 mig 1/&\ngpu 0 busy 0/' "$LIB/nvml.conf"
again=$(slice 1g.18gb)
refused() { get "/v1/jobs/$again/attempts" | jq -r '.items[].detail' | grep -qE 'MIG instance 1g.18gb at slot [0-7] cannot be had: an instance that is in the way cannot be destroyed'; }
ok "one that somebody else uses is left alone, and that is told" until_ok 60 refused
arcus cancel "$again" >/dev/null
wait_for "$again" 'cancelled failed' 60
finish
