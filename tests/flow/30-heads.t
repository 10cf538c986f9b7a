#!/usr/bin/env bash
# 30-heads.t - several servers on one PostgreSQL: one writes, the others serve and pass writes on. The writer is killed, paused and stopped; another
# writes soon, nothing is done twice, and one that wakes late commits nothing.
. "$(dirname "$0")/lib.sh"
[ -n "${ARCUS_TEST_POSTGRES:-}" ] || { skip "several servers" "ARCUS_TEST_POSTGRES is not set"; echo "1..$count"; said_plan=1; exit 0; }
ARCUS_FLOW_STORE=$ARCUS_TEST_POSTGRES
declare -A AT PID
head_answers() { curl -fsS --max-time 10 "$(cat "$BASE/$1/address" 2>/dev/null)/readyz"; }
head_start() { # head_start NAME FLAGS...: one more server of this cloud
    local name=$1
    shift
    [ -n "${STORE_DB:-}" ] || store_flags
    rm -f "$BASE/$name/address"
    setpriv --pdeathsig TERM "$ARCUS" server --data "$BASE/$name" --listen 127.0.0.1:0 --keys "$BASE/keys" --default-image host "${STORE[@]}" "$@" >>"$BASE/$name.log" 2>&1 </dev/null &
    PID[$name]=$!
    pids+=("$!")
    until_ok 20 head_answers "$name" || give_up "server $name does not answer: $(tail -n 3 "$BASE/$name.log" | tr '\n' ' ')"
    AT[$name]=$(cat "$BASE/$name/address")
}
at() { URL=${AT[$1]}; }                                # whom the next question goes to
servers() { get /v1/servers | jq -r '[.items[].state] | sort | join(" ")'; }
writer_is() { at "${2:-$1}"; [ "$(get /v1/servers | jq -r '.items[] | select(.state == "writer") | .address')" = "${AT[$1]}" ]; }
two_serve() { [ "$(servers)" = 'standby writer' ]; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
write_again() { # write_again KEY: until it is acknowledged; each try has the same key
    call POST /v1/jobs "$(sh_job true)" --max-time 5 -H "Idempotency-Key: $1"
    [ "$STATUS" = 201 ]
}
takes_over() { # takes_over NAME WHAT: the time from now until NAME acknowledges a write
    local began
    began=$(now_ms)
    at "$1"
    ok "$2: another server acknowledges a write" until_ok 30 write_again "after-$RANDOM-$began"
    note "$2: $(($(now_ms) - began)) ms to the next acknowledged write"
}

head_start a
head_start b
KEY=$(cat "$BASE/a/admin.key")
at b
until_ok 10 two_serve
is "one of two servers writes" "$(servers)" 'standby writer'
ok "it is the first" until_ok 10 writer_is a b
call POST /v1/jobs "$(sh_job true)"
is "a write on the other is passed on" "$STATUS" 201
at a
is "and is there on the first" "$(job "$(field .id)")" queued
at b
is "a read is served there" "$(job "$(field .id)")" queued
call POST /v1/jobs "$(sh_job true)" --interface 127.0.0.2
is "the client's own address is kept" "$(sql "SELECT address FROM event WHERE kind = 'job.queued' ORDER BY seq DESC LIMIT 1")" 127.0.0.2
call POST /v1/jobs "$(sh_job true)" -H "Arcus-Passed: 9.9.9.9 $(printf '%064d' 0)"
is "nobody can make one up" "$(sql "SELECT address FROM event WHERE kind = 'job.queued' ORDER BY seq DESC LIMIT 1")" 127.0.0.1
AS=wrong call POST /v1/jobs "$(sh_job true)"
refused "a stranger is a stranger there too" 401 unauthenticated
call GET /v1/nodes/link
refused "no link without a node's key" 403 denied

at b
call POST /v1/jobs/plan "$(sh_job true '{"name":"asked"}')"
is "a question is handed on, too" "$STATUS $(field .starts)" "200 never"
curl -sN --max-time 600 -H "Authorization: Bearer $KEY" -H 'Accept: text/event-stream' "$URL/v1/events?since=0" >"$BASE/stream" 2>/dev/null &
pids+=("$!")
at a
JOB=$(submit "$(sh_job true '{"name": "told"}')")
ok "events are told on the server that does not write" until_ok 10 grep -q "$JOB" "$BASE/stream"

# --- streams: a node is linked to the server that writes, and everybody reaches its tasks through any
RUN=$BASE/$NODE.run
at a
call POST /v1/nodes/tokens '{}'
agent_start "$NODE" --token "$(field .token)" --sim-gpus 4
until_ok 30 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/$NODE.log" | tr '\n' ' ')"
at b
export ARCUS_SERVER=$URL ARCUS_KEY=$KEY
mkdir "$BASE/folder"
head -c 3000000 /dev/urandom >"$BASE/folder/large"
JOB=$(arcus submit --workdir "$BASE/folder" -- sh -c 'sha256sum <large; while sleep 0.2; do echo again; done')
wait_for "$JOB" running 60
is "a job runs" "$(job "$JOB")" running
ok "its log is read through the server that has no link to it" until_ok 20 has_said "$JOB" "$(sha256sum <"$BASE/folder/large")"
curl -sN --max-time 600 -H "Authorization: Bearer $KEY" "$URL/v1/jobs/$JOB/logs?follow=true" >"$BASE/followed" 2>/dev/null &
FOLLOWER=$!
pids+=("$FOLLOWER")
ok "and followed" until_ok 20 grep -q again "$BASE/followed"
is "a command runs inside, with its input" "$(echo through | arcus exec -i "$JOB" -- cat)" through
arcus cp "$JOB:/etc/hostname" "$BASE/copied"
ok "a file is copied out" test -s "$BASE/copied"
arcus cancel "$JOB" --grace 0s >/dev/null
is "it is cancelled there" "$(how "$JOB")" 'cancelled cancelled 0'
until_ok 10 eval '! kill -0 $FOLLOWER'
ok "the follower's stream ends with it" eval '! kill -0 $FOLLOWER'
unset ARCUS_SERVER ARCUS_KEY

# --- who does not belong here, and a whole cloud on one machine as one more head
cp -r "$BASE/keys" "$BASE/keys2"
rm "$BASE/keys2"/ca.*
stranger() { timeout 60 "$ARCUS" server --data "$BASE/s" --listen 127.0.0.1:0 --keys "$BASE/keys2" "${STORE[@]}" 2>&1; }
like "a server without the cloud's authority makes none of its own" "$(stranger)" 'authority .* is missing.*copy both'
"$ARCUS" server --data "$BASE/o" --listen 127.0.0.1:0 >"$BASE/o.log" 2>&1 </dev/null &
OTHER=$!
until_ok 20 test -s "$BASE/o/keys/ca.pem" && cp "$BASE"/o/keys/ca.* "$BASE/keys2"
stop "$OTHER"
like "one with another authority is refused" "$(stranger)" 'authority .* is not that of this store.*copy both'
setpriv --pdeathsig TERM "$ARCUS" up --data "$BASE/u" --run "$BASE/u.run" --listen 127.0.0.1:0 --keys "$BASE/keys" --name "${NODE}u" "${STORE[@]}" >>"$BASE/u.log" 2>&1 </dev/null &
UPPER=$!
pids+=("$UPPER")
ok "the node of an \`arcus up\` that does not write comes too" until_ok 40 node_ready "${NODE}u"
stop "$UPPER"
is "it leaves with 0" "$?" 0
call DELETE "/v1/nodes/${NODE}u"

kill -9 "${PID[a]}"
wait "${PID[a]}" 2>/dev/null
rm -rf "$BASE/a/blobs"
takes_over b kill
digest=$(sql "SELECT digest FROM blob")
like "an upload is known by its digest" "$digest" '^sha256:'
is "what was uploaded outlives the server that took it" "sha256:$(get "/v1/blobs/$digest" | sha256sum | cut -c 1-64)" "$digest"
is "and is read from the folder the next time" "sha256:$(get "/v1/blobs/$digest" | sha256sum | cut -c 1-64)" "$digest"
ok "it writes" until_ok 10 writer_is b
head_start a
until_ok 10 two_serve
ok "who comes back stands by" until_ok 10 writer_is b a

before=$(sql "SELECT count(*) FROM job")
kill -STOP "${PID[b]}"
takes_over a pause
kill -CONT "${PID[b]}"
ok "who was paused stands by" until_ok 10 writer_is a b
is "what was asked was done once" "$(sql "SELECT count(*) FROM job")" $((before + 1))
at b
call POST /v1/jobs "$(sh_job true)"
is "and passes writes on" "$STATUS" 201

kill -TERM "${PID[a]}"
takes_over b stop
wait "${PID[a]}"
is "who was stopped leaves with 0" "$?" 0
unlike "and says goodbye" "$(get /v1/servers)" "${AT[a]}\""
sort -n <(sed -n 's/^id: //p' "$BASE/stream") >"$BASE/ids"
is "a follower on one server was told everything once" "$(uniq -d "$BASE/ids" | head -n 1) $(awk 'NR != $1' "$BASE/ids" | head -n 1)" " "
at b
UP=${PID[b]}
finish
