#!/usr/bin/env bash
# 45-suspend.t - a task gives its GPU back, another one has it, and the first comes back: with a made-up driver, real control groups, and an agent that is
# killed in the middle. What the driver itself does is tests/gpu/suspend.sh's.
. "$(dirname "$0")/lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB"
cp "$(dirname "$ARCUS")"/fake/lib{nvidia-ml,cuda-both}.so.1 "$LIB/" || give_up "the made-up libraries are not built"
node=
for d in /dev/fuse /dev/kvm /dev/net/tun /dev/loop-control; do [ -z "$node" ] && perl -e 'exit !sysopen(my $f, $ARGV[0], 2048)' "$d" && node=$d; done
[ -n "$node" ] || { skip "a device stands for the GPU" "this machine has none that can be opened"; finish; }
uuid=GPU-fa4e0000-0000-0000-0000-000000000000
mkdir -m 755 "$BASE/cdi"
jq -n --arg a "$uuid" --arg n "$node" '{cdiVersion: "0.6.0", kind: "nvidia.com/gpu", devices: [{name: $a, containerEdits: {deviceNodes: [{path: "/dev/nvidia0", hostPath: $n}]}}]}' >"$BASE/cdi/nvidia.json"
conf() { printf 'gpus 1\ncuda %s\n%s\n' "$LIB/cuda.conf" "${1:-}" >"$LIB/new" && mv "$LIB/new" "$LIB/nvml.conf"; }
conf
: >"$LIB/cuda.conf"
# Whoever has /dev/zero open uses CUDA.
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cuda "$LIB/libcuda-both.so.1" --uvm /dev/zero --cdi "$BASE/cdi" --mps "$(dirname "$ARCUS")/fake/nvidia-cuda-mps-control" --own-devices yes
until_ok 60 eval '[ "$(get /v1/gpus | jq -r ".items[0].state")" = free ]' || give_up "no GPU is offered: $(get /v1/gpus)"

# It counts its turns in a file first: what it says is in its log a moment later.
counts='exec perl -e '\''open(F, "<", "/dev/zero"); open(N, ">>", "/outputs/turns"); $SIG{TERM} = sub { print "heard\n" }; $| = 1; while (!-e "/tmp/end") { syswrite N, ++$n . "\n"; print "turn $n\n"; select(undef, undef, undef, 0.1) } print "over\n"'\'''
attempt() { get "/v1/jobs/$1/attempts" | jq -r ".items[-1].${2:-id}"; }
frozen() { local g; g=$(dirname "$(find /sys/fs/cgroup -path "*arcus/$(attempt "$1")/cgroup.procs" \( -path '*freezer*' -o -path '/sys/fs/cgroup/arcus/*' \) | head -n 1)"); cat "$g/freezer.state" 2>/dev/null || awk '$1 == "frozen" {print $2 ? "FROZEN" : "THAWED"}' "$g/cgroup.events"; }
last() { echo "turn $(tail -n 1 "$DATA/agent/outputs/$(attempt "$1")/turns")"; }
reason_is() { [ "$(job "$1" .reason)" = "$2" ]; }
one=$(submit "$(sh_job "$counts" '{"gpus":1,"cpus":0.5,"memory":"256MB"}')")
wait_for "$one" running 60
until_ok 60 has_said "$one" 'turn 3'
conf "gpu 0 process $(first_pid "$(attempt "$one")") 100"
is "it can be suspended, and says so" "$(attempt "$one" suspendable)" yes

# --- out
arcus suspend "$one" >/dev/null
wait_for "$one" suspended 60
is "it is suspended" "$(job "$one" '.state + " " + .reason')|$(attempt "$one" state)|$(frozen "$one")" "suspended Suspended|suspended|FROZEN"
said=$(last "$one")
is "its GPU is free" "$(get /v1/gpus | jq -r '.items[0].state')" free
two=$(submit "$(sh_job 'echo here; while [ ! -e /tmp/end ]; do sleep 0.1; done' '{"gpus":1,"cpus":0.5,"memory":"256MB"}')")
wait_for "$two" running 60
call POST "/v1/jobs/$one/resume" '{}'
until_ok 60 reason_is "$one" ResumeGPUs
is "another has it: it waits for it" "$(job "$one" '.state + " " + .reason')" "suspended ResumeGPUs"
is "... and has done nothing since" "$(last "$one")" "$said"

# --- and back
arcus exec "$two" -- touch /tmp/end </dev/null
wait_end "$two" 60
until_ok 60 eval '[ "$(attempt "$one" state)" = running ]'
is "when that has ended it is back" "$(job "$one")|$(attempt "$one" state)|$(frozen "$one")" "running|running|THAWED"
until_ok 60 has_said "$one" "turn $((${said#turn } + 3))"
is "... where it was" "$(logs "$one" | grep -A 1 -x "$said" | tail -n 1)" "turn $((${said#turn } + 1))"

# --- after others have shared its GPU
daemon=$RUN/mps/000000000000
call POST "/v1/jobs/$one/suspend" '{}'
wait_for "$one" suspended 60
part=$(submit "$(sh_job 'exec sleep 600' '{"gpus":"0.25","cpus":0.5,"memory":"256MB"}')")
wait_for "$part" running 60
touch "$daemon/stubborn"                # what divides it does not go when asked, and is made to after a while
call POST "/v1/jobs/$one/resume" '{}'
call POST "/v1/jobs/$part/cancel" '{"grace":"0s"}'
until_ok 60 eval '[ "$(attempt "$one" state)" = running ]'
is "it comes back when what divided its GPU has left, and the card is as it was" "$(frozen "$one")|$(tail -n 1 "$LIB/nvml.conf.log")" "THAWED|set_compute_mode $uuid 0"
rm "$daemon/stubborn"

