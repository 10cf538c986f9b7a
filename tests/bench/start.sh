#!/usr/bin/env bash
# start.sh [ROUNDS [COUNT]] - from a submit to the first instruction of its container, and no-op jobs to their end, beside the same
# bundle run by hand with the same runtime; the bundle beside the same without parts of it; and whose the CPU time of a job is. Where Slurm is installed its no-op jobs are run behind them, on as many slurmd as there are agents. Root,
# and the programs of build/ (ARCUS_BIN names another folder).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
PATH=$PATH:/usr/sbin:/sbin
. tests/bench/slurm.sh
B=${ARCUS_BIN:-build} BENCH=${ARCUS_BENCH:-build/bench-start} rounds=${1:-50} count=${2:-200} agents=${AGENTS:-4}
TMP=$(mktemp -d "${TMPDIR:-/tmp}/arcus-start.XXXXXX")
RUN=/run/arcus-start-$$
chmod 755 "$TMP"
pids=()
cleanup() {
    for p in $(pgrep -f "^$RUN-[0-9]*/bin/arcus-task" || true); do kill "$p" 2>/dev/null || true; done
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    stop_slurm
    sleep 1
    rm -rf "$TMP" "$RUN"-*
}
trap cleanup EXIT
"$B/arcus" server --data "$TMP/server" --listen 127.0.0.1:0 --default-image host >"$TMP/server.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do [ -s "$TMP/server/address" ] && break; sleep 0.05; done
URL=$(cat "$TMP/server/address") KEY=$(cat "$TMP/server/admin.key")
export ARCUS_SERVER=$URL ARCUS_KEY=$KEY
agent() { # agent N
    local token
    token=$("$B/arcus" nodes token -o json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
    "$B/arcus" agent --server "$URL" --data "$TMP/agent-$1" --run "$RUN-$1" --name "bench-$1" --allow-host-image --token "$token" >"$TMP/agent-$1.log" 2>&1 &
    pids+=($!)
}
ready() { [ "$("$B/arcus" nodes -o json | grep -c '"state": "ready"')" = "$1" ]; }
agent 1
for _ in $(seq 100); do ready 1 && break; sleep 0.1; done
sleep 2                                 # the trial of the runtime is over

job() { printf '{"command":%s,"cpus":%s,"memory":"128MB"}' "$1" "$2"; }
HOLDER=$("$B/arcus" run -d --cpus 0.5 --memory 128MB -- sleep 10000)
for _ in $(seq 100); do CONFIG=$(ls "$TMP"/agent-1/tasks/att-*/config.json 2>/dev/null || true); [ -n "$CONFIG" ] && break; sleep 0.1; done
sleep 0.5
ATTEMPT=$(basename "$(dirname "$CONFIG")")
SUPERVISOR=$(pgrep -f "^$RUN-1/bin/arcus-task .*$ATTEMPT" | tail -n 1)
RUNTIME=$(sed -n 's/.*"runtime":"\([^"]*\)".*/\1/p' "$TMP/agent-1/tasks/$ATTEMPT/plan.json")
if [ -x "$RUNTIME.bin" ]; then          # of a bundle: its script is nothing that a bare call needs
    export BARE_LIBRARIES=LD_LIBRARY_PATH=${RUNTIME%/*}/lib
    RUNTIME=$RUNTIME.bin
fi
STATE=$(sed -n 's/.*"runtime_root":"\([^"]*\)".*/\1/p' "$TMP/agent-1/tasks/$ATTEMPT/plan.json")    # in memory, as ours
bundles() { # bundles COMMAND: for each slot the config.json of the holder with another command and control group
    local i
    for i in $(seq 0 15); do
        mkdir -p "$TMP/bundles/$i"
        sed -e 's|"args":\["sleep","10000"\]|"args":'"$1"'|' -e 's|"cgroupsPath":"[^"]*"|"cgroupsPath":"/arcus/bench-'"$i"'"|' "$CONFIG" >"$TMP/bundles/$i/config.json"
        grep -qF "$1" "$TMP/bundles/$i/config.json"
    done
}
date='["/bin/date","+%s%N"]' none='["/bin/true"]'
bundles "$date"
job "$date" 0.5 >"$TMP/job.json"
"$BENCH" "${URL#http://}" "$KEY" "$TMP/job.json" "$TMP/bundles" "$RUNTIME" "$STATE" "$SUPERVISOR" "$rounds"

# What each part of the bundle costs: left out, the rest as it is.
without() { # without NAME SED..: a bundle with another config.json
    mkdir -p "$TMP/without/$1"
    sed "${@:2}" "$TMP/bundles/0/config.json" >"$TMP/without/$1/config.json"
    cmp -s "$TMP/bundles/0/config.json" "$TMP/without/$1/config.json" && { echo "nothing was left out for $1" >&2; exit 1; }
    true
}
no_user=(-e 's|{"type":"user"},||' -e 's|"[ug]idMappings":\[[^]]*\],||g') no_net=(-e 's|{"type":"network"},||')
bundles "$none"
without user "${no_user[@]}"
without network "${no_net[@]}"
without both "${no_user[@]}" "${no_net[@]}"
without seccomp -e 's|,"annotations":{[^}]*}||'
without paths -e 's|"maskedPaths":\[[^]]*\],||' -e 's|,"readonlyPaths":\[[^]]*\]||'
without limits -e 's|"resources":{.*\]},"maskedPaths"|"resources":{},"maskedPaths"|'
"$BENCH" "${URL#http://}" "$KEY" "$TMP/job.json" "$TMP/bundles" "$RUNTIME" "$STATE" "$SUPERVISOR" "$rounds" beside "our bundle=$TMP/bundles/0" \
    "without user and network namespace=$TMP/without/both" "without user namespace=$TMP/without/user" "without network namespace=$TMP/without/network" \
    "without seccomp=$TMP/without/seccomp" "without masked and read-only paths=$TMP/without/paths" "without limits and device list=$TMP/without/limits"

for i in $(seq 2 "$agents"); do agent "$i"; done
for _ in $(seq 100); do ready "$agents" && break; sleep 0.1; done
sleep 2
bundles "$none"
job "$none" "${JOB_CPUS:-0.5}" >"$TMP/job.json"
slots=$(($(nproc) * 2 > 16 ? 16 : $(nproc) * 2))
"$BENCH" "${URL#http://}" "$KEY" "$TMP/job.json" "$TMP/bundles" "$RUNTIME" "$STATE" "$SUPERVISOR" "$count" "$slots" | tee "$TMP/rates"

# Whose the CPU time of a job is: threads of the server, agents, supervisors, and what those have waited for (the runtime and the container).
cpu() {
    awk '{sub(/.*\(/, ""); name = $0; sub(/\).*/, "", name); sub(/.*\) /, ""); print "server: " name, $12 + $13}' /proc/"${pids[0]}"/task/*/stat
    for p in "${pids[@]:1}"; do awk '{sub(/.*\) /, ""); print "agents", $12 + $13}' "/proc/$p/stat"; done
    for p in $(pgrep -f "^$RUN-[0-9]*/bin/arcus-task"); do awk '{sub(/.*\) /, ""); print "supervisors", $12 + $13 "\nruntime and container", $14 + $15}' "/proc/$p/stat" 2>/dev/null || true; done
}
cpu >"$TMP/before"
"$BENCH" "${URL#http://}" "$KEY" "$TMP/job.json" "$TMP/bundles" "$RUNTIME" "$STATE" "$SUPERVISOR" "$count" "$slots" ours
cpu >"$TMP/after"
awk -v n="$count" -v hz="$(getconf CLK_TCK)" '{k = $0; sub(/ [0-9]+$/, "", k)} FNR == NR {ms[k] -= $NF; next} {ms[k] += $NF}
    END {for (k in ms) if (ms[k] > 0) printf "   CPU of a job: %-24s %5.2f ms\n", k, ms[k] * 1000 / hz / n}' "$TMP/before" "$TMP/after" | sort
"$BENCH" "${URL#http://}" "$KEY" "$TMP/job.json" "$TMP/bundles" "$RUNTIME" "$STATE" "$SUPERVISOR" "$count" "$slots" bare

# The array of jobs is one request and its tasks write nothing: all that is counted is their way from the queue to their end.
if [ -n "${SLURM_COUNT=200}" ] && command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null; then
    if ! start_slurm "$agents" $(($(nproc) * 2)) $'SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU'; then
        echo "slurm does not start here: $(tail -n 1 "$TMP/slurm/slurmctld.log")"
        exit
    fi
    for _ in $(seq 100); do [ "$(sinfo -h -N -t idle | wc -l)" = "$agents" ] && break; sleep 0.1; done
    nodes=$(sinfo -h -N -t idle | wc -l)
    ours=$(awk '/^no-op/ {print $6}' "$TMP/rates" | sort -n | sed -n 2p)
    printf '#!/bin/sh\ntrue\n' >"$TMP/job.sh"
    for _ in 1 2 3; do
        t0=$(date +%s%N)
        sbatch -Q -n 1 -D /tmp -o /dev/null --array=1-"$SLURM_COUNT" "$TMP/job.sh" >/dev/null
        while [ -n "$(squeue -h -t PD,R,CG)" ]; do sleep 0.1; done
        awk -v ns=$(($(date +%s%N) - t0)) -v count="$SLURM_COUNT" -v nodes="$nodes" -v ours="$ours" \
            'BEGIN {r = count * 1e9 / ns; printf "slurm, %d slurmd: %.1f no-op jobs a second   ours at the median: %.1f times as many\n", nodes, r, ours / r}'
    done
fi
