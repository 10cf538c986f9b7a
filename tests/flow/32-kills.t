#!/usr/bin/env bash
# 32-kills.t - a mixed load on a real cloud of three nodes, and others that join and leave, while the server, agents, supervisors, OCI
# runtimes, the database or all of them are killed with SIGKILL at moments that a seed chooses. Then the books are checked: what was
# acknowledged is there, nothing ran twice or overlapped, usage and events add up, and nothing is left on the node.
#
# ARCUS_KILLS_SEED, ARCUS_KILLS_SECONDS and ARCUS_KILLS (how many) replay a run; ARCUS_SOAK makes 200 kills on each store.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
SEED=${ARCUS_KILLS_SEED:-1} SECONDS_LONG=${ARCUS_KILLS_SECONDS:-75} KILLS=${ARCUS_KILLS:-0}
[ -z "${ARCUS_FLOW_STORE:-}" ] || SECONDS_LONG=${ARCUS_KILLS_SECONDS:-45}
if [ -n "${ARCUS_SOAK:-}" ]; then
    KILLS=${ARCUS_KILLS:-200}
    SEED=${ARCUS_KILLS_SEED:-$((RANDOM * 32768 + RANDOM))}
fi
PG=()
if [ -n "${ARCUS_FLOW_STORE:-}" ]; then # one of its own, as it will be killed
    ARCUS_FLOW_STORE=$(tests/pg_start.sh "$BASE/pg") || give_up "PostgreSQL does not start"
    store_flags
    PG=("$BASE/pg" "${STORE[1]}")
fi
note "seed $SEED; again with: ARCUS_KILLS_SEED=$SEED ARCUS_KILLS_SECONDS=$SECONDS_LONG ARCUS_KILLS=$KILLS ./dev test 32-kills"
"$(dirname "$ARCUS")/kills" "$BASE" "$ARCUS" "$PWD/tests" "$SEED" "$SECONDS_LONG" "$KILLS" "${PG[@]}"
code=$?
touch "$BASE/problems"
problems() { grep "^$1: " "$BASE/problems" | head -n 10; }
is "every acknowledged request is there, once" "$(problems acknowledged)" ""
is "no attempt ran twice, and what is told as done was done" "$(problems ran)" ""
is "no two attempts of a task overlapped" "$(problems overlap)" ""
is "no follower of the events missed one" "$(problems events)" ""
is "every job came to its end" "$(problems settled)" ""
is "what was printed can be read" "$(problems logs)" ""
is "no request was refused that should not be" "$(problems load)" ""
is "no process ended by itself, and all stop when asked to" "$(problems process)" ""
is "usage covers what ran" "$(problems usage)" ""
is "no cable of a task is left in a node's network" "$(problems nets)" ""
is "the load and its kills ran to their end" "$((code > 1))" 0
is "the books balance" "$(books 2>&1)" ""
is "every usage interval is there once" "$(sql "SELECT count(*) - count(DISTINCT attempt) FROM usage")" 0
is "no attempt is left open" "$(sql "SELECT count(*) FROM attempt WHERE ended_ms = 0")" 0
is "every attempt ended once in the log" "$(sql "SELECT count(*) - count(DISTINCT subject) FROM event WHERE kind = 'attempt.ended'")" 0
# A machine that was taken out of the fleet is told nothing any more; its folder is its owner's to remove, and nothing else may be left of it.
guests_mounts() { grep -hF "$BASE/g" /proc/self/mountinfo; }
until_ok 60 eval '! guests_mounts'
is "on machines that left nothing is mounted" "$(guests_mounts)" ""
rm -rf --one-file-system "$BASE"/g*.run "$BASE"/g*.data/tasks "$BASE"/g*.data/status "$BASE"/g*.data/trial "$BASE"/g*.data/scratch
[ ${#PG[@]} = 0 ] || { psql -qAt "$ARCUS_FLOW_STORE" -c "DROP DATABASE $STORE_DB WITH (FORCE)" >/dev/null 2>&1; tests/pg_start.sh --stop "$BASE/pg"; STORE_DB=''; }
[ $bad = 0 ] || tail -n 60 "$BASE/kills.log" | sed 's/^/# /'
finish
