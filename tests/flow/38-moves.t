#!/usr/bin/env bash
# 38-moves.t - clients and agents that know several servers of a cloud move by themselves when the one they talk to goes: what runs goes on, and what
# is followed has no line twice and none missing.
. "$(dirname "$0")/lib.sh"
[ -n "${ARCUS_TEST_POSTGRES:-}" ] || { skip "several servers" "ARCUS_TEST_POSTGRES is not set"; echo "1..$count"; said_plan=1; exit 0; }
ARCUS_FLOW_STORE=$ARCUS_TEST_POSTGRES
declare -A AT PID
head_answers() { curl -fsSk --max-time 2 "$(cat "$BASE/$1/address" 2>/dev/null)/readyz"; }
head_start() { # head_start NAME: one more server of this cloud; a name that was there before comes back where it was
    [ -n "${STORE_DB:-}" ] || store_flags
    rm -f "$BASE/$1/address"
    setpriv --pdeathsig TERM "$ARCUS" server --data "$BASE/$1" --listen "${AT[$1]:-127.0.0.1:0}" --keys "$BASE/keys" --default-image host "${STORE[@]}" >>"$BASE/$1.log" 2>&1 </dev/null &
    PID[$1]=$!
    pids+=("$!")
    until_ok 60 head_answers "$1" || give_up "server $1 does not answer: $(tail -n 3 "$BASE/$1.log" | tr '\n' ' ')"
    AT[$1]=$(sed 's,.*//,,' "$BASE/$1/address")
}
writer() { curl -fsSk --max-time 5 -H "Authorization: Bearer $KEY" "http://${AT[$1]}/v1/servers" | jq -r '.items[] | select(.state == "writer") | .address' | sed 's,.*//,,'; }
# Whichever of them it is: one that had no processor for two seconds has lost that to another.
writer_name() { local n at; for n in a b c; do at=$(writer $n) && [ -n "$at" ] && break; done; for n in a b c; do [ "${AT[$n]}" != "$at" ] || echo $n; done; }
connects() { cat "$BASE"/[abc].log | grep -c "node $NODE is connected"; }
linked_at() { grep -q "node $NODE is connected" "$BASE/$1.log"; }
head_start a
KEY=$(cat "$BASE/a/admin.key")
head_start b
head_start c
URL=http://${AT[a]}
ALL=http://${AT[a]},http://${AT[b]},http://${AT[c]}
until_ok 60 eval '[ "$(get /v1/servers | jq ".items | length")" = 3 ]'
until_ok 60 eval '[ -n "$(writer_name)" ]'
like "one of three servers writes" "$(writer_name)" '^[abc]$'
arcus config set flow --server "$ALL" --key-file "$BASE/a/admin.key" >/dev/null
TOKEN=$(arcus nodes token -o json | jq -r .token)
W=$(writer_name)
for name in a b c; do [ "$name" = "$W" ] || URL=http://${AT[$name]}; done     # an agent that knows one server only, and that one does not write
agent_start "$NODE" --beat-ms 500 --token "$TOKEN" --sim-gpus 1
URL=$ALL
sent() { linked_at "$(writer_name)"; }
ok "an agent is sent to the server that writes" until_ok 60 sent
kept() { [ "$(jq -r '.servers // [] | length' "$BASE/$NODE.data/node.json")" = 3 ]; }
ok "... and keeps what it is told about the others" until_ok 60 kept

# --- followed through a kill
"$ARCUS" run --name count -c 0.1 -m 64MB -- sh -c 'i=1; while [ $i -le 120 ]; do echo "line $i"; i=$((i + 1)); sleep 0.1; done; exit 3' >"$BASE/run.out" 2>"$BASE/run.err" &
RUN_PID=$!
pids+=("$RUN_PID")
until_ok 60 grep -q 'line 5$' "$BASE/run.out" || note "$(tail -n 3 "$BASE/run.err")"
"$ARCUS" logs -f count >"$BASE/logs.out" 2>"$BASE/logs.err" &
LOGS_PID=$!
"$ARCUS" events -f -o json >"$BASE/events.out" 2>"$BASE/events.err" &
EVENTS_PID=$!
pids+=("$LOGS_PID" "$EVENTS_PID")
until_ok 60 grep -q 'line 9$' "$BASE/logs.out"
GONE=$(writer_name) before=$(connects)
kill -9 "${PID[$GONE]}"
began=$(date +%s%3N)
arcus submit --name after -c 0.1 -m 64MB -- true >"$BASE/out" 2>"$BASE/err"
is "a submit in the middle of it succeeds" "$? $(grep -c . "$BASE/out")" "0 1"
note "the next acknowledged submit, as the command line sees it: $(($(date +%s%3N) - began)) ms after the kill"
ok "the agent has moved" until_ok 60 eval '[ "$(connects)" -gt "$before" ]'
wait "$RUN_PID"
is "the job was followed to its end" "$? $(job_words=$(seq -f 'line %g' 120); [ "$(cat "$BASE/run.out")" = "$job_words" ] && echo all of it)" "3 all of it"
wait "$LOGS_PID"
is "... its log too, with no line twice and none missing" "$? $([ "$(cat "$BASE/logs.out")" = "$(seq -f 'line %g' 120)" ] && echo all of it)" "0 all of it"
is "it ran once" "$(arcus describe count -o json | jq -r .state) $(sql "SELECT count(*) FROM attempt a JOIN job j ON j.id = a.job WHERE j.name = 'count'")" "failed 1"
last=$(sql "SELECT max(seq) FROM event")
ok "events go on" until_ok 60 eval '[ "$(tail -n 1 "$BASE/events.out" | jq .id)" -ge "$last" ]'
is "... with no number twice and none missing" "$(jq .id "$BASE/events.out" | awk 'NR != $1' | head -n 1)" ""

# --- a clean stop
head_start "$GONE"
until_ok 60 eval '[ -n "$(writer_name)" ]'
WRITER=$(writer_name)
before=$(connects)
kill "${PID[$WRITER]}"
is "a write right behind it succeeds" "$(arcus submit --name behind -c 0.1 -m 64MB -- true >/dev/null 2>"$BASE/err"; echo $?)" 0
wait "${PID[$WRITER]}"
is "... which leaves with 0" $? 0
ok "the agent has moved again" until_ok 60 eval '[ "$(connects)" -gt "$before" ]'
is "what was submitted runs" "$(until_ok 60 eval '[ "$(arcus describe behind -o json | jq -r .state)" = done ]'; arcus describe behind -o json | jq -r .state)" "done"
kill "$EVENTS_PID"
for name in a b c; do [ "$name" = "$WRITER" ] || URL=http://${AT[$name]}; done
for id in $(get '/v1/jobs?limit=1000' | jq -r '.items[].id'); do call POST "/v1/jobs/$id/cancel" '{"grace":"0s"}'; done
until_ok 60 quiet
is "the books balance" "$(books 2>&1)" ""
finish
