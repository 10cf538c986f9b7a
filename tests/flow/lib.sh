# lib.sh - what the flows share: a cloud of their own in a folder of their own, checks that print what was got and what was wanted,
# and a last check that nothing is left over. Sourced first; `finish` comes last.
#
# A flow never touches another cloud of the machine: its folders, ports, node names and processes are its own, so that flows run
# beside each other. What it starts in the background it puts into `pids`, and finish ends it; servers and agents end with their flow,
# whatever ends that. Needs root, as containers do.
# shellcheck shell=bash
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 1
: "${ARCUS:=$PWD/build/test/arcus}"
export LSAN_OPTIONS=${LSAN_OPTIONS:-print_suppressions=0} LC_ALL=C.UTF-8
FLOW=$(basename "$0" .t)
BASE=$(mktemp -d "${FLOW_HOME:-${ARCUS_TMP:-/tmp}}/$FLOW.XXXXXX")
chmod 755 "$BASE"
mkdir "$BASE/tmp"
# reports of everything that inherits our environment become files; the agent and its helpers do not, theirs are in the logs
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:log_path=$BASE/report UBSAN_OPTIONS=print_stacktrace=1:log_path=$BASE/report
export TMPDIR=$BASE/tmp                 # whatever a program of ours leaves there is found at the end
DATA=$BASE/data RUN=$BASE/run NODE=n${FLOW%%-*}-$$ CACHE=$PWD/build/cache
export ARCUS_CONFIG=$BASE/config
unset ARCUS_SERVER ARCUS_KEY ARCUS_PROJECT ARCUS_CONTEXT ARCUS_PIN ARCUS_CA
URL='' KEY='' UP='' STORE=() pids=() count=0 bad=0 said_plan=

# --- checks

ok() { # ok NAME CONDITION...: the condition is a command
    local name=$1
    shift
    count=$((count + 1))
    if "$@" >"$BASE/said" 2>&1; then
        echo "ok $count - $name"
        return 0
    fi
    bad=$((bad + 1))
    echo "not ok $count - $name"
    printf '%s\n' "failed: $*" | cut -c 1-400 | sed 's/^/#   /'
    head -c 2000 "$BASE/said" | sed 's/^/#   /'
    return 1
}
show() { printf '#   %-7s %s\n' "$1" "$(printf '%s' "$2" | head -c 1500 | sed '2,$s/^/#           /')"; }
fail() { # fail NAME GOT WANTED
    count=$((count + 1)) bad=$((bad + 1))
    echo "not ok $count - $1"
    show got: "$2"
    show wanted: "$3"
    return 1
}
pass() { count=$((count + 1)); echo "ok $count - $1"; }
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }                            # is NAME GOT WANTED
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }            # like NAME GOT REGEX
unlike() { if [[ $2 =~ $3 ]]; then fail "$1" "$2" "nothing like /$3/"; else pass "$1"; fi; }
within() { if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then pass "$1"; else fail "$1" "$2" "$3 to $4"; fi; }    # within NAME GOT FROM TO
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }                                      # skip NAME WHY
note() { printf '# %s\n' "$*"; }
give_up() { # give_up WHY: this flow cannot go on; the others can, so it is no "Bail out!"
    fail "$FLOW runs to its end" "$1" "its last check"
    echo "1..$count"
    said_plan=1
    exit 1
}

