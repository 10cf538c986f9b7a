#!/usr/bin/env bash
# shares.t - tenants of two projects on one GPU, where the operator lets them (share: any): a foreign neighbour is not let in before the card is nobody's but the
# daemon's, and neither can change how it is divided, go around it, or hurt the other without its being told. Driver and daemon are made up (tests/fake).
. "$(dirname "$0")/../lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")"/fake/lib{nvidia-ml,cuda-work}.so.1 "$LIB/" || give_up "the made-up library is not built"
UUID=GPU-fa4e0000-0000-0000-0000-000000000000
driver() { printf '%s\n' "gpus 1" "$@" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }     # driver LINE...: what it tells from now on
mkdir -m 755 "$BASE/cdi"
jq -n --arg name "$UUID" '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $name, containerEdits: {deviceNodes: [{path: "/dev/nvidia0", hostPath: "/dev/null"}]}}]}' >"$BASE/cdi/gpu.json"
driver 'gpu 0 set_rc 4'
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi" --mps "$(dirname "$ARCUS")/fake/nvidia-cuda-mps-control" --own-devices yes --cuda "$LIB/libcuda-work.so.1"
daemon=$RUN/mps/000000000000
arcus projects create blue >/dev/null
arcus nodes set "$NODE" --share any >/dev/null
declare -A in
part() { # part VARIABLE PROJECT: a quarter; its id is in VARIABLE
    call POST "/v1/jobs?project=$2" '{"command":["sh","-c","while :; do sleep 600; done"],"gpus":"0.25","image":"host"}'
    [ "$STATUS" = 201 ] || give_up "submit: $STATUS $BODY"
    printf -v "$1" %s "$(field .id)"
    in[${!1}]=$2
}
state_is() { [ "$(get "/v1/jobs/$1?project=${in[$1]}" | jq -r .state)" = "$2" ]; }
attempts() { get "/v1/jobs/$1/attempts?project=${in[$1]}" | jq -r "$2"; }

# --- the mode is there before anybody is
part one default
part two blue
told() { attempts "$1" '.items[].detail' | grep -q 'mode of its GPU cannot be set'; }
ok "no share begins on a card that cannot be made exclusive" until_ok 60 told "$one"
ok "... nor one of a foreign neighbour" until_ok 60 told "$two"
is "none of them ever ran" "$(for j in "$one" "$two"; do attempts "$j" '.items[] | select(.started_at != null) | .id'; done)" ""
ok "what would divide it has not begun" test ! -e "$daemon/said"
is "no mode was changed" "$(cat "$LIB/nvml.conf.log" 2>/dev/null)" ""
driver
ok "when the mode is set the first begins" until_ok 180 state_is "$one" running
ok "and its foreign neighbour" until_ok 180 state_is "$two" running
is "with the card in EXCLUSIVE_PROCESS mode" "$(tail -n 1 "$LIB/nvml.conf.log")" "set_compute_mode $UUID 3"
ok "which was set before the daemon began" test ! "$daemon/mode" -nt "$daemon/daemon"
is "both have the same GPU" "$(get /v1/gpus | jq -c '[.items[] | [.wall, .free]]')" '[["process",0.5]]'

# --- words to the daemon, from root inside
in_task() { arcus exec "$one" -- "$@" </dev/null 2>&1; }
is "a task finds its door, and nothing but that" "$(in_task sh -c 'echo $CUDA_MPS_PIPE_DIRECTORY; ls -A $CUDA_MPS_PIPE_DIRECTORY')" $'/tmp/nvidia-mps\ncontrol'
send() { in_task perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) && connect(S, pack_sockaddr_un("/tmp/nvidia-mps/control")) or die $!; send(S, $ARGV[0], 0); recv(S, $b, 256, 0); $b =~ s/\0//g; print $b' "$1"; }
like "it is heard there: the check can fail" "$(send get_default_active_thread_percentage)" '25.0'
like "refused: quit" "$(send quit)" 'Not enough privilege'
for word in 'set_default_active_thread_percentage 100' 'set_default_device_pinned_mem_limit 0 100G' 'set_active_thread_percentage 1 100' 'set_device_pinned_mem_limit 1 0 100G' 'terminate_client 1 1' 'start_server -uid 0' 'shutdown_server 1 -f'; do
    like "refused: ${word%% *}" "$(send "$word")" 'Insufficient privileges for UID [1-9]'
done
like "nothing has changed" "$(send get_default_active_thread_percentage)" '25.0'
is "the folder cannot be changed" "$(in_task sh -c 'rm -f /tmp/nvidia-mps/control 2>/dev/null; touch /tmp/nvidia-mps/x 2>/dev/null; mv /tmp/nvidia-mps /tmp/other 2>/dev/null; ls -A /tmp/nvidia-mps')" control
ok "its daemon lives" lives "$(cut -d' ' -f1 "$daemon/daemon")"

