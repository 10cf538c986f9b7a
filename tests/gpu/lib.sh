# lib.sh - what the scripts of this folder share: a cloud of its own from the bundle on a host with an NVIDIA GPU, TAP, and, where something fails, all that is needed to
# understand it without a second run: such a host is lent by the minute. Everything that waits has a limit; a script that runs out of LIMIT seconds skips what is left.
#
#   ARCUS  the program, crun beside it (else from PATH)      PY     a python3 outside of /root and /home (else found; one with PyTorch is taken first)
#   LIMIT  seconds for the whole script (540)                KEEP=1 leaves the folder    UP  more flags of `arcus up`, for a dry run (dry.sh)
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${ARCUS:=$(command -v arcus)}" "${LIMIT:=540}" "${UP:=}" "${UVM:=/dev/nvidia-uvm}"
count=0 bad=0 explained=0 CLOUD='' AGENT=''
NAME=$(basename "$0" .sh)

# --- TAP

note() { printf '%s\n' "$*" | sed 's/^/# /'; }
pass() { count=$((count + 1)); echo "ok $count - $1"; }
fail() { # fail NAME GOT WANTED: and why, as far as this machine can tell
    count=$((count + 1)) bad=$((bad + 1))
    echo "not ok $count - $1"
    printf '%s\n' "got: $2" "wanted: $3" | head -c 3000 | sed 's/^/#   /'
    explain
}
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }
true_that() { if "$PY" -IS -c "raise SystemExit(not ($2))" 2>/dev/null; then pass "$1 ($2)"; else fail "$1" "$2" "true"; fi; }
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
give_up() { echo "Bail out! $*"; explain; exit 1; }
until_ok() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }
room_for() { # room_for SECONDS NAME: there is time left for that; else it is skipped
    [ $((LIMIT - SECONDS)) -ge "$1" ] && return
    skip "$2" "it needs about $1 s, and $((LIMIT - SECONDS)) are left of $LIMIT"
    return 1
}
part() { note "--- $* (at $SECONDS s)"; }

