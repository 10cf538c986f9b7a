#!/usr/bin/env bash
# 12-nodes.t - one server and two nodes: placement over both, tokens that work once, cordon, a node that goes silent and one that is taken out. A task is
# given to another node only after the first has surely ended it: nothing runs twice.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host --lease 5
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
N1=$NODE-a N2=$NODE-b
agent_start "$N1" --sim-gpus 2 --beat-ms 500 --label zone=east
FIRST=$AGENT
until_ok 5 eval '! kill -0 $FIRST'
ok "an agent without a token does not join, and says so" test -s "$BASE/$N1.log"
T1=$(arcus nodes token -o json | jq -r .token) T2=$(arcus nodes token -o json | jq -r .token)
agent_start "$N1" --sim-gpus 2 --beat-ms 500 --token "$T1"
A1=$AGENT
until_ok 20 node_ready "$N1"
ok "a token lets one node in" node_ready "$N1"
agent_start "$N2" --sim-gpus 2 --beat-ms 500 --token "$T1"
wait "$AGENT"
ok "... and no second one" test $? != 0
like "... which is told why" "$(cat "$BASE/$N2.log")" '[Tt]oken'
agent_start "$N1-twin" --sim-gpus 2 --name "$N1" --token "$T2"
wait "$AGENT"
ok "a name that is taken is refused" test $? != 0
echo "$T2" >"$BASE/token"
agent_start "$N2" --sim-gpus 2 --beat-ms 500 --token-file "$BASE/token"
A2=$AGENT
until_ok 20 node_ready "$N2"
ok "the second joins with its own, from a file" node_ready "$N2"
unlike "the token shows in no process list" "$(ps -eo args)" "$T2"
is "both are listed with their GPUs" "$(arcus nodes -o json | jq -rc '[.items[] | "\(.state) \(.gpus) \(.simulated)"]')" '["ready 2 true","ready 2 true"]'
is "four GPUs of two nodes" "$(arcus gpus -o json | jq -r '[.items[].node] | unique | length') $(arcus gpus -o json | jq '.items | length')" "2 4"
"$ARCUS" agent --server "$URL" --data "$BASE/$N1.data" --run "$BASE/$N1.run" --name "$N1" >"$BASE/twin.log" 2>&1
ok "two agents on one folder are refused" test $? != 0

