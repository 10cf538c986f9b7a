#!/usr/bin/env bash
# 39-yield.t - what runs makes room: a node is drained with a deadline, spot work yields to a normal job, a reservation is kept, and so many nodes fall silent at once that nothing
# is taken from them.
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host --lease 5
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
N1=$NODE-a N2=$NODE-b
for n in "$N1" "$N2"; do
    agent_start "$n" --sim-gpus 2 --beat-ms 500 --token "$(arcus nodes token -o json | jq -r .token)"
    AGENTS+=("$AGENT")
done
until_ok 60 node_ready "$N1" && until_ok 60 node_ready "$N2" || give_up "the nodes do not come"
node_state() { get "/v1/nodes/$1" | jq -r .state; }
attempts() { get "/v1/jobs/$1/attempts" | jq -r "$2"; }
events_of() { get '/v1/events?limit=1000' | jq -c "[.items[] | select(.name == \"$1\")]"; }
on_other() { [ "$(attempts "$1" '.items | sort_by(.id) | .[-1].node')" = "$2" ] && in_state "$1" running; }

# --- drain: what runs has until the deadline, then notice and grace, then it runs elsewhere
polite='trap "echo told >>/outputs/said; sleep 0.5; echo leaves >>/outputs/said; exit 0" TERM; echo up; while :; do sleep 0.1; done'
JOB=$(submit "$(sh_job "$polite" "{\"gpus\":1,\"name\":\"polite\",\"grace\":\"20s\"}")")
wait_for "$JOB" running
until_ok 60 has_said "$JOB" up
FIRST=$(attempts "$JOB" '.items[0].node') A=$(attempts "$JOB" '.items[0].id')
[ "$FIRST" = "$N1" ] && OTHER=$N2 || OTHER=$N1
arcus drain "$FIRST" --deadline 10m >"$BASE/out"
is "a node that holds something is draining" "$? $(node_state "$FIRST")" "0 draining"
like "... with its deadline" "$(arcus nodes)" "draining.*20[0-9]{2}-"
SECOND=$(submit "$(sh_job 'sleep 600' '{"gpus":1}')")
wait_for "$SECOND" running
is "nothing new is placed there" "$(attempts "$SECOND" '.items[0].node')" "$OTHER"
arcus drain "$FIRST" --wait --requeue >/dev/null 2>"$BASE/err"
like "what contradicts itself is refused" "$? $(cat "$BASE/err")" '^2 .*wait'
arcus drain "$FIRST" --deadline 1s >/dev/null
ok "at the deadline it is told to end, and runs on the other node" until_ok 60 on_other "$JOB" "$OTHER"
is "... with notice and grace" "$(tr '\n' ' ' <"$BASE/$FIRST.data/outputs/$A/said")" "told leaves "
like "... its attempt says why" "$(attempts "$JOB" ".items[] | select(.id == \"$A\") | .outcome + \" \" + .detail")" 'node_fault .*drained'
is "... and there is an event of it" "$(events_of task.evicted | jq -r '.[0].data | .why + " " + .node')" "drain $FIRST"
until_ok 60 eval '[ "$(node_state "$FIRST")" = drained ]'
is "then the node is drained" "$(node_state "$FIRST") $(events_of node.drained | jq length)" "drained 1"
arcus uncordon "$FIRST" >/dev/null
is "... until it is used again" "$(node_state "$FIRST")" ready
for j in "$JOB" "$SECOND"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
for j in "$JOB" "$SECOND"; do wait_end "$j"; done

# --- spot work yields, with notice and grace, and waits again
SPOT=()
for i in 0 1 2 3; do SPOT[i]=$(submit "$(sh_job "$polite" '{"gpus":1,"priority":"spot","grace":"20s"}')"); done
for j in "${SPOT[@]}"; do wait_for "$j" running; until_ok 60 has_said "$j" up; done
RUNS=$(submit "$(sh_job 'sleep 600' '{"gpus":1,"name":"needs"}')")
wait_for "$RUNS" running 60
is "a normal job takes the place of spot work" "$(job "$RUNS")" running
evicted() { get '/v1/jobs?limit=100' | jq -r '.items[] | select(.state == "queued" and .priority == 10) | .id'; }
is "... of one, which waits again" "$(evicted | wc -l)" 1
VICTIM=$(evicted)
is "... and was told and given time" "$(tr '\n' ' ' <"$BASE/$(attempts "$VICTIM" '.items[0].node').data/outputs/$(attempts "$VICTIM" '.items[0].id')/said")" "told leaves "
like "its owner sees why" "$(arcus describe "$VICTIM")" 'preempted.*evicted for a job of class normal'
is "the operator sees for whom" "$(events_of fleet.evicted | jq -r '.[0].data.for')" "$RUNS"
arcus rules set --brake 0% >/dev/null
NEXT=$(submit "$(sh_job true '{"gpus":1}')")
until_ok 60 eval '[ -n "$(job $NEXT .reason)" ]'
is "with the brake on nobody else yields" "$(job "$NEXT") $(events_of task.evicted | jq '[.[] | select(.data.why == "spot")] | length')" "queued 1"
arcus rules set --lift 10m >/dev/null
is "... until an operator lifts it" "$(how "$NEXT" 60)" "done succeeded 0"
arcus rules set --brake 10% --lift 0 >/dev/null
for j in "${SPOT[@]}" "$RUNS"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
for j in "${SPOT[@]}" "$RUNS"; do wait_end "$j"; done

# --- a reservation: for its project, and for spot work until that comes
arcus projects create rivals >/dev/null
arcus members set admin developer --project rivals >/dev/null
arcus reserve create --for default --gpus 2 --count 3 --duration 1h >/dev/null 2>"$BASE/err"
like "what could not be kept is refused" "$? $(cat "$BASE/err")" '^[1-9].*only 2 of 3'
arcus reserve create --for default --gpus 2 --count 2 --duration 1h --name all >/dev/null
is "a reservation is made, and listed" "$? $(arcus reserve -o json | jq -r '.items[] | .name + " " + .state + " " + .project')" "0 all active default"
OTHER_JOB=$(arcus submit --project rivals -g 1 -c 0.1 -m 64MB -- true) LENT=$(arcus submit --project rivals -g 1 -c 0.1 -m 64MB -p spot -- sh -c 'sleep 600')
lent() { [ "$(arcus describe "$LENT" --project rivals -o json | jq -r .state)" = running ]; }
ok "spot work of others may use it" until_ok 60 lent
is "... other work of others may not" "$(arcus describe "$OTHER_JOB" --project rivals -o json | jq -r .state)" queued
MINE=$(submit "$(sh_job 'sleep 600' '{"gpus":2}')") MORE=$(submit "$(sh_job 'sleep 600' '{"gpus":2}')")
wait_for "$MINE" running 60
wait_for "$MORE" running 60
is "its owner comes, and has all of it" "$(job "$MINE") $(job "$MORE") $(arcus describe "$LENT" --project rivals -o json | jq -r .state)" "running running queued"
for j in "$MINE" "$MORE"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
for j in "$MINE" "$MORE"; do wait_end "$j"; done
arcus reserve remove all >/dev/null
is "removed, it is over" "$? $(arcus reserve -o json | jq '.items | length') $(arcus reserve get all -o json | jq -r .state)" "0 0 removed"
gone_home() { [ "$(arcus describe "$OTHER_JOB" --project rivals -o json | jq -r .state)" = done ]; }
ok "... and everybody may use the fleet" until_ok 60 gone_home
arcus cancel "$LENT" --project rivals --grace 0s >/dev/null
until_ok 60 eval '[ "$(arcus describe "$LENT" --project rivals -o json | jq -r .state)" = cancelled ]'

# --- many are silent at once: nothing is taken from them
J=()
for i in 0 1 2; do J[i]=$(submit "$(sh_job 'sleep 600' '{"gpus":1}')"); done
for j in "${J[@]}"; do wait_for "$j" running; done
for a in "${AGENTS[@]}"; do kill -STOP "$a"; done
silent() { [ "$(arcus status -o json | jq -r .state)" = silent ]; }
ok "two of two nodes fall silent, and that is an alarm" until_ok 60 silent
is "... told once" "$(events_of fleet.silent | jq -c '[.[].data | [.silent, .nodes]]')" '[[2,2]]'
like "... and what becomes of each" "$(arcus nodes)" "silent with many others"
over() { [ "$(events_of node.down | jq length)" = 2 ] && sleep 3; }
until_ok 60 over
is "their tasks wait for them, longer than they may run unseen" "$(for j in "${J[@]}"; do job "$j"; done | sort -u)" running
for a in "${AGENTS[@]}"; do kill -CONT "$a"; done
until_ok 60 node_ready "$N1" && until_ok 60 node_ready "$N2"
back() { [ "$(events_of fleet.back | jq length)" = 1 ]; }
ok "when they are back the alarm is over" until_ok 60 back
is "... and told once" "$(events_of fleet.silent | jq length) $(arcus status -o json | jq -r .state)" "1 active"
finish
