#!/usr/bin/env bash
# 44-shares.t - parts of a GPU through MPS, with a made-up driver and a made-up daemon: what divides it is there before a task, tasks can neither change it
# nor go around it, and where it dies they are tried again. The operator gave the devices to this agent.
. "$(dirname "$0")/lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$LIB/" || give_up "the made-up library is not built"
MPS=$(dirname "$ARCUS")/fake/nvidia-cuda-mps-control
UUID=GPU-fa4e0000-0000-0000-0000-000000000000
driver() { printf '%s\n' "gpus 1" "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }     # driver LINE...: what it tells from now on
mkdir -m 755 "$BASE/cdi"                # a device that is another's: what is shown here needs none of its own
jq -n --arg name "$UUID" '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $name, containerEdits: {deviceNodes: [{path: "/dev/nvidia0", hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu.json"
driver 'gpu 0 set_rc 4'
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi" --mps "$MPS" --own-devices yes
daemon=$RUN/mps/000000000000
state_is() { [ "$(get "/v1/jobs/$1" | jq -r .state)" = "$2" ]; }
attempts() { get "/v1/jobs/$1/attempts" | jq -r "$2"; }
part() { submit "{\"name\":\"$1\",\"command\":[\"sleep\",\"600\"],\"gpus\":\"${2:-0.25}\",\"image\":\"host\"}"; }
mode() { tail -n 1 "$LIB/nvml.conf.log" 2>/dev/null; }
begun() { [ "$(grep -c '^begins' "$daemon/said")" = "$1" ]; }

# --- nobody is let in before the card is nobody's but the daemon's
one=$(part one)
refused() { attempts "$one" '.items[].detail' | grep -q 'mode of its GPU cannot be set: the driver does not permit it'; }
ok "a card that cannot be made exclusive is not shared" until_ok 60 refused
ok "its daemon has not begun" test ! -e "$daemon/said"
driver
ok "when it can, the task begins" until_ok 120 state_is "$one" running
is "with the card in EXCLUSIVE_PROCESS mode" "$(mode)" "set_compute_mode $UUID 3"
said=$(cat "$daemon/said")
like "its GPU has a daemon that divides it" "$said" $'^begins -f --multiuser-server [^\n]*\n0 set_default_active_thread_percentage 25.0\n0 set_default_device_pinned_mem_limit 0 3594[0-9]M\n'
is "which sees that GPU alone, and nothing else of its environment is another's" "$(head -n 1 "$daemon/said" | tr ' ' '\n' | grep = | cut -d= -f1 | sort | tr '\n' ' ')" 'CUDA_MPS_LOG_DIRECTORY CUDA_MPS_PIPE_DIRECTORY CUDA_VISIBLE_DEVICES '
two=$(part two)
ok "the next share" until_ok 60 state_is "$two" running
ok "has the same one" begun 1
half=$(part half 0.5)
waits() { [ "$(get "/v1/jobs/$half" | jq -r .state)" = queued ] && [ "$(attempts "$half" '.items | length')" = 0 ]; }
ok "another size of share goes nowhere near it" until_ok 30 waits
arcus cancel "$half" >/dev/null

# --- what a tenant can do to it
in_task() { arcus exec "$one" -- "$@" </dev/null 2>&1; }
is "a task finds its door, and nothing but that" "$(in_task sh -c 'echo $CUDA_MPS_PIPE_DIRECTORY; ls $CUDA_MPS_PIPE_DIRECTORY')" $'/tmp/nvidia-mps\ncontrol'
send() { in_task perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) && connect(S, pack_sockaddr_un("/tmp/nvidia-mps/control")) or die $!; send(S, $ARGV[0], 0); recv(S, $b, 256, 0); print $b' "$1"; }
like "it is heard there: the check can fail" "$(send get_default_active_thread_percentage)" '25.0'
like "quit is refused" "$(send quit)" 'Not enough privilege'
like "so is a larger share" "$(send 'set_default_active_thread_percentage 100')" 'Insufficient privileges for UID [1-9]'
like "... and more memory" "$(send 'set_default_device_pinned_mem_limit 0 100G')" 'Insufficient privileges'
like "nothing has changed" "$(send get_default_active_thread_percentage)" '25.0'
is "the folder cannot be changed" "$(in_task sh -c 'rm -f /tmp/nvidia-mps/control 2>/dev/null; touch /tmp/nvidia-mps/x 2>/dev/null; ls /tmp/nvidia-mps')" control

# --- who goes around it, or takes more
A=$(attempts "$one" '.items | sort_by(.id) | .[-1].id') B=$(attempts "$two" '.items[0].id')
driver "gpu 0 client $(first_pid "$A") 35000" "gpu 0 client $(first_pid "$B") 35000" "gpu 0 process 1 66"
live() { get /v1/gpus/live | jq -e "$1"; }
ok "both hold what is theirs" until_ok 60 live '[.items[].tasks[] | select(.name != "(not the cloud'"'"'s)") | .memory_used_mib] == [35000, 35000]'
ok "and run on" state_is "$one" running
driver "gpu 0 client $(first_pid "$A") 35000" "gpu 0 process $(first_pid "$B") 300"
ok "one that uses the GPU around its daemon is ended" until_ok 60 state_is "$two" failed
like "with that as its reason" "$(attempts "$two" '.items[0] | .outcome + " " + .detail')" 'signaled .*around MPS'
ok "its neighbour is not" state_is "$one" running

# --- where it dies
driver "gpu 0 client $(first_pid "$A") 35000"
kill -9 "$(cut -d' ' -f1 "$daemon/daemon")"
again() { [ "$(attempts "$one" ".items[] | select(.id == \"$A\") | .outcome")" = node_fault ] && state_is "$one" running; }
ok "its tasks are tried again" until_ok 120 again
like "and told why" "$(attempts "$one" ".items[] | select(.id == \"$A\") | .detail")" 'MPS daemon of its GPU ended'
ok "with a new daemon" begun 2
is "the card was exclusive all the time" "$(mode)" "set_compute_mode $UUID 3"

# --- the last one
driver
arcus cancel "$one" >/dev/null
restored() { [ "$(mode)" = "set_compute_mode $UUID 0" ] && [ ! -e "$daemon/mode" ]; }
ok "when the last share is gone the card is as it was" until_ok 60 restored
gone() { ! kill -0 "$(cut -d' ' -f1 "$daemon/daemon")"; }
ok "and its daemon has left" until_ok 30 gone
like "because it was told to" "$(tail -n 1 "$daemon/said")" '^0 quit'
finish