# until_ok SECONDS COMMAND...: again and again until it succeeds. Waiting is for things to happen, never for time to pass: a machine
# that is busy with something else gets a minute at least.
until_ok() {
    local end=$((SECONDS + ($1 > 60 ? $1 : 60)))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# --- a cloud

store_flags() { # on PostgreSQL every flow has its own database
    STORE=()
    [ -n "${ARCUS_FLOW_STORE:-}" ] || return 0
    local db=flow_${FLOW//[!a-z0-9]/_}_$$
    psql -qAt "$ARCUS_FLOW_STORE" -c "CREATE DATABASE $db" >/dev/null || give_up "no database"
    STORE=(--store "${ARCUS_FLOW_STORE/\/arcus\?/\/$db?}")
    STORE_DB=$db
}
sql() { # sql STATEMENT: straight into the store, to look at the books
    if [ -n "${ARCUS_FLOW_STORE:-}" ]; then psql -qAt "${ARCUS_FLOW_STORE/\/arcus\?/\/$STORE_DB?}" -c "$1"; else sqlite3 -readonly -cmd '.timeout 20000' "$DATA/arcus.db" "$1"; fi
}
answers() { curl -fsSk --max-time 10 "$(cat "$DATA/address" 2>/dev/null)/readyz"; }
node_ready() { [ "$(get "/v1/nodes/${1:-$NODE}" | jq -r .state)" = ready ]; }
node_knows() { get "/v1/nodes/${1:-$NODE}" | jq -e '.info | tostring | test("crun|runc")'; }

server_start() { # server_start server|up FLAGS...: one of them, and waits until it answers
    local what=$1
    shift
    [ -n "${STORE_DB:-}" ] || store_flags
    rm -f "$DATA/address"
    setpriv --pdeathsig TERM "$ARCUS" "$what" --data "$DATA" "${STORE[@]}" "$@" >>"$BASE/server.log" 2>&1 </dev/null &
    UP=$!
    answers_or_dead() { answers || ! kill -0 "$UP"; }
    until_ok 60 answers_or_dead && answers >/dev/null 2>&1 || give_up "the server does not answer: $(tail -n 3 "$BASE/server.log" | tr '\n' ' ')"
    URL=$(cat "$DATA/address") KEY=$(cat "$DATA/admin.key")
}
cloud_up() { # cloud_up FLAGS...: a whole cloud on loopback, its node ready, the command line set up
    server_start up --run "$RUN" --listen 127.0.0.1:0 --name "$NODE" "$@"
    until_ok 60 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/server.log" | tr '\n' ' ')"
    arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
}
agent_start() { # agent_start NAME FLAGS...: one more node; its folders are $BASE/NAME.data and .run
    local name=$1
    shift
    setpriv --pdeathsig TERM "$ARCUS" agent --server "$URL" --data "$BASE/$name.data" --run "$BASE/$name.run" --name "$name" \
        --allow-host-image "$@" >>"$BASE/$name.log" 2>&1 </dev/null &
    AGENT=$!
    pids+=("$AGENT")
}
stop() { # stop PID [SIGNAL]: and waits until it is gone; its exit code is ours
    kill "-${2:-TERM}" "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}
lives() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }         # kill -0 takes for alive what has ended, until somebody has asked how
ours() { [ "$(ps -o ppid= -p "$1" 2>/dev/null | tr -d ' ')" = $$ ]; }     # numbers come again: one that has ended may be a stranger's by now
agent_pid() { pgrep -f "^$ARCUS agent .*--data ${1:-$DATA/agent}( |$)" | head -n 1; }
# The first process of an attempt's container, as the host sees it: the one that is number 1 inside. The lowest number would be
# another one as soon as the host's numbers begin again.
first_pid() { local p; for p in $(cat "$(find /sys/fs/cgroup -path "*arcus/$1/cgroup.procs" | head -n 1)" 2>/dev/null); do grep -qE '^NSpid:.*[[:space:]]1$' "/proc/$p/status" 2>/dev/null && echo "$p" && return; done; }
supervisors() { pgrep -f "^$RUN/bin/arcus-task .*/att-" "$@"; }  # those that run something: others wait for a task

# --- asking

arcus() { "$ARCUS" "$@"; }
call() { # call METHOD PATH [JSON] [CURL FLAGS...]: STATUS, BODY and HEAD of the reply
    local method=$1 path=$2 body=${3:-}
    shift 2
    [ $# -gt 0 ] && shift
    local data=()
    [ -n "$body" ] && data=(-H 'Content-Type: application/json' --data-binary "$body")
    STATUS=$(curl -sk --max-time 60 -X "$method" -o "$BASE/body" -D "$BASE/head" -w '%{http_code}' -H "Authorization: Bearer ${AS:-$KEY}" \
        "${data[@]}" "$@" "$URL$path" 2>/dev/null)
    BODY=$(tr -d '\0' <"$BASE/body" 2>/dev/null) HEAD=$(tr -d '\r' <"$BASE/head" 2>/dev/null)
    : >"$BASE/body"
}
get() { curl -fsSk --max-time 60 -H "Authorization: Bearer ${AS:-$KEY}" "$URL$1" 2>/dev/null; }
field() { jq -r "$1" <<<"$BODY"; }
answer() { is "$1" "$STATUS $(field "${4:-.type}" 2>/dev/null)" "$2 $3"; }     # answer NAME STATUS TYPE [JQ]
refused() { # refused NAME STATUS KIND [REGEX OF THE DETAIL]: a problem, of that kind
    if [ "$STATUS" = "$2" ] && [ "$(field .type 2>/dev/null)" = "/problems/$3" ] && [[ $(field .detail) =~ ${4:-.} ]]; then
        pass "$1"
    else
        fail "$1" "$STATUS $BODY" "$2 /problems/$3, with detail like /${4:-.}/"
    fi
}
submit() { # submit JSON: the id, or nothing and a note why
    call POST /v1/jobs "$1"
    if [ "$STATUS" = 201 ]; then field .id; else note "submit: $STATUS $BODY" >&2; fi
}
job() { get "/v1/jobs/$1" | jq -r "${2:-.state}"; }
in_state() { [[ " $2 " == *" $(job "$1") "* ]]; }
ended() { in_state "$1" 'done failed cancelled'; }
wait_for() { until_ok "${3:-60}" in_state "$1" "$2" || note "$1 is $(job "$1" '.state + " " + .reason + " " + .detail'), not $2"; }   # wait_for JOB STATES [SECONDS]
wait_end() { until_ok "${2:-60}" ended "$1" || note "$1 has not ended: $(job "$1" '.state + " " + .reason + " " + .detail')"; }
how() { wait_end "$1" "${2:-60}"; job "$1" '"\(.state) \(.outcome) \(.exit_code)"'; }      # "failed exited 3"
logs() { get "/v1/jobs/$1/logs${2:+?$2}"; }      # logs JOB [QUERY]: the command line's own way is flow 08's
has_said() { logs "$1" | grep -q "$2"; }
sh_job() { jq -nc --arg s "$1" --argjson more "${2:-{\}}" '{command: ["sh", "-c", $s], cpus: 0.1, memory: "128MB"} + $more'; }    # sh_job SCRIPT [MORE JSON]
run_sh() { # run_sh SCRIPT [MORE JSON]: runs it to its end; OUT has what it printed, JOB its id, HOW its end
    JOB=$(submit "$(sh_job "$@")")
    HOW=$(how "$JOB")
    OUT=$(logs "$JOB")
}

# --- the books: asked of the store itself, so that no reader can smooth them

books() { # what does not balance; nothing when all does
    sql "SELECT 'events have gaps: ' || count(*) || ' of ' || max(seq) FROM event HAVING count(*) <> max(seq) OR min(seq) <> 1"
    sql "SELECT 'an ended attempt without usage: ' || a.id FROM attempt a LEFT JOIN usage u ON u.attempt = a.id WHERE a.ended_ms > 0 AND a.started_ms > 0 AND u.attempt IS NULL"
    sql "SELECT 'usage without an attempt that ran: ' || u.attempt FROM usage u LEFT JOIN attempt a ON a.id = CASE WHEN u.part_of > 0 THEN u.part_of ELSE u.attempt END WHERE a.id IS NULL OR a.started_ms = 0 OR (a.ended_ms = 0 AND u.part_of = 0)"
    sql "SELECT 'usage is not its attempt' || 's time: ' || u.attempt FROM usage u JOIN attempt a ON u.attempt = a.id WHERE (u.started_ms <> a.started_ms AND NOT EXISTS (SELECT 1 FROM usage p WHERE p.part_of = a.id)) OR u.ended_ms <> a.ended_ms OR u.ended_ms < u.started_ms"
    sql "SELECT 'the parts of an attempt' || 's usage are not its time: ' || a.id FROM attempt a WHERE a.ended_ms > 0 AND a.started_ms > 0 AND EXISTS (SELECT 1 FROM usage p WHERE p.part_of = a.id) AND (SELECT SUM(u.ended_ms - u.started_ms) FROM usage u WHERE u.attempt = a.id OR u.part_of = a.id) <> a.ended_ms - a.started_ms"
    sql "SELECT 'two live attempts of one task: ' || job FROM attempt WHERE state < 4 GROUP BY job, task HAVING count(*) > 1"
    sql "SELECT 'an ended job with a live attempt: ' || j.id FROM job j JOIN attempt a ON a.job = j.id WHERE j.state >= 4 AND a.state < 4"
    sql "SELECT 'a job whose tasks do not add up: ' || id FROM job WHERE state >= 4 AND done + failed + cancelled <> count"
}

# --- the end

# A word of a live process that shows it to be ours: the folder is in its arguments, its root or its mounts.
# What divides a GPU has it in its environment alone.
left_processes() {
    local p
    ps -eo pid=,args= | grep -F "$BASE" | grep -vE "^ *($$|$BASHPID) |grep -F|prove|/tests/flow/" || true
    for p in $(grep -lsaF "CUDA_MPS_PIPE_DIRECTORY=$BASE" /proc/[0-9]*/environ | cut -d / -f 3); do ! lives "$p" || echo "$p an MPS daemon"; done
}
left_mounts() { grep -lF -e "$BASE" /proc/[0-9]*/mounts 2>/dev/null | head -n 5 || true; grep -hF "$BASE/" /proc/self/mountinfo || true; }
left_loops() { losetup -a 2>/dev/null | grep -F "$BASE" || true; }
attempts_seen() { ls "$DATA/agent/logs" "$BASE"/*.data/logs 2>/dev/null | grep '^att-' | sort -u; }
left_groups() { # of our attempts: other clouds of the machine have theirs
    { find /sys/fs/cgroup -maxdepth 4 -type d -name 'att-*' 2>/dev/null || true; } | { grep -F -f <(attempts_seen | sed 's|^|/|') || true; }
}
left_files() { # what is only there while something happens
    find "$BASE/tmp" "$RUN/tasks" "$RUN/slots" "$BASE"/*.run/tasks "$BASE"/*.run/slots "$RUN/crun" "$RUN/runc" "$BASE"/*.run/crun "$BASE"/*.run/runc -mindepth 1 -maxdepth 2 2>/dev/null
    find "$BASE" -path "$BASE/tmp" -prune -o \( -name '*.tmp' -o -name '*.new' -o -name '.tmp*' -o -name '*.part' -o -name '.att-*' -o -name 'trial*' \) -print 2>/dev/null
}
# One that is killed while it looks for leaks at its end says that it cannot get the registers of a thread: that is no finding.
sanitizer_words() { cat "$BASE"/report.* 2>/dev/null | grep -v 'Unable to get registers from thread' | head -n 60; grep -rnE 'AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior|Assertion .* failed' "$BASE" --include='*.log' | head -n 20 || true; }
all_gone() {
    local left
    left=$(left_processes; left_mounts; left_loops; left_groups; left_files)
    [ -z "$left" ] || { printf '%s\n' "$left"; return 1; }
}
# No job is alive any more, and no folder of one: asked before the cloud stops, while there is somebody to clean up.
quiet() { [ "$(get '/v1/jobs?limit=1000' | jq '.items | length')" = 0 ] && [ -z "$(ls "$RUN/tasks" 2>/dev/null; ls -d "$BASE"/*.run/tasks/* 2>/dev/null)" ]; }

finish() {
    local id code left
    if [ -n "$UP" ] && kill -0 "$UP" 2>/dev/null; then
        for id in $(get '/v1/jobs?limit=1000' | jq -r '.items[].id'); do call POST "/v1/jobs/$id/cancel" '{"grace":"0s"}'; done
        until_ok 60 quiet
        stop "$UP"
        code=$?
        is "the server leaves with 0" "$code" 0
        is "the books balance" "$(books 2>&1)" ""
    fi
    for id in "${pids[@]}"; do ours "$id" && kill "$id" 2>/dev/null; done
    for id in "${pids[@]}"; do wait "$id" 2>/dev/null; done
    until_ok 60 all_gone
    left=$(left_processes)
    is "no process is left" "$left" ""
    is "no mount and no loop device is left" "$(left_mounts; left_loops)" ""
    is "no cgroup is left" "$(left_groups)" ""
    is "no temporary file is left" "$(left_files)" ""
    is "the sanitizers said nothing" "$(sanitizer_words)" ""
    [ -n "${STORE_DB:-}" ] && psql -qAt "$ARCUS_FLOW_STORE" -c "DROP DATABASE $STORE_DB WITH (FORCE)" >/dev/null 2>&1
    echo "1..$count"
    said_plan=1
    [ $bad = 0 ] || note "$bad failed; FLOW_KEEP=1 keeps its folder"
    exit $((bad > 0))
}
leave() { # whatever happens: nothing of ours goes on, and the folder goes
    local id
    trap - EXIT
    if [ -z "$said_plan" ]; then
        fail "$FLOW runs to its end" "it ended early" "its last check"
        echo "1..$count"
    fi
    for id in $UP "${pids[@]}"; do ours "$id" && kill "$id" 2>/dev/null; done
    for id in $(left_processes | awk '{print $1}') $(for g in $(left_groups); do cat "$g/cgroup.procs"; done | sort -u); do kill -9 "$id" 2>/dev/null; done
    for _ in $(seq 40); do [ -n "$(left_groups)" ] || break; rmdir $(left_groups) 2>/dev/null; sleep 0.05; done
    [ -n "${FLOW_KEEP:-}" ] && { note "kept: $BASE"; return; }
    rm -rf --one-file-system "$BASE" 2>/dev/null
}
trap leave EXIT
trap 'exit 1' INT TERM