# What was the matter, at most six times: the last job, the agent, MPS, the kernel.
explain() {
    local job
    [ $((explained += 1)) -le 6 ] || return 0
    job=$(cat "${BASE:-/nonexistent}/last" 2>/dev/null)
    {
        if [ -n "$job" ]; then
            echo "== $job"; arcus describe job "$job" -o json 2>&1 | json "json.dumps({k: d.get(k) for k in ('state', 'reason', 'reason_text', 'outcome', 'detail', 'gpus', 'cpus', 'memory_mib')}) + '\n' + json.dumps(d['spec'].get('command')) + ''.join('\n' + json.dumps(a) for a in d['attempts'])" | head -c 4000
            echo "== it said"; arcus logs "$job" 2>&1 | tail -n 15
        fi
        echo "== the last words of a command"; tail -n 5 "$BASE/err" 2>/dev/null
        echo "== events"; arcus events --limit 1000 2>&1 | tail -n 12 | cut -c1-240
        echo "== cloud"; tail -n 25 "$BASE/log" 2>/dev/null | cut -c1-300
        echo "== MPS"; tail -n 25 "$BASE"/run/mps/*/log/* 2>/dev/null | cut -c1-240
        echo "== GPU"; nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv,noheader 2>&1 | head -n 12
        echo "== kernel"; dmesg 2>/dev/null | tail -n 10 | cut -c1-240
    } 2>/dev/null </dev/null | sed 's/^/#     /'
}

# --- the cloud

leave() {
    local p
    trap - EXIT
    rm -f "$BASE/last"
    for p in $(jobs -p); do [ "$p" = "$CLOUD" ] || kill "$p" 2>/dev/null; done
    # tasks are asked to go first: what is left of one that is killed in mid-kernel hurts whoever comes next
    [ -z "$CLOUD" ] || { for p in $(arcus ps -o json 2>/dev/null | json "' '.join(j['id'] for j in d['items'])"); do arcus cancel "$p" --grace 0s >/dev/null 2>&1; done; sleep 1; kill "$CLOUD" 2>/dev/null; wait "$CLOUD" 2>/dev/null; }
    for p in $(pgrep -f "^$BASE/run/bin/arcus-task "); do kill "$p" 2>/dev/null; done
    for p in "$BASE"/run/mps/*/daemon; do [ -e "$p" ] && kill "$(cut -d' ' -f1 "$p")" 2>/dev/null; done
    sleep 1
    [ ! -d "$BASE/over" ] || umount -l "$BASE/over" 2>/dev/null
    note "$NAME: $((count - bad)) of $count in $SECONDS s"
    if [ -n "${KEEP:-}" ]; then note "left: $BASE"; else rm -rf --one-file-system "$BASE" 2>/dev/null; fi
    echo "1..$count"
    exit $((bad > 0))
}

# begin [torch]: the program, a python (with PyTorch), a folder that tasks see
begin() {
    local p
    [ -x "$ARCUS" ] || { echo "Bail out! no arcus: set ARCUS or PATH"; exit 1; }
    [ "$(id -u)" = 0 ] || { echo "Bail out! needs root"; exit 1; }
    ARCUS=$(readlink -f "$ARCUS")
    for p in "${PY:-}" /opt/torch/.venv/bin/python3 /usr/bin/python3 "$(command -v python3)"; do
        [ -x "$p" ] && { PY=$p; [ -z "${1:-}" ] || "$p" -c 'import torch' 2>/dev/null; } && break
    done
    [ -z "${1:-}" ] || "$PY" -c 'import torch' || { echo "Bail out! $PY has no PyTorch: set PY"; exit 1; }
    BASE=$(mktemp -d "/opt/arcus-$NAME.XXXXXX") && chmod 755 "$BASE" || exit 1
    export ARCUS_CONFIG=$BASE/config HOME=$BASE
    trap leave EXIT
    trap 'exit 1' INT TERM HUP
    mkdir -m 755 "$BASE/in" && cp "$HERE"/tasks/*.py "$HERE"/tasks/*.c "$BASE/in/" && chmod 644 "$BASE"/in/*
    note "$NAME on $(uname -r), $(stat -fc %T /sys/fs/cgroup), $(nvidia-smi --query-gpu=name,driver_version,uuid,compute_mode,mig.mode.current --format=csv,noheader 2>&1 | head -n 1); $(nproc) processors, $(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo) MiB free; python $PY"
}
arcus() { "$ARCUS" "$@"; }
json() { "$PY" -IS -c "import json,sys; d=json.load(sys.stdin); print($1)" 2>/dev/null; }       # json EXPRESSION: of d
tried() { arcus describe node gpuhost -o json | grep -qE '"runtime": *"(crun|runc)'; }
has_gpu() { [ "$(arcus gpus -o json | json "d['items'][0]['state'] == 'free' and not d['items'][0]['simulated']")" = True ]; }
cloud_up() { # cloud_up FLAGS...: with one node, gpuhost
    "$ARCUS" up --data "$BASE/data" --run "$BASE/run" --listen 127.0.0.1:0 --name gpuhost $UP "$@" >"$BASE/log" 2>&1 </dev/null &
    CLOUD=$!
    until_ok 30 test -s "$BASE/data/address" -a -s "$BASE/data/admin.key" || give_up "the cloud does not start"
    arcus config set gpu --server "$(cat "$BASE/data/address")" --key-file "$BASE/data/admin.key" >/dev/null 2>"$BASE/err" || give_up "no configuration: $(cat "$BASE/err")"
    until_ok 60 tried || give_up "no container can be run here: $(arcus describe node gpuhost 2>&1 | head -n 40)"
    if [ -e /dev/nvidiactl ] || [ -n "$UP" ]; then until_ok 60 has_gpu || give_up "the node offers no GPU: $(arcus gpus 2>&1)"; fi
    pass "the cloud is up"
    note "cannot: $(arcus describe node gpuhost -o json | json "d['info'].get('cannot')")"
}

# --- jobs. The last one is kept in BASE/last, for explain.

run() { # run FLAGS -- COMMAND: what it prints
    local rc
    rm -f "$BASE/last"
    timeout "${RUN_LIMIT:-120}" "$ARCUS" run "$@" 2>"$BASE/err" </dev/null
    rc=$?
    grep -oE 'job-[0-9a-z]+' "$BASE/err" 2>/dev/null | head -n 1 >"$BASE/last"
    [ $rc = 0 ] || echo "exit code $rc: $(tail -n 4 "$BASE/err" | tr '\n' ' ')"
}
start() { # start FLAGS -- COMMAND: the job's id
    arcus submit -o json "$@" 2>"$BASE/err" </dev/null | json "d['id']" | tee "$BASE/last"
}
field() { arcus describe job "$1" -o json 2>/dev/null | json "$2"; }
attempts() { arcus attempts "$1" -o json 2>/dev/null | json "$2"; }            # the first attempt comes first
how_ended() { attempts "$1" "[str(x.get('outcome')) + ' ' + str(x.get('detail', '')) for x in d['items']][-1]"; }
state_is() { [ "$(field "$1" "d['state']")" = "$2" ]; }
over() { field "$1" "d['state']" | grep -qE '^(done|failed|cancelled)$'; }
said() { arcus logs "$1" 2>/dev/null; }
has_said() { said "$1" | grep -q "$2"; }
soon() { "$PY" -IS -c "import time; print('%.2f' % (time.time() + $1))"; }
figure() { grep -oE "$1 [0-9.]+" | head -n 1 | cut -d' ' -f2; }              # figure WORD: the number behind it
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1; }
mode() { nvidia-smi --query-gpu=compute_mode --format=csv,noheader | head -n 1; }
some() { "$PY" -IS -c "import os; print('%g' % max(0.1, min($1, os.cpu_count() * $2)))"; }     # some MOST PART: processors, so that tasks fit beside each other here
procs_of() { # procs_of ATTEMPT: the file of its processes
    find /sys/fs/cgroup -path "*arcus/$1/cgroup.procs" 2>/dev/null | head -n 1
}
