#!/usr/bin/env bash
# suspend.sh - on a host with an NVIDIA GPU: which tasks can be suspended and resumed, are they intact, and what does Arcus add to the driver's own calls? Tasks run in the
# full bundle (user, pid, network namespaces, seccomp). Prints TAP and tables. Needs PyTorch; lib.sh says what else. About 7 minutes; what is most important comes first.
#   PAIRS=10 GIB=8 KINDS='plain ipc managed two workers' tests/gpu/suspend.sh
. "$(dirname "$0")/lib.sh"
: "${PAIRS:=10}" "${GIB:=8}" "${MOST_MS:=150}"
begin torch
idle=$(used)
cloud_up
happened() { arcus events -o json --limit 1000 2>/dev/null | grep -E "\"name\": *\"task\.($1)\""; }     # one line each
fails() { happened 'suspend_failed|resume_failed' | wc -l; }
why() { happened 'suspend_failed|resume_failed' | tail -n 1 | grep -oE '"why": *"[^"]*"' | cut -d'"' -f4; }
settled() { state_is "$1" suspended || [ "$(fails)" -gt "$2" ] || over "$1"; }
back() { [ "$(attempts "$1" "d['items'][-1]['state']")" = running ]; }
comes() { # comes KIND GIB PROCESSES: JOB runs and has its memory
    JOB=$(start --gpus 1 --cpus "$(some 4 0.4)" --memory "${MEMORY:-16GB}" -- "$PY" "$BASE/in/worker.py" "$1" "$2")
    all_ready() { [ "$(said "$JOB" | grep -c '^ready')" = "$1" ] || over "$JOB"; }
    until_ok 90 all_ready "$3"
    [ "$(said "$JOB" | grep -c '^ready')" = "$3" ] && return
    fail "$1: the task comes up" "$(said "$JOB" | tail -n 8)" "$3 processes"
    arcus cancel "$JOB" --grace 0s >/dev/null 2>&1
    return 1
}
ends() { # it looks at all of its memory once more: "state, how many are intact"
    timeout 20 "$ARCUS" exec "$JOB" -- touch /tmp/end </dev/null >"$BASE/err" 2>&1
    until_ok 40 over "$JOB" || arcus cancel "$JOB" --grace 0s >/dev/null 2>&1
    until_ok 20 over "$JOB"
    echo "$(field "$JOB" "d['state']") $(said "$JOB" | grep -cE '^intact')"
}

pairs() {
    local attempt
    comes plain "$GIB" 1 || return
    attempt=$(attempts "$JOB" "d['items'][-1]['id']")
    PAIRS_LIMIT=$((LIMIT - SECONDS - 25)) timeout 300 "$PY" "$BASE/in/pairs.py" "$(cat "$BASE/data/address")" "$(cat "$BASE/data/admin.key")" "$JOB" "$(procs_of "$attempt")" "$PAIRS" "$MOST_MS" "$UVM" >"$BASE/pairs" 2>&1
    grep -v '^OVER' "$BASE/pairs" | sed 's/^/# /'
    like "suspend and resume take at most $MOST_MS ms more than the driver's calls, median of $PAIRS pairs at $GIB GiB" "$(grep '^OVER' "$BASE/pairs" || tail -n 3 "$BASE/pairs")" '^OVER yes'
    is "after all that it is intact" "$(ends)" "done 1"
}

declare -a FACTS=()
one() { # one KIND GIB PROCESSES yes|no|any: any: whatever comes is written down, and the task must be intact
    local before failed got=no after text t out
    room_for 45 "$1: it goes on, intact" || return
    comes "$1" "$2" "$3" || return
    before=$(used) failed=$(fails)
    text=$(attempts "$JOB" "d['items'][-1]['suspendable']")
    like "$1: a task says whether it can be suspended" "$text" '^(yes|no: .*)$'
    t=$(date +%s%N)
    arcus suspend "$JOB" >/dev/null 2>"$BASE/err" || note "suspend: $(cat "$BASE/err")"
    until_ok 60 settled "$JOB" "$failed"
    out=$((($(date +%s%N) - t) / 1000000))
    state_is "$JOB" suspended && got=yes
    after=$(used)
    text=$([ $got = yes ] && echo "yes, in $out ms; GPU memory $before MiB, then $after (idle $idle)" || echo "no, after $out ms: $(why); GPU memory $before MiB, then $after")
    [ "$4" = any ] || is "$1: suspended" "$got" "$4"
    if [ $got = yes ]; then
        true_that "$1: the GPU is free" "$after <= $idle + 64"
        t=$(date +%s%N)
        arcus resume "$JOB" >/dev/null
        until_ok 60 back "$JOB" || fail "$1: it comes back" "$(field "$JOB" "d['state']"): $(why)" running
        text="$text; back in $((($(date +%s%N) - t) / 1000000)) ms"
    fi
    FACTS+=("| $1 | $2 GiB, $3 process(es) | $text |")
    is "$1: it goes on, intact" "$(ends)" "done $3"
}

part "what can be suspended"
declare -A processes=([plain]=1 [ipc]=2 [managed]=1 [two]=2 [workers]=1)
for kind in ${KINDS:-plain ipc managed two workers}; do one "$kind" 1 "${processes[$kind]}" "$([ "$kind" = plain ] && echo yes || echo any)"; done
note "| kind | | suspended |" && note "|---|---|---|" && for f in "${FACTS[@]}"; do note "$f"; done
part "what Arcus adds to the driver's calls, $GIB GiB"
room_for 60 "suspend and resume take at most $MOST_MS ms more than the driver's calls" && pairs

part "another task has the GPU meanwhile; the first waits for it, and comes back"
if room_for 60 "its GPU is taken: it waits" && comes plain 1 1; then
    first=$JOB
    arcus suspend "$first" >/dev/null
    until_ok 60 state_is "$first" suspended
    other=$(start --gpus 1 --cpus "$(some 1 0.2)" --memory "${MEMORY:-8GB}" -- "$PY" "$BASE/in/spin.py" 8)
    until_ok 60 has_said "$other" begins
    arcus resume "$first" >/dev/null
    is "its GPU is taken: it waits" "$(field "$first" "d['state'] + ' ' + d['reason']")" "suspended ResumeGPUs"
    until_ok 60 back "$first"
    JOB=$first
    is "when the other has ended it is back" "$(said "$other" | grep -c well) $(field "$first" "d['state']") $(ends)" "1 running done 1"
fi

part "an agent that is killed in the middle"
if room_for 60 "the agent was killed in the middle" && comes plain "$GIB" 1; then
    arcus suspend "$JOB" >/dev/null
    sleep 1.5
    kill -9 "$(pgrep -f "^$ARCUS agent .*$BASE" | head -n 1)"
    until_ok 90 state_is "$JOB" suspended
    is "the agent was killed in the middle: the next one finds it suspended" "$(field "$JOB" "d['state']")" suspended
    arcus resume "$JOB" >/dev/null
    until_ok 60 back "$JOB"
    is "... and brings it back" "$(ends)" "done 1"
fi