# --- one that hurts its neighbour: all are told and tried again, and who may have done it is not tried for ever
newest() { attempts "$1" '.items | sort_by(.id) | .[-1].id'; }
pair() { A=$(newest "$one") B=$(newest "$two"); }
log() { printf "[${WHEN:-$(date '+%F %T.%3N')} Server  8807] %s\n" "$@" >>"$daemon/log/daemon"; }         # as driver 580 writes
fault() { log "Client {PID: $1, Context: 1} encountered a fatal GPU error." 'Server is handling a fatal GPU error.' "Client {PID: $1, Context ID: 1} on device 0 to be torn down" "All clients belonging to error trigging process $1 will be torn down"; }
hit() { [ "$(attempts "$1" ".items[] | select(.id == \"$2\") | .outcome")" = node_fault ]; }
again() { hit "$1" "$2" && state_is "$1" running && [ "$(newest "$1")" != "$2" ]; }
pair
log 'Device 0 status is FAULT'          # what names nobody comes first
fault "$(first_pid "$B")"
ok "a fault of one does not end the other silently: it is tried again" until_ok 180 again "$one" "$A"
like "and told why" "$(attempts "$one" ".items[] | select(.id == \"$A\") | .detail")" 'process on its GPU failed'
ok "the one that is named is tried again, too: it may not have been" until_ok 60 again "$two" "$B"
kills_itself() { # as one that is killed in the middle of its work: it is gone, and the log names its neighbour
    pair
    local pid named WHEN; pid=$(pgrep -P "$(first_pid "$B")" sleep) named=$(first_pid "$A") || return 1
    driver "gpu 0 client $named 35000" "gpu 0 client $pid 300"
    until_ok 60 seen || return 1
    sleep 1                             # shares are looked at more often than that
    WHEN=$(date -d '+1.8 seconds' '+%F %T.%3N') && kill -9 "$pid"
    sleep 2
    fault "$named"
    log "Server failed to recevie command with status 806, assuming client {PID: $pid, Context ID: 0} exit"
    driver
}
seen() { get /v1/gpus/live | jq -e '[.items[].tasks[] | .memory_used_mib] | contains([300])' >/dev/null; }
ok "one kills itself, and its neighbour is named" kills_itself
ok "both are tried again" until_ok 180 again "$one" "$A"
ok "... whoever it was" until_ok 180 again "$two" "$B"
pair
fault "$(first_pid "$B")"
ok "one fails a second time: its neighbour is tried again" until_ok 180 again "$one" "$A"
ok "... and so is it" until_ok 180 again "$two" "$B"
pair
fault "$(first_pid "$B")"
ok "a third time: its neighbour is tried again" until_ok 180 again "$one" "$A"
ok "it is not: three times are enough" until_ok 60 state_is "$two" failed
like "with that as the reason" "$(attempts "$two" ".items[] | select(.id == \"$B\") | .outcome + \" \" + .detail")" 'node_fault .*at fault 3 times when a GPU that it shared failed'

# --- a daemon that hangs
part two blue
ok "a neighbour comes" until_ok 180 state_is "$two" running
pair
hung=$(cut -d' ' -f1 "$daemon/daemon")
touch "$daemon/deaf"
ok "a daemon that answers nothing any more is ended" until_ok 120 eval '! lives "$hung"'
rm "$daemon/deaf"
ok "who had it is tried again" until_ok 180 again "$one" "$A"
like "and told why" "$(attempts "$one" ".items[] | select(.id == \"$A\") | .detail")" 'does not answer any more'
ok "and so is the other" until_ok 180 again "$two" "$B"
arcus cancel "$two" --project blue >/dev/null
ok "which leaves" until_ok 60 state_is "$two" cancelled

# --- one that goes around it
part two blue
ok "a neighbour comes" until_ok 180 state_is "$two" running
A=$(attempts "$one" '.items | sort_by(.id) | .[-1].id') B=$(attempts "$two" '.items[0].id')
driver "gpu 0 client $(first_pid "$A") 35000" "gpu 0 process $(first_pid "$B") 300"
ok "one that uses the GPU around its daemon is ended" until_ok 60 state_is "$two" failed
like "with that as its reason" "$(attempts "$two" '.items[0] | .outcome + " " + .detail')" 'signaled .*around MPS'
ok "its neighbour is not" state_is "$one" running
driver
arcus cancel "$one" >/dev/null
restored() { [ "$(tail -n 1 "$LIB/nvml.conf.log")" = "set_compute_mode $UUID 0" ]; }
ok "when the last is gone the card is as it was" until_ok 60 restored
finish