# --- placement
wait_all() { local j; for j in "$@"; do wait_for "$j" running; done; }
node_of() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1].node'; }
for i in 0 1 2 3; do J[i]=$(submit "$(sh_job 'sleep 600' '{"gpus":1,"cpus":0.1}')"); done
wait_all "${J[@]}"
is "four jobs of one GPU fill both" "$(for j in "${J[@]}"; do node_of "$j"; done | sort | uniq -c | tr -s ' ' | cut -d' ' -f2 | tr '\n' ' ')" "2 2 "
WAITS=$(submit "$(sh_job 'sleep 600' '{"gpus":1,"cpus":0.1}')")
until_ok 10 eval '[ "$(job $WAITS .reason)" = Resources ]'
is "a fifth waits" "$(job "$WAITS" '.state + " " + .reason')" "queued Resources"
BIG=$(submit "$(sh_job true '{"gpus":3}')")
until_ok 10 eval '[ "$(job $BIG .reason)" = NoSuitableNode ]'
is "three GPUs are on no one node" "$(job "$BIG" .reason)" NoSuitableNode
call POST "/v1/jobs/$BIG/cancel" '{}'
where=$(node_of "${J[0]}")
call POST "/v1/jobs/${J[0]}/cancel" '{"grace":"0s"}'
wait_for "$WAITS" running
is "it starts where one has ended" "$(node_of "$WAITS")" "$where"
for j in "${J[@]}" "$WAITS"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
for j in "${J[@]}" "$WAITS"; do wait_end "$j"; done
HERE=$(submit "$(sh_job true "{\"node\":\"$N2\"}")")
is "a job can name its node" "$(how "$HERE") $(node_of "$HERE")" "done succeeded 0 $N2"

# --- cordon
arcus nodes cordon "$N1" >/dev/null
is "a cordoned node says so" "$(arcus nodes -o json | jq -r ".items[] | select(.name == \"$N1\") | .state")" cordoned
for i in 0 1; do J[i]=$(submit "$(sh_job true '{"gpus":1}')"); done
is "nothing new is placed there" "$(for i in 0 1; do how "${J[$i]}" >/dev/null; node_of "${J[$i]}"; done | sort -u)" "$N2"
STUCK=$(submit "$(sh_job true "{\"node\":\"$N1\"}")")
until_ok 10 eval '[ -n "$(job $STUCK .reason)" ]'
is "what must be there waits" "$(job "$STUCK")" queued
arcus nodes uncordon "$N1" >/dev/null
is "... until it is used again" "$(how "$STUCK") $(node_of "$STUCK")" "done succeeded 0 $N1"

# --- a node goes silent: the agent is killed, its tasks run on until their time is over
tick='while :; do date +%s%3N >>/outputs/ticks; sleep 0.1; done'
LOST=$(submit "$(sh_job "$tick" '{"gpus":1,"name":"lost"}')")
WAIT=$(submit "$(sh_job "$tick" "{\"name\":\"waits\",\"on_lost\":\"wait\"}")")
wait_all "$LOST" "$WAIT"
first=$(node_of "$LOST") A=$(get "/v1/jobs/$LOST/attempts" | jq -r '.items[0].id')
[ "$first" = "$N1" ] && victim=$A1 || victim=$A2
[ "$first" = "$N1" ] && other=$N2 || other=$N1
kill -9 "$victim"
wait "$victim" 2>/dev/null
began=$SECONDS
away() { [ "$(get "/v1/nodes/$first" | jq -r .state)" != ready ]; }
until_ok 30 away
ok "a silent node is no longer ready ($(get "/v1/nodes/$first" | jq -r .state))" away
elsewhere() { [ "$(node_of "$LOST")" = "$other" ] && in_state "$LOST" running; }
until_ok 60 elsewhere
took=$((SECONDS - began))
ok "its task is given to the other node" elsewhere
ok "... not before its time was over and a margin ($took s)" test $took -ge 5
is "... the attempt counts as lost" "$(get "/v1/jobs/$LOST/attempts" | jq -r ".items[] | select(.id == \"$A\") | .outcome")" node_lost
B=$(get "/v1/jobs/$LOST/attempts" | jq -r '.items | sort_by(.id) | .[-1].id')
until_ok 10 test -s "$BASE/$other.data/outputs/$B/ticks"
last=$(tail -n 1 "$BASE/$first.data/outputs/$A/ticks") next=$(head -n 1 "$BASE/$other.data/outputs/$B/ticks")
ok "nothing ran twice: the first had ended $((next - last)) ms before the second began" test "$last" -lt "$next"
until_ok 10 eval '! pgrep -f "^$BASE/$first.run/bin/arcus-task.*$A"'
is "nothing of the first runs any more" "$(pgrep -fc "^$BASE/$first.run/bin/arcus-task.*$A")" 0
# the node comes back and tells what it knows, too late to matter
agent_start "$first" --sim-gpus 2 --beat-ms 500
until_ok 20 node_ready "$first"
ok "it comes back by itself" node_ready "$first"
is "its late words change nothing" "$(job "$LOST") $(node_of "$LOST") $(get "/v1/jobs/$LOST/attempts" | jq '.items | length')" "running $other 2"
for j in $LOST $WAIT; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
for j in $LOST $WAIT; do wait_end "$j" 30; done
is "each has come to its end" "$(job "$LOST")" cancelled

# --- a node is taken out
KEEP=$(submit "$(sh_job 'sleep 600' "{\"node\":\"$first\",\"name\":\"keep\"}")")
wait_for "$KEEP" running
arcus nodes cordon "$first" >/dev/null
call POST "/v1/jobs/$KEEP/cancel" '{"grace":"0s"}'
wait_end "$KEEP"
arcus nodes remove "$first" >/dev/null
is "a node is removed" "$? $(arcus nodes -o json | jq -r '[.items[].name] | join(" ")')" "0 $other"
until_ok 20 eval '! kill -0 $AGENT'
ok "... its key no longer works, and its agent leaves or says so" eval '! kill -0 $AGENT 2>/dev/null || grep -qiE "key|removed|401" "$BASE/$first.log"'
agent_start "$first" --sim-gpus 2
until_ok 10 eval '! kill -0 $AGENT'
is "... nor does it come back by itself" "$(arcus nodes -o json | jq '.items | length')" 1
finish