# --- what the driver refuses
echo 'fail checkpoint * 801' >"$LIB/cuda.conf"
call POST "/v1/jobs/$one/suspend" '{}'
failed() { get '/v1/events?limit=1000' | jq -e '[.items[] | select(.name == "task.suspend_failed")] | length > 0'; }
until_ok 60 failed
like "what cannot be moved runs on, and an event says why" "$(job "$one") $(get '/v1/events?limit=1000' | jq -r '[.items[] | select(.name == "task.suspend_failed")][0].data.why')" '^running .*801'

# --- an agent that is killed in the middle
printf 'slow checkpoint * 3000\n' >"$LIB/cuda.conf"
locked() { grep -q '^lock' "$LIB/cuda.conf.log"; }
rm -f "$LIB/cuda.conf.log"
call POST "/v1/jobs/$one/suspend" '{}'
until_ok 60 locked
kill -9 "$(agent_pid)"
wait_for "$one" suspended 90
is "the agent was killed in the middle: it is suspended all the same" "$(job "$one")|$(frozen "$one")" "suspended|FROZEN"
: >"$LIB/cuda.conf"
call POST "/v1/jobs/$one/resume" '{}'
until_ok 60 eval '[ "$(attempt "$one" state)" = running ]'
is "... and comes back" "$(attempt "$one" state)|$(frozen "$one")" "running|THAWED"

# --- its GPU is reserved by another project meanwhile
call POST /v1/projects '{"name":"other"}'
scrubs() { get '/v1/events?limit=1000' | jq '[.items[] | select(.name == "gpu.scrubbed")] | length'; }
in_other() { [ "$(get "/v1/jobs/$1?project=other" | jq -r .state)" = "$2" ]; }
call POST "/v1/jobs/$one/suspend" '{}'
wait_for "$one" suspended 60
call POST /v1/reservations '{"project":"other","gpus":"1","duration":"1h","name":"theirs"}'
call POST "/v1/jobs/$one/resume" '{}'
call POST "/v1/jobs?project=other" "$(sh_job 'while [ ! -e /tmp/end ]; do sleep 0.1; done' '{"gpus":1,"cpus":0.5,"memory":"256MB"}')"
theirs=$(field .id)
until_ok 90 in_other "$theirs" running
is "what is resumed does not come to what another project has reserved" "$(job "$one" '.state + " " + .reason')|$(get "/v1/jobs/$theirs?project=other" | jq -r .state)" "suspended ResumeGPUs|running"
arcus exec "$theirs" --project other -- touch /tmp/end </dev/null
until_ok 60 in_other "$theirs" done
call DELETE /v1/reservations/theirs
until_ok 60 eval '[ "$(attempt "$one" state)" = running ]'
until_ok 60 eval '[ "$(scrubs)" -ge 2 ]'
is "... but when that is over" "$(job "$one")|$(frozen "$one")" "running|THAWED"

# --- ends
call POST "/v1/jobs/$one/suspend" '{}'
wait_for "$one" suspended 60
call POST "/v1/jobs/$one/cancel" '{"grace":"1h"}'
is "a suspended task is cancelled without grace: its GPU may be another's" "$(how "$one" 60)" "cancelled cancelled 0"
is "... and nothing of it has run again" "$(logs "$one" | grep -c heard)" 0

# --- work of class spot is suspended for what has a better right, here another project's, and goes on behind it
rm -f "$LIB"/cuda.conf.*
before=$(scrubs)
spot=$(submit "$(sh_job "$counts" '{"gpus":1,"priority":"spot"}')")
wait_for "$spot" running 60
until_ok 60 has_said "$spot" 'turn 3'
conf "gpu 0 process $(first_pid "$(attempt "$spot")") 100"
call POST "/v1/jobs?project=other" "$(sh_job 'echo here; while [ ! -e /tmp/end ]; do sleep 0.1; done' '{"gpus":1,"priority":"high"}')"
high=$(field .id)
until_ok 90 in_other "$high" running
is "spot work has given its GPU to what has a better right, and was not ended" "$(job "$spot" '.state + " " + .reason')|$(frozen "$spot")" "suspended ResumeGPUs|FROZEN"
said=$(last "$spot")
until_ok 60 eval '[ "$(scrubs)" -gt $before ]'
is "the GPU was overwritten for the other project" "$(($(scrubs) - before))" 1
arcus exec "$high" --project other -- touch /tmp/end </dev/null
until_ok 60 in_other "$high" done
until_ok 60 eval '[ "$(attempt "$spot" state)" = running ]'
until_ok 60 eval '[ "$(scrubs)" -gt $((before + 1)) ]'
is "... and again before what was suspended came back to it" "$(($(scrubs) - before))" 2
until_ok 60 has_said "$spot" "turn $((${said#turn } + 3))"
is "... and goes on where it was, in the same attempt" "$(logs "$spot" | grep -A 1 -x "$said" | tail -n 1) $(get "/v1/jobs/$spot/attempts" | jq '.items | length')" "turn $((${said#turn } + 1)) 1"
call POST "/v1/jobs/$spot/cancel" '{"grace":"1s"}'
is "it ends" "$(how "$spot" 60)" "cancelled cancelled 0"
is "the books balance" "$(books)" ""
finish
