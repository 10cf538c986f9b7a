#!/usr/bin/env bash
# 09-restarts.t - kill -9 of the server, the agent, supervisors, and all at once. Containers go on, ends that nobody heard are told later and once, a task
# whose supervisor was killed ends as a fault of the node and is tried again, and the books balance.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
PORT=0
server() { server_start server --listen "127.0.0.1:$PORT" --default-image host; PORT=${URL##*:}; }
agent() { agent_start "$NODE" --sim-gpus 4 --beat-ms 500; }
token() { call POST /v1/nodes/tokens '{}'; field .token; }
DATA_OF_NODE=$BASE/$NODE.data
RUN=$BASE/$NODE.run
server
agent_start "$NODE" --sim-gpus 4 --beat-ms 500 --token "$(token)"
until_ok 20 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/$NODE.log")"

# A task that counts until a file appears in its outputs; we see its outputs on the node.
ticker() { submit "$(sh_job 'while [ ! -e /outputs/go ]; do date +%s%3N >>/outputs/ticks; sleep 0.1; done; echo went; exit $(cat /outputs/go)' "${1:-{\}}")"; }
attempt_of() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1].id'; }
go() { echo "$2" >"$DATA_OF_NODE/outputs/$1/go"; }
ticks() { wc -l <"$DATA_OF_NODE/outputs/$1/ticks"; }
ticking() { local n; n=$(ticks "$1"); until_ok 5 eval "[ \$(ticks $1) -gt $((n + 2)) ]"; }

A=$(ticker) B=$(ticker) C=$(ticker)
for j in $A $B $C; do wait_for "$j" running; done
AA=$(attempt_of "$A") BA=$(attempt_of "$B") CA=$(attempt_of "$C")
pids_before="$(first_pid "$AA") $(first_pid "$BA") $(first_pid "$CA")"
TALKS=$(submit "$(sh_job 'i=0; while [ ! -e /outputs/go ]; do i=$((i + 1)); echo "line $i"; sleep 0.05; done; echo over')")
until_ok 20 has_said "$TALKS" 'line 20$'
"$ARCUS" logs -f "$TALKS" --tail 3 --server "$URL" --key "$KEY" >"$BASE/last.out" 2>"$BASE/last.err" &
FOLLOW=$!
pids+=("$FOLLOW")
until_ok 10 test -s "$BASE/last.out"

# --- the server
stop "$UP" KILL
ok "with the server killed the containers go on" ticking "$AA"
go "$AA" 0
until_ok 10 eval "! pgrep -f '^$RUN/bin/arcus-task .*/$AA'"      # its supervisor has written down when that was
between=$(date +%s%3N)
server
is "what ended meanwhile is told when it is back" "$(how "$A")" "done succeeded 0"
ok "... with the time at which it ended" test "$(date -d "$(get "/v1/jobs/$A/attempts" | jq -r '.items[0].ended')" +%s%3N)" -le $((between + 2000))
is "... once" "$(sql "SELECT count(*) FROM event WHERE kind = 'attempt.ended'")" 1
until_ok 10 node_ready
is "the others run on, the same processes" "$(job "$B") $(job "$C") $(first_pid "$BA") $(first_pid "$CA")" "running running ${pids_before#* }"

# --- the agent
kill -9 "$AGENT"
wait "$AGENT" 2>/dev/null
ok "with the agent killed the containers go on" ticking "$BA"
go "$BA" 3
until_ok 10 eval "[ -z \"\$(first_pid $BA)\" ]"
agent
is "what ended meanwhile is told with its exit code" "$(how "$B")" "failed exited 3"
is "... by its first attempt" "$(get "/v1/jobs/$B/attempts" | jq '.items | length')" 1
is "the last one runs on, the same process" "$(job "$C") $(first_pid "$CA")" "running ${pids_before##* }"
until_ok 10 eval '[ "$(job "$TALKS")" = running ]'
go "$(attempt_of "$TALKS")" 0
wait "$FOLLOW"
is "who follows the last lines of a log misses none and hears none twice, through all of it" "$? $(awk '/^line/ {if (NR > 1 && $2 != last + 1) print "after " last; last = $2; if (NR == 1) first = $2} END {print (first > 15), $0}' "$BASE/last.out")" "0 1 over"
is "its log can be read by the new agent" "$(go "$CA" 0; how "$C"; logs "$C")" "done succeeded 0
went"

# --- a supervisor
D=$(ticker '{"name":"victim"}')
wait_for "$D" running
DA=$(attempt_of "$D")
container=$(first_pid "$DA")
supervisor=$(awk '/^PPid:/ {print $2}' "/proc/$container/status")
like "the container's parent is its supervisor" "$(tr '\0' ' ' <"/proc/$supervisor/cmdline")" 'arcus-task'
kill -9 "$supervisor"
second() { [ "$(attempt_of "$D")" != "$DA" ] && in_state "$D" running; }
until_ok 20 second
is "a killed supervisor ends its attempt as a fault of the node" "$(get "/v1/jobs/$D/attempts" | jq -r ".items[] | select(.id == \"$DA\") | .outcome")" node_fault
ok "... nothing of it runs on" test ! -e "/proc/$container" -o "$(readlink "/proc/$container/exe" 2>/dev/null)" = ""
ok "... and the task is tried again, though it asked for no retries" in_state "$D" running
DB=$(attempt_of "$D")
go "$DB" 0
is "... to its end" "$(how "$D")" "done succeeded 0"
is "a fault of ours is not billed" "$(sql "SELECT billable FROM usage u JOIN attempt a ON u.attempt = a.id WHERE a.outcome = 10")" 0

# --- everything at once, twice
# Those of the four that run now: one whose task has ended may still be about to leave.
two_supervisors() { local a; for a in $(head -n 2 <<<"$before"); do awk '/^PPid:/ {print $2}' "/proc/$(first_pid "$a")/status"; done; }
for round in 1 2; do
    E=()
    for i in 1 2 3 4; do E+=("$(ticker '{"gpus":1,"cpus":0.1}')"); done
    for j in "${E[@]}"; do wait_for "$j" running; done
    before=$(for j in "${E[@]}"; do attempt_of "$j"; done | sort)
    kill -9 "$UP" "$AGENT" $(two_supervisors)
    wait "$UP" "$AGENT" 2>/dev/null
    if [ $round = 1 ]; then server; agent; else agent; server; fi
    # Each job is asked once, for its last attempt and that one's state together: asked one after the other, the state may be of an attempt
    # that is found dead in between, and the next look is told another thing.
    seen() { local j; for j in "${E[@]}"; do get "/v1/jobs/$j/attempts" | jq -r '.items | sort_by(.id) | .[-1] | "\(.id) \(.state)"'; done; }
    again() { # the tables of all jobs and attempts are what `ok` shows where this is false
        local now
        now=$(seen | sort)
        if [ "$(grep -c ' running$' <<<"$now")" = 4 ] && [ "$(cut -d' ' -f1 <<<"$now" | comm -12 - <(echo "$before") | wc -l)" = 2 ]; then return 0; fi
        printf 'before: %s\nnow: %s\n' "$(tr '\n' ' ' <<<"$before")" "$(tr '\n' ' ' <<<"$now")"
        for j in "${E[@]}"; do job "$j" '"\(.id) \(.state) \(.reason) \(.detail)"'; get "/v1/jobs/$j/attempts" | jq -c '.items[] | [.id, .state, .outcome, .started, .ended, .detail]'; done
        return 1
    }
    until_ok 60 again
    ok "round $round: two whose supervisors lived run on, two are tried again" again
    for j in "${E[@]}"; do go "$(attempt_of "$j")" 0; done
    is "round $round: all come to a good end" "$(for j in "${E[@]}"; do how "$j"; done | sort | uniq -c | tr -s ' ')" " 4 done succeeded 0"
done

# --- acknowledged is durable
(
    for i in $(seq 30); do
        [ "$i" != 20 ] || until [ -e "$BASE/back" ]; do sleep 0.05; done         # some come after it, however quick this is
        id=$(curl -s --max-time 20 -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: s$i" -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r '.id // empty' 2>/dev/null)
        [ -n "$id" ] && echo "$i $id" >>"$BASE/acknowledged"
    done
) &
SUBMITS=$!
until_ok 10 eval '[ "$(wc -l <"$BASE/acknowledged")" -ge 8 ]'
stop "$UP" KILL
server
touch "$BASE/back"
wait $SUBMITS
ok "some submits were acknowledged before the kill and some after" test "$(wc -l <"$BASE/acknowledged")" -ge 9
is "every one of them is there" "$(while read -r _ id; do [ "$(job "$id" .id)" = "$id" ] || echo "$id"; done <"$BASE/acknowledged")" ""
for i in $(seq 30); do curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: s$i" -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r .id; done >"$BASE/again"
is "asked again with the same keys, each is one job" "$(sort -u "$BASE/again" | wc -l) $(get '/v1/jobs?limit=1000' | jq '.items | length')" "30 30"
is "... those that were acknowledged are the same" "$(while read -r i id; do [ "$(sed -n "${i}p" "$BASE/again")" = "$id" ] || echo "$id"; done <"$BASE/acknowledged")" ""
is "every attempt ended once in the log" "$(sql "SELECT count(*) - count(DISTINCT subject) FROM event WHERE kind = 'attempt.ended'")" 0
is "... and every one that was placed did" "$(sql "SELECT count(*) FROM attempt WHERE ended_ms = 0")" 0
finish
