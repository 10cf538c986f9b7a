#!/usr/bin/env bash
# 44-shares.t - parts of a GPU through MPS, with a made-up driver and a made-up daemon: what divides it is there before a task; where it dies, or one fails
# there, those who share it are tried again. The operator gave the devices to this agent. What tenants try is hostile/shares.t.
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
touch "$daemon/serves"
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
waits() { [ "$(job "$half" '.state + " " + .reason')" = 'queued Resources' ] && [ "$(attempts "$half" '.items | length')" = 0 ]; }       # looked at, and not taken
ok "another size of share goes nowhere near it" until_ok 60 waits
arcus cancel "$half" >/dev/null

# --- a fault of one
A=$(attempts "$one" '.items | sort_by(.id) | .[-1].id') B=$(attempts "$two" '.items[0].id')
driver "gpu 0 client $(first_pid "$A") 35000" "gpu 0 client $(first_pid "$B") 35000" "gpu 0 process 1 66"
live() { get /v1/gpus/live | jq -e "$1"; }
ok "both hold what is theirs" until_ok 60 live '[.items[].tasks[] | select(.name != "(not the cloud'"'"'s)") | .memory_used_mib] == [35000, 35000]'
ok "and run on" state_is "$one" running
is "the wall between them is told" "$(get /v1/gpus | jq -c '[.items[].wall]')" '["process"]'
server=$(cat "$daemon/server.pid")
driver "gpu 0 client $(first_pid "$A") 35000"
echo "[2026-11-16 03:30:00.000 Server   $server] Device 0 status is FAULT" >>"$daemon/log/daemon" && kill -9 "$(first_pid "$B")"     # as one that was told 700
hit() { [ "$(attempts "$1" ".items[] | select(.id == \"$2\") | .outcome")" = node_fault ] && state_is "$1" running; }
ok "who failed with it is tried again" until_ok 120 hit "$two" "$B"
ok "... and who has not yet" until_ok 120 hit "$one" "$A"
like "with that as the reason" "$(attempts "$two" ".items[] | select(.id == \"$B\") | .detail")" 'process on its GPU failed \(Device 0 status is FAULT\)'
ok "behind a new daemon" begun 2
ok "nothing of the last one is left" until_ok 60 eval "! lives $server"
ok "both are there again" until_ok 120 state_is "$two" running
sleep 3.1                               # errors that come so soon behind a fault are of that one
A=$(attempts "$one" '.items | sort_by(.id) | .[-1].id')
driver 'xid 0 31'
ok "an error that the driver tells is one, too" until_ok 120 hit "$one" "$A"
like "and told by its number" "$(attempts "$one" ".items[] | select(.id == \"$A\") | .detail")" 'XID 31'
driver
ok "both have begun again" until_ok 120 state_is "$two" running
arcus cancel "$two" >/dev/null
ok "one leaves" until_ok 60 state_is "$two" cancelled

# --- where it dies
A=$(attempts "$one" '.items | sort_by(.id) | .[-1].id') server=$(cat "$daemon/server.pid")
ok "it has a server, which would serve on" lives "$server"
kill -9 "$(cut -d' ' -f1 "$daemon/daemon")"
ok "its tasks are tried again" until_ok 120 hit "$one" "$A"
like "and told why" "$(attempts "$one" ".items[] | select(.id == \"$A\") | .detail")" 'MPS daemon of its GPU ended'
ok "with a new daemon" begun 4
ok "the server was ended, too" until_ok 60 eval "! lives $server"
is "the card was exclusive all the time" "$(mode)" "set_compute_mode $UUID 3"

# --- the last one
driver
arcus cancel "$one" >/dev/null
restored() { [ "$(mode)" = "set_compute_mode $UUID 0" ] && [ ! -e "$daemon/mode" ]; }
ok "when the last share is gone the card is as it was" until_ok 60 restored
gone() { ! lives "$(cut -d' ' -f1 "$daemon/daemon")"; }
ok "and its daemon has left" until_ok 60 gone
like "because it was told to" "$(tail -n 1 "$daemon/said")" '^0 quit'

# --- one that wants all of it
whole() { submit '{"command":["sleep","600"],"gpus":1,"image":"host"}'; }
leaves() { arcus cancel "$1" >/dev/null && until_ok 60 state_is "$1" cancelled; }
quarter=$(part quarter)
ok "it is shared once more" until_ok 120 state_is "$quarter" running
touch "$daemon/stubborn"                # it does not go when asked, and is made to after a while
ok "the share ends" leaves "$quarter"
all=$(whole)
ok "a task with the whole GPU begins" until_ok 120 state_is "$all" running
ok "not before the daemon has left and the card is as it was" restored
rm "$daemon/stubborn"
ok "it ends" leaves "$all"
quarter=$(part again)
ok "the next share" until_ok 120 state_is "$quarter" running
driver 'gpu 0 set_rc 4'
ok "leaves a card that cannot be given back" leaves "$quarter"
all=$(whole)
stuck() { attempts "$all" '.items[] | select(.outcome == "node_fault") | .detail' | grep -q 'mode of its GPU cannot be given back: the driver does not permit it'; }
ok "which nobody begins on" until_ok 60 stuck
is "not for a moment" "$(attempts "$all" '.items[] | select(.started_at != null) | .id')" ""
driver
ok "when it can be" until_ok 180 state_is "$all" running
ok "the card is as it was" restored
finish
